"""Comparison of expressions through chains of known facts.

A fact says `a op b + offset` between two expressions, taken by identity after a constant addend has been
removed; a pure constant counts as the expression 0 with an offset. Facts chain: `a <= b + 1` and `b <=
c` give `a <= c + 1`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pypto.ir import expr as nodes
from pypto.ir.arith.const_int_bound import conjuncts
from pypto.ir.arith.fold import is_int
from pypto.ir.expr import BinaryExpr, ConstInt, Expr, Var


class CompareResult(enum.IntEnum):
    """What is known about the order of two values, one bit each for ==, < and >; combine with `&`."""

    kInconsistent = 0
    kEQ = 1
    kLT = 2
    kLE = 3
    kGT = 4
    kGE = 5
    kNE = 6
    kUnknown = 7

    def __and__(self, other: int) -> CompareResult:
        return CompareResult(int(self) & int(other))

    def __or__(self, other: int) -> CompareResult:
        return CompareResult(int(self) | int(other))

    def __str__(self) -> str:
        return f"CompareResult.{self.name}"

    __repr__ = __str__


_LT, _EQ, _GT = CompareResult.kLT, CompareResult.kEQ, CompareResult.kGT
_LE, _GE = CompareResult.kLE, CompareResult.kGE
_UNKNOWN = CompareResult.kUnknown


def _mirrored(result: CompareResult) -> CompareResult:
    """Return the relation seen from the other side."""
    value = result & _EQ
    if result & _LT:
        value |= _GT
    if result & _GT:
        value |= _LT
    return value


@dataclass(frozen=True, slots=True)
class _Fact:
    """`lhs relation rhs + offset`; None stands for the expression 0."""

    lhs: Expr | None
    relation: CompareResult
    rhs: Expr | None
    offset: int


_RELATIONS: dict[type[Expr], CompareResult] = {
    nodes.Eq: _EQ,
    nodes.Ne: CompareResult.kNE,
    nodes.Lt: _LT,
    nodes.Le: _LE,
    nodes.Gt: _GT,
    nodes.Ge: _GE,
}


def _split_offset(expr: Expr) -> tuple[Expr | None, int]:
    """Split an expression into what remains without its constant addend, and that constant."""
    if isinstance(expr, ConstInt):
        return None, expr.value
    if isinstance(expr, nodes.Add | nodes.Sub):
        sign = -1 if isinstance(expr, nodes.Sub) else 1
        if isinstance(expr.right, ConstInt):
            return expr.left, sign * expr.right.value
        if sign == 1 and isinstance(expr.left, ConstInt):
            return expr.right, expr.left.value
    return expr, 0


class TransitiveComparisonAnalyzer:
    """Compares expressions by facts that were stated about them."""

    def __init__(self) -> None:
        self._facts: dict[Expr | None, list[_Fact]] = {}

    def try_compare(self, lhs: Expr, rhs: Expr, propagate_inequalities: bool = True) -> CompareResult:
        """Return what is known about lhs against rhs; without propagation only direct facts count."""
        if not (is_int(lhs) and is_int(rhs)):
            return _UNKNOWN
        left, left_offset = _split_offset(lhs)
        right, right_offset = _split_offset(rhs)
        if left is right:
            return _compared(left_offset, right_offset)
        if left not in self._facts or right not in self._facts:
            return _UNKNOWN
        result = _UNKNOWN
        # left + left_offset ? right + right_offset, that is left ? right + (right_offset - left_offset)
        target = right_offset - left_offset
        for fact in self._reachable(left) if propagate_inequalities else self._facts[left]:
            if fact.rhs is right:
                result &= _implied(fact, target)
        return result

    def bind(self, var: Var, *value: Any, allow_override: bool = False) -> None:
        """State `var == expr`, or `lo <= var < hi_exclusive`. Earlier facts stay."""
        if len(value) == 1:
            self._state(var, _EQ, value[0])
            return
        low, high = value
        dtype = var.type.dtype  # type: ignore[attr-defined]
        self._state(var, _GE, ConstInt(low, dtype, var.span))
        self._state(var, _LT, ConstInt(high, dtype, var.span))

    def unbind(self, var: Var) -> None:
        """Forget every fact that mentions the variable."""
        for other in {fact.rhs for fact in self._facts.pop(var, ())}:
            kept = [fact for fact in self._facts.get(other, ()) if fact.rhs is not var]
            if kept:
                self._facts[other] = kept
            else:
                self._facts.pop(other, None)

    def enter_constraint(self, constraint: Expr) -> Callable[[], None]:
        """State the comparisons of a conjunction; return what undoes it."""
        added: list[_Fact] = []
        for condition in conjuncts(constraint):
            relation = _RELATIONS.get(type(condition))
            if relation is not None:
                assert isinstance(condition, BinaryExpr)
                if is_int(condition.left) and is_int(condition.right):
                    added += self._state(condition.left, relation, condition.right)

        def leave() -> None:
            while added:
                self._remove(added.pop())

        return leave

    def _state(self, lhs: Expr, relation: CompareResult, rhs: Expr) -> list[_Fact]:
        left, left_offset = _split_offset(lhs)
        right, right_offset = _split_offset(rhs)
        if left is right:
            return []
        offset = right_offset - left_offset
        facts = [_Fact(left, relation, right, offset), _Fact(right, _mirrored(relation), left, -offset)]
        for fact in facts:
            self._facts.setdefault(fact.lhs, []).append(fact)
        return facts

    def _remove(self, fact: _Fact) -> None:
        facts = self._facts.get(fact.lhs, [])
        kept = [other for other in facts if other is not fact]
        if kept:
            self._facts[fact.lhs] = kept
        else:
            self._facts.pop(fact.lhs, None)

    def _reachable(self, start: Expr | None) -> list[_Fact]:
        """Return every fact about `start` that chains of facts give, the tightest per kind and target."""
        found: dict[tuple[Expr | None, CompareResult], int] = {}
        pending = list(self._facts[start])
        result: list[_Fact] = []
        steps = 0
        limit = 64 * (1 + sum(len(facts) for facts in self._facts.values()))
        while pending and steps < limit:
            steps += 1
            fact = _closed(pending.pop())
            if fact.rhs is start:
                continue
            key = (fact.rhs, fact.relation)
            if key in found and not _is_tighter(fact, found[key]):
                continue
            found[key] = fact.offset
            result.append(fact)
            for following in self._facts.get(fact.rhs, ()):
                chained = _chain(fact, _closed(following))
                if chained is not None:
                    pending.append(chained)
        return result


def _compared(a: int, b: int) -> CompareResult:
    if a == b:
        return _EQ
    return _LT if a < b else _GT


def _closed(fact: _Fact) -> _Fact:
    """Write a strict inequality of integers as a non-strict one."""
    if fact.relation == _LT:
        return _Fact(fact.lhs, _LE, fact.rhs, fact.offset - 1)
    if fact.relation == _GT:
        return _Fact(fact.lhs, _GE, fact.rhs, fact.offset + 1)
    return fact


def _chain(first: _Fact, second: _Fact) -> _Fact | None:
    """Combine `a r b + p` and `b s c + q`: equality with anything, inequalities of one direction."""
    offset = first.offset + second.offset
    if first.relation == _EQ:
        return _Fact(first.lhs, second.relation, second.rhs, offset)
    if second.relation == _EQ or (first.relation == second.relation and first.relation in (_LE, _GE)):
        return _Fact(first.lhs, first.relation, second.rhs, offset)
    return None


def _is_tighter(fact: _Fact, known_offset: int) -> bool:
    if fact.relation == _LE:
        return fact.offset < known_offset
    if fact.relation == _GE:
        return fact.offset > known_offset
    return False


def _implied(fact: _Fact, target: int) -> CompareResult:
    """Return what `a r b + offset` says about `a` against `b + target`."""
    fact = _closed(fact)
    if fact.relation == _EQ:
        return _compared(fact.offset, target)
    if fact.relation == _LE:
        if fact.offset < target:
            return _LT
        return _LE if fact.offset == target else _UNKNOWN
    if fact.relation == _GE:
        if fact.offset > target:
            return _GT
        return _GE if fact.offset == target else _UNKNOWN
    if fact.relation == CompareResult.kNE and fact.offset == target:
        return CompareResult.kNE
    return _UNKNOWN
