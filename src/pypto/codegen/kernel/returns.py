"""Where a kernel may return: only where nothing follows. Results leave through memory, and the generated
function runs to its end."""

from __future__ import annotations

from pypto import ir
from pypto.codegen.kernel.errors import KernelError
from pypto.ir.walk import walk_stmts

__all__ = ["check_returns"]


def check_returns(func: ir.Function) -> None:
    """Raise `KernelError` for a return that other statements of the kernel could follow."""
    last = _last_statements(func.body)
    for stmt in walk_stmts(func.body):
        if isinstance(stmt, ir.ReturnStmt) and stmt not in last:
            raise KernelError(
                "a return inside a loop, or before other statements, cannot be compiled; put what follows "
                "into the other branch of an `if`",
                kernel=func.name,
                span=stmt.span,
            )


def _last_statements(body: ir.Stmt) -> set[ir.Stmt]:
    """The statements after which a body is done, one per branch at its end."""
    found: set[ir.Stmt] = set()
    pending = [body]
    while pending:
        stmt = pending.pop()
        if isinstance(stmt, ir.SeqStmts):
            pending += stmt.stmts_[-1:]
        elif isinstance(stmt, ir.ScopeStmt):
            pending.append(stmt.body)
        elif isinstance(stmt, ir.IfStmt):
            pending += [branch for branch in (stmt.then_body, stmt.else_body) if branch is not None]
        else:
            found.add(stmt)
    return found
