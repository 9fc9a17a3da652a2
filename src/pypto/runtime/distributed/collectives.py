"""What a host function asks all ranks to do with their windows, done by the host itself.

The windows lie in its address space, and earlier dispatches have ended. An operand is one array per rank.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = ["ON_ALL_RANKS"]

Array = np.ndarray[Any, Any]
PerRank = Sequence[Array]
_FOLDS: tuple[Callable[[Array, Array], Array], ...] = (np.add, np.maximum, np.minimum, np.multiply)


def _fold(parts: PerRank, op: int) -> Array:
    """One part after the other, rounded to the element type at each step."""
    result = parts[0].copy()
    for part in parts[1:]:
        result = _FOLDS[op](result, part).astype(result.dtype, copy=False)
    return result


def _allreduce(target: PerRank, *signal: PerRank, op: int = 0) -> None:
    result = _fold(target, op)
    for window in target:
        window[...] = result


def _reduce_scatter(target: PerRank, signal: PerRank, op: int = 0) -> None:
    rows = len(target[0]) // len(target)
    for rank, window in enumerate(target):
        own = slice(rank * rows, (rank + 1) * rows)
        window[own] = _fold([each[own] for each in target], op)


def _broadcast(target: PerRank, signal: PerRank, root: int) -> None:
    if root >= len(target):
        raise ValueError(f"broadcast from rank {root} of {len(target)}")
    for rank, window in enumerate(target):
        if rank != root:
            window[...] = target[root]


def _allgather(local: PerRank, target: PerRank, signal: PerRank) -> None:
    for window in target:
        for rank, part in enumerate(local):
            window[rank] = part[0]


def _all_to_all(source: PerRank, target: PerRank, signal: PerRank) -> None:
    most = len(target[0]) // len(target)
    for me, window in enumerate(target):
        for sender, sent in enumerate(source):
            window[sender * most : (sender + 1) * most] = sent[me * most : (me + 1) * most]


def _all_to_all_v(
    source: PerRank, target: PerRank, signal: PerRank, send_counts: PerRank, recv_counts: PerRank
) -> None:
    most = len(target[0]) // len(target)
    for me, window in enumerate(target):
        for sender, sent in enumerate(source):
            rows = min(max(int(send_counts[sender].reshape(-1)[me]), 0), most)
            window[sender * most : sender * most + rows] = sent[me * most : me * most + rows]
            recv_counts[me][sender] = rows


def _barrier(signal: PerRank) -> None:
    """The host has waited for all ranks already."""


ON_ALL_RANKS: dict[str, Callable[..., None]] = {
    "allreduce": _allreduce,
    "all_to_all": _all_to_all,
    "all_to_all_v": _all_to_all_v,
    "allgather": _allgather,
    "barrier": _barrier,
    "broadcast": _broadcast,
    "reduce_scatter": _reduce_scatter,
}
