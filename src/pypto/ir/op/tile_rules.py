"""Type inference of tile operators that compute cell by cell or along an axis: one rule per family.

Results live in the vector buffer and carry the valid region and box layout of the first tile.
"""

from __future__ import annotations

from pypto.core.dtype import DataType
from pypto.ir.op import dtypes as dt
from pypto.ir.op.extents import (
    ONE,
    all_same,
    ceildiv,
    const,
    equal,
    is_one,
    less_equal,
    mul,
    show,
    show_all,
)
from pypto.ir.op.results import (
    COL,
    NO_BOX,
    ROW,
    broadcast_shapes,
    broadcast_valid,
    inherit_layout,
    make_tile,
    scalar_dtype,
    tile_like,
    tile_of,
    tile_region,
)
from pypto.ir.op.tensor_rules import cast_target, check_compare_code, require_data
from pypto.ir.op_registry import Args, Deduce, Kwargs
from pypto.ir.types import TileType, Type

DtypeRule = dt.DtypeSet | None


# --- elementwise ----------------------------------------------------------------------------------


def _combined(op: str, lhs: TileType, rhs: TileType, dtype: DataType) -> TileType:
    shape = broadcast_shapes(op, lhs.shape_, rhs.shape_)
    if shape is lhs.shape_:
        return tile_like(lhs, dtype)
    valid = broadcast_valid(shape, tile_region(lhs, op), tile_region(rhs, op))
    return inherit_layout(lhs, shape, dtype, valid)


def _check_ints(op: str, *operands: TileType) -> None:
    for operand in operands:
        if not operand.dtype.is_int():
            raise ValueError(f"The operator {op} requires an integer tile dtype, got {operand.dtype}")


def binary(op: str, *, integers: bool = False, keeps_lhs: bool = False, allowed: DtypeRule = None) -> Deduce:
    """Two broadcasting tiles (and scratch operands that do not matter); promoted element type."""

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        lhs, rhs = args[0].type, args[1].type
        assert isinstance(lhs, TileType) and isinstance(rhs, TileType)
        if integers:
            _check_ints(op, lhs, rhs)
        if allowed is not None:
            dt.require(lhs.dtype, allowed, op)
        return _combined(op, lhs, rhs, lhs.dtype if keeps_lhs else dt.promote(lhs.dtype, rhs.dtype))

    return deduce


def ternary(op: str) -> Deduce:
    """Three broadcasting tiles."""

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        a, b, c = (tile_of(arg) for arg in args)
        first = _combined(op, a, b, dt.promote(a.dtype, b.dtype))
        return _combined(op, first, c, dt.promote(first.dtype, c.dtype))

    return deduce


def tile_scalar_tile(op: str) -> Deduce:
    """Tile, scalar, tile; promoted over the three."""

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        lhs, rhs = tile_of(args[0]), tile_of(args[2])
        dtype = dt.promote(dt.promote(lhs.dtype, scalar_dtype(args[1], op, "second argument")), rhs.dtype)
        return _combined(op, lhs, rhs, dtype)

    return deduce


def div(op: str) -> Deduce:
    """Two tiles of one type, shape and valid region."""

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        lhs, rhs = tile_of(args[0]), tile_of(args[1])
        if lhs.dtype is not rhs.dtype:
            raise ValueError(f"The operator {op} requires the same dtype, got {lhs.dtype} and {rhs.dtype}")
        dt.require(lhs.dtype, dt.INT16_INT32_FP16_FP32, op)
        if not all_same(lhs.shape_, rhs.shape_):
            raise ValueError(
                f"The operator {op} requires the same physical shape, got {show_all(lhs.shape_)} and "
                f"{show_all(rhs.shape_)}"
            )
        left, right = tile_region(lhs, op).valid, tile_region(rhs, op).valid
        if not all_same(left, right):
            raise ValueError(
                f"The operator {op} requires the same valid_shape, got {show_all(left)} and {show_all(right)}"
            )
        check_precision(op, lhs.dtype, kwargs)
        return tile_like(lhs, lhs.dtype)

    return deduce


def check_precision(op: str, dtype: DataType, kwargs: Kwargs) -> None:
    """ValueError for a precision request on a type that has no choice."""
    if kwargs.get("high_precision") and dtype not in (dt.FP16, dt.FP32):
        raise ValueError(f"The operator {op} supports high_precision only for FP16 or FP32, got {dtype}")


def tile_scalar(op: str, *, allowed: DtypeRule = None, integers: bool = False) -> Deduce:
    """Tile with scalar: everything from the tile."""

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        lhs = tile_of(args[0])
        if allowed is not None or integers:
            scalar = scalar_dtype(args[1], op, "second argument")
            if integers:
                _check_ints(op, lhs)
                if not scalar.is_int():
                    raise ValueError(f"The operator {op} requires an integer scalar dtype, got {scalar}")
            if allowed is not None:
                dt.require(lhs.dtype, allowed, op, "tile dtype")
                dt.require(scalar, allowed, op, "scalar dtype")
        return tile_like(lhs, lhs.dtype)

    return deduce


def rems(op: str) -> Deduce:
    """Tile, scalar, scratch tile; promoted over the three."""

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        lhs = tile_of(args[0])
        dtype = dt.promote(lhs.dtype, scalar_dtype(args[1], op, "second argument"))
        return tile_like(lhs, dt.promote(dtype, tile_of(args[2]).dtype))

    return deduce


def expands(op: str) -> Deduce:
    """The target's shape filled with a scalar; promoted element type."""

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        target = tile_of(args[0])
        return tile_like(target, dt.promote(target.dtype, scalar_dtype(args[1], op, "second argument")))

    return deduce


def unary(op: str, *, allowed: DtypeRule = None, hint: str = "") -> Deduce:
    """One tile, same element type."""

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        source = tile_of(args[0])
        if allowed is not None and source.dtype not in allowed:
            wanted = " or ".join(each.member for each in allowed)
            article = "an" if wanted[0] in "AEFIO" else "a"
            raise ValueError(f"The operator {op} requires {article} {wanted} tile, got {source.dtype}{hint}")
        check_precision(op, source.dtype, kwargs)
        return tile_like(source, source.dtype)

    return deduce


def rsqrt(args: Args, kwargs: Kwargs) -> Type:
    """``tile.rsqrt``: with a scratch tile of the same type."""
    op = "tile.rsqrt"
    source = tile_of(args[0])
    if len(args) > 1:
        tmp = tile_of(args[1])
        if tmp.dtype is not source.dtype:
            raise ValueError(f"The operator {op}: tmp dtype {tmp.dtype} does not match {source.dtype}")
        if not all_same(tmp.shape_, source.shape_):
            raise ValueError(
                f"The operator {op}: tmp shape mismatch, {show_all(tmp.shape_)} for {show_all(source.shape_)}"
            )
    return tile_like(source, source.dtype)


def cast(args: Args, kwargs: Kwargs) -> Type:
    """``tile.cast``: element conversion."""
    source = tile_of(args[0])
    return tile_like(source, cast_target("tile.cast", source.dtype, kwargs))


def prelu(args: Args, kwargs: Kwargs) -> Type:
    """``tile.prelu``: one slope per cell."""
    op = "tile.prelu"
    source, slope, tmp = (tile_of(arg) for arg in args)
    dt.require(source.dtype, (dt.FP16, dt.FP32), op, "src dtype")
    if len(source.shape_) != 2:
        raise ValueError(f"The operator {op} requires a rank-2 src, got {show_all(source.shape_)}")
    if slope.dtype is not source.dtype:
        raise ValueError(f"The operator {op} requires slope dtype {source.dtype}, got {slope.dtype}")
    if not all_same(slope.shape_, source.shape_):
        raise ValueError(f"The operator {op} requires slope of the same physical shape as src")
    if not all_same(tile_region(slope, op).valid, tile_region(source, op).valid):
        raise ValueError(f"The operator {op} requires slope of the same valid_shape as src")
    if len(tmp.shape_) != 2:
        raise ValueError(f"The operator {op} requires a rank-2 tmp, got {show_all(tmp.shape_)}")
    return tile_like(source, source.dtype)


# --- compare and select ---------------------------------------------------------------------------


def packed_predicate(source: TileType, op: str) -> TileType:
    """UINT8 tile of one bit per cell, rows padded to 32 bytes."""
    region = tile_region(source, op)
    if not region.shape:
        raise ValueError(f"The operator {op} requires rank >= 1")
    carrier = mul(ceildiv(region.shape[-1], 256), const(32))
    shape = [*region.shape[:-1], carrier]
    valid = [*region.valid[:-1], ceildiv(region.valid[-1], 8)]
    return make_tile(shape, dt.UINT8, valid, ROW)


def compare(op: str) -> Deduce:
    """Tile with tile or scalar; a packed predicate."""

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        check_compare_code(op, kwargs)
        lhs, rhs = tile_of(args[0]), args[1].type
        if isinstance(rhs, TileType):
            lhs = _combined(op, lhs, rhs, lhs.dtype)
        return packed_predicate(lhs, op)

    return deduce


def sel(args: Args, kwargs: Kwargs) -> Type:
    """``tile.sel``: choose per cell by a predicate."""
    lhs, rhs = tile_of(args[1]), tile_of(args[2])
    return _combined("tile.sel", lhs, rhs, dt.promote(lhs.dtype, rhs.dtype))


_SIGNED = {dt.UINT8: dt.INT8, dt.UINT16: dt.INT16, dt.UINT32: dt.INT32}
_SELECTABLE = (dt.INT8, dt.INT16, dt.INT32, dt.UINT8, dt.UINT16, dt.UINT32, dt.FP16, dt.FP32)
_CARRIERS = (dt.INT8, dt.INT16, dt.INT32, dt.UINT8, dt.UINT16, dt.UINT32)


def signed_counterpart(dtype: DataType) -> DataType:
    """The signed type of the same width; other types are their own."""
    return _SIGNED.get(dtype, dtype)


def sels(args: Args, kwargs: Kwargs) -> Type:
    """``tile.sels``: a cell where the predicate holds, else a scalar."""
    op = "tile.sels"
    mask, source, tmp = tile_of(args[0]), tile_of(args[1]), tile_of(args[2])
    if len(mask.shape_) != 2:
        raise ValueError(f"The operator {op} requires a rank-2 mask, got {show_all(mask.shape_)}")
    if mask.dtype not in _CARRIERS:
        raise ValueError(f"The operator {op} requires an 8-, 16- or 32-bit integer mask, got {mask.dtype}")
    dt.require(source.dtype, _SELECTABLE, op, "src dtype")
    for which, operand in (("src", source), ("tmp", tmp)):
        if len(operand.shape_) != 2:
            raise ValueError(f"The operator {op} requires a rank-2 {which}, got {show_all(operand.shape_)}")
    carried, wanted = tile_region(mask, op).valid, tile_region(source, op).valid
    if less_equal(wanted[0], carried[0]) is not True:
        raise ValueError(
            f"The operator {op} requires the mask carrier rows {show(carried[0])} to cover the src rows "
            f"{show(wanted[0])}"
        )
    row_bytes = mul(carried[1], const(mask.dtype.get_byte()))
    if less_equal(ceildiv(wanted[1], 8), row_bytes) is not True:
        raise ValueError(
            f"The operator {op} requires each mask carrier row of {show(row_bytes)} bytes to hold "
            f"{show(wanted[1])} bits"
        )
    scalar, needed = scalar_dtype(args[3], op, "scalar"), signed_counterpart(source.dtype)
    if scalar is not needed:
        raise ValueError(
            f"The operator {op} requires scalar dtype {needed} for src dtype {source.dtype}, got {scalar}"
        )
    return tile_like(source, source.dtype)


# --- reductions -----------------------------------------------------------------------------------


def _check_scratch(op: str, source: TileType, tmp: TileType, *, exact: bool) -> None:
    if tmp.dtype is not source.dtype:
        raise ValueError(
            f"The operator {op} requires tmp_tile dtype to match input dtype {source.dtype}, got {tmp.dtype}"
        )
    if len(tmp.shape_) != len(source.shape_):
        raise ValueError(
            f"The operator {op} requires tmp_tile of rank {len(source.shape_)}, got {show_all(tmp.shape_)}"
        )
    if exact:
        if not all_same(tmp.shape_, source.shape_):
            raise ValueError(
                f"The operator {op} requires tmp_tile {show_all(tmp.shape_)} to exactly match the input "
                "shape "
                f"{show_all(source.shape_)}"
            )
    elif any(less_equal(s, t) is False for s, t in zip(source.shape_, tmp.shape_, strict=True)):
        raise ValueError(
            f"The operator {op} requires tmp_tile {show_all(tmp.shape_)} to be at least the input shape "
            f"{show_all(source.shape_)}"
        )


def _reducible(op: str, args: Args) -> TileType:
    source = tile_of(args[0])
    if len(source.shape_) < 2:
        raise ValueError(f"The operator {op} requires rank >= 2, got {show_all(source.shape_)}")
    require_data(op, tile_region(source, op).valid)
    return source


def row_reduction(op: str, *, index: bool = False, nd_only: bool = False) -> Deduce:
    """Reduce the last axis into a column vector."""

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        source = _reducible(op, args)
        if nd_only:
            dt.require(source.dtype, dt.INT16_INT32_FP16_FP32, op)
            view = source.get_effective_tile_view()
            if view.blayout is not ROW or view.slayout is not NO_BOX:
                raise ValueError(f"The operator {op} requires an ND input layout (row_major, none_box)")
        _check_scratch(op, source, tile_of(args[1]), exact=index)
        valid = [*tile_region(source, op).valid[:-1], ONE]
        return make_tile([*source.shape_[:-1], ONE], dt.INT32 if index else source.dtype, valid, COL)

    return deduce


def col_reduction(op: str, *, index: bool = False) -> Deduce:
    """Reduce the first axis into a row vector."""

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        source = _reducible(op, args)
        if index:
            _check_scratch(op, source, tile_of(args[1]), exact=True)
        valid = [ONE, *tile_region(source, op).valid[1:]]
        return make_tile([ONE, *source.shape_[1:]], dt.INT32 if index else source.dtype, valid, ROW)

    return deduce


# --- broadcasts along an axis ---------------------------------------------------------------------


def _check_ranks(op: str, tile: TileType, vector: TileType) -> None:
    if len(tile.shape_) < 2 or len(vector.shape_) < 2:
        raise ValueError(
            f"The operator {op} requires operands of rank >= 2, got {show_all(tile.shape_)} and "
            f"{show_all(vector.shape_)}"
        )


def row_expand(op: str) -> Deduce:
    """One value per row across the columns."""

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        tile, vector = tile_of(args[0]), tile_of(args[1])
        _check_ranks(op, tile, vector)
        if not is_one(vector.shape_[-1]):
            raise ValueError(
                f"The operator {op} requires row_vec of shape [M, 1] (constant last dimension 1), got "
                f"{show_all(vector.shape_)}"
            )
        if equal(tile.shape_[-2], vector.shape_[-2]) is False:
            raise ValueError(
                f"The operator {op} requires matching rows, got {show_all(tile.shape_)} and "
                f"{show_all(vector.shape_)}"
            )
        return tile_like(tile, dt.promote(tile.dtype, vector.dtype))

    return deduce


def col_expand(op: str) -> Deduce:
    """One value per column down the rows."""

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        tile, vector = tile_of(args[0]), tile_of(args[1])
        _check_ranks(op, tile, vector)
        if not is_one(vector.shape_[-2]):
            raise ValueError(
                f"The operator {op} requires col_vec of shape [1, N] (constant row extent 1), got "
                f"{show_all(vector.shape_)}"
            )
        if equal(tile.shape_[-1], vector.shape_[-1]) is False:
            raise ValueError(
                f"The operator {op} requires matching columns, got {show_all(tile.shape_)} and "
                f"{show_all(vector.shape_)}"
            )
        return tile_like(tile, dt.promote(tile.dtype, vector.dtype))

    return deduce


def row_expand_add(args: Args, kwargs: Kwargs) -> Type:
    """``tile.row_expand_add``: the vector is a column, or one 32-byte block per row that repeats."""
    op = "tile.row_expand_add"
    tile, vector = tile_of(args[0]), tile_of(args[1])
    if len(args) > 2 and not isinstance(args[2].type, TileType):
        raise ValueError(
            f"The operator {op} requires tmp to be a TileType, got {type(args[2].type).__name__}"
        )
    _check_ranks(op, tile, vector)
    if tile.get_effective_tile_view().blayout is not ROW:
        raise ValueError(f"The operator {op} requires src0 effective blayout to be row_major")
    if tile.dtype is not vector.dtype:
        raise ValueError(f"The operator {op} requires the same dtype, got {tile.dtype} and {vector.dtype}")
    dt.require(tile.dtype, dt.INT8_TO_FP32, op)
    rows, vector_valid = tile_region(tile, op).valid[-2], tile_region(vector, op).valid
    if equal(rows, vector_valid[-2]) is not True:
        raise ValueError(
            f"The operator {op} requires src1 valid row extent to match src0/dst, got "
            f"{show(vector_valid[-2])} and "
            f"{show(rows)}"
        )
    packed = vector.get_effective_tile_view().blayout is ROW
    block = 32 // vector.dtype.get_byte()
    # a unit-row column vector [1, 1] is stored row-major, yet holds one value per row
    single = is_one(vector.shape_[-1])
    wanted = block if packed and not single else 1
    if equal(vector_valid[-1], const(wanted)) is not True:
        raise ValueError(
            f"The operator {op} requires src1 valid last dimension to be {wanted}, got "
            f"{show(vector_valid[-1])}"
        )
    return tile_like(tile, tile.dtype)
