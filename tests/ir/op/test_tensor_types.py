"""Type inference of tensor operators: element types, shapes, valid regions, views, errors."""

from __future__ import annotations

import warnings

import pytest

from pypto import ir
from pypto.ir.op import array, tensor_ops
from pypto.ir.op import tensor as T
from tests.ir.op.operands import NOWHERE, bound, extents, rejects, shape, symbol, tensor, tile, valid, window

DN = ir.TensorLayout.DN
M, N, n, k, m = (symbol(name) for name in "MNnkm")


def const(value: int) -> ir.ConstInt:
    return ir.ConstInt(value, ir.INDEX, NOWHERE)


def view(call: ir.Expr) -> ir.TensorView | None:
    return call.type.tensor_view  # type: ignore[attr-defined]


# -- element types -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "result"),
    [
        ("FP32", "FP32", "FP32"), ("INT32", "FP16", "FP16"), ("FP16", "FP32", "FP32"), ("INT8", "INT32",
        "INT32"),
        ("INT32", "UINT32", "INT32"), ("UINT32", "INT32", "INT32"), ("FP16", "BF16", "FP16"), ("BF16",
        "FP16", "BF16"),
        ("BOOL", "INT8", "INT8"),
    ],
)  # fmt: skip
def test_promotion_of_element_types(a: str, b: str, result: str) -> None:
    call = T.add(tensor([8, 8], getattr(ir, a)), tensor([8, 8], getattr(ir, b)))
    assert call.type.dtype is getattr(ir, result)


def test_int_literal_takes_the_tensor_dtype_and_its_node_kind() -> None:
    for dtype, node in ((ir.INT16, ir.ConstInt), (ir.FP16, ir.ConstFloat), (ir.FP32, ir.ConstFloat)):
        for literal in (5, ir.ConstInt(5, ir.INDEX, NOWHERE)):
            call = T.add(tensor([8], dtype), literal)
            scalar = call.args[1]
            assert isinstance(scalar, node) and scalar.dtype is dtype and call.type.dtype is dtype
            assert call.op.name == "tensor.adds"


def test_float_literal_on_ints_gives_fp32_and_typed_constants_stay() -> None:
    assert T.mul(tensor([8], ir.INT32), 2.5).type.dtype is ir.FP32
    source_float = ir.ConstFloat(2.0, ir.FP32, NOWHERE)
    half = tensor([8], ir.FP16)
    for build in (T.mul, T.add, T.div, T.fmod, T.maximum, T.cmp):
        if build is not T.div:
            assert build(half, source_float).type.dtype is ir.FP32
    assert T.sub(half, source_float).type.dtype is ir.FP16
    assert T.mul(half, 2.0).type.dtype is ir.FP16
    assert T.mul(half, ir.ConstFloat(2.0, ir.FP16, NOWHERE)).type.dtype is ir.FP16


def test_ints_meet_boolean_elements_as_fp32_in_arithmetic_and_as_int32_on_bits() -> None:
    flags = tensor([8], ir.BOOL)
    for build in (T.add, T.mul, T.fmod, T.maximum, T.minimum, T.cmp, T.expands, T.muls):
        call = build(flags, 2)
        scalar = call.args[1]
        assert isinstance(scalar, ir.ConstFloat) and scalar.value == 2.0
        assert scalar.dtype is ir.FP32 and call.type.dtype is ir.FP32
    rejects(lambda: T.ands(flags, 2), "integer tensor dtype", "bool")


def test_index_scalar_needs_a_cast() -> None:
    rejects(lambda: T.add(tensor([8], ir.INT16), n), "index", "pl.cast(<value>, pl.INT16)")
    rejects(
        lambda: T.mul(tensor([8]), n), "index", "pl.cast(<value>, pl.INT32), or pl.cast(<value>, pl.FP32)"
    )


def test_unary_dtype_rules() -> None:
    ints = tensor([8], ir.INT32)
    assert T.exp(ints).type.dtype is ir.FP32 and T.neg(ints).type.dtype is ir.INT32
    assert T.rsqrt(ints).type.dtype is ir.FP32 and T.abs(ints).type.dtype is ir.INT32
    rejects(lambda: T.sin(tensor([8], ir.FP16)), "tensor.sin", "FP32", "pl.cast")
    rejects(lambda: T.log(ints), "an FP16 or FP32", "int32")
    rejects(lambda: T.not_(tensor([8], ir.INT32)), "INT16 or UINT16")
    rejects(lambda: T.recip(ints, high_precision=True), "high_precision")
    for dtype in (ir.BF16, ir.INT32):
        assert T.rsqrt(tensor([8], dtype), True).kwargs == {"high_precision": True}


def test_division_takes_four_dtypes_and_a_tensor_for_high_precision() -> None:
    rejects(lambda: T.div(tensor([8], ir.INT8), tensor([8], ir.INT8)), "INT16, INT32, FP16, FP32")
    rejects(
        lambda: T.div(tensor([8], ir.INT32), tensor([8], ir.INT32), high_precision=True), "high_precision"
    )
    rejects(lambda: T.div(tensor([8]), 2, high_precision=True), "requires a Tensor rhs", error=TypeError)
    assert T.div(tensor([8]), tensor([8]), high_precision=True).kwargs == {"high_precision": True}


def test_subs_accepts_six_dtypes_on_both_sides() -> None:
    rejects(lambda: T.subs(tensor([8], ir.INT64), 1), "tensor.subs", "dtype")
    rejects(lambda: T.subs(tensor([8], ir.INT32), symbol("s", ir.UINT32)), "scalar dtype")


def test_compare_gives_the_promoted_dtype_and_checks_its_code() -> None:
    call = T.cmp(tensor([8], ir.FP16, valid=[4]), tensor([8], ir.FP16, valid=[4]), 4)
    assert call.type.dtype is ir.FP16 and valid(call) == [8] and call.kwargs == {"cmp_type": 4}
    rejects(lambda: T.cmp(tensor([8]), 0, cmp_type=9), "cmp_type")


def test_cast_modes_and_targets() -> None:
    x = tensor([16, 64], ir.FP32, valid=[n, 64])
    call = T.cast(x, ir.BF16, mode="rint")
    assert call.kwargs == {"target_type": ir.BF16, "mode": 1} and valid(call)[1] == 64
    assert T.cast(x, ir.BF16).kwargs["mode"] == 2 and T.cast(x, 0x13).kwargs["target_type"] is ir.INT32
    rejects(lambda: T.cast(x, ir.FP32), "same-dtype cast is not a valid operation")
    for mode in ("bogus", 7, True):
        rejects(lambda mode=mode: T.cast(x, ir.BF16, mode), "Invalid rounding mode")
    rejects(
        lambda: ir.create_op_call("tensor.cast", [x], {"target_type": ir.BF16}, NOWHERE),
        "requires a 'mode' kwarg",
    )


def test_bitwise_operators_need_integers_and_equal_shapes() -> None:
    a, b = tensor([8, 8], ir.INT16), tensor([8], ir.INT16)
    assert T.shl(a, tensor([8, 8], ir.INT32)).type.dtype is ir.INT16
    assert T.and_(a, tensor([8, 8], ir.INT32)).type.dtype is ir.INT32
    assert T.ands(a, -1).args[1].value == -1
    rejects(lambda: T.and_(a, b), "[8, 8]", "[8]")
    rejects(lambda: T.shls(a, -1), "non-negative")
    rejects(lambda: T.ors(tensor([8]), 1), "integer")


# -- shapes --------------------------------------------------------------------------------------------------


def test_broadcasting_is_right_aligned_and_errors_show_both_shapes() -> None:
    assert shape(T.add(tensor([4, 8]), tensor([8]))) == [4, 8]
    assert shape(T.add(tensor([4, 1]), tensor([1, 8]))) == [4, 8]
    rejects(lambda: T.add(tensor([4, 8]), tensor([3, 8])), "[4, 8]", "[3, 8]")
    rejects(lambda: T.add(tensor([M, 8]), tensor([N, 8])), "[M, 8]", "[N, 8]")
    assert T.add(tensor([M, 8]), tensor([M, 8])).type.shape[0] is M


def test_reductions_keep_the_axis() -> None:
    x = tensor([M, N])
    assert extents(T.row_max(x).type.shape)[1] == 1 and T.row_max(x).type.shape[0] is M
    assert extents(T.col_sum(x).type.shape)[0] == 1 and T.col_sum(x).type.shape[1] is N
    assert T.row_argmax(x).type.dtype is ir.INT32
    assert shape(T.row_sum(tensor([16]))) == [1]
    rejects(lambda: T.col_sum(tensor([16])), "requires at least a 2D tensor")
    assert isinstance(T.row_sum(tensor([16]), keep_dim=False).type, ir.ScalarType)
    rejects(lambda: T.row_min(tensor([4, 4], ir.BF16)), "INT16, INT32, FP16, FP32")


def test_reductions_use_the_valid_extent() -> None:
    assert valid(T.row_sum(tensor([16, 64], valid=[4, 30]))) == [4, 1]
    rejects(lambda: T.row_sum(tensor([16, 64], valid=[0, 64])), "input valid extent on axis 0 is 0")


def test_vector_expansion_checks_the_unit_axis() -> None:
    x = tensor([16, 64])
    assert shape(T.row_expand_mul(x, tensor([16, 1]))) == [16, 64]
    assert shape(T.col_expand_mul(x, tensor([1, 64]))) == [16, 64]
    rejects(lambda: T.row_expand_mul(x, tensor([1, 64])), "[..., M, 1]")
    rejects(lambda: T.col_expand_mul(x, tensor([16, 1])), "[..., 1, N]")
    rejects(lambda: T.row_expand_mul(x, tensor([8, 1])), "equal extents")
    rejects(lambda: T.row_expand_add(x, tensor([16, 1], ir.FP16)), "same dtype")
    rejects(lambda: T.row_expand_add(tensor([16, 64], ir.BF16), tensor([16, 1], ir.BF16)), "row_expand_add")


@pytest.mark.parametrize(
    ("a", "b", "result"),
    [
        ([4, 8], [8, 5], [4, 5]),
        ([8], [8], []),
        ([4, 8], [8], [4]),
        ([8], [8, 5], [5]),
        ([2, 4, 8], [8, 5], [2, 4, 5]),
    ],
)
def test_matmul_shapes(a: list[int], b: list[int], result: list[int]) -> None:
    assert shape(T.matmul(tensor(a), tensor(b))) == result


def test_matmul_transposition_dtype_and_errors() -> None:
    assert shape(T.matmul(tensor([64, 16]), tensor([64, 32]), a_trans=True)) == [16, 32]
    assert shape(T.matmul(tensor([16, 64]), tensor([32, 64]), b_trans=True)) == [16, 32]
    rejects(lambda: T.matmul(tensor([8]), tensor([8, 4]), a_trans=True), "a_trans does not apply to a 1D lhs")
    rejects(lambda: T.matmul(tensor([4, 8]), tensor([9, 4])), "lhs K=8 and rhs K=9")
    half = tensor([8, 8], ir.BF16)
    assert T.matmul(half, half).type.dtype is ir.BF16
    call = T.matmul(half, half, ir.FP32)
    assert call.type.dtype is ir.FP32
    assert list(call.kwargs) == ["a_trans", "b_trans", "c_matrix_nz", "out_dtype"]
    rejects(lambda: T.matmul(half, half, 0x34), "out_dtype", error=TypeError)


def test_matmul_acc_needs_the_accumulator_dtype_and_shape() -> None:
    half = tensor([8, 8], ir.BF16)
    acc = tensor([8, 8])
    assert T.matmul_acc(acc, half, half, init_cond=True).args[3].value is True
    rejects(lambda: T.matmul_acc(half, half, half), "accumulator dtype fp32")
    rejects(lambda: T.matmul_acc(tensor([4, 8]), half, half), "M=4")
    rejects(lambda: T.matmul_acc(acc, half, half, init_cond=n), "BOOL")
    batched = tensor([2, 8, 8], ir.BF16)
    rejects(lambda: T.matmul_acc(tensor([3, 8, 8]), batched, batched), "acc batch dim")


# -- windows and valid regions -------------------------------------------------------------------------------


def test_slice_keeps_the_available_extent() -> None:
    assert valid(T.slice(tensor([64, 64], valid=[20, 64]), [16, 64], [16, 0])) == [4, 64]
    call = T.slice(tensor([64, 64], valid=[n, 64]), [16, 64], [16, 0])
    assert valid(call)[0] == str(ir.min_(ir.max_(ir.sub(n, const(16)), const(0)), const(16)))
    clamped = T.slice(tensor([64]), [16], [n], clamp=True)
    assert isinstance(clamped.type.tensor_view.valid_shape[0], ir.Min) and clamped.kwargs == {"clamp": True}
    assert valid(T.slice(tensor([64]), [16], [56], clamp=True)) == [8]
    assert T.slice(tensor([N]), [64], [k], valid_shape=[n]).type.tensor_view.valid_shape[0] is n


def test_slice_errors() -> None:
    x = tensor([64, 64])
    rejects(lambda: T.slice(x, [16, 64], [56, 0]), "reads past the end of dimension 0", "clamp=True")
    rejects(lambda: T.slice(x, [16, 64], [-1, 0]), "provably negative")
    rejects(lambda: T.slice(x, [16, 64], [0, 0], valid_shape=[17, 64]), "exceeds the window extent")
    rejects(lambda: T.slice(x, [16, 64], [0, 0], valid_shape=[16]), "same rank")
    rejects(lambda: T.slice(x, [16, 64], [0]), "same rank")
    mx = tensor([64, 64], ir.FP8E8M0, layout=ir.TensorLayout.MX_A_ZZ)
    rejects(lambda: T.slice(mx, [16, 64], [0, 0]), "MX_A_ZZ")


def test_slice_drops_unit_axes() -> None:
    x = tensor([64, 64])
    call = T.slice(x, [1, 64], [n, 0], drop_dims=[0])
    assert shape(call) == [64] and len(call.args) == 5 and call.args[3].elements == []
    rejects(lambda: T.slice(x, [2, 64], [0, 0], drop_dims=[0]), "static unit dimension")
    rejects(lambda: T.slice(x, [1, 1], [0, 0], drop_dims=[0, 1]), "cannot erase every dimension")
    rejects(lambda: T.slice(x, [1, 64], [0, 0], valid_shape=[m, 64], drop_dims=[0]), "not provably 1")
    assert len(T.slice(x, [1, 64], [0, 0], drop_dims=[]).args) == 3


def test_slice_pad_is_metadata_and_warns_when_it_cannot_matter() -> None:
    with pytest.warns(UserWarning, match="pad_value has no effect") as caught:
        T.slice(tensor([64]), [16], [0], pad_value=0)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call = T.slice(tensor([64]), [16], [0], valid_shape=[8], pad_value=float("-inf"))
    assert view(call).pad is ir.PadValue.min  # type: ignore[union-attr]
    inherited = T.slice(bound(call), [8], [0])
    assert view(inherited).pad is ir.PadValue.min  # type: ignore[union-attr]


def test_slice_assemble_and_view_keep_the_distributed_kind() -> None:
    w = window([64, 64])
    for call in (T.slice(w, [16, 64], [0, 0]), T.assemble(w, tensor([16, 64]), [0, 0]), T.view(w, [4096])):
        assert isinstance(call.type, ir.DistributedTensorType)
    assert type(T.add(w, w).type) is ir.TensorType and type(T.exp(w).type) is ir.TensorType
    rejects(lambda: T.reshape(w, [4096]), "TensorType")


def test_assemble_unions_the_valid_regions() -> None:
    full, part = tensor([64, 128]), tensor([64, 128], valid=[20, 128])
    assert valid(T.assemble(full, tensor([16, 128], valid=[5, 128]), [0, 0])) == [64, 128]
    assert valid(T.assemble(part, tensor([12, 128]), [20, 0])) == [32, 128]
    assert valid(T.assemble(part, tensor([4, 128]), [3, 0])) == [20, 128]
    assert valid(T.assemble(part, tensor([32, 128]), [0, 0])) == [32, 128]
    empty = tensor([64, 128], valid=[0, 128])
    assert valid(T.assemble(empty, tensor([8, 128]), [0, 0])) == [8, 128]
    assert valid(T.assemble(part, tensor([8, 128], valid=[0, 128]), [40, 0])) == [20, 128]
    grown = T.assemble(tensor([64, 8], valid=[k, 8]), tensor([16, 8], valid=[m, 8]), [k, 0])
    assert valid(grown)[0] == str(ir.min_(ir.add(k, m), ir.ConstInt(64, ir.INDEX, NOWHERE)))


def test_assemble_errors() -> None:
    full, part = tensor([64, 128]), tensor([64, 128], valid=[20, 64])
    rejects(lambda: T.assemble(full, tensor([8, 128]), [60, 0]), "writes past the end of dimension 0")
    rejects(lambda: T.assemble(full, tensor([8, 128]), [-1, 0]), "provably negative")
    rejects(lambda: T.assemble(part, tensor([8, 8]), [20, 64]), "dimensions 0 and 1 at once")
    rejects(lambda: T.assemble(part, tensor([8, 64]), [24, 0]), "leaves a gap in dimension 0")
    rejects(lambda: T.assemble(part, tensor([8, 32]), [20, 32]), "must span dimension 1 from the origin")
    rejects(lambda: T.assemble(part, tensor([8, 32]), [20, 0]), "must provably equal the target valid extent")
    rejects(lambda: T.assemble(tensor([64], valid=[0]), tensor([8]), [8]), "does not start at the origin")
    rejects(lambda: T.assemble(tensor([8], ir.INT64), tensor([8], ir.INT64), [0], atomic=1), "int32")
    assert T.assemble(full, tensor([8, 128]), [0, 0], atomic=ir.AtomicType.Add).kwargs == {"atomic": 1}
    assert T.assemble(full, tensor([8, 128]), [0, 0]).kwargs == {}


def test_elementwise_carries_equal_valid_regions_only() -> None:
    a = tensor([16, 64], valid=[n, 64])
    assert T.add(a, a).type.tensor_view.valid_shape[0] is n
    assert view(T.add(a, tensor([16, 64]))) is None
    assert view(T.add(a, tensor([64]))) is None
    assert T.exp(a).type.tensor_view.valid_shape[0] is n
    assert view(T.part_add(a, a)) is None


# -- reshape, transpose, view --------------------------------------------------------------------------------


def test_reshape_maps_the_valid_region() -> None:
    rejects(lambda: T.reshape(tensor([4, 8]), [5, 5]), "cannot reshape tensor of size")
    rejects(lambda: T.reshape(tensor([4, 8]), [-1, 8]), "negative")
    assert valid(T.reshape(tensor([16, 64], valid=[5, 64]), [1024])) == [320]
    rejects(lambda: T.reshape(tensor([16, 64], valid=[16, 10]), [1024]), "scattered")
    assert valid(T.reshape(tensor([8, 16], valid=[5, 16]), [16, 8])) == [10, 8]
    assert valid(T.reshape(tensor([1, 8, 16], valid=[1, 8, 5]), [8, 16])) == [8, 5]
    assert valid(T.reshape(tensor([8, 16], valid=[8, 5]), [8, 1, 16])) == [8, 1, 5]
    assert valid(T.reshape(tensor([8, 16], valid=[0, 16]), [128])) == [0]
    rejects(lambda: T.reshape(tensor([8, 16], valid=[5, 16]), [2, 64]), "do not fill a whole number of rows")
    dynamic = T.reshape(tensor([8, 16], valid=[n, 16]), [8, 4, 4])
    assert valid(dynamic)[1:] == [4, 4] and dynamic.type.tensor_view.valid_shape[0] is n
    rejects(lambda: T.reshape(tensor([8, 16], valid=[n, 16]), [16, 8]), "has the matching row size")


def test_reshape_of_a_column_major_source_and_explicit_valid_shape() -> None:
    column = tensor([2, 3], valid=[1, 3], layout=DN)
    rejects(lambda: T.reshape(column, [6]), "not stored row-major")
    assert valid(T.reshape(tensor([64, 64]), [4096], [128])) == [128]
    rejects(lambda: T.reshape(tensor([16, 64], valid=[5, 64]), [1024], [321]), "source-derived extent")
    for unknown in (-1, n, ir.min_(n, const(1024))):
        rejects(lambda extent=unknown: T.reshape(tensor([16, 64]), [1024], [extent]), "must be provably >= 0")
    bounded = ir.max_(ir.min_(n, const(1024)), const(0))
    assert valid(T.reshape(tensor([16, 64]), [1024], [bounded])) == [str(bounded)]
    carried = T.reshape(tensor([16, 64], valid=[n, 64]), [1, 16, 64], [1, n, 64])
    assert carried.type.tensor_view.valid_shape[1] is n


def test_transpose_swaps_strides_and_toggles_the_layout() -> None:
    call = T.transpose(tensor([8, 16]), 0, 1)
    assert shape(call) == [16, 8] and view(call).layout is DN  # type: ignore[union-attr]
    assert extents(view(call).stride) == [1, 16]  # type: ignore[union-attr]
    inner = T.transpose(tensor([2, 3, 4]), 1, 2)
    assert view(inner).layout is DN and extents(view(inner).stride) == [12, 1, 4]  # type: ignore[union-attr]
    outer = T.transpose(tensor([2, 3, 4]), 0, 1)
    assert view(outer).layout is ir.TensorLayout.ND  # type: ignore[union-attr]
    assert extents(view(outer).stride) == [4, 12, 1]  # type: ignore[union-attr]
    assert view(T.transpose(bound(call), 0, 1)) is None
    symbolic = T.transpose(tensor([M, N]), -2, -1)
    assert extents(view(symbolic).stride[:1]) == [1] and view(symbolic).stride[1] is N  # type: ignore[union-attr]
    assert valid(T.transpose(tensor([8, 16], valid=[5, 16]), 0, 1)) == [16, 5]


def test_transpose_errors() -> None:
    x = tensor([8, 16])
    rejects(lambda: T.transpose(x, 0, 0), "distinct")
    rejects(lambda: T.transpose(x, 0, 2), "out of range")
    rejects(lambda: T.transpose(tensor([8]), 0, 0), "rank >= 2")
    rejects(lambda: T.transpose(x, n, 0), "axis1", error=TypeError)


def test_view_reinterprets_shape_or_layout() -> None:
    call = T.view(tensor([8, 4]), [4, 8])
    assert extents(view(call).stride) == [8, 1]  # type: ignore[union-attr]
    assert extents(view(T.view(tensor([64, 64]), [4096])).stride) == [1]  # type: ignore[union-attr]
    swapped = T.view(tensor([8, 4]), layout=DN)
    assert shape(swapped) == [4, 8] and extents(view(swapped).stride) == [1, 4]  # type: ignore[union-attr]
    assert extents(view(T.view(tensor([8, 4]), layout=ir.TensorLayout.ND)).stride) == [4, 1]  # type: ignore[union-attr]
    rejects(lambda: T.view(tensor([8, 4]), layout=ir.TensorLayout.NZ), "NZ layout is not allowed")
    rejects(lambda: T.view(tensor([8, 4]), [5]), "cannot reinterpret")
    rejects(lambda: T.view(tensor([8, 4])), "requires a shape or a layout")
    rejects(lambda: T.view(tensor([8, 4], valid=[2, 4]), [32]), "partial valid_shape")
    rejects(lambda: T.view(tensor([2, 4, 4]), [4, 8], [2, 8]), "leading-dimension collapse")
    assert valid(T.view(tensor([2, 4, 4], valid=[1, 4, 4]), [8, 4], [4, 4])) == [4, 4]


def test_reinterpret_view_scales_the_contiguous_axis() -> None:
    assert shape(T.reinterpret_view(tensor([8, 16]), ir.INT16)) == [8, 32]
    assert valid(T.reinterpret_view(tensor([8, 16], valid=[4, 12]), ir.INT16)) == [4, 24]
    rejects(lambda: T.reinterpret_view(tensor([8, 15], ir.INT16), ir.FP32), "not divisible by 2")
    rejects(lambda: T.reinterpret_view(tensor([8]), ir.FP32), "requires source and target dtypes to differ")
    strided = tensor([8, 8], stride=[16, 1])
    rejects(lambda: T.reinterpret_view(strided, ir.INT16), "only supports packed tensors")
    rejects(lambda: T.reinterpret_view(tensor([8, 16]), ir.INT16, shape=[8, 16]), "512", "256")


def test_set_validshape_bounds() -> None:
    assert T.set_validshape(tensor([16, 64]), n, 64).type.tensor_view.valid_shape[0] is n
    rejects(lambda: T.set_validshape(tensor([16, 64]), 17, 64), "exceeds tensor bound")
    rejects(lambda: T.set_validshape(tensor([16, 64]), -1, 64), "must be >= 0")
    rejects(lambda: T.set_validshape(tensor([16, 64]), symbol("i", ir.INT32), 64), "int32")


def test_fillpad_clears_validity_and_checks_its_value() -> None:
    x = tensor([16, 64], valid=[5, 64])
    assert view(T.fillpad(x)) is None
    assert T.fillpad(x, float("-inf")).kwargs == {"pad_value": ir.PadValue.min}
    assert T.fillpad(x, 0.0).kwargs == {"pad_value": ir.PadValue.zero}
    for value in (1, float("nan"), ir.PadValue.null):
        rejects(lambda value=value: T.fillpad(x, value), "fillpad pad_value")
    for value in (True, "zero", None):
        rejects(lambda value=value: T.fillpad(x, value), "fillpad pad_value", error=TypeError)
    rejects(lambda: T.fillpad_expand(x, [8, 64]), "must be >= source dimension")
    assert shape(T.fillpad_expand(x, [32, 64])) == [32, 64]


# -- creation, elements --------------------------------------------------------------------------------------


def test_create_and_full() -> None:
    call = T.create([4, M], ir.FP32, init_value=0)
    assert list(call.kwargs) == ["dtype", "layout", "init_value"] and call.kwargs["init_value"] == 0.0
    assert T.create([4], ir.FP32, layout=ir.TensorLayout.NZ).type.tensor_view.layout is ir.TensorLayout.NZ
    rejects(lambda: T.create([4], ir.FP32, init_value=float("nan")), "must be finite")
    rejects(lambda: T.create([4], ir.INT64, init_value=2**53 + 1), "2^53")
    for value in ("x", True, n):
        rejects(lambda value=value: T.create([4], ir.FP32, init_value=value), "init_value", error=TypeError)
    zero = T.full([4], ir.FP32, 0).args[1]
    assert isinstance(zero, ir.ConstInt) and zero.dtype is ir.FP32
    rejects(lambda: ir.create_op_call("tensor.full", [zero, zero], {"dtype": ir.FP32}, NOWHERE), "TupleType")


def test_ci_checks_shape_start_and_dtype() -> None:
    assert T.ci(0, [1, 64], ir.UINT32).args[0].dtype is ir.UINT32
    assert shape(T.arange(0, [64])) == [64]
    rejects(lambda: T.ci(0, [2, 64]), "leading dimensions must be 1")
    rejects(lambda: T.ci(0, [1, 1]), "innermost dimension")
    rejects(lambda: T.ci(0, [1, 64], ir.FP32), "INT16, INT32, UINT16, UINT32")
    rejects(lambda: T.ci(symbol("s", ir.INT64), [1, 64]), "start dtype int32")


def test_read_write_and_dim() -> None:
    x = tensor([8, 8])
    assert T.read(x, [n, 0]).type == ir.ScalarType(ir.FP32)
    assert T.read(tensor([8], ir.INT32), 3).args[1].elements[0].value == 3
    rejects(lambda: T.read(x, [0]), "indices count 1 must match tensor rank 2")
    rejects(lambda: T.read(x, [0, symbol("f", ir.FP32)]), "integer")
    assert T.write(x, [0, 0], 1.0).type is x.type
    rejects(lambda: T.write(x, [0, 0], 1), "value dtype to match tensor dtype fp32", "pl.const")
    assert T.dim(x, -1).type.dtype is ir.INDEX
    rejects(lambda: T.dim(x, 2), "out of range")
    rejects(lambda: T.dim(window([8]), 0), "TensorType")


# -- sort, gather, scatter -----------------------------------------------------------------------------------


def test_sorting() -> None:
    indices = tensor([1, 64], ir.UINT32)
    assert shape(T.sort32(tensor([1, 64]), indices)) == [1, 128]
    rejects(lambda: T.sort32(tensor([1, 64]), tensor([1, 64], ir.INT32)), "UINT32")
    rejects(lambda: T.sort32(tensor([1, 33]), tensor([1, 33], ir.UINT32)), "multiple of 32")
    runs = tensor([1, 1024])
    assert T.mrgsort(runs, block_len=64).args[1].dtype is ir.INT32
    assert shape(T.mrgsort(tensor([1, 64]), tensor([1, 128]))) == [1, 192]
    rejects(lambda: T.mrgsort(runs, runs, block_len=64), "mutually exclusive")
    rejects(lambda: T.mrgsort(runs), "block_len")
    rejects(lambda: T.mrgsort(runs, runs, None, runs), "src3")
    rejects(lambda: T.mrgsort(runs, block_len=32), "positive multiple of 64")


def test_gather_forms() -> None:
    x = tensor([4, 128])
    assert shape(T.gather(x, mask_pattern=1)) == [4, 64]
    assert T.gather(x, mask_pattern=2, output_dtype=ir.INT32).type.dtype is ir.INT32
    assert shape(T.gather(x, mask_pattern=3)) == [4, 32] and shape(T.gather(x, mask_pattern=7)) == [4, 128]
    assert shape(T.gather(x, -1, tensor([2, 16], ir.INT32))) == [2, 16]
    compared = T.gather(x, kvalue=0.5, cmp_mode="gt", out_cols=8)
    assert isinstance(compared.type, ir.TupleType) and compared.kwargs["cmp_mode"] == 4
    assert extents(compared.type.types[0].shape) == [4, 8] and extents(compared.type.types[1].shape) == [1, 4]
    rejects(lambda: T.gather(x, mask_pattern=1, kvalue=0.5), "mutually exclusive")
    rejects(lambda: T.gather(x, mask_pattern=8), "[1, 7]")
    rejects(lambda: T.gather(tensor([4, 127]), mask_pattern=1), "not divisible by 2")
    rejects(lambda: T.gather(x, -1, tensor([2, 16], ir.INT32), output_dtype=ir.INT32), "output_dtype")
    rejects(lambda: T.gather(x, -1, tensor([2, 16], ir.INT16)), "16-bit src")
    rejects(lambda: T.gather(x, -1, tensor([5, 16], ir.INT32)), "exceeds input extent")


def test_gather_row_window_may_overhang_its_target() -> None:
    acc, pool = tensor([16, 32]), tensor([1024, 32])
    call = T.gather_row(acc, pool, [12, 0], [n, 0], [16, 32], valid_shape=[3, 32])
    assert call.type is acc.type and call.kwargs == {"transpose": False} and len(call.args) == 6
    rejects(lambda: T.gather_row(acc, pool, [0, 0], [0, 0], [n, 32]), "compile-time constant")
    rejects(
        lambda: T.gather_row(acc, pool, [0, 0], [0, 0], [4, 32], valid_shape=[5, 32]),
        "provably exceeds physical shape extent",
    )
    rejects(lambda: T.gather_row(acc, pool, [0, 0], [0, 0], [4, 32], True, valid_shape=[n, 32]), "transpose")
    rejects(lambda: T.gather_row(acc, tensor([8, 32], ir.FP16), [0, 0], [0, 0], [4, 32]), "share dtype")


def test_scatter_forms() -> None:
    x, source = tensor([4, 64]), tensor([4, 16])
    assert shape(T.scatter(x, -1, tensor([4, 16], ir.INT32), source)) == [4, 64]
    assert shape(T.scatter(source, mask_pattern=3, dst=x)) == [4, 64]
    rejects(lambda: T.scatter(source, mask_pattern=1, dst=x), "mask_pattern=1")
    rejects(lambda: T.scatter(x), "mutually exclusive")
    rejects(lambda: T.scatter(x, -1, tensor([4, 16], ir.INT16), source), "requires indexes dtype int32")
    index = tensor([1, 2], ir.INT32)
    for build in (
        lambda: T.scatter_update(x, -2, index, tensor([2, 64])),
        lambda: T.scatter_update(x, index, tensor([2, 64]), dim=-2),
        lambda: T.scatter_update(x, -2, index=index, src=tensor([2, 64])),
    ):
        assert build().kwargs == {"dim": -2}
    rejects(lambda: T.scatter_update(x, index), "scatter_update", error=TypeError)
    rejects(lambda: T.scatter_update(x, -1, index, tensor([2, 64])), "dim=-2")


def test_concat_and_expands() -> None:
    assert shape(T.concat(tensor([4, 8]), tensor([4, 16]))) == [4, 24]
    assert str(T.concat(tensor([4, 8]), tensor([4, N])).type.shape[1]) == "8 + N"
    rejects(lambda: T.concat(tensor([4, 8]), tensor([5, 8])), "row count must match")
    rejects(lambda: T.concat(tensor([4, 8]), tensor([4, 8], ir.FP16)), "same dtype")
    assert T.expands(tensor([4, 8], ir.INT32), 1.5).type.dtype is ir.FP32


def test_split_region_types() -> None:
    assert shape(T.aiv_shard(tensor([15, 64]), split=1)) == [8, 64]
    assert shape(T.aic_gather(tensor([16, 64]), split=2)) == [16, 128]
    assert shape(T.aiv_shard(tensor([2, 3, 4]), split=0)) == [2, 3, 4]
    rejects(lambda: T.aiv_shard(tensor([2, 3, 4]), split=1), "2D tensor")
    rejects(lambda: T.aiv_shard(window([4, 4]), split=1), "non-distributed")
    rejects(lambda: T.aiv_shard(tensor([4, 4]), split=3), "split must be")
    rejects(lambda: T.aiv_shard(tile([4, 4]), split=1), "TensorType")


# -- arrays --------------------------------------------------------------------------------------------------


def test_arrays() -> None:
    call = array.create(4, ir.INT32)
    a = bound(call)
    assert call.type.extent.value == 4 and array.get_element(a, n).type.dtype is ir.INT32
    assert array.update_element(a, n, 5).type is a.type
    rejects(lambda: array.create(n, ir.INT32), "must be a compile-time ConstInt")
    rejects(lambda: array.create(0, ir.INT32), "must be positive")
    rejects(lambda: array.create(4, ir.FP32), "ArrayType element dtype")
    rejects(lambda: array.update_element(a, 0, symbol("s", ir.INT64)), "int32")


# -- spans ---------------------------------------------------------------------------------------------------


def test_span_is_the_callers_line_unless_given_or_pinned() -> None:
    from pypto.ir.utils import use_parser_span

    x = tensor([8])
    call = T.exp(x)
    assert call.span.filename == __file__ and call.span.begin_column == -1
    assert T.cast(x, ir.BF16).span.filename == __file__ and T.add(x, 1).span.filename == __file__
    here = ir.Span("p.py", 3, 1)
    assert T.exp(x, here).span is here
    with use_parser_span(here):
        assert T.exp(x).span is here and T.add(x, 2).args[1].span is here


def test_aliases_are_the_same_functions() -> None:
    assert tensor_ops.create_tensor is tensor_ops.create and tensor_ops.arange is tensor_ops.ci
    from pypto.ir.op import tensor as by_level

    assert by_level is tensor_ops


def test_operands_of_partial_operators_are_named_as_those_of_other_pairs() -> None:
    x = tensor([4, 8])
    for build in (T.part_add, T.part_mul, T.part_max, T.part_min):
        assert build(lhs=x, rhs=x).args[1] is x
