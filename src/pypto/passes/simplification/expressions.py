"""What expressions and types become: replaced variables, simplified arithmetic, views that change nothing."""

from __future__ import annotations

from typing import Any

from pypto import ir
from pypto.ir.arith import Analyzer
from pypto.ir.rewrite import is_static_type

_CONSTANTS = (ir.ConstInt, ir.ConstFloat, ir.ConstBool)
_SCALAR = (ir.BinaryExpr, ir.UnaryExpr)


class Rewriting:
    """The replacements that hold at the present statement, and their application."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self.replaced: dict[ir.Var, ir.Expr] = {}

    def expr(self, expr: ir.Expr) -> ir.Expr:
        """Rewrite an expression; the same object if nothing applies."""
        if isinstance(expr, ir.Var):
            return self.replaced.get(expr, expr)
        if isinstance(expr, _CONSTANTS) or self._is_settled(expr):
            return expr
        done: dict[ir.Expr, ir.Expr] = {}
        pending = [expr]
        while pending:
            node = pending[-1]
            if node in done:
                pending.pop()
                continue
            waiting = []
            for child in node._children():
                if child in done:
                    continue
                if isinstance(child, ir.Var):
                    done[child] = self.replaced.get(child, child)
                elif isinstance(child, _CONSTANTS):
                    done[child] = child
                else:
                    waiting.append(child)
            if waiting:
                pending += reversed(waiting)
                continue
            done[node] = self._node(node, done)
            pending.pop()
        return self._simplified(done[expr])

    def _node(self, node: ir.Expr, done: dict[ir.Expr, ir.Expr]) -> ir.Expr:
        """Rebuild one node; arithmetic is simplified where it ends, not at each of its nodes."""
        if isinstance(node, _SCALAR):
            scalar: ir.Expr = node._map_children(done.__getitem__, self.type)
            return scalar
        result: ir.Expr = node._map_children(lambda child: self._simplified(done[child]), self.type)
        return _without_idle_view(result) if isinstance(result, ir.Call) else result

    def _simplified(self, expr: ir.Expr) -> ir.Expr:
        return self.analyzer.simplify(expr) if isinstance(expr, _SCALAR) else expr

    def _is_settled(self, expr: ir.Expr) -> bool:
        """Say quickly that a call of variables and constants stays as it is."""
        if not isinstance(expr, ir.Call) or expr.op.name == "tensor.view" or not is_static_type(expr.type):
            return False
        for child in expr._children():
            if isinstance(child, ir.MakeTuple):
                if not all(isinstance(element, _CONSTANTS) for element in child.elements_):
                    return False
            elif isinstance(child, ir.Var):
                if child in self.replaced:
                    return False
            elif not isinstance(child, _CONSTANTS):
                return False
        return True

    def type(self, type_: ir.Type) -> ir.Type:
        """Rewrite the extents, strides and offsets of a type."""
        if is_static_type(type_):
            return type_
        rewritten: ir.Type = type_._map_children(self.expr, self.type)
        return rewritten

    def attrs(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Rewrite references in attributes. A list of variables stays one: constants do not enter it."""
        if not attrs:
            return attrs
        changed: dict[str, Any] = {}
        for key, value in attrs.items():
            if isinstance(value, ir.Expr):
                new: Any = self.expr(value)
            elif isinstance(value, tuple) and value and isinstance(value[0], ir.Var):
                new = tuple(self._var(var) for var in value)
                if all(a is b for a, b in zip(new, value, strict=True)):
                    continue
            else:
                continue
            if new is not value:
                changed[key] = new
        return {**attrs, **changed} if changed else attrs

    def _var(self, var: ir.Var) -> ir.Var:
        new = self.replaced.get(var, var)
        return new if isinstance(new, ir.Var) else var


def _without_idle_view(call: ir.Call) -> ir.Expr:
    """Return the argument of a `tensor.view` that keeps the layout."""
    if call.op.name != "tensor.view" or len(call.args_) != 1:
        return call
    source = call.args_[0]
    if not isinstance(source.type, ir.TensorType) or not isinstance(call.type, ir.TensorType):
        return call
    return source if _layout(source.type) is _layout(call.type) else call


def _layout(type_: ir.TensorType) -> ir.TensorLayout:
    return type_.tensor_view.layout if type_.tensor_view is not None else ir.TensorLayout.ND
