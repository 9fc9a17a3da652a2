"""Entries of `optimizations=[...]` on `pl.at` and `pl.spmd`."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from pypto import ir


def _check_slot_num(slot_num: object) -> None:
    if isinstance(slot_num, bool) or not isinstance(slot_num, int) or slot_num <= 0:
        raise ValueError(f"slot_num must be a positive integer, got {slot_num!r}")


@dataclass(frozen=True)
class Split:
    """How the work of a mixed kernel is divided between the two vector cores."""

    mode: ir.SplitMode
    slot_num: int | None = None

    def __post_init__(self) -> None:
        if self.slot_num is not None:
            _check_slot_num(self.slot_num)
            warnings.warn(
                "pl.split(..., slot_num=N) is deprecated; add pl.cross_core_slot(slot_num=N) instead",
                DeprecationWarning,
                stacklevel=3,
            )


@dataclass(frozen=True)
class CrossCoreSlot:
    """How many slots the queue between cube and vector cores has."""

    slot_num: int

    def __post_init__(self) -> None:
        _check_slot_num(self.slot_num)


def split(mode: ir.SplitMode, *, slot_num: int | None = None) -> Split:
    """Divide a mixed kernel's vector work; `slot_num` is deprecated here, see `cross_core_slot`."""
    return Split(mode, slot_num)


def cross_core_slot(*, slot_num: int) -> CrossCoreSlot:
    """Set the number of cross-core queue slots."""
    return CrossCoreSlot(slot_num)


__all__ = ["CrossCoreSlot", "Split", "cross_core_slot", "split"]
