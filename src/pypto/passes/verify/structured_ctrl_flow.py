"""StructuredCtrlFlow: no break and no continue in kernels."""

from __future__ import annotations

from pypto import ir
from pypto.ir.walk import walk_stmts
from pypto.passes.diagnostics import Diagnostic, error

_CODES: dict[type[ir.Stmt], int] = {ir.BreakStmt: 0, ir.ContinueStmt: 1}


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return the remaining breaks and continues."""
    return [
        error(
            "StructuredCtrlFlow",
            _CODES[type(stmt)],
            f"{type(stmt).__name__} remains in {function.func_type.name} function '{function.name}'",
            stmt.span,
        )
        for function in program.functions_.values()
        if ir.is_incore_type(function.func_type)
        for stmt in walk_stmts(function.body)
        if type(stmt) in _CODES
    ]
