"""Building result types: the valid region, element type and layout that an operator hands on."""

from __future__ import annotations

from collections.abc import Sequence

from pypto.core.dtype import DataType
from pypto.ir.enums import CompactMode, MemorySpace, PadValue, TensorLayout, TileLayout
from pypto.ir.expr import ConstInt, Expr, MakeTuple
from pypto.ir.op.extents import all_same, is_one, same, show_all
from pypto.ir.op.regions import Region
from pypto.ir.types import DistributedTensorType, ScalarType, TensorType, TileType
from pypto.ir.views import TensorView, TileView, implicit_tile_layout

ND, DN, NZ = TensorLayout.ND, TensorLayout.DN, TensorLayout.NZ
MX_LAYOUTS = (TensorLayout.MX_A_ZZ, TensorLayout.MX_B_NN)
ROW, COL, NO_BOX = TileLayout.row_major, TileLayout.col_major, TileLayout.none_box
Vec, Mat, Left, Right, Acc = (
    MemorySpace.Vec, MemorySpace.Mat, MemorySpace.Left, MemorySpace.Right, MemorySpace.Acc,
)  # fmt: skip

Extents = Sequence[Expr]
_FP4 = DataType.FP4


# --- operands -------------------------------------------------------------------------------------


def elements(arg: Expr, op: str, what: str) -> tuple[Expr, ...]:
    """Elements of a literal tuple operand.

    Raises:
        ValueError: the operand is no literal tuple, or an element is no integer scalar.
    """
    if not isinstance(arg, MakeTuple):
        raise ValueError(f"The operator {op} requires {what} to be a literal tuple, got {type(arg).__name__}")
    return arg.elements_


def int_elements(
    arg: Expr, op: str, what: str, allowed: tuple[DataType, ...] | None = None
) -> tuple[Expr, ...]:
    """Integer elements of a tuple operand, optionally only of the ``allowed`` element types."""
    found = elements(arg, op, what)
    for i, element in enumerate(found):
        if isinstance(element, ConstInt):
            continue
        kind = element.type
        if not isinstance(kind, ScalarType):
            raise ValueError(
                f"The operator {op} requires {what}[{i}] to be a scalar, got {type(kind).__name__}"
            )
        if not kind.dtype.is_int() or (allowed is not None and kind.dtype not in allowed):
            wanted = "an integer" if allowed is None else " or ".join(d.member for d in allowed)
            raise ValueError(
                f"The operator {op} requires {what} element {i} to be {wanted} scalar, got {kind.dtype}"
            )
    return found


def static_elements(arg: Expr, op: str, what: str) -> tuple[ConstInt, ...]:
    """Positive constant elements of a tuple operand."""
    found = elements(arg, op, what)
    for i, element in enumerate(found):
        if not isinstance(element, ConstInt):
            raise ValueError(f"The operator {op} requires {what}[{i}] to be a compile-time constant")
        if element.value <= 0:
            raise ValueError(f"The operator {op} requires {what}[{i}] to be positive, got {element.value}")
    return found  # type: ignore[return-value]


def scalar_dtype(arg: Expr, op: str, what: str) -> DataType:
    """Element type of a scalar operand."""
    if not isinstance(arg.type, ScalarType):
        raise ValueError(f"The operator {op} requires {what} to be a scalar, got {type(arg.type).__name__}")
    return arg.type.dtype


def tensor_of(arg: Expr) -> TensorType:
    """The tensor type of an argument whose kind has been checked."""
    assert isinstance(arg.type, TensorType)
    return arg.type


def tile_of(arg: Expr) -> TileType:
    """The tile type of an argument whose kind has been checked."""
    assert isinstance(arg.type, TileType)
    return arg.type


# --- tensors --------------------------------------------------------------------------------------


def tensor_region(t: TensorType, op: str = "") -> Region:
    """Shape and valid extents of a tensor; ValueError for a valid shape of another rank."""
    view = t.tensor_view
    if view is None or not view.valid_shape_:
        return Region(t.shape_, t.shape_)
    return Region(t.shape_, _checked_rank(view.valid_shape_, t.shape_, op))


def _checked_rank(valid: tuple[Expr, ...], shape: tuple[Expr, ...], op: str) -> tuple[Expr, ...]:
    if len(valid) != len(shape):
        raise ValueError(
            f"The operator {op}: valid_shape rank {len(valid)} of {show_all(valid)} does not match the rank "
            f"{len(shape)} of the shape {show_all(shape)}"
        )
    return valid


def is_distributed(t: TensorType) -> bool:
    """Whether the tensor is bound to a communication window."""
    return isinstance(t, DistributedTensorType)


def fresh_tensor(shape: Extents, dtype: DataType, valid: Extents | None = None) -> TensorType:
    """A plain ND tensor type; ``valid`` None means fully valid."""
    if valid is not None and not all_same(valid, shape):
        return TensorType(shape, dtype, None, TensorView(None, ND, list(valid)))
    if dtype is _FP4:
        return TensorType(shape, dtype)
    return TensorType.make(dtype, tuple(shape), None, None)


def tensor_with(
    source: TensorType,
    shape: Extents,
    dtype: DataType,
    *,
    valid: Extents | None = None,
    stride: Extents = (),
    layout: TensorLayout = ND,
    pad: PadValue = PadValue.null,
    keep_memref: bool = False,
) -> TensorType:
    """A tensor type of the kind (plain or distributed, same window) of ``source``."""
    stored = list(valid) if valid is not None and not all_same(valid, shape) else []
    view = TensorView(list(stride), layout, stored, pad)
    memref = source.memref if keep_memref else None
    if isinstance(source, DistributedTensorType):
        return DistributedTensorType(shape, dtype, memref, view, window_buffer=source.window_buffer)
    return TensorType(shape, dtype, memref, view)


def tensor_like(source: TensorType, dtype: DataType) -> TensorType:
    """Result of an operator that keeps the shape; the valid region of a plain tensor is carried."""
    view = source.tensor_view
    if view is None or is_distributed(source):
        if dtype is source.dtype and source.memref is None and type(source) is TensorType:
            return source
        return fresh_tensor(source.shape_, dtype)
    return fresh_tensor(source.shape_, dtype, view.valid_shape_ or None)


# --- tiles ----------------------------------------------------------------------------------------


def tile_region(t: TileType, op: str = "") -> Region:
    """Shape and valid extents of a tile; ValueError for a valid shape of another rank."""
    view = t.tile_view
    if view is None or not view.valid_shape_:
        return Region(t.shape_, t.shape_)
    return Region(t.shape_, _checked_rank(view.valid_shape_, t.shape_, op))


_SHAPE_RULE_SPACES = (None, Vec, MemorySpace.DDR, MemorySpace.Bias, MemorySpace.ScalarLocal)


def tile_like(source: TileType, dtype: DataType, space: MemorySpace | None = Vec) -> TileType:
    """Result of an operator that keeps shape, valid region and layout of ``source``."""
    if source.tile_view is None and source.memory_space in _SHAPE_RULE_SPACES and dtype is not _FP4:
        if dtype is source.dtype and source.memory_space is space and source.memref is None:
            return source
        return TileType.make(dtype, source.shape_, None, None, space)
    return inherit_layout(source, source.shape_, dtype, tile_region(source).valid, space)


def inherit_layout(
    source: TileType, shape: Extents, dtype: DataType, valid: Extents | None, space: MemorySpace | None = Vec
) -> TileType:
    """A tile with ``source``'s box layout, pad and compactness (not its fractal, strides or buffer)."""
    view = source.tile_view
    if view is None:
        blayout, slayout, _ = implicit_tile_layout(source.shape_, source.memory_space)
        pad, compact = PadValue.null, CompactMode.null
    else:
        blayout, slayout, pad, compact = view.blayout, view.slayout, view.pad, view.compact
    return make_tile(shape, dtype, valid, blayout, slayout, 512, pad, compact, space)


def make_tile(
    shape: Extents,
    dtype: DataType,
    valid: Extents | None,
    blayout: TileLayout,
    slayout: TileLayout = NO_BOX,
    fractal: int = 512,
    pad: PadValue = PadValue.null,
    compact: CompactMode = CompactMode.null,
    space: MemorySpace | None = Vec,
) -> TileType:
    """A tile with an explicit layout; ``valid`` None means fully valid."""
    stored = list(valid) if valid is not None and not all_same(valid, shape) else None
    view = TileView(stored, None, None, blayout, slayout, fractal, pad, compact)
    return TileType(shape, dtype, None, view, space)


def implicit_tile(
    shape: Extents,
    dtype: DataType,
    valid: Extents | None = None,
    space: MemorySpace | None = Vec,
    compact: CompactMode = CompactMode.null,
    pad: PadValue = PadValue.null,
) -> TileType:
    """A tile with the layout that its shape and space imply."""
    if valid is None and compact is CompactMode.null and pad is PadValue.null and dtype is not _FP4:
        return TileType.make(dtype, tuple(shape), None, None, space)
    return make_tile(shape, dtype, valid, *implicit_tile_layout(shape, space), pad, compact, space)


# --- broadcasting ---------------------------------------------------------------------------------


def broadcast_shapes(op: str, left: tuple[Expr, ...], right: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """NumPy broadcasting, right-aligned; extents must be provably equal or the constant 1.

    Raises:
        ValueError: the shapes do not broadcast; the message shows both.
    """
    if left is right:
        return left
    rank = max(len(left), len(right))
    result: list[Expr] = []
    kept_left = len(left) == rank
    for i in range(-rank, 0):
        a = left[i] if -i <= len(left) else None
        b = right[i] if -i <= len(right) else None
        if b is None or (a is not None and same(a, b)):
            result.append(a)  # type: ignore[arg-type]
        elif a is None or is_one(a):
            result.append(b)
            kept_left = False
        elif is_one(b):
            result.append(a)
        else:
            raise ValueError(
                f"The operator {op} requires shapes that broadcast, but {show_all(left)} and "
                f"{show_all(right)} do not"
            )
    return left if kept_left else tuple(result)


def broadcast_valid(shape: Extents, first: Region, second: Region) -> Extents:
    """Valid extents of a broadcast result: the first operand's, the second's along axes that the first
    stretches."""
    if all_same(first.shape, shape):
        return first.valid
    valid: list[Expr] = []
    rank = len(shape)
    for i in range(rank):
        a, b = i - rank + len(first.shape), i - rank + len(second.shape)
        if a >= 0 and (not is_one(first.shape[a]) or is_one(shape[i])):
            valid.append(first.valid[a])
        else:
            valid.append(second.valid[b])
    return valid
