"""How element types appear in kernel C++: as stored elements and as scalar variables."""

from __future__ import annotations

import math
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from pypto.core.dtype import DataType


@dataclass(frozen=True, slots=True)
class Element:
    """One element type.

    Attributes:
        stored: C++ type of an element in memory.
        compute: C++ type of a scalar variable and of arithmetic; floats narrower than FP32 compute in float
            and are rounded after each operation.
        size: bytes of one element.
        numpy: numpy type that holds the same values, to round constants.
    """

    stored: str
    compute: str
    size: int
    numpy: np.dtype

    @property
    def is_float(self) -> bool:
        return self.compute == "float"

    @property
    def is_narrow(self) -> bool:
        """Whether arithmetic results must be rounded to the stored type."""
        return self.stored != self.compute


def _integer(name: str) -> Element:
    dtype = np.dtype(name)
    return Element(f"{name}_t", f"{name}_t", dtype.itemsize, dtype)


def _float(stored: str, numpy: type) -> Element:
    dtype: np.dtype = np.dtype(numpy)
    return Element(stored, "float", dtype.itemsize, dtype)


ELEMENTS: dict[DataType, Element] = {
    DataType.BOOL: Element("bool", "bool", 1, np.dtype(bool)),
    DataType.INT8: _integer("int8"),
    DataType.INT16: _integer("int16"),
    DataType.INT32: _integer("int32"),
    DataType.INT64: _integer("int64"),
    DataType.INDEX: _integer("int64"),
    DataType.UINT8: _integer("uint8"),
    DataType.UINT16: _integer("uint16"),
    DataType.UINT32: _integer("uint32"),
    DataType.UINT64: _integer("uint64"),
    DataType.FP32: _float("float", np.float32),
    DataType.FP16: _float("pypto::half", np.float16),
    DataType.BF16: _float("pypto::bfloat16", ml_dtypes.bfloat16),
    DataType.FP8E4M3FN: _float("pypto::float8_e4m3", ml_dtypes.float8_e4m3fn),
    DataType.FP8E5M2: _float("pypto::float8_e5m2", ml_dtypes.float8_e5m2),
    DataType.FP8E8M0: _float("pypto::float8_e8m0", ml_dtypes.float8_e8m0fnu),
}


def element_of(dtype: DataType) -> Element:
    """The C++ form of an element type.

    Raises:
        ValueError: the CPU has no storage for this type.
    """
    element = ELEMENTS.get(dtype)
    if element is None:
        raise ValueError(f"element type {dtype} is not supported on the CPU")
    return element


def literal(value: int | float | bool, element: Element) -> str:
    """A constant of an element type as C++ text in its compute type, rounded as the element rounds."""
    if element.compute == "bool":
        return "true" if value else "false"
    if element.is_float:
        return _float_literal(
            float(np.asarray(value, dtype=np.float64).astype(np.float32).astype(element.numpy))
        )
    return _integer_literal(_to_integer(value, element.numpy), element.compute)


def _float_literal(value: float) -> str:
    if math.isnan(value):
        return "pypto::NOT_A_NUMBER"
    if math.isinf(value):
        return "pypto::INF" if value > 0 else "-pypto::INF"
    text = str(np.float32(value))
    return f"{text}f" if "." in text or "e" in text else f"{text}.0f"


def _to_integer(value: int | float, dtype: np.dtype) -> int:
    """Floats truncate and saturate, integers keep their low bits."""
    limits = np.iinfo(dtype)
    if isinstance(value, float):
        if math.isnan(value):
            return 0
        if math.isinf(value):
            return int(limits.max if value > 0 else limits.min)
        return int(min(max(math.trunc(value), int(limits.min)), int(limits.max)))
    bits = dtype.itemsize * 8
    wrapped = value & ((1 << bits) - 1)
    return wrapped - (1 << bits) if limits.min < 0 and wrapped >> (bits - 1) else wrapped


def _integer_literal(value: int, ctype: str) -> str:
    if ctype in ("int64_t", "int32_t"):
        if value == -(2**63):
            return "INT64_MIN"
        if value == -(2**31):
            return "INT32_MIN"
        return str(value) if abs(value) < 2**31 else f"int64_t({value}LL)"
    if ctype == "uint64_t":
        return f"uint64_t({value}ULL)"
    return f"{ctype}({value}u)" if ctype.startswith("u") else f"{ctype}({value})"
