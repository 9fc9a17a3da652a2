"""Buffers: `tensor.create` statements of one sequence, hoisted to its start and allocated in batches.

A create whose extents use something that the same sequence computes stays where it is, as a batch of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pypto.codegen.orchestration.cpp_types import cpp_type, float_literal, runtime_token
from pypto.codegen.orchestration.emission import Emission
from pypto.codegen.orchestration.scalars import scalar_text
from pypto.core.dtype import DataType
from pypto.core.errors import InternalError
from pypto.ir.expr import Call, ConstInt, Expr, MakeTuple, Var
from pypto.ir.stmt import AssignStmt, ForStmt, IfStmt, Stmt, WhileStmt
from pypto.ir.walk import vars_in

__all__ = ["allocate_ahead", "allocate_in_place", "is_create", "shape_elements", "uint_text"]

BATCH = 16  # creates per alloc_tensors call
EXACT_INT = 2**53  # integers up to here are exact in the double that carries an initial value
_WIDE_FLOATS = frozenset({DataType.FP32})


def is_create(stmt: Stmt) -> bool:
    """Whether a statement binds a new buffer."""
    return (
        isinstance(stmt, AssignStmt)
        and isinstance(stmt.value, Call)
        and stmt.value.op.name == "tensor.create"
    )


def allocate_ahead(emission: Emission, stmts: Sequence[Stmt]) -> set[int]:
    """Allocate the creates whose extents are known at the start of a sequence; returns their ids."""
    creates = [stmt for stmt in stmts if is_create(stmt)]
    if not creates:
        return set()
    local = {id(var) for stmt in stmts for var in _defined(stmt)}
    ready: list[AssignStmt] = []
    for stmt in creates:
        assert isinstance(stmt, AssignStmt)
        if not any(id(var) in local for dim in _dims(stmt) for var in vars_in(dim)):
            ready.append(stmt)
    for start in range(0, len(ready), BATCH):
        _allocate(emission, ready[start : start + BATCH], ahead=True)
    return {id(stmt) for stmt in ready}


def _defined(stmt: Stmt) -> tuple[Var, ...]:
    """The variables that a statement gives to those that follow it."""
    if isinstance(stmt, AssignStmt):
        return (stmt.var,)
    return stmt.return_vars_ if isinstance(stmt, ForStmt | WhileStmt | IfStmt) else ()


def allocate_in_place(emission: Emission, stmt: AssignStmt) -> None:
    """Allocate one buffer where it stands."""
    _allocate(emission, [stmt], ahead=False)


def shape_elements(expr: Expr) -> tuple[Expr, ...]:
    """The elements of an operand that lists extents or offsets."""
    if not isinstance(expr, MakeTuple):
        raise InternalError(f"expected a literal tuple of extents, got {type(expr).__name__}")
    return expr.elements_


def uint_text(emission: Emission, expr: Expr) -> str:
    """An extent or offset as `uint32_t`: constants plain, anything else cast."""
    if isinstance(expr, ConstInt):
        return str(expr.value)
    return f"static_cast<uint32_t>({scalar_text(emission, expr)})"


def _dims(stmt: AssignStmt) -> tuple[Expr, ...]:
    assert isinstance(stmt.value, Call)
    return shape_elements(stmt.value.args_[0])


def _allocate(emission: Emission, creates: Sequence[AssignStmt], *, ahead: bool) -> None:
    """One batch: all descriptions, the call, all bindings."""
    lines: list[str] = []
    bound: list[tuple[Var, str]] = []
    for stmt in creates:
        name = emission.names.of_variable(stmt.var)
        bound.append((stmt.var, name))
        lines += _description(emission, stmt, name)
    batch = f"alloc_{emission.allocations}"
    emission.allocations += 1
    infos = ", ".join(f"{name}_ci" for _, name in bound)
    lines.append(f"TaskOutputTensors {batch} = alloc_tensors({infos});")
    outside = ahead and emission.outside_manual_scope()
    write = emission.outer_line if outside else emission.line
    for line in lines:
        write(line)
    for position, (var, name) in enumerate(bound):
        buffer = f"{batch}.get_ref({position})"
        emission.declare(var, "ChipTensor", buffer, name=name, is_reference=True, ahead=outside)
    if not outside:
        emission.blank()


def _description(emission: Emission, stmt: AssignStmt, name: str) -> list[str]:
    call = stmt.value
    assert isinstance(call, Call)
    dims = list(_dims(stmt))
    dtype = call.kwargs_["dtype"]
    texts = [uint_text(emission, dim) for dim in dims]
    if dtype is DataType.FP4 and dims:
        texts[-1] = _carrier_bytes(emission, dims[-1])
    rank = max(len(texts), 1)
    extents = ", ".join(texts) or "1"
    untracked = ", /*manual_dep=*/true" if call.kwargs_.get("manual_dep") else ""
    lines = [
        f"uint32_t {name}_ci_shapes[{rank}] = {{{extents}}};",
        f"TensorCreateInfo {name}_ci({name}_ci_shapes, {rank}, {runtime_token(dtype)}{untracked});",
    ]
    initial = call.kwargs_.get("init_value")
    if initial is not None:
        lines.append(f"{name}_ci.set_initial_value({_initial_value(stmt.var, dtype, float(initial))});")
    return lines


def _carrier_bytes(emission: Emission, dim: Expr) -> str:
    """Two FP4 elements share a byte."""
    if isinstance(dim, ConstInt):
        return str(dim.value // 2)
    return f"static_cast<uint32_t>(({scalar_text(emission, dim)}) / 2)"


def _initial_value(var: Var, dtype: DataType, value: float) -> str:
    what = f"init_value {value!r} of '{var.name_hint}'"
    if not math.isfinite(value):
        raise ValueError(f"{what} must be finite")
    if value == 0:
        return "0"
    if dtype.is_float():
        if dtype not in _WIDE_FLOATS:
            raise ValueError(f"{what} is not zero, which {dtype} buffers do not support")
        return f"static_cast<{cpp_type(dtype)}>({float_literal(value)})"
    if not value.is_integer():
        raise ValueError(f"{what} is no integer, but the buffer holds {dtype}")
    if abs(value) > EXACT_INT:
        raise ValueError(f"{what} is beyond 2**53 in magnitude and cannot be represented exactly")
    return f"static_cast<{cpp_type(dtype)}>({int(value)})"
