"""Comparing plain field values and attribute values."""

from __future__ import annotations

import struct
from typing import Any

from pypto.core.dtype import DataType
from pypto.ir.attrs import INT_LIST_KEYS, VAR_LIST_KEYS
from pypto.ir.node import IRNode

_WIDE_INTS = frozenset({DataType.INT64, DataType.INDEX})


def float_bits(value: float) -> int:
    """The 64-bit pattern of a double: distinguishes -0.0 from 0.0 and equates equal NaNs."""
    bits: int = struct.unpack("<Q", struct.pack("<d", value))[0]
    return bits


def same_value(left: Any, right: Any) -> bool:
    """Whether two plain values are equal in kind and value; floats by bit pattern."""
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if type(left) is float:
        return float_bits(left) == float_bits(right)
    if type(left) is tuple:
        return len(left) == len(right) and all(map(same_value, left, right))
    return bool(left == right)


def same_int_dtype(left: DataType, right: DataType) -> bool:
    """Whether two dtypes are equal where INT64 and INDEX count as one: integer constants and loop
    variables."""
    return left is right or (left in _WIDE_INTS and right in _WIDE_INTS)


def lenient_dtype(dtype: DataType) -> DataType:
    """The representative of a dtype in contexts where INT64 and INDEX count as one."""
    return DataType.INT64 if dtype is DataType.INDEX else dtype


def is_reference(value: Any) -> bool:
    """Whether an attribute value refers to expressions or variables."""
    return isinstance(value, IRNode) or (
        type(value) is tuple and bool(value) and isinstance(value[0], IRNode)
    )


def attr_kind(key: str, value: Any) -> str:
    """The kind in which the attribute `key` holds this value. Values of different kinds are never equal."""
    if isinstance(value, IRNode):
        return "expression"
    if type(value) is not tuple:
        return type(value).__name__
    if key in INT_LIST_KEYS:
        return "numbers"
    return "variables" if key in VAR_LIST_KEYS or is_reference(value) else "directions"
