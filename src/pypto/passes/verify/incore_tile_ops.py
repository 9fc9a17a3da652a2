"""IncoreTileOps: kernels work on tiles; no tensor operator with a tile form is left in them."""

from __future__ import annotations

from collections.abc import Iterator

from pypto import ir
from pypto.ir.walk import exprs_of, walk, walk_stmts
from pypto.passes.convert_tensor_to_tile_ops.converters import CONVERTERS
from pypto.passes.diagnostics import Diagnostic, error

_ON_MEMORY = frozenset({"tensor.read", "tensor.write", "tensor.dim"})


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return the tensor operators left in kernels."""
    return [
        each
        for function in program.functions_.values()
        if function.func_type is ir.FunctionType.InCore
        for each in _function(function)
    ]


def _function(function: ir.Function) -> Iterator[Diagnostic]:
    for stmt in walk_stmts(function.body):
        for expr in exprs_of(stmt):
            for node in walk(expr, once=True) if not isinstance(expr, ir.Var) else ():
                if isinstance(node, ir.Call) and _has_tile_form(node) and not _is_on_memory(node):
                    message = f"Tensor operator '{node.op.name}' remains in InCore function '{function.name}'"
                    yield error("IncoreTileOps", 0, message, node.span)


def _has_tile_form(call: ir.Call) -> bool:
    """Say whether a call is a tensor operator that the lowering converts."""
    return call.op.name.startswith("tensor.") and call.op.name in CONVERTERS


def _is_on_memory(call: ir.Call) -> bool:
    """Say whether a scalar read, write or extent query goes to a tensor in memory."""
    return call.op.name in _ON_MEMORY and bool(call.args_) and isinstance(call.args_[0].type, ir.TensorType)
