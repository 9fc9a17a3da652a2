"""Operators that all ranks execute together on their windows."""

from __future__ import annotations

from collections.abc import Callable

from pypto import ir
from pypto.codegen.kernel.operators.context import OpContext

__all__ = ["COLLECTIVES"]

_HEADER = "pypto_collectives.h"
_FOLDS = {
    ir.ReduceOp.Sum: "SUM",
    ir.ReduceOp.Max: "MAX",
    ir.ReduceOp.Min: "MIN",
    ir.ReduceOp.Prod: "PROD",
}
Communication = Callable[[OpContext, int], str]


def _window(context: OpContext, comm: Communication, index: int) -> str:
    """A window operand, with the communication context in front."""
    return f"{comm(context, index)}, {context.name(index)}"


def _finish(context: OpContext, function: str, arguments: list[str]) -> None:
    context.emitter.headers.add(_HEADER)
    everything = ", ".join(["kernel", *arguments, context.detail])
    context.emitter.line(f"pypto::{function}({everything});")
    if context.result is not None:
        target = context.definition.reuses
        assert target is not None
        context.emitter.bind(context.result, context.name(target))


def _allreduce(context: OpContext, comm: Communication) -> None:
    if len(context.args) < 2:
        raise ValueError("an allreduce inside a kernel needs a signal")
    how = _FOLDS[ir.ReduceOp(int(context.keyword("op", 0)))]
    windows = [_window(context, comm, index) for index in (0, 1)]
    _finish(context, f"allreduce<pypto::Fold::{how}>", windows)


def _reduce_scatter(context: OpContext, comm: Communication) -> None:
    _finish(context, "reduce_scatter", [_window(context, comm, index) for index in (0, 1)])


def _broadcast(context: OpContext, comm: Communication) -> None:
    windows = [_window(context, comm, index) for index in (0, 1)]
    _finish(context, "broadcast", [*windows, str(int(context.keyword("root")))])


def _allgather(context: OpContext, comm: Communication) -> None:
    windows = [_window(context, comm, index) for index in (1, 2)]
    _finish(context, "allgather", [context.name(0), *windows])


def _all_to_all(context: OpContext, comm: Communication) -> None:
    windows = [_window(context, comm, index) for index in (1, 2)]
    _finish(context, "all_to_all", [context.name(0), *windows])


def _all_to_all_v(context: OpContext, comm: Communication) -> None:
    windows = [_window(context, comm, index) for index in (1, 2)]
    counts = [context.name(3), _window(context, comm, 4)]
    _finish(context, "all_to_all_v", [context.name(0), *windows, *counts])


COLLECTIVES: dict[str, Callable[[OpContext, Communication], None]] = {
    "allreduce": _allreduce,
    "reduce_scatter": _reduce_scatter,
    "broadcast": _broadcast,
    "allgather": _allgather,
    "all_to_all": _all_to_all,
    "all_to_all_v": _all_to_all_v,
}
