"""The functions of a program that start its work: those that orchestrate and that no other one dispatches."""

from __future__ import annotations

from pypto.ir.enums import FunctionType, Level, Role, level_to_linqu_level
from pypto.ir.expr import Call, GlobalVar, Submit
from pypto.ir.program import Function, Program
from pypto.ir.walk import walk

__all__ = ["ORCHESTRATING", "called_orchestrations", "entry_points", "host_entry"]

ORCHESTRATING = (FunctionType.Opaque, FunctionType.Orchestration, FunctionType.Graph)
"""The kinds of functions that dispatch kernels and one another."""

_CALLEES = (FunctionType.Opaque, FunctionType.Orchestration)


def entry_points(program: Program) -> list[Function]:
    """The Orchestration and Opaque functions that a caller of the program may enter, in name order; the host
    function alone, where there is one."""
    host = host_entry(program)
    if host is not None:
        return [host]
    called = called_orchestrations(program)
    return [f for name, f in program.functions_.items() if f.func_type in _CALLEES and name not in called]


_HOST = level_to_linqu_level(Level.HOST)


def host_entry(program: Program) -> Function | None:
    """The function that spreads work over ranks: it orchestrates on a host, and no other one dispatches it.

    What it dispatches stays a program of its own, which a rank runs.
    """
    hosts = [f for f in program.functions_.values() if _orchestrates_on_host(f)]
    if not hosts:
        return None
    called = set[str]().union(*map(_dispatched, program.functions_.values()))
    return next((f for f in hosts if f.name not in called), None)


def _orchestrates_on_host(function: Function) -> bool:
    return (
        function.role is Role.Orchestrator
        and function.level is not None
        and level_to_linqu_level(function.level) >= _HOST
        and function.func_type in ORCHESTRATING
    )


def called_orchestrations(program: Program) -> set[str]:
    """The names of the Orchestration and Opaque functions that another one takes in as a part of itself."""
    functions = program.functions_
    candidates = {name for name, f in functions.items() if f.func_type in _CALLEES}
    if len(candidates) < 2:
        return set()
    host = host_entry(program)
    callers = [f for f in functions.values() if f is not host]
    return {name for f in callers for name in _dispatched(f) if name in candidates}


def _dispatched(caller: Function) -> set[str]:
    """The names of the other functions that an orchestrating function calls or submits."""
    if caller.func_type not in ORCHESTRATING:
        return set()
    return {
        node.op.name
        for node in walk(caller.body, once=True)
        if isinstance(node, (Call, Submit)) and isinstance(node.op, GlobalVar) and node.op.name != caller.name
    }
