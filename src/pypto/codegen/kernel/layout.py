"""The rectangle that a tile is in C++.

Tiles of any rank are folded to two dimensions: all leading dimensions become rows. The valid region folds
along, which needs every leading dimension but the first non-unit one to be valid in full.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pypto import ir
from pypto.codegen.kernel.elements import Element, element_of


@dataclass(frozen=True, slots=True)
class TileLayout:
    """Element type, extents and strides (in elements) of a folded tile."""

    element: Element
    rows: int
    cols: int
    row_stride: int
    col_stride: int = 1

    @property
    def is_packed(self) -> bool:
        return self.col_stride == 1 and (self.row_stride == self.cols or self.rows == 1)

    @property
    def size(self) -> int:
        """Bytes of a packed tile of these extents."""
        return self.rows * self.cols * self.element.size

    def packed(self) -> TileLayout:
        return replace(self, row_stride=self.cols, col_stride=1)

    def ctype(self) -> str:
        """The C++ type."""
        extents = f"pypto::Tile<{self.element.stored}, {self.rows}, {self.cols}"
        if self.row_stride == self.cols and self.col_stride == 1:
            return f"{extents}>"
        return f"{extents}, {self.row_stride}, {self.col_stride}>"


def constant_extents(exprs: Sequence[ir.Expr]) -> list[int] | None:
    """The values of constant extents, None if one is not constant."""
    values = [expr.value for expr in exprs if isinstance(expr, ir.ConstInt)]
    return values if len(values) == len(exprs) else None


def fold_extents(extents: Sequence[int]) -> tuple[int, int]:
    """Rows and columns of a shape."""
    rows = 1
    for extent in extents[:-1]:
        rows *= extent
    return rows, extents[-1] if extents else 1


def tile_layout(type: ir.TileType) -> TileLayout:
    """The packed layout of a tile type.

    Raises:
        ValueError: the extents are not constant, or the element type has no storage on the CPU.
    """
    extents = constant_extents(type.shape_)
    if extents is None:
        written = ", ".join(map(str, type.shape_))
        raise ValueError(
            f"the extents of a tile must be compile-time constants, got [{written}]; take a window of "
            "constant extents and say with valid_shape=[...] how much of it counts"
        )
    rows, cols = fold_extents(extents)
    return TileLayout(element_of(type.dtype), rows, cols, cols)


def valid_extents(type: ir.Type) -> tuple[ir.Expr, ...] | None:
    """The valid extents of a tile that is valid in part, None if it is valid in full."""
    assert isinstance(type, ir.TileType)
    view = type.tile_view
    if view is None or not view.valid_shape_:
        return None
    return None if is_same(view.valid_shape_, type.shape_) else view.valid_shape_


def is_same(left: Sequence[ir.Expr], right: Sequence[ir.Expr]) -> bool:
    """Whether two lists of extents are the same objects or equal constants."""
    return len(left) == len(right) and all(
        a is b or (isinstance(a, ir.ConstInt) and isinstance(b, ir.ConstInt) and a.value == b.value)
        for a, b in zip(left, right, strict=True)
    )


def fold_valid(type: ir.TileType, valid: Sequence[ir.Expr]) -> tuple[list[ir.Expr], ir.Expr | None]:
    """Factors whose product is the number of valid rows, and the valid columns (None for rank 0).

    Raises:
        ValueError: the valid region is not a leading rectangle of the folded tile.
    """
    shape = type.shape_
    if not shape:
        return [], None
    factors: list[ir.Expr] = []
    for axis, (extent, part) in enumerate(zip(shape[:-1], valid[:-1], strict=True)):
        if factors and not is_same([extent], [part]):
            raise ValueError(f"a tile of rank {len(shape)} cannot be valid in part on dimension {axis}")
        if factors or not (
            isinstance(extent, ir.ConstInt) and extent.value == 1 and is_same([extent], [part])
        ):
            factors.append(part)
    return factors, valid[-1]
