"""Makes random programs over tensors of one shape: scopes, loops, branches, updates, computed carries."""

from __future__ import annotations

import random

ROWS, COLUMNS = 8, 16
_T = f"pl.Tensor[[{ROWS}, {COLUMNS}], pl.FP32]"
_HALF = ROWS // 2


def make_program(seed: int) -> str:
    """The text of a program `main(x, y, n, o, p)`; `o` and `p` are updated, the last tensors are returned."""
    rng = random.Random(seed)
    maker = _Maker(rng)
    written = rng.choice(["Out", "InOut"])
    lines = maker.body(depth=0)
    body = "\n".join(f"        {line}" for line in lines)
    returned = ", ".join(maker.returned)
    types = ", ".join([_T] * len(maker.returned))
    return f"""
import pypto.language as pl

@pl.program
class P:
    @pl.function
    def main(
        self, x: {_T}, y: {_T}, n: pl.Scalar[pl.INDEX], o: pl.{written}[{_T}], p: pl.{written}[{_T}]
    ) -> tuple[{types}]:
{body}
        return {returned}
"""


class _Maker:
    """Tensors in scope are named; memory names (`o`, `p`) are only rebound by assembles into themselves."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.full = ["x", "y"]  # values and inputs of full shape
        self.memory = ["o", "p"]
        self.count = 0
        self.in_kernel = False
        self.by_elements: set[str] = set()  # memory that the present scope writes element by element only
        self.indices: list[str] = []
        self.returned: list[str] = []

    def body(self, depth: int) -> list[str]:
        lines = []
        for _ in range(self.rng.randint(2, 4)):
            lines += self.orchestration(depth)
        self.returned = ["o", "p", *self.rng.sample(self.full, min(2, len(self.full)))]
        return lines

    def orchestration(self, depth: int) -> list[str]:
        kind = self.rng.random()
        if kind < 0.45 or depth > 1:
            return self.scope()
        if kind < 0.55:
            return self.halves()
        if kind < 0.75:
            index = f"i{len(self.indices)}"
            self.indices.append(index)
            inner = self.nested(lambda: self.orchestration(depth + 1))
            self.indices.pop()
            return [f"for {index} in pl.range({self.rng.randint(1, 3)}):", *inner]
        if kind < 0.85:
            return [f"if n > {self.rng.randint(0, 3)}:", *self.nested(lambda: self.orchestration(depth + 1))]
        source = self.rng.choice(self.full)
        target = self.rng.choice(self.memory)
        return [f"{target} = pl.assemble({target}, {source}, [0, 0])"]

    def halves(self) -> list[str]:
        """Two parts of one tensor that are written independently of each other."""
        target, source = self.rng.choice(self.memory), self.rng.choice(self.full)
        index = f"h{len(self.indices)}"
        part = f"pl.mul(pl.slice({source}, [{_HALF}, {COLUMNS}], [{index} * {_HALF}, 0]), 0.5)"
        write = f"{target} = pl.assemble({target}, half, [{index} * {_HALF}, 0])"
        if self.rng.random() < 0.4:
            return [f"for {index} in pl.spmd(2):", f"    half = {part}", f"    {write}"]
        loop = self.rng.choice(["parallel", "parallel", "range"])
        scope = "    with pl.at(level=pl.Level.CORE_GROUP):"
        if self.rng.random() < 0.5:
            return [f"for {index} in pl.{loop}(2):", scope, f"        half = {part}", f"        {write}"]
        return [f"for {index} in pl.{loop}(2):", scope, f"        half = {part}", f"    {write}"]

    def nested(self, make, times: int = 2) -> list[str]:
        """Statements of a block; names that it introduces are gone afterwards."""
        known = list(self.full)
        lines: list[str] = []
        for _ in range(self.rng.randint(1, times)):
            lines += make()
        self.full = known
        return [f"    {line}" for line in lines]

    def scope(self) -> list[str]:
        self.in_kernel = True
        self.by_elements = {name for name in self.memory if self.rng.random() < 0.3}
        lines: list[str] = []
        for _ in range(self.rng.randint(1, 5)):
            lines += self.kernel(0)
        self.in_kernel = False
        return ["with pl.at(level=pl.Level.CORE_GROUP):", *(f"    {line}" for line in lines)]

    def kernel(self, depth: int) -> list[str]:
        kind = self.rng.random()
        if kind < 0.12 and depth < 2:
            index = f"k{len(self.indices)}"
            self.indices.append(index)
            inner = self.nested(lambda: self.kernel(depth + 1), times=3)
            self.indices.pop()
            return [f"for {index} in pl.range({self.rng.randint(1, 3)}):", *inner]
        if kind < 0.22 and depth < 2:
            lines = [
                f"if n > {self.rng.randint(0, 3)}:",
                *self.nested(lambda: self.kernel(depth + 1), times=3),
            ]
            if self.rng.random() < 0.5:
                lines += ["else:", *self.nested(lambda: self.kernel(depth + 1), times=3)]
            return lines
        if kind < 0.32:
            return self.write() if self.by_elements else self.compute()
        if kind < 0.6 and len(self.by_elements) < len(self.memory):
            return self.update()
        return self.compute()

    def write(self) -> list[str]:
        row, column = self.rng.randrange(ROWS), self.rng.randrange(COLUMNS)
        target = self.rng.choice(sorted(self.by_elements))
        return [f"pl.write({target}, [{row}, {column}], {self.rng.randint(-3, 3)}.0)"]

    def update(self) -> list[str]:
        target = self.rng.choice([name for name in self.memory if name not in self.by_elements])
        if self.rng.random() < 0.5:
            return [f"{target} = pl.assemble({target}, {self.expression()}, [0, 0])"]
        start = self.rng.choice([0, 2, _HALF])
        return [f"{target} = pl.assemble({target}, {self.half()}, [{start}, 0])"]

    def compute(self) -> list[str]:
        expression = self.expression()
        if self.rng.random() < 0.6:  # rebind a known name: a carry in loops, a merge in branches
            name = self.rng.choice(self.full)
        else:
            name = f"t{self.count}"
            self.count += 1
        if name not in self.full:
            self.full.append(name)
        return [f"{name} = {expression}"]

    def any_full(self) -> str:
        return self.rng.choice([*self.full, *self.memory])

    def half(self) -> str:
        source, start = self.any_full(), self.rng.choice([0, 1, _HALF])
        part = f"pl.slice({source}, [{_HALF}, {COLUMNS}], [{start}, 0])"
        return self.rng.choice([part, f"pl.mul({part}, 0.5)", f"pl.neg({part})"])

    def expression(self) -> str:
        a, b = self.any_full(), self.any_full()
        product = f"pl.matmul({a}, {b}, b_trans=True)"
        return self.rng.choice(
            [
                f"pl.add({a}, {b})",
                f"pl.sub({a}, {b})",
                f"pl.mul({a}, 0.5)",
                f"pl.maximum({a}, {b})",
                f"pl.neg({a})",
                f"pl.row_expand_sub({a}, pl.row_max({b}))",
                f"pl.col_expand_add({a}, pl.col_max({b}))",
                f"pl.minimum(pl.maximum(pl.row_expand_mul({a}, {product}[:, 0:1]), -4.0), 4.0)",
            ]
        )
