"""`pl.Array`: annotation and wrapper of small on-core arrays."""

from __future__ import annotations

from typing import Any

from pypto import ir
from pypto.language.typing.handle import ExprHandle


class Array(ExprHandle):
    """`Array[extent, dtype]` describes a type; `Array(expr=e)` wraps a value."""

    __slots__ = ("_dtype", "_extent")

    def __init__(
        self, extent: int | None = None, dtype: ir.DataType | None = None, expr: ir.Expr | None = None
    ) -> None:
        if expr is None and (extent is None or dtype is None):
            raise ValueError("Array needs either extent and dtype, or expr")
        self._expr = expr
        self._extent = extent
        self._dtype = dtype

    def __class_getitem__(cls, item: object) -> Any:
        if not isinstance(item, tuple) or len(item) != 2:
            raise TypeError("Array subscript requires [extent, dtype]")
        return cls(item[0], item[1])

    @property
    def extent(self) -> Any:
        """The annotated element count, or that of the wrapped expression's type."""
        return self._extent if self._expr is None else self._value_type().extent

    @property
    def dtype(self) -> Any:
        """The annotated element dtype, or that of the wrapped expression's type."""
        return self._dtype if self._expr is None else self._value_type().dtype
