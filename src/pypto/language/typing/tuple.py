"""`pl.Tuple`: annotation and wrapper of tuple-typed expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pypto import ir
from pypto.language.typing.handle import ExprHandle


class Tuple(ExprHandle):
    """`Tuple[T, ...]` (or `Tuple[()]`, `Tuple([T, ...])`) describes a type; `Tuple(expr=e)` wraps a value."""

    __slots__ = ("types",)

    def __init__(self, types: Sequence[Any] | None = None, expr: ir.Expr | None = None) -> None:
        if expr is None and types is None:
            raise ValueError("Tuple needs either types or expr")
        self.types = None if types is None else list(types)
        self._expr = expr

    def __class_getitem__(cls, item: Any) -> Any:
        return cls(item if isinstance(item, tuple) else (item,))
