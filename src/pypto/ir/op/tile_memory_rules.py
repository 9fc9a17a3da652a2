"""Type inference of tile operators that create, move, view or place data without computing."""

from __future__ import annotations

from pypto.core.dtype import DataType
from pypto.ir.enums import CompactMode, MemorySpace, PadValue, TensorLayout, TileLayout
from pypto.ir.expr import ConstInt, Expr, MakeTuple
from pypto.ir.op import dtypes as dt
from pypto.ir.op.extents import (
    ONE,
    all_same,
    as_int,
    ceildiv,
    const,
    is_one,
    less_equal,
    mul,
    negative,
    same,
    show,
    show_all,
)
from pypto.ir.op.regions import Extents, reshape_valid, union_valid, window_valid
from pypto.ir.op.results import (
    COL,
    DN,
    MX_LAYOUTS,
    NO_BOX,
    ROW,
    Left,
    Mat,
    Right,
    Vec,
    implicit_tile,
    int_elements,
    make_tile,
    scalar_dtype,
    static_elements,
    tensor_of,
    tensor_region,
    tensor_with,
    tile_of,
    tile_region,
)
from pypto.ir.op.tensor_rules import check_gather_row, check_indices, check_random, check_value, ci
from pypto.ir.op.tensor_view_rules import (
    axis_pair,
    bitcast_pad,
    bitcast_shape,
    check_atomic,
    check_bitcast,
    check_byte_sizes,
    check_constant,
    check_droppable,
    check_expanded,
    check_pad,
    check_valid_extents,
    check_volume,
    concat_shape,
    drop_axes,
    is_packed,
    layout_of,
    split_axis,
    swapped,
)
from pypto.ir.op_registry import Args, Deduce, Kwargs
from pypto.ir.types import PtrType, TensorType, TileType, Type, scalar_type
from pypto.ir.views import implicit_tile_layout

SCALES = (MemorySpace.LeftScale, MemorySpace.RightScale)


# --- allocation and transfer ----------------------------------------------------------------------


def create(args: Args, kwargs: Kwargs) -> Type:
    """``tile.create``: an uninitialised tile."""
    op = "tile.create"
    shape = static_elements(args[0], op, "shape")
    if not shape:
        raise ValueError(f"The operator {op} requires a non-empty shape")
    dtype = required_dtype(op, kwargs)
    space = kwargs.get("target_memory")
    if space in SCALES:
        raise ValueError(
            f"The operator {op} does not support target_memory=LeftScale/RightScale, got {space.name}"
        )
    transposed, flat = bool(kwargs.get("transpose")), bool(kwargs.get("flat_layout"))
    if transposed and (len(shape) != 2 or space is not Mat):
        raise ValueError(f"The operator {op}: transpose=True requires a rank-2 tile in Mat")
    if flat and (space is not Mat or transposed):
        raise ValueError(f"The operator {op}: flat_layout=True requires Mat and excludes transpose=True")
    if transposed:
        return make_tile(shape, dtype, None, ROW, COL, space=space)
    if flat:
        return make_tile(shape, dtype, None, ROW, NO_BOX, space=space)
    return implicit_tile(shape, dtype, None, space)


def required_dtype(op: str, kwargs: Kwargs) -> DataType:
    """The ``dtype`` keyword; ValueError without one."""
    dtype = kwargs.get("dtype")
    if dtype is None:
        raise ValueError(f"The operator {op} requires a 'dtype' kwarg")
    assert isinstance(dtype, DataType)
    return dtype


def load(args: Args, kwargs: Kwargs) -> Type:
    """``tile.load``: a window of global memory."""
    op = "tile.load"
    source = tensor_of(args[0])
    offsets = int_elements(args[1], op, "offsets")
    shape = int_elements(args[2], op, "shapes")
    request = int_elements(args[3], op, "valid_shape")
    if not len(offsets) == len(shape) == len(request):
        raise ValueError(
            f"The operator {op} requires offsets, shapes and valid_shape of equal rank, got "
            f"{show_all(offsets)}, "
            f"{show_all(shape)} and {show_all(request)} (valid_shape rank {len(request)})"
        )
    space = kwargs.get("target_memory")
    if space not in (None, Vec, Mat):
        raise ValueError(f"The operator {op} requires target_memory Vec or Mat, got {space.name}")
    layout = layout_of(source)
    if layout in MX_LAYOUTS:
        return _load_scales(op, source, layout, shape, request, kwargs)
    region = tensor_region(source, op)
    clamp = bool(kwargs.get("clamp"))
    full_request = request is shape or all_same(request, shape)
    if full_request and not clamp and region.full and _inside(region.shape, offsets, shape):
        valid: Extents | None = None
    else:
        valid = window_valid(op, region, shape, offsets, request, clamp=clamp)
    blayout, slayout = _loaded_layout(space, layout, shape)
    if valid is None and space is not Mat and blayout is ROW and source.dtype is not DataType.FP4:
        return TileType.make(source.dtype, shape, None, None, space)
    return make_tile(shape, source.dtype, valid, blayout, slayout, space=space)


def _inside(source: Extents, offsets: Extents, shape: Extents) -> bool:
    """Whether a constant window lies in a constant source; the common case, decided without proofs."""
    if len(source) != len(shape):
        return False
    for extent, offset, window in zip(source, offsets, shape, strict=True):
        if not (
            isinstance(extent, ConstInt) and isinstance(offset, ConstInt) and isinstance(window, ConstInt)
        ):
            return False
        if offset.value < 0 or window.value < 0 or offset.value + window.value > extent.value:
            return False
    return True


def _loaded_layout(
    space: MemorySpace | None, layout: TensorLayout, shape: Extents
) -> tuple[TileLayout, TileLayout]:
    if space is not Mat:
        return (COL if is_one(shape[-1]) else ROW) if shape else ROW, NO_BOX
    transposed = layout is DN
    if len(shape) == 2 and is_one(shape[1] if transposed else shape[0]):
        return ROW, NO_BOX
    return (ROW, COL) if transposed else (COL, ROW)


def _load_scales(
    op: str, source: TensorType, layout: TensorLayout, shape: Extents, request: Extents, kwargs: Kwargs
) -> Type:
    if kwargs.get("target_memory") is not Mat:
        raise ValueError(f"The operator {op}: an {layout.name} tensor requires an explicit target_memory=Mat")
    if len(source.shape_) != 2 or len(shape) != 2:
        raise ValueError(f"The operator {op}: an {layout.name} tensor must have rank 2")
    if not is_packed(source):
        raise ValueError(f"The operator {op}: an {layout.name} tensor must be packed")
    dt.require(source.dtype, (dt.FP8E8M0, dt.UINT8), op)
    side = ROW if layout is TensorLayout.MX_A_ZZ else COL
    return make_tile(shape, source.dtype, request, side, side, 32, space=Mat)


def store(args: Args, kwargs: Kwargs) -> Type:
    """``tile.store``: write the valid cells into global memory."""
    op = "tile.store"
    source, target = tile_of(args[0]), tensor_of(args[2])
    offsets = int_elements(args[1], op, "offsets")
    check_atomic(op, kwargs, source.dtype)
    if len(args) > 3:
        shapes = int_elements(args[3], op, "shapes")
        if not shapes or len(shapes) != len(offsets):
            raise ValueError(f"The operator {op} requires shapes non-empty and of the rank of offsets")
        return target
    if not len(offsets) == len(source.shape_) == len(target.shape_):
        return target
    region = tensor_region(target, op)
    written = tile_region(source, op).valid
    note = (
        f" (the tile is {show_all(source.shape_)}, the tensor {show_all(target.shape_)}; store performs no "
        "layout conversion)"
    )
    valid = union_valid(op, region, written, offsets, note=note)
    if valid is region.valid:
        return target
    view = target.tensor_view
    assert view is not None
    return tensor_with(
        target,
        target.shape_,
        target.dtype,
        valid=valid,
        stride=view.stride_,
        layout=view.layout,
        pad=view.pad,
        keep_memref=True,
    )


def move(args: Args, kwargs: Kwargs) -> Type:
    """``tile.move``: the same cells in another space."""
    op = "tile.move"
    source = tile_of(args[0])
    target = kwargs.get("target_memory")
    if target is None:
        raise ValueError(f"The operator {op} requires a 'target_memory' kwarg")
    if target in SCALES:
        return _move_scale(op, source, target, kwargs)
    blayout, slayout, fractal = implicit_tile_layout(source.shape_, target)
    view = source.get_effective_tile_view()
    if (blayout, slayout, fractal) == implicit_tile_layout(source.shape_, None):
        blayout, slayout, fractal = view.blayout, view.slayout, 512
    if target is Right:
        blayout = ROW
    blayout, slayout = kwargs.get("blayout", blayout), kwargs.get("slayout", slayout)
    valid = tile_region(source, op).valid
    return make_tile(source.shape_, source.dtype, valid, blayout, slayout, fractal, view.pad, space=target)


def _move_scale(op: str, source: TileType, target: MemorySpace, kwargs: Kwargs) -> Type:
    if "blayout" in kwargs or "slayout" in kwargs:
        raise ValueError(f"The operator {op}: {target.name} has a hardware-fixed layout")
    if len(source.shape_) != 2 or source.memory_space is not Mat:
        raise ValueError(f"The operator {op}: {target.name} requires a rank-2 source in Mat")
    dt.require(source.dtype, (dt.FP8E8M0, dt.UINT8), op)
    view = source.get_effective_tile_view()
    wanted = implicit_tile_layout(source.shape_, target)
    if (view.blayout, view.slayout, view.fractal) != wanted:
        raise ValueError(f"The operator {op}: {target.name} requires a source with the matching scale layout")
    return make_tile(
        source.shape_, dt.FP8E8M0, tile_region(source, op).valid, *wanted, view.pad, space=target
    )


def alloc(args: Args, kwargs: Kwargs) -> Type:
    """``tile.alloc``: a declared buffer."""
    return PtrType.get()


# --- windows --------------------------------------------------------------------------------------


def slice_(args: Args, kwargs: Kwargs) -> Type:
    """``tile.slice``: a view of a window. The memory space is stamped on afterwards."""
    op = "tile.slice"
    source = tile_of(args[0])
    shape: Extents = static_elements(args[1], op, "shape")
    offsets = int_elements(args[2], op, "offset", dt.EXTENT_SCALARS)
    if len(shape) != len(offsets):
        raise ValueError(f"The operator {op} requires shape and offset of the same rank")
    request: Extents | None = (
        int_elements(args[3], op, "valid_shape", dt.EXTENT_SCALARS) if len(args) > 3 else None
    )
    if request is not None and not request:
        request = None
    dropped = drop_axes(op, args[4], len(shape)) if len(args) > 4 else []
    valid: Extents = window_valid(
        op,
        tile_region(source, op),
        shape,
        offsets,
        request,
        reach_is_request=False,
        remedy="a tile window has no clamping mechanism",
    )
    if dropped:
        check_droppable(op, dropped, shape, valid)
        shape, valid = _without_axes(shape, dropped), _without_axes(valid, dropped)
    view = source.tile_view
    if view is None:
        blayout, slayout, fractal = implicit_tile_layout(shape, None)
        pad, compact = PadValue.null, CompactMode.null
    else:
        blayout, slayout, fractal, pad, compact = (
            view.blayout,
            view.slayout,
            view.fractal,
            view.pad,
            view.compact,
        )
    pad = kwargs.get("pad_value", pad)
    return make_tile(shape, source.dtype, valid, blayout, slayout, fractal, pad, compact, None)


def _without_axes(extents: Extents, axes: list[int]) -> list[Expr]:
    """The extents that are left, with unit axes in front where fewer than two are."""
    kept = [extent for i, extent in enumerate(extents) if i not in axes]
    return [ONE] * (2 - len(kept)) + kept


def extract(args: Args, kwargs: Kwargs) -> Type:
    """``tile.extract``: copy a window into another space."""
    op = "tile.extract"
    source = tile_of(args[0])
    target = kwargs.get("target_memory")
    if target is None:
        raise ValueError(f"The operator {op} requires a 'target_memory' kwarg")
    shape = static_elements(args[3], op, "shape")
    if len(source.shape_) != 2 or len(shape) != 2:
        raise ValueError(f"The operator {op} requires a rank-2 src and shape, got {show_all(source.shape_)}")
    for axis, which in enumerate(("row", "col")):
        _check_extract_axis(op, which, source.shape_[axis], args[1 + axis], shape[axis])
    region = tile_region(source, op)
    valid = window_valid(
        op,
        region,
        shape,
        [args[1], args[2]],
        None,
        reach_is_request=False,
        remedy="a tile window has no clamping mechanism",
    )
    blayout, slayout, fractal = implicit_tile_layout(shape, target)
    if target is Left:
        blayout, slayout = ROW, ROW
    elif target is Right:
        blayout, slayout = ROW, COL
    partial = not all_same(valid, shape)
    compact = CompactMode.normal if partial and target in (Left, Right) else CompactMode.null
    return make_tile(shape, source.dtype, valid, blayout, slayout, fractal, PadValue.null, compact, target)


def _check_extract_axis(op: str, which: str, extent: Expr, index: Expr, window: ConstInt) -> None:
    dtype = scalar_dtype(index, op, f"index_{which}")
    if dtype not in dt.EXTENT_SCALARS:
        raise ValueError(
            f"The operator {op} requires index_{which} to be INT64, UINT64 or INDEX, got {dtype}"
        )
    if less_equal(window, extent) is False:
        raise ValueError(f"The operator {op}: shape {window.value} exceeds src {which} extent {show(extent)}")
    start = as_int(index)
    if start is None:
        return
    if start < 0:
        raise ValueError(f"The operator {op}: index_{which} must be >= 0, got {start}")
    if less_equal(const(start + window.value), extent) is False:
        raise ValueError(
            f"The operator {op}: index {start} + shape {window.value} exceeds src {which} {show(extent)}"
        )


def assemble(args: Args, kwargs: Kwargs) -> Type:
    """``tile.assemble``: write a tile into a window of another in place."""
    op = "tile.assemble"
    target, source = tile_of(args[0]), tile_of(args[1])
    if not isinstance(args[2], MakeTuple):
        raise ValueError(f"The operator {op} requires offset to be a literal tuple")
    offsets = int_elements(args[2], op, "offset", dt.EXTENT_SCALARS)
    narrowing = source.dtype is dt.FP32 and target.dtype in (dt.BF16, dt.FP16)
    if source.dtype is not target.dtype and not narrowing:
        raise ValueError(
            f"The operator {op} requires source and target of the same dtype, got {source.dtype} and "
            f"{target.dtype}"
        )
    region = tile_region(target, op)
    if len(offsets) == len(source.shape_) == len(target.shape_):
        valid: Extents = union_valid(
            op,
            region,
            tile_region(source, op).valid,
            offsets,
            written=source.shape_,
            note="; assemble copies the whole source subview",
        )
    else:
        valid = region.shape
    if valid is region.valid and target.memref is None:
        return target
    view = target.get_effective_tile_view()
    return make_tile(
        target.shape_,
        target.dtype,
        valid,
        view.blayout,
        view.slayout,
        view.fractal,
        view.pad,
        view.compact,
        target.memory_space,
    )


# --- shape changes --------------------------------------------------------------------------------


def reshape(args: Args, kwargs: Kwargs) -> Type:
    """``tile.reshape``: the same cells in row-major order under another shape. The space is stamped on
    afterwards."""
    op = "tile.reshape"
    source = tile_of(args[0])
    shape = int_elements(args[1], op, "shape", dt.EXTENT_SCALARS)
    check_volume(op, source.shape_, shape)
    view = source.get_effective_tile_view()
    valid = reshape_valid(op, tile_region(source, op), shape, row_major=view.blayout is ROW)
    if source.tile_view is None and source.memory_space in (None, Vec):
        return implicit_tile(shape, source.dtype, valid, None)
    blayout, slayout, fractal = implicit_tile_layout(shape, None)
    return make_tile(shape, source.dtype, valid, blayout, slayout, fractal, view.pad, view.compact, None)


def reinterpret_view(args: Args, kwargs: Kwargs) -> Type:
    """``tile.reinterpret_view``: the same bytes as another element type."""
    op = "tile.reinterpret_view"
    source, to = tile_of(args[0]), required_dtype(op, kwargs)
    view = source.get_effective_tile_view()
    if view.slayout is not NO_BOX:
        raise ValueError(f"The operator {op} only supports flat tiles (slayout none_box)")
    if view.stride_ or view.start_offset is not None:
        raise ValueError(f"The operator {op} only supports packed tiles")
    check_bitcast(op, source.dtype, to)
    rank = len(source.shape_)
    axis = rank - 2 if view.blayout is COL and rank >= 2 else rank - 1
    region = tile_region(source, op)
    pad = bitcast_pad(view.pad)
    if len(args) > 1:
        wanted = int_elements(args[1], op, "shape", dt.EXTENT_SCALARS)
        check_byte_sizes(op, source.shape_, source.dtype, wanted, to)
        if region.full:
            blayout = implicit_tile_layout(wanted, None)[0]
            return make_tile(wanted, to, None, blayout, NO_BOX, 512, pad, view.compact, None)
        automatic, valid = bitcast_shape(op, "tile", region, source.dtype, to, axis)
        if not all_same(automatic, wanted):
            raise ValueError(
                f"The operator {op}: a partially valid source only accepts the automatic shape "
                f"{show_all(automatic)}"
            )
    else:
        automatic, valid = bitcast_shape(op, "tile", region, source.dtype, to, axis)
    return make_tile(automatic, to, valid, view.blayout, NO_BOX, 512, pad, view.compact, None)


def transpose(args: Args, kwargs: Kwargs) -> Type:
    """``tile.transpose``: a transposed copy, declared fully valid."""
    op = "tile.transpose"
    source = tile_of(args[0])
    i, j = axis_pair(op, args, len(source.shape_))
    if len(args) > 3:
        tmp = tile_of(args[3])
        if tmp.dtype is not source.dtype or len(tmp.shape_) != len(source.shape_):
            raise ValueError(f"The operator {op} requires tmp of the source's dtype and rank")
    return implicit_tile(swapped(source.shape_, i, j), source.dtype, None, None)


_FLIPPED = {ROW: COL, COL: ROW, NO_BOX: NO_BOX}


def transpose_view(args: Args, kwargs: Kwargs) -> Type:
    """``tile.transpose_view``: the trailing axes exchanged without moving a byte."""
    op = "tile.transpose_view"
    source = tile_of(args[0])
    rank = len(source.shape_)
    if rank < 2:
        raise ValueError(f"The operator {op} requires at least 2 dimensions, got {rank}")
    view = source.get_effective_tile_view()
    valid = swapped(tile_region(source, op).valid, rank - 2, rank - 1)
    return make_tile(
        swapped(source.shape_, rank - 2, rank - 1),
        source.dtype,
        valid,
        _FLIPPED[view.blayout],
        _FLIPPED[view.slayout],
        view.fractal,
        view.pad,
        view.compact,
        source.memory_space,
    )


def set_validshape(args: Args, kwargs: Kwargs) -> Type:
    """``tile.set_validshape``: the same buffer with another valid region."""
    op = "tile.set_validshape"
    source = tile_of(args[0])
    valid = check_valid_extents(op, args, source.shape_, "tile")
    view = source.get_effective_tile_view()
    return make_tile(
        source.shape_,
        source.dtype,
        valid,
        view.blayout,
        view.slayout,
        view.fractal,
        view.pad,
        view.compact,
        source.memory_space,
    )


def concat(args: Args, kwargs: Kwargs) -> Type:
    """``tile.concat``: columns side by side, declared fully valid."""
    a, b = tile_of(args[0]), tile_of(args[1])
    return implicit_tile(concat_shape("tile.concat", a.shape_, a.dtype, b.shape_, b.dtype), a.dtype)


# --- padding --------------------------------------------------------------------------------------


def fillpad(op: str) -> Deduce:
    """The cells outside the valid region become the pad value."""

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        source = tile_of(args[0])
        return _padded(source, source.shape_, check_pad(op, kwargs))

    return deduce


def fillpad_expand(args: Args, kwargs: Kwargs) -> Type:
    """``tile.fillpad_expand``: the tile at the origin of a larger, padded one."""
    op = "tile.fillpad_expand"
    source = tile_of(args[0])
    pad = check_pad(op, kwargs)
    return _padded(source, check_expanded(op, source.shape_, args[1]), pad)


def _padded(source: TileType, shape: Extents, pad: PadValue) -> TileType:
    view = source.get_effective_tile_view()
    return make_tile(shape, source.dtype, None, view.blayout, view.slayout, 512, pad, view.compact)


# --- elements, generators -------------------------------------------------------------------------


def read(args: Args, kwargs: Kwargs) -> Type:
    """``tile.read``: one cell."""
    source = tile_of(args[0])
    check_indices("tile.read", args[1], len(source.shape_), "tile")
    return scalar_type(source.dtype)


def write(args: Args, kwargs: Kwargs) -> Type:
    """``tile.write``: set one cell in place."""
    target = tile_of(args[0])
    check_indices("tile.write", args[1], len(target.shape_), "tile")
    check_value("tile.write", args[2], target.dtype, "tile")
    return target


def full(args: Args, kwargs: Kwargs) -> Type:
    """``tile.full``: every cell is one constant."""
    op = "tile.full"
    check_constant(op, args[1])
    return implicit_tile(static_elements(args[0], op, "shape"), required_dtype(op, kwargs))


def arange(args: Args, kwargs: Kwargs) -> Type:
    """``tile.ci``: an arithmetic sequence."""
    return implicit_tile(*ci("tile.ci", args, kwargs))


def _checked_valid(
    op: str, args: Args, position: int, shape: tuple[ConstInt, ...], *, positive: bool
) -> Extents | None:
    if len(args) <= position:
        return None
    valid = int_elements(args[position], op, "valid_shape")
    if len(valid) != len(shape):
        raise ValueError(
            f"The operator {op}: valid_shape rank {len(valid)} must equal the shape rank {len(shape)}"
        )
    for i, (extent, limit) in enumerate(zip(valid, shape, strict=True)):
        value = as_int(extent)
        if negative(extent) or (positive and value == 0) or less_equal(extent, limit) is False:
            raise ValueError(
                f"The operator {op}: valid_shape element {i} ({show(extent)}) must lie within 0 and "
                f"{limit.value}"
            )
    return valid


_TRI_DTYPES = (
    dt.INT8, dt.INT16, dt.INT32, dt.UINT8, dt.UINT16, dt.UINT32, dt.FP16, dt.FP32, dt.BF16,
)  # fmt: skip


def tri(args: Args, kwargs: Kwargs) -> Type:
    """``tile.tri``: ones below or above a diagonal."""
    op = "tile.tri"
    if scalar_dtype(args[0], op, "diagonal") is not dt.INT32:
        raise ValueError(f"The operator {op} requires diagonal to be an INT32 scalar")
    shape = static_elements(args[1], op, "shape")
    if len(shape) != 2:
        raise ValueError(f"The operator {op} requires a rank-2 shape, got {show_all(shape)}")
    dtype = kwargs.get("dtype", dt.INT32)
    dt.require(dtype, _TRI_DTYPES, op)
    return implicit_tile(shape, dtype, _checked_valid(op, args, 2, shape, positive=True))


def random(args: Args, kwargs: Kwargs) -> Type:
    """``tile.random``: counter-based random words."""
    op = "tile.random"
    dtype = check_random(op, args, kwargs)
    shape = static_elements(args[6], op, "shape")
    if len(shape) != 2:
        raise ValueError(f"The operator {op} requires a rank-2 shape, got {show_all(shape)}")
    return implicit_tile(shape, dtype, _checked_valid(op, args, 7, shape, positive=False))


def gather_row(args: Args, kwargs: Kwargs) -> Type:
    """``tile.gather_row``: copy a window of a pool into a window of a tile in place."""
    op = "tile.gather_row"
    target = tile_of(args[0])
    source = args[1].type
    assert isinstance(source, (TensorType, TileType))
    check_gather_row(op, target.dtype, source.dtype, args, kwargs)
    return target


def tget_scale_addr(args: Args, kwargs: Kwargs) -> Type:
    """``tile.tget_scale_addr``: bind a scale tile to its data tile."""
    return args[0].type


# --- split regions --------------------------------------------------------------------------------


def _split_operand(op: str, args: Args, kwargs: Kwargs) -> tuple[TileType, int | None]:
    source = tile_of(args[0])
    axis = split_axis(op, kwargs)
    if axis is not None and len(source.shape_) != 2:
        raise ValueError(f"The operator {op} requires a 2D tile, got {show_all(source.shape_)}")
    return source, axis


def aiv_shard(args: Args, kwargs: Kwargs) -> Type:
    """``tile.aiv_shard``: one vector lane's half."""
    op = "tile.aiv_shard"
    source, axis = _split_operand(op, args, kwargs)
    if axis is None:
        return _restamped(source, Vec)
    region = tile_region(source, op)
    _check_shardable(op, axis, region.shape, region.valid)
    shape, valid = list(region.shape), list(region.valid)
    shape[axis] = ceildiv(shape[axis], 2)
    valid[axis] = ceildiv(valid[axis], 2)
    return make_tile(shape, source.dtype, valid, *implicit_tile_layout(shape, None), space=Vec)


def _check_shardable(op: str, axis: int, shape: Extents, valid: Extents) -> None:
    if same(valid[1], shape[1]):
        return
    if axis == 1:
        raise ValueError(f"The operator {op}: LEFT_RIGHT splits the column axis, which must be fully valid")
    if as_int(valid[1]) is None:
        raise ValueError(
            f"The operator {op}: the column extent {show(valid[1])} is a runtime value narrower than the "
            "physical box"
        )
    if not same(valid[0], shape[0]):
        raise ValueError(
            f"The operator {op}: a per-lane row extent together with narrowed columns is not supported"
        )


def aic_gather(args: Args, kwargs: Kwargs) -> Type:
    """``tile.aic_gather``: both lanes' halves side by side, for the cube core."""
    op = "tile.aic_gather"
    source, axis = _split_operand(op, args, kwargs)
    if axis is None:
        return _restamped(source, Mat)
    region = tile_region(source, op)
    shape, valid = list(region.shape), list(region.valid)
    shape[axis], valid[axis] = mul(shape[axis], const(2)), mul(valid[axis], const(2))
    return make_tile(shape, source.dtype, valid, *implicit_tile_layout(shape, None), space=None)


def _restamped(source: TileType, space: MemorySpace) -> TileType:
    valid = tile_region(source).valid
    if all_same(valid, source.shape_):
        return implicit_tile(source.shape_, source.dtype, None, space)
    view = source.get_effective_tile_view()
    return make_tile(
        source.shape_, source.dtype, valid, view.blayout, view.slayout, view.fractal, space=space
    )
