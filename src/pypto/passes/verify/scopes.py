"""Scope statements that must be gone, or must not nest."""

from __future__ import annotations

from collections.abc import Callable

from pypto import ir
from pypto.ir.walk import walk_stmts
from pypto.passes.diagnostics import Diagnostic, error


def remaining_scopes(
    program: ir.Program,
    scopes: tuple[type[ir.ScopeStmt], ...],
    applies: Callable[[ir.Function], bool],
    rule: str,
) -> list[Diagnostic]:
    """Return an error for each scope of the given kinds in the functions that `applies` selects."""
    return [
        error(
            rule,
            0,
            f"{type(stmt).__name__} remains in {function.func_type.name} function '{function.name}'",
            stmt.span,
        )
        for function in program.functions_.values()
        if applies(function)
        for stmt in walk_stmts(function.body)
        if isinstance(stmt, scopes)
    ]
