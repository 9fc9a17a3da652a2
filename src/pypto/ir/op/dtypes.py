"""Element types in type inference: promotion, and the sets of types that operators accept."""

from __future__ import annotations

from pypto.core.dtype import DataType

BOOL, INDEX, TASK_ID = DataType.BOOL, DataType.INDEX, DataType.TASK_ID
INT8, INT16, INT32, INT64 = DataType.INT8, DataType.INT16, DataType.INT32, DataType.INT64
UINT8, UINT16, UINT32, UINT64 = DataType.UINT8, DataType.UINT16, DataType.UINT32, DataType.UINT64
FP16, FP32, BF16 = DataType.FP16, DataType.FP32, DataType.BF16
FP8E4M3FN, FP8E5M2, FP8E8M0, HF8 = DataType.FP8E4M3FN, DataType.FP8E5M2, DataType.FP8E8M0, DataType.HF8

DtypeSet = tuple[DataType, ...]

INT16_INT32_FP16_FP32: DtypeSet = (INT16, INT32, FP16, FP32)
INT8_TO_FP32: DtypeSet = (INT8, INT16, INT32, FP16, FP32)
SUBTRACTABLE: DtypeSet = (INT8, INT16, INT32, FP16, FP32, BF16)
ATOMIC: DtypeSet = (FP32, BF16, FP16, INT32, INT16, INT8)
EXTENT_SCALARS: DtypeSet = (INT64, UINT64, INDEX)
BITCASTABLE: DtypeSet = (INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, FP16, FP32, BF16)


def promote(a: DataType, b: DataType) -> DataType:
    """Element type of an operator on ``a`` and ``b``: float beats int, then the wider, then signed, then
    the first."""
    if a is b:
        return a
    a_float, b_float = a.is_float(), b.is_float()
    if a_float != b_float:
        return a if a_float else b
    if a.get_bit() != b.get_bit():
        return a if a.get_bit() > b.get_bit() else b
    if a.is_unsigned_int() and b.is_signed_int():
        return b
    return a


def accumulator(dtype: DataType) -> DataType:
    """Element type in which matrix products of ``dtype`` are summed."""
    return FP32 if dtype.is_float() else INT32


def names(dtypes: DtypeSet) -> str:
    """``INT16, INT32, FP16`` for messages."""
    return ", ".join(dtype.member for dtype in dtypes)


def require(dtype: DataType, allowed: DtypeSet, op: str, what: str = "dtype") -> None:
    """ValueError unless ``dtype`` is allowed; ``what`` names the operand, for example ``src dtype``."""
    if dtype not in allowed:
        raise ValueError(f"The operator {op} requires {what} in {{{names(allowed)}}}, got {dtype}")
