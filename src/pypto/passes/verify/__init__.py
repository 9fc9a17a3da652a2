"""Verifiers: one module per property, found by name.

A verifier module defines `verify(program) -> list[Diagnostic]`. Modules are loaded on first use, because a
run verifies few properties. A property without a module promises nothing that can be checked.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

from pypto import ir
from pypto.core.errors import Error
from pypto.ir.node import expect
from pypto.passes.diagnostics import Diagnostic, generate_report, has_errors
from pypto.passes.properties import IRProperty, IRPropertySet
from pypto.passes.verify.codes import SSAErrorType

Verifier = Callable[["ir.Program"], list[Diagnostic]]

_P = IRProperty

_MODULES: dict[IRProperty, str] = {
    _P.SSAForm: "ssa_form",
    _P.TypeChecked: "type_checked",
    _P.NoNestedCalls: "no_nested_calls",
    _P.NormalizedStmtStructure: "normalized_stmt_structure",
    _P.NoRedundantBlocks: "no_redundant_blocks",
    _P.SplitIncoreOrch: "split_incore_orch",
    _P.ClusterOutlined: "cluster_outlined",
    _P.BreakContinueValid: "break_continue_valid",
    _P.UseAfterDef: "use_after_def",
    _P.HierarchyOutlined: "hierarchy_outlined",
    _P.StructuredCtrlFlow: "structured_ctrl_flow",
    _P.OutParamNotShadowed: "out_param_not_shadowed",
    _P.NoNestedInCore: "no_nested_in_core",
    _P.InOutUseValid: "in_out_use_valid",
    _P.PipelineLoopValid: "pipeline_loop_valid",
    _P.PipelineResolved: "pipeline_resolved",
    _P.CallDirectionsResolved: "call_directions_resolved",
    _P.TileTypeCoherence: "tile_type_coherence",
    _P.InlineFunctionsEliminated: "inline_functions_eliminated",
    _P.OrchestrationReferencesResolved: "orchestration_references_resolved",
    _P.TensorViewCanonical: "tensor_view_canonical",
    _P.ArrayNotEscaped: "array_not_escaped",
    _P.RuntimeScopesMaterialized: "runtime_scopes_materialized",
    _P.AssignTypeSymmetry: "assign_type_symmetry",
    _P.ManualDepsOnSubmitOnly: "manual_deps_on_submit_only",
    _P.ReturnParamsExplicit: "return_params_explicit",
    _P.UnrollResolved: "unroll_resolved",
    _P.IterArgCarryClassified: "iter_arg_carry_classified",
    _P.AivSplitValid: "aiv_split_valid",
    _P.HasMemRefs: "has_mem_refs",
    _P.AllocatedMemoryAddr: "allocated_memory_addr",
    _P.TileOps2D: "tile_ops_2d",
    _P.TileMemoryInferred: "tile_memory_inferred",
    _P.MixedKernelExpanded: "mixed_kernel_expanded",
    _P.CommDomainScopesMaterialized: "comm_domain_scopes_materialized",
    _P.DistTensorCtxMaterialized: "dist_tensor_ctx_materialized",
    _P.IncoreTileOps: "incore_tile_ops",
    _P.AccToGmStoreValid: "acc_to_gm_store_valid",
    _P.HardSyncallOccupancyValid: "hard_syncall_occupancy_valid",
    _P.AtomicAddDtypeValid: "atomic_add_dtype_valid",
}


def load_verifier(module: str) -> Verifier:
    """Return the `verify` function of a verifier module."""
    verifier: Verifier = importlib.import_module(f"pypto.passes.verify.{module}").verify
    return verifier


class PropertyVerifierRegistry:
    """Runs the verifiers of properties."""

    @staticmethod
    def verify(properties: IRPropertySet, program: ir.Program) -> list[Diagnostic]:
        """Run the verifiers in the order of the properties and collect everything."""
        expect(properties, IRPropertySet, "the properties to verify")
        expect(program, ir.Program, "the program to verify")
        found: list[Diagnostic] = []
        for each in properties:
            module = _MODULES.get(each)
            if module is not None:
                found += load_verifier(module)(program)
        return found

    @staticmethod
    def verify_or_throw(properties: IRPropertySet, program: ir.Program) -> None:
        """Raise `pypto.Error` with the report if any finding is an error."""
        diagnostics = PropertyVerifierRegistry.verify(properties, program)
        if has_errors(diagnostics):
            raise Error(generate_report(diagnostics))

    @staticmethod
    def generate_report(diagnostics: list[Diagnostic]) -> str:
        """Write findings as text."""
        return generate_report(diagnostics)


def verify_properties(properties: IRPropertySet, program: ir.Program, pass_name: str) -> None:
    """Verify now; raises `pypto.Error` that names the pass and the properties."""
    diagnostics = PropertyVerifierRegistry.verify(properties, program)
    if has_errors(diagnostics):
        raise Error(
            f"Verification failed after '{pass_name}' for properties {properties}:\n"
            f"{generate_report(diagnostics)}{_advice(diagnostics)}"
        )


_REMEDIES = {
    ("SSAVerify", SSAErrorType.SCOPE_VIOLATION.value): (
        "A variable must have a value on every path that leads to its use. Assign it before the `if` or "
        "loop, or in both branches."
    ),
    ("ReturnParamsExplicit", 0): "End the function with a return statement, as in `return out`.",
}
"""What the writer of a program can do about a finding, by rule and error code."""


def _advice(diagnostics: list[Diagnostic]) -> str:
    remedies = [_REMEDIES.get((each.rule_name, each.error_code)) for each in diagnostics]
    return "".join(f"\nWhat to write: {text}" for text in dict.fromkeys(filter(None, remedies)))
