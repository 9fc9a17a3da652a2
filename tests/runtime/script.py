"""Scripts for the test orchestration: what to submit, as words of 64 bits, and how to run them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pypto.backend.toolchain import CodeKind
from pypto.runtime.build import CompileJob
from pypto.runtime.native_runtime import NativeProgram, RunOptions, RunTrace, pack_layout, pack_options

INPUT, OUTPUT, INOUT, OUTPUT_EXISTING, NO_DEP = range(5)
MIX, MEET, BLOCKS, EXCHANGE, FAIL, SCALARS, SLOW_ADD, ARENA, NOTHING, CRASH, LISTEN = range(11)
EQ, NE, GT, LT, GE, LE = range(6)
UNSET = -1

Array = NDArray[np.generic]


@dataclass
class Script:
    """Registers 0, 1, ... start as the arguments of `run`; ids are slots for task ids."""

    words: list[int] = field(default_factory=list)
    _next_register: int = 64
    _next_id: int = 0

    def submit(
        self,
        op: int,
        *payload: tuple[int, int] | tuple[int, int, int],
        scalars: Sequence[int] = (),
        lanes: tuple[int, int, int] = (UNSET, 0, UNSET),
        blocks: int = 1,
        sync_start: bool = False,
        deps: Sequence[int] = (),
        scalar_first: bool = False,
    ) -> int:
        """A task with (tag, register) entries; (OUTPUT, register, elements) makes one, which is
        not tracked if `elements` is negative. Returns an id slot."""
        marker = (0xABCD0000 | len(payload)) << 32 | op
        entries = [word for entry in payload for word in entry]
        all_scalars = [marker, *scalars]
        self._add(1, *lanes, blocks, sync_start, scalar_first, len(payload), *entries)
        self._add(len(all_scalars), *all_scalars, len(deps), *deps)
        return self._new_id()

    def dummy(self, deps: Sequence[int] = ()) -> int:
        self._add(2, UNSET, UNSET, UNSET, 1, 0, 0, 0, 0, len(deps), *deps)
        return self._new_id()

    def invalid_id(self) -> int:
        slot = self._new_id_slot()
        self._add(15, slot)
        return slot

    def view(self, source: int, shape: Sequence[int], offset: Sequence[int]) -> int:
        return self._new_register(3, source, len(shape), *shape, len(offset), *offset)

    def transpose(self, source: int, a: int, b: int) -> int:
        return self._new_register(4, source, a, b)

    def reshape(self, source: int, shape: Sequence[int]) -> int:
        return self._new_register(5, source, len(shape), *shape)

    def alloc(self, shape: Sequence[int], *, value: int | None = None, manual_dep: bool = False) -> int:
        return self._new_register(8, len(shape), *shape, manual_dep, value is not None, value or 0)

    def drop(self, register: int) -> None:
        self._add(9, register)

    def output_register(self) -> int:
        self._next_register += 1
        return self._next_register - 1

    def begin(self, *, manual: bool) -> None:
        self._add(6, manual)

    def end(self) -> None:
        self._add(7)

    def get(self, source: int, target: int, index: int) -> None:
        """Element 0 of `source` goes into element `index` of the one-dimensional `target`."""
        self._add(10, source, target, index)

    def set(self, target: int, value: int) -> None:
        self._add(11, target, value)

    def predicate(self, tensor: int, op: int, target: int) -> None:
        """Of the next submit, on element 0 of `tensor`."""
        self._add(12, tensor, op, target)

    def give_up(self, value: int) -> None:
        self._add(13, value)

    def chain(self, n: int, register: int) -> None:
        self._add(14, n, register)

    def misuse(self, how: int, register: int) -> None:
        """A submit whose arguments the orchestration gets wrong."""
        self._add(16, how, register)

    def misuse_view(self, how: int, register: int) -> None:
        """A view or a description of a buffer that cannot be."""
        self._add(17, how, register)

    def _add(self, *words: int) -> None:
        self.words += [int(word) for word in words]

    def _new_register(self, command: int, *words: int) -> int:
        register = self.output_register()
        self._add(command, register, *words)
        return register

    def _new_id_slot(self) -> int:
        self._next_id += 1
        return self._next_id - 1

    def _new_id(self) -> int:
        slot = self._new_id_slot()
        self._add(slot)
        return slot


NATIVE = Path(__file__).parent / "native"


def native_jobs() -> list[CompileJob]:
    """The script orchestration and the kernel whose first scalar says what it does."""
    return [
        CompileJob(CodeKind.ORCHESTRATION, NATIVE / "orchestration.cpp", "test orchestration"),
        CompileJob(CodeKind.EXTERNAL_KERNEL, NATIVE / "kernel.cpp", "test kernel"),
    ]


_CODES = {"uint32": 9, "int32": 5, "uint64": 10, "int64": 6, "int8": 3, "float32": 0}


@dataclass(frozen=True)
class Runner:
    """Runs scripts on arrays, which are changed in place."""

    program: NativeProgram

    def run(self, script: Script, *arrays: Array, workers: int = 2, **options: int) -> None:
        layouts, addresses, keep = self._pack(script, arrays)
        self.program.run(layouts, addresses, [0], pack_options(RunOptions(workers, **options)))
        del keep

    def trace(self, script: Script, *arrays: Array, workers: int = 2, **options: int) -> RunTrace:
        layouts, addresses, keep = self._pack(script, arrays)
        trace = self.program.run_traced(layouts, addresses, [0], RunOptions(workers, **options))
        del keep
        return trace

    def edges(self, script: Script, *arrays: Array) -> set[tuple[int, int]]:
        """Edges between tasks numbered in order of submission."""
        trace = self.trace(script, *arrays)
        number = {task.task: i for i, task in enumerate(trace.tasks)}
        return {(number[a], number[b]) for a, b in trace.edges}

    @staticmethod
    def _pack(script: Script, arrays: Sequence[Array]) -> tuple[bytes, list[int], list[Array]]:
        words = [*script.words, 0]
        code = np.array([w - (1 << 64) if w >= 1 << 63 else w for w in words], dtype=np.int64)
        everything = [code, *arrays]
        layouts = b"".join(pack_layout(a.shape, _CODES[a.dtype.name], a.itemsize) for a in everything)
        return layouts, [a.__array_interface__["data"][0] for a in everything], everything
