"""Random nestings of branches and loops whose yields and assignments share names, as program text.

Python and the language agree on all of it: a loop starts from the name that it yields, since it may make no
turn, and reads that name in its body only if it carries the value under it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

METHOD = """
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def main(
        self,
        x: pl.Tensor[[2, 16], pl.FP32],
        y: pl.Tensor[[2, 16], pl.FP32],
        o: pl.Out[pl.Tensor[[2, 16], pl.FP32]],
    ) -> pl.Tensor[[2, 16], pl.FP32]:
"""

TEXT = (
    METHOD
    + """\
        a = pl.abs(y)
        b = pl.add(x, y)
        n = {n}
{body}
        o = pl.assemble(o, pl.add(a, b), [0, 0])
        return o
"""
)


def random_program(seed: int) -> str:
    """The text of a program whose method `main` takes two tensors and fills a third."""
    choose = random.Random(seed)
    body = _Body(choose)
    body.block(3, 2, ("x", "y", "a", "b"), ("n",), ("a", "b"))
    return TEXT.format(n=choose.randrange(3), body="\n".join(body.lines))


class _Body:
    """`names` are the tensors that may be read, `free` those that may be assigned."""

    def __init__(self, choose: random.Random) -> None:
        self.choose = choose
        self.lines: list[str] = []
        self.made = 0

    def block(
        self, depth: int, level: int, names: Sequence[str], counts: Sequence[str], free: Sequence[str]
    ) -> None:
        kinds: list[Callable[..., None]] = [self.assignment]
        if depth and free:
            kinds += [self.branches, self.yielding_branches, self.loop, self.carrying_loop, self.while_loop]
        for _ in range(self.choose.randint(1, 3)):
            self.choose.choice(kinds)(depth - 1, level, names, counts, free)

    def line(self, level: int, text: str) -> None:
        self.lines.append("    " * level + text)

    def fresh(self) -> str:
        self.made += 1
        return f"v{self.made}"

    def value(self, names: Sequence[str]) -> str:
        left, right = self.choose.choice(names), self.choose.choice((*names, "1.0", "2.0"))
        return f"pl.{self.choose.choice(('add', 'sub', 'mul'))}({left}, {right})"

    def condition(self, counts: Sequence[str]) -> str:
        return f"{self.choose.choice(counts)} > {self.choose.randrange(3)}"

    def assignment(
        self, _depth: int, level: int, names: Sequence[str], _counts: object, free: Sequence[str]
    ) -> None:
        self.line(level, f"{self.choose.choice(free or (self.fresh(),))} = {self.value(names)}")

    def branches(
        self, depth: int, level: int, names: Sequence[str], counts: Sequence[str], free: Sequence[str]
    ) -> None:
        for head in (f"if {self.condition(counts)}:", "else:")[: self.choose.randint(1, 2)]:
            self.line(level, head)
            self.block(depth, level + 1, names, counts, free)

    def yielding_branches(
        self, depth: int, level: int, names: Sequence[str], counts: Sequence[str], free: Sequence[str]
    ) -> None:
        targets = self.choose.sample(list(free), self.choose.randint(1, len(free)))
        heads = [f"if {self.condition(counts)}:", "else:"]
        if self.choose.randrange(3) == 0:
            heads.insert(1, f"elif {self.condition(counts)}:")
        for head in heads:
            self.line(level, head)
            if self.choose.randrange(2):
                self.block(depth, level + 1, names, counts, free)
            values = ", ".join(self.value(names) for _ in targets)
            self.line(level + 1, f"{', '.join(targets)} = pl.yield_({values})")

    def loop(
        self, depth: int, level: int, names: Sequence[str], counts: Sequence[str], free: Sequence[str]
    ) -> None:
        index = self.fresh()
        kind = self.choose.choice(("range", "range", "unroll"))
        self.line(level, f"for {index} in pl.{kind}({self.choose.randrange(4)}):")
        self.block(depth, level + 1, names, (*counts, index), free)

    def carrying_loop(
        self, depth: int, level: int, names: Sequence[str], counts: Sequence[str], free: Sequence[str]
    ) -> None:
        """The value is carried under the name of the result, which the body may assign, or a new one."""
        index, result = self.fresh(), self.choose.choice(free)
        carried = self.choose.choice((result, self.fresh()))
        self.line(
            level,
            f"for {index}, ({carried},) in pl.range({self.choose.randrange(4)}, init_values=({result},)):",
        )
        others = [name for name in names if name != result]
        open_names = free if carried == result else [name for name in free if name != result]
        self.block(depth, level + 1, [*others, carried], (*counts, index), open_names)
        if carried != result and self.choose.randrange(2):
            inner = self.fresh()
            self.line(level + 1, f"for _, ({inner},) in pl.range(2, init_values=({carried},)):")
            self.line(level + 2, f"{result} = pl.yield_({self.value([*others, inner])})")
            carried = result
        self.line(level + 1, f"{result} = pl.yield_({self.value([*others, carried])})")

    def while_loop(
        self, depth: int, level: int, names: Sequence[str], counts: Sequence[str], free: Sequence[str]
    ) -> None:
        turn = self.fresh()
        self.line(level, f"{turn} = 0")
        self.line(level, f"while {turn} < {self.choose.randrange(4)}:")
        self.block(depth, level + 1, names, (*counts, turn), free)
        self.line(level + 1, f"{turn} = {turn} + 1")
