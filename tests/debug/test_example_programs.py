"""Programs of the kinds that users write compute at every stage what the compiled code does."""

# ruff: noqa: RET504 - programs of the DSL are what is tested

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pypto.language as pl

FP32 = np.float32
TILE = [64, 64]


def normal(*shape: int, dtype: Any = FP32) -> np.ndarray[Any, Any]:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def softmax_of(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


@pl.jit.incore
def product(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    left = pl.move(pl.load(a, [0, 0], TILE, target_memory=pl.Mem.Mat), target_memory=pl.Mem.Left)
    right = pl.move(pl.load(b, [0, 0], TILE, target_memory=pl.Mem.Mat), target_memory=pl.Mem.Right)
    pl.store(pl.matmul(left, right), [0, 0], out)
    return out


@pl.jit.incore
def bias_relu(x: pl.Tensor, bias: pl.Tensor, out: pl.Out[pl.Tensor]):
    shifted = pl.col_expand_add(pl.load(x, [0, 0], TILE), pl.load(bias, [0, 0], [1, 64]))
    pl.store(pl.relu(shifted), [0, 0], out)
    return out


@pl.jit
def fused_linear(x: pl.Tensor, weight: pl.Tensor, bias: pl.Tensor, out: pl.Out[pl.Tensor]):
    between = pl.create_tensor([64, 64], dtype=pl.FP32)
    between = product(x, weight, between)
    out = bias_relu(between, bias, out)
    return out


@pl.jit.incore
def padded_rows(x: pl.Tensor, lengths: pl.Tensor, n: pl.INDEX, factor: pl.FP32, out: pl.Out[pl.Tensor]):
    for i in pl.range(n):
        if i == n - 1:
            valid = pl.yield_(pl.cast(pl.read(lengths, [0]), pl.INDEX))
        else:
            valid = pl.yield_(64)
        t = pl.load(x, [i * 16, 0], [16, 64], valid_shape=[16, valid])
        t = pl.mul(pl.tile.fillpad(t, pad_value=pl.PadValue.min), factor)
        scratch = pl.create_tile([16, 64], dtype=pl.FP32, target_memory=pl.Mem.Vec)
        pl.store(pl.row_max(t, scratch), [i * 16, 0], out)
    return out


@pl.jit
def valid_shapes(x: pl.Tensor, lengths: pl.Tensor, n: pl.INDEX, factor: pl.FP32, out: pl.Out[pl.Tensor]):
    out = padded_rows(x, lengths, n, factor, out)
    return out


@pl.jit
def task_graph(a: pl.Tensor, b: pl.Tensor, first: pl.Out[pl.Tensor], second: pl.Out[pl.Tensor]):
    t = pl.create_tensor([64, 64], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP) as added:
        t[:] = pl.add(a, b)
    with pl.at(level=pl.Level.CORE_GROUP, deps=[added]) as doubled:
        first[:] = pl.mul(t, 2.0)
    with pl.at(level=pl.Level.CORE_GROUP, deps=[added, doubled]):
        second[:] = pl.sub(t, a)
    return first, second


@pl.jit
def split_k(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.full([64, 64], dtype=pl.FP32, value=0.0)
    for k in pl.parallel(0, 128, 32):
        with pl.at(level=pl.Level.CORE_GROUP):
            part = pl.matmul(a[:, k : k + 32], b[k : k + 32, :], out_dtype=pl.FP32)
            out = pl.assemble(out, part, [0, 0], atomic=pl.AtomicType.Add)
    return out


@pl.jit
def mixed_kernel(a: pl.Tensor, b: pl.Tensor, c: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(pl.SplitMode.UP_DOWN)]):
        half = pl.cast(pl.mul(pl.cast(a, pl.FP32), 0.5), pl.FP16)
        out[:] = pl.maximum(pl.add(pl.matmul(half, b, out_dtype=pl.FP32), c), 0.0)
    return out


@pl.jit
def flash_attention(q: pl.Tensor, k: pl.Tensor, v: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        m0 = pl.full([16, 1], dtype=pl.FP32, value=-1e30)
        s0 = pl.full([16, 1], dtype=pl.FP32, value=0.0)
        o0 = pl.full([16, 64], dtype=pl.FP32, value=0.0)
        for j, (m, sums, o) in pl.range(0, 4, init_values=(m0, s0, o0)):
            keys = pl.slice(k, [32, 64], [j * 32, 0])
            scores = pl.matmul(q, keys, b_trans=True, out_dtype=pl.FP32)
            larger = pl.maximum(m, pl.row_max(scores))
            p, shrink = pl.exp(pl.row_expand_sub(scores, larger)), pl.exp(pl.sub(m, larger))
            part = pl.matmul(p, pl.slice(v, [32, 64], [j * 32, 0]), out_dtype=pl.FP32)
            added = pl.add(pl.mul(sums, shrink), pl.row_sum(p))
            _, total, result = pl.yield_(larger, added, pl.add(pl.row_expand_mul(o, shrink), part))
        out = pl.assemble(out, pl.row_expand_div(result, total), offset=[0, 0])
    return out


@pl.jit.incore
def plus_one(x: pl.Tensor, row: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor]):
    out = pl.store(pl.add(pl.load(x, [row, 0], [16, 64]), 1.0), [row, 0], out)
    return out


@pl.jit
def fenced_phases(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    between = pl.create_tensor([64, 64], dtype=pl.FP32)
    with pl.manual_scope():
        tasks = pl.array.create(4, pl.TASK_ID)
        for i in pl.range(4):
            between, task = pl.submit(plus_one, x, i * 16, between)
            tasks[i] = task
        fence = pl.system.task_dummy(deps=[tasks])
        for j in pl.range(4):
            out, _ = pl.submit(plus_one, between, j * 16, out, deps=[fence])
    return out


X, Y, HALF = normal(64, 64), normal(64, 64)[::-1].copy(), normal(64, 64, dtype=np.float16)
Q, KEYS, WIDE = normal(16, 64), normal(128, 64), normal(64, 128)
EMPTY = np.zeros((64, 64), FP32)


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        (fused_linear, (X, Y, X[:1], EMPTY), lambda: [np.maximum(X @ Y + X[:1], 0)]),
        (
            valid_shapes,
            (X, np.array([37], np.int32), 4, 0.5, np.zeros((64, 1), FP32)),
            lambda: [np.r_[X[:48].max(1), X[48:, :37].max(1)][:, None] / 2],
        ),
        (task_graph, (X, Y, EMPTY, EMPTY), lambda: [2 * (X + Y), Y]),
        (split_k, (WIDE, KEYS, EMPTY), lambda: [WIDE @ KEYS]),
        (
            mixed_kernel,
            (HALF, HALF, X, EMPTY),
            lambda: [np.maximum(HALF.astype(FP32) @ HALF.astype(FP32) / 2 + X, 0)],
        ),
        (
            flash_attention,
            (Q, KEYS, KEYS, np.zeros((16, 64), FP32)),
            lambda: [softmax_of(Q @ KEYS.T) @ KEYS],
        ),
        (fenced_phases, (X, EMPTY), lambda: [X + 2]),
    ],
    ids=["fused_linear", "valid_shapes", "task_graph", "split_k", "mixed_kernel", "attention", "fences"],
)
def test_every_stage_computes_what_the_compiled_program_does(
    function: Any, arguments: Any, expected: Callable[[], Any], tmp_path: Any, monkeypatch: Any
) -> None:
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path))
    compiled = function.compile(*arguments)
    given = [each.copy() if isinstance(each, np.ndarray) else each for each in arguments]
    assert compiled(*given) is None
    results = {compiled.param_names[i]: given[i] for i in compiled.output_indices}
    for result, wanted in zip(results.values(), expected(), strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-2, atol=1e-2)
    compiled.validate_ir(dict(zip(compiled.param_names, arguments, strict=True)), results, rtol=1e-4)
