"""Which memory a tensor variable stands for.

In SSA form one buffer has many names: each write gives it a new one, loops carry it, branches merge it.
`trace` gives every tensor variable of a function its *roots*: the variables (parameters, allocations) whose
memory it may be. More than one root means that control flow decides. A variable may also be a *value*: a
result that lives in no memory at all, such as the sum of two tensors inside a kernel.

What a single statement does is decided by a rule; the rules here differ in one thing only, whether a view
(slice, reshape, transpose) counts as the memory that it looks at.

Unlike the return lineage of the outliner this follows what a loop really yields, so a loop that computes new
values is not mistaken for one that updates its initial value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pypto import ir
from pypto.ir.op_registry import get_op_def
from pypto.ir.views import same_extents
from pypto.ir.walk import walk_stmts

__all__ = [
    "ALL_VIEWS",
    "NO_VIEWS",
    "WHOLE_VIEWS",
    "Definitions",
    "ProgramStorage",
    "Rule",
    "Storage",
    "constant_trip_count",
    "definitions",
    "is_builtin",
    "is_tensor",
    "resolve",
    "trace",
    "written_back_argument",
    "yielded_values",
]

NO_ROOTS: frozenset[ir.Var] = frozenset()

NO_VIEWS: frozenset[str] = frozenset()
WHOLE_VIEWS = frozenset({"tensor.reshape", "tensor.transpose", "tensor.view", "tensor.reinterpret_view"})
"""Views of all elements of their operand."""
ALL_VIEWS = WHOLE_VIEWS | {"tensor.slice"}
_BUILTIN_PREFIXES = ("tile.", "tensor.", "system.", "array.", "pld.", "prefetch.", "dist.", "builtin.")

Definitions = Mapping[ir.Var, ir.Expr]
Rule = Callable[[ir.Var, ir.Expr, Definitions], "Sequence[ir.Expr] | None"]
"""What the right side of an assignment is: the expressions whose memory it may be (the variable itself for
memory of its own), or None for a value that is no memory."""

OTHER_MEMORY = -1
"""Stands, among parameter positions, for memory that is no parameter's."""


@dataclass(frozen=True, slots=True)
class Storage:
    """The roots of each memory variable of a function, and its values. Variables of other types are in
    neither.
    """

    roots: Mapping[ir.Var, frozenset[ir.Var]]
    values: frozenset[ir.Var] = field(default_factory=frozenset)

    def roots_of(self, expr: ir.Expr) -> frozenset[ir.Var]:
        """The memory that an expression may stand for; empty for a value, a scalar, a tile."""
        return self.roots.get(expr, NO_ROOTS) if isinstance(expr, ir.Var) else NO_ROOTS

    def only_root(self, expr: ir.Expr) -> ir.Var | None:
        """The root of `expr` if control flow does not matter, else None."""
        roots = self.roots_of(expr)
        return next(iter(roots)) if len(roots) == 1 else None


def is_tensor(expr: ir.Expr) -> bool:
    return isinstance(expr.type, ir.TensorType)


def is_builtin(op: ir.Op) -> bool:
    """Whether a call of `op` is an operator rather than a dispatch of a program function."""
    return op.name.startswith(_BUILTIN_PREFIXES)


def definitions(body: ir.Stmt) -> dict[ir.Var, ir.Expr]:
    """The value assigned to each variable."""
    return {stmt.var: stmt.value for stmt in walk_stmts(body) if isinstance(stmt, ir.AssignStmt)}


def trace(function: ir.Function, rule: Rule) -> Storage:
    """Roots and values of all tensor variables of `function`."""
    sources, own, values = _sources(function, rule)
    dependents: dict[ir.Var, list[ir.Var]] = {}
    results = _loop_results(function)
    for var, exprs in sources.items():
        for expr in exprs:
            if expr is var:
                own.add(var)
            elif isinstance(expr, ir.Var) and is_tensor(expr):
                dependents.setdefault(expr, []).append(var)
            else:  # a tile, or an expression that no rule describes
                (values if isinstance(expr.type, ir.TileType) else own).add(var)
    pending = list(values)
    while pending:
        value = pending.pop()
        for var in (*dependents.get(value, ()), *results.get(value, ())):
            if var not in values:
                values.add(var)
                pending.append(var)
    return Storage(_flow_roots(own - values, dependents, values), frozenset(values))


def _loop_results(function: ir.Function) -> dict[ir.Var, list[ir.Var]]:
    """The tensor result of each carried variable. What a loop hands out is a value if it carries one."""
    results: dict[ir.Var, list[ir.Var]] = {}
    for stmt in walk_stmts(function.body):
        if isinstance(stmt, (ir.ForStmt, ir.WhileStmt)):
            for carried, result in zip(stmt.iter_args_, stmt.return_vars_, strict=False):
                if is_tensor(result):
                    results.setdefault(carried, []).append(result)
    return results


def _sources(
    function: ir.Function, rule: Rule
) -> tuple[dict[ir.Var, list[ir.Expr]], set[ir.Var], set[ir.Var]]:
    """Per tensor variable where its memory comes from; those with their own memory; those that are values."""
    defined = definitions(function.body)
    own = {param for param in function.params_ if is_tensor(param)}
    values: set[ir.Var] = set()
    sources: dict[ir.Var, list[ir.Expr]] = {}
    for stmt in walk_stmts(function.body):
        if isinstance(stmt, ir.AssignStmt):
            if is_tensor(stmt.var):
                found = rule(stmt.var, stmt.value, defined)
                if found is None:
                    values.add(stmt.var)
                else:
                    sources[stmt.var] = list(found)
        elif isinstance(stmt, (ir.ForStmt, ir.WhileStmt)):
            yielded = yielded_values(stmt.body)
            surely_runs = isinstance(stmt, ir.ForStmt) and (constant_trip_count(stmt) or 0) > 0
            for position, carried in enumerate(stmt.iter_args_):
                if is_tensor(carried):
                    handed_on = [each for each in yielded[position : position + 1] if each is not carried]
                    sources[carried] = [carried.initValue, *handed_on]
            for position, (carried, result) in enumerate(
                zip(stmt.iter_args_, stmt.return_vars_, strict=False)
            ):
                if is_tensor(result):
                    sources[result] = [
                        yielded[position] if surely_runs and position < len(yielded) else carried
                    ]
        elif isinstance(stmt, ir.IfStmt):
            branches = [stmt.then_body] if stmt.else_body is None else [stmt.then_body, stmt.else_body]
            yields = [yielded_values(branch) for branch in branches]
            for position, result in enumerate(stmt.return_vars_):
                if is_tensor(result):
                    sources[result] = [values_[position] for values_ in yields if position < len(values_)]
    return sources, own, values


def _flow_roots(
    own: Iterable[ir.Var], dependents: Mapping[ir.Var, Sequence[ir.Var]], values: set[ir.Var]
) -> dict[ir.Var, frozenset[ir.Var]]:
    roots = {var: frozenset((var,)) for var in own}
    pending = list(roots)
    while pending:
        var = pending.pop()
        for dependent in dependents.get(var, ()):
            if dependent in values:
                continue
            known = roots.get(dependent, NO_ROOTS)
            merged = known | roots[var]
            if merged != known:
                roots[dependent] = merged
                pending.append(dependent)
    return roots


def constant_trip_count(loop: ir.ForStmt) -> int | None:
    """How often a loop with constant bounds runs; None if the bounds are not constant or the step is zero."""
    bounds = (loop.start, loop.stop, loop.step)
    if not all(isinstance(bound, ir.ConstInt) for bound in bounds):
        return None
    start, stop, step = (bound.value for bound in bounds if isinstance(bound, ir.ConstInt))
    return None if step == 0 else len(range(start, stop, step))


def yielded_values(body: ir.Stmt) -> tuple[ir.Expr, ...]:
    """What the trailing yield of a loop or branch body hands out; nothing if there is none."""
    last = ir.get_last_yield_stmt(body)
    return () if last is None else last.value_


class ProgramStorage:
    """Storage of the functions of one program, where a dispatch result is traced through what its callee
    returns.

    `views`: the view operators whose result counts as the memory they look at.
    `outputs_by_position`: take the results of a callee that cannot be traced (an external kernel) for its
        outputs in
    declaration order.
    """

    def __init__(
        self, program: ir.Program, *, views: frozenset[str], outputs_by_position: bool = False
    ) -> None:
        self._program = program
        self._views = views
        self._outputs_by_position = outputs_by_position
        self._storage: dict[str, Storage] = {}
        self._returned: dict[str, tuple[frozenset[int], ...]] = {}

    def of(self, function: ir.Function) -> Storage:
        """Roots of the tensor variables of a function of the program."""
        found = self._storage.get(function.name)
        if found is None:
            found = self._storage[function.name] = trace(function, self.rule)
        return found

    def of_body(self, function: ir.Function) -> Storage:
        """The same for a function that is not, or not in this form, part of the program."""
        return trace(function, self.rule)

    def returned_params(self, name: str) -> tuple[frozenset[int], ...]:
        """For each result of a program function the parameters whose memory it may be, with `OTHER_MEMORY`.

        Results that are no memory have an empty set. An empty tuple when nothing is known, for example of a
        function that is being traced.
        """
        found = self._returned.get(name)
        if found is None:
            function = self._program.get_function(name)
            self._returned[name] = ()
            found = () if function is None else self._trace_results(function)
            self._returned[name] = found
        return found

    def _trace_results(self, function: ir.Function) -> tuple[frozenset[int], ...]:
        result = next((stmt for stmt in walk_stmts(function.body) if isinstance(stmt, ir.ReturnStmt)), None)
        if result is None:
            return ()
        storage = self.of(function)
        positions = {param: index for index, param in enumerate(function.params_)}
        values = result.value_
        if len(values) == 1 and len(function.return_types_) > 1:
            return self._trace_tuple(function, values[0], storage, positions)
        return tuple(_known_positions(storage.roots_of(value), positions) for value in values)

    def _trace_tuple(
        self,
        function: ir.Function,
        value: ir.Expr,
        storage: Storage,
        positions: Mapping[ir.Var, int],
    ) -> tuple[frozenset[int], ...]:
        """Results of a function that forwards the whole tuple of one dispatch."""
        call = resolve(value, definitions(function.body))
        if not isinstance(call, (ir.Call, ir.Submit)) or is_builtin(call.op):
            return ()
        found: list[frozenset[int]] = []
        for returned in self.returned_params(call.op.name):
            known = [
                frozenset((OTHER_MEMORY,))
                if index == OTHER_MEMORY or index >= len(call.args_)
                else _known_positions(storage.roots_of(call.args_[index]), positions)
                for index in returned
            ]
            found.append(frozenset().union(*known))
        return tuple(found)

    def rule(self, var: ir.Var, value: ir.Expr, defined: Definitions) -> Sequence[ir.Expr]:
        """The rule of functions whose tensors all are memory."""
        if isinstance(value, ir.Var):
            return [value]
        if isinstance(value, ir.TupleGetItemExpr):
            source = resolve(value.tuple, defined)
            if isinstance(source, (ir.Call, ir.Submit)):
                return self._memory_of_result(var, source, value.index)
            return [source.elements_[value.index]] if isinstance(source, ir.MakeTuple) else [var]
        if isinstance(value, (ir.Call, ir.Submit)):
            if is_builtin(value.op):
                index = written_back_argument(value, self._views)
                return [var] if index is None else [value.args_[index]]
            return self._memory_of_result(var, value, 0)
        return [var]

    def result_args(self, call: ir.Call | ir.Submit, position: int) -> list[ir.Expr]:
        """The arguments of a dispatch whose memory its result at `position` may be."""
        results = self.returned_params(call.op.name)
        if position >= len(results):
            return []
        return [call.args_[index] for index in sorted(results[position]) if 0 <= index < len(call.args_)]

    def _memory_of_result(self, var: ir.Var, call: ir.Call | ir.Submit, position: int) -> list[ir.Expr]:
        results = self.returned_params(call.op.name)
        if not results and self._outputs_by_position:
            return self._output_at(call, position, var) or [var]
        found = self.result_args(call, position)
        if not found or OTHER_MEMORY in results[position]:
            found.append(var)
        return found

    def _output_at(self, call: ir.Call | ir.Submit, position: int, result: ir.Var) -> list[ir.Expr]:
        """The output argument that a result of an untraceable callee most likely is."""
        callee = self._program.get_function(call.op.name)
        if callee is None:
            return []
        outputs = [
            arg
            for arg, direction in zip(call.args_, callee.param_directions_, strict=False)
            if direction is not ir.ParamDirection.In and is_tensor(arg)
        ]
        if len(callee.return_types_) > 1:
            return outputs[position : position + 1]
        alike = [arg for arg in outputs if _same_extents_and_dtype(arg.type, result.type)]
        return alike if len(alike) == 1 else outputs[:1]


def _same_extents_and_dtype(a: ir.Type, b: ir.Type) -> bool:
    assert isinstance(a, ir.TensorType) and isinstance(b, ir.TensorType)
    return a.dtype == b.dtype and same_extents(a.shape_, b.shape_)


def _known_positions(roots: frozenset[ir.Var], positions: Mapping[ir.Var, int]) -> frozenset[int]:
    return frozenset(positions.get(root, OTHER_MEMORY) for root in roots)


def resolve(expr: ir.Expr, defined: Definitions) -> ir.Expr:
    """What a variable was assigned, through plain copies."""
    while isinstance(expr, ir.Var) and expr in defined:
        expr = defined[expr]
    return expr


def written_back_argument(call: ir.Call | ir.Submit, views: frozenset[str] = NO_VIEWS) -> int | None:
    """The argument that the result of an operator is: updated in place, or looked at by one of `views`."""
    name = call.op.name
    if name == "tensor.write":
        return 0
    definition = get_op_def(name)
    if definition is None or definition.category == "ArrayOp":
        return None
    if definition.reuses is not None:
        return definition.reuses
    return 0 if name in views else None
