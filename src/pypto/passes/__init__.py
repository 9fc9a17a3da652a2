"""Program transformations: the pass framework and one module per pass.

Every factory (`convert_to_ssa()`, `simplify()`, ...) returns a new `Pass`. The names below are the public
interface; the order of the default pipeline is in `pypto.passes.manager`.
"""

from __future__ import annotations

from pypto.passes.base import Pass, PassProperties, create_function_pass, create_program_pass
from pypto.passes.context import (
    DiagnosticCheck,
    DiagnosticCheckSet,
    DiagnosticPhase,
    MemoryPlanner,
    PassContext,
    RuntimeKind,
    VerificationLevel,
    get_default_diagnostic_phase,
    get_default_verification_level,
    runtime_kind_from_name,
    runtime_kind_to_name,
)
from pypto.passes.properties import (
    IRProperty,
    IRPropertySet,
    get_default_verify_properties,
    get_structural_properties,
    get_verified_properties,
)

__all__ = [
    "Pass",
    "PassProperties",
    "create_function_pass",
    "create_program_pass",
    "DiagnosticCheck",
    "DiagnosticCheckSet",
    "DiagnosticPhase",
    "MemoryPlanner",
    "PassContext",
    "RuntimeKind",
    "VerificationLevel",
    "get_default_diagnostic_phase",
    "get_default_verification_level",
    "runtime_kind_from_name",
    "runtime_kind_to_name",
    "IRProperty",
    "IRPropertySet",
    "get_default_verify_properties",
    "get_structural_properties",
    "get_verified_properties",
]
