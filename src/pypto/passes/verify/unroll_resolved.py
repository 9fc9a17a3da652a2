"""UnrollResolved: no unroll loop remains."""

from __future__ import annotations

from pypto import ir
from pypto.ir.walk import walk_stmts
from pypto.passes.diagnostics import Diagnostic, error


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return the remaining unroll loops."""
    return [
        error("UnrollResolved", 0, f"Unroll loop remains in function '{function.name}'", stmt.span)
        for function in program.functions_.values()
        for stmt in walk_stmts(function.body)
        if isinstance(stmt, ir.ForStmt) and stmt.kind is ir.ForKind.Unroll
    ]
