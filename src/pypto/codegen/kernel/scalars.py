"""Scalar expressions as C++.

Integers of 64 bits use the plain operators; narrower ones wrap, division and modulo floor, floats narrower
than FP32 are rounded after each operation. Rendering is iterative. A subexpression that is used more than
once, or nested too deep for a compiler, becomes a variable of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pypto import ir
from pypto.codegen.kernel.elements import Element, element_of, literal

_MAX_DEPTH = 40

_COMPARISONS: dict[type[ir.Expr], str] = {
    ir.Eq: "==", ir.Ne: "!=", ir.Lt: "<", ir.Le: "<=", ir.Gt: ">", ir.Ge: ">=",
}  # fmt: skip
_LOGICAL: dict[type[ir.Expr], str] = {ir.And: "&&", ir.Or: "||", ir.Xor: "!="}
_BITWISE: dict[type[ir.Expr], str] = {ir.BitAnd: "&", ir.BitOr: "|", ir.BitXor: "^"}
_PLAIN: dict[type[ir.Expr], str] = {ir.Add: "+", ir.Sub: "-", ir.Mul: "*"}
_FUNCTIONS: dict[type[ir.Expr], str] = {
    ir.Add: "add", ir.Sub: "sub", ir.Mul: "mul", ir.FloorDiv: "floordiv", ir.FloorMod: "floormod",
    ir.FloatDiv: "div", ir.Min: "min", ir.Max: "max", ir.BitShiftLeft: "shl", ir.BitShiftRight: "shr",
}  # fmt: skip

_WIDE = frozenset({"int64_t", "float"})


@dataclass(frozen=True, slots=True)
class Text:
    """C++ text of a subexpression, without outer parentheses, and how it binds."""

    text: str
    is_atom: bool
    depth: int = 0

    @property
    def operand(self) -> str:
        return self.text if self.is_atom else f"({self.text})"


@dataclass(slots=True)
class ScalarRenderer:
    """Renders scalar expressions.

    Attributes:
        names: C++ text of the variables in scope.
        define: emits `const <ctype> <name> = <text>;` and returns the name; called for shared or deep
            subexpressions.
        render_call: C++ text of an operator call inside an expression.
    """

    names: Mapping[ir.Var, str]
    define: Callable[[str, str], str]
    render_call: Callable[[ir.Call], str]
    _texts: dict[int, Text] = field(default_factory=dict)

    def __call__(self, expr: ir.Expr) -> str:
        return self.render(expr).text

    def render(self, expr: ir.Expr) -> Text:
        """C++ text of `expr` in the compute type of its dtype."""
        if isinstance(expr, (ir.Var, ir.ConstInt, ir.ConstFloat, ir.ConstBool)):
            return self._leaf(expr)
        shared = _shared_nodes(expr)
        self._texts = {}
        pending: list[tuple[ir.Expr, bool]] = [(expr, False)]
        while pending:
            node, is_ready = pending.pop()
            if id(node) in self._texts:
                continue
            operands = _operands(node)
            if not is_ready and operands:
                pending.append((node, True))
                pending.extend((operand, False) for operand in reversed(operands))
                continue
            text = self._node(node, [self._texts[id(operand)] for operand in operands])
            if operands and node is not expr and (id(node) in shared or text.depth > _MAX_DEPTH):
                text = Text(self.define(scalar_element(node).compute, text.text), True)
            self._texts[id(node)] = text
        return self._texts[id(expr)]

    def _leaf(self, expr: ir.Expr) -> Text:
        if isinstance(expr, ir.Var):
            name = self.names.get(expr)
            if name is None:
                raise ValueError(f"variable '{expr.name_hint}' is not defined here")
            return Text(name, True)
        assert isinstance(expr, (ir.ConstInt, ir.ConstFloat, ir.ConstBool))
        text = literal(expr.value, scalar_element(expr))
        return Text(text, not text.startswith("-"))

    def _node(self, node: ir.Expr, operands: list[Text]) -> Text:
        if isinstance(node, (ir.Var, ir.ConstInt, ir.ConstFloat, ir.ConstBool)):
            return self._leaf(node)
        depth = 1 + max((operand.depth for operand in operands), default=0)
        if isinstance(node, ir.Call):
            return Text(self.render_call(node), True, depth)
        if isinstance(node, ir.BinaryExpr):
            return _binary(node, operands[0], operands[1], depth)
        if isinstance(node, ir.UnaryExpr):
            return _unary(node, operands[0], depth)
        raise ValueError(f"{type(node).__name__} is not supported in a scalar expression of a kernel")


def scalar_element(expr: ir.Expr) -> Element:
    """Element type of a scalar expression."""
    if not isinstance(expr.type, ir.ScalarType):
        raise ValueError(f"a scalar is needed, not {type(expr.type).__name__}")
    return element_of(expr.type.dtype)


def _operands(node: ir.Expr) -> tuple[ir.Expr, ...]:
    if isinstance(node, ir.BinaryExpr):
        return (node.left, node.right)
    if isinstance(node, ir.UnaryExpr):
        return (node.operand,)
    return ()


def _shared_nodes(expr: ir.Expr) -> set[int]:
    """Inner nodes that are reached more than once."""
    seen: set[int] = set()
    shared: set[int] = set()
    pending = [expr]
    while pending:
        node = pending.pop()
        operands = _operands(node)
        if not operands:
            continue
        if id(node) in seen:
            shared.add(id(node))
            continue
        seen.add(id(node))
        pending.extend(operands)
    return shared


def _binary(node: ir.BinaryExpr, left: Text, right: Text, depth: int) -> Text:
    kind = type(node)
    element = element_of(node.dtype)
    for table in (_COMPARISONS, _LOGICAL):
        if kind in table:
            return Text(f"{left.operand} {table[kind]} {right.operand}", False, depth)
    if kind in _BITWISE:
        return Text(f"{element.compute}({left.operand} {_BITWISE[kind]} {right.operand})", True, depth)
    if kind is ir.Pow:
        function = "pypto::pow" if element.is_float else f"pypto::ipow<{element.compute}>"
        return _rounded(Text(f"{function}({left.text}, {right.text})", True, depth), element)
    if kind in _PLAIN and element.compute in _WIDE:
        return _rounded(Text(f"{left.operand} {_PLAIN[kind]} {right.operand}", False, depth), element)
    return _rounded(
        Text(f"pypto::{_FUNCTIONS[kind]}<{element.compute}>({left.text}, {right.text})", True, depth), element
    )


def _unary(node: ir.UnaryExpr, operand: Text, depth: int) -> Text:
    element = element_of(node.dtype)
    if isinstance(node, ir.Not):
        return Text(f"!{operand.operand}", True, depth)
    if isinstance(node, ir.BitNot):
        return Text(f"{element.compute}(~{operand.operand})", True, depth)
    if isinstance(node, ir.Cast):
        return _cast(node, operand, element, depth)
    function = "neg" if isinstance(node, ir.Neg) else "abs"
    return Text(f"pypto::{function}<{element.compute}>({operand.text})", True, depth)


def _cast(node: ir.Cast, operand: Text, element: Element, depth: int) -> Text:
    source = scalar_element(node.operand)
    if source.stored == element.stored:
        return operand
    if element.is_narrow:
        return Text(f"pypto::round_to<{element.stored}>({operand.text})", True, depth)
    return Text(f"pypto::convert<{element.compute}>({operand.text})", True, depth)


def _rounded(text: Text, element: Element) -> Text:
    if not element.is_narrow:
        return text
    return Text(f"pypto::round_to<{element.stored}>({text.text})", True, text.depth)
