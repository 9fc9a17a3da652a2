"""Workers: identity, registered programs, and tensors that stay in a worker's memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pypto import ir
from pypto.runtime import ChipWorker, DeviceTensor, RunConfig, StackedDeviceTensor, Worker
from pypto.runtime.compiled_program import CompiledProgram
from tests.runtime.programs import AddScaled

SHAPE = (32, 64)
ONES = np.ones(SHAPE, np.float32)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> CompiledProgram:
    return ir.compile(AddScaled, tmp_path_factory.mktemp("build"), dump_passes=False)


def content(worker: ChipWorker, tensor: DeviceTensor) -> np.ndarray[Any, Any]:
    host = np.empty(tensor.shape, tensor.dtype)
    worker.copy_from(host.ctypes.data, tensor.data_ptr, host.nbytes)
    return host


def test_a_worker_tells_what_it_is() -> None:
    worker = ChipWorker(RunConfig(platform="a5sim", device_id=3))
    assert (worker.level, worker.platform, worker.device_id) == (2, "a5sim", 3)
    assert worker.runtime == "tensormap_and_ringbuffer" and worker.initialized
    assert isinstance(worker, Worker)
    worker.close()
    worker.close()
    assert not worker.initialized
    worker.init()
    assert worker.initialized
    assert not ChipWorker(auto_init=False).initialized
    with pytest.raises(ValueError, match="only supports level=2"):
        ChipWorker(level=3)


def test_contexts_nest_and_the_innermost_match_is_current() -> None:
    binding: dict[str, Any] = {"level": 2, "platform": "a2a3sim", "runtime": "tensormap_and_ringbuffer"}
    with ChipWorker() as outer:
        with ChipWorker(RunConfig(device_id=1)) as inner:
            assert ChipWorker.current(**binding, device_id=0) is outer
            assert ChipWorker.current(**binding, device_id=1) is inner
            assert ChipWorker.current(**binding, device_id=2) is None
        assert not inner.initialized
        assert ChipWorker.current(**binding, device_id=1) is None
        with pytest.raises(RuntimeError, match="enable_sdma"):
            ChipWorker.current(**binding, device_id=0, require_sdma=True)
        with pytest.raises(ValueError, match="already active in an enclosing scope"), ChipWorker():
            pass
    assert ChipWorker.current(**binding, device_id=0) is None


def test_a_program_is_loaded_once_per_worker(compiled: CompiledProgram) -> None:
    out = np.zeros(SHAPE, np.float32)
    with ChipWorker() as worker:
        assert worker.aicpu_dlopen_count == 0
        for _ in range(3):
            assert worker.run(compiled, ONES, ONES, out) is None
        compiled(ONES, ONES, out)
        assert (worker.aicpu_dlopen_count, worker.host_dlopen_count) == (1, 0)
        result = worker.run(compiled, ONES, ONES)
    assert out[0, 0] == 6 and result[0, 0] == 6


def test_a_worker_refuses_programs_of_another_platform(compiled: CompiledProgram) -> None:
    with ChipWorker(RunConfig(platform="a5sim")) as worker:
        with pytest.raises(ValueError, match=r"'a2a3sim'.*'a5sim'"):
            worker.run(compiled, ONES, ONES)
        assert compiled(ONES, ONES)[0, 0] == 6  # on a worker of its own
        assert worker.aicpu_dlopen_count == 0
    with (
        ChipWorker(runtime="host_build_graph") as worker,
        pytest.raises(ValueError, match="host_build_graph"),
    ):
        worker.register(compiled)


def test_everything_needs_an_initialized_worker(compiled: CompiledProgram) -> None:
    worker = ChipWorker(auto_init=False)
    actions: list[Callable[[], Any]] = [
        lambda: worker.malloc(8),
        lambda: worker.alloc_tensor((2,), np.float32),
        lambda: worker.copy_to(1, 1, 1),
        lambda: worker.run(compiled, ONES, ONES),
        lambda: worker.register(compiled),
    ]
    for action in actions:
        with pytest.raises(RuntimeError, match="requires an initialized ChipWorker"):
            action()


def test_a_closed_worker_runs_again_after_init(compiled: CompiledProgram) -> None:
    worker = ChipWorker()
    assert worker.run(compiled, ONES, ONES)[0, 0] == 6
    worker.close()
    with pytest.raises(RuntimeError, match="requires an initialized ChipWorker"):
        worker.run(compiled, ONES, ONES)
    worker.init()
    assert worker.aicpu_dlopen_count == 0
    assert worker.run(compiled, ONES, ONES)[0, 0] == 6
    worker.close()


def test_handles_share_the_id_of_a_program_and_close_alone(compiled: CompiledProgram) -> None:
    with ChipWorker() as worker:
        with worker.register(compiled) as first:
            second = worker.register(compiled)
            assert first.cid == second.cid and first.compiled is compiled and not first.closed
            assert first(ONES, ONES)[0, 0] == 6
        first.unregister()
        assert first.closed and second(ONES, ONES)[0, 0] == 6
        with pytest.raises(RuntimeError, match="has been unregistered"):
            first(ONES, ONES)
    assert second.closed
    with pytest.raises(RuntimeError, match="parent Worker was closed"):
        second(ONES, ONES)


def test_a_resident_tensor_carries_values_from_run_to_run(compiled: CompiledProgram) -> None:
    with ChipWorker() as worker:
        state = worker.alloc_tensor(SHAPE, np.float32, init=ONES)
        for _ in range(2):
            compiled(state, ONES, state)
        assert content(worker, state)[0, 0] == 21
        assert worker.run(compiled, state, state)[0, 0] == 126


def test_memory_is_addressed_by_its_base(compiled: CompiledProgram) -> None:
    with ChipWorker() as worker:
        address = worker.malloc(16)
        host = np.arange(4, dtype=np.int32)
        worker.copy_to(address, host.ctypes.data, 16)
        back = np.zeros(4, np.int32)
        worker.copy_from(back.ctypes.data, address, 16)
        assert (back == host).all()
        for action in (
            lambda: worker.copy_from(back.ctypes.data, address + 4, 4),
            lambda: worker.copy_to(back.ctypes.data, host.ctypes.data, 4),
            lambda: worker.free(address + 8),
        ):
            with pytest.raises(ValueError, match="requires the allocation base"):
                action()
        for size in (0, -1, True, 1.5, 17):
            with pytest.raises(ValueError):
                worker.copy_to(address, host.ctypes.data, size)  # type: ignore[arg-type]
        worker.free(address)
        with pytest.raises(ValueError):
            worker.free(address)
        for size in (0, -4, True, "8"):
            with pytest.raises(ValueError, match="positive int"):
                worker.malloc(size)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="worker_id"):
            worker.malloc(8, worker_id=1)


def test_tensors_are_checked_when_made() -> None:
    with ChipWorker() as worker:
        before = set(worker._allocations)
        for init in (np.ones(3, np.float32), np.ones(2, np.int32)):
            with pytest.raises(ValueError, match="init has shape"):
                worker.alloc_tensor((2,), np.float32, init=init)
        with pytest.raises(TypeError, match="init must be a tensor, got list"):
            worker.alloc_tensor((2,), np.float32, init=[1.0, 2.0])
        assert set(worker._allocations) == before  # the memory is given back
        for shape in ((), (0, 2), (-1,)):
            with pytest.raises(ValueError):
                worker.alloc_tensor(shape, np.float32)
        for shape in ((True,), (2.0,), 4, "22"):
            with pytest.raises(TypeError):
                worker.alloc_tensor(shape, np.float32)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            worker.alloc_tensor((2,), "float32")
        columns = np.arange(12, dtype=np.float32).reshape(3, 4).T
        tensor = worker.alloc_tensor((4, 3), np.float32, init=columns)
        assert (content(worker, tensor) == columns).all()


def test_a_freed_tensor_is_told_from_the_newer_one_at_its_address(compiled: CompiledProgram) -> None:
    with ChipWorker() as worker, ChipWorker(RunConfig(device_id=1)) as other:
        old = worker.alloc_tensor(SHAPE, np.float32)
        with pytest.raises(ValueError, match="does not match the owning worker"):
            worker.free_tensor(old, worker_id=1)
        with pytest.raises(ValueError, match="owning worker"):
            other.free_tensor(old)
        worker.free_tensor(old)
        worker.free_tensor(old)
        with pytest.raises(ValueError, match="not a live allocation owned by this"):
            worker.run(compiled, old, ONES)
        new = worker.alloc_tensor(SHAPE, np.float32, init=ONES)
        assert new.data_ptr == old.data_ptr
        with pytest.raises(ValueError, match="stale"):
            worker.free_tensor(old)
        with pytest.raises(ValueError, match="not a live allocation owned by this"):
            worker.run(compiled, old, ONES)
        with pytest.raises(ValueError, match="not a live allocation owned by this"):
            other.run(compiled, new, ONES)
        assert worker.run(compiled, new, ONES)[0, 0] == 6


def test_a_leaked_tensor_is_freed_by_close() -> None:
    worker = ChipWorker()
    worker.alloc_tensor(SHAPE, np.float32)
    worker.close()
    assert not worker._allocations


def test_resident_tensors_need_their_worker_and_their_type(compiled: CompiledProgram) -> None:
    with ChipWorker() as worker:
        tensor = worker.alloc_tensor(SHAPE, np.float32)
        bare = DeviceTensor(tensor.data_ptr, SHAPE, np.float32)
        with pytest.raises(TypeError, match="raw-pointer DeviceTensor cannot be dispatched"):
            worker.run(compiled, bare, ONES)
        flat = worker.alloc_tensor((32 * 64,), np.float32)
        with pytest.raises(TypeError, match=r"'a' expects shape \[32, 64\]; got \[2048\]"):
            worker.run(compiled, flat, ONES)
        wrong = worker.alloc_tensor(SHAPE, np.int32)
        with pytest.raises(TypeError, match="'a' expects dtype fp32; got int32"):
            worker.run(compiled, wrong, ONES)
        stack = StackedDeviceTensor((tensor,), (1, *SHAPE), (0,))
        with pytest.raises(TypeError, match="StackedDeviceTensor"):
            worker.run(compiled, stack, ONES)
    with pytest.raises(TypeError, match="needs the worker"):
        compiled(tensor, ONES)


def test_a_device_tensor_is_a_value() -> None:
    tensor = DeviceTensor(0x1000, [2, 3], np.float32)  # type: ignore[arg-type]
    assert repr(tensor) == "DeviceTensor(data_ptr=0x1000, shape=(2, 3), dtype=float32)"
    assert tensor.nbytes == 24
    with ChipWorker() as worker:
        owned = worker.alloc_tensor((2, 3), np.float32)
        again = DeviceTensor(owned.data_ptr, (2, 3), np.float32)
        assert owned == again and hash(owned) == hash(again)
        with pytest.raises(ValueError, match="is not data_ptr"):
            DeviceTensor(owned.data_ptr + 64, (2, 3), np.float32, buffer=owned.buffer)
    with pytest.raises(AttributeError):
        tensor.shape = (1,)  # type: ignore[misc]
    for address in (0, -1, True, 1.0):
        with pytest.raises(ValueError, match="data_ptr"):
            DeviceTensor(address, (1,), np.float32)  # type: ignore[arg-type]
    for shape, error in (((), ValueError), ((0,), ValueError), ((1.5,), TypeError), ((True,), TypeError)):
        with pytest.raises(error):
            DeviceTensor(8, shape, np.float32)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        DeviceTensor(8, (1,), "float32")


def test_a_stacked_tensor_gives_whole_shards() -> None:
    shards = [DeviceTensor(64 * i, (4, 8), np.float32) for i in (1, 2)]
    stack = StackedDeviceTensor(shards, (2, 4, 8), (0, 1))  # type: ignore[arg-type]
    assert stack.shape == (2, 4, 8) and stack.dtype == np.float32
    assert stack[1] is stack[1, ...] is stack[1, 0:4, :] is stack[1, :] is shards[1]
    for index in (2, -1):
        with pytest.raises(IndexError):
            stack[index]
    for index in ((0, slice(0, 2)), (0, slice(None), slice(None), slice(None)), (1, ..., slice(1, None))):
        with pytest.raises(ValueError):
            stack[index]
    for index in ("0", 1.0, slice(None), (0, 1)):
        with pytest.raises(TypeError):
            stack[index]
    bad: list[tuple[Any, Any, Any, type[Exception]]] = [
        (shards[:1], (1,), (0,), ValueError),
        (shards, (3, 4, 8), (0, 1, 2), ValueError),
        (shards, (2, 4, 8), (0, 0), ValueError),
        (shards, (2, 4, 9), (0, 1), ValueError),
        ([shards[0], 7], (2, 4, 8), (0, 1), TypeError),
        ([shards[0], DeviceTensor(8, (4, 8), np.int32)], (2, 4, 8), (0, 1), ValueError),
    ]
    for given, shape, ids, error in bad:
        with pytest.raises(error):
            StackedDeviceTensor(given, shape, ids)


def test_a_build_directory_runs_on_the_active_worker(compiled: CompiledProgram, tmp_path: Path) -> None:
    from pypto.runtime import execute_compiled

    with ChipWorker() as worker:
        out = worker.alloc_tensor(SHAPE, np.float32)
        execute_compiled(compiled.output_dir, [ONES, ONES, out])
        assert content(worker, out)[0, 0] == 6
