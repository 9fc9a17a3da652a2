"""Whether a value of one type may be carried in a slot of another: the first difference, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pypto import ir
from pypto.ir.arith import Analyzer
from pypto.passes.verify.codes import TypeCheckErrorType

_E = TypeCheckErrorType


@dataclass(frozen=True, slots=True)
class TypeMismatch:
    """Why two types do not fit."""

    kind: TypeCheckErrorType
    message: str


def compare_types(left: ir.Type, right: ir.Type, place: str) -> TypeMismatch | None:
    """Return the first difference that matters to a carried value, None if there is none."""
    if left is right:
        return None
    if type(left) is not type(right):
        kinds = f"{type(left).__name__} vs {type(right).__name__}"
        return TypeMismatch(_E.TYPE_KIND_MISMATCH, f"Type kind mismatch in {place}: {kinds}")
    if isinstance(left, ir.TupleType) and isinstance(right, ir.TupleType):
        return _compare_tuples(left, right, place)
    if isinstance(left, ir.ScalarType) and isinstance(right, ir.ScalarType):
        return _compare_dtypes(left.dtype, right.dtype, place)
    if isinstance(left, ir.ShapedType) and isinstance(right, ir.ShapedType):
        return (
            _compare_dtypes(left.dtype, right.dtype, place)
            or _compare_extents(left.shape_, right.shape_, "Shape", place)
            or _compare_extents(_valid_shape(left), _valid_shape(right), "Valid shape", place)
            or _compare_details(left, right, place)
        )
    return None


def _compare_tuples(left: ir.TupleType, right: ir.TupleType, place: str) -> TypeMismatch | None:
    if len(left.types_) != len(right.types_):
        sizes = f"{len(left.types_)} vs {len(right.types_)}"
        return TypeMismatch(_E.SIZE_MISMATCH, f"Tuple size mismatch in {place}: sizes {sizes}")
    for index, (a, b) in enumerate(zip(left.types_, right.types_, strict=True)):
        mismatch = compare_types(a, b, f"{place} element[{index}]")
        if mismatch is not None:
            return mismatch
    return None


def _compare_dtypes(left: ir.DataType, right: ir.DataType, place: str) -> TypeMismatch | None:
    if left == right:
        return None
    return TypeMismatch(_E.DTYPE_MISMATCH, f"Dtype mismatch in {place}: {left} vs {right}")


def _valid_shape(type_: ir.ShapedType) -> tuple[ir.Expr, ...]:
    view: ir.TensorView | ir.TileView | None = None
    if isinstance(type_, ir.TensorType):
        view = type_.tensor_view
    elif isinstance(type_, ir.TileType):
        view = type_.tile_view
    return view.valid_shape_ if view is not None and view.valid_shape_ else type_.shape_


def _compare_extents(
    left: Sequence[ir.Expr], right: Sequence[ir.Expr], what: str, place: str
) -> TypeMismatch | None:
    if len(left) != len(right):
        counts = f"{len(left)} vs {len(right)}"
        return TypeMismatch(
            _E.SHAPE_DIMENSION_MISMATCH, f"{what} dimension count mismatch in {place}: {counts}"
        )
    for index, (a, b) in enumerate(zip(left, right, strict=True)):
        if is_same_extent(a, b):
            continue
        message = f"{what} dimension mismatch in {place}: dimension {index} is {a} vs {b}"
        if not (isinstance(a, ir.ConstInt) and isinstance(b, ir.ConstInt)):
            message += "; equality is not provable and the boundary has no runtime guard"
        return TypeMismatch(_E.SHAPE_VALUE_MISMATCH, message)
    return None


def is_same_extent(a: ir.Expr, b: ir.Expr) -> bool:
    """Say whether two extents are provably equal."""
    if a is b:
        return True
    if isinstance(a, ir.ConstInt) and isinstance(b, ir.ConstInt):
        return a.value == b.value
    return Analyzer().can_prove_equal(a, b)


def _compare_details(left: ir.ShapedType, right: ir.ShapedType, place: str) -> TypeMismatch | None:
    if isinstance(left, ir.TensorType) and isinstance(right, ir.TensorType) and _pad(left) is not _pad(right):
        pads = f"{_pad(left)} vs {_pad(right)}"
        return TypeMismatch(_E.TENSOR_PADDING_MISMATCH, f"Tensor padding mismatch in {place}: {pads}")
    if (
        isinstance(left, ir.DistributedTensorType)
        and isinstance(right, ir.DistributedTensorType)
        and left.window_buffer is not right.window_buffer
    ):
        return TypeMismatch(
            _E.DISTRIBUTED_WINDOW_IDENTITY_MISMATCH, f"Distributed window-buffer identity mismatch in {place}"
        )
    if isinstance(left, ir.TileType) and isinstance(right, ir.TileType):
        a, b = left.tile_view, right.tile_view
        if a is not None and b is not None and not _is_same_view(a, b):
            return TypeMismatch(_E.TILE_VIEW_MISMATCH, f"Tile view metadata mismatch in {place}")
    return None


def _pad(type_: ir.TensorType) -> ir.PadValue:
    return type_.tensor_view.pad if type_.tensor_view is not None else ir.PadValue.null


def _is_same_view(a: ir.TileView, b: ir.TileView) -> bool:
    """Compare everything but the valid shape, which has been proven equal already."""
    return a.replace(valid_shape=()) == b.replace(valid_shape=())
