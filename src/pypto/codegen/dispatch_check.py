"""Refusing dispatches in which a kernel would leave the tensors it is given, or misread their elements.

A kernel addresses by the extents and the element type that it declares; nothing checks them when it runs. The
parser accepts any tensor for any tensor parameter, so this is looked at before a program is built to be run.
"""

from __future__ import annotations

from pypto.codegen.orchestration.naming import base_name
from pypto.core.errors import located
from pypto.ir.expr import Call, ConstInt, Expr, Submit, Var
from pypto.ir.program import Program
from pypto.ir.types import TensorType
from pypto.ir.walk import walk

__all__ = ["check_dispatches"]


def check_dispatches(program: Program) -> None:
    """Raise `ValueError` for the first tensor that is too small for its parameter or of another dtype."""
    for function in program.functions_.values():
        for node in walk(function.body, once=True):
            if isinstance(node, (Call, Submit)) and node.op.name in program.functions_:
                callee = program.functions_[node.op.name]
                for arg, param in zip(node.args_, callee.params_, strict=False):
                    _check_fits(arg, param, callee.name, node)


def _check_fits(arg: Expr, param: Var, callee: str, dispatch: Expr) -> None:
    given, declared = arg.type, param.type
    if not isinstance(given, TensorType) or not isinstance(declared, TensorType):
        return
    if given.dtype is declared.dtype and not _is_smaller(given, declared):
        return
    name = base_name(param.name_hint)
    raise ValueError(
        located(f"Parameter '{name}' of '{callee}' is a {declared}, but it gets a {given}", dispatch.span)
    )


def _is_smaller(given: TensorType, declared: TensorType) -> bool:
    """Whether an extent is certainly smaller. Extents are matched from the right: a slice may have more."""
    return any(
        isinstance(have, ConstInt) and isinstance(need, ConstInt) and have.value < need.value
        for have, need in zip(reversed(given.shape_), reversed(declared.shape_), strict=False)
    )
