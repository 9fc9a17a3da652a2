"""Random programs as text: nested control flow and scopes over tensors and scalars.

Every program is valid: names are used only where they are certainly bound, and keep their types.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

SHAPE = "[16, 32]"
TENSOR = f"pl.Tensor[{SHAPE}, pl.FP32]"
HEADER = f"""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: {TENSOR}, out: pl.Out[{TENSOR}]) -> {TENSOR}:
        t = pl.load(x, [0, 0], {SHAPE})
        out = pl.store(pl.mul(t, 2.0), [0, 0], out)
        return out
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: {TENSOR}, n: pl.Scalar[pl.INDEX], out: pl.Out[{TENSOR}]) -> {TENSOR}:
"""


@dataclass
class _Names:
    """What is bound where the generator stands."""

    tensors: list[str] = field(default_factory=lambda: ["x"])
    scalars: list[str] = field(default_factory=lambda: ["n"])
    tasks: list[str] = field(default_factory=list)

    def copy(self) -> _Names:
        return _Names(list(self.tensors), list(self.scalars), list(self.tasks))


class ProgramGenerator:
    """Writes one program from a seed."""

    def __init__(self, seed: int, statements: int = 8, depth: int = 3) -> None:
        self._random = random.Random(seed)
        self._statements = statements
        self._depth = depth
        self._count = 0

    def text(self) -> str:
        """The program."""
        names = _Names()
        lines = self._block(names, "        ", self._depth, in_loop=False, in_scope=False)
        return (
            HEADER
            + "\n".join(lines)
            + f"\n        out = self.k({names.tensors[-1]}, out)\n        return out\n"
        )

    def _fresh(self, stem: str) -> str:
        self._count += 1
        return f"{stem}{self._count}"

    def _block(self, names: _Names, indent: str, depth: int, *, in_loop: bool, in_scope: bool) -> list[str]:
        lines: list[str] = []
        for _ in range(self._random.randint(1, self._statements)):
            kinds = [self._tensor, self._tensor, self._scalar, self._rebind]
            if depth:
                kinds += [self._loop, self._carried_loop, self._branch, self._yielding_branch, self._while]
                if not in_scope:
                    kinds += [self._kernel, self._kernel, self._blocks]
            if not in_scope and not in_loop:
                kinds += [self._call, self._submit]
            lines += self._random.choice(kinds)(names, indent, depth, in_scope)
        return lines

    # -- simple statements -----------------------------------------------------------------------------------

    def _value(self, names: _Names) -> str:
        a, b = (self._random.choice(names.tensors) for _ in range(2))
        return self._random.choice(
            [
                f"pl.add({a}, {b})",
                f"pl.mul({a}, 0.5)",
                f"pl.exp({a})",
                f"pl.maximum({a}, {b})",
                f"pl.sub({a}, {b})",
            ]
        )

    def _index(self, names: _Names) -> str:
        a = self._random.choice(names.scalars)
        return self._random.choice(
            [f"{a} + 1", f"{a} * 2 - 3", f"({a} + 7) // 2", f"pl.min({a}, 5)", "4", "2 * 3"]
        )

    def _condition(self, names: _Names) -> str:
        a, b = self._random.choice(names.scalars), self._random.choice(names.scalars)
        return self._random.choice([f"{a} > 3", f"{a} + 1 <= {b}", f"not {a} == 2", f"{a} > 1 and {b} < 9"])

    def _tensor(self, names: _Names, indent: str, depth: int, in_scope: bool) -> list[str]:
        name = self._fresh("t")
        lines = [f"{indent}{name} = {self._value(names)}"]
        names.tensors.append(name)
        return lines

    def _scalar(self, names: _Names, indent: str, depth: int, in_scope: bool) -> list[str]:
        name = self._fresh("s")
        lines = [f"{indent}{name}: pl.Scalar[pl.INDEX] = {self._index(names)}"]
        names.scalars.append(name)
        return lines

    def _rebind(self, names: _Names, indent: str, depth: int, in_scope: bool) -> list[str]:
        owned = [name for name in names.tensors if name != "x"]
        if not owned:
            return self._tensor(names, indent, depth, in_scope)
        return [f"{indent}{self._random.choice(owned)} = {self._value(names)}"]

    def _call(self, names: _Names, indent: str, depth: int, in_scope: bool) -> list[str]:
        return [f"{indent}out = self.k({self._random.choice(names.tensors)}, out)"]

    def _submit(self, names: _Names, indent: str, depth: int, in_scope: bool) -> list[str]:
        deps = f", deps=[{self._random.choice(names.tasks)}]" if names.tasks else ""
        task = self._fresh("tid")
        lines = [f"{indent}out, {task} = pl.submit(self.k, {self._random.choice(names.tensors)}, out{deps})"]
        names.tasks.append(task)
        return lines

    # -- compound statements ---------------------------------------------------------------------------------

    def _loop(self, names: _Names, indent: str, depth: int, in_scope: bool) -> list[str]:
        kind = self._random.choice(["range(3)", "range(1, 4)", "unroll(2)", "pipeline(4, stage=2)"])
        loop_var = self._fresh("i")
        inner = names.copy()
        inner.scalars.append(loop_var)
        # Copies of an unrolled body assign the same variables; only names that leak read back as the same.
        inner_depth = 0 if kind.startswith("unroll") else depth - 1
        body = self._block(inner, indent + "    ", inner_depth, in_loop=True, in_scope=in_scope)
        return [f"{indent}for {loop_var} in pl.{kind}:", *body]

    def _carried_loop(self, names: _Names, indent: str, depth: int, in_scope: bool) -> list[str]:
        loop_var, carried, result = self._fresh("i"), self._fresh("c"), self._fresh("r")
        inner = names.copy()
        inner.scalars.append(loop_var)
        inner.tensors.append(carried)
        init = self._random.choice(names.tensors)
        body = self._block(inner, indent + "    ", depth - 1, in_loop=True, in_scope=in_scope)
        kept = [name for name in inner.tensors if name in names.tensors or name == carried]
        lines = [
            f"{indent}for {loop_var}, ({carried},) in pl.range(2, init_values=({init},)):",
            *body,
            f"{indent}    {result} = pl.yield_(pl.add({carried}, {self._random.choice(kept)}))",
        ]
        names.tensors.append(result)
        return lines

    def _while(self, names: _Names, indent: str, depth: int, in_scope: bool) -> list[str]:
        counter, result = self._fresh("w"), self._fresh("s")
        inner = names.copy()
        inner.scalars.append(counter)
        body = self._block(inner, indent + "    ", depth - 1, in_loop=True, in_scope=in_scope)
        lines = [
            f"{indent}for ({counter},) in pl.while_(init_values=({self._random.choice(names.scalars)},)):",
            f"{indent}    pl.cond({counter} < 5)",
            *body,
            f"{indent}    {result} = pl.yield_({counter} + 1)",
        ]
        names.scalars.append(result)
        return lines

    def _branch(self, names: _Names, indent: str, depth: int, in_scope: bool) -> list[str]:
        lines = [f"{indent}if {self._condition(names)}:"]
        lines += self._block(names.copy(), indent + "    ", depth - 1, in_loop=True, in_scope=in_scope)
        if self._random.random() < 0.6:
            lines.append(f"{indent}else:")
            lines += self._block(names.copy(), indent + "    ", depth - 1, in_loop=True, in_scope=in_scope)
        return lines

    def _yielding_branch(self, names: _Names, indent: str, depth: int, in_scope: bool) -> list[str]:
        result = self._fresh("r")
        lines = [f"{indent}if {self._condition(names)}:"]
        for _ in range(2):
            inner = names.copy()
            lines += self._block(inner, indent + "    ", depth - 1, in_loop=True, in_scope=in_scope)
            lines += [f"{indent}    {result} = pl.yield_({self._value(names)})", f"{indent}else:"]
        names.tensors.append(result)
        return lines[:-1]

    def _kernel(self, names: _Names, indent: str, depth: int, in_scope: bool) -> list[str]:
        options = self._random.choice(
            ["", ', name_hint="stage"', ", optimizations=[pl.cross_core_slot(slot_num=2)]"]
        )
        result = self._fresh("t")
        inner = names.copy()
        body = self._block(inner, indent + "    ", depth - 1, in_loop=True, in_scope=True)
        lines = [
            f"{indent}with pl.at(level=pl.Level.CORE_GROUP{options}):",
            *body,
            f"{indent}    {result} = {self._value(names)}",
        ]
        names.tensors.append(result)
        return lines

    def _blocks(self, names: _Names, indent: str, depth: int, in_scope: bool) -> list[str]:
        source = self._random.choice(names.tensors)
        if self._random.random() < 0.5:
            return [f"{indent}with pl.spmd(4):", f"{indent}    out = self.k({source}, out)"]
        index = self._fresh("b")
        return [
            f"{indent}for {index} in pl.spmd(4):",
            f"{indent}    tile_{index} = pl.load({source}, [{index} * 4, 0], [4, 32])",
            f"{indent}    out = pl.store(pl.exp(tile_{index}), [{index} * 4, 0], out)",
        ]
