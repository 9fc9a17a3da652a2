"""Random kernels that call inline helpers, and the numbers that they must compute.

A program is written once, with a placeholder where a variable stands, and rendered twice: as text of the
language, and as Python in which every variable is a cell. A helper gets the caller's cell for a parameter
that it assigns, and a cell of its own for any other. A parameter that is assigned is never given a variable
twice in one call: what that means is not defined.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field
from types import SimpleNamespace

SCALARS, MEMORIES = ("a", "b", "c"), ("X", "Y")
SCALAR, MEMORY = "pl.Scalar[pl.INT32]", "pl.Tensor[[8], pl.INT32]"
STARTS = (tuple(range(1, 9)), tuple(3 * k % 7 for k in range(8)))
_MARK = re.compile(r"<(=|/|)(\w*)>")


class Cell:
    """A variable of the Python rendering."""

    def __init__(self, v: object = 0) -> None:
        self.v = v


PYTHON = SimpleNamespace(
    const=lambda value, dtype: value,
    cast=lambda value, dtype: value,
    range=range,
    read=lambda memory, index: memory[index[0]],
    write=lambda memory, index, value: memory.__setitem__(index[0], value),
    INT32=None,
    INDEX=None,
)


def _language(mark: re.Match[str]) -> str:
    return "" if mark[1] == "/" else mark[2] if mark[2] != "own" else ""


def _python(mark: re.Match[str]) -> str:
    if mark[1] == "/":
        return ")"
    if mark[2] == "own":
        return "Cell("
    return mark[2] if mark[1] == "=" else f"{mark[2]}.v"


@dataclass
class Helper:
    """A function; `assigned` are the scalar parameters that it rebinds."""

    name: str
    params: list[str]
    memories: list[str]
    locals: list[str]
    lines: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    assigned: set[str] = field(default_factory=set)


class Writer:
    """Draws one program. `<a>` is a variable, `<=a>` its cell, `<own>...</>` a cell of its own."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.helpers: list[Helper] = []
        self.count = 0
        for number in range(self.rng.randint(1, 3)):
            params, memories, names = (
                [self.fresh(kind) for _ in range(n)] for kind, n in (("s", 2), ("m", 2), ("l", 2))
            )
            helper = Helper(f"h{number}", params, memories, names)
            helper.lines = [f"<{name}> = {self.value(params, memories)}" for name in names]
            helper.lines += self.block(helper, 2)
            everything = params + names
            helper.results = [self.value(everything, memories) for _ in range(self.rng.randint(0, 2))]
            self.helpers.append(helper)
        self.main = Helper("main", [], list(MEMORIES), list(SCALARS))
        for _ in range(3):
            self.main.lines += self.block(self.main, 2)

    def fresh(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def value(self, scalars: list[str], memories: list[str], depth: int = 1) -> str:
        kind = self.rng.random()
        if kind < 0.3 and memories:
            index = f"<{self.rng.choice(scalars)}> % pl.const(8, pl.INT32)"
            return f"pl.read(<{self.rng.choice(memories)}>, [pl.cast({index}, pl.INDEX)])"
        if kind < 0.6 or depth == 0:
            return f"<{self.rng.choice(scalars)}>"
        left, right = (self.value(scalars, memories, depth - 1) for _ in range(2))
        return f"(({left} {self.rng.choice('+-*')} {right}) % pl.const(97, pl.INT32))"

    def block(self, owner: Helper, depth: int) -> list[str]:
        return [line for _ in range(self.rng.randint(1, 3)) for line in self.statement(owner, depth)]

    def statement(self, owner: Helper, depth: int) -> list[str]:
        rng, scalars = self.rng, owner.params + owner.locals
        value = self.value(scalars, owner.memories)
        kind = rng.choice(["assign", "write", "write", "if", "for", "call", "call", "tuple"])
        if kind == "assign":
            return [f"{self.target(owner)} = {value}"]
        if depth and kind == "if":
            condition = f"if <{rng.choice(scalars)}> < {value}:"
            return [condition, *_indented(self.block(owner, depth - 1))]
        if depth and kind == "for":
            header = f"for {self.fresh('i')} in pl.range({rng.randint(0, 3)}):"
            return [header, *_indented(self.block(owner, depth - 1))]
        if kind in ("call", "tuple") and self.helpers:
            return self.call(owner, rng.choice(self.helpers), in_tuple=kind == "tuple")
        index = f"<{rng.choice(scalars)}> % pl.const(8, pl.INT32)"
        return [f"pl.write(<{rng.choice(owner.memories)}>, [pl.cast({index}, pl.INDEX)], {value})"]

    def target(self, owner: Helper) -> str:
        name = self.rng.choice(owner.params + owner.locals)
        owner.assigned.update({name} & set(owner.params))
        return f"<{name}>"

    def call(self, owner: Helper, helper: Helper, *, in_tuple: bool) -> list[str]:
        scalars = owner.params + owner.locals
        free = self.rng.sample(scalars, len(scalars))
        arguments = []
        for param in helper.params:
            if param in helper.assigned:
                name = free.pop()
                owner.assigned.update({name} & set(owner.params))
                arguments.append(f"<={name}>")
            else:
                arguments.append(f"<own>{self.value(scalars, owner.memories)}</>")
        arguments += [f"<={self.rng.choice(owner.memories)}>" for _ in helper.memories]
        call = f"self.{helper.name}({', '.join(arguments)})"
        if len(helper.results) == 1:
            return [f"{self.target(owner)} = {call}"]
        if len(helper.results) == 2 and in_tuple:
            pair = self.fresh("t")
            write = f"pl.write(<{owner.memories[0]}>, [1], {self.value(scalars, owner.memories)})"
            change = f"{self.target(owner)} = {self.value(scalars, owner.memories)}"
            uses = [f"{self.target(owner)} = <{pair}>[{k}]" for k in (1, 0)]
            return [f"<{pair}> = {call}", write, uses[0], change, uses[1]]
        return [call]

    def text(self) -> str:
        """The program in the language."""
        lines = ["@pl.program", "class P:"]
        for each in (*self.helpers, self.main):
            lines += _indented(self._function(each))
        return _MARK.sub(_language, "\n".join(["import pypto.language as pl", *lines, ""]))

    def _function(self, helper: Helper) -> list[str]:
        params = [f"{name}: {SCALAR}" for name in helper.params]
        if helper is self.main:
            params = [f"{name}: pl.InOut[{MEMORY}]" for name in MEMORIES] + [f"p: {SCALAR}"]
            starts = [f"{name} = p + pl.const({k}, pl.INT32)" for k, name in enumerate(SCALARS)]
            returned = ["return a, b, c"]
            kind, result = "InCore", f"tuple[{SCALAR}, {SCALAR}, {SCALAR}]"
        else:
            params += [f"{name}: {MEMORY}" for name in helper.memories]
            starts, returned = [], [f"return {', '.join(helper.results)}"] if helper.results else []
            kind = "Inline"
            result = {0: "", 1: SCALAR, 2: f"tuple[{SCALAR}, {SCALAR}]"}[len(helper.results)]
        arrow = f" -> {result}" if result else ""
        return [
            f"@pl.function(type=pl.FunctionType.{kind})",
            f"def {helper.name}(self, {', '.join(params)}){arrow}:",
            *_indented([*starts, *helper.lines, *returned]),
        ]

    def expected(self, start: int) -> tuple[list[int], list[list[int]]]:
        """What the kernel returns for `p = start`, and what its memory holds then."""
        lines: list[str] = []
        for each in (*self.helpers, self.main):
            names = {mark[2] for line in each.lines for mark in _MARK.finditer(line)}
            cells = sorted(names - {*each.params, *each.memories, "own", ""} - set(SCALARS))
            result = ", ".join(each.results) or "None"
            body = [*(f"{name} = Cell()" for name in cells), *each.lines]
            params = [*each.params, *each.memories] if each is not self.main else [*MEMORIES, *SCALARS]
            lines += [f"def {each.name}({', '.join(params)}):", *_indented([*body, f"return {result}"])]
        scope = {"Cell": Cell, "pl": PYTHON, "self": SimpleNamespace()}
        exec(_MARK.sub(_python, "\n".join(lines)), scope)  # our own text
        for each in self.helpers:
            setattr(scope["self"], each.name, scope[each.name])
        memories, scalars = [Cell(list(values)) for values in STARTS], [Cell(start + k) for k in range(3)]
        scope["main"](*memories, *scalars)
        return [each.v for each in scalars], [each.v for each in memories]


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]
