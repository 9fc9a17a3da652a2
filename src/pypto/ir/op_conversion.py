"""Registered conversions of one operator into others, used where kernels are lowered from tensors to tiles.

The lowering knows how to convert the built-in tensor operators. A library that adds a tensor operator
registers here what it becomes: another operator with the same arguments, or a function that builds the
replacement.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pypto.core.span import Span
from pypto.ir.expr import Expr, Var
from pypto.ir.op_registry import create_op_call, get_op_def
from pypto.ir.stmt import AssignStmt, Stmt

__all__ = [
    "ConversionContext",
    "convert_call",
    "has_op_conversion",
    "op_conversion",
    "register_op_conversion",
    "register_op_conversion_custom",
]

Pairs = list[tuple[str, Any]]
Result = Expr | tuple[list[Stmt], Expr]
CustomConversion = Callable[[list[Expr], Pairs, Span], Result]
ContextConversion = Callable[["ConversionContext", list[Expr], Pairs, Span], Expr]

_CONVERSIONS: dict[str, CustomConversion] = {}

#: tensor operators that a kernel keeps as they are
_KEPT = frozenset({"tensor.alloc", "tensor.dim", "tensor.view"})
_CONVERTED_TRANSFERS = frozenset({"pld.tensor.remote_store", "pld.tensor.put", "pld.tensor.get"})


@dataclass
class ConversionContext:
    """Collects the statements that a conversion puts before its result."""

    span: Span
    stmts: list[Stmt] = field(default_factory=list)

    def let(self, name: str, value: Expr) -> Var:
        """Bind ``value`` to a new variable and return it."""
        var = Var(name, value.type, self.span)
        self.stmts.append(AssignStmt(var, value, self.span))
        return var

    def emit(self, stmt: Stmt) -> None:
        """Append one statement."""
        self.stmts.append(stmt)


def register_op_conversion(from_op: str, to_op: str) -> None:
    """``from_op`` becomes ``to_op`` with the same arguments and keywords."""

    def convert(args: list[Expr], kwargs: Pairs, span: Span) -> Result:
        return create_op_call(to_op, args, dict(kwargs), span)

    _CONVERSIONS[from_op] = convert


def register_op_conversion_custom(from_op: str, func: CustomConversion) -> None:
    """``func(args, kwargs, span)`` returns the replacement, or statements and the replacement."""
    _CONVERSIONS[from_op] = func


def op_conversion(from_op: str) -> Callable[[ContextConversion], ContextConversion]:
    """Decorator: register ``func(ctx, args, kwargs, span)``, which may emit statements through ``ctx``."""

    def decorate(func: ContextConversion) -> ContextConversion:
        def convert(args: list[Expr], kwargs: Pairs, span: Span) -> Result:
            context = ConversionContext(span)
            result = func(context, args, kwargs, span)
            return context.stmts, result

        _CONVERSIONS[from_op] = convert
        return func

    return decorate


def registered_conversions() -> tuple[str, ...]:
    """The operators for which a rule was registered, beside the built-in ones."""
    return tuple(_CONVERSIONS)


def has_op_conversion(name: str) -> bool:
    """Whether kernels are lowered without this operator: it is converted, by a registered rule or a
    built-in one."""
    if name in _CONVERSIONS or name in _CONVERTED_TRANSFERS:
        return True
    definition = get_op_def(name)
    return definition is not None and definition.category == "TensorOp" and name not in _KEPT


def convert_call(name: str, args: list[Expr], kwargs: Pairs, span: Span) -> tuple[list[Stmt], Expr] | None:
    """Apply a registered conversion; None where there is none."""
    convert = _CONVERSIONS.get(name)
    if convert is None:
        return None
    result = convert(args, kwargs, span)
    return result if isinstance(result, tuple) else ([], result)
