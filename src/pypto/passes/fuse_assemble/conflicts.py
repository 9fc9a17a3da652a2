"""Which buffers can be fused without anyone noticing.

Fusing moves the write into the target from the `assemble` (A) forward to the first write of the buffer (W),
and makes the buffer and the window one memory from then on. A buffer is fused if

- it is created plainly: no initial content, automatic dependencies, element type and layout of the target;
- all its names are its own: no loop or branch mixes it with another buffer, it is not returned or yielded;
- one `assemble` takes it, in the block of the creation, and the target, in some name, and the offset are
  known where the slice has to stand: at the creation or before the first use;
- from W to A nothing accesses the target, the kernel that writes the buffer included, except assembles of
  other buffers that are fused too and written before W, or that go to a disjoint place;
- after A the buffer is not written any more, and not used, or the target is not written before the last such
  use.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
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
    last_write: int


def fusable(facts: Facts) -> list[Fusion]:
    """The buffers that are fused in this round, in the order of their assembles."""
    candidates = {
        c.buffer: c for buffer in facts.buffers.values() if (c := _candidate(buffer, facts)) is not None
    }
    by_root: dict[ir.Var, list[Assemble]] = {}
    by_source: dict[ir.Var, list[Assemble]] = {}
    for assemble in facts.assembles:
        for root in facts.storage.roots_of(assemble.target):
            by_root.setdefault(root, []).append(assemble)
        for root in facts.storage.roots_of(assemble.source):
            by_source.setdefault(root, []).append(assemble)
    while True:  # a buffer that turns out not to be fused may stand in the way of others
        refused = [b for b, c in candidates.items() if _is_noticed(c, facts, candidates, by_root, by_source)]
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
    writes = [access.position for access in facts.accesses.get(var, ()) if access.writes]
    if not writes or any(facts.origin(other.target) is buffer for other in facts.assembles):
        return None
    target_roots = facts.storage.roots_of(assemble.target)
    if not target_roots or var in target_roots:
        return None
    for place in (buffer.place, buffer.first_use):
        if place is not None:
            target = _name_before(assemble.target, place.position, facts)
            if target is not None and _known_before(assemble.offset, place.position, facts):
                return _Candidate(buffer, assemble, place, target, target_roots, min(writes), max(writes))
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


def _is_noticed(
    candidate: _Candidate,
    facts: Facts,
    candidates: dict[Buffer, _Candidate],
    by_root: dict[ir.Var, list[Assemble]],
    by_source: dict[ir.Var, list[Assemble]],
) -> bool:
    """Whether the program could tell that the buffer is a window of the target."""
    write, assembled = candidate.first_write, candidate.assemble.place.position
    if candidate.last_write > assembled:
        return True
    for root in candidate.target_roots:
        if any(True for _ in _between(facts.accesses.get(root, ()), write - 1, assembled)):
            return True
        if any(_assembles_between(by_source.get(root, ()), write, assembled)):
            return True  # what is assembled elsewhere is the target as it was before
        for other in _assembles_between(by_root[root], write, assembled):
            source = facts.origin(other.source)
            fused = candidates.get(source) if source is not None else None
            if (fused is None or fused.last_write >= write) and not _are_disjoint(other, candidate.assemble):
                return True
    return _is_used_after_target_changed(candidate, facts, by_root)


def _is_used_after_target_changed(
    candidate: _Candidate, facts: Facts, by_root: dict[ir.Var, list[Assemble]]
) -> bool:
    assembled = candidate.assemble.place.position
    uses = facts.accesses.get(candidate.buffer.stmt.var, ())
    last_use = max((access.position for access in uses), default=0)
    if last_use <= assembled:
        return False
    for root in candidate.target_roots:
        accesses = _between(facts.accesses.get(root, ()), assembled, last_use + 1)
        if any(access.writes for access in accesses):
            return True
        for other in _assembles_between(by_root[root], assembled, last_use):
            if not _are_disjoint(other, candidate.assemble):
                return True
    return False


def _between(accesses: Sequence[Access], low: int, high: int) -> Iterator[Access]:
    """The accesses strictly between two positions."""
    first = bisect_right(accesses, low, key=lambda access: access.position)
    for access in accesses[first:]:
        if access.position >= high:
            return
        yield access


def _assembles_between(assembles: Sequence[Assemble], low: int, high: int) -> Iterator[Assemble]:
    first = bisect_right(assembles, low, key=lambda each: each.place.position)
    last = bisect_left(assembles, high, key=lambda each: each.place.position)
    yield from assembles[first:last]


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
