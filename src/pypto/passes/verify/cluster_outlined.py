"""ClusterOutlined: no Cluster or Spmd scope outside the wrappers that they became."""

from __future__ import annotations

from pypto import ir
from pypto.passes.diagnostics import Diagnostic
from pypto.passes.verify.scopes import remaining_scopes

_WRAPPERS = (ir.FunctionType.Group, ir.FunctionType.Spmd)


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return the remaining Cluster and Spmd scopes."""
    return remaining_scopes(
        program,
        {
            ir.ClusterScopeStmt: "Cluster ScopeStmt found in non-Group function",
            ir.SpmdScopeStmt: "Spmd ScopeStmt found in non-Group function",
        },
        lambda function: function.func_type not in _WRAPPERS,
        "ClusterOutlined",
    )
