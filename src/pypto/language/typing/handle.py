"""The base of the wrappers through which DSL operators see IR expressions.

A wrapper is either a *value* (it holds an IR expression) or *annotation-only* (it holds what the user wrote
between brackets). Operators take and return wrappers; `unwrap` gives the expression back.
"""

from __future__ import annotations

from typing import Any, ClassVar

from pypto import ir


class ExprHandle:
    """Holds at most one IR expression."""

    __slots__ = ("_expr",)

    MISSING_EXPR_ERROR: ClassVar[type[Exception]] = ValueError

    _expr: ir.Expr | None

    def unwrap(self) -> ir.Expr:
        """Return the wrapped IR expression.

        Raises:
            ValueError or RuntimeError: the object is annotation-only (the class depends on the wrapper).
        """
        expr = self._expr
        if expr is None:
            raise self.MISSING_EXPR_ERROR(
                f"Cannot unwrap an annotation-only {type(self).__name__}: it describes a type, not a value"
            )
        return expr

    def _value_type(self) -> Any:
        return self.unwrap().type

    def has_expr(self) -> bool:
        """Whether this object wraps an expression."""
        return self._expr is not None
