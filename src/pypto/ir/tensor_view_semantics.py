"""Relations between shape, strides and layout of a tensor in memory. Strides count elements."""

from __future__ import annotations

from collections.abc import Sequence

from pypto.core.dtype import DataType
from pypto.core.span import UNKNOWN_SPAN
from pypto.ir.enums import TensorLayout
from pypto.ir.expr import ConstInt, Expr, Mul
from pypto.ir.views import TensorView

_INT64_MAX = 2**63 - 1


def build_logical_strides_from_layout(shape: Sequence[Expr], layout: TensorLayout) -> list[Expr]:
    """Packed strides: row-major for ND and MX, last two axes swapped for DN. NZ has none: `ValueError`."""
    if layout is TensorLayout.NZ:
        raise ValueError("NZ tensors have no logical strides: elements lie in fractal boxes")
    rank = len(shape)
    if rank == 0:
        return []
    strides: list[Expr] = [_one()] * rank
    if layout is TensorLayout.DN:
        if rank < 2:
            raise ValueError(f"DN layout needs rank >= 2, got {rank}")
        strides[-1] = shape[-2]
        if rank > 2:
            strides[-3] = _product(shape[-2], shape[-1])
        first_outer = rank - 4
    else:
        first_outer = rank - 2
    for axis in range(first_outer, -1, -1):
        strides[axis] = _product(strides[axis + 1], shape[axis + 1])
    return strides


def derive_layout_from_strides(shape: Sequence[Expr], stride: Sequence[Expr]) -> TensorLayout | None:
    """ND or DN, told by which of the last two strides is the constant 1; None when neither is."""
    if not stride or len(shape) != len(stride):
        return None
    if _is_one(stride[-1]):
        return TensorLayout.ND
    return TensorLayout.DN if len(stride) >= 2 and _is_one(stride[-2]) else None


def check_canonical_view(
    shape: Sequence[Expr], stride: Sequence[Expr], layout: TensorLayout, relaxed_symbolic: bool = True
) -> tuple[bool, str]:
    """Whether the strides are those of a (possibly padded) tensor of this layout, and why not.

    A relation between symbolic extents that cannot be decided passes when `relaxed_symbolic`.
    """
    if layout is TensorLayout.NZ:
        return False, "NZ tensors have no logical strides"
    if not shape and not stride:
        return True, ""
    if not stride:
        return False, "stride is empty"
    if len(shape) != len(stride):
        return False, f"rank of stride ({len(stride)}) differs from rank of shape ({len(shape)})"
    if layout is TensorLayout.DN:
        return _check_dn(shape, stride, relaxed_symbolic)
    if not _is_one(stride[-1]):
        return False, "innermost stride must be the constant 1"
    return _check_outer(shape, stride, len(shape) - 2, relaxed_symbolic)


def _check_dn(shape: Sequence[Expr], stride: Sequence[Expr], relaxed: bool) -> tuple[bool, str]:
    if len(shape) < 2:
        return False, "DN layout needs rank >= 2"
    if not _is_one(stride[-2]):
        return False, "innermost stride (second-last axis of DN) must be the constant 1"
    verdict = _at_least(stride[-1], shape[-2], len(shape) - 1, relaxed)
    if verdict is not None:
        return False, verdict
    if len(shape) > 2:
        verdict = _at_least(stride[-3], _product(stride[-1], shape[-1]), len(shape) - 3, relaxed)
        if verdict is not None:
            return False, verdict
    return _check_outer(shape, stride, len(shape) - 4, relaxed)


def _check_outer(
    shape: Sequence[Expr], stride: Sequence[Expr], first_axis: int, relaxed: bool
) -> tuple[bool, str]:
    for axis in range(first_axis, -1, -1):
        verdict = _at_least(stride[axis], _product(stride[axis + 1], shape[axis + 1]), axis, relaxed)
        if verdict is not None:
            return False, verdict
    return True, ""


def _at_least(stride: Expr, packed: Expr, axis: int, relaxed: bool) -> str | None:
    if isinstance(stride, ConstInt) and isinstance(packed, ConstInt):
        if stride.value >= packed.value:
            return None
        return f"stride {stride.value} of axis {axis} is smaller than packed {packed.value}"
    return None if relaxed else f"stride of axis {axis} is symbolic and cannot be checked"


def is_canonical_view(
    shape: Sequence[Expr], stride: Sequence[Expr], layout: TensorLayout, relaxed_symbolic: bool = True
) -> bool:
    """The flag of `check_canonical_view`."""
    return check_canonical_view(shape, stride, layout, relaxed_symbolic)[0]


def canonicalize_view(shape: Sequence[Expr], layout: TensorLayout) -> TensorView:
    """A view with packed strides and the whole shape valid."""
    return TensorView(build_logical_strides_from_layout(shape, layout), layout)


def compute_shape_product(shape: Sequence[Expr]) -> int:
    """The number of elements; -1 when an extent is not constant."""
    product = 1
    for extent in shape:
        if not isinstance(extent, ConstInt):
            return -1
        product *= extent.value
    return product


def _one() -> ConstInt:
    return ConstInt(1, DataType.INDEX, UNKNOWN_SPAN)


def _is_one(extent: Expr) -> bool:
    return isinstance(extent, ConstInt) and extent.value == 1


def _product(a: Expr, b: Expr) -> Expr:
    if isinstance(a, ConstInt) and isinstance(b, ConstInt):
        value = a.value * b.value
        if -_INT64_MAX - 1 <= value <= _INT64_MAX:
            return ConstInt(value, DataType.INDEX, UNKNOWN_SPAN)
    if _is_one(a):
        return b
    if _is_one(b):
        return a
    return Mul(a, b, DataType.INDEX, UNKNOWN_SPAN)
