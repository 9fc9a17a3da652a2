"""Names and numbers that Python and the native runtime share: argument directions, element types."""

from __future__ import annotations

import enum

from pypto.core.dtype import DataType

MAX_KERNEL_TENSORS = 32
MAX_KERNEL_SCALARS = 16
MAX_ORCHESTRATION_TENSORS = 256
MAX_ORCHESTRATION_SCALARS = 128
MAX_CHILDREN = 1024
MAX_DIMS = 5


class ArgDirection(enum.IntEnum):
    """Direction of one entry of a callable's signature."""

    SCALAR = 0
    IN = 1
    OUT = 2
    INOUT = 3


class TensorArgType(enum.IntEnum):
    """Tag of one tensor in a task's payload."""

    INPUT = 0
    OUTPUT = 1
    INOUT = 2
    OUTPUT_EXISTING = 3
    NO_DEP = 4


_ELEMENT_CODES = {
    DataType.FP32: 0,
    DataType.FP16: 1,
    DataType.BF16: 2,
    DataType.INT8: 3,
    DataType.INT16: 4,
    DataType.INT32: 5,
    DataType.INT64: 6,
    DataType.INDEX: 6,
    DataType.UINT8: 7,
    DataType.UINT16: 8,
    DataType.UINT32: 9,
    DataType.UINT64: 10,
    DataType.FP8E4M3FN: 11,
    DataType.FP8E5M2: 12,
    DataType.FP8E8M0: 13,
    DataType.FP4: 14,
    DataType.BOOL: 15,
}


ELEMENT_NAMES = {code: str(dtype) for dtype, code in reversed(_ELEMENT_CODES.items())}
"""The element type of each number; the first of those that share one."""


def element_code(dtype: DataType) -> int:
    """The number of an element type in tensor descriptors. Raises `TypeError` for one that has none."""
    code = _ELEMENT_CODES.get(dtype)
    if code is None:
        raise TypeError(f"tensors of {dtype} cannot be passed to a compiled program")
    return code
