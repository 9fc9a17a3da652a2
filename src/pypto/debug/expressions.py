"""Python text of scalar expressions, and of the names in them."""

from __future__ import annotations

import keyword
import math
from collections.abc import Iterable

from pypto import ir

_OR, _AND, _NOT, _COMPARISON, _BIT_OR, _BIT_XOR, _BIT_AND = range(7)
_SHIFT, _SUM, _PRODUCT, _SIGN, _ATOM = range(7, 12)
_INFIX: dict[type, tuple[str, int]] = {
    ir.Or: ("or", _OR),
    ir.And: ("and", _AND),
    ir.Eq: ("==", _COMPARISON),
    ir.Ne: ("!=", _COMPARISON),
    ir.Lt: ("<", _COMPARISON),
    ir.Le: ("<=", _COMPARISON),
    ir.Gt: (">", _COMPARISON),
    ir.Ge: (">=", _COMPARISON),
    ir.BitOr: ("|", _BIT_OR),
    ir.BitXor: ("^", _BIT_XOR),
    ir.Xor: ("^", _BIT_XOR),
    ir.BitAnd: ("&", _BIT_AND),
    ir.BitShiftLeft: ("<<", _SHIFT),
    ir.BitShiftRight: (">>", _SHIFT),
    ir.Add: ("+", _SUM),
    ir.Sub: ("-", _SUM),
    ir.Mul: ("*", _PRODUCT),
    ir.FloorDiv: ("//", _PRODUCT),
    ir.FloorMod: ("%", _PRODUCT),
    ir.FloatDiv: ("/", _PRODUCT),
}
"""Operators of Python, from the loosest to the tightest; all group to the left."""

_PREFIX: dict[type, tuple[str, int]] = {ir.Not: ("not ", _NOT), ir.Neg: ("-", _SIGN), ir.BitNot: ("~", _SIGN)}
_CALLED: dict[type, str] = {ir.Min: "min", ir.Max: "max", ir.Abs: "abs", ir.Pow: "pow"}
RESERVED = frozenset({*keyword.kwlist, "ir", "rt", "int", "float", "range", "inf", "nan", *_CALLED.values()})


class ExpressionSource:
    """Writes expressions; every variable has a name of its own, different from the `taken` ones."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.names: dict[ir.Var, str] = {}
        self.taken = {*RESERVED, *taken}

    def name(self, var: ir.Var) -> str:
        found = self.names.get(var)
        if found is None:
            base = var.name_hint if var.name_hint.isidentifier() else "value"
            found, number = base, 0
            while found in self.taken:
                number += 1
                found = f"{base}_{number}"
            self.taken.add(found)
            self.names[var] = found
        return found

    def list_of(self, exprs: Iterable[ir.Expr]) -> str:
        return ", ".join(self.expr(each) for each in exprs)

    def expr(self, expr: ir.Expr, loosest: int = _OR) -> str:
        """Text of an expression, in parentheses if it binds looser than `loosest`."""
        text, level = self._expr(expr)
        return text if level >= loosest else f"({text})"

    def _expr(self, expr: ir.Expr) -> tuple[str, int]:
        kind = type(expr)
        if isinstance(expr, ir.Var):
            return self.name(expr), _ATOM
        if isinstance(expr, ir.ConstInt | ir.ConstFloat | ir.ConstBool):
            text = number(expr.value)
            return text, _SIGN if text.startswith("-") else _ATOM
        if isinstance(expr, ir.Call | ir.Submit):
            return self.call(expr), _ATOM
        if isinstance(expr, ir.MakeTuple):
            return f"[{self.list_of(expr.elements_)}]", _ATOM
        if isinstance(expr, ir.TupleGetItemExpr):
            return f"{self.expr(expr.tuple, _ATOM)}[{expr.index}]", _ATOM
        if isinstance(expr, ir.Cast):
            return f"{'float' if expr.dtype.is_float() else 'int'}({self.expr(expr.operand)})", _ATOM
        if kind in _PREFIX:
            assert isinstance(expr, ir.UnaryExpr)
            sign, level = _PREFIX[kind]
            return f"{sign}{self.expr(expr.operand, level)}", level
        if kind in _CALLED:
            operands = [expr.operand] if isinstance(expr, ir.UnaryExpr) else [expr.left, expr.right]  # type: ignore[attr-defined]
            return f"{_CALLED[kind]}({self.list_of(operands)})", _ATOM
        if kind not in _INFIX:
            raise ValueError(f"Unsupported expression {kind.__name__} in torch_codegen")
        assert isinstance(expr, ir.BinaryExpr)
        sign, level = _INFIX[kind]
        left = self.expr(expr.left, level + (level == _COMPARISON))
        return f"{left} {sign} {self.expr(expr.right, level + 1)}", level

    def call(self, call: ir.Call | ir.Submit) -> str:
        """Text of a call."""
        raise ValueError(f"{call.op.name} is no scalar expression")


def number(value: float) -> str:
    """Text of a number that reads back as the same."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({str(value)!r})"
    return repr(value)
