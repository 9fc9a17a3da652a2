"""OutlineHierarchyScopes: each `pl.at(level=...)` above the core group becomes an Opaque function at that
level.

Rules:

1. Only Opaque functions are processed; they stay Opaque.
2. The function takes level and role of its scope and is named `{func}_{level}[_{role}]_{n}`.
3. Tensors into which the scope stores do not leave it by themselves; results of stores that are needed
   later do.
4. Scopes of other kinds inside stay; the passes after this one process the new function in turn.
"""

from __future__ import annotations

from pypto import ir
from pypto.passes.base import IRProperty, Pass, PassProperties, create_program_pass, property_set
from pypto.passes.outline import Head, OutlinedFunction, ScopeRule, outline_program, outline_scopes

__all__ = ["outline_hierarchy_scopes"]

_LEVEL_WORDS = {
    ir.Level.CLUSTER_0: "cluster0",
    ir.Level.CLUSTER_1: "cluster1",
    ir.Level.CLUSTER_2: "cluster2",
}
_ROLE_WORDS = {None: "", ir.Role.Orchestrator: "_orch", ir.Role.SubWorker: "_sub_worker"}


def outline_hierarchy_scopes() -> Pass:
    """Return the pass that outlines hierarchy scopes."""
    properties = PassProperties(
        required=property_set(IRProperty.SSAForm),
        produced=property_set(
            IRProperty.SSAForm, IRProperty.HierarchyOutlined, IRProperty.OrchestrationReferencesResolved
        ),
    )
    return create_program_pass(_outline_program, "OutlineHierarchyScopes", properties)


def _outline_program(program: ir.Program) -> ir.Program:
    return outline_program(program, [ir.FunctionType.Opaque], _outline_function)


def _outline_function(function: ir.Function, reserved: set[str]) -> OutlinedFunction:
    return outline_scopes(function, _RULE, reserved, callees={})


def _suffix(scope: ir.ScopeStmt) -> str:
    assert isinstance(scope, ir.HierarchyScopeStmt)
    level = _LEVEL_WORDS.get(scope.level, scope.level.name.lower())
    return f"_{level}{_ROLE_WORDS[scope.role]}_"


def _head(scope: ir.ScopeStmt, name: str, registers_waits: bool) -> Head:
    assert isinstance(scope, ir.HierarchyScopeStmt)
    return Head(name, ir.FunctionType.Opaque, scope.level, scope.role, {})


_RULE = ScopeRule(ir.HierarchyScopeStmt, _suffix, _head, exports_store_targets=False)
