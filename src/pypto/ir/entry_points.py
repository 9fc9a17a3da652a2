"""The functions of a program that start its work: those that orchestrate and that no other one dispatches."""

from __future__ import annotations

from pypto.ir.enums import FunctionType
from pypto.ir.expr import Call, Submit
from pypto.ir.program import Function, Program
from pypto.ir.walk import walk

__all__ = ["ORCHESTRATING", "called_orchestrations", "entry_points"]

ORCHESTRATING = (FunctionType.Opaque, FunctionType.Orchestration, FunctionType.Graph)
"""The kinds of functions that dispatch kernels and one another."""

_CALLEES = (FunctionType.Opaque, FunctionType.Orchestration)


def entry_points(program: Program) -> list[Function]:
    """The Orchestration and Opaque functions that a caller of the program may enter, in name order."""
    called = called_orchestrations(program)
    return [f for name, f in program.functions_.items() if f.func_type in _CALLEES and name not in called]


def called_orchestrations(program: Program) -> set[str]:
    """The names of the Orchestration and Opaque functions that another orchestrating function dispatches."""
    functions = program.functions_
    candidates = {name for name, f in functions.items() if f.func_type in _CALLEES}
    if len(candidates) < 2:
        return set()
    return {
        node.op.name
        for caller in functions.values()
        if caller.func_type in ORCHESTRATING
        for node in walk(caller.body, once=True)
        if isinstance(node, (Call, Submit)) and node.op.name in candidates and node.op.name != caller.name
    }
