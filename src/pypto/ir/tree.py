"""Questions about statement trees."""

from __future__ import annotations

from pypto.ir.expr import Var
from pypto.ir.node import expect
from pypto.ir.program import Function
from pypto.ir.scope import RuntimeScopeStmt, SplitAivScopeStmt
from pypto.ir.stmt import AssignStmt, SeqStmts, Stmt, YieldStmt
from pypto.ir.walk import substatements, walk_stmts


def flatten_to_stmts(stmt: Stmt) -> list[Stmt]:
    """The children of a sequence, or the statement alone."""
    expect(stmt, Stmt, "flatten_to_stmts stmt")
    return list(stmt.stmts_) if isinstance(stmt, SeqStmts) else [stmt]


def collect_def_vars(stmt: Stmt) -> list[Var]:
    """The targets of all assignments below `stmt`, in order; loop variables and results are not among
    them."""
    expect(stmt, Stmt, "collect_def_vars stmt")
    return [inner.var for inner in walk_stmts(stmt) if isinstance(inner, AssignStmt)]


def find_yield_stmt(body: Stmt) -> YieldStmt | None:
    """The first yield of a body, looking only into nested sequences."""
    expect(body, Stmt, "find_yield_stmt body")
    pending = [body]
    while pending:
        stmt = pending.pop()
        if isinstance(stmt, YieldStmt):
            return stmt
        if isinstance(stmt, SeqStmts):
            pending += reversed(stmt.stmts_)
    return None


def get_last_yield_stmt(body: Stmt) -> YieldStmt | None:
    """The yield in last position, looking through sequences and the scopes that are transparent for
    yields."""
    expect(body, Stmt, "get_last_yield_stmt body")
    stmt: Stmt = body
    while True:
        if isinstance(stmt, YieldStmt):
            return stmt
        if isinstance(stmt, SeqStmts) and stmt.stmts_:
            stmt = stmt.stmts_[-1]
        elif isinstance(stmt, (RuntimeScopeStmt, SplitAivScopeStmt)):
            stmt = stmt.body
        else:
            return None


class ParentStmtAnalysis:
    """Which statement directly contains another."""

    def __init__(self) -> None:
        self._parents: dict[Stmt, Stmt | None] = {}

    def build_map(self, func: Function) -> None:
        """Forget everything and record the parents of all statements of `func`."""
        expect(func, Function, "build_map func")
        self._parents = {func.body: None}
        for stmt in walk_stmts(func.body):
            for inner in substatements(stmt):
                self._parents[inner] = stmt

    def get_parent(self, stmt: Stmt) -> Stmt | None:
        """The containing statement; None for the body of the function and for unknown statements."""
        return self._parents.get(stmt)

    def has_parent(self, stmt: Stmt) -> bool:
        return self._parents.get(stmt) is not None

    def clear(self) -> None:
        self._parents = {}
