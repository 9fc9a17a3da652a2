"""What must hold before an orchestration is translated.

Translation relies on what passes promise; a broken promise is reported as the property that does not hold,
not as a strange failure later.
"""

from __future__ import annotations

from pypto.core.errors import Error
from pypto.ir.enums import FunctionType
from pypto.ir.program import Function, Program
from pypto.passes.diagnostics import generate_report, has_errors
from pypto.passes.properties import IRProperty, property_set
from pypto.passes.verify import PropertyVerifierRegistry

__all__ = ["REQUIRED", "check_preconditions"]

REQUIRED = (
    IRProperty.SplitIncoreOrch,
    IRProperty.OrchestrationReferencesResolved,
    IRProperty.RuntimeScopesMaterialized,
    IRProperty.IterArgCarryClassified,
    IRProperty.ReturnParamsExplicit,
)


def check_preconditions(program: Program, func: Function) -> None:
    """Raise `ValueError` for a wrong function, `pypto.Error` for a stale one or a broken property."""
    if program is None or func is None:
        raise ValueError("generate_orchestration needs a program and one of its functions, got None")
    found = program.get_function(func.name)
    if found is None:
        raise ValueError(f"the function '{func.name}' is not in the program '{program.name}'")
    if found is not func:
        raise Error(f"stale function handle for '{func.name}': the program holds another one of that name")
    if func.func_type is not FunctionType.Orchestration:
        kind = func.func_type.name
        raise ValueError(f"'{func.name}' is {kind}; only Orchestration functions can be translated")
    for needed in REQUIRED:
        diagnostics = PropertyVerifierRegistry.verify(property_set(needed), program)
        if has_errors(diagnostics):
            raise Error(
                f"the orchestration '{func.name}' cannot be translated: {needed.name} does not hold\n"
                f"{generate_report(diagnostics)}"
            )
