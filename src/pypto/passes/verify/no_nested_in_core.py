"""NoNestedInCore: a kernel region does not hold another one."""

from __future__ import annotations

from pypto import ir
from pypto.ir.walk import substatements
from pypto.passes.diagnostics import Diagnostic, error
from pypto.passes.verify.codes import NESTED_IN_CORE


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return the InCore scopes inside InCore scopes."""
    found: list[Diagnostic] = []
    for function in program.functions_.values():
        pending = [(function.body, False)]
        while pending:
            stmt, is_inside = pending.pop()
            if isinstance(stmt, ir.InCoreScopeStmt):
                if is_inside:
                    message = f"Nested InCore scope in function '{function.name}'"
                    found.append(error("NoNestedInCore", NESTED_IN_CORE, message, stmt.span))
                is_inside = True
            pending += [(each, is_inside) for each in reversed(substatements(stmt))]
    return found
