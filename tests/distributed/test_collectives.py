"""Collectives, in kernels and in host functions: values of every one, signals that are used again."""

from __future__ import annotations

import ml_dtypes  # noqa: F401 - registers the element types of numpy
import numpy as np
import pytest

import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig
from pypto.runtime.distributed.collectives import ON_ALL_RANKS

N, S = 3, 16
SHAPE, BLOCKS = [N, S], [2 * N, S]


def on(ranks: int) -> RunConfig:
    return RunConfig(platform="a2a3sim", distributed_config=DistributedConfig(device_ids=list(range(ranks))))


def numbers(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return np.random.default_rng(0).uniform(0.5, 2, shape).astype(dtype)


@pytest.mark.parametrize(
    ("op", "dtype", "fold"),
    [
        (pld.ReduceOp.Sum, pl.FP32, np.add),
        (pld.ReduceOp.Max, pl.FP16, np.maximum),
        (pld.ReduceOp.Min, pl.FP32, np.minimum),
        (pld.ReduceOp.Prod, pl.FP16, np.multiply),
    ],
)
@pytest.mark.parametrize("mode", ["mesh", "ring"])
def test_allreduce_in_a_kernel_gives_all_ranks_the_reduction_and_clears_its_signal(op, dtype, fold, mode):
    rows = 1 if mode == "mesh" else N
    cells = [N, 1] if mode == "mesh" else [2 * (N - 1), N]

    @pl.jit.incore
    def kernel(
        x: pl.Tensor,
        y: pl.Out[pl.Tensor],
        left: pl.Out[pl.Tensor],
        w: pl.InOut[pld.DistributedTensor[[rows, S], dtype]],
        s: pl.InOut[pld.DistributedTensor[cells, pl.INT32]],
    ):
        w = pl.store(pl.load(x, [0, 0], [rows, S]), [0, 0], w)
        for _i in pl.range(2):
            w = pld.tensor.allreduce(w, s, op=op, mode=mode)
        y = pl.store(pl.load(w, [0, 0], [rows, S]), [0, 0], y)
        for i in pl.range(N):
            pl.write(left, [0, i], pl.read(s, [i, 0]))
        return y

    @pl.jit
    def chip(
        x: pl.Tensor,
        y: pl.Out[pl.Tensor],
        left: pl.Out[pl.Tensor],
        w: pl.InOut[pld.DistributedTensor[[rows, S], dtype]],
        s: pl.InOut[pld.DistributedTensor[cells, pl.INT32]],
    ):
        return kernel(x, y, left, w, s)

    @pl.jit.host
    def host(x: pl.Tensor, y: pl.Out[pl.Tensor], left: pl.Out[pl.Tensor]):
        data = pld.alloc_window_buffer([rows, S], dtype=dtype)
        signals = pld.alloc_window_buffer(cells, dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            w = pld.window(data, [rows, S], dtype=dtype)
            s = pld.window(signals, cells, dtype=pl.INT32)
            chip(x[r], y[r], left[r], w, s, device=r)

    kind = np.float32 if dtype is pl.FP32 else np.float16
    x, y = numbers(N, rows, S, dtype=kind), np.zeros((N, rows, S), kind)
    left = np.ones((N, 1, N), np.int32)
    host(x, y, left, config=on(N))
    once = fold(fold(x[0], x[1]), x[2])
    np.testing.assert_array_equal(y, np.broadcast_to(fold(fold(once, once), once), x.shape))
    assert not left.any()


def test_collectives_in_a_kernel_move_rows_between_all_ranks():
    @pl.jit
    def chip(
        x: pl.Tensor,
        row: pl.Tensor,
        blocks: pl.Tensor,
        sends: pl.Tensor,
        o1: pl.Out[pl.Tensor],
        o2: pl.Out[pl.Tensor],
        o3: pl.Out[pl.Tensor],
        o4: pl.Out[pl.Tensor],
        o5: pl.Out[pl.Tensor],
        got: pl.Out[pl.Tensor],
        w1: pl.InOut[pld.DistributedTensor[SHAPE, pl.FP32]],
        w2: pl.InOut[pld.DistributedTensor[SHAPE, pl.FP32]],
        w3: pl.InOut[pld.DistributedTensor[SHAPE, pl.FP32]],
        w4: pl.InOut[pld.DistributedTensor[SHAPE, pl.FP32]],
        w5: pl.InOut[pld.DistributedTensor[BLOCKS, pl.FP32]],
        counts: pl.InOut[pld.DistributedTensor[[N, 1], pl.INT32]],
        s: pl.InOut[pld.DistributedTensor[[N, 1], pl.INT32]],
        me: pl.Scalar[pl.INT32],
    ):
        with pl.at(level=pl.Level.CORE_GROUP):
            w1[:] = pl.mul(x, 1.0)
            w1 = pld.tensor.broadcast(w1, s, root=1)
            o1[:] = pl.add(w1[0:N, :], 1.0)
            w2 = pld.tensor.allgather(row, w2, s)
            o2[:] = pl.mul(w2[0:N, :], 1.0)
            w3[:] = pl.mul(x, 2.0)
            w3 = pld.tensor.reduce_scatter(w3, s)
            o3[:] = pl.mul(w3[me : me + 1, :], 1.0)
            w4 = pld.tensor.all_to_all(x, w4, s)
            o4[:] = pl.mul(w4[0:N, :], 1.0)
            w5 = pld.tensor.all_to_all_v(blocks, w5, s, sends, counts)
            o5[:] = pl.mul(w5[0 : 2 * N, :], 1.0)
            for i in pl.range(N):
                pl.write(got, [i, 0], pl.read(counts, [i, 0]))

    @pl.jit.host
    def host(
        x: pl.Tensor,
        row: pl.Tensor,
        blocks: pl.Tensor,
        sends: pl.Tensor,
        o1: pl.Out[pl.Tensor],
        o2: pl.Out[pl.Tensor],
        o3: pl.Out[pl.Tensor],
        o4: pl.Out[pl.Tensor],
        o5: pl.Out[pl.Tensor],
        got: pl.Out[pl.Tensor],
    ):
        b1 = pld.alloc_window_buffer(SHAPE, dtype=pl.FP32)
        b2 = pld.alloc_window_buffer(SHAPE, dtype=pl.FP32)
        b3 = pld.alloc_window_buffer(SHAPE, dtype=pl.FP32)
        b4 = pld.alloc_window_buffer(SHAPE, dtype=pl.FP32)
        b5 = pld.alloc_window_buffer(BLOCKS, dtype=pl.FP32)
        b6 = pld.alloc_window_buffer([N, 1], dtype=pl.INT32)
        b7 = pld.alloc_window_buffer([N, 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            w1 = pld.window(b1, SHAPE, dtype=pl.FP32)
            w2 = pld.window(b2, SHAPE, dtype=pl.FP32)
            w3 = pld.window(b3, SHAPE, dtype=pl.FP32)
            w4 = pld.window(b4, SHAPE, dtype=pl.FP32)
            w5 = pld.window(b5, BLOCKS, dtype=pl.FP32)
            counts = pld.window(b6, [N, 1], dtype=pl.INT32)
            s = pld.window(b7, [N, 1], dtype=pl.INT32)
            chip(
                x[r],
                row[r],
                blocks[r],
                sends[r],
                o1[r],
                o2[r],
                o3[r],
                o4[r],
                o5[r],
                got[r],
                w1,
                w2,
                w3,
                w4,
                w5,
                counts,
                s,
                r,
                device=r,
            )

    x, row, blocks = numbers(N, N, S), numbers(N, 1, S), numbers(N, 2 * N, S)
    sends = np.array([[0, 1, 2], [2, 5, 1], [1, 0, 2]], np.int32)
    o1, o2, o3, o4, o5 = (np.zeros((N, n, S), np.float32) for n in (N, N, 1, N, 2 * N))
    got = np.zeros((N, N, 1), np.int32)
    host(x, row, blocks, sends, o1, o2, o3, o4, o5, got, config=on(N))
    np.testing.assert_array_equal(o1, np.broadcast_to(x[1] + 1, x.shape))
    np.testing.assert_array_equal(o2, np.broadcast_to(row[:, 0], x.shape))
    np.testing.assert_allclose(o3[:, 0], 2 * x.sum(0), rtol=1e-6)
    np.testing.assert_array_equal(o4, x.swapaxes(0, 1))
    np.testing.assert_array_equal(got[:, :, 0], np.minimum(sends, 2).T)
    for me in range(N):
        for sender in range(N):
            rows = got[me, sender, 0]
            np.testing.assert_array_equal(
                o5[me, 2 * sender : 2 * sender + rows], blocks[sender, 2 * me : 2 * me + rows]
            )


def test_a_host_function_calls_collectives_between_dispatches():
    @pl.jit
    def fill(x: pl.Tensor, w: pl.InOut[pld.DistributedTensor[SHAPE, pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            w[:] = pl.mul(x, 1.0)

    @pl.jit
    def take(w: pld.DistributedTensor[SHAPE, pl.FP32], y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.mul(w[0:N, :], 1.0)

    @pl.jit.host
    def host(
        x: pl.Tensor,
        summed: pl.Out[pl.Tensor],
        sent: pl.Out[pl.Tensor],
        scattered: pl.Out[pl.Tensor],
        swapped: pl.Out[pl.Tensor],
    ):
        data = pld.alloc_window_buffer(SHAPE, dtype=pl.FP32)
        more = pld.alloc_window_buffer(SHAPE, dtype=pl.FP32)
        signals = pld.alloc_window_buffer([N], dtype=pl.INT32)
        s = pld.window(signals, [N], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            w0 = pld.window(data, SHAPE, dtype=pl.FP32)
            fill(x[r], w0, device=r)
        w = pld.window(data, SHAPE, dtype=pl.FP32)
        v = pld.window(more, SHAPE, dtype=pl.FP32)
        v = pld.tensor.all_to_all(w, v, s)
        for r in pl.range(pld.world_size()):
            take(v, swapped[r], device=r)
        v = pld.tensor.reduce_scatter(v, s)
        for r in pl.range(pld.world_size()):
            take(v, scattered[r], device=r)
        w = pld.tensor.broadcast(w, s, root=2)
        for r in pl.range(pld.world_size()):
            take(w, sent[r], device=r)
        w = pld.tensor.allreduce(w)
        s = pld.tensor.barrier(s)
        for r in pl.range(pld.world_size()):
            take(w, summed[r], device=r)

    x = numbers(N, N, S)
    summed, sent, scattered, swapped = (np.zeros_like(x) for _ in range(4))
    host(x, summed, sent, scattered, swapped, config=on(N))
    np.testing.assert_array_equal(swapped, x.swapaxes(0, 1))
    for rank in range(N):
        np.testing.assert_allclose(scattered[rank, rank], x[rank].sum(0), rtol=1e-6)
    np.testing.assert_array_equal(sent, np.broadcast_to(x[2], x.shape))
    np.testing.assert_allclose(summed, np.broadcast_to(3 * x[2], x.shape), rtol=1e-6)


def test_a_host_gathers_rows_and_exchanges_counted_blocks():
    x, target = numbers(N, 1, S), np.zeros((N, N, S), np.float32)
    ON_ALL_RANKS["allgather"](list(x), list(target), [])
    np.testing.assert_array_equal(target, np.broadcast_to(x[:, 0], target.shape))
    sends = np.array([[0, 1, 2], [2, 5, 1], [1, 0, 2]], np.int32)
    blocks, target = numbers(N, 2 * N, S), np.zeros((N, 2 * N, S), np.float32)
    got = np.zeros((N, N, 1), np.int32)
    ON_ALL_RANKS["all_to_all_v"](list(blocks), list(target), [], list(sends), list(got))
    np.testing.assert_array_equal(got[:, :, 0], np.minimum(sends, 2).T)
    for me in range(N):
        for sender in range(N):
            block = slice(2 * sender, 2 * sender + got[me, sender, 0])
            np.testing.assert_array_equal(target[me, block], blocks[sender, 2 * me :][: got[me, sender, 0]])


def test_a_kernel_cannot_reduce_without_a_signal():
    @pl.jit
    def chip(w: pl.InOut[pld.DistributedTensor[SHAPE, pl.FP32]], y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            w = pld.tensor.allreduce(w)
            y[:] = pl.mul(w[0:N, :], 1.0)

    @pl.jit.host
    def host(y: pl.Out[pl.Tensor]):
        data = pld.alloc_window_buffer(SHAPE, dtype=pl.FP32)
        for r in pl.range(pld.world_size()):
            w = pld.window(data, SHAPE, dtype=pl.FP32)
            chip(w, y[r], device=r)

    with pytest.raises(Exception, match="an allreduce inside a kernel needs a signal"):
        host(numbers(N, N, S), config=on(N))
