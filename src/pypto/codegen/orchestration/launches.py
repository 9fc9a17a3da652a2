"""What a dispatch launches: a kernel, or a pair that shares a cluster, reached directly or through wrappers.

A wrapper (Spmd or Group function) forwards its parameters. `Launch` says in which order the kernel wants
them: each entry of a payload is the position of the outer argument, or a scalar that the wrapper's body
computes, as an expression over the wrapper's parameters.

The lanes of a cluster share one argument list. A group whose kernels take different arguments, or that
dispatches several kernels of one kind, describes successive steps of one computation; its kernels become
tasks that follow one another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pypto.codegen.orchestration.scalar_results import Scalars, with_arguments
from pypto.core.errors import InternalError, UsageError, located
from pypto.ir.enums import ArgDirection, FunctionType
from pypto.ir.expr import Call, Expr, GlobalVar, Submit, TupleGetItemExpr, Var
from pypto.ir.program import Function, Program
from pypto.ir.return_lineage import argument_of_param, explicit_returned_params
from pypto.ir.stmt import AssignStmt
from pypto.ir.structural import structural_equal
from pypto.ir.walk import walk, walk_stmts

__all__ = ["Launch", "Launches"]

_KERNELS = (FunctionType.AIC, FunctionType.AIV)
_EXCHANGES = ("tile.tpush_to_", "tile.tpop_from_")

Payload = tuple["int | Expr", ...]


@dataclass(frozen=True, slots=True)
class Launch:
    """One task: `aic` and `aiv` are the kernels of its lanes, at least one is set."""

    comment: str
    aic: Function | None
    aiv: Function | None
    payload: Payload | None  # None: the caller's arguments as they are
    launched: Function  # whose legacy attributes may carry a launch specification
    dumped: frozenset[int] = frozenset()  # outer argument positions that a wrapper's body marks for dumping
    directions: tuple[ArgDirection, ...] = ()  # of a step: how the inner dispatch uses its arguments

    @property
    def is_wrapped(self) -> bool:
        return self.payload is not None

    @property
    def is_dual(self) -> bool:
        """Whether the vector kernel runs on both vector lanes."""
        return self.aiv is not None and self.aiv.attrs_.get("dual_aiv_dispatch") is True

    @property
    def kernel(self) -> Function:
        """The kernel whose parameters the payload follows."""
        kernel = self.aic if self.aic is not None else self.aiv
        assert kernel is not None
        return kernel


class Launches:
    """Resolves callees of one program; each is analysed once."""

    def __init__(self, program: Program) -> None:
        self.scalars = Scalars(program)
        self._program = program
        self._known: dict[str, tuple[Launch, ...]] = {}

    def of(self, callee: Function) -> tuple[Launch, ...]:
        """The tasks that a dispatch of `callee` submits, in order; almost always one.

        Raises `ValueError` or `InternalError` for callees that cannot be dispatched.
        """
        found = self._known.get(callee.name)
        if found is None:
            found = self._known[callee.name] = self._resolve(callee)
        return found

    def _resolve(self, callee: Function) -> tuple[Launch, ...]:
        kind = callee.func_type
        if kind is FunctionType.AIC:
            return (Launch(callee.name, callee, None, None, callee),)
        if kind is FunctionType.AIV:
            return (Launch(callee.name, None, callee, None, callee),)
        if kind is FunctionType.Group:
            return self._group(callee)
        if kind is FunctionType.Spmd:
            return self._spmd(callee)
        if kind is FunctionType.Graph:
            raise ValueError(f"the graph function '{callee.name}' cannot be compiled yet")
        if kind is FunctionType.InCore:
            raise InternalError(f"'{callee.name}' is still an InCore function: ExpandMixedKernel did not run")
        raise UsageError(
            f"'{callee.name}' of type {kind.name} cannot be dispatched as a task; an orchestration calls "
            "kernels (InCore, AIC, AIV), groups and spmd functions. For a part of the orchestration itself "
            "use type=pl.FunctionType.Inline"
        )

    def _dispatches(self, wrapper: Function) -> list[tuple[Call | Submit, Function]]:
        """The dispatches in a wrapper's body, in order."""
        found: list[tuple[Call | Submit, Function]] = []
        for node in walk(wrapper.body, once=True):
            if isinstance(node, Call | Submit) and isinstance(node.op, GlobalVar):
                target = self._program.functions_.get(node.op.name)
                if target is None:
                    raise InternalError(
                        f"'{wrapper.name}' calls '{node.op.name}', which is not in the program"
                    )
                if len(node.args_) != len(target.params_):
                    counts = f"{len(node.args_)} arguments for {len(target.params_)} parameters"
                    raise InternalError(
                        located(f"'{wrapper.name}' dispatches '{target.name}' with {counts}", node.span)
                    )
                found.append((node, target))
        return found

    def _spmd(self, wrapper: Function) -> tuple[Launch, ...]:
        dispatches = self._dispatches(wrapper)
        if len(dispatches) != 1:
            raise UsageError(
                located(
                    f"the spmd function '{wrapper.name}' has {len(dispatches)} dispatches instead of one; "
                    "give each kernel a pl.spmd() of its own",
                    wrapper.span,
                )
            )
        call, target = dispatches[0]
        mapping = _forwarded(wrapper, call, _aliases(wrapper, self._program), self.scalars)
        dumped = _dumped_positions(wrapper, call)
        if target.func_type is FunctionType.Group:
            return tuple(_through(wrapper, mapping, dumped, inner) for inner in self.of(target))
        (kernel,) = self.of(target)
        if kernel.is_wrapped:
            raise UsageError(
                located(
                    f"the spmd function '{wrapper.name}' wraps another spmd function '{target.name}'; take "
                    "one pl.spmd() out of the other, with the product of their block counts",
                    call.span,
                )
            )
        comment = f"Spmd {wrapper.name}: {target.name}"
        return (Launch(comment, kernel.aic, kernel.aiv, mapping, wrapper, dumped),)

    def _group(self, wrapper: Function) -> tuple[Launch, ...]:
        dispatches = self._dispatches(wrapper)
        for call, target in dispatches:
            _check_member(wrapper, call, target)
        if not any(target.func_type is FunctionType.AIV for _, target in dispatches):
            raise UsageError(
                f"the group '{wrapper.name}' has no AIV kernel; take its cube kernel out of the cluster"
            )
        aliases = _aliases(wrapper, self._program)
        payloads = [_forwarded(wrapper, call, aliases, self.scalars) for call, _ in dispatches]
        by_kind = {target.func_type: target for _, target in dispatches}
        if len(by_kind) == len(dispatches) and all(_same_payload(payloads[0], p) for p in payloads):
            aic, aiv = by_kind.get(FunctionType.AIC), by_kind[FunctionType.AIV]
            lanes = "AIV-only SPMD" if aic is None else "MixedKernels (AIC + AIV lanes)"
            dumped = frozenset[int]().union(*(_dumped_positions(wrapper, call) for call, _ in dispatches))
            return (Launch(f"Group {wrapper.name}: {lanes}", aic, aiv, payloads[0], wrapper, dumped),)
        _check_alone(wrapper, [target for _, target in dispatches])
        return tuple(
            _step(wrapper, call, target, payload)
            for (call, target), payload in zip(dispatches, payloads, strict=True)
        )


def _check_member(wrapper: Function, call: Call | Submit, target: Function) -> None:
    if isinstance(call, Submit):
        raise ValueError(
            located(
                f"the group '{wrapper.name}' submits '{target.name}': deps, task ids and other submit "
                "options cannot be used inside a group",
                call.span,
            )
        )
    if target.func_type not in _KERNELS:
        raise UsageError(
            located(
                f"the group '{wrapper.name}' dispatches '{target.name}' of type {target.func_type.name}; a "
                "group holds kernels (InCore, AIC, AIV)",
                call.span,
            )
        )


def _check_alone(wrapper: Function, kernels: Sequence[Function]) -> None:
    """Kernels that run one after the other have nobody to exchange tiles with."""
    for kernel in kernels:
        for node in walk(kernel.body, once=True):
            if isinstance(node, Call) and node.op.name.startswith(_EXCHANGES):
                names = ", ".join(each.name for each in kernels)
                raise UsageError(
                    located(
                        f"the kernels of group '{wrapper.name}' ({names}) exchange tiles, so they must be "
                        "the lanes of one task: one AIC and one AIV kernel with the same arguments in the "
                        "same order; give both all parameters",
                        node.span,
                    )
                )


def _step(wrapper: Function, call: Call | Submit, kernel: Function, payload: Payload) -> Launch:
    """One of several successive tasks of a group."""
    is_cube = kernel.func_type is FunctionType.AIC
    return Launch(
        f"Group {wrapper.name}: {kernel.name}",
        kernel if is_cube else None,
        None if is_cube else kernel,
        payload,
        wrapper,
        _dumped_positions(wrapper, call),
        call.attrs_.get("arg_directions", ()),
    )


def _through(wrapper: Function, mapping: Payload, dumped: frozenset[int], inner: Launch) -> Launch:
    """A task of an inner group as a dispatch of `wrapper` submits it."""
    assert inner.payload is not None
    given = {
        param: wrapper.params_[entry] if isinstance(entry, int) else entry
        for param, entry in zip(inner.launched.params_, mapping, strict=True)
    }
    payload = tuple(
        mapping[entry] if isinstance(entry, int) else with_arguments(entry, given) for entry in inner.payload
    )
    marked = {p for position in inner.dumped if isinstance(p := mapping[position], int)}
    return replace(inner, payload=payload, launched=wrapper, dumped=dumped | marked)


def _aliases(wrapper: Function, program: Program) -> dict[int, int]:
    """For each variable of a wrapper that is one of its parameters, the position of that; by variable id."""
    positions = {id(param): index for index, param in enumerate(wrapper.params_)}
    tuples: dict[int, list[int | None]] = {}
    for stmt in walk_stmts(wrapper.body):
        if not isinstance(stmt, AssignStmt):
            continue
        value = stmt.value
        found: int | None = None
        if isinstance(value, Var):
            found = positions.get(id(value))
        elif isinstance(value, TupleGetItemExpr):
            elements = tuples.get(id(value.tuple), [])
            found = elements[value.index] if value.index < len(elements) else None
        elif isinstance(value, Call | Submit) and value.op.name in program.functions_:
            results = _written_back(value, program.functions_[value.op.name], positions)
            tuples[id(stmt.var)] = results
            found = results[0] if len(results) == 1 else None
        if found is not None:
            positions[id(stmt.var)] = found
    return positions


def _written_back(call: Call | Submit, callee: Function, positions: dict[int, int]) -> list[int | None]:
    """For each result of a dispatch the wrapper parameter that it is."""
    results: list[int | None] = []
    for param in explicit_returned_params(callee):
        arg = argument_of_param(call, callee, param) if param is not None else None
        results.append(positions.get(id(arg)) if arg is not None else None)
    return results


def _forwarded(
    wrapper: Function, call: Call | Submit, positions: dict[int, int], scalars: Scalars
) -> Payload:
    """For each argument of the inner dispatch the wrapper parameter that it is, or the scalar computed."""
    entries: list[int | Expr] = []
    for arg in call.args_:
        position = positions.get(id(arg))
        scalar = arg if position is not None else scalars.over_params(wrapper, arg)
        if scalar is None:
            name = arg.name_hint if isinstance(arg, Var) else type(arg).__name__
            raise UsageError(
                located(
                    f"'{wrapper.name}' passes '{name}' to '{call.op.name}', which is neither one of its "
                    "parameters nor a literal nor computed from these; write loops and branches around the "
                    "pl.cluster() or pl.spmd(), not inside",
                    call.span,
                )
            )
        entries.append(scalar if position is None else position)
    return tuple(entries)


def _dumped_positions(wrapper: Function, call: Call | Submit) -> frozenset[int]:
    marked = {id(var) for var in call.attrs_.get("dump_vars", ())}
    return frozenset(index for index, param in enumerate(wrapper.params_) if id(param) in marked)


def _same_payload(left: Payload, right: Payload) -> bool:
    return len(left) == len(right) and all(
        a == b if isinstance(a, int) or isinstance(b, int) else structural_equal(a, b)
        for a, b in zip(left, right, strict=True)
    )
