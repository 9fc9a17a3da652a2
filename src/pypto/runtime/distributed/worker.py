"""Ranks that stay alive between runs, with memory of their own."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pypto.runtime import spans
from pypto.runtime.arguments import ArgumentBinder
from pypto.runtime.array_types import dtype_name, numpy_dtype
from pypto.runtime.device_tensor import DeviceBuffer, DeviceTensor, StackedDeviceTensor
from pypto.runtime.distributed.host import HostRuntime
from pypto.runtime.distributed.program import DistributedCompiledProgram
from pypto.runtime.distributed.ranks import Ranks
from pypto.runtime.distributed.windows import MOST_RANKS, WindowBuffer
from pypto.runtime.run_config import RunConfig
from pypto.runtime.worker import ChipWorker, RegistrationHandle, Worker

_IN_FLIGHT = 2


class DistributedRunHandle:
    """A run that was started and not waited for."""

    def __init__(self, start: Callable[[], None]) -> None:
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(start,), daemon=True)
        self._thread.start()

    def _run(self, start: Callable[[], None]) -> None:
        try:
            start()
        except BaseException as error:
            self._error = error

    @property
    def done(self) -> bool:
        """Whether the run is over."""
        return not self._thread.is_alive()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end and return True, whatever came of the run.

        Raises `TimeoutError` if it does not come in time, `ValueError` for an impossible timeout.
        """
        if timeout is not None and not 0 <= timeout < float("inf"):
            raise ValueError(f"timeout must be finite and not negative, got {timeout}")
        self._thread.join(timeout)
        if not self.done:
            raise TimeoutError(f"the run did not end within {timeout} s")
        return True

    def result(self, timeout: float | None = None) -> None:
        """Wait for the end and raise the error of the run. Raises as `wait` does."""
        self.wait(timeout)
        if self._error is not None:
            raise self._error


class DistributedWorker(Worker):
    """The ranks of one program, or of several that agree in platform and devices. A context manager.

    Windows are zero before each run unless `persistent`; then they keep their content, which
    `reset_persistent_windows` (default) still clears before each run.
    """

    def __init__(
        self,
        compiled: DistributedCompiledProgram | Sequence[DistributedCompiledProgram],
        config: RunConfig | None = None,
        *,
        persistent: bool = False,
        reset_persistent_windows: bool | None = None,
        callbacks: Mapping[str, Callable[..., Any]] | None = None,
        sub_worker_overrides: Mapping[str, Callable[..., Any]] | None = None,
        inherited_host_tensors: Any = None,
        startup_timeout_s: float | None = None,
    ) -> None:
        programs = [compiled] if isinstance(compiled, DistributedCompiledProgram) else list(compiled)
        _check_programs(programs)
        if reset_persistent_windows and not persistent:
            raise ValueError("reset_persistent_windows=True needs persistent=True")
        if startup_timeout_s is not None and not 0 < startup_timeout_s < float("inf"):
            raise ValueError(f"startup_timeout_s must be positive and finite, got {startup_timeout_s}")
        self._programs = programs
        self._config = config
        self._persistent = persistent
        self._reset = persistent and reset_persistent_windows is not False
        bodies = _callbacks_of(programs, callbacks, sub_worker_overrides)
        self._callbacks = [program.sub_workers(bodies) for program in programs]
        count = len(programs[0].device_ids)
        if count > MOST_RANKS:
            raise ValueError(f"at most {MOST_RANKS} ranks are supported, got {count}")
        self._ranks = Ranks(count)
        self._memory = [
            ChipWorker(RunConfig(platform=programs[0].platform, device_id=device))
            for device in programs[0].device_ids
        ]
        self._windows: list[dict[str, WindowBuffer]] = [{} for _ in programs]
        self._binders = [ArgumentBinder(program.signature, program.kind) for program in programs]
        for program, binder in zip(programs, self._binders, strict=True):
            binder.fix_scalars(program.fixed_scalars)
        self._guard = threading.Lock()
        self._flying: list[DistributedRunHandle] = []
        self._closed = False

    def close(self) -> None:
        """End the ranks and free their memory."""
        if self._closed:
            return
        self._closed = True
        for handle in self._flying:
            handle.wait()
        self._ranks.stop()
        for memory in self._memory:
            memory.close()

    def __enter__(self) -> DistributedWorker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- runs --------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, config: RunConfig | None = None) -> None:
        """Run the only program in place. Raises `TypeError` when there are several."""
        if len(self._programs) > 1:
            raise TypeError(
                "the call is ambiguous: several programs are prepared; use rt.run(compiled, *args)"
            )
        self.run(self._programs[0], *args, config=config)

    def run(self, compiled: Any, *args: Any, config: RunConfig | None = None) -> None:
        """Run one of the prepared programs in place, with all its arguments."""
        self._execute(self._index_of(compiled), args)

    def submit(self, compiled: Any, *args: Any) -> DistributedRunHandle:
        """Start a run; at most two are in flight, a third waits for the oldest."""
        index = self._index_of(compiled)
        while len(self._flying) >= _IN_FLIGHT:
            self._flying.pop(0).wait()
        handle = DistributedRunHandle(lambda: self._execute(index, args))
        self._flying.append(handle)
        return handle

    def register(self, compiled: Any) -> RegistrationHandle:
        """A handle that runs one of the prepared programs."""
        self._index_of(compiled)
        return RegistrationHandle(self, compiled, 0)

    def _index_of(self, compiled: Any) -> int:
        if self._closed:
            raise RuntimeError("the DistributedWorker is closed")
        for index, program in enumerate(self._programs):
            if program is compiled:
                return index
        raise ValueError(f"{compiled!r} is not among the programs of this worker")

    def _execute(self, index: int, args: Sequence[Any]) -> None:
        program = self._programs[index]
        values = self._host_arguments(index, args)
        with self._guard:  # runs share the ranks and the windows; they follow each other
            buffers = self._windows[index] if self._persistent else {}
            for buffer in buffers.values():
                buffer.set_aborted(False)
                if self._reset:
                    buffer.clear()
            host = HostRuntime(self._ranks, self._dispatcher(program), self._callbacks[index], buffers)
            try:
                program.host_function(host, *values)
            except BaseException as error:
                host.run.fail(error)
            host.run.wait()

    def _dispatcher(self, program: DistributedCompiledProgram) -> Callable[[int, str, Sequence[Any]], object]:
        def dispatch(rank: int, name: str, args: Sequence[Any]) -> None:
            spans.set_rank(rank)
            try:
                self._memory[rank].run_part(program.chips[name], args, None)
            except RuntimeError as error:
                raise RuntimeError(f"rank {rank}, {name}: {error}") from error

        return dispatch

    def _host_arguments(self, index: int, args: Sequence[Any]) -> list[Any]:
        """The arguments as numpy arrays over the caller's memory, resident tensors and Python numbers."""
        params = self._programs[index].signature.params
        if len(args) != len(params):
            names = [p.name for p in params]
            raise TypeError(
                f"{self._programs[index].kind} expects {len(params)} arguments, got {len(args)}. "
                f"Parameters: {names}"
            )
        values: list[Any] = []
        for position, (param, arg) in enumerate(zip(params, args, strict=True)):
            if isinstance(arg, (DeviceTensor, StackedDeviceTensor)):
                values.append(arg)
            elif param.shape is None:
                values.append(self._binders[index].check_scalar(position, arg))
            else:
                address, shape = self._binders[index].check_tensor(position, arg)
                values.append(_array_at(address, shape, numpy_dtype(param.dtype), arg))
        return values

    # -- memory ------------------------------------------------------------------------------------------

    def malloc(self, nbytes: int, *, worker_id: int = 0) -> int:
        return self._rank(worker_id).malloc(nbytes)

    def free(self, ptr: int, *, worker_id: int = 0) -> None:
        self._rank(worker_id).free(ptr)

    def copy_to(self, dev: int, host: int, nbytes: int, *, worker_id: int = 0) -> None:
        self._rank(worker_id).copy_to(dev, host, nbytes)

    def copy_from(self, host: int, dev: int, nbytes: int, *, worker_id: int = 0) -> None:
        self._rank(worker_id).copy_from(host, dev, nbytes)

    def _adopt(self, address: int, worker_id: int) -> DeviceBuffer:
        return self._rank(worker_id)._adopt(address, 0)

    def _owns(self, tensor: DeviceTensor, worker_id: int) -> bool:
        return self._rank(worker_id)._owns(tensor, 0)

    def _rank(self, worker_id: int) -> ChipWorker:
        if self._closed:
            raise RuntimeError("the DistributedWorker is closed")
        if not 0 <= worker_id < len(self._memory):
            raise ValueError(f"worker_id {worker_id} is not one of the {len(self._memory)} ranks")
        return self._memory[worker_id]

    def alloc_stacked_tensor(
        self, host: Any, *, worker_ids: Sequence[int] | None = None
    ) -> StackedDeviceTensor:
        """Copy shard i of `host` ([B, ...]) to rank `worker_ids[i]` (default: rank i).

        Raises `ValueError` for ids that are repeated or out of range, or not as many as the leading dim.
        """
        ids = list(range(host.shape[0])) if worker_ids is None else list(worker_ids)
        if len(ids) != host.shape[0] or len(set(ids)) != len(ids):
            raise ValueError(f"worker_ids must be {host.shape[0]} distinct ranks, got {ids}")
        for rank in ids:
            self._rank(rank)
        shards = [
            self.alloc_tensor(tuple(host.shape[1:]), host.dtype, init=host[i], worker_id=rank)
            for i, rank in enumerate(ids)
        ]
        return StackedDeviceTensor(tuple(shards), tuple(host.shape), tuple(ids))

    def free_stacked_tensor(self, stacked: StackedDeviceTensor) -> None:
        """Give the memory of all shards back."""
        for shard, rank in zip(stacked.shards, stacked.worker_ids, strict=True):
            self.free_tensor(shard, worker_id=rank)

    def copy_stacked_from(self, stacked: StackedDeviceTensor, host: Any) -> None:
        """Copy all shards to `host`, of the same shape and dtype. `ValueError` otherwise."""
        if tuple(host.shape) != stacked.shape or dtype_name(host.dtype) != dtype_name(stacked.dtype):
            raise ValueError(
                f"host has shape {tuple(host.shape)} and dtype {dtype_name(host.dtype)}, expected "
                f"{stacked.shape} and {dtype_name(stacked.dtype)}"
            )
        for i, (shard, rank) in enumerate(zip(stacked.shards, stacked.worker_ids, strict=True)):
            part = host[i]
            address = part.data_ptr() if hasattr(part, "data_ptr") else part.ctypes.data
            self.copy_from(address, shard.data_ptr, shard.nbytes, worker_id=rank)

    def committed_device_memory(self, worker_id: int = 0) -> int:
        """Bytes that are allocated on a rank."""
        return self._rank(worker_id).allocated_bytes

    def release_inherited_host_tensor_refs(self) -> None:
        """Nothing is inherited: ranks share the memory of this process."""


def _array_at(address: int, shape: Sequence[int], kind: np.dtype[Any], owner: Any) -> np.ndarray[Any, Any]:
    """The memory of an argument as a numpy array that keeps the argument alive."""
    if isinstance(owner, np.ndarray):
        return owner

    class Holder:
        __array_interface__ = {
            "data": (address, False),
            "shape": (int(np.prod(shape, dtype=np.int64)) * kind.itemsize,),
            "typestr": "|u1",
            "version": 3,
        }
        held = owner

    return np.asarray(Holder()).view(kind).reshape(shape)


def _check_programs(programs: Sequence[DistributedCompiledProgram]) -> None:
    if not programs:
        raise ValueError("a DistributedWorker needs at least one program")
    first = programs[0]
    for other in programs[1:]:
        for what in ("platform", "device_ids", "runtime"):
            mine, theirs = getattr(first, what), getattr(other, what)
            if mine != theirs:
                raise ValueError(f"the programs of a DistributedWorker differ in {what}: {mine} and {theirs}")


def _callbacks_of(
    programs: Sequence[DistributedCompiledProgram],
    callbacks: Mapping[str, Callable[..., Any]] | None,
    sub_worker_overrides: Mapping[str, Callable[..., Any]] | None,
) -> dict[str, Callable[..., Any]]:
    """What the caller gives for SubWorkers of the programs. Raises `ValueError` for other names."""
    if sub_worker_overrides is not None:
        if callbacks is not None:
            raise ValueError("sub_worker_overrides is the old name of callbacks: pass only callbacks")
        warnings.warn("sub_worker_overrides is deprecated; use callbacks", DeprecationWarning, stacklevel=3)
    given = dict(callbacks or sub_worker_overrides or {})
    known = {name for program in programs for name in program.sub_worker_names}
    unknown = sorted(given.keys() - known)
    if unknown:
        raise ValueError(f"unknown callbacks {unknown}; SubWorkers of the program: {sorted(known)}")
    return given
