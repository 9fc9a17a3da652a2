"""What each pass of the pipeline requires, produces and invalidates, and what a run verifies by itself."""

from __future__ import annotations

import pytest

from pypto import passes
from pypto.ir.pass_manager import PassManager

SHORT = {
    "SSA": "SSAForm",
    "NSS": "NormalizedStmtStructure",
    "SIO": "SplitIncoreOrch",
    "ITO": "IncoreTileOps",
    "T2D": "TileOps2D",
    "TMI": "TileMemoryInferred",
    "MKE": "MixedKernelExpanded",
    "CDR": "CallDirectionsResolved",
    "ASV": "AivSplitValid",
    "NNC": "NoNestedCalls",
    "RSM": "RuntimeScopesMaterialized",
}

DECLARED = {
    "InlineFunctions": ("", "InlineFunctionsEliminated", ""),
    "UnrollLoops": ("", "UnrollResolved", ""),
    "CtrlFlowTransform": ("", "StructuredCtrlFlow", ""),
    "ConvertToSSA": ("", "SSA", "NSS"),
    "Simplify": ("", "", ""),
    "NormalizeStmtStructure": ("", "NSS", ""),
    "FlattenCallExpr": ("SSA NSS", "SSA NNC NSS", ""),
    "OutlineHierarchyScopes": ("SSA", "SSA HierarchyOutlined OrchestrationReferencesResolved", ""),
    "OutlineIncoreScopes": ("SSA", "SSA SIO ASV", ""),
    "OutlineClusterScopes": ("SSA", "SSA ClusterOutlined", ""),
    "DeduplicateOutlinedKernels": ("SSA SIO ClusterOutlined NSS", "SSA SIO ClusterOutlined NSS", ""),
    "ConvertTensorToTileOps": ("SSA SIO NSS", "SSA ITO NSS ASV", "ASV"),
    "ExpandMixedKernel": ("SSA SIO ITO T2D TMI NSS", "SSA MKE NSS HardSyncallOccupancyValid", ""),
    "NormalizeReturnOrder": ("SIO ITO", "ReturnParamsExplicit", ""),
    "FuseCreateAssembleToSlice": ("SIO", "", ""),
    "DeriveCallDirections": ("SIO", "CDR", ""),
    "AutoDeriveTaskDependencies": ("SIO CDR", "CDR", ""),
    "ExpandManualPhaseFence": ("NNC NSS CDR", "NNC NSS CDR", ""),
    "MaterializeRuntimeScopes": ("SIO CDR", "RSM", ""),
    "ClassifyIterArgCarry": ("CDR RSM", "IterArgCarryClassified RSM", ""),
}

VERIFIED = {
    "ConvertToSSA": "SSA",
    "OutlineIncoreScopes": "ASV",
    "ConvertTensorToTileOps": "ASV",
    "ExpandMixedKernel": "MKE HardSyncallOccupancyValid",
    "NormalizeReturnOrder": "ReturnParamsExplicit",
    "DeriveCallDirections": "CDR",
    "MaterializeRuntimeScopes": "RSM",
    "ClassifyIterArgCarry": "IterArgCarryClassified",
}


def spelled(names: str) -> set[str]:
    return {SHORT.get(name, name) for name in names.split()}


def members(properties: passes.IRPropertySet) -> set[str]:
    return {each.name for each in properties.to_list()}


@pytest.mark.parametrize("name", DECLARED)
def test_a_pass_declares_its_properties(name: str) -> None:
    for each in PassManager.get_strategy().passes:
        if each.get_name() == name:
            declared = (
                members(each.get_required_properties()),
                members(each.get_produced_properties()),
                members(each.get_invalidated_properties()),
            )
            assert declared == tuple(spelled(names) for names in DECLARED[name])


def test_every_pass_of_the_pipeline_has_declared_properties() -> None:
    assert set(PassManager.get_strategy().pass_names) == set(DECLARED)


def test_a_run_verifies_each_property_after_the_pass_that_first_produces_it() -> None:
    checkable = passes.get_verified_properties()
    verified = passes.get_structural_properties().intersection(checkable)
    found = {}
    for each in PassManager.get_strategy().passes:
        verified = verified.difference(each.get_invalidated_properties())
        due = each.get_produced_properties().intersection(checkable).difference(verified)
        verified = verified.union_with(due)
        if not due.empty():
            found[each.get_name()] = members(due)
    assert found == {name: spelled(names) for name, names in VERIFIED.items()}
