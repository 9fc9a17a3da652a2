"""UseAfterDefCheck: no variable is read before it is defined. Holds before SSA form too."""

from __future__ import annotations

from pypto import ir
from pypto.passes.diagnostics import Diagnostic, error
from pypto.passes.verify.codes import UseAfterDefErrorType
from pypto.passes.verify.definitions import DefinitionWalk


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return the uses before definition."""
    found: list[Diagnostic] = []
    for function in program.functions_.values():
        found += _function(function)
    return found


def _function(function: ir.Function) -> list[Diagnostic]:
    found: list[Diagnostic] = []

    def report(var: ir.Var, span: ir.Span) -> None:
        message = f"Variable '{var.name_hint}' used before definition in function '{function.name}'"
        code = UseAfterDefErrorType.USE_BEFORE_DEF.value
        found.append(error("UseAfterDefCheck", code, message, span))

    DefinitionWalk(function, leaks=_leaks, report=report).run()
    return found


def _leaks(stmt: ir.Stmt) -> bool:
    """Say whether definitions inside are visible after: only without return vars, before SSA form."""
    return isinstance(stmt, ir.ForStmt | ir.WhileStmt | ir.IfStmt) and not stmt.return_vars_
