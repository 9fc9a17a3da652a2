"""Random programs of scopes, stores, branches, loops and launches, as DSL text.

Kernels come from a small pool, so that equal and nearly equal ones are frequent. All arithmetic stays in
small integers, which FP32 represents exactly: two programs mean the same if they give the same arrays.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

INPUTS = ("x", "y")
STORAGE = ("o", "p")


@dataclass
class _Writer:
    """Lines of a program under construction, and the names that may be read at the present place."""

    draw: st.DrawFn
    lines: list[str] = field(default_factory=list)
    depth: int = 2
    readable: list[str] = field(default_factory=lambda: [*INPUTS, *STORAGE])
    task_ids: list[str] = field(default_factory=list)
    counter: int = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def fresh(self, stem: str) -> str:
        self.counter += 1
        return f"{stem}{self.counter}"

    def pick(self, *choices: str) -> str:
        return self.draw(st.sampled_from(choices))

    def tensor(self) -> str:
        return self.pick(*self.readable)

    def constant(self) -> str:
        return self.pick("1.0", "2.0")

    def block(self, header: str, body: list[object]) -> None:
        """Write `header` and the parts of `body`; what they define is not readable afterwards."""
        self.line(header)
        self.depth += 1
        readable, task_ids = list(self.readable), list(self.task_ids)
        for part in body:
            part()  # type: ignore[operator]
        self.readable, self.task_ids = readable, task_ids
        self.depth -= 1


def _store(w: _Writer, rows: str) -> None:
    source, target = w.tensor(), w.pick(*STORAGE)
    tile, changed = w.fresh("t"), w.fresh("u")
    w.line(f"{tile} = pl.load({source}, [{rows}, 0], [4, 8])")
    w.line(f"{changed} = pl.{w.pick('add', 'sub')}({tile}, {w.constant()})")
    binding = w.pick(f"{target} = ", "")
    w.line(f"{binding}pl.store({changed}, [{rows}, 0], {target})")


def _kernel_part(w: _Writer) -> None:
    """One statement group of a kernel body."""
    kind = w.pick("compute", "compute", "store", "branch", "loop")
    if kind == "compute":
        name = w.fresh("v")
        w.line(f"{name} = pl.{w.pick('add', 'sub', 'maximum')}({w.tensor()}, {w.tensor()})")
        w.readable.append(name)
    elif kind == "store":
        _store(w, w.pick("0", "4"))
    elif kind == "branch":
        w.block("if flag:", [lambda: _store(w, w.pick("0", "4"))])
    else:
        index = w.fresh("i")
        w.block(f"for {index} in pl.range(2):", [lambda: _store(w, f"{index} * 4")])


def _scope(w: _Writer, *, task: bool = True) -> None:
    """A kernel scope; only a `task` of its own may have a task id and dependencies."""
    options = ["level=pl.Level.CORE_GROUP"]
    if w.draw(st.booleans()):
        options.append(f'name_hint="{w.pick("k", "l")}"')
    if task and w.task_ids and w.draw(st.booleans()):
        options.append(f"deps=[{w.pick(*w.task_ids)}]")
    if task and w.draw(st.integers(0, 4)) == 0:
        options.append("allow_early_resolve=True")
    task_id = w.fresh("tid") if task and w.draw(st.integers(0, 2)) == 0 else None
    suffix = f" as {task_id}" if task_id else ""
    w.line(f"with pl.at({', '.join(options)}){suffix}:")
    w.depth += 1
    for _ in range(w.draw(st.integers(1, 3))):
        _kernel_part(w)  # what a scope computes stays readable after it
    w.depth -= 1
    if task_id:
        w.task_ids.append(task_id)


def _spmd(w: _Writer) -> None:
    index = w.fresh("b")
    hint = w.pick("", ', name_hint="q"')
    sync = w.pick("", ", sync_start=True")
    w.block(f"for {index} in pl.spmd(2{sync}{hint}):", [lambda: _store(w, f"{index} * 4")])


def _launch(w: _Writer) -> None:
    target, source = w.pick(*STORAGE), w.pick(*INPUTS)
    w.block(w.pick("with pl.spmd(1):", "with pl.cluster():"), [
        lambda: w.line(f"{target} = self.{w.pick('given', 'given_twin', 'given_other')}({source}, {target})")
    ])  # fmt: skip


def _statement(w: _Writer, level: int = 0, *, manual: bool = False) -> None:
    kinds = ["scope", "scope", "spmd", "launch", "cluster"]
    if level < 2:
        kinds += ["for", "if"] if manual else ["for", "if", "manual"]
    kind = w.pick(*kinds)
    if kind == "scope":
        _scope(w)
    elif kind == "spmd":
        _spmd(w)
    elif kind == "launch":
        _launch(w)
    elif kind == "cluster":
        w.block("with pl.cluster():", [lambda: _spmd(w) if w.draw(st.booleans()) else _scope(w, task=False)])
    else:
        header = {
            "for": f"for {w.fresh('i')} in pl.range(2):",
            "if": "if flag:",
            "manual": "with pl.manual_scope():",
        }[kind]
        inner = [lambda: _statement(w, level + 1, manual=manual or kind == "manual")] * w.draw(
            st.integers(1, 2)
        )
        w.block(header, list(inner))


_GIVEN = """
    @incore
    def {name}(self, x: T(8, 8), o: pl.InOut[T(8, 8)]) -> T(8, 8):
        t = pl.load(x, [0, 0], [4, 8])
        u = pl.add(t, {constant})
        o = pl.store(u, [4, 0], o)
        return o
"""


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Methods of a program with the entry `main(x, y, o, p, flag)`."""
    w = _Writer(draw)
    for _ in range(draw(st.integers(1, 5))):
        _statement(w)
    kind = draw(st.sampled_from(["opaque", "orch"]))
    given = "".join(
        _GIVEN.format(name=name, constant=constant)
        for name, constant in (("given", "1.0"), ("given_twin", "1.0"), ("given_other", "2.0"))
    )
    header = (
        f"    @{kind}\n    def main(self, x: T(8, 8), y: T(8, 8), o: pl.InOut[T(8, 8)], "
        "p: pl.InOut[T(8, 8)], flag: B) -> tuple[T(8, 8), T(8, 8)]:\n"
    )
    return given + header + "\n".join(w.lines) + "\n        return o, p\n"
