"""Refusing dispatches in which a kernel would leave the tensors it is given, or misread their elements.

A kernel addresses by the extents and the element type that it declares; nothing checks them when it runs. The
parser accepts any tensor for any tensor parameter, so this is looked at before a program is built to be run.
"""

from __future__ import annotations

from collections.abc import Iterator

from pypto.codegen.orchestration.naming import base_name
from pypto.core.errors import located
from pypto.ir.expr import Call, ConstInt, Expr, Submit, Var
from pypto.ir.program import Function, Program
from pypto.ir.types import ScalarType, ShapedType, TensorType, Type, UnknownType
from pypto.ir.walk import walk

__all__ = ["check_argument_kinds", "check_dispatches"]


def check_argument_kinds(program: Program) -> None:
    """Raise `ValueError` for the first scalar or tuple given for a tensor, and the other way round."""
    for node, callee in _dispatches(program):
        for arg, param in zip(node.args_, callee.params_, strict=False):
            if _kind(arg.type) != _kind(param.type) and not isinstance(arg.type, UnknownType):
                raise _misfit(arg.type, param, callee, node)


def _kind(declared: Type) -> str:
    if isinstance(declared, ScalarType):
        return "scalar"
    return "shaped" if isinstance(declared, ShapedType) else type(declared).__name__


def check_dispatches(program: Program) -> None:
    """Raise `ValueError` for the first tensor that is too small for its parameter or of another dtype."""
    for node, callee in _dispatches(program):
        for arg, param in zip(node.args_, callee.params_, strict=False):
            _check_fits(arg, param, callee, node)


def _dispatches(program: Program) -> Iterator[tuple[Call | Submit, Function]]:
    for function in program.functions_.values():
        for node in walk(function.body, once=True):
            if isinstance(node, (Call, Submit)) and node.op.name in program.functions_:
                yield node, program.functions_[node.op.name]


def _check_fits(arg: Expr, param: Var, callee: Function, dispatch: Expr) -> None:
    given, declared = arg.type, param.type
    if not isinstance(given, TensorType) or not isinstance(declared, TensorType):
        return
    if given.dtype is declared.dtype and not _is_smaller(given, declared):
        return
    raise _misfit(given, param, callee, dispatch)


def _misfit(given: Type, param: Var, callee: Function, dispatch: Expr) -> ValueError:
    name = base_name(param.name_hint)
    text = f"Parameter '{name}' of '{callee.name}' is a {param.type}, but it gets a {given}"
    return ValueError(located(text, dispatch.span))


def _is_smaller(given: TensorType, declared: TensorType) -> bool:
    """Whether an extent is certainly smaller. Extents are matched from the right: a slice may have more."""
    return any(
        isinstance(have, ConstInt) and isinstance(need, ConstInt) and have.value < need.value
        for have, need in zip(reversed(given.shape_), reversed(declared.shape_), strict=False)
    )
