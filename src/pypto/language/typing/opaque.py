"""Wrappers of opaque handles: pointers, communication contexts, asynchronous prefetch."""

from __future__ import annotations

from typing import ClassVar

from pypto import ir
from pypto.language.typing.handle import ExprHandle


class OpaqueHandle(ExprHandle):
    """A value that programs pass around and never look into. Without an expression it marks a type."""

    __slots__ = ()

    MISSING_EXPR_ERROR: ClassVar[type[Exception]] = RuntimeError

    def __init__(self, expr: ir.Expr | None = None) -> None:
        self._expr = expr


class Ptr(OpaqueHandle):
    """The base address of an allocation."""

    __slots__ = ()


class CommCtx(OpaqueHandle):
    """A communication context of a distributed tensor."""

    __slots__ = ()


class PrefetchAsyncContext(OpaqueHandle):
    """The context in which prefetches are issued."""

    __slots__ = ()


class AsyncEvent(OpaqueHandle):
    """One issued prefetch."""

    __slots__ = ()


class AsyncSession(OpaqueHandle):
    """The session that waits for prefetches of a context."""

    __slots__ = ()
