"""Scope statements that must be gone."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pypto import ir
from pypto.ir.walk import walk_stmts
from pypto.passes.diagnostics import Diagnostic, error


def remaining_scopes(
    program: ir.Program,
    messages: Mapping[type[ir.Stmt], str],
    applies: Callable[[ir.Function], bool],
    rule: str,
) -> list[Diagnostic]:
    """Return an error for each scope of the given kinds in the functions that `applies` selects.

    `messages` gives the text per kind; the function is appended.
    """
    return [
        error(rule, 0, f"{messages[type(stmt)]} '{function.name}'", stmt.span)
        for function in program.functions_.values()
        if applies(function)
        for stmt in walk_stmts(function.body)
        if type(stmt) in messages
    ]
