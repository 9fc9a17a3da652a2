"""Regions of buffers, and whether a region was written before.

A region is a whole buffer, or the window that a slice cuts out of one. A window that covers its buffer is the
whole buffer. Two windows of one buffer overlap unless they are provably apart along some axis: a window of
which nothing is known (of a reshaped view, say) overlaps every other. An index may be negative, unless it is
an extent or has a range that says otherwise.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass, field

from pypto import ir
from pypto.ir.arith import Analyzer, ConstIntBound
from pypto.ir.views import same_extents
from pypto.ir.walk import walk_stmts
from pypto.passes.storage import Storage

__all__ = ["Region", "Regions", "WrittenRegions"]

Box = tuple[tuple[int, int], ...]
"""Per axis start and end."""

Window = tuple[tuple[ir.Expr, ir.Expr], ...]
"""Per axis start and end, as expressions."""

_EVERYTHING = ConstIntBound(ConstIntBound.kNegInf, ConstIntBound.kPosInf)
_COMPARED = 64
"""A window whose place is not constant is compared with so many others; among more it overlaps."""


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """What a root is: `base` is the buffer, `window` the part of it, None for all or an unknown part; `box`
    is the window if its place is constant.
    """

    root: ir.Var
    base: ir.Var
    box: Box | None
    window: Window | None = None

    @property
    def is_whole(self) -> bool:
        return self.root is self.base


class Regions:
    """The regions of the roots of one function."""

    def __init__(self, function: ir.Function, storage: Storage) -> None:
        self.analyzer = _with_index_ranges(function)
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
                self._known[var] = _window(var, call, self._known[parent], self.analyzer)
        return self._known[root]


def _with_index_ranges(function: ir.Function) -> Analyzer:
    """An analyzer that knows the scalars of a function; of its own it takes every index for non-negative."""
    analyzer = Analyzer()
    bounds = analyzer.const_int_bound
    for param in function.params_:
        bounds.update(param, _EVERYTHING)
    for stmt in walk_stmts(function.body):
        if isinstance(stmt, ir.AssignStmt) and isinstance(stmt.var.type, ir.ScalarType):
            is_call = isinstance(stmt.value, (ir.Call, ir.Submit))
            bounds.update(stmt.var, _EVERYTHING if is_call else bounds(stmt.value))
        elif isinstance(stmt, ir.ForStmt):
            start, stop, step = bounds(stmt.start), bounds(stmt.stop), bounds(stmt.step)
            low = start.min_value if step.min_value > 0 else min(start.min_value, stop.min_value)
            high = start.max_value if step.max_value < 0 else max(start.max_value, stop.max_value)
            bounds.update(stmt.loop_var, ConstIntBound(low, high))
        if isinstance(stmt, (ir.ForStmt, ir.WhileStmt)):
            for carried in stmt.iter_args_:
                bounds.update(carried, _EVERYTHING)
        if isinstance(stmt, (ir.ForStmt, ir.WhileStmt, ir.IfStmt)):
            for result in stmt.return_vars_:
                bounds.update(result, _EVERYTHING)
    return analyzer


def _window(root: ir.Var, call: ir.Call, parent: Region, analyzer: Analyzer) -> Region:
    """The region of a slice. A window of a reshaped or transposed buffer has no constant place in it."""
    shape, offset = call.args_[1], call.args_[2]
    assert isinstance(shape, ir.MakeTuple) and isinstance(offset, ir.MakeTuple)
    source = call.args_[0].type
    assert isinstance(source, ir.TensorType) and isinstance(parent.root.type, ir.TensorType)
    rank = len(source.shape_)
    if (
        (len(shape.elements_), len(offset.elements_)) != (rank, rank)
        or len(parent.root.type.shape_) != rank
        or not _same_shape(source, parent.root.type)
        or (not parent.is_whole and parent.window is None)
    ):
        return Region(root, parent.base, None)
    starts = list(offset.elements_)
    if parent.window is not None:
        starts = [ir.add(origin, start) for (origin, _), start in zip(parent.window, starts, strict=True)]
    elif _is_origin(starts) and same_extents(shape.elements_, parent.root.type.shape_):
        return parent
    simplify = analyzer.simplify
    window = tuple(
        (simplify(start), simplify(ir.add(start, extent)))
        for start, extent in zip(starts, shape.elements_, strict=True)
    )
    lows, highs = _constants([low for low, _ in window]), _constants([high for _, high in window])
    box = None if lows is None or highs is None else tuple(zip(lows, highs, strict=True))
    return Region(root, parent.base, box, window)


def _is_origin(starts: Sequence[ir.Expr]) -> bool:
    return all(isinstance(start, ir.ConstInt) and start.value == 0 for start in starts)


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
    """A multiset of regions with the question whether a further one may overlap any of them."""

    def __init__(self, analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        self._roots: dict[ir.Var, int] = {}
        self._any_of: dict[ir.Var, int] = {}  # regions per buffer
        self._windows: dict[ir.Var, _Windows] = {}
        self._parts: dict[ir.Var, list[Region]] = {}  # all windows of a buffer
        self._moving: dict[ir.Var, list[Region]] = {}  # those whose place is not constant

    def add(self, region: Region) -> None:
        self._roots[region.root] = self._roots.get(region.root, 0) + 1
        self._any_of[region.base] = self._any_of.get(region.base, 0) + 1
        if region.box:
            self._windows.setdefault(region.base, _Windows()).add(region.box)
        if not region.is_whole:
            self._parts.setdefault(region.base, []).append(region)
            if region.box is None:
                self._moving.setdefault(region.base, []).append(region)

    def remove(self, region: Region) -> None:
        """Take back one `add` of the region."""
        self._roots[region.root] -= 1
        self._any_of[region.base] -= 1
        if region.box:
            self._windows[region.base].remove(region.box)
        if not region.is_whole:
            self._parts[region.base].remove(region)
            if region.box is None:
                self._moving[region.base].remove(region)

    def overlap(self, region: Region) -> bool:
        """Whether it was written: itself, the buffer around it, a part of it, an overlapping window."""
        if self._roots.get(region.root) or self._roots.get(region.base):
            return True
        if region.is_whole:
            return bool(self._any_of.get(region.base))
        if region.box is None:
            return self._may_touch(region, self._parts.get(region.base, []))
        windows = self._windows.get(region.base)
        if windows is not None and windows.overlap(region.box):
            return True
        return self._may_touch(region, self._moving.get(region.base, []))

    def _may_touch(self, region: Region, others: Sequence[Region]) -> bool:
        return len(others) > _COMPARED or any(
            not _are_apart(region, other, self._analyzer) for other in others
        )


def _are_apart(one: Region, other: Region, analyzer: Analyzer) -> bool:
    """Whether two windows of one buffer provably have no element in common."""
    if one.window is None or other.window is None or len(one.window) != len(other.window):
        return False
    ends_before = analyzer.can_prove_greater_equal
    return any(
        ends_before(ir.sub(low, other_high), 0) or ends_before(ir.sub(other_low, high), 0)
        for (low, high), (other_low, other_high) in zip(one.window, other.window, strict=True)
    )
