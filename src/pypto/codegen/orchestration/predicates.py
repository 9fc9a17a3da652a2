"""The condition under which a submitted task runs: one tensor element compared with an integer constant."""

from __future__ import annotations

from pypto.codegen.orchestration.buffers import shape_elements
from pypto.codegen.orchestration.emission import Emission
from pypto.codegen.orchestration.scalars import scalar_text
from pypto.core.errors import located
from pypto.ir import expr as ir
from pypto.ir.expr import Expr
from pypto.ir.types import TensorType

__all__ = ["predicate_lines"]

MAX_INDICES = 5
_OPERATORS: dict[type[Expr], str] = {
    ir.Eq: "EQ",
    ir.Ne: "NE",
    ir.Gt: "GT",
    ir.Lt: "LT",
    ir.Ge: "GE",
    ir.Le: "LE",
}
_FLIPPED = {"EQ": "EQ", "NE": "NE", "GT": "LT", "LT": "GT", "GE": "LE", "LE": "GE"}


def predicate_lines(emission: Emission, predicate: Expr, task: str) -> list[str]:
    """The lines that attach `predicate` to a task. Raises `ValueError` for a condition of another form."""
    read, operator, target = _comparison(predicate)
    tensor = read.args_[0]
    if not isinstance(tensor, ir.Var) or not isinstance(tensor.type, TensorType):
        raise _unsupported(predicate, "the tensor must be a named variable")
    dtype = tensor.type.dtype
    if not dtype.is_signed_int() or dtype.get_bit() not in (8, 16, 32, 64):
        raise _unsupported(predicate, f"elements must be signed integers of 8 to 64 bits, not {dtype}")
    indices = shape_elements(read.args_[1])
    if len(indices) > MAX_INDICES:
        raise _unsupported(predicate, f"{len(indices)} indices, at most {MAX_INDICES} are possible")
    for index in indices:
        if isinstance(index, ir.ConstInt) and index.value < 0:
            raise _unsupported(predicate, f"the index {index.value} is negative")
    name = f"{task}_pred"
    return [
        f"CoreTaskPredicate {name};",
        f"{name}.operand.tensor = &{emission.binding(tensor, predicate.span).text};",
        f"{name}.operand.ndims = {len(indices)};",
        *(f"{name}.operand.indices[{k}] = {scalar_text(emission, i)};" for k, i in enumerate(indices)),
        f"{name}.op = PredicateOp::{operator};",
        f"{name}.target = {scalar_text(emission, target)};",
        f"{task}.set_predicate({name});",
    ]


def _comparison(predicate: Expr) -> tuple[ir.Call, str, ir.ConstInt]:
    """The element read, the operator with the read on its left, and the constant."""
    operator = _OPERATORS.get(type(predicate))
    if operator is None or not isinstance(predicate, ir.BinaryExpr):
        raise _unsupported(predicate, "it must be one comparison")
    left, right = _without_casts(predicate.left), _without_casts(predicate.right)
    if isinstance(left, ir.ConstInt):
        left, right, operator = right, left, _FLIPPED[operator]
    if not (isinstance(left, ir.Call) and left.op.name == "tensor.read" and isinstance(right, ir.ConstInt)):
        raise _unsupported(predicate, "it must compare a tensor element with an integer constant")
    return left, operator, right


def _without_casts(expr: Expr) -> Expr:
    while isinstance(expr, ir.Cast):
        expr = expr.operand
    return expr


def _unsupported(predicate: Expr, why: str) -> ValueError:
    return ValueError(located(f"this predicate cannot be attached to a task: {why}", predicate.span))
