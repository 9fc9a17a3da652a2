"""HierarchyOutlined: no Hierarchy scope in Opaque functions."""

from __future__ import annotations

from pypto import ir
from pypto.passes.diagnostics import Diagnostic
from pypto.passes.verify.scopes import remaining_scopes


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return the remaining Hierarchy scopes."""
    return remaining_scopes(
        program,
        {ir.HierarchyScopeStmt: "Hierarchy ScopeStmt should have been outlined from Opaque function"},
        lambda function: function.func_type is ir.FunctionType.Opaque,
        "HierarchyOutlined",
    )
