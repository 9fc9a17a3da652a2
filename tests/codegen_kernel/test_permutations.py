"""Gathers, scatters, sorts and generators of generated kernels, against numpy."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from pypto import ir
from pypto.core.dtype import DataType
from pypto.ir.op import array, tensor, tile

from .support import NUMPY, UNKNOWN, Cases, Kernel, compile_kernels, index_expr, random

FP32, INT16, INT32, UINT32, INDEX = (
    DataType.FP32, DataType.INT16, DataType.INT32, DataType.UINT32, DataType.INDEX,
)  # fmt: skip
cases = Cases()


def integers(low: int, high: int, *shape: int, dtype: object = np.int32, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


# ---- generators ---------------------------------------------------------------------------------------


@cases
def sequences_count_up_and_down_and_wrap(k: Kernel) -> None:
    k.result(k.let(tile.ci(5, [1, 40], INT32)), np.arange(5, 45))
    k.result(
        k.let(tile.ci(3, [1, 8], DataType.UINT16, descending=True)), (3 - np.arange(8)).astype(np.uint16)
    )
    start = k.scalar(100, INT32)
    k.result(k.let(tile.ci(start, [1, 8], INT32)), 100 + np.arange(8))


@cases
def triangles_follow_the_diagonal(k: Kernel) -> None:
    k.result(k.let(tile.tri(1, [6, 9])), np.tri(6, 9, 1))
    k.result(k.let(tile.tri(-2, [6, 9], dtype=FP32, upper=True)), np.triu(np.ones((6, 9)), -2))


def philox(counter: int, key: tuple[int, int], rounds: int) -> list[int]:
    c = [(counter >> (32 * i)) & 0xFFFFFFFF for i in range(4)]
    k0, k1 = key
    for _ in range(rounds):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k0, b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k1, a & 0xFFFFFFFF]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c


@cases
def random_numbers_are_philox(k: Kernel) -> None:
    expected = np.zeros((2, 512), np.uint32)
    counter = 3 | (7 << 32)
    for row in range(2):
        for group in range(0, 512, 256):
            for lane in range(64):
                for w, word in enumerate(philox(counter + lane, (11, 13), 10)):
                    expected[row, group + 64 * w + lane] = word
            counter += 128
    k.result(k.let(tile.random(11, 13, 3, 7, 0, 0, [2, 512])), expected)


# ---- picking and placing ------------------------------------------------------------------------------


@cases
def tiles_are_concatenated(k: Kernel) -> None:
    a, b = random(4, 8), random(4, 16, seed=1)
    k.result(k.let(tile.concat(k.input(a), k.input(b))), np.concatenate([a, b], axis=1))


@cases
def gather_takes_flat_indices(k: Kernel) -> None:
    a, index = random(8, 16), integers(0, 128, 4, 8)
    x, i = k.input(a), k.input(index)
    k.result(k.let(tile.gather(x, i, i)), a.ravel()[index])


def columns_are_gathered_by_mask(k: Kernel, pattern: int) -> None:
    a = random(4, 32)
    first, step = {1: (0, 2), 2: (1, 2), 3: (0, 4), 4: (1, 4), 5: (2, 4), 6: (3, 4), 7: (0, 1)}[pattern]
    k.result(k.let(tile.gather_mask(k.input(a), pattern)), a[:, first::step])
    bits = k.let(tile.gather_mask(k.input(a), pattern, output_dtype=UINT32))
    k.result(
        bits, a[:, first::step].view(np.uint32) if step == 1 else a[:, first::step].copy().view(np.uint32)
    )
    target = random(4, 32 * step, seed=1)
    expected = target.copy()
    expected[:, first::step] = a
    k.result(k.let(tile.scatter_mask(k.input(target), k.input(a), pattern)), expected)


cases.each(range(1, 8), columns_are_gathered_by_mask)


@cases
def blocks_of_32_bytes_are_gathered(k: Kernel) -> None:
    a = random(4, 32)
    offsets = integers(0, 15, 2, 8, dtype=np.uint32) * 32
    expected = a.ravel().view(np.uint8)[offsets[..., None] + np.arange(32)].reshape(2, 256).view(np.float32)
    k.result(k.let(tile.gatherb(k.input(a), k.input(offsets))), expected)


@cases
def matching_columns_are_listed_and_counted(k: Kernel) -> None:
    a = np.round(random(3, 16))
    x = k.input(a)
    pair = k.let(
        tile.gather_compare(x, ir.ConstFloat(0.0, FP32, UNKNOWN), x, cmp_mode="gt", offset=100, out_cols=16)
    )
    rows = k.let(ir.TupleGetItemExpr(pair, 0, UNKNOWN))
    counts = k.let(ir.TupleGetItemExpr(pair, 1, UNKNOWN))
    expected = np.zeros((3, 16), np.int32)
    for r in range(3):
        found = np.flatnonzero(a[r] > 0)
        expected[r, : len(found)] = found + 100
    k.result(rows, expected)
    k.result(counts, (a > 0).sum(axis=1)[None, :])


@cases
def scatters_write_where_the_index_says(k: Kernel) -> None:
    a, b = random(4, 16), random(2, 8, seed=1)
    index = np.random.default_rng(2).permutation(64)[:16].reshape(2, 8).astype(np.int32)
    expected = a.copy()
    expected.ravel()[index] = b
    k.result(k.let(tile.scatter(k.input(a), k.input(b), k.input(index))), expected)


@cases
def of_repeated_rows_the_last_one_wins(k: Kernel) -> None:
    a, b = random(6, 16), random(4, 16, seed=1)
    index = np.array([[1, 5, 1, 0]], np.int32)
    expected = a.copy()
    expected[[5, 0]] = b[[1, 3]]
    expected[1] = b[2]
    k.result(k.let(tile.scatter_update(k.input(a), -2, k.input(index), k.input(b))), expected)


@cases
def rows_of_a_pool_are_gathered_into_a_tile(k: Kernel) -> None:
    pool = random(32, 16)
    x = k.tensor(pool)
    rows = [k.scalar(row, INDEX, "row") for row in (7, 3)]
    t = k.let(tile.full([4, 16], FP32, 0.0), "kv")
    for position, row in enumerate(rows):
        t = k.let(tile.gather_row(t, x, [position, 0], [row, 0], [1, 16]), "kv")
    expected = np.zeros((4, 16), np.float32)
    expected[0], expected[1] = pool[7], pool[3]
    k.result(t, expected)


@cases
def rows_are_gathered_transposed(k: Kernel) -> None:
    pool = random(8, 4)
    t = k.let(tile.full([4, 8], FP32, 0.0), "kt")
    k.result(k.let(tile.gather_row(t, k.tensor(pool), [0, 0], [0, 0], [8, 4], transpose=True)), pool.T)


def memory_is_gathered(k: Kernel, mode: str) -> None:
    a = random(8, 16)
    index = (
        np.array([[3, -1, 7, 100]], np.int32) if mode != "undefined" else np.array([[3, 1, 7, 0]], np.int32)
    )
    unsigned = index[0].astype(np.uint32).astype(np.int64)
    position = {"clamp": np.minimum(unsigned, 7), "wrap": unsigned % 8}.get(mode, unsigned)
    rows = np.stack([a[p] if p < 8 else np.zeros(16, np.float32) for p in position])
    k.result(k.let(tile.mgather(k.tensor(a), k.input(index), gather_oob=mode)), rows)


cases.each(["undefined", "clamp", "wrap", "zero"], memory_is_gathered)


@cases
def memory_is_gathered_and_scattered_by_element(k: Kernel) -> None:
    a = random(8, 16)
    index = np.random.default_rng(2).permutation(128)[:32].reshape(4, 8).astype(np.int32)
    t = k.let(tile.mgather(k.tensor(a), k.input(index), "elem"))
    k.result(t, a.ravel()[index])
    expected = np.full((8, 16), 7, np.float32)
    expected.ravel()[index] = a.ravel()[index]
    k.do(tile.mscatter(t, k.input(index), k.output([8, 16], FP32, expected)))


# ---- sorting ------------------------------------------------------------------------------------------


@cases
def two_thousand_values_are_sorted_with_their_indices(k: Kernel) -> None:
    a = random(1, 2048)
    order = np.argsort(-a[0], kind="stable")
    records = k.let(tile.sort32(k.input(a), k.let(tile.ci(0, [1, 2048], UINT32))))
    for block in (64, 256, 1024):
        records = k.let(tile.mrgsort_format1(records, block))
    k.result(k.let(tile.gather_mask(records, 1)), a[0, order])
    k.result(k.let(tile.gather_mask(records, 2, output_dtype=UINT32)), order)


@cases
def equal_values_are_sorted_by_index(k: Kernel) -> None:
    a = np.round(random(2, 32))
    index = np.tile(np.arange(32, dtype=np.uint32)[::-1], (2, 1)).copy()
    records = k.let(tile.sort32(k.input(a), k.input(index)))
    order = [np.lexsort((index[r], -a[r])) for r in range(2)]
    k.result(
        k.let(tile.gather_mask(records, 2, output_dtype=UINT32)),
        np.stack([index[r][order[r]] for r in range(2)]),
    )


@cases
def sorted_lists_are_merged(k: Kernel) -> None:
    lists = [random(1, 32, seed=seed) for seed in range(3)]
    index = k.let(tile.ci(0, [1, 32], UINT32))
    records = [k.let(tile.sort32(k.input(values), index)) for values in lists]
    scratch = k.let(tile.create([1, 192], FP32))
    merged = k.let(tile.mrgsort(*records, tmp=scratch))
    k.result(k.let(tile.gather_mask(merged, 1)), -np.sort(-np.concatenate(lists, axis=1), axis=1))


# ---- arrays -------------------------------------------------------------------------------------------


@cases
def arrays_of_scalars_are_updated_in_place(k: Kernel) -> None:
    start = k.let(array.create(4, INT32), "arr")
    one = ir.ConstInt(1, INT32, UNKNOWN)

    def body(i: ir.Expr, arr: ir.Expr) -> list[ir.Expr]:
        value = k.let(ir.mul(ir.cast(i, INT32, UNKNOWN), ir.cast(i, INT32, UNKNOWN)), "v")
        return [k.let(array.update_element(arr, i, ir.add(value, one)), "arr")]

    (result,) = k.loop(4, [("arr", start)], body)
    out = k.output([4], INT32, [1, 2, 5, 10])
    for position in range(4):
        k.do(tensor.write(out, [position], k.let(array.get_element(result, index_expr(position)), "e")))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return compile_kernels(list(cases.kernels.values()), Path(tmp_path_factory.mktemp("permutations")))


@pytest.mark.parametrize("name", cases.kernels)
def test_kernel_permutes_what_numpy_does(name: str, library: ctypes.CDLL) -> None:
    cases.kernels[name].check(library)


def test_sixteen_bit_indices_need_sixteen_bit_data() -> None:
    k = Kernel("index")
    with pytest.raises(ValueError, match="16-bit"):
        tile.gather(k.input(random(4, 8)), k.input(np.zeros((4, 8), NUMPY[INT16])), k.input(random(4, 8)))
