"""Steps that several scopes share: capturing a task id, dump lists, attributes, emission."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, TypeVar

from pypto import ir
from pypto.ir.op_registry import create_op_call
from pypto.language.parser.diagnostics import ParserSyntaxError, ParserTypeError
from pypto.language.parser.diagnostics.notices import warn_at
from pypto.language.parser.function_parser import LOOP_KINDS, FunctionParser

_S = TypeVar("_S", bound=ir.ScopeStmt)


def task_name(p: FunctionParser, node: ast.With) -> str | None:
    """The name after `as`, or None."""
    target = node.items[0].optional_vars
    if target is None:
        return None
    if not isinstance(target, ast.Name):
        raise ParserSyntaxError(
            "The 'as' target of a scope must be a plain variable name",
            span=p.span(target),
            hint="Write: as tid",
        )
    return target.id


def bind_task_id(
    p: FunctionParser, name: str | None, call: ast.Call, deps: Sequence[ir.Expr]
) -> ir.Var | None:
    """Introduce the task id of a scope that waits for `deps`: a new variable, with an invalid id until the
    scope is outlined."""
    if name is None:
        return None
    span = p.span(call)
    _warn_of_broken_chain(p, name, deps, span)
    task_id = ir.Var(name, ir.ScalarType(ir.DataType.TASK_ID), span)
    p.emit(ir.AssignStmt(task_id, create_op_call("system.task_invalid", [], span), span))
    p.bind_new(name, task_id, allow_redefinition=True)
    p.task_id_versions[task_id] = 1
    return task_id


def _warn_of_broken_chain(p: FunctionParser, name: str, deps: Sequence[ir.Expr], span: ir.Span) -> None:
    """Each turn of a loop would make a new id and depend on that from before the loop."""
    loop = p.yield_frame()
    if loop is None or loop.kind not in LOOP_KINDS or loop.kind == "parallel":
        return
    if p.names.is_from_outside(name) and any(dep is p.names.lookup(name) for dep in deps):
        warn_at(
            span,
            f"'deps=[{name}]' means the task from before the loop in every turn, since 'as {name}' makes a "
            "new id: to wait for the task of the turn before, write 'as mine' and then "
            f"'{name} = mine', at {span}",
        )


def merged_dump_vars(p: FunctionParser, dumps: ast.expr | None, owner: str) -> list[ir.Var]:
    """The variables a scope dumps: those in its `dumps=`, if any, then those tagged before."""
    listed = [] if dumps is None else tensor_names(p, dumps, f"{owner}(dumps=...)")
    return list(dict.fromkeys([*listed, *p.dump_tagged]))


def tensor_names(p: FunctionParser, node: ast.expr, what: str) -> list[ir.Var]:
    """The tensors that a list display of bare names denotes; `what` names the argument in messages."""
    if not isinstance(node, (ast.List, ast.Tuple)):
        raise ParserTypeError(f"{what} must be a list literal", span=p.span(node), hint="Write [a, b]")
    found: list[ir.Var] = []
    for element in node.elts:
        if not isinstance(element, ast.Name):
            raise ParserTypeError(
                f"{what} entries must be bare tensor names",
                span=p.span(element),
                hint="Assign the value to a name first",
            )
        value = p.names.lookup(element.id)
        if value is None:
            raise ParserTypeError(
                f"{what} references unknown name '{element.id}'",
                span=p.span(element),
                hint="Assign the name before the scope",
            )
        if not isinstance(value, ir.Var) or not isinstance(value.type, ir.TensorType):
            raise ParserTypeError(
                f"{what} entry '{element.id}' is not a tensor",
                span=p.span(element),
                hint="List names of tensors only",
            )
        if any(value is known for known in found):
            raise ParserTypeError(
                f"{what} lists '{element.id}' more than once",
                span=p.span(element),
                hint="List each tensor once",
            )
        found.append(value)
    return found


def with_attrs(scope: _S, attrs: dict[str, Any]) -> _S:
    """The scope with attributes."""
    return scope.replace(attrs=attrs) if attrs else scope


def emit_scope(p: FunctionParser, scope: ir.Stmt, comments: list[str]) -> None:
    """Append a scope together with the comments of its header."""
    if comments:
        ir.attach_leading_comments(scope, comments)
    p.emit(scope)
