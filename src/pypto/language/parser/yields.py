"""`pl.yield_`: handing values to the enclosing loop or branch."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pypto import ir
from pypto.language.parser.annotations import is_left_to_value, local_type, result_types
from pypto.language.parser.diagnostics import ParserSyntaxError
from pypto.language.parser.function_parser import FunctionParser
from pypto.language.parser.slots import last_name
from pypto.language.parser.type_checks import check_annotation, with_declared_integer


def parse_yield_assignment(
    p: FunctionParser,
    node: ast.stmt,
    names: Sequence[str],
    call: ast.Call,
    annotation: ast.expr | None = None,
) -> None:
    """`a, b = pl.yield_(x, y)`: the names become visible after the enclosing loop or branch."""
    values = _yielded(p, call)
    frame = p.yield_frame()
    types = [value.type for value in values]
    if annotation is not None and len(values) == 1 and not is_left_to_value(annotation):
        declared = yield_type(p, annotation)
        if not isinstance(types[0], ir.UnknownType):
            check_annotation(names[0], declared, values[0], p.span(annotation))
        types = [declared]
    if frame is not None and frame.yields is not None:
        for name, value_type in zip(names, types, strict=False):
            frame.yields.record(name, value_type)
        if frame.kind == "if":
            known = [frame.yields.types[name] for name in names[: len(values)]]
            values[: len(known)] = map(with_declared_integer, values, known)
        else:
            for name in names[len(types) :]:
                frame.yields.record(name, ir.UnknownType.get())
    p.emit_commented(ir.YieldStmt(values, p.span(node)), node)


def parse_yield_statement(p: FunctionParser, node: ast.Expr, call: ast.Call) -> None:
    """A yield whose targets are not named."""
    _reject_in_carrying_loop(p, call)
    p.emit_commented(ir.YieldStmt(_yielded(p, call), p.span(node)), node)


def parse_yield_expression(p: FunctionParser, node: ast.Call) -> ir.Expr:
    """A yield in the middle of an expression stands for its single value."""
    values = _yielded(p, node)
    if len(values) != 1:
        raise ParserSyntaxError(
            "Multiple yields should use tuple unpacking",
            span=p.span(node),
            hint="Write a, b = pl.yield_(x, y)",
        )
    _reject_in_carrying_loop(p, node)
    p.emit(ir.YieldStmt(values, p.span(node)))
    return values[0]


def yield_type(p: FunctionParser, annotation: ast.expr) -> ir.Type:
    """The type of a yield target; `tuple[A, B]` may stand for the type of a tuple here."""
    if isinstance(annotation, ast.Subscript) and last_name(annotation.value) == "tuple":
        return ir.TupleType(result_types(p, annotation))
    return local_type(p, annotation)


def _yielded(p: FunctionParser, call: ast.Call) -> list[ir.Expr]:
    if call.keywords:
        raise ParserSyntaxError(
            "pl.yield_() takes no keyword arguments", span=p.span(call), hint="Write pl.yield_(value)"
        )
    return [p.expr(argument) for argument in call.args]


def _reject_in_carrying_loop(p: FunctionParser, call: ast.Call) -> None:
    for frame in reversed(p.frames):
        if frame.carries_values:
            raise ParserSyntaxError(
                "A loop with init_values requires an assignment-form pl.yield_(...)",
                span=p.span(call),
                hint="Name the results: result = pl.yield_(value)",
            )
        if frame.yields is not None and frame.kind != "if":
            return
