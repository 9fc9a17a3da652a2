"""OutParamNotShadowed: an output parameter is not replaced by a fresh tensor."""

from __future__ import annotations

from pypto import ir
from pypto.ir.walk import walk_stmts
from pypto.passes.diagnostics import Diagnostic, error
from pypto.passes.verify.codes import OUT_PARAM_SHADOWED

_ALLOCATIONS = frozenset({"tensor.create", "tensor.full"})


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return the assignments of allocations to output parameters."""
    return [each for function in program.functions_.values() for each in _function(function)]


def _function(function: ir.Function) -> list[Diagnostic]:
    outputs = {
        param: direction
        for param, direction in zip(function.params_, function.param_directions_, strict=True)
        if direction is not ir.ParamDirection.In
    }
    found: list[Diagnostic] = []
    for stmt in walk_stmts(function.body) if outputs else ():
        if (
            isinstance(stmt, ir.AssignStmt)
            and stmt.var in outputs
            and isinstance(stmt.value, ir.Call)
            and stmt.value.op.name in _ALLOCATIONS
        ):
            message = (
                f"'{stmt.var.name_hint}' is an {outputs[stmt.var].name} parameter and cannot be reassigned "
                f"via {stmt.value.op.name}; write into it, or give the new tensor a name of its own"
            )
            found.append(error("OutParamNotShadowed", OUT_PARAM_SHADOWED, message, stmt.span))
    return found
