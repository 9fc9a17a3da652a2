"""Statements that act while parsing: `pl.static_print`, `pl.static_assert`, `pl.dump_tag`."""

from __future__ import annotations

import ast

from pypto import ir
from pypto.language.parser.diagnostics import (
    ParserError,
    ParserSyntaxError,
    ParserTypeError,
    UnsupportedFeatureError,
)
from pypto.language.parser.function_parser import FunctionParser

_DUMPABLE_IN = (ir.FunctionType.Orchestration, ir.FunctionType.Inline)


def parse_static_print(p: FunctionParser, node: ast.Expr, call: ast.Call) -> None:
    """Print strings and the IR of expressions."""
    if not call.args:
        raise ParserSyntaxError(
            "pl.static_print() requires at least 1 argument",
            span=p.span(node),
            hint="Write pl.static_print('text', value, ...)",
        )
    parts = [_printed(p, argument) for argument in call.args]
    span = p.span(node)
    print(f"static_print [{span.filename}:{span.begin_line}]: {' '.join(parts)}")
    p.hold_comments(node)


def _printed(p: FunctionParser, node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_printed_placeholder(p, part) for part in node.values)
    return _described(p.expr(node))


def _printed_placeholder(p: FunctionParser, node: ast.expr) -> str:
    if isinstance(node, ast.FormattedValue):
        if node.conversion != -1 or node.format_spec is not None:
            raise UnsupportedFeatureError(
                "Conversions and format specifications are not supported in pl.static_print f-strings",
                span=p.span(node.value),
                hint="Use plain placeholders such as {x}",
            )
        node = node.value
    return _printed(p, node)


def _described(value: ir.Expr) -> str:
    if isinstance(value, ir.Var):
        return f"{value.name_hint}: {value.type}"
    if isinstance(value, (ir.ConstInt, ir.ConstFloat, ir.ConstBool)):
        return f"{value.value}: {value.type}"
    return str(value)


def parse_static_assert(p: FunctionParser, node: ast.Expr, call: ast.Call) -> None:
    """Check a condition that is known now."""
    if len(call.args) not in (1, 2) or call.keywords:
        raise ParserSyntaxError(
            "pl.static_assert() requires 1 or 2 arguments",
            span=p.span(node),
            hint="Write pl.static_assert(condition, 'message')",
        )
    message = None
    if len(call.args) == 2:
        literal = call.args[1]
        if not (isinstance(literal, ast.Constant) and isinstance(literal.value, str)):
            raise ParserSyntaxError(
                "pl.static_assert() message must be a string literal",
                span=p.span(literal),
                hint="Write the message out: pl.static_assert(condition, 'message')",
            )
        message = literal.value
    value = _static_value(p, call.args[0], node)
    if not value:
        raise ParserError(
            "static_assert failed" + (f": {message}" if message else ""),
            span=p.span(node),
            hint=f"The condition '{ast.unparse(call.args[0])}' has the value {value!r}",
        )
    p.hold_comments(node)


def _static_value(p: FunctionParser, condition: ast.expr, node: ast.stmt) -> object:
    try:
        value = p.closure.evaluate(condition, p.span(condition))
        return bool(value)
    except (ParserTypeError, TypeError):
        pass  # not a matter of captured values alone: look at the IR
    parsed = p.expr(condition)
    if isinstance(parsed, (ir.ConstBool, ir.ConstInt, ir.ConstFloat)):
        return parsed.value
    from pypto.ir.arith import Analyzer

    simplified = Analyzer().simplify(parsed)
    if isinstance(simplified, (ir.ConstBool, ir.ConstInt, ir.ConstFloat)):
        return simplified.value
    raise ParserError(
        "static_assert condition must be compile-time evaluable",
        span=p.span(node),
        hint="Use only constants and values captured from around the function",
    )


def parse_dump_tag(p: FunctionParser, node: ast.Expr, call: ast.Call) -> None:
    """Mark a tensor: all later launches that take it dump it."""
    if p.func_type not in _DUMPABLE_IN:
        raise ParserSyntaxError(
            "pl.dump_tag() is only valid inside an Orchestration or Inline function",
            span=p.span(node),
            hint="Tag the tensor in the function that dispatches the kernel",
        )
    if len(call.args) != 1 or call.keywords:
        raise ParserSyntaxError(
            "pl.dump_tag() takes exactly one positional argument",
            span=p.span(node),
            hint="Write one pl.dump_tag(tensor) per tensor",
        )
    target = call.args[0]
    if not isinstance(target, ast.Name):
        raise ParserSyntaxError(
            "The argument of pl.dump_tag() must be a bare variable name",
            span=p.span(target),
            hint="Assign the value to a name first",
        )
    value = p.names.lookup(target.id)
    if value is None:
        raise ParserSyntaxError(
            f"'{target.id}' is not defined at this point",
            span=p.span(target),
            hint="Tag a tensor after it is assigned",
        )
    if not isinstance(value, ir.Var) or not isinstance(value.type, ir.TensorType):
        raise ParserTypeError(
            f"The argument of pl.dump_tag() '{target.id}' is not a tensor",
            span=p.span(target),
            hint="Only tensors are dumped",
        )
    p.dump_tagged[value] = None
    p.hold_comments(node)
