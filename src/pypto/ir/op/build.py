"""Making builder functions from declarations.

A builder has one parameter per operand, named as declared, and ``span`` last. Operators with keyword
attributes, or with arguments that are no expressions, have hand-written builders next to these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

from pypto.core.dtype import DataType
from pypto.core.span import Span
from pypto.ir.expr import Call, ConstFloat, ConstInt, Expr, MakeTuple
from pypto.ir.op_registry import OpDef, create_call, get_op_def
from pypto.ir.utils import _get_span_or_capture as at
from pypto.ir.utils import (
    _normalize_const_to_dtype,
    _normalize_expr,
    _normalize_scalar_operand,
    _to_make_tuple,
)

__all__ = [
    "at",
    "call",
    "constant",
    "expr",
    "extents",
    "public_name",
    "scalar_for",
    "simple",
    "typed_constant",
    "with_integer",
    "with_scalar",
]

Builder = Callable[..., Call]

_KEYWORDS = frozenset({"and", "or", "not"})

expr = _normalize_expr
#: the scalar of an arithmetic operator: elements without literals of their own (BOOL) meet an int as FP32
scalar_for = partial(_normalize_scalar_operand, fallback_int_dtype=DataType.FP32)
typed_constant = _normalize_const_to_dtype


def definition_of(name: str) -> OpDef:
    """The declaration of an operator that certainly exists."""
    found = get_op_def(name)
    if found is None:
        raise LookupError(f"no declaration of {name}")
    return found


def call(name: str, args: Sequence[Expr], span: Span, /, **kwargs: Any) -> Call:
    """A call of a registered operator."""
    return create_call(definition_of(name), args, kwargs, span)


def extents(value: Any, span: Span) -> MakeTuple:
    """A tuple of extents from ints and expressions, or an existing tuple."""
    return _to_make_tuple(value, span)


def constant(value: Any, span: Span, dtype: DataType = DataType.INDEX) -> Expr:
    """An integer constant; an expression passes."""
    return value if isinstance(value, Expr) else ConstInt(value, dtype, span)


def literal_of(value: Any) -> int | float | None:
    """The number of a Python literal or an IR constant, else None."""
    if isinstance(value, (ConstInt, ConstFloat)):
        return value.value
    return value if isinstance(value, (int, float)) else None


def public_name(op_name: str) -> str:
    """Leaf of an operator name as Python can spell it."""
    leaf = op_name.rpartition(".")[2]
    return leaf + "_" if leaf in _KEYWORDS else leaf


def simple(op_name: str) -> Builder:
    """The builder of an operator without attributes: every operand is an expression."""
    definition = definition_of(op_name)
    required = tuple(p.name for p in definition.params if not p.optional)
    optional = tuple(p.name for p in definition.params if p.optional)
    return _named(_simple_factory(required, optional)(definition, create_call, at), op_name)


def with_scalar(op_name: str, normalised: Callable[..., Expr] = scalar_for) -> Builder:
    """The builder of an operator whose second operand is a scalar, normalised against the first."""
    definition = definition_of(op_name)
    names = tuple(p.name for p in definition.params)
    return _named(_scalar_factory(names)(definition, create_call, at, normalised), op_name)


def with_integer(op_name: str) -> Builder:
    """As :func:`with_scalar` for an operator on bits, where an int stays one."""
    return with_scalar(op_name, _normalize_scalar_operand)


def _named(build: Builder, op_name: str) -> Builder:
    build.__name__ = build.__qualname__ = public_name(op_name)
    build.__doc__ = f"A call of ``{op_name}``."
    return build


@cache
def _simple_factory(required: tuple[str, ...], optional: tuple[str, ...]) -> Callable[..., Builder]:
    parameters = ", ".join([*required, *(f"{name}=None" for name in optional), "span=None"])
    lines = [f"    def build({parameters}):", f"        args = ({''.join(f'{name}, ' for name in required)})"]
    lines += [f"        if {name} is not None: args += ({name},)" for name in optional]
    lines += ["        return create_call(definition, args, {}, at(span))", "    return build"]
    return _compile("def factory(definition, create_call, at):\n" + "\n".join(lines))


@cache
def _scalar_factory(names: tuple[str, ...]) -> Callable[..., Builder]:
    first, second, *rest = names
    others = "".join(f", {name}" for name in rest)
    return _compile(
        "def factory(definition, create_call, at, scalar_for):\n"
        f"    def build({first}, {second}{others}, span=None):\n"
        "        span = at(span)\n"
        f"        args = ({first}, scalar_for({first}, {second}, span){others})\n"
        "        return create_call(definition, args, {}, span)\n"
        "    return build"
    )


def _compile(source: str) -> Callable[..., Builder]:
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    factory: Callable[..., Builder] = namespace["factory"]
    return factory
