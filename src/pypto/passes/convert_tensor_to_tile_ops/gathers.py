"""Operators that pick, place and merge elements.

Tensor operators say along which dimension an index counts; tile operators take flat positions. So an index
becomes a position first: its own value times the stride of its dimension, plus what the other coordinates
contribute.
"""

from __future__ import annotations

from collections.abc import Sequence

from pypto import ir
from pypto.core.dtype import DataType
from pypto.passes.convert_tensor_to_tile_ops.kernel import KernelLowering, Mat
from pypto.passes.convert_tensor_to_tile_ops.pieces import (
    filled,
    in_dtype,
    result_dtype,
    result_in_dtype,
    result_shape,
    scratch,
    tile_type,
    tuple_of,
)

__all__ = [
    "expand_clone", "gather", "gather_compare", "gather_row", "merge_lists", "paged_gather", "scatter",
    "scatter_mask", "scatter_update",
]  # fmt: skip

_SCRATCH_WIDTH = 32


def gather(k: KernelLowering, call: ir.Call, var: ir.Var | None) -> ir.Expr:
    """`out[i, j] = input[i, index[i, j]]` along the last dimension, and so on for the others."""
    source, index = k.tile(call.args_[0]), k.tile(call.args_[1])
    positions = _positions(k, call, index, tile_type(source).shape_, call.kwargs_["dim"])
    tmp = scratch(k, "gather_tmp", (k.index(1), k.index(_SCRATCH_WIDTH)), DataType.INT32)
    return k.op("tile.gather", [source, positions, tmp])


def scatter(k: KernelLowering, call: ir.Call, var: ir.Var | None) -> ir.Expr:
    """`out[i, index[i, j]] = src[i, j]`; in four-byte elements, whose positions are wide enough."""
    target, index, source = (k.tile(arg) for arg in call.args_[:3])
    dtype = result_dtype(call)
    wide = dtype if dtype.get_bit() == 32 else DataType.FP32 if dtype.is_float() else DataType.INT32
    positions = _positions(k, call, index, tile_type(target).shape_, call.kwargs_["dim"])
    target, source = in_dtype(k, target, wide), in_dtype(k, source, wide)
    return result_in_dtype(k, call, k.op("tile.scatter", [target, source, positions]))


def _positions(
    k: KernelLowering, call: ir.Call, index: ir.Expr, extents: Sequence[ir.Expr], dim: int
) -> ir.Expr:
    """The flat row-major position in a tile of `extents` that each element of `index` means."""
    strides = _strides(k, call, extents)
    axis = dim % len(extents)
    positions = in_dtype(k, index, DataType.INT32)
    if strides[axis] != 1:
        positions = k.let("positions", k.op("tile.muls", [positions, _number(k, strides[axis])]))
    shape = tile_type(index).shape_
    for other, extent in enumerate(shape):
        if other != axis and not (isinstance(extent, ir.ConstInt) and extent.value == 1):
            steps = _steps(k, shape, other, strides[other])
            positions = k.let("positions", k.op("tile.add", [positions, steps]))
    return positions


def _steps(k: KernelLowering, shape: Sequence[ir.Expr], axis: int, stride: int) -> ir.Expr:
    """`0, stride, 2 * stride, ...` along one axis of a tile whose other extents are 1."""
    row = (k.index(1), shape[axis])
    steps: ir.Expr = k.let(
        "steps", k.op("tile.ci", [_number(k, 0), tuple_of(k, row)], dtype=DataType.INT32, descending=False)
    )
    if stride != 1:
        steps = k.let("steps", k.op("tile.muls", [steps, _number(k, stride)]))
    wanted = [shape[axis] if other == axis else k.index(1) for other in range(len(shape))]
    if axis == len(shape) - 1 and len(shape) == 2:
        return steps
    return k.let("steps", k.op("tile.reshape", [steps, tuple_of(k, wanted)]))


def _strides(k: KernelLowering, call: ir.Call, extents: Sequence[ir.Expr]) -> list[int]:
    """Row-major strides."""
    strides = [1] * len(extents)
    for axis in reversed(range(len(extents) - 1)):
        extent = extents[axis + 1]
        if not isinstance(extent, ir.ConstInt):
            raise ValueError(f"{call.op.name} in a kernel needs extents known at compile time [{k.span}]")
        strides[axis] = strides[axis + 1] * extent.value
    return strides


def _number(k: KernelLowering, value: int) -> ir.ConstInt:
    return ir.ConstInt(value, DataType.INT32, k.span)


def gather_compare(k: KernelLowering, call: ir.Call, var: ir.Var | None) -> ir.Expr:
    tmp = scratch(k, "gather_tmp", (k.index(1), k.index(_SCRATCH_WIDTH)), DataType.UINT8)
    return k.op("tile.gather_compare", [k.tile(call.args_[0]), call.args_[1], tmp], **call.kwargs_)


def gather_row(k: KernelLowering, call: ir.Call, var: ir.Var | None) -> ir.Expr:
    """The target becomes a tile; the rows come straight from memory, if the pool lives there."""
    return k.op("tile.gather_row", [k.tile(call.args_[0]), *map(k.current, call.args_[1:])], **call.kwargs_)


def paged_gather(k: KernelLowering, call: ir.Call, var: ir.Var | None) -> ir.Expr:
    """One row after the other: its page from the block table, its place in the page from the index."""
    pool, indices, table = call.args_
    block, size, count = (call.kwargs_[key] for key in ("block_size", "size", "max_indices"))
    column, transposed = call.kwargs_.get("col_off", 0), bool(call.kwargs_.get("is_trans"))
    shape, space = tuple_of(k, result_shape(call)), call.kwargs_.get("space", Mat)
    created = k.op("tile.create", [shape], dtype=result_dtype(call), target_memory=space)
    start = k.let("paged_start", created)
    place = ir.Var(k.names.fresh("paged_i"), ir.ScalarType(DataType.INDEX), k.span)
    rows = ir.IterArg(k.names.fresh("paged_rows"), start.type, start, k.span)

    def copy_one_row() -> None:
        logical = k.let("paged_index", _element(k, indices, place))
        page = k.let("paged_page", _element(k, table, ir.floordiv(logical, _like(k, logical, block), k.span)))
        first = ir.mul(ir.cast(page, DataType.INDEX, k.span), k.index(block), k.span)
        within = ir.mod(logical, _like(k, logical, block), k.span)
        origin = (ir.add(first, ir.cast(within, DataType.INDEX, k.span), k.span), k.index(column))
        into = (k.index(0), place) if transposed else (place, k.index(0))
        window = [tuple_of(k, each) for each in (into, origin, (k.index(1), k.index(size)))]
        gathered = k.op("tile.gather_row", [rows, k.current(pool), *window], transpose=transposed)
        k.emit(ir.YieldStmt([k.let("paged_row", gathered)], k.span))

    body = ir.flatten_stmts(k.nested(copy_one_row), k.span)
    result = ir.Var(k.names.fresh("paged_rows"), start.type, k.span)
    bounds = (k.index(0), k.index(count), k.index(1))
    k.emit(ir.ForStmt(place, *bounds, [rows], body, [result], k.span))
    return result


def _element(k: KernelLowering, source: ir.Expr, position: ir.Expr) -> ir.Call:
    """One element of a vector, or of a matrix of one row."""
    current = k.current(source)
    assert isinstance(current.type, ir.ShapedType)
    index = [*(k.index(0) for _ in current.type.shape_[1:]), position]
    name = "tensor.read" if k.is_memory(source) else "tile.read"
    return k.op(name, [current, tuple_of(k, index)])


def _like(k: KernelLowering, scalar: ir.Expr, value: int) -> ir.ConstInt:
    assert isinstance(scalar.type, ir.ScalarType)
    return ir.ConstInt(value, scalar.type.dtype, k.span)


def scatter_mask(k: KernelLowering, call: ir.Call, var: ir.Var | None) -> ir.Expr:
    source, target = k.tile(call.args_[0]), k.tile(call.args_[1])
    return k.op("tile.scatter_mask", [target, source], **call.kwargs_)


def scatter_update(k: KernelLowering, call: ir.Call, var: ir.Var | None) -> ir.Expr:
    return k.op("tile.scatter_update", [k.tile(arg) for arg in call.args_], **call.kwargs_)


def merge_lists(k: KernelLowering, call: ir.Call, var: ir.Var | None) -> ir.Expr:
    """The scratch tile of a merge has the shape of the result."""
    tmp = scratch(k, "mrgsort2_tmp", result_shape(call), result_dtype(call))
    return k.op("tile.mrgsort_format2", [*(k.tile(arg) for arg in call.args_), tmp], **call.kwargs_)


def expand_clone(k: KernelLowering, call: ir.Call, var: ir.Var | None) -> ir.Expr:
    """The source repeated along its unit axis: multiplied with ones, which keeps every number."""
    ones = k.let("clone_ones", filled(k, result_shape(call), result_dtype(call), 1))
    return k.op("tile.mul", [ones, in_dtype(k, k.tile(call.args_[0]), result_dtype(call))])
