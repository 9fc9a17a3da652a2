"""From a Python, numpy or ctypes number to the 64 bits that a compiled program takes for a scalar."""

from __future__ import annotations

import ctypes
import math
import struct
from typing import Any

import numpy as np

from pypto.core.dtype import DataType
from pypto.runtime.metadata import ParamInfo

_CTYPES: dict[DataType, Any] = {
    DataType.BOOL: ctypes.c_bool,
    DataType.INT8: ctypes.c_int8,
    DataType.INT16: ctypes.c_int16,
    DataType.INT32: ctypes.c_int32,
    DataType.INT64: ctypes.c_int64,
    DataType.INDEX: ctypes.c_int64,
    DataType.UINT8: ctypes.c_uint8,
    DataType.UINT16: ctypes.c_uint16,
    DataType.UINT32: ctypes.c_uint32,
    DataType.UINT64: ctypes.c_uint64,
    DataType.FP32: ctypes.c_float,
    DataType.FP16: ctypes.c_float,
    DataType.BF16: ctypes.c_float,
}
_SIXTEEN_BIT_FLOATS = (DataType.FP16, DataType.BF16)
CTYPES_NUMBER: Any = ctypes.c_int64.__mro__[1]  # the base class of all numbers of ctypes


class ScalarEncoder:
    """Checks and encodes the values of one scalar parameter, zero-extended to 64 bits."""

    __slots__ = ("_ctype", "_dtype", "_high", "_low", "_mask", "_name")

    def __init__(self, info: ParamInfo) -> None:
        if info.dtype not in _CTYPES:
            raise TypeError(f"Parameter '{info.name}' is a scalar of {info.dtype}, which cannot be passed")
        self._name = info.name
        self._dtype = info.dtype
        self._ctype = _CTYPES[info.dtype]
        bits = 1 if info.dtype is DataType.BOOL else info.dtype.get_bit()
        signed = info.dtype.is_signed_int()
        self._low = -(1 << bits - 1) if signed else 0
        self._high = (1 << (bits - 1 if signed else bits)) - 1
        self._mask = (1 << info.dtype.get_byte() * 8) - 1

    def encode(self, value: Any) -> int:
        """Raises `TypeError` for a value of another kind, `ValueError` for one out of range."""
        if isinstance(value, CTYPES_NUMBER):
            return self._encode_ctypes(value)
        if self._dtype.is_float():
            if not isinstance(value, int | float | np.integer | np.floating):
                raise self._wrong_kind(value)
            return self._encode_float(float(value))
        if not isinstance(value, int | np.integer | np.bool_):
            raise self._wrong_kind(value)
        return self._encode_int(int(value))

    def _encode_ctypes(self, value: Any) -> int:
        if self._dtype in _SIXTEEN_BIT_FLOATS and type(value) is ctypes.c_uint16:
            return int(value.value)  # a bit pattern
        if type(value) is not self._ctype:
            expected = self._ctype.__name__
            got = type(value).__name__
            raise TypeError(f"Parameter '{self._name}' expects {expected} for dtype {self._dtype}; got {got}")
        return (
            self._encode_float(value.value) if self._dtype.is_float() else self._encode_int(int(value.value))
        )

    def _encode_int(self, value: int) -> int:
        if not self._low <= value <= self._high:
            raise ValueError(f"Parameter '{self._name}': {value} is out of range for dtype {self._dtype}")
        return value & self._mask

    def _encode_float(self, value: float) -> int:
        try:
            if self._dtype is DataType.FP16:
                return int(struct.unpack("<H", struct.pack("<e", value))[0])
            (bits,) = struct.unpack("<I", struct.pack("<f", value))
        except OverflowError as error:
            message = f"Parameter '{self._name}': {value} is out of range for dtype {self._dtype}"
            raise ValueError(message) from error
        if self._dtype is DataType.FP32:
            return int(bits)
        if math.isnan(value):
            return int(bits >> 16) | 0x40
        return int(bits + 0x7FFF + (bits >> 16 & 1)) >> 16

    def _wrong_kind(self, value: Any) -> TypeError:
        kind = "torch.Tensor" if hasattr(value, "data_ptr") else type(value).__name__
        return TypeError(f"Parameter '{self._name}' is a scalar ({self._dtype}); got {kind}")


class FixedScalar:
    """A scalar whose value is part of the compiled code; a call must pass that value."""

    __slots__ = ("_bits", "_encoder", "_name", "_value")

    def __init__(self, encoder: ScalarEncoder, name: str, value: Any) -> None:
        self._encoder = encoder
        self._name = name
        self._value = value
        self._bits = encoder.encode(value)

    def encode(self, value: Any) -> int:
        """Raises `ValueError` for another value than the one compiled for."""
        bits = self._encoder.encode(value)
        if bits != self._bits:
            raise ValueError(
                f"Parameter '{self._name}' was compiled for the value {self._value!r}, got {value!r}; "
                f"compile for the new value, or with {self._name}=pl.RUNTIME for any"
            )
        return bits
