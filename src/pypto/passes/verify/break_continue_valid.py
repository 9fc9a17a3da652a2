"""BreakContinueCheck: break and continue only where the innermost loop may be left."""

from __future__ import annotations

from pypto import ir
from pypto.ir.walk import substatements
from pypto.passes.diagnostics import Diagnostic, error
from pypto.passes.verify import codes

_RULE = "BreakContinueCheck"

_IN_LOOP = {
    (ir.BreakStmt, ir.ForKind.Parallel): codes.BREAK_IN_PARALLEL,
    (ir.BreakStmt, ir.ForKind.Unroll): codes.BREAK_IN_UNROLL,
    (ir.ContinueStmt, ir.ForKind.Parallel): codes.CONTINUE_IN_PARALLEL,
    (ir.ContinueStmt, ir.ForKind.Unroll): codes.CONTINUE_IN_UNROLL,
}
_OUTSIDE = {ir.BreakStmt: codes.BREAK_OUTSIDE_LOOP, ir.ContinueStmt: codes.CONTINUE_OUTSIDE_LOOP}


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return the misplaced breaks and continues."""
    found: list[Diagnostic] = []
    for function in program.functions_.values():
        pending: list[tuple[ir.Stmt, ir.Stmt | None]] = [(function.body, None)]
        while pending:
            stmt, loop = pending.pop()
            if isinstance(stmt, ir.BreakStmt | ir.ContinueStmt):
                found += _judge(stmt, loop)
            inner = stmt if isinstance(stmt, ir.ForStmt | ir.WhileStmt) else loop
            pending += [(each, inner) for each in reversed(substatements(stmt))]
    return found


def _judge(stmt: ir.BreakStmt | ir.ContinueStmt, loop: ir.Stmt | None) -> list[Diagnostic]:
    word = "break" if isinstance(stmt, ir.BreakStmt) else "continue"
    if loop is None:
        return [error(_RULE, _OUTSIDE[type(stmt)], f"'{word}' outside a loop", stmt.span)]
    if isinstance(loop, ir.ForStmt):
        code = _IN_LOOP.get((type(stmt), loop.kind))
        if code is not None:
            kind = loop.kind.name.lower()
            return [error(_RULE, code, f"'{word}' is not allowed in a {kind} loop", stmt.span)]
    return []
