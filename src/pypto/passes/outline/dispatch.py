"""The statements that replace an outlined scope: a dispatch of the new function, and its results unpacked.

A scope that has a task id, or needs one (dependencies, early resolve, predicate), becomes a `Submit`; every
other scope a plain `Call`. What belongs to one launch rather than to the function (block count,
dependencies, dumps) is put here and only here: it names variables of the caller, and a function is closed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pypto import ir
from pypto.passes.outline.captures import Captures
from pypto.passes.outline.launch_spec import LaunchSpec
from pypto.passes.outline.names import VariableNames
from pypto.passes.outline.renames import Renames

__all__ = ["DispatchPlan", "build_dispatch", "task_id_of"]

_RESULT_NAME = "ret__tmp_v0"
_TASK_ID = ir.ScalarType(ir.DataType.TASK_ID)
_SUBMIT_ONLY = ("manual_dep_edges", "allow_early_resolve", "predicate")


@dataclass(frozen=True, slots=True)
class DispatchPlan:
    """All that a dispatch needs, in terms of the caller.

    `args` are the captured variables under their current names; `results` the variables that the dispatch
    binds, in the order of the function's results; `launch` is the block count, where the scope's kind has
    one.
    """

    callee: str
    args: tuple[ir.Expr, ...]
    results: tuple[ir.Var, ...]
    launch: LaunchSpec | None


def build_dispatch(
    scope: ir.ScopeStmt, plan: DispatchPlan, captures: Captures, renames: Renames, variables: VariableNames
) -> list[ir.Stmt]:
    """Return the dispatch of `plan.callee` and the statements that bind its results."""
    attrs = _dump_attrs(scope, plan, captures) | _direction_attrs(scope, captures)
    task_id = task_id_of(scope, variables)
    if task_id is not None:
        return _submit_statements(scope, plan, attrs, task_id, renames)
    if plan.launch is not None:
        attrs["core_num"] = renames.expr(plan.launch.core_num)
        if plan.launch.sync_start:
            attrs["sync_start"] = True
    return _call_statements(scope, plan, attrs)


def task_id_of(scope: ir.ScopeStmt, variables: VariableNames) -> ir.Var | None:
    """Return the variable for the task id, a new one if the scope needs a Submit but names none."""
    own: ir.Var | None = scope.attrs_.get("task_id_var")
    if own is not None or not any(scope.attrs_.get(key) for key in _SUBMIT_ONLY):
        return own
    return ir.Var(variables.next_version("tid"), _TASK_ID, scope.span)


def _call_statements(scope: ir.ScopeStmt, plan: DispatchPlan, attrs: dict[str, Any]) -> list[ir.Stmt]:
    types = [result.type for result in plan.results]
    result_type = ir.UnknownType.get() if not types else types[0] if len(types) == 1 else ir.TupleType(types)
    call = ir.Call(ir.GlobalVar(plan.callee), plan.args, {}, attrs, result_type, scope.span)
    if not types:
        return [ir.EvalStmt(call, scope.span)]
    if len(types) == 1:
        return [ir.AssignStmt(plan.results[0], call, scope.span)]
    return _unpacked(call, plan.results, scope.span)


def _submit_statements(
    scope: ir.ScopeStmt, plan: DispatchPlan, attrs: dict[str, Any], task_id: ir.Var, renames: Renames
) -> list[ir.Stmt]:
    predicate = scope.attrs_.get("predicate")
    submit = ir.Submit(
        ir.GlobalVar(plan.callee),
        plan.args,
        [renames.expr(dep) for dep in scope.attrs_.get("manual_dep_edges", ())],
        {},
        attrs,
        ir.TupleType([*(result.type for result in plan.results), task_id.type]),
        scope.span,
        core_num=None if plan.launch is None else renames.expr(plan.launch.core_num),
        sync_start=plan.launch is not None and plan.launch.sync_start,
        allow_early_resolve=bool(scope.attrs_.get("allow_early_resolve", False)),
        predicate=None if predicate is None else renames.expr(predicate),
    )
    return _unpacked(submit, (*plan.results, task_id), scope.span)


def _unpacked(dispatch: ir.Expr, results: Sequence[ir.Var], span: ir.Span) -> list[ir.Stmt]:
    whole = ir.Var(_RESULT_NAME, dispatch.type, span)
    items = (
        ir.AssignStmt(result, ir.TupleGetItemExpr(whole, index, span), span)
        for index, result in enumerate(results)
    )
    return [ir.AssignStmt(whole, dispatch, span), *items]


def _dump_attrs(scope: ir.ScopeStmt, plan: DispatchPlan, captures: Captures) -> dict[str, Any]:
    """The dumped tensors that the scope passes on, as arguments; the others have no slot to dump."""
    dumped = scope.attrs_.get("dump_vars", ())
    slots = sorted({captures.positions[var] for var in dumped if var in captures})
    return {"dump_vars": [plan.args[slot] for slot in slots]} if slots else {}


def _direction_attrs(scope: ir.ScopeStmt, captures: Captures) -> dict[str, Any]:
    """The argument positions that take no part in dependency tracking."""
    independent = scope.attrs_.get("arg_direction_overrides_vars", ())
    for var in independent:
        if var not in captures:
            raise ValueError(
                f"no_dep_args names the tensor '{var.name_hint}', which is not captured by the scope: "
                "its body does not read it. Remove it from no_dep_args, or use it in the scope"
            )
    slots = sorted({captures.positions[var] for var in independent})
    return {"arg_direction_overrides": slots} if slots else {}
