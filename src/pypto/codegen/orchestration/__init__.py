"""Orchestration C++: the control program of one Orchestration function, and the kernels that it submits.

The file is a one-to-one walk over the function. emission.py holds the text and the names, statements.py
walks, and one file each knows tasks, launches, buffers, dependencies, control flow, operators and scalar
expressions.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pypto.codegen.orchestration.emission import Emission, Escapes
from pypto.codegen.orchestration.entry import bind_parameters, file_text, orchestration_signature
from pypto.codegen.orchestration.preconditions import check_preconditions
from pypto.codegen.orchestration.statements import StatementEmitter
from pypto.codegen.orchestration.tensor_ops import inline_query
from pypto.codegen.registrations import KernelRegistration
from pypto.core.errors import InternalError
from pypto.ir.expr import Expr, Var
from pypto.ir.program import Function, Program
from pypto.ir.stmt import AssignStmt, Stmt
from pypto.ir.walk import exprs_of, vars_in, walk_stmts

__all__ = ["OrchestrationResult", "collect_vars_from_shape_expr", "generate_orchestration"]


@dataclass(frozen=True, slots=True)
class OrchestrationResult:
    """`code`: the C++ text. `kernel_registrations`: the kernels it submits, by id.
    `orchestration_signature`: one of "IN", "OUT", "INOUT" per tensor parameter."""

    code: str
    kernel_registrations: list[KernelRegistration] = field(default_factory=list)
    orchestration_signature: list[str] = field(default_factory=list)


def generate_orchestration(program: Program, func: Function) -> OrchestrationResult:
    """Translate one Orchestration function of `program`.

    Raises `ValueError` for a function that cannot be translated and for constructs the target lacks,
    `pypto.Error` when a pass that must have run has not, `InternalError` for malformed IR.
    """
    check_preconditions(program, func)
    used = _used_variables(func.body)
    escapes = Escapes()
    for _ in range(_MAX_RUNS):
        escapes.complete = True
        emission = Emission(program, func, used, escapes, inline_query)
        parameters = bind_parameters(emission)
        StatementEmitter(emission).body(emission, func.body)
        if escapes.complete:
            return OrchestrationResult(
                file_text(emission, parameters),
                emission.registrations.registrations(),
                orchestration_signature(func),
            )
    raise InternalError(f"the declarations of '{func.name}' do not settle")


_MAX_RUNS = 8  # a run that does not succeed moves declarations outwards, all that it can see at once


def collect_vars_from_shape_expr(expr: Expr) -> list[Var]:
    """The variables of an extent, in order of first occurrence."""
    return list({id(var): var for var in vars_in(expr)}.values())


def _used_variables(body: Stmt) -> frozenset[int]:
    """The ids of all variables that some statement reads."""
    used: set[int] = set()
    for stmt in walk_stmts(body):
        for expr in exprs_of(stmt) if not isinstance(stmt, AssignStmt) else (stmt.value,):
            used.update(id(var) for var in vars_in(expr))
    return frozenset(used)
