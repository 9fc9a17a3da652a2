"""Taking values out of what loops and branches hand on.

SSA form carries every name that a loop assigns and that existed before, read or not. A name that each kernel
scope uses anew for a tile is carried through the orchestration around them, although a tile never leaves its
kernel; `without_unread_tiles` removes such carries.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pypto import ir
from pypto.ir.node import attr_references
from pypto.ir.walk import map_substatements, vars_in, walk_stmts

__all__ = ["items_without", "with_fewer_yields", "without_unread_tiles"]


def items_without(items: Sequence[ir.Var], dropped: Sequence[bool]) -> list[ir.Var]:
    """The items whose positions are not `dropped`."""
    return [item for item, drop in zip(items, dropped, strict=True) if not drop]


def with_fewer_yields(body: ir.Stmt, dropped: Sequence[bool]) -> ir.Stmt:
    """A loop or branch body with a trailing yield of the values that are still handed on."""
    *front, last = ir.flatten_to_stmts(body)
    if isinstance(last, ir.YieldStmt):
        values = [value for value, drop in zip(last.value_, dropped, strict=True) if not drop]
        tail: list[ir.Stmt] = [last.replace(value=values)] if values else []
        return ir.flatten_stmts([*front, *tail], body.span)
    assert isinstance(last, ir.ScopeStmt)
    return ir.flatten_stmts([*front, last.replace(body=with_fewer_yields(last.body, dropped))], body.span)


def without_unread_tiles(function: ir.Function) -> ir.Function:
    """Return an orchestration whose loops and branches hand on no tiles, if nothing reads these."""
    hands_on_tiles = any(
        isinstance(var.type, ir.TileType)
        for stmt in walk_stmts(function.body)
        for var in getattr(stmt, "return_vars_", ())
    )
    if not hands_on_tiles or _reads_tiles(function.body):
        return function
    return function.replace(body=_without_tiles(function.body))


def _reads_tiles(body: ir.Stmt) -> bool:
    return any(
        isinstance(var.type, ir.TileType)
        for stmt in walk_stmts(body)
        for expr in _read_by(stmt)
        for var in vars_in(expr)
    )


def _read_by(stmt: ir.Stmt) -> Iterable[ir.Expr]:
    """What a statement reads; to hand a value on is not to read it."""
    match stmt:
        case ir.AssignStmt():
            return (stmt.value,)
        case ir.EvalStmt():
            return (stmt.expr,)
        case ir.ForStmt():
            return (stmt.start, stmt.stop, stmt.step)
        case ir.WhileStmt() | ir.IfStmt():
            return (stmt.condition,)
        case ir.ReturnStmt():
            return stmt.value_
        case ir.ScopeStmt():
            return attr_references(stmt.attrs_)
    return ()


def _without_tiles(stmt: ir.Stmt) -> ir.Stmt:
    stmt = map_substatements(stmt, _without_tiles)
    if not isinstance(stmt, (ir.ForStmt, ir.WhileStmt, ir.IfStmt)):
        return stmt
    dropped = [isinstance(var.type, ir.TileType) for var in stmt.return_vars_]
    if not any(dropped):
        return stmt
    results = items_without(stmt.return_vars_, dropped)
    if isinstance(stmt, ir.IfStmt):
        assert stmt.else_body is not None  # both branches hand on what the `if` does
        branches = [with_fewer_yields(each, dropped) for each in (stmt.then_body, stmt.else_body)]
        otherwise = branches[1] if ir.flatten_to_stmts(branches[1]) else None
        return stmt.replace(then_body=branches[0], else_body=otherwise, return_vars=results)
    return stmt.replace(
        iter_args=items_without(stmt.iter_args_, dropped),
        return_vars=results,
        body=with_fewer_yields(stmt.body, dropped),
    )
