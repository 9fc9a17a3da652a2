"""Two kernels that are equal but for names, or differ by exactly one thing, and a program that launches both.

Deduplication must merge the first sort and keep the second. Every change alters what the kernel is: a number,
an operator, the order of operands, an element type, an extent, a parameter's direction, a function attribute,
which extents share a symbol.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from pypto.testing.programs.names import Kind, indent, rename

__all__ = ["MUTATIONS", "Twins", "make_twins"]


@dataclass(frozen=True, slots=True)
class _Kernel:
    """Parameters with kind and direction ("" for inputs), attributes, and the statements."""

    params: tuple[tuple[str, Kind, str], ...]
    lines: tuple[str, ...]
    attrs: str = ""

    def text(self, name: str) -> list[str]:
        declared = ", ".join(
            f"{param}: {f'pl.{direction}[{kind.annotation}]' if direction else kind.annotation}"
            for param, kind, direction in self.params
        )
        attrs = [f"pl.func_attr({{{self.attrs}}})"] if self.attrs else []
        result = self.params[-1][1].annotation
        return [
            "@pl.function(type=pl.FunctionType.InCore)",
            f"def {name}(self, {declared}) -> {result}:",
            *indent([*attrs, *self.lines]),
            "",
        ]


@dataclass(frozen=True, slots=True)
class Twins:
    """A program with the kernels `first` and `second`; `mutation` is None if they only differ in names."""

    text: str
    mutation: str | None


def make_twins(rng: random.Random, mutation: str | None = None) -> Twins:
    """A random kernel and its twin; `mutation` is one of `MUTATIONS`, or None to rename only."""
    first = _kernel(rng, symbolic=mutation == "symbol" or rng.random() < 0.3)
    second = _renamed(first, rng)
    if mutation is not None:
        second = MUTATIONS[mutation](second, rng)
    kernels = [("first", first), ("second", second)]
    rng.shuffle(kernels)
    names = sorted(rng.sample(["alpha", "beta", "gamma", "delta"], 2))
    methods: list[str] = []
    calls: list[str] = []
    for name, (_, kernel) in zip(names, kernels, strict=True):
        methods += kernel.text(name)
        calls += _call(name, kernel)
    main = [
        "@pl.function(type=pl.FunctionType.Orchestration)",
        "def main(self, x: pl.Tensor[[M, 16], pl.FP32], n: pl.Scalar[pl.INDEX]):",
        *indent(calls),
    ]
    body = "\n".join(indent([*methods, *main]))
    header = 'import pypto.language as pl\n\nM = pl.dynamic("M")\nN = pl.dynamic("N")\n'
    return Twins(f"{header}\n\n@pl.program\nclass P:\n{body}\n", mutation)


def _call(name: str, kernel: _Kernel) -> list[str]:
    """Buffers for all parameters, then the dispatch."""
    lines, arguments = [], []
    for position, (_, kind, _) in enumerate(kernel.params):
        argument = f"{name}_{position}"
        shape = ["M" if isinstance(each, str) else str(each) for each in kind.shape]
        lines.append(f"{argument} = pl.create_tensor([{', '.join(shape)}], dtype=pl.{kind.dtype})")
        arguments.append(argument)
    return [*lines, f"{arguments[-1]} = self.{name}({', '.join(arguments)})"]


def _kernel(rng: random.Random, *, symbolic: bool) -> _Kernel:
    dtype = rng.choice(["FP32", "FP32", "INT32", "FP16"])
    kind = Kind(("M", 16) if symbolic else (16, 16), dtype)
    lines = [f"{name} = pl.load({name[1]}, [{rng.choice([0, 4])}, 0], [8, 16])" for name in ("ta", "tb")]
    known = ["ta", "tb"]
    for number in range(rng.randint(2, 5)):
        name = f"t{number}"
        operation = rng.choice(["add", "sub", "maximum", "mul"])
        left = rng.choice(known)
        right = rng.choice([each for each in known if each != left] + [_number(dtype, rng)])
        lines.append(f"{name} = pl.{operation}({left}, {right})")
        known.append(name)
    if rng.random() < 0.4:
        last = known[-1]
        lines += ["for i0 in pl.range(2):", f"    {last} = pl.add({last}, ta)"]
    lines += [f"o = pl.store({known[-1]}, [0, 0], o)", "return o"]
    attrs = rng.choice(["", '"level_hint": 1'])
    return _Kernel(
        (("a", kind, ""), ("b", kind, ""), ("o", kind, rng.choice(["Out", "InOut"]))), tuple(lines), attrs
    )


def _number(dtype: str, rng: random.Random) -> str:
    value = rng.choice([1, 2, 3])
    return f"pl.const({value}{'' if dtype == 'INT32' else '.0'}, pl.{dtype})"


def _renamed(kernel: _Kernel, rng: random.Random) -> _Kernel:
    """Other names for locals and parameters; another symbol."""
    names = {name: f"{name}_x" for name in ("a", "b", "o")}
    names |= {name: f"u{name}" for name in ("ta", "tb", "i0", *(f"t{i}" for i in range(9)))}
    lines = rename(list(kernel.lines), names)
    symbol = rng.choice(["M", "N"])
    params = tuple(
        (names[name], replace(kind, shape=tuple(symbol if isinstance(e, str) else e for e in kind.shape)), d)
        for name, kind, d in kernel.params
    )
    return _Kernel(params, tuple(lines), kernel.attrs)


# --- mutations


def _replaced(
    kernel: _Kernel, pattern: str, new: Callable[[re.Match[str]], str], rng: random.Random
) -> _Kernel:
    """One occurrence of a pattern in the statements replaced; the constant added if there is none."""
    places = [
        (number, match) for number, line in enumerate(kernel.lines) for match in re.finditer(pattern, line)
    ]
    number, match = rng.choice(places)
    line = kernel.lines[number]
    changed = line[: match.start()] + new(match) + line[match.end() :]
    return replace(kernel, lines=(*kernel.lines[:number], changed, *kernel.lines[number + 1 :]))


def _constant(kernel: _Kernel, rng: random.Random) -> _Kernel:
    """An offset of a load or store, or a scalar operand."""
    pattern = r"(?<=\[)[04](?=, 0\])|(?<=pl\.const\()\d"
    return _replaced(kernel, pattern, lambda match: {"0": "4", "4": "0"}.get(match.group(), "7"), rng)


def _operation(kernel: _Kernel, rng: random.Random) -> _Kernel:
    others = ("add", "sub", "maximum", "mul")
    return _replaced(
        kernel,
        r"(?<=pl\.)(add|sub|maximum|mul)(?=\()",
        lambda match: rng.choice([each for each in others if each != match.group()]),
        rng,
    )


def _operands(kernel: _Kernel, rng: random.Random) -> _Kernel:
    """Two tile operands change places; the two inputs do if no operator has two."""
    pattern = r"\((u\w+), (u\w+)\)"
    if any(re.search(pattern, line) for line in kernel.lines):
        return _replaced(kernel, pattern, lambda match: f"({match.group(2)}, {match.group(1)})", rng)
    return replace(kernel, lines=tuple(rename(list(kernel.lines), {"a_x": "b_x", "b_x": "a_x"})))


def _dtype(kernel: _Kernel, rng: random.Random) -> _Kernel:
    old = kernel.params[0][1].dtype
    new = rng.choice([each for each in ("FP32", "INT32", "FP16") if each != old])
    lines = tuple(
        re.sub(r"pl\.const\((\d).*?, pl\.\w+\)", lambda m: _const(int(m.group(1)), new), line)
        for line in kernel.lines
    )
    params = tuple((name, kind.with_dtype(new), direction) for name, kind, direction in kernel.params)
    return replace(kernel, lines=lines, params=params)


def _const(value: int, dtype: str) -> str:
    return f"pl.const({value}{'' if dtype == 'INT32' else '.0'}, pl.{dtype})"


def _shape(kernel: _Kernel, rng: random.Random) -> _Kernel:
    """One parameter has more columns."""
    position = rng.randrange(3)
    name, kind, direction = kernel.params[position]
    changed = (name, replace(kind, shape=(kind.shape[0], 32)), direction)
    return replace(kernel, params=(*kernel.params[:position], changed, *kernel.params[position + 1 :]))


def _direction(kernel: _Kernel, rng: random.Random) -> _Kernel:
    name, kind, direction = kernel.params[-1]
    return replace(
        kernel, params=(*kernel.params[:-1], (name, kind, "InOut" if direction == "Out" else "Out"))
    )


def _attr(kernel: _Kernel, rng: random.Random) -> _Kernel:
    return replace(kernel, attrs='"level_hint": 2')


def _symbol(kernel: _Kernel, rng: random.Random) -> _Kernel:
    """One input's extent gets a symbol of its own."""
    name, kind, direction = kernel.params[0]
    other = "N" if kind.shape[0] == "M" else "M"
    return replace(kernel, params=((name, replace(kind, shape=(other, 16)), direction), *kernel.params[1:]))


MUTATIONS: dict[str, Callable[[_Kernel, random.Random], _Kernel]] = {
    "constant": _constant,
    "operation": _operation,
    "operands": _operands,
    "dtype": _dtype,
    "shape": _shape,
    "direction": _direction,
    "attr": _attr,
    "symbol": _symbol,
}
