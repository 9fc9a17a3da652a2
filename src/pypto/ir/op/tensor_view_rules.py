"""Type inference of tensor operators that create, look at, or place data without computing."""

from __future__ import annotations

from pypto.core.dtype import DataType
from pypto.ir import scalar_ops
from pypto.ir.enums import PadValue, TensorLayout
from pypto.ir.expr import ConstFloat, ConstInt, Expr
from pypto.ir.op import dtypes as dt
from pypto.ir.op.extents import (
    ONE,
    ZERO,
    add,
    all_same,
    as_int,
    ceildiv,
    const,
    equal,
    is_one,
    less_equal,
    mul,
    negative,
    same,
    show,
    show_all,
    static_volume,
)
from pypto.ir.op.regions import Extents, Region, reshape_valid, union_valid, window_valid
from pypto.ir.op.results import (
    DN,
    MX_LAYOUTS,
    ND,
    NZ,
    elements,
    fresh_tensor,
    int_elements,
    is_distributed,
    scalar_dtype,
    static_elements,
    tensor_of,
    tensor_region,
    tensor_with,
)
from pypto.ir.op_registry import Args, Kwargs
from pypto.ir.tensor_view_semantics import build_logical_strides_from_layout, check_canonical_view
from pypto.ir.types import TensorType, Type, scalar_type

# --- properties of a tensor's view ----------------------------------------------------------------


def layout_of(t: TensorType) -> TensorLayout:
    """Layout of the view, ND without one."""
    return ND if t.tensor_view is None else t.tensor_view.layout


def pad_of(t: TensorType) -> PadValue:
    """Pad of the view, null without one."""
    return PadValue.null if t.tensor_view is None else t.tensor_view.pad


def strides_of(t: TensorType) -> Extents:
    """Stored strides, or the packed strides of the layout."""
    if t.tensor_view is not None and t.tensor_view.stride_:
        return t.tensor_view.stride_
    return build_logical_strides_from_layout(t.shape_, layout_of(t))


def is_packed(t: TensorType) -> bool:
    """Whether the elements lie without holes in the order of the layout."""
    view = t.tensor_view
    if view is None or not view.stride_:
        return True
    if view.layout is NZ:
        return False
    return all_same(view.stride_, build_logical_strides_from_layout(t.shape_, view.layout))


# --- creation -------------------------------------------------------------------------------------


def create(args: Args, kwargs: Kwargs) -> Type:
    """``tensor.create``: a new buffer."""
    op = "tensor.create"
    shape = int_elements(args[0], op, "shape")
    dtype = _required_dtype(op, kwargs)
    layout = kwargs.get("layout", ND)
    init = kwargs.get("init_value")
    if init is not None:
        if init != init or init in (float("inf"), float("-inf")):
            raise ValueError(f"The operator {op}: init_value must be finite, got {init}")
        if dtype.is_int() and abs(init) > 2**53:
            raise ValueError(
                f"The operator {op}: init_value {init} of an integer tensor must lie within ±2^53"
            )
    if layout is ND:
        return fresh_tensor(shape, dtype)
    return tensor_with(fresh_tensor(shape, dtype), shape, dtype, layout=layout)


def _required_dtype(op: str, kwargs: Kwargs) -> DataType:
    dtype = kwargs.get("dtype")
    if dtype is None:
        raise ValueError(f"The operator {op} requires a 'dtype' kwarg")
    assert isinstance(dtype, DataType)
    return dtype


def full(args: Args, kwargs: Kwargs) -> Type:
    """``tensor.full``: every cell is one constant."""
    op = "tensor.full"
    check_constant(op, args[1])
    return fresh_tensor(int_elements(args[0], op, "shape"), _required_dtype(op, kwargs))


def check_constant(op: str, value: Expr) -> None:
    """ValueError unless the fill value is a number known when compiling."""
    if not isinstance(value, (ConstInt, ConstFloat)):
        raise ValueError(
            f"The operator {op} requires value to be a constant number; use expands for a scalar known at "
            "run time"
        )


def create_l1(args: Args, kwargs: Kwargs) -> Type:
    """``tensor.create_l1``: a staging buffer for matrix operands."""
    op = "tensor.create_l1"
    return fresh_tensor(static_elements(args[0], op, "shape"), _required_dtype(op, kwargs))


def dim(args: Args, kwargs: Kwargs) -> Type:
    """``tensor.dim``: one extent."""
    source, axis = tensor_of(args[0]), args[1]
    rank = len(source.shape_)
    if not isinstance(axis, ConstInt):
        raise ValueError("The operator tensor.dim requires a constant axis")
    if not -rank <= axis.value < rank:
        raise ValueError(f"The operator tensor.dim: axis {axis.value} is out of range for rank {rank}")
    return scalar_type(DataType.INDEX)


# --- windows --------------------------------------------------------------------------------------


def slice_(args: Args, kwargs: Kwargs) -> Type:
    """``tensor.slice``: a window, optionally without some of its unit axes."""
    op = "tensor.slice"
    source = tensor_of(args[0])
    if layout_of(source) in MX_LAYOUTS:
        raise ValueError(f"The operator {op} does not support the layout {layout_of(source).name}")
    shape = int_elements(args[1], op, "shape")
    offsets = int_elements(args[2], op, "offset")
    if len(shape) != len(offsets):
        raise ValueError(
            f"The operator {op} requires shape {show_all(shape)} and offset {show_all(offsets)} of the same "
            "rank"
        )
    request: Extents | None = int_elements(args[3], op, "valid_shape") if len(args) > 3 else None
    if request is not None and not request:
        request = None
    dropped = drop_axes(op, args[4], len(shape)) if len(args) > 4 else []
    region = tensor_region(source, op)
    valid: Extents = window_valid(op, region, shape, offsets, request, clamp=bool(kwargs.get("clamp")))
    if dropped:
        check_droppable(op, dropped, shape, valid)
        if len(dropped) == len(shape):
            raise ValueError(f"The operator {op}: drop_dims cannot erase every dimension")
        shape = tuple(extent for i, extent in enumerate(shape) if i not in dropped)
        valid = [extent for i, extent in enumerate(valid) if i not in dropped]
    pad = kwargs.get("pad_value", pad_of(source))
    return tensor_with(source, shape, source.dtype, valid=valid, pad=pad)


def drop_axes(op: str, arg: Expr, rank: int) -> list[int]:
    """Axes named by a drop_dims operand (both levels)."""
    axes: list[int] = []
    for element in elements(arg, op, "drop_dims"):
        if not isinstance(element, ConstInt) or element.value < 0:
            raise ValueError(f"The operator {op} requires drop_dims to be non-negative constants")
        if element.value >= rank:
            raise ValueError(
                f"The operator {op}: drop_dims axis {element.value} is out of range for rank {rank}"
            )
        if element.value in axes:
            raise ValueError(f"The operator {op}: drop_dims names axis {element.value} twice")
        axes.append(element.value)
    return axes


def check_droppable(op: str, axes: list[int], shape: Extents, valid: Extents) -> None:
    """ValueError unless every dropped axis has the static extent 1 and one valid cell (both levels)."""
    for axis in axes:
        if not is_one(shape[axis]):
            raise ValueError(
                f"The operator {op}: drop_dims axis {axis} must be a static unit dimension, got "
                f"{show(shape[axis])}"
            )
        if not same(valid[axis], ONE):
            raise ValueError(
                f"The operator {op}: the valid extent {show(valid[axis])} of dropped axis {axis} is not "
                "provably 1"
            )


def assemble(args: Args, kwargs: Kwargs) -> Type:
    """``tensor.assemble``: write a window of the target in place."""
    op = "tensor.assemble"
    target, source = tensor_of(args[0]), tensor_of(args[1])
    offsets = int_elements(args[2], op, "offset")
    check_atomic(op, kwargs, target.dtype)
    if len(offsets) != len(target.shape_):
        raise ValueError(
            f"The operator {op} requires one offset per target dimension, got {show_all(offsets)} for "
            f"{show_all(target.shape_)}"
        )
    valid: Extents | None = None
    if len(source.shape_) == len(target.shape_):
        valid = union_valid(op, tensor_region(target, op), tensor_region(source, op).valid, offsets)
    if target.tensor_view is None and target.memref is None and type(target) is TensorType:
        return target
    return tensor_with(target, target.shape_, target.dtype, valid=valid)


def check_atomic(op: str, kwargs: Kwargs, dtype: DataType) -> None:
    """ValueError for an unknown atomic mode, or an atomic add on a type that has none (all levels)."""
    atomic = kwargs.get("atomic", 0)
    if atomic not in (0, 1):
        raise ValueError(
            f"The operator {op} requires atomic to be AtomicType.None_ or AtomicType.Add, got {atomic}"
        )
    if atomic and dtype not in dt.ATOMIC:
        allowed = ", ".join(each.to_string() for each in dt.ATOMIC)
        raise ValueError(f"The operator {op} with atomic add requires dtype in {{{allowed}}}, got {dtype}")


# --- shape changes --------------------------------------------------------------------------------


def check_volume(op: str, source: Extents, shape: Extents) -> None:
    """ValueError if both element counts are static and differ, or an extent is negative."""
    for extent in shape:
        if negative(extent):
            raise ValueError(f"The operator {op}: extent {show(extent)} is negative; no extent is inferred")
    have, want = static_volume(source), static_volume(shape)
    if have is not None and want is not None and have != want:
        raise ValueError(
            f"The operator {op} cannot reshape tensor of size {have} ({show_all(source)}) into "
            f"{show_all(shape)} "
            f"of size {want}"
        )


def reshape(args: Args, kwargs: Kwargs) -> Type:
    """``tensor.reshape``: the same elements in row-major order under another shape."""
    op = "tensor.reshape"
    source = tensor_of(args[0])
    shape = int_elements(args[1], op, "shape")
    check_volume(op, source.shape_, shape)
    region = tensor_region(source, op)
    row_major = layout_of(source) is ND and is_packed(source)
    mapped = reshape_valid(op, region, shape, row_major=row_major)
    valid: Extents | None = mapped
    if len(args) > 2:
        valid = _explicit_valid(op, int_elements(args[2], op, "valid_shape"), shape, mapped)
    if source.tensor_view is None and valid is None and not is_distributed(source):
        return fresh_tensor(shape, source.dtype)
    return tensor_with(source, shape, source.dtype, valid=valid, pad=pad_of(source))


def _explicit_valid(op: str, valid: Extents, shape: Extents, mapped: Extents | None) -> Extents:
    if len(valid) != len(shape):
        raise ValueError(
            f"The operator {op}: valid_shape rank {len(valid)} must equal the shape rank {len(shape)}"
        )
    limit = shape if mapped is None else mapped
    for i, extent in enumerate(valid):
        if same(extent, limit[i]):
            continue  # an extent that the source has already is none that could be negative
        if less_equal(ZERO, extent) is not True:
            raise ValueError(f"The operator {op}: valid_shape[{i}] {show(extent)} must be provably >= 0")
        if less_equal(extent, limit[i]) is not True:
            raise ValueError(
                f"The operator {op}: valid_shape[{i}] {show(extent)} is not provably within the "
                "source-derived extent "
                f"{show(limit[i])}"
            )
    return valid


def axis_pair(op: str, args: Args, rank: int) -> tuple[int, int]:
    """The two axes of a transpose, counted from the front (both levels)."""
    if rank < 2:
        raise ValueError(f"The operator {op} requires rank >= 2, got {rank}")
    axes = []
    for which, arg in (("axis1", args[1]), ("axis2", args[2])):
        value = as_int(arg)
        if value is None:
            raise ValueError(f"The operator {op} requires {which} to be a constant integer")
        if not -rank <= value < rank:
            raise ValueError(f"The operator {op}: {which} {value} is out of range for rank {rank}")
        axes.append(value % rank)
    if axes[0] == axes[1]:
        raise ValueError(f"The operator {op} requires distinct axes, got {axes[0]} twice")
    return axes[0], axes[1]


def swapped(extents: Extents, i: int, j: int) -> list[Expr]:
    """The extents with two axes exchanged."""
    result = list(extents)
    result[i], result[j] = result[j], result[i]
    return result


def transpose(args: Args, kwargs: Kwargs) -> Type:
    """``tensor.transpose``: swap two axes by swapping their strides."""
    op = "tensor.transpose"
    source = tensor_of(args[0])
    rank = len(source.shape_)
    i, j = axis_pair(op, args, rank)
    shape = swapped(source.shape_, i, j)
    layout = layout_of(source)
    if layout is NZ or layout in MX_LAYOUTS:
        raise ValueError(f"The operator {op} does not support the layout {layout.name}")
    stride: Extents = swapped(strides_of(source), i, j)
    if {i, j} == {rank - 1, rank - 2}:
        layout = DN if layout is ND else ND
    if layout is ND and all_same(stride, build_logical_strides_from_layout(shape, ND)):
        stride = ()
    valid: Extents = swapped(tensor_region(source, op).valid, i, j)
    if len(args) > 3:
        valid = int_elements(args[3], op, "valid_shape")
        if len(valid) != rank:
            raise ValueError(f"The operator {op}: valid_shape rank {len(valid)} must equal the rank {rank}")
    return tensor_with(
        source, shape, source.dtype, valid=valid, stride=stride, layout=layout, pad=pad_of(source)
    )


def concat(args: Args, kwargs: Kwargs) -> Type:
    """``tensor.concat``: columns of two matrices side by side."""
    a, b = tensor_of(args[0]), tensor_of(args[1])
    return fresh_tensor(concat_shape("tensor.concat", a.shape_, a.dtype, b.shape_, b.dtype), a.dtype)


def concat_shape(op: str, a: Extents, a_dtype: DataType, b: Extents, b_dtype: DataType) -> list[Expr]:
    """Shape of two matrices side by side (both levels)."""
    if len(a) != 2 or len(b) != 2:
        raise ValueError(f"The operator {op} requires 2D operands, got {show_all(a)} and {show_all(b)}")
    if a_dtype is not b_dtype:
        raise ValueError(f"The operator {op} requires the same dtype, got {a_dtype} and {b_dtype}")
    if equal(a[0], b[0]) is False:
        raise ValueError(f"The operator {op}: row count must match, got {show(a[0])} and {show(b[0])}")
    both = (as_int(a[1]), as_int(b[1]))
    columns = scalar_ops.add(a[1], b[1]) if None in both else add(a[1], b[1])
    return [a[0], columns]


def view(args: Args, kwargs: Kwargs) -> Type:
    """``tensor.view``: another shape or layout over the same bytes."""
    op = "tensor.view"
    source = tensor_of(args[0])
    layout = kwargs.get("layout")
    if len(args) == 1:
        if layout is None:
            raise ValueError(f"The operator {op} requires a shape or a layout")
        return _view_layout(op, source, layout)
    shape = int_elements(args[1], op, "shape")
    valid = int_elements(args[2], op, "valid_shape") if len(args) > 2 else None
    return _view_shape(op, source, shape, valid, layout or ND)


def _check_view_layout(op: str, layout: TensorLayout) -> None:
    if layout is NZ:
        raise ValueError(f"The operator {op}: NZ layout is not allowed")
    if layout in MX_LAYOUTS:
        raise ValueError(f"The operator {op}: MX layout {layout.name} is not allowed")


def _view_layout(op: str, source: TensorType, layout: TensorLayout) -> Type:
    _check_view_layout(op, layout)
    present = layout_of(source)
    _check_view_layout(op, present)
    stride = strides_of(source)
    canonical, reason = check_canonical_view(source.shape_, stride, present)
    if not canonical:
        raise ValueError(
            f"The operator {op}: the source stride is not canonical for {present.name}: {reason}"
        )
    if len(source.shape_) < 2:
        raise ValueError(f"The operator {op}: a layout change requires rank >= 2")
    shape: Extents = source.shape_
    valid: Extents = tensor_region(source, op).valid
    if layout is not present:
        rank = len(shape)
        shape, valid = swapped(shape, rank - 2, rank - 1), swapped(valid, rank - 2, rank - 1)
        stride = swapped(stride, rank - 2, rank - 1)
    return tensor_with(
        source,
        shape,
        source.dtype,
        valid=valid,
        stride=stride,
        layout=layout,
        pad=pad_of(source),
        keep_memref=True,
    )


def _view_shape(
    op: str, source: TensorType, shape: Extents, valid: Extents | None, layout: TensorLayout
) -> Type:
    _check_view_layout(op, layout)
    for i, extent in enumerate(shape):
        value = as_int(extent)
        if value is not None and value <= 0:
            raise ValueError(f"The operator {op} requires shape[{i}] to be positive, got {value}")
    have, want = static_volume(source.shape_), static_volume(shape)
    if have is not None and want is not None and have != want:
        raise ValueError(
            f"The operator {op} cannot reinterpret {show_all(source.shape_)} ({have} elements) as "
            f"{show_all(shape)} "
            f"({want} elements)"
        )
    if not is_packed(source):
        raise ValueError(f"The operator {op} requires a packed source")
    if layout is DN and len(shape) < 2:
        raise ValueError(f"The operator {op}: DN layout requires rank >= 2")
    region = tensor_region(source, op)
    if valid is None:
        if not region.full:
            raise ValueError(
                f"The operator {op}: a source with a partial valid_shape {show_all(region.valid)} needs an "
                "explicit "
                "valid_shape"
            )
    else:
        _check_view_valid(op, source, shape, valid, layout)
    stride = build_logical_strides_from_layout(shape, layout)
    return tensor_with(
        source, shape, source.dtype, valid=valid, stride=stride, layout=layout, keep_memref=True
    )


def _check_view_valid(
    op: str, source: TensorType, shape: Extents, valid: Extents, layout: TensorLayout
) -> None:
    if layout is not ND:
        raise ValueError(f"The operator {op}: an explicit valid_shape requires ND layout")
    if len(valid) != len(shape):
        raise ValueError(
            f"The operator {op}: valid_shape rank {len(valid)} must equal the shape rank {len(shape)}"
        )
    for i, (extent, limit) in enumerate(zip(valid, shape, strict=True)):
        value = as_int(extent)
        if value is not None and value <= 0:
            raise ValueError(f"The operator {op} requires valid_shape[{i}] to be positive, got {value}")
        if less_equal(extent, limit) is False:
            raise ValueError(
                f"The operator {op}: valid_shape[{i}] {show(extent)} exceeds target shape {show(limit)}"
            )
    region = tensor_region(source, op)
    collapses = len(shape) == 2 and same(shape[1], source.shape_[-1])
    prefix = len(shape) == 2 and is_one(shape[0])
    if not (collapses or prefix):
        raise ValueError(
            f"The operator {op}: with valid_shape the target must be a leading-dimension collapse of "
            f"{show_all(region.shape)} to 2D, or [1, product]"
        )


def bitcast_shape(
    op: str, kind: str, source: Region, from_: DataType, to: DataType, axis: int
) -> tuple[list[Expr], list[Expr]]:
    """Shape and valid extents after reading the bytes as another type; ``axis`` is the contiguous one
    (both levels)."""
    shape, valid = list(source.shape), list(source.valid)
    old, new = from_.get_byte(), to.get_byte()
    if old >= new:
        ratio = old // new
        shape[axis] = mul(shape[axis], const(ratio))
        valid[axis] = mul(valid[axis], const(ratio))
        return shape, valid
    ratio = new // old
    for extents in (shape, valid):
        extent = as_int(extents[axis])
        if extent is None or extent % ratio:
            raise ValueError(
                f"The operator {op}: {kind} dimension {axis} ({show(extents[axis])}) is not divisible by "
                f"{ratio}"
            )
        extents[axis] = const(extent // ratio)
    return shape, valid


def check_bitcast(op: str, from_: DataType, to: DataType) -> None:
    """ValueError unless both types can be reinterpreted and differ (both levels)."""
    if from_ is to:
        raise ValueError(f"The operator {op} requires source and target dtypes to differ, both are {from_}")
    for which, dtype in (("source", from_), ("target", to)):
        dt.require(dtype, dt.BITCASTABLE, op, f"{which} dtype")


def byte_size(shape: Extents, dtype: DataType) -> int | None:
    """Bytes of a static shape."""
    volume = static_volume(shape)
    return None if volume is None else volume * dtype.get_byte()


def check_byte_sizes(op: str, source: Extents, from_: DataType, shape: Extents, to: DataType) -> None:
    """ValueError if the static byte sizes differ (both levels)."""
    have, want = byte_size(source, from_), byte_size(shape, to)
    if have is not None and want is not None and have != want:
        raise ValueError(
            f"The operator {op} requires equal source and target byte sizes, got {have} and {want} bytes"
        )


def bitcast_pad(pad: PadValue) -> PadValue:
    """Only zero means the same in every element type."""
    return pad if pad is PadValue.zero else PadValue.null


def reinterpret_view(args: Args, kwargs: Kwargs) -> Type:
    """``tensor.reinterpret_view``: the same bytes as another element type."""
    op = "tensor.reinterpret_view"
    source, to = tensor_of(args[0]), _required_dtype(op, kwargs)
    layout = layout_of(source)
    if is_distributed(source) or layout is NZ or layout in MX_LAYOUTS:
        what = "distributed tensors" if is_distributed(source) else f"the layout {layout.name}"
        raise ValueError(f"The operator {op} does not support {what}")
    check_bitcast(op, source.dtype, to)
    if not is_packed(source):
        raise ValueError(f"The operator {op} only supports packed tensors")
    region = tensor_region(source, op)
    rank = len(source.shape_)
    axis = rank - 2 if layout is DN else rank - 1
    pad = bitcast_pad(pad_of(source))
    if len(args) > 1:
        shape: Extents = int_elements(args[1], op, "shape")
        check_byte_sizes(op, source.shape_, source.dtype, shape, to)
        if not region.full:
            raise ValueError(f"The operator {op}: a partially valid source cannot be given an explicit shape")
        return tensor_with(source, shape, to, layout=layout, pad=pad)
    shape, valid = bitcast_shape(op, "source", region, source.dtype, to, axis)
    return tensor_with(source, shape, to, valid=valid, layout=layout, pad=pad)


def set_validshape(args: Args, kwargs: Kwargs) -> Type:
    """``tensor.set_validshape``: the same buffer with another valid region."""
    op = "tensor.set_validshape"
    source = tensor_of(args[0])
    valid = check_valid_extents(op, args, source.shape_, "tensor")
    view = source.tensor_view
    return tensor_with(
        source,
        source.shape_,
        source.dtype,
        valid=valid,
        stride=() if view is None else view.stride_,
        layout=layout_of(source),
        pad=pad_of(source),
        keep_memref=True,
    )


def check_valid_extents(op: str, args: Args, shape: Extents, level: str) -> list[Expr]:
    """The two valid extents of a 2-D operand (both levels)."""
    if len(shape) != 2:
        raise ValueError(f"The operator {op} requires a 2D {level}, got {show_all(shape)}")
    valid = []
    for which, extent, bound in (("valid_rows", args[1], shape[0]), ("valid_cols", args[2], shape[1])):
        dtype = scalar_dtype(extent, op, which)
        if dtype not in dt.EXTENT_SCALARS:
            raise ValueError(f"The operator {op} requires {which} to be INT64, UINT64 or INDEX, got {dtype}")
        if negative(extent):
            raise ValueError(f"The operator {op}: {which} must be >= 0, got {show(extent)}")
        if less_equal(extent, bound) is False:
            raise ValueError(f"The operator {op}: {which} {show(extent)} exceeds {level} bound {show(bound)}")
        valid.append(extent)
    return valid


def fillpad(args: Args, kwargs: Kwargs) -> Type:
    """``tensor.fillpad``: the cells outside the valid region become the pad value."""
    op = "tensor.fillpad"
    source = tensor_of(args[0])
    check_pad(op, kwargs)
    view = source.tensor_view
    if view is None:
        return source
    return tensor_with(
        source,
        source.shape_,
        source.dtype,
        stride=view.stride_,
        layout=view.layout,
        pad=view.pad,
        keep_memref=True,
    )


def check_pad(op: str, kwargs: Kwargs) -> PadValue:
    """The pad mode; ValueError for null (all levels)."""
    pad: PadValue = kwargs.get("pad_value", PadValue.zero)
    if pad is PadValue.null:
        raise ValueError(f"The operator {op}: fillpad pad_value must be zero, max or min, got {pad}")
    return pad


def fillpad_expand(args: Args, kwargs: Kwargs) -> Type:
    """``tensor.fillpad_expand``: the source at the origin of a larger, padded tensor."""
    op = "tensor.fillpad_expand"
    source = tensor_of(args[0])
    pad = check_pad(op, kwargs)
    shape = check_expanded(op, source.shape_, args[1])
    return tensor_with(source, shape, source.dtype, pad=pad)


def check_expanded(op: str, source: Extents, arg: Expr) -> tuple[ConstInt, ...]:
    """The static target shape, at least as large as the source on every axis (both levels)."""
    shape = static_elements(arg, op, "shape")
    if len(shape) != len(source):
        raise ValueError(f"The operator {op} requires a shape of rank {len(source)}, got {show_all(shape)}")
    for i, (new, old) in enumerate(zip(shape, source, strict=True)):
        if less_equal(old, new) is False:
            raise ValueError(
                f"The operator {op}: shape[{i}] {show(new)} must be >= source dimension {show(old)}"
            )
    return shape


# --- split regions --------------------------------------------------------------------------------


def split_axis(op: str, kwargs: Kwargs) -> int | None:
    """The axis that a split region divides, None for no split (both levels)."""
    split = kwargs.get("split", 0)
    if split not in (0, 1, 2):
        raise ValueError(
            f"The operator {op}: split must be 0 (none), 1 (up-down) or 2 (left-right), got {split}"
        )
    return None if split == 0 else split - 1


def _check_split_operand(op: str, source: TensorType, kwargs: Kwargs) -> int | None:
    if is_distributed(source):
        raise ValueError(f"The operator {op} requires a non-distributed TensorType")
    axis = split_axis(op, kwargs)
    if axis is not None and len(source.shape_) != 2:
        raise ValueError(
            f"The operator {op} requires a 2D tensor, got {show_all(source.shape_)}; reshape the operand to "
            "2D first"
        )
    return axis


def aiv_shard(args: Args, kwargs: Kwargs) -> Type:
    """``tensor.aiv_shard``: one lane's half."""
    op = "tensor.aiv_shard"
    source = tensor_of(args[0])
    axis = _check_split_operand(op, source, kwargs)
    if axis is None:
        return source
    shape, valid = list(source.shape_), list(tensor_region(source, op).valid)
    shape[axis], valid[axis] = ceildiv(shape[axis], 2), ceildiv(valid[axis], 2)
    return fresh_tensor(shape, source.dtype, valid)


def aic_gather(args: Args, kwargs: Kwargs) -> Type:
    """``tensor.aic_gather``: both lanes' halves side by side."""
    op = "tensor.aic_gather"
    source = tensor_of(args[0])
    axis = _check_split_operand(op, source, kwargs)
    if axis is None:
        return source
    shape, valid = list(source.shape_), list(tensor_region(source, op).valid)
    shape[axis], valid[axis] = mul(shape[axis], const(2)), mul(valid[axis], const(2))
    return fresh_tensor(shape, source.dtype, valid)
