"""What a dispatch launches: one kernel, or a pair that shares a cluster, reached directly or through
wrappers.

A wrapper (Spmd or Group function) forwards its parameters. `Launch` says in which order the kernel wants
them: each entry of `payload` is the position of the outer argument, or a literal that stands in the
wrapper's body.
"""

from __future__ import annotations

from dataclasses import dataclass

from pypto.core.errors import InternalError, located
from pypto.ir.enums import FunctionType
from pypto.ir.expr import Call, ConstBool, ConstFloat, ConstInt, Expr, GlobalVar, Submit, Var
from pypto.ir.program import Function, Program
from pypto.ir.structural import structural_equal
from pypto.ir.walk import walk

__all__ = ["Launch", "Launches"]

_CONSTANTS = (ConstInt, ConstFloat, ConstBool)


@dataclass(frozen=True, slots=True)
class Launch:
    """`aic` and `aiv` are the kernels of the lanes; at least one is set."""

    comment: str
    aic: Function | None
    aiv: Function | None
    payload: tuple[int | Expr, ...] | None  # None: the caller's arguments as they are
    launched: Function  # whose legacy attributes may carry a launch specification
    dumped: frozenset[int] = frozenset()  # outer argument positions that a wrapper's body marks for dumping
    inner: Call | Submit | None = None  # a wrapper's dispatch, which may carry launch attributes of its own

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
        self._program = program
        self._known: dict[str, Launch] = {}

    def of(self, callee: Function) -> Launch:
        """What a dispatch of `callee` launches. Raises for callees that cannot be dispatched."""
        found = self._known.get(callee.name)
        if found is None:
            found = self._known[callee.name] = self._resolve(callee)
        return found

    def _resolve(self, callee: Function) -> Launch:
        kind = callee.func_type
        if kind is FunctionType.AIC:
            return Launch(callee.name, callee, None, None, callee)
        if kind is FunctionType.AIV:
            return Launch(callee.name, None, callee, None, callee)
        if kind is FunctionType.Group:
            return self._group(callee)
        if kind is FunctionType.Spmd:
            return self._spmd(callee)
        if kind is FunctionType.Graph:
            raise ValueError(f"the graph function '{callee.name}' cannot be compiled yet")
        if kind is FunctionType.InCore:
            raise InternalError(f"'{callee.name}' is still an InCore function: ExpandMixedKernel did not run")
        raise InternalError(f"'{callee.name}' of type {kind.name} cannot be dispatched as a task")

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
                found.append((node, target))
        return found

    def _spmd(self, wrapper: Function) -> Launch:
        dispatches = self._dispatches(wrapper)
        if len(dispatches) != 1:
            raise InternalError(
                f"the spmd function '{wrapper.name}' has {len(dispatches)} dispatches instead of one"
            )
        call, target = dispatches[0]
        mapping = _forwarded(wrapper, call)
        dumped = _dumped_positions(wrapper, call)
        if target.func_type is FunctionType.Group:
            inner = self.of(target)
            assert inner.payload is not None
            payload = tuple(mapping[entry] if isinstance(entry, int) else entry for entry in inner.payload)
            dumped |= {p for entry in inner.dumped if isinstance(p := mapping[entry], int)}
            return Launch(inner.comment, inner.aic, inner.aiv, payload, wrapper, dumped, call)
        kernel = self.of(target)
        if kernel.is_wrapped:
            raise InternalError(
                f"the spmd function '{wrapper.name}' wraps another spmd function '{target.name}'"
            )
        comment = f"Spmd {wrapper.name}: {target.name}"
        return Launch(comment, kernel.aic, kernel.aiv, mapping, wrapper, dumped, call)

    def _group(self, wrapper: Function) -> Launch:
        lanes: dict[FunctionType, tuple[Call | Submit, Function]] = {}
        for call, target in self._dispatches(wrapper):
            if isinstance(call, Submit):
                raise ValueError(
                    located(
                        f"the group '{wrapper.name}' submits '{target.name}': deps, task ids and other "
                        "submit options "
                        "cannot be used inside a group",
                        call.span,
                    )
                )
            if target.func_type not in (FunctionType.AIC, FunctionType.AIV):
                raise InternalError(
                    f"the group '{wrapper.name}' dispatches '{target.name}' of type {target.func_type.name}"
                )
            if target.func_type in lanes and lanes[target.func_type][1] is not target:
                raise ValueError(
                    located(
                        f"the group '{wrapper.name}' dispatches two {target.func_type.name} kernels, "
                        f"'{lanes[target.func_type][1].name}' and '{target.name}'; a cluster holds at most "
                        "one cube and "
                        "one vector kernel",
                        call.span,
                    )
                )
            lanes.setdefault(target.func_type, (call, target))
        if FunctionType.AIV not in lanes:
            raise InternalError(f"the group '{wrapper.name}' has no AIV kernel")
        call, aiv = lanes[FunctionType.AIV]
        payload = _forwarded(wrapper, call)
        dumped = _dumped_positions(wrapper, call)
        if FunctionType.AIC not in lanes:
            return Launch(f"Group {wrapper.name}: AIV-only SPMD", None, aiv, payload, wrapper, dumped, call)
        cube_call, aic = lanes[FunctionType.AIC]
        if not _same_payload(_forwarded(wrapper, cube_call), payload):
            raise ValueError(
                located(
                    f"the group '{wrapper.name}' passes different arguments to '{aic.name}' and "
                    f"'{aiv.name}'; the lanes "
                    "of a cluster share one argument list",
                    call.span,
                )
            )
        dumped |= _dumped_positions(wrapper, cube_call)
        comment = f"Group {wrapper.name}: MixedKernels (AIC + AIV lanes)"
        return Launch(comment, aic, aiv, payload, wrapper, dumped, cube_call)


def _forwarded(wrapper: Function, call: Call | Submit) -> tuple[int | Expr, ...]:
    """For each argument of the inner dispatch the wrapper parameter that it is, or the literal."""
    positions = {id(param): index for index, param in enumerate(wrapper.params_)}
    entries: list[int | Expr] = []
    for arg in call.args_:
        position = positions.get(id(arg))
        if position is not None:
            entries.append(position)
        elif isinstance(arg, _CONSTANTS):
            entries.append(arg)
        else:
            name = arg.name_hint if isinstance(arg, Var) else type(arg).__name__
            raise InternalError(
                located(
                    f"'{wrapper.name}' passes '{name}' to '{call.op.name}', which is neither one of its "
                    "parameters nor "
                    "a literal",
                    call.span,
                )
            )
    return tuple(entries)


def _dumped_positions(wrapper: Function, call: Call | Submit) -> frozenset[int]:
    marked = {id(var) for var in call.attrs_.get("dump_vars", ())}
    return frozenset(index for index, param in enumerate(wrapper.params_) if id(param) in marked)


def _same_payload(left: tuple[int | Expr, ...], right: tuple[int | Expr, ...]) -> bool:
    return len(left) == len(right) and all(
        a == b if isinstance(a, int) or isinstance(b, int) else structural_equal(a, b)
        for a, b in zip(left, right, strict=True)
    )
