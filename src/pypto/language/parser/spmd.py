"""`pl.spmd` in its three forms: a launched kernel call, an inline kernel body, and the loop over block
indices."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pypto import ir
from pypto.ir.op_registry import create_op_call
from pypto.language.inline_function import InlineFunction
from pypto.language.parser.comments import header_end
from pypto.language.parser.diagnostics import ParserSyntaxError
from pypto.language.parser.function_parser import Frame, FunctionParser, to_body
from pypto.language.parser.inline_calls import Lookup, calls_in, inline_calls
from pypto.language.parser.launch import bool_literal, name_hint_literal, parse_core_num
from pypto.language.parser.optimization_entries import Optimizations, parse_optimizations
from pypto.language.parser.predicates import parse_predicate
from pypto.language.parser.scope_parts import (
    bind_task_id,
    emit_scope,
    merged_dump_vars,
    task_name,
    with_attrs,
)
from pypto.language.parser.slots import dotted_name, last_name
from pypto.language.parser.split_aiv import LOOP_KEYWORDS
from pypto.language.parser.task_ids import parse_deps
from pypto.language.specialisation import SpecialisedFunction

_KEYWORDS = (
    "core_num", "sync_start", "name_hint", "optimizations", "deps", "allow_early_resolve", "predicate",
    "dumps",
)  # fmt: skip
_SUFFIX = "_spmd"


@dataclass(frozen=True, slots=True)
class SpmdLaunch:
    """The arguments of `pl.spmd(...)`."""

    core_num: ir.Expr
    sync_start: bool
    name_hint: str
    optimizations: Optimizations | None  # None when not written
    deps: list[ir.Expr]
    allow_early_resolve: bool
    predicate: ir.Expr | None
    dumps: list[ir.Var]  # listed and tagged

    def attrs(self, task_id: ir.Var | None, *, with_dumps: bool) -> dict[str, Any]:
        """The attributes of the launch, in stored order."""
        attrs: dict[str, Any] = {}
        if self.deps:
            attrs["manual_dep_edges"] = self.deps
        if with_dumps and self.dumps:
            attrs["dump_vars"] = self.dumps
        if task_id is not None:
            attrs["task_id_var"] = task_id
        if self.allow_early_resolve:
            attrs["allow_early_resolve"] = True
        if self.predicate is not None:
            attrs["predicate"] = self.predicate
        return attrs


def parse_spmd_scope(p: FunctionParser, node: ast.With, call: ast.Call) -> None:
    """`with pl.spmd(n) [as tid]:`"""
    comments: list[str] = []
    if p.comments is not None:
        comments = p.comments.take(header_end(p.source, node.items[0].optional_vars or call))
    name = task_name(p, node)
    if name is not None and p.inside("cluster"):
        raise ParserSyntaxError(
            "pl.spmd(...) cannot capture a TaskId when nested inside `pl.cluster()`: a cluster is launched "
            "as one task, so the id would be lost; remove 'as'",
            span=p.span(call),
            hint="Capture the id of a task outside of the cluster",
        )
    launch = _launch(p, call)
    carrier = _explicit_carrier(node.body)
    if carrier is not None:
        _reject_carrier_optimizations(p, call, launch, carrier)
        synthesise = False
    else:
        synthesise = _needs_kernel(p, node, call, launch)
    task_id = bind_task_id(p, name, call, launch.deps)
    split = launch.optimizations.split if launch.optimizations is not None else None
    frame = Frame("spmd", incore=synthesise, written_split=split is not None)
    statements = _body(p, node.body, frame)
    if task_id is not None and name is not None:
        _record_producers(p, statements, name, task_id)
    body = to_body(statements, p.source.head_span(node))
    emit_scope(p, _assemble(p, node, launch, body, task_id, synthesise=synthesise), comments)


def parse_spmd_loop(p: FunctionParser, node: ast.For, call: ast.Call) -> None:
    """`for i in pl.spmd(n):`"""
    comments: list[str] = []
    if p.comments is not None:
        comments = p.comments.take(header_end(p.source, call))
    if not isinstance(node.target, ast.Name):
        raise ParserSyntaxError(
            "pl.spmd() must use a single loop variable",
            span=p.span(node.target),
            hint="Write for i in pl.spmd(n):",
        )
    for keyword in call.keywords:
        if keyword.arg in LOOP_KEYWORDS:
            raise ParserSyntaxError(
                f"pl.spmd() loop form does not accept '{keyword.arg}='",
                span=p.span(keyword.value),
                hint="Write for i in pl.spmd(n): and use pl.range for other loops",
            )
    launch = _launch(p, call)
    split = launch.optimizations.split if launch.optimizations is not None else None
    frame = Frame("spmd", incore=True, written_split=split is not None)
    statements = _body(p, node.body, frame, block_index=node.target, call=call)
    body = to_body(statements, p.source.head_span(node))
    emit_scope(p, _assemble(p, node, launch, body, None, synthesise=True), comments)


# -- arguments -----------------------------------------------------------------------------------------------


def _launch(p: FunctionParser, call: ast.Call) -> SpmdLaunch:
    span = p.span(call)
    if len(call.args) > 1:
        raise ParserSyntaxError(
            "pl.spmd() accepts at most one positional argument", span=span, hint="Write pl.spmd(n)"
        )
    given: dict[str, ast.expr] = {"core_num": call.args[0]} if call.args else {}
    for keyword in call.keywords:
        if keyword.arg is None:
            raise ParserSyntaxError(
                "pl.spmd() does not accept **kwargs", span=span, hint="Write the keywords out"
            )
        if keyword.arg in given:
            raise ParserSyntaxError(
                f"pl.spmd() got multiple values for argument '{keyword.arg}'", span=span, hint="Give it once"
            )
        if keyword.arg not in _KEYWORDS:
            raise ParserSyntaxError(
                f"pl.spmd() got unexpected keyword argument '{keyword.arg}'",
                span=p.span(keyword.value),
                hint="Supported: " + ", ".join(_KEYWORDS),
            )
        given[keyword.arg] = keyword.value
    if "core_num" not in given:
        raise ParserSyntaxError("pl.spmd() requires core_num", span=span, hint="Write pl.spmd(8)")
    core_num = parse_core_num(p, given["core_num"], "pl.spmd")
    early = "allow_early_resolve" in given and bool_literal(
        p, given["allow_early_resolve"], "allow_early_resolve"
    )
    if p.inside("cluster"):
        _reject_in_cluster(p, given, early)
    deps = parse_deps(p, given["deps"]) if "deps" in given else []
    predicate = None
    if "predicate" in given:
        remedy = "Add deps=[{0}]" if "deps" in given else "Write with pl.spmd(..., deps=[{0}]) as tid:"
        predicate = parse_predicate(p, given["predicate"], deps, remedy)
    return SpmdLaunch(
        core_num,
        "sync_start" in given and bool_literal(p, given["sync_start"], "sync_start"),
        name_hint_literal(p, given["name_hint"]) if "name_hint" in given else "",
        parse_optimizations(p, given["optimizations"], "pl.spmd") if "optimizations" in given else None,
        deps,
        early,
        predicate,
        merged_dump_vars(p, given.get("dumps"), "pl.spmd"),
    )


def _reject_in_cluster(p: FunctionParser, given: dict[str, ast.expr], early: bool) -> None:
    refused = [("deps", "deps" in given), ("allow_early_resolve", early), ("predicate", "predicate" in given)]
    for name, present in refused:
        if present:
            raise ParserSyntaxError(
                f"pl.spmd(..., {name}=...) cannot be nested inside `pl.cluster()`: a cluster is launched "
                f"as one task, so {name}= would be lost",
                span=p.span(given[name]),
                hint=f"Remove {name}=, or launch the pl.spmd outside the cluster",
            )


# -- what kind of body ---------------------------------------------------------------------------------------


def _explicit_carrier(body: list[ast.stmt]) -> ast.Call | None:
    """The `pl.at(CORE_GROUP)` call when the body is exactly one such scope."""
    if len(body) != 1 or not isinstance(body[0], ast.With) or len(body[0].items) != 1:
        return None
    call = body[0].items[0].context_expr
    if not isinstance(call, ast.Call) or dotted_name(call.func) != "pl.at":
        return None
    levels = [*call.args[:1], *(keyword.value for keyword in call.keywords if keyword.arg == "level")]
    return call if levels and last_name(levels[0]) == "CORE_GROUP" else None


def _reject_carrier_optimizations(
    p: FunctionParser, call: ast.Call, launch: SpmdLaunch, carrier: ast.Call
) -> None:
    if launch.optimizations is None or launch.optimizations.is_empty:
        return
    if any(keyword.arg == "optimizations" for keyword in carrier.keywords):
        raise ParserSyntaxError(
            "optimizations= is specified twice, on pl.spmd() and on the pl.at() inside",
            span=p.span(call),
            hint="Keep those of the pl.at inside",
        )
    raise ParserSyntaxError(
        "optimizations= belongs on the InCore scope inside pl.spmd()",
        span=p.span(call),
        hint="Write them on the pl.at inside",
    )


def _needs_kernel(p: FunctionParser, node: ast.With, call: ast.Call, launch: SpmdLaunch) -> bool:
    """Whether the body is kernel code; otherwise it dispatches exactly one kernel."""
    if _reads_block_index(node.body, p.closure.lookup, set()):
        return True
    dispatches = sum(_is_dispatch(p, inner) for inner in calls_in(node.body))
    optimised = launch.optimizations is not None and not launch.optimizations.is_empty
    if dispatches == 1 or (optimised and p.source.is_text):
        return optimised
    if dispatches == 0:
        raise ParserSyntaxError(
            "The body of pl.spmd() neither reads the per-block index nor launches a kernel",
            span=p.span(call),
            hint="Call one kernel, read pl.tile.get_block_idx(), or use: for i in pl.spmd(n):",
        )
    raise ParserSyntaxError(
        f"The body of pl.spmd() launches {dispatches} kernels; it must launch exactly one",
        span=p.span(call),
        hint="Give each launch a pl.spmd() of its own",
    )


def _reads_block_index(body: Sequence[ast.stmt], lookup: Lookup, seen: set[int]) -> bool:
    """Whether the body, or an inline helper that will stand in it, asks for the block index."""
    if any(last_name(call.func) == "get_block_idx" for call in calls_in(body)):
        return True
    for _, helper in inline_calls(body, lookup):
        if id(helper) not in seen:
            seen.add(id(helper))
            if _reads_block_index(helper.func_def.body, helper.closure_vars.get, seen):
                return True
    return False


_CALLABLE = (ir.Function, InlineFunction, SpecialisedFunction)


def _is_dispatch(p: FunctionParser, call: ast.Call) -> bool:
    func = call.func
    if isinstance(func, ast.Attribute):
        return isinstance(func.value, ast.Name) and func.value.id == "self"
    return isinstance(func, ast.Name) and isinstance(p.closure.lookup(func.id), _CALLABLE)


# -- building ------------------------------------------------------------------------------------------------


def _body(
    p: FunctionParser,
    body: list[ast.stmt],
    frame: Frame,
    block_index: ast.Name | None = None,
    call: ast.Call | None = None,
) -> list[ir.Stmt]:
    p.frames.append(frame)
    p.names.push()
    outer = p.statements
    p.statements = []
    try:
        if block_index is not None and call is not None:
            index = create_op_call("tile.get_block_idx", [], p.span(call))
            variable = p.program.variable(p.function_name, block_index.id, index.type, p.span(block_index))
            p.bind_new(block_index.id, variable, allow_redefinition=True)
            p.emit(ir.AssignStmt(variable, index, p.span(block_index)))
        p.parse_statements(body)
        return p.statements
    finally:
        p.statements = outer
        p.frames.pop()
        p.names.pop_leaking()


def _record_producers(p: FunctionParser, statements: list[ir.Stmt], name: str, task_id: ir.Var) -> None:
    version = p.task_id_versions.get(task_id, 0)
    for stmt in statements:
        if isinstance(stmt, ir.AssignStmt):
            p.producers[stmt.var] = (name, task_id, version)


def _assemble(
    p: FunctionParser,
    node: ast.With | ast.For,
    launch: SpmdLaunch,
    body: ir.Stmt,
    task_id: ir.Var | None,
    *,
    synthesise: bool,
) -> ir.SpmdScopeStmt:
    """The launch around its body, with a kernel scope in between where one is needed."""
    span = p.source.head_span(node)
    attrs = launch.attrs(task_id, with_dumps=not synthesise)
    hint = launch.name_hint
    if synthesise:
        kernel_hint = hint.removesuffix(_SUFFIX)
        hint = kernel_hint + _SUFFIX if kernel_hint else hint
        body = _kernel_scope(launch, kernel_hint, body, span)
    return with_attrs(ir.SpmdScopeStmt(launch.core_num, launch.sync_start, hint, body, span), attrs)


def _kernel_scope(launch: SpmdLaunch, name_hint: str, body: ir.Stmt, span: ir.Span) -> ir.InCoreScopeStmt:
    optimizations = launch.optimizations or Optimizations()
    attrs: dict[str, Any] = {}
    if launch.dumps:
        attrs["dump_vars"] = launch.dumps
    if optimizations.slot_num is not None:
        attrs["slot_num"] = optimizations.slot_num
    return with_attrs(
        ir.InCoreScopeStmt(optimizations.split or ir.SplitMode.NONE, name_hint, body, span), attrs
    )
