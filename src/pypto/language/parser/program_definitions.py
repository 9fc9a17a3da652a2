"""Turning a decorated class into an `ir.Program`."""

from __future__ import annotations

import ast
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pypto import ir
from pypto.language.parser.assignments import constant_keyword
from pypto.language.parser.closure import Closure
from pypto.language.parser.diagnostics import ParserSyntaxError, UnsupportedFeatureError
from pypto.language.parser.function_definitions import FunctionOptions, define_function
from pypto.language.parser.function_parser import FunctionParser
from pypto.language.parser.launch import bool_literal
from pypto.language.parser.program_context import ProgramContext
from pypto.language.parser.slots import enum_literal, last_name, names_enum
from pypto.language.parser.source import SourceText, first_line

ATTRS_ATTRIBUTE = "__pypto_attrs__"
EXTERNAL_SOURCE_ATTRIBUTE = "__pypto_external_source__"


@dataclass(frozen=True, slots=True)
class MethodValues:
    """What the decorator of a method has evaluated: its attributes and the path of its external source."""

    attrs: dict[str, Any] = field(default_factory=dict)
    external_source: str | None = None


def values_of_method(function: Any) -> MethodValues:
    """What `@pl.function` has stored on a Python function of a class body."""
    return MethodValues(
        getattr(function, ATTRS_ATTRIBUTE, {}), getattr(function, EXTERNAL_SOURCE_ATTRIBUTE, None)
    )


_externals_of: weakref.WeakKeyDictionary[ir.Function, dict[str, ir.Function]] = weakref.WeakKeyDictionary()


def remember_externals(function: ir.Function, externals: Mapping[str, ir.Function]) -> None:
    """Note which outside functions a standalone function calls, for programs that call it in turn."""
    if externals:
        _externals_of[function] = dict(externals)


def define_program(
    source: SourceText,
    node: ast.ClassDef,
    values: Mapping[str, MethodValues],
    closure: Closure,
    strict_ssa: bool,
) -> ir.Program:
    """Parse the decorated methods of a class."""
    for child in node.body:
        if isinstance(child, ast.AsyncFunctionDef) and _decorator(child) is not None:
            raise UnsupportedFeatureError(
                "Unsupported statement type: AsyncFunctionDef",
                span=source.span(child),
                hint=f"Write def {child.name}(...): tasks run asynchronously without it",
            )
    methods = [
        child for child in node.body if isinstance(child, ast.FunctionDef) and _decorator(child) is not None
    ]
    if not methods:
        raise ParserSyntaxError(
            f"Class '{node.name}' contains no @pl.function decorated methods",
            span=source.head_span(node),
            hint="Decorate at least one method with @pl.function",
        )
    program = ProgramContext(is_program=True, strict_ssa=strict_ssa)
    for method in methods:
        if method.name in program.global_vars:
            raise ParserSyntaxError(
                f"Program '{node.name}' has two functions named '{method.name}'",
                span=source.head_span(method),
                hint="Rename one of them",
            )
        program.global_vars[method.name] = ir.GlobalVar(method.name)
        program.definitions[method.name] = method
    _collect_reserved_buffers(source, methods, closure, program)
    functions: list[ir.Function] = []
    for position, method in enumerate(methods):
        options = _options(source, method, values.get(method.name, MethodValues()), closure, program)
        following = methods[position + 1] if position + 1 < len(methods) else None
        last_line = first_line(following) - 1 if following is not None else None
        function = define_function(source, method, closure, program, options, last_line)
        program.functions[method.name] = function
        functions.append(function)
    line = first_line(node)
    span = ir.Span(source.filename, line, node.col_offset + 1, line, node.col_offset + 1)
    return ir.Program([*functions, *_reachable_externals(program, span)], node.name, span)


def _reachable_externals(program: ProgramContext, span: ir.Span) -> list[ir.Function]:
    pending = list(program.externals.values())
    while pending:
        for inner in _externals_of.get(pending.pop(), {}).values():
            if inner.name not in program.externals:
                pending.append(inner)
            program.add_external(inner, span)
    return list(program.externals.values())


def _decorator(node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.expr | None:
    """The `@pl.function` or `@pl.function(...)` of a method, or None."""
    for decorator in node.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        if last_name(target) == "function":
            return decorator
    return None


def _options(
    source: SourceText,
    node: ast.FunctionDef,
    values: MethodValues,
    closure: Closure,
    program: ProgramContext,
) -> FunctionOptions:
    """What the decorator says: flags from its source, evaluated values from the decorated function."""
    options = FunctionOptions(
        attrs=dict(values.attrs),
        external_source=values.external_source,
        strict_ssa=program.strict_ssa,
    )
    decorator = _decorator(node)
    if not isinstance(decorator, ast.Call):
        return options
    reader = FunctionParser(source, closure, program, function_name=node.name)
    for keyword in decorator.keywords:
        value = keyword.value
        if keyword.arg is None:
            raise ParserSyntaxError(
                "@pl.function(**kwargs) is not supported in a program",
                span=source.span(value),
                hint="Write the keywords out",
            )
        if keyword.arg == "type":
            options.func_type = _function_type(reader, value)
        elif keyword.arg == "level" and not _is_none(value):
            options.level = enum_literal(reader, value, ir.Level)
        elif keyword.arg == "role" and not _is_none(value):
            options.role = enum_literal(reader, value, ir.Role)
        elif keyword.arg == "auto_scope":
            options.auto_scope = _bool_option(reader, value)
    return options


def _function_type(reader: FunctionParser, node: ast.expr) -> ir.FunctionType:
    if isinstance(node, ast.Attribute) and names_enum(reader.closure, node.value, ir.FunctionType):
        member = ir.FunctionType.__members__.get(node.attr)
        if member is not None:
            return member
    raise ParserSyntaxError(
        f"Unsupported @pl.function(type=...) value: {ast.unparse(node)}",
        span=reader.span(node),
        hint=f"Write pl.FunctionType.X, with X one of {', '.join(ir.FunctionType.__members__)}",
    )


def _bool_option(reader: FunctionParser, node: ast.expr) -> bool:
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return bool_literal(reader, node, "auto_scope")
    raise ParserSyntaxError(
        "@pl.function(auto_scope=...) must be a bool literal",
        span=reader.span(node),
        hint="Write True or False",
    )


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _collect_reserved_buffers(
    source: SourceText, methods: list[ast.FunctionDef], closure: Closure, program: ProgramContext
) -> None:
    """Find `reserve_buffer(name=...)` calls beforehand: a peer may import a buffer of a method further
    down."""
    if "reserve_buffer" not in source.text:
        return
    for method in methods:
        reader = FunctionParser(source, closure, program, function_name=method.name)
        for inner in ast.walk(method):
            if not (isinstance(inner, ast.Call) and last_name(inner.func) == "reserve_buffer"):
                continue
            constants = {keyword.arg: constant_keyword(reader, keyword.value) for keyword in inner.keywords}
            name = constants.get("name")
            if isinstance(name, str):
                buffers = program.reserved_buffers.setdefault(method.name, {})
                buffers[name] = {key: value for key, value in constants.items() if key and value is not None}
