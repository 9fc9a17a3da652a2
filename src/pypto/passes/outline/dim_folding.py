"""Reads of declared dynamic extents become the extents themselves.

A parser that sees an Orchestration function folds `m = pl.tensor.dim(x, 0)` to the symbol `M` of `x:
Tensor[[M, ..]]`. It cannot do so for a function whose type is not known yet; when outlining makes such a
function an Orchestration, it folds here, so that both spellings of a program become the same program.
"""

from __future__ import annotations

from pypto import ir
from pypto.ir.rewrite import Substitution, map_expr
from pypto.ir.walk import map_substatements, walk_stmts

__all__ = ["fold_declared_extents"]

_DIM = "tensor.dim"


def fold_declared_extents(function: ir.Function) -> ir.Function:
    """Return `function` without its reads of extents that its signature declares as symbols."""
    symbols = {
        dim
        for param in function.params_
        if type(param.type) is ir.TensorType
        for dim in param.type.shape_
        if isinstance(dim, ir.Var)
    }
    if not symbols:
        return function
    folded = _find_reads(function.body, symbols)
    body = function.body
    if folded:
        kept = ir.flatten_stmts([_without_definitions(body, folded)], body.span)
        body = Substitution(folded).stmt(kept)
    return function.replace(body=_with_folded_counts(body, symbols))


def _with_folded_counts(stmt: ir.Stmt, symbols: set[ir.Var]) -> ir.Stmt:
    """Fold reads inside the block count of a launch as well: no assignment binds them, but the parser folds
    them.
    """
    if not isinstance(stmt, ir.SpmdScopeStmt):
        return map_substatements(stmt, lambda inner: _with_folded_counts(inner, symbols))

    def fold(expr: ir.Expr) -> ir.Expr:
        extent = _extent_read(expr)
        return extent if isinstance(extent, ir.Var) and extent in symbols else expr

    return stmt.replace(core_num=map_expr(stmt.core_num, fold), body=_with_folded_counts(stmt.body, symbols))


def _find_reads(body: ir.Stmt, symbols: set[ir.Var]) -> dict[ir.Var, ir.Expr]:
    """The variables that hold a declared extent, with the symbol.

    A read from a tensor that is itself shaped by such a variable counts too.
    """
    folded: dict[ir.Var, ir.Expr] = {}
    for stmt in walk_stmts(body):
        if not isinstance(stmt, ir.AssignStmt):
            continue
        extent = _extent_read(stmt.value)
        if isinstance(extent, ir.Var):
            symbol = folded.get(extent, extent)
            if symbol in symbols:
                folded[stmt.var] = symbol
    return folded


def _extent_read(value: ir.Expr) -> ir.Expr | None:
    """The extent that a `tensor.dim` with a constant axis reads."""
    if not isinstance(value, ir.Call) or value.op.name != _DIM or len(value.args_) != 2:
        return None
    tensor, axis = value.args_
    if type(tensor.type) is not ir.TensorType or not isinstance(axis, ir.ConstInt):
        return None
    rank = len(tensor.type.shape_)
    return tensor.type.shape_[axis.value] if -rank <= axis.value < rank else None


def _without_definitions(stmt: ir.Stmt, folded: dict[ir.Var, ir.Expr]) -> ir.Stmt:
    if isinstance(stmt, ir.AssignStmt):
        return ir.SeqStmts([], stmt.span) if stmt.var in folded else stmt
    return map_substatements(stmt, lambda inner: _without_definitions(inner, folded))
