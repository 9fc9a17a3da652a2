"""The conversions that every operator wrapper applies to what a program writes."""

from __future__ import annotations

import pytest

from pypto import DataType, ir
from pypto.ir import utils

from .nodes import S, const, tensor, var


def test_expressions_pass_and_numbers_become_constants():
    x = var()
    assert utils._normalize_expr(x) is x
    whole, real = utils._normalize_expr(3), utils._normalize_expr(3.0)
    assert (type(whole), whole.dtype, type(real), real.dtype) == (
        ir.ConstInt,
        ir.INDEX,
        ir.ConstFloat,
        ir.FP32,
    )
    assert utils._normalize_expr(3, S, ir.INT32).dtype == ir.INT32
    with pytest.raises(TypeError):
        utils._normalize_expr("3")


def test_sequences_become_tuples_of_index_constants():
    x = var()
    made = utils._to_make_tuple([1, x])
    assert made.elements[0].dtype == ir.INDEX and made.elements[1] is x
    assert utils._to_make_tuple(made) is made
    assert [dim.value for dim in utils._normalize_shape([4, 8])] == [4, 8]


def test_cast_modes_have_seven_names_and_numbers():
    names = ["none", "rint", "round", "floor", "ceil", "trunc", "odd"]
    assert {name: number for number, name in enumerate(names)} == utils.CAST_MODE_NAMES
    for number, name in enumerate(names):
        assert utils.resolve_cast_mode(name) == utils.resolve_cast_mode(number) == number


@pytest.mark.parametrize("wrong", [True, 7, -1, "nearest", 1.0, None])
def test_other_cast_modes_are_value_errors(wrong):
    with pytest.raises(ValueError):
        utils.resolve_cast_mode(wrong)


def test_int32_scalars_restamp_constants_and_leave_expressions_alone():
    x = var()
    assert utils._to_int32_scalar(3, S).dtype == ir.INT32
    assert utils._to_int32_scalar(const(3), S).dtype == ir.INT32
    assert utils._to_int32_scalar(x, S) is x


def test_untyped_scalar_operands_take_the_element_dtype():
    real, short = tensor(4), ir.Var("t", ir.TensorType([4], ir.INT16), S)
    for literal in (3, ir.ConstInt(3, ir.INDEX, S)):
        taken = utils._normalize_scalar_operand(real, literal, S)
        assert (type(taken), taken.dtype) == (ir.ConstFloat, ir.FP32)
    assert utils._normalize_scalar_operand(short, 3, S).dtype == ir.INT16
    assert utils._normalize_scalar_operand(short, 2.5, S).dtype == ir.FP32


def test_typed_scalar_operands_stay_unless_their_constants_are_to_be_retyped():
    real, short = tensor(4), ir.Var("t", ir.TensorType([4], ir.INT16), S)
    typed, fraction = ir.ConstInt(3, ir.INT64, S), ir.ConstFloat(2.5, ir.FP32, S)
    assert utils._normalize_scalar_operand(real, typed, S) is typed
    assert type(utils._normalize_scalar_operand(real, typed, S, retype_constants=True)) is ir.ConstFloat
    with pytest.raises(ValueError):
        utils._normalize_scalar_operand(short, fraction, S, retype_constants=True)
    with pytest.raises(ValueError, match="cast"):
        utils._normalize_scalar_operand(real, var("i", ir.INDEX), S)


def test_a_partial_valid_region_is_one_that_the_view_stores():
    view = ir.TensorView([], ir.TensorLayout.ND, [2])
    partial = ir.Var("t", ir.TensorType([4], ir.FP32, None, view), S)
    assert utils.has_partial_valid_region(partial)
    assert not utils.has_partial_valid_region(tensor(4))


def test_a_pinned_span_serves_wrappers_but_not_operators():
    pinned = ir.Span("kernel.py", 3, 4)
    with utils.use_parser_span(pinned):
        assert utils._get_span_or_capture() is pinned
        assert utils._get_span_or_capture(S) is S
        assert (var() + 1).span.filename == __file__
    assert utils._get_span_or_capture(frame_offset=0).filename == __file__


def test_warnings_point_outside_of_the_package():
    assert utils.caller_warning_stacklevel() >= 1


def test_default_constant_dtypes_are_int64_and_fp32():
    assert DataType.DEFAULT_CONST_INT == DataType.INT64
    assert DataType.DEFAULT_CONST_FLOAT == DataType.FP32
