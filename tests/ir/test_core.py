from __future__ import annotations

import pickle

import pytest

import pypto
from pypto import DataType, ir
from pypto.core import logging as log

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


@pytest.mark.parametrize(
    ("dtype", "bits", "size", "text", "c_type", "is_int", "is_float"),
    [
        (DataType.BOOL, 1, 1, "bool", "bool", False, False),
        (DataType.INT4, 4, 1, "int4", "unknown", True, False),
        (DataType.INDEX, 64, 8, "index", "int64_t", True, False),
        (DataType.UINT16, 16, 2, "uint16", "uint16_t", True, False),
        (DataType.BF16, 16, 2, "bfloat16", "bfloat16_t", False, True),
        (DataType.FP16, 16, 2, "fp16", "half", False, True),
        (DataType.TASK_ID, 64, 8, "task_id", "unknown", False, False),
    ],
)
def test_dtype_table(dtype, bits, size, text, c_type, is_int, is_float):
    assert (dtype.get_bit(), dtype.get_byte()) == (bits, size)
    assert dtype.to_string() == str(dtype) == repr(dtype) == text
    assert dtype.to_c_type_string() == c_type
    assert (dtype.is_int(), dtype.is_float()) == (is_int, is_float)


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
    assert str(span) == ":-1:-1"
    assert not span.is_valid()
    with pytest.raises(AttributeError):
        span.begin_line = 3


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
