"""From lowered IR to C++ sources and the tables that describe them."""

from __future__ import annotations

from pypto.codegen.orchestration import (
    OrchestrationResult,
    collect_vars_from_shape_expr,
    generate_orchestration,
)
from pypto.codegen.registrations import KernelRegistration, infer_function_core_type

__all__ = [
    "KernelRegistration",
    "OrchestrationResult",
    "collect_vars_from_shape_expr",
    "generate_orchestration",
    "infer_function_core_type",
]
