"""MaterializeRuntimeScopes: the regions of the task graph that an orchestration opens become explicit.

The body of an orchestration, each `for` body and each branch run in a runtime scope of their own: what is
allocated there is released there. This pass writes these scopes down. It opens none

- inside a manual scope, whose tasks are ordered by hand;
- around the body of a `while`;
- where there is one already;
- in a function with attribute `auto_scope=False`, whose author places scopes by hand.

Afterwards every orchestration has `auto_scope=False`: what is not written down is not there.
"""

from __future__ import annotations

from pypto import ir
from pypto.ir.walk import map_substatements
from pypto.passes.base import IRProperty, Pass, PassProperties, create_program_pass, property_set

__all__ = ["materialize_runtime_scopes"]

_PROPERTIES = PassProperties(
    required=property_set(IRProperty.SplitIncoreOrch, IRProperty.CallDirectionsResolved),
    produced=property_set(IRProperty.RuntimeScopesMaterialized),
)

_DONE = "auto_scope"


def materialize_runtime_scopes() -> Pass:
    """Return the pass that makes automatic runtime scopes explicit."""
    return create_program_pass(_materialize, "MaterializeRuntimeScopes", _PROPERTIES)


def _materialize(program: ir.Program) -> ir.Program:
    return program.replace(functions=[_in_function(function) for function in program.functions_.values()])


def _in_function(function: ir.Function) -> ir.Function:
    if function.func_type is not ir.FunctionType.Orchestration or function.attrs_.get(_DONE) is False:
        return function
    return function.replace(body=_in_scope(_inside(function.body)), attrs={**function.attrs_, _DONE: False})


def _inside(stmt: ir.Stmt) -> ir.Stmt:
    """Open the scopes inside a statement."""
    if isinstance(stmt, ir.RuntimeScopeStmt) and stmt.manual:
        return stmt
    if isinstance(stmt, ir.ForStmt):
        return stmt.replace(body=_in_scope(_inside(stmt.body)))
    if isinstance(stmt, ir.IfStmt):
        else_body = None if stmt.else_body is None else _in_scope(_inside(stmt.else_body))
        return stmt.replace(then_body=_in_scope(_inside(stmt.then_body)), else_body=else_body)
    return map_substatements(stmt, _inside)


def _in_scope(body: ir.Stmt) -> ir.Stmt:
    if isinstance(body, ir.RuntimeScopeStmt) and not body.manual:
        return body
    return ir.RuntimeScopeStmt(manual=False, body=body, span=body.span)
