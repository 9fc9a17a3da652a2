"""`with` scopes: `pl.at`, `pl.cluster`, `pl.scope`, `pl.manual_scope` (and `pl.spmd`, see its module)."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from pypto import ir
from pypto.language.contexts import ScopeMode
from pypto.language.parser.comments import header_end
from pypto.language.parser.diagnostics import ParserSyntaxError, UnsupportedFeatureError
from pypto.language.parser.function_parser import Frame, FunctionParser, statement, to_body
from pypto.language.parser.launch import bool_literal, name_hint_literal
from pypto.language.parser.optimization_entries import Optimizations, parse_optimizations
from pypto.language.parser.scope_parts import (
    bind_task_id,
    emit_scope,
    merged_dump_vars,
    task_name,
    tensor_names,
    with_attrs,
)
from pypto.language.parser.slots import dotted_name, enum_literal
from pypto.language.parser.spmd import parse_spmd_scope
from pypto.language.parser.task_ids import parse_deps

ScopeHandler = Callable[[FunctionParser, ast.With, ast.Call], None]

_AT_KEYWORDS = (
    "level", "role", "optimizations", "deps", "no_dep_args", "dumps", "allow_early_resolve", "name_hint",
    "windowize",
)  # fmt: skip
_HOST = ir.level_to_linqu_level(ir.Level.HOST)


@statement(ast.With)
def parse_with(p: FunctionParser, node: ast.With) -> None:
    """One scope."""
    if len(node.items) != 1:
        raise ParserSyntaxError(
            "Only single context manager supported in with statement",
            span=p.span(node),
            hint="Nest the scopes",
        )
    item = node.items[0]
    context = item.context_expr
    name = dotted_name(context.func) if isinstance(context, ast.Call) else None
    handler = _SCOPES.get(name or "")
    if handler is None or not isinstance(context, ast.Call):
        raise UnsupportedFeatureError(
            f"Unsupported context manager: {ast.unparse(context)}",
            span=p.span(context),
            hint="Use pl.at(level=...), pl.cluster(), pl.spmd(n), pl.scope() or pl.manual_scope()",
        )
    if item.optional_vars is not None and name not in ("pl.at", "pl.spmd"):
        raise ParserSyntaxError(
            "'as' only applies to 'with pl.at(...) as tid:' and 'with pl.spmd(...) as tid:'",
            span=p.span(item.optional_vars),
            hint="Other scopes have no task id: leave as out",
        )
    handler(p, node, context)


def header_comments(p: FunctionParser, node: ast.With) -> list[str]:
    """The comments of a scope's header."""
    if p.comments is None:
        return []
    item = node.items[0]
    return p.comments.take(header_end(p.source, item.optional_vars or item.context_expr))


def scope_block(p: FunctionParser, node: ast.With, frame: Frame) -> ir.Stmt:
    """Parse the body of a scope; its names leak outward."""
    p.frames.append(frame)
    p.names.push()
    try:
        return to_body(p.block(node.body), p.source.head_span(node))
    finally:
        p.frames.pop()
        p.names.pop_leaking()


# -- pl.at ---------------------------------------------------------------------------------------------------


def at_arguments(p: FunctionParser, call: ast.Call) -> dict[str, ast.expr]:
    """The arguments of `pl.at(...)` by name."""
    span = p.span(call)
    if len(call.args) > 2:
        raise ParserSyntaxError(
            "pl.at() takes at most 2 positional arguments", span=span, hint="Write pl.at(level=..., role=...)"
        )
    arguments = dict(zip(("level", "role"), call.args, strict=False))
    for keyword in call.keywords:
        if keyword.arg is None:
            raise ParserSyntaxError(
                "Unsupported **kwargs in pl.at()", span=span, hint="Write the keywords out"
            )
        if keyword.arg in arguments:
            raise ParserSyntaxError(
                f"pl.at() got multiple values for argument '{keyword.arg}'", span=span, hint="Give it once"
            )
        if keyword.arg not in _AT_KEYWORDS:
            raise ParserSyntaxError(
                f"Unknown keyword argument '{keyword.arg}' in pl.at()",
                span=p.span(keyword.value),
                hint=f"Supported: {', '.join(_AT_KEYWORDS)}",
            )
        arguments[keyword.arg] = keyword.value
    if "level" not in arguments:
        raise ParserSyntaxError(
            "pl.at() requires a level argument", span=span, hint="Write pl.at(level=pl.Level.CORE_GROUP)"
        )
    return arguments


def _parse_at(p: FunctionParser, node: ast.With, call: ast.Call) -> None:
    comments = header_comments(p, node)
    arguments = at_arguments(p, call)
    level = enum_literal(p, arguments["level"], ir.Level)
    role = _role(p, arguments.get("role"))
    is_kernel = level is ir.Level.CORE_GROUP
    _check_place(p, call, level, role, arguments)
    optimizations = Optimizations()
    if "optimizations" in arguments:
        optimizations = parse_optimizations(p, arguments["optimizations"], "pl.at")
    name_hint = name_hint_literal(p, arguments["name_hint"]) if "name_hint" in arguments else ""
    attrs = _at_attrs(p, arguments)
    task_id = bind_task_id(p, task_name(p, node), call, attrs.get("manual_dep_edges", ()))
    if task_id is not None:
        attrs["task_id_var"] = task_id
    if _flag(p, arguments, "allow_early_resolve"):
        attrs["allow_early_resolve"] = True
    if optimizations.slot_num is not None:
        attrs["slot_num"] = optimizations.slot_num
    if _flag(p, arguments, "windowize"):
        attrs["windowize"] = True
    frame = Frame("at", incore=is_kernel, written_split=optimizations.split is not None)
    body = scope_block(p, node, frame)
    span = p.source.head_span(node)
    scope: ir.ScopeStmt
    if is_kernel:
        scope = ir.InCoreScopeStmt(optimizations.split or ir.SplitMode.NONE, name_hint, body, span)
    else:
        scope = ir.HierarchyScopeStmt(level, role, name_hint, body, span)
    emit_scope(p, with_attrs(scope, attrs), comments)


def _flag(p: FunctionParser, arguments: dict[str, ast.expr], name: str) -> bool:
    return name in arguments and bool_literal(p, arguments[name], name)


def _role(p: FunctionParser, node: ast.expr | None) -> ir.Role | None:
    if node is None or (isinstance(node, ast.Constant) and node.value is None):
        return None
    return enum_literal(p, node, ir.Role)


def _check_place(
    p: FunctionParser, call: ast.Call, level: ir.Level, role: ir.Role | None, arguments: dict[str, ast.expr]
) -> None:
    span = p.span(call)
    if level is ir.Level.CORE_GROUP:
        if role is not None:
            raise ParserSyntaxError(
                "role= is not supported with level=pl.Level.CORE_GROUP",
                span=span,
                hint="Leave role out: a core group runs kernels",
            )
        return
    if "optimizations" in arguments:
        raise ParserSyntaxError(
            "optimizations are only supported with level=pl.Level.CORE_GROUP",
            span=span,
            hint="Put them on the pl.at(level=pl.Level.CORE_GROUP) inside",
        )
    if role is ir.Role.SubWorker and ir.level_to_linqu_level(level) >= _HOST:
        raise ParserSyntaxError(
            f"Inline pl.at(level=pl.Level.{level.name}, role=pl.Role.SubWorker) is not supported",
            span=span,
            hint="Write the sub-worker as a method of its own and call it",
        )


def _at_attrs(p: FunctionParser, arguments: dict[str, ast.expr]) -> dict[str, Any]:
    """The attributes that are stored before the task id."""
    attrs: dict[str, Any] = {}
    if "deps" in arguments:
        deps = parse_deps(p, arguments["deps"])
        if deps:
            attrs["manual_dep_edges"] = deps
    if "no_dep_args" in arguments:
        tensors = tensor_names(p, arguments["no_dep_args"], "pl.at(no_dep_args=...)")
        if tensors:
            attrs["arg_direction_overrides_vars"] = tensors
    dumped = merged_dump_vars(p, arguments.get("dumps"), "pl.at")
    if dumped:
        attrs["dump_vars"] = dumped
    return attrs


# -- pl.cluster ----------------------------------------------------------------------------------------------


def _parse_cluster(p: FunctionParser, node: ast.With, call: ast.Call) -> None:
    comments = header_comments(p, node)
    if call.args:
        raise ParserSyntaxError(
            "pl.cluster() does not accept positional arguments",
            span=p.span(call),
            hint="Write pl.cluster() or pl.cluster(name_hint='name')",
        )
    given: dict[str, ast.expr] = {}
    for keyword in call.keywords:
        if keyword.arg not in ("name_hint", "dumps"):
            raise ParserSyntaxError(
                f"pl.cluster() got unexpected keyword argument '{keyword.arg}'",
                span=p.span(keyword.value),
                hint="pl.cluster has the keywords name_hint= and dumps=",
            )
        given[keyword.arg] = keyword.value
    name_hint = name_hint_literal(p, given["name_hint"]) if "name_hint" in given else ""
    dumped = merged_dump_vars(p, given.get("dumps"), "pl.cluster")
    body = scope_block(p, node, Frame("cluster"))
    scope = ir.ClusterScopeStmt(name_hint, body, p.source.head_span(node))
    emit_scope(p, with_attrs(scope, {"dump_vars": dumped} if dumped else {}), comments)


# -- runtime scopes ------------------------------------------------------------------------------------------


def _parse_scope(p: FunctionParser, node: ast.With, call: ast.Call) -> None:
    if call.args:
        raise ParserSyntaxError(
            "pl.scope() takes only a 'mode=' keyword",
            span=p.span(call),
            hint="Write pl.scope(mode=pl.ScopeMode.MANUAL)",
        )
    mode = ScopeMode.AUTO
    for keyword in call.keywords:
        if keyword.arg != "mode":
            raise ParserSyntaxError(
                f"pl.scope() got an unexpected keyword '{keyword.arg}'",
                span=p.span(keyword.value),
                hint="pl.scope has the one keyword mode=",
            )
        mode = enum_literal(p, keyword.value, ScopeMode)
    _runtime_scope(p, node, call, mode)


def _parse_manual_scope(p: FunctionParser, node: ast.With, call: ast.Call) -> None:
    if call.args or call.keywords:
        raise ParserSyntaxError(
            "pl.manual_scope() does not accept arguments", span=p.span(call), hint="Write pl.manual_scope()"
        )
    _runtime_scope(p, node, call, ScopeMode.MANUAL)


def _runtime_scope(p: FunctionParser, node: ast.With, call: ast.Call, mode: ScopeMode) -> None:
    comments = header_comments(p, node)
    span = p.span(call)
    in_manual = p.inside("manual_scope")
    if mode is ScopeMode.MANUAL and in_manual:
        raise ParserSyntaxError(
            "a manual scope may not be nested inside another manual scope",
            span=span,
            hint="Leave the inner scope out: the outer one is manual already",
        )
    if mode is ScopeMode.AUTO:
        if p.auto_scope:
            raise ParserSyntaxError(
                "pl.scope() requires @pl.function(auto_scope=False)",
                span=span,
                hint="Automatic scopes are placed by the compiler unless the function opts out",
            )
        if in_manual:
            raise ParserSyntaxError(
                "an AUTO scope may not be nested inside a manual scope",
                span=span,
                hint="Close the manual scope first",
            )
    is_manual = mode is ScopeMode.MANUAL
    body = scope_block(p, node, Frame("manual_scope" if is_manual else "auto_scope"))
    emit_scope(p, ir.RuntimeScopeStmt(is_manual, "", body, p.source.head_span(node)), comments)


_SCOPES: dict[str, ScopeHandler] = {
    "pl.at": _parse_at,
    "pl.cluster": _parse_cluster,
    "pl.spmd": parse_spmd_scope,
    "pl.scope": _parse_scope,
    "pl.manual_scope": _parse_manual_scope,
}
