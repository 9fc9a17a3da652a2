"""SplitIncoreOrch: kernel regions are functions; orchestration computes nothing itself.

A compute operator left in an orchestration is only a warning: it will run on the host.
"""

from __future__ import annotations

from pypto import ir
from pypto.ir.walk import exprs_of, walk, walk_stmts
from pypto.passes.diagnostics import Diagnostic, warning
from pypto.passes.verify.scopes import remaining_scopes

_RULE = "SplitIncoreOrch"
_ORCHESTRATING = (ir.FunctionType.Orchestration, ir.FunctionType.Graph)
_MOVES_ONLY = frozenset(
    f"tensor.{name}"
    for name in (
        "create",
        "read",
        "write",
        "slice",
        "assemble",
        "dim",
        "reshape",
        "reinterpret_view",
        "transpose",
        "view",
    )
)


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return the InCore scopes outside kernels, and compute operators in orchestrations."""
    found = remaining_scopes(
        program,
        {ir.InCoreScopeStmt: "InCore ScopeStmt found in non-InCore function"},
        lambda function: not ir.is_incore_type(function.func_type),
        _RULE,
    )
    for function in program.functions_.values():
        if function.func_type in _ORCHESTRATING:
            found += _compute_calls(function)
    return found


def _compute_calls(function: ir.Function) -> list[Diagnostic]:
    return [
        warning(
            _RULE,
            0,
            f"Compute tensor op '{node.op.name}' found in Orchestration function '{function.name}'",
            node.span,
        )
        for stmt in walk_stmts(function.body)
        for expr in exprs_of(stmt)
        for node in walk(expr, once=True)
        if isinstance(node, ir.Call) and _is_tensor_compute(node)
    ]


def _is_tensor_compute(call: ir.Call) -> bool:
    name = call.op.name
    return name.startswith("tensor.") and name not in _MOVES_ONLY and not isinstance(call.op, ir.GlobalVar)
