"""Building programs with begin and end calls: the core under `IRBuilder`.

A stack of open constructs collects statements. Ending a construct builds its node and, except for functions
and programs, appends it to the enclosing one. A body of exactly one statement is that statement itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pypto.core.errors import internal_error
from pypto.core.span import Span
from pypto.ir.enums import ForKind, FunctionType, Level, ParamDirection, Role, ScopeKind, SplitMode
from pypto.ir.expr import Expr, GlobalVar, IterArg, Var
from pypto.ir.program import Function, Program
from pypto.ir.scope import (
    ClusterScopeStmt,
    HierarchyScopeStmt,
    InCoreScopeStmt,
    RuntimeScopeStmt,
    ScopeStmt,
    SplitAivScopeStmt,
    SpmdScopeStmt,
)
from pypto.ir.stmt import (
    AssignStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    attach_leading_comments,
)
from pypto.ir.types import Type


@dataclass(slots=True)
class _Open:
    """One construct that has begun: what it is, where, its parts so far."""

    kind: str
    span: Span
    parts: dict[str, Any] = field(default_factory=dict)
    stmts: list[Stmt] = field(default_factory=list)

    def body(self) -> Stmt:
        return self.stmts[0] if len(self.stmts) == 1 else SeqStmts(self.stmts, self.span)


@dataclass(slots=True)
class _PendingComments:
    """Comment lines for the next statement of one construct; empty once that statement has come."""

    owner: _Open
    lines: list[str]


class BuildContext:
    """The begin/end builder; every span is explicit."""

    def __init__(self) -> None:
        self._open: list[_Open] = []
        self._comments: list[_PendingComments] = []

    # -- the stack -------------------------------------------------------------------------------------------

    def _begin(self, kind: str, span: Span, **parts: Any) -> None:
        self._open.append(_Open(kind, span, parts))

    def _top(self, kind: str, action: str) -> _Open:
        if not self._open or self._open[-1].kind != kind:
            raise RuntimeError(f"Cannot {action}: not inside a {kind}")
        return self._open[-1]

    def _end(self, kind: str, end_span: Span) -> tuple[_Open, Span]:
        construct = self._top(kind, f"end the {kind}")
        self._open.pop()
        return construct, joined(construct.span, end_span)

    def _finish(self, stmt: Stmt) -> Any:
        if self._open:
            self.emit(stmt)
        return stmt

    def innermost(self) -> str | None:
        """The kind of the innermost open construct, None when nothing is open."""
        return self._open[-1].kind if self._open else None

    def depth(self) -> int:
        """How many constructs are open."""
        return len(self._open)

    def abandon(self, depth: int) -> None:
        """Drop the constructs opened after the first `depth`, without building them."""
        del self._open[depth:]

    def in_function(self) -> bool:
        return any(construct.kind == "function" for construct in self._open)

    def in_loop(self) -> bool:
        return bool(self._open) and self._open[-1].kind == "for loop"

    def in_if(self) -> bool:
        return bool(self._open) and self._open[-1].kind == "if"

    def in_program(self) -> bool:
        return any(construct.kind == "program" for construct in self._open)

    # -- statements ------------------------------------------------------------------------------------------

    def emit(self, stmt: Stmt) -> Stmt:
        """Append a statement to the innermost construct. Raises `RuntimeError` when nothing is open."""
        if not self._open or self._open[-1].kind == "program":
            raise RuntimeError("Cannot emit a statement outside of a function, loop, branch or scope")
        construct = self._open[-1]
        if self._comments and not isinstance(stmt, SeqStmts):
            self._attach_pending_comments(construct, stmt)
        construct.stmts.append(stmt)
        return stmt

    def _attach_pending_comments(self, construct: _Open, stmt: Stmt) -> None:
        for pending in reversed(self._comments):
            if pending.owner is construct and pending.lines:
                attach_leading_comments(stmt, pending.lines)
                pending.lines = []
                return

    def var(self, name: str, type: Type, span: Span) -> Var:
        return Var(name, type, span)

    def assign(self, var: Var, value: Expr, span: Span) -> AssignStmt:
        stmt = AssignStmt(var, value, span)
        self.emit(stmt)
        return stmt

    def return_(self, values: Sequence[Expr] | Span, span: Span | None = None) -> ReturnStmt:
        stmt = ReturnStmt(values) if isinstance(values, Span) else ReturnStmt(values, span or Span.unknown())
        self.emit(stmt)
        return stmt

    def push_pending_leading_comments(self, comments: Sequence[str]) -> None:
        """Attach these lines to the next statement of the construct that is innermost now."""
        if not self._open:
            raise internal_error("Comments were pushed with no construct open")
        self._comments.append(_PendingComments(self._open[-1], list(comments)))

    def pop_pending_leading_comments(self) -> list[str]:
        """What was pushed last and not consumed."""
        if not self._comments:
            raise internal_error("Comments were popped that had not been pushed")
        return self._comments.pop().lines

    # -- functions -------------------------------------------------------------------------------------------

    def begin_function(
        self,
        name: str,
        span: Span,
        type: FunctionType = FunctionType.Opaque,
        level: Level | None = None,
        role: Role | None = None,
        attrs: Any = None,
        requires_runtime_binding: bool = False,
    ) -> None:
        if self.in_function():
            raise RuntimeError(f"Cannot begin function '{name}' inside another function")
        self._begin(
            "function", span, name=name, type=type, level=level, role=role, attrs=dict(attrs or {}),
            binding=requires_runtime_binding, params=[], returns=[],
        )  # fmt: skip

    def func_arg(
        self, name: str, type: Type, span: Span, direction: ParamDirection = ParamDirection.In
    ) -> Var:
        param = Var(name, type, span)
        self._top("function", "add a parameter").parts["params"].append((param, direction))
        return param

    def return_type(self, type: Type) -> None:
        self._top("function", "add a return type").parts["returns"].append(type)

    def add_function_attrs(self, attrs: dict[str, Any]) -> None:
        """Merge attributes into the open function. Raises `ValueError` for a repeated key."""
        if not self._open or self._open[-1].kind != "function":
            raise ValueError("Function attributes can only be added directly inside a function")
        parts = self._open[-1].parts
        for key, value in attrs.items():
            if key in parts["attrs"]:
                raise ValueError(f"Function '{parts['name']}' already has the attribute '{key}'")
            parts["attrs"][key] = value

    def end_function(self, end_span: Span) -> Function:
        construct, span = self._end("function", end_span)
        p = construct.parts
        return Function(
            p["name"], p["params"], p["returns"], construct.body(), span, p["type"], p["level"], p["role"],
            p["attrs"], p["binding"],
        )  # fmt: skip

    # -- control flow ----------------------------------------------------------------------------------------

    def begin_for_loop(
        self,
        loop_var: Var,
        start: Expr,
        stop: Expr,
        step: Expr,
        span: Span,
        kind: ForKind = ForKind.Sequential,
        attrs: Any = None,
    ) -> None:
        self._need_context("for loop")
        self._begin(
            "for loop",
            span,
            var=loop_var,
            start=start,
            stop=stop,
            step=step,
            for_kind=kind,
            attrs=attrs,
            iter_args=[],
            results=[],
        )

    def begin_while_loop(self, condition: Expr, span: Span) -> None:
        self._need_context("while loop")
        self._begin("while loop", span, condition=condition, iter_args=[], results=[])

    def _need_context(self, what: str) -> None:
        if not self._open or self._open[-1].kind == "program":
            raise RuntimeError(f"Cannot begin a {what} outside of a function")

    def add_iter_arg(self, iter_arg: IterArg) -> None:
        self._top("for loop", "add an iteration argument").parts["iter_args"].append(iter_arg)

    def add_while_iter_arg(self, iter_arg: IterArg) -> None:
        self._top("while loop", "add an iteration argument").parts["iter_args"].append(iter_arg)

    def add_return_var(self, var: Var) -> None:
        self._top("for loop", "add a return variable").parts["results"].append(var)

    def add_while_return_var(self, var: Var) -> None:
        self._top("while loop", "add a return variable").parts["results"].append(var)

    def set_while_loop_condition(self, condition: Expr) -> None:
        self._top("while loop", "set the condition").parts["condition"] = condition

    def end_for_loop(self, end_span: Span) -> ForStmt:
        construct, span = self._end("for loop", end_span)
        p = construct.parts
        _check_carried(p, "for")
        stmt = ForStmt(
            p["var"],
            p["start"],
            p["stop"],
            p["step"],
            p["iter_args"],
            construct.body(),
            p["results"],
            span,
            p["for_kind"],
            p["attrs"],
        )
        return self._finish(stmt)  # type: ignore[no-any-return]

    def end_while_loop(self, end_span: Span) -> WhileStmt:
        construct, span = self._end("while loop", end_span)
        p = construct.parts
        _check_carried(p, "while")
        stmt = WhileStmt(p["condition"], p["iter_args"], construct.body(), p["results"], span)
        return self._finish(stmt)  # type: ignore[no-any-return]

    def begin_if(self, condition: Expr, span: Span) -> None:
        if not self._open or self._open[-1].kind == "program":
            raise ValueError("Cannot begin an if outside of a function")
        self._begin("if", span, condition=condition, then=None, results=[])

    def begin_else(self, span: Span) -> None:
        construct = self._top("if", "begin else")
        if construct.parts["then"] is not None:
            raise ValueError("This if already has an else branch")
        construct.parts["then"] = construct.body()
        construct.stmts = []

    def add_if_return_var(self, var: Var) -> None:
        self._top("if", "add a return variable").parts["results"].append(var)

    def end_if(self, end_span: Span) -> IfStmt:
        construct, span = self._end("if", end_span)
        p = construct.parts
        then_body, else_body = p["then"], None
        if then_body is None:
            then_body = construct.body()
        elif construct.stmts:
            else_body = construct.body()
        return self._finish(  # type: ignore[no-any-return]
            IfStmt(p["condition"], then_body, else_body, p["results"], span)
        )

    # -- scopes ----------------------------------------------------------------------------------------------

    def begin_scope(
        self,
        scope_kind: ScopeKind,
        span: Span,
        level: Level | None = None,
        role: Role | None = None,
        split: SplitMode | None = None,
        name_hint: str = "",
        core_num: Any = None,
        sync_start: bool | None = None,
        manual: bool | None = None,
        attrs: Any = None,
    ) -> None:
        if not self._open or self._open[-1].kind == "program":
            raise ValueError("Cannot begin a scope outside of a function")
        make = _scope_maker(scope_kind, level, role, split, name_hint, core_num, sync_start, manual)
        self._begin("scope", span, make=make, attrs=attrs)

    def end_scope(self, end_span: Span) -> ScopeStmt:
        construct, span = self._end("scope", end_span)
        scope: ScopeStmt = construct.parts["make"](construct.body(), span)
        attrs = construct.parts["attrs"]
        return self._finish(scope.replace(attrs=attrs) if attrs else scope)  # type: ignore[no-any-return]

    # -- programs --------------------------------------------------------------------------------------------

    def begin_program(self, name: str, span: Span) -> None:
        if self._open:
            raise RuntimeError(f"Cannot begin program '{name}' inside a {self._open[-1].kind}")
        self._begin("program", span, name=name, declared={}, functions={})

    def _program(self) -> dict[str, Any]:
        for construct in self._open:
            if construct.kind == "program":
                return construct.parts
        raise RuntimeError("No program has begun")

    def declare_function(self, name: str) -> GlobalVar:
        """The name of a function of the open program; declaring it again gives the same object."""
        return self._program()["declared"].setdefault(name, GlobalVar(name))  # type: ignore[no-any-return]

    def get_global_var(self, name: str) -> GlobalVar:
        """The name of a declared function. Raises `RuntimeError` for an undeclared one."""
        declared = self._program()["declared"]
        if name not in declared:
            raise RuntimeError(f"Function '{name}' is not declared in this program")
        return declared[name]  # type: ignore[no-any-return]

    def add_function(self, func: Function) -> None:
        """Put a function into the open program. Raises `ValueError` for a second one of its name."""
        self.declare_function(func.name)
        added = self._program()["functions"]
        if func.name in added:
            raise ValueError(f"The program already has a function '{func.name}'")
        added[func.name] = func

    def get_function_return_types(self, gvar: GlobalVar) -> list[Type]:
        """The return types of a function already added; empty for an unknown one."""
        function = self._program()["functions"].get(gvar.name)
        return [] if function is None else list(function.return_types_)

    def end_program(self, end_span: Span) -> Program:
        construct, span = self._end("program", end_span)
        return Program(list(construct.parts["functions"].values()), construct.parts["name"], span)


def _check_carried(parts: dict[str, Any], kind: str) -> None:
    carried, results = len(parts["iter_args"]), len(parts["results"])
    if carried != results:
        raise RuntimeError(
            f"The {kind} loop has {carried} iteration argument(s), but {results} return variable(s)"
        )


def _scope_maker(
    kind: ScopeKind,
    level: Level | None,
    role: Role | None,
    split: SplitMode | None,
    name_hint: str,
    core_num: Any,
    sync_start: bool | None,
    manual: bool | None,
) -> Callable[[Stmt, Span], ScopeStmt]:
    """The constructor of a scope with all but its body. Raises `ValueError` for what the kind lacks."""
    if kind is ScopeKind.InCore:
        return lambda body, span: InCoreScopeStmt(split or SplitMode.NONE, name_hint, body, span)
    if kind is ScopeKind.Cluster:
        return lambda body, span: ClusterScopeStmt(name_hint, body, span)
    if kind is ScopeKind.Hierarchy:
        known_level = _needed(level, kind, "level")
        return lambda body, span: HierarchyScopeStmt(known_level, role, name_hint, body, span)
    if kind is ScopeKind.Spmd:
        blocks = _needed(core_num, kind, "core_num")
        return lambda body, span: SpmdScopeStmt(blocks, bool(sync_start), name_hint, body, span)
    if kind is ScopeKind.Runtime:
        is_manual = _needed(manual, kind, "manual")
        return lambda body, span: RuntimeScopeStmt(is_manual, name_hint, body, span)
    if kind is ScopeKind.SplitAiv:
        mode = _needed(split, kind, "split")
        return lambda body, span: SplitAivScopeStmt(mode, 2, name_hint, body, span)
    raise RuntimeError(f"A {kind.name} scope cannot be built; it is made by the compiler")


def _needed(value: Any, kind: ScopeKind, name: str) -> Any:
    if value is None:
        raise ValueError(f"A {kind.name} scope needs {name}")
    return value


def joined(begin: Span, end: Span) -> Span:
    """From the begin of one span to the end of another (or its begin, when it says no more)."""
    if not begin.is_valid():
        return begin
    line = end.end_line if end.end_line != -1 else end.begin_line
    column = end.end_column if end.end_column != -1 else end.begin_column
    return Span(begin.filename, begin.begin_line, begin.begin_column, line, column)
