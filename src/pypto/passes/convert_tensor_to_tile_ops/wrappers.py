"""Groups and Spmd functions that do more than launch.

A wrapper forwards its parameters, and scalars computed from these, to the kernels of one launch. A body with
loops, branches, slices or buffers of its own describes a piece of orchestration instead: it becomes an
Orchestration, which is taken into its callers later (InlineOrchestrations). Each kernel in it is launched as
the wrapper was. Kernels of both core types that a program declares itself stay together in their group, since
they may wait for one another.
"""

from __future__ import annotations

from pypto import ir
from pypto.ir.walk import exprs_of, walk, walk_stmts
from pypto.passes.convert_tensor_to_tile_ops.call_sites import wrappers_callees_first
from pypto.passes.storage import is_builtin

__all__ = ["with_orchestrating_wrappers"]

_STRAIGHT = (ir.AssignStmt, ir.EvalStmt, ir.ReturnStmt, ir.SeqStmts)


def with_orchestrating_wrappers(program: ir.Program) -> ir.Program:
    """Turn the wrappers that do more than launch into orchestrations, and those that launch such a one."""
    functions = dict(program.functions_)
    for name in wrappers_callees_first(program):
        if _orchestrates(functions[name], functions):
            functions[name] = functions[name].replace(
                func_type=ir.FunctionType.Orchestration, level=ir.Level.CHIP, role=ir.Role.Orchestrator
            )
    return program.replace(functions=functions)


def _orchestrates(wrapper: ir.Function, functions: dict[str, ir.Function]) -> bool:
    stmts = list(walk_stmts(wrapper.body))
    calls = [
        node
        for stmt in stmts
        for expr in exprs_of(stmt)
        for node in walk(expr)
        if isinstance(node, (ir.Call, ir.Submit))
    ]
    kinds = {functions[call.op.name].func_type for call in calls if call.op.name in functions}
    if {ir.FunctionType.AIC, ir.FunctionType.AIV} <= kinds:
        return False
    return (
        ir.FunctionType.Orchestration in kinds
        or not all(isinstance(stmt, _STRAIGHT) for stmt in stmts)
        or any(is_builtin(call.op) for call in calls)
    )
