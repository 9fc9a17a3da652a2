"""Attributes of a function: from the decorator's `attrs=` and from the `pl.func_attr({...})` prologue."""

from __future__ import annotations

import ast
import os
import warnings
from typing import Any

from pypto import ir
from pypto.ir.attrs import normalise_value
from pypto.ir.walk import walk
from pypto.language.parser.attr_values import direction_marker, plain_value
from pypto.language.parser.closure import NOT_FOUND
from pypto.language.parser.diagnostics import ParserSyntaxError, UndefinedVariableError
from pypto.language.parser.function_parser import FunctionParser
from pypto.language.parser.slots import dotted_name, enum_literal
from pypto.language.typing import ExprHandle

_DECORATOR_ONLY = ("auto_scope", "external_source")


def normalise_decorator_attrs(attrs: Any) -> dict[str, Any]:
    """The `attrs=` of `@pl.function(...)` as it is stored on the function.

    Raises:
        ParserSyntaxError: it is not a dict of strings to constant values.
    """
    if attrs is None:
        return {}
    if not isinstance(attrs, dict):
        raise ParserSyntaxError(
            f"@pl.function(attrs=...) must be a dict, got {type(attrs).__name__}",
            hint='Write attrs={"key": value}',
        )
    if attrs:
        warnings.warn(
            "@pl.function(attrs={...}) is deprecated; start the body with pl.func_attr({...})",
            DeprecationWarning,
            stacklevel=3,
        )
    stored: dict[str, Any] = {}
    for key, value in attrs.items():
        if not isinstance(key, str):
            raise ParserSyntaxError(
                f"@pl.function(attrs=...) keys must be strings, got {key!r}",
                hint='Write attrs={"key": value}',
            )
        if isinstance(value, ir.SplitMode):
            if value is not ir.SplitMode.NONE:
                stored[key] = value.value
            continue
        stored[key] = _plain_value(key, value)
    return stored


def _plain_value(key: str, value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain_value(key, item) for item in value]
    if isinstance(value, ExprHandle):
        if not value.has_expr() and not hasattr(value, "bind"):
            raise ParserSyntaxError(
                f"Function attribute '{key}' holds an annotation-only {type(value).__name__}",
                hint="An attribute needs a value; an annotation is only a type",
            )
        value = value.unwrap()
    if isinstance(value, ir.Expr) and any(isinstance(node, ir.Var) for node in walk(value)):
        raise ParserSyntaxError(
            f"Function attribute '{key}' references a variable",
            hint="Parameters can be named in pl.func_attr({...}) at the start of the body",
        )
    return value


def external_source_path(path: str | os.PathLike[str], defining_file: str) -> str:
    """The absolute path of an `external_source=`; relative ones start at the file with the decorator.

    Raises:
        ValueError: there is no such file.
    """
    base = os.path.dirname(os.path.abspath(defining_file))
    absolute = os.path.abspath(os.path.join(base, os.fspath(path)))
    if not os.path.isfile(absolute):
        raise ValueError(f"external_source: file not found: {absolute}")
    return absolute


# -- prologue ------------------------------------------------------------------------------------------------


def is_func_attr(node: ast.stmt) -> bool:
    """Whether a statement is `pl.func_attr(...)`."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and dotted_name(node.value.func) == "pl.func_attr"
    )


def is_docstring(node: ast.stmt) -> bool:
    """Whether a statement is a bare string."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def split_prologue(body: list[ast.stmt]) -> tuple[list[ast.stmt], list[ast.Expr], list[ast.stmt]]:
    """A function body as docstring, attribute statements and the rest."""
    start = 1 if body and is_docstring(body[0]) else 0
    end = start
    while end < len(body) and is_func_attr(body[end]):
        end += 1
    return body[:start], [node for node in body[start:end] if isinstance(node, ast.Expr)], body[end:]


def parse_prologue(p: FunctionParser, statements: list[ast.Expr], attrs: dict[str, Any]) -> None:
    """Add the attributes of `pl.func_attr` statements to `attrs`."""
    seen = set(attrs)
    for statement in statements:
        call = statement.value
        assert isinstance(call, ast.Call)
        if len(call.args) != 1 or call.keywords:
            raise ParserSyntaxError(
                "pl.func_attr() takes exactly one positional dict argument (no keywords)",
                span=p.span(statement),
                hint='Write pl.func_attr({"key": value})',
            )
        for key, value in _items(p, call.args[0]):
            if key in _DECORATOR_ONLY:
                raise ParserSyntaxError(
                    f"'{key}' cannot be set with pl.func_attr()",
                    span=p.span(value),
                    hint=f"Write @pl.function({key}=...)",
                )
            if key in seen:
                raise ParserSyntaxError(
                    f"Duplicate function attribute '{key}'",
                    span=p.span(value),
                    hint="Give each attribute once",
                )
            seen.add(key)
            _store(p, attrs, key, value)


def _items(p: FunctionParser, node: ast.expr) -> list[tuple[str, ast.expr]]:
    if not isinstance(node, ast.Dict):
        raise ParserSyntaxError(
            "The argument of pl.func_attr() must be a dict literal",
            span=p.span(node),
            hint='Write pl.func_attr({"key": value})',
        )
    items: list[tuple[str, ast.expr]] = []
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            raise ParserSyntaxError(
                "Unsupported `**` unpacking in pl.func_attr()",
                span=p.span(value),
                hint="Write the entries out",
            )
        if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
            raise ParserSyntaxError(
                "A pl.func_attr() key must be a string literal",
                span=p.span(key),
                hint='Write pl.func_attr({"key": value})',
            )
        items.append((key.value, value))
    return items


def _store(p: FunctionParser, attrs: dict[str, Any], key: str, node: ast.expr) -> None:
    if key == "split":
        mode = enum_literal(p, node, ir.SplitMode)
        if mode is not ir.SplitMode.NONE:
            attrs[key] = mode.value
        return
    attrs[key] = _value(p, key, node)


def _value(p: FunctionParser, key: str, node: ast.expr) -> Any:
    found = plain_value(p, node, f"Function attribute '{key}'")
    if found is not NOT_FOUND:
        return found
    if isinstance(node, ast.List):
        return _list_value(p, key, node)
    return _parameter(p, key, node) if isinstance(node, ast.Name) else p.expr(node)


def _list_value(p: FunctionParser, key: str, node: ast.List) -> list[Any]:
    elements = node.elts
    constants = [element.value for element in elements if isinstance(element, ast.Constant)]
    found: list[Any] | None = None
    if len(constants) == len(elements) and all(type(value) is int for value in constants):
        found = constants
    elif all(isinstance(element, ast.Name) for element in elements):
        found = [_parameter(p, key, element) for element in elements if isinstance(element, ast.Name)]
    else:
        directions = [direction_marker(element) for element in elements]
        found = directions if all(direction is not None for direction in directions) else None
    if found is None or not _is_storable(key, found):
        raise ParserSyntaxError(
            f"Unsupported list element type for key: '{key}'",
            span=p.span(node),
            hint="A list holds only pl.adir.* markers or only parameters; ints where the key says so",
        )
    return found


def _is_storable(key: str, values: list[Any]) -> bool:
    try:
        normalise_value("Function", key, values, from_attrs=True)
    except TypeError:
        return False
    return True


def _parameter(p: FunctionParser, key: str, node: ast.Name) -> ir.Expr:
    """A bare name is always a parameter, even when a captured value has the same name."""
    value = p.names.lookup(node.id) or p.symbol_parameters.get(node.id) or p.program.dyn_vars.get(node.id)
    if value is None:
        raise UndefinedVariableError(
            f"Undefined variable '{node.id}' as function attribute '{key}': it is not a parameter",
            span=p.span(node),
            hint="A bare name in pl.func_attr() refers to a parameter of the function",
        )
    return value
