"""What a program under construction may name: tensors by kind, memory that may be written, loop indices."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Kind:
    """Shape and element type, without extents a scalar; an extent may be the name of a symbol."""

    shape: tuple[int | str, ...]
    dtype: str = "FP32"
    layout: str = "ND"

    @property
    def annotation(self) -> str:
        if not self.shape:
            return f"pl.Scalar[pl.{self.dtype}]"
        return f"pl.Tensor[[{', '.join(map(str, self.shape))}], pl.{self.dtype}]"

    def with_dtype(self, dtype: str) -> Kind:
        return Kind(self.shape, dtype)


FULL = Kind((8, 16))
HALF = Kind((4, 16))
COLUMN = Kind((8, 1))
ROW = Kind((1, 16))
SQUARE = Kind((16, 16))
TALL = Kind((16, 8))
FLIPPED = Kind((16, 8), layout="DN")
NUMBER = Kind(())
STACK = Kind((2, 8, 16))
ROWS = Kind(("M", 16))
INTS = FULL.with_dtype("INT32")
HALVES = FULL.with_dtype("FP16")
BRAINS = FULL.with_dtype("BF16")
HALF_INTS = HALF.with_dtype("INT32")

SCALARS = ("s",)
"""Names of parameters that are numbers."""

BLOCK = 4
"""Rows of a part that a loop or launch of two blocks writes."""


@dataclass
class Names:
    """The names that are visible at the present place of the text."""

    values: dict[str, Kind] = field(default_factory=dict)
    memory: dict[str, Kind] = field(default_factory=dict)
    indices: dict[str, int] = field(default_factory=dict)
    tasks: list[str] = field(default_factory=list)
    frozen: set[str] = field(default_factory=set)

    def copy(self) -> Names:
        return Names(
            dict(self.values), dict(self.memory), dict(self.indices), list(self.tasks), set(self.frozen)
        )

    def of(self, kind: Kind) -> list[str]:
        """Everything of this kind that may be read."""
        return [name for table in (self.values, self.memory) for name, each in table.items() if each == kind]

    def writable(self, *kinds: Kind) -> list[str]:
        return [name for name, kind in self.memory.items() if kind in kinds and name not in self.frozen]


class Text:
    """Choices, fresh names and the visible names; the base of the writers."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.names = Names()
        self.counter = 0

    def fresh(self, stem: str) -> str:
        self.counter += 1
        return f"{stem}{self.counter}"

    def chance(self, percent: int) -> bool:
        return self.rng.randrange(100) < percent

    @contextmanager
    def block(self) -> Iterator[None]:
        """Names that a block introduces are gone after it."""
        kept, self.names = self.names, self.names.copy()
        yield
        self.names = kept

    @contextmanager
    def index(self, name: str, count: int) -> Iterator[None]:
        self.names.indices[name] = count
        yield
        self.names.indices.pop(name, None)

    def offset(self, window: int, extent: int | str, step: int = BLOCK) -> str:
        """An offset at which a window of so many rows fits; symbolic extents are at least 8."""
        room = (8 if isinstance(extent, str) else extent) - window
        if room == 0:
            return "0"
        steps = [
            f"{name} * {factor}"
            for name, count in self.names.indices.items()
            for factor in (1, 2, step)
            if 0 < (count - 1) * factor <= room
        ]
        if steps and self.chance(50):
            return self.rng.choice(steps)
        return str(self.rng.randrange(room + 1))

    def condition(self) -> str:
        options = ["n > 0", "n > 1", "n % 2 == 0", "n < 2"]
        for name in self.names.indices:
            options += [f"{name} == 0", f"{name} < n", f"{name} % 2 == 1"]
        plain = self.rng.choice(options)
        if self.chance(15):
            return f"{plain} and {self.rng.choice(options)}"
        return plain


def indent(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


_WORD = re.compile(r"(?<![\w.\"])[A-Za-z_]\w*")


def rename(lines: list[str], names: dict[str, str]) -> list[str]:
    """The lines with identifiers replaced; attributes, strings and keywords of calls are left alone."""
    return [_WORD.sub(lambda match: names.get(match.group(), match.group()), line) for line in lines]


def words(lines: list[str]) -> set[str]:
    return {match.group() for line in lines for match in _WORD.finditer(line)}
