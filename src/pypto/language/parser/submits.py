"""`pl.submit` and `pl.spmd_submit`: launching a kernel as a task."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any, NoReturn

from pypto import ir
from pypto.language.parser.annotations import result_types
from pypto.language.parser.diagnostics import ParserSyntaxError, ParserTypeError
from pypto.language.parser.function_calls import (
    accepts_device,
    call_arguments,
    collect_attrs,
    dispatch_attrs,
    dump_arguments,
    find_method,
    reject_keyword,
    result_types_of,
    specialised_arguments,
    specialised_function,
)
from pypto.language.parser.function_parser import FunctionParser
from pypto.language.parser.launch import bool_literal, parse_core_num
from pypto.language.parser.predicates import parse_predicate
from pypto.language.parser.slots import dotted_name, last_name
from pypto.language.parser.task_ids import parse_deps
from pypto.language.specialisation import SpecialisedFunction

_SUBMITS = ("pl.submit", "pl.spmd_submit")
_LEAVES = ("submit", "spmd_submit")
_LAUNCH_FIELDS = ("deps", "core_num", "sync_start", "allow_early_resolve", "predicate")


def is_submit(node: ast.expr | None) -> bool:
    """Whether an expression is a submit call."""
    return (
        isinstance(node, ast.Call) and last_name(node.func) in _LEAVES and dotted_name(node.func) in _SUBMITS
    )


def reject_bare_submit(p: FunctionParser, node: ast.Call) -> NoReturn:
    """A submit whose results nobody takes."""
    name = dotted_name(node.func)
    raise ParserSyntaxError(
        f"{name}(...) must be unpacked as a 2-tuple",
        span=p.span(node),
        hint=f"Write: out, tid = {name}(self.kernel, ...)",
    )


@dataclass(slots=True)
class _Launch:
    """The keywords of a submit."""

    deps: list[ir.Expr] = field(default_factory=list)
    dumps: list[ir.Var] = field(default_factory=list)
    attrs: dict[str, Any] = field(default_factory=dict)
    device: ir.Expr | None = None
    core_num: ir.Expr | None = None
    sync_start: bool = False
    allow_early_resolve: bool = False
    predicate: ir.Expr | None = None


def parse_submit(p: FunctionParser, node: ast.Call) -> ir.Submit:
    """The submit of a call; statements that gather its dependencies are emitted before."""
    name = dotted_name(node.func) or ""
    specialised = _specialised_kernel(p, node)
    callee: ir.Function | None
    keywords = node.keywords
    if specialised is not None:
        given, overrides, keywords = specialised_arguments(p, node, node.args[1:], specialised)
        callee = specialised_function(p, node, specialised, given)
        kernel, global_var = callee.name, p.program.global_vars[callee.name]
        args = [value for value, _ in given]
    else:
        kernel = _kernel(p, node, name)
        global_var = find_method(p, kernel, node.args[0])
        callee = p.program.functions.get(kernel)
        args, overrides = call_arguments(p, node.args[1:])
    if callee is not None:
        _check_count(p, callee, len(args), node)
    launch = _launch(p, node, keywords, name, callee, kernel, args)
    attrs = collect_attrs(p, args, launch.attrs, overrides, launch.device, launch.dumps)
    return ir.Submit(
        global_var,
        args,
        launch.deps,
        {},
        attrs,
        _submit_type(p, callee, kernel, args),
        p.span(node),
        core_num=launch.core_num,
        sync_start=launch.sync_start,
        allow_early_resolve=launch.allow_early_resolve,
        predicate=launch.predicate,
    )


def _specialised_kernel(p: FunctionParser, node: ast.Call) -> SpecialisedFunction | None:
    if p.specialised is None or not node.args:
        return None
    value = p.closure.lookup_path(node.args[0])
    return value if isinstance(value, SpecialisedFunction) else None


def _kernel(p: FunctionParser, node: ast.Call, name: str) -> str:
    if not node.args:
        raise ParserSyntaxError(
            f"{name}(...) requires the kernel as its first argument",
            span=p.span(node),
            hint=f"Write {name}(self.kernel, arg0, ...)",
        )
    first = node.args[0]
    if isinstance(first, ast.Attribute) and isinstance(first.value, ast.Name) and first.value.id == "self":
        return first.attr
    raise ParserSyntaxError(
        f"{name}(...) first argument must be a `self.<kernel>` method reference",
        span=p.span(first),
        hint=f"Write {name}(self.kernel, arg0, ...), not {name}(self.kernel(arg0, ...))",
    )


def _check_count(p: FunctionParser, callee: ir.Function, count: int, node: ast.Call) -> None:
    highest = len(callee.params_)
    lowest = sum(direction is ir.ParamDirection.In for direction in callee.param_directions_)
    if not lowest <= count <= highest:
        raise ParserTypeError(
            f"Function '{callee.name}' expects {lowest}..{highest} argument(s), got {count}",
            span=p.span(node),
            hint="Parameters with direction Out or InOut may be left out at the end",
        )


def _launch(
    p: FunctionParser,
    node: ast.Call,
    keywords: list[ast.keyword],
    name: str,
    callee: ir.Function | None,
    kernel: str,
    args: list[ir.Expr],
) -> _Launch:
    launch = _Launch()
    is_spmd = name == "pl.spmd_submit"
    values = {keyword.arg: keyword.value for keyword in keywords}
    if p.inside("cluster"):
        given = [key for key in _LAUNCH_FIELDS if key in values]
        if given:
            raise ParserSyntaxError(
                f"{name}(...) inside pl.cluster() cannot carry per-task dispatch metadata: "
                f"{', '.join(given)}",
                span=p.span(node),
                hint="The cluster is one task; put the metadata on its launch",
            )
    for keyword in keywords:
        value = keyword.value
        match keyword.arg:
            case "deps":
                launch.deps = parse_deps(p, value)
            case "dumps":
                launch.dumps = dump_arguments(p, value, args, "dumps=", "submit")
            case "attrs":
                launch.attrs = dispatch_attrs(p, value, args)
            case "allow_early_resolve":
                launch.allow_early_resolve = bool_literal(p, value, "allow_early_resolve")
            case "core_num" if is_spmd:
                launch.core_num = parse_core_num(p, value, name)
            case "sync_start" if is_spmd:
                launch.sync_start = bool_literal(p, value, "sync_start")
            case "device" if accepts_device(callee):
                launch.device = p.expr(value)
            case "predicate":
                pass  # needs the dependencies, which may be written after it
            case _:
                raise reject_keyword(p, keyword, kernel)
    if is_spmd and launch.core_num is None:
        raise ParserSyntaxError(
            f"{name}(...) requires the core_num keyword argument",
            span=p.span(node),
            hint=f"Write {name}(self.kernel, ..., core_num=8)",
        )
    if "predicate" in values:
        launch.predicate = parse_predicate(p, values["predicate"], launch.deps)
    return launch


def _submit_type(p: FunctionParser, callee: ir.Function | None, kernel: str, args: list[ir.Expr]) -> ir.Type:
    """The declared results of the kernel, then the task id."""
    if callee is not None:
        results = result_types_of(callee, args, declared_only=True) or []
    else:
        definition = p.program.definitions.get(kernel)
        results = result_types(p, definition.returns) if definition is not None else []
    return ir.TupleType([*results, ir.ScalarType(ir.DataType.TASK_ID)])
