"""ClassifyIterArgCarry: which values an orchestration loop really carries.

A carried tensor that every iteration only updates in place needs no variable: all its names are one buffer.
Such a carry is *trivial*; the others are rebound at the yield. Each `for` of an orchestration gets, per
carried value `i`,

- `iter_arg_rebind_<i>`: whether the yield gives it a new value;
- `iter_arg_array_size_<i>`: for a task id that a parallel loop of a manual scope carries, its trip count: the
  tasks of all iterations are kept, one slot each, or as many as a loop inside keeps. A sequential loop
  carries all slots of what it starts with and of what it yields.
"""

from __future__ import annotations

from pypto import ir
from pypto.core.dtype import DataType
from pypto.ir.walk import map_substatements, substatements
from pypto.passes.base import IRProperty, Pass, PassProperties, create_program_pass, property_set
from pypto.passes.storage import (
    NO_VIEWS,
    ProgramStorage,
    constant_trip_count,
    is_builtin,
    resolve,
    written_back_argument,
    yielded_values,
)

__all__ = ["classify_iter_arg_carry", "ends_with_one_id"]

_PROPERTIES = PassProperties(
    required=property_set(IRProperty.CallDirectionsResolved, IRProperty.RuntimeScopesMaterialized),
    produced=property_set(IRProperty.IterArgCarryClassified, IRProperty.RuntimeScopesMaterialized),
)


_MOST_SLOTS = 1024
"""A task that waits for a carried id names every slot; loops that feed one another multiply them."""


def classify_iter_arg_carry() -> Pass:
    """Return the pass that stamps the carried values of orchestration loops."""
    return create_program_pass(_classify, "ClassifyIterArgCarry", _PROPERTIES)


def _classify(program: ir.Program) -> ir.Program:
    storage = ProgramStorage(program, views=NO_VIEWS, outputs_by_position=True)
    return program.replace(
        functions=[
            function.replace(body=_Carries(storage).stmt(function.body, in_manual_scope=False))
            if function.func_type is ir.FunctionType.Orchestration
            else function
            for function in program.functions_.values()
        ]
    )


class _Carries:
    """Walks one function; knows of every variable which earlier one it is another name for."""

    def __init__(self, storage: ProgramStorage) -> None:
        self._storage = storage
        self._names: dict[ir.Expr, ir.Expr] = {}  # variable -> the variable or value that it is a name for
        self._defined: dict[ir.Var, ir.Expr] = {}
        self._slots: dict[ir.Expr, int] = {}  # variable -> number of task ids in it, when it holds several

    def stmt(self, stmt: ir.Stmt, *, in_manual_scope: bool) -> ir.Stmt:
        if isinstance(stmt, ir.AssignStmt):
            self._assign(stmt)
            return stmt
        if isinstance(stmt, ir.ForStmt):
            return self._for(stmt, in_manual_scope)
        if isinstance(stmt, ir.WhileStmt):
            new_body = self._body_of(stmt, in_manual_scope)
            self._while(stmt)
            return stmt.replace(body=new_body)
        manual = in_manual_scope or (isinstance(stmt, ir.RuntimeScopeStmt) and stmt.manual)
        new = (
            map_substatements(stmt, lambda inner: self.stmt(inner, in_manual_scope=manual))
            if substatements(stmt)
            else stmt
        )
        if isinstance(stmt, ir.IfStmt):
            self._if(stmt)
        return new

    def _meant(self, expr: ir.Expr) -> ir.Expr:
        return self._names.get(expr, expr)

    def _assign(self, stmt: ir.AssignStmt) -> None:
        self._defined[stmt.var] = stmt.value
        source = self._same_as(stmt.var, stmt.value)
        if source is not None:
            self._names[stmt.var] = self._meant(source)

    def _same_as(self, var: ir.Var, value: ir.Expr) -> ir.Expr | None:
        """What a variable is another name for; None for something new."""
        if isinstance(value, ir.Var):
            return value
        if isinstance(value, ir.Call) and is_builtin(value.op):
            if value.op.name == "array.update_element":
                return value.args_[0]
            index = written_back_argument(value)
            return None if index is None else value.args_[index]
        if isinstance(var.type, ir.TensorType):
            sources = self._storage.rule(var, value, self._defined)
            if len(sources) == 1 and sources[0] is not var:
                return sources[0]
        return None

    def _for(self, loop: ir.ForStmt, in_manual_scope: bool) -> ir.Stmt:
        body = self._body_of(loop, in_manual_scope)
        yielded = yielded_values(loop.body)
        attrs = dict(loop.attrs_)
        for position, carried in enumerate(loop.iter_args_):
            value = yielded[position]
            trivial = self._is_trivial(carried, value)
            attrs[f"iter_arg_rebind_{position}"] = not trivial
            if trivial and position < len(loop.return_vars_) and not isinstance(carried.type, ir.ArrayType):
                self._names[loop.return_vars_[position]] = self._meant(carried.initValue)
            slots = self._task_slots(loop, carried, value, in_manual_scope)
            if slots:
                attrs[f"iter_arg_array_size_{position}"] = slots
                if not ends_with_one_id(loop, self._slots_of(value)):
                    self._slots[loop.return_vars_[position]] = slots
        if attrs == loop.attrs_:
            return loop.replace(body=body)
        return loop.replace(body=body, attrs=attrs)

    def _is_trivial(self, carried: ir.IterArg, value: ir.Expr) -> bool:
        if _is_task_id(carried):
            return False
        meant = self._meant(value)
        if meant is carried:
            return True
        return isinstance(carried.type, ir.TensorType) and meant is self._meant(carried.initValue)

    def _body_of(self, loop: ir.ForStmt | ir.WhileStmt, in_manual_scope: bool) -> ir.Stmt:
        """The stamped body. A loop inside may start from what this one carries, however many ids it is."""
        while True:
            body = self.stmt(loop.body, in_manual_scope=in_manual_scope)
            grown: dict[ir.Expr, int] = {
                carried: slots
                for carried, value in zip(loop.iter_args_, yielded_values(loop.body), strict=False)
                if in_manual_scope
                and _is_task_id(carried)
                and (slots := self._carried_slots(loop, carried, value)) > self._slots.get(carried, 0)
            }
            if not grown:
                return body
            self._slots |= grown
            for carried, slots in grown.items():
                if slots > _MOST_SLOTS:
                    raise ValueError(
                        f"The loop that carries '{_hint(carried)}' would keep {slots} task ids or more; wait "
                        f"for them with pl.system.task_dummy(deps=[...]) and carry its id [{loop.span}]"
                    )

    def _carried_slots(self, loop: ir.ForStmt | ir.WhileStmt, carried: ir.IterArg, value: ir.Expr) -> int:
        """How many ids an iteration sees: those of the loop's start, and those of the iteration before."""
        at_start = self._slots_of(carried.initValue)
        if isinstance(loop, ir.ForStmt) and loop.kind is ir.ForKind.Parallel:
            return at_start
        return max(at_start, self._slots_of(value))

    def _slots_of(self, value: ir.Expr) -> int:
        return self._slots.get(resolve(value, self._defined), 0)

    def _task_slots(
        self, loop: ir.ForStmt, carried: ir.IterArg, value: ir.Expr, in_manual_scope: bool
    ) -> int:
        if not in_manual_scope or not _is_task_id(carried):
            return 0
        if loop.kind is not ir.ForKind.Parallel:
            return self._carried_slots(loop, carried, value)
        trips = constant_trip_count(loop)
        if trips is None:
            raise ValueError(
                f"A parallel loop in a manual scope that carries a task id needs a statically-known trip "
                f"count; the bounds of the loop that carries '{carried.name_hint}' are computed [{loop.span}]"
            )
        return trips * max(self._slots_of(value), 1)

    def _while(self, loop: ir.WhileStmt) -> None:
        for position, value in enumerate(yielded_values(loop.body)):
            if position < len(loop.return_vars_) and self._is_trivial(loop.iter_args_[position], value):
                self._names[loop.return_vars_[position]] = self._meant(loop.iter_args_[position].initValue)
            slots = self._slots.get(loop.iter_args_[position], 0)
            if slots:
                self._slots[loop.return_vars_[position]] = slots

    def _if(self, stmt: ir.IfStmt) -> None:
        if stmt.else_body is None:
            return
        branches = (yielded_values(stmt.then_body), yielded_values(stmt.else_body))
        for result, one, other in zip(stmt.return_vars_, *branches, strict=False):
            if self._meant(one) is self._meant(other):
                self._names[result] = self._meant(one)
            slots = max(self._slots_of(one), self._slots_of(other))
            if slots:
                self._slots[result] = slots


def ends_with_one_id(loop: ir.ForStmt, yielded_slots: int) -> bool:
    """Whether one id certainly follows the ids that a loop starts with: it runs, and yields single ids."""
    return loop.kind is not ir.ForKind.Parallel and not yielded_slots and bool(constant_trip_count(loop))


def _hint(expr: ir.Expr) -> str:
    return expr.name_hint if isinstance(expr, ir.Var) else ""


def _is_task_id(var: ir.Var) -> bool:
    return isinstance(var.type, ir.ScalarType) and var.type.dtype == DataType.TASK_ID
