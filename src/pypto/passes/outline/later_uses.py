"""Which values are still needed after a scope.

The question is asked once per scope, about each value that the scope defines. Collecting "everything used
after" anew for each scope would cost the square of the function's length, so the function is indexed once:
statements are numbered in source order, and every variable has the sorted list of the statements that
mention it. "After a scope" is then a set of number ranges, one per enclosing statement list, and a question
is a binary search in each.

The ranges are exact: the other branch of an enclosing `if`, and the earlier part of an enclosing loop, are
not after the scope.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from pypto import ir
from pypto.ir.rewrite import is_static_type
from pypto.ir.walk import exprs_of, substatements, type_exprs, vars_in

__all__ = ["Later", "UseIndex", "index_uses"]


@dataclass(frozen=True, slots=True)
class UseIndex:
    """Where a function mentions its variables.

    `mentions` maps a variable to the ascending numbers of the statements that use or define it. `ends` maps
    the id of a statement to the number after its last inner statement. `busy` counts, per number, the
    statements before it that mention any variable. `holders` are the ids of the statements inside which a
    target scope stands.
    """

    mentions: dict[ir.Var, list[int]]
    ends: dict[int, int]
    busy: list[int]
    holders: frozenset[int]

    def holds_target(self, stmt: ir.Stmt) -> bool:
        """Whether `stmt` is, or has inside it, a scope that this pass outlines."""
        return id(stmt) in self.holders


@dataclass(frozen=True, slots=True)
class Later:
    """What runs after some point of a function: number ranges, and values that must survive anyway."""

    index: UseIndex
    ranges: tuple[tuple[int, int], ...]
    required: frozenset[ir.Var]

    def needs(self, var: ir.Var) -> bool:
        """Whether `var` is mentioned later or must survive."""
        if var in self.required:
            return True
        numbers = self.index.mentions.get(var, ())
        return any(
            bisect_left(numbers, stop) > bisect_left(numbers, start)
            for start, stop in self.ranges
            if start < stop
        )

    def is_empty(self) -> bool:
        """Whether nothing at all is known to be needed later."""
        busy = self.index.busy
        return not self.required and all(
            busy[start] == busy[stop] for start, stop in self.ranges if start < stop
        )

    def then(self, start: int, stop: int) -> Later:
        """This, preceded by the statements numbered from `start` up to `stop`."""
        return Later(self.index, ((start, stop), *self.ranges), self.required) if start < stop else self


def index_uses(body: ir.Stmt, target: type[ir.ScopeStmt]) -> UseIndex:
    """Number the statements of `body` and note where its variables are mentioned."""
    indexer = _Indexer(target)
    indexer.visit(body)
    return UseIndex(indexer.mentions, indexer.ends, indexer.busy, frozenset(indexer.holders))


class _Indexer:
    __slots__ = ("_extent_vars", "_target", "busy", "ends", "holders", "mentions")

    def __init__(self, target: type[ir.ScopeStmt]) -> None:
        self.mentions: dict[ir.Var, list[int]] = {}
        self.ends: dict[int, int] = {}
        self.busy = [0]
        self.holders: set[int] = set()
        self._extent_vars: dict[ir.Var, tuple[ir.Var, ...]] = {}
        self._target = target

    def visit(self, stmt: ir.Stmt) -> bool:
        """Index `stmt` with all that is inside; return whether a target scope is among it."""
        holds = isinstance(stmt, self._target)
        if not isinstance(stmt, ir.SeqStmts):
            self._number(stmt)
        for inner in substatements(stmt):
            holds = self.visit(inner) or holds
        self.ends[id(stmt)] = len(self.busy) - 1
        if holds:
            self.holders.add(id(stmt))
        return holds

    def _number(self, stmt: ir.Stmt) -> None:
        number = len(self.busy) - 1
        mentioned = [var for expr in exprs_of(stmt) for var in vars_in(expr)]
        for var in mentioned:
            self._mention(var, number)
            for extent_var in self._vars_of_type(var):
                self._mention(extent_var, number)
        self.busy.append(self.busy[-1] + bool(mentioned))

    def _mention(self, var: ir.Var, number: int) -> None:
        numbers = self.mentions.setdefault(var, [])
        if not numbers or numbers[-1] != number:
            numbers.append(number)

    def _vars_of_type(self, var: ir.Var) -> tuple[ir.Var, ...]:
        """The variables in the extents of `var`: a value computed in a scope must leave it with what it
        shapes.
        """
        found = self._extent_vars.get(var)
        if found is None:
            static = is_static_type(var.type)
            found = () if static else tuple(each for expr in type_exprs(var.type) for each in vars_in(expr))
            self._extent_vars[var] = found
        return found
