"""OrchestrationReferencesResolved: every function that an Orchestration calls exists. Submits are exempt."""

from __future__ import annotations

from pypto import ir
from pypto.passes.diagnostics import Diagnostic, error
from pypto.passes.verify.dispatches import dispatches_of


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return the calls of orchestrations that go nowhere."""
    return [
        error(
            "OrchestrationReferencesResolved",
            0,
            f"Orchestration function '{name}' calls undefined function '{call.op.name}'",
            call.span,
        )
        for name, function in program.functions_.items()
        if function.func_type is ir.FunctionType.Orchestration
        for call in dispatches_of(function)
        if isinstance(call, ir.Call) and call.op.name not in program.functions_
    ]
