"""Builders of ``array.*`` calls: ``pypto.ir.op.array``."""

from __future__ import annotations

from typing import Any

from pypto.core.dtype import DataType
from pypto.core.span import Span
from pypto.ir.expr import Call, Expr
from pypto.ir.op.build import at, call, constant, expr


def create(extent: Any, dtype: DataType, span: Span | None = None) -> Call:
    """A zero-initialised local array."""
    span = at(span)
    return call("array.create", [constant(extent, span)], span, dtype=dtype)


def get_element(array: Expr, index: Any, span: Span | None = None) -> Call:
    """One element."""
    span = at(span)
    return call("array.get_element", [array, expr(index, span)], span)


def update_element(array: Expr, index: Any, value: Any, span: Span | None = None) -> Call:
    """The array with one element replaced."""
    span = at(span)
    return call("array.update_element", [array, expr(index, span), expr(value, span)], span)
