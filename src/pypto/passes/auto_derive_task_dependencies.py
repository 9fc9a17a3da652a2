"""AutoDeriveTaskDependencies: where the compiler could declare task dependencies, it leaves them to the
runtime.

The runtime infers every dependency of an automatic scope from the overlap of tensors. Declaring some at
compile time would only save look-ups, so this pass changes no program, with `analyze_auto_scopes` or without.
It holds the place in the pipeline at which such an analysis belongs: directions are resolved, scopes are not
yet written down.
"""

from __future__ import annotations

from pypto import ir
from pypto.core.logging import log_info
from pypto.passes.base import IRProperty, Pass, PassProperties, create_program_pass, property_set

__all__ = ["auto_derive_task_dependencies"]

_PROPERTIES = PassProperties(
    required=property_set(IRProperty.SplitIncoreOrch, IRProperty.CallDirectionsResolved),
    produced=property_set(IRProperty.CallDirectionsResolved),
)


def auto_derive_task_dependencies(analyze_auto_scopes: bool = False) -> Pass:
    """Return the pass; `analyze_auto_scopes` asks for an analysis that this target has no use for."""

    def derive(program: ir.Program) -> ir.Program:
        if analyze_auto_scopes:
            log_info("Dependencies of automatic scopes are inferred by the runtime; none are declared")
        return program

    return create_program_pass(derive, "AutoDeriveTaskDependencies", _PROPERTIES)
