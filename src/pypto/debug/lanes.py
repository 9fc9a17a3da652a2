"""Lanes of one launch that run at the same time and hand tiles to each other: a cube lane and vector lanes.

Each lane is a thread. A queue goes from the cube lane to each vector lane and back, for every pipe id.
"""

from __future__ import annotations

import queue
import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from pypto.ir.evaluate import Value

POP_SECONDS, LAUNCH_SECONDS = 10.0, 30.0
"""How long a lane waits for a tile, and a launch for its lanes."""

_AXES = (None, 0, 1, 0, 1)  # by split code; 3 and 4 are for odd extents
_BOTH = (0, 1)


class Lanes:
    """The lanes of one launch and the tiles on their way between them."""

    def __init__(self, is_dual: bool) -> None:
        self.vector_lanes = _BOTH if is_dual else (0,)
        self._queues: defaultdict[tuple[str, int, int], queue.SimpleQueue[Value]] = defaultdict(
            queue.SimpleQueue
        )
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._failures: list[BaseException] = []

    def start(self, lane: Callable[[], object]) -> None:
        """Let a lane run."""

        def run() -> None:
            try:
                lane()
            except BaseException as error:
                self._failures.append(error)

        thread = threading.Thread(target=run, daemon=True)
        self._threads.append(thread)
        thread.start()

    def join(self) -> None:
        """Wait for all lanes. Raises what a lane raised, `RuntimeError` if one does not end."""
        for thread in self._threads:
            thread.join(LAUNCH_SECONDS)
        if self._failures:
            raise self._failures[0]
        if any(thread.is_alive() for thread in self._threads):
            raise RuntimeError(f"the lanes of a launch did not end within {LAUNCH_SECONDS:g} s")

    def push_to_vector(self, tile: Value, split: int, stride: int, pipe: int) -> None:
        """Give every vector lane its part of a tile, or a copy without a split."""
        for lane in self.vector_lanes:
            self._queue("vector", lane, pipe).put(part_of_lane(tile, split, lane, stride))

    def push_to_cube(self, tile: Value, lane: int, pipe: int) -> None:
        """Give the cube lane a tile."""
        self._queue("cube", lane, pipe).put(tile)

    def pop_from_cube(self, lane: int, pipe: int) -> Value:
        """The next tile of the cube lane. Raises `RuntimeError` if none comes in time."""
        return self._pop("vector", lane, pipe)

    def pop_from_vector(self, split: int, pipe: int) -> Value:
        """The next tiles of the vector lanes, joined along the axis of the split, else that of lane 0."""
        tiles = [self._pop("cube", lane, pipe) for lane in self.vector_lanes]
        return tiles[0] if len(tiles) == 1 else joined(tiles[0], tiles[1], split)

    def _queue(self, to: str, lane: int, pipe: int) -> queue.SimpleQueue[Value]:
        with self._lock:
            return self._queues[to, lane, pipe]

    def _pop(self, to: str, lane: int, pipe: int) -> Value:
        try:
            return self._queue(to, lane, pipe).get(timeout=POP_SECONDS)
        except queue.Empty:
            raise RuntimeError(
                f"timeout: no tile came to the {to} lane {lane} on pipe {pipe} within {POP_SECONDS:g} s"
            ) from None


def joined(first: Value, second: Value, split: int) -> Value:
    """What the tiles of both vector lanes are together; that of lane 0 without a split."""
    axis = _AXES[split]
    if axis is None:
        return first
    valid = list(first.valid)
    valid[axis] += second.valid[axis]
    return Value(np.concatenate([first.data, second.data], axis), tuple(valid))


def part_of_lane(tile: Value, split: int, lane: int, stride: int) -> Value:
    """What a vector lane gets of a tile: the half from `lane * stride` on, or all of it without a split."""
    axis = _AXES[split]
    if axis is None:
        return tile
    half = -(-tile.data.shape[axis] // 2)
    step = stride or half
    window: list[Any] = [slice(None)] * tile.data.ndim
    window[axis] = slice(lane * step, lane * step + half)
    cells = tile.data[tuple(window)]
    missing = [(0, 0)] * tile.data.ndim
    missing[axis] = (0, half - cells.shape[axis])
    valid = list(tile.valid)
    valid[axis] = min(valid[axis], step) if lane == 0 else max(valid[axis] - step, 0)
    return Value(np.pad(cells, missing), tuple(valid))
