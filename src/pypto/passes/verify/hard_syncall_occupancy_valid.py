"""HardSyncallOccupancyValid: a hard barrier over all blocks has all blocks running at once.

A hard `system.syncall` waits for every core of its kind. So the launch must fill the machine exactly, start
all blocks together, and the barrier must name the kind of core that its kernel runs on. A launch of unknown
width is not judged by its width.
"""

from __future__ import annotations

from collections.abc import Iterator

from pypto import ir
from pypto.ir.walk import exprs_of, walk_stmts
from pypto.passes.diagnostics import Diagnostic, error
from pypto.passes.expand_mixed_kernel import core_sides
from pypto.passes.outline.launch_spec import LaunchSpec, effective_launch_spec, is_launch_wrapper
from pypto.passes.target import TargetFacts, current_target
from pypto.passes.verify.dispatches import dispatches_of

_RULE = "HardSyncallOccupancy"
_BARRIER = "system.syncall"
_CORE_TYPES = {
    frozenset({"cube"}): "aic_only",
    frozenset({"vector"}): "aiv_only",
    frozenset({"cube", "vector"}): "mix",
}
_QUERIES = {"system.available_cluster_count": "cluster", "system.available_aiv_count": "vector core"}


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return the hard barriers that would wait forever; none without a target."""
    target = current_target()
    if target is None or not any(_barriers(function) for function in program.functions_.values()):
        return []
    found: list[Diagnostic] = []
    functions = program.functions_
    for function in functions.values():
        if function.func_type in (ir.FunctionType.Group, ir.FunctionType.Spmd):
            continue  # what they dispatch is launched where they are dispatched themselves
        for dispatch in dispatches_of(function):
            spec = effective_launch_spec(dispatch, functions)
            if spec is not None:
                for kernel, core_type in _launched(functions[dispatch.op.name], functions):
                    found += _judge(kernel, core_type, spec, target)
    return found


def _launched(
    callee: ir.Function, functions: dict[str, ir.Function]
) -> Iterator[tuple[ir.Function, str | None]]:
    """The kernels that a launch of `callee` runs, each with the kinds of core of its block."""
    if is_launch_wrapper(callee):
        for dispatch in dispatches_of(callee):
            yield from _launched(functions[dispatch.op.name], functions)
    elif callee.func_type is ir.FunctionType.Group:
        for dispatch in dispatches_of(callee):
            yield functions[dispatch.op.name], "mix"
    else:
        yield callee, _core_type(callee)


def _core_type(kernel: ir.Function) -> str | None:
    """The `core_type` that a barrier in `kernel` has to name, None if it cannot be told."""
    sides = {
        side
        for stmt in walk_stmts(kernel.body)
        for call in exprs_of(stmt)
        if isinstance(call, (ir.Call, ir.Submit)) and call.op.name != _BARRIER
        for side in core_sides(call)
    }
    return _CORE_TYPES.get(frozenset(sides))


def _judge(
    kernel: ir.Function, core_type: str | None, spec: LaunchSpec, target: TargetFacts
) -> Iterator[Diagnostic]:
    for barrier in _barriers(kernel):
        named = barrier.kwargs_.get("core_type", "mix")
        where = f"the hard system.syncall in '{kernel.name}'"
        if core_type not in (None, "mix", named):
            message = f"{where} waits for {named}, but the kernel runs on {core_type} cores"
            yield error(_RULE, 0, message, barrier.span)
            continue
        if not spec.sync_start:
            message = f"{where} needs all blocks at once: launch it with pl.spmd(..., sync_start=True)"
            yield error(_RULE, 0, message, barrier.span)
        kind, count = _full_width(core_type or named, target)
        width = _width_problem(spec.core_num, kind, count)
        if width is not None:
            message = (
                f"{where} needs full occupancy of backend {target.arch}, one block per {kind} "
                f"({count}), but the launch has {width}"
            )
            yield error(_RULE, 0, message, barrier.span)


def _full_width(core_type: str, target: TargetFacts) -> tuple[str, int]:
    if core_type == "aiv_only":
        return "vector core", target.vector_cores
    return "cluster", target.cube_cores


def _width_problem(core_num: ir.Expr, kind: str, count: int) -> str | None:
    """The width of a launch that does not fill the machine, in words; None if it does or is unknown."""
    if isinstance(core_num, ir.ConstInt):
        return None if core_num.value == count else f"{core_num.value} blocks"
    if isinstance(core_num, ir.Call) and core_num.op.name in _QUERIES:
        counted = _QUERIES[core_num.op.name]
        return None if counted == kind else f"one block per {counted}"
    return None


def _barriers(function: ir.Function) -> list[ir.Call]:
    return [
        expr
        for stmt in walk_stmts(function.body)
        for expr in exprs_of(stmt)
        if isinstance(expr, ir.Call)
        and expr.op.name == _BARRIER
        and expr.kwargs_.get("mode", "hard") == "hard"
    ]
