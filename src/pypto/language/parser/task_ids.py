"""Task ids: `deps=[...]` lists and `pl.system.task_dummy`."""

from __future__ import annotations

import ast
import copy
from typing import Any

from pypto import ir
from pypto.ir.op_registry import create_op_call
from pypto.language.parser.attr_values import call_attrs
from pypto.language.parser.diagnostics import InvalidOperationError, ParserSyntaxError, ParserTypeError
from pypto.language.parser.function_parser import FunctionParser
from pypto.language.parser.slots import dotted_name

_DSL_LOOPS = frozenset({"pl.range", "pl.parallel", "pl.unroll", "pl.pipeline", "pl.while_", "pl.spmd"})
_MOST_VALUES = 100_000
_BUFFER_NAME = "_submit_deps_buf"


def is_task_id(value_type: ir.Type) -> bool:
    """Whether a type is a single task id."""
    return isinstance(value_type, ir.ScalarType) and value_type.dtype == ir.DataType.TASK_ID


def is_task_id_array(value_type: ir.Type) -> bool:
    """Whether a type is an array of task ids."""
    return isinstance(value_type, ir.ArrayType) and value_type.dtype == ir.DataType.TASK_ID


def parse_deps(p: FunctionParser, node: ast.expr) -> list[ir.Expr]:
    """The variables that a `deps=` list stands for. May emit the statements that gather array elements."""
    entries = [entry for entry in _entries(p, node) if entry is not None]
    elements = [entry for entry in entries if isinstance(entry, ir.Call)]
    if not elements:
        return entries
    if any(is_task_id_array(entry.type) for entry in entries):
        raise ParserTypeError(
            "deps= cannot mix a whole TASK_ID array with per-element entries",
            span=p.span(node),
            hint="List either the array itself or its elements",
        )
    return [_gather(p, entries, p.span(node))]


def _entries(p: FunctionParser, node: ast.expr) -> list[ir.Expr | None]:
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return [_entry(p, element) for element in _unrolled(p, node)]
    if not isinstance(node, (ast.List, ast.Tuple)):
        raise ParserTypeError(
            "deps= must be a list / tuple / comprehension of TaskIds",
            span=p.span(node),
            hint="Write deps=[tid] or deps=[tids[i] for i in range(n)]",
        )
    found: list[ir.Expr | None] = []
    for element in node.elts:
        if isinstance(element, (ast.ListComp, ast.GeneratorExp)):
            found += [_entry(p, inner) for inner in _unrolled(p, element)]
        else:
            found.append(_entry(p, element))
    return found


def _entry(p: FunctionParser, node: ast.expr) -> ir.Expr | None:
    """One dependency: a variable, a read of an array element, or None for the literal `None`."""
    if isinstance(node, ast.Constant) and node.value is None:
        return None
    if isinstance(node, ast.Name):
        value = p.expr(node)
        if isinstance(value, ir.Var) and (is_task_id(value.type) or is_task_id_array(value.type)):
            return value
    elif isinstance(node, ast.Subscript):
        value = p.expr(node)
        if isinstance(value, ir.Call) and value.op.name == "array.get_element" and is_task_id(value.type):
            return value
    raise ParserTypeError(
        "deps= entries must be a TaskId variable, a TASK_ID array or an element of one",
        span=p.span(node),
        hint="Task ids come from out, tid = pl.submit(...) and from 'with pl.at(...) as tid:'",
    )


def _gather(p: FunctionParser, entries: list[ir.Expr], span: ir.Span) -> ir.Var:
    """Collect task ids into one array; returns the variable that holds it last."""
    count = ir.ConstInt(len(entries), ir.DataType.INDEX, span)
    value: ir.Expr = create_op_call("array.create", [count], {"dtype": ir.DataType.TASK_ID}, span)
    buffer = _let_buffer(p, value, span)
    for position, entry in enumerate(entries):
        index = ir.ConstInt(position, ir.DataType.INDEX, span)
        value = create_op_call("array.update_element", [buffer, index, entry], span)
        buffer = _let_buffer(p, value, span)
    return buffer


def _let_buffer(p: FunctionParser, value: ir.Expr, span: ir.Span) -> ir.Var:
    buffer = ir.Var(_BUFFER_NAME, value.type, span)
    p.emit(ir.AssignStmt(buffer, value, span))
    return buffer


# -- comprehensions ------------------------------------------------------------------------------------------


def _unrolled(p: FunctionParser, node: ast.ListComp | ast.GeneratorExp) -> list[ast.expr]:
    """The element expression once per value, with the value in the place of the name."""
    if len(node.generators) != 1:
        raise ParserSyntaxError(
            "A deps= comprehension must have a single `for` clause",
            span=p.span(node),
            hint="Write one comprehension per loop",
        )
    clause = node.generators[0]
    if clause.is_async:
        raise ParserSyntaxError(
            "A deps= comprehension cannot be async", span=p.span(node), hint="Leave async out"
        )
    if not isinstance(clause.target, ast.Name):
        raise ParserSyntaxError(
            "A deps= comprehension target must be a single name",
            span=p.span(clause.target),
            hint="Write [ids[i] for i in range(n)]",
        )
    name = clause.target.id
    elements: list[ast.expr] = []
    for value in _values(p, clause.iter):
        if isinstance(value, bool) or not isinstance(value, int):
            raise ParserTypeError(
                f"The deps= comprehension yielded a non-integer value: {value!r}",
                span=p.span(clause.iter),
                hint="Run over ints, as in range(n)",
            )
        constant = _Substitution(name, value)
        if all(_holds(p, constant.visit(copy.deepcopy(test)), name) for test in clause.ifs):
            elements.append(constant.visit(copy.deepcopy(node.elt)))
    return elements


def _values(p: FunctionParser, node: ast.expr) -> list[Any]:
    if isinstance(node, ast.Call) and dotted_name(node.func) in _DSL_LOOPS:
        raise ParserTypeError(
            f"{dotted_name(node.func)}() is a DSL loop and cannot drive a deps= comprehension",
            span=p.span(node),
            hint="Use Python's range(...)",
        )
    value = _pure_value(p, node, "iterable", set())
    if isinstance(value, range) and value[_MOST_VALUES:]:
        raise ParserTypeError(
            f"The deps= comprehension runs over more than {_MOST_VALUES} values",
            span=p.span(node),
            hint="Depend on the whole array instead",
        )
    try:
        return list(value)
    except TypeError as error:
        raise ParserTypeError(
            f"The deps= comprehension iterable '{ast.unparse(node)}' did not produce a sequence",
            span=p.span(node),
            hint="Run over range(n) or a captured list of ints",
        ) from error


def _holds(p: FunctionParser, node: ast.expr, name: str) -> bool:
    return bool(_pure_value(p, node, "filter", {name}))


def _pure_value(p: FunctionParser, node: ast.expr, what: str, bound: set[str]) -> Any:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and inner.id not in bound and inner.id in p.names:
            raise ParserTypeError(
                f"The deps= comprehension {what} depends on an IR variable: '{inner.id}'",
                span=p.span(inner),
                hint="It is unrolled while parsing, so it may only use Python values",
            )
    return p.closure.evaluate(node, p.span(node))


class _Substitution(ast.NodeTransformer):
    """Replaces reads of one name by a constant."""

    def __init__(self, name: str, value: int) -> None:
        self._name = name
        self._value = value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id != self._name:
            return node
        return ast.copy_location(ast.Constant(self._value), node)


# -- dummy tasks ---------------------------------------------------------------------------------------------


def parse_task_dummy(p: FunctionParser, node: ast.Call) -> ir.Expr:
    """`pl.system.task_dummy(deps=[...])`: a task that does nothing but wait."""
    span = p.span(node)
    if node.args:
        raise InvalidOperationError(
            "pl.system.task_dummy must not use positional arguments",
            span=span,
            hint="Write pl.system.task_dummy(deps=[...])",
        )
    deps: list[ir.Expr] | None = None
    attrs: dict[str, Any] = {}
    for keyword in node.keywords:
        if keyword.arg == "deps":
            deps = parse_deps(p, keyword.value)
        elif keyword.arg == "attrs":
            attrs = call_attrs(p, keyword.value)
        else:
            raise ParserTypeError(
                f"pl.system.task_dummy does not accept keyword argument '{keyword.arg}'",
                span=p.span(keyword.value),
                hint="Write pl.system.task_dummy(deps=[...])",
            )
    if deps is None:
        raise ParserTypeError(
            "pl.system.task_dummy requires keyword argument 'deps'",
            span=span,
            hint="Write pl.system.task_dummy(deps=[...])",
        )
    own: dict[str, Any] = {"manual_dep_edges": deps} if deps else {}
    call = create_op_call("system.task_dummy", [], span)
    return ir.set_call_attrs(call, {**own, "dummy_task": True, **attrs})
