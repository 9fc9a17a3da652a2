"""CommDomainScopesMaterialized: each window buffer belongs to one communication domain."""

from __future__ import annotations

from pypto import ir
from pypto.ir.walk import walk_stmts
from pypto.passes.diagnostics import Diagnostic, error

_RULE = "CommDomainScopesMaterialized"


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return the domains without buffers, and buffers in several domains."""
    found: list[Diagnostic] = []
    for function in program.functions_.values():
        owners: dict[ir.Var, ir.CommDomainScopeStmt] = {}
        for stmt in walk_stmts(function.body):
            if not isinstance(stmt, ir.CommDomainScopeStmt):
                continue
            if not stmt.slots_:
                message = f"Communication domain without window buffers in function '{function.name}'"
                found.append(error(_RULE, 0, message, stmt.span))
            for slot in stmt.slots_:
                if owners.setdefault(slot, stmt) is not stmt:
                    message = (
                        f"Window buffer '{slot.name_hint}' is in several communication domains "
                        f"of function '{function.name}'"
                    )
                    found.append(error(_RULE, 0, message, stmt.span))
    return found
