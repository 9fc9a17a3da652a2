"""`attrs={...}` dictionaries of calls, and the values they may hold."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from pypto import ir
from pypto.language.adir import NAME_TO_DIRECTION
from pypto.language.parser.closure import NOT_FOUND
from pypto.language.parser.diagnostics import ParserSyntaxError, ParserTypeError
from pypto.language.parser.slots import DTYPES, last_name

if TYPE_CHECKING:
    from pypto.language.parser.function_parser import FunctionParser

_ATTRIBUTE_ENUMS: dict[str, type[Any]] = {
    "Mem": ir.MemorySpace,
    "MemorySpace": ir.MemorySpace,
    "TensorLayout": ir.TensorLayout,
    "TileLayout": ir.TileLayout,
    "PadValue": ir.PadValue,
    "SplitMode": ir.SplitMode,
}
_STORED_KINDS: tuple[type[Any], ...] = (ir.DataType, *_ATTRIBUTE_ENUMS.values(), ir.ArgDirection)
_NOT_WRITABLE_ON_OPS = ("manual_dep_edges", "dummy_task")


def attr_items(p: FunctionParser, node: ast.expr) -> list[tuple[str, ast.expr]]:
    """Keys and value nodes of a dict display with string keys."""
    if not isinstance(node, ast.Dict):
        raise ParserTypeError(
            "attrs must be a dict literal", span=p.span(node), hint='Write attrs={"key": value}'
        )
    items: list[tuple[str, ast.expr]] = []
    for key, value in zip(node.keys, node.values, strict=True):
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            raise ParserSyntaxError(
                "attrs must use string-literal keys",
                span=p.span(key or value),
                hint='Write attrs={"key": value}',
            )
        items.append((key.value, value))
    return items


def call_attrs(p: FunctionParser, node: ast.expr) -> dict[str, Any]:
    """The attributes written on an operator call."""
    attrs: dict[str, Any] = {}
    for key, value in attr_items(p, node):
        if key in _NOT_WRITABLE_ON_OPS:
            raise ParserSyntaxError(
                f"'{key}' is not a writable attr of an operation",
                span=p.span(value),
                hint="Dependencies are written as deps=[...] on pl.submit, pl.at and pl.system.task_dummy",
            )
        attrs[key] = attr_value(p, value)
    return attrs


def attr_value(p: FunctionParser, node: ast.expr) -> Any:
    """An attribute value; its kind follows from how it is written."""
    found = plain_value(p, node, "An attribute")
    if found is not NOT_FOUND:
        return found
    return _attr_list(p, node) if isinstance(node, ast.List) else p.expr(node)


def plain_value(p: FunctionParser, node: ast.expr, owner: str) -> Any:
    """The constant, enum member or dtype that is written, `NOT_FOUND` for an expression of another form.

    Raises:
        ParserSyntaxError: attributes hold no constants of this kind.
    """
    is_negated = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    constant = node.operand if is_negated else node
    if isinstance(constant, ast.Constant):
        value = constant.value
        if isinstance(value, (bool, int, float)):
            return -value if is_negated else value
        if isinstance(value, str) and not is_negated:
            return value
        raise ParserSyntaxError(
            f"{owner} holds the unsupported constant {ast.unparse(node)}",
            span=p.span(node),
            hint="Attributes hold bools, numbers, text, lists, enumeration members, dtypes and expressions",
        )
    return enum_attribute(p, node) if isinstance(node, ast.Attribute) else NOT_FOUND


def _attr_list(p: FunctionParser, node: ast.List) -> list[Any]:
    elements = node.elts
    numbers = [element.value for element in elements if isinstance(element, ast.Constant)]
    if len(numbers) == len(elements) and all(type(number) is int for number in numbers):
        return numbers
    if all(isinstance(element, ast.Name) for element in elements):
        return [p.expr(element) for element in elements]
    directions = [direction_marker(element) for element in elements]
    if all(direction is not None for direction in directions):
        return directions
    raise ParserSyntaxError(
        "attrs list elements are mixed or of an unsupported kind",
        span=p.span(node),
        hint="A list holds only ints, only pl.adir.* markers, or only variable names",
    )


def direction_marker(node: ast.expr) -> ir.ArgDirection | None:
    """The member that `pl.adir.x` names, or None for another expression."""
    if isinstance(node, ast.Attribute) and last_name(node.value) == "adir":
        return NAME_TO_DIRECTION.get(node.attr)
    return None


def enum_attribute(p: FunctionParser, node: ast.Attribute) -> Any:
    """The enum member or dtype of a dotted name, or `NOT_FOUND`."""
    owner = last_name(node.value)
    kind = _ATTRIBUTE_ENUMS.get(owner or "")
    if kind is not None and node.attr in kind.__members__:
        return kind.__members__[node.attr]
    if owner in ("pl", "DataType") and node.attr in DTYPES:
        return DTYPES[node.attr]
    marker = direction_marker(node)
    if marker is not None:
        return marker
    value = p.closure.lookup_attribute(node)
    return value if isinstance(value, _STORED_KINDS) else NOT_FOUND
