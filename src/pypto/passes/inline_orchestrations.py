"""InlineOrchestrations: an orchestration that another one dispatches becomes part of it.

A scope above the core group (`pl.at(level=pl.Level.HOST)`) is outlined to a function that orchestrates, and
so is a helper without a type that holds kernels. One processor runs every level here, and one orchestration
submits all tasks, so what is dispatched from another orchestration is put where the dispatch stands:

1. Callees come first, so that each body is complete when it is used; a cycle is rejected.
2. The caller of an Orchestration is an Orchestration. What nobody dispatches any more leaves the program.
3. A dispatch with a task id or dependencies stands for all tasks of the body: each of them waits for the
   dependencies, and the id is that of a task that waits for each of them (`task_completion`).
4. An argument that the dispatch excludes from dependency tracking is excluded at the tasks that take it.
5. A block count of the dispatch is that of each task which has none of its own.
6. What is left hands on no tiles: a loop carries a name that its kernels use for tiles, but no tile leaves a
   kernel (`carried_values`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pypto import ir
from pypto.core.errors import UsageError, located
from pypto.ir.entry_points import ORCHESTRATING, called_orchestrations
from pypto.ir.rewrite import map_expr, map_values
from pypto.ir.walk import walk
from pypto.passes.base import IRProperty, Pass, PassProperties, create_program_pass, property_set
from pypto.passes.carried_values import without_unread_tiles
from pypto.passes.inline_functions import called_among, callees_first, expand_function
from pypto.passes.inline_splice import InlineCallee, prepare_callee
from pypto.passes.outline.launch_spec import effective_launch_spec
from pypto.passes.outline.names import VariableNames
from pypto.passes.task_completion import with_completion

__all__ = ["inline_orchestrations"]

_KEPT = (IRProperty.SSAForm, IRProperty.SplitIncoreOrch, IRProperty.NormalizedStmtStructure)


def inline_orchestrations() -> Pass:
    """Return the pass that leaves only orchestrations that no other one dispatches."""
    properties = PassProperties(required=property_set(*_KEPT), produced=property_set(*_KEPT))
    return create_program_pass(_inline, "InlineOrchestrations", properties)


def _inline(program: ir.Program) -> ir.Program:
    program = _inlined(program)
    return program.replace(
        functions=[
            without_unread_tiles(function) if function.func_type in ORCHESTRATING else function
            for function in program.functions_.values()
        ]
    )


def _inlined(program: ir.Program) -> ir.Program:
    called = called_orchestrations(program)
    if not called:
        return program
    callees_first({name: f for name, f in program.functions_.items() if name in called})  # refuses a cycle
    variants = _Variants(program.functions_, called)
    plain = {
        name: variants.with_plain_calls(f)
        for name, f in program.functions_.items()
        if f.func_type in ORCHESTRATING
    }
    prepared: dict[str, InlineCallee] = {}
    inlined = {name: f for name, f in plain.items() if name in called} | variants.made()
    for name in callees_first(inlined):
        callee = prepare_callee(_expand(inlined[name], prepared))
        prepared[name] = replace(callee, returns_tuple=True) if name in variants.submitted else callee
    kept: list[ir.Function] = []
    for name, function in program.functions_.items():
        if name in called:
            continue
        if name in plain:
            function = _expand(plain[name], prepared)
            if function.func_type is ir.FunctionType.Opaque and _reaches_orchestration(plain[name], inlined):
                function = function.replace(func_type=ir.FunctionType.Orchestration)
        kept.append(function)
    return ir.Program(kept, program.name, program.span)


def _expand(function: ir.Function, callees: Mapping[str, InlineCallee]) -> ir.Function:
    known = {node.name_hint for node in walk(function, once=True) if isinstance(node, ir.Var)}
    names = VariableNames(known)
    return expand_function(
        function, callees, lambda var, type_: ir.Var(names.next_version(var.name_hint), type_, var.span)
    )


def _reaches_orchestration(function: ir.Function, inlined: Mapping[str, ir.Function]) -> bool:
    pending, seen = [function], set()
    while pending:
        for name in called_among(pending.pop(), inlined):
            if name in seen:
                continue
            seen.add(name)
            if inlined[name].func_type is ir.FunctionType.Orchestration:
                return True
            pending.append(inlined[name])
    return False


@dataclass(frozen=True, slots=True)
class _Launch:
    """On how many blocks a dispatch launches its callee: a number, or (None) one that it passes."""

    block_count: int | None
    sync_start: bool


@dataclass(frozen=True, slots=True)
class _Variant:
    """How a dispatch uses its callee: with dependencies and an id, with arguments that are not tracked, on
    several blocks.
    """

    callee: str
    dependencies: int | None
    untracked: tuple[int, ...]
    launch: _Launch | None

    @property
    def name(self) -> str:
        return f"{self.callee}/{self.dependencies}/{self.untracked}/{self.launch}"


class _Variants:
    """Turns every dispatch of an orchestration into a plain call, of a variant of the callee if need be."""

    def __init__(self, functions: Mapping[str, ir.Function], called: set[str]) -> None:
        self._functions = functions
        self._called = called
        self._made: dict[str, ir.Function] = {}
        self.submitted: set[str] = set()  # the variants that return an id, and so a tuple

    def made(self) -> dict[str, ir.Function]:
        """The variants that the calls name."""
        return self._made

    def with_plain_calls(self, function: ir.Function) -> ir.Function:
        """Return `function` with its dispatches of orchestrations as calls."""
        return function.replace(body=map_values(function.body, lambda value: map_expr(value, self._expr)))

    def _expr(self, expr: ir.Expr) -> ir.Expr:
        if not isinstance(expr, (ir.Call, ir.Submit)) or expr.op.name not in self._called:
            return expr
        untracked = tuple(expr.attrs_.get("arg_direction_overrides", ()))
        deps = expr.deps_ if isinstance(expr, ir.Submit) else None
        launch, counts = self._launch(expr)
        if deps is None and not untracked and launch is None:
            return expr
        if isinstance(expr, ir.Submit) and expr.predicate is not None:
            raise UsageError(
                located(
                    f"'{expr.op.name}' submits tasks of its own, which one predicate cannot guard; give the "
                    "predicate to its kernels",
                    expr.span,
                )
            )
        variant = _Variant(expr.op.name, None if deps is None else len(deps), untracked, launch)
        if variant.name not in self._made:
            self._made[variant.name] = self._make(variant, deps, counts)
        attrs = {key: value for key, value in expr.attrs_.items() if key == "dump_vars"}
        op = ir.GlobalVar(variant.name)
        return ir.Call(op, [*expr.args_, *counts, *(deps or ())], {}, attrs, expr.type, expr.span)

    def _launch(self, dispatch: ir.Call | ir.Submit) -> tuple[_Launch | None, Sequence[ir.Expr]]:
        """The launch specification of a dispatch or, if it has none, of its callee; and a count to pass."""
        spec = effective_launch_spec(dispatch, self._functions)
        if spec is None:
            return None, ()
        count = spec.core_num.value if isinstance(spec.core_num, ir.ConstInt) else spec.core_num
        if isinstance(count, int):
            return _Launch(count, spec.sync_start), ()
        return _Launch(None, spec.sync_start), (count,)

    def _make(
        self, variant: _Variant, deps: Iterable[ir.Expr] | None, counts: Sequence[ir.Expr]
    ) -> ir.Function:
        function = self._functions[variant.callee]
        untracked = {function.params_[position] for position in variant.untracked}
        if untracked:
            function = function.replace(body=_without_tracking(function.body, untracked))
        if variant.launch is not None:
            function = _launched(function, variant.launch, counts, self._functions)
        if deps is not None:
            self.submitted.add(variant.name)
            function = with_completion(function, [dep.type for dep in deps], self._functions)
        return self.with_plain_calls(function.replace(name=variant.name))


def _launched(
    function: ir.Function,
    launch: _Launch,
    counts: Sequence[ir.Expr],
    functions: Mapping[str, ir.Function],
) -> ir.Function:
    """Launch each dispatch of the function that has no launch specification of its own like `launch`, with a
    parameter for a block count that is passed.
    """
    passed = [ir.Var("core_num", count.type, function.span) for count in counts]
    blocks = passed[0] if launch.block_count is None else launch.block_count

    def dress(expr: ir.Expr) -> ir.Expr:
        if (
            not isinstance(expr, (ir.Call, ir.Submit))
            or not isinstance(expr.op, ir.GlobalVar)
            or effective_launch_spec(expr, functions) is not None
        ):
            return expr
        if isinstance(expr, ir.Submit):
            return expr.replace(core_num=_as_expr(blocks, expr.span), sync_start=launch.sync_start)
        spec = {"core_num": blocks} | ({"sync_start": True} if launch.sync_start else {})
        return expr.replace(attrs={**expr.attrs_, **spec})

    body = map_values(function.body, lambda value: map_expr(value, dress))
    declared = zip(function.params_, function.param_directions_, strict=True)
    params = [*declared, *((var, ir.ParamDirection.In) for var in passed)]
    return function.replace(params=params, body=body)


def _as_expr(count: int | ir.Expr, span: ir.Span) -> ir.Expr:
    return ir.ConstInt(count, ir.DataType.INDEX, span) if isinstance(count, int) else count


def _without_tracking(stmt: ir.Stmt, tensors: set[ir.Var]) -> ir.Stmt:
    """Exclude `tensors` from dependency tracking at each dispatch that takes one of them."""

    def exclude(expr: ir.Expr) -> ir.Expr:
        if not isinstance(expr, (ir.Call, ir.Submit)) or not isinstance(expr.op, ir.GlobalVar):
            return expr
        positions = {at for at, arg in enumerate(expr.args_) if isinstance(arg, ir.Var) and arg in tensors}
        if not positions:
            return expr
        positions.update(expr.attrs_.get("arg_direction_overrides", ()))
        return expr.replace(attrs={**expr.attrs_, "arg_direction_overrides": sorted(positions)})

    return map_values(stmt, lambda value: map_expr(value, exclude))
