"""Symbolic dimensions (`pl.dynamic`) and the marker `pl.RUNTIME`."""

from __future__ import annotations

from typing import Any, NoReturn

from pypto import ir
from pypto.language.typing.scalar import Scalar


class DynVar(Scalar):
    """A named dimension that is known only when the program runs.

    The IR variable is made on first use and kept, so every function that mentions the same object shares it.
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or not name.isidentifier():
            raise ValueError(f"The name of a dynamic dimension must be a valid identifier, got {name!r}")
        super().__init__(ir.DataType.INDEX)
        self._name = name

    @property
    def name(self) -> str:
        """The symbol's name."""
        return self._name

    @property
    def dtype(self) -> Any:
        """Always INDEX."""
        return ir.DataType.INDEX

    def unwrap(self) -> ir.Expr:
        """The symbol's IR variable."""
        if self._expr is None:
            self._expr = ir.Var(self._name, ir.ScalarType(ir.DataType.INDEX), ir.Span.unknown())
        return self._expr

    def bind(self, var: ir.Var) -> None:
        """Let this object stand for `var`; only an object without a variable of its own can be bound."""
        if self._expr is not None:
            raise ValueError(f"Dynamic dimension '{self._name}' already has a variable")
        self._expr = var

    def __repr__(self) -> str:
        return f"DynVar({self._name!r})"


def dynamic(name: str) -> DynVar:
    """A new symbolic dimension called `name`."""
    return DynVar(name)


class _RuntimeMarker(Scalar):
    """Marks a scalar of a JIT signature as bound at run time."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(ir.DataType.INDEX)

    def unwrap(self) -> NoReturn:
        raise RuntimeError("pl.RUNTIME marks a signature slot and has no IR expression")

    def __repr__(self) -> str:
        return "pl.RUNTIME"


RUNTIME = _RuntimeMarker()
