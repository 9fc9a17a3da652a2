from __future__ import annotations

import pytest

from pypto import ir

from .nodes import S, const, tensor, var


def test_left_dtype_wins_on_equal_width():
    x = var()
    assert (x + 5).type.dtype is ir.INT64
    assert (5 + x).type.dtype is ir.INDEX
    assert ir.add(var(dtype=ir.UINT32), var(dtype=ir.INT32)).type.dtype is ir.UINT32


def test_narrower_operand_is_cast():
    a = var("a", ir.INT32)
    total = a + 5
    assert total.type.dtype is ir.INDEX
    assert isinstance(total.left, ir.Cast) and total.left.operand is a
    assert isinstance(total.right, ir.ConstInt)
    assert isinstance((var(dtype=ir.UINT64) + 5).right, ir.Cast)
    assert ir.min_(a, var()).type.dtype is ir.INT64


def test_comparison_helpers_give_bool_and_constructors_the_given_dtype():
    x, y = var(), var("y")
    assert ir.eq(x, y).type.dtype is ir.BOOL
    assert ir.Eq(x, y, ir.INT64, S).type.dtype is ir.INT64


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: ir.bit_not(var(dtype=ir.FP32)), "requires integer dtype"),
        (lambda: ~var(dtype=ir.FP32), "requires integer dtype"),
        (lambda: ir.bit_and(var(dtype=ir.FP32), var()), "requires integer dtype"),
        (lambda: tensor(4) + var(), "ScalarType"),
        (lambda: ir.eq(var(dtype=ir.BOOL), var(dtype=ir.BOOL)), "does not accept bool"),
        (lambda: var(dtype=ir.FP32) + 2, "same numeric dtype category"),
        (lambda: var(dtype=ir.DataType.TASK_ID) + 2, "numeric scalar dtype"),
        (lambda: var() + "2", "Cannot convert str"),
        (lambda: var() == None, "Cannot convert NoneType"),  # noqa: E711
    ],
)
def test_unfit_operands_are_type_errors(build, message):
    with pytest.raises(TypeError, match=message):
        build()


def test_reflected_operators_keep_operand_order():
    x = var()
    difference = 5 - x
    assert isinstance(difference, ir.Sub) and difference.right is x
    assert isinstance(x > 5, ir.Gt)


def test_operators_record_the_line_that_evaluates_them():
    span = (var() + var()).span
    assert span.filename == __file__
    assert span.begin_column == -1


def test_logical_helpers_leave_operands_alone():
    a = var("a", ir.INT32)
    assert ir.not_(a).type.dtype is ir.BOOL
    assert ir.and_(a, a).left is a
    assert ir.neg(var(dtype=ir.BOOL)).type.dtype is ir.BOOL


def test_constants_check_their_values():
    assert ir.ConstInt(True, ir.INT64, S).value == 1
    for bad in (2**63, 1.5, None):
        with pytest.raises(TypeError):
            ir.ConstInt(bad, ir.INT64, S)
    with pytest.raises(TypeError):
        ir.ConstBool(1, S)
    with pytest.raises(TypeError, match=r"ConstFloat\.value must be an int or a float, got str"):
        ir.ConstFloat("1", ir.FP32, S)
    assert ir.ConstFloat(1, ir.FP32, S).value == 1.0


def test_equality_builds_a_node_and_hash_stays_identity():
    x, y = var(), var("y")
    assert isinstance(x == y, ir.Eq)
    assert {x: 1}[x] == 1 and y not in {x: 1}


def test_abstract_classes_cannot_be_instantiated():
    for cls in (ir.Expr, ir.BinaryExpr, ir.UnaryExpr, ir.Stmt, ir.Type, ir.ShapedType, ir.ScopeStmt):
        with pytest.raises(TypeError):
            cls()


def test_numbers_are_not_accepted_where_an_expression_is_needed():
    with pytest.raises(TypeError):
        ir.add(var(), 5)
    with pytest.raises(TypeError):
        ir.Add(var(), 5, ir.INT64, S)
    assert const(5).value == 5


def test_a_bool_operand_is_named_before_any_other_trouble():
    with pytest.raises(TypeError, match="does not accept bool dtype"):
        ir.add(var(dtype=ir.DataType.TASK_ID), var(dtype=ir.BOOL))


def test_operands_that_are_not_scalar_are_named_with_node_and_type():
    with pytest.raises(
        TypeError, match="Expression must be ScalarExpr or Var with ScalarType, got Var of type TensorType"
    ):
        ir.add(ir.Var("t", ir.TensorType([4], ir.FP32), S), var())
