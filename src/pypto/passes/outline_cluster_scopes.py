"""OutlineClusterScopes: each `pl.cluster()` becomes a Group, each standalone `pl.spmd` a Spmd function.

Rules:

1. Opaque, Orchestration and Graph functions are processed; their type stays.
2. Clusters first: `{func}_cluster_{n}`. A `pl.spmd` inside is unwrapped, so that the Group's body is the
   spmd's body, and its launch spec moves to the Group's dispatch, translated into the caller's terms.
3. Then the remaining spmd scopes: `{func}_spmd_{n}`. The wrapper's dispatch carries the launch spec.
4. Directions and returned parameters are followed into the functions that a scope calls; the Groups just
   made count for the spmd scopes of the same function.
"""

from __future__ import annotations

from collections.abc import Mapping

from pypto import ir
from pypto.passes.base import IRProperty, Pass, PassProperties, create_program_pass, property_set
from pypto.passes.outline import Head, OutlinedFunction, ScopeRule, outline_program, outline_scopes

__all__ = ["outline_cluster_scopes"]

_PROCESSED = (ir.FunctionType.Opaque, ir.FunctionType.Orchestration, ir.FunctionType.Graph)


def outline_cluster_scopes() -> Pass:
    """Return the pass that outlines cluster scopes and standalone spmd scopes."""
    properties = PassProperties(
        required=property_set(IRProperty.SSAForm),
        produced=property_set(IRProperty.SSAForm, IRProperty.ClusterOutlined),
    )
    return create_program_pass(_outline_program, "OutlineClusterScopes", properties)


def _outline_program(program: ir.Program) -> ir.Program:
    def outline_function(function: ir.Function, reserved: set[str]) -> OutlinedFunction:
        return _outline_function(function, reserved, program.functions_)

    return outline_program(program, _PROCESSED, outline_function)


def _outline_function(
    function: ir.Function, reserved: set[str], functions: Mapping[str, ir.Function]
) -> OutlinedFunction:
    clusters = outline_scopes(function, _CLUSTER_RULE, reserved, functions)
    visible = (
        {**functions, **{group.name: group for group in clusters.outlined}}
        if clusters.outlined
        else functions
    )
    launches = outline_scopes(clusters.parent, _SPMD_RULE, reserved, visible)
    return OutlinedFunction(launches.parent, (*clusters.outlined, *launches.outlined))


def _group_head(scope: ir.ScopeStmt, name: str, registers_waits: bool) -> Head:
    return Head(name, ir.FunctionType.Group, None, None, {})


def _spmd_head(scope: ir.ScopeStmt, name: str, registers_waits: bool) -> Head:
    return Head(name, ir.FunctionType.Spmd, None, None, {})


_CLUSTER_RULE = ScopeRule(ir.ClusterScopeStmt, lambda scope: "_cluster_", _group_head)
_SPMD_RULE = ScopeRule(ir.SpmdScopeStmt, lambda scope: "_spmd_", _spmd_head)
