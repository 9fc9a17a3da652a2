"""ExpandManualPhaseFence: many tasks that wait for the same many tasks wait for one in between.

In a manual scope a phase often waits for all tasks of the phase before: M tasks, each with the same array of
N task ids, are N * M dependencies. With a task in between that does nothing but wait for the N, they are N +
M:

    for i in pl.parallel(16):                      fence = system.task_dummy(deps=[ids])
        pl.submit(self.k, ..., deps=[ids])   =>    for i in pl.parallel(16):
                                                       pl.submit(self.k, ..., deps=[fence])

This is done for a loop if it saves anything, and if the array is the same for all consumers: it is made
outside the loop, is not carried by one, and no element of it changes inside. What is ordered after what stays
as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pypto import ir
from pypto.core.dtype import DataType
from pypto.ir.op_registry import create_op_call
from pypto.ir.rewrite import definitions_of, map_values
from pypto.ir.walk import exprs_of, map_substatements, substatements, walk_stmts
from pypto.passes.base import IRProperty, Pass, PassProperties, create_program_pass, property_set
from pypto.passes.storage import constant_trip_count, yielded_values

__all__ = ["expand_manual_phase_fence"]

_KEPT = (IRProperty.NoNestedCalls, IRProperty.NormalizedStmtStructure, IRProperty.CallDirectionsResolved)
_PROPERTIES = PassProperties(required=property_set(*_KEPT), produced=property_set(*_KEPT))


def expand_manual_phase_fence() -> Pass:
    """Return the pass that puts a task between the tasks of two phases."""
    return create_program_pass(_expand, "ExpandManualPhaseFence", _PROPERTIES)


def _expand(program: ir.Program) -> ir.Program:
    return program.replace(
        functions=[
            function.replace(body=_Fences(function).outside(function.body))
            if function.func_type is ir.FunctionType.Orchestration
            else function
            for function in program.functions_.values()
        ]
    )


@dataclass(frozen=True, slots=True)
class _Consumer:
    """A Submit whose only dependency is an array of task ids, and how often it runs per run of the loop."""

    submit: ir.Submit
    array: ir.Var
    times: int


class _Fences:
    """Rewrites one function; numbers its fences."""

    def __init__(self, function: ir.Function) -> None:
        self._arrays = _SameArrays(function.body)
        self._count = 0

    def outside(self, stmt: ir.Stmt) -> ir.Stmt:
        """Look for manual scopes."""
        if isinstance(stmt, ir.RuntimeScopeStmt) and stmt.manual:
            return stmt.replace(body=self._inside(stmt.body))
        return map_substatements(stmt, self.outside)

    def _inside(self, stmt: ir.Stmt) -> ir.Stmt:
        """Fence the outermost loops of a manual scope that allow it, then the loops inside."""
        if not isinstance(stmt, ir.ForStmt):
            return map_substatements(stmt, self._inside)
        fences: list[ir.Stmt] = []
        replaced: dict[ir.Expr, ir.Expr] = {}
        for array, consumers in self._by_array(stmt).items():
            fence = self._fence(array, consumers, stmt.span)
            if fence is not None:
                fences.append(fence)
                replaced.update((each.submit, each.submit.replace(deps=[fence.var])) for each in consumers)
        waiting = map_values(stmt, lambda value: replaced.get(value, value))
        loop = map_substatements(waiting, self._inside)
        return ir.flatten_stmts([*fences, loop], stmt.span) if fences else loop

    def _fence(self, array: ir.Var, consumers: list[_Consumer], span: ir.Span) -> ir.AssignStmt | None:
        """The task between the producers in `array` and the consumers; None if it saves nothing."""
        assert isinstance(array.type, ir.ArrayType) and isinstance(array.type.extent, ir.ConstInt)
        producers = array.type.extent.value
        waiting = sum(each.times for each in consumers)
        if producers * waiting - (producers + waiting) < 1:
            return None
        dummy = create_op_call("system.task_dummy", [], span)
        call = dummy.replace(attrs={"dummy_task": True, "manual_dep_edges": [array]})
        name = f"phase_fence_barrier_{self._count}_tid"
        self._count += 1
        return ir.AssignStmt(ir.Var(name, dummy.type, span), call, span)

    def _by_array(self, loop: ir.ForStmt) -> dict[ir.Var, list[_Consumer]]:
        """The consumers in a loop for each array that is the same for all of them."""
        found: dict[ir.Var, list[_Consumer]] = {}
        for consumer in _consumers(loop, 1):
            found.setdefault(consumer.array, []).append(consumer)
        if not found:
            return found
        made_inside = {var for stmt in walk_stmts(loop.body) for var in definitions_of(stmt)}
        changed = {self._arrays.origin(array) for array in _updated_arrays(loop.body)}
        return {
            array: consumers
            for array, consumers in found.items()
            if array not in made_inside
            and not isinstance(array, ir.IterArg)
            and self._arrays.origin(array) not in changed
        }


def _consumers(loop: ir.ForStmt, outer_times: int) -> Iterator[_Consumer]:
    """The consumers in a loop. One under a parallel loop of unknown trip count is left out."""
    trips = constant_trip_count(loop)
    if loop.kind is ir.ForKind.Parallel and not trips:
        return
    times = outer_times * (trips or 1)
    pending = [loop.body]
    while pending:
        stmt = pending.pop()
        if isinstance(stmt, ir.ForStmt):
            yield from _consumers(stmt, times)
            continue
        pending += reversed(substatements(stmt))
        for expr in exprs_of(stmt):
            if isinstance(expr, ir.Submit) and len(expr.deps_) == 1 and _is_task_array(expr.deps_[0]):
                assert isinstance(expr.deps_[0], ir.Var)
                yield _Consumer(expr, expr.deps_[0], times)


def _is_task_array(expr: ir.Expr) -> bool:
    return (
        isinstance(expr, ir.Var)
        and isinstance(expr.type, ir.ArrayType)
        and expr.type.dtype == DataType.TASK_ID
    )


def _updated_arrays(body: ir.Stmt) -> Iterator[ir.Expr]:
    for stmt in walk_stmts(body):
        for expr in exprs_of(stmt):
            if isinstance(expr, ir.Call) and expr.op.name == "array.update_element":
                yield expr.args_[0]


class _SameArrays:
    """Which names may stand for one array: updates, copies, loops and branches make new names for it."""

    def __init__(self, body: ir.Stmt) -> None:
        self._parent: dict[ir.Expr, ir.Expr] = {}
        for stmt in walk_stmts(body):
            if isinstance(stmt, ir.AssignStmt):
                self._join(stmt.var, _written_array(stmt.value))
            elif isinstance(stmt, (ir.ForStmt, ir.WhileStmt)):
                for carried, result in zip(stmt.iter_args_, stmt.return_vars_, strict=False):
                    self._join(carried, carried.initValue)
                    self._join(result, carried)
            elif isinstance(stmt, ir.IfStmt):
                for branch in substatements(stmt):
                    for result, value in zip(stmt.return_vars_, yielded_values(branch), strict=False):
                        self._join(result, value)

    def origin(self, array: ir.Expr) -> ir.Expr:
        """One name for all names of an array."""
        while array in self._parent:
            array = self._parent[array]
        return array

    def _join(self, var: ir.Var, other: ir.Expr) -> None:
        if isinstance(var.type, ir.ArrayType) and isinstance(other, ir.Var):
            one, two = self.origin(var), self.origin(other)
            if one is not two:
                self._parent[one] = two


def _written_array(value: ir.Expr) -> ir.Expr:
    is_update = isinstance(value, ir.Call) and value.op.name == "array.update_element"
    return value.args_[0] if isinstance(value, ir.Call) and is_update else value
