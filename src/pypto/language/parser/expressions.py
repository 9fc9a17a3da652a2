"""Names, constants, scalar operators and tuples."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Callable
from typing import Any

from pypto import ir
from pypto.ir.op_registry import create_op_call
from pypto.ir.scalar_ops import scalar_dtype
from pypto.language.parser.arithmetic import TooLarge
from pypto.language.parser.closure import NOT_FOUND, is_foldable, value_to_ir
from pypto.language.parser.diagnostics import ParserSyntaxError, ParserTypeError, UnsupportedFeatureError
from pypto.language.parser.function_parser import FunctionParser, expression
from pypto.language.parser.slots import DTYPES, last_name

Builder = Callable[[ir.Expr, ir.Expr, ir.Span], ir.Expr]

_BINARY: dict[type[ast.operator], Builder] = {
    ast.Add: ir.add,
    ast.Sub: ir.sub,
    ast.Mult: ir.mul,
    ast.Div: ir.truediv,
    ast.FloorDiv: ir.floordiv,
    ast.Mod: ir.mod,
    ast.LShift: ir.bit_shift_left,
    ast.RShift: ir.bit_shift_right,
    ast.BitAnd: ir.bit_and,
    ast.BitOr: ir.bit_or,
    ast.BitXor: ir.bit_xor,
    ast.Pow: ir.pow,
}
_SCALARS_ONLY = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.Pow)
_COMPARE: dict[type[ast.cmpop], Builder] = {
    ast.Eq: ir.eq,
    ast.NotEq: ir.ne,
    ast.Lt: ir.lt,
    ast.LtE: ir.le,
    ast.Gt: ir.gt,
    ast.GtE: ir.ge,
}
_BOOLEAN: dict[type[ast.boolop], Builder] = {ast.And: ir.and_, ast.Or: ir.or_}


@expression(ast.Name)
def parse_name(p: FunctionParser, node: ast.Name) -> ir.Expr:
    """A variable of the body, or a captured Python value."""
    return p.read_name(node)


@expression(ast.Constant)
def parse_constant(p: FunctionParser, node: ast.Constant) -> ir.Expr:
    """A literal; `None` is the invalid task id."""
    value = node.value
    if isinstance(value, bool):
        return ir.ConstBool(value, p.span(node))
    if isinstance(value, int):
        return int_constant(p, value, node)
    if isinstance(value, float):
        return ir.ConstFloat(value, ir.DataType.FP32, p.span(node))
    if value is None:
        return create_op_call("system.task_invalid", [], p.span(node))
    raise ParserTypeError(
        f"Unsupported constant type: {type(value).__name__}",
        span=p.span(node),
        hint="An empty body is written as pass"
        if value is Ellipsis
        else "Values of a body are ints, floats, bools and None",
    )


def int_constant(p: FunctionParser, value: int, node: ast.AST) -> ir.Expr:
    """An INDEX constant; Python ints beyond 64 bits are an error of the program."""
    try:
        return ir.ConstInt(value, ir.DataType.INDEX, p.span(node))
    except TypeError as error:
        raise ParserTypeError(
            f"Integer constant {value} does not fit into 64 bits",
            span=p.span(node),
            hint="Integers of a program have at most 64 bits",
        ) from error


@expression(ast.BinOp)
def parse_binary(p: FunctionParser, node: ast.BinOp) -> ir.Expr:
    """Arithmetic, folded as far as no variable of the body takes part.

    Long chains lean left; they are walked in a loop, from the leftmost operand outward.
    """
    links: list[ast.BinOp] = []
    leaf: ast.expr = node
    while isinstance(leaf, ast.BinOp):
        links.append(leaf)
        leaf = leaf.left
    links.reverse()
    done = _foldable_links(p, leaf, links)
    result: ir.Expr | None = None
    while done and result is None:  # usually one round: the whole foldable part has a value
        result = _fold(p, links[done - 1])
        done -= result is None
    if result is None:
        result = p.expr(leaf)
    for link in links[done:]:
        result = _apply_binary(p, link, result)
    return result


def _foldable_links(p: FunctionParser, leaf: ast.expr, links: list[ast.BinOp]) -> int:
    """How many links of a chain, from the inside, are made of constants and captured names alone."""
    if not is_foldable(leaf, p.names.__contains__):
        return 0
    for count, link in enumerate(links):
        if not is_foldable(link.right, p.names.__contains__):
            return count
    return len(links)


def _apply_binary(p: FunctionParser, node: ast.BinOp, left: ir.Expr) -> ir.Expr:
    build = _BINARY.get(type(node.op))
    if build is None or (type(node.op) in _SCALARS_ONLY and not isinstance(left.type, ir.ScalarType)):
        raise UnsupportedFeatureError(
            f"Unsupported binary operator: {type(node.op).__name__}",
            span=p.span(node),
            hint="Write pl.matmul(a, b)"
            if isinstance(node.op, ast.MatMult)
            else "Scalars support + - * / // % ** << >> & | ^; use pl operations for everything else",
        )
    return _build_scalar(p, node, build, left, p.expr(node.right))


def _build_scalar(
    p: FunctionParser, node: ast.expr, build: Callable[..., ir.Expr], *operands: ir.Expr
) -> ir.Expr:
    """An operator on scalars."""
    try:
        return build(*operands, p.span(node))
    except TypeError as error:
        raise p.rejected(error, node, _remedy(node, operands)) from error


_OPERATIONS: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.Mod: "fmod",
}


def _remedy(node: ast.expr, operands: tuple[ir.Expr, ...]) -> str:
    """What to write instead of an operator that does not take these operands."""
    dtypes = [operand.type.dtype for operand in operands if isinstance(operand.type, ir.ScalarType)]
    if len(dtypes) < len(operands):
        written = _call(node, operands)
        return f"Operators are for scalars; compute tensors and tiles with pl operators, as in {written}"
    if ir.DataType.BOOL in dtypes:
        return "Combine conditions with and, or, not; arithmetic and comparisons take numbers"
    if any(dtype.is_float() for dtype in dtypes):
        return "Convert one operand with pl.cast(x, pl.FP32), or write the constant as pl.const(1.0, pl.FP32)"
    return "Operators take integer or floating-point scalars"


def _call(node: ast.expr, operands: tuple[ir.Expr, ...]) -> str:
    """The call that does to tensors and tiles what an operator does to scalars."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return f"pl.neg({ast.unparse(node.operand)})"
    if not isinstance(node, ast.BinOp) or type(node.op) not in _OPERATIONS:
        return "pl.add(x, y)"
    first, second = node.left, node.right
    if isinstance(operands[0].type, ir.ScalarType) and isinstance(node.op, (ast.Add, ast.Mult)):
        first, second = second, first  # the tensor comes first
    return f"pl.{_OPERATIONS[type(node.op)]}({ast.unparse(first)}, {ast.unparse(second)})"


def _fold(p: FunctionParser, node: ast.expr) -> ir.Expr | None:
    """The constant that an expression over captured values amounts to."""
    try:
        value = p.closure.fold(node, p.names.__contains__)
    except TooLarge as error:
        raise _too_large(p, node) from error
    if value is NOT_FOUND:
        return None
    try:
        return value_to_ir(value, p.span(node), p.resolve_dyn)
    except ParserTypeError:
        return None
    except TypeError as error:
        raise _too_large(p, node) from error


def _too_large(p: FunctionParser, node: ast.expr) -> ParserTypeError:
    return ParserTypeError(
        "Integer constant does not fit into 64 bits",
        span=p.span(node),
        hint="Integers of a program have at most 64 bits",
    )


@expression(ast.UnaryOp)
def parse_unary(p: FunctionParser, node: ast.UnaryOp) -> ir.Expr:
    """Negation (folded on constants), `not`, `~`."""
    if isinstance(node.op, (ast.USub, ast.UAdd)):
        folded = _fold(p, node)
        if folded is not None:
            return folded
    if isinstance(node.op, ast.UAdd):
        raise UnsupportedFeatureError(
            "Unsupported unary operator: UAdd", span=p.span(node), hint="Leave the + out"
        )
    operand = p.expr(node.operand)
    span = p.span(node)
    if isinstance(node.op, ast.Not):
        return _build_scalar(p, node, _not_of_scalar, operand)
    if isinstance(node.op, ast.Invert):
        return _build_scalar(p, node, ir.bit_not, operand)
    if isinstance(operand, ir.ConstInt):
        return ir.ConstInt(-operand.value, operand.dtype, span)
    if isinstance(operand, ir.ConstFloat):
        return ir.ConstFloat(-operand.value, operand.dtype, span)
    return _build_scalar(p, node, ir.neg, operand)


def _not_of_scalar(operand: ir.Expr, span: ir.Span) -> ir.Expr:
    scalar_dtype(operand, "not")
    return ir.not_(operand, span)


@expression(ast.Compare)
def parse_compare(p: FunctionParser, node: ast.Compare) -> ir.Expr:
    """One comparison of two scalars."""
    if len(node.ops) != 1:
        raise ParserSyntaxError(
            "Only simple comparisons supported",
            span=p.span(node),
            hint="Write a < b and b < c instead of a < b < c",
        )
    build = _COMPARE.get(type(node.ops[0]))
    if build is None:
        raise UnsupportedFeatureError(
            f"Unsupported comparison: {type(node.ops[0]).__name__}",
            span=p.span(node),
            hint="Use == != < <= > >=",
        )
    return _build_scalar(p, node, build, p.expr(node.left), p.expr(node.comparators[0]))


@expression(ast.BoolOp)
def parse_boolean(p: FunctionParser, node: ast.BoolOp) -> ir.Expr:
    """`and` / `or`, from left to right, without short circuit."""
    build = _BOOLEAN[type(node.op)]
    span = p.span(node)
    result = p.expr(node.values[0])
    for value in node.values[1:]:
        result = build(result, p.expr(value), span)
    return result


@expression(ast.List, ast.Tuple)
def parse_tuple(p: FunctionParser, node: ast.List | ast.Tuple) -> ir.Expr:
    """A list or tuple display."""
    return ir.MakeTuple([p.expr(element) for element in node.elts], p.span(node))


@expression(ast.Attribute)
def parse_attribute(p: FunctionParser, node: ast.Attribute) -> ir.Expr:
    """The few attributes that are values: members of memory spaces."""
    if last_name(node.value) in ("Mem", "MemorySpace"):
        member: Any = ir.MemorySpace.__members__.get(node.attr)
        if member is not None:
            return ir.ConstInt(member.value, ir.DataType.INDEX, p.span(node))
    raise UnsupportedFeatureError(
        f"Standalone attribute access not supported: {ast.unparse(node)}",
        span=p.span(node),
        hint=_instead_of_attribute(p, node),
    )


_FOREIGN_DTYPE = re.compile(r"bfloat16|float(16|32)|u?int(8|16|32|64)")  # as numpy and torch spell them


def _instead_of_attribute(p: FunctionParser, node: ast.Attribute) -> str:
    if isinstance(node.value, ast.Name) and node.value.id == "self" and node.attr in p.program.global_vars:
        return f"Call the method: self.{node.attr}(...)"
    if isinstance(node.value, ast.Name) and node.value.id == "pl":
        if node.attr in DTYPES:
            return "A dtype is no value: it stands in dtype arguments and annotations"
        close = difflib.get_close_matches(node.attr, DTYPES, n=1, cutoff=0.5)
        return f"Did you mean 'pl.{close[0]}'?" if close else "pl has no such name"
    if _FOREIGN_DTYPE.fullmatch(node.attr):
        (close,) = difflib.get_close_matches(node.attr.upper(), DTYPES, n=1, cutoff=0.5)
        return f"Write pl.{close}"
    return "Extents are read with pl.tensor.dim(x, axis); capture other attributes into a plain name"
