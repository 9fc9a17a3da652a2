"""Which parameter a function returns.

A kernel that writes a tensor parameter in place returns that tensor. Callers have to know that result k
*is* argument p: they bind the result to the argument's storage and order later reads after the write. The
function may return the parameter itself, or a value that is the same storage by way of copies, in-place
operators, loop carries or other functions. `ReturnLineage` follows those ways.

A value that shares storage but not its type (a view, a reshape) is not a parameter. The result of a loop is
taken to be its initial value unless the loop goes on with another tensor; the result of a branch is not
followed. What a function returns is its parameter only if its loops update in place.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass

from pypto.ir.carry_kinds import RESULT_IS_ARGUMENT, CarryKind, carry_kinds
from pypto.ir.enums import ArgEffect, FunctionType, ParamDirection
from pypto.ir.expr import Call, ConstInt, Expr, MakeTuple, Submit, TupleGetItemExpr, Var
from pypto.ir.op_registry import get_op_def
from pypto.ir.program import Function
from pypto.ir.stmt import AssignStmt, EvalStmt, ForStmt, ReturnStmt, Stmt, WhileStmt
from pypto.ir.tree import flatten_to_stmts
from pypto.ir.types import CommCtxType, TensorType, TupleType, Type
from pypto.ir.walk import exprs_of, walk_stmts

__all__ = ["BodyLineage", "ReturnLineage", "ReturnedParams", "argument_of_param", "explicit_returned_params"]

ReturnedParams = tuple["int | None", ...]
"""Per result position the index of the parameter that is returned there, None if there is none."""

_WRAPPERS = (FunctionType.Group, FunctionType.Spmd)

_IN_PLACE = frozenset({CarryKind.IN_PLACE, CarryKind.UNKNOWN})

_Steps = Generator[str, ReturnedParams, "int | None"]
"""A computation that yields the name of a function and is sent its returned parameters."""


@dataclass(frozen=True, slots=True)
class BodyLineage:
    """Where the values of a body come from: `definitions` by assignment, `carries` through loops.

    `traced` remembers answers that this body alone determines, so that long chains are followed once.
    """

    params: Mapping[Var, int]
    definitions: Mapping[Var, Expr]
    carries: Mapping[Var, Var]
    traced: dict[Var, int | None]

    @classmethod
    def of(
        cls,
        body: Stmt,
        params: Sequence[Var],
        *,
        passing: frozenset[CarryKind] = frozenset(CarryKind) - {CarryKind.OTHER},
    ) -> BodyLineage:
        """Index `body` once; the first assignment of a variable counts.

        The result of a loop is what the loop started from if its kind is among `passing`.
        """
        kinds = carry_kinds(body)
        definitions: dict[Var, Expr] = {}
        carries: dict[Var, Var] = {}
        for stmt in walk_stmts(body):
            if isinstance(stmt, AssignStmt):
                definitions.setdefault(stmt.var, stmt.value)
            elif isinstance(stmt, (ForStmt, WhileStmt)):
                for position, arg in enumerate(stmt.iter_args_):
                    initial = arg.initValue
                    if not isinstance(initial, Var) or kinds.get(arg) not in passing:
                        continue
                    carries[arg] = initial
                    if position < len(stmt.return_vars_):
                        result = stmt.return_vars_[position]
                        if isinstance(result.type, TensorType):
                            carries[result] = initial
        return cls({param: index for index, param in enumerate(params)}, definitions, carries, {})


class ReturnLineage:
    """Answers lineage questions about bodies whose calls go to `functions`.

    Answers are remembered, so `functions` may gain entries while this object is in use, but must not change
    them.
    """

    __slots__ = ("_functions", "_known")

    def __init__(self, functions: Mapping[str, Function]) -> None:
        self._functions = functions
        self._known: dict[str, ReturnedParams] = {}

    @property
    def functions(self) -> Mapping[str, Function]:
        """The functions that may be looked into."""
        return self._functions

    def returned_params(self, function: Function) -> ReturnedParams:
        """Return the parameter behind each result of `function`; empty if nothing can be said about any."""
        if self._functions.get(function.name) is not function:
            return self._run(self._map_steps(function), None)
        if function.name not in self._known:
            self._run(self._map_steps(function), function.name)
        return self._known[function.name]

    def param_of(self, var: Var, body: BodyLineage) -> int | None:
        """Return the index of the parameter that `var` is, None if it is none."""
        found: int | None = None

        def steps() -> Generator[str, ReturnedParams, ReturnedParams]:
            nonlocal found
            found = yield from self._trace(var, body)
            return ()

        self._run(steps(), None)
        return found

    def _run(self, root: Generator[str, ReturnedParams, ReturnedParams], name: str | None) -> ReturnedParams:
        """Drive `root`, computing the functions that it asks for on a stack of our own: call chains may be
        long.

        A function that is asked for while it is being computed has an empty answer. An answer that depends
        on such a cut is remembered only until the cut function itself is done.
        """
        stack: list[tuple[str | None, Generator[str, ReturnedParams, ReturnedParams]]] = [(name, root)]
        active = {name: 0}
        answer: ReturnedParams | None = None
        lowest_cut = [1]  # per stack entry: the lowest stack position at which a cut below it happened
        while True:
            current, steps = stack[-1]
            try:
                wanted = next(steps) if answer is None else steps.send(answer)
            except StopIteration as done:
                result: ReturnedParams = done.value
                stack.pop()
                cut = lowest_cut.pop()
                active.pop(current, None)
                if current is not None and cut >= len(stack):
                    self._known[current] = result
                if not stack:
                    return result
                lowest_cut[-1] = min(lowest_cut[-1], cut)
                answer = result
                continue
            if wanted in self._known:
                answer = self._known[wanted]
            elif wanted in active:
                answer = ()
                lowest_cut[-1] = min(lowest_cut[-1], active[wanted])
            else:
                active[wanted] = len(stack)
                stack.append((wanted, self._map_steps(self._functions[wanted])))
                lowest_cut.append(len(stack))
                answer = None

    def _map_steps(self, function: Function) -> Generator[str, ReturnedParams, ReturnedParams]:
        body = BodyLineage.of(function.body, function.params_, passing=_IN_PLACE)
        values = _returned_values(function.body)
        if not values:
            if function.func_type in _WRAPPERS and function.return_types_:
                return (yield from self._forwarded_map(function, body))
            return _map_of_signature(function)
        expected = len(function.return_types_)
        if len(values) == 1 and expected > 1:
            expanded = yield from self._expanded_tuple(values[0], expected, body)
            if len(expanded) == expected:
                return expanded
        mapped = []
        for value in values:
            mapped.append((yield from self._trace(value, body)) if isinstance(value, Var) else None)
        if function.func_type is FunctionType.InCore:
            stand_ins = _stand_ins(function)
            return tuple(None if index in stand_ins else index for index in mapped)
        return tuple(mapped)

    def _forwarded_map(
        self, function: Function, body: BodyLineage
    ) -> Generator[str, ReturnedParams, ReturnedParams]:
        """The map of a wrapper without return: that of the one inner dispatch with as many results."""
        inner = [call for stmt in walk_stmts(function.body) if (call := self._inner_dispatch(stmt, function))]
        if len(inner) != 1:
            return ()
        (call,) = inner
        returned = yield call.op.name
        callee = self._functions[call.op.name]
        mapped: list[int | None] = []
        for index in returned:
            arg = None if index is None else argument_of_param(call, callee, index)
            mapped.append(body.params.get(arg) if isinstance(arg, Var) else None)
        return tuple(mapped)

    def _inner_dispatch(self, stmt: Stmt, wrapper: Function) -> Call | Submit | None:
        call = (
            stmt.value if isinstance(stmt, AssignStmt) else stmt.expr if isinstance(stmt, EvalStmt) else None
        )
        if not isinstance(call, (Call, Submit)):
            return None
        callee = self._functions.get(call.op.name)
        if callee is None or callee.func_type in (FunctionType.Orchestration, FunctionType.Opaque):
            return None
        return call if len(callee.return_types_) == len(wrapper.return_types_) else None

    def _expanded_tuple(
        self, value: Expr, expected: int, body: BodyLineage
    ) -> Generator[str, ReturnedParams, ReturnedParams]:
        """The map of a function with several results that returns them as one tuple value."""
        if not (
            isinstance(value, Var)
            and isinstance(value.type, TupleType)
            and len(value.type.types_) == expected
        ):
            return ()
        source: Expr | None = value
        copies = {value}
        while isinstance(source, Var):
            source = body.definitions.get(source)
            if isinstance(source, Var):
                if source in copies:
                    return ()
                copies.add(source)
        mapped: list[int | None] = []
        if isinstance(source, MakeTuple):
            for element in source.elements_:
                mapped.append((yield from self._trace(element, body)) if isinstance(element, Var) else None)
        elif isinstance(source, (Call, Submit)) and source.op.name in self._functions:
            callee = self._functions[source.op.name]
            for index in (yield source.op.name):
                arg = None if index is None else argument_of_param(source, callee, index)
                mapped.append((yield from self._trace(arg, body)) if isinstance(arg, Var) else None)
        return tuple(mapped)

    def _trace(self, var: Var, body: BodyLineage) -> _Steps:
        chain: dict[Var, None] = {}
        local = True  # no function was asked on the way
        source: Expr | None = var
        found: int | None = None
        while isinstance(source, Var) and source not in chain:
            if source in body.params:
                found = body.params[source]
                break
            if source in body.traced:
                found = body.traced[source]
                break
            chain[source] = None
            if source in body.carries:
                source = body.carries[source]
                continue
            source = body.definitions.get(source)
            if isinstance(source, TupleGetItemExpr):
                local = False
                source = yield from self._element_source(source, body)
            elif isinstance(source, (Call, Submit)):
                local = local and source.op.name not in self._functions
                source = yield from self._call_source(source)
        if local:
            body.traced.update(dict.fromkeys(chain, found))
        return found

    def _element_source(
        self, item: TupleGetItemExpr, body: BodyLineage
    ) -> Generator[str, ReturnedParams, Expr | None]:
        """The element of a tuple that is written out, or the argument that one result of a call is."""
        call = body.definitions.get(item.tuple) if isinstance(item.tuple, Var) else item.tuple
        if isinstance(call, MakeTuple):
            return call.elements_[item.index]
        if not isinstance(call, (Call, Submit)) or call.op.name not in self._functions:
            return None
        returned = yield call.op.name
        index = returned[item.index] if item.index < len(returned) else None
        return None if index is None else argument_of_param(call, self._functions[call.op.name], index)

    def _call_source(self, call: Call | Submit) -> Generator[str, ReturnedParams, Expr | None]:
        """The argument that the only result of a call is."""
        callee = self._functions.get(call.op.name)
        if callee is None:
            position = RESULT_IS_ARGUMENT.get(call.op.name)
            return call.args_[position] if position is not None and position < len(call.args_) else None
        returned = yield call.op.name
        if len(returned) != 1 or returned[0] is None:
            return None
        return argument_of_param(call, callee, returned[0])


def _stand_ins(kernel: Function) -> set[int]:
    """The parameters that a kernel returns in place of what its loops compute from them.

    Outlining leaves it at that if the parameter is not written; ConvertTensorToTileOps returns the computed
    value instead, in memory of its own.
    """
    naive = BodyLineage.of(kernel.body, kernel.params_)
    if not naive.carries:
        return set()
    strict = BodyLineage.of(kernel.body, kernel.params_, passing=_IN_PLACE)
    lineage = ReturnLineage({})
    computed: set[int] = set()
    for stmt in flatten_to_stmts(kernel.body):
        for result in getattr(stmt, "return_vars_", ()):
            index = lineage.param_of(result, naive)
            if index is not None and lineage.param_of(result, strict) != index:
                computed.add(index)
    if not computed:
        return computed
    for stmt in walk_stmts(kernel.body):
        for call in exprs_of(stmt):
            definition = get_op_def(call.op.name) if isinstance(call, Call) else None
            if definition is None or not isinstance(call, Call):
                continue
            for position, arg in enumerate(call.args_):
                if isinstance(arg, Var) and definition.effect(position, call.kwargs_) is not ArgEffect.Read:
                    written = lineage.param_of(arg, naive)
                    if written is not None:
                        computed.discard(written)
    return computed


def argument_of_param(call: Call | Submit, callee: Function, index: int) -> Expr | None:
    """Return the argument for parameter `index` of `callee`, None if the dispatch omits it.

    A Submit may omit Out parameters before the trailing communication contexts.
    """
    gap = len(callee.params_) - len(call.args_)
    if gap == 0:
        return call.args_[index]
    contexts = 0
    for param in reversed(callee.params_):
        if not isinstance(param.type, CommCtxType):
            break
        contexts += 1
    first_omitted = len(call.args_) - contexts
    if index < first_omitted:
        return call.args_[index]
    shifted = index - gap
    return call.args_[shifted] if first_omitted <= shifted < len(call.args_) else None


def explicit_returned_params(function: Function) -> ReturnedParams:
    """Return the map of a function in explicit form: only returned parameters count, nothing is traced."""
    positions = {param: index for index, param in enumerate(function.params_)}
    values = _returned_values(function.body)
    if not values:
        return _map_of_signature(function)
    return tuple(positions.get(value) if isinstance(value, Var) else None for value in values)


def _map_of_signature(function: Function) -> ReturnedParams:
    """A hand-written kernel has no body to trace: its results are the parameters that it writes, in order.

    A single result is the only one of its type, or else the first.
    """
    results = function.return_types_
    if not function.attrs_.get("external_source") or not all(isinstance(t, TensorType) for t in results):
        return ()
    params = zip(function.params_, function.param_directions_, strict=True)
    written = [index for index, (_, direction) in enumerate(params) if direction is not ParamDirection.In]
    if len(results) == 1:
        alike = [index for index in written if _is_alike(function.params_[index].type, results[0])]
        written = alike if len(alike) == 1 else written
    return tuple(written[: len(results)]) if len(results) <= len(written) else ()


def _is_alike(param: Type, result: Type) -> bool:
    """Whether two tensors have one element type and extents."""
    if not isinstance(param, TensorType) or not isinstance(result, TensorType):
        return False
    return param.dtype == result.dtype and all(
        left is right
        or (isinstance(left, ConstInt) and isinstance(right, ConstInt) and left.value == right.value)
        for left, right in itertools.zip_longest(param.shape_, result.shape_)
    )


def _returned_values(body: Stmt) -> tuple[Expr, ...]:
    """The values of the first return; none if there is no return."""
    for stmt in walk_stmts(body):
        if isinstance(stmt, ReturnStmt):
            return stmt.value_
    return ()
