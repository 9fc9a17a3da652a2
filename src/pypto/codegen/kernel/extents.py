"""Dynamic extents of tensor parameters, recovered from what the caller passed.

A declared dimension `M` binds `M` directly; `M + c`, `M - c`, `M * c` and `M // c` are solved for `M` when
no other dimension gives it plainly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pypto import ir
from pypto.ir.walk import vars_in

_Solve = Callable[[str, int], str]

#: kind of dimension -> extent and constant to the text of the variable
_SOLUTIONS: dict[type[ir.Expr], _Solve] = {
    ir.Add: lambda extent, c: f"{extent} - {c}",
    ir.Sub: lambda extent, c: f"{extent} + {c}",
    ir.Mul: lambda extent, c: f"{extent} / {c}",
    ir.FloorDiv: lambda extent, c: f"{extent} * {c}",
}


@dataclass(frozen=True, slots=True)
class ExtentBinding:
    """`var` is the number `text` (C++ over the parameters' descriptors)."""

    var: ir.Var
    text: str


def bind_extents(tensors: list[tuple[ir.TensorType, str]]) -> list[ExtentBinding]:
    """Bindings of all variables in the shapes of `tensors` (type and C++ name of each parameter)."""
    dims = [
        (dim, f"{name}.shape[{axis}]")
        for type, name in tensors
        for axis, dim in enumerate(type.shape_)
        if not isinstance(dim, ir.ConstInt)
    ]
    bound: dict[ir.Var, ExtentBinding] = {}
    for dim, text in dims:
        if isinstance(dim, ir.Var) and dim not in bound:
            bound[dim] = ExtentBinding(dim, text)
    for dim, text in dims:
        solved = _solve(dim, text)
        if solved is not None and solved.var not in bound:
            bound[solved.var] = solved
    return list(bound.values())


def _solve(dim: ir.Expr, text: str) -> ExtentBinding | None:
    if not isinstance(dim, ir.BinaryExpr) or type(dim) not in _SOLUTIONS:
        return None
    left, right = dim.left, dim.right
    if isinstance(left, ir.ConstInt) and isinstance(dim, (ir.Add, ir.Mul)):
        left, right = right, left
    if not isinstance(left, ir.Var) or not isinstance(right, ir.ConstInt) or right.value == 0:
        return None
    return ExtentBinding(left, _SOLUTIONS[type(dim)](text, right.value))


def unbound_extents(type: ir.TensorType, bindings: list[ExtentBinding]) -> list[ir.Expr]:
    """Dimensions of a parameter that mention a variable which no binding gives."""
    known = {binding.var for binding in bindings}
    return [dim for dim in type.shape_ if any(var not in known for var in vars_in(dim))]
