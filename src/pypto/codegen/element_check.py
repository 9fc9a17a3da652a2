"""Refusing constant indices outside of what they index; nothing looks at them when a program runs."""

from __future__ import annotations

from pypto.core.errors import located
from pypto.ir.expr import Call, ConstInt, MakeTuple
from pypto.ir.program import Program
from pypto.ir.types import ShapedType
from pypto.ir.walk import walk

__all__ = ["check_element_indices"]

_ELEMENT_OPS = frozenset(
    {
        "tensor.read",
        "tensor.write",
        "tile.read",
        "tile.write",
        "array.get_element",
        "array.update_element",
    }
)


def check_element_indices(program: Program) -> None:
    """Raise `ValueError` for the first access to an element outside of its tensor, tile or array."""
    for function in program.functions_.values():
        for node in walk(function.body, once=True):
            if isinstance(node, Call) and node.op.name in _ELEMENT_OPS:
                _check_indices(node)


def _check_indices(call: Call) -> None:
    operand, written = call.args_[0].type, call.args_[1]
    indices = written.elements_ if isinstance(written, MakeTuple) else (written,)
    if not isinstance(operand, ShapedType) or len(indices) != len(operand.shape_):
        return
    for axis, (index, extent) in enumerate(zip(indices, operand.shape_, strict=True)):
        if not isinstance(index, ConstInt):
            continue
        if index.value < 0 or (isinstance(extent, ConstInt) and index.value >= extent.value):
            raise ValueError(
                located(
                    f"Index {index.value} of dimension {axis} is outside of {operand}; indices count from 0",
                    call.span,
                )
            )
