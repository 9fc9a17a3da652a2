"""Attribute values that users may spell in several ways: pad values, comparison modes, constants."""

from __future__ import annotations

from typing import Any

from pypto.ir.enums import PadValue
from pypto.ir.expr import ConstBool, ConstFloat, ConstInt
from pypto.ir.node import show_value

COMPARE_MODES = {"eq": 0, "ne": 1, "lt": 2, "le": 3, "gt": 4, "ge": 5}


def resolve_pad_value(value: Any, what: str = "fillpad pad_value", *, allow_null: bool = False) -> PadValue:
    """``PadValue`` from a member, from 0, or from an infinity.

    Raises:
        ValueError: null (unless allowed), any other number.
        TypeError: a bool or any other type.
    """
    given = value
    if isinstance(value, (ConstInt, ConstFloat)):
        value = value.value
    if isinstance(value, PadValue):
        if value is PadValue.null and not allow_null:
            raise ValueError(f"{what} must be PadValue.zero, max or min, got {value}")
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{what} must be a PadValue, 0, inf or -inf, got {show_value(given)}")
    if value == 0:
        return PadValue.zero
    if value == float("inf"):
        return PadValue.max
    if value == float("-inf"):
        return PadValue.min
    raise ValueError(f"{what} must be PadValue.zero/max/min, 0, inf or -inf, got {value}")


def resolve_compare_mode(value: Any, what: str = "cmp_mode") -> int:
    """Comparison code from a name or a number; ValueError for anything else."""
    if isinstance(value, str) and value in COMPARE_MODES:
        return COMPARE_MODES[value]
    if isinstance(value, ConstInt):
        value = value.value
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 5:
        return value
    raise ValueError(f"{what} must be one of {', '.join(COMPARE_MODES)} or 0 to 5, got {show_value(value)}")


def static_flag(value: Any, what: str) -> bool:
    """A compile-time flag from a bool or a constant; TypeError for anything else."""
    plain = value.value if isinstance(value, ConstBool) else value
    if not isinstance(plain, bool):
        raise TypeError(f"{what} must be True or False, got {show_value(value)}")
    return plain


def static_int(value: Any, what: str) -> int:
    """A compile-time integer from an int or an integer constant; TypeError for anything else."""
    if isinstance(value, ConstInt):
        return value.value
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{what} must be a compile-time int, got {type(value).__name__}")
    return int(value)
