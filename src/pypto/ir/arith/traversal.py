"""Bottom-up evaluation of an expression without recursion, each shared node once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pypto.ir.expr import BinaryExpr, Expr, UnaryExpr
from pypto.ir.node import expect

T = TypeVar("T")


def operands_of(expr: Expr) -> tuple[Expr, ...]:
    """Return the operands of an arithmetic or logical node; anything else is opaque."""
    if isinstance(expr, BinaryExpr):
        return (expr.left, expr.right)
    if isinstance(expr, UnaryExpr):
        return (expr.operand,)
    return ()


def evaluate(root: Expr, known: dict[Expr, T], leave: Callable[[Expr], T]) -> T:
    """Compute `leave` for every node below `root`, operands first; results are put into `known`.

    `leave` finds the results of the operands in `known`. Nodes that are in `known` already are not visited.
    """
    if root in known:
        return known[root]
    expect(root, Expr, "the expression to analyze")
    pending = [root]
    while pending:
        node = pending[-1]
        if node in known:
            pending.pop()
            continue
        waiting = [operand for operand in operands_of(node) if operand not in known]
        if waiting:
            pending += reversed(waiting)
            continue
        known[node] = leave(node)
        pending.pop()
    return known[root]
