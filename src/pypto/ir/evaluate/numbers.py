"""Element types as numpy sees them, and conversion between them with every rounding mode."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from pypto.core.dtype import DataType

Array = npt.NDArray[Any]

_STORAGE: dict[DataType, Any] = {
    DataType.BOOL: np.bool_,
    DataType.INT8: np.int8,
    DataType.INT16: np.int16,
    DataType.INT32: np.int32,
    DataType.INT64: np.int64,
    DataType.INDEX: np.int64,
    DataType.UINT8: np.uint8,
    DataType.UINT16: np.uint16,
    DataType.UINT32: np.uint32,
    DataType.UINT64: np.uint64,
    DataType.FP16: np.float16,
    DataType.BF16: ml_dtypes.bfloat16,
    DataType.FP32: np.float32,
    DataType.FP8E4M3FN: ml_dtypes.float8_e4m3fn,
    DataType.FP8E5M2: ml_dtypes.float8_e5m2,
    DataType.FP8E8M0: ml_dtypes.float8_e8m0fnu,
    DataType.TASK_ID: np.int64,
}

_ELEMENT_TYPES = {np.dtype(found): dtype for dtype, found in reversed(_STORAGE.items())}  # the first counts

ROUNDINGS = {0: "none", 1: "rint", 2: "round", 3: "floor", 4: "ceil", 5: "trunc", 6: "odd"}


def storage(dtype: DataType) -> np.dtype[Any]:
    """The numpy type that holds one element; NotImplementedError where numpy has none."""
    found = _STORAGE.get(dtype)
    if found is None:
        raise NotImplementedError(f"elements of type {dtype} have no numpy form")
    numpy_type: np.dtype[Any] = np.dtype(found)
    return numpy_type


def element_type(numpy_type: np.dtype[Any]) -> DataType:
    """The element type that a numpy type stores: INT64 for 64-bit integers."""
    return _ELEMENT_TYPES[numpy_type]


def compute_type(dtype: DataType) -> np.dtype[Any]:
    """The type in which arithmetic on elements of ``dtype`` happens: FP32 for all floats."""
    return np.dtype(np.float32) if dtype.is_float() else storage(dtype)


def convert(data: Array, source: DataType, target: DataType, mode: int = 2) -> Array:
    """Elements of ``source`` as elements of ``target``.

    To a narrower float the neighbour that a directed mode names, else nearest even. From float to integer as
    the mode says, then saturating (NaN gives 0), except the pairs that keep the low bits. Among integers the
    low bits; from integer to float nearest even.
    """
    if source.is_float() and target.is_int():
        return _float_to_int(np.asarray(data, np.float64), source, target, mode)
    if source.is_float() and target.is_float():
        return _float_to_float(np.asarray(data).astype(np.float32), storage(target), mode)
    return np.asarray(data).astype(storage(target))


def _float_to_float(wide: Array, target: np.dtype[Any], mode: int) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        nearest = wide.astype(target)
        name = ROUNDINGS[mode]
        if name not in ("floor", "ceil", "trunc", "odd") or target.itemsize == wide.itemsize:
            return nearest
        back = nearest.astype(np.float32)
    inexact = (back != wide) & ~np.isnan(wide)
    codes = nearest.view(f"u{target.itemsize}")  # in sign and magnitude: one less is one step toward zero
    toward_zero = codes - (np.abs(back) > np.abs(wide))
    away = {"floor": np.signbit(wide), "ceil": ~np.signbit(wide)}.get(name, False)
    directed = toward_zero | 1 if name == "odd" else toward_zero + away
    return np.where(inexact, directed, codes).astype(codes.dtype).view(target)


def _keeps_low_bits(source: DataType, target: DataType) -> bool:
    if source is DataType.FP16:
        return target in (DataType.INT8, DataType.UINT8, DataType.INT16)
    return source is DataType.FP32 and target is DataType.INT16


def _float_to_int(values: Array, source: DataType, target: DataType, mode: int) -> Array:
    rounded = round_to_integer(values, mode)
    limits = np.iinfo(storage(target))
    finite = np.where(np.isfinite(values), rounded, 0.0)
    if _keeps_low_bits(source, target):
        wrapped = np.fmod(finite, 2.0 ** target.get_bit()).astype(np.int64)
        return wrapped.astype(storage(target))
    clipped = np.clip(finite, float(limits.min), float(limits.max))
    exact = clipped.astype(np.float64)
    result = np.where(exact >= float(limits.max), limits.max, exact).astype(storage(target))
    result = np.where(np.isposinf(values), limits.max, result)
    return np.where(np.isneginf(values), limits.min, result).astype(storage(target))


def round_to_integer(values: Array, mode: int) -> Array:
    """The integral value that a rounding mode chooses, still as float."""
    name = ROUNDINGS[mode]
    with np.errstate(invalid="ignore"):
        if name == "rint":
            return np.rint(values)
        if name == "floor":
            return np.floor(values)
        if name == "ceil":
            return np.ceil(values)
        if name in ("trunc", "none"):
            return np.trunc(values)
        low = np.floor(values)
        tie = values - low == 0.5
        if name == "round":  # ties away from zero
            return np.where(tie, np.where(values > 0, low + 1, low), np.floor(values + 0.5))
        odd = np.where(np.fmod(low, 2.0) == 0, low + 1, low)  # the odd neighbour of a tie
        return np.where(tie, odd, np.rint(values))
