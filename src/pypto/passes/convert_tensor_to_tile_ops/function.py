"""The conversion of one kernel, from analysis to directions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pypto import ir
from pypto.ir.walk import map_substatements, walk_stmts
from pypto.passes.auto_name import parse_name
from pypto.passes.convert_tensor_to_tile_ops.analysis import (
    kernel_storage,
    materialised_returns,
    matrix_operands,
)
from pypto.passes.convert_tensor_to_tile_ops.converters import CONVERTERS, PASS_THROUGH
from pypto.passes.convert_tensor_to_tile_ops.directions import with_written_directions
from pypto.passes.convert_tensor_to_tile_ops.kernel import KernelLowering
from pypto.passes.convert_tensor_to_tile_ops.returns import AddedOutput, add_outputs
from pypto.passes.convert_tensor_to_tile_ops.tuples import without_tuple_literals
from pypto.passes.storage import ProgramStorage, Storage

__all__ = ["LoweredKernel", "lower_kernel"]

_ALREADY_LOW = frozenset({"tensor.view", "tensor.dim", "tensor.read", "tensor.write"})


@dataclass(frozen=True, slots=True)
class LoweredKernel:
    """A converted kernel and the parameters added to it; `function` is the original when nothing changed."""

    function: ir.Function
    outputs: Sequence[AddedOutput]


def lower_kernel(
    function: ir.Function,
    program: ir.Program,
    dispatches: ProgramStorage,
    shared: frozenset[tuple[int, int]] = frozenset(),
) -> LoweredKernel:
    """Convert one kernel of `program`; `shared` are pairs of parameters that may be the same memory."""
    function = without_tuple_literals(function)
    storage = kernel_storage(function, dispatches)
    _check_kinds_of_stores(function, storage)
    meant = materialised_returns(function, storage, program)
    body = function.body
    outputs: Sequence[AddedOutput] = ()
    if _has_tensor_work(function, storage) or meant:
        lowering = KernelLowering(
            function, program, storage, matrix_operands(function), CONVERTERS, PASS_THROUGH, shared
        )
        statements = lowering.lower_body(_with_meant_returns(body, meant) if meant else body)
        statements, outputs = add_outputs(function, statements, lowering.names)
        body = ir.flatten_stmts(statements, body.span)
    elif not function.return_types_ and not _returns(function):
        body = ir.flatten_stmts([body, ir.ReturnStmt([], function.span)], body.span)
    params = [
        *zip(function.params_, function.param_directions_, strict=True),
        *((output.param, ir.ParamDirection.Out) for output in outputs),
    ]
    lowered = function if body is function.body else function.replace(params=params, body=body)
    return LoweredKernel(with_written_directions(lowered, program, dispatches), outputs)


_TILE_STORES = {"tile.store": 2, "tensor.assemble": 0}


def _check_kinds_of_stores(function: ir.Function, storage: Storage) -> None:
    """Raise `ValueError` for a parameter that is written by tiles and by scalars.

    The two kinds take different ways to memory, and a device keeps no order between them.
    """
    if function.func_type is not ir.FunctionType.InCore:
        return
    by_tiles: set[ir.Var] = set()
    by_scalars: dict[ir.Var, ir.Call] = {}
    for stmt in walk_stmts(function.body):
        call = stmt.value if isinstance(stmt, ir.AssignStmt) else getattr(stmt, "expr", None)
        if not isinstance(call, ir.Call):
            continue
        if call.op.name in _TILE_STORES:
            by_tiles |= storage.roots_of(call.args_[_TILE_STORES[call.op.name]])
        elif call.op.name == "tensor.write":
            by_scalars |= dict.fromkeys(storage.roots_of(call.args_[0]), call)
    for param in function.params_:
        if param in by_tiles and param in by_scalars:
            name = parse_name(param.name_hint).base
            raise ValueError(
                f"'{name}' mixes MTE3 and scalar stores in one InCore function, '{function.name}': write its "
                "elements in a kernel of their own, or write them into a tile that is then stored "
                f"[{by_scalars[param].span}]"
            )


def _has_tensor_work(function: ir.Function, storage: Storage) -> bool:
    """Whether anything in the body has to change: a tensor that is computed, or a tensor operator with a tile
    form.
    """
    if storage.values:
        return True
    for stmt in walk_stmts(function.body):
        call = (
            stmt.value
            if isinstance(stmt, ir.AssignStmt)
            else stmt.expr
            if isinstance(stmt, ir.EvalStmt)
            else None
        )
        if (
            isinstance(call, ir.Call)
            and call.op.name.startswith("tensor.")
            and call.op.name not in _ALREADY_LOW
        ):
            return True
    return any(
        len(storage.roots_of(value)) > 1
        or (isinstance(value.type, ir.TileType) and isinstance(declared, ir.TensorType))
        for result in _returns(function)
        for value, declared in zip(result.value_, function.return_types_, strict=False)
    )


def _returns(function: ir.Function) -> list[ir.ReturnStmt]:
    return [stmt for stmt in walk_stmts(function.body) if isinstance(stmt, ir.ReturnStmt)]


def _with_meant_returns(body: ir.Stmt, meant: Mapping[ir.Var, Sequence[ir.Var]]) -> ir.Stmt:
    """The body returning the computed values in place of the parameters that stand for them."""

    def rewrite(stmt: ir.Stmt) -> ir.Stmt:
        if not isinstance(stmt, ir.ReturnStmt):
            return map_substatements(stmt, rewrite)
        values = list(stmt.value_)
        for param, computed in meant.items():
            positions = [position for position, value in enumerate(values) if value is param]
            in_order = computed if len(positions) == len(computed) else [computed[-1]] * len(positions)
            for position, value in zip(positions, in_order, strict=True):
                values[position] = value
        return stmt.replace(value=values)

    return rewrite(body)
