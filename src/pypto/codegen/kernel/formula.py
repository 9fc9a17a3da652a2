"""Formulas of elementwise operators as C++ expressions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pypto.ir.meaning import parse_formula

#: Functions that exist for float only; a formula that calls one computes in float whatever the element type.
FLOAT_FUNCTIONS = frozenset({"exp", "log", "sqrt", "rsqrt", "recip", "sin", "cos"})

_BINARY_OPERATORS: dict[type[ast.operator], tuple[str, str]] = {
    # node -> (C++ operator for floats, wrapping function for integers)
    ast.Add: ("+", "add"),
    ast.Sub: ("-", "sub"),
    ast.Mult: ("*", "mul"),
}
_BIT_OPERATORS: dict[type[ast.operator], str] = {ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_COMPARE_CODES = ("==", "!=", "<", "<=", ">", ">=")


def calls_float_function(formula: str) -> bool:
    """Whether the formula is only defined for floats."""
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FLOAT_FUNCTIONS
        for node in ast.walk(parse_formula(formula))
    )


@dataclass(frozen=True, slots=True)
class FormulaRenderer:
    """Renders formulas over values of one C++ type.

    Attributes:
        ctype: the type of operands and results.
        names: C++ text of the names that occur (operands as they are, keywords as their value).
    """

    ctype: str
    names: Mapping[str, str]

    def render(self, formula: str) -> str:
        text = self._expr(parse_formula(formula))
        return text[1:-1] if _is_wrapped(text) else text

    def _expr(self, node: ast.expr) -> str:
        handler: Callable[[FormulaRenderer, ast.expr], str] | None = _HANDLERS.get(type(node))
        if handler is None:
            raise ValueError(f"a formula may not contain {type(node).__name__}")
        return handler(self, node)

    def _binary(self, node: ast.BinOp) -> str:
        left, right = self._expr(node.left), self._expr(node.right)
        if type(node.op) in _BIT_OPERATORS:
            return f"{self.ctype}({left} {_BIT_OPERATORS[type(node.op)]} {right})"
        operator, function = _BINARY_OPERATORS[type(node.op)]
        if self.ctype == "float":
            return f"({left} {operator} {right})"
        return f"pypto::{function}<{self.ctype}>({left}, {right})"

    def _unary(self, node: ast.UnaryOp) -> str:
        operand = self._expr(node.operand)
        if isinstance(node.op, ast.USub):
            return f"(-{operand})" if self.ctype == "float" else f"pypto::neg<{self.ctype}>({operand})"
        if isinstance(node.op, ast.Invert):
            return f"{self.ctype}(~{operand})"
        return f"(!{operand})"

    def _compare(self, node: ast.Compare) -> str:
        (operator,), (right,) = node.ops, node.comparators
        return f"({self._expr(node.left)} {_COMPARISONS[type(operator)]} {self._expr(right)})"

    def _call(self, node: ast.Call) -> str:
        assert isinstance(node.func, ast.Name)
        name = node.func.id
        args = [self._expr(arg) for arg in node.args]
        if name == "compare":
            return f"({args[0]} {_COMPARE_CODES[int(args[2])]} {args[1]})"
        return f"pypto::{name}({', '.join(args)})" if name in FLOAT_FUNCTIONS else self._generic(name, args)

    def _generic(self, name: str, args: list[str]) -> str:
        return f"pypto::{name}<{self.ctype}>({', '.join(args)})"

    def _name(self, node: ast.Name) -> str:
        return self.names[node.id]

    def _constant(self, node: ast.Constant) -> str:
        assert isinstance(node.value, (int, float))
        if self.ctype == "float":
            return f"{float(node.value)!r}f"
        return f"{self.ctype}({node.value})"


_HANDLERS: dict[type[ast.expr], Callable[[FormulaRenderer, ast.expr], str]] = {
    ast.BinOp: FormulaRenderer._binary,  # type: ignore[dict-item]
    ast.UnaryOp: FormulaRenderer._unary,  # type: ignore[dict-item]
    ast.Compare: FormulaRenderer._compare,  # type: ignore[dict-item]
    ast.Call: FormulaRenderer._call,  # type: ignore[dict-item]
    ast.Name: FormulaRenderer._name,  # type: ignore[dict-item]
    ast.Constant: FormulaRenderer._constant,  # type: ignore[dict-item]
}


def _is_wrapped(text: str) -> bool:
    """Whether the first parenthesis closes at the end."""
    if not (text.startswith("(") and text.endswith(")")):
        return False
    depth = 0
    for position, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0:
            return position == len(text) - 1
    return False
