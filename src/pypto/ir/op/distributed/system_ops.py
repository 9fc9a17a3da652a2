"""Builders of ``pld.system.*`` calls: topology and signals."""

from __future__ import annotations

from typing import Any

from pypto.core.dtype import DataType
from pypto.core.span import Span
from pypto.ir.expr import Call, Expr
from pypto.ir.op.build import at, call, extents, simple
from pypto.ir.utils import _normalize_expr

world_size, get_comm_ctx = simple("pld.system.world_size"), simple("pld.system.get_comm_ctx")
rank, nranks = simple("pld.system.rank"), simple("pld.system.nranks")


def int32_operand(value: Any, span: Span) -> Expr:
    """A Python int as an INT32 constant; expressions pass."""
    return _normalize_expr(value, span, DataType.INT32)


def notify(target: Expr, peer: Any, offsets: Any, value: Any, span: Span | None = None, *, op: int) -> Call:
    """Set a peer's cell, or add to it."""
    span = at(span)
    args = [target, int32_operand(peer, span), extents(offsets, span), int32_operand(value, span)]
    return call("pld.system.notify", args, span, op=op)


def wait(signal: Expr, offsets: Any, expected: Any, span: Span | None = None, *, cmp: int) -> Call:
    """Block until an own cell equals, or is at least, the expected value."""
    span = at(span)
    return call(
        "pld.system.wait", [signal, extents(offsets, span), int32_operand(expected, span)], span, cmp=cmp
    )


def defer_wait(signal: Expr, offsets: Any, expected: Any, span: Span | None = None, *, cmp: int) -> Call:
    """Complete the enclosing task only once an own cell is at least the expected value."""
    span = at(span)
    args = [signal, extents(offsets, span), int32_operand(expected, span)]
    return call("pld.system.defer_wait", args, span, cmp=cmp)
