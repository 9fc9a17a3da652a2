"""TileMemoryInferred: every tile has a memory space, and operands are where their operators read them.

The matrix operators of this target read their operands from Mat directly; on a device they are moved to Left
and Right first. Both are right.
"""

from __future__ import annotations

from collections.abc import Iterator

from pypto import ir
from pypto.ir.op_registry import get_op_memory_spec
from pypto.ir.walk import exprs_of, walk_stmts
from pypto.passes.diagnostics import Diagnostic, error

_RULE = "TileMemoryInferred"
_FED_FROM_MAT = frozenset({ir.MemorySpace.Left, ir.MemorySpace.Right, ir.MemorySpace.Bias})


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return the tiles without a memory space, and operands in a space their operator cannot read."""
    return [
        each
        for function in program.functions_.values()
        if ir.is_incore_type(function.func_type)
        for stmt in walk_stmts(function.body)
        for each in _stmt(stmt, function.name)
    ]


def _stmt(stmt: ir.Stmt, function: str) -> Iterator[Diagnostic]:
    if (
        isinstance(stmt, ir.AssignStmt)
        and isinstance(stmt.var.type, ir.TileType)
        and stmt.var.type.memory_space is None
    ):
        message = f"Tile variable '{stmt.var.name_hint}' in function '{function}' has no memory space"
        yield error(_RULE, 0, message, stmt.span)
    for call in exprs_of(stmt):
        if isinstance(call, ir.Call) and not isinstance(call.op, ir.GlobalVar):
            yield from _operands(call, function)


def _operands(call: ir.Call, function: str) -> Iterator[Diagnostic]:
    spec = get_op_memory_spec(call.op.name)
    constraints = spec["input_constraints"] if spec is not None else []
    for position, (argument, allowed) in enumerate(zip(call.args_, constraints, strict=False)):
        if not allowed or not isinstance(argument.type, ir.TileType):
            continue
        space = argument.type.memory_space
        if space is ir.MemorySpace.Mat and not _FED_FROM_MAT.isdisjoint(allowed):
            continue
        if space is not None and space not in allowed:
            names = " or ".join(each.name for each in allowed)
            message = (
                f"Argument {position} of '{call.op.name}' in function '{function}' is in {space.name}, "
                f"but must be in {names}"
            )
            yield error(_RULE, 0, message, call.span)
