"""Small pieces that conversions are made of: tiles in a given element type, rank or content, and what types
say.
"""

from __future__ import annotations

from collections.abc import Sequence

from pypto import ir
from pypto.core.dtype import DataType
from pypto.ir.op.dtypes import EXTENT_SCALARS
from pypto.ir.views import same_extent, same_extents
from pypto.passes.convert_tensor_to_tile_ops.kernel import KernelLowering, Vec

__all__ = [
    "NEAREST", "elements", "filled", "in_dtype", "position", "positions", "result_dtype", "result_in_dtype",
    "result_shape", "scratch", "shown_name", "tile_type", "tuple_of", "with_rank",
]  # fmt: skip

NEAREST = 1
"""Cast mode: to nearest, ties to even."""


def in_dtype(k: KernelLowering, tile: ir.Expr, dtype: DataType) -> ir.Expr:
    """The tile converted to `dtype`; itself if it has that element type."""
    if tile_type(tile).dtype == dtype:
        return tile
    return k.let("converted", k.op("tile.cast", [tile], target_type=dtype, mode=NEAREST))


def result_in_dtype(k: KernelLowering, call: ir.Call, result: ir.Call) -> ir.Expr:
    if tile_type(result).dtype == result_dtype(call):
        return result
    return k.op("tile.cast", [k.let("unconverted", result)], target_type=result_dtype(call), mode=NEAREST)


def with_rank(k: KernelLowering, tile: ir.Expr, rank: int) -> ir.Expr:
    """The tile with unit axes in front, or with leading unit axes removed, up to `rank`."""
    shape = tile_type(tile).shape_
    if len(shape) == rank:
        return tile
    if len(shape) < rank:
        wanted = (*(k.index(1) for _ in range(rank - len(shape))), *shape)
    else:
        surplus = shape[: len(shape) - rank]
        if not all(same_extent(axis, k.index(1)) for axis in surplus):
            raise ValueError(f"A source of rank {len(shape)} does not fit a target of rank {rank} [{k.span}]")
        wanted = shape[len(shape) - rank :]
    return k.let("aligned", reshaped(k, tile, wanted))


def reshaped(k: KernelLowering, tile: ir.Expr, shape: Sequence[ir.Expr]) -> ir.Call:
    """The tile under another shape. Which cells of a product are valid can be said once it is in rows."""
    view = tile_type(tile).get_effective_tile_view()
    boxed = view.slayout is not ir.TileLayout.none_box
    if boxed and not same_extents(view.valid_shape_, tile_type(tile).shape_):
        tile = in_rows(k, tile)
    return k.op("tile.reshape", [tile, tuple_of(k, shape)])


def in_rows(k: KernelLowering, tile: ir.Expr) -> ir.Expr:
    """The tile in plain rows, which some operators insist on: products and columns lie otherwise."""
    view = tile_type(tile).get_effective_tile_view()
    plain = {"blayout": ir.TileLayout.row_major, "slayout": ir.TileLayout.none_box}
    if all(getattr(view, name) is layout for name, layout in plain.items()):
        return tile
    return k.let("in_rows", k.op("tile.move", [tile], target_memory=Vec, **plain))


def filled(k: KernelLowering, shape: Sequence[ir.Expr], dtype: DataType, value: float) -> ir.Call:
    constant = (
        ir.ConstFloat(value, dtype, k.span) if dtype.is_float() else ir.ConstInt(int(value), dtype, k.span)
    )
    return k.op("tile.full", [tuple_of(k, shape), constant], dtype=dtype)


def scratch(k: KernelLowering, name: str, shape: Sequence[ir.Expr], dtype: DataType) -> ir.Expr:
    return k.let(name, k.op("tile.create", [tuple_of(k, shape)], dtype=dtype, target_memory=Vec))


def tuple_of(k: KernelLowering, elements: Sequence[ir.Expr]) -> ir.MakeTuple:
    return ir.MakeTuple(list(elements), k.span)


def elements(expr: ir.Expr) -> tuple[ir.Expr, ...]:
    assert isinstance(expr, ir.MakeTuple)
    return expr.elements_


def positions(k: KernelLowering, values: ir.Expr) -> ir.MakeTuple:
    """The tuple with narrow integers widened: tiles are cut at INDEX values, tensors at any integer."""
    return tuple_of(k, [position(k, value) for value in elements(values)])


def position(k: KernelLowering, value: ir.Expr) -> ir.Expr:
    kind = value.type
    if not isinstance(kind, ir.ScalarType) or kind.dtype in EXTENT_SCALARS:
        return value
    if isinstance(value, ir.ConstInt):
        return k.index(value.value)
    return k.let("position", ir.Cast(value, DataType.INDEX, k.span))


def tile_type(expr: ir.Expr) -> ir.TileType:
    assert isinstance(expr.type, ir.TileType)
    return expr.type


def result_dtype(call: ir.Call) -> DataType:
    assert isinstance(call.type, ir.ShapedType)
    return call.type.dtype


def result_shape(call: ir.Call) -> tuple[ir.Expr, ...]:
    assert isinstance(call.type, ir.TensorType)
    return call.type.shape_


def shown_name(expr: ir.Expr) -> str:
    return expr.name_hint if isinstance(expr, ir.Var) else "the target"
