"""`pl.Scalar`: annotation and wrapper of scalar-typed expressions, with Python's arithmetic operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Union

from pypto import ir
from pypto.language.typing.handle import ExprHandle


class Scalar(ExprHandle):
    """`Scalar[dtype]` or `Scalar(dtype)` describe a type; `Scalar(expr=e)` wraps a value."""

    __slots__ = ("_dtype",)

    MISSING_EXPR_ERROR: ClassVar[type[Exception]] = RuntimeError

    def __init__(self, dtype: ir.DataType | None = None, expr: ir.Expr | None = None) -> None:
        if expr is None and dtype is None:
            raise ValueError("Scalar needs either dtype or expr")
        self._dtype = dtype
        self._expr = expr

    def __class_getitem__(cls, item: Any) -> Any:
        if isinstance(item, tuple):
            raise TypeError("Scalar subscript requires exactly one dtype")
        return Scalar(item)

    @property
    def dtype(self) -> Any:
        """The annotated dtype, or that of the wrapped expression."""
        return self._dtype if self._expr is None else self._value_type().dtype

    def __bool__(self) -> bool:
        raise TypeError(
            "A Scalar has no truth value outside a parsed body: its value is known only when the program runs"
        )

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        if self._expr is not None:
            return f"{type(self).__name__}(expr={self._expr})"
        return f"{type(self).__name__}[{self._dtype}]"


IntLike = Union[int, Scalar, "ir.Expr"]


def _operand(value: object) -> Any:
    """The IR operand for `value`, or NotImplemented when it is of an unrelated type."""
    if isinstance(value, Scalar):
        return value.unwrap()
    if isinstance(value, (int, float, ir.Expr)):
        return value
    return NotImplemented


def _binary(method: str) -> Callable[[Scalar, object], Any]:
    build = getattr(ir.Expr, method)

    def operator(self: Scalar, other: object) -> Any:
        operand = _operand(other)
        if operand is NotImplemented:
            return NotImplemented
        return Scalar(expr=build(self.unwrap(), operand))

    operator.__name__ = method
    return operator


def _is_annotation(value: object) -> bool:
    return type(value) is Scalar and not value.has_expr()


def _equality(method: str, *, holds: bool) -> Callable[[Scalar, object], Any]:
    """`==` or `!=`: of two annotations whether they describe one type, of values an expression."""
    of_values = _binary(method)

    def operator(self: Scalar, other: object) -> Any:
        if _is_annotation(self) and _is_annotation(other):
            return (self.dtype == other.dtype) is holds  # type: ignore[attr-defined]
        return of_values(self, other)

    operator.__name__ = method
    return operator


def _install_operators() -> None:
    """Give Scalar the operators of IR expressions, result types included."""
    arithmetic = ("add", "sub", "mul", "truediv", "floordiv", "mod", "lshift", "rshift")
    for name in arithmetic:
        setattr(Scalar, f"__{name}__", _binary(f"__{name}__"))
        setattr(Scalar, f"__r{name}__", _binary(f"__r{name}__"))
    for name in ("lt", "le", "gt", "ge"):
        setattr(Scalar, f"__{name}__", _binary(f"__{name}__"))
    for name, holds in (("eq", True), ("ne", False)):
        setattr(Scalar, f"__{name}__", _equality(f"__{name}__", holds=holds))


_install_operators()
