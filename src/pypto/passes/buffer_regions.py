"""Regions of buffers, and whether a region was written before.

A region is a whole buffer, or the window that a slice cuts out of one. Windows compare only where they are
constant: a window that depends on a loop variable overlaps its own buffer as a whole, but no other window for
certain.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass, field

from pypto import ir
from pypto.ir.views import same_extents
from pypto.ir.walk import walk_stmts
from pypto.passes.storage import Storage

__all__ = ["Region", "Regions", "WrittenRegions"]

Box = tuple[tuple[int, int], ...]
"""Per axis start and end."""


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """What a root is: `base` is the buffer, `box` the window in it; None unless `root` is a slice of constant
    place.
    """

    root: ir.Var
    base: ir.Var
    box: Box | None

    @property
    def is_whole(self) -> bool:
        return self.root is self.base


class Regions:
    """The regions of the roots of one function."""

    def __init__(self, function: ir.Function, storage: Storage) -> None:
        self._storage = storage
        self._known: dict[ir.Var, Region] = {}
        self._slices = {
            stmt.var: stmt.value
            for stmt in walk_stmts(function.body)
            if isinstance(stmt, ir.AssignStmt)
            and isinstance(stmt.value, ir.Call)
            and stmt.value.op.name == "tensor.slice"
        }

    def of(self, root: ir.Var) -> Region:
        """The region of a root; a slice of a slice is a window of the outermost buffer."""
        chain = [root]
        while chain[-1] not in self._known:
            call = self._slices.get(chain[-1])
            parent = None if call is None else self._storage.only_root(call.args_[0])
            if parent is None:
                self._known[chain[-1]] = Region(chain[-1], chain[-1], None)
                break
            chain.append(parent)
        for var in reversed(chain):
            if var not in self._known:
                call = self._slices[var]
                parent = self._storage.only_root(call.args_[0])
                assert parent is not None
                self._known[var] = _window(var, call, self._known[parent])
        return self._known[root]


def _window(root: ir.Var, call: ir.Call, parent: Region) -> Region:
    """The region of a slice. A window of a reshaped or transposed buffer has no constant place in it."""
    shape, offset = call.args_[1], call.args_[2]
    assert isinstance(shape, ir.MakeTuple) and isinstance(offset, ir.MakeTuple)
    source = call.args_[0].type
    assert isinstance(source, ir.TensorType) and isinstance(parent.root.type, ir.TensorType)
    extents = _constants(shape.elements_)
    starts = _constants(offset.elements_)
    if extents is None or starts is None or len(extents) != len(starts) or len(extents) != len(source.shape_):
        return Region(root, parent.base, None)
    if len(source.shape_) != len(parent.root.type.shape_) or not _same_shape(source, parent.root.type):
        return Region(root, parent.base, None)
    origin = (0,) * len(starts)
    if not parent.is_whole:
        if parent.box is None or len(parent.box) != len(starts):
            return Region(root, parent.base, None)
        origin = tuple(start for start, _ in parent.box)
    box = tuple((o + s, o + s + e) for o, s, e in zip(origin, starts, extents, strict=True))
    return Region(root, parent.base, box)


def _same_shape(a: ir.TensorType, b: ir.TensorType) -> bool:
    """Whether a slice's operand has the extents of its root, and so is not a reshaped or transposed view of
    it.
    """
    return same_extents(a.shape_, b.shape_) and _strides(a) == _strides(b)


def _strides(type: ir.TensorType) -> tuple[int, ...] | None:
    view = type.tensor_view
    return None if view is None or not view.stride_ else _constants(view.stride_)


def _constants(exprs: Sequence[ir.Expr]) -> tuple[int, ...] | None:
    values = [expr.value for expr in exprs if isinstance(expr, ir.ConstInt)]
    return tuple(values) if len(values) == len(exprs) else None


@dataclass(slots=True)
class _Windows:
    """Constant windows of one buffer, ordered by their start on the first axis."""

    boxes: list[Box] = field(default_factory=list)
    widest: int = 0

    def add(self, box: Box) -> None:
        insort(self.boxes, box)
        self.widest = max(self.widest, box[0][1] - box[0][0])

    def remove(self, box: Box) -> None:
        del self.boxes[bisect_left(self.boxes, box)]

    def overlap(self, box: Box) -> bool:
        first = bisect_left(self.boxes, ((box[0][0] - self.widest, 0),))
        for other in self.boxes[first:]:
            if other[0][0] >= box[0][1]:
                return False
            if len(other) == len(box) and all(
                a < d and c < b for (a, b), (c, d) in zip(box, other, strict=True)
            ):
                return True
        return False


class WrittenRegions:
    """A multiset of regions with the question whether a further one overlaps any of them for certain."""

    def __init__(self) -> None:
        self._roots: dict[ir.Var, int] = {}
        self._any_of: dict[ir.Var, int] = {}  # regions per buffer
        self._windows: dict[ir.Var, _Windows] = {}

    def add(self, region: Region) -> None:
        self._roots[region.root] = self._roots.get(region.root, 0) + 1
        self._any_of[region.base] = self._any_of.get(region.base, 0) + 1
        if region.box:
            self._windows.setdefault(region.base, _Windows()).add(region.box)

    def remove(self, region: Region) -> None:
        """Take back one `add` of the region."""
        self._roots[region.root] -= 1
        self._any_of[region.base] -= 1
        if region.box:
            self._windows[region.base].remove(region.box)

    def overlap(self, region: Region) -> bool:
        """Whether it was written: itself, the buffer around it, a part of it, an overlapping window."""
        if self._roots.get(region.root) or self._roots.get(region.base):
            return True
        if region.is_whole:
            return bool(self._any_of.get(region.base))
        windows = self._windows.get(region.base)
        return bool(region.box and windows and windows.overlap(region.box))
