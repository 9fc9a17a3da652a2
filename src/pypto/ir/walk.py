"""Iterative traversal of programs, without recursion: depth follows the user's program.

`walk` yields every node in visiting order and once per edge; a shared node is met once per use unless `once`
is set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pypto.ir.expr import Expr, Var
from pypto.ir.node import IRNode
from pypto.ir.scope import ScopeStmt
from pypto.ir.stmt import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
    flatten_stmts,
)
from pypto.ir.types import Type

_SIMPLE = (AssignStmt, EvalStmt, YieldStmt, ReturnStmt)
"""The common statements without statements inside them."""


def children(node: IRNode) -> Sequence[IRNode]:
    """The direct child nodes in visiting order, references in attributes included, types not."""
    return node._children()


def walk(root: IRNode, *, once: bool = False) -> Iterator[IRNode]:
    """`root` and everything below it, parents before children. With `once`, each object is met a single
    time."""
    pending: list[IRNode] = [root]
    seen: set[int] = set()
    while pending:
        node = pending.pop()
        if once:
            if id(node) in seen:
                continue
            seen.add(id(node))
        yield node
        below = node._children()
        if below:
            pending += reversed(below)


def substatements(stmt: Stmt) -> tuple[Stmt, ...]:
    """The statements directly inside a statement."""
    if isinstance(stmt, SeqStmts):
        return stmt.stmts_
    if isinstance(stmt, (ForStmt, WhileStmt, ScopeStmt)):
        return (stmt.body,)
    if isinstance(stmt, IfStmt):
        return (stmt.then_body,) if stmt.else_body is None else (stmt.then_body, stmt.else_body)
    return ()


def walk_stmts(root: Stmt) -> Iterator[Stmt]:
    """`root` and every statement below it, in program order, outer before inner."""
    pending = [root]
    while pending:
        stmt = pending.pop()
        yield stmt
        if not isinstance(stmt, _SIMPLE):
            pending += reversed(substatements(stmt))


def exprs_of(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions and variables that a statement holds directly, not those of statements inside it."""
    return tuple(child for child in stmt._children() if isinstance(child, Expr))


def vars_in(expr: Expr, *, types: bool = False) -> Iterator[Var]:
    """Each reference to a variable inside `expr`, in order; with `types`, also those in the types of its
    nodes.

    A shared subexpression is entered once.
    """
    if isinstance(expr, Var) and not types:
        yield expr
        return
    pending: list[Any] = [expr]
    entered: set[int] = set()
    while pending:
        node = pending.pop()
        if isinstance(node, Var):
            yield node
            if types and id(node) not in entered:
                entered.add(id(node))
                pending += reversed(node.type._children())
            continue
        below = node._children()
        if not below and not types:
            continue
        if id(node) in entered:
            continue
        entered.add(id(node))
        pending += reversed(below)
        if types:
            pending += reversed(node.type._children())


def type_exprs(type: Type) -> Sequence[Expr]:
    """The expressions directly inside a type: extents, view fields, memory reference."""
    return type._children()


def map_substatements(stmt: Stmt, f: Callable[[Stmt], Stmt]) -> Stmt:
    """Copy-on-write: `f` over the statements directly inside `stmt`; changed sequences get their normal
    form."""
    if isinstance(stmt, SeqStmts):
        mapped = [f(inner) for inner in stmt.stmts_]
        if all(new is old for new, old in zip(mapped, stmt.stmts_, strict=True)):
            return stmt
        return flatten_stmts(mapped, stmt.span)
    if isinstance(stmt, (ForStmt, WhileStmt, ScopeStmt)):
        body = f(stmt.body)
        return stmt if body is stmt.body else stmt.replace(body=body)
    if isinstance(stmt, IfStmt):
        then_body = f(stmt.then_body)
        else_body = None if stmt.else_body is None else f(stmt.else_body)
        if then_body is stmt.then_body and else_body is stmt.else_body:
            return stmt
        return stmt.replace(then_body=then_body, else_body=else_body)
    return stmt
