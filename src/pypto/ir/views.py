"""How the elements of a tensor or tile lie in memory and which of them are valid.

A type stores its view in sparse form: whatever says nothing beyond the shape is dropped, so that equal
meaning gives equal fields. `implicit_tile_layout` is the layout of a tile that has no stored view.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pypto.core.dtype import DataType
from pypto.core.span import UNKNOWN_SPAN, Span
from pypto.ir.enums import CompactMode, MemorySpace, PadValue, TensorLayout, TileLayout
from pypto.ir.node import NODES, OPTIONAL_NODE, VALUE, Structure, expect, use

if TYPE_CHECKING:
    from pypto.ir.expr import Expr

__all__ = [
    "TensorView",
    "TileView",
    "implicit_tile_layout",
    "normalise_extents",
    "same_extent",
    "same_extents",
]


def normalise_extents(values: Sequence[Any], what: str, span: Span = UNKNOWN_SPAN) -> tuple[Expr, ...]:
    """Extents, offsets or strides as expressions: an int becomes an INDEX constant, an expression stays
    itself."""
    from pypto.ir.expr import ConstInt, Expr

    if not isinstance(values, (list, tuple)):
        raise TypeError(f"{what} must be a sequence of ints and expressions, got {type(values).__name__}")
    extents: list[Expr] = []
    for value in values:
        if isinstance(value, Expr):
            extents.append(value)
        elif isinstance(value, int):
            extents.append(ConstInt(int(value), DataType.INDEX, span))
        elif hasattr(value, "unwrap"):
            unwrapped = value.unwrap()
            expect(unwrapped, Expr, what)
            extents.append(unwrapped)
        else:
            raise TypeError(f"{what} must hold ints and expressions, got {type(value).__name__}")
    return tuple(extents)


def same_extent(a: Expr, b: Expr) -> bool:
    """Whether two extents are evidently the same: one object, equal constants, or equal operations on
    such."""
    from pypto.ir.expr import BinaryExpr, Call, ConstInt

    pending = [(a, b)]
    entered: set[tuple[int, int]] = set()  # operands may be shared
    while pending:
        left, right = pending.pop()
        if left is right or (id(left), id(right)) in entered:
            continue
        entered.add((id(left), id(right)))
        if isinstance(left, ConstInt) and isinstance(right, ConstInt):
            if left.value != right.value:
                return False
        elif isinstance(left, BinaryExpr) and type(left) is type(right):
            assert isinstance(right, BinaryExpr)
            pending += [(left.left, right.left), (left.right, right.right)]
        elif isinstance(left, Call) and isinstance(right, Call):
            if left.op.name != right.op.name or len(left.args_) != len(right.args_):
                return False
            pending += zip(left.args_, right.args_, strict=True)
        else:
            return False
    return True


def same_extents(a: Sequence[Expr], b: Sequence[Expr]) -> bool:
    """Whether two lists of extents are evidently the same, element by element."""
    return len(a) == len(b) and all(map(same_extent, a, b))


def _extent_key(extent: Expr) -> Any:
    """A hash key consistent with `same_extent`."""
    from pypto.ir.expr import BinaryExpr, Call, ConstInt

    if isinstance(extent, ConstInt):
        return extent.value
    if isinstance(extent, BinaryExpr):
        return type(extent).__name__
    if isinstance(extent, Call):
        return extent.op.name
    return id(extent)


class TensorView(Structure):
    """Strides, layout and valid region of a tensor in memory.

    Empty `valid_shape` means the whole shape, empty `stride` the packed strides of the layout. A type keeps
    a copy of the view it is given.
    """

    __slots__ = ("layout", "pad", "stride_", "valid_shape_")
    FIELDS = (use("valid_shape", NODES), use("stride", NODES), use("layout", VALUE), use("pad", VALUE))

    layout: TensorLayout
    pad: PadValue
    stride_: tuple[Expr, ...]
    valid_shape_: tuple[Expr, ...]

    def __setattr__(self, name: str, value: object) -> None:
        """The four fields may be assigned; a type has its own copy, so it never sees that."""
        if name == "layout":
            expect(value, TensorLayout, "TensorView.layout")
        elif name == "pad":
            expect(value, PadValue, "TensorView.pad")
        object.__setattr__(self, name, value)

    def __init__(
        self,
        stride: Sequence[Any] | None = None,
        layout: TensorLayout | None = None,
        valid_shape: Sequence[Any] | None = None,
        pad: PadValue = PadValue.null,
    ) -> None:
        if layout is None:
            if stride is not None or valid_shape is not None or pad is not PadValue.null:
                raise ValueError(
                    "TensorView needs an explicit layout when stride, valid_shape or pad is given"
                )
            layout = TensorLayout.ND
        self.stride_ = normalise_extents(() if stride is None else stride, "TensorView.stride")
        self.layout = layout
        self.valid_shape_ = normalise_extents(
            () if valid_shape is None else valid_shape, "TensorView.valid_shape"
        )
        self.pad = pad

    @property
    def stride(self) -> list[Expr]:
        return list(self.stride_)

    @stride.setter
    def stride(self, value: Sequence[Expr]) -> None:
        self.stride_ = normalise_extents(value, "TensorView.stride")

    @property
    def valid_shape(self) -> list[Expr]:
        return list(self.valid_shape_)

    @valid_shape.setter
    def valid_shape(self, value: Sequence[Expr]) -> None:
        self.valid_shape_ = normalise_extents(value, "TensorView.valid_shape")

    def copy(self, valid_shape: tuple[Expr, ...]) -> TensorView:
        """This view with another stored valid shape."""
        return TensorView.make(valid_shape, self.stride_, self.layout, self.pad)

    def is_trivial(self) -> bool:
        """Whether the view says nothing that the shape alone does not."""
        return (
            not self.stride_
            and self.layout is TensorLayout.ND
            and not self.valid_shape_
            and self.pad is PadValue.null
        )


class TileView(Structure):
    """Valid region, strides and box layout of a tile. `fractal` is the size of a box in bytes."""

    __slots__ = (
        "blayout", "compact", "fractal", "pad", "slayout", "start_offset", "stride_", "valid_shape_",
    )  # fmt: skip
    FIELDS = (
        use("valid_shape", NODES), use("stride", NODES), use("start_offset", OPTIONAL_NODE), use("blayout",
        VALUE), use("slayout", VALUE), use("fractal", VALUE), use("pad", VALUE), use("compact", VALUE),
    )  # fmt: skip

    valid_shape_: tuple[Expr, ...]
    stride_: tuple[Expr, ...]
    start_offset: Expr | None
    blayout: TileLayout
    slayout: TileLayout
    fractal: int
    pad: PadValue
    compact: CompactMode

    def __init__(
        self,
        valid_shape: Sequence[Any] | None = None,
        stride: Sequence[Any] | None = None,
        start_offset: Any = None,
        blayout: TileLayout = TileLayout.row_major,
        slayout: TileLayout = TileLayout.none_box,
        fractal: int = 512,
        pad: PadValue = PadValue.null,
        compact: CompactMode = CompactMode.null,
    ) -> None:
        expect(blayout, TileLayout, "TileView.blayout")
        expect(slayout, TileLayout, "TileView.slayout")
        expect(fractal, int, "TileView.fractal")
        expect(pad, PadValue, "TileView.pad")
        expect(compact, CompactMode, "TileView.compact")
        if fractal < 0:
            raise ValueError(f"TileView.fractal must be >= 0, got {fractal}")
        offset = (
            None if start_offset is None else normalise_extents([start_offset], "TileView.start_offset")[0]
        )
        self._fill(
            normalise_extents(() if valid_shape is None else valid_shape, "TileView.valid_shape"),
            normalise_extents(() if stride is None else stride, "TileView.stride"),
            offset, blayout, slayout, fractal, pad, compact,
        )  # fmt: skip

    @property
    def valid_shape(self) -> list[Expr]:
        return list(self.valid_shape_)

    @property
    def stride(self) -> list[Expr]:
        return list(self.stride_)

    def layout_key(self) -> tuple[Any, ...]:
        """The fields that are plain values."""
        return (self.blayout, self.slayout, self.fractal, self.pad, self.compact)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TileView):
            return NotImplemented
        mine, theirs = self.start_offset, other.start_offset
        return (
            self.layout_key() == other.layout_key()
            and same_extents(self.valid_shape_, other.valid_shape_)
            and same_extents(self.stride_, other.stride_)
            and (mine is theirs or (mine is not None and theirs is not None and same_extent(mine, theirs)))
        )

    def __hash__(self) -> int:
        return hash(
            (
                self.layout_key(),
                tuple(map(_extent_key, self.valid_shape_)),
                tuple(map(_extent_key, self.stride_)),
            )
        )


_BOX_LAYOUTS = {
    MemorySpace.Mat: (TileLayout.col_major, TileLayout.row_major, 512),
    MemorySpace.Left: (TileLayout.col_major, TileLayout.row_major, 512),
    MemorySpace.Acc: (TileLayout.col_major, TileLayout.row_major, 1024),
    MemorySpace.LeftScale: (TileLayout.row_major, TileLayout.row_major, 32),
    MemorySpace.RightScale: (TileLayout.col_major, TileLayout.col_major, 32),
}


def implicit_tile_layout(
    shape: Sequence[Expr], memory_space: MemorySpace | None
) -> tuple[TileLayout, TileLayout, int]:
    """(blayout, slayout, fractal in bytes) of a tile without a stored view."""
    if memory_space in _BOX_LAYOUTS:
        return _BOX_LAYOUTS[memory_space]
    blayout = TileLayout.col_major if _is_column(shape) else TileLayout.row_major
    return blayout, TileLayout.col_major if memory_space is MemorySpace.Right else TileLayout.none_box, 512


def _is_column(shape: Sequence[Expr]) -> bool:
    from pypto.ir.expr import ConstInt

    if len(shape) != 2:
        return False
    rows, cols = shape
    return isinstance(rows, ConstInt) and isinstance(cols, ConstInt) and cols.value == 1 and rows.value > 1
