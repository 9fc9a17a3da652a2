"""ConvertTensorToTileOps: kernels compute on tiles instead of tensors.

Before this pass a kernel is a function from tensors to tensors. After it, it loads what it reads from global
memory into tiles, computes with tile operators, and stores what it returns to `Out` parameters that its
callers supply:

1. per kernel, every tensor variable is classified as memory or as a value, and the body is rewritten
   accordingly (`function.py`, `kernel.py`, one converter per operator in `converters.py`);
2. returned tiles leave through added `Out` parameters (`returns.py`);
3. written `In` parameters get the direction that says so (`directions.py`);
4. every dispatch passes the added outputs, and callers' parameters follow in direction (`call_sites.py`);
5. valid extents that only callers know become scalar parameters (`valid_extents.py`).

Before all this a wrapper that does more than launch becomes an orchestration (`wrappers.py`).

Where a load stands is a matter of correctness: it sees every earlier write to the same memory, whatever name
the write was made through, and none that comes later.
"""

from __future__ import annotations

from pypto import ir
from pypto.ir.walk import exprs_of, walk_stmts
from pypto.passes.base import IRProperty, Pass, PassProperties, create_program_pass, property_set
from pypto.passes.convert_tensor_to_tile_ops.call_sites import Output, pass_outputs
from pypto.passes.convert_tensor_to_tile_ops.directions import lift_callers
from pypto.passes.convert_tensor_to_tile_ops.function import LoweredKernel, lower_kernel
from pypto.passes.convert_tensor_to_tile_ops.kernel import NoTileConversion
from pypto.passes.convert_tensor_to_tile_ops.shared_arguments import shared_arguments
from pypto.passes.convert_tensor_to_tile_ops.valid_extents import pass_valid_extents
from pypto.passes.convert_tensor_to_tile_ops.wrappers import with_orchestrating_wrappers
from pypto.passes.flatten_call_expr import flatten_function
from pypto.passes.storage import ALL_VIEWS, ProgramStorage

__all__ = ["NoTileConversion", "convert_tensor_to_tile_ops"]

_PROPERTIES = PassProperties(
    required=property_set(IRProperty.SSAForm, IRProperty.SplitIncoreOrch, IRProperty.NormalizedStmtStructure),
    produced=property_set(
        IRProperty.SSAForm,
        IRProperty.IncoreTileOps,
        IRProperty.NormalizedStmtStructure,
        IRProperty.AivSplitValid,
    ),
    invalidated=property_set(IRProperty.AivSplitValid),
)


def convert_tensor_to_tile_ops() -> Pass:
    """Return the pass that lowers the tensor operators of kernels to tile operators."""
    return create_program_pass(_convert, "ConvertTensorToTileOps", _PROPERTIES)


def _convert(program: ir.Program) -> ir.Program:
    program = with_orchestrating_wrappers(program)
    program = program.replace(functions=[_with_named_tensors(f) for f in program.functions_.values()])
    lowered = _lower_kernels(program)
    outputs = {
        name: [Output(each.position, each.type) for each in kernel.outputs]
        for name, kernel in lowered.items()
    }
    callers_ready = pass_outputs(program, outputs)
    functions = {
        name: lowered[name].function if name in lowered else function
        for name, function in callers_ready.functions_.items()
    }  # fmt: skip
    converted = callers_ready.replace(functions=functions)
    lifted = lift_callers(converted, ProgramStorage(converted, views=ALL_VIEWS))
    return pass_valid_extents(lifted)


def _with_named_tensors(function: ir.Function) -> ir.Function:
    """A kernel in which every computed tensor has a name, also one that is written as an operand."""
    if not ir.is_incore_type(function.func_type):
        return function
    operands = (
        operand
        for stmt in walk_stmts(function.body)
        for expr in exprs_of(stmt)
        if isinstance(expr, ir.Call)
        for operand in expr.args_
    )
    is_nested = any(isinstance(o, ir.Call) and isinstance(o.type, ir.TensorType) for o in operands)
    return flatten_function(function) if is_nested else function


def _lower_kernels(program: ir.Program) -> dict[str, LoweredKernel]:
    dispatches = ProgramStorage(program, views=ALL_VIEWS)
    shared = shared_arguments(program, dispatches)
    return {
        name: lower_kernel(function, program, dispatches, shared.get(name, frozenset()))
        for name, function in program.functions_.items()
        if ir.is_incore_type(function.func_type) and "external_source" not in function.attrs_
    }
