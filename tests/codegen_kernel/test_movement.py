"""Loads, stores, views, element access, casts and masks of generated kernels, against numpy."""

from __future__ import annotations

import ctypes
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from pypto import ir
from pypto.core.dtype import DataType
from pypto.ir.op import tensor, tile

from .support import NUMPY, UNKNOWN, Cases, Kernel, compile_kernels, index_expr, random

FP32, FP16, BF16 = DataType.FP32, DataType.FP16, DataType.BF16
INT8, INT16, INT32, UINT8, INDEX = (
    DataType.INT8,
    DataType.INT16,
    DataType.INT32,
    DataType.UINT8,
    DataType.INDEX,
)
cases = Cases()


# ---- loads and stores ---------------------------------------------------------------------------------


@cases
def a_window_is_loaded_and_stored_at_offsets(k: Kernel) -> None:
    a = random(20, 40)
    t = k.input(a, shape=[8, 16], offset=[4, 8])
    expected = np.full((12, 24), 7, np.float32)
    expected[2:10, 3:19] = a[4:12, 8:24]
    k.store(t, k.output([12, 24], FP32, expected), [2, 3])


@cases
def strided_tensors_are_read_and_written_by_their_strides(k: Kernel) -> None:
    base = random(40, 30)
    view = base.T[::2, 1::3]  # strides 2 and 90 elements
    k.result(k.input(view), view)


@cases
def more_leading_unit_dimensions_than_declared_are_dropped(k: Kernel) -> None:
    a = random(1, 1, 6, 16)
    x = k.tensor(a, shape=[6, 16])
    k.result(k.load(x), a[0, 0])


@cases
def only_the_valid_region_is_stored_and_padding_reads_as_zero(k: Kernel) -> None:
    a = random(16, 32)
    n = k.scalar(5, INDEX, "n")
    t = k.input(a, shape=[16, 32], valid=[n, 20])
    expected = np.full((16, 32), 7, np.float32)
    expected[:5, :20] = np.exp(a[:5, :20])
    k.store(k.let(tile.exp(t)), k.output([16, 32], FP32, expected, 1e-6))
    padded = np.zeros((16, 32), np.float32)
    padded[:5, :20] = a[:5, :20]
    k.result(k.let(tile.set_validshape(t, 16, 32)), padded)


@cases
def a_window_that_overhangs_is_clipped(k: Kernel) -> None:
    a = random(10, 12)
    start = k.scalar(6, INDEX, "start")
    t = k.input(a, shape=[8, 12], offset=[start, 0])
    expected = np.zeros((8, 12), np.float32)
    expected[:4] = a[6:]
    k.result(t, expected)
    expected = np.full((10, 12), 7, np.float32)
    expected[6:] = a[6:]
    k.store(t, k.output([10, 12], FP32, expected), [start, 0])


@cases
def windows_of_three_dimensions_are_folded(k: Kernel) -> None:
    a = random(3, 10, 24)
    t = k.input(a, shape=[2, 4, 16], offset=[1, 3, 8])
    expected = np.full((2, 4, 16), 7, np.float32)
    expected[:] = 2 * a[1:3, 3:7, 8:24]
    k.store(k.let(tile.muls(t, 2)), k.output([2, 4, 16], FP32, expected))


@cases
def vectors_are_rows(k: Kernel) -> None:
    a = random(48)
    t = k.load(k.tensor(a), shape=[32], offset=[8])
    k.result(k.let(tile.exp(t)), np.exp(a[8:40].astype(np.float64)), 1e-6)


@cases
def a_two_dimensional_window_of_three_dimensions_folds_the_leading_ones(k: Kernel) -> None:
    a = random(3, 4, 16)
    k.result(k.load(k.tensor(a), shape=[6, 16], offset=[5, 0]), a.reshape(12, 16)[5:11])


@cases
def a_store_converts_to_the_dtype_of_the_tensor(k: Kernel) -> None:
    a = random(4, 16) * 100
    t = k.input(a)
    for dtype in (FP16, BF16):
        k.store(t, k.output([4, 16], dtype, a.astype(NUMPY[dtype])))
    k.store(t, k.output([4, 16], INT8, np.clip(np.trunc(a), -128, 127)))


def atomic_store_adds(k: Kernel, dtype: DataType) -> None:
    a = (random(4, 16) * 10).astype(NUMPY[dtype])
    out = k.output([4, 16], dtype, (a.astype(np.float32) + 7).astype(NUMPY[dtype]))
    k.do(tile.store(k.input(a), [0, 0], out, atomic=1))


cases.each([FP32, FP16, BF16, INT32, INT16, INT8], atomic_store_adds)


# ---- views and windows --------------------------------------------------------------------------------


@cases
def a_slice_is_a_view_of_its_source(k: Kernel) -> None:
    a = random(16, 32)
    t = k.input(a)
    window = k.let(tile.slice(t, [4, 8], [2, 16]), "window")
    k.result(k.let(tile.adds(window, 1)), a[2:6, 16:24] + 1)
    k.do(tile.write(window, [0, 0], ir.ConstFloat(5.0, FP32, UNKNOWN)))
    expected = a.copy()
    expected[2, 16] = 5
    k.result(t, expected)


@cases
def a_slice_of_a_partly_valid_tile_is_partly_valid(k: Kernel) -> None:
    a = random(48, 64)
    t = k.input(a, valid=[40, 50])
    expected = np.full((32, 32), 7, np.float32)
    expected[:16, :18] = a[24:40, 32:50]
    k.store(k.let(tile.slice(t, [32 - 8, 32], [24, 32])), k.output([32, 32], FP32, expected))


@cases
def a_slice_at_a_runtime_offset_moves(k: Kernel) -> None:
    a = random(16, 32)
    row = k.scalar(3, INDEX, "row")
    t = k.input(a)
    k.result(k.let(tile.slice(t, [4, 32], [row, 0])), a[3:7])


@cases
def reshape_keeps_row_major_order(k: Kernel) -> None:
    a = random(8, 24)
    t = k.input(a)
    k.result(k.let(tile.reshape(t, [4, 48])), a.reshape(4, 48))
    k.result(k.let(tile.reshape(k.let(tile.slice(t, [8, 6], [0, 6])), [4, 12])), a[:, 6:12].reshape(4, 12))
    column = k.let(tile.reshape(k.let(tile.slice(t, [1, 24], [2, 0])), [24, 1]))
    k.result(column, a[2].reshape(24, 1))


@cases
def transpose_copies_and_transpose_view_does_not(k: Kernel) -> None:
    a = random(10, 37)
    t = k.input(a)
    k.result(k.let(tile.transpose(t, 0, 1)), a.T)
    k.result(k.let(tile.transpose_view(t)), a.T)
    k.result(k.let(tile.transpose_view(k.let(tile.reshape(t, [1, *a.shape])))), a.T[None])


@cases
def any_two_axes_of_a_higher_rank_are_transposed(k: Kernel) -> None:
    a = random(3, 4, 8)
    t = k.input(a)
    k.result(k.let(tile.transpose(t, 0, 2)), np.swapaxes(a, 0, 2))
    k.result(k.let(tile.transpose(t, 0, 1)), np.swapaxes(a, 0, 1))
    k.result(k.let(tile.transpose(t, 1, 2)), np.swapaxes(a, 1, 2))


@cases
def bytes_are_reinterpreted(k: Kernel) -> None:
    a = random(4, 8)
    k.result(k.let(tile.reinterpret_view(k.input(a), INT16)), a.view(np.int16))


@cases
def extract_copies_a_window(k: Kernel) -> None:
    a = random(16, 32)
    t = k.input(a)
    part = k.let(tile.extract(t, 4, 8, [8, 16], target_memory=ir.MemorySpace.Left))
    k.result(part, a[4:12, 8:24])


@cases
def assemble_writes_the_valid_part_and_keeps_the_rest(k: Kernel) -> None:
    a, b = random(16, 32), random(4, 8, seed=1)
    part = k.input(b, valid=[3, 5])
    t = k.let(tile.assemble(k.input(a), part, [5, 6]), "t2")
    expected = a.copy()
    expected[5:8, 6:11] = b[:3, :5]
    k.result(t, expected)


@cases
def assemble_rounds_into_a_narrower_target(k: Kernel) -> None:
    a = random(4, 32)
    target = k.let(tile.full([8, 32], BF16, 0.0))
    expected = np.zeros((8, 32), NUMPY[BF16])
    expected[4:] = a.astype(NUMPY[BF16])
    k.result(k.let(tile.assemble(target, k.input(a), [4, 0])), expected)


@cases
def a_moved_tile_is_a_copy_where_the_source_lives_on(k: Kernel) -> None:
    a = random(4, 16)
    t = k.input(a)
    moved = k.let(tile.move(t, ir.MemorySpace.Mat), "moved")
    k.do(tile.write(t, [0, 0], ir.ConstFloat(5.0, FP32, UNKNOWN)))
    k.result(moved, a)


def padding_is_filled(k: Kernel, pad: str, dtype: DataType) -> None:
    a = (random(16, 24) * 10).astype(NUMPY[dtype])
    value = {"zero": 0, "max": np.inf, "min": -np.inf}[pad]
    if not dtype.is_float() and pad != "zero":
        value = getattr(np.iinfo(NUMPY[dtype]), pad)
    expected = np.full((16, 24), value, NUMPY[dtype])
    expected[:12, :20] = a[:12, :20]
    mode = getattr(ir.PadValue, pad)
    k.result(k.let(tile.fillpad(k.input(a, valid=[12, 20]), mode)), expected)
    k.result(k.let(tile.fillpad_inplace(k.input(a, valid=[12, 20]), mode)), expected)
    wide = np.full((16, 32), value, NUMPY[dtype])
    wide[:12, :20] = a[:12, :20]
    k.result(k.let(tile.fillpad_expand(k.input(a, valid=[12, 20]), [16, 32], mode)), wide)


cases.each([("zero", FP32), ("max", FP32), ("min", FP32), ("min", BF16), ("max", INT32)], padding_is_filled)


@cases
def constants_fill_tiles(k: Kernel) -> None:
    k.result(k.let(tile.full([3, 8], FP32, 1e-6)), np.float32(1e-6))
    k.result(k.let(tile.full([3, 8], BF16, 0.1)), np.asarray(0.1, NUMPY[BF16]))
    k.result(k.let(tile.full([3, 8], INT32, -5)), -5)
    k.result(k.let(tile.full([3, 8], FP32, float("-inf"))), -np.inf)


# ---- elements -----------------------------------------------------------------------------------------


@cases
def elements_are_read_and_written(k: Kernel) -> None:
    a, b = random(4, 16), random(6).astype(NUMPY[BF16])
    x, y = k.tensor(a), k.tensor(b)
    i = k.scalar(2, INDEX, "i")
    t = k.load(x)
    first = k.let(tile.read(t, [i, 3]), "first")
    second = k.let(tensor.read(y, [i]), "second")
    total = k.let(ir.add(first, ir.cast(second, FP32, UNKNOWN)), "total")
    out = k.output([2, 4], FP32, [[7, 7, 7, 7], [7, a[2, 3] + np.float32(b[2]), 7, 7]])
    k.do(tensor.write(out, [1, 1], total))
    changed = k.let(tile.write(t, [0, i], total), "t2")
    expected = a.copy()
    expected[0, 2] = a[2, 3] + np.float32(b[2])
    k.result(changed, expected)


@cases
def scalars_arrive_with_their_type(k: Kernel) -> None:
    values = [(-5, INT32), (True, DataType.BOOL), (float("nan"), FP32), (-(2**63), DataType.INT64)]
    values += [(1.5, FP16)]
    for value, dtype in values:
        s = k.scalar(value, dtype)
        out = k.output([1], dtype, np.asarray([value], NUMPY[dtype]))
        k.do(tensor.write(out, [0], s))


@cases
def launch_and_shape_are_known(k: Kernel) -> None:
    k.block = (3, 8)
    m = k.var("M", ir.ScalarType(INDEX))
    x = k.tensor(random(5, 8), shape=[m, 8])
    out = k.output([4], INT32, [3, 8, 5, 5])
    values = [k.let(tile.get_block_idx()), k.let(tile.get_block_num()), k.let(tensor.dim(x, 0)), m]
    for position, value in enumerate(values):
        k.do(tensor.write(out, [position], ir.cast(value, INT32, UNKNOWN)))


@cases
def dynamic_extents_are_solved_for_their_variable(k: Kernel) -> None:
    five = index_expr(5)
    variables = [k.var(name, ir.ScalarType(INDEX)) for name in "ABCD"]
    a, b, c, d = variables
    dims = [ir.Add(a, five, INDEX, UNKNOWN), ir.Sub(b, five, INDEX, UNKNOWN)]
    dims += [ir.Mul(c, five, INDEX, UNKNOWN), ir.FloorDiv(d, five, INDEX, UNKNOWN)]
    for dim, extent in zip(dims, (15, 5, 50, 2), strict=True):
        k.tensor(np.zeros(extent, np.float32), shape=[dim])
    out = k.output([4], INT32, [10, 10, 10, 10])
    for position, value in enumerate(variables):
        k.do(tensor.write(out, [position], ir.cast(value, INT32, UNKNOWN)))


# ---- casts --------------------------------------------------------------------------------------------

TIES = [0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 2.4999, -2.5001]
EDGES = np.array([[*TIES, 1e10, -1e10, np.nan, np.inf, -np.inf, 126.5, 0.0, -3.0]], np.float32)


def away(x: np.ndarray) -> np.ndarray:
    return np.sign(x) * np.floor(np.abs(x) + 0.5)


def to_odd(x: np.ndarray) -> np.ndarray:
    below = np.floor(x)
    tie = np.where(below % 2 == 0, below + 1, below)
    return np.where(x - below == 0.5, tie, np.rint(x))


MODES = {
    "none": np.trunc,
    "rint": np.rint,
    "round": away,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "odd": to_odd,
}


def float_to_integer(k: Kernel, mode: str, dtype: DataType) -> None:
    with np.errstate(all="ignore"):
        limits = np.iinfo(NUMPY[dtype])
        whole = MODES[mode](EDGES.astype(np.float64))
        expected = np.where(np.isnan(EDGES), 0, np.clip(whole, float(limits.min), float(limits.max)))
    t = k.input(EDGES)
    k.result(k.let(tile.cast(t, dtype, mode)), expected.astype(NUMPY[dtype]))


cases.each([(mode, INT32) for mode in MODES], float_to_integer)
cases.each([("rint", INT8), ("trunc", UINT8), ("round", DataType.UINT16)], float_to_integer)


@cases
def some_pairs_keep_the_low_bits(k: Kernel) -> None:
    a = np.array([[70000.0, -70000.0, 300.0, -40000.0]], np.float32)
    k.result(k.let(tile.cast(k.input(a), INT16, "trunc")), a.astype(np.int64).astype(np.int16))
    b = np.array([[300.0, -300.0, 127.0, 1000.0]], np.float16)
    k.result(k.let(tile.cast(k.input(b), INT8, "trunc")), b.astype(np.int64).astype(np.int8))
    k.result(k.let(tile.cast(k.input(b), UINT8, "trunc")), b.astype(np.int64).astype(np.uint8))


def narrowing_rounds_to_nearest_even(k: Kernel, dtype: DataType, mode: str) -> None:
    with np.errstate(all="ignore"):
        values = np.concatenate([random(400) * 10.0 ** np.arange(-20, 20).repeat(10), EDGES[0]])
        values = values.astype(np.float32).reshape(1, 416)
        k.result(k.let(tile.cast(k.input(values), dtype, mode)), values.astype(NUMPY[dtype]))


NARROW = (FP16, BF16, DataType.FP8E4M3FN, DataType.FP8E5M2)
NEAREST = [(dtype, mode) for dtype in NARROW for mode in ("round", "rint")]
cases.each(NEAREST, narrowing_rounds_to_nearest_even)


def narrowing_follows_the_grid(k: Kernel, mode: str) -> None:
    values = (random(8, 32) * 3).astype(np.float32)
    bits = values.view(np.uint32)
    down = (bits & 0xFFFF0000).view(np.float32)
    up = ((bits & 0xFFFF0000) + 0x10000).view(np.float32)
    exact = (bits & 0xFFFF) == 0
    towards = {
        "trunc": down,
        "floor": np.where(values < 0, up, down),
        "ceil": np.where(values < 0, down, up),
        "odd": ((bits & 0xFFFF0000) | 0x10000).view(np.float32),
    }[mode]
    expected = np.where(exact, values, towards).astype(NUMPY[BF16])
    k.result(k.let(tile.cast(k.input(values), BF16, mode)), expected)


cases.each(["trunc", "floor", "ceil", "odd"], narrowing_follows_the_grid)


@cases
def widening_is_exact(k: Kernel) -> None:
    codes = np.arange(65536, dtype=np.uint16).reshape(1, -1)
    for dtype in (np.float16, ml_dtypes.bfloat16):
        values = codes.view(dtype)
        k.result(k.let(tile.cast(k.input(values), FP32)), values.astype(np.float32))
    for dtype in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
        values = np.arange(256, dtype=np.uint8).reshape(1, -1).view(dtype)
        k.result(k.let(tile.cast(k.input(values), FP32)), values.astype(np.float32))


@cases
def integers_wrap_when_narrowed_and_round_when_made_float(k: Kernel) -> None:
    a = np.array([[2**31 - 1, -(2**31), 65537, 16777217, -1]], np.int32)
    t = k.input(a)
    k.result(k.let(tile.cast(t, INT16)), a.astype(np.int16))
    k.result(k.let(tile.cast(t, FP32)), a.astype(np.float32))
    k.result(k.let(tile.cast(t, DataType.INT64)), a.astype(np.int64))


@cases
def the_quantisation_chain_is_exact(k: Kernel) -> None:
    a = (random(8, 64) * 50).astype(np.float32)
    t = k.let(tile.cast(k.input(a), INT32, "rint"))
    t = k.let(tile.cast(t, FP16, "round"))
    k.result(k.let(tile.cast(t, INT8, "trunc")), np.rint(a).astype(np.int64).astype(np.int8))


# ---- masks --------------------------------------------------------------------------------------------


def compared(k: Kernel, code: int) -> None:
    a, b = np.round(random(3, 40)), np.round(random(3, 40, seed=1))
    function = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)[code]
    bits = np.zeros((3, 32), np.uint8)
    bits[:, :5] = np.packbits(function(a, b), axis=1, bitorder="little")
    x, y = k.input(a), k.input(b)
    mask = k.let(tile.cmp(x, y, code), "mask")
    expected = np.full((3, 32), 7, np.uint8)
    expected[:, :5] = bits[:, :5]
    k.store(mask, k.output([3, 32], UINT8, expected))
    k.result(k.let(tile.sel(mask, x, y, x)), np.where(function(a, b), a, b))


cases.each(range(6), compared)


@cases
def a_mask_selects_between_a_tile_and_a_scalar(k: Kernel) -> None:
    a = random(3, 40)
    t = k.input(a)
    mask = k.let(tile.cmps(t, 0.25, 4), "mask")
    k.result(k.let(tile.sels(mask, t, t, -1.0)), np.where(a > 0.25, a, -1))


@cases
def partial_operators_copy_where_one_operand_is_valid(k: Kernel) -> None:
    a, b = random(6, 16), random(6, 16, seed=1)
    expected = a.copy()
    expected[:4, :10] += b[:4, :10]
    k.result(k.let(tile.part_add(k.input(a), k.input(b, valid=[4, 10]))), expected)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return compile_kernels(list(cases.kernels.values()), Path(tmp_path_factory.mktemp("movement")))


@pytest.mark.parametrize("name", cases.kernels)
def test_kernel_moves_what_numpy_does(name: str, library: ctypes.CDLL) -> None:
    cases.kernels[name].check(library)
