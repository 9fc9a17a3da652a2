"""Valid regions: which cells of a tensor or tile hold real data, and what becomes of them.

The valid region is the box anchored at the origin with the extents of the valid shape. The three rules here
are shared by the tensor and the tile level: reading a window, writing a window, reinterpreting the shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pypto.ir.expr import Expr
from pypto.ir.op.extents import (
    ONE,
    ZERO,
    add,
    all_same,
    as_int,
    const,
    equal,
    is_one,
    is_zero,
    less_equal,
    maximum,
    minimum,
    negative,
    same,
    show,
    show_all,
    static_volume,
    sub,
)

Extents = Sequence[Expr]


@dataclass(frozen=True, slots=True)
class Region:
    """Physical shape and valid extents of one operand."""

    shape: Extents
    valid: Extents

    @property
    def full(self) -> bool:
        """Whether the region is provably fully valid."""
        return self.valid is self.shape or all_same(self.valid, self.shape)


# --- reading a window -----------------------------------------------------------------------------


def window_valid(
    op: str,
    source: Region,
    window: Extents,
    offsets: Extents,
    request: Extents | None,
    *,
    clamp: bool = False,
    reach_is_request: bool = True,
    remedy: str = "pass clamp=True to keep only the cells inside",
    materialize: bool = False,
) -> list[Expr]:
    """Valid extents of a window of ``source``.

    Args:
        request: valid extents that the program asks for.
        clamp: cut the valid extents at the end of the source instead of rejecting the window.
        reach_is_request: only the requested cells must lie inside the source (else the whole window must).
        remedy: what the message about an overhanging window recommends.
        materialize: take the smaller of request and available extents even where that is undecidable.

    Raises:
        ValueError: negative offset, request beyond the window, window past the end of the source.
    """
    if request is not None and len(request) != len(window):
        raise ValueError(
            f"The operator {op}: valid_shape {show_all(request)} must have the same rank as the window "
            f"{show_all(window)} (valid_shape rank {len(request)}, window rank {len(window)})"
        )
    if not len(window) == len(offsets) == len(source.shape):
        return list(window if request is None else request)
    return [
        _axis_valid(
            op, axis, source, window[axis], offsets[axis], None if request is None else request[axis],
            clamp, reach_is_request, remedy, materialize,
        )
        for axis in range(len(window))
    ]  # fmt: skip


def _axis_valid(
    op: str,
    axis: int,
    source: Region,
    window: Expr,
    offset: Expr,
    request: Expr | None,
    clamp: bool,
    reach_is_request: bool,
    remedy: str,
    materialize: bool,
) -> Expr:
    physical, valid = source.shape[axis], source.valid[axis]
    if negative(offset):
        raise ValueError(f"The operator {op}: offset {show(offset)} of dimension {axis} is provably negative")
    if request is not None:
        if negative(request):
            raise ValueError(f"The operator {op}: valid_shape[{axis}] {show(request)} must be non-negative")
        if less_equal(request, window) is False:
            raise ValueError(
                f"The operator {op}: valid_shape[{axis}] {show(request)} exceeds the window extent "
                f"{show(window)}"
            )
    reach = request if request is not None and reach_is_request else window
    at_origin = is_zero(offset)
    if not clamp:
        end = reach if at_origin else add(offset, reach)
        if less_equal(end, physical) is False:
            raise ValueError(
                f"The operator {op} reads past the end of dimension {axis}: offset {show(offset)} + "
                f"{show(reach)} "
                f"exceeds the extent {show(physical)}; {remedy}"
            )
    if not clamp and same(valid, physical):
        available = window
    elif at_origin:
        available = minimum(valid, window)
    else:
        available = minimum(maximum(sub(valid, offset), ZERO), window)
    if request is None:
        return available
    if materialize:
        return minimum(request, available)
    narrower = available is not window and not same(available, window)
    return available if narrower and less_equal(available, request) is True else request


# --- writing a window -----------------------------------------------------------------------------


def union_valid(
    op: str,
    target: Region,
    source_valid: Extents,
    offsets: Extents,
    *,
    written: Extents | None = None,
    note: str = "",
) -> Extents:
    """Valid extents of ``target`` after its window at ``offsets`` received ``source_valid`` cells.

    Args:
        written: extents that must fit into the target, where they are more than the valid ones.
        note: sentence added to the message about a write past the end.

    Raises:
        ValueError: the write leaves the target, or the union is no box at the origin.
    """
    for axis, (offset, extent) in enumerate(zip(offsets, written or source_valid, strict=True)):
        if negative(offset):
            raise ValueError(
                f"The operator {op}: offset {show(offset)} of dimension {axis} is provably negative"
            )
        if less_equal(add(offset, extent), target.shape[axis]) is False:
            raise ValueError(
                f"The operator {op} writes past the end of dimension {axis}: offset {show(offset)} + "
                f"{show(extent)} "
                f"exceeds the extent {show(target.shape[axis])}{note}"
            )
    if any(is_zero(extent) for extent in source_valid):
        return target.valid
    if any(is_zero(extent) for extent in target.valid):
        if not all(is_zero(offset) for offset in offsets):
            raise ValueError(
                f"The operator {op}: the target holds no data yet and the write at {show_all(offsets)} does "
                "not start "
                "at the origin"
            )
        return source_valid
    if target.full:
        return target.valid
    return _grown(op, target, source_valid, offsets)


def _grown(op: str, target: Region, source: Extents, offsets: Extents) -> Extents:
    valid = target.valid
    growing = [
        axis
        for axis in range(len(valid))
        if less_equal(add(offsets[axis], source[axis]), valid[axis]) is not True
    ]
    if not growing:
        return valid
    if all(is_zero(o) for o in offsets) and all(
        less_equal(t, s) is True for t, s in zip(valid, source, strict=True)
    ):
        return source
    if len(growing) > 1:
        raise ValueError(
            f"The operator {op} would extend the valid region along dimensions {growing[0]} and "
            f"{growing[1]} at once, "
            "which leaves an L-shape"
        )
    axis = growing[0]
    if less_equal(offsets[axis], valid[axis]) is not True:
        raise ValueError(
            f"The operator {op} leaves a gap in dimension {axis}: it writes at {show(offsets[axis])}, the "
            "data ends at "
            f"{show(valid[axis])}"
        )
    for other in range(len(valid)):
        if other == axis:
            continue
        if not is_zero(offsets[other]):
            raise ValueError(
                f"The operator {op} extends dimension {axis}, so it must span dimension {other} from the "
                "origin "
                "(the union would be an L-shape)"
            )
        if not same(source[other], valid[other]):
            raise ValueError(
                f"The operator {op} extends dimension {axis}, so the written extent {show(source[other])} "
                "of dimension "
                f"{other} must provably equal the target valid extent {show(valid[other])} (the union would "
                "be an "
                "L-shape)"
            )
    end = add(offsets[axis], source[axis])
    if less_equal(valid[axis], offsets[axis]) is not True:
        end = maximum(valid[axis], end)
    grown = list(valid)
    grown[axis] = minimum(end, target.shape[axis])
    return grown


# --- reinterpreting the shape ---------------------------------------------------------------------


def reshape_valid(op: str, source: Region, shape: Extents, *, row_major: bool = True) -> list[Expr] | None:
    """Valid extents after a reshape of ``source`` to ``shape``; None where the result is fully valid.

    Raises:
        ValueError: the valid cells do not form a box in the new shape.
    """
    if source.full:
        return None
    if any(is_zero(extent) for extent in source.valid):
        return [ZERO] * len(shape)
    carried = _carry_over_unit_axes(source, shape)
    if carried is not None:
        return carried
    if not row_major:
        raise ValueError(
            f"The operator {op}: a partially valid source that is not stored row-major cannot be reshaped"
        )
    free = _free_axis(op, source)
    trailing = static_volume(source.shape[free + 1 :])
    if trailing is None or any(as_int(extent) is None for extent in shape):
        raise ValueError(
            f"The operator {op}: real data is scattered across the buffer as far as the symbolic shape "
            f"{show_all(shape)} tells"
        )
    extent = as_int(source.valid[free])
    if extent is not None:
        return _static_prefix(op, extent * trailing, shape)
    return _dynamic_prefix(op, source, free, trailing, shape)


def _carry_over_unit_axes(source: Region, shape: Extents) -> list[Expr] | None:
    """Valid extents where the shapes differ only by unit axes, else None."""
    carried: list[Expr] = []
    i = 0
    for extent in shape:
        while i < len(source.shape) and not same(source.shape[i], extent):
            if is_one(extent) or not _full_unit(source, i):
                break
            i += 1
        if i < len(source.shape) and same(source.shape[i], extent):
            carried.append(source.valid[i])
            i += 1
        elif is_one(extent):
            carried.append(ONE)
        else:
            return None
    while i < len(source.shape):
        if not _full_unit(source, i):
            return None
        i += 1
    return carried


def _full_unit(source: Region, axis: int) -> bool:
    return is_one(source.shape[axis]) and same(source.valid[axis], ONE)


def _free_axis(op: str, source: Region) -> int:
    """The one axis along which the valid prefix ends: valid 1 before it, full after it."""
    rank = len(source.shape)
    free = 0
    while free < rank - 1 and equal(source.valid[free], ONE) is True:
        free += 1
    for axis in range(free + 1, rank):
        if not same(source.valid[axis], source.shape[axis]):
            raise ValueError(
                f"The operator {op}: real data is scattered across the buffer (valid "
                f"{show_all(source.valid)} of "
                f"{show_all(source.shape)}), so no valid shape describes it after the reshape"
            )
    return free


def _static_prefix(op: str, cells: int, shape: Extents) -> list[Expr]:
    extents = [as_int(extent) or 0 for extent in shape]
    trailing = 1
    trailings = [1] * len(extents)
    for axis in range(len(extents) - 1, -1, -1):
        trailings[axis] = trailing
        trailing *= extents[axis]
    for axis, row in enumerate(trailings):
        if row and cells % row == 0 and cells // row <= extents[axis]:
            return [ONE] * axis + [const(cells // row)] + list(shape[axis + 1 :])
    raise ValueError(
        f"The operator {op}: the {cells} valid cells do not fill a whole number of rows of {show_all(shape)}"
    )


def _dynamic_prefix(op: str, source: Region, free: int, trailing: int, shape: Extents) -> list[Expr]:
    valid = source.valid[free]
    for axis in range(len(shape)):
        room = less_equal(source.shape[free], shape[axis]) is True or less_equal(valid, shape[axis]) is True
        if room and static_volume(shape[axis + 1 :]) == trailing:
            return [ONE] * axis + [valid] + list(shape[axis + 1 :])
    raise ValueError(
        f"The operator {op}: no axis of {show_all(shape)} has the matching row size of {trailing} cells and "
        "room for "
        f"{show(valid)} rows"
    )
