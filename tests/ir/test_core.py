from __future__ import annotations

import pickle

import pytest

import pypto
from pypto import DataType, ir
from pypto.core import logging as log
from pypto.core.dtype import ALL_DTYPES

from .nodes import const


def test_dtype_read_from_a_node_equals_the_member_and_works_as_a_key():
    dtype = const(5).dtype
    assert dtype == DataType.INDEX
    assert hash(dtype) == hash(DataType.INDEX)
    assert {DataType.INDEX: "index"}[dtype] == "index"


def test_dtype_has_no_constructor_and_its_members_cannot_be_assigned():
    with pytest.raises(TypeError):
        DataType()
    with pytest.raises(AttributeError):
        DataType.FP32 = DataType.FP16
    with pytest.raises(AttributeError):
        del DataType.FP32


DTYPES = """
BOOL 0x00 1 bool bool -
INT4 0x10 4 int4 unknown signed
INT8 0x11 8 int8 int8_t signed
INT16 0x12 16 int16 int16_t signed
INT32 0x13 32 int32 int32_t signed
INT64 0x14 64 int64 int64_t signed
INDEX 0x15 64 index int64_t signed
UINT4 0x20 4 uint4 unknown unsigned
UINT8 0x21 8 uint8 uint8_t unsigned
UINT16 0x22 16 uint16 uint16_t unsigned
UINT32 0x23 32 uint32 uint32_t unsigned
UINT64 0x24 64 uint64 uint64_t unsigned
FP4 0x30 4 fp4 float4_e2m1x2_t float
FP8E4M3FN 0x31 8 fp8e4m3fn float8_e4m3_t float
FP8E5M2 0x32 8 fp8e5m2 float8_e5m2_t float
FP16 0x33 16 fp16 half float
FP32 0x34 32 fp32 float float
FP8E8M0 0x36 8 fp8e8m0 float8_e8m0_t float
BF16 0x40 16 bfloat16 bfloat16_t float
HF4 0x41 4 hf4 unknown float
HF8 0x42 8 hf8 unknown float
TASK_ID 0x50 64 task_id unknown -
"""


@pytest.mark.parametrize("row", DTYPES.strip().splitlines())
def test_dtype_table(row):
    member, code, bits, text, c_type, kind = row.split()
    dtype = getattr(DataType, member)
    assert (dtype.code(), dtype.get_bit()) == (int(code, 16), int(bits))
    assert dtype.get_byte() == -(-int(bits) // 8)
    assert dtype.to_string() == str(dtype) == repr(dtype) == text
    assert dtype.to_c_type_string() == c_type
    assert (dtype.is_signed_int(), dtype.is_unsigned_int()) == (kind == "signed", kind == "unsigned")
    assert (dtype.is_int(), dtype.is_float()) == (kind.endswith("signed"), kind == "float")


def test_every_dtype_stands_in_the_table():
    assert [str(dtype) for dtype in ALL_DTYPES] == [row.split()[3] for row in DTYPES.strip().splitlines()]


def test_dtypes_survive_pickling():
    assert pickle.loads(pickle.dumps(DataType.BF16)) is DataType.BF16


@pytest.mark.parametrize(
    ("numbers", "valid"),
    [
        ((1, -1), True), ((1, 0), False), ((0, 1), False), ((-1, -1), False), ((3, 2, 3, 5), True),
        ((3, 5, 3, 2), False), ((3, 5, 4, 1), True), ((3, -1, 3, 4), True), ((3, 1, 0, 1), False),
    ],
)  # fmt: skip
def test_span_validity(numbers, valid):
    assert ir.Span("f", *numbers).is_valid() is valid


def test_unknown_span_prints_its_numbers_and_spans_are_immutable():
    span = ir.Span.unknown()
    assert str(span) == repr(span) == span.to_string() == ":-1:-1"
    assert not span.is_valid()
    for name in ("filename", "begin_line", "begin_column", "end_line", "end_column", "other"):
        with pytest.raises(AttributeError):
            setattr(span, name, 3)


def test_spans_with_the_same_numbers_are_different():
    assert ir.Span("f", 1, 2) != ir.Span("f", 1, 2)


def test_error_classes_are_unrelated():
    assert issubclass(pypto.InternalError, RuntimeError)
    assert not issubclass(pypto.InternalError, (ValueError, pypto.Error))
    assert not issubclass(pypto.Error, RuntimeError)
    assert pypto.Error.__module__ == pypto.InternalError.__module__ == "pypto"


def test_checks_raise_their_class_with_the_message_first():
    with pytest.raises(ValueError, match=r"^broken$"):
        pypto.check(False, "broken")
    with pytest.raises(pypto.InternalError, match=r"^broken\n"):
        pypto.internal_check(False, "broken")
    with pytest.raises(pypto.InternalError, match=r"^broken \[f:3:4\]"):
        pypto.internal_check_span(False, "broken", ir.Span("f", 3, 4))
    pypto.check(True, "never")


def test_errors_raised_for_tests_carry_exactly_the_message_given():
    helpers = {
        ValueError: "value", TypeError: "type", RuntimeError: "runtime", IndexError: "index",
        NotImplementedError: "not_implemented", pypto.Error: "generic",
    }  # fmt: skip
    for error, name in helpers.items():
        with pytest.raises(error) as caught:
            getattr(pypto.testing, f"raise_{name}_error")("the message")
        assert type(caught.value) is error and str(caught.value) == "the message"
    for error in (*helpers, AssertionError, pypto.InternalError):
        with pytest.raises(error) as caught:
            pypto.testing.rethrow_with_message(error.__name__, "first", "second")
        assert type(caught.value) is error and str(caught.value) == "second"
    with pytest.raises(pypto.InternalError, match=r"^m \[f\.py:3:4\]\n(.|\n)*C\+\+ Traceback"):
        pypto.testing.raise_internal_error_with_span("m", "f.py", 3, 4)


@pytest.mark.parametrize("setting, traced", [("1", True), ("0", False), ("true", False)])
def test_user_errors_carry_the_stack_only_when_asked_for_with_exactly_one(monkeypatch, setting, traced):
    monkeypatch.setenv("PTO_BACKTRACE", setting)
    for fail in (lambda: pypto.check(False, "m"), lambda: pypto.testing.raise_value_error("m")):
        with pytest.raises(ValueError, match=r"^m(\n|$)") as caught:
            fail()
        assert ("C++ Traceback (most recent call last):" in str(caught.value)) is traced


def test_log_lines_appear_from_the_effective_level_up(capfd):
    before = pypto.get_log_level()
    try:
        pypto.set_log_level(pypto.LogLevel.WARN)
        pypto.log_info("hidden")
        pypto.log_error("shown")
        log.set_thread_log_level(pypto.LogLevel.DEBUG)
        pypto.log_debug("in this thread")
        assert pypto.get_log_level() is pypto.LogLevel.WARN
    finally:
        log.clear_thread_log_level()
        pypto.set_log_level(before)
    lines = capfd.readouterr().err.splitlines()
    assert [line.split(" ", 2)[2] for line in lines] == ["E | shown", "D | in this thread"]


def test_enumerations_print_as_class_and_member():
    assert str(ir.Level.POD) == repr(ir.Level.POD) == f"{ir.Level.POD}" == "Level.CLUSTER_0"
    assert str(ir.PipeType.V) == "PipeType.V"
    assert ir.CoreType.VECTOR == 1
    assert len(list(ir.Level)) == 10
    assert [ir.level_to_linqu_level(level) for level in ir.Level] == [0, 0, 0, 1, 2, 3, 4, 5, 6, 7]


def test_leaked_members_resolve_to_the_later_enumeration():
    assert ir.null is ir.PadValue.null
    assert ir.InCore is ir.FunctionType.InCore
    assert ir.Spmd is ir.FunctionType.Spmd
    assert ir.AIV is ir.Level.AIV
    assert ir.CORE_GROUP is ir.Level.CORE_GROUP
    assert isinstance(ir.Max, type)
