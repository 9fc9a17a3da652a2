"""Random entry functions: scopes, launches, kernels by hand, views, loops and branches around them."""

from __future__ import annotations

import random
from typing import NamedTuple

from pypto.testing.programs.kernels import KernelText
from pypto.testing.programs.mutations import mutated
from pypto.testing.programs.names import (
    BLOCK,
    BRAINS,
    COLUMN,
    FLIPPED,
    FULL,
    HALF,
    HALVES,
    INTS,
    ROW,
    ROWS,
    SQUARE,
    STACK,
    TALL,
    Kind,
    indent,
    rename,
    words,
)

INPUTS: dict[str, Kind] = {
    "x": FULL, "y": FULL, "w": SQUARE, "u": INTS, "h": HALVES, "g": BRAINS, "c": COLUMN, "k": ROW,
    "stack": STACK, "tall": TALL, "xd": ROWS,
}  # fmt: skip
UPDATED: dict[str, Kind] = {"o": FULL, "p": FULL, "q": INTS, "e": HALVES, "f": BRAINS, "od": ROWS}


class _Scope(NamedTuple):
    """The body of a scope, the tensors that it reads, those that it makes, and the indices in it."""

    body: list[str]
    inputs: dict[str, Kind]
    made: dict[str, Kind]
    indices: dict[str, int]


class OrchestrationText(KernelText):
    """Writes the entry function and the kernels that it calls."""

    def __init__(self, rng: random.Random, *, is_opaque: bool) -> None:
        super().__init__(rng)
        self.is_opaque = is_opaque
        self.names.values.update(INPUTS)
        self.names.memory.update(UPDATED)
        self.by_hand: list[tuple[str, str]] = []  # name and form of the kernels
        self.scopes: list[_Scope] = []
        self.results: dict[str, Kind] = {}
        self._lines_of: dict[str, list[str]] = {}
        self._view_of: dict[str, str] = {}

    def body(self, statements: int) -> list[str]:
        self._make_kernels()
        lines: list[str] = []
        for _ in range(statements):
            lines += self.statement(0)
        return lines + self._observe()

    def statement(self, depth: int, *, manual: bool = False) -> list[str]:
        flat = [self.scope] * 6 + [self.repeat] * 3 + [self.call] * 2 + [self.spmd, self.spmd, self.cluster]
        flat += [
            self.sweep,
            self.submit,
            self.task_array,
            self.assemble,
            self.view,
            self.buffer,
            self.exchange,
            self.scalar,
        ]
        if depth < 2:
            nested = [
                self.for_loop,
                self.for_loop,
                self.if_branch,
                self.halves,
                self.while_scopes,
                self.carried,
            ]
            if depth == 0:
                nested += [self.manual, *([self.hierarchy] if self.is_opaque else [])]
            return self.rng.choice([*flat, *((lambda f=f: f(depth)) for f in nested)])()
        return self.rng.choice(flat)()

    # --- scopes

    def scope(self) -> list[str]:
        before = self.names.copy()
        number = [self._number("s")] if self.chance(15) else []
        body = [*number, *self.kernel_body()]
        lines = [f"with pl.at({self._options()}){self._task()}:", *indent(body)]
        new = {name: kind for name, kind in self.names.values.items() if name not in before.values}
        used = words(body)
        inputs = {name: kind for name, kind in (before.values | before.memory).items() if name in used}
        indices = {name: count for name, count in before.indices.items() if name in used}
        self.scopes.append(_Scope(body, inputs, new, indices))
        return lines

    def _options(self, *, task: bool = True) -> str:
        options = ["level=pl.Level.CORE_GROUP"]
        if self.chance(25):
            options.append(f'name_hint="{self.rng.choice(["load", "mix", "mix"])}"')
        if task and self.names.tasks and self.chance(30):
            options.append(f"deps=[{self.rng.choice(self.names.tasks)}]")
        if task and self.chance(5):
            options.append("allow_early_resolve=True")
        return ", ".join(options)

    def _task(self) -> str:
        if not self.chance(20):
            return ""
        name = self.fresh("tid")
        self.names.tasks.append(name)
        return f" as {name}"

    def repeat(self) -> list[str]:
        """An earlier scope again: on other tensors, with other local names, or with one thing changed."""
        if not self.scopes:
            return self.scope()
        body, inputs, new, indices = self.rng.choice(self.scopes)
        names: dict[str, str] = {}
        for name, kind in inputs.items():
            table = self.names.memory if name in UPDATED or name in self.names.memory else None
            options = (
                self.names.writable(kind)
                if table is not None
                else [each for each, k in self.names.values.items() if k == kind]
            )
            if not options:
                return self.scope()
            names[name] = name if name in options and self.chance(50) else self.rng.choice(options)
        if len(set(names.values())) < len(names) or not all(
            self.names.indices.get(name, 0) and self.names.indices[name] <= count
            for name, count in indices.items()
        ):
            return self.scope()
        made = {
            name: self.fresh("v") for name in sorted(words(body)) if self._is_local(name, inputs, indices)
        }
        lines = rename(body, names | made)
        if self.chance(35):
            lines = mutated(lines, self.rng)
        for name, kind in new.items():
            self.names.values[made[name]] = kind
        return [f"with pl.at({self._options()}){self._task()}:", *indent(lines)]

    @staticmethod
    def _is_local(name: str, inputs: dict[str, Kind], indices: dict[str, int]) -> bool:
        return name not in inputs and name not in indices and name[-1].isdigit() and name[0] in "tfirazswv"

    # --- launches

    def _block_part(self, index: str) -> tuple[list[str], str, str]:
        """Statements that compute rows of one block from inputs, the value, and the memory for it."""
        target = self.rng.choice(self.names.writable(FULL, ROWS) or ["o"])
        kept = self.names.copy()
        self.names.values = {n: k for n, k in kept.values.items() if n not in kept.memory}
        self.names.memory = {}
        row, part = self.fresh("row"), self.fresh("t")
        lines = []
        self.names.indices = {index: 2}
        if self.chance(50):
            lines.append(f"{row} = {index} * {BLOCK}")
        else:
            row = f"{index} * {BLOCK}"
        own = f"pl.slice({target}, [{BLOCK}, 16], [{row}, 0])"
        value = self.expression(HALF)
        lines.append(f"{part} = {value}")
        if self.chance(40):
            lines.append(f"{part} = pl.add({part}, {own})")
        self.names = kept
        return lines, part, target

    def spmd(self) -> list[str]:
        form = self.rng.choice(["for", "for", "with", "at"])
        sync = ", sync_start=True" if self.chance(25) else ""
        hint = ', name_hint="rows"' if self.chance(30) else ""
        count = self.rng.choice(["2", "2", "n % 2 + 1"])
        if form == "for":
            index = self.fresh("b")
            lines, part, target = self._block_part(index)
            write = f"{target} = pl.assemble({target}, {part}, [{index} * {BLOCK}, 0])"
            return [f"for {index} in pl.spmd({count}{sync}{hint}):", *indent([*lines, write])]
        if form == "with" and self._kernels("block"):
            options = f"{count}{sync}{hint}{self._predicate()}"
            return [f"with pl.spmd({options}){self._task()}:", *indent([self._dispatch("block")])]
        index = self.fresh("b")
        lines, part, target = self._block_part(index)
        body = [f"{index} = pl.tile.get_block_idx()", *lines]
        body.append(f"{target} = pl.assemble({target}, {part}, [{index} * {BLOCK}, 0])")
        if self.chance(50):
            return [f"with pl.spmd({count}{sync}{hint}):", *indent(body)]
        at = "with pl.at(level=pl.Level.CORE_GROUP):"
        return [f"with pl.spmd({count}{sync}{hint}):", *indent([at, *indent(body)])]

    def cluster(self) -> list[str]:
        if self.by_hand and self.chance(50):
            return ["with pl.cluster():", *indent([self._dispatch("whole")])]
        with self.block():
            count = self.rng.randint(1, 2)
            lines: list[str] = []
            for _ in range(count):
                body = self.kernel_body()
                lines += [f"with pl.at({self._options(task=False)}):", *indent(body)]
            return ["with pl.cluster():", *indent(lines)]

    # --- kernels by hand

    def _make_kernels(self) -> None:
        for _ in range(self.rng.randint(0, 3)):
            form = self.rng.choice(["whole", "whole", "block", "rows"])
            self._add_kernel(form, self._kernel_lines(form))
        for name, form in list(self.by_hand):
            if self.chance(40):
                lines = self._lines_of[name]
                twin = rename(lines, {f"t{i}": f"u{i}" for i in range(9)})
                self._add_kernel(form, mutated(twin, self.rng) if self.chance(50) else twin)

    def _add_kernel(self, form: str, lines: list[str]) -> None:
        name = f"kernel{len(self.by_hand)}"
        self._lines_of[name] = lines
        self.by_hand.append((name, form))
        kind = ROWS if form == "rows" else FULL
        tensor = kind.annotation
        header = f"def {name}(self, a: {tensor}, b: pl.InOut[{tensor}]) -> {tensor}:"
        self.functions[name] = ["@pl.function(type=pl.FunctionType.InCore)", header, *indent(lines), ""]

    def _kernel_lines(self, form: str) -> list[str]:
        rng = self.rng
        rows = 8 if form == "whole" else BLOCK
        row = {"whole": "0", "block": "pl.tile.get_block_idx() * 4", "rows": "4"}[form]
        lines = []
        if form == "block":
            lines.append(f"t0 = {row}")
            row = "t0"
        lines.append(f"t1 = pl.load(a, [{row}, 0], [{rows}, 16])")
        last = "t1"
        if self.chance(50):
            lines.append(f"t2 = pl.load(b, [{row}, 0], [{rows}, 16])")
            lines.append(f"t3 = pl.{rng.choice(['add', 'sub', 'maximum'])}(t1, t2)")
            last = "t3"
        for number in range(4, 4 + rng.randint(1, 2)):
            operation, value = (
                rng.choice(["add", "mul", "sub", "maximum"]),
                rng.choice(["0.5", "1.0", "-1.0"]),
            )
            lines.append(f"t{number} = pl.{operation}({last}, {value})")
            last = f"t{number}"
        if form == "whole" and self.chance(25):
            step = f"    {last} = pl.add({last}, 1.0)"
            jump = f"    if t7 {rng.choice(['==', '>'])} {rng.randrange(3)}:"
            ways = [[step], [jump, f"        {rng.choice(['break', 'continue'])}", step]]
            ways.append([step, jump, "        break", f"    {last} = pl.mul({last}, 0.5)"])
            lines += ["for t7 in pl.range(3):", *rng.choice(ways)]
        lines += [f"b = pl.store({last}, [{row}, 0], b)", "return b"]
        return lines

    def _kernels(self, *forms: str) -> list[tuple[str, str]]:
        return [each for each in self.by_hand if each[1] in forms]

    def _dispatch(self, *forms: str) -> str:
        """A statement that calls a kernel, or a copy of one if there is none of such a form."""
        fitting = self._kernels(*forms)
        if not fitting:
            self._add_kernel(forms[0], self._kernel_lines(forms[0]))
            fitting = self._kernels(*forms)
        name, form = self.rng.choice(fitting)
        source, target = self._operands(form)
        return f"{target} = self.{name}({source}, {target})"

    def _operands(self, form: str) -> tuple[str, str]:
        kind = ROWS if form == "rows" else FULL
        target = self.rng.choice(self.names.writable(kind))
        return self.rng.choice([name for name in self.names.of(kind) if name != target]), target

    def call(self) -> list[str]:
        return [self._dispatch("whole", "rows")]

    def submit(self) -> list[str]:
        """A dispatch that gives its task id."""
        name, form = self.rng.choice(self._kernels("whole", "rows") or [("", "")])
        if not name:
            return self.call()
        source, target = self._operands(form)
        deps = f", deps=[{', '.join(self.rng.sample(self.names.tasks, 1))}]" if self.names.tasks else ""
        task = self.fresh("tid")
        self.names.tasks.append(task)
        options = deps + (", allow_early_resolve=True" if self.chance(10) else "") + self._predicate()
        if self.chance(25) and self._kernels("block"):
            name, _ = self.rng.choice(self._kernels("block"))
            source, target = self._operands("block")
            options += f", core_num={self.rng.choice(['1', '2', 'n % 2 + 1'])}"
            return [f"{target}, {task} = pl.spmd_submit(self.{name}, {source}, {target}{options})"]
        return [f"{target}, {task} = pl.submit(self.{name}, {source}, {target}{options})"]

    def _predicate(self) -> str:
        """Run a task only if an element of a tensor says so."""
        if not self.chance(25):
            return ""
        row = self.offset(1, 8)
        comparison = self.rng.choice(["> 0", "<= 1"])
        return f", predicate=(u[{row}, {self.rng.randrange(16)}] {comparison})"

    def task_array(self) -> list[str]:
        """Tasks of a loop, and one that waits for all of them."""
        array, index, task, last = (self.fresh(stem) for stem in ("ids", "j", "tid", "tid"))
        (name, form), (after, form_after) = (
            self.rng.choice(self._kernels("whole", "rows") or [self._new_kernel()]) for _ in range(2)
        )
        with self.index(index, 2):
            source, target = self._operands(form)
        reader, written = self._operands(form_after)
        self.names.tasks.append(last)
        return [
            f"{array} = pl.array.create(2, pl.TASK_ID)",
            f"for {index} in pl.range(2):",
            f"    {target}, {task} = pl.submit(self.{name}, {source}, {target})",
            f"    {array}[{index}] = {task}",
            f"{written}, {last} = pl.submit(self.{after}, {reader}, {written}, deps=[{array}])",
        ]

    def _new_kernel(self) -> tuple[str, str]:
        self._add_kernel("whole", self._kernel_lines("whole"))
        return self.by_hand[-1]

    def manual(self, depth: int) -> list[str]:
        """A manual scope that declares every order that matters."""
        lines, history = [], []
        for _ in range(self.rng.randint(2, 4)):
            fitting = self._kernels("whole", "rows")
            if not fitting:
                self._dispatch("whole")
                fitting = self._kernels("whole", "rows")
            name, form = self.rng.choice(fitting)
            source, target = self._operands(form)
            reads, write = {self._root(source), self._root(target)}, self._root(target)
            deps = [task for task, old, written in history if written in reads or write in old]
            task = self.fresh("tid")
            text = f", deps=[{', '.join(deps)}]" if deps else ""
            lines.append(f"{target}, {task} = pl.submit(self.{name}, {source}, {target}{text})")
            history.append((task, reads, write))
        return ["with pl.manual_scope():", *indent(lines)]

    def _root(self, name: str) -> str:
        while name in self._view_of:
            name = self._view_of[name]
        return name

    # --- memory of the orchestration

    def assemble(self) -> list[str]:
        target = self.rng.choice(self.names.writable(FULL))
        options = [name for name in self.names.of(FULL) if self._root(name) != self._root(target)]
        return [f"{target} = pl.assemble({target}, {self.rng.choice(options)}, [0, 0])"]

    def view(self) -> list[str]:
        """A window, another shape or the transposition of memory; a window of writable memory is writable."""
        name = self.fresh("view")
        form = self.rng.choice(["rows", "square", "stack", "tall", "flip"])
        if form == "rows":
            source = self.rng.choice([*self.names.of(ROWS), *self.names.of(SQUARE)])
            start = self.offset(8, self.names.values.get(source, ROWS).shape[0])
            if source in self.names.memory:
                self.names.memory[name] = FULL
            else:
                self.names.values[name] = FULL
            self._view_of[name] = source
            return [f"{name} = pl.slice({source}, [8, 16], [{start}, 0])"]
        if form == "stack":
            source, result = self.rng.choice(self.names.of(STACK)), FULL
            text = self.rng.choice(
                [f"{source}[{self.offset(1, 2)}]", f"pl.slice({source}, [1, 8, 16], [1, 0, 0], [], [0])"]
            )
        elif form == "tall":
            source, result = self.rng.choice(self._computed(TALL)), FULL
            text = f"pl.reshape({source}, [8, 16])"
        elif form == "flip":
            source, result = self.rng.choice(self._computed(FULL)), FLIPPED
            text = f"pl.transpose({source}, 0, 1)"
        else:
            source, result = self.rng.choice(self._computed(FULL)), TALL
            text = f"pl.reshape({source}, [16, 8])"
        self.names.values[name] = result
        self._view_of[name] = source
        return [f"{name} = {text}"]

    def _computed(self, kind: Kind) -> list[str]:
        """Inputs and results: memory that is packed."""
        return [n for n in self.names.of(kind) if n not in self._view_of]

    def buffer(self) -> list[str]:
        """New memory, filled by a scope or by a kernel."""
        name = self.fresh("buf")
        create = f"{name} = pl.create_tensor([8, 16], dtype=pl.FP32)"
        source = self.expression(FULL, 1)
        self.names.memory[name] = FULL
        fill = f"{name} = pl.assemble({name}, {source}, [0, 0])"
        return [create, f"with pl.at({self._options()}){self._task()}:", f"    {fill}"]

    def exchange(self) -> list[str]:
        a, b = self.rng.sample(self.rebindable(FULL), 2)
        if self.chance(60):
            return [f"{a}, {b} = {b}, {a}"]
        return [f"{a} = {b}"]

    def scalar(self) -> list[str]:
        return [self._number("m")]

    def _number(self, stem: str) -> str:
        """An assignment of a small number."""
        name = self.fresh(stem)
        value = self.rng.choice(["n % 2", "(n + 1) % 3", "n // 2", "pl.min(n, 2)"])
        self.names.indices[name] = 3
        return f"{name} = {value}"

    # --- control flow

    def inner(self, depth: int) -> list[str]:
        lines: list[str] = []
        with self.block():
            for _ in range(self.rng.randint(1, 2)):
                lines += self.statement(depth + 1)
        return indent(lines)

    def for_loop(self, depth: int) -> list[str]:
        index, form = self.fresh("j"), self.rng.choice(["range", "range", "unroll"])
        count, reach = self.rng.choice([("2", 2), ("3", 3), ("1", 1)] + [("n", 3)] * (form == "range"))
        with self.index(index, reach):
            body = self.inner(depth)
        return [f"for {index} in pl.{form}({count}):", *body]

    def if_branch(self, depth: int) -> list[str]:
        lines = [f"if {self.condition()}:", *self.inner(depth)]
        if self.chance(50):
            lines += ["else:", *self.inner(depth)]
        return lines

    def while_scopes(self, depth: int) -> list[str]:
        name = self.fresh("w")
        with self.index(name, 3):
            body = self.inner(depth)
        return [
            f"{name} = 0",
            f"while {name} < {self.rng.choice(['2', 'n'])}:",
            *body,
            f"    {name} = {name} + 1",
        ]

    def carried(self, depth: int) -> list[str]:
        """A loop in SSA style around a scope."""
        index, carry, result = self.fresh("j"), self.fresh("a"), self.fresh("r")
        start, made = self.rng.choice(self.names.of(FULL)), self.fresh("t")
        if start in self.names.memory:
            start = "x"
        with self.block(), self.index(index, 2):
            self.names.values[carry] = FULL
            inner = f"{made} = pl.add({self.expression(FULL, 1)}, {carry})"
            head = f"with pl.at({self._options(task=False)}):"
        self.names.values[result] = FULL
        return [
            f"for {index}, ({carry},) in pl.range(2, init_values=({start},)):",
            f"    {head}",
            f"        {inner}",
            f"    {result} = pl.yield_({made})",
        ]

    def halves(self, depth: int) -> list[str]:
        """Two parts written independently of each other."""
        index = self.fresh("j")
        lines, part, target = self._block_part(index)
        write = f"{target} = pl.assemble({target}, {part}, [{index} * {BLOCK}, 0])"
        loop = self.rng.choice(["parallel", "range"])
        at = "with pl.at(level=pl.Level.CORE_GROUP):"
        inside = self.chance(60)
        body = [at, *indent([*lines, write])] if inside else [at, *indent(lines), write]
        return [f"for {index} in pl.{loop}(2):", *indent(body)]

    def hierarchy(self, depth: int) -> list[str]:
        """A scope that becomes an orchestration of its own."""
        options = ["level=pl.Level.GLOBAL", "role=pl.Role.Orchestrator"]
        if self.chance(50):
            options.append('name_hint="inner"')
        if self.names.tasks and self.chance(40):
            options.append(f"deps=[{self.rng.choice(self.names.tasks)}]")
        kept = list(self.names.tasks)
        body = self.inner(1)
        self.names.tasks = kept
        return [f"with pl.at({', '.join(options)}){self._task()}:", *body]

    def sweep(self) -> list[str]:
        """All rows of a tensor whose extent is known at run time."""
        index, part = self.fresh("j"), self.fresh("t")
        source = self.rng.choice([name for name in self.names.of(ROWS) if name != "od"])
        count = f"pl.tensor.dim({source}, 0) // {BLOCK}"
        window = f"[{index} * {BLOCK}, 0]"
        value = f"pl.{self.rng.choice(['add', 'mul'])}(pl.slice({source}, [{BLOCK}, 16], {window}), 0.5)"
        body = [f"{part} = {value}", f"od = pl.assemble(od, {part}, {window})"]
        if self.chance(50):
            return [f"for {index} in pl.spmd({count}):", *indent(body)]
        loop = self.rng.choice(["range", "parallel"])
        at = "with pl.at(level=pl.Level.CORE_GROUP):"
        return [f"for {index} in pl.{loop}({count}):", *indent([at, *indent(body)])]

    # --- what is observed

    def _observe(self) -> list[str]:
        """Copies of some values into output parameters."""
        lines = []
        shown = (FULL, INTS, COLUMN, ROW, TALL, SQUARE, HALF)
        options = [n for n, kind in self.names.values.items() if n not in INPUTS and kind in shown]
        options = options or ["x"]  # a program without any kernel computes nothing
        for number, name in enumerate(self.rng.sample(options, min(len(options), 3))):
            kind = self.names.values[name]
            output = f"out{number}"
            self.results[output] = kind
            lines += [
                "with pl.at(level=pl.Level.CORE_GROUP):",
                f"    {output} = pl.assemble({output}, {name}, [0, 0])",
            ]
        return lines
