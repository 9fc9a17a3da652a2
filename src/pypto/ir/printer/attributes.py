"""Text of attribute and keyword values, and of the `attrs={...}` part of a call.

An attribute is never dropped: a value without a spelling is an `InternalError` that names the key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pypto.core.dtype import DataType
from pypto.core.errors import InternalError
from pypto.ir.attrs import EXPR_FROM_INT_KEYS
from pypto.ir.enums import ArgDirection, AtomicType, MemorySpace, PadValue, PipeType, TensorLayout, TileLayout
from pypto.ir.expr import ConstBool, ConstFloat, ConstInt, Expr, Var
from pypto.ir.printer.expressions import expr_text
from pypto.ir.printer.literals import double_quoted, float_literal, single_quoted
from pypto.ir.printer.state import State

__all__ = ["attr_text", "attrs_dict_text", "kwarg_text", "var_list_text"]

DIRECTIONS = {
    ArgDirection.Input: "input",
    ArgDirection.Output: "output",
    ArgDirection.InOut: "inout",
    ArgDirection.OutputExisting: "output_existing",
    ArgDirection.NoDep: "no_dep",
    ArgDirection.Scalar: "scalar",
}
CAST_MODES = ("none", "rint", "round", "floor", "ceil", "trunc", "odd")
PIPE_KEYS = frozenset({"set_pipe", "wait_pipe"})
PIPE_OPS = frozenset({"system.sync_set", "system.sync_wait"})


def attr_text(state: State, key: str, value: Any) -> str:
    """The text of one attribute value inside `attrs={...}`."""
    if isinstance(value, str):
        return double_quoted(value)
    if isinstance(value, tuple):
        return f"[{', '.join([_element(state, key, each) for each in value])}]"
    if isinstance(value, ConstBool):
        raise InternalError(
            f"attribute '{key}' holds a constant expression {value.value}, which has no spelling"
        )
    if isinstance(value, ConstInt | ConstFloat):
        # A bare number reads back as a plain one, except where the attribute always holds an expression.
        return expr_text(state, value, typed=key not in EXPR_FROM_INT_KEYS)
    return _scalar_value(state, key, value)


def attrs_dict_text(state: State, attrs: Iterable[tuple[str, Any]]) -> str:
    """`{"key": value, ...}` in the given order."""
    return (
        "{"
        + ", ".join([f"{double_quoted(key)}: {attr_text(state, key, value)}" for key, value in attrs])
        + "}"
    )


def var_list_text(state: State, variables: Iterable[Expr | None]) -> str:
    """`[a, b]`; absent entries are skipped."""
    return f"[{', '.join([expr_text(state, v) for v in variables if v is not None])}]"


def kwarg_text(state: State, op_name: str, key: str, value: Any) -> str:
    """The text of one keyword value of an operator call."""
    if isinstance(value, str):
        return single_quoted(value)
    if type(value) is int:
        named = _named_int(state, op_name, key, value)
        return named if named is not None else str(value)
    if isinstance(value, tuple):
        return f"[{', '.join([_element(state, key, each) for each in value])}]"
    return _scalar_value(state, key, value)


def _named_int(state: State, op_name: str, key: str, value: int) -> str | None:
    if key == "mode":
        if not 0 <= value < len(CAST_MODES):
            raise ValueError(f"{op_name}: mode {value} is outside 0..{len(CAST_MODES) - 1}")
        return f"'{CAST_MODES[value]}'"
    if key in PIPE_KEYS or (key == "pipe" and op_name in PIPE_OPS):
        return f"{state.prefix}.PipeType.{PipeType(value).name}"
    if key == "atomic":
        return f"{state.prefix}.AtomicType.{AtomicType(value).name}"
    return None


def _element(state: State, key: str, value: Any) -> str:
    if isinstance(value, ArgDirection):
        return f"{state.prefix}.adir.{DIRECTIONS[value]}"
    if isinstance(value, Var):
        return state.name(value)
    if type(value) is int:
        return str(value)
    raise InternalError(f"attribute '{key}' holds a {type(value).__name__} in a list, which has no spelling")


def _scalar_value(state: State, key: str, value: Any) -> str:
    if isinstance(value, Expr):
        return expr_text(state, value)
    spelling = _SPELLINGS.get(type(value))
    if spelling is None:
        raise InternalError(
            f"attribute '{key}' holds a value of type {type(value).__name__}, which has no spelling"
        )
    return spelling(state, value)


_SPELLINGS: dict[type, Callable[[State, Any], str]] = {
    bool: lambda _state, value: "True" if value else "False",
    int: lambda _state, value: str(value),
    float: lambda _state, value: float_literal(value),
    DataType: lambda state, value: state.dtype(value),
    MemorySpace: lambda state, value: f"{state.prefix}.Mem.{value.name}",
    TensorLayout: lambda state, value: f"{state.prefix}.TensorLayout.{value.name}",
    TileLayout: lambda state, value: f"{state.prefix}.TileLayout.{value.name}",
    PadValue: lambda state, value: f"{state.prefix}.PadValue.{value.name}",
    ArgDirection: lambda state, value: f"{state.prefix}.adir.{DIRECTIONS[value]}",
}
