"""The function that a scope becomes.

`build_function` turns a scope body, in which nested scopes have been outlined already, into a closed
function: captured variables become parameters, results get variables of their own, and the body ends in a
return.

The return is *param-explicit*: a result that is a parameter's storage (a store target, or a tensor that
lineage traces to a parameter) is returned as that very parameter. Callers then match results to arguments
by identity.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pypto import ir
from pypto.ir.return_lineage import ReturnLineage
from pypto.ir.rewrite import Substitution
from pypto.ir.walk import map_substatements
from pypto.passes.outline.boundary import Boundary
from pypto.passes.outline.names import VariableNames
from pypto.passes.outline.outputs import stored_tensor
from pypto.passes.outline.returned import returned_values

__all__ = ["Head", "build_function"]


@dataclass(frozen=True, slots=True)
class Head:
    """What the scope's kind says about the function: everything besides parameters, body and results."""

    name: str
    func_type: ir.FunctionType
    level: ir.Level | None
    role: ir.Role | None
    attrs: Mapping[str, Any]


def build_function(
    head: Head,
    body: ir.Stmt,
    boundary: Boundary,
    variables: VariableNames,
    lineage: ReturnLineage,
    span: ir.Span,
) -> ir.Function:
    """Return the function of a scope with this `body`. All new nodes carry `span`, that of the scope.

    `variables` are the names known in the function, `lineage` knows the functions that may be looked into.
    """
    named = name_store_results(body, boundary.outputs.targets, variables)
    renaming, params, results = _bind_boundary(boundary, span)
    closed = renaming.stmt(named)
    if results:
        returned = returned_values(
            closed,
            params,
            results,
            lineage,
            lineage.functions,
            is_converted=head.func_type is not ir.FunctionType.Opaque,
        )
        closed = ir.flatten_stmts([closed, ir.ReturnStmt(returned, span)], span)
    return ir.Function(
        head.name,
        list(zip(params, boundary.directions, strict=True)),
        [result.type for result in results],
        closed,
        span,
        type=head.func_type,
        level=head.level,
        role=head.role,
        attrs=dict(head.attrs),
    )


def _bind_boundary(
    boundary: Boundary, span: ir.Span
) -> tuple[Substitution, tuple[ir.Var, ...], tuple[ir.Var, ...]]:
    """Return the renaming of the body, the parameters, and the variables of the results.

    The result of a store target is its parameter. Scalars come first: other types may mention them.
    """
    renaming = Substitution()
    captures, outputs = boundary.captures, boundary.outputs
    for old in sorted(
        (*captures.vars, *outputs.regular), key=lambda var: not isinstance(var.type, ir.ScalarType)
    ):
        renaming.set(old, ir.Var(old.name_hint, renaming.type(old.type), span))
    params = tuple(renaming.definition(var) for var in captures.vars)
    results = tuple(renaming.definition(var) for var in outputs.vars)
    return renaming, params, results


def name_store_results(body: ir.Stmt, targets: tuple[ir.Var, ...], variables: VariableNames) -> ir.Stmt:
    """Give every store into a target a result of its own, as SSA form asks for.

    `store(.., T)` and `T = store(.., T)` become `R = store(.., T)`; `v = store(.., T)` keeps its name and
    is followed by `R = v`.
    """
    if not targets:
        return body
    declared: dict[ir.Var, str] = {}

    def result_of(target: ir.Var, span: ir.Span) -> ir.Var:
        previous = declared.get(target)
        name = (
            variables.store_result(target.name_hint) if previous is None else variables.next_version(previous)
        )
        declared.setdefault(target, name)
        return ir.Var(name, target.type, span)

    def rewrite(stmt: ir.Stmt) -> ir.Stmt:
        target = stored_tensor(stmt)
        if target is None or target not in wanted:
            return map_substatements(stmt, rewrite)
        result = result_of(target, stmt.span)
        if isinstance(stmt, ir.EvalStmt):
            named = ir.AssignStmt(result, stmt.expr, stmt.span)
            return ir.attach_leading_comments(named, stmt.leading_comments)
        assert isinstance(stmt, ir.AssignStmt)
        if stmt.var is target:
            return stmt.replace(var=result)
        return ir.flatten_stmts([stmt, ir.AssignStmt(result, stmt.var, stmt.span)], stmt.span)

    wanted = frozenset(targets)
    return rewrite(body)
