"""DistTensorCtxMaterialized: communication contexts are looked up by host orchestration only."""

from __future__ import annotations

from pypto import ir
from pypto.ir.walk import exprs_of, walk, walk_stmts
from pypto.passes.diagnostics import Diagnostic, error

_LOOKUP = "pld.system.get_comm_ctx"


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return the look-ups in other functions."""
    return [
        error(
            "DistTensorCtxMaterialized",
            0,
            f"'{_LOOKUP}' in function '{function.name}', which is not a host orchestration",
            node.span,
        )
        for function in program.functions_.values()
        if not _is_host_orchestration(function)
        for stmt in walk_stmts(function.body)
        for expr in exprs_of(stmt)
        for node in walk(expr, once=True)
        if isinstance(node, ir.Call) and node.op.name == _LOOKUP
    ]


def _is_host_orchestration(function: ir.Function) -> bool:
    return (
        function.role is ir.Role.Orchestrator
        and function.level is not None
        and function.level.value >= ir.Level.HOST.value
    )
