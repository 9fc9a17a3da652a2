"""Which variables a statement reads and assigns, and whether a variable is read after a loop.

Two questions of ConvertToSSA are answered here, both from summaries that are computed once per statement:

- `assigned(stmt)`: the variables assigned anywhere inside; the results of loops and branches are too.
- `Needs.is_needed(var)`: is `var` read after the present statement before it is assigned again?

A statement's summary does not depend on where it stands, so one object that occurs twice (UnrollLoops
repeats bodies) is summarised once. Per sequence, an index from variable to the positions that read or assign
it is built on the first question about that sequence; each question is then a binary search per level.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pypto import ir
from pypto.ir.walk import vars_in

_TRANSPARENT = (ir.RuntimeScopeStmt, ir.SplitAivScopeStmt)


@dataclass(frozen=True, slots=True)
class Summary:
    """What a statement reads before assigning it, and what it assigns anywhere inside."""

    live_in: frozenset[ir.Var]
    assigned: frozenset[ir.Var]


_NOTHING = Summary(frozenset(), frozenset())


class Summaries:
    """Summaries of the statements of one function, computed on demand and kept."""

    def __init__(self) -> None:
        self._known: dict[ir.Stmt, Summary] = {}

    def of(self, stmt: ir.Stmt) -> Summary:
        """Return the summary of `stmt`."""
        known = self._known.get(stmt)
        if known is None:
            known = self._known[stmt] = self._compute(stmt)
        return known

    def _compute(self, stmt: ir.Stmt) -> Summary:
        if isinstance(stmt, ir.AssignStmt):
            return Summary(frozenset(vars_in(stmt.value)), frozenset((stmt.var,)))
        if isinstance(stmt, ir.EvalStmt):
            return Summary(frozenset(vars_in(stmt.expr)), frozenset())
        if isinstance(stmt, ir.ReturnStmt | ir.YieldStmt):
            return Summary(_vars_of(stmt.value_), frozenset())
        if isinstance(stmt, ir.SeqStmts):
            return self._sequence(stmt)
        if isinstance(stmt, ir.ForStmt):
            body = self.of(stmt.body)
            header = _vars_of((stmt.start, stmt.stop, stmt.step, *(a.initValue for a in stmt.iter_args_)))
            inner = body.live_in.difference(stmt.iter_args_, (stmt.loop_var,))
            return Summary(header | inner, _with(body.assigned, stmt.return_vars_))
        if isinstance(stmt, ir.WhileStmt):
            body = self.of(stmt.body)
            initial = _vars_of([a.initValue for a in stmt.iter_args_])
            inner = (body.live_in | frozenset(vars_in(stmt.condition))).difference(stmt.iter_args_)
            return Summary(initial | inner, _with(body.assigned, stmt.return_vars_))
        if isinstance(stmt, ir.IfStmt):
            then = self.of(stmt.then_body)
            other = self.of(stmt.else_body) if stmt.else_body is not None else _NOTHING
            condition = frozenset(vars_in(stmt.condition))
            assigned = then.assigned.union(other.assigned, stmt.return_vars_)
            return Summary(condition | then.live_in | other.live_in, assigned)
        if isinstance(stmt, ir.SpmdScopeStmt):
            body = self.of(stmt.body)
            return Summary(body.live_in | frozenset(vars_in(stmt.core_num)), body.assigned)
        if isinstance(stmt, ir.ScopeStmt):
            return self.of(stmt.body)
        return _NOTHING

    def _sequence(self, sequence: ir.SeqStmts) -> Summary:
        live_in: set[ir.Var] = set()
        assigned: set[ir.Var] = set()
        for stmt in sequence.stmts_:
            summary = self.of(stmt)
            live_in.update(summary.live_in - assigned if assigned else summary.live_in)
            assigned |= summary.assigned
        return Summary(frozenset(live_in), frozenset(assigned))


def _with(variables: frozenset[ir.Var], results: Sequence[ir.Var]) -> frozenset[ir.Var]:
    return variables.union(results) if results else variables


def _vars_of(exprs: Iterable[ir.Expr]) -> frozenset[ir.Var]:
    return frozenset(var for expr in exprs for var in vars_in(expr))


class _SequencePosition:
    """Where the conversion stands in one sequence."""

    __slots__ = ("_events", "position", "sequence")

    def __init__(self, sequence: ir.SeqStmts) -> None:
        self.sequence = sequence
        self.position = 0
        self._events: dict[ir.Var, list[int]] | None = None

    def next_event(self, var: ir.Var, summaries: Summaries) -> Summary | None:
        """Return the summary of the first later statement that reads or assigns `var`."""
        if self._events is None:
            self._events = {}
            for position, stmt in enumerate(self.sequence.stmts_):
                summary = summaries.of(stmt)
                for mentioned in summary.live_in | summary.assigned:
                    self._events.setdefault(mentioned, []).append(position)
        positions = self._events.get(var, [])
        after = bisect_right(positions, self.position)
        return summaries.of(self.sequence.stmts_[positions[after]]) if after < len(positions) else None


class Needs:
    """What is needed after the statement being converted, along the nesting it stands in.

    A loop body and the body of an outlined scope end the search: the enclosing loop has already taken its own
    decision for every variable assigned inside, and a scope's private variables end with it. Branches and
    transparent scopes look further outwards.
    """

    def __init__(self, summaries: Summaries) -> None:
        self._summaries = summaries
        self._frames: list[_SequencePosition | None] = []

    def enter_sequence(self, sequence: ir.SeqStmts) -> _SequencePosition:
        """Enter a sequence; the caller advances `position` on the result."""
        frame = _SequencePosition(sequence)
        self._frames.append(frame)
        return frame

    def enter_boundary(self) -> None:
        """Enter a body whose variables are not looked for outside."""
        self._frames.append(None)

    def leave(self) -> None:
        """Leave what was entered last."""
        self._frames.pop()

    def is_needed(self, var: ir.Var) -> bool:
        """Say whether `var` is read after the present statement before it is assigned again."""
        for frame in reversed(self._frames):
            if frame is None:
                return False
            event = frame.next_event(var, self._summaries)
            if event is not None:
                return var in event.live_in
        return False


def is_transparent(stmt: ir.Stmt) -> bool:
    """Say whether values and yields pass through a scope as if it were not there."""
    return isinstance(stmt, _TRANSPARENT)
