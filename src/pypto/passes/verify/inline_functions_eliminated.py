"""InlineFunctionsEliminated: no Inline function, no call to one, no call to a function that is not there."""

from __future__ import annotations

from pypto import ir
from pypto.passes.diagnostics import Diagnostic, error
from pypto.passes.verify.dispatches import dispatches_of

_RULE = "InlineFunctionsEliminated"


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return what is left of Inline functions."""
    found: list[Diagnostic] = []
    for name, function in program.functions_.items():
        if function.func_type is ir.FunctionType.Inline:
            found.append(error(_RULE, 0, f"Inline function '{name}' survives", function.span))
        for call in dispatches_of(function):
            callee = program.functions_.get(call.op.name)
            kind = type(call).__name__
            if callee is None:
                message = f"Dangling Call to function '{call.op.name}' in function '{name}'"
                found.append(error(_RULE, 2, message, call.span))
            elif callee.func_type is ir.FunctionType.Inline:
                message = f"{kind} to Inline function '{call.op.name}' in function '{name}'"
                found.append(error(_RULE, 1, message, call.span))
    return found
