"""Programs as models write them, each checked against numpy."""

# ruff: noqa: RET504 - programs of the DSL are what is tested

from __future__ import annotations

import re

import numpy as np
import pytest

import pypto.language as pl
from pypto import ir

CORE = pl.Level.CORE_GROUP
T = pl.dynamic("T")
VALID = pl.dynamic("VALID")


@pytest.fixture(autouse=True)
def build_dir(tmp_path, monkeypatch):
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path))


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def count(n: int) -> np.ndarray:
    return np.array([n], np.int32)


# -- windows that are valid in part, made outside of the kernel that reads them ------------------------------


def test_a_scope_pads_a_window_whose_valid_extent_is_read_outside_of_it():
    @pl.jit
    def padded(
        a: pl.Tensor[[T, 64], pl.FP32], n: pl.Tensor[[1], pl.INT32], out: pl.Out[pl.Tensor[[16, 65], pl.FP32]]
    ):
        width = pl.cast(pl.tensor.read(n, [0]), pl.INDEX)
        window = pl.slice(a, [16, 64], [16, 0], valid_shape=[16, width])
        with pl.at(level=CORE):
            full = pl.fillpad(window, pad_value=pl.PadValue.zero)
            out = pl.assemble(out, full, [0, 0])
        with pl.at(level=CORE):
            out = pl.assemble(out, pl.row_sum(window), [0, 64])
        return out

    a = numbers(48, 64)
    for n in (20, 64):
        out = zeros(16, 65)
        padded(a, count(n), out)
        expected = np.where(np.arange(64) < n, a[16:32], 0)
        np.testing.assert_array_equal(out[:, :64], expected)
        np.testing.assert_allclose(out[:, 64], expected.sum(1), atol=1e-4)


def test_the_blocks_of_a_launch_know_the_valid_extent_of_a_window_made_outside():
    @pl.jit
    def padded(
        a: pl.Tensor[[T, 64], pl.FP32], n: pl.Tensor[[1], pl.INT32], out: pl.Out[pl.Tensor[[32, 64], pl.FP32]]
    ):
        width = pl.cast(pl.tensor.read(n, [0]), pl.INDEX)
        window = pl.slice(a, [32, 64], [16, 0], valid_shape=[32, width])
        for block in pl.spmd(2):
            part = pl.slice(window, [16, 64], [block * 16, 0])
            out = pl.assemble(out, pl.fillpad(part, pad_value=pl.PadValue.zero), [block * 16, 0])
        return out

    a, out = numbers(48, 64), zeros(32, 64)
    padded(a, count(20), out)
    np.testing.assert_array_equal(out, np.where(np.arange(64) < 20, a[16:48], 0))


def test_a_kernel_computes_with_the_symbol_of_a_valid_region_in_its_signature():
    @pl.program
    class Padded:
        @pl.function(type=pl.FunctionType.InCore)
        def pad(
            self,
            a: pl.Tensor[
                [16, 64], pl.FP32, pl.TensorView(valid_shape=[16, VALID], layout=pl.TensorLayout.ND)
            ],
            out: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
        ) -> pl.Tensor[[16, 64], pl.FP32]:
            part = pl.load(a, [0, 0], [16, 64], valid_shape=[16, VALID])
            full = pl.tile.fillpad(part, pad_value=pl.PadValue.zero)
            return pl.store(full, [0, 0], out)

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self,
            a: pl.Tensor[[T, 64], pl.FP32],
            n: pl.Tensor[[1], pl.INT32],
            out: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
        ) -> pl.Tensor[[16, 64], pl.FP32]:
            width = pl.cast(pl.tensor.read(n, [0]), pl.INDEX)
            window = pl.slice(a, [16, 64], [16, 0], valid_shape=[16, width])
            out = self.pad(window, out)
            return out

    a, out = numbers(48, 64), zeros(16, 64)
    ir.compile(Padded, dump_passes=False)(a, count(20), out)
    np.testing.assert_array_equal(out, np.where(np.arange(64) < 20, a[16:32], 0))


# -- names that mean something else in every block -----------------------------------------------------------


def test_a_name_of_an_inner_loop_means_a_value_of_another_type_after_it():
    @pl.jit
    def scaled(x: pl.Tensor[[32, 64], pl.FP32], y: pl.Out[pl.Tensor[[32, 64], pl.FP32]]):
        with pl.at(level=CORE):
            for i in pl.range(2):
                for j in pl.range(2):
                    t = pl.load(x, [i * 16, j * 32], [16, 32])
                    t = pl.mul(t, 2.0)
                    y = pl.store(t, [i * 16, j * 32], y)
                t = pl.load(y, [i * 16, 0], [16, 64])
                t = pl.add(t, 1.0)
                y = pl.store(t, [i * 16, 0], y)
            t = pl.load(y, [0, 0], [32, 64])
            y = pl.store(pl.mul(t, 0.5), [0, 0], y)
        return y

    x, y = numbers(32, 64), zeros(32, 64)
    scaled(x, y)
    np.testing.assert_array_equal(y, (2 * x + 1) / 2)


def test_a_name_of_a_loop_variable_means_a_value_in_the_inner_loop_of_a_later_loop():
    @pl.jit
    def picked(
        x: pl.Tensor[[T, 64], pl.FP32],
        order: pl.Tensor[[8], pl.INT32],
        y: pl.Out[pl.Tensor[[8, 64], pl.FP32]],
    ):
        with pl.at(level=CORE):
            for row in pl.range(8):
                y = pl.assemble(y, pl.neg(x[row : row + 1, :]), [row, 0])
        for block in pl.range(2):
            for i in pl.range(4):
                place = block * 4 + i
                row = pl.tensor.read(order, [place])
                with pl.at(level=CORE):
                    start = pl.cast(row, pl.INDEX)
                    y = pl.assemble(y, pl.add(x[start : start + 1, :], y[place : place + 1, :]), [place, 0])
        return y

    x, y = numbers(32, 64), zeros(8, 64)
    order = np.array([31, 3, 0, 7, 9, 9, 1, 30], np.int32)
    picked(x, order, y)
    np.testing.assert_array_equal(y, x[order] - x[:8])


def test_an_entry_without_a_return_may_end_in_a_call_whose_result_has_no_name():
    @pl.jit.incore
    def negate(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        pl.store(pl.neg(pl.load(x, [0, 0], [16, 64])), [0, 0], y)

    @pl.jit
    def entry(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        negate(x, y)

    x, y = numbers(16, 64), zeros(16, 64)
    entry(x, y)
    np.testing.assert_array_equal(y, -x)


@pl.jit.incore
def add_one(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    pl.store(pl.add(pl.load(x, [0, 0], [16, 64]), 1.0), [0, 0], y)
    return y


@pl.jit.incore
def add_one_and_two(x: pl.Tensor, y: pl.Out[pl.Tensor], z: pl.Out[pl.Tensor]):
    t = pl.add(pl.load(x, [0, 0], [16, 64]), 1.0)
    pl.store(t, [0, 0], y)
    pl.store(pl.add(t, 1.0), [0, 0], z)
    return y, z


def test_after_a_call_as_a_statement_the_name_of_an_output_means_what_was_written():
    @pl.jit
    def entry(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        t = pl.create_tensor([16, 64], dtype=pl.FP32)
        add_one(x, t)
        for _ in pl.range(3):
            add_one(t, y=y)
        add_one(y, t)
        add_one(t, y)
        return y

    x, y = numbers(16, 64), zeros(16, 64)
    entry(x, y)
    np.testing.assert_allclose(y, x + 4, rtol=1e-6)


def test_an_entry_without_a_return_gives_the_outputs_of_a_call_as_a_statement():
    @pl.jit
    def entry(
        x: pl.Tensor[[16, 64], pl.FP32],
        y: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
        z: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
    ):
        add_one_and_two(x, y, z)

    x, y, z = numbers(16, 64), zeros(16, 64), zeros(16, 64)
    entry(x, y, z)
    np.testing.assert_allclose(y, x + 1, rtol=1e-6)
    np.testing.assert_allclose(z, x + 2, rtol=1e-6)
    assert entry.compile().has_return


def test_the_name_of_an_output_may_be_read_on_the_line_of_the_call():
    @pl.jit
    def chained(x: pl.Tensor, t: pl.InOut[pl.Tensor], y: pl.Out[pl.Tensor]):
        add_one(x, t); y = add_one(t, y)  # fmt: skip  # noqa: E702
        return y

    x, t, y = numbers(16, 64), zeros(16, 64), zeros(16, 64)
    chained(x, t, y)
    np.testing.assert_allclose(y, x + 2, rtol=1e-6)


def test_a_call_as_a_statement_whose_outputs_are_not_read_again_stays_a_statement():
    @pl.jit
    def entry(x: pl.Tensor, y: pl.Out[pl.Tensor], z: pl.Out[pl.Tensor]):
        add_one(x, y)
        z = add_one(x, z)
        return z

    text = entry.lower(numbers(16, 64), zeros(16, 64), zeros(16, 64)).as_python()
    assert re.search(r"^ +self\.add_one\(x__ssa_v0, y__ssa_v0", text, re.MULTILINE)


# -- positions and extents read from memory as INT32 ---------------------------------------------------------


def test_a_computed_tensor_is_cut_and_written_at_int32_positions_and_extents():
    @pl.jit
    def cut(
        x: pl.Tensor[[16, 64], pl.FP32],
        at: pl.Tensor[[3], pl.INT32],
        rows: pl.Out[pl.Tensor[[1, 64], pl.FP32]],
        written: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
        padded: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
    ):
        width = pl.read(at, [0])
        with pl.at(level=CORE):
            twice = pl.mul(x, 2.0)
            total = pl.full([1, 64], dtype=pl.FP32, value=0.0)
            board = pl.full([16, 64], dtype=pl.FP32, value=1.0)
            for i in pl.range(3):
                row = pl.read(at, [i])
                total = pl.add(total, twice[row : row + 1, :])
                board[row : row + 1, :] = x[i : i + 1, :]
            rows[:] = total
            written[:] = board
            window = pl.slice(twice, [16, 64], [0, 0], valid_shape=[16, width])
            padded[:] = pl.fillpad(window, pad_value=pl.PadValue.zero)
        return rows, written, padded

    x, at = numbers(16, 64), np.array([10, 3, 7], np.int32)
    rows, written, padded = zeros(1, 64), zeros(16, 64), zeros(16, 64)
    cut(x, at, rows, written, padded)
    np.testing.assert_allclose(rows, 2 * x[at].sum(axis=0, keepdims=True), rtol=1e-5, atol=1e-5)
    board = np.ones((16, 64), np.float32)
    board[at] = x[:3]
    np.testing.assert_array_equal(written, board)
    np.testing.assert_array_equal(padded[:, :10], 2 * x[:, :10])
    assert not padded[:, 10:].any()


def test_a_tile_made_from_a_window_of_int32_extents_keeps_them_in_its_views():
    @pl.jit
    def views(
        x: pl.Tensor[[16, 64], pl.FP32],
        n: pl.Tensor[[1], pl.INT32],
        out: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
    ):
        count = pl.read(n, [0])
        with pl.at(level=CORE):
            wide = pl.slice(x, [16, 64], [0, 0], valid_shape=[16, count])
            tall = pl.transpose(pl.slice(x, [16, 16], [0, 0], valid_shape=[count, 16]), 0, 1)
            out = pl.assemble(out, pl.row_expand_mul(wide, pl.row_max(tall)), [0, 0])
        return out

    x, out = numbers(16, 64), zeros(16, 64)
    views(x, count(10), out)
    np.testing.assert_allclose(out[:, :10], x[:, :10] * x[:10, :16].max(axis=0)[:, None], rtol=1e-6)
    assert not out[:, 10:].any()


@pl.jit.incore
def pad_rows(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    full = pl.tile.fillpad(pl.load(x, [0, 0], [16, 64]), pad_value=pl.PadValue.zero)
    y = pl.store(full, [0, 0], y)
    return y


def test_a_called_kernel_reads_no_more_of_a_window_than_its_caller_knows_to_be_valid():
    @pl.jit
    def fixed(a: pl.Tensor, y: pl.Out[pl.Tensor]):
        y = pad_rows(pl.slice(a, [16, 64], [0, 0], valid_shape=[8, 64]), y)
        return y

    @pl.jit
    def read(a: pl.Tensor, n: pl.Tensor, y: pl.Out[pl.Tensor]):
        rows = pl.cast(pl.tensor.read(n, [0]), pl.INDEX)
        window = pl.slice(a, [16, 64], [0, 0], valid_shape=[rows, 64])
        y, _ = pl.submit(pad_rows, window, y)
        return y

    a, y = numbers(16, 64), zeros(16, 64)
    fixed(a, y)
    np.testing.assert_array_equal(y, np.where(np.arange(16)[:, None] < 8, a, 0))
    read(a, count(5), y)
    np.testing.assert_array_equal(y, np.where(np.arange(16)[:, None] < 5, a, 0))


# -- inline helpers inside expressions -----------------------------------------------------------------------


@pl.jit.inline
def silu(x: pl.Tensor):
    return pl.mul(x, pl.recip(pl.add(pl.exp(pl.neg(x)), 1.0)))


def test_an_inline_helper_may_be_called_inside_an_expression():
    @pl.jit
    def gated(x: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        with pl.at(level=CORE):
            for i in pl.range(2):
                z = pl.mul(silu(pl.slice(x, [8, 64], [i * 8, 0])), 2.0)
                y[i * 8 : i * 8 + 8, :] = silu(silu(z))
        return y

    def expected(x: np.ndarray) -> np.ndarray:
        return x / (1 + np.exp(-x))

    x, y = numbers(16, 64), zeros(16, 64)
    gated(x, y)
    np.testing.assert_allclose(y, expected(expected(2 * expected(x))), rtol=1e-5, atol=1e-6)


def test_an_inline_helper_that_is_a_statement_stays_one():
    @pl.jit
    def plain(x: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        with pl.at(level=CORE):
            z = silu(x)
            y[:] = z
        return y

    assert "_inline_tmp" not in plain.lower(numbers(16, 64), zeros(16, 64)).as_python()
