"""DeriveCallDirections: every dispatch says how it uses each argument.

A parameter's direction is a contract of the callee; the direction of an argument also depends on the place of
the dispatch. An output that nothing has written before may be unordered with its neighbours
(`OutputExisting`); an output whose buffer was written before, or will be written again by the next iteration,
is ordered (`InOut`).

1. The directions of wrappers become what their dispatches do with their parameters (`_effective_wrappers`).
2. Per function, every tensor has a root: the buffer, or the slice, that it is (`pypto.passes.storage`).
3. Statements are visited in order with the set of regions written so far; each argument's direction is the
   first rule that applies (`_direction`).

Slices are roots of their own, so that disjoint parts of one tensor can be written at the same time. Two
slices that are not provably apart, and a slice with the whole it is taken from, count as the same region.
Iterations of a parallel loop are apart by contract.
"""

from __future__ import annotations

from dataclasses import dataclass

from pypto import ir
from pypto.ir.walk import exprs_of, substatements, walk_stmts
from pypto.passes.base import IRProperty, Pass, PassProperties, create_program_pass, property_set
from pypto.passes.buffer_regions import Region, Regions, WrittenRegions
from pypto.passes.storage import WHOLE_VIEWS, ProgramStorage, Storage, is_builtin

__all__ = ["derive_call_directions", "effective_wrapper_directions"]

_PROPERTIES = PassProperties(
    required=property_set(IRProperty.SplitIncoreOrch),
    produced=property_set(IRProperty.CallDirectionsResolved),
)

In, Out, InOut = ir.ParamDirection.In, ir.ParamDirection.Out, ir.ParamDirection.InOut
_RANK = {In: 0, Out: 1, InOut: 2}
_WRAPPERS = (ir.FunctionType.Group, ir.FunctionType.Spmd)

Dispatch = ir.Call | ir.Submit


def derive_call_directions() -> Pass:
    """Return the pass that attaches `arg_directions` to every dispatch."""
    return create_program_pass(_derive, "DeriveCallDirections", _PROPERTIES)


def _derive(program: ir.Program) -> ir.Program:
    wrappers = effective_wrapper_directions(program)
    program = program.replace(
        functions=[
            function.replace(param_directions=wrappers[name]) if name in wrappers else function
            for name, function in program.functions_.items()
        ]
    )
    storage = ProgramStorage(program, views=WHOLE_VIEWS, outputs_by_position=True)
    return program.replace(
        functions=[
            _Function(function, program, storage).derived() for function in program.functions_.values()
        ]
    )


# --- wrappers -----------------------------------------------------------------------------------------------


def effective_wrapper_directions(program: ir.Program) -> dict[str, list[ir.ParamDirection]]:
    """For each Group and Spmd function its parameter directions, raised to what its dispatches need.

    The least solution, so that wrappers that dispatch one another do not depend on the order of visits.
    """
    directions = {name: list(function.param_directions_) for name, function in program.functions_.items()}
    wrappers = {name: f for name, f in program.functions_.items() if f.func_type in _WRAPPERS}
    uses = {name: _param_uses(function, program) for name, function in wrappers.items()}
    dispatched_by: dict[str, list[str]] = {}
    for name, found in uses.items():
        for _, callee, _ in found:
            dispatched_by.setdefault(callee, []).append(name)
    pending = dict.fromkeys(wrappers)
    while pending:
        name = next(iter(pending))
        del pending[name]
        before = list(directions[name])
        for own, callee, slot in uses[name]:
            needed = directions[callee][slot]
            if _RANK[needed] > _RANK[directions[name][own]]:
                directions[name][own] = needed
        if directions[name] != before:
            pending.update(dict.fromkeys(dispatched_by.get(name, ())))
    return {name: directions[name] for name in wrappers}


def _param_uses(wrapper: ir.Function, program: ir.Program) -> list[tuple[int, str, int]]:
    """Each parameter that is an argument of an inner dispatch: (own position, callee, position there)."""
    positions = {param: index for index, param in enumerate(wrapper.params_)}
    found: list[tuple[int, str, int]] = []
    for call in _dispatches(wrapper.body):
        callee = program.get_function(call.op.name)
        if callee is None:
            continue
        for arg, slot in zip(call.args_, argument_slots(call, callee), strict=True):
            if isinstance(arg, ir.Var) and arg in positions and slot is not None:
                found.append((positions[arg], callee.name, slot))
    return found


def _dispatches(body: ir.Stmt) -> list[Dispatch]:
    return [
        expr
        for stmt in walk_stmts(body)
        for expr in exprs_of(stmt)
        if isinstance(expr, (ir.Call, ir.Submit)) and not is_builtin(expr.op)
    ]


def argument_slots(call: Dispatch, callee: ir.Function) -> list[int | None]:
    """The parameter that each argument stands for.

    A Submit may leave out outputs in front of the trailing communication contexts; a Call may leave out
    nothing.
    """
    given, declared = len(call.args_), len(callee.params_)
    if given == declared:
        return list(range(given))
    if isinstance(call, ir.Call) or given > declared:
        return [None] * given
    contexts = 0
    while contexts < given and isinstance(callee.params_[declared - 1 - contexts].type, ir.CommCtxType):
        contexts += 1
    gap = declared - given
    return [index if index < given - contexts else index + gap for index in range(given)]


# --- one function -------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Written:
    """What has been written before the current statement, and what the current branch added to it."""

    regions: WrittenRegions
    added: list[Region]

    def add(self, region: Region) -> None:
        self.regions.add(region)
        self.added.append(region)


class _Function:
    """Derives the directions of the dispatches of one function."""

    _written: _Written

    def __init__(self, function: ir.Function, program: ir.Program, storage: ProgramStorage) -> None:
        self._function = function
        self._program = program
        self._storage: Storage | None = None
        self._program_storage = storage
        self._regions: Regions | None = None
        self._inout_params = {
            param
            for param, direction in zip(function.params_, function.param_directions_, strict=True)
            if direction is InOut
        }
        self._ordered_loops = 0  # enclosing loops whose iterations run one after the other

    def derived(self) -> ir.Function:
        if not any(not call.attrs_.get("arg_directions") for call in _dispatches(self._function.body)):
            return self._function
        self._storage = self._program_storage.of(self._function)
        self._regions = Regions(self._function, self._storage)
        self._written = _Written(WrittenRegions(self._regions.analyzer), [])
        return self._function.replace(body=self._stmt(self._function.body))

    def _stmt(self, stmt: ir.Stmt) -> ir.Stmt:
        if isinstance(stmt, ir.AssignStmt):
            return stmt.replace(value=self._expr(stmt.value))
        if isinstance(stmt, ir.EvalStmt):
            return stmt.replace(expr=self._expr(stmt.expr))
        if isinstance(stmt, (ir.ForStmt, ir.WhileStmt)):
            ordered = isinstance(stmt, ir.WhileStmt) or stmt.kind is not ir.ForKind.Parallel
            self._ordered_loops += ordered
            body = self._stmt(stmt.body)
            self._ordered_loops -= ordered
            return stmt.replace(body=body)
        if isinstance(stmt, ir.IfStmt):
            return self._if(stmt)
        if not substatements(stmt):
            return stmt
        if isinstance(stmt, ir.SeqStmts):
            return stmt.replace(stmts=[self._stmt(inner) for inner in stmt.stmts_])
        assert isinstance(stmt, ir.ScopeStmt)
        return stmt.replace(body=self._stmt(stmt.body))

    def _if(self, stmt: ir.IfStmt) -> ir.Stmt:
        """A branch does not see what the other one wrote; whatever comes after sees both."""
        outer, self._written.added = self._written.added, []
        then_body = self._stmt(stmt.then_body)
        in_then, self._written.added = self._written.added, []
        for region in in_then:
            self._written.regions.remove(region)
        else_body = None if stmt.else_body is None else self._stmt(stmt.else_body)
        for region in in_then:
            self._written.regions.add(region)
        self._written.added = [*outer, *in_then, *self._written.added]
        return stmt.replace(then_body=then_body, else_body=else_body)

    def _expr(self, expr: ir.Expr) -> ir.Expr:
        if not isinstance(expr, (ir.Call, ir.Submit)) or is_builtin(expr.op):
            return expr
        callee = self._program.get_function(expr.op.name)
        if callee is None or not expr.args_:
            return expr
        slots = argument_slots(expr, callee)
        if None in slots:
            return expr
        directions = [
            self._direction(arg, callee.param_directions_[slot or 0], position, expr)
            for position, (arg, slot) in enumerate(zip(expr.args_, slots, strict=True))
        ]
        for arg, slot in zip(expr.args_, slots, strict=True):
            if callee.param_directions_[slot or 0] is not In:
                for region in self._regions_of(arg):
                    self._written.add(region)
        if expr.attrs_.get("arg_directions"):
            return expr
        return expr.replace(attrs={**expr.attrs_, "arg_directions": directions})

    def _regions_of(self, arg: ir.Expr) -> list[Region]:
        assert self._storage is not None and self._regions is not None
        return [self._regions.of(root) for root in self._storage.roots_of(arg)]

    def _direction(
        self, arg: ir.Expr, declared: ir.ParamDirection, position: int, call: Dispatch
    ) -> ir.ArgDirection:
        if not isinstance(arg.type, (ir.TensorType, ir.TupleType)):
            return ir.ArgDirection.Scalar
        if position in call.attrs_.get("arg_direction_overrides", ()):
            return ir.ArgDirection.NoDep
        if declared is In:
            return ir.ArgDirection.Input
        if declared is InOut or self._ordered_loops:
            return ir.ArgDirection.InOut
        regions = self._regions_of(arg)
        if len(regions) > 1:  # which buffer it is depends on control flow
            return ir.ArgDirection.InOut
        for region in regions:
            if region.root in self._inout_params or self._written.regions.overlap(region):
                return ir.ArgDirection.InOut
        return ir.ArgDirection.OutputExisting
