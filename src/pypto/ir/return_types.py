"""The result type of a call to a function with symbolic extents.

Matching each parameter's type against the argument's type binds the symbols of the signature; the declared
result types are then read with these bindings. The first binding of a symbol wins, each later one must agree
with
it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pypto.ir.expr import BinaryExpr, ConstBool, ConstFloat, ConstInt, Expr, UnaryExpr, Var
from pypto.ir.node import expect_all
from pypto.ir.rewrite import Substitution, is_static_type
from pypto.ir.stmt import ReturnStmt, Stmt
from pypto.ir.structural.equal import structural_equal
from pypto.ir.types import TensorType, TileType, TupleType, Type
from pypto.ir.walk import walk_stmts


@dataclass(frozen=True, slots=True)
class _Constraint:
    """A further value that a bound symbol must have, and where it was met."""

    symbol: Var
    value: Expr
    context: str


def deduce_call_return_type(
    callee_params: Sequence[Var], args: Sequence[Expr], return_types: Sequence[Type]
) -> list[Type]:
    """The result types in the caller's coordinates. Types without bound symbols keep their identity.

    Raises `ValueError` when the counts differ, or when two arguments give one symbol different values.
    """
    expect_all(callee_params, Var, "callee_params")
    expect_all(args, Expr, "args")
    expect_all(return_types, Type, "return_types")
    if not return_types:
        return []
    if len(callee_params) != len(args):
        raise ValueError(
            f"The function has {len(callee_params)} parameter(s), but {len(args)} argument(s) were given"
        )
    bindings: dict[Var, Expr] = {}
    constraints: list[_Constraint] = []
    for index, (param, arg) in enumerate(zip(callee_params, args, strict=True)):
        if is_static_type(param.type):
            continue
        for pattern, value, where in _extent_pairs(param.type, arg.type, f"argument {index}"):
            _bind(pattern, value, where, bindings, constraints)
    if not bindings:
        return list(return_types)
    substitution = Substitution(bindings)
    for constraint in constraints:
        _check(constraint, bindings, substitution)
    return [substitution.type(type) for type in return_types]


def types_of_first_return(body: Stmt) -> list[Type] | None:
    """The types of the values that the first `return` with values returns; None without one."""
    for stmt in walk_stmts(body):
        if isinstance(stmt, ReturnStmt) and stmt.value_:
            return [value.type for value in stmt.value_]
    return None


def _extent_pairs(pattern: Type, value: Type, where: str) -> Iterator[tuple[Expr, Expr, str]]:
    """The pairs (pattern, value) of extents in matching positions of two types."""
    if isinstance(pattern, TupleType) and isinstance(value, TupleType):
        for left, right in zip(pattern.types_, value.types_, strict=False):
            yield from _extent_pairs(left, right, where)
        return
    if isinstance(pattern, TensorType) and isinstance(value, TensorType):
        mine, theirs = pattern.tensor_view, value.tensor_view
    elif isinstance(pattern, TileType) and isinstance(value, TileType):
        mine, theirs = pattern.tile_view, value.tile_view  # type: ignore[assignment]
    else:
        return
    yield from _named(pattern.shape_, value.shape_, f"{where} physical shape")
    yield from _named(_valid(pattern.shape_, mine), _valid(value.shape_, theirs), f"{where} valid shape")
    if mine is not None and theirs is not None:
        yield from _named(mine.stride_, theirs.stride_, f"{where} stride")
        starts = getattr(mine, "start_offset", None), getattr(theirs, "start_offset", None)
        if starts[0] is not None and starts[1] is not None:
            yield starts[0], starts[1], f"{where} start offset"


def _valid(shape: tuple[Expr, ...], view: Any) -> tuple[Expr, ...]:
    valid: tuple[Expr, ...] = () if view is None else view.valid_shape_
    return valid or shape


def _named(left: Sequence[Expr], right: Sequence[Expr], where: str) -> Iterator[tuple[Expr, Expr, str]]:
    for axis, (pattern, value) in enumerate(zip(left, right, strict=False)):
        yield pattern, value, f"{where}[{axis}]"


def _bind(
    pattern: Expr, value: Expr, where: str, bindings: dict[Var, Expr], constraints: list[_Constraint]
) -> None:
    matches = _matches(pattern, value)
    for symbol, bound in matches or ():
        if bound is symbol:
            continue
        if symbol in bindings:
            constraints.append(_Constraint(symbol, bound, where))
        else:
            bindings[symbol] = bound


def _matches(pattern: Expr, value: Expr) -> list[tuple[Var, Expr]] | None:
    """What each symbol of the pattern stands for when the whole value has the pattern's form; None
    otherwise."""
    found: list[tuple[Var, Expr]] = []
    pending = [(pattern, value)]
    while pending:
        left, right = pending.pop()
        if isinstance(left, Var):
            found.append((left, right))
        elif type(left) is not type(right):
            return None
        elif isinstance(left, BinaryExpr):
            assert isinstance(right, BinaryExpr)
            pending += [(left.right, right.right), (left.left, right.left)]
        elif isinstance(left, UnaryExpr):
            assert isinstance(right, UnaryExpr)
            pending.append((left.operand, right.operand))
        elif isinstance(left, (ConstInt, ConstFloat, ConstBool)):
            assert isinstance(right, (ConstInt, ConstFloat, ConstBool))
            if left.value != right.value:
                return None
        elif not structural_equal(left, right):
            return None
    return found


def _check(constraint: _Constraint, bindings: dict[Var, Expr], substitution: Substitution) -> None:
    bound = bindings[constraint.symbol]
    if _provably_equal(bound, constraint.value):
        return
    if _provably_equal(substitution.expr(bound), substitution.expr(constraint.value)):
        return
    raise ValueError(
        f"conflicting bindings: '{constraint.symbol.name_hint}' stands for {bound} and for "
        f"{constraint.value} ({constraint.context}); both must be the same extent"
    )


def _provably_equal(left: Expr, right: Expr) -> bool:
    if isinstance(left, ConstInt) and isinstance(right, ConstInt):
        return left.value == right.value
    if structural_equal(left, right):
        return True
    from pypto.ir.arith import Analyzer

    return bool(Analyzer().can_prove_equal(left, right))
