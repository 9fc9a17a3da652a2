"""Operands for operator tests: variables of tensor, tile and scalar type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from pypto import ir

NOWHERE = ir.Span.unknown()
Vec, Mat, Left, Right, Acc = (
    ir.MemorySpace.Vec, ir.MemorySpace.Mat, ir.MemorySpace.Left, ir.MemorySpace.Right, ir.MemorySpace.Acc,
)  # fmt: skip
ROW, COL, NONE = ir.TileLayout.row_major, ir.TileLayout.col_major, ir.TileLayout.none_box


def symbol(name: str, dtype: ir.DataType = ir.INDEX) -> ir.Var:
    return ir.Var(name, ir.ScalarType(dtype), NOWHERE)


def tensor(
    shape: Sequence[Any],
    dtype: ir.DataType = ir.FP32,
    valid: Sequence[Any] | None = None,
    name: str = "t",
    **view: Any,
) -> ir.Var:
    stored = None
    if valid is not None or view:
        stored = ir.TensorView(view.get("stride"), view.get("layout", ir.TensorLayout.ND), valid,
                               view.get("pad", ir.PadValue.null))  # fmt: skip
    return ir.Var(name, ir.TensorType(list(shape), dtype, None, stored), NOWHERE)


def window(shape: Sequence[Any], dtype: ir.DataType = ir.FP32) -> ir.Var:
    return ir.Var("w", ir.DistributedTensorType(list(shape), dtype), NOWHERE)


def tile(
    shape: Sequence[Any],
    dtype: ir.DataType = ir.FP32,
    valid: Sequence[Any] | None = None,
    space: ir.MemorySpace | None = Vec,
    **view: Any,
) -> ir.Var:
    stored = None
    if valid is not None or view:
        implicit = ir.TileType(list(shape), dtype, None, None, space).get_effective_tile_view()
        layout = {
            "blayout": implicit.blayout,
            "slayout": implicit.slayout,
            "fractal": implicit.fractal,
        } | view
        stored = ir.TileView(valid, **layout)
    return ir.Var("v", ir.TileType(list(shape), dtype, None, stored, space), NOWHERE)


def bound(call: ir.Expr) -> ir.Var:
    """A variable of the call's type."""
    return ir.Var("b", call.type, NOWHERE)


def extents(values: Sequence[ir.Expr]) -> list[Any]:
    """Constants as ints, anything else as its text."""
    return [value.value if isinstance(value, ir.ConstInt) else str(value) for value in values]


def shape(call: ir.Expr) -> list[Any]:
    return extents(call.type.shape)  # type: ignore[attr-defined]


def valid(call: ir.Expr) -> list[Any]:
    kind = call.type
    if isinstance(kind, ir.TensorType):
        view = kind.tensor_view
        return extents(view.valid_shape) if view is not None and view.valid_shape else extents(kind.shape)
    assert isinstance(kind, ir.TileType)
    return extents(kind.get_effective_tile_view().valid_shape)


def layout(call: ir.Expr) -> tuple[ir.TileLayout, ir.TileLayout]:
    view = call.type.get_effective_tile_view()  # type: ignore[attr-defined]
    return view.blayout, view.slayout


def rejects(build: Callable[[], object], *facts: str, error: type[Exception] = ValueError) -> None:
    """The builder raises exactly this class, and its message holds every fact."""
    with pytest.raises(error) as caught:
        build()
    assert type(caught.value) is error
    for fact in facts:
        assert fact in str(caught.value), str(caught.value)
