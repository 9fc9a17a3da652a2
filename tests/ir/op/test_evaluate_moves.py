"""The numeric meaning of operators that move cells."""

from __future__ import annotations

from typing import Any

import numpy as np

from pypto import ir
from pypto.ir.evaluate import Value, evaluate_call
from pypto.ir.op import tensor as T
from pypto.ir.op import tile as L
from tests.ir.op.operands import Mat, bound, symbol, tensor, tile

RNG = np.random.default_rng(1)
X = RNG.standard_normal((8, 16)).astype(np.float32)


def run(call: ir.Call, *operands: Any) -> Any:
    return evaluate_call(call, [Value.of(o) if isinstance(o, np.ndarray) else o for o in operands])


def same(result: Value, wanted: Any) -> None:
    np.testing.assert_array_equal(result.data, wanted)


def test_windows() -> None:
    n = symbol("n")
    same(run(L.slice(tile([8, 16]), [4, 8], [2, 4]), X), X[2:6, 4:12])
    same(run(L.slice(tile([8, 16]), [1, 16], [3, 0], drop_dims=[0]), X), X[3:4])
    same(run(T.slice(tensor([8, 16]), [1, 8], [n, 0], drop_dims=[0]), X, None, (5, 0)), X[5, :8])
    same(run(L.extract(tile([8, 16], space=Mat), n, 0, [4, 8], target_memory=Mat), X, 2), X[2:6, :8])
    narrowed = T.slice(tensor([8, 16]), [4, 16], [0, 0], valid_shape=[2, 16])
    assert run(narrowed, X).valid == (2, 16)
    partial = evaluate_call(
        T.slice(tensor([8, 16], valid=[5, 16]), [4, 16], [4, 0]), [Value.of(X, valid=[5, 16])]
    )
    assert partial.valid == (1, 16) and not partial.data[1:].any()


def test_assemble_writes_only_valid_cells_and_grows_the_region() -> None:
    target, source = np.zeros((8, 16), np.float32), X[:4]
    call = L.assemble(tile([8, 16], valid=[4, 16]), tile([4, 16], valid=[2, 16]), [4, 0])
    result = evaluate_call(call, [Value.of(target, valid=[4, 16]), Value.of(source, valid=[2, 16])])
    assert result.valid == (6, 16)
    same(Value.of(result.data[4:6]), source[:2])
    assert not result.data[6:].any()
    whole = run(
        T.assemble(tensor([2, 8, 16]), tensor([8, 16]), [1, 0, 0]), np.zeros((2, 8, 16), np.float32), X
    )
    same(Value.of(whole.data[1]), X)


def test_empty_writes_change_nothing() -> None:
    call = L.assemble(tile([8, 16]), tile([4, 16], valid=[0, 16]), [4, 0])
    same(evaluate_call(call, [Value.of(X), Value.of(X[:4], valid=[0, 16])]), X)


def test_shape_changes() -> None:
    same(run(T.transpose(tensor([8, 16]), 0, 1), X), X.T)
    same(run(L.transpose(tile([8, 16]), -1, -2), X), X.T)
    view = evaluate_call(L.transpose_view(tile([8, 16], valid=[5, 16])), [Value.of(X, valid=[5, 16])])
    assert view.valid == (16, 5)
    same(view, X.T)
    same(run(T.view(tensor([8, 16]), [128]), X), X.reshape(128))
    same(run(L.concat(tile([8, 16]), tile([8, 16])), X, X), np.concatenate([X, X], axis=1))
    assert evaluate_call(
        L.reshape(tile([8, 16], valid=[0, 16]), [128, 1]), [Value.of(X, valid=[0, 16])]
    ).valid == (0, 0)
    bits = run(L.reinterpret_view(tile([8, 16]), ir.INT16), X)
    same(bits, X.view(np.int16))
    half = evaluate_call(
        L.reinterpret_view(tile([8, 16], valid=[8, 4]), ir.INT16), [Value.of(X, valid=[8, 4])]
    )
    assert half.valid == (8, 8)
    assert run(L.set_validshape(tile([8, 16]), 3, 4), X).valid == (3, 4)
    same(run(L.move(tile([8, 16]), Mat), X), X)


def test_expanding_pad_keeps_the_valid_rectangle() -> None:
    call = L.fillpad_expand(tile([8, 16], valid=[5, 16]), [10, 16], ir.PadValue.max)
    result = evaluate_call(call, [Value.of(X, valid=[5, 16])])
    same(Value.of(result.data[:5]), X[:5])
    assert np.isposinf(result.data[5:]).all()


def test_elements() -> None:
    written = run(L.write(tile([8, 16]), [1, 2], 7.0), X)
    assert written.data[1, 2] == 7 and run(L.read(tile([8, 16]), [1, 2]), X) == X[1, 2]
    assert run(T.dim(tensor([8, 16]), 1), X) == 16


def test_indexed_gather_and_scatter() -> None:
    index = RNG.integers(0, 16, (4, 5)).astype(np.int32)
    same(
        run(T.gather(tensor([8, 16]), -1, tensor([4, 5], ir.INT32)), X, index),
        np.take_along_axis(X[:4], index, 1),
    )
    flat = np.array([[0, 17, 999]], np.int32)
    picked = run(L.gather(tile([8, 16]), tile([1, 3], ir.INT32), tile([8, 16])), X, flat, None)
    assert picked.data[0].tolist() == [X[0, 0], X[1, 1], 0]
    where = np.array([[3, 0]], np.int32)
    scattered = run(
        T.scatter(tensor([8, 16]), -1, tensor([1, 2], ir.INT32), tensor([1, 2])), X, where, X[:1, :2]
    )
    assert scattered.data[0, 3] == X[0, 0] and scattered.data[0, 0] == X[0, 1]
    flat_scatter = L.scatter(tile([8, 16]), tile([1, 2]), tile([1, 2], ir.INT32))
    result = run(flat_scatter, X, X[:1, :2], np.array([[20, 21]], np.int32))
    assert result.data[1, 4] == X[0, 0] and result.data[1, 5] == X[0, 1]
    spread = run(T.scatter(tensor([8, 8]), mask_pattern=1, dst=tensor([8, 16])), X[:, :8], X)
    same(Value.of(spread.data[:, 0::2]), X[:, :8])
    same(Value.of(spread.data[:, 1::2]), X[:, 1::2])


def test_compared_gather_lists_columns_and_counts() -> None:
    matches, counts = evaluate_call(
        T.gather(tensor([8, 16]), kvalue=0.0, cmp_mode="gt", out_cols=16, offset=100), [Value.of(X), None]
    )
    for row in range(8):
        wanted = np.nonzero(X[row] > 0)[0] + 100
        assert counts.data[0, row] == len(wanted)
        assert matches.data[row, : len(wanted)].tolist() == wanted.tolist()


def test_transposed_row_gather() -> None:
    call = T.gather_row(tensor([16, 16]), tensor([8, 16]), [0, 0], [0, 0], [4, 16], True)
    same(Value.of(run(call, np.zeros((16, 16), np.float32), X).data[:, :4]), X[:4].T)


def test_merging_sorted_lists() -> None:
    values = RNG.standard_normal((1, 64)).astype(np.float32)
    index = np.arange(64, dtype=np.uint32).reshape(1, 64)
    records = run(L.sort32(tile([1, 64]), tile([1, 64], ir.UINT32)), values, index).data
    first, second = records[:, :64], records[:, 64:]
    merged = run(L.mrgsort(tile([1, 64]), tile([1, 64]), tmp=tile([1, 128])), first, second, None)
    same(Value.of(merged.data[:, 0::2]), np.sort(values)[:, ::-1])


def test_vector_products_of_one_row() -> None:
    row, matrix = X[:1], RNG.standard_normal((16, 4)).astype(np.float32)
    call = L.gemv(tile([1, 16]), tile([16, 4]))
    result = run(call, row, matrix)
    np.testing.assert_allclose(result.data[:1], row @ matrix, rtol=1e-5)
    assert result.valid == (1, 4) and bound(call).type is call.type
    bias = RNG.standard_normal((1, 4)).astype(np.float32)
    biased = run(L.matmul_bias(tile([8, 16]), tile([16, 4]), tile([1, 4])), X, matrix, bias)
    np.testing.assert_allclose(biased.data, X @ matrix + bias, rtol=1e-5)
    batch = np.stack([X, X])
    product = run(T.matmul(tensor([2, 8, 16]), tensor([16, 4])), batch, matrix)
    np.testing.assert_allclose(product.data, batch @ matrix, rtol=1e-5)
    vector = run(T.matmul(tensor([16]), tensor([16])), X[0], X[1])
    np.testing.assert_allclose(vector.data, X[0] @ X[1], rtol=1e-5)


def test_reduction_of_a_vector_to_a_scalar() -> None:
    call = T.row_max(tensor([16]), keep_dim=False)
    assert run(call, X[0]) == X[0].max()
    same(run(T.row_max(tensor([8, 16]), keep_dim=False), X), X.max(axis=1))


def test_paged_gather_goes_through_the_block_table() -> None:
    pool = RNG.standard_normal((32, 16)).astype(np.float32)
    index, table = np.array([3, 9, 0], np.int32), np.array([2, 0, 1, 3], np.int32)
    operands = tensor([32, 16]), tensor([3], ir.INT32), tensor([4], ir.INT32)
    call = T.paged_gather(*operands, 8, 4, 3, col_off=2)
    same(run(call, pool, index, table), pool[[19, 1, 16], 2:6])
    turned = T.paged_gather(*operands, 8, 4, 3, is_trans=True)
    same(run(turned, pool, index, table), pool[[19, 1, 16], :4].T)
