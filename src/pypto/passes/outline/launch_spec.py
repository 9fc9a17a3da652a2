"""How many blocks a dispatch launches, and whether all at once.

The block count is an expression over variables of the function that dispatches, so it lives on the dispatch
and never on the callee: a function is a closed scope. A cluster around a `pl.spmd` needs one step more. Its
count was written inside the scope that became a Group, so it is lifted out of the Group and translated,
parameter by argument, into the caller's terms. The Group keeps a marker that says: dispatching me launches
the kernels that my body calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pypto import ir
from pypto.core.errors import located
from pypto.ir.rewrite import Substitution, definitions_of
from pypto.ir.walk import map_substatements, vars_in, walk_stmts
from pypto.passes.outline.errors import ScopeUsageError

__all__ = ["LaunchSpec", "effective_launch_spec", "is_launch_wrapper", "lift_launch_spec"]

UNWRAPPED_MARKER = "spmd_unwrapped"
_SUBMIT_ATTRS = ("task_id_var", "manual_dep_edges", "allow_early_resolve", "predicate")


@dataclass(frozen=True, slots=True)
class LaunchSpec:
    """The number of blocks of a launch, and whether they all start together."""

    core_num: ir.Expr
    sync_start: bool


def lift_launch_spec(
    scope: ir.ScopeStmt, function: ir.Function, args: Sequence[ir.Expr]
) -> tuple[ir.Function, LaunchSpec | None]:
    """Return the function of `scope` without any launch spec, and the spec for its dispatch.

    A spmd scope states its spec in the caller's terms. A cluster has that of the spmd inside it, which is
    translated by way of the dispatch's arguments `args`. Other scopes have none.
    """
    if isinstance(scope, ir.SpmdScopeStmt):
        return function, LaunchSpec(scope.core_num, scope.sync_start)
    if isinstance(scope, ir.ClusterScopeStmt):
        group, spec = _unwrap_spmd(function)
        return group, None if spec is None else _translated(spec, group, args)
    return function, None


def _unwrap_spmd(group: ir.Function) -> tuple[ir.Function, LaunchSpec | None]:
    """Return the Group with its inner spmd scope replaced by that scope's body, and the scope's spec.

    The spec is in the Group's terms. A Group without spmd scope comes back as it is. Raises
    `ScopeUsageError` for a second spmd, and for one that carries what only a Submit can.
    """
    scopes = [stmt for stmt in walk_stmts(group.body) if isinstance(stmt, ir.SpmdScopeStmt)]
    if not scopes:
        return group, None
    if len(scopes) > 1:
        raise ScopeUsageError(
            located("Only one pl.spmd() block is allowed per cluster scope", scopes[1].span)
        )
    (scope,) = scopes
    if any(scope.attrs_.get(key) for key in _SUBMIT_ATTRS):
        raise ScopeUsageError(
            located(
                f"A pl.spmd() inside pl.cluster() cannot carry {', '.join(_SUBMIT_ATTRS)}: the cluster "
                "becomes one Group, so the nested spmd is never a Submit of its own",
                scope.span,
            )
        )
    unwrapped = group.replace(
        body=ir.flatten_stmts([_without(group.body, scope)], group.body.span),
        attrs={**group.attrs_, UNWRAPPED_MARKER: True},
    )
    return unwrapped, LaunchSpec(scope.core_num, scope.sync_start)


def _without(stmt: ir.Stmt, scope: ir.ScopeStmt) -> ir.Stmt:
    """`stmt` with `scope` replaced by its body."""
    return scope.body if stmt is scope else map_substatements(stmt, lambda inner: _without(inner, scope))


def _translated(spec: LaunchSpec, group: ir.Function, args: Sequence[ir.Expr]) -> LaunchSpec:
    """Return `spec` in the terms of a caller that passes `args` to `group`.

    Raises `ValueError` if the count depends on a value that only exists inside the Group.
    """
    arguments = dict(zip(group.params_, args, strict=False))
    bound = {var for stmt in walk_stmts(group.body) for var in definitions_of(stmt)}.union(group.params_)
    for var in vars_in(spec.core_num):
        if var in bound and var not in arguments:
            raise ValueError(
                located(
                    f"The block count of a pl.spmd() uses '{var.name_hint}', which is defined inside the "
                    "enclosing pl.cluster(); compute it before `with pl.cluster():`, so that the cluster "
                    "captures it",
                    group.span,
                )
            )
    return LaunchSpec(Substitution(arguments).expr(spec.core_num), spec.sync_start)


def effective_launch_spec(
    dispatch: ir.Call | ir.Submit, functions: Mapping[str, ir.Function]
) -> LaunchSpec | None:
    """Return the launch spec of a dispatch, None if it launches a single block.

    The dispatch's own spec counts. Only without one, the attributes of the callee do: hand-written and old
    serialised programs keep a constant count there.
    """
    if isinstance(dispatch, ir.Submit):
        own, sync_start = dispatch.core_num, dispatch.sync_start
    else:
        own, sync_start = dispatch.attrs_.get("core_num"), bool(dispatch.attrs_.get("sync_start", False))
    if own is not None:
        return LaunchSpec(own, sync_start)
    callee = functions.get(dispatch.op.name)
    inherited = None if callee is None else callee.attrs_.get("core_num")
    if callee is None or inherited is None:
        return None
    return LaunchSpec(inherited, bool(callee.attrs_.get("sync_start", False)))


def is_launch_wrapper(function: ir.Function) -> bool:
    """Whether a dispatch of `function` launches the kernels that its body calls, not itself."""
    if function.func_type is ir.FunctionType.Group:
        return function.attrs_.get(UNWRAPPED_MARKER) is True
    return function.func_type is ir.FunctionType.Spmd
