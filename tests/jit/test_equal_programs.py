"""A lowered jit function is the program one would write by hand for the same shapes, after all passes."""

# ruff: noqa: RET504 - programs of the DSL are what is tested

from __future__ import annotations

import numpy as np
import pytest

import pypto.language as pl
from pypto import ir
from pypto.ir.pass_manager import PassManager

SQUARE = pl.Tensor[[64, 64], pl.FP32]
ROW = pl.Tensor[[1, 64], pl.FP32]
TILE = [64, 64]


# -- two functions, fused operators


@pl.jit.incore
def add(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
    s = pl.add(pl.load(x, [0, 0], TILE), pl.load(y, [0, 0], TILE))
    out = pl.store(s, [0, 0], out)
    return out


@pl.jit
def add_twice(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    t = pl.create_tensor([64, 64], dtype=pl.FP32)
    t = add(a, b, t)
    c = add(t, y=b, out=c)
    return c


@pl.program
class AddTwice:
    @pl.function(type=pl.FunctionType.InCore)
    def add(self, x: SQUARE, y: SQUARE, out: pl.Out[SQUARE]) -> SQUARE:
        s = pl.add(pl.load(x, [0, 0], TILE), pl.load(y, [0, 0], TILE))
        out = pl.store(s, [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def add_twice(self, a: SQUARE, b: SQUARE, c: pl.Out[SQUARE]) -> SQUARE:
        t = pl.create_tensor([64, 64], dtype=pl.FP32)
        t = self.add(a, b, t)
        c = self.add(t, b, c)
        return c


@pl.jit
def silu(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    rows, columns = a.shape
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.range(0, rows, 16):
            x = pl.load(a, [i, 0], [16, columns])
            x = pl.mul(x, pl.recip(pl.add(pl.exp(pl.neg(x)), 1.0)))
            pl.store(pl.mul(x, pl.load(b, [i, 0], [16, columns])), [i, 0], c)
    return c


@pl.program
class Silu:
    @pl.function(type=pl.FunctionType.Orchestration)
    def silu(self, a: SQUARE, b: SQUARE, c: pl.Out[SQUARE]) -> SQUARE:
        with pl.at(level=pl.Level.CORE_GROUP):
            for i in pl.range(0, 64, 16):
                x = pl.load(a, [i, 0], [16, 64])
                x = pl.mul(x, pl.recip(pl.add(pl.exp(pl.neg(x)), 1.0)))
                pl.store(pl.mul(x, pl.load(b, [i, 0], [16, 64])), [i, 0], c)
        return c


# -- a product on the cube


@pl.jit
def matmul(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        left = pl.load(a, [0, 0], TILE, target_memory=pl.Mem.Mat)
        left = pl.move(left, target_memory=pl.Mem.Left)
        right = pl.move(pl.load(b, [0, 0], TILE, target_memory=pl.Mem.Mat), target_memory=pl.Mem.Right)
        pl.store(pl.matmul(left, right), [0, 0], c)
    return c


@pl.program
class Matmul:
    @pl.function(type=pl.FunctionType.Orchestration)
    def matmul(self, a: SQUARE, b: SQUARE, c: pl.Out[SQUARE]) -> SQUARE:
        with pl.at(level=pl.Level.CORE_GROUP):
            staged = pl.load(a, [0, 0], TILE, target_memory=pl.Mem.Mat)
            left = pl.move(staged, target_memory=pl.Mem.Left)
            right = pl.move(pl.load(b, [0, 0], TILE, target_memory=pl.Mem.Mat), target_memory=pl.Mem.Right)
            pl.store(pl.matmul(left, right), [0, 0], c)
        return c


# -- rows: softmax and a norm, in an opaque function


@pl.jit.opaque
def softmax_rows(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        e = pl.exp(pl.row_expand_sub(x, pl.row_max(x)))
        out = pl.assemble(out, pl.row_expand_div(e, pl.row_sum(e)), [0, 0])
    return out


@pl.jit
def softmax(a: pl.Tensor, c: pl.Out[pl.Tensor]):
    c = softmax_rows(a, c)
    return c


@pl.program
class Softmax:
    @pl.function
    def softmax_rows(self, x: SQUARE, out: pl.Out[SQUARE]) -> SQUARE:
        with pl.at(level=pl.Level.CORE_GROUP):
            e = pl.exp(pl.row_expand_sub(x, pl.row_max(x)))
            out = pl.assemble(out, pl.row_expand_div(e, pl.row_sum(e)), [0, 0])
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def softmax(self, a: SQUARE, c: pl.Out[SQUARE]) -> SQUARE:
        c = self.softmax_rows(a, c)
        return c


@pl.jit.inline
def rms_norm(x: pl.Tensor, weight: pl.Tensor, out: pl.Tensor):
    with pl.at(level=pl.Level.CORE_GROUP):
        mean = pl.mul(pl.row_sum(pl.mul(x, x)), 1.0 / 64)
        scaled = pl.row_expand_mul(x, pl.rsqrt(pl.add(mean, 1e-6)))
        out = pl.assemble(out, pl.col_expand_mul(scaled, weight), [0, 0])
    return out


@pl.jit(auto_scope=False)
def norms(a: pl.Tensor, weight: pl.Tensor, c: pl.Out[pl.Tensor]):
    t = pl.create_tensor(a.shape, dtype=a.dtype)
    t = rms_norm(a, weight, t)
    c = rms_norm(t, weight, c)
    return c


@pl.program
class Norms:
    @pl.function(type=pl.FunctionType.Inline)
    def rms_norm(self, x: SQUARE, weight: ROW, out: SQUARE) -> SQUARE:
        with pl.at(level=pl.Level.CORE_GROUP):
            mean = pl.mul(pl.row_sum(pl.mul(x, x)), 1.0 / 64)
            scaled = pl.row_expand_mul(x, pl.rsqrt(pl.add(mean, 1e-6)))
            out = pl.assemble(out, pl.col_expand_mul(scaled, weight), [0, 0])
        return out

    @pl.function(type=pl.FunctionType.Orchestration, auto_scope=False)
    def norms(self, a: SQUARE, weight: ROW, c: pl.Out[SQUARE]) -> SQUARE:
        t = pl.create_tensor([64, 64], dtype=pl.FP32)
        t_v1 = self.rms_norm(a, weight, t)  # each binding of a name is a variable of its own
        c_v1 = self.rms_norm(t_v1, weight, c)
        return c_v1


# -- tiles put together in loops


@pl.jit
def quarters(a: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        whole = pl.create_tile(TILE, dtype=pl.FP32, target_memory=pl.Mem.Vec)
        for i in pl.range(2):
            for j in pl.range(2):
                part = pl.load(a, [i * 32, j * 32], [32, 32])
                whole = pl.tile.assemble(whole, pl.mul(part, 2.0), [i * 32, j * 32])
        pl.store(whole, [0, 0], c)
    return c


@pl.program
class Quarters:
    @pl.function(type=pl.FunctionType.Orchestration)
    def quarters(self, a: SQUARE, c: pl.Out[SQUARE]) -> SQUARE:
        with pl.at(level=pl.Level.CORE_GROUP):
            whole = pl.create_tile(TILE, dtype=pl.FP32, target_memory=pl.Mem.Vec)
            for i in pl.range(2):
                for j in pl.range(2):
                    part = pl.load(a, [i * 32, j * 32], [32, 32])
                    whole = pl.tile.assemble(whole, pl.mul(part, 2.0), [i * 32, j * 32])
            pl.store(whole, [0, 0], c)
        return c


@pytest.mark.parametrize(
    ("function", "by_hand"),
    [
        (add_twice, AddTwice),
        (silu, Silu),
        (matmul, Matmul),
        (softmax, Softmax),
        (norms, Norms),
        (quarters, Quarters),
    ],
)
def test_a_lowered_function_equals_the_program_written_by_hand(function, by_hand):
    samples = {
        name: np.zeros((1, 64) if name == "weight" else (64, 64), np.float32)
        for name in function.parameter_names
    }
    lowered = function.lower(*samples.values())
    expected = PassManager.get_strategy().run_passes(by_hand)
    ir.assert_structural_equal(lowered, expected, enable_auto_mapping=True)
