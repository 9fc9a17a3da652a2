"""Building dispatches with explicit argument directions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pypto.core.span import UNKNOWN_SPAN, Span
from pypto.ir.enums import ArgDirection
from pypto.ir.expr import Call, Expr, Op
from pypto.ir.types import Type, UnknownType

input = ArgDirection.Input
output = ArgDirection.Output
output_existing = ArgDirection.OutputExisting
inout = ArgDirection.InOut
no_dep = ArgDirection.NoDep
scalar = ArgDirection.Scalar
scalar_dir = ArgDirection.Scalar


def make_call(
    op: Op,
    args: Sequence[Expr],
    *,
    directions: Sequence[ArgDirection] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    type: Type | None = None,
    span: Span | None = None,
) -> Call:
    """A call whose `arg_directions` are given. Raises `ValueError` unless there is one direction per
    argument."""
    attrs: dict[str, Any] = {}
    if directions is not None:
        if len(directions) != len(args):
            raise ValueError(f"directions length ({len(directions)}) must match args length ({len(args)})")
        attrs["arg_directions"] = list(directions)
    result = UnknownType.get() if type is None else type
    return Call(op, args, dict(kwargs or {}), attrs, result, UNKNOWN_SPAN if span is None else span)
