"""Scalar expressions as C++ text.

Operations are parenthesized, so precedence never has to be thought about. Division and remainder of integers
round down as in Python: operands that may be negative go through a helper function of the generated file.
Laid out with an explicit stack, as depth follows the user's program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from pypto.codegen.orchestration.cpp_types import (
    NARROW_FLOATS,
    cpp_type,
    float_literal,
    int_literal,
    narrow_float_literal,
)
from pypto.core.dtype import DataType
from pypto.core.errors import InternalError
from pypto.ir import expr as ir
from pypto.ir.expr import Expr, Var
from pypto.ir.types import ScalarType

__all__ = ["HELPERS", "ScalarScope", "is_non_negative", "scalar_dtype", "scalar_text"]

Piece = str | Expr


class ScalarScope(Protocol):
    """What an expression needs to know about its surroundings."""

    def text_of(self, var: Var) -> str:
        """The C++ text that stands for the variable's value."""

    def is_non_negative_var(self, var: Var) -> bool:
        """Whether the variable can be shown to be at least zero."""

    def query_text(self, call: ir.Call) -> str:
        """The text of an operator call inside an expression."""

    def need_helper(self, name: str) -> None:
        """Make a helper function part of the file."""


HELPERS = {
    "floor_div": """static inline int64_t floor_div(int64_t a, int64_t b) {
    if (b == 0) { rt_report_fatal(1, "integer division by zero"); return 0; }
    int64_t q = a / b;
    return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}""",
    "floor_mod": """static inline int64_t floor_mod(int64_t a, int64_t b) {
    if (b == 0) { rt_report_fatal(1, "integer division by zero"); return 0; }
    int64_t r = a % b;
    return (r != 0 && (r < 0) != (b < 0)) ? r + b : r;
}""",
    "int_pow": """static inline int64_t int_pow(int64_t base, int64_t exponent) {
    int64_t result = 1;
    for (; exponent > 0; exponent -= 1) result *= base;
    return result;
}""",
}

_INFIX: dict[type[Expr], str] = {
    ir.Add: "+",
    ir.Sub: "-",
    ir.Mul: "*",
    ir.Eq: "==",
    ir.Ne: "!=",
    ir.Lt: "<",
    ir.Le: "<=",
    ir.Gt: ">",
    ir.Ge: ">=",
    ir.And: "&&",
    ir.Or: "||",
    ir.Xor: "!=",
    ir.BitAnd: "&",
    ir.BitOr: "|",
    ir.BitXor: "^",
    ir.BitShiftLeft: "<<",
    ir.BitShiftRight: ">>",
}


def scalar_text(scope: ScalarScope, expr: Expr) -> str:
    """The C++ text of a scalar expression."""
    out: list[str] = []
    stack: list[Piece] = [expr]
    while stack:
        piece = stack.pop()
        if isinstance(piece, str):
            out.append(piece)
            continue
        layout = _LAYOUTS.get(type(piece))
        if layout is None:
            raise InternalError(
                f"a {type(piece).__name__} cannot stand in a scalar expression of an orchestration"
            )
        pieces = layout(scope, piece)
        if isinstance(pieces, str):
            out.append(pieces)
        else:
            stack += reversed(pieces)
    return "".join(out)


def scalar_dtype(expr: Expr) -> DataType:
    """The element type of a scalar expression."""
    if not isinstance(expr.type, ScalarType):
        raise InternalError(f"expected a scalar, got a value of type {type(expr.type).__name__}")
    return expr.type.dtype


def is_non_negative(scope: ScalarScope, root: Expr) -> bool:
    """Whether an expression is at least zero whatever the run-time values; False when not shown."""
    known: dict[int, bool] = {}
    stack: list[Expr] = [root]
    while stack:
        expr = stack[-1]
        if id(expr) in known:
            stack.pop()
            continue
        operands = _operands(expr)
        pending = [operand for operand in operands if id(operand) not in known]
        if pending:
            stack += pending
            continue
        stack.pop()
        known[id(expr)] = _shown_non_negative(scope, expr, [known[id(operand)] for operand in operands])
    return known[id(root)]


def _operands(expr: Expr) -> tuple[Expr, ...]:
    if isinstance(expr, ir.BinaryExpr):
        return (expr.left, expr.right)
    return (expr.operand,) if isinstance(expr, ir.UnaryExpr) else ()


def _shown_non_negative(scope: ScalarScope, expr: Expr, operands: list[bool]) -> bool:
    if isinstance(expr, ir.ConstInt):
        return expr.value >= 0
    if isinstance(expr, ir.Var):
        return scope.is_non_negative_var(expr)
    if isinstance(expr, ir.Call):
        return expr.op.name in ("tensor.dim", "system.available_cluster_count", "system.available_aiv_count")
    if isinstance(expr, ir.Max):
        return any(operands)
    if isinstance(expr, ir.FloorMod):
        return operands[1]
    if isinstance(expr, ir.Add | ir.Mul | ir.FloorDiv | ir.Min | ir.BitAnd | ir.BitOr | ir.BitShiftRight):
        return all(operands)
    if isinstance(expr, ir.Cast):
        return operands[0] and (scalar_dtype(expr).is_int() or scalar_dtype(expr).is_float())
    return isinstance(expr, ir.Abs)


def _var(scope: ScalarScope, expr: ir.Var) -> str:
    return scope.text_of(expr)


def _const_int(_scope: ScalarScope, expr: ir.ConstInt) -> str:
    return int_literal(expr.value)


def _const_float(_scope: ScalarScope, expr: ir.ConstFloat) -> str:
    if expr.dtype in NARROW_FLOATS:
        return narrow_float_literal(expr.dtype, expr.value)
    return float_literal(expr.value)


def _const_bool(_scope: ScalarScope, expr: ir.ConstBool) -> str:
    return "1" if expr.value else "0"


def _infix(_scope: ScalarScope, expr: ir.BinaryExpr) -> list[Piece]:
    _check_computable(expr.left)
    return ["(", expr.left, f" {_INFIX[type(expr)]} ", expr.right, ")"]


def _check_computable(expr: Expr) -> None:
    if scalar_dtype(expr) in NARROW_FLOATS:
        raise ValueError(
            f"arithmetic on scalars of dtype {scalar_dtype(expr)} is not possible in an orchestration; "
            "move it into an InCore scope"
        )


def _float_div(_scope: ScalarScope, expr: ir.FloatDiv) -> list[Piece]:
    _check_computable(expr.left)
    if scalar_dtype(expr).is_float() and scalar_dtype(expr.left).is_float():
        return ["(", expr.left, " / ", expr.right, ")"]
    as_double = "static_cast<double>("
    result = f"static_cast<{cpp_type(scalar_dtype(expr))}>("
    return [result, as_double, expr.left, ") / ", as_double, expr.right, "))"]


def _is_positive(divisor: Expr) -> bool:
    return isinstance(divisor, ir.ConstInt) and divisor.value > 0


def _floor_div(scope: ScalarScope, expr: ir.FloorDiv) -> list[Piece]:
    _check_computable(expr.left)
    if scalar_dtype(expr).is_float():
        return ["__builtin_floorf(", expr.left, " / ", expr.right, ")"]
    if is_non_negative(scope, expr.left) and _is_positive(expr.right):
        return ["(", expr.left, " / ", expr.right, ")"]
    scope.need_helper("floor_div")
    return _narrowed(expr, ["floor_div(", expr.left, ", ", expr.right, ")"])


def _floor_mod(scope: ScalarScope, expr: ir.FloorMod) -> list[Piece]:
    _check_computable(expr.left)
    if scalar_dtype(expr).is_float():
        left, right = expr.left, expr.right
        return ["(", left, " - __builtin_floorf(", left, " / ", right, ") * ", right, ")"]
    if is_non_negative(scope, expr.left) and _is_positive(expr.right):
        return ["(", expr.left, " % ", expr.right, ")"]
    scope.need_helper("floor_mod")
    return _narrowed(expr, ["floor_mod(", expr.left, ", ", expr.right, ")"])


def _narrowed(expr: ir.BinaryExpr, pieces: list[Piece]) -> list[Piece]:
    """A 64-bit result in the expression's own type."""
    text = cpp_type(scalar_dtype(expr))
    return pieces if text == "int64_t" else [f"static_cast<{text}>(", *pieces, ")"]


def _pow(scope: ScalarScope, expr: ir.Pow) -> list[Piece]:
    _check_computable(expr.left)
    if scalar_dtype(expr).is_float():
        return ["__builtin_powf(", expr.left, ", ", expr.right, ")"]
    scope.need_helper("int_pow")
    return _narrowed(expr, ["int_pow(", expr.left, ", ", expr.right, ")"])


def _min_max(_scope: ScalarScope, expr: ir.BinaryExpr) -> list[Piece]:
    _check_computable(expr.left)
    name = "min" if isinstance(expr, ir.Min) else "max"
    return [f"std::{name}<{cpp_type(scalar_dtype(expr))}>(", expr.left, ", ", expr.right, ")"]


def _neg(_scope: ScalarScope, expr: ir.Neg) -> list[Piece]:
    _check_computable(expr.operand)
    if isinstance(expr.operand, ir.ConstInt | ir.ConstFloat):
        return ["(-(", expr.operand, "))"]
    return ["(-", expr.operand, ")"]


def _not(_scope: ScalarScope, expr: ir.Not) -> list[Piece]:
    return ["(!", expr.operand, ")"]


def _bit_not(_scope: ScalarScope, expr: ir.BitNot) -> list[Piece]:
    return [f"static_cast<{cpp_type(scalar_dtype(expr))}>(~", expr.operand, ")"]


def _abs(_scope: ScalarScope, expr: ir.Abs) -> list[Piece]:
    _check_computable(expr.operand)
    if scalar_dtype(expr).is_float():
        return ["__builtin_fabsf(", expr.operand, ")"]
    return [f"static_cast<{cpp_type(scalar_dtype(expr))}>(__builtin_llabs(", expr.operand, "))"]


def _cast(_scope: ScalarScope, expr: ir.Cast) -> list[Piece]:
    _check_computable(expr.operand)
    if scalar_dtype(expr) in NARROW_FLOATS:
        raise ValueError(
            f"a cast to {scalar_dtype(expr)} is not possible in an orchestration; "
            "move it into an InCore scope"
        )
    return [f"static_cast<{cpp_type(scalar_dtype(expr))}>(", expr.operand, ")"]


def _call(scope: ScalarScope, expr: ir.Call) -> str:
    return scope.query_text(expr)


_LAYOUTS: dict[type[Expr], Callable[..., str | list[Piece]]] = {
    **dict.fromkeys(_INFIX, _infix),
    ir.Var: _var,
    ir.IterArg: _var,
    ir.ConstInt: _const_int,
    ir.ConstFloat: _const_float,
    ir.ConstBool: _const_bool,
    ir.FloatDiv: _float_div,
    ir.FloorDiv: _floor_div,
    ir.FloorMod: _floor_mod,
    ir.Pow: _pow,
    ir.Min: _min_max,
    ir.Max: _min_max,
    ir.Neg: _neg,
    ir.Not: _not,
    ir.BitNot: _bit_not,
    ir.Abs: _abs,
    ir.Cast: _cast,
    ir.Call: _call,
}
