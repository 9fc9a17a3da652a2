"""Turning one function definition into an `ir.Function`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pypto import ir
from pypto.ir.return_types import types_of_first_return
from pypto.ir.walk import type_exprs, vars_in, walk_stmts
from pypto.language.parser.annotations import parameter_type, result_types
from pypto.language.parser.closure import BUG_CLASSES, NOT_FOUND, Closure, value_to_ir
from pypto.language.parser.comments import comments_between
from pypto.language.parser.diagnostics import (
    ParserError,
    ParserSyntaxError,
    ParserTypeError,
    concise_error_message,
)
from pypto.language.parser.function_attrs import is_docstring, is_func_attr, parse_prologue, split_prologue
from pypto.language.parser.function_parser import DEFINITION_HINT, FunctionParser, to_body
from pypto.language.parser.program_context import ProgramContext
from pypto.language.parser.source import SourceText
from pypto.language.parser.specialised_body import SpecialisedBody
from pypto.language.specialisation import GivenParameter, Specialisation
from pypto.language.typing import DynVar

_HOST = ir.level_to_linqu_level(ir.Level.HOST)
_T = TypeVar("_T")
_KERNEL_TYPES = (ir.FunctionType.AIC, ir.FunctionType.AIV)


@dataclass(slots=True)
class FunctionOptions:
    """What the decorator says about a function."""

    func_type: ir.FunctionType = ir.FunctionType.Opaque
    level: ir.Level | None = None
    role: ir.Role | None = None
    attrs: dict[str, Any] = field(default_factory=dict)
    auto_scope: bool = True
    strict_ssa: bool = False
    external_source: str | None = None
    specialisation: Specialisation | None = None

    @property
    def is_host_sub_worker(self) -> bool:
        """Whether the function runs as plain Python on a host."""
        return (
            self.role is ir.Role.SubWorker
            and self.level is not None
            and ir.level_to_linqu_level(self.level) >= _HOST
        )

    def stored_attrs(self) -> dict[str, Any]:
        """The attributes of the IR function that come from the decorator."""
        attrs = dict(self.attrs)
        if not self.auto_scope:
            attrs["auto_scope"] = False
        if self.external_source is not None:
            attrs["external_source"] = self.external_source
        return attrs


def define_function(
    source: SourceText,
    node: ast.FunctionDef,
    closure: Closure,
    program: ProgramContext,
    options: FunctionOptions,
    last_line: int | None = None,
) -> ir.Function:
    """Parse a definition. Unexpected errors become `ParserSyntaxError`; bugs of the compiler stay what they
    are."""
    try:
        return _define(source, node, closure, program, options, last_line)
    except ParserError:
        raise
    except BUG_CLASSES:
        raise
    except Exception as error:
        raise ParserSyntaxError(
            f"Failed to parse function '{node.name}': {concise_error_message(error)}",
            span=source.head_span(node) if program.is_program else None,
            hint=DEFINITION_HINT,
        ) from error


def _define(
    source: SourceText,
    node: ast.FunctionDef,
    closure: Closure,
    program: ProgramContext,
    options: FunctionOptions,
    last_line: int | None,
) -> ir.Function:
    parser = FunctionParser(
        source,
        closure,
        program,
        function_name=node.name,
        func_type=options.func_type,
        level=options.level,
        auto_scope=options.auto_scope,
        strict_ssa=options.strict_ssa,
    )
    end = last_line if last_line is not None else _with_trailing_comments(source, node)
    parser.comments = comments_between(source, node.lineno, end)
    given = options.specialisation
    if given is None:
        params = _parameters(parser, node, options)
        returns = _as_python(parser, node.returns, lambda: result_types(parser, node.returns))
    else:
        params = _given_parameters(parser, node, given)
        returns = []
    parser.reads_signature = False
    attrs = options.stored_attrs()
    docstring, prologue, rest = split_prologue(node.body)
    parse_prologue(parser, prologue, attrs)
    binding_required = False
    if options.external_source is not None:
        body = _external_body(parser, node, rest, options)
    elif options.is_host_sub_worker and program.is_program:
        body, binding_required = _host_body(parser, rest, node)
    else:
        body = _dsl_body(parser, node, [*docstring, *rest], end, given)
    if given is not None:
        returns = types_of_first_return(body) or []
    span = source.head_span(node)
    return ir.Function(
        node.name if given is None else given.name,
        params,
        returns,
        body,
        span,
        options.func_type,
        options.level,
        options.role,
        attrs,
        requires_runtime_binding=binding_required,
    )


def _with_trailing_comments(source: SourceText, node: ast.FunctionDef) -> int:
    """The last line of a definition, blank and comment lines behind it included."""
    line = node.end_lineno or node.lineno
    while line < len(source.lines) and source.lines[line].strip()[:1] in ("", "#"):
        line += 1
    return line


# -- signature -----------------------------------------------------------------------------------------------


def ordinary_parameters(source: SourceText, node: ast.FunctionDef) -> list[ast.arg]:
    """The parameters of a definition.

    Raises:
        ParserSyntaxError: one of them is of a kind that is not given by position or name alike.
    """
    arguments = node.args
    unsupported = [*arguments.posonlyargs, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    for argument in unsupported:
        if argument is not None:
            raise ParserSyntaxError(
                f"Parameter '{argument.arg}' is not an ordinary positional parameter",
                span=source.span(argument),
                hint="Keyword-only, positional-only, *args and **kwargs parameters are not supported",
            )
    return list(arguments.args)


def _parameters(
    p: FunctionParser, node: ast.FunctionDef, options: FunctionOptions
) -> list[tuple[ir.Var, ir.ParamDirection]]:
    names = ordinary_parameters(p.source, node)
    if names and names[0].arg == "self" and p.program.is_program:
        if options.is_host_sub_worker:
            raise ParserSyntaxError(
                f"SubWorker function '{node.name}' at host level must not declare 'self'",
                span=p.span(names[0]),
                hint="Its body is plain Python that runs on the host: leave self out",
            )
        names = names[1:]
    later = {
        each.arg: _parameter(p, each)
        for position, each in enumerate(names)
        if _is_plain_scalar(p, each, names[:position])
    }
    p.params.clear()
    made = []
    for argument in names:
        var, direction = later.get(argument.arg) or _parameter(p, argument)
        if argument.arg in later:
            p.params.append(var)
        made.append((var, direction))
    return made


def _is_plain_scalar(p: FunctionParser, argument: ast.arg, earlier: list[ast.arg]) -> bool:
    """Whether `argument` is a scalar that types before it may mention.

    A name that means something else already keeps that meaning, but for a symbol that only valid shapes
    read: printed text declares such a scalar, because Python evaluates annotations first.
    """
    annotation = argument.annotation
    if not (
        isinstance(annotation, ast.Subscript)
        and isinstance(annotation.value, ast.Attribute)
        and annotation.value.attr == "Scalar"
    ):
        return False
    value = p.closure.lookup(argument.arg)
    return value is NOT_FOUND or (
        isinstance(value, DynVar)
        and not any(_reads_outside_valid_shape(each.annotation, argument.arg) for each in earlier)
    )


def _reads_outside_valid_shape(node: ast.AST | None, name: str) -> bool:
    if node is None or (isinstance(node, ast.keyword) and node.arg == "valid_shape"):
        return False
    if isinstance(node, ast.Name):
        return node.id == name
    return any(_reads_outside_valid_shape(child, name) for child in ast.iter_child_nodes(node))


def _parameter(p: FunctionParser, argument: ast.arg) -> tuple[ir.Var, ir.ParamDirection]:
    name = argument.arg
    if argument.annotation is None:
        raise ParserTypeError(
            f"Parameter '{name}' missing type annotation",
            span=p.span(argument),
            hint=f"For example {name}: pl.Tensor[[64, 64], pl.FP32]",
        )
    annotation = argument.annotation
    kind, direction = _as_python(p, annotation, lambda: parameter_type(p, annotation, name))
    var = p.program.variable(p.function_name, name, kind, p.span(argument))
    if isinstance(kind, ir.ScalarType) and kind.dtype == ir.DataType.INDEX:
        _bind_symbol(p, name, var, argument)
    p.params.append(var)
    p.names.bind(name, var)
    return var, direction


def _given_parameters(
    p: FunctionParser, node: ast.FunctionDef, given: Specialisation
) -> list[tuple[ir.Var, ir.ParamDirection]]:
    """The parameters of a specialised function. One with a known value is that value in the body."""
    p.specialised = SpecialisedBody(node, given)
    places = {argument.arg: argument for argument in node.args.args}
    p.closure = p.closure.derived(p.closure.namespace, given.constants)
    return [(_given_parameter(p, parameter, places), parameter.direction) for parameter in given.parameters]


def _given_parameter(p: FunctionParser, parameter: GivenParameter, places: dict[str, ast.arg]) -> ir.Var:
    assert p.specialised is not None
    place = p.span(places[parameter.name])
    var = ir.Var(parameter.name, parameter.type, place)
    p.params.append(var)
    if parameter.constant is None:
        p.bind_new(parameter.name, var)
    elif p.specialised.assigns(parameter.name):  # then it is an ordinary variable that starts with the value
        p.bind_new(parameter.name, var)
        p.emit(ir.AssignStmt(var, value_to_ir(parameter.constant, place, p.resolve_dyn), place))
    return var


def _as_python(p: FunctionParser, annotation: ast.expr | None, resolve: Callable[[], _T]) -> _T:
    """What an annotation of the signature means; if it means nothing, Python's own complaint comes first."""
    try:
        return resolve()
    except ParserTypeError:
        if annotation is not None:
            p.closure.check_signature_annotation(annotation, p.source)
        raise


def _bind_symbol(p: FunctionParser, name: str, var: ir.Var, argument: ast.arg) -> None:
    """An INDEX parameter named like a captured symbol is that symbol in this function."""
    value = p.closure.lookup(name)
    if value is NOT_FOUND or not isinstance(value, DynVar):
        return
    symbol = p.program.resolve_dyn(value)
    if any(
        symbol is mentioned
        for param in p.params
        for extent in type_exprs(param.type)
        for mentioned in vars_in(extent)
    ):
        raise ParserTypeError(
            f"Parameter '{name}' shadows the dynamic symbol '{name}' that an earlier parameter's type uses",
            span=p.span(argument),
            hint=f"Put '{name}' before the parameters whose types mention it",
        )
    p.symbol_parameters[name] = var


# -- bodies --------------------------------------------------------------------------------------------------


def _dsl_body(
    p: FunctionParser,
    node: ast.FunctionDef,
    statements: list[ast.stmt],
    end: int,
    given: Specialisation | None,
) -> ir.Stmt:
    if p.comments is not None:
        p.comments.boundary = end + 1
    p.parse_statements(statements)
    if given is not None and p.func_type is not ir.FunctionType.Inline:
        _return_outputs(p, node, given.parameters)
    if p.comments is not None:
        p.comments.warn_dropped(p.source)
    return to_body(p.statements, p.source.head_span(node))


def _return_outputs(p: FunctionParser, node: ast.FunctionDef, parameters: Sequence[GivenParameter]) -> None:
    """A specialised function that never returns gives what it wrote: its outputs, in order.

    It gives none if a call wrote one whose result has no name: after the call, only the result may be read.
    """
    if any(isinstance(inner, ast.Return) for inner in ast.walk(node)):
        return
    outputs = [
        p.names.lookup(given.name) or param
        for param, given in zip(p.params, parameters, strict=True)
        if given.direction is not ir.ParamDirection.In
    ]
    passed = {
        arg
        for statement in p.statements
        for inner in walk_stmts(statement)
        if isinstance(inner, ir.EvalStmt)
        and isinstance(inner.expr, ir.Call)
        and isinstance(inner.expr.op, ir.GlobalVar)
        for arg in inner.expr.args_
        if isinstance(arg, ir.Var)
    }
    if passed.isdisjoint(outputs):
        p.emit(ir.ReturnStmt(outputs, p.source.head_span(node)))


def _external_body(
    p: FunctionParser, node: ast.FunctionDef, statements: list[ast.stmt], options: FunctionOptions
) -> ir.Stmt:
    if options.func_type not in _KERNEL_TYPES:
        raise ParserTypeError(
            "external_source is only valid on functions of type AIC or AIV",
            span=p.source.head_span(node),
            hint="Declare the kernel with type=pl.FunctionType.AIC or type=pl.FunctionType.AIV",
        )
    if not all(_is_ellipsis(statement) or isinstance(statement, ast.Pass) for statement in statements):
        raise ParserSyntaxError(
            f"External kernel '{node.name}' must have an empty '...' body",
            span=p.source.head_span(node),
            hint="The kernel's code is in its external source",
        )
    return ir.SeqStmts([], p.source.head_span(node))


def _is_ellipsis(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and node.value.value is Ellipsis
    )


def _host_body(p: FunctionParser, statements: list[ast.stmt], node: ast.FunctionDef) -> tuple[ir.Stmt, bool]:
    """The body of a host sub-worker as text, and whether it is only declared here."""
    span = p.source.head_span(node)
    written = [
        statement for statement in statements if not is_docstring(statement) and not is_func_attr(statement)
    ]
    if written and all(_is_ellipsis(statement) for statement in written):
        return ir.InlineStmt("", ir.InlineLanguage.Python, span), True
    text = "\n".join(ast.unparse(statement) for statement in statements)
    return ir.InlineStmt(text, ir.InlineLanguage.Python, span), False
