"""Programs that several ranks run together: host functions, windows, signals, transfers."""

# ruff: noqa: B007, RET504 - programs of the DSL are what is tested

from __future__ import annotations

import json
import re
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest

import pypto.language as pl
import pypto.language.distributed as pld
from pypto import ir
from pypto.backend.toolchain import kernel_include_dir
from pypto.ir.distributed_compiled_program import DistributedCompiledProgram, DistributedConfig
from pypto.runtime import DeviceTensor, DistributedWorker, RunConfig, StackedDeviceTensor
from pypto.runtime.distributed import windows
from pypto.runtime.distributed_runner import _tensor_from_continuous

N = 8
ROWS = pl.dynamic("ROWS")


@pytest.fixture(autouse=True)
def build_dir(tmp_path, monkeypatch):
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path))


def on(ranks: int) -> RunConfig:
    return RunConfig(distributed_config=DistributedConfig(device_ids=list(range(ranks))))


def numbers(ranks: int, *shape: int) -> np.ndarray:
    size = ranks * int(np.prod(shape or (N, N)))
    return np.arange(size, dtype=np.float32).reshape(ranks, *(shape or (N, N)))


# -- a host without windows ----------------------------------------------------------------------------------


@pl.jit.incore
def scale(x: pl.Tensor, y: pl.Out[pl.Tensor], rank: pl.Scalar[pl.INT32]):
    t = pl.load(x, [0, 0], [N, N])
    y = pl.store(pl.mul(t, pl.cast(rank, pl.FP32)), [0, 0], y)
    return y


@pl.jit
def scale_chip(x: pl.Tensor, y: pl.Out[pl.Tensor], rank: pl.Scalar[pl.INT32]):
    return scale(x, y, rank)


@pl.jit.host
def scale_host(x: pl.Tensor[[ROWS, N, N], pl.FP32], y: pl.Out[pl.Tensor[[ROWS, N, N], pl.FP32]]):
    for r in pl.range(pld.world_size()):
        scale_chip(x[r], y[r], r, device=r)


def scaled(x: np.ndarray) -> np.ndarray:
    return x * np.arange(len(x), dtype=np.float32).reshape(-1, 1, 1)


def test_each_rank_gets_its_slice_and_its_number():
    for ranks in (1, 2, 5):
        x, y = numbers(ranks), np.zeros((ranks, N, N), np.float32)
        compiled = scale_host.compile(x, y, config=on(ranks))
        assert isinstance(compiled, DistributedCompiledProgram)
        compiled(x, y)
        np.testing.assert_array_equal(y, scaled(x))


def test_a_lowered_host_dispatches_slices_to_devices():
    lowered = scale_host.lower(numbers(2), numbers(2))
    host = lowered.get_function("scale_host")
    assert host.level is pl.Level.HOST
    assert "self.scale_chip(" in str(lowered) and "device=r__idx_v0" in str(lowered)


def test_a_build_can_be_loaded_and_run_again(tmp_path):
    x, y = numbers(2), np.zeros((2, N, N), np.float32)
    compiled = scale_host.compile(x, y, config=on(2))
    again = DistributedCompiledProgram.from_dir(compiled.output_dir)
    assert again.device_ids == [0, 1] and again.param_names == ["x", "y"]
    again(x, y)
    np.testing.assert_array_equal(y, scaled(x))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"schema": 1}, "Incompatible schema"),
        ({"distributed_config": {"device_ids": [0], "speed": 3}}, "wrong 'distributed_config'"),
        ({"distributed_config": {"device_ids": [0, 0]}}, "device_ids must be distinct"),
        ({"distributed_config": {"device_ids": [True]}}, "wrong 'distributed_config'"),
        ({"distributed_config": {"runtime": 3}}, "wrong 'distributed_config'"),
    ],
)
def test_metadata_that_is_not_as_described_is_refused(tmp_path, change, text):
    compiled = scale_host.compile(numbers(2), numbers(2), config=on(2))
    path = Path(shutil.copytree(compiled.output_dir, tmp_path / "copy")) / "distributed_meta.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match=text) as caught:
        DistributedCompiledProgram.from_dir(path.parent)
    assert str(path) in str(caught.value)


def test_without_a_device_ranks_take_turns_and_host_memory_keeps_its_order():
    @pl.jit.incore
    def add(x: pl.Tensor, y: pl.InOut[pl.Tensor]):
        t = pl.add(pl.mul(pl.load(y, [0, 0], [N, N]), 2.0), pl.load(x, [0, 0], [N, N]))
        y = pl.store(t, [0, 0], y)
        return y

    @pl.jit
    def chip(x: pl.Tensor, y: pl.InOut[pl.Tensor]):
        return add(x, y)

    @pl.jit.host
    def host(x: pl.Tensor, y: pl.InOut[pl.Tensor]):
        for i in pl.range(6):
            y = chip(x, y)

    x, y = np.ones((N, N), np.float32), np.zeros((N, N), np.float32)
    host(x, y, config=on(3))
    assert (y == 2**6 - 1).all()


def test_a_dispatch_to_a_rank_that_does_not_exist_is_refused():
    @pl.jit.host
    def host(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        scale_chip(x[0], y[0], 0, device=7)

    with pytest.raises(ValueError, match="'scale_chip' is dispatched to rank 7 of 2"):
        host(numbers(2), numbers(2), config=on(2))


def test_a_host_cannot_call_a_kernel():
    @pl.jit.host
    def host(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        scale(x[0], y[0], 0)

    with pytest.raises(ValueError, match="call a function that dispatches it on a rank"):
        host.compile(numbers(2), numbers(2), config=on(2))


# -- windows -------------------------------------------------------------------------------------------------


@pl.jit.incore
def shift(
    x: pl.Tensor,
    w: pld.DistributedTensor,
    s: pld.DistributedTensor,
    y: pl.Out[pl.Tensor],
    by: pl.Scalar[pl.INT32],
):
    ctx = pld.get_comm_ctx(w)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    w = pl.store(pl.load(x, [0, 0], [N, N]), [0, 0], w)
    for p in pl.range(n):
        pld.system.notify(s, p, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(s, [0, 0], n, cmp=pld.WaitCmp.Ge)
    y = pl.store(pld.remote_load(w, (me + by) % n, [0, 0], [N, N]), [0, 0], y)
    return y


@pl.jit
def shift_chip(
    x: pl.Tensor,
    w: pld.DistributedTensor,
    s: pld.DistributedTensor,
    y: pl.Out[pl.Tensor],
    by: pl.Scalar[pl.INT32],
):
    return shift(x, w, s, y, by)


@pl.jit.host
def shift_host(x: pl.Tensor, y: pl.Out[pl.Tensor], by: pl.Scalar[pl.INT32]):
    data = pld.alloc_window_buffer([N, N], dtype=pl.FP32)
    signals = pld.alloc_window_buffer([1, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        w = pld.window(data, [N, N], dtype=pl.FP32)
        s = pld.window(signals, [1, 1], dtype=pl.INT32)
        shift_chip(x[r], w, s, y[r], by, device=r)


@pytest.mark.parametrize("ranks", [1, 2, 7])
def test_ranks_read_the_windows_of_their_peers(ranks):
    x, y = numbers(ranks), np.zeros((ranks, N, N), np.float32)
    for by in (1, 2):
        shift_host(x, y, by, config=on(ranks))
        np.testing.assert_array_equal(y, np.roll(x, -by, axis=0))


def test_windows_are_zero_at_each_run_unless_they_persist():
    x, y = numbers(2), np.zeros((2, N, N), np.float32)
    compiled = shift_host.compile(x, y, 1, config=on(2))
    with compiled.prepare() as worker:
        for _ in range(3):
            y[:] = 0
            worker(x, y, 1)
            np.testing.assert_array_equal(y, x[::-1])
    with compiled.prepare(persistent=True, reset_persistent_windows=False) as worker:
        worker(x, y, 1)
        assert worker._windows[0]["signals"].of_rank(0).view(np.int32)[0] == 2
        worker(x, y, 1)
        assert worker._windows[0]["signals"].of_rank(0).view(np.int32)[0] == 4
    with compiled.prepare(persistent=True) as worker:
        for _ in range(2):
            worker(x, y, 1)
            assert worker._windows[0]["signals"].of_rank(0).view(np.int32)[0] == 2
    with pytest.raises(ValueError, match="persistent"):
        compiled.prepare(reset_persistent_windows=True)
    for seconds in (0, -1.0, float("inf"), float("nan")):
        with pytest.raises(ValueError, match="startup_timeout_s"):
            compiled.prepare(startup_timeout_s=seconds)


@pl.jit.incore
def transfers(x: pl.Tensor, w: pld.DistributedTensor, s: pld.DistributedTensor, y: pl.Out[pl.Tensor]):
    ctx = pld.get_comm_ctx(w)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    nxt = (me + 1) % n
    pld.tensor.put(w, nxt, x, [0, 0], [0, 0], [4, N])
    pld.remote_store(pl.load(x, [4, 0], [4, N]), w, nxt, [4, 0])
    s = pld.tensor.barrier(s)
    for p in pl.range(n):
        pld.remote_store(pl.load(x, [0, 0], [4, N]), w, p, [8, 0], atomic=pld.AtomicType.Add)
    s = pld.tensor.barrier(s)
    pld.tensor.get(y, me, w)
    s = pld.tensor.barrier(s)
    return y


def test_put_get_remote_store_and_barrier():
    ranks = 3

    @pl.jit
    def chip(x: pl.Tensor, w: pld.DistributedTensor, s: pld.DistributedTensor, y: pl.Out[pl.Tensor]):
        return transfers(x, w, s, y)

    @pl.jit.host
    def host(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        data = pld.alloc_window_buffer([12, N], dtype=pl.FP32)
        signals = pld.alloc_window_buffer([ranks, 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            w = pld.window(data, [12, N], dtype=pl.FP32)
            s = pld.window(signals, [ranks, 1], dtype=pl.INT32)
            chip(x[r], w, s, y[r], device=r)

    x, y = numbers(ranks), np.zeros((ranks, 12, N), np.float32)
    host(x, y, config=on(ranks))
    np.testing.assert_array_equal(y[:, :N], np.roll(x, 1, axis=0))
    np.testing.assert_array_equal(y[:, N:], np.broadcast_to(x[:, :4].sum(axis=0), (ranks, 4, N)))


def test_tensor_level_scopes_reach_windows():
    """An all-reduce as models write it: publish, signal, wait, add up."""
    ranks = 2

    @pl.jit
    def chip(x: pl.Tensor, w: pld.DistributedTensor, s: pld.DistributedTensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            ctx = pld.get_comm_ctx(w)
            me = pld.rank(ctx)
            w[:, :] = pl.mul(x, 2.0)
            pld.system.notify(s, 1 - me, [0, 0], 1, op=pld.NotifyOp.Set)
            pld.system.wait(s, [0, 0], 1, cmp=pld.WaitCmp.Eq)
            theirs = pld.remote_load(w, 1 - me, [0, 0], [N, N])
            y = pl.store(pl.add(pl.load(w, [0, 0], [N, N]), theirs), [0, 0], y)
        return y

    @pl.jit.host
    def host(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        data = pld.alloc_window_buffer([N, N], dtype=pl.FP32)
        signals = pld.alloc_window_buffer([1, 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            chip(
                x[r],
                pld.window(data, [N, N], dtype=pl.FP32),
                pld.window(signals, [1, 1], dtype=pl.INT32),
                y[r],
                device=r,
            )

    x, y = numbers(ranks), np.zeros((ranks, N, N), np.float32)
    host(x, y, config=on(ranks))
    np.testing.assert_array_equal(y, np.broadcast_to(2 * x.sum(axis=0), y.shape))


def test_a_failing_rank_ends_those_that_wait_for_it():
    @pl.jit.incore
    def kernel(x: pl.Tensor, s: pld.DistributedTensor, y: pl.Out[pl.Tensor]):
        ctx = pld.get_comm_ctx(s)
        me = pld.rank(ctx)
        if me == 1:
            pld.system.notify(s, 9, [0, 0], 1, op=pld.NotifyOp.Set)
        pld.system.wait(s, [0, 0], 1, cmp=pld.WaitCmp.Eq)
        y = pl.store(pl.load(x, [0, 0], [N, N]), [0, 0], y)
        return y

    @pl.jit
    def chip(x: pl.Tensor, s: pld.DistributedTensor, y: pl.Out[pl.Tensor]):
        return kernel(x, s, y)

    @pl.jit.host
    def host(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        signals = pld.alloc_window_buffer([1, 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            s = pld.window(signals, [1, 1], dtype=pl.INT32)
            chip(x[r], s, y[r], device=r)

    with pytest.raises(RuntimeError, match=r"rank 1, chip: .*notify.*peer 9 of 2 ranks"):
        host(numbers(2), numbers(2), config=on(2))


def test_a_failing_rank_ends_those_that_would_compute_for_ever():
    @pl.jit.incore
    def kernel(s: pld.DistributedTensor, y: pl.InOut[pl.Tensor]):
        ctx = pld.get_comm_ctx(s)
        if pld.rank(ctx) == 1:
            pld.system.notify(s, 9, [0, 0], 1, op=pld.NotifyOp.Set)
        else:
            for _ in pl.range(1 << 60):
                pl.write(y, [0, 0], pl.read(y, [0, 0]) + 1.0)
        return y

    @pl.jit
    def chip(s: pld.DistributedTensor, y: pl.InOut[pl.Tensor]):
        return kernel(s, y)

    @pl.jit.host
    def host(y: pl.InOut[pl.Tensor]):
        signals = pld.alloc_window_buffer([1, 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            s = pld.window(signals, [1, 1], dtype=pl.INT32)
            chip(s, y[r], device=r)

    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"rank 1, chip: .*notify.*peer 9 of 2 ranks"):
            host(numbers(2), config=on(2))


# -- a program written as a class ----------------------------------------------------------------------------

seen: list[float] = []


@pl.program
class Pipeline:
    @pl.function(type=pl.FunctionType.InCore)
    def double(
        self, x: pl.Tensor[[N, N], pl.FP32], y: pl.Out[pl.Tensor[[N, N], pl.FP32]]
    ) -> pl.Tensor[[N, N], pl.FP32]:
        y = pl.store(pl.mul(pl.load(x, [0, 0], [N, N]), 2.0), [0, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(
        self, x: pl.Tensor[[N, N], pl.FP32], y: pl.Out[pl.Tensor[[N, N], pl.FP32]]
    ) -> pl.Tensor[[N, N], pl.FP32]:
        y = self.double(x, y)
        return y

    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def check(y: pl.Tensor[[N, N], pl.FP32]): ...

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self, x: pl.Tensor[[2, N, N], pl.FP32], y: pl.Out[pl.Tensor[[2, N, N], pl.FP32]]
    ) -> pl.Tensor[[2, N, N], pl.FP32]:
        for r in pl.range(2):
            out = self.chip(x[r], y[r], device=r)
            self.check(out)
        return y


def test_sub_workers_run_on_the_host_once_their_arguments_are_written():
    compiled = ir.compile(
        Pipeline, dump_passes=False, distributed_config=DistributedConfig(device_ids=[0, 1])
    )
    x, y = numbers(2), np.zeros((2, N, N), np.float32)
    sums: list[float] = []
    with compiled.prepare(callbacks={"check": lambda args: sums.append(float(args[0].sum()))}) as worker:
        worker(x, y)
    assert sums == [float(2 * part.sum()) for part in x]
    with pytest.raises(ValueError, match="'check' has no body: it must be supplied via callbacks"):
        compiled(x, y)
    with pytest.raises(
        ValueError, match=r"unknown callbacks \['chekc'\]; SubWorkers of the program: \['check'\]"
    ):
        compiled.prepare(callbacks={"chekc": print})
    with pytest.raises(TypeError, match="callback 'check' must be callable"):
        compiled.prepare(callbacks={"check": 3})
    for function in (lambda: None, lambda a, b: None):
        with pytest.raises(TypeError, match="callback 'check' must accept one positional argument"):
            compiled.prepare(callbacks={"check": function})
    with pytest.raises(ValueError, match="pass only callbacks"):
        compiled.prepare(callbacks={"check": print}, sub_worker_overrides={"check": print})


def test_a_callback_is_for_the_program_that_has_its_sub_worker():
    config = DistributedConfig(device_ids=[0, 1])
    pipeline = ir.compile(Pipeline, dump_passes=False, distributed_config=config)
    x, y = numbers(2), np.zeros((2, N, N), np.float32)
    scaling = scale_host.compile(x, y, config=on(2))
    called: list[int] = []
    with (
        pytest.warns(DeprecationWarning, match="use callbacks"),
        scaling.prepare(
            extra_compiled=[pipeline], sub_worker_overrides={"check": lambda args: called.append(1)}
        ) as worker,
    ):
        worker.run(scaling, x, y)
        assert not called
        worker.run(pipeline, x, y)
        assert called == [1, 1]


def test_a_callback_sees_its_argument_as_a_torch_tensor():
    torch = pytest.importorskip("torch")
    import ml_dtypes

    for kind, expected in ((np.float32, torch.float32), (ml_dtypes.bfloat16, torch.bfloat16)):
        array = np.ones((2, 4), kind)
        tensor = _tensor_from_continuous(array)
        assert tensor.dtype == expected and tensor.shape == (2, 4)
        tensor[1, 2] = 3.0
        assert array[1, 2] == 3.0


# -- workers -------------------------------------------------------------------------------------------------


def test_resident_tensors_live_with_a_rank():
    x, y = numbers(2), np.zeros((2, N, N), np.float32)
    compiled = scale_host.compile(x, y, config=on(2))
    with compiled.prepare() as worker:
        stacked = worker.alloc_stacked_tensor(x)
        assert worker.committed_device_memory(1) == x[1].nbytes
        worker(stacked, y)
        np.testing.assert_array_equal(y, scaled(x))
        back = np.zeros_like(x)
        worker.copy_stacked_from(stacked, back)
        np.testing.assert_array_equal(back, x)
        worker.free_stacked_tensor(stacked)
        with pytest.raises(ValueError, match="distinct ranks"):
            worker.alloc_stacked_tensor(x, worker_ids=[1, 1])


def test_submitted_runs_end_in_order():
    x, y = numbers(2), np.zeros((2, N, N), np.float32)
    z = np.zeros_like(y)
    compiled = scale_host.compile(x, y, config=on(2))
    with DistributedWorker(compiled) as worker:
        handles = [worker.submit(compiled, a, b) for a, b in ((x, y), (x + 1, z), (x, y))]
        for handle in handles:
            handle.result(timeout=60)
            assert handle.done
    np.testing.assert_array_equal(z, scaled(x + 1))
    with pytest.raises(RuntimeError, match="closed"):
        worker(x, y)


def test_a_submitted_run_is_waited_for_a_limited_time_and_keeps_its_error():
    config = DistributedConfig(device_ids=[0, 1])
    compiled = ir.compile(Pipeline, dump_passes=False, distributed_config=config)
    x, y, go = numbers(2), np.zeros((2, N, N), np.float32), threading.Event()

    def check(args):
        go.wait(60)
        raise KeyError("wrong")

    with compiled.prepare(callbacks={"check": check}) as worker:
        handle = worker.submit(compiled, x, y)
        for wait in (handle.wait, handle.result):
            with pytest.raises(TimeoutError, match=r"did not end within 0\.01 s"):
                wait(timeout=0.01)
            for timeout in (-1, float("inf"), float("nan")):
                with pytest.raises(ValueError, match="finite and not negative"):
                    wait(timeout=timeout)
        assert not handle.done
        go.set()
        assert handle.wait(timeout=60) and handle.done
        with pytest.raises(KeyError, match="wrong"):
            handle.result()


def test_several_programs_share_the_ranks():
    x, y = numbers(2), np.zeros((2, N, N), np.float32)
    one = scale_host.compile(x, y, config=on(2))
    two = shift_host.compile(x, y, 1, config=on(2))
    with one.prepare(extra_compiled=[two]) as worker:
        with pytest.raises(TypeError, match=r"ambiguous.*rt.run\(compiled, \*args\)"):
            worker(x, y)
        worker.run(one, x, y)
        np.testing.assert_array_equal(y, scaled(x))
        worker.run(two, x, y, 1)
        np.testing.assert_array_equal(y, x[::-1])
    three = scale_host.compile(numbers(3), numbers(3), config=on(3))
    with pytest.raises(ValueError, match="differ in device_ids"):
        DistributedWorker([one, three])
    with pytest.raises(ValueError, match="is not among the programs"), one.prepare() as worker:
        worker.run(two, x, y, 1)


def test_arguments_are_checked():
    x, y = numbers(2), np.zeros((2, N, N), np.float32)
    compiled = scale_host.compile(x, y, config=on(2))
    with pytest.raises(TypeError, match="expects 2"):
        compiled(x, y, y)
    with pytest.raises(TypeError, match="Parameter 'x' expects dtype"):
        compiled(x.astype(np.float64), y)
    with pytest.raises(ValueError, match="not contiguous"):
        compiled(x[:, ::2], y)
    resident = DeviceTensor(64, (N, N), np.float32)
    for value in (3, [1.0], resident, StackedDeviceTensor((resident,), (1, N, N), (0,))):
        message = rf"One-shot .* Parameter 'x' got {type(value).__name__}; .* need prepare\(\)"
        with pytest.raises(TypeError, match=message):
            compiled(value, y)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"device_ids": []}, "at least one"),
        ({"device_ids": [0, 0]}, "distinct"),
        ({"device_ids": [-1]}, "from 0 up"),
        ({"num_sub_workers": -1}, "num_sub_workers"),
        ({"aicpu_thread_num": 1}, "aicpu_thread_num"),
    ],
)
def test_impossible_configurations_are_refused(options, text):
    with pytest.raises(ValueError, match=text):
        DistributedConfig(**options)


def test_kernels_and_the_runtime_agree_on_the_communication_context():
    header = (kernel_include_dir() / "pypto_windows.h").read_text()
    constants = dict(re.findall(r"constexpr \w+ (\w+) = (\d+);", header))
    assert constants == {"MOST_RANKS": str(windows.MOST_RANKS), "COMM_BYTES": str(windows._CONTEXT_BYTES)}
