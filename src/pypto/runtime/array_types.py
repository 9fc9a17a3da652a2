"""Which arrays hold the tensors of a program: names, dtypes and shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pypto import ir
from pypto.core.dtype import DataType

ARRAY_NAMES = {
    DataType.BOOL: "bool",
    DataType.INT8: "int8",
    DataType.INT16: "int16",
    DataType.INT32: "int32",
    DataType.INT64: "int64",
    DataType.INDEX: "int64",
    DataType.UINT8: "uint8",
    DataType.UINT16: "uint16",
    DataType.UINT32: "uint32",
    DataType.UINT64: "uint64",
    DataType.FP16: "float16",
    DataType.FP32: "float32",
    DataType.BF16: "bfloat16",
    DataType.FP8E4M3FN: "float8_e4m3fn",
    DataType.FP8E5M2: "float8_e5m2",
    DataType.FP8E8M0: "float8_e8m0fnu",
    DataType.FP4: "uint8",  # two elements per byte
}


def numpy_dtype(dtype: DataType) -> np.dtype[Any]:
    """The numpy dtype of arrays of an element type; FP4 arrays hold two elements per byte.

    Raises `TypeError` for a type that has no arrays.
    """
    name = ARRAY_NAMES.get(dtype)
    if name is None:
        raise TypeError(f"there are no arrays of {dtype}")
    if name.startswith(("bfloat", "float8")):
        import ml_dtypes

        narrow: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return narrow
    return np.dtype(name)


def dtype_name(dtype: Any) -> str:
    """The name of a numpy or torch dtype, the same for one kind of element; a foreign byte order is named."""
    if not isinstance(dtype, np.dtype):
        return str(dtype).removeprefix("torch.")
    return dtype.name if dtype.isnative else f"{dtype.name} in foreign byte order"


def runtime_shape(shape: Sequence[int], dtype: DataType) -> list[int]:
    """The shape of the array that holds a tensor: FP4 packs two elements of the last dim into a byte."""
    result = list(shape)
    if dtype is DataType.FP4 and result and result[-1] != ir.DYNAMIC_DIM:
        result[-1] = (result[-1] + 1) // 2
    return result
