"""UnusedVariableCheck: an assigned variable that nothing reads."""

from __future__ import annotations

from pypto import ir
from pypto.ir.walk import walk_stmts
from pypto.passes.diagnostics import Diagnostic, warning
from pypto.passes.verify.codes import UNUSED_VARIABLE
from pypto.passes.verify.uses import used_vars


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return a warning per unused variable; a leading underscore says that it is meant to be."""
    found: list[Diagnostic] = []
    for function in program.functions_.values():
        known = used_vars(function).union(function.params_)
        for stmt in walk_stmts(function.body):
            if isinstance(stmt, ir.AssignStmt) and stmt.var not in known:
                known.add(stmt.var)
                if stmt.var.name_hint.startswith("_"):
                    continue
                message = f"Unused variable '{stmt.var.name_hint}' in function '{function.name}'"
                found.append(warning("UnusedVariableCheck", UNUSED_VARIABLE, message, stmt.span))
    return found
