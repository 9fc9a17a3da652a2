"""Element types.

There is exactly one `DataType` object per element type, so `is`, `==` and hashing agree. The numeric code is
part of the serialized form and of the kernel interface.
"""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

_SIGNED, _UNSIGNED, _FLOAT, _OPAQUE = "signed", "unsigned", "float", "opaque"


class _Frozen(type):
    """Keeps the members of `DataType` from being rebound or removed."""

    def __setattr__(cls, name: str, value: object) -> None:
        raise AttributeError(f"DataType.{name} cannot be assigned")

    def __delattr__(cls, name: str) -> None:
        raise AttributeError(f"DataType.{name} cannot be deleted")

    def __call__(cls, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError("DataType has no constructor; use its members, for example DataType.FP32")


class DataType(metaclass=_Frozen):
    """The type of one element of a tensor or tile, or of a scalar."""

    __slots__ = ("_bits", "_c_type", "_code", "_kind", "_member", "_text")

    BOOL: ClassVar[DataType]
    INT4: ClassVar[DataType]
    INT8: ClassVar[DataType]
    INT16: ClassVar[DataType]
    INT32: ClassVar[DataType]
    INT64: ClassVar[DataType]
    INDEX: ClassVar[DataType]
    UINT4: ClassVar[DataType]
    UINT8: ClassVar[DataType]
    UINT16: ClassVar[DataType]
    UINT32: ClassVar[DataType]
    UINT64: ClassVar[DataType]
    FP4: ClassVar[DataType]
    FP8E4M3FN: ClassVar[DataType]
    FP8E5M2: ClassVar[DataType]
    FP8E8M0: ClassVar[DataType]
    FP16: ClassVar[DataType]
    FP32: ClassVar[DataType]
    BF16: ClassVar[DataType]
    HF4: ClassVar[DataType]
    HF8: ClassVar[DataType]
    TASK_ID: ClassVar[DataType]
    DEFAULT_CONST_INT: ClassVar[DataType]
    DEFAULT_CONST_FLOAT: ClassVar[DataType]

    _bits: int
    _c_type: str
    _code: int
    _kind: str
    _member: str
    _text: str

    def get_bit(self) -> int:
        """Width of one element in bits."""
        return self._bits

    def get_byte(self) -> int:
        """Width of one element in bytes, rounded up."""
        return (self._bits + 7) // 8

    def to_string(self) -> str:
        """The lower-case text of the type, for example `bfloat16`."""
        return self._text

    def to_c_type_string(self) -> str:
        """The C type that holds one element, or `unknown` where C has none."""
        return self._c_type

    def is_float(self) -> bool:
        return self._kind == _FLOAT

    def is_signed_int(self) -> bool:
        return self._kind == _SIGNED

    def is_unsigned_int(self) -> bool:
        return self._kind == _UNSIGNED

    def is_int(self) -> bool:
        return self._kind in (_SIGNED, _UNSIGNED)

    def code(self) -> int:
        """The number that stands for this type in serialized programs."""
        return self._code

    @property
    def member(self) -> str:
        """The name of the member, for example `BF16`; this is how the printer spells the type."""
        return self._member

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"DataType objects are immutable; cannot assign '{name}'")

    def __reduce__(self) -> tuple[Any, ...]:
        return dtype_from_code, (self._code,)


_ROWS = (
    # member, code, bits, text, C type, kind
    ("BOOL", 0x00, 1, "bool", "bool", _OPAQUE),
    ("INT4", 0x10, 4, "int4", "unknown", _SIGNED),
    ("INT8", 0x11, 8, "int8", "int8_t", _SIGNED),
    ("INT16", 0x12, 16, "int16", "int16_t", _SIGNED),
    ("INT32", 0x13, 32, "int32", "int32_t", _SIGNED),
    ("INT64", 0x14, 64, "int64", "int64_t", _SIGNED),
    ("INDEX", 0x15, 64, "index", "int64_t", _SIGNED),
    ("UINT4", 0x20, 4, "uint4", "unknown", _UNSIGNED),
    ("UINT8", 0x21, 8, "uint8", "uint8_t", _UNSIGNED),
    ("UINT16", 0x22, 16, "uint16", "uint16_t", _UNSIGNED),
    ("UINT32", 0x23, 32, "uint32", "uint32_t", _UNSIGNED),
    ("UINT64", 0x24, 64, "uint64", "uint64_t", _UNSIGNED),
    ("FP4", 0x30, 4, "fp4", "float4_e2m1x2_t", _FLOAT),
    ("FP8E4M3FN", 0x31, 8, "fp8e4m3fn", "float8_e4m3_t", _FLOAT),
    ("FP8E5M2", 0x32, 8, "fp8e5m2", "float8_e5m2_t", _FLOAT),
    ("FP16", 0x33, 16, "fp16", "half", _FLOAT),
    ("FP32", 0x34, 32, "fp32", "float", _FLOAT),
    ("FP8E8M0", 0x36, 8, "fp8e8m0", "float8_e8m0_t", _FLOAT),
    ("BF16", 0x40, 16, "bfloat16", "bfloat16_t", _FLOAT),
    ("HF4", 0x41, 4, "hf4", "unknown", _FLOAT),
    ("HF8", 0x42, 8, "hf8", "unknown", _FLOAT),
    ("TASK_ID", 0x50, 64, "task_id", "unknown", _OPAQUE),
)


def _create(member: str, code: int, bits: int, text: str, c_type: str, kind: str) -> DataType:
    dtype: DataType = object.__new__(DataType)
    for slot, value in (
        ("_member", member), ("_code", code), ("_bits", bits), ("_text", text), ("_c_type", c_type),
        ("_kind", kind),
    ):  # fmt: skip
        object.__setattr__(dtype, slot, value)
    type.__setattr__(DataType, member, dtype)
    return dtype


ALL_DTYPES: tuple[DataType, ...] = tuple(_create(*row) for row in _ROWS)
"""Every element type, in code order."""

type.__setattr__(DataType, "DEFAULT_CONST_INT", DataType.INT64)
type.__setattr__(DataType, "DEFAULT_CONST_FLOAT", DataType.FP32)

_BY_CODE = {dtype.code(): dtype for dtype in ALL_DTYPES}
_BY_TEXT = {dtype.to_string(): dtype for dtype in ALL_DTYPES}


def dtype_from_code(code: int) -> DataType:
    """The element type with this code. Raises `ValueError` for an unknown one."""
    found = _BY_CODE.get(code)
    if found is None:
        raise ValueError(f"Unknown data type code {code:#x}")
    return found


def dtype_from_text(text: str) -> DataType | None:
    """The element type whose `to_string()` is `text` (`fp32`), or None."""
    return _BY_TEXT.get(text)
