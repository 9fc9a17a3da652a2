"""From lowered IR to C++ sources and the tables that describe them."""

from __future__ import annotations

from pypto.codegen.artifact import PartialCodegenError, write_artifact
from pypto.codegen.builtin_templates import BuiltinNextLevelSpec, write_builtin_next_level
from pypto.codegen.host_orchestration import DistributedCodegen
from pypto.codegen.kernel import KernelError, KernelSource, PTOCodegen, generate_kernel
from pypto.codegen.kernel_config import kernel_config_text
from pypto.codegen.orchestration import (
    OrchestrationResult,
    collect_vars_from_shape_expr,
    generate_orchestration,
)
from pypto.codegen.registrations import KernelRegistration, infer_function_core_type

__all__ = [
    "BuiltinNextLevelSpec",
    "DistributedCodegen",
    "KernelError",
    "KernelRegistration",
    "KernelSource",
    "OrchestrationResult",
    "PTOCodegen",
    "PartialCodegenError",
    "collect_vars_from_shape_expr",
    "generate_kernel",
    "generate_orchestration",
    "infer_function_core_type",
    "kernel_config_text",
    "write_artifact",
    "write_builtin_next_level",
]
