"""Parameter directions that follow from what a function does.

A kernel's `In` parameter that is written becomes `Out`, or `InOut` if it is read as well. Callers follow: a
parameter handed to an `Out` slot becomes `Out`, to an `InOut` slot `InOut`. Declared directions are never
lowered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pypto import ir
from pypto.ir.walk import exprs_of, walk_stmts
from pypto.passes.memory_effects import memory_operands
from pypto.passes.storage import ProgramStorage, Storage, is_builtin

__all__ = ["lift_callers", "with_written_directions"]

In, Out, InOut = ir.ParamDirection.In, ir.ParamDirection.Out, ir.ParamDirection.InOut
_RANK = {In: 0, Out: 1, InOut: 2}
_WRAPPERS = (ir.FunctionType.Group, ir.FunctionType.Spmd)


def with_written_directions(
    function: ir.Function, program: ir.Program, dispatches: ProgramStorage
) -> ir.Function:
    """A converted kernel with the directions of its written parameters."""
    storage = dispatches.of_body(function)
    read: set[ir.Var] = set()
    written: set[ir.Var] = set()
    for stmt in walk_stmts(function.body):
        for expr in exprs_of(stmt):
            if isinstance(expr, (ir.Call, ir.Submit)):
                for arg, effect in memory_operands(expr, program):
                    if effect is not ir.ArgEffect.Read:
                        written |= storage.roots_of(arg)
                    if effect is not ir.ArgEffect.Write:
                        read |= storage.roots_of(arg)
    directions = [
        (InOut if param in read else Out) if declared is In and param in written else declared
        for param, declared in zip(function.params_, function.param_directions_, strict=True)
    ]
    return _with_directions(function, directions)


@dataclass(frozen=True, slots=True)
class _Slot:
    """An argument of a dispatch that is memory of a parameter of the calling function."""

    param: int
    callee: str
    position: int


def lift_callers(program: ir.Program, dispatches: ProgramStorage) -> ir.Program:
    """Raise the `In` parameters of all functions but kernels to what their dispatches do with them,
    transitively.
    """
    directions = {name: list(function.param_directions_) for name, function in program.functions_.items()}
    slots_of = {
        name: _slots(function, dispatches.of(function))
        for name, function in program.functions_.items()
        if not ir.is_incore_type(function.func_type)
    }
    callers: dict[str, set[str]] = {}
    for name, slots in slots_of.items():
        for slot in slots:
            callers.setdefault(slot.callee, set()).add(name)
    pending = dict.fromkeys(slots_of)
    while pending:
        name = next(iter(pending))
        del pending[name]
        if _lift(directions, program.functions_[name], slots_of[name]):
            pending.update(dict.fromkeys(sorted(callers.get(name, ()))))
    functions = [
        _with_directions(function, directions[name]) for name, function in program.functions_.items()
    ]
    return program.replace(functions=functions)


def _slots(function: ir.Function, storage: Storage) -> list[_Slot]:
    positions = {param: index for index, param in enumerate(function.params_)}
    return [
        _Slot(positions[root], expr.op.name, position)
        for stmt in walk_stmts(function.body)
        for expr in exprs_of(stmt)
        if isinstance(expr, (ir.Call, ir.Submit)) and not is_builtin(expr.op)
        for position, arg in enumerate(expr.args_)
        for root in storage.roots_of(arg)
        if root in positions
    ]


def _lift(
    directions: Mapping[str, list[ir.ParamDirection]], function: ir.Function, slots: list[_Slot]
) -> bool:
    """One step for one function; an orchestration keeps what it declares other than `In`."""
    own, changed = directions[function.name], False
    for slot in slots:
        callee = directions.get(slot.callee, ())
        if slot.position >= len(callee):
            continue
        if function.param_directions_[slot.param] is not In and function.func_type not in _WRAPPERS:
            continue
        if _RANK[callee[slot.position]] > _RANK[own[slot.param]]:
            own[slot.param] = callee[slot.position]
            changed = True
    return changed


def _with_directions(function: ir.Function, directions: list[ir.ParamDirection]) -> ir.Function:
    if all(new is old for new, old in zip(directions, function.param_directions_, strict=True)):
        return function
    return function.replace(param_directions=directions)
