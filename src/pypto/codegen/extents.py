"""The symbol behind a computed extent: a tensor declared with `M + 2` rows tells `M` through its rows.

Kernels and orchestrations both find out the symbols of a program from the tensors that they are given.
"""

from __future__ import annotations

from dataclasses import dataclass

from pypto.ir.expr import Add, BinaryExpr, ConstInt, Expr, FloorDiv, Mul, Sub, Var

__all__ = ["SolvedExtent", "solve_extent"]

_UNDO: dict[type[Expr], str] = {Add: "-", Sub: "+", Mul: "/", FloorDiv: "*"}


@dataclass(frozen=True, slots=True)
class SolvedExtent:
    """`var` is the extent followed by the C++ text `undo`, such as ` - 2`.

    Not `exact` for `M // c`, which several values of `M` have in common.
    """

    var: Var
    undo: str = ""
    exact: bool = True


def solve_extent(dim: Expr) -> SolvedExtent | None:
    """Solve `M`, `M + c`, `M - c`, `M * c` and `M // c` for `M`; None for anything else."""
    if isinstance(dim, Var):
        return SolvedExtent(dim)
    if not isinstance(dim, BinaryExpr) or type(dim) not in _UNDO:
        return None
    left, right = dim.left, dim.right
    if isinstance(left, ConstInt) and isinstance(dim, Add | Mul):
        left, right = right, left
    if not isinstance(left, Var) or not isinstance(right, ConstInt) or right.value == 0:
        return None
    return SolvedExtent(left, f" {_UNDO[type(dim)]} {right.value}", not isinstance(dim, FloorDiv))
