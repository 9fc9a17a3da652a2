"""Simplification to a sum of terms.

An integer expression becomes `base + sum(((index % U) // L) * S)`, where an index is any expression that
is not itself such a sum. Terms with the same index object, U and L are added up; `(x // L) * (L * s) +
(x % L) * s` becomes `x * s`. Terms keep the order of their first appearance.

A maximal tree of `+`, `-`, negation and multiplication by a constant is flattened in one step by passing
coefficients from the root to the leaves, so that a long chain costs as much as its length.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from pypto.core.dtype import DataType
from pypto.core.span import Span
from pypto.ir import expr as nodes
from pypto.ir.arith.fold import binary, dtype_of, folded, is_int
from pypto.ir.arith.integers import fits_int64
from pypto.ir.arith.rewrite_simplify import is_opaque, with_operands
from pypto.ir.arith.rule_compiler import same_expr
from pypto.ir.arith.traversal import operands_of
from pypto.ir.expr import BinaryExpr, ConstInt, Expr, UnaryExpr, Var
from pypto.ir.node import expect

Key = tuple[Expr, float, int]  # index, U (an int, or infinite without a modulus), L


@dataclass(slots=True)
class _Sum:
    """`base` plus scaled terms; scales by (index, U, L) in order of first appearance."""

    base: int = 0
    scales: dict[Key, int] = field(default_factory=dict)

    def add(self, other: _Sum, factor: int) -> None:
        self.base += other.base * factor
        for key, scale in other.scales.items():
            self.add_term(key, scale * factor)

    def add_term(self, key: Key, scale: int) -> None:
        total = self.scales.get(key, 0) + scale
        if total:
            self.scales[key] = total
        else:
            self.scales.pop(key, None)

    def merge_quotients(self) -> None:
        """Join `(x // L) * (L * s)` with `(x % L) * s`."""
        for key in list(self.scales):
            index, upper, lower = key
            scale = self.scales.get(key)
            if scale is None or lower == 1 or scale % lower:
                continue
            rest = (index, lower, 1)
            if self.scales.get(rest) == scale // lower:
                del self.scales[key], self.scales[rest]
                self.add_term((index, upper, 1), scale // lower)

    def single(self) -> tuple[Key, int] | None:
        """Return the only term of a sum without base, None if it is not of that form."""
        if self.base or len(self.scales) != 1:
            return None
        return next(iter(self.scales.items()))

    def fits(self) -> bool:
        return fits_int64(self.base) and all(fits_int64(scale) for scale in self.scales.values())


def _leaf(index: Expr) -> _Sum:
    return _Sum(0, {(index, math.inf, 1): 1})


class CanonicalSimplifier:
    """Simplifies integer expressions to sums of terms."""

    def __init__(self) -> None:
        self._substituted: dict[Var, Expr] = {}

    def __call__(self, expr: Expr) -> Expr:
        """Return the canonical form; the same object if it already has it."""
        expect(expr, Expr, "the expression to simplify")
        return _Run(self._substituted).simplify(expr)

    def update(self, var: Var, value: Expr | None) -> None:
        """Substitute `var` by `value` from now on; None stops that."""
        if value is None:
            self._substituted.pop(var, None)
        else:
            self._substituted[var] = value

    def enter_constraint(self, constraint: Expr) -> None:
        """Accept a constraint; it has no effect here."""


class _Run:
    """One simplification. All sums and rebuilt nodes stay alive until it ends."""

    def __init__(self, substituted: dict[Var, Expr]) -> None:
        self._substituted = substituted
        self._sums: dict[Expr, _Sum] = {}
        self._rebuilt: dict[Expr, Expr] = {}

    def simplify(self, root: Expr) -> Expr:
        pending = [root]
        while pending:
            node = pending[-1]
            if node in self._sums:
                pending.pop()
                continue
            below = _region(node)[1] if _is_linear(node) else operands_of(node)
            waiting = [leaf for leaf in below if leaf not in self._sums] if not is_opaque(node) else []
            if waiting:
                pending += reversed(waiting)
                continue
            self._sums[node] = self._sum_of(node)
            pending.pop()
        return self._expr(root)

    def _sum_of(self, node: Expr) -> _Sum:
        if isinstance(node, ConstInt):
            return _Sum(node.value)
        if isinstance(node, Var) and node in self._substituted:
            return _leaf(self._substituted[node])
        if is_opaque(node):
            return _leaf(node)
        if _is_linear(node):
            total = self._flattened(node)
            return total if total.fits() else self._kept(node)
        if isinstance(node, nodes.FloorDiv) and is_int(node):
            return self._floor_div(node) or self._kept(node)
        if isinstance(node, nodes.FloorMod) and is_int(node):
            return self._floor_mod(node) or self._kept(node)
        return self._kept(node)

    def _kept(self, node: Expr) -> _Sum:
        """Take the node as an index, with canonical operands."""
        for operand in operands_of(node):
            if operand not in self._sums:
                return _leaf(node)
        kept = folded(with_operands(node, [self._expr(operand) for operand in operands_of(node)]))
        return _Sum(kept.value) if isinstance(kept, ConstInt) else _leaf(kept)

    def _flattened(self, root: Expr) -> _Sum:
        coefficients = {root: 1}
        total = _Sum()
        linear, leaves = _region(root)
        for node in linear:
            for operand, factor in _linear_operands(node):
                coefficients[operand] = coefficients.get(operand, 0) + coefficients[node] * factor
        for leaf in leaves:
            total.add(self._sums[leaf], coefficients[leaf])
        total.merge_quotients()
        return total

    def _floor_div(self, node: BinaryExpr) -> _Sum | None:
        divisor = self._constant(node.right)
        if divisor is None or divisor <= 0:
            return None
        dividend = self._sums[node.left]
        if dividend.base % divisor == 0 and all(s % divisor == 0 for s in dividend.scales.values()):
            return _Sum(dividend.base // divisor, {key: s // divisor for key, s in dividend.scales.items()})
        single = dividend.single()
        if single is None:
            return None
        (index, upper, lower), scale = single
        if scale <= 0 or divisor % scale:
            return None
        lower *= divisor // scale
        divides = upper == math.inf or upper % lower == 0
        return _Sum(0, {(index, upper, lower): 1}) if divides and fits_int64(lower) else None

    def _floor_mod(self, node: BinaryExpr) -> _Sum | None:
        divisor = self._constant(node.right)
        if divisor is None or divisor <= 0:
            return None
        dividend = self._sums[node.left]
        if all(scale % divisor == 0 for scale in dividend.scales.values()):
            return _Sum(dividend.base % divisor)
        single = dividend.single()
        if single is None:
            return None
        (index, upper, lower), scale = single
        if scale != 1 or lower != 1 or (upper != math.inf and upper % divisor):
            return None
        return _Sum(0, {(index, divisor, 1): 1})

    def _constant(self, expr: Expr) -> int | None:
        known = self._sums[expr]
        return known.base if not known.scales else None

    def _expr(self, node: Expr) -> Expr:
        """Rebuild the expression of a sum; the node itself if that gives the same."""
        rebuilt = self._rebuilt.get(node)
        if rebuilt is None:
            rebuilt = _build(self._sums[node], dtype_of(node), node.span)
            rebuilt = self._rebuilt[node] = node if same_expr(node, rebuilt) else rebuilt
        return rebuilt


def _is_linear(node: Expr) -> bool:
    """Say whether a node passes its coefficient on to its operands."""
    if not isinstance(node, BinaryExpr | UnaryExpr) or not is_int(node):
        return False
    if isinstance(node, nodes.Mul):
        return isinstance(node.left, ConstInt) or isinstance(node.right, ConstInt)
    return isinstance(node, nodes.Add | nodes.Sub | nodes.Neg)


def _linear_operands(node: Expr) -> list[tuple[Expr, int]]:
    if isinstance(node, nodes.Neg):
        return [(node.operand, -1)]
    assert isinstance(node, BinaryExpr)
    if isinstance(node, nodes.Mul):
        if isinstance(node.right, ConstInt):
            return [(node.left, node.right.value)]
        assert isinstance(node.left, ConstInt)
        return [(node.right, node.left.value)]
    return [(node.left, 1), (node.right, -1 if isinstance(node, nodes.Sub) else 1)]


def _region(root: Expr) -> tuple[list[Expr], list[Expr]]:
    """Return the linear nodes below `root`, parents first, and its leaves from left to right."""
    finished: list[Expr] = []
    leaves: list[Expr] = []
    entered: set[Expr] = set()
    pending: list[tuple[Expr, bool]] = [(root, False)]
    while pending:
        node, leaving = pending.pop()
        if leaving:
            finished.append(node)
        elif node not in entered:
            entered.add(node)
            if _is_linear(node):
                pending.append((node, True))
                pending += [(operand, False) for operand, _ in reversed(_linear_operands(node))]
            else:
                leaves.append(node)
    finished.reverse()
    return finished, leaves


def _build(total: _Sum, dtype: DataType, span: Span) -> Expr:
    if not total.fits():
        raise AssertionError("a sum that leaves 64 bits is never kept")
    result: Expr | None = None
    for (index, upper, lower), scale in total.scales.items():
        term = index
        if upper != math.inf:
            term = binary(nodes.FloorMod, term, ConstInt(int(upper), dtype, span), span)
        if lower != 1:
            term = binary(nodes.FloorDiv, term, ConstInt(lower, dtype, span), span)
        if scale == -1:
            term = nodes.Neg(term, dtype_of(term), span)
        elif scale != 1:
            term = binary(nodes.Mul, term, ConstInt(scale, dtype, span), span)
        result = term if result is None else binary(nodes.Add, result, term, span)
    if result is None:
        return ConstInt(total.base, dtype, span)
    if total.base:
        result = binary(nodes.Add, result, ConstInt(total.base, dtype, span), span)
    return result
