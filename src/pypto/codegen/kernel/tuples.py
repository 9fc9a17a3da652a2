"""Taking apart the tuples that only pack values to be unpacked, as `x, y = y, x` does.

Such a tuple is no value of its own: each of its elements keeps its name, and taking one out is another name
for it. Storage planning and emission then see plain aliases.
"""

from __future__ import annotations

from pypto import ir
from pypto.ir.walk import map_substatements

__all__ = ["without_packed_tuples"]


def without_packed_tuples(func: ir.Function) -> ir.Function:
    """The function with elements instead of projections from its packed tuples; itself if it packs none."""
    packed: dict[ir.Var, tuple[ir.Expr, ...]] = {}

    def unpack(stmt: ir.Stmt) -> ir.Stmt:
        if not isinstance(stmt, ir.AssignStmt):
            return map_substatements(stmt, unpack)
        value = stmt.value
        if isinstance(value, ir.MakeTuple):
            packed[stmt.var] = value.elements_
            return ir.SeqStmts([], stmt.span)
        if (
            isinstance(value, ir.TupleGetItemExpr)
            and isinstance(value.tuple, ir.Var)
            and value.tuple in packed
        ):
            return stmt.replace(value=packed[value.tuple][value.index])
        return stmt

    return func.replace(body=unpack(func.body))
