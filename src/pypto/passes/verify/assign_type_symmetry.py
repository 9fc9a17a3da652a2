"""AssignTypeSymmetry: a variable has the type of the value assigned to it. Checked on demand only."""

from __future__ import annotations

from pypto import ir
from pypto.ir.walk import walk_stmts
from pypto.passes.diagnostics import Diagnostic, error


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return the assignments whose two types differ; memory references are not compared."""
    return [
        error(
            "AssignTypeSymmetry",
            1,
            f"Variable '{stmt.var.name_hint}' has type {stmt.var.type}, but its value has type "
            f"{stmt.value.type} in function '{function.name}'",
            stmt.span,
        )
        for function in program.functions_.values()
        for stmt in walk_stmts(function.body)
        if isinstance(stmt, ir.AssignStmt) and not _is_same(stmt.var.type, stmt.value.type)
    ]


def _is_same(left: ir.Type, right: ir.Type) -> bool:
    return left is right or ir.structural_equal(left, right)
