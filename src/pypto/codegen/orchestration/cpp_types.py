"""Element types in C++: the type of a scalar, the runtime's token, and literals that keep every digit."""

from __future__ import annotations

import math

from pypto.core.dtype import DataType

__all__ = [
    "NARROW_FLOATS",
    "cpp_type",
    "float_literal",
    "int_literal",
    "narrow_float_literal",
    "runtime_token",
    "zero_literal",
]

_SCALARS = {
    DataType.BOOL: "bool",
    DataType.INT8: "int8_t",
    DataType.INT16: "int16_t",
    DataType.INT32: "int32_t",
    DataType.INT64: "int64_t",
    DataType.INDEX: "int64_t",
    DataType.UINT8: "uint8_t",
    DataType.UINT16: "uint16_t",
    DataType.UINT32: "uint32_t",
    DataType.UINT64: "uint64_t",
    DataType.FP16: "half",
    DataType.BF16: "bfloat16_t",
    DataType.FP32: "float",
    DataType.FP8E4M3FN: "float8_e4m3_t",
    DataType.FP8E5M2: "float8_e5m2_t",
    DataType.FP8E8M0: "float8_e8m0_t",
    DataType.FP4: "float4_e2m1x2_t",
    DataType.TASK_ID: "PTO2TaskId",
}
_TOKENS = {
    DataType.FP16: "FLOAT16",
    DataType.FP32: "FLOAT32",
    DataType.BF16: "BFLOAT16",
    DataType.INT8: "INT8",
    DataType.INT16: "INT16",
    DataType.INT32: "INT32",
    DataType.INT64: "INT64",
    DataType.INDEX: "INT64",
    DataType.UINT8: "UINT8",
    DataType.UINT16: "UINT16",
    DataType.UINT32: "UINT32",
    DataType.UINT64: "UINT64",
    DataType.FP8E4M3FN: "FP8E4M3FN",
    DataType.FP8E5M2: "FP8E5M2",
    DataType.FP8E8M0: "FP8E8M0",
    DataType.FP4: "FP4E2M1",
    DataType.BOOL: "BOOL",
}
_INT64_MIN = -(2**63)
_NARROW = {
    DataType.FP16: "float16",
    DataType.BF16: "bfloat16",
    DataType.FP8E4M3FN: "float8_e4m3fn",
    DataType.FP8E5M2: "float8_e5m2",
    DataType.FP8E8M0: "float8_e8m0fnu",
    DataType.FP4: "float4_e2m1fn",
}
NARROW_FLOATS = frozenset(_NARROW)
"""Floats that orchestration code can hold and pass on, but not compute with."""


def cpp_type(dtype: DataType) -> str:
    """The C++ type of one scalar. Raises `ValueError` where there is none."""
    found = _SCALARS.get(dtype)
    if found is None:
        raise ValueError(f"a scalar of dtype {dtype} has no C++ type in orchestration code")
    return found


def runtime_token(dtype: DataType) -> str:
    """`DataType::FLOAT32`. Raises `ValueError` for a dtype that no tensor can have at run time."""
    found = _TOKENS.get(dtype)
    if found is None:
        raise ValueError(f"a tensor of dtype {dtype} cannot be created in orchestration code")
    return f"DataType::{found}"


def int_literal(value: int) -> str:
    """An integer that fits into 64 signed bits."""
    return f"({_INT64_MIN + 1} - 1)" if value == _INT64_MIN else str(value)


def float_literal(value: float, suffix: str = "f") -> str:
    """A literal that reads back as the same value: six decimals where they suffice, else all digits."""
    if math.isnan(value):
        return f'__builtin_nan{suffix}("")'
    if math.isinf(value):
        return f"{'-' if value < 0 else ''}__builtin_inf{suffix}()"
    short = f"{value:.6f}"
    text = short if float(short) == value and len(short) < 24 else repr(value)
    return text + suffix


def narrow_float_literal(dtype: DataType, value: float) -> str:
    """A value of a float type narrower than 32 bits, by its bits: `half{15872}`."""
    import ml_dtypes
    import numpy as np

    name = _NARROW[dtype]
    scalar = np.float16(value) if name == "float16" else getattr(ml_dtypes, name)(value)
    bits = int.from_bytes(np.asarray(scalar).tobytes(), "little")
    return f"{cpp_type(dtype)}{{{bits}}}"


def zero_literal(dtype: DataType) -> str:
    """The value that stands where nothing is known."""
    return f"{cpp_type(dtype)}{{}}" if dtype in NARROW_FLOATS or dtype is DataType.TASK_ID else "0"
