"""The two architectures: their hardware, which memories data moves between directly, and their handlers.

Everything runs on the CPU; these tables decide how programs are lowered and which sizes are verified.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pypto.backend.handler import BackendHandler, HandlerFacts
from pypto.backend.hardware import Cluster, Core, Die, Mem, SoC
from pypto.core.dtype import DataType
from pypto.ir.enums import CoreType, MemorySpace

__all__ = ["Backend", "Backend910B", "Backend950"]

M = MemorySpace
Moves = Mapping[MemorySpace, tuple[MemorySpace, ...]]
Self = TypeVar("Self", bound="Backend")

_CUBE_910B = Core(
    CoreType.CUBE,
    [
        Mem(M.Mat, 524288, 128),
        Mem(M.Left, 65536, 64),
        Mem(M.Right, 65536, 64),
        Mem(M.Acc, 131072, 128),
        Mem(M.Bias, 1024, 64),
    ],
)
_VECTOR_910B = Core(CoreType.VECTOR, [Mem(M.Vec, 188416, 128)])
_CUBE_950 = Core(
    CoreType.CUBE,
    [
        Mem(M.Mat, 524288, 128),
        Mem(M.Left, 65536, 64),
        Mem(M.Right, 65536, 64),
        Mem(M.Acc, 262144, 128),
        Mem(M.Bias, 4096, 64),
        Mem(M.LeftScale, 4096, 32),
        Mem(M.RightScale, 4096, 32),
    ],
)
_VECTOR_950 = Core(CoreType.VECTOR, [Mem(M.Vec, 245760, 128)])


class Backend:
    """An architecture; there is one object of each, from `instance()`."""

    _name: ClassVar[str]
    _soc: ClassVar[SoC]
    _moves: ClassVar[Moves]
    _handler: ClassVar[BackendHandler]
    _only: ClassVar[Backend | None] = None

    def __init__(self) -> None:
        raise TypeError(f"{type(self).__name__} has no constructor; use {type(self).__name__}.instance()")

    @classmethod
    def instance(cls: type[Self]) -> Self:
        found = cls.__dict__.get("_only")
        if found is None:
            if cls is Backend:
                raise TypeError("Backend is abstract; ask Backend910B or Backend950")
            found = cls._only = object.__new__(cls)
        assert isinstance(found, cls)
        return found

    def get_type_name(self) -> str:
        return self._name

    def get_handler(self) -> BackendHandler:
        return self._handler

    @property
    def soc(self) -> SoC:
        return self._soc

    def get_mem_size(self, space: MemorySpace) -> int:
        """Bytes of that memory in a core; 0 for memories that no core has."""
        return next((m.mem_size for core in self._soc.cores() for m in core.mems_ if m.mem_type is space), 0)

    def get_core_count(self, core_type: CoreType) -> int:
        return sum(n for core, n in self._soc.cores().items() if core.core_type is core_type)

    def find_mem_path(self, start: MemorySpace, end: MemorySpace) -> list[MemorySpace]:
        """The shortest way over direct moves, both ends included. Raises `ValueError` when there is none."""
        came: dict[MemorySpace, MemorySpace | None] = {start: None}
        waiting = deque([start])
        while waiting and end not in came:
            here = waiting.popleft()
            for following in self._moves.get(here, ()):
                if following not in came:
                    came[following] = here
                    waiting.append(following)
        if end not in came:
            raise ValueError(f"No path found from {start.name} to {end.name} on {self._name}")
        path: list[MemorySpace] = []
        place: MemorySpace | None = end
        while place is not None:
            path.append(place)
            place = came[place]
        return path[::-1]

    def export_to_file(self, path: Path | str) -> None:
        """Write the hardware description."""
        Path(path).write_text(json.dumps(self._description(), indent=1) + "\n", encoding="utf-8")

    @staticmethod
    def import_from_file(path: Path | str) -> Backend:
        """The architecture that a file describes. Raises `ValueError` for one that is not known."""
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{path} is no description of a backend: {error}") from error
        for kind in (Backend910B, Backend950):
            if kind.instance()._description() == content:
                return kind.instance()
        raise ValueError(f"{path} describes no known backend")

    def _description(self) -> dict[str, Any]:
        cores = [
            {
                "core_type": core.core_type.name,
                "count": count,
                "mems": [[m.mem_type.name, m.mem_size, m.alignment] for m in core.mems_],
            }
            for core, count in self._soc.cores().items()
        ]
        moves = {start.name: [end.name for end in ends] for start, ends in self._moves.items()}
        return {"type": self._name, "dies": self._soc.total_die_count(), "cores": cores, "moves": moves}

    def __repr__(self) -> str:
        return f"{type(self).__name__}.instance()"


class Backend910B(Backend):
    """Cube and vector cores are apart and meet in global memory."""

    _name = "910B"
    _soc = SoC(Die({Cluster(_CUBE_910B): 24, Cluster(_VECTOR_910B): 48}))
    _moves = {
        M.DDR: (M.Vec, M.Mat),
        M.Vec: (M.DDR,),
        M.Mat: (M.Left, M.Right, M.Bias),
        M.Acc: (M.Mat, M.DDR),
    }
    _handler = BackendHandler(
        HandlerFacts(
            target_arch="a2a3",
            simulator="a2a3sim",
            assembler_arch="a3",
            core_count_method="set_block_num",
            is_split=True,
            access_bytes=512,
            acc_bytes=131072,
            bias_bytes=1024,
            int32_acc_rows=32,
        )
    )


class Backend950(Backend):
    """A cube and two vector cores make a cluster."""

    _name = "950"
    _soc = SoC(Die(Cluster({_CUBE_950: 1, _VECTOR_950: 2}), 18), 2)
    _moves = {
        M.DDR: (M.Vec, M.Mat),
        M.Vec: (M.DDR, M.Mat),
        M.Mat: (M.Left, M.Right, M.Bias, M.LeftScale, M.RightScale),
        M.Acc: (M.Mat, M.DDR, M.Vec),
    }
    _handler = BackendHandler(
        HandlerFacts(
            target_arch="a5",
            simulator="a5sim",
            assembler_arch="a5",
            core_count_method="set_core_num",
            is_split=False,
            access_bytes=128,
            acc_bytes=262144,
            bias_bytes=4096,
            int32_acc_rows=16,
            more_bias_moves=frozenset({(DataType.BF16, DataType.FP32)}),
        )
    )
