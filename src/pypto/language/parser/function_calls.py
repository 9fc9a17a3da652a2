"""Calls of methods (`self.f(...)`) and of functions from outside the program."""

from __future__ import annotations

import ast
from typing import Any

from pypto import ir
from pypto.ir.return_types import deduce_call_return_type, types_of_first_return
from pypto.ir.rewrite import Substitution, is_static_type
from pypto.language.adir import NAME_TO_DIRECTION
from pypto.language.parser.attr_values import attr_items, attr_value, direction_marker
from pypto.language.parser.diagnostics import ParserSyntaxError, ParserTypeError, UndefinedVariableError
from pypto.language.parser.function_parser import FunctionParser
from pypto.language.parser.slots import last_name
from pypto.language.specialisation import Constant, GivenArguments, SpecialisedFunction

SpecialisedArgument = tuple[ir.Expr, ast.expr]  # the value, and how it is written

_KEYWORD_HINTS = {
    "deps": "Dependencies belong to a task: out, tid = pl.submit(self.{name}, ..., deps=[...])",
    "core_num": "Block counts belong to a launch: pl.spmd_submit(self.{name}, ..., core_num=N)",
    "sync_start": "Use pl.spmd_submit(self.{name}, ..., core_num=N, sync_start=True)",
    "dumps": "Mark the tensor before the call: pl.dump_tag(tensor)",
}


def call_method(p: FunctionParser, node: ast.Call, name: str) -> ir.Expr:
    """`self.name(args..., attrs={...}, device=...)`."""
    global_var = find_method(p, name, node)
    args, overrides = call_arguments(p, node.args)
    return _call(p, node, global_var, p.program.functions.get(name), args, overrides, node.keywords)


def call_specialised(p: FunctionParser, node: ast.Call, callee: SpecialisedFunction) -> ir.Expr:
    """A call of a function that is made for its arguments; those may be given by keyword."""
    assert p.specialised is not None
    args, overrides, keywords = specialised_arguments(p, node, node.args, callee)
    function = specialised_function(p, node, callee, args)
    global_var = p.program.global_vars[function.name]
    values = [value for value, _ in args]
    call = _call(p, node, global_var, function, values, overrides, keywords)
    if function.func_type is not ir.FunctionType.Inline or not p.specialised.may_precede(node):
        return call
    # a body takes the place of a statement only: the call becomes one
    result = ir.Var("_inline_tmp", call.type, call.span)
    p.emit(ir.AssignStmt(result, call, call.span))
    return result


def _call(
    p: FunctionParser,
    node: ast.Call,
    global_var: ir.GlobalVar,
    callee: ir.Function | None,
    args: list[ir.Expr],
    overrides: list[int],
    keywords: list[ast.keyword],
) -> ir.Expr:
    name = global_var.name
    written: dict[str, Any] = {}
    device: ir.Expr | None = None
    for keyword in keywords:
        if keyword.arg == "attrs":
            written = dispatch_attrs(p, keyword.value, args)
        elif keyword.arg == "device" and accepts_device(callee):
            device = p.expr(keyword.value)
        else:
            raise reject_keyword(p, keyword, name)
    if callee is not None and len(args) != len(callee.params_):
        raise _wrong_count(p, node, callee, len(args))
    attrs = collect_attrs(p, args, written, overrides, device, dumps=())
    result = call_type(result_types_of(callee, args)) if callee is not None else ir.UnknownType.get()
    return ir.Call(global_var, args, {}, attrs, result, p.span(node))


def call_external(p: FunctionParser, node: ast.Call, function: ir.Function) -> ir.Expr:
    """A call of a function that was defined outside the program; it becomes part of the program."""
    if node.keywords:
        raise ParserTypeError(
            f"Function '{function.name}' does not accept keyword argument '{node.keywords[0].arg}'",
            span=p.span(node),
            hint="Pass arguments by position",
        )
    args, overrides = call_arguments(p, node.args)
    if len(args) != len(function.params_):
        raise _wrong_count(p, node, function, len(args))
    p.program.add_external(function, p.span(node))
    attrs = collect_attrs(p, args, {}, overrides, None, dumps=())
    result = call_type(result_types_of(function, args))
    return ir.Call(ir.GlobalVar(function.name), args, {}, attrs, result, p.span(node))


def _wrong_count(p: FunctionParser, node: ast.Call, callee: ir.Function, given: int) -> ParserTypeError:
    names = ", ".join(param.name_hint for param in callee.params_)
    return ParserTypeError(
        f"Function '{callee.name}' expects {len(callee.params_)} argument(s), got {given}",
        span=p.span(node),
        hint=f"Call it as {ast.unparse(node.func)}({names})",
    )


# -- parts shared with submits -------------------------------------------------------------------------------


def specialised_arguments(
    p: FunctionParser, node: ast.Call, nodes: list[ast.expr], callee: SpecialisedFunction
) -> tuple[list[SpecialisedArgument], list[int], list[ast.keyword]]:
    """The arguments in the order of the parameters, positions under `pl.no_dep(...)`, other keywords.

    `nodes` are the positional ones of the call or submit `node`.

    Raises:
        ParserTypeError: a parameter gets no argument or two, or there are too many.
    """
    names = callee.parameter_names
    given = dict(zip(names, nodes, strict=False))
    others: list[ast.keyword] = []
    for keyword in node.keywords:
        if keyword.arg not in names:
            others.append(keyword)
        elif keyword.arg in given:
            raise ParserTypeError(
                f"Function '{callee.__name__}' got two values for '{keyword.arg}'",
                span=p.span(keyword.value),
                hint="Give each argument once",
            )
        else:
            given[keyword.arg] = keyword.value
    if len(nodes) > len(names) or len(given) < len(names):
        missing = ", ".join(f"'{name}'" for name in names if name not in given)
        raise ParserTypeError(
            f"Function '{callee.__name__}' expects {len(names)} argument(s), got {len(nodes)}"
            + (f"; missing: {missing}" if missing else ""),
            span=p.span(node),
        )
    ordered = [given[name] for name in names]
    values, overrides = call_arguments(p, ordered)
    return list(zip(values, ordered, strict=True)), overrides, others


def specialised_function(
    p: FunctionParser, node: ast.Call, callee: SpecialisedFunction, args: list[SpecialisedArgument]
) -> ir.Function:
    """The version of the callee for these arguments."""
    constants: dict[int, Constant] = {}
    for position, (_, written) in enumerate(args):
        if isinstance(written, ast.Name) and p.specialised is not None and written.id not in p.names:
            value = p.specialised.constants.get(written.id)
            if value is not None:
                constants[position] = value
    return callee.specialise(p.program, GivenArguments([value for value, _ in args], p.span(node), constants))


def find_method(p: FunctionParser, name: str, node: ast.AST) -> ir.GlobalVar:
    """The program's global variable of a method.

    Raises:
        UndefinedVariableError: the program has no such method.
    """
    found = p.program.global_vars.get(name)
    if found is None:
        known = ", ".join(sorted(p.program.global_vars)) or "none"
        raise UndefinedVariableError(
            f"Function '{name}' not defined in program",
            span=p.span(node),
            hint=f"Methods of this program: {known}",
        )
    return found


def accepts_device(callee: ir.Function | None) -> bool:
    """Whether dispatches of the callee may choose a device."""
    return callee is not None and callee.role is ir.Role.Orchestrator


def reject_keyword(p: FunctionParser, keyword: ast.keyword, name: str) -> ParserTypeError:
    """The error for a keyword that a call of `name` does not take."""
    if keyword.arg is None:
        return ParserTypeError(
            f"Function '{name}' does not accept keyword argument '**{ast.unparse(keyword.value)}'",
            span=p.span(keyword.value),
            hint="Write the arguments out, by position",
        )
    hint = _KEYWORD_HINTS.get(keyword.arg or "", "Pass arguments by position")
    return ParserTypeError(
        f"Function '{name}' does not accept keyword argument '{keyword.arg}'",
        span=p.span(keyword.value),
        hint=hint.format(name=name),
    )


def call_arguments(p: FunctionParser, nodes: list[ast.expr]) -> tuple[list[ir.Expr], list[int]]:
    """The arguments of a dispatch, and the positions that were wrapped in `pl.no_dep(...)`."""
    args: list[ir.Expr] = []
    overrides: list[int] = []
    for position, node in enumerate(nodes):
        inner = _strip_no_dep(p, node)
        if inner is not node:
            overrides.append(position)
        args.append(p.expr(inner))
    return args, overrides


def _strip_no_dep(p: FunctionParser, node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Call) and last_name(node.func) == "no_dep":
        if len(node.args) != 1 or node.keywords:
            raise ParserSyntaxError(
                "pl.no_dep() takes exactly one positional argument",
                span=p.span(node),
                hint="Wrap one argument: pl.no_dep(tensor)",
            )
        node = node.args[0]
    return node


def dispatch_attrs(p: FunctionParser, node: ast.expr, args: list[ir.Expr]) -> dict[str, Any]:
    """The `attrs={...}` of a method call or submit."""
    attrs: dict[str, Any] = {}
    for key, value in attr_items(p, node):
        if key == "arg_directions":
            directions = _directions(p, value)
            if directions and len(directions) != len(args):
                raise ParserTypeError(
                    f"attrs['arg_directions'] must match positional arg count: {len(directions)} directions "
                    f"for {len(args)} arguments",
                    span=p.span(value),
                    hint="Write one direction per argument",
                )
            if directions:
                attrs[key] = directions
        elif key == "dump_vars":
            attrs[key] = dump_arguments(p, value, args, "attrs['dump_vars']", "call")
        elif key == "manual_dep_edges":
            raise ParserTypeError(
                "'manual_dep_edges' is not accepted on a call",
                span=p.span(value),
                hint="Write deps=[...] on pl.submit(...)",
            )
        else:
            attrs[key] = attr_value(p, value)
    return attrs


def _directions(p: FunctionParser, node: ast.expr) -> list[ir.ArgDirection]:
    if not isinstance(node, ast.List):
        raise ParserTypeError(
            "attrs['arg_directions'] must be a list literal",
            span=p.span(node),
            hint="Write [pl.adir.input, ...], one per argument",
        )
    found: list[ir.ArgDirection] = []
    for element in node.elts:
        if not (isinstance(element, ast.Attribute) and last_name(element.value) == "adir"):
            raise ParserTypeError(
                "attrs['arg_directions'] must contain 'pl.adir.<name>' references only",
                span=p.span(element),
                hint="Write [pl.adir.input, ...], one per argument",
            )
        direction = direction_marker(element)
        if direction is None:
            raise ParserTypeError(
                f"Unknown call-site direction marker 'pl.adir.{element.attr}'",
                span=p.span(element),
                hint="Valid names: " + ", ".join(sorted(NAME_TO_DIRECTION)),
            )
        found.append(direction)
    return found


def dump_arguments(
    p: FunctionParser, node: ast.expr, args: list[ir.Expr], what: str, owner: str
) -> list[ir.Var]:
    """Tensor variables listed for dumping; each must be an argument of the dispatch."""
    if not isinstance(node, (ast.List, ast.Tuple)):
        raise ParserTypeError(
            f"{what} must be a list of tensor variables", span=p.span(node), hint="Write [a, b]"
        )
    found: dict[ir.Var, None] = {}
    for element in node.elts:
        value = p.names.lookup(element.id) if isinstance(element, ast.Name) else None
        if not isinstance(value, ir.Var) or not isinstance(value.type, ir.TensorType):
            raise ParserTypeError(
                f"{what} entries must be tensor variables",
                span=p.span(element),
                hint="List names of tensors only",
            )
        if not any(argument is value for argument in args):
            raise ParserTypeError(
                f"{what} entry '{ast.unparse(element)}' is not an argument of this {owner}",
                span=p.span(element),
                hint="Only arguments of the call can be dumped",
            )
        found[value] = None
    return list(found)


def collect_attrs(
    p: FunctionParser,
    args: list[ir.Expr],
    written: dict[str, Any],
    overrides: list[int],
    device: ir.Expr | None,
    dumps: list[ir.Var] | tuple[()],
) -> dict[str, Any]:
    """All attributes of a dispatch in their stored order."""
    if not (written or overrides or device is not None or dumps or p.dump_tagged):
        return {}
    attrs: dict[str, Any] = {}
    dumped = {*dumps, *written.pop("dump_vars", ()), *p.dump_tagged}
    dump_vars = list(dict.fromkeys(arg for arg in args if isinstance(arg, ir.Var) and arg in dumped))
    if dump_vars:
        attrs["dump_vars"] = dump_vars
    attrs |= written
    if overrides:
        attrs["arg_direction_overrides"] = overrides
    if device is not None:
        attrs["device"] = device
    return attrs


def result_types_of(
    callee: ir.Function, args: list[ir.Expr], *, declared_only: bool = False
) -> list[ir.Type] | None:
    """The result types of a dispatch in the caller's terms; None when nothing is known."""
    types: list[ir.Type] | None = callee.return_types
    if not types:
        if declared_only:
            return []
        types = types_of_first_return(callee.body)
        if types is None:
            return None
    params = callee.params_[: len(args)]
    deduced = deduce_call_return_type(params, args, types)
    if all(is_static_type(each) for each in deduced):
        return deduced
    # What is left of scalar parameters in extents is known here: the arguments.
    scalars = {
        param: arg for param, arg in zip(params, args, strict=True) if isinstance(param.type, ir.ScalarType)
    }
    return [Substitution(scalars).type(each) for each in deduced] if scalars else deduced


def call_type(types: list[ir.Type] | None) -> ir.Type:
    """The type of a call with these results."""
    if not types:
        return ir.UnknownType.get()
    return types[0] if len(types) == 1 else ir.TupleType(types)
