"""A kernel body as a straight list of events with positions.

Buffer planning asks what happens before and after what; nesting matters to it only through the loops and
branches that a position lies in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from pypto import ir


class EventKind(Enum):
    """What happens at a position."""

    STATEMENT = auto()
    LOOP_BEGIN = auto()
    LOOP_END = auto()
    IF_BEGIN = auto()
    THEN_END = auto()
    IF_END = auto()


@dataclass(frozen=True, slots=True)
class Frame:
    """One loop, or one branch of an `if`, around a position."""

    owner: int
    branch: int | None = None

    @property
    def is_loop(self) -> bool:
        return self.branch is None


Path = tuple[Frame, ...]


@dataclass(frozen=True, slots=True)
class Event:
    """`stmt` does `kind` at `position`, inside `path` (outermost frame first)."""

    kind: EventKind
    stmt: ir.Stmt
    position: int
    path: Path


@dataclass(frozen=True, slots=True)
class Span:
    """First and last position of a loop or an `if`, and the start of its second branch."""

    begin: int
    end: int
    middle: int


def list_events(body: ir.Stmt) -> tuple[list[Event], dict[int, Span]]:
    """All events of a body in order, and the positions of each loop and `if` by the identity of its
    statement.
    """
    builder = _Builder()
    builder.visit(body, ())
    return builder.events, builder.spans


class _Builder:
    def __init__(self) -> None:
        self.events: list[Event] = []
        self.spans: dict[int, Span] = {}

    def _add(self, kind: EventKind, stmt: ir.Stmt, path: Path) -> int:
        position = len(self.events)
        self.events.append(Event(kind, stmt, position, path))
        return position

    def visit(self, stmt: ir.Stmt, path: Path) -> None:
        if isinstance(stmt, ir.SeqStmts):
            for inner in stmt.stmts_:
                self.visit(inner, path)
        elif isinstance(stmt, (ir.ForStmt, ir.WhileStmt)):
            begin = self._add(EventKind.LOOP_BEGIN, stmt, path)
            self.visit(stmt.body, (*path, Frame(id(stmt))))
            end = self._add(EventKind.LOOP_END, stmt, path)
            self.spans[id(stmt)] = Span(begin, end, begin)
        elif isinstance(stmt, ir.IfStmt):
            begin = self._add(EventKind.IF_BEGIN, stmt, path)
            self.visit(stmt.then_body, (*path, Frame(id(stmt), 0)))
            middle = self._add(EventKind.THEN_END, stmt, path)
            if stmt.else_body is not None:
                self.visit(stmt.else_body, (*path, Frame(id(stmt), 1)))
            end = self._add(EventKind.IF_END, stmt, path)
            self.spans[id(stmt)] = Span(begin, end, middle)
        elif isinstance(stmt, ir.ScopeStmt):
            self.visit(stmt.body, path)
        else:
            self._add(EventKind.STATEMENT, stmt, path)


def common_prefix(left: Path, right: Path) -> int:
    """How many outer frames two paths share."""
    count = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        count += 1
    return count


def excludes(left: Path, right: Path) -> bool:
    """Whether the paths lie in different branches of one `if`, so that only one of them runs (per
    iteration).
    """
    shared = common_prefix(left, right)
    return (
        shared < min(len(left), len(right))
        and left[shared].owner == right[shared].owner
        and left[shared].branch is not None
    )


def reach(position: int, path: Path, home: Path, spans: dict[int, Span]) -> int:
    """The position up to which something that was made in `home` must last because of a use at `position`.

    A use in a loop that `home` is outside of may come again, so it lasts until that loop has ended.
    """
    for frame in path[common_prefix(path, home) :]:
        if frame.is_loop:
            return spans[frame.owner].end
    return position


def trailing_yield(body: ir.Stmt) -> Sequence[ir.Expr]:
    """The values of the `yield` that ends a loop or branch body; empty if there is none."""
    while True:
        if isinstance(body, ir.SeqStmts):
            if not body.stmts_:
                return ()
            body = body.stmts_[-1]
        elif isinstance(body, ir.ScopeStmt):
            body = body.body
        else:
            return body.value_ if isinstance(body, ir.YieldStmt) else ()
