"""Elementwise operators of two tensors whose shapes broadcast.

A tile operator takes its valid region from its first operand, so the operand with the full shape comes first.
Where the order matters (`sub`, `div`) a narrow left operand is expanded to the full shape before. A column
`[M, 1]` on the right uses the `row_expand_*` form.
"""

from __future__ import annotations

from pypto import ir
from pypto.core.dtype import DataType
from pypto.ir.views import same_extents
from pypto.passes.convert_tensor_to_tile_ops.kernel import KernelLowering, Vec
from pypto.passes.convert_tensor_to_tile_ops.pieces import (
    filled,
    in_dtype,
    position,
    result_dtype,
    result_shape,
    tile_type,
    tuple_of,
    with_rank,
)

__all__ = ["add_like", "alike", "divide", "expanded", "subtract"]

_ROW_EXPAND_ADD_DTYPES = (DataType.INT8, DataType.INT16, DataType.INT32, DataType.FP16, DataType.FP32)
_ROW_EXPAND_DIV_DTYPES = (DataType.FP16, DataType.FP32)
_ROUND = 2  # cast mode: to nearest, ties away from zero


def add_like(k: KernelLowering, call: ir.Call, leaf: str) -> ir.Expr:
    """A commutative operator: `add`, `mul`, `maximum`, `minimum`."""
    lhs, rhs = _operands(k, call)
    if not _is_full(lhs, call) and _is_full(rhs, call) and tile_type(lhs).dtype == tile_type(rhs).dtype:
        lhs, rhs = rhs, lhs
    lhs = _expand_to_result(k, call, lhs, rhs)
    if leaf in ("add", "mul") and _is_column(rhs, lhs) and (leaf == "mul" or _row_expand_add_takes(lhs, rhs)):
        return k.op(f"tile.row_expand_{leaf}", [lhs, rhs])
    return k.op(f"tile.{leaf}", [lhs, rhs])


def subtract(k: KernelLowering, call: ir.Call) -> ir.Expr:
    lhs, rhs = _operands(k, call)
    lhs = _expand_to_result(k, call, lhs, rhs)
    return k.op("tile.row_expand_sub" if _is_column(rhs, lhs) else "tile.sub", [lhs, rhs])


def expanded(k: KernelLowering, call: ir.Call, leaf: str) -> ir.Expr:
    """An operator without a form for columns whose operands do not commute."""
    lhs, rhs = _operands(k, call)
    return k.op(f"tile.{leaf}", [_expand_to_result(k, call, lhs, rhs), rhs])


def alike(k: KernelLowering, call: ir.Call, leaf: str) -> ir.Expr:
    """An operator whose tile form takes two operands of one element type and shape."""
    lhs, rhs = (
        _repeated(k, call, in_dtype(k, operand, result_dtype(call))) for operand in _operands(k, call)
    )
    return k.op(f"tile.{leaf}", [lhs, rhs])


def divide(k: KernelLowering, call: ir.Call) -> ir.Expr:
    """Division takes operands of one element type, shape and valid region."""
    dtype = result_dtype(call)
    lhs, rhs = (
        _rounded(k, operand, dtype, name)
        for operand, name in zip(_operands(k, call), ("div_lhs_cast", "div_rhs_cast"), strict=True)
    )
    if len(result_shape(call)) != 2:
        lhs, rhs = _repeated(k, call, lhs), _repeated(k, call, rhs)
    lhs = _expand_to_result(k, call, lhs, rhs)
    if not _is_full(rhs, call):
        if dtype in _ROW_EXPAND_DIV_DTYPES:
            if _is_column(rhs, lhs):
                return k.op("tile.row_expand_div", [lhs, rhs])
            if _is_row(rhs, lhs):
                return k.op("tile.col_expand_div", [lhs, rhs])
        rhs = _expand_to_result(k, call, rhs, lhs)
    kwargs = {"high_precision": True} if call.kwargs_.get("high_precision") else {}
    return k.op("tile.div", [lhs, _with_region_of(k, rhs, lhs)], **kwargs)


def _operands(k: KernelLowering, call: ir.Call) -> tuple[ir.Expr, ir.Expr]:
    rank = len(result_shape(call))
    lhs, rhs = k.tile(call.args_[0]), k.tile(call.args_[1])
    return with_rank(k, lhs, rank), with_rank(k, rhs, rank)


def _rounded(k: KernelLowering, tile: ir.Expr, dtype: DataType, name: str) -> ir.Expr:
    if tile_type(tile).dtype == dtype:
        return tile
    return k.let(name, k.op("tile.cast", [tile], target_type=dtype, mode=_ROUND))


def _is_full(tile: ir.Expr, call: ir.Call) -> bool:
    return same_extents(tile_type(tile).shape_, result_shape(call))


def _is_one(extent: ir.Expr) -> bool:
    return isinstance(extent, ir.ConstInt) and extent.value == 1


def _is_column(narrow: ir.Expr, wide: ir.Expr) -> bool:
    """Whether `narrow` has one value for each row of `wide`."""
    column, full = tile_type(narrow).shape_, tile_type(wide).shape_
    return (
        len(full) >= 2
        and len(column) == len(full)
        and _is_one(column[-1])
        and not _is_one(full[-1])
        and same_extents(column[:-1], full[:-1])
    )


def _is_row(narrow: ir.Expr, wide: ir.Expr) -> bool:
    """Whether `narrow` has one value for each column of `wide`."""
    row, full = tile_type(narrow).shape_, tile_type(wide).shape_
    return (
        len(row) == len(full) == 2
        and _is_one(row[0])
        and not _is_one(full[0])
        and same_extents(row[1:], full[1:])
    )


def _row_expand_add_takes(wide: ir.Expr, column: ir.Expr) -> bool:
    """Whether the operands meet the narrow conditions of `row_expand_add`."""
    target, vector = tile_type(wide), tile_type(column)
    view, region = vector.get_effective_tile_view(), target.get_effective_tile_view()
    return (
        target.dtype == vector.dtype
        and target.dtype in _ROW_EXPAND_ADD_DTYPES
        and region.blayout is ir.TileLayout.row_major
        and view.blayout is not ir.TileLayout.row_major
        and _is_one(view.valid_shape_[-1])
        and same_extents(view.valid_shape_[:-1], region.valid_shape_[:-1])
    )


def _expand_to_result(k: KernelLowering, call: ir.Call, narrow: ir.Expr, other: ir.Expr) -> ir.Expr:
    """`narrow` with the shape of the result; valid where `other` is, if that has the full shape."""
    shape = result_shape(call)
    if _is_full(narrow, call) or len(shape) != 2:
        return narrow
    dtype = tile_type(narrow).dtype
    if _is_full(other, call):
        target = in_dtype(k, other, dtype)
    else:
        target = k.let(
            "expand_target", k.op("tile.create", [tuple_of(k, shape)], dtype=dtype, target_memory=Vec)
        )
    rows, columns = tile_type(narrow).shape_
    if _is_one(columns) and _is_one(rows) and not _is_one(shape[0]) and not _is_one(shape[1]):
        row = k.let(
            "expand_row", k.op("tile.create", [tuple_of(k, (rows, shape[1]))], dtype=dtype, target_memory=Vec)
        )
        narrow = k.let("row", k.op("tile.row_expand", [row, narrow]))
        rows, columns = rows, shape[1]
    name = "tile.col_expand" if _is_one(rows) and not _is_one(shape[0]) else "tile.row_expand"
    return k.let("expanded", k.op(name, [target, narrow]))


def _repeated(k: KernelLowering, call: ir.Call, narrow: ir.Expr) -> ir.Expr:
    """`narrow` with the shape of the result, of any rank: a product with ones keeps each value."""
    if _is_full(narrow, call):
        return narrow
    ones = k.let("ones", filled(k, result_shape(call), tile_type(narrow).dtype, 1))
    return k.let("repeated", k.op("tile.mul", [ones, narrow]))


def _with_region_of(k: KernelLowering, tile: ir.Expr, other: ir.Expr) -> ir.Expr:
    """`tile` declared valid where `other` is; cells valid in only one of them hold unspecified data."""
    wanted = tile_type(other).get_effective_tile_view().valid_shape_
    if len(wanted) != 2 or same_extents(wanted, tile_type(tile).get_effective_tile_view().valid_shape_):
        return tile
    return k.let("same_region", k.op("tile.set_validshape", [tile, *(position(k, e) for e in wanted)]))
