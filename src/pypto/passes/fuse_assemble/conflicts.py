"""Which buffers can be fused without anyone noticing.

Fusing moves the write into the target from the `assemble` (A) forward to the first write of the buffer (W),
and makes the buffer and the window one memory from then on. A buffer is fused if

- it is created plainly: no initial content, automatic dependencies, element type and layout of the target;
- all its names are its own: no loop or branch mixes it with another buffer, it is not returned or yielded;
- one `assemble` takes it, in the block of the creation, and the target, in some name, and the offset are
  known where the slice has to stand: at the creation or before the first use;
- no access of the target sees a write of the buffer, except through A; none overwrites what is still used
  of the buffer. The end of the function counts as an access of every target. An `assemble` into a disjoint
  place is no access of the window, and one of a buffer that is fused too stands where that is written.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pypto import ir
from pypto.ir.walk import vars_in
from pypto.passes.fuse_assemble.buffers import Access, Assemble, Buffer, Facts, Place

__all__ = ["Fusion", "fusable"]


@dataclass(frozen=True, slots=True, eq=False)
class Fusion:
    """A decision: the slice of `place_target` stands at `place` (the creation, or the statement before
    which).
    """

    create: ir.AssignStmt
    assemble: ir.AssignStmt
    target: ir.Expr
    place: ir.Stmt
    place_target: ir.Expr
    offset: ir.MakeTuple
    keeps_rank: bool


@dataclass(frozen=True, slots=True, eq=False)
class _Candidate:
    buffer: Buffer
    assemble: Assemble
    place: Place
    place_target: ir.Expr
    target_roots: frozenset[ir.Var]
    first_write: int
    last_write: Access
    last_use: int


def fusable(facts: Facts) -> list[Fusion]:
    """The buffers that are fused in this round, in the order of their assembles."""
    candidates = {
        c.buffer: c for buffer in facts.buffers.values() if (c := _candidate(buffer, facts)) is not None
    }
    while True:  # a buffer that turns out not to be fused may stand in the way of others
        refused = [b for b, c in candidates.items() if _is_noticed(c, facts, candidates)]
        if not refused:
            break
        for buffer in refused:
            del candidates[buffer]
    ordered = sorted(candidates.values(), key=lambda c: c.assemble.place.position)
    return [
        Fusion(
            create=c.buffer.stmt,
            assemble=c.assemble.stmt,
            target=c.assemble.target,
            place=c.place.stmt,
            place_target=c.place_target,
            offset=c.assemble.offset,
            keeps_rank=not c.buffer.only_dispatched,
        )
        for c in ordered
    ]


def _candidate(buffer: Buffer, facts: Facts) -> _Candidate | None:
    """What one buffer says about itself."""
    if len(buffer.assembles) != 1 or buffer.is_mixed or buffer.leaves_block:
        return None
    assemble = buffer.assembles[0]
    if assemble.atomic or assemble.place.block != buffer.place.block or not _is_plain(buffer, assemble):
        return None
    var = buffer.stmt.var
    block = buffer.place.block
    uses = facts.accesses.get(var, [])
    writes = [access for access in uses if access.writes]
    if not writes or any(facts.origin(other.target) is buffer for other in facts.assembles):
        return None
    target_roots = facts.storage.roots_of(assemble.target)
    if not target_roots or var in target_roots:
        return None
    for place in (buffer.place, buffer.first_use):
        if place is not None:
            target = _name_before(assemble.target, place.position, facts)
            if target is not None and _known_before(assemble.offset, place.position, facts):
                return _Candidate(
                    buffer,
                    assemble,
                    place,
                    target,
                    target_roots,
                    first_write=writes[0].seen_from(block),
                    last_write=writes[-1],
                    last_use=uses[-1].seen_from(block),
                )
    return None


def _is_plain(buffer: Buffer, assemble: Assemble) -> bool:
    call = buffer.stmt.value
    assert isinstance(call, ir.Call)
    created, target = buffer.stmt.var.type, assemble.target.type
    assert isinstance(created, ir.TensorType) and isinstance(target, ir.TensorType)
    return (
        call.kwargs_.get("init_value") is None
        and not call.kwargs_.get("manual_dep")
        and created.dtype == target.dtype
        and created.tensor_view is None
        and (target.tensor_view is None or target.tensor_view.layout is ir.TensorLayout.ND)
        and len(assemble.offset.elements_) == len(target.shape_) >= len(created.shape_)
    )


def _name_before(target: ir.Expr, position: int, facts: Facts) -> ir.Expr | None:
    """A name of the target that is known at a position: itself, or an earlier one of the same buffer."""
    while isinstance(target, ir.Var):
        if facts.defined_at.get(target, 0) < position:
            return target
        if target not in facts.sources:
            return None
        target = facts.sources[target]
    return None


def _known_before(expr: ir.Expr, position: int, facts: Facts) -> bool:
    return all(facts.defined_at.get(var, 0) < position for var in vars_in(expr))


# --- conflicts ----------------------------------------------------------------------------------------------


def _is_noticed(candidate: _Candidate, facts: Facts, candidates: Mapping[Buffer, _Candidate]) -> bool:
    """Whether the program could tell that the buffer is a window of the target."""
    block = candidate.buffer.place.block
    if candidate.last_write.seen_from(block) > candidate.assemble.place.position:
        return True  # seen at the end
    for root in candidate.target_roots:
        accesses = facts.accesses.get(root, ())
        since = bisect_left(accesses, candidate.first_write, key=lambda access: access.seen_from(block))
        for access in accesses[since:]:
            position = access.seen_from(block)
            if position > max(candidate.last_use, candidate.assemble.place.position):
                break
            if _collides(candidate, position, access) and not _is_elsewhere(
                candidate, access, facts, candidates
            ):
                return True
    return False


def _collides(candidate: _Candidate, position: int, access: Access) -> bool:
    """Whether an access of the target sees the buffer before A, or overwrites what is still used of it."""
    if access.assemble is candidate.assemble:
        return False
    is_early = candidate.first_write <= position < candidate.assemble.place.position
    return is_early or (access.writes and position <= candidate.last_use)


def _is_elsewhere(
    candidate: _Candidate, access: Access, facts: Facts, candidates: Mapping[Buffer, _Candidate]
) -> bool:
    """Whether an access is an `assemble` into a disjoint place, or one that is carried out before W."""
    other = access.assemble
    if other is None or not access.writes:
        return False
    source = facts.origin(other.source)
    fused = candidates.get(source) if source is not None else None
    block = candidate.buffer.place.block
    if fused is not None and fused.last_write.seen_from(block) < candidate.first_write:
        return True
    return _are_disjoint(other, candidate.assemble)


def _are_disjoint(a: Assemble, b: Assemble) -> bool:
    """Whether two windows have no element in common for certain: on some axis their constant ranges do not
    meet.
    """
    shape_a, shape_b = a.source.type, b.source.type
    assert isinstance(shape_a, ir.TensorType) and isinstance(shape_b, ir.TensorType)
    rank = len(a.offset.elements_)
    extents_a, extents_b = _padded(shape_a.shape_, rank), _padded(shape_b.shape_, rank)
    for axis in range(rank):
        start_a, start_b = a.offset.elements_[axis], b.offset.elements_[axis]
        distance = _difference(start_b, start_a)
        if distance is None:
            continue
        extent_a, extent_b = extents_a[axis], extents_b[axis]
        if distance >= 0 and isinstance(extent_a, ir.ConstInt) and distance >= extent_a.value:
            return True
        if distance < 0 and isinstance(extent_b, ir.ConstInt) and -distance >= extent_b.value:
            return True
    return False


def _padded(shape: Sequence[ir.Expr], rank: int) -> list[ir.Expr | None]:
    return [*([None] * (rank - len(shape))), *shape]


def _difference(a: ir.Expr, b: ir.Expr) -> int | None:
    """`a - b` if that is a constant that can be seen: both constant, or one the other plus a constant."""
    base_a, constant_a = _split_constant(a)
    base_b, constant_b = _split_constant(b)
    return constant_a - constant_b if base_a is base_b else None


def _split_constant(expr: ir.Expr) -> tuple[ir.Expr | None, int]:
    if isinstance(expr, ir.ConstInt):
        return None, expr.value
    if isinstance(expr, ir.Add) and isinstance(expr.right, ir.ConstInt):
        return expr.left, expr.right.value
    if isinstance(expr, ir.Sub) and isinstance(expr.right, ir.ConstInt):
        return expr.left, -expr.right.value
    return expr, 0
