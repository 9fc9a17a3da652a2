"""Workers: where programs run and tensors stay between runs.

All workers of a process share its task runtime; a worker is an identity (platform, device) with memory of its
own. A program that is called inside `with worker:` runs on that worker when platform, device and runtime
match.
"""

from __future__ import annotations

import abc
import ctypes
import itertools
import logging
from collections.abc import Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

from pypto.codegen.kernel_config import DEFAULT_RUNTIME
from pypto.runtime.array_types import dtype_name
from pypto.runtime.device_tensor import (
    DeviceBuffer,
    DeviceTensor,
    checked_dtype,
    checked_shape,
    itemsize_of,
)
from pypto.runtime.run_config import RunConfig

if TYPE_CHECKING:
    from pypto.runtime.compiled_program import CompiledProgram, OrchestrationProgram

__all__ = ["ChipWorker", "RegistrationHandle", "Worker"]

_LEVEL = 2
_ALIGNMENT = 64
_KEEP_BYTES, _KEEP_BLOCKS = 1 << 20, 4  # freed blocks of one size that are used again
_log = logging.getLogger(__name__)
_active: ContextVar[tuple[ChipWorker, ...]] = ContextVar("pypto_active_workers", default=())


class Worker(abc.ABC):
    """What every kind of worker can do."""

    @abc.abstractmethod
    def malloc(self, nbytes: int, *, worker_id: int = 0) -> int:
        """Allocate memory that the caller frees; its address."""

    @abc.abstractmethod
    def free(self, ptr: int, *, worker_id: int = 0) -> None:
        """Free what `malloc` gave."""

    @abc.abstractmethod
    def copy_to(self, dev: int, host: int, nbytes: int, *, worker_id: int = 0) -> None:
        """Copy from the host to an allocation."""

    @abc.abstractmethod
    def copy_from(self, host: int, dev: int, nbytes: int, *, worker_id: int = 0) -> None:
        """Copy from an allocation to the host."""

    @abc.abstractmethod
    def run(self, compiled: Any, *args: Any, config: RunConfig | None = None) -> Any:
        """Run a program, as calling it does."""

    @abc.abstractmethod
    def register(self, compiled: Any) -> RegistrationHandle:
        """Load a program for repeated calls."""

    @abc.abstractmethod
    def _adopt(self, address: int, worker_id: int) -> DeviceBuffer:
        """The live allocation at `address`."""

    @abc.abstractmethod
    def _owns(self, tensor: DeviceTensor, worker_id: int) -> bool:
        """Whether the tensor is live; raises for one that is not this worker's to free."""

    def alloc_tensor(
        self, shape: Sequence[int], dtype: Any, *, init: Any = None, worker_id: int = 0
    ) -> DeviceTensor:
        """Allocate a tensor, freed with `free_tensor` or when the worker closes; `init` is copied into it.

        Raises `TypeError` and `ValueError` for a bad shape or dtype, `ValueError` for an `init` of another
        shape or dtype.
        """
        dims, kind = checked_shape(shape), checked_dtype(dtype)
        count = int(np.prod(dims, dtype=np.int64))
        address = self.malloc(count * itemsize_of(kind), worker_id=worker_id)
        try:
            if init is not None:
                _copy_init(address, init, dims, kind)
        except BaseException:
            self.free(address, worker_id=worker_id)
            raise
        return DeviceTensor(address, dims, kind, buffer=self._adopt(address, worker_id))

    def free_tensor(self, tensor: DeviceTensor, *, worker_id: int = 0) -> None:
        """Give a tensor's memory back; nothing happens when that was done before."""
        if not isinstance(tensor, DeviceTensor):
            raise TypeError(f"free_tensor needs a DeviceTensor, got {type(tensor).__name__}")
        if self._owns(tensor, worker_id):
            self.free(tensor.data_ptr, worker_id=worker_id)


class ChipWorker(Worker):
    """One device. A context manager: programs called inside run on it, and leaving closes it."""

    def __init__(
        self,
        config: RunConfig | None = None,
        *,
        level: int = _LEVEL,
        runtime: str = DEFAULT_RUNTIME,
        enable_sdma: bool = False,
        auto_init: bool | None = None,
    ) -> None:
        if level != _LEVEL:
            raise ValueError(f"ChipWorker only supports level=2, got {level}")
        settings = config if config is not None else RunConfig()
        if not isinstance(settings, RunConfig):
            raise TypeError(f"config must be a RunConfig, got {type(settings).__name__}")
        self._binding = (level, settings.platform, settings.device_id, runtime)
        self._enable_sdma = enable_sdma
        self._initialized = False
        self._allocations: dict[int, DeviceBuffer] = {}
        self._tracked: set[int] = set()
        self._free_blocks: dict[int, list[np.ndarray[Any, Any]]] = {}
        self._handles: list[RegistrationHandle] = []
        self._programs: dict[int, tuple[int, Any]] = {}
        self._ids = itertools.count()
        if auto_init is None or auto_init:
            self.init()

    @property
    def level(self) -> int:
        return self._binding[0]

    @property
    def platform(self) -> str:
        return self._binding[1]

    @property
    def device_id(self) -> int:
        return self._binding[2]

    @property
    def runtime(self) -> str:
        return self._binding[3]

    @property
    def initialized(self) -> bool:
        return self._initialized

    @property
    def aicpu_dlopen_count(self) -> int:
        """How many programs this worker has loaded."""
        return len(self._programs)

    @property
    def host_dlopen_count(self) -> int:
        """Host-side orchestrations loaded: none on a CPU, where there is one side."""
        return 0

    def init(self) -> None:
        """Make the worker usable; again after `close`, with empty memory."""
        self._initialized = True

    def close(self) -> None:
        """Free what is left of its tensors, and close its handles."""
        if not self._initialized:
            return
        self._initialized = False
        if self._tracked:
            _log.debug("%d tensors of %s are freed by close", len(self._tracked), self)
        for handle in self._handles:
            handle.unregister()
        for state in (
            self._allocations,
            self._tracked,
            self._free_blocks,
            self._handles,
            self._programs,
        ):
            state.clear()  # type: ignore[attr-defined]

    def __enter__(self) -> ChipWorker:
        stack = _active.get()
        if any(other._binding == self._binding for other in stack):
            raise ValueError(f"{self} is already active in an enclosing scope")
        self.init()
        _active.set((*stack, self))
        return self

    def __exit__(self, *_: object) -> None:
        _active.set(tuple(other for other in _active.get() if other is not self))
        self.close()

    def __repr__(self) -> str:
        level, platform, device_id, runtime = self._binding
        return f"ChipWorker(level={level}, platform='{platform}', device_id={device_id}, runtime='{runtime}')"

    @staticmethod
    def current(
        *, level: int, platform: str, device_id: int, runtime: str, require_sdma: bool = False
    ) -> ChipWorker | None:
        """The innermost active worker of that binding. Raises `RuntimeError` when it lacks SDMA."""
        for worker in reversed(_active.get()):
            if worker._binding == (level, platform, device_id, runtime):
                if require_sdma and not worker._enable_sdma:
                    raise RuntimeError(f"{worker} is active, but was made without enable_sdma=True")
                return worker
        return None

    # --- programs

    def run(self, compiled: Any, *args: Any, config: RunConfig | None = None) -> Any:
        """Run a program here, with the call styles and results of calling it.

        Raises `ValueError` for a program of another platform or runtime.
        """
        part = self._part_of(compiled)
        return self.run_part(part, args, config)

    def run_part(self, part: OrchestrationProgram, args: Sequence[Any], config: RunConfig | None) -> Any:
        """Run what is known to fit this worker."""
        self._require_init()
        self._load(part)
        return part.run_on(self, args, config)

    def register(self, compiled: Any) -> RegistrationHandle:
        """Build and load a program now, for calls without further cost."""
        self._require_init()
        part = self._part_of(compiled)
        handle = RegistrationHandle(self, compiled, self._load(part))
        self._handles.append(handle)
        return handle

    def _part_of(self, compiled: CompiledProgram | OrchestrationProgram) -> OrchestrationProgram:
        part: OrchestrationProgram = compiled.single() if hasattr(compiled, "single") else compiled
        if part.platform != self.platform:
            raise ValueError(f"the program is for platform '{part.platform}', the worker '{self.platform}'")
        return part

    def _load(self, part: OrchestrationProgram) -> int:
        """Load the program if it is new here; its id."""
        known = self._programs.get(id(part))
        if known is not None:
            return known[0]
        part.load()
        if part.runtime_name != self.runtime:
            raise ValueError(f"the program is for runtime '{part.runtime_name}', the worker '{self.runtime}'")
        cid = next(self._ids)
        self._programs[id(part)] = (cid, part)
        return cid

    # --- memory

    @property
    def allocated_bytes(self) -> int:
        """Bytes of the live allocations."""
        return sum(buffer.nbytes for buffer in self._allocations.values())

    def malloc(self, nbytes: int, *, worker_id: int = 0) -> int:
        self._require_init()
        self._check_worker_id(worker_id)
        if type(nbytes) is not int or nbytes <= 0:
            raise ValueError(f"nbytes must be a positive int, got {nbytes!r}")
        spare = self._free_blocks.get(nbytes)
        memory = spare.pop() if spare else np.empty(nbytes + _ALIGNMENT, np.uint8)
        address = memory.ctypes.data
        base = address + -address % _ALIGNMENT
        self._allocations[base] = DeviceBuffer(base, nbytes, self, memory)
        return base

    def free(self, ptr: int, *, worker_id: int = 0) -> None:
        self._require_init()
        self._check_worker_id(worker_id)
        buffer = self._allocations.pop(self._allocation(ptr).base)
        self._tracked.discard(buffer.base)
        spare = self._free_blocks.setdefault(buffer.nbytes, [])
        if buffer.nbytes <= _KEEP_BYTES and len(spare) < _KEEP_BLOCKS:
            spare.append(buffer.memory)

    def copy_to(self, dev: int, host: int, nbytes: int, *, worker_id: int = 0) -> None:
        self._check_copy(dev, host, nbytes, worker_id)
        ctypes.memmove(dev, host, nbytes)

    def copy_from(self, host: int, dev: int, nbytes: int, *, worker_id: int = 0) -> None:
        self._check_copy(dev, host, nbytes, worker_id)
        ctypes.memmove(host, dev, nbytes)

    def check_dispatch(self, tensor: DeviceTensor, name: str) -> None:
        """Raises for a tensor that a run on this worker cannot use."""
        if tensor.buffer is None:
            raise TypeError(
                f"Parameter '{name}': a raw-pointer DeviceTensor cannot be dispatched; use alloc_tensor"
            )
        if self._allocations.get(tensor.data_ptr) is not tensor.buffer:
            raise ValueError(
                f"Parameter '{name}': {tensor!r} is not a live allocation owned by this ChipWorker"
            )

    def _adopt(self, address: int, worker_id: int) -> DeviceBuffer:
        self._tracked.add(address)
        return self._allocations[address]

    def _owns(self, tensor: DeviceTensor, worker_id: int) -> bool:
        self._require_init()
        if worker_id != 0:
            raise ValueError(f"worker_id {worker_id} does not match the owning worker 0 of {tensor!r}")
        live = self._allocations.get(tensor.data_ptr)
        if live is not None and live is tensor.buffer:
            return True
        if getattr(tensor.buffer, "owner", None) is not self:
            raise ValueError(f"{tensor!r} does not match the owning worker: this one did not allocate it")
        if live is not None:
            raise ValueError(f"{tensor!r} is stale: its address belongs to a newer tensor")
        return False

    def _allocation(self, address: int) -> DeviceBuffer:
        found = self._allocations.get(address)
        if found is None:
            text = hex(address) if isinstance(address, int) else repr(address)
            raise ValueError(f"{text} is no allocation of this worker: it requires the allocation base")
        return found

    def _check_copy(self, dev: int, host: int, nbytes: int, worker_id: int) -> None:
        self._require_init()
        self._check_worker_id(worker_id)
        if type(nbytes) is not int or nbytes <= 0:
            raise ValueError(f"nbytes must be a positive int, got {nbytes!r}")
        if type(host) is not int or host <= 0:
            raise ValueError(f"the host address must be a positive int, got {host!r}")
        size = self._allocation(dev).nbytes
        if nbytes > size:
            raise ValueError(f"a copy of {nbytes} bytes exceeds the allocation of {size}")

    @staticmethod
    def _check_worker_id(worker_id: int) -> None:
        if worker_id != 0:
            raise ValueError(f"a ChipWorker is one worker, with worker_id 0; got {worker_id}")

    def _require_init(self) -> None:
        if not self._initialized:
            raise RuntimeError("this requires an initialized ChipWorker; call init() or enter it")


class RegistrationHandle:
    """A program registered with a worker: callable until `unregister` or until the worker closes."""

    def __init__(self, worker: Worker, compiled: Any, cid: int) -> None:
        self._worker = worker
        self._closed = False
        self.compiled = compiled
        self.cid = cid

    @property
    def closed(self) -> bool:
        return self._closed

    def __call__(self, *args: Any, config: RunConfig | None = None) -> Any:
        if self._closed:
            raise RuntimeError(
                f"{self.compiled!r} has been unregistered (or its parent Worker was closed); register again"
            )
        return self._worker.run(self.compiled, *args, config=config)

    def unregister(self) -> None:
        """Close this handle; others of the same program stay usable."""
        self._closed = True

    def __enter__(self) -> RegistrationHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.unregister()


def any_worker_active() -> bool:
    """Whether this code runs inside `with worker:`."""
    return bool(_active.get())


def _copy_init(address: int, init: Any, shape: tuple[int, ...], dtype: Any) -> None:
    if not (hasattr(init, "shape") and hasattr(init, "dtype")):
        raise TypeError(f"init must be a tensor, got {type(init).__name__}")
    if tuple(init.shape) != shape or dtype_name(init.dtype) != dtype_name(dtype):
        raise ValueError(
            f"init has shape {tuple(init.shape)} and dtype {dtype_name(init.dtype)}, "
            f"expected {shape} and {dtype_name(dtype)}"
        )
    if hasattr(init, "data_ptr"):
        whole = init.detach().cpu().contiguous()
        ctypes.memmove(address, whole.data_ptr(), whole.numel() * itemsize_of(dtype))
    else:
        array = np.ascontiguousarray(init)
        ctypes.memmove(address, array.ctypes.data, array.nbytes)
