"""Random DSL programs, with the arrays to run them on and what they must compute.

`make_program` takes any `random.Random`; `programs()` is the hypothesis strategy made of it, which shrinks.
A program is text: the front end is part of what is tested. `Generated.expected` runs the same text with numpy
in place of the compiler (`pypto.testing.eager`).
"""

from __future__ import annotations

import itertools
import random
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pypto import ir
from pypto.testing.eager import STORAGE, run_text
from pypto.testing.programs.names import NUMBER, SCALARS, Kind, indent, words
from pypto.testing.programs.orchestration import INPUTS, UPDATED, OrchestrationText

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["Generated", "make_program", "programs"]

UNUSED = 0.1
"""How many of the kernels that nothing calls stay."""

SYMBOL_VALUES = (8, 12, 16)
"""Extents that the symbol M stands for when a program runs."""


@dataclass(frozen=True, slots=True)
class Generated:
    """A program: its text and the parameters of its entry `main`, in order; `n` is a number, 0 to 3."""

    text: str
    parameters: tuple[tuple[str, Kind | None], ...]

    def arguments(self, seed: int) -> list[Any]:
        """Fresh arguments: small integral numbers in arrays."""
        rng = np.random.default_rng(seed)
        extent = SYMBOL_VALUES[seed % len(SYMBOL_VALUES)]
        return [seed % 4 if kind is None else _made(rng, kind, extent) for _, kind in self.parameters]

    def expected(self, seed: int) -> list[Any]:
        """The arguments after the program ran."""
        arguments = self.arguments(seed)
        run_text(self.text, "P", arguments)
        return arguments

    def with_text(self, text: str) -> Generated:
        """The same entry, another text."""
        return Generated(text, self.parameters)


def _made(rng: np.random.Generator, kind: Kind, extent: int) -> np.ndarray | float:
    if kind == NUMBER:
        return float(rng.integers(-3, 4))
    shape = tuple(extent if isinstance(each, str) else each for each in kind.shape)
    numpy_type = STORAGE[getattr(ir.DataType, kind.dtype)]
    return rng.integers(-4, 5, shape).astype(numpy_type)


def make_program(rng: random.Random, statements: int | None = None) -> Generated:
    """A random program with about so many statements at the top of its entry."""
    kind = rng.choice(["Opaque", "Orchestration"])
    writer = OrchestrationText(rng, is_opaque=kind == "Opaque")
    lines = writer.body(statements or rng.choice((1, 1, 1, 2, 2, 3, 5)))
    used = words(lines) | {"o"}
    parameters: list[tuple[str, Kind | None]] = [(n, k) for n, k in INPUTS.items() if n in used]
    parameters.append(("n", None))
    parameters += [(n, NUMBER) for n in SCALARS if n in used]
    parameters += [(n, k) for n, k in UPDATED.items() if n in used]
    parameters += writer.results.items()
    declared = [f"{name}: {_annotation(name, kind, writer.results)}" for name, kind in parameters]
    returned = ["o", *writer.results]
    types = ", ".join((UPDATED | writer.results)[name].annotation for name in returned)
    main = [
        f"@pl.function(type=pl.FunctionType.{kind})",
        f"def main(self, {', '.join(declared)}) -> {f'tuple[{types}]' if len(returned) > 1 else types}:",
        *indent([*lines, f"return {', '.join(returned)}"]),
    ]
    called = set(re.findall(r"self\.(\w+)", "\n".join(lines)))
    kept = [text for name, text in writer.functions.items() if name in called or rng.random() < UNUSED]
    body = "\n".join(indent([*itertools.chain(*kept), *main]))
    text = f'import pypto.language as pl\n\nM = pl.dynamic("M")\n\n\n@pl.program\nclass P:\n{body}\n'
    return Generated(text, tuple(parameters))


def _annotation(name: str, kind: Kind | None, results: dict[str, Kind]) -> str:
    if kind is None:
        return "pl.Scalar[pl.INDEX]"
    if name in results:
        return f"pl.Out[{kind.annotation}]"
    return f"pl.InOut[{kind.annotation}]" if name in UPDATED else kind.annotation


def programs(max_statements: int = 5) -> SearchStrategy[Generated]:
    """Random programs; needs hypothesis."""
    from hypothesis import strategies as st

    return st.builds(make_program, st.randoms(use_true_random=False), st.integers(1, max_statements))
