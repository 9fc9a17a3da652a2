"""OutlineIncoreScopes: each `pl.at(level=CORE_GROUP)` becomes an InCore function, a kernel.

Rules:

1. Opaque, Orchestration and Graph functions are processed, and Group and Spmd functions, whose bodies may
   hold scopes when clusters were outlined first.
2. An Opaque function with at least one such scope becomes an Orchestration function. Its reads of extents
   that the signature declares fold to the declared symbols first, as the parser folds them in an
   Orchestration function.
3. The function is named `{func}_incore_{n}`. It takes over the scope's split mode and the attributes that
   concern the kernel itself.
4. A scope with `pl.split_aiv` regions is marked, and gets the common mode of its regions as its split; it
   cannot have a split of its own.
"""

from __future__ import annotations

from typing import Any

from pypto import ir
from pypto.core.errors import located
from pypto.ir.walk import walk_stmts
from pypto.passes.base import IRProperty, Pass, PassProperties, create_program_pass, property_set
from pypto.passes.outline import Head, OutlinedFunction, ScopeRule, outline_program, outline_scopes
from pypto.passes.outline.dim_folding import fold_declared_extents

__all__ = ["outline_incore_scopes"]

_PROCESSED = (
    ir.FunctionType.Opaque,
    ir.FunctionType.Orchestration,
    ir.FunctionType.Graph,
    ir.FunctionType.Group,
    ir.FunctionType.Spmd,
)


def outline_incore_scopes() -> Pass:
    """Return the pass that outlines InCore scopes."""
    properties = PassProperties(
        required=property_set(IRProperty.SSAForm),
        produced=property_set(IRProperty.SSAForm, IRProperty.SplitIncoreOrch, IRProperty.AivSplitValid),
    )
    return create_program_pass(_outline_program, "OutlineIncoreScopes", properties)


def _outline_program(program: ir.Program) -> ir.Program:
    return outline_program(program, _PROCESSED, _outline_function)


def _outline_function(function: ir.Function, reserved: set[str]) -> OutlinedFunction:
    if function.func_type is ir.FunctionType.Opaque and _has_incore_scope(function):
        promoted = fold_declared_extents(function).replace(func_type=ir.FunctionType.Orchestration)
        return outline_scopes(promoted, _RULE, reserved, callees={})
    return outline_scopes(function, _RULE, reserved, callees={})


def _has_incore_scope(function: ir.Function) -> bool:
    return any(isinstance(stmt, ir.InCoreScopeStmt) for stmt in walk_stmts(function.body))


def _suffix(scope: ir.ScopeStmt) -> str:
    return "_incore_"


def _head(scope: ir.ScopeStmt, name: str, registers_waits: bool) -> Head:
    assert isinstance(scope, ir.InCoreScopeStmt)
    attrs: dict[str, Any] = {}
    if scope.split is not ir.SplitMode.NONE:
        attrs["split"] = scope.split
    attrs |= {key: scope.attrs_[key] for key in ("slot_num", "windowize") if key in scope.attrs_}
    if registers_waits:
        attrs["deferred_completion_waiter"] = True
    attrs |= _split_region_attrs(scope)
    return Head(name, ir.FunctionType.InCore, None, None, attrs)


def _split_region_attrs(scope: ir.InCoreScopeStmt) -> dict[str, Any]:
    modes = {stmt.split for stmt in walk_stmts(scope.body) if isinstance(stmt, ir.SplitAivScopeStmt)}
    if not modes:
        return {}
    if scope.split is not ir.SplitMode.NONE:
        raise ValueError(
            located(
                "pl.split and pl.split_aiv regions are mutually exclusive in one scope; each region states "
                "its own mode. To set only the number of slots, use pl.cross_core_slot",
                scope.span,
            )
        )
    common = modes.pop()
    if modes or common is ir.SplitMode.NONE:
        return {"split_aiv": True}
    return {"split_aiv": True, "split": common}


_RULE = ScopeRule(ir.InCoreScopeStmt, _suffix, _head)
