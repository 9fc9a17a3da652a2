"""What elementwise operators, reductions and products compute, against numpy."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from pypto import ir
from pypto.core.dtype import DataType
from pypto.ir.op import tile

from .support import NUMPY, Cases, Kernel, compile_kernels, random

FP32, FP16, BF16 = DataType.FP32, DataType.FP16, DataType.BF16
INT8, INT16, INT32 = DataType.INT8, DataType.INT16, DataType.INT32
cases = Cases()


def numbers(dtype: DataType, *shape: int, seed: int = 0) -> np.ndarray:
    """Values that fit the element type and are no zeros."""
    values = random(*shape, seed=seed) * (3 if dtype.is_float() else 40)
    return np.where(np.abs(values) < 1, 1, values).astype(NUMPY[dtype])


# ---- elementwise -----------------------------------------------------------------------------------------

BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
}  # fmt: skip


def rounded(values: np.ndarray, dtype: DataType) -> np.ndarray:
    with np.errstate(all="ignore"):
        return values.astype(NUMPY[dtype])


def wide(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float32) if values.dtype.itemsize < 4 and values.dtype.kind in "fV" else values


def binary_op(k: Kernel, op: str, dtype: DataType) -> None:
    a, b = numbers(dtype, 6, 40), numbers(dtype, 6, 40, seed=1)
    with np.errstate(all="ignore"):
        expected = rounded(BINARY[op](wide(a), wide(b)), dtype)
    k.result(k.let(getattr(tile, op)(k.input(a), k.input(b))), expected)


cases.each([(op, dtype) for op in BINARY for dtype in (FP32, FP16, BF16, INT8, INT16, INT32)], binary_op)


def div_truncates_for(k: Kernel, dtype: DataType) -> None:
    a, b = numbers(dtype, 6, 40), numbers(dtype, 6, 40, seed=1)
    exact = wide(a) / wide(b) if dtype.is_float() else np.trunc(a.astype(np.float64) / b)
    k.result(k.let(tile.div(k.input(a), k.input(b))), rounded(exact, dtype))


cases.each([FP32, FP16, INT16, INT32], div_truncates_for)


@cases
def integer_division_by_zero_and_overflow_do_not_trap(k: Kernel) -> None:
    a = np.array([[5, -(2**31), -7, 0]], np.int32)
    b = np.array([[0, -1, 2, 0]], np.int32)
    k.result(k.let(tile.div(k.input(a), k.input(b))), [[0, -(2**31), -3, 0]])


@cases
def integer_arithmetic_wraps(k: Kernel) -> None:
    a = np.array([[2**31 - 1, -(2**31), 65536]], np.int32)
    x = k.input(a)
    k.result(k.let(tile.add(x, x)), np.array([[-2, 0, 131072]]))
    k.result(k.let(tile.mul(x, x)), np.array([[1, 0, 0]]))


def scalar_op(k: Kernel, op: str, dtype: DataType) -> None:
    a = numbers(dtype, 5, 33)
    scalar = rounded(np.asarray(2.3), dtype)
    with np.errstate(all="ignore"):
        exact = {"adds": np.add, "subs": np.subtract, "muls": np.multiply}[op](wide(a), wide(scalar))
    constant = 2.3 if dtype.is_float() else 2
    k.result(k.let(getattr(tile, op)(k.input(a), constant)), rounded(exact, dtype))


cases.each([(op, dtype) for op in ("adds", "subs", "muls") for dtype in (FP32, FP16, BF16, INT32)], scalar_op)


@cases
def a_runtime_scalar_is_converted_to_the_tile_dtype_first(k: Kernel) -> None:
    a = random(4, 32).astype(NUMPY[BF16])
    s = k.scalar(0.1, FP32)
    factor = np.float32(np.asarray(0.1, NUMPY[BF16]))
    k.result(k.let(tile.muls(k.input(a), s)), (a.astype(np.float32) * factor).astype(NUMPY[BF16]))


@cases
def a_float_constant_truncates_on_an_integer_tile(k: Kernel) -> None:
    k.result(k.let(tile.adds(k.input(np.zeros((2, 8), np.int32)), 2.9)), 2)


UNARY = {
    "exp": np.exp, "sqrt": np.sqrt, "abs": np.abs, "neg": np.negative, "log": np.log, "recip": np.reciprocal,
    "rsqrt": lambda x: 1 / np.sqrt(x), "relu": lambda x: np.maximum(x, 0), "sin": np.sin, "cos": np.cos,
}  # fmt: skip


def unary_op(k: Kernel, op: str, dtype: DataType) -> None:
    a = numbers(dtype, 6, 40)
    a = np.abs(a) if op in ("sqrt", "log", "rsqrt") else a
    exact = UNARY[op](wide(a).astype(np.float64))
    tolerance = 3e-7 if dtype == FP32 else {FP16: 2e-3, BF16: 1e-2}[dtype]
    k.result(k.let(getattr(tile, op)(k.input(a))), exact, tolerance)


cases.each([(op, FP32) for op in UNARY], unary_op)
cases.each([(op, FP16) for op in ("exp", "sqrt", "log", "rsqrt", "recip", "relu")], unary_op)
cases.each([(op, BF16) for op in ("exp", "sqrt", "abs", "neg", "rsqrt")], unary_op)


@cases
def elementary_functions_at_the_edges(k: Kernel) -> None:
    x = np.array([[np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-45, 88.7, 89.5, -104.5, -1.0]], np.float32)
    t = k.input(x)
    with np.errstate(all="ignore"):
        for op in ("exp", "log", "sqrt", "rsqrt"):
            exact = UNARY[op](x.astype(np.float64)).astype(np.float32)
            k.result(k.let(getattr(tile, op)(t)), exact, 1e-6)


@cases
def nan_wins_in_maximum_and_minimum(k: Kernel) -> None:
    a = np.array([[1, np.nan, 3, np.nan]], np.float32)
    b = np.array([[np.nan, 2, 4, np.nan]], np.float32)
    x, y = k.input(a), k.input(b)
    k.result(k.let(tile.maximum(x, y)), np.maximum(a, b))
    k.result(k.let(tile.minimum(x, y)), np.minimum(a, b))


def modulo(k: Kernel, op: str, dtype: DataType) -> None:
    a, b = numbers(dtype, 4, 24), numbers(dtype, 4, 24, seed=5)
    args = [k.input(a), k.input(b)]
    args += [args[0]] if op == "rem" else []
    k.result(k.let(getattr(tile, op)(*args)), {"fmod": np.fmod, "rem": np.mod}[op](a, b), 1e-6)


cases.each([(op, dtype) for op in ("fmod", "rem") for dtype in (FP32, INT32)], modulo)


@cases
def bit_operators(k: Kernel) -> None:
    a, b = numbers(INT32, 3, 16), np.abs(numbers(INT32, 3, 16, seed=1)) % 31
    x, y = k.input(a), k.input(b)
    k.result(k.let(tile.and_(x, y)), a & b)
    k.result(k.let(tile.or_(x, y)), a | b)
    k.result(k.let(tile.xor(x, y, x)), a ^ b)
    k.result(k.let(tile.shl(x, y)), a << b)
    k.result(k.let(tile.shr(x, y)), a >> b)


@cases
def three_operand_arithmetic(k: Kernel) -> None:
    a, b, c = (random(4, 16, seed=seed) for seed in range(3))
    x, y, z = k.input(a), k.input(b), k.input(c)
    k.result(k.let(tile.addc(x, y, z)), a + b + c, 1e-6)
    k.result(k.let(tile.subc(x, y, z)), a - b - c, 1e-6)
    k.result(k.let(tile.lrelu(x, 0.25)), np.where(a > 0, a, a * np.float32(0.25)))


@cases
def two_tiles_broadcast_like_numpy(k: Kernel) -> None:
    a, row, col = random(8, 24), random(1, 24, seed=1), random(8, 1, seed=2)
    x = k.input(a)
    k.result(k.let(tile.add(x, k.input(row))), a + row)
    k.result(k.let(tile.mul(x, k.input(col))), a * col)


# ---- broadcast families ----------------------------------------------------------------------------------

SUFFIXES = {
    "sub": np.subtract, "mul": np.multiply, "div": np.divide, "max": np.maximum, "min": np.minimum,
    "add": np.add,
    "expdif": lambda a, v: np.exp(a.astype(np.float64) - v),
}  # fmt: skip


def expand(k: Kernel, side: str, suffix: str) -> None:
    a, vector = random(6, 40), random(*((6, 1) if side == "row" else (1, 40)), seed=3)
    op = getattr(tile, f"{side}_expand_{suffix}")
    k.result(k.let(op(k.input(a), k.input(vector))), SUFFIXES[suffix](a, vector), 3e-7)


cases.each([(side, suffix) for side in ("row", "col") for suffix in SUFFIXES], expand)


@cases
def expand_fills_with_the_vector(k: Kernel) -> None:
    a, row, col = random(6, 40), random(6, 1, seed=1), random(1, 40, seed=2)
    x = k.input(a)
    k.result(k.let(tile.row_expand(x, k.input(row))), np.broadcast_to(row, a.shape))
    k.result(k.let(tile.col_expand(x, k.input(col))), np.broadcast_to(col, a.shape))
    k.result(k.let(tile.expands(x, 3)), 3)


@cases
def row_expand_add_repeats_a_packed_block(k: Kernel) -> None:
    a, block = random(4, 32), random(4, 8, seed=1)
    k.result(k.let(tile.row_expand_add(k.input(a), k.input(block))), a + np.tile(block, (1, 4)))


# ---- reductions ------------------------------------------------------------------------------------------

REDUCE = {"sum": np.sum, "max": np.max, "min": np.min, "prod": np.prod}


def reduction(k: Kernel, axis: str, op: str, dtype: DataType) -> None:
    a = numbers(dtype, 5, 37)
    if op == "prod":
        a = np.sign(wide(a)).astype(a.dtype)
    x = k.input(a)
    args = [x, k.let(tile.create([5, 37], dtype))] if axis == "row" else [x]
    exact = REDUCE[op](wide(a).astype(np.float64), axis=1 if axis == "row" else 0, keepdims=True)
    k.result(
        k.let(getattr(tile, f"{axis}_{op}")(*args)),
        exact,
        {FP32: 1e-6, INT32: 0.0, FP16: 1e-3, BF16: 1e-2}[dtype],
    )


cases.each([(axis, op, FP32) for axis in ("row", "col") for op in REDUCE], reduction)
cases.each([(axis, op, INT32) for axis in ("row", "col") for op in ("sum", "max")], reduction)
cases.each(
    [("row", "sum", FP16), ("col", "sum", FP16), ("row", "max", BF16), ("col", "sum", BF16)], reduction
)


@cases
def sums_of_halves_are_rounded_once(k: Kernel) -> None:
    a = np.full((2, 4096), 1.0, np.float16)  # adding in FP16 would stop at 2048
    x = k.input(a)
    k.result(k.let(tile.row_sum(x, k.let(tile.create([2, 4096], FP16)))), 4096)


@cases
def reductions_skip_padding(k: Kernel) -> None:
    a = -1 - np.abs(random(6, 20))
    x = k.input(a, valid=[4, 13])
    out = k.output([6, 1], FP32, np.vstack([a[:4, :13].max(axis=1, keepdims=True), [[7], [7]]]))
    k.store(k.let(tile.row_max(x, k.let(tile.create([6, 20], FP32)))), out)
    out = k.output(
        [1, 20], FP32, np.concatenate([a[:4, :13].max(axis=0, keepdims=True), np.full((1, 7), 7)], axis=1)
    )
    k.store(k.let(tile.col_max(x)), out)


@cases
def arg_reductions_give_the_first_extreme(k: Kernel) -> None:
    a = np.array([[1, 5, 5, 0], [2, -3, -3, 2]], np.float32)
    x, tmp = k.input(a), k.let(tile.create([2, 4], FP32))
    k.result(k.let(tile.row_argmax(x, tmp)), [[1], [0]])
    k.result(k.let(tile.row_argmin(x, tmp)), [[3], [1]])
    k.result(k.let(tile.col_argmax(x, tmp)), [[1, 0, 0, 1]])


# ---- matrix products -------------------------------------------------------------------------------------


def product(k: Kernel, m: int, n: int, depth: int, dtype: DataType) -> None:
    a, b = numbers(dtype, m, depth), numbers(dtype, depth, n, seed=1)
    if dtype.is_float():
        exact = wide(a).astype(np.float64) @ wide(b).astype(np.float64)
        k.result(k.let(tile.matmul(k.input(a), k.input(b))), exact, 3e-5 * depth)
    else:
        k.result(k.let(tile.matmul(k.input(a), k.input(b))), a.astype(np.int64) @ b.astype(np.int64))


cases.each([(16, 32, 64, dtype) for dtype in (FP32, FP16, BF16, INT8, INT16)], product)
cases.each(
    [(1, 48, 33, FP32), (13, 50, 300, FP32), (70, 17, 5, FP32), (70, 17, 300, INT8), (3, 96, 8, BF16)],
    product,
)


@cases
def eight_bit_products_are_exact_at_the_extremes(k: Kernel) -> None:
    a = np.full((4, 1024), -128, np.int8)
    k.result(k.let(tile.matmul(k.input(a), k.input(np.ascontiguousarray(a.T)))), 128 * 128 * 1024)


@cases
def matmul_accumulates_into_its_operand(k: Kernel) -> None:
    a, b, c = random(16, 32), random(32, 24, seed=1), random(16, 24, seed=2)
    first = k.let(tile.matmul(k.input(a), k.input(b)))
    acc = k.let(tile.matmul_acc(first, k.input(a), k.input(b)), "acc")
    k.result(acc, 2 * (a.astype(np.float64) @ b), 1e-4)


@cases
def init_cond_decides_whether_the_accumulator_counts(k: Kernel) -> None:
    a, b = random(8, 16), random(16, 32, seed=1)
    x, y = k.input(a), k.input(b)
    n = k.scalar(0, DataType.INDEX, "n")
    for bound, factor in ((0, 1), (1, 2)):
        acc = k.let(tile.matmul(x, y), "acc")
        condition = ir.Eq(
            n, ir.ConstInt(bound, DataType.INDEX, ir.Span.unknown()), DataType.BOOL, ir.Span.unknown()
        )
        k.result(
            k.let(tile.matmul_acc(acc, x, y, init_cond=condition)), factor * (a.astype(np.float64) @ b), 1e-4
        )


@cases
def only_the_valid_depth_of_the_left_operand_is_multiplied(k: Kernel) -> None:
    a, b = random(16, 32), random(32, 48, seed=1)
    x = k.input(a, valid=[10, 20])
    y = k.input(b, valid=[32, 40])
    expected = np.full((16, 48), 7.0)
    expected[:10, :40] = a[:10, :20].astype(np.float64) @ b[:20, :40]
    k.store(k.let(tile.matmul(x, y)), k.output([16, 48], FP32, expected, 1e-4))


@cases
def a_transposed_view_is_multiplied_transposed(k: Kernel) -> None:
    a, b = random(16, 32), random(24, 32, seed=1)
    y = k.let(tile.transpose_view(k.input(b)))
    k.result(k.let(tile.matmul(k.input(a), y)), a.astype(np.float64) @ b.T, 1e-4)
    x = k.let(tile.transpose_view(k.input(b)))
    k.result(k.let(tile.matmul(x, k.input(random(24, 40)))), b.T.astype(np.float64) @ random(24, 40), 1e-4)


@cases
def bias_is_added_to_every_row(k: Kernel) -> None:
    a, b, bias = random(16, 32), random(32, 24, seed=1), random(1, 24, seed=2)
    k.result(
        k.let(tile.matmul_bias(k.input(a), k.input(b), k.input(bias))), a.astype(np.float64) @ b + bias, 1e-4
    )


@cases
def batches_broadcast(k: Kernel) -> None:
    a, b = random(1, 16, 32), random(3, 32, 24, seed=1)
    result = k.let(tile.batch_matmul(k.input(a), k.input(b)))
    k.result(result, a.astype(np.float64) @ b, 1e-4)


@cases
def gemv_fills_the_first_row(k: Kernel) -> None:
    a, b = random(1, 32), random(32, 24, seed=1)
    expected = np.full((16, 24), 7.0)
    expected[:1] = a.astype(np.float64) @ b
    row = k.let(tile.gemv(k.input(a), k.input(b)))
    k.store(row, k.output([16, 24], FP32, expected, 1e-4))
    zeros = np.zeros_like(expected)
    zeros[0] = expected[0]
    k.result(k.let(tile.transpose(row, 0, 1)), zeros.T, 1e-4)  # what lies below the row is zero


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return compile_kernels(list(cases.kernels.values()), Path(tmp_path_factory.mktemp("arithmetic")))


@pytest.mark.parametrize("name", cases.kernels)
def test_kernel_computes_what_numpy_does(name: str, library: ctypes.CDLL) -> None:
    cases.kernels[name].check(library)
