"""How each tensor operator is written in terms of tiles.

Most operators keep their name. The others are converters that follow, grouped as the operator pages group
them. Two things hold for every conversion: the tile has the shape and the element type that the tensor had,
so that later operators see what they saw before; and which cells of it are valid is whatever the tile
operator says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pypto import ir
from pypto.core.dtype import DataType
from pypto.ir.op_registry import get_op_def
from pypto.ir.views import same_extents
from pypto.passes.convert_tensor_to_tile_ops.broadcast import add_like, alike, divide, expanded, subtract
from pypto.passes.convert_tensor_to_tile_ops.gathers import (
    expand_clone,
    gather,
    gather_compare,
    gather_row,
    merge_lists,
    paged_gather,
    scatter,
    scatter_mask,
    scatter_update,
)
from pypto.passes.convert_tensor_to_tile_ops.kernel import Converter, KernelLowering, Mat, Vec
from pypto.passes.convert_tensor_to_tile_ops.matrix import matmul, matmul_acc
from pypto.passes.convert_tensor_to_tile_ops.pieces import (
    elements,
    filled,
    in_dtype,
    in_rows,
    position,
    positions,
    reshaped,
    result_dtype,
    result_in_dtype,
    result_shape,
    scratch,
    shown_name,
    tile_type,
    tuple_of,
    with_rank,
)
from pypto.passes.convert_tensor_to_tile_ops.windows import remote_store, transfer

__all__ = ["CONVERTERS", "PASS_THROUGH"]

PASS_THROUGH = frozenset({"tensor.view"})
"""Tensor operators that a kernel keeps; their operand has to be memory."""

_SAME_NAME = (
    "neg abs sin cos log sqrt exp recip not"
    " and or shl shr ands ors shls shrs"
    " row_expand row_expand_mul row_expand_div row_expand_sub row_expand_max row_expand_min row_expand_expdif"
    " col_expand col_expand_mul col_expand_add col_expand_sub col_expand_div col_expand_max col_expand_min"
    " col_expand_expdif concat set_validshape full ci random"
    " sort32 mrgsort_format1 gather_mask"
    " get_block_idx get_subblock_idx get_block_num aiv_shard aic_gather"
)


def _same_name(k: KernelLowering, call: ir.Call, var: ir.Var | None) -> ir.Expr:
    """The tile operator of the same name on the operands' tiles, in the element type of the tensor result."""
    name = f"tile.{call.op.name.removeprefix('tensor.')}"
    space = Mat if k.feeds_matrix_unit(var) and name == "tile.set_validshape" else Vec
    args = [k.tile(arg, space) if isinstance(arg.type, ir.TensorType) else arg for arg in call.args_]
    return k.op(name, args, **_shared_kwargs(name, call))


def _shared_kwargs(name: str, call: ir.Call) -> Mapping[str, Any]:
    definition = get_op_def(name)
    if definition is None:
        return call.kwargs_
    return {key: value for key, value in call.kwargs_.items() if key in definition.kwargs}


def _unary(k: KernelLowering, call: ir.Call, var: ir.Var | None) -> ir.Expr:
    """Unary operators whose result is a float also for integers compute in that float."""
    name = f"tile.{call.op.name.removeprefix('tensor.')}"
    operand = in_dtype(k, k.tile(call.args_[0]), result_dtype(call))
    return k.op(name, [operand], **_shared_kwargs(name, call))


def _cast(k: KernelLowering, call: ir.Call, var: ir.Var | None) -> ir.Expr:
    return k.op("tile.cast", [k.tile(call.args_[0])], **call.kwargs_)


def _rsqrt(k: KernelLowering, call: ir.Call, var: ir.Var | None) -> ir.Expr:
    operand = in_dtype(k, k.tile(call.args_[0]), result_dtype(call))
    if not call.kwargs_.get("high_precision"):
        return k.op("tile.rsqrt", [operand])
    return k.op(
        "tile.rsqrt", [operand, scratch(k, "rsqrt_tmp", tile_type(operand).shape_, result_dtype(call))]
    )


# --- tile with scalar ---------------------------------------------------------------------------------------


def _with_scalar(leaf: str) -> Converter:
    def convert(k: KernelLowering, call: ir.Call, var: ir.Var | None) -> ir.Expr:
        tile = in_dtype(k, k.tile(call.args_[0]), result_dtype(call))
        return k.op(f"tile.{leaf}", [tile, call.args_[1]])

    return convert


def _extremum(leaf: str) -> Converter:
    """`maximum` and `minimum`, whose second operand may be a scalar."""
    with_scalar = _with_scalar(f"{leaf}s")

    def convert(k: KernelLowering, call: ir.Call, var: ir.Var | None) -> ir.Expr:
        if isinstance(call.args_[1].type, ir.ScalarType):
            return with_scalar(k, call, var)
        return add_like(k, call, leaf)

    return convert


def _partial(leaf: str) -> Converter:
    return lambda k, call, var: alike(k, call, leaf)


def _expands(k: KernelLowering, call: ir.Call, var: ir.Var | None) -> ir.Expr:
    target, scalar = k.tile(call.args_[0]), call.args_[1]
    filled = k.op("tile.expands", [target, scalar])
    return result_in_dtype(k, call, filled)


def _exclusive_or(leaf: str) -> Converter:
    def convert(k: KernelLowering, call: ir.Call, var: ir.Var | None) -> ir.Expr:
        lhs = k.tile(call.args_[0])
        rhs = k.tile(call.args_[1])
        return k.op(
            f"tile.{leaf}", [lhs, rhs, scratch(k, "xor_tmp", tile_type(lhs).shape_, result_dtype(call))]
        )

    return convert


def _compare(k: KernelLowering, call: ir.Call, var: ir.Var | None) -> ir.Expr:
    """A tile comparison gives packed bits; the tensor operator gives ones and zeros."""
    dtype, shape = result_dtype(call), result_shape(call)
    lhs, rhs = in_dtype(k, k.tile(call.args_[0]), dtype), call.args_[1]
    if isinstance(rhs.type, ir.ScalarType):
        mask = k.let("cmp_mask", k.op("tile.cmps", [lhs, rhs], cmp_type=call.kwargs_["cmp_type"]))
    else:
        other = in_dtype(k, k.tile(rhs), dtype)
        mask = k.let("cmp_mask", k.op("tile.cmp", [lhs, other], cmp_type=call.kwargs_["cmp_type"]))
    ones = k.let("cmp_ones", filled(k, shape, dtype, 1))
    zeros = k.let("cmp_zeros", filled(k, shape, dtype, 0))
    selected = scratch(k, "cmp_tmp", (k.index(1), k.index(32)), DataType.UINT8)
    return k.op("tile.sel", [mask, ones, zeros, selected])


# --- reductions ---------------------------------------------------------------------------------------------


def _row_reduction(k: KernelLowering, call: ir.Call, var: ir.Var | None) -> ir.Expr:
    """Over the last axis, with a scratch tile. A vector is reduced as a matrix of one row."""
    name = f"tile.{call.op.name.removeprefix('tensor.')}"
    tile = k.tile(call.args_[0])
    shape = tile_type(tile).shape_
    if len(shape) == 1:
        row = k.let("row", k.op("tile.reshape", [tile, tuple_of(k, (k.index(1), *shape))]))
        reduced = k.let("row_reduced", k.op(name, [row, _row_scratch(k, name, tile_type(row))]))
        return k.op("tile.reshape", [reduced, tuple_of(k, (k.index(1),))])
    if name == "tile.row_min":
        tile = in_rows(k, tile)
    return k.op(name, [tile, _row_scratch(k, name, tile_type(tile))])


_ROW_SCRATCH_WIDTH = 128


def _row_scratch(k: KernelLowering, name: str, tile: ir.TileType) -> ir.Expr:
    """Scratch of the tile's shape; except for index reductions at least 128 wide."""
    *leading, last = tile.shape_
    if not name.endswith(("argmax", "argmin")) and not (
        isinstance(last, ir.ConstInt) and last.value >= _ROW_SCRATCH_WIDTH
    ):
        last = k.index(_ROW_SCRATCH_WIDTH)
    return scratch(k, "tmp_tile", (*leading, last), tile.dtype)


def _column_reduction(k: KernelLowering, call: ir.Call, var: ir.Var | None) -> ir.Expr:
    """Over the second-last axis. A tile is reduced over its first, so a stack of matrices is turned first."""
    name = f"tile.{call.op.name.removeprefix('tensor.')}"
    tile = k.tile(call.args_[0])
    shape = tile_type(tile).shape_
    if len(shape) == 2:
        return _reduced_columns(k, name, tile)
    if not same_extents(shape, tile_type(tile).get_effective_tile_view().valid_shape_):
        raise ValueError(
            f"{call.op.name} in a kernel takes a tensor of rank {len(shape)} only when all of it is valid; "
            f"fill the padding first [{k.span}]"
        )
    *stack, rows, columns = shape
    count = k.index(1)
    for extent in stack:
        if not isinstance(extent, ir.ConstInt):
            raise ValueError(f"{call.op.name} in a kernel needs extents known at compile time [{k.span}]")
        count = k.index(count.value * extent.value)
    matrices = k.let("matrices", k.op("tile.reshape", [tile, tuple_of(k, (count, rows, columns))]))
    turned = k.let("turned", k.op("tile.transpose", [matrices, k.index(0), k.index(1)]))
    reduced = k.let("col_reduced", _reduced_columns(k, name, turned))
    return k.op("tile.reshape", [reduced, tuple_of(k, (*stack, k.index(1), columns))])


def _reduced_columns(k: KernelLowering, name: str, tile: ir.Expr) -> ir.Call:
    if name.endswith(("argmax", "argmin")):
        return k.op(name, [tile, scratch(k, "tmp_tile", tile_type(tile).shape_, tile_type(tile).dtype)])
    return k.op(name, [tile])


# --- memory -------------------------------------------------------------------------------------------------


def _slice(k: KernelLowering, call: ir.Call, var: ir.Var | None) -> ir.Expr:
    """A window of memory is loaded, a window of a tile is a view of it."""
    source, shape, offset = call.args_[:3]
    valid = call.args_[3] if len(call.args_) > 3 and elements(call.args_[3]) else None
    if elements(shape) and not result_shape(call):
        raise ValueError(f"tensor.slice cannot drop every dimension; use tensor.read [{k.span}]")
    if k.is_memory(source):
        space = Mat if k.feeds_matrix_unit(var) else Vec
        kwargs: dict[str, Any] = {"target_memory": space}
        if call.kwargs_.get("clamp"):
            kwargs["clamp"] = True
        window = k.op(
            "tile.load", [k.current(source), offset, shape, shape if valid is None else valid], **kwargs
        )
    else:
        window = _window_of_tile(k, call, shape, offset, valid)
    if len(tile_type(window).shape_) == len(result_shape(call)):
        return window
    axes = elements(call.args_[4]) if len(call.args_) > 4 else ()
    return reshaped(k, _with_data(k, k.let("window", window), axes), result_shape(call))


def _with_data(k: KernelLowering, window: ir.Expr, axes: Sequence[ir.Expr]) -> ir.Expr:
    """A window whose dropped axes hold their one cell, as its tensor says where the tile leaves it open."""
    dropped = {axis.value for axis in axes if isinstance(axis, ir.ConstInt)}
    known = tile_type(window).get_effective_tile_view().valid_shape_
    region = [k.index(1) if axis in dropped else extent for axis, extent in enumerate(known)]
    if len(region) != 2 or same_extents(region, known):
        return window
    return k.let("row", k.op("tile.set_validshape", [window, *(position(k, extent) for extent in region)]))


def _window_of_tile(
    k: KernelLowering, call: ir.Call, shape: ir.Expr, offset: ir.Expr, valid: ir.Expr | None
) -> ir.Call:
    """A clamped window states its valid region: tiles have no clamping of their own. A window of fewer axes
    than its source lies at the start of the leading ones."""
    source = k.current(call.args_[0])
    rank = len(elements(shape))
    if call.kwargs_.get("clamp") and len(result_shape(call)) == rank:
        valid = tuple_of(k, _valid_shape(call.type))
    missing = len(tile_type(source).shape_) - rank
    if missing < 0:
        source = with_rank(k, source, rank)
    ones, zeros = ([k.index(value)] * max(missing, 0) for value in (1, 0))
    extents = (*ones, *elements(shape))
    starts = positions(k, tuple_of(k, (*zeros, *elements(offset))))
    if valid is None:
        return k.op("tile.slice", [source, tuple_of(k, extents), starts], **_pad(call))
    region = positions(k, tuple_of(k, (*ones, *elements(valid))))
    inside = _extents_inside(k, source, extents, elements(starts))
    if len(extents) == 2 and not same_extents(inside, extents):
        part = k.let("inside", k.op("tile.slice", [source, tuple_of(k, inside), starts]))
        whole = k.op("tile.fillpad_expand", [part, tuple_of(k, extents)], pad_value=ir.PadValue.zero)
        return k.op("tile.set_validshape", [k.let("window", whole), *elements(region)])
    return k.op("tile.slice", [source, tuple_of(k, extents), starts, region], **_pad(call))


def _pad(call: ir.Call) -> dict[str, Any]:
    pad = call.kwargs_.get("pad_value")
    return {} if pad is None else {"pad_value": pad}


def _extents_inside(
    k: KernelLowering, source: ir.Expr, extents: Sequence[ir.Expr], starts: Sequence[ir.Expr]
) -> tuple[ir.Expr, ...]:
    """The extents of a window, cut where it certainly leaves the tile: a tile has no cells out there."""
    inside = []
    for bound, extent, start in zip(tile_type(source).shape_, extents, starts, strict=True):
        constants = [each.value for each in (bound, extent, start) if isinstance(each, ir.ConstInt)]
        cut = len(constants) == 3 and constants[2] < constants[0] < constants[2] + constants[1]
        inside.append(k.index(constants[0] - constants[2]) if cut else extent)
    return tuple(inside)


def _assemble(k: KernelLowering, call: ir.Call, var: ir.Var | None) -> ir.Expr:
    target, source, offset = call.args_
    atomic = call.kwargs_.get("atomic", 0)
    tile = with_rank(k, k.tile(source), len(elements(offset)))
    if k.is_memory(target):
        return k.op("tile.store", [tile, offset, k.current(target)], **({"atomic": atomic} if atomic else {}))
    if atomic:
        raise ValueError(
            f"An atomic assemble needs a target in memory, but '{shown_name(target)}' is computed inside "
            f"the kernel [{k.span}]"
        )
    return _assemble_tile(k, k.current(target), tile, offset)


def _assemble_tile(k: KernelLowering, target: ir.Expr, tile: ir.Expr, offset: ir.Expr) -> ir.Call:
    source = in_dtype(k, tile, tile_type(target).dtype)
    return k.op("tile.assemble", [target, source, positions(k, offset)])


def _store(k: KernelLowering, call: ir.Call, var: ir.Var | None) -> ir.Expr:
    """A store into a tensor that lives in a tile updates the tile."""
    tile, offset, target = call.args_[:3]
    if k.is_memory(target):
        return call.replace(args=[k.tile(tile), offset, k.current(target), *call.args_[3:]])
    if call.kwargs_.get("atomic"):
        raise ValueError(
            f"An atomic store needs a target in memory, but '{shown_name(target)}' is computed inside "
            f"the kernel [{k.span}]"
        )
    return _assemble_tile(k, k.current(target), with_rank(k, k.tile(tile), len(elements(offset))), offset)


def _load(k: KernelLowering, call: ir.Call, var: ir.Var | None) -> ir.Expr:
    """A load from a tensor that lives in a tile is a window of the tile."""
    source, offset, shape, valid = call.args_
    if k.is_memory(source):
        return call.replace(args=[k.current(source), offset, shape, valid])
    args = [k.current(source), shape, positions(k, offset)]
    whole = same_extents(elements(shape), elements(valid))
    return k.op("tile.slice", args if whole else [*args, positions(k, valid)])


def _create(k: KernelLowering, call: ir.Call, var: ir.Var | None) -> ir.Expr:
    initial = call.kwargs_.get("init_value")
    if initial is not None:
        return filled(k, result_shape(call), result_dtype(call), initial)
    return k.op("tile.create", [call.args_[0]], dtype=result_dtype(call), target_memory=Vec)


def _create_l1(k: KernelLowering, call: ir.Call, var: ir.Var | None) -> ir.Expr:
    kwargs = {"transpose": True} if call.kwargs_.get("transpose") else {}
    return k.op("tile.create", [call.args_[0]], dtype=result_dtype(call), target_memory=Mat, **kwargs)


def _read(k: KernelLowering, call: ir.Call, var: ir.Var | None) -> ir.Expr:
    source = k.current(call.args_[0])
    if k.is_memory(source):
        return call.replace(args=[source, call.args_[1]])
    return k.op("tile.read", [source, call.args_[1]])


def _write(k: KernelLowering, call: ir.Call, var: ir.Var | None) -> ir.Expr:
    target = k.current(call.args_[0])
    if k.is_memory(target):
        return call.replace(args=[target, *call.args_[1:]])
    return k.op("tile.write", [target, *call.args_[1:]])


def _dim(k: KernelLowering, call: ir.Call, var: ir.Var | None) -> ir.Expr:
    """The extent of a tile is what its type says."""
    source = k.current(call.args_[0])
    if k.is_memory(source):
        return call.replace(args=[source, call.args_[1]])
    axis = call.args_[1]
    assert isinstance(axis, ir.ConstInt)
    return tile_type(source).shape_[axis.value]


# --- shape --------------------------------------------------------------------------------------------------


def _reshape(k: KernelLowering, call: ir.Call, var: ir.Var | None) -> ir.Expr:
    tile = reshaped(k, k.tile(call.args_[0]), result_shape(call))
    wanted = elements(call.args_[2]) if len(call.args_) > 2 else ()
    return _narrowed(k, tile, wanted)


def _reinterpret_view(k: KernelLowering, call: ir.Call, var: ir.Var | None) -> ir.Expr:
    """The cells of a row are neighbours in a tensor, so they have to be in the tile too."""
    return k.op("tile.reinterpret_view", [in_rows(k, k.tile(call.args_[0])), *call.args_[1:]], **call.kwargs_)


def _transpose(k: KernelLowering, call: ir.Call, var: ir.Var | None) -> ir.Expr:
    tile = k.tile(call.args_[0])
    region = tile_type(tile).get_effective_tile_view().valid_shape_
    transposed = k.op("tile.transpose", [tile, *call.args_[1:3]])
    if same_extents(region, tile_type(tile).shape_):
        return transposed
    rank = len(region)
    first, second = (axis.value % rank for axis in call.args_[1:3] if isinstance(axis, ir.ConstInt))
    swapped = list(region)
    swapped[first], swapped[second] = swapped[second], swapped[first]
    return _narrowed(k, transposed, swapped)


def _narrowed(k: KernelLowering, tile: ir.Call, region: Sequence[ir.Expr]) -> ir.Expr:
    """`tile` with `region` as its valid region, where that says more than its type."""
    if not region or same_extents(region, tile_type(tile).get_effective_tile_view().valid_shape_):
        return tile
    if len(region) != 2:
        raise ValueError(f"A partially valid tile of rank {len(region)} cannot be reshaped here [{k.span}]")
    return k.op("tile.set_validshape", [k.let("reshaped", tile), *(position(k, e) for e in region)])


def _fillpad(name: str) -> Converter:
    def convert(k: KernelLowering, call: ir.Call, var: ir.Var | None) -> ir.Expr:
        return k.op(
            f"tile.{name}", [k.tile(call.args_[0], name=f"{name}_src"), *call.args_[1:]], **call.kwargs_
        )

    return convert


def _valid_shape(type: ir.Type) -> tuple[ir.Expr, ...]:
    assert isinstance(type, ir.TensorType)
    view = type.tensor_view
    return view.valid_shape_ if view is not None and view.valid_shape_ else type.shape_


CONVERTERS: Mapping[str, Converter] = {
    **{f"tensor.{leaf}": _same_name for leaf in _SAME_NAME.split()},
    **{f"tensor.{leaf}": _unary for leaf in ("exp", "sqrt", "recip")},
    **{f"tensor.{leaf}": _with_scalar(leaf) for leaf in ("adds", "subs", "muls", "divs", "fmods")},
    **{f"tensor.{leaf}": _extremum(leaf) for leaf in ("maximum", "minimum")},
    **{f"tensor.{leaf}": _exclusive_or(leaf) for leaf in ("xor", "xors")},
    **{f"tensor.row_{leaf}": _row_reduction for leaf in ("sum", "max", "min", "prod", "argmax", "argmin")},
    **{f"tensor.col_{leaf}": _column_reduction for leaf in ("sum", "max", "min", "prod", "argmax", "argmin")},
    **{f"tensor.{leaf}": _fillpad(leaf) for leaf in ("fillpad", "fillpad_expand")},
    "tensor.add": lambda k, call, var: add_like(k, call, "add"),
    "tensor.mul": lambda k, call, var: add_like(k, call, "mul"),
    "tensor.fmod": lambda k, call, var: expanded(k, call, "fmod"),
    **{f"tensor.part_{leaf}": _partial(f"part_{leaf}") for leaf in ("add", "mul", "max", "min")},
    "tensor.sub": lambda k, call, var: subtract(k, call),
    "tensor.div": lambda k, call, var: divide(k, call),
    "tensor.row_expand_add": lambda k, call, var: add_like(k, call, "add"),
    "tensor.cast": _cast,
    "tensor.rsqrt": _rsqrt,
    "tensor.expands": _expands,
    "tensor.cmp": _compare,
    "tensor.matmul": matmul,
    "tensor.matmul_acc": matmul_acc,
    "tensor.slice": _slice,
    "tensor.assemble": _assemble,
    "tensor.create": _create,
    "tensor.create_l1": _create_l1,
    "tensor.read": _read,
    "tensor.write": _write,
    "tensor.dim": _dim,
    "tensor.reshape": _reshape,
    "tensor.reinterpret_view": _reinterpret_view,
    "tensor.transpose": _transpose,
    "tensor.expand_clone": expand_clone,
    "tensor.gather": gather,
    "tensor.gather_compare": gather_compare,
    "tensor.gather_row": gather_row,
    "tensor.mrgsort_format2": merge_lists,
    "tensor.paged_gather": paged_gather,
    "tensor.scatter": scatter,
    "tensor.scatter_mask": scatter_mask,
    "tensor.scatter_update": scatter_update,
    "pld.tensor.remote_store": remote_store,
    "pld.tensor.put": transfer,
    "pld.tensor.get": transfer,
    "tile.load": _load,
    "tile.store": _store,
}
