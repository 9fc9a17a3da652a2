"""Bodies as plain lists of statements."""

from __future__ import annotations

from pypto import ir


def flat_stmts(body: ir.Stmt) -> list[ir.Stmt]:
    """Return the statements of a body with nested sequences spliced in, whatever their depth."""
    stmts = ir.flatten_to_stmts(body)
    if any(isinstance(stmt, ir.SeqStmts) for stmt in stmts):
        return ir.flatten_to_stmts(ir.flatten_stmts(stmts, body.span))
    return stmts
