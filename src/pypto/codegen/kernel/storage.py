"""Where tiles live: shared buffers, lifetimes, and offsets in the workspace.

1. Each tile value gets a slot. Views and operators that update an operand share the slot of that operand.
2. Slots with touching lifetimes are merged where that saves a copy: the result of an elementwise operator
   takes over an operand that dies there, a loop carry takes over its dying initial value and is written
   directly by the value that is yielded to it, the result of an `if` is written directly by both branches.
3. What is left gets offsets by a linear scan over lifetimes.

The decision to merge is the only place that knows about copies: the emitter compares slots and copies where
they differ.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from pypto import ir
from pypto.codegen.kernel.aliases import TileNames, updated_argument
from pypto.codegen.kernel.errors import KernelError
from pypto.codegen.kernel.events import (
    Event,
    EventKind,
    Frame,
    Path,
    Span,
    list_events,
    reach,
    trailing_yield,
)
from pypto.codegen.kernel.layout import TileLayout, tile_layout
from pypto.codegen.kernel.reads import read_expressions
from pypto.codegen.kernel.views import ViewOf, view_of
from pypto.ir.meaning import Cast, Elementwise, Move
from pypto.ir.op_registry import OpDef, get_op_def
from pypto.ir.walk import vars_in

ALIGNMENT = 64


@dataclass(slots=True, eq=False)
class Slot:
    """One buffer to be; merged slots point at the one they were merged into."""

    size: int
    first: int
    home: Path
    uses: list[tuple[int, Path]] = field(default_factory=list)
    last: int = 0
    parent: Slot | None = None

    def root(self) -> Slot:
        slot = self
        while slot.parent is not None:
            slot = slot.parent
        if self is not slot:
            self.parent = slot
        return slot


@dataclass(frozen=True, slots=True)
class TileValue:
    """A tile variable: its rectangle and its buffer.

    Attributes:
        is_whole: it is all of its buffer, packed from the start.
        copies: argument whose contents must be copied into the buffer before the operator updates it.
    """

    layout: TileLayout
    slot: Slot
    is_whole: bool
    copies: int | None = None


@dataclass(frozen=True, slots=True)
class StoragePlan:
    """Values and offsets of all tiles of a kernel.

    Attributes:
        values: the tile of each variable; `parts` of each element of a variable that is a tuple.
        offsets: byte offset of each slot, by its identity.
        size: bytes of workspace that the tiles need.
        swaps: offset of the buffer that each loop which permutes its carries needs, by the loop's identity.
        views: offset of the buffer for a carry that becomes a view of a carry, by loop and carry.
    """

    values: dict[ir.Var, TileValue]
    parts: dict[tuple[ir.Var, int], TileValue]
    offsets: dict[int, int]
    size: int
    swaps: dict[int, int]
    views: dict[tuple[int, ir.Var], int]

    def offset(self, slot: Slot) -> int:
        """Byte offset of a slot in the workspace."""
        return self.offsets[id(slot.root())]

    def shares(self, left: TileValue, right: TileValue) -> bool:
        """Whether two values lie in one buffer."""
        return left.slot.root() is right.slot.root()


def plan_storage(func: ir.Function) -> StoragePlan:
    """Plan the workspace of a kernel.

    Raises:
        KernelError: a tile has no constant extents or no element type on the CPU.
    """
    return _Planner(func).plan()


class _Planner:
    def __init__(self, func: ir.Function) -> None:
        self.func = func
        self.events, self.spans = list_events(func.body)
        self.values: dict[ir.Var, TileValue] = {}
        self.parts: dict[tuple[ir.Var, int], TileValue] = {}
        self.slots: list[Slot] = []
        self.names = TileNames(self.events)
        self.swaps: dict[int, Slot] = {}
        self.views: dict[tuple[int, ir.Var], Slot] = {}

    def plan(self) -> StoragePlan:
        for event in self.events:
            self._make_values(event)
        self._drop_unread()
        for slot in self._roots():
            slot.last = max(
                (reach(position, path, slot.home, self.spans) for position, path in slot.uses),
                default=slot.first,
            )
        for event in self.events:
            self._merge(event)
        offsets, size = _assign_offsets(self._roots())
        swaps = {key: offsets[id(slot.root())] for key, slot in self.swaps.items()}
        views = {key: offsets[id(slot.root())] for key, slot in self.views.items()}
        return StoragePlan(self.values, self.parts, offsets, size, swaps, views)

    def _drop_unread(self) -> None:
        """Created tiles that nobody reads get no place: they are scratch that the CPU does not need."""
        unread: set[int] = set()
        for event in self.events:
            stmt = event.stmt
            if not isinstance(stmt, ir.AssignStmt) or not isinstance(stmt.value, ir.Call):
                continue
            definition = get_op_def(stmt.value.op.name)
            value = self.values.get(stmt.var)
            if value is None or definition is None or definition.meaning != Move("create"):
                continue
            if not value.slot.uses:
                del self.values[stmt.var]
                unread.add(id(value.slot))
        self.slots = [slot for slot in self.slots if id(slot) not in unread]

    # ---- values -------------------------------------------------------------------------------------------

    def _make_values(self, event: Event) -> None:
        """Values that a statement makes; what is wrong with one names its operator and its line."""
        try:
            self._values_of(event)
        except ValueError as error:
            value = event.stmt.value if isinstance(event.stmt, ir.AssignStmt) else None
            operator = f"operator '{value.op.name}': " if isinstance(value, ir.Call) else ""
            raise KernelError(f"{operator}{error}", kernel=self.func.name, span=event.stmt.span) from error

    def _values_of(self, event: Event) -> None:
        stmt = event.stmt
        if event.kind is EventKind.STATEMENT:
            self._make_statement_value(event)
        elif event.kind is EventKind.LOOP_BEGIN:
            assert isinstance(stmt, (ir.ForStmt, ir.WhileStmt))
            for carried in stmt.iter_args_:
                self._use(carried.initValue, event)
            for carried, result in zip(stmt.iter_args_, stmt.return_vars_, strict=False):
                if isinstance(carried.type, ir.TileType):
                    value = self._fresh(carried.type, event)
                    value.slot.uses.append((self.spans[id(stmt)].end, event.path))
                    self.values[carried] = self.values[result] = value
        elif event.kind is EventKind.IF_BEGIN:
            assert isinstance(stmt, ir.IfStmt)
            # The first branch assigns one result after the other where it yields: they live from there on.
            yielding = replace(event, position=self.spans[id(stmt)].middle - 1)
            for result in stmt.return_vars_:
                if isinstance(result.type, ir.TileType):
                    value = self._fresh(result.type, yielding)
                    value.slot.uses.append((self.spans[id(stmt)].end, event.path))
                    self.values[result] = value

    def _make_statement_value(self, event: Event) -> None:
        stmt = event.stmt
        if isinstance(stmt, (ir.YieldStmt, ir.ReturnStmt)):
            for expr in stmt.value_:
                self._use(expr, event)
            return
        if isinstance(stmt, ir.EvalStmt):
            self._use_read(stmt.expr, event)
            return
        if not isinstance(stmt, ir.AssignStmt):
            return
        self._use_read(stmt.value, event)
        value = stmt.value
        if isinstance(value, ir.Var):
            if value in self.values:
                self.values[stmt.var] = self.values[value]
        elif isinstance(value, ir.Call) and isinstance(value.type, ir.TileType):
            self.values[stmt.var] = self._result_value(value, event)
        elif isinstance(value, ir.Call) and isinstance(value.type, ir.TupleType):
            for index, part in enumerate(value.type.types_):
                if isinstance(part, ir.TileType):
                    self.parts[(stmt.var, index)] = self._fresh(part, event)
        elif isinstance(value, ir.TupleGetItemExpr) and isinstance(value.tuple, ir.Var):
            part_value = self.parts.get((value.tuple, value.index))
            if part_value is not None:
                part_value.slot.uses.append((event.position, event.path))
                self.values[stmt.var] = part_value

    def _result_value(self, call: ir.Call, event: Event) -> TileValue:
        definition = get_op_def(call.op.name)
        if definition is None:
            return self._fresh(call.type, event)
        updated = updated_argument(definition)
        if updated is not None:
            source = self._value_of(call.args_[updated])
            if source is not None:
                if self._needs_old_value(call, definition, updated, event):
                    return replace(self._fresh(call.type, event), copies=updated)
                return source
        source = self._value_of(call.args_[0]) if call.args_ else None
        if source is not None:
            view = view_of(call, definition, source.layout)
            if view is not None:
                return _viewed(source, view)
        return self._fresh(call.type, event)

    def _needs_old_value(self, call: ir.Call, definition: OpDef, updated: int, event: Event) -> bool:
        """Whether an operator that updates an operand must do so in a copy."""
        target = call.args_[updated]
        if any(self.names.share(target, arg) for index, arg in enumerate(call.args_) if index != updated):
            return True
        return _keeps_old_value(definition) and self.names.is_read_after(target, event)

    def _value_of(self, expr: ir.Expr) -> TileValue | None:
        return self.values.get(expr) if isinstance(expr, ir.Var) else None

    def _fresh(self, type: ir.Type, event: Event) -> TileValue:
        assert isinstance(type, ir.TileType)
        layout = tile_layout(type)
        slot = Slot(layout.size, event.position, event.path)
        self.slots.append(slot)
        return TileValue(layout, slot, is_whole=True)

    def _use_read(self, value: ir.Expr, event: Event) -> None:
        for expr in read_expressions(value):
            self._use(expr, event)

    def _use(self, expr: ir.Expr, event: Event) -> None:
        for var in vars_in(expr):
            value = self.values.get(var)
            if value is not None:
                value.slot.uses.append((event.position, event.path))

    # ---- merging ------------------------------------------------------------------------------------------

    def _roots(self) -> Iterable[Slot]:
        return [slot for slot in self.slots if slot.parent is None]

    def _merge(self, event: Event) -> None:
        stmt = event.stmt
        if (
            event.kind is EventKind.STATEMENT
            and isinstance(stmt, ir.AssignStmt)
            and isinstance(stmt.value, ir.Call)
        ):
            self._merge_in_place(stmt.var, stmt.value, event)
        elif event.kind is EventKind.LOOP_BEGIN:
            assert isinstance(stmt, (ir.ForStmt, ir.WhileStmt))
            for carried in stmt.iter_args_:
                self._merge_initial_value(carried, event)
            self._merge_all_yielded(stmt)
        elif event.kind is EventKind.LOOP_END:
            assert isinstance(stmt, (ir.ForStmt, ir.WhileStmt))
            self._merge_all_yielded(stmt)
            self._reserve_buffers(stmt)
        elif event.kind is EventKind.IF_END:
            assert isinstance(stmt, ir.IfStmt)
            self._merge_branches(stmt)

    def _merge_in_place(self, var: ir.Var, call: ir.Call, event: Event) -> None:
        """Let an operator that works element by element write over an operand that dies here."""
        result = self.values.get(var)
        if result is None or result.slot.parent is not None or result.slot.first != event.position:
            return
        for arg in call.args_:
            value = self._value_of(arg)
            if value is None or value.slot.root().last != event.position:
                continue
            if value.slot.root().home == event.path and self._may_overwrite(call, value.slot.root(), result):
                _join(value.slot.root(), result.slot)
                return

    def _may_overwrite(self, call: ir.Call, slot: Slot, result: TileValue) -> bool:
        """Whether every operand in `slot` is read element for element, by an operator that may run in
        place.
        """
        definition = get_op_def(call.op.name)
        if definition is None or not _is_element_by_element(definition):
            return False
        for index, arg in enumerate(call.args_):
            value = self._value_of(arg)
            if value is None or value.slot.root() is not slot:
                continue
            if not value.is_whole or value.layout != result.layout or index in _never_shared(definition):
                return False
        return True

    def _merge_initial_value(self, carried: ir.IterArg, event: Event) -> None:
        value, initial = self.values.get(carried), self._value_of(carried.initValue)
        if value is None or initial is None or not _is_interchangeable(value, initial):
            return
        if value.slot.parent is not None:  # taken by the carry of an outer loop, which may be read until here
            return
        slot = initial.slot.root()
        if slot.last == event.position and slot.home == event.path:
            _join(slot, value.slot.root())

    def _merge_all_yielded(self, loop: ir.ForStmt | ir.WhileStmt) -> None:
        """Tried before and after the body is merged.

        What is yielded rather takes the place of the carry than that of another operand, and may be able to
        only after it has taken that of another.
        """
        for carried, expr in zip(loop.iter_args_, trailing_yield(loop.body), strict=False):
            self._merge_yielded(loop, carried, expr)

    def _merge_yielded(self, loop: ir.ForStmt | ir.WhileStmt, carried: ir.IterArg, expr: ir.Expr) -> None:
        value, yielded = self.values.get(carried), self._value_of(expr)
        if value is None or yielded is None or not _is_interchangeable(value, yielded):
            return
        carry, slot = value.slot.root(), yielded.slot.root()
        span = self.spans[id(loop)]
        if slot is carry or not span.begin < slot.first < span.end or slot.last > span.end - 1:
            return
        body = (*self.events[span.begin].path, Frame(id(loop)))
        last_read = max(
            (
                reach(position, path, body, self.spans)
                for position, path in carry.uses
                if span.begin < position < span.end
            ),
            default=span.begin,
        )
        if last_read < slot.first or (
            last_read == slot.first and self._writes_over(slot.first, carry, yielded)
        ):
            _join(carry, slot)

    def _writes_over(self, position: int, carry: Slot, yielded: TileValue) -> bool:
        """Whether what is defined at `position` may be written over the carried value that it reads."""
        stmt = self.events[position].stmt
        if isinstance(stmt, ir.AssignStmt) and isinstance(stmt.value, ir.Call):
            return self._may_overwrite(stmt.value, carry, yielded)
        return isinstance(stmt, (ir.ForStmt, ir.WhileStmt)) and any(
            self.values[inner].slot.root() is yielded.slot.root()
            and (initial := self._value_of(inner.initValue)) is not None
            and initial.is_whole
            and initial.slot.root() is carry
            for inner in stmt.iter_args_
            if inner in self.values
        )

    def _merge_branches(self, stmt: ir.IfStmt) -> None:
        span = self.spans[id(stmt)]
        then_values = trailing_yield(stmt.then_body)
        else_values = trailing_yield(stmt.else_body) if stmt.else_body is not None else ()
        for result, then_expr, else_expr in zip(stmt.return_vars_, then_values, else_values, strict=False):
            value, then, other = (self._value_of(expr) for expr in (result, then_expr, else_expr))
            if value is None or then is None or other is None or value.slot.parent is not None:
                continue
            if not (_is_interchangeable(value, then) and _is_interchangeable(value, other)):
                continue
            if then.slot.root() is other.slot.root():
                _join(then.slot.root(), value.slot.root())
                continue
            for branch, begin, end in ((then, span.begin, span.middle), (other, span.middle, span.end)):
                slot = branch.slot.root()
                if begin < slot.first and slot.last < end and slot is not value.slot.root():
                    _join(value.slot.root(), slot)

    def _reserve_buffers(self, loop: ir.ForStmt | ir.WhileStmt) -> None:
        """Buffers that assigning the carries needs.

        What is yielded as a view of a carry is copied aside first; where carries are permuted so that no
        order of copies is right, one is kept aside.
        """
        span = self.spans[id(loop)]
        moves: list[tuple[TileValue, TileValue]] = []
        carries = {
            id(value.slot.root())
            for carried in loop.iter_args_
            if (value := self.values.get(carried)) is not None
        }
        for carried, expr in zip(loop.iter_args_, trailing_yield(loop.body), strict=False):
            target, source = self.values.get(carried), self._value_of(expr)
            if target is None or source is None:
                continue
            if not source.is_whole and id(source.slot.root()) in carries:
                self.views[(id(loop), carried)] = self._reserve(target.layout.size, span)
            else:
                moves.append((target, source))
        if _has_cycle({id(target.slot.root()): id(source.slot.root()) for target, source in moves}):
            self.swaps[id(loop)] = self._reserve(max(target.layout.size for target, _ in moves), span)

    def _reserve(self, size: int, span: Span) -> Slot:
        """A buffer for the whole of a loop."""
        slot = Slot(size, span.begin, self.events[span.begin].path, last=span.end)
        self.slots.append(slot)
        return slot


def _keeps_old_value(definition: OpDef) -> bool:
    """Whether the operand must keep its contents when the program goes on to use it under its old name.

    Writes and assembles are updates of a buffer; the others compute a new value that may share it.
    """
    meaning = definition.meaning
    return not (isinstance(meaning, Move) and meaning.kind in ("assemble", "write", "fillpad"))


def _is_element_by_element(definition: OpDef) -> bool:
    meaning = definition.meaning
    if isinstance(meaning, Elementwise):
        return not meaning.packs
    return isinstance(meaning, Cast) or (isinstance(meaning, Move) and meaning.kind in ("move", "fillpad"))


def _never_shared(definition: OpDef) -> tuple[int, ...]:
    """Arguments whose buffer the result must not be. The rule of a device for whole operators does not
    bind the CPU.
    """
    return () if len(definition.no_alias) >= 8 else definition.no_alias


def _is_interchangeable(left: TileValue, right: TileValue) -> bool:
    return left.is_whole and right.is_whole and left.layout == right.layout


def _viewed(source: TileValue, view: ViewOf) -> TileValue:
    return TileValue(view.layout, source.slot, source.is_whole and view.is_whole)


def _join(kept: Slot, merged: Slot) -> None:
    """Make `merged` part of `kept`."""
    if kept is merged:
        return
    merged.parent = kept
    kept.uses.extend(merged.uses)
    kept.first = min(kept.first, merged.first)
    kept.last = max(kept.last, merged.last)
    kept.size = max(kept.size, merged.size)


def _has_cycle(moves: dict[int, int]) -> bool:
    """Whether following target -> source leads from a target over others back to itself."""
    for start in moves:
        node, steps = moves[start], 1
        while node != start and node in moves and steps <= len(moves):
            node, steps = moves[node], steps + 1
        if node == start and steps > 1:
            return True
    return False


def _assign_offsets(slots: Iterable[Slot]) -> tuple[dict[int, int], int]:
    """First-fit over lifetimes in the order in which they begin; returns offsets by slot identity and the
    total.
    """
    offsets: dict[int, int] = {}
    live: list[tuple[int, int, int]] = []  # (last, offset, size), soonest end first
    total = 0
    for slot in sorted(slots, key=lambda slot: (slot.first, -slot.size)):
        while live and live[0][0] < slot.first:
            heapq.heappop(live)
        size = -(-max(slot.size, 1) // ALIGNMENT) * ALIGNMENT
        offset = 0
        for _, taken, length in sorted(live, key=lambda entry: entry[1]):
            if offset + size <= taken:
                break
            offset = max(offset, taken + length)
        offsets[id(slot)] = offset
        heapq.heappush(live, (slot.last, offset, size))
        total = max(total, offset + size)
    return offsets, total
