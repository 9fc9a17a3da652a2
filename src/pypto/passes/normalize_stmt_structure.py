"""NormalizeStmtStructure: one form for sequences.

`[a, [b, c], d]` becomes `[a, b, c, d]`, `[a]` becomes `a`, an empty sequence stays. Nothing else changes, and
what already has the form keeps its identity.
"""

from __future__ import annotations

from pypto import ir
from pypto.ir.walk import map_substatements
from pypto.passes.base import IRProperty, Pass, PassProperties, create_function_pass, property_set


def normalize_stmt_structure() -> Pass:
    """Make the NormalizeStmtStructure pass."""
    produced = property_set(IRProperty.NormalizedStmtStructure)
    return create_function_pass(
        _normalize_function, "NormalizeStmtStructure", PassProperties(produced=produced)
    )


def _normalize_function(function: ir.Function) -> ir.Function:
    body = _normalize(function.body)
    return function if body is function.body else function.replace(body=body)


def _normalize(stmt: ir.Stmt) -> ir.Stmt:
    result = map_substatements(stmt, _normalize)
    if result is stmt and isinstance(stmt, ir.SeqStmts) and not _is_normal(stmt):
        return ir.flatten_stmts(stmt.stmts_, stmt.span)
    return result


def _is_normal(sequence: ir.SeqStmts) -> bool:
    return len(sequence.stmts_) != 1 and not any(isinstance(stmt, ir.SeqStmts) for stmt in sequence.stmts_)
