"""The numeric meaning of operators: values worked out by hand or by plain numpy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pypto import ir
from pypto.ir.evaluate import Value, evaluate_call
from pypto.ir.op import tensor as T
from pypto.ir.op import tile as L
from tests.ir.op.operands import symbol, tensor, tile

RNG = np.random.default_rng(0)
BF16 = ml_dtypes.bfloat16


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def run(call: ir.Call, *operands: Any) -> Any:
    return evaluate_call(call, [Value.of(o) if isinstance(o, np.ndarray) else o for o in operands])


# -- casts ---------------------------------------------------------------------------------------------------

MODES: dict[str, list[int]] = {
    "rint": [2, 2, -2, -2, 0, 4],
    "round": [3, 2, -3, -2, 1, 4],
    "floor": [2, 1, -3, -2, 0, 3],
    "ceil": [3, 2, -2, -1, 1, 4],
    "trunc": [2, 1, -2, -1, 0, 3],
    "none": [2, 1, -2, -1, 0, 3],
    "odd": [3, 1, -3, -1, 1, 4],
}


@pytest.mark.parametrize("mode", MODES)
def test_cast_rounding_modes(mode: str) -> None:
    source = np.array([[2.5, 1.5, -2.5, -1.5, 0.5, 3.75]], np.float32)
    call = L.cast(tile([1, 6]), ir.INT32, mode=mode)
    assert run(call, source).data[0].tolist() == MODES[mode]


def test_cast_saturates_except_for_the_wrapping_pairs() -> None:
    source = np.array([[3e9, -3e9, np.nan, np.inf, -np.inf]], np.float32)
    saturated = run(L.cast(tile([1, 5]), ir.INT32), source).data[0]
    assert saturated.tolist() == [2**31 - 1, -(2**31), 0, 2**31 - 1, -(2**31)]
    assert run(L.cast(tile([1, 1]), ir.INT16), np.array([[65537.0]], np.float32)).data[0, 0] == 1
    assert run(L.cast(tile([1, 1]), ir.INT8), np.array([[300.0]], np.float32)).data[0, 0] == 127
    wrapped = run(L.cast(tile([1, 1], ir.FP16), ir.INT8), np.array([[300.0]], np.float16))
    assert wrapped.data[0, 0] == 44


@pytest.mark.parametrize(
    ("mode", "wanted"),
    [
        ("rint", [1.0, 1.015625, -1.015625, 1.0]),
        ("round", [1.0, 1.015625, -1.015625, 1.0]),
        ("none", [1.0, 1.015625, -1.015625, 1.0]),
        ("floor", [1.0, 1.0078125, -1.015625, 1.0]),
        ("ceil", [1.0078125, 1.015625, -1.0078125, 1.0]),
        ("trunc", [1.0, 1.0078125, -1.0078125, 1.0]),
        ("odd", [1.0078125, 1.0078125, -1.0078125, 1.0]),
    ],
)
def test_narrowing_floats_rounds_to_nearest_even_or_in_a_direction(mode: str, wanted: list[float]) -> None:
    source = np.array([[1.00390625, 1.01171875, -1.01171875, 1.0]], np.float32)  # ties between neighbours
    result = run(L.cast(tile([1, 4]), ir.BF16, mode=mode), source).data
    assert result.dtype == BF16 and result.astype(np.float32)[0].tolist() == wanted


def test_narrowing_ints_wrap() -> None:
    assert run(L.cast(tile([1, 1], ir.INT32), ir.INT8), np.array([[300]], np.int32)).data[0, 0] == 44


# -- elementwise ---------------------------------------------------------------------------------------------


def test_sixteen_bit_floats_compute_in_fp32_and_round_once() -> None:
    x, v = floats(8, 16).astype(BF16), floats(8, 1).astype(BF16)
    call = L.row_expand_expdif(tile([8, 16], ir.BF16), tile([8, 1], ir.BF16))
    wanted = np.exp(x.astype(np.float32) - v.astype(np.float32)).astype(BF16)
    assert (run(call, x, v).data == wanted).all()


def test_integers_wrap_and_divide_toward_zero() -> None:
    x = np.array([[32767, -7]], np.int16)
    assert run(L.add(tile([1, 2], ir.INT16), 1), x).data[0].tolist() == [-32768, -6]
    assert run(L.divs(tile([1, 2], ir.INT16), 2), x).data[0].tolist() == [16383, -3]


def test_a_float_scalar_on_an_int_tile_truncates_first() -> None:
    assert run(L.mul(tile([1, 1], ir.INT32), 2.9), np.array([[10]], np.int32)).data[0, 0] == 20


def test_subtraction_of_a_column_keeps_its_sides() -> None:
    column, matrix = floats(4, 1), floats(4, 8)
    np.testing.assert_array_equal(
        run(T.sub(tensor([4, 1]), tensor([4, 8])), column, matrix).data, column - matrix
    )


def test_compare_at_tensor_level_gives_numbers_and_at_tile_level_bits() -> None:
    x = floats(4, 33)
    ones = run(T.cmp(tensor([4, 33]), 0.0, 4), x)
    np.testing.assert_array_equal(ones.data, (x > 0).astype(np.float32))
    mask = run(L.cmps(tile([4, 33]), 0.0, 4), x)
    assert mask.data.shape == (4, 32) and mask.valid == (4, 5)
    assert mask.data[0, 0] == sum(1 << i for i in range(8) if x[0, i] > 0)
    chosen = L.sel(tile([4, 32], ir.UINT8), tile([4, 33]), tile([4, 33]), tile([4, 33]))
    np.testing.assert_array_equal(
        evaluate_call(chosen, [mask, Value.of(x), Value.of(-x), None]).data, np.abs(x)
    )


def test_partial_operators_copy_where_one_side_is_valid() -> None:
    a, b = floats(4, 8), floats(4, 8)
    call = L.part_add(tile([4, 8]), tile([4, 8], valid=[2, 8]))
    result = evaluate_call(call, [Value.of(a), Value.of(b, valid=[2, 8])])
    np.testing.assert_array_equal(result.data[:2], a[:2] + b[:2])
    np.testing.assert_array_equal(result.data[2:], a[2:])


def test_partial_operator_of_a_repeated_operand_is_valid_where_its_result_is() -> None:
    row, matrix = floats(8), floats(4, 8)
    total = run(T.part_add(tensor([8]), tensor([4, 8])), row, matrix)
    assert total.valid == (4, 8) and np.array_equal(total.data, row + matrix)


def test_result_keeps_the_first_operands_valid_region() -> None:
    call = L.add(tile([4, 8], valid=[3, 8]), tile([4, 8]))
    assert evaluate_call(call, [Value.of(floats(4, 8), valid=[3, 8]), Value.of(floats(4, 8))]).valid == (3, 8)
    stretched = L.add(tile([1, 8]), tile([4, 8]))
    assert run(stretched, floats(1, 8), floats(4, 8)).valid == (4, 8)


def test_packed_vector_of_row_expand_add_repeats_across_the_columns() -> None:
    x, v = floats(8, 32), floats(8, 8)
    call = L.row_expand_add(tile([8, 32]), tile([8, 8]))
    np.testing.assert_array_equal(run(call, x, v).data, x + np.tile(v, 4))


# -- reductions and products ---------------------------------------------------------------------------------


def test_reductions_skip_padding() -> None:
    x = floats(4, 8)
    scratch = tile([4, 8])
    partial = Value.of(x, valid=[3, 5])
    total = evaluate_call(L.row_sum(tile([4, 8], valid=[3, 5]), scratch), [partial, None])
    np.testing.assert_allclose(total.region[:, 0], x[:3, :5].sum(axis=1), rtol=1e-6)
    index = evaluate_call(L.row_argmax(tile([4, 8], valid=[3, 5]), scratch), [partial, None])
    assert index.region[:, 0].tolist() == x[:3, :5].argmax(axis=1).tolist()
    np.testing.assert_array_equal(run(T.col_max(tensor([4, 8])), x).data, x.max(axis=0, keepdims=True))


def test_matrix_products() -> None:
    a, b = floats(4, 8).astype(BF16), floats(8, 3).astype(BF16)
    exact = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_array_equal(
        run(L.matmul(tile([4, 8], ir.BF16), tile([8, 3], ir.BF16)), a, b).data, exact
    )
    rounded = run(T.matmul(tensor([4, 8], ir.BF16), tensor([8, 3], ir.BF16)), a, b)
    assert (rounded.data == exact.astype(BF16)).all()
    flipped = T.matmul(tensor([8, 4]), tensor([3, 8]), None, True, True)
    x, y = floats(8, 4), floats(3, 8)
    np.testing.assert_allclose(run(flipped, x, y).data, x.T @ y.T, rtol=1e-5)
    narrow = L.matmul(tile([4, 8], valid=[4, 5]), tile([8, 3]))
    result = evaluate_call(narrow, [Value.of(floats(4, 8), valid=[4, 5]), Value.of(floats(8, 3))])
    assert result.valid == (4, 3)


def test_accumulation_and_its_initial_condition() -> None:
    a, b, acc = floats(4, 8), floats(8, 3), floats(4, 3)
    call = L.matmul_acc(tile([4, 3]), tile([4, 8]), tile([8, 3]), init_cond=symbol("c", ir.BOOL))
    np.testing.assert_allclose(run(call, acc, a, b, False).data, acc + a @ b, rtol=1e-5)
    np.testing.assert_allclose(run(call, acc, a, b, True).data, a @ b, rtol=1e-5)


def test_products_of_two_types_sum_in_the_promoted_one() -> None:
    counts, weights = np.array([[2, 4]], np.int32), np.array([[0.5], [1.5]], np.float16)
    call = T.matmul(tensor([1, 2], ir.INT32), tensor([2, 1], ir.FP16))
    assert run(call, counts, weights).data.tolist() == [[7.0]]


def test_integer_products_sum_in_int32() -> None:
    a, b = np.full((1, 64), 127, np.int8), np.full((64, 1), 127, np.int8)
    result = run(L.matmul(tile([1, 64], ir.INT8), tile([64, 1], ir.INT8)), a, b)
    assert result.data.dtype == np.int32 and result.data[0, 0] == 64 * 127 * 127


# -- moves ---------------------------------------------------------------------------------------------------


def test_load_zero_fills_what_lies_outside() -> None:
    x = floats(100, 8)
    result = run(L.load(tensor([100, 8]), [64, 0], [64, 8], clamp=True), x)
    assert result.valid == (36, 8) and not result.data[36:].any()
    np.testing.assert_array_equal(result.data[:36], x[64:])


def test_store_moves_the_valid_cells_and_converts() -> None:
    out, cells = floats(8, 4).astype(BF16), floats(4, 4)
    call = L.store(tile([4, 4], valid=[2, 4]), [5, 0], tensor([8, 4], ir.BF16))
    result = evaluate_call(call, [Value.of(cells, valid=[2, 4]), None, Value.of(out)])
    assert (result.data[5:7] == cells[:2].astype(BF16)).all()
    assert (result.data[:5] == out[:5]).all() and (result.data[7:] == out[7:]).all()
    added = evaluate_call(
        L.store(tile([4, 4]), [0, 0], tensor([8, 4]), atomic=1),
        [Value.of(cells), None, Value.of(floats(8, 4) * 0 + 1)],
    )
    np.testing.assert_allclose(added.data[:4], cells + 1, rtol=1e-6)


def test_reshape_maps_cells_and_region() -> None:
    x = floats(8, 16)
    call = L.reshape(tile([8, 16], valid=[5, 16]), [16, 8])
    result = evaluate_call(call, [Value.of(x, valid=[5, 16])])
    assert result.valid == (10, 8)
    np.testing.assert_array_equal(result.data, x.reshape(16, 8))


@pytest.mark.parametrize(
    ("dtype", "pad", "cell"),
    [
        (ir.FP32, "min", -np.inf), (ir.FP32, "max", np.inf), (ir.FP32, "zero", 0), (ir.INT16, "min", -32768),
        (ir.INT16, "max", 32767),
    ],
)  # fmt: skip
def test_fillpad_cells(dtype: ir.DataType, pad: str, cell: float) -> None:
    call = L.fillpad(tile([4, 4], dtype, valid=[3, 2]), ir.PadValue[pad])
    result = evaluate_call(call, [Value.of(np.ones((4, 4)), dtype, [3, 2])])
    assert result.valid == (4, 4) and (result.data[:3, :2] == 1).all()
    assert (result.data[3:] == cell).all() and (result.data[:, 2:] == cell).all()


def test_gather_row_touches_only_the_narrowed_window() -> None:
    acc, pool = np.zeros((16, 32), np.float32), floats(64, 32)
    call = T.gather_row(tensor([16, 32]), tensor([64, 32]), [12, 0], [7, 0], [16, 32], valid_shape=[3, 32])
    result = run(call, acc, pool)
    np.testing.assert_array_equal(result.data[12:15], pool[7:10])
    assert not result.data[:12].any() and not result.data[15:].any()


def test_scatter_mask_spreads_columns_and_keeps_the_others() -> None:
    target, source = np.ones((2, 8), np.float32), floats(2, 4)
    result = run(L.scatter_mask(tile([2, 8]), tile([2, 4]), 2), target, source).data
    np.testing.assert_array_equal(result[:, 1::2], source)
    assert (result[:, 0::2] == 1).all()


def test_scatter_update_takes_the_last_of_repeated_rows() -> None:
    call = T.scatter_update(tensor([4, 2]), -2, tensor([1, 3], ir.INT32), tensor([3, 2]))
    rows = np.array([[1, 2, 1]], np.int32)
    source = np.arange(6, dtype=np.float32).reshape(3, 2)
    result = run(call, np.zeros((4, 2), np.float32), rows, source).data
    assert result[1].tolist() == [4, 5] and result[2].tolist() == [2, 3]


def test_sorting_two_thousand_values() -> None:
    values = floats(1, 2048)
    index = np.arange(2048, dtype=np.uint32).reshape(1, 2048)
    records = run(L.sort32(tile([1, 2048]), tile([1, 2048], ir.UINT32)), values, index).data
    runs = tile([1, 4096])
    for block in (64, 256, 1024):
        records = run(L.mrgsort(runs, block_len=block), records).data
    best = run(L.gather_mask(runs, 1), records).data[0]
    ids = run(L.gather_mask(runs, 2, output_dtype=ir.UINT32), records).data[0]
    np.testing.assert_array_equal(best, np.sort(values[0])[::-1])
    np.testing.assert_array_equal(values[0][ids], best)


def test_generators() -> None:
    assert run(L.ci(5, [1, 4], descending=True)).data[0].tolist() == [5, 4, 3, 2]
    np.testing.assert_array_equal(run(L.tri(0, [4, 4])).data, np.tril(np.ones((4, 4), np.int32)))
    np.testing.assert_array_equal(run(L.tri(1, [4, 4], upper=True)).data, np.triu(np.ones((4, 4)), 1))
    assert (run(L.full([2, 3], ir.BF16, 1.5)).data == BF16(1.5)).all()
    assert run(T.read(tensor([4]), [2]), np.arange(4, dtype=np.float32)) == 2


def test_operator_without_a_meaning_is_refused_by_name() -> None:
    with pytest.raises(NotImplementedError, match=r"tile\.tpush_to_aic"):
        run(L.tpush_to_aic(tile([8, 8]), split=0), floats(8, 8))
    with pytest.raises(NotImplementedError, match="get_block_idx"):
        run(L.get_block_idx())
