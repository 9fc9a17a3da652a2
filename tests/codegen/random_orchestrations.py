"""Random control programs, each as DSL text and as Python that computes what it must give.

Two kinds: arithmetic on integers with branches and loops, and tensors that kernels transform and control flow
moves around. The same generator step writes both texts, so they cannot drift apart.
"""

# ruff: noqa: E501 - headers of DSL functions are one line

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

Array = np.ndarray
TENSOR = "pl.Tensor[[8, 8], pl.FP32]"
INTS = ("a", "b", "c", "d")
TENSORS = ("a", "b", "c")


class Generator:
    """Writes statements; `pl.const` is spelled `C`, a cast to INT64 `I` and one to INDEX `X` in both texts."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.dsl: list[str] = []
        self.python: list[str] = []
        self.counter = 0

    def line(self, depth: int, dsl: str, python: str | None = None) -> None:
        self.dsl.append("    " * (depth + 2) + dsl)
        self.python.append("    " * depth + (dsl if python is None else python))

    def fresh(self, prefix: str) -> str:
        self.counter += 1
        return f"{prefix}{self.counter}"

    def swap(self, depth: int, names: tuple[str, ...]) -> None:
        chosen = self.random.sample(names, self.random.choice([2, 3]))
        self.line(depth, f"{', '.join(chosen)} = {', '.join(chosen[1:] + chosen[:1])}")

    def branch(self, depth: int, condition: str, block: Callable[[int, int], None]) -> None:
        self.line(depth, f"if {condition}:")
        block(depth + 1, self.random.randrange(1, 3))
        if self.random.random() < 0.6:
            self.line(depth, "else:")
            block(depth + 1, self.random.randrange(1, 3))


class IntGenerator(Generator):
    """Integer arithmetic; values stay small through remainders."""

    loop_vars: list[str]

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.loop_vars = []

    def expr(self, depth: int = 0) -> str:
        choice = self.random.choice
        kind = choice(["const", "var"] if depth > 2 else ["const", "var", "sum", "sum", "mul", "div", "min"])
        if kind == "const":
            return f"C({self.random.randrange(-9, 10)})"
        if kind == "var":
            return choice([*INTS, *(f"I({v})" for v in self.loop_vars)])
        left, right = self.expr(depth + 1), self.expr(depth + 1)
        if kind == "sum":
            return f"({left} {choice('+-')} {right})"
        if kind == "mul":
            return f"({left} * C({choice([-2, 2, 3])}))"
        if kind == "div":
            return f"({left} {choice(['//', '%'])} C({choice([-7, -3, 2, 5])}))"
        return f"pl.{choice(['min', 'max'])}({left}, {right})"

    def condition(self) -> str:
        compare = f"{self.expr(2)} {self.random.choice(['<', '<=', '>', '==', '!='])} {self.expr(2)}"
        forms = [compare, compare, f"not ({compare})", f"({compare}) and ({self.expr(2)} < {self.expr(2)})"]
        return self.random.choice([*forms, f"({compare}) or ({self.expr(2)} > {self.expr(2)})"])

    def block(self, depth: int, count: int) -> None:
        for _ in range(count):
            kind = self.random.choice(["set", "set", "swap", "fib", "if", "if", "for", "while"])
            if kind == "set" or depth > 2:
                self.line(depth, f"{self.random.choice(INTS)} = ({self.expr()}) % C(1009)")
            elif kind == "swap":
                self.swap(depth, INTS)
            elif kind == "fib":
                left, right = self.random.sample(INTS, 2)
                self.line(depth, f"{left}, {right} = {right}, ({left} + {right}) % C(997)")
            elif kind == "if":
                self.branch(depth, self.condition(), self.block)
            elif kind == "for":
                name = self.fresh("i")
                bounds = self.random.choice(["3", "X(a % C(4))", "1, 6, 2", "5, 0, -2", "X(b % C(3)), 4"])
                self.line(depth, f"for {name} in pl.range({bounds}):")
                self.loop_vars.append(name)
                self.block(depth + 1, self.random.randrange(1, 4))
                self.loop_vars.pop()
            else:
                name = self.fresh("w")
                self.line(depth, f"{name} = C(0)")
                self.line(depth, f"while {name} < C({self.random.randrange(1, 4)}):")
                self.line(depth + 1, f"{name} = {name} + C(1)")
                self.block(depth + 1, self.random.randrange(1, 3))


class TensorGenerator(Generator):
    """Kernel calls on three tensors; `n` and `m` steer."""

    def dispatch(self, depth: int) -> None:
        target, first, second = (self.random.choice(TENSORS) for _ in range(3))
        kind = self.random.choice(["inc", "mix", "submit", "acc"])
        made = self.fresh("t")
        if kind == "submit":
            self.line(depth, f"{target}, _{made} = pl.submit(self.inc, {first})", f"{target} = inc({first})")
            return
        self.line(depth, f"{made} = pl.create_tensor([8, 8], dtype=pl.FP32)", "pass")
        if kind == "inc":
            self.line(depth, f"{target} = self.inc({first}, {made})", f"{target} = inc({first})")
        elif kind == "mix":
            self.line(
                depth, f"{target} = self.mix({first}, {second}, {made})", f"{target} = mix({first}, {second})"
            )
        else:
            self.line(depth, f"{made} = self.inc({first}, {made})", f"{made} = inc({first})")
            self.line(depth, f"{made} = self.acc({second}, {made})", f"{made} = acc({second}, {made})")
            self.line(depth, f"{target} = {made}")

    def block(self, depth: int, count: int) -> None:
        for _ in range(count):
            kind = self.random.choice(["call", "call", "call", "swap", "if", "for", "steer"])
            if kind == "call" or depth > 2:
                self.dispatch(depth)
            elif kind == "swap":
                self.swap(depth, TENSORS)
            elif kind == "if":
                self.branch(depth, self.random.choice(["n > C(3)", "m % C(2) == C(0)", "n < m"]), self.block)
            elif kind == "for":
                self.line(depth, f"for {self.fresh('i')} in pl.range({self.random.randrange(1, 4)}):")
                self.block(depth + 1, self.random.randrange(1, 3))
            else:
                self.line(depth, self.random.choice(["m = m + C(1)", "n = n + m"]))


class _Language:
    """What the Python text calls `pl`."""

    range = staticmethod(range)
    min = staticmethod(min)
    max = staticmethod(max)


_PYTHON = {"C": int, "I": int, "X": int, "pl": _Language}


def _spelled(lines: list[str], dtype: str) -> str:
    """The DSL text with the abbreviations written out; they do not nest."""
    names = {"C": "const", "I": "cast", "X": "cast"}
    out = []
    for line in lines:
        pieces, rest = [], line
        while True:
            start = next((i for i, c in enumerate(rest) if c in names and rest[i + 1 : i + 2] == "("), None)
            if start is None:
                break
            pieces.append(rest[:start])
            end, level = start + 2, 1
            while level:
                level += {"(": 1, ")": -1}.get(rest[end], 0)
                end += 1
            inner = _spelled([rest[start + 2 : end - 1]], dtype)
            to = "pl.INDEX" if rest[start] == "X" else dtype
            pieces.append(f"pl.{names[rest[start]]}({inner}, {to})")
            rest = rest[end:]
        out.append("".join([*pieces, rest]))
    return "\n".join(out)


def int_program(seed: int) -> tuple[str, Array, list[int]]:
    """DSL text, the input, and the four numbers that the output must hold."""
    generator = IntGenerator(seed)
    generator.block(0, generator.random.randrange(8, 14))
    reads = "\n".join(f"        {v} = pl.tensor.read(x, [{i}])" for i, v in enumerate(INTS))
    writes = "\n".join(f"        pl.write(out, [{i}], {v})" for i, v in enumerate(INTS))
    text = f"""
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[4], pl.INT64], out: pl.Out[pl.Tensor[[4], pl.INT64]]) -> pl.Tensor[[4], pl.INT64]:
{reads}
{_spelled(generator.dsl, "pl.INT64")}
{writes}
        return out
"""
    x = np.array([generator.random.randrange(-50, 50) for _ in INTS], np.int64)
    values = dict(zip(INTS, map(int, x), strict=True))
    exec("\n".join(generator.python), dict(_PYTHON), values)
    return text, x, [values[v] for v in INTS]


def tensor_program(seed: int) -> tuple[str, list[Array], tuple[int, int], list[Array]]:
    """DSL text, three inputs, `n` and `m`, and the three outputs."""
    generator = TensorGenerator(seed)
    generator.block(0, generator.random.randrange(6, 10))
    load = "pl.load({}, [0, 0], [8, 8])"
    x, y, out = (load.format(name) for name in ("x", "y", "out"))
    text = f"""
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def inc(self, x: {TENSOR}, out: pl.Out[{TENSOR}]) -> {TENSOR}:
        out = pl.store(pl.add(pl.mul({x}, 0.5), 1.0), [0, 0], out)
        return out
    @pl.function(type=pl.FunctionType.InCore)
    def mix(self, x: {TENSOR}, y: {TENSOR}, out: pl.Out[{TENSOR}]) -> {TENSOR}:
        out = pl.store(pl.sub(pl.mul({x}, 0.75), {y}), [0, 0], out)
        return out
    @pl.function(type=pl.FunctionType.InCore)
    def acc(self, x: {TENSOR}, out: pl.InOut[{TENSOR}]) -> {TENSOR}:
        out = pl.store(pl.add({x}, pl.mul({out}, 0.5)), [0, 0], out)
        return out
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: {TENSOR}, b: {TENSOR}, c: {TENSOR}, n: pl.Scalar[pl.INT32], m: pl.Scalar[pl.INT32],
             oa: pl.Out[{TENSOR}], ob: pl.Out[{TENSOR}], oc: pl.Out[{TENSOR}]) -> tuple[{TENSOR}, {TENSOR}, {TENSOR}]:
{_spelled(generator.dsl, "pl.INT32")}
        oa = self.inc(a, oa)
        ob = self.inc(b, ob)
        oc = self.inc(c, oc)
        return oa, ob, oc
"""
    numbers = np.random.default_rng(seed)
    inputs = [numbers.random((8, 8), dtype=np.float32) for _ in TENSORS]
    n, m = generator.random.randrange(7), generator.random.randrange(7)
    half, kernels = np.float32(0.5), dict(_PYTHON)
    kernels["inc"] = lambda x: x * half + np.float32(1)
    kernels["mix"] = lambda x, y: x * np.float32(0.75) - y
    kernels["acc"] = lambda x, out: x + out * half
    values = dict(zip(TENSORS, inputs, strict=True)) | {"n": n, "m": m}
    exec("\n".join(generator.python), kernels, values)
    return text, inputs, (n, m), [kernels["inc"](values[v]) for v in TENSORS]
