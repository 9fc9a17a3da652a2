"""ManualDepsOnSubmitOnly: declared dependencies are the deps of a Submit, never an attribute of a call."""

from __future__ import annotations

from pypto import ir
from pypto.passes.diagnostics import Diagnostic, error
from pypto.passes.verify.dispatches import dispatches_of

_RULE = "ManualDepsOnSubmitOnly"
_KEY = "manual_dep_edges"


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return the dispatches that carry dependencies as an attribute."""
    found: list[Diagnostic] = []
    for function in program.functions_.values():
        where = f"in function '{function.name}'"
        for call in dispatches_of(function):
            if _KEY not in call.attrs_:
                continue
            if isinstance(call, ir.Submit):
                message = f"Submit of '{call.op.name}' {where} has attribute '{_KEY}'; its deps are a field"
                found.append(error(_RULE, 1, message, call.span))
            else:
                message = f"Call to '{call.op.name}' {where} has attribute '{_KEY}'; use pl.submit with deps"
                found.append(error(_RULE, 0, message, call.span))
    return found
