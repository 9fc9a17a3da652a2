"""Which operators give a view of their first operand, and what rectangle that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pypto import ir
from pypto.codegen.kernel.layout import TileLayout, constant_extents, tile_layout
from pypto.ir.meaning import Move
from pypto.ir.op_registry import OpDef


@dataclass(frozen=True, slots=True)
class ViewOf:
    """The layout of a view; `is_whole` if it covers exactly the elements of its source, packed."""

    layout: TileLayout
    is_whole: bool


def view_of(call: ir.Call, definition: OpDef, source: TileLayout) -> ViewOf | None:
    """The view that `call` makes of its first operand, None if it makes a new value."""
    meaning = definition.meaning
    if not isinstance(meaning, Move):
        return None
    if meaning.kind == "set_validshape":
        return ViewOf(source, True)
    if meaning.kind == "transpose_view":
        return ViewOf(_transposed(source), False)
    assert isinstance(call.type, ir.TileType)
    layout = tile_layout(call.type)
    if meaning.kind == "slice":
        strided = replace(layout, row_stride=source.row_stride, col_stride=source.col_stride)
        return ViewOf(strided, strided == source)
    if meaning.kind in ("reshape", "reinterpret_view"):
        return ViewOf(layout, True) if source.is_packed else None
    return None


def _transposed(source: TileLayout) -> TileLayout:
    return TileLayout(source.element, source.cols, source.rows, source.col_stride, source.row_stride)


def row_weights(extents: Sequence[int], window: Sequence[int]) -> list[int]:
    """How many folded rows one step along each leading dimension of a tile is.

    Raises:
        ValueError: the window is not a range of folded rows.
    """
    leading = list(zip(extents[:-1], window[:-1], strict=True))
    is_open = False
    for axis, (extent, part) in enumerate(leading):
        if is_open and part != extent:
            raise ValueError(
                f"a window of {list(window)} of a tile of {list(extents)} is not supported: "
                f"dimension {axis} must be taken in full"
            )
        is_open = is_open or part > 1
    weights = [1] * len(leading)
    for axis in reversed(range(len(leading) - 1)):
        weights[axis] = weights[axis + 1] * leading[axis + 1][0]
    return weights


def window_extents(call: ir.Call) -> tuple[list[int], list[int]]:
    """Extents of the source and of the window of a slice."""
    source, window = call.args_[0].type, call.args_[1]
    assert isinstance(source, ir.TileType) and isinstance(window, ir.MakeTuple)
    extents, parts = constant_extents(source.shape_), constant_extents(window.elements_)
    if extents is None or parts is None:
        raise ValueError("the extents of a slice must be compile-time constants")
    return extents, parts
