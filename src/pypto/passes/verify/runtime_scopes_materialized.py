"""RuntimeScopesMaterialized: orchestrations say that their runtime scopes are written out."""

from __future__ import annotations

from pypto import ir
from pypto.passes.diagnostics import Diagnostic, error


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return the orchestrations whose scopes are still implicit."""
    return [
        error(
            "RuntimeScopesMaterialized",
            0,
            f"Orchestration function '{name}' does not have attribute auto_scope=False",
            function.span,
        )
        for name, function in program.functions_.items()
        if function.func_type is ir.FunctionType.Orchestration
        and function.attrs_.get("auto_scope") is not False
    ]
