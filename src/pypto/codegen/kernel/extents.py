"""Dynamic extents of tensor parameters, recovered from what the caller passed.

A declared dimension `M` binds `M` directly; `M + c`, `M - c`, `M * c` and `M // c` are solved for `M` when
no other dimension gives it plainly.
"""

from __future__ import annotations

from dataclasses import dataclass

from pypto import ir
from pypto.codegen.extents import solve_extent
from pypto.ir.walk import vars_in


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
    solved = [(found, text) for dim, text in dims if (found := solve_extent(dim)) is not None]
    # A dimension that is the symbol itself wins, then one that has a single solution.
    solved.sort(key=lambda each: (bool(each[0].undo), not each[0].exact))
    bound: dict[ir.Var, ExtentBinding] = {}
    for found, text in solved:
        bound.setdefault(found.var, ExtentBinding(found.var, f"{text}{found.undo}"))
    return list(bound.values())


def unbound_extents(type: ir.TensorType, bindings: list[ExtentBinding]) -> list[ir.Expr]:
    """Dimensions of a parameter that mention a variable which no binding gives."""
    known = {binding.var for binding in bindings}
    return [dim for dim in type.shape_ if any(var not in known for var in vars_in(dim))]
