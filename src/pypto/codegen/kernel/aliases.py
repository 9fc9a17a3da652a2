"""Which variables may name one tile, and whether its contents are still needed after a point.

Operators that update an operand in place and return it may do so only where nobody goes on to read the old
contents under any of its names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pypto import ir
from pypto.codegen.kernel.events import Event, EventKind, Frame, Path, common_prefix, excludes, trailing_yield
from pypto.codegen.kernel.reads import read_expressions
from pypto.ir.meaning import Move
from pypto.ir.op_registry import OpDef, get_op_def
from pypto.ir.walk import exprs_of, vars_in

#: moves that change their first argument in place
_UPDATES = ("assemble", "write", "array_update")


def updated_argument(definition: OpDef) -> int | None:
    """The argument that an operator updates in place and returns."""
    if definition.reuses is not None:
        return definition.reuses
    if isinstance(definition.meaning, Move) and definition.meaning.kind in _UPDATES:
        return 0
    return None


@dataclass(slots=True, eq=False)
class Names:
    """The variables that may name one tile, made in `home`, and where any of them is read."""

    home: Path
    reads: list[Read] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Read:
    """A read at `position` inside `path`, through a name that was given at `named`."""

    position: int
    path: Path
    named: int


class TileNames:
    """The names of each tile of a kernel."""

    def __init__(self, events: list[Event]) -> None:
        self._names: dict[ir.Var, Names] = {}
        self._named: dict[ir.Var, int] = {}
        for event in events:
            self._define(event)

    def share(self, left: ir.Expr, right: ir.Expr) -> bool:
        """Whether two operands may be one tile."""
        names = self._of(left)
        return names is not None and names is self._of(right)

    def is_read_after(self, expr: ir.Expr, event: Event) -> bool:
        """Whether what a tile holds before `event` is read on a way that can be taken after it.

        Names that are given at `event` or later stand for what the tile holds from then on.
        """
        names = self._of(expr)
        if names is None:
            return True
        around = event.path[common_prefix(event.path, names.home) :]
        return any(frame.is_loop for frame in around) or any(
            read.position > event.position > read.named and not excludes(read.path, event.path)
            for read in names.reads
        )

    def _of(self, expr: ir.Expr) -> Names | None:
        return self._names.get(expr) if isinstance(expr, ir.Var) else None

    def _define(self, event: Event) -> None:
        stmt = event.stmt
        if event.kind is EventKind.STATEMENT:
            for expr in exprs_of(stmt):
                self._read(read_expressions(expr), event)
            if isinstance(stmt, ir.AssignStmt):
                self._bind(stmt.var, self._of(_source(stmt.value)) or Names(event.path), event)
        elif event.kind is EventKind.LOOP_BEGIN:
            assert isinstance(stmt, (ir.ForStmt, ir.WhileStmt))
            self._read((carried.initValue for carried in stmt.iter_args_), event)
            for carried, result in zip(stmt.iter_args_, stmt.return_vars_, strict=False):
                self._bind(carried, Names((*event.path, Frame(id(stmt)))), event)
                self._bind(result, Names(event.path), event)
        elif event.kind is EventKind.IF_END:
            assert isinstance(stmt, ir.IfStmt)
            others = trailing_yield(stmt.else_body) if stmt.else_body is not None else ()
            values = zip(stmt.return_vars_, trailing_yield(stmt.then_body), others, strict=False)
            for result, one, other in values:
                same = self._of(one) if self.share(one, other) else None
                self._bind(result, same or Names(event.path), event)

    def _bind(self, var: ir.Var, names: Names, event: Event) -> None:
        self._names[var] = names
        self._named[var] = event.position

    def _read(self, exprs: Iterable[ir.Expr], event: Event) -> None:
        for expr in exprs:
            for var in vars_in(expr):
                names = self._names.get(var)
                if names is not None:
                    names.reads.append(Read(event.position, event.path, self._named[var]))


def _source(value: ir.Expr) -> ir.Expr:
    """The operand that the result of an expression may be another name of; the expression itself if none."""
    if isinstance(value, ir.Call) and value.args_:
        definition = get_op_def(value.op.name)
        if definition is not None:
            updated = updated_argument(definition)
            if updated is not None:
                return value.args_[updated]
            if definition.views:
                return value.args_[0]
    return value
