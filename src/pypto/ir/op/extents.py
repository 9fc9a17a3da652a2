"""Reasoning about integer extents inside type inference: what is provable, and arithmetic that folds.

An extent is a constant, a variable, or a small expression over them. A proof answers True, False, or None
for "cannot tell". The engine brings both sides to a linear form (a sum of atoms with integer factors plus a
constant) and looks through min and max; width and signedness of the element types do not matter here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from pypto.core.dtype import DataType
from pypto.core.span import Span
from pypto.ir import scalar_ops
from pypto.ir.expr import (
    Add,
    BinaryExpr,
    Call,
    Cast,
    ConstBool,
    ConstFloat,
    ConstInt,
    Expr,
    FloorDiv,
    FloorMod,
    Max,
    Min,
    Mul,
    Neg,
    Sub,
    TupleGetItemExpr,
    UnaryExpr,
    Var,
)

_INDEX = DataType.INDEX
_UNKNOWN = Span.unknown()
_MAX_DEPTH = 48
_MAX_STEPS = 400
_MAX_CASES = 5  # nested min and max that a proof splits
_MAX_SHOWN = 6
_INT64_LIMIT = 1 << 63

Atom: TypeAlias = tuple[object, ...]
Extents: TypeAlias = Sequence[Expr]


def const(value: int) -> ConstInt:
    """An INDEX constant."""
    return ConstInt(value, _INDEX, _UNKNOWN)


ZERO, ONE = const(0), const(1)


def as_int(extent: Expr) -> int | None:
    """The value of a constant extent, else None."""
    return extent.value if isinstance(extent, ConstInt) else None


def is_one(extent: Expr) -> bool:
    """Whether the extent is the constant 1."""
    return isinstance(extent, ConstInt) and extent.value == 1


def static_volume(extents: Extents) -> int | None:
    """Product of constant extents, None when one is symbolic."""
    volume = 1
    for extent in extents:
        if not isinstance(extent, ConstInt):
            return None
        volume *= extent.value
    return volume


# --- linear form ----------------------------------------------------------------------------------


class _Linear:
    """``constant + sum(factor * atom)``; ``exprs`` remembers an expression for each atom.

    ``steps`` counts the nodes that may still be looked into, shared by all forms of one question; what lies
    beyond is an opaque atom. So deep and heavily shared expressions cost no more than small ones.
    """

    __slots__ = ("constant", "exprs", "factors", "steps")

    def __init__(self, steps: list[int] | None = None) -> None:
        self.steps = [_MAX_STEPS] if steps is None else steps
        self.constant = 0
        self.factors: dict[Atom, int] = {}
        self.exprs: dict[Atom, Expr] = {}

    def add_atom(self, atom: Atom, expr: Expr, factor: int) -> None:
        total = self.factors.get(atom, 0) + factor
        if total:
            self.factors[atom] = total
            self.exprs.setdefault(atom, expr)
        else:
            self.factors.pop(atom, None)

    def key(self) -> Atom:
        return (self.constant, frozenset(self.factors.items()))


def _accumulate(into: _Linear, expr: Expr, factor: int, depth: int) -> None:
    kind = type(expr)
    into.steps[0] -= 1
    if kind is ConstInt:
        into.constant += factor * expr.value  # type: ignore[attr-defined]
    elif isinstance(expr, Var):
        into.add_atom(("var", expr.unique_id), expr, factor)
    elif depth >= _MAX_DEPTH or into.steps[0] <= 0:
        into.add_atom(("object", id(expr)), expr, factor)
    elif kind is Add or kind is Sub:
        assert isinstance(expr, BinaryExpr)
        _accumulate(into, expr.left, factor, depth + 1)
        _accumulate(into, expr.right, factor if kind is Add else -factor, depth + 1)
    elif kind is Neg:
        _accumulate(into, expr.operand, -factor, depth + 1)  # type: ignore[attr-defined]
    elif kind is Mul and (scaled := _constant_factor(expr, depth, into.steps)) is not None:
        _accumulate(into, scaled[0], factor * scaled[1], depth + 1)
    elif kind is Cast and expr.type.dtype.is_int():  # type: ignore[attr-defined]
        _accumulate(into, expr.operand, factor, depth + 1)  # type: ignore[attr-defined]
    else:
        into.add_atom(_atom_key(expr, depth, into.steps), expr, factor)


def _constant_factor(expr: Expr, depth: int, steps: list[int]) -> tuple[Expr, int] | None:
    """``(x, c)`` for a product of ``x`` and something that folds to the constant ``c``."""
    assert isinstance(expr, Mul)
    for side, other in ((expr.right, expr.left), (expr.left, expr.right)):
        form = _linear(side, depth + 1, steps)
        if not form.factors:
            return other, form.constant
    return None


def _atom_key(expr: Expr, depth: int, steps: list[int]) -> Atom:
    if isinstance(expr, BinaryExpr):
        left, right = _linear(expr.left, depth + 1, steps).key(), _linear(expr.right, depth + 1, steps).key()
        if isinstance(expr, (Mul, Min, Max)) and hash(right) < hash(left):
            left, right = right, left
        return (type(expr).__name__, left, right)
    if isinstance(expr, UnaryExpr):
        return (type(expr).__name__, _linear(expr.operand, depth + 1, steps).key())
    if isinstance(expr, (ConstFloat, ConstBool)):
        return (type(expr).__name__, expr.value)
    if isinstance(expr, Call):
        return ("call", expr.op.name, *(_linear(arg, depth + 1, steps).key() for arg in expr.args_))
    if isinstance(expr, TupleGetItemExpr) and isinstance(expr.tuple, Var):
        return ("item", expr.tuple.unique_id, expr.index)
    return ("object", id(expr))


def _linear(expr: Expr, depth: int = 0, steps: list[int] | None = None) -> _Linear:
    form = _Linear(steps)
    _accumulate(form, expr, 1, depth)
    return form


def _difference(left: Expr, right: Expr) -> _Linear:
    form = _Linear()
    _accumulate(form, left, 1, 0)
    _accumulate(form, right, -1, 0)
    return form


# --- proofs ---------------------------------------------------------------------------------------


def equal(left: Expr, right: Expr) -> bool | None:
    """Whether two extents are provably equal (True) or provably different (False)."""
    if left is right:
        return True
    if isinstance(left, ConstInt) and isinstance(right, ConstInt):
        return left.value == right.value
    form = _difference(left, right)
    return form.constant == 0 if not form.factors else None


def same(left: Expr, right: Expr) -> bool:
    """Whether two extents are provably equal."""
    return left is right or equal(left, right) is True


def all_same(left: Extents, right: Extents) -> bool:
    """Whether two lists of extents have one rank and are provably equal."""
    return left is right or (
        len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    )


def less_equal(left: Expr, right: Expr) -> bool | None:
    """Whether ``left <= right``."""
    if left is right:
        return True
    if isinstance(left, ConstInt) and isinstance(right, ConstInt):
        return left.value <= right.value
    return _less_equal(left, right, 0)


def _less_equal(left: Expr, right: Expr, depth: int) -> bool | None:
    form = _difference(right, left)
    if not form.factors:
        return form.constant >= 0
    if depth >= _MAX_CASES:
        return None
    if isinstance(left, Min):
        return _any(_less_equal(side, right, depth + 1) for side in (left.left, left.right))
    if isinstance(left, Max):
        return _all(_less_equal(side, right, depth + 1) for side in (left.left, left.right))
    if isinstance(right, Max):
        return _any(_less_equal(left, side, depth + 1) for side in (right.left, right.right))
    if isinstance(right, Min):
        return _all(_less_equal(left, side, depth + 1) for side in (right.left, right.right))
    return None


def _any(answers: Iterable[bool | None]) -> bool | None:
    found = list(answers)
    if True in found:
        return True
    return None if None in found else False


def _all(answers: Iterable[bool | None]) -> bool | None:
    found = list(answers)
    if False in found:
        return False
    return None if None in found else True


def negative(extent: Expr) -> bool:
    """Whether the extent is provably below zero."""
    if isinstance(extent, ConstInt):
        return extent.value < 0
    return less_equal(ZERO, extent) is False


def is_zero(extent: Expr) -> bool:
    """Whether the extent is provably zero."""
    return extent.value == 0 if isinstance(extent, ConstInt) else equal(extent, ZERO) is True


# --- arithmetic that folds ------------------------------------------------------------------------


def _fits(value: int) -> bool:
    return -_INT64_LIMIT <= value < _INT64_LIMIT


def _rebuild(form: _Linear) -> Expr | None:
    """An expression for a linear form of at most one atom with a factor of 1, else None."""
    if not form.factors:
        return const(form.constant) if _fits(form.constant) else None
    if len(form.factors) == 1:
        ((atom, factor),) = form.factors.items()
        if factor == 1:
            base = form.exprs[atom]
            if form.constant == 0:
                return base
            if form.constant > 0:
                return scalar_ops.add(base, const(form.constant))
            return scalar_ops.sub(base, const(-form.constant))
    return None


def add(left: Expr, right: Expr) -> Expr:
    """``left + right``, folded."""
    if isinstance(right, ConstInt) and right.value == 0:
        return left
    if isinstance(left, ConstInt) and left.value == 0:
        return right
    form = _linear(left)
    _accumulate(form, right, 1, 0)
    folded = _rebuild(form)
    return scalar_ops.add(left, right) if folded is None else folded


def sub(left: Expr, right: Expr) -> Expr:
    """``left - right``, folded and with equal terms cancelled."""
    if isinstance(right, ConstInt) and right.value == 0:
        return left
    folded = _rebuild(_difference(left, right))
    return scalar_ops.sub(left, right) if folded is None else folded


def mul(left: Expr, right: Expr) -> Expr:
    """``left * right``, folded."""
    a, b = as_int(left), as_int(right)
    if a is not None and b is not None and _fits(a * b):
        return const(a * b)
    if b == 1:
        return left
    if a == 1:
        return right
    return scalar_ops.mul(left, right)


def floordiv(left: Expr, divisor: int) -> Expr:
    """``left // divisor`` for a positive divisor, folded."""
    value = as_int(left)
    if value is not None:
        return const(value // divisor)
    return left if divisor == 1 else scalar_ops.floordiv(left, const(divisor))


def ceildiv(left: Expr, divisor: int) -> Expr:
    """``ceil(left / divisor)``, folded."""
    value = as_int(left)
    if value is not None:
        return const(-(-value // divisor))
    return left if divisor == 1 else scalar_ops.floordiv(add(left, const(divisor - 1)), const(divisor))


def minimum(left: Expr, right: Expr) -> Expr:
    """``min(left, right)``, decided where provable."""
    if less_equal(left, right) is True:
        return left
    if less_equal(right, left) is True:
        return right
    return scalar_ops.min_(left, right)


def maximum(left: Expr, right: Expr) -> Expr:
    """``max(left, right)``, decided where provable."""
    if less_equal(right, left) is True:
        return left
    if less_equal(left, right) is True:
        return right
    return scalar_ops.max_(left, right)


# --- for messages ---------------------------------------------------------------------------------

_INFIX: dict[type, str] = {Add: "+", Sub: "-", Mul: "*", FloorDiv: "//", FloorMod: "%"}


def show(extent: Expr, depth: int = 0) -> str:
    """A short readable form of an extent."""
    if isinstance(extent, ConstInt):
        return str(extent.value)
    if isinstance(extent, Var):
        return extent.name_hint
    if depth >= _MAX_SHOWN or not isinstance(extent, BinaryExpr):
        return "?"
    left, right = show(extent.left, depth + 1), show(extent.right, depth + 1)
    infix = _INFIX.get(type(extent))
    return f"({left} {infix} {right})" if infix else f"{type(extent).__name__.lower()}({left}, {right})"


def show_all(extents: Extents) -> str:
    """A shape as a readable list, symbolic extents by name."""
    return f"[{', '.join(show(extent) for extent in extents)}]"
