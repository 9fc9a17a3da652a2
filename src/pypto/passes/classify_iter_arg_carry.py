"""ClassifyIterArgCarry: which values an orchestration loop really carries.

A carried tensor that every iteration only updates in place needs no variable: all its names are one buffer.
Such a carry is *trivial*; the others are rebound at the yield. Each `for` of an orchestration gets, per
carried value `i`,

- `iter_arg_rebind_<i>`: whether the yield gives it a new value;
- `iter_arg_array_size_<i>`: for a task id that a parallel loop of a manual scope carries, its trip count: the
  tasks of all iterations are kept, one slot each. A sequential loop around it carries all slots.
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

__all__ = ["classify_iter_arg_carry"]

_PROPERTIES = PassProperties(
    required=property_set(IRProperty.CallDirectionsResolved, IRProperty.RuntimeScopesMaterialized),
    produced=property_set(IRProperty.IterArgCarryClassified, IRProperty.RuntimeScopesMaterialized),
)


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
        self._slots: dict[ir.Expr, int] = {}  # loop result -> number of task ids in it

    def stmt(self, stmt: ir.Stmt, *, in_manual_scope: bool) -> ir.Stmt:
        if isinstance(stmt, ir.AssignStmt):
            self._assign(stmt)
            return stmt
        if isinstance(stmt, ir.ForStmt):
            return self._for(stmt, in_manual_scope)
        manual = in_manual_scope or (isinstance(stmt, ir.RuntimeScopeStmt) and stmt.manual)
        new = (
            map_substatements(stmt, lambda inner: self.stmt(inner, in_manual_scope=manual))
            if substatements(stmt)
            else stmt
        )
        if isinstance(stmt, ir.WhileStmt):
            self._while(stmt)
        elif isinstance(stmt, ir.IfStmt):
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
        body = self.stmt(loop.body, in_manual_scope=in_manual_scope)
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

    def _task_slots(
        self, loop: ir.ForStmt, carried: ir.IterArg, value: ir.Expr, in_manual_scope: bool
    ) -> int:
        if not in_manual_scope or not _is_task_id(carried):
            return 0
        if loop.kind is not ir.ForKind.Parallel:
            return self._slots.get(resolve(value, self._defined), 0)
        trips = constant_trip_count(loop)
        if trips is None:
            raise ValueError(
                f"A parallel loop in a manual scope that carries a task id needs a statically-known trip "
                f"count; the bounds of the loop that carries '{carried.name_hint}' are computed [{loop.span}]"
            )
        return trips

    def _while(self, loop: ir.WhileStmt) -> None:
        for position, value in enumerate(yielded_values(loop.body)):
            if position < len(loop.return_vars_) and self._is_trivial(loop.iter_args_[position], value):
                self._names[loop.return_vars_[position]] = self._meant(loop.iter_args_[position].initValue)

    def _if(self, stmt: ir.IfStmt) -> None:
        if stmt.else_body is None:
            return
        branches = (yielded_values(stmt.then_body), yielded_values(stmt.else_body))
        for result, one, other in zip(stmt.return_vars_, *branches, strict=False):
            if self._meant(one) is self._meant(other):
                self._names[result] = self._meant(one)


def _is_task_id(var: ir.Var) -> bool:
    return isinstance(var.type, ir.ScalarType) and var.type.dtype == DataType.TASK_ID
