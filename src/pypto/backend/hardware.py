"""The parts of a system on chip: memories, cores, clusters, dies. Plain values that count their content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from pypto.ir.enums import CoreType, MemorySpace

__all__ = ["Cluster", "Core", "Die", "Mem", "SoC"]

Part = TypeVar("Part")


@dataclass(frozen=True, slots=True)
class Mem:
    """A memory of a core; size and alignment in bytes."""

    mem_type: MemorySpace
    mem_size: int
    alignment: int


@dataclass(frozen=True, slots=True, init=False)
class Core:
    """A core with its memories."""

    core_type: CoreType
    mems_: tuple[Mem, ...]

    def __init__(self, core_type: CoreType, mems: Sequence[Mem]) -> None:
        object.__setattr__(self, "core_type", core_type)
        object.__setattr__(self, "mems_", tuple(mems))

    @property
    def mems(self) -> list[Mem]:
        return list(self.mems_)


@dataclass(frozen=True, slots=True, init=False)
class _Assembly(Generic[Part]):
    """Parts with how often each occurs: one part and a count, or a mapping."""

    counts_: tuple[tuple[Part, int], ...]

    def __init__(self, part: Part | Mapping[Part, int], count: int = 1) -> None:
        pairs = tuple(part.items()) if isinstance(part, Mapping) else ((part, count),)
        if any(type(n) is not int or n <= 0 for _, n in pairs):
            raise ValueError(f"the count of a part must be a positive int, got {[n for _, n in pairs]}")
        object.__setattr__(self, "counts_", pairs)

    def _count(self) -> int:
        return sum(n for _, n in self.counts_)


class Cluster(_Assembly[Core]):
    """Cores that work together."""

    __slots__ = ()

    @property
    def core_counts(self) -> dict[Core, int]:
        return dict(self.counts_)

    def total_core_count(self) -> int:
        return self._count()


class Die(_Assembly[Cluster]):
    """Clusters on one die."""

    __slots__ = ()

    @property
    def cluster_counts(self) -> dict[Cluster, int]:
        return dict(self.counts_)

    def total_cluster_count(self) -> int:
        return self._count()

    def total_core_count(self) -> int:
        return sum(n * cluster.total_core_count() for cluster, n in self.counts_)


class SoC(_Assembly[Die]):
    """Dies in one system."""

    __slots__ = ()

    @property
    def die_counts(self) -> dict[Die, int]:
        return dict(self.counts_)

    def total_die_count(self) -> int:
        return self._count()

    def total_cluster_count(self) -> int:
        return sum(n * die.total_cluster_count() for die, n in self.counts_)

    def total_core_count(self) -> int:
        return sum(n * die.total_core_count() for die, n in self.counts_)

    def cores(self) -> dict[Core, int]:
        """Each kind of core with its number in the whole system."""
        found: dict[Core, int] = {}
        for die, dies in self.counts_:
            for cluster, clusters in die.counts_:
                for core, n in cluster.counts_:
                    found[core] = found.get(core, 0) + dies * clusters * n
        return found
