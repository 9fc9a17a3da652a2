"""Random task graphs, with the result of a serial execution in program order.

Tasks work on overlapping windows of a few shared matrices. Each one mixes everything it reads into a number
and fills what it writes with it, so any wrong order shows in the result. OUTPUT_EXISTING is used where
nothing was written before (its writers are not ordered among themselves), and tasks of a manual scope declare
the edges that their accesses need.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np

from tests.runtime.script import INOUT, INPUT, MIX, OUTPUT_EXISTING, SLOW_ADD, UNSET, Script

MASK = (1 << 32) - 1


@dataclass
class Graph:
    """A script, the arrays it starts from, and what they hold after a serial execution."""

    script: Script
    arrays: list[np.ndarray]
    expected: list[np.ndarray]


@dataclass
class _Window:
    register: int
    array: int
    index: tuple[slice, slice]
    transposed: bool

    def values(self, arrays: list[np.ndarray]) -> np.ndarray:
        part = arrays[self.array][self.index]
        return part.T if self.transposed else part


@dataclass
class _ManualTask:
    id: int
    reads: list[np.ndarray]
    writes: list[np.ndarray]


@dataclass
class _Generator:
    rng: random.Random
    arrays: list[np.ndarray]
    largest: tuple[int, int]
    script: Script = field(default_factory=Script)
    manual: list[_ManualTask] = field(default_factory=list)
    in_manual: bool = False

    def __post_init__(self) -> None:
        self.values = [a.copy() for a in self.arrays]
        self.fresh = [np.ones(a.shape, bool) for a in self.arrays]

    def task(self) -> None:
        windows = [self._window() for _ in range(self.rng.randint(1, 4))]
        tags = [self._tag(w) for w in windows]
        self._avoid_writing_twice(windows, tags)
        deps = self._needed_deps(windows, tags) if self.in_manual else []
        read = sum(1 << i for i, tag in enumerate(tags) if tag in (INPUT, INOUT))
        written = sum(1 << i for i, tag in enumerate(tags) if tag in (INOUT, OUTPUT_EXISTING))
        salt = self.rng.getrandbits(31)
        lanes = self.rng.choice([(UNSET, 0, UNSET), (1, UNSET, UNSET)])
        payload = [(tag, w.register) for tag, w in zip(tags, windows, strict=True)]
        task_id = self.script.submit(MIX, *payload, scalars=[salt, read, written], lanes=lanes, deps=deps)
        if self.in_manual:
            self.manual.append(
                _ManualTask(task_id, *(self._masks(windows, tags, kinds) for kinds in _READ_AND_WRITE))
            )
        self._execute(windows, tags, salt)

    def scope(self) -> None:
        if self.in_manual:
            self.script.end()
            self.manual.clear()
        else:
            self.script.begin(manual=True)
        self.in_manual = not self.in_manual

    def _window(self) -> _Window:
        array = self.rng.randrange(len(self.arrays))
        rows, cols = self.arrays[array].shape
        h, w = (self.rng.randint(1, most) for most in self.largest)
        if self.rng.random() < 0.2 and self.largest == (rows, cols):
            h, w = rows, cols
        r, c = self.rng.randint(0, rows - h), self.rng.randint(0, cols - w)
        register = self.script.view(array, [h, w], [r, c])
        transposed = self.rng.random() < 0.3
        if transposed:
            register = self.script.transpose(register, 0, 1)
        return _Window(register, array, (slice(r, r + h), slice(c, c + w)), transposed)

    def _tag(self, window: _Window) -> int:
        if self.fresh[window.array][window.index].all() and self.rng.random() < 0.5:
            return OUTPUT_EXISTING
        return self.rng.choice([INPUT, INPUT, INOUT])

    def _avoid_writing_twice(self, windows: list[_Window], tags: list[int]) -> None:
        """A task that writes one element through two windows: only the first stays a write."""
        taken = [np.zeros(a.shape, bool) for a in self.arrays]
        for i, window in enumerate(windows):
            if tags[i] == INPUT:
                continue
            if taken[window.array][window.index].any():
                tags[i] = INPUT
            taken[window.array][window.index] = True

    def _masks(self, windows: list[_Window], tags: list[int], kinds: tuple[int, ...]) -> list[np.ndarray]:
        masks = [np.zeros(a.shape, bool) for a in self.arrays]
        for window, tag in zip(windows, tags, strict=True):
            if tag in kinds:
                masks[window.array][window.index] = True
        return masks

    def _needed_deps(self, windows: list[_Window], tags: list[int]) -> list[int]:
        reads, writes = (self._masks(windows, tags, kinds) for kinds in _READ_AND_WRITE)
        return [
            task.id
            for task in self.manual
            if any(
                (w & (tr | tw)).any() or (r & tw).any()
                for r, w, tr, tw in zip(reads, writes, task.reads, task.writes, strict=True)
            )
        ]

    def _execute(self, windows: list[_Window], tags: list[int], salt: int) -> None:
        acc = salt
        for window, tag in zip(windows, tags, strict=True):
            if tag != OUTPUT_EXISTING:
                for value in window.values(self.values).ravel().tolist():
                    acc = (acc * 31 + value) & MASK
        for window, tag in zip(windows, tags, strict=True):
            if tag == INPUT:
                continue
            part = window.values(self.values)
            part[...] = (np.arange(part.size, dtype=np.uint64) + acc).astype(np.uint32).reshape(part.shape)
            self.fresh[window.array][window.index] = False


_READ_AND_WRITE = ((INPUT, INOUT), (INOUT, OUTPUT_EXISTING))


def make_graph(seed: int) -> Graph:
    """A graph of 5 to 60 tasks on 1 to 3 small matrices, with manual scopes in between."""
    rng = random.Random(seed)
    generator = _Generator(rng, _matrices(seed, rng.randint(1, 3), 6, 8), (6, 8))
    for _ in range(rng.randint(5, 60)):
        if rng.random() < 0.1:
            generator.scope()
        generator.task()
    if generator.in_manual:
        generator.scope()
    return Graph(generator.script, generator.arrays, generator.values)


def make_crowded_graph(seed: int) -> Graph:
    """300 tasks on small windows of one large matrix, all of which wait for a slow first task."""
    generator = _Generator(random.Random(seed), _matrices(seed, 1, 48, 64), (6, 8))
    generator.script.submit(SLOW_ADD, (INOUT, 0), (INOUT, 0))
    generator.values[0] += np.uint32(1)
    generator.fresh[0][...] = False
    for _ in range(300):
        generator.task()
    return Graph(generator.script, generator.arrays, generator.values)


def _matrices(seed: int, count: int, rows: int, cols: int) -> list[np.ndarray]:
    numbers = np.random.default_rng(seed)
    return [numbers.integers(0, 1 << 32, (rows, cols), np.uint32) for _ in range(count)]
