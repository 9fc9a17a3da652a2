"""UnusedControlFlowResultCheck: a result of a loop or branch that nothing reads."""

from __future__ import annotations

from pypto import ir
from pypto.ir.walk import walk_stmts
from pypto.passes.diagnostics import Diagnostic, warning
from pypto.passes.verify.codes import UNUSED_CONTROL_FLOW_RESULT
from pypto.passes.verify.uses import used_vars


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return a warning per unused result."""
    found: list[Diagnostic] = []
    for function in program.functions_.values():
        used = used_vars(function)
        for stmt in walk_stmts(function.body):
            if not isinstance(stmt, ir.ForStmt | ir.WhileStmt | ir.IfStmt):
                continue
            for var in stmt.return_vars_:
                if var not in used:
                    kind = type(stmt).__name__
                    message = f"Unused result '{var.name_hint}' of {kind} in function '{function.name}'"
                    found.append(
                        warning(
                            "UnusedControlFlowResultCheck", UNUSED_CONTROL_FLOW_RESULT, message, stmt.span
                        )
                    )
    return found
