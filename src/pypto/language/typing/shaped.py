"""What Tensor and Tile have in common: a shape, a dtype, and no subscripting outside a parsed body."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pypto import ir
from pypto.language.typing.handle import ExprHandle


class ShapedHandle(ExprHandle):
    """A wrapper whose value has a shape and an element dtype."""

    __slots__ = ("_dtype", "_shape")

    def _describe(self, shape: Sequence[Any] | None, dtype: ir.DataType | None, expr: ir.Expr | None) -> None:
        if expr is None and (shape is None or dtype is None):
            raise ValueError(f"{type(self).__name__} needs either shape and dtype, or expr")
        self._expr = expr
        self._shape = shape
        self._dtype = dtype

    @property
    def shape(self) -> Any:
        """The annotated dimensions, or those of the wrapped expression's type."""
        return self._shape if self._expr is None else self._value_type().shape

    @property
    def dtype(self) -> Any:
        """The annotated element dtype, or that of the wrapped expression's type."""
        return self._dtype if self._expr is None else self._value_type().dtype

    def __getitem__(self, index: object) -> Any:
        raise NotImplementedError(
            f"{type(self).__name__} subscripts are DSL syntax: use them inside a @pl.function body, "
            "where they are parsed and not executed"
        )

    def __repr__(self) -> str:
        name = type(self).__name__
        if self._expr is not None:
            return f"{name}(expr={self._expr})"
        return f"{name}[{list(self._shape or ())}, {self._dtype}]"


def split_annotation(name: str, item: object, extras: int) -> tuple[Any, ...]:
    """Check the bracket content of `Name[shape, dtype, *extras]` and return it as a tuple."""
    if not isinstance(item, tuple) or not 2 <= len(item) <= 2 + extras:
        raise TypeError(f"{name} subscript requires [shape, dtype] with at most {extras} further elements")
    return item
