"""The machine that programs are lowered for, as far as passes and verifiers ask.

Which machine that is, is chosen in the backend, a layer above, which announces it here. Without a target,
rules that depend on one are skipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pypto.core.dtype import DataType
from pypto.ir.enums import MemorySpace

__all__ = ["TargetFacts", "current_target", "set_target"]


@dataclass(frozen=True, slots=True)
class TargetFacts:
    """Facts about one architecture. Sizes are in bytes.

    `cube_cores` and `vector_cores` count the whole machine; a cluster is one cube core with its vector cores.
    `memory_bytes` are the buffers of one core.
    """

    arch: str
    cube_cores: int
    vector_cores: int
    recommended_innermost_bytes: int
    l2_cache_line_bytes: int
    atomic_add_dtypes: frozenset[DataType]
    memory_bytes: Mapping[MemorySpace, int]


_current: TargetFacts | None = None


def current_target() -> TargetFacts | None:
    """Return the facts of the chosen target, None if none was chosen."""
    return _current


def set_target(facts: TargetFacts | None) -> None:
    """Announce the target of this process, or None to forget it."""
    global _current
    _current = facts
