"""Program transformations: the pass framework and one module per pass.

Every factory (`convert_to_ssa()`, `simplify()`, ...) returns a new `Pass`. A factory lives in the module of
its own name, which is loaded when the factory is first asked for: a program that only parses pays for no
pass. The order of the default pipeline is in `pypto.passes.manager`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pypto.core.lazy_module import make_lazy
from pypto.passes.base import Pass, PassProperties, create_function_pass, create_program_pass
from pypto.passes.context import (
    DiagnosticCheck,
    DiagnosticCheckSet,
    DiagnosticPhase,
    MemoryPlanner,
    PassContext,
    RuntimeKind,
    VerificationLevel,
    VerificationMode,
    get_default_diagnostic_phase,
    get_default_verification_level,
    runtime_kind_from_name,
    runtime_kind_to_name,
)
from pypto.passes.diagnostics import Diagnostic, DiagnosticCheckRegistry, DiagnosticSeverity
from pypto.passes.instruments import (
    CallbackInstrument,
    DiagnosticInstrument,
    PassInstrument,
    ReportInstrument,
    VerificationInstrument,
)
from pypto.passes.pipeline import PassPipeline, run_verifier
from pypto.passes.properties import (
    IRProperty,
    IRPropertySet,
    get_default_verify_properties,
    get_structural_properties,
    get_verified_properties,
)
from pypto.passes.verify import PropertyVerifierRegistry, verify_properties
from pypto.passes.verify.codes import (
    NestedCallErrorType,
    SSAErrorType,
    TypeCheckErrorType,
    UseAfterDefErrorType,
)

if TYPE_CHECKING:
    from pypto.passes.auto_derive_task_dependencies import auto_derive_task_dependencies
    from pypto.passes.classify_iter_arg_carry import classify_iter_arg_carry
    from pypto.passes.convert_tensor_to_tile_ops import convert_tensor_to_tile_ops
    from pypto.passes.convert_to_ssa import convert_to_ssa
    from pypto.passes.ctrl_flow_transform import ctrl_flow_transform
    from pypto.passes.deduplicate_outlined_kernels import deduplicate_outlined_kernels, explain_deduplication
    from pypto.passes.derive_call_directions import derive_call_directions
    from pypto.passes.expand_manual_phase_fence import expand_manual_phase_fence
    from pypto.passes.expand_mixed_kernel import expand_mixed_kernel
    from pypto.passes.flatten_call_expr import flatten_call_expr
    from pypto.passes.fuse_create_assemble_to_slice import fuse_create_assemble_to_slice
    from pypto.passes.inline_functions import inline_functions
    from pypto.passes.inline_orchestrations import inline_orchestrations
    from pypto.passes.materialize_assemble_copies import materialize_assemble_copies
    from pypto.passes.materialize_runtime_scopes import materialize_runtime_scopes
    from pypto.passes.normalize_return_order import normalize_return_order
    from pypto.passes.normalize_stmt_structure import normalize_stmt_structure
    from pypto.passes.outline_cluster_scopes import outline_cluster_scopes
    from pypto.passes.outline_hierarchy_scopes import outline_hierarchy_scopes
    from pypto.passes.outline_incore_scopes import outline_incore_scopes
    from pypto.passes.simplify import simplify
    from pypto.passes.unroll_loops import unroll_loops
    from pypto.passes.verify.tensor_view_canonical import verify_tensor_view_canonical

FACTORIES = (
    "inline_functions",
    "unroll_loops",
    "ctrl_flow_transform",
    "convert_to_ssa",
    "simplify",
    "normalize_stmt_structure",
    "flatten_call_expr",
    "outline_hierarchy_scopes",
    "outline_incore_scopes",
    "outline_cluster_scopes",
    "deduplicate_outlined_kernels",
    "convert_tensor_to_tile_ops",
    "inline_orchestrations",
    "expand_mixed_kernel",
    "normalize_return_order",
    "fuse_create_assemble_to_slice",
    "materialize_assemble_copies",
    "derive_call_directions",
    "auto_derive_task_dependencies",
    "expand_manual_phase_fence",
    "materialize_runtime_scopes",
    "classify_iter_arg_carry",
)
"""The factories that exist, in pipeline order."""

_LAZY = {
    **{name: f"pypto.passes.{name}" for name in FACTORIES},
    "explain_deduplication": "pypto.passes.deduplicate_outlined_kernels",
    "verify_tensor_view_canonical": "pypto.passes.verify.tensor_view_canonical",
    "stmt_dependency_analysis": "pypto.passes.stmt_dependency_analysis",
}
make_lazy(__name__, _LAZY)

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
    "VerificationMode",
    "get_default_diagnostic_phase",
    "get_default_verification_level",
    "runtime_kind_from_name",
    "runtime_kind_to_name",
    "IRProperty",
    "IRPropertySet",
    "get_default_verify_properties",
    "get_structural_properties",
    "get_verified_properties",
    "CallbackInstrument",
    "DiagnosticInstrument",
    "PassInstrument",
    "ReportInstrument",
    "VerificationInstrument",
    "PassPipeline",
    "run_verifier",
    "Diagnostic",
    "DiagnosticCheckRegistry",
    "DiagnosticSeverity",
    "PropertyVerifierRegistry",
    "verify_properties",
    "verify_tensor_view_canonical",
    "NestedCallErrorType",
    "SSAErrorType",
    "TypeCheckErrorType",
    "UseAfterDefErrorType",
    "inline_functions",
    "unroll_loops",
    "ctrl_flow_transform",
    "convert_to_ssa",
    "simplify",
    "normalize_stmt_structure",
    "flatten_call_expr",
    "outline_hierarchy_scopes",
    "outline_incore_scopes",
    "outline_cluster_scopes",
    "deduplicate_outlined_kernels",
    "explain_deduplication",
    "convert_tensor_to_tile_ops",
    "inline_orchestrations",
    "expand_mixed_kernel",
    "normalize_return_order",
    "fuse_create_assemble_to_slice",
    "materialize_assemble_copies",
    "derive_call_directions",
    "auto_derive_task_dependencies",
    "expand_manual_phase_fence",
    "materialize_runtime_scopes",
    "classify_iter_arg_carry",
]
