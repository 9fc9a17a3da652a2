"""Callables: compiled code with a signature.

A binary is code; a `CoreCallable` is a binary with the directions of its tensors, so several callables may
share one binary. A `ChipCallable` is an orchestration together with the callables it submits, by function id.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pypto.runtime import task_interface as limits
from pypto.runtime.native_runtime import KERNEL_ENTRY, NativeKernel, NativeProgram
from pypto.runtime.task_interface import ArgDirection

CONFIG = "aicpu_orchestration_config"


@dataclass(frozen=True, slots=True)
class Binary:
    """A shared library on disk."""

    path: Path
    size: int

    @classmethod
    def of(cls, path: Path) -> Binary:
        return cls(path, path.stat().st_size)


@dataclass(frozen=True, slots=True)
class CoreCallable:
    """One kernel registration: a binary and the direction of each tensor of its payload."""

    signature: tuple[ArgDirection, ...]
    binary: Binary
    name: str = ""
    core_type: str = "aiv"
    entry: str = KERNEL_ENTRY

    @classmethod
    def build(
        cls,
        signature: Sequence[ArgDirection],
        binary: Binary,
        *,
        name: str = "",
        core_type: str = "aiv",
        entry: str = KERNEL_ENTRY,
    ) -> CoreCallable:
        """Raises `ValueError` for a signature of more tensors than a kernel takes."""
        _check_count("kernel signature", len(signature), limits.MAX_KERNEL_TENSORS)
        return cls(tuple(signature), binary, name, core_type, entry)

    @property
    def sig_count(self) -> int:
        return len(self.signature)

    def sig(self, i: int) -> ArgDirection:
        return self.signature[i]

    @property
    def binary_size(self) -> int:
        return self.binary.size


class ChipCallable:
    """An orchestration and its kernels. The native program is made at the first use of `program`."""

    def __init__(
        self,
        signature: tuple[ArgDirection, ...],
        func_name: str,
        binary: Binary,
        children: tuple[tuple[int, CoreCallable], ...],
        config_name: str,
    ) -> None:
        self.signature = signature
        self.func_name = func_name
        self.config_name = config_name
        self.binary = binary
        self.children = children

    @classmethod
    def build(
        cls,
        signature: Sequence[ArgDirection],
        func_name: str,
        binary: Binary,
        children: Iterable[tuple[int, CoreCallable]] = (),
        config_name: str = "",
    ) -> ChipCallable:
        """Raises `ValueError` for too many entries or children, and for a function id given twice."""
        rows = tuple(children)
        tensors = sum(direction is not ArgDirection.SCALAR for direction in signature)
        _check_count("orchestration signature", tensors, limits.MAX_ORCHESTRATION_TENSORS)
        _check_count("orchestration scalars", len(signature) - tensors, limits.MAX_ORCHESTRATION_SCALARS)
        _check_count("children", len(rows), limits.MAX_CHILDREN)
        seen: set[int] = set()
        for func_id, _ in rows:
            if func_id in seen:
                raise ValueError(f"function id {func_id} is given twice")
            seen.add(func_id)
        return cls(tuple(signature), func_name, binary, rows, config_name)

    @property
    def sig_count(self) -> int:
        return len(self.signature)

    def sig(self, i: int) -> ArgDirection:
        return self.signature[i]

    @property
    def child_count(self) -> int:
        return len(self.children)

    def child_func_id(self, i: int) -> int:
        return self.children[i][0]

    def child(self, i: int) -> CoreCallable:
        return self.children[i][1]

    @property
    def binary_size(self) -> int:
        return self.binary.size

    @property
    def buffer_size(self) -> int:
        """Bytes of all distinct binaries."""
        distinct = {self.binary.path: self.binary.size}
        distinct.update((child.binary.path, child.binary.size) for _, child in self.children)
        return sum(distinct.values())

    @functools.cached_property
    def program(self) -> NativeProgram:
        """The orchestration bound to the runtime; every distinct binary is loaded once per process."""
        rows = [
            NativeKernel(func_id, child.name, child.core_type == "aic", child.binary.path, child.entry)
            for func_id, child in self.children
        ]
        return NativeProgram(self.binary.path, self.func_name, self.config_name, rows)


def _check_count(what: str, count: int, limit: int) -> None:
    if count > limit:
        raise ValueError(f"{what} of {count} entries exceeds supported {limit}")
