"""Builders of ``tile.*`` calls: ``pypto.ir.op.tile``.

Every builder takes expressions (or Python numbers where a constant is meant) and returns a Call with
deduced type. ``span`` defaults to the place that the parser pinned, else to the caller's line. Sorting,
gathering and scattering are in ``tile_permute_ops``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pypto.core.dtype import DataType
from pypto.core.span import Span
from pypto.ir.enums import MemorySpace, PadValue, TileLayout
from pypto.ir.expr import Call, ConstFloat, ConstInt, Expr
from pypto.ir.op.attributes import resolve_pad_value, static_flag, static_int
from pypto.ir.op.build import (
    at,
    call,
    constant,
    expr,
    extents,
    literal_of,
    scalar_for,
    simple,
    with_integer,
    with_scalar,
)
from pypto.ir.op.tensor_ops import (
    axis_constant,
    condition,
    dtype_of,
    fill_constant,
    index_tuple,
    optional_tail,
    precision,
    retyped,
    warn_pad_without_effect,
)
from pypto.ir.op.tile_permute_ops import (
    MaskPattern,
    gather,
    gather_compare,
    gather_mask,
    gather_row,
    gatherb,
    mgather,
    mrgsort,
    mrgsort_format1,
    mrgsort_format2,
    mscatter,
    scatter,
    scatter_mask,
    scatter_update,
    sort32,
)
from pypto.ir.op.tile_rules import signed_counterpart
from pypto.ir.types import ScalarType, TileType
from pypto.ir.utils import element_dtype, resolve_cast_mode

__all__ = [
    "MaskPattern", "abs", "add", "addc", "adds", "addsc", "aic_gather", "aiv_shard", "alloc", "and_",
    "ands", "arange", "assemble", "batch_matmul", "batch_matmul_acc", "cast", "ci", "cmp", "cmps",
    "col_argmax", "col_argmin", "col_expand", "col_expand_add", "col_expand_div", "col_expand_expdif",
    "col_expand_max", "col_expand_min", "col_expand_mul", "col_expand_sub", "col_max", "col_min",
    "col_prod", "col_sum", "concat", "cos", "create", "create_tile", "div", "divs", "exp", "expands",
    "extract", "fillpad", "fillpad_expand", "fillpad_inplace", "fmod", "fmods", "full", "gather",
    "gather_compare", "gather_mask", "gather_row", "gatherb", "gemv", "gemv_acc", "gemv_bias",
    "get_block_idx", "get_block_num", "get_subblock_idx", "load", "log", "lrelu", "matmul", "matmul_acc",
    "matmul_bias", "matmul_mx", "matmul_mx_acc", "matmul_mx_bias", "maximum", "maximums", "mgather",
    "minimum", "minimums", "move", "mrgsort", "mrgsort_format1", "mrgsort_format2", "mscatter", "mul",
    "muls", "neg", "not_", "or_", "ors", "part_add", "part_max", "part_min", "part_mul", "prelu", "random",
    "read", "recip", "reinterpret_view", "relu", "rem", "rems", "reshape", "row_argmax", "row_argmin",
    "row_expand", "row_expand_add", "row_expand_div", "row_expand_expdif", "row_expand_max",
    "row_expand_min", "row_expand_mul", "row_expand_sub", "row_max", "row_min", "row_prod", "row_sum",
    "rsqrt", "scatter", "scatter_mask", "scatter_update", "sel", "sels", "set_validshape", "shl", "shls",
    "shr", "shrs", "sin", "slice", "sort32", "sqrt", "store", "sub", "subc", "subs", "subsc",
    "tget_scale_addr", "tpop_from_aic", "tpop_from_aiv", "tpush_to_aic", "tpush_to_aiv", "transpose",
    "transpose_view", "tri", "write", "xor", "xors",
]  # fmt: skip

_INT32 = DataType.INT32
Vec = MemorySpace.Vec


# --- allocation and transfer ----------------------------------------------------------------------


def create(
    shape: Any,
    dtype: DataType,
    target_memory: MemorySpace | None = Vec,
    transpose: bool | None = None,
    span: Span | None = None,
    *,
    flat_layout: bool | None = None,
) -> Call:
    """An uninitialised tile in ``target_memory``."""
    span = at(span)
    kwargs: dict[str, Any] = {"dtype": dtype}
    if target_memory is not None:
        kwargs["target_memory"] = target_memory
    if transpose is not None:
        kwargs["transpose"] = static_flag(transpose, "transpose")
    if flat_layout is not None:
        kwargs["flat_layout"] = flat_layout
    return call("tile.create", [extents(shape, span)], span, **kwargs)


create_tile = create


def load(
    tensor: Expr,
    offsets: Any,
    shapes: Any,
    valid_shape: Any = None,
    target_memory: MemorySpace = Vec,
    clamp: bool = False,
    span: Span | None = None,
) -> Call:
    """A window of a tensor; ``valid_shape`` cells of it are read."""
    span = at(span)
    window = extents(shapes, span)
    valid = window if valid_shape is None else extents(valid_shape, span)
    kwargs: dict[str, Any] = {"target_memory": target_memory}
    if clamp:
        kwargs["clamp"] = True
    return call("tile.load", [tensor, extents(offsets, span), window, valid], span, **kwargs)


def store(
    tile: Expr,
    offsets: Any,
    output_tensor: Expr,
    shapes: Any = None,
    span: Span | None = None,
    *,
    atomic: int = 0,
) -> Call:
    """Write the valid cells of a tile into a tensor; ``atomic`` 1 adds."""
    span = at(span)
    args = [tile, extents(offsets, span), output_tensor]
    if shapes is not None:
        args.append(extents(shapes, span))
    kwargs = {"atomic": atomic} if atomic else {}
    return call("tile.store", args, span, **kwargs)


def move(
    tile: Expr,
    target_memory: MemorySpace,
    blayout: TileLayout | None = None,
    slayout: TileLayout | None = None,
    span: Span | None = None,
) -> Call:
    """The same cells in another memory space."""
    kwargs: dict[str, Any] = {"target_memory": target_memory}
    if blayout is not None:
        kwargs["blayout"] = blayout
    if slayout is not None:
        kwargs["slayout"] = slayout
    return call("tile.move", [tile], at(span), **kwargs)


def alloc(memory_space: Any, size: Any, span: Span | None = None, *, pinned: bool = False) -> Call:
    """A declared buffer."""
    span = at(span)
    space = memory_space.value if isinstance(memory_space, MemorySpace) else memory_space
    kwargs = {"pinned": True} if pinned else {}
    return call("tile.alloc", [constant(space, span), constant(size, span)], span, **kwargs)


# --- windows, views, shape changes ----------------------------------------------------------------


def slice(
    tile: Expr,
    shape: Any,
    offset: Any,
    valid_shape: Any = None,
    drop_dims: Any = None,
    pad_value: Any = None,
    span: Span | None = None,
) -> Call:
    """A view of a window."""
    span = at(span)
    kwargs: dict[str, Any] = {}
    if pad_value is not None:
        kwargs["pad_value"] = pad = slice_pad(pad_value)
        if pad is not PadValue.null and valid_shape is None and _is_full(tile):
            warn_pad_without_effect("tile.slice")
    args = [tile, extents(shape, span), extents(offset, span), *optional_tail(valid_shape, drop_dims, span)]
    return call("tile.slice", args, span, **kwargs)


def slice_pad(value: Any) -> PadValue:
    """The pad of a slice; every spelling of a pad value, and null."""
    return resolve_pad_value(value, "slice pad_value", allow_null=True)


def _is_full(tile: Expr) -> bool:
    kind = tile.type
    return not (isinstance(kind, TileType) and kind.tile_view is not None and kind.tile_view.valid_shape_)


def extract(
    src: Expr,
    index_row: Any,
    index_col: Any,
    shape: Any,
    span: Span | None = None,
    *,
    target_memory: MemorySpace,
) -> Call:
    """Copy a window into another memory space."""
    span = at(span)
    args = [src, constant(index_row, span), constant(index_col, span), extents(shape, span)]
    return call("tile.extract", args, span, target_memory=target_memory)


def assemble(target: Expr, source: Expr, offset: Any, span: Span | None = None) -> Call:
    """Write ``source`` into ``target`` at ``offset`` in place."""
    span = at(span)
    return call("tile.assemble", [target, source, extents(offset, span)], span)


def reshape(tile: Expr, shape: Any, span: Span | None = None) -> Call:
    """The same cells, row-major, under another shape."""
    span = at(span)
    return call("tile.reshape", [tile, extents(shape, span)], span)


def reinterpret_view(data: Expr, dtype: DataType, span: Span | None = None, *, shape: Any = None) -> Call:
    """The same bytes as another element type."""
    span = at(span)
    args = [data] if shape is None else [data, extents(shape, span)]
    return call("tile.reinterpret_view", args, span, dtype=dtype)


def transpose(tile: Expr, axis1: Any, axis2: Any, tmp: Expr | None = None, span: Span | None = None) -> Call:
    """Two axes exchanged, as a copy."""
    span = at(span)
    args: list[Expr] = [tile, axis_constant(axis1, "axis1", span), axis_constant(axis2, "axis2", span)]
    if tmp is not None:
        args.append(tmp)
    return call("tile.transpose", args, span)


def set_validshape(tile: Expr, valid_rows: Any, valid_cols: Any, span: Span | None = None) -> Call:
    """The same 2-D tile with another valid region."""
    span = at(span)
    return call("tile.set_validshape", [tile, expr(valid_rows, span), expr(valid_cols, span)], span)


transpose_view = simple("tile.transpose_view")
concat = simple("tile.concat")


def fillpad(tile: Expr, pad_value: Any = PadValue.zero, span: Span | None = None) -> Call:
    """Fill the cells outside the valid region."""
    return call("tile.fillpad", [tile], at(span), pad_value=resolve_pad_value(pad_value))


def fillpad_inplace(tile: Expr, pad_value: Any = PadValue.zero, span: Span | None = None) -> Call:
    """Fill the cells outside the valid region in place."""
    return call("tile.fillpad_inplace", [tile], at(span), pad_value=resolve_pad_value(pad_value))


def fillpad_expand(tile: Expr, shape: Any, pad_value: Any = PadValue.zero, span: Span | None = None) -> Call:
    """The tile at the origin of a larger, padded one."""
    span = at(span)
    return call(
        "tile.fillpad_expand", [tile, extents(shape, span)], span, pad_value=resolve_pad_value(pad_value)
    )


# --- elementwise ----------------------------------------------------------------------------------

_tile_tile = {leaf: simple(f"tile.{leaf}") for leaf in ("add", "sub", "mul")}


def _is_scalar(value: Any) -> bool:
    return not isinstance(value, Expr) or isinstance(value.type, ScalarType)


def add(lhs: Expr, rhs: Any, span: Span | None = None) -> Call:
    """``lhs + rhs``; a scalar ``rhs`` gives ``tile.adds``."""
    return adds(lhs, rhs, at(span)) if _is_scalar(rhs) else _tile_tile["add"](lhs, rhs, at(span))


def sub(lhs: Expr, rhs: Any, span: Span | None = None) -> Call:
    """``lhs - rhs``; a scalar ``rhs`` gives ``tile.subs``."""
    return subs(lhs, rhs, at(span)) if _is_scalar(rhs) else _tile_tile["sub"](lhs, rhs, at(span))


def mul(lhs: Expr, rhs: Any, span: Span | None = None) -> Call:
    """``lhs * rhs``; a scalar ``rhs`` gives ``tile.muls``."""
    return muls(lhs, rhs, at(span)) if _is_scalar(rhs) else _tile_tile["mul"](lhs, rhs, at(span))


def div(lhs: Expr, rhs: Any, span: Span | None = None, *, high_precision: bool = False) -> Call:
    """``lhs / rhs``; a scalar ``rhs`` gives ``tile.divs``."""
    span = at(span)
    if not _is_scalar(rhs):
        return call("tile.div", [lhs, rhs], span, **precision(high_precision))
    if high_precision:
        raise TypeError("tile.div(high_precision=True) requires a Tile rhs")
    return divs(lhs, rhs, span)


def cmp(lhs: Expr, rhs: Expr, cmp_type: Any = 0, span: Span | None = None) -> Call:
    """A packed predicate; code 0 eq, 1 ne, 2 lt, 3 le, 4 gt, 5 ge."""
    return call("tile.cmp", [lhs, rhs], at(span), cmp_type=static_int(cmp_type, "cmp_type"))


def cmps(lhs: Expr, scalar: Any, cmp_type: Any = 0, span: Span | None = None) -> Call:
    """As :func:`cmp`, against a scalar."""
    span = at(span)
    return call(
        "tile.cmps", [lhs, scalar_for(lhs, scalar, span)], span, cmp_type=static_int(cmp_type, "cmp_type")
    )


adds, subs, muls, divs, fmods = (
    with_scalar(f"tile.{leaf}") for leaf in ("adds", "subs", "muls", "divs", "fmods")
)
maximums, minimums = with_scalar("tile.maximums"), with_scalar("tile.minimums")
maximum, minimum, fmod, rem = (simple(f"tile.{leaf}") for leaf in ("maximum", "minimum", "fmod", "rem"))
part_add, part_mul = simple("tile.part_add"), simple("tile.part_mul")
part_max, part_min = simple("tile.part_max"), simple("tile.part_min")
rems = with_scalar("tile.rems")
addc, subc = simple("tile.addc"), simple("tile.subc")
addsc, subsc = with_scalar("tile.addsc"), with_scalar("tile.subsc")
and_, or_, xor = simple("tile.and"), simple("tile.or"), simple("tile.xor")
shl, shr, not_ = simple("tile.shl"), simple("tile.shr"), simple("tile.not")
ands, ors, xors = with_integer("tile.ands"), with_integer("tile.ors"), with_integer("tile.xors")
shls, shrs = with_integer("tile.shls"), with_integer("tile.shrs")
expands = with_scalar("tile.expands")
prelu, sel = simple("tile.prelu"), simple("tile.sel")


def lrelu(tile: Expr, slope: Any, span: Span | None = None) -> Call:
    """``tile`` where positive, else ``tile * slope``; a constant slope becomes FP32."""
    span = at(span)
    number = literal_of(slope)
    scale = slope if number is None else ConstFloat(float(number), DataType.FP32, span)
    return call("tile.lrelu", [tile, scale], span)


def sels(mask: Expr, src: Expr, tmp: Expr, scalar: Any, span: Span | None = None) -> Call:
    """``src`` where the predicate holds, else ``scalar``."""
    span = at(span)
    number, dtype = literal_of(scalar), element_dtype(src)
    if number is not None and dtype is not None:
        scalar = _selected_constant(number, dtype, span)
    return call("tile.sels", [mask, src, tmp, scalar], span)


def _selected_constant(value: int | float, dtype: DataType, span: Span) -> Expr:
    """The constant in the source's type; an unsigned source takes the signed type with the same bits."""
    target = signed_counterpart(dtype)
    if target.is_float():
        return ConstFloat(float(value), target, span)
    if isinstance(value, float) and not value.is_integer():
        raise ValueError(f"tile.sels: a non-integral scalar {value} cannot select into {dtype} elements")
    bits = target.get_bit()
    wrapped = int(value) & ((1 << bits) - 1) if target is not dtype else int(value)
    if target is not dtype and wrapped >= 1 << (bits - 1):
        wrapped -= 1 << bits
    return ConstInt(wrapped, target, span)


# --- unary ----------------------------------------------------------------------------------------

neg, abs, exp, sqrt, relu = (simple(f"tile.{leaf}") for leaf in ("neg", "abs", "exp", "sqrt", "relu"))
sin, cos, rsqrt = simple("tile.sin"), simple("tile.cos"), simple("tile.rsqrt")


def log(tile: Expr, span: Span | None = None, *, high_precision: bool = False) -> Call:
    """Natural logarithm."""
    return call("tile.log", [tile], at(span), **precision(high_precision))


def recip(tile: Expr, span: Span | None = None, *, high_precision: bool = False) -> Call:
    """``1 / tile``."""
    return call("tile.recip", [tile], at(span), **precision(high_precision))


def cast(tile: Expr, target_type: Any, mode: Any = "round", span: Span | None = None) -> Call:
    """Element conversion; ``mode`` is a rounding mode name or its code."""
    number = resolve_cast_mode(mode.value if isinstance(mode, ConstInt) else mode)
    return call("tile.cast", [tile], at(span), target_type=dtype_of(target_type), mode=number)


# --- along an axis --------------------------------------------------------------------------------

row_sum, row_max, row_min, row_prod, row_argmax, row_argmin = (
    simple(f"tile.row_{combine}") for combine in ("sum", "max", "min", "prod", "argmax", "argmin")
)
col_sum, col_max, col_min, col_prod, col_argmax, col_argmin = (
    simple(f"tile.col_{combine}") for combine in ("sum", "max", "min", "prod", "argmax", "argmin")
)
row_expand, row_expand_sub, row_expand_mul, row_expand_div = (
    simple(f"tile.row_expand{suffix}") for suffix in ("", "_sub", "_mul", "_div")
)
row_expand_max, row_expand_min, row_expand_expdif = (
    simple(f"tile.row_expand_{suffix}") for suffix in ("max", "min", "expdif")
)
col_expand, col_expand_add, col_expand_sub, col_expand_mul, col_expand_div = (
    simple(f"tile.col_expand{suffix}") for suffix in ("", "_add", "_sub", "_mul", "_div")
)
col_expand_max, col_expand_min, col_expand_expdif = (
    simple(f"tile.col_expand_{suffix}") for suffix in ("max", "min", "expdif")
)


def row_expand_add(tile: Expr, row_vec: Expr, span: Span | None = None, *, tmp: Expr | None = None) -> Call:
    """``tile + row_vec`` across the columns."""
    return call("tile.row_expand_add", [tile, row_vec] if tmp is None else [tile, row_vec, tmp], at(span))


# --- matrix products ------------------------------------------------------------------------------

matmul, matmul_bias = simple("tile.matmul"), simple("tile.matmul_bias")
batch_matmul, batch_matmul_acc = simple("tile.batch_matmul"), simple("tile.batch_matmul_acc")
matmul_mx, matmul_mx_acc = simple("tile.matmul_mx"), simple("tile.matmul_mx_acc")
matmul_mx_bias, tget_scale_addr = simple("tile.matmul_mx_bias"), simple("tile.tget_scale_addr")


def matmul_acc(acc: Expr, lhs: Expr, rhs: Expr, span: Span | None = None, *, init_cond: Any = None) -> Call:
    """``acc + lhs @ rhs``, or the product alone where ``init_cond`` is true."""
    span = at(span)
    args = [acc, lhs, rhs] if init_cond is None else [acc, lhs, rhs, condition(init_cond, span)]
    return call("tile.matmul_acc", args, span)


def gemv(lhs: Expr, rhs: Expr, span: Span | None = None, *, acc_phase: str = "unspecified") -> Call:
    """One row times a matrix."""
    return call("tile.gemv", [lhs, rhs], at(span), acc_phase=acc_phase)


def gemv_acc(
    acc: Expr, lhs: Expr, rhs: Expr, span: Span | None = None, *, acc_phase: str = "unspecified"
) -> Call:
    """``acc`` plus one row times a matrix."""
    return call("tile.gemv_acc", [acc, lhs, rhs], at(span), acc_phase=acc_phase)


def gemv_bias(
    lhs: Expr, rhs: Expr, bias: Expr, span: Span | None = None, *, acc_phase: str = "unspecified"
) -> Call:
    """One row times a matrix, plus a bias row."""
    return call("tile.gemv_bias", [lhs, rhs, bias], at(span), acc_phase=acc_phase)


# --- elements, generators, queries ----------------------------------------------------------------


def read(tile: Expr, indices: Any, span: Span | None = None) -> Call:
    """One cell as a scalar."""
    span = at(span)
    return call("tile.read", [tile, _index_list(indices, span)], span)


def write(tile: Expr, indices: Any, value: Any, span: Span | None = None) -> Call:
    """Set one cell in place; the value must have exactly the element type."""
    span = at(span)
    return call("tile.write", [tile, _index_list(indices, span), expr(value, span)], span)


def _index_list(indices: Any, span: Span) -> Expr:
    if isinstance(indices, int):
        raise TypeError("tile indices must be a sequence, got a bare int")
    return index_tuple(indices, span)


def full(shape: Any, dtype: DataType, value: Any, span: Span | None = None) -> Call:
    """A tile whose every cell is the number ``value``."""
    span = at(span)
    return call("tile.full", [extents(shape, span), fill_constant(value, dtype, span)], span, dtype=dtype)


def ci(
    start: Any, shape: Any, dtype: DataType = _INT32, descending: bool = False, span: Span | None = None
) -> Call:
    """``start, start + 1, ...`` (or descending) along the last axis."""
    span = at(span)
    args = [retyped(start, dtype, span), extents(shape, span)]
    return call("tile.ci", args, span, dtype=dtype, descending=descending)


arange = ci


def tri(
    diagonal: Any,
    shape: Any,
    valid_shape: Any = None,
    dtype: DataType = _INT32,
    upper: bool = False,
    span: Span | None = None,
) -> Call:
    """Ones on one side of a diagonal, zeros on the other."""
    span = at(span)
    args = [retyped(diagonal, _INT32, span), extents(shape, span)]
    if valid_shape is not None:
        args.append(extents(valid_shape, span))
    return call("tile.tri", args, span, dtype=dtype, upper=upper)


def random(
    key0: Any,
    key1: Any,
    counter0: Any,
    counter1: Any,
    counter2: Any,
    counter3: Any,
    shape: Any,
    valid_shape: Any = None,
    dtype: DataType = DataType.UINT32,
    rounds: int = 10,
    span: Span | None = None,
) -> Call:
    """Counter-based random words (Philox 4x32)."""
    span = at(span)
    args: list[Expr] = [
        retyped(word, _INT32, span) for word in (key0, key1, counter0, counter1, counter2, counter3)
    ]
    args.append(extents(shape, span))
    if valid_shape is not None:
        args.append(extents(valid_shape, span))
    return call("tile.random", args, span, dtype=dtype, rounds=static_int(rounds, "rounds"))


get_block_idx, get_block_num = simple("tile.get_block_idx"), simple("tile.get_block_num")
get_subblock_idx = simple("tile.get_subblock_idx")


# --- lanes ----------------------------------------------------------------------------------------


def aiv_shard(x: Expr, span: Span | None = None, *, split: int = 0, lane_stride: int | None = None) -> Call:
    """One vector lane's half of a tile."""
    kwargs = {"split": split} | ({} if lane_stride is None else {"lane_stride": lane_stride})
    return call("tile.aiv_shard", [x], at(span), **kwargs)


def aic_gather(x: Expr, span: Span | None = None, *, split: int = 0) -> Call:
    """Both lanes' halves of a tile, for the cube core."""
    return call("tile.aic_gather", [x], at(span), split=split)


def lane_attributes(split: int, lane_stride: int | None, id: int | None) -> dict[str, Any]:
    """Attributes of a queue operation, the optional ones only where given."""
    kwargs: dict[str, Any] = {"split": split}
    if lane_stride is not None:
        kwargs["lane_stride"] = lane_stride
    if id is not None:
        kwargs["id"] = id
    return kwargs


def tpush_to_aiv(
    tile: Expr, span: Span | None = None, *, split: int, lane_stride: int | None = None, id: int | None = None
) -> Call:
    """Send a tile from the cube core to the vector lanes."""
    return call("tile.tpush_to_aiv", [tile], at(span), **lane_attributes(split, lane_stride, id))


def tpush_to_aic(tile: Expr, span: Span | None = None, *, split: int, id: int | None = None) -> Call:
    """Send a tile from a vector lane to the cube core."""
    return call("tile.tpush_to_aic", [tile], at(span), **lane_attributes(split, None, id))


def tpop_from_aic(
    span: Span | None = None,
    *,
    shape: Any = None,
    dtype: DataType | None = None,
    split: int = 0,
    lane_stride: int | None = None,
    id: int | None = None,
    result_type: Any = None,
) -> Call:
    """Receive a tile from the cube core."""
    popped = result_type or _popped("tpop_from_aic", shape, dtype, Vec)
    return _pop("tile.tpop_from_aic", popped, at(span), lane_attributes(split, lane_stride, id))


def tpop_from_aiv(
    span: Span | None = None,
    *,
    shape: Any = None,
    dtype: DataType | None = None,
    split: int = 0,
    id: int | None = None,
    result_type: Any = None,
) -> Call:
    """Receive a tile from the vector lanes."""
    popped = result_type or _popped("tpop_from_aiv", shape, dtype, MemorySpace.Mat)
    return _pop("tile.tpop_from_aiv", popped, at(span), lane_attributes(split, None, id))


def _popped(
    name: str, shape: Sequence[Any] | None, dtype: DataType | None, space: MemorySpace
) -> TileType | None:
    if (shape is None) != (dtype is None):
        raise ValueError(f"{name}: shape and dtype must both be provided or both omitted")
    if shape is None or dtype is None:
        return None
    return TileType(list(extents(shape, Span.unknown()).elements_), dtype, None, None, space)


def _pop(name: str, popped: Any, span: Span, kwargs: dict[str, Any]) -> Call:
    made = call(name, [], span, **kwargs)
    return made if popped is None else Call(made.op, [], made.kwargs, popped, span)
