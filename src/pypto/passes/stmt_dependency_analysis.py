"""Data dependencies between the statements of one region.

A statement depends on the latest earlier statement that defines a variable it uses. Uses and definitions
inside compound statements count. Only read-after-write on variable identity is an edge: a write into a buffer
that an earlier statement reads is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pypto import ir
from pypto.core.errors import Error
from pypto.ir.walk import exprs_of, vars_in, walk_stmts
from pypto.passes.diagnostics import generate_report
from pypto.passes.verify.definitions import definitions_of
from pypto.passes.verify.in_out_use_valid import check_region

__all__ = ["StmtDependencyGraph", "build_stmt_dependency_graph", "check_inout_use_discipline"]


class StmtDependencyGraph:
    """The top-level statements of a region and what each depends on."""

    def __init__(self, stmts: Sequence[ir.Stmt], predecessors: Sequence[Sequence[ir.Stmt]]) -> None:
        self._stmts = list(stmts)
        self._predecessors = {stmt: list(each) for stmt, each in zip(stmts, predecessors, strict=True)}

    @property
    def stmts(self) -> list[ir.Stmt]:
        """The statements in order."""
        return list(self._stmts)

    def get_predecessors(self, stmt: ir.Stmt) -> list[ir.Stmt]:
        """Return the statements that `stmt` depends on, in order; none for a statement of another region."""
        return list(self._predecessors.get(stmt, ()))


def build_stmt_dependency_graph(region: ir.Stmt, program: ir.Program | None = None) -> StmtDependencyGraph:
    """Build the graph of a region.

    Args:
        region: a sequence, or one statement (a graph of one node).
        program: if given, the in-out discipline is checked first.
    """
    if program is not None:
        check_inout_use_discipline(region, program)
    if not isinstance(region, ir.SeqStmts):
        return StmtDependencyGraph([region], [[]])
    definers: dict[ir.Var, int] = {}
    predecessors: list[list[ir.Stmt]] = []
    for position, stmt in enumerate(region.stmts_):
        found = {definers[var] for var in _uses(stmt) if var in definers}
        predecessors.append([region.stmts_[each] for each in sorted(found)])
        for inner in walk_stmts(stmt):
            definers.update(dict.fromkeys(definitions_of(inner), position))
    return StmtDependencyGraph(region.stmts_, predecessors)


def _uses(stmt: ir.Stmt) -> Iterator[ir.Var]:
    for inner in walk_stmts(stmt):
        defined = set(definitions_of(inner))
        for expr in exprs_of(inner):
            if expr not in defined:
                yield from vars_in(expr)


def check_inout_use_discipline(region: ir.Stmt, program: ir.Program) -> None:
    """Raise `pypto.Error` if the region reads a variable that a call has overwritten."""
    diagnostics = check_region(region, program)
    if diagnostics:
        raise Error(generate_report(diagnostics))
