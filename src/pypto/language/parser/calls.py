"""Calls in expressions: which handler a callee belongs to, and the calls that are not operators."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable

from pypto import ir
from pypto.ir.op_registry import create_op_call
from pypto.language.inline_function import InlineFunction
from pypto.language.parser.closure import NOT_FOUND
from pypto.language.parser.diagnostics import (
    InvalidOperationError,
    ParserSyntaxError,
    ParserTypeError,
    UnsupportedFeatureError,
)
from pypto.language.parser.dim_folding import fold_dim
from pypto.language.parser.function_calls import call_external, call_method, call_specialised
from pypto.language.parser.function_parser import FunctionParser, expression
from pypto.language.parser.inlining import expand_inline
from pypto.language.parser.op_calls import find_op, parse_op_call
from pypto.language.parser.slots import (
    DTYPE_HINT,
    DTYPES,
    dotted_name,
    enum_literal,
    last_name,
    resolve_dtype,
)
from pypto.language.parser.split_aiv import parse_lane_transfer
from pypto.language.parser.submits import reject_bare_submit
from pypto.language.parser.task_ids import parse_task_dummy
from pypto.language.parser.windows import check_host_only, reject_misplaced_window_buffer
from pypto.language.parser.yields import parse_yield_expression
from pypto.language.specialisation import SpecialisedFunction

CallHandler = Callable[[FunctionParser, ast.Call], ir.Expr]


@expression(ast.Call)
def parse_call(p: FunctionParser, node: ast.Call) -> ir.Expr:
    """A call: an operator, a method, an external function or one of the special forms."""
    func = node.func
    if isinstance(func, ast.Name):
        return _parse_bare_call(p, node, func)
    name = dotted_name(func)
    if name is not None:
        special = _SPECIAL.get(name) or _SPECIAL_BY_LEAF.get(name.rpartition(".")[2])
        if special is not None:
            return special(p, node)
        if name.startswith("self.") and name.count(".") == 1:
            return call_method(p, node, name[len("self.") :])
        captured = p.closure.lookup_path(func) if p.specialised is not None else None
        if isinstance(captured, SpecialisedFunction):
            return call_specialised(p, node, captured)
    return parse_op_call(p, node, find_op(p, node, name))


def _parse_bare_call(p: FunctionParser, node: ast.Call, func: ast.Name) -> ir.Expr:
    special = _SPECIAL_BY_LEAF.get(func.id)
    if special is not None:
        return special(p, node)
    callee = p.closure.lookup(func.id)
    if isinstance(callee, ir.Function):
        return call_external(p, node, callee)
    if isinstance(callee, SpecialisedFunction):
        return call_specialised(p, node, callee)
    if isinstance(callee, InlineFunction):
        value = expand_inline(p, callee, node)
        if value is None:
            raise ParserTypeError(
                f"Inline function '{callee.name}' has no return value",
                span=p.span(node),
                hint="Return a value from it, or call it as a statement",
            )
        return value
    if func.id == "abs" and len(node.args) == 1 and not node.keywords:
        operand = p.expr(node.args[0])
        if isinstance(operand.type, ir.ScalarType):
            return ir.Abs(operand, operand.type.dtype, p.span(node))
    if func.id == "float" and callee in (NOT_FOUND, float) and (number := _special_float(node)) is not None:
        return ir.ConstFloat(number, ir.DataType.FP32, p.span(node))
    raise UnsupportedFeatureError(
        f"Unsupported function call: {func.id}()",
        span=p.span(node),
        hint=_instead_of_call(p, func.id, callee),
    )


def _special_float(node: ast.Call) -> float | None:
    """The value of `float("inf")`, `float("-inf")` and `float("nan")`, which have no literal."""
    text = node.args[0].value if len(node.args) == 1 and isinstance(node.args[0], ast.Constant) else None
    if node.keywords or not isinstance(text, str):
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return None if math.isfinite(number) else number


def _instead_of_call(p: FunctionParser, name: str, callee: object) -> str:
    """What to write instead of calling a bare name that the DSL does not know."""
    if name in p.program.global_vars:
        return f"Methods of the program are called as self.{name}(...)"
    if name in ("range", "print"):
        return f"Write pl.{'range' if name == 'range' else 'static_print'}(...)"
    if callee is NOT_FOUND:
        return "There is no such function where the decorator is applied"
    return "Call operators as pl.<op>(...), methods as self.<name>(...); helpers need @pl.inline"


def parse_const(p: FunctionParser, node: ast.Call) -> ir.Expr:
    """`pl.const(value, dtype)`."""
    span = p.span(node)
    if len(node.args) != 2 or node.keywords:
        raise ParserSyntaxError(
            "pl.const() requires exactly 2 arguments: value and dtype",
            span=span,
            hint="Write pl.const(1, pl.INT32)",
        )
    value = _numeric_literal(node.args[0])
    if value is None:
        raise ParserSyntaxError(
            "The value of pl.const() must be a numeric literal",
            span=p.span(node.args[0]),
            hint="Captured numbers and scalars are converted with pl.cast(value, dtype)",
        )
    dtype = resolve_dtype(p, node.args[1])
    if isinstance(value, float):
        if not dtype.is_float():
            raise ParserTypeError(
                f"pl.const() cannot store the float {value} as {dtype}",
                span=span,
                hint="Write an integer literal, or use a floating-point dtype",
            )
        return ir.ConstFloat(value, dtype, span)
    try:
        return ir.ConstInt(value, dtype, span)
    except TypeError as error:
        raise ParserTypeError(str(error), span=span) from error


def _numeric_literal(node: ast.expr) -> int | float | None:
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        sign, node = -1, node.operand
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return sign * value
    return None


def _parse_get_byte(p: FunctionParser, node: ast.Call) -> ir.Expr:
    """`pl.FP32.get_byte()`: the element size as a constant."""
    assert isinstance(node.func, ast.Attribute)
    owner = node.func.value
    name = last_name(owner)
    dtype = DTYPES.get(name or "")
    if dtype is None:
        value = p.closure.lookup_path(owner)
        dtype = value if isinstance(value, ir.DataType) else None
    if dtype is None:
        raise ParserTypeError(
            f"Unknown DataType: {name or ast.unparse(owner)}", span=p.span(node), hint=DTYPE_HINT
        )
    if node.args or node.keywords:
        raise ParserSyntaxError(
            "get_byte() takes no arguments", span=p.span(node), hint=f"Write pl.{dtype.member}.get_byte()"
        )
    return ir.ConstInt(dtype.get_byte(), ir.DataType.INDEX, p.span(node))


def _parse_dim(p: FunctionParser, node: ast.Call) -> ir.Expr:
    """`pl.tensor.dim`, which in orchestration may name an extent that is already known."""
    symbol = fold_dim(p, node)
    return symbol if symbol is not None else parse_op_call(p, node, find_op(p, node, "pl.tensor.dim"))


def _parse_alloc(p: FunctionParser, node: ast.Call) -> ir.Expr:
    """The printed form of an allocation: `pl.tile.alloc(space, size[, pinned=True])`."""
    category = (dotted_name(node.func) or "").split(".")[1]
    span = p.span(node)
    if len(node.args) != 2:
        raise InvalidOperationError(
            f"pl.{category}.alloc takes a memory space and a size",
            span=span,
            hint="Write pl.tile.alloc(pl.Mem.Vec, 1024)",
        )
    space = node.args[0]
    if isinstance(space, ast.Attribute):
        spelled = ast.copy_location(ast.Attribute(ast.Name("MemorySpace"), space.attr), space)
        member = enum_literal(p, spelled, ir.MemorySpace, ParserTypeError)
        args = [ir.ConstInt(member.value, ir.DataType.INDEX, span), p.expr(node.args[1])]
    else:
        args = [p.expr(argument) for argument in node.args]
    kwargs = {keyword.arg: p.closure.evaluate(keyword.value, span) for keyword in node.keywords}
    return create_op_call(f"{category}.alloc", args, kwargs, span)


def _parse_world_size(p: FunctionParser, node: ast.Call) -> ir.Expr:
    check_host_only(p, node, "world_size")
    return parse_op_call(p, node, find_op(p, node, dotted_name(node.func)))


_SPECIAL: dict[str, CallHandler] = {
    "pl.const": parse_const,
    "pl.submit": reject_bare_submit,
    "pl.spmd_submit": reject_bare_submit,
    "pl.tensor.dim": _parse_dim,
    "pl.tensor.alloc": _parse_alloc,
    "pl.tile.alloc": _parse_alloc,
    "pl.system.task_dummy": parse_task_dummy,
    "pld.alloc_window_buffer": reject_misplaced_window_buffer,
    "pld.tensor.alloc_window_buffer": reject_misplaced_window_buffer,
    "pld.world_size": _parse_world_size,
    "pld.system.world_size": _parse_world_size,
}
for _name in ("aiv_shard", "aic_gather"):
    for _prefix in ("pl", "pl.tile", "pl.tensor"):
        _SPECIAL[f"{_prefix}.{_name}"] = parse_lane_transfer

# Recognised whatever stands before the last dot, and as bare names.
_SPECIAL_BY_LEAF: dict[str, CallHandler] = {
    "yield_": parse_yield_expression,
    "get_byte": _parse_get_byte,
}
