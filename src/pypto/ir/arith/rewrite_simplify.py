"""Simplification by rewrite rules.

Per node: simplify the operands, fold, then try the rules of the operator in order (`rules`). What a rule
builds is simplified again, at most five levels deep. Integer expressions only: a float expression comes
back as it is, a comparison of floats is only folded. Nothing recurses: depth follows the user's
expression.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from pypto.ir import expr as nodes
from pypto.ir.arith.fold import binary, fold_const, is_float, is_int
from pypto.ir.arith.rules import RULES
from pypto.ir.arith.traversal import operands_of
from pypto.ir.expr import BinaryExpr, ConstBool, ConstFloat, ConstInt, Expr, UnaryExpr, Var
from pypto.ir.node import expect

if TYPE_CHECKING:
    from pypto.ir.arith.const_int_bound import ConstIntBoundAnalyzer

MAX_REWRITE_DEPTH = 5

_COMPARISONS = (nodes.Eq, nodes.Ne, nodes.Lt, nodes.Le, nodes.Gt, nodes.Ge)
_SWAPPED: dict[type[Expr], type[BinaryExpr]] = {nodes.Gt: nodes.Lt, nodes.Ge: nodes.Le}


class _NoBounds:
    """Answers bound questions when there is no analyzer to ask."""

    def lower(self, expr: Expr, minus: Expr | None = None) -> float:
        return -math.inf

    def upper(self, expr: Expr, minus: Expr | None = None) -> float:
        return math.inf


class _AnalyzerBounds:
    """Answers bound questions from a bound analyzer."""

    def __init__(self, analyzer: ConstIntBoundAnalyzer) -> None:
        self._analyzer = analyzer

    def lower(self, expr: Expr, minus: Expr | None = None) -> float:
        bound = self._analyzer(_difference(expr, minus))
        return -math.inf if bound.min_value <= bound.kNegInf else bound.min_value

    def upper(self, expr: Expr, minus: Expr | None = None) -> float:
        bound = self._analyzer(_difference(expr, minus))
        return math.inf if bound.max_value >= bound.kPosInf else bound.max_value


def _difference(expr: Expr, minus: Expr | None) -> Expr:
    return expr if minus is None else binary(nodes.Sub, expr, minus, expr.span)


class RewriteSimplifier:
    """Simplifies integer and boolean expressions by the rule tables.

    Args:
        bounds: proves the conditions of rules that depend on ranges; without it those rules never apply.
    """

    def __init__(self, bounds: ConstIntBoundAnalyzer | None = None) -> None:
        self._bounds = _NoBounds() if bounds is None else _AnalyzerBounds(bounds)
        self._substituted: dict[Var, Expr] = {}

    def __call__(self, expr: Expr) -> Expr:
        """Return the simplified expression; the same object if nothing applies."""
        if isinstance(expr, Var):
            return self._substituted.get(expr, expr)
        expect(expr, Expr, "the expression to simplify")
        return _Run(self._bounds, self._substituted).simplify(expr)

    def update(self, var: Var, value: Expr | None) -> None:
        """Substitute `var` by `value` from now on; None stops that."""
        if value is None:
            self._substituted.pop(var, None)
        else:
            self._substituted[var] = value

    def enter_constraint(self, constraint: Expr) -> Callable[[], None]:
        """Accept a constraint and return its undo function; constraints do not change rewriting."""
        return lambda: None


class _Run:
    """One simplification: what each visited node has become."""

    def __init__(self, bounds: _NoBounds | _AnalyzerBounds, substituted: dict[Var, Expr]) -> None:
        self._bounds = bounds
        self._substituted = substituted
        self._done: dict[Expr, Expr] = {}

    def simplify(self, root: Expr) -> Expr:
        done = self._done
        # (node, rewritten form or None, level): a node waits below its operands, or below its rewritten form.
        pending: list[tuple[Expr, Expr | None, int]] = [(root, None, 0)]
        while pending:
            node, rewritten, level = pending[-1]
            if node in done:
                pending.pop()
                continue
            if rewritten is not None:
                done[node] = done[rewritten]
                pending.pop()
                continue
            if is_opaque(node):
                done[node] = self._substituted.get(node, node) if isinstance(node, Var) else node
                pending.pop()
                continue
            waiting = [operand for operand in operands_of(node) if operand not in done]
            if waiting:
                pending += [(operand, None, level) for operand in reversed(waiting)]
                continue
            pending.pop()
            result, again = self._apply(node)
            if again and level < MAX_REWRITE_DEPTH and result is not node:
                pending.append((node, result, level))
                if result not in done:
                    pending.append((result, None, level + 1))
            else:
                done[node] = result
                done.setdefault(result, result)
        return done[root]

    def _apply(self, node: Expr) -> tuple[Expr, bool]:
        """Return the node after one step, and whether the result is to be simplified again."""
        node = with_operands(node, [self._done[operand] for operand in operands_of(node)])
        folded = fold_const(node)
        if folded is not None:
            return folded, False
        if not isinstance(node, BinaryExpr | UnaryExpr) or _compares_non_integers(node):
            return node, False
        swapped = _SWAPPED.get(type(node))
        if swapped is not None:
            assert isinstance(node, BinaryExpr)
            return swapped(node.right, node.left, node.dtype, node.span), True
        rules = RULES.get(type(node))
        result = rules.apply(node, self._bounds) if rules is not None else None
        return (node, False) if result is None else (result, True)


def is_opaque(expr: Expr) -> bool:
    """Say whether an expression is taken as a whole: leaves, calls, tuples, anything of float type."""
    return not isinstance(expr, BinaryExpr | UnaryExpr) or is_float(expr)


def _compares_non_integers(node: Expr) -> bool:
    return isinstance(node, _COMPARISONS) and not (is_int(node.left) and is_int(node.right))


def with_operands(node: Expr, operands: list[Expr]) -> Expr:
    """Return the node with other operands; the node itself if they are the present ones."""
    if isinstance(node, BinaryExpr):
        left, right = operands
        if left is node.left and right is node.right:
            return node
        return type(node).make(node.type, left, right, node.span)
    if isinstance(node, UnaryExpr):
        return node if operands[0] is node.operand else type(node).make(node.type, operands[0], node.span)
    return node


def is_constant(expr: Expr) -> bool:
    """Say whether an expression is a literal."""
    return isinstance(expr, ConstInt | ConstFloat | ConstBool)
