"""ArrayNotEscaped: small arrays stay inside their function."""

from __future__ import annotations

from pypto import ir
from pypto.passes.diagnostics import Diagnostic, error

_RULE = "ArrayNotEscaped"


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return the array types in signatures."""
    found: list[Diagnostic] = []
    for function in program.functions_.values():
        for param in function.params_:
            if _holds_array(param.type):
                message = f"Parameter '{param.name_hint}' of function '{function.name}' has an ArrayType"
                found.append(error(_RULE, 0, message, param.span))
        for index, type_ in enumerate(function.return_types_):
            if _holds_array(type_):
                message = f"Return type[{index}] of function '{function.name}' has an ArrayType"
                found.append(error(_RULE, 0, message, function.span))
    return found


def _holds_array(type_: ir.Type) -> bool:
    if isinstance(type_, ir.TupleType):
        return any(_holds_array(element) for element in type_.types_)
    return isinstance(type_, ir.ArrayType)
