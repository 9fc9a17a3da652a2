"""Takes apart the tuples that `a, b = b, a` makes: a kernel has no place for a value of several parts."""

from __future__ import annotations

from pypto import ir
from pypto.ir.walk import exprs_of, map_substatements, vars_in, walk_stmts

__all__ = ["without_tuple_literals"]


def without_tuple_literals(function: ir.Function) -> ir.Function:
    """The function reading elements where it read them from a tuple that it had just made.

    A tuple that is used as a whole stays.
    """
    literals: dict[ir.Var, ir.MakeTuple] = {}
    whole: set[ir.Var] = set()
    for stmt in walk_stmts(function.body):
        if isinstance(stmt, ir.AssignStmt) and isinstance(stmt.value, ir.MakeTuple):
            literals[stmt.var] = stmt.value
        for expr in exprs_of(stmt):
            if expr is not getattr(stmt, "var", None) and _element_of(expr) is None:
                whole.update(vars_in(expr))
    for var in whole:
        literals.pop(var, None)
    if not literals:
        return function

    def rewrite(stmt: ir.Stmt) -> ir.Stmt:
        if not isinstance(stmt, ir.AssignStmt):
            return map_substatements(stmt, rewrite)
        if stmt.var in literals:
            return ir.SeqStmts([], stmt.span)
        item, source = stmt.value, _element_of(stmt.value)
        if source in literals and isinstance(item, ir.TupleGetItemExpr):
            return stmt.replace(value=literals[source].elements_[item.index])
        return stmt

    return function.replace(body=rewrite(function.body))


def _element_of(expr: ir.Expr) -> ir.Var | None:
    """The tuple variable that an expression takes one element of."""
    if isinstance(expr, ir.TupleGetItemExpr) and isinstance(expr.tuple, ir.Var):
        return expr.tuple
    return None
