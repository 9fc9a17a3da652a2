"""ExpandMixedKernel: every kernel gets the core type on which it runs.

On a device a kernel with matrix and vector work becomes two functions that exchange tiles between two cores.
A CPU has one kind of core, so here a kernel stays one function: one with matrix work only becomes AIC, any
other becomes AIV, also one with both, and its `pl.split_aiv` regions become loops over the vector lanes.
Hand-written AIC, AIV and Group functions stay as they are.

A Group has to launch a vector lane. A kernel with matrix work only that some Group dispatches without any
vector kernel beside it therefore becomes AIV as well.
"""

from __future__ import annotations

from pypto import ir
from pypto.ir.op_registry import get_op_def
from pypto.ir.rewrite import map_values
from pypto.ir.walk import exprs_of, walk_stmts
from pypto.passes.base import (
    IRProperty,
    Pass,
    PassProperties,
    create_program_pass,
    property_set,
)
from pypto.passes.lane_regions import unfold_lane_regions
from pypto.passes.storage import is_builtin

__all__ = ["core_sides", "expand_mixed_kernel", "pipe_of"]

_PROPERTIES = PassProperties(
    required=property_set(
        IRProperty.SSAForm,
        IRProperty.IncoreTileOps,
        IRProperty.SplitIncoreOrch,
        IRProperty.TileOps2D,
        IRProperty.TileMemoryInferred,
        IRProperty.NormalizedStmtStructure,
    ),
    produced=property_set(
        IRProperty.SSAForm,
        IRProperty.MixedKernelExpanded,
        IRProperty.NormalizedStmtStructure,
        IRProperty.HardSyncallOccupancyValid,
    ),
    # kernels compute here on tiles of any rank, and on matrix results where they are
    nominal=property_set(IRProperty.TileOps2D, IRProperty.TileMemoryInferred),
)

_MATRIX_PREFIXES = ("tile.matmul", "tile.gemv", "tile.batch_matmul")
_MATRIX_SPACES = frozenset(
    {
        ir.MemorySpace.Mat,
        ir.MemorySpace.Left,
        ir.MemorySpace.Right,
        ir.MemorySpace.Acc,
        ir.MemorySpace.Bias,
        ir.MemorySpace.LeftScale,
        ir.MemorySpace.RightScale,
    }
)
_BY_SOURCE_SPACE = frozenset(
    {
        "tile.store",
        "tile.reshape",
        "tile.move",
        "tile.slice",
        "tile.transpose_view",
        "tile.set_validshape",
        "tile.reinterpret_view",
    }
)
_PLACEMENT = "core_placement"
_FED_BY_MTE1 = frozenset({ir.MemorySpace.Left, ir.MemorySpace.Right, ir.MemorySpace.Bias})


def expand_mixed_kernel() -> Pass:
    """Return the pass that turns InCore functions into AIC and AIV functions."""
    return create_program_pass(_expand, "ExpandMixedKernel", _PROPERTIES)


def _expand(program: ir.Program) -> ir.Program:
    kernels = {
        name: function
        for name, function in program.functions_.items()
        if function.func_type is ir.FunctionType.InCore
    }
    if not kernels:
        return program
    matrix_only = {name for name, function in kernels.items() if _is_matrix_only(function)}
    matrix_only -= _needed_as_vector_lane(program, matrix_only)
    functions = {
        name: _placed(function, ir.FunctionType.AIC if name in matrix_only else ir.FunctionType.AIV)
        if name in kernels
        else function
        for name, function in program.functions_.items()
    }
    return program.replace(functions=functions)


def _is_matrix_only(function: ir.Function) -> bool:
    sides = {side for call in _calls(function) for side in core_sides(call)}
    return sides == {"cube"}


def core_sides(call: ir.Call | ir.Submit) -> tuple[str, ...]:
    """The kinds of core that a call needs: none for control, both for a move from one side to the other."""
    name = call.op.name
    if call.attrs_.get(_PLACEMENT) == "aiv":
        return ("vector",)
    if name.startswith(_MATRIX_PREFIXES):
        return ("cube",)
    if name == "tile.load":
        return (_side_of(call.kwargs_.get("target_memory")),)
    if name in _BY_SOURCE_SPACE:
        source = call.args_[0].type
        side = _side_of(source.memory_space if isinstance(source, ir.TileType) else None)
        if name == "tile.move":
            return (side, _side_of(call.kwargs_.get("target_memory")))
        return (side,)
    definition = get_op_def(name)
    if definition is not None and definition.affinity is not None:
        return () if definition.affinity == "shared" else (definition.affinity,)
    return ("vector",) if name.startswith("tile.") else ()


def pipe_of(call: ir.Call) -> ir.PipeType | None:
    """The pipe of a core that runs an operator; None if it touches no memory or is no work of a core."""
    name = call.op.name
    definition = get_op_def(name)
    if definition is None or definition.metadata_only:
        return None
    if name in ("tile.read", "tile.write", "tensor.read", "tensor.write"):
        return ir.PipeType.S
    if name.startswith(_MATRIX_PREFIXES):
        return ir.PipeType.M
    if name == "tile.load":
        return ir.PipeType.MTE2
    source = call.args_[0].type if call.args_ else None
    from_acc = isinstance(source, ir.TileType) and source.memory_space is ir.MemorySpace.Acc
    if name == "tile.store":
        return ir.PipeType.FIX if from_acc else ir.PipeType.MTE3
    if name == "tile.move":
        if from_acc:
            return ir.PipeType.FIX
        return ir.PipeType.MTE1 if call.kwargs_.get("target_memory") in _FED_BY_MTE1 else ir.PipeType.V
    return ir.PipeType.V if core_sides(call) == ("vector",) else None


def _side_of(space: ir.MemorySpace | None) -> str:
    return "cube" if space in _MATRIX_SPACES else "vector"


def _needed_as_vector_lane(program: ir.Program, matrix_only: set[str]) -> set[str]:
    """Matrix kernels that a Group dispatches without a vector kernel beside them."""
    needed: set[str] = set()
    for function in program.functions_.values():
        if function.func_type is ir.FunctionType.Group:
            callees = {call.op.name for call in _calls(function) if not is_builtin(call.op)}
            if callees and callees <= matrix_only:
                needed |= callees
    return needed


def _calls(function: ir.Function) -> list[ir.Call | ir.Submit]:
    return [
        expr
        for stmt in walk_stmts(function.body)
        for expr in exprs_of(stmt)
        if isinstance(expr, (ir.Call, ir.Submit))
    ]


def _placed(function: ir.Function, func_type: ir.FunctionType) -> ir.Function:
    """The function as a kernel of that core type; placement hints on its calls have served."""
    function = unfold_lane_regions(function)
    return function.replace(func_type=func_type, body=map_values(function.body, _without_placement))


def _without_placement(expr: ir.Expr) -> ir.Expr:
    if not isinstance(expr, ir.Call) or _PLACEMENT not in expr.attrs_:
        return expr
    return expr.replace(attrs={key: value for key, value in expr.attrs_.items() if key != _PLACEMENT})
