"""Random bodies of kernels: expressions, stores, loops with carries, branches.

Numbers stay small: products and sums over an axis are clamped, so that a wrong result is never hidden by
rounding and hardly any program overflows.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from pypto.testing.programs.names import (
    BLOCK,
    BRAINS,
    COLUMN,
    FLIPPED,
    FULL,
    HALF,
    HALF_INTS,
    HALVES,
    INTS,
    ROW,
    ROWS,
    SCALARS,
    SQUARE,
    STACK,
    TALL,
    Kind,
    Names,
    Text,
    indent,
)

_COMPUTED = (FULL, FULL, FULL, FULL, HALF, COLUMN, ROW, INTS, HALVES, BRAINS, SQUARE, TALL)


class KernelText(Text):
    """Writes statements of a kernel at tensor level."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.stored_by: dict[str, str] = {}  # memory that the present kernel writes: by tiles or by numbers
        self.functions: dict[str, list[str]] = {}  # kernels and helpers by name
        self.scalars: tuple[str, ...] = SCALARS

    def targets(self, way: str, *kinds: Kind) -> list[str]:
        """Memory that the present kernel may write in this way; it may not mix the two."""
        return [name for name in self.names.writable(*kinds) if self.stored_by.get(name, way) == way]

    # --- expressions

    def number(self, kind: Kind) -> str:
        value = self.rng.choice([1, 2, 3, -1])
        if kind.dtype == "INT32":
            return str(value)
        if kind.dtype == "FP32":
            return self.rng.choice([f"{value}.0", "0.5", str(value), *self.scalars])
        return f"pl.const({value}.0, pl.{kind.dtype})"

    def clamped(self, expression: str) -> str:
        return f"pl.maximum(pl.minimum({expression}, 8.0), -8.0)"

    def expression(self, kind: Kind, depth: int = 0) -> str:
        """An expression of this kind over the visible names."""
        known = self.names.of(kind)
        if known and (depth > 2 or self.chance(35 + 20 * depth)):
            return self.rng.choice(known)
        options = self._productions(kind, depth)
        return self.rng.choice(options)()

    def value(self, kind: Kind, depth: int = 0) -> str:
        """An expression that is not the bare name of writable memory.

        Whether a name that control flow binds to memory or to a result sees later writes is left open.
        """
        expression = self.expression(kind, depth)
        return f"pl.abs({expression})" if expression in self.names.memory else expression

    def rebindable(self, kind: Kind) -> list[str]:
        """Names of values that may be assigned again: not those that a loop or branch in SSA style binds."""
        return [name for name, each in self.names.values.items() if each == kind and name[0] not in "rz"]

    def _productions(self, kind: Kind, depth: int) -> list[Callable[[], str]]:
        rng = self.rng

        def operand(of: Kind = kind) -> str:
            return self.expression(of, depth + 1)

        if depth > 3:
            return [
                lambda: f"pl.full({list(kind.shape)}, dtype=pl.{kind.dtype}, value={self._literal(kind)})"
            ]
        options: list[Callable[[], str]] = [
            lambda: f"pl.{rng.choice(['add', 'sub', 'maximum', 'minimum'])}({operand()}, {operand()})",
            lambda: (
                f"pl.{rng.choice(['add', 'sub', 'maximum', 'minimum'])}({operand()}, {self.number(kind)})"
            ),
            lambda: f"pl.{rng.choice(['neg', 'abs'])}({operand()})",
        ]
        if kind.dtype == "FP32":
            options.append(lambda: f"pl.mul({operand()}, {rng.choice(['0.5', '-1.0', '0.25'])})")
            if kind in (FULL, HALF):
                options.append(lambda: self.clamped(f"pl.mul({operand()}, {operand()})"))
        options += self._shaped(kind, operand)
        return options

    def _literal(self, kind: Kind) -> str:
        return str(self.rng.choice([0, 1, 3])) if kind.dtype == "INT32" else self.rng.choice(["0.0", "2.0"])

    def _shaped(self, kind: Kind, operand: Callable[..., str]) -> list[Callable[[], str]]:
        rng, narrow = self.rng, ["add", "sub", "max", "min"]
        mode = rng.choice(["rint", "trunc", "floor"])
        if kind == FULL:
            return [
                lambda: f"pl.row_expand_{rng.choice(narrow)}({operand()}, {operand(COLUMN)})",
                lambda: f"pl.col_expand_{rng.choice(narrow)}({operand()}, {operand(ROW)})",
                lambda: f"pl.{rng.choice(['add', 'sub'])}({operand()}, {operand(COLUMN)})",
                lambda: self.clamped(f"pl.matmul({operand()}, {operand(SQUARE)})"),
                lambda: self.clamped(f"pl.matmul({operand()}, {operand(SQUARE)}, b_trans=True)"),
                lambda: f"pl.cast({operand(INTS)}, pl.FP32)",
                lambda: f"pl.cast({operand(HALVES)}, pl.FP32)",
                lambda: f"pl.cast({operand(BRAINS)}, pl.FP32)",
                lambda: f"pl.neg(pl.transpose({operand(TALL)}, 0, 1))",
                lambda: f"pl.reshape({operand(TALL)}, [8, 16])",
                lambda: self._window(FULL),
                lambda: self._page(),
            ]
        if kind == HALF:
            return [lambda: self._window(HALF)] * 3
        if kind == COLUMN:
            return [
                lambda: f"pl.row_{rng.choice(['max', 'min'])}({operand(FULL)})",
                lambda: self.clamped(f"pl.row_sum({operand(FULL)})"),
                lambda: f"pl.slice({self._source(FULL)}, [8, 1], [0, {rng.randrange(16)}])",
            ]
        if kind == ROW:
            return [
                lambda: f"pl.col_{rng.choice(['max', 'min'])}({operand(FULL)})",
                lambda: self.clamped(f"pl.col_sum({operand(FULL)})"),
                lambda: f"{self._source(FULL)}[{self.offset_window(1)}, 0:16]",
            ]
        if kind == INTS:
            return [lambda: f"pl.cast({operand(FULL)}, pl.INT32, mode={mode!r})"]
        if kind == HALF_INTS:
            return [lambda: f"{self._source(INTS)}[{self.offset_window(4)}, 0:16]"]
        if kind in (HALVES, BRAINS):
            return [lambda: f"pl.cast({self.clamped(operand(FULL))}, pl.{kind.dtype})"]
        if kind == SQUARE:
            return [
                lambda: self.clamped(f"pl.matmul({operand(FULL)}, {operand(FULL)}, a_trans=True)"),
                lambda: self.clamped(f"pl.matmul({operand(TALL)}, {operand(FULL)})"),
            ]
        if kind == TALL:
            return [
                lambda: f"pl.abs(pl.transpose({operand(FULL)}, 0, 1))",
                lambda: f"pl.neg({self._source(FLIPPED)})" if self.names.of(FLIPPED) else operand(),
                lambda: f"pl.reshape({operand(FULL)}, [16, 8])",
                lambda: f"{self._source(SQUARE)}[0:16, {rng.choice(['0:8', '8:16', '4:12'])}]",
            ]
        return []

    def _source(self, kind: Kind) -> str:
        known = self.names.of(kind)
        return self.rng.choice(known) if known else self.expression(kind, 2)

    def offset_window(self, rows: int) -> str:
        start = self.offset(rows, 8)
        if start.isdigit():
            return f"{start}:{int(start) + rows}"
        return f"{start}:{start} + {rows}"

    def _window(self, kind: Kind) -> str:
        """Rows of something larger."""
        rows = kind.shape[0]
        assert isinstance(rows, int)
        wide = [k for k in ((SQUARE, ROWS) if kind == FULL else (FULL, SQUARE, ROWS)) if self.names.of(k)]
        if not wide:
            return f"pl.full({list(kind.shape)}, dtype=pl.FP32, value=1.0)"
        of = self.rng.choice(wide)
        start = self.offset(rows, of.shape[0])
        return f"pl.slice({self._source(of)}, [{rows}, 16], [{start}, 0])"

    def _page(self) -> str:
        if not self.names.of(STACK):
            return self._window(FULL)
        stack, page = self._source(STACK), self.offset(1, 2)
        if self.chance(50):
            return f"{stack}[{page}]"
        return f"pl.slice({stack}, [1, 8, 16], [{page}, 0, 0], [], [0])"

    # --- statements

    def kernel_body(self) -> list[str]:
        lines: list[str] = []
        self.stored_by.clear()
        for _ in range(self.rng.randint(1, 4)):
            lines += self.kernel_statement(0)
        return lines

    def kernel_statement(self, depth: int) -> list[str]:
        options = [self.compute] * 5 + [self.update] * 5 + [self.element, self.swap, self.ragged]
        if depth < 2:
            nested = [self.loop, self.branch, self.carried_loop, self.filled, self.while_loop, self.choice]
            nested += [self.counted]
            options += [self.helped]
            return self.rng.choice([*options, *options, *((lambda f=f: f(depth)) for f in nested)])()
        return self.rng.choice(options)()

    def compute(self) -> list[str]:
        kind = self.rng.choice(_COMPUTED)
        known = self.rebindable(kind)
        expression = self.value(kind)
        if known and self.chance(50):
            return [f"{self.rng.choice(known)} = {expression}"]
        name = self.fresh("t")
        self.names.values[name] = kind
        return [f"{name} = {expression}"]

    def update(self) -> list[str]:
        """A store of a whole or a part into memory."""
        kinds = [FULL, INTS, ROWS, HALVES, BRAINS]
        targets = self.targets("tiles", *kinds)
        if not targets:
            return self.compute()
        target = self.rng.choice(targets)
        self.stored_by[target] = "tiles"
        kind = self.names.memory[target]
        part = HALF.with_dtype(kind.dtype)
        whole = kind != ROWS and (kind.dtype not in ("FP32", "INT32") or self.chance(40))
        source = self.expression(kind if whole else part)
        start = "0" if whole else self.offset(BLOCK, kind.shape[0])
        if self.chance(30) and not whole:
            end = str(int(start) + BLOCK) if start.isdigit() else f"{start} + {BLOCK}"
            return [f"{target}[{start}:{end}, 0:16] = {source}"]
        if self.chance(15):
            return [f"pl.assemble({target}, {source}, [{start}, 0])"]
        return [f"{target} = pl.assemble({target}, {source}, [{start}, 0])"]

    def element(self) -> list[str]:
        """One cell read or written."""
        targets = self.targets("numbers", FULL)
        if targets and self.chance(60):
            cell = f"[{self.offset(1, 8)}, {self.rng.randrange(16)}]"
            target = self.rng.choice(targets)
            self.stored_by[target] = "numbers"
            return [f"pl.write({target}, {cell}, {self.rng.randint(-3, 3)}.0)"]
        name, kind = self.fresh("s"), self.rng.choice([FULL, INTS])
        sources = self.names.of(kind)
        if not sources:
            return self.compute()
        result = self.fresh("t")
        line = (
            f"{name} = pl.read({self.rng.choice(sources)}, [{self.offset(1, 8)}, {self.rng.randrange(16)}])"
        )
        value = self.expression(kind)
        self.names.values[result] = kind
        return [line, f"{result} = pl.add({value}, {name})"]

    def swap(self) -> list[str]:
        names = self.rebindable(FULL)
        if len(names) < 2:
            return self.compute()
        a, b = self.rng.sample(names, 2)
        return [f"{a}, {b} = {b}, {a}"]

    def ragged(self) -> list[str]:
        """Rows up to a number that is known at run time."""
        targets, sources = self.targets("tiles", FULL), self.names.of(FULL)
        if not targets or not sources:
            return self.compute()
        target = self.rng.choice(targets)
        self.stored_by[target] = "tiles"
        rows = self.rng.choice(["n + 1", "n + 2"])
        part = f"pl.slice({self.rng.choice(sources)}, [8, 16], [0, 0], valid_shape=[{rows}, 16])"
        value = self.rng.choice(
            [
                f"pl.add({part}, {self.number(FULL)})",
                f"pl.sub({part}, {self.expression(FULL, 2)})",
                f"pl.row_expand_sub({part}, pl.row_max({self.expression(FULL, 2)}))",
                f"pl.neg({part})",
                part,
            ]
        )
        return [f"{target} = pl.assemble({target}, {value}, [0, 0])"]

    def nested(self, depth: int, most: int = 3) -> list[str]:
        lines: list[str] = []
        with self.block():
            for _ in range(self.rng.randint(1, most)):
                lines += self.kernel_statement(depth + 1)
        return indent(lines)

    def loop(self, depth: int) -> list[str]:
        index, count = self.fresh("i"), self.rng.randint(1, 3)
        bounds, reach = self.rng.choice([(str(count), count), ("n", 3), (f"{count}", count), ("n + 1", 4)])
        with self.index(index, reach):
            body = self.nested(depth)
        return [f"for {index} in pl.range({bounds}):", *body]

    def while_loop(self, depth: int) -> list[str]:
        name = self.fresh("w")
        with self.index(name, 3):
            body = self.nested(depth)
        return [
            f"{name} = 0",
            f"while {name} < {self.rng.choice(['2', 'n'])}:",
            *body,
            f"    {name} = {name} + 1",
        ]

    def branch(self, depth: int) -> list[str]:
        lines = [f"if {self.condition()}:", *self.nested(depth)]
        if self.chance(50):
            lines += ["else:", *self.nested(depth)]
        return lines

    def choice(self, depth: int) -> list[str]:
        """A branch in SSA style."""
        kind, name = self.rng.choice([FULL, INTS, COLUMN]), self.fresh("z")
        first, second = self.value(kind, 1), self.value(kind, 1)
        head = f"if {self.condition()}:"
        self.names.values[name] = kind
        return [head, f"    {name} = pl.yield_({first})", "else:", f"    {name} = pl.yield_({second})"]

    def carried_loop(self, depth: int) -> list[str]:
        """A loop in SSA style; two carries may be swapped."""
        index, count = self.fresh("i"), self.rng.randint(1, 3)
        kinds = [self.rng.choice([FULL, FULL, INTS]) for _ in range(self.rng.randint(1, 2))]
        starts = [self.value(kind, 2) for kind in kinds]
        carries, results = [self.fresh("a") for _ in kinds], [self.fresh("r") for _ in kinds]
        with self.block(), self.index(index, count):
            self.names.values.update(zip(carries, kinds, strict=True))
            body = [] if self.chance(40) else self.kernel_compute()
            if self.chance(25):
                body += self.kernel_statement(depth + 1)
            ends = [self.value(kind, 1) for kind in kinds]
            if len(kinds) == 2 and kinds[0] == kinds[1] and self.chance(50):
                ends = carries[::-1]
        self.names.values.update(zip(results, kinds, strict=True))
        comma = "," if len(kinds) == 1 else ""
        carried, initial = f"({', '.join(carries)}{comma})", f"({', '.join(starts)}{comma})"
        return [
            f"for {index}, {carried} in pl.range({count}, init_values={initial}):",
            *indent(body),
            f"    {', '.join(results)} = pl.yield_({', '.join(ends)})",
        ]

    def kernel_compute(self) -> list[str]:
        """A new local name."""
        kind, name = self.rng.choice([FULL, COLUMN, INTS]), self.fresh("t")
        line = f"{name} = {self.value(kind)}"
        self.names.values[name] = kind
        return [line]

    def counted(self, depth: int) -> list[str]:
        """A number that a loop counts, used as an operand."""
        count, index, name = self.fresh("w"), self.fresh("i"), self.fresh("t")
        with self.index(index, 3):
            condition = self.condition()
        value = self.value(FULL, 1)
        self.names.values[name] = FULL
        return [
            f"{count} = {self.rng.choice(['0', 'n'])}",
            f"for {index} in pl.range({self.rng.choice(['3', 'n'])}):",
            f"    if {condition}:",
            f"        {count} = {count} + {self.rng.choice(['1', index])}",
            f"{name} = pl.add({value}, pl.cast({count}, pl.FP32))",
        ]

    def helped(self) -> list[str]:
        """A call of a function that becomes part of its caller."""
        if self.helpers and self.chance(50):
            helper = self.rng.choice(self.helpers)
        else:
            helper = self._new_helper()
        argument, name = self.value(FULL, 1), self.fresh("t")
        self.names.values[name] = FULL
        return [f"{name} = self.{helper}({argument})"]

    @property
    def helpers(self) -> list[str]:
        return [name for name in self.functions if name.startswith("helper")]

    def _new_helper(self) -> str:
        kept, self.names, self.scalars = self.names, Names(values={"given": FULL}), ()
        local = self.fresh("t")
        lines = [f"{local} = {self.value(FULL)}"]
        self.names.values[local] = FULL
        lines.append(f"return {self.value(FULL, 2)}")
        self.names, self.scalars = kept, SCALARS
        name, tensor = f"helper{len(self.helpers)}", FULL.annotation
        header = f"def {name}(self, given: {tensor}) -> {tensor}:"
        self.functions[name] = ["@pl.function(type=pl.FunctionType.Inline)", header, *indent(lines), ""]
        return name

    def filled(self, depth: int) -> list[str]:
        """A local tensor that a loop fills piece by piece."""
        name, index = self.fresh("f"), self.fresh("i")
        start = self.rng.choice(
            ["pl.full([8, 16], dtype=pl.FP32, value=2.0)", "pl.create_tensor([8, 16], dtype=pl.FP32)"]
        )
        with self.block(), self.index(index, 2):
            part = self.expression(HALF)
        self.names.values[name] = FULL
        return [
            f"{name} = {start}",
            f"for {index} in pl.range(2):",
            f"    {name} = pl.assemble({name}, {part}, [{index} * {BLOCK}, 0])",
        ]
