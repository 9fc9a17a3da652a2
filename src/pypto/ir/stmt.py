"""Statements without scopes: assignment, control flow, sequences.

A body is one statement; several are a `SeqStmts`. Constructors keep exactly what they get.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from pypto.core.span import Span
from pypto.ir.attrs import AttrDict, normalise_attrs, read_back
from pypto.ir.enums import ForKind, InlineLanguage
from pypto.ir.expr import Expr, IterArg, Var
from pypto.ir.node import (
    ATTRS,
    ITER_ARGS,
    NODES,
    OPTIONAL_NODE,
    REQUIRED,
    VALUE,
    IRNode,
    define,
    expect,
    expect_all,
    use,
)  # fmt: skip

_S = TypeVar("_S", bound="Stmt")


class Stmt(IRNode):
    """Anything that is executed. `leading_comments` are the comment lines above it, without `#`."""

    __slots__ = ("comments",)
    ABSTRACT = True

    comments: tuple[str, ...]

    @property
    def leading_comments(self) -> list[str]:
        return list(comments_of(self))

    def _rebuilt(self: _S, values: Sequence[Any]) -> _S:
        new = type(self).make(*values)
        comments = comments_of(self)
        if comments:
            _set_comments(new, comments)
        return new


_set_comments = Stmt.__dict__["comments"].__set__


def comments_of(stmt: Stmt) -> tuple[str, ...]:
    """The stored comment lines of a statement."""
    try:
        return stmt.comments
    except AttributeError:  # most statements have none, so the slot stays empty
        return ()


def attach_leading_comments(stmt: _S, comments: Sequence[str]) -> _S:
    """Replace the comment lines of `stmt` in place and return it. A sequence carries none: `ValueError`."""
    expect(stmt, Stmt, "stmt")
    lines = expect_all(comments, str, "comments")
    if isinstance(stmt, SeqStmts):
        raise ValueError("Comments attach to a single statement, not to SeqStmts")
    _set_comments(stmt, lines)
    return stmt


class AssignStmt(Stmt):
    """Binds a variable to a value."""

    __slots__ = ("value", "var")
    FIELDS = (define("var"), use("value"))

    var: Var
    value: Expr

    def __init__(self, var: Var, value: Expr, span: Span) -> None:
        expect(var, Var, "AssignStmt.var")
        expect(value, Expr, "AssignStmt.value")
        expect(span, Span, "AssignStmt.span")
        self._fill(var, value, span)


class EvalStmt(Stmt):
    """Evaluates an expression for its effect."""

    __slots__ = ("expr",)
    FIELDS = (use("expr"),)

    expr: Expr

    def __init__(self, expr: Expr, span: Span) -> None:
        expect(expr, Expr, "EvalStmt.expr")
        expect(span, Span, "EvalStmt.span")
        self._fill(expr, span)


class YieldStmt(Stmt):
    """Hands values to the enclosing loop or branch."""

    __slots__ = ("value_",)
    FIELDS = (use("value", NODES),)

    value_: tuple[Expr, ...]

    def __init__(self, value: Sequence[Expr] | Span = REQUIRED, span: Span = REQUIRED) -> None:
        self._fill(*_optional_values("YieldStmt", value, span))

    @property
    def value(self) -> list[Expr]:
        return list(self.value_)


class ReturnStmt(Stmt):
    """Leaves the function with its results."""

    __slots__ = ("value_",)
    FIELDS = (use("value", NODES),)

    value_: tuple[Expr, ...]

    def __init__(self, value: Sequence[Expr] | Span = REQUIRED, span: Span = REQUIRED) -> None:
        self._fill(*_optional_values("ReturnStmt", value, span))

    @property
    def value(self) -> list[Expr]:
        return list(self.value_)


def _optional_values(owner: str, value: Any, span: Any) -> tuple[tuple[Expr, ...], Span]:
    if isinstance(value, Span) and span is REQUIRED:
        value, span = (), value
    values = () if value is REQUIRED else expect_all(value, Expr, f"{owner}.value")
    expect(span, Span, f"{owner}.span")
    return values, span


class IfStmt(Stmt):
    """Runs one of two bodies. With `return_vars`, each body ends in a yield of as many values."""

    __slots__ = ("condition", "else_body", "return_vars_", "then_body")
    FIELDS = (
        use("condition"), use("then_body"), use("else_body", OPTIONAL_NODE), define("return_vars", NODES),
    )  # fmt: skip

    condition: Expr
    then_body: Stmt
    else_body: Stmt | None
    return_vars_: tuple[Var, ...]

    def __init__(
        self,
        condition: Expr,
        then_body: Stmt,
        else_body: Stmt | None = None,
        return_vars: Sequence[Var] = REQUIRED,
        span: Span = REQUIRED,
    ) -> None:
        expect(condition, Expr, "IfStmt.condition")
        expect(then_body, Stmt, "IfStmt.then_body")
        if else_body is not None:
            expect(else_body, Stmt, "IfStmt.else_body")
        results = expect_all(return_vars, Var, "IfStmt.return_vars")
        expect(span, Span, "IfStmt.span")
        self._fill(condition, then_body, else_body, results, span)

    @property
    def return_vars(self) -> list[Var]:
        return list(self.return_vars_)


class ForStmt(Stmt):
    """A counted loop. Carried values start at their `initValue`; the trailing yield of the body feeds the
    next iteration; `return_vars` hold the final values."""

    __slots__ = ("attrs_", "body", "iter_args_", "kind", "loop_var", "return_vars_", "start", "step", "stop")
    FIELDS = (
        define("loop_var"), use("start"), use("stop"), use("step"), define("iter_args", ITER_ARGS),
        use("body"), define("return_vars", NODES), use("kind", VALUE), use("attrs", ATTRS),
    )  # fmt: skip

    loop_var: Var
    start: Expr
    stop: Expr
    step: Expr
    iter_args_: tuple[IterArg, ...]
    body: Stmt
    return_vars_: tuple[Var, ...]
    kind: ForKind
    attrs_: AttrDict

    def __init__(
        self,
        loop_var: Var,
        start: Expr,
        stop: Expr,
        step: Expr,
        iter_args: Sequence[IterArg],
        body: Stmt,
        return_vars: Sequence[Var],
        span: Span,
        kind: ForKind = ForKind.Sequential,
        attrs: Any = None,
    ) -> None:
        expect(loop_var, Var, "ForStmt.loop_var")
        for name, bound in (("start", start), ("stop", stop), ("step", step)):
            expect(bound, Expr, f"ForStmt.{name}")
        carried = expect_all(iter_args, IterArg, "ForStmt.iter_args")
        expect(body, Stmt, "ForStmt.body")
        results = expect_all(return_vars, Var, "ForStmt.return_vars")
        expect(span, Span, "ForStmt.span")
        expect(kind, ForKind, "ForStmt.kind")
        self._fill(
            loop_var, start, stop, step, carried, body, results, kind, normalise_attrs("ForStmt", attrs), span
        )

    @property
    def iter_args(self) -> list[IterArg]:
        return list(self.iter_args_)

    @property
    def return_vars(self) -> list[Var]:
        return list(self.return_vars_)

    @property
    def attrs(self) -> AttrDict:
        return read_back(self.attrs_)


class WhileStmt(Stmt):
    """A loop that runs while its condition, which may read the carried values, holds."""

    __slots__ = ("body", "condition", "iter_args_", "return_vars_")
    FIELDS = (
        define("iter_args", ITER_ARGS), use("condition"), use("body"), define("return_vars", NODES),
    )  # fmt: skip
    VISIT_ORDER = ("condition", "iter_args", "body", "return_vars")

    condition: Expr
    iter_args_: tuple[IterArg, ...]
    body: Stmt
    return_vars_: tuple[Var, ...]

    def __init__(
        self,
        condition: Expr,
        iter_args: Sequence[IterArg],
        body: Stmt,
        return_vars: Sequence[Var],
        span: Span,
    ) -> None:
        expect(condition, Expr, "WhileStmt.condition")
        carried = expect_all(iter_args, IterArg, "WhileStmt.iter_args")
        expect(body, Stmt, "WhileStmt.body")
        results = expect_all(return_vars, Var, "WhileStmt.return_vars")
        expect(span, Span, "WhileStmt.span")
        self._fill(carried, condition, body, results, span)

    @property
    def iter_args(self) -> list[IterArg]:
        return list(self.iter_args_)

    @property
    def return_vars(self) -> list[Var]:
        return list(self.return_vars_)


class SeqStmts(Stmt):
    """Statements in order. Nested sequences stay as they are; `flatten_stmts` makes the normal form."""

    __slots__ = ("stmts_",)
    FIELDS = (use("stmts", NODES),)

    stmts_: tuple[Stmt, ...]

    def __init__(self, stmts: Sequence[Stmt], span: Span) -> None:
        expect(span, Span, "SeqStmts.span")
        self._fill(expect_all(stmts, Stmt, "SeqStmts.stmts"), span)

    @property
    def stmts(self) -> list[Stmt]:
        return list(self.stmts_)

    def __getitem__(self, index: int) -> Stmt:
        if not isinstance(index, int):
            raise TypeError(f"SeqStmts indices must be ints, got {type(index).__name__}")
        if not -len(self.stmts_) <= index < len(self.stmts_):
            raise IndexError(f"SeqStmts index {index} is out of range for {len(self.stmts_)} statements")
        return self.stmts_[index]


class BreakStmt(Stmt):
    """Leaves the innermost loop."""

    __slots__ = ()
    FIELDS = ()

    def __init__(self, span: Span) -> None:
        expect(span, Span, "BreakStmt.span")
        self._fill(span)


class ContinueStmt(Stmt):
    """Goes on with the next iteration of the innermost loop."""

    __slots__ = ()
    FIELDS = ()

    def __init__(self, span: Span) -> None:
        expect(span, Span, "ContinueStmt.span")
        self._fill(span)


class InlineStmt(Stmt):
    """Source text in another language that no pass looks into."""

    __slots__ = ("body", "language")
    FIELDS = (use("body", VALUE), use("language", VALUE))

    body: str
    language: InlineLanguage

    def __init__(self, body: str, language: InlineLanguage, span: Span) -> None:
        expect(body, str, "InlineStmt.body")
        expect(language, InlineLanguage, "InlineStmt.language")
        expect(span, Span, "InlineStmt.span")
        self._fill(body, language, span)


def flatten_stmts(stmts: Sequence[Stmt], span: Span) -> Stmt:
    """The normal form of a list of statements: nested sequences spliced in, a single statement left bare."""
    if len(stmts) == 1 and not isinstance(stmts[0], SeqStmts):
        return stmts[0]
    if not any(isinstance(stmt, SeqStmts) for stmt in stmts):
        return SeqStmts(stmts, span)
    flat: list[Stmt] = []
    pending = list(reversed(stmts))
    while pending:
        stmt = pending.pop()
        if isinstance(stmt, SeqStmts):
            pending += reversed(stmt.stmts_)
        else:
            flat.append(stmt)
    return flat[0] if len(flat) == 1 else SeqStmts(flat, span)
