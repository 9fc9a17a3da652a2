"""Calls into the native task runtime.

Loads the runtime and the libraries of kernels and orchestrations, each once per process, and runs programs.
The interpreter's lock is free while a program runs.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import itertools
import os
import signal
import struct
import threading
import weakref
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path

from pypto.runtime import build

_VOID = ctypes.c_void_p
_ERROR_BYTES = 4096
_INTERRUPTED = 2
_LARGE_CODE = 1 << 20
_DESCRIPTOR = struct.Struct("=QQQ5I5III")
_OPTIONS = struct.Struct("@6iP")
KERNEL_ENTRY = "kernel_entry"

_libraries: dict[Path, ctypes.CDLL] = {}
_task_runtime: ctypes.CDLL | None = None
_task_runtime_guard = threading.Lock()
_orchestrations_loaded = 0
_tokens = itertools.count((1 << 63) + 1)
_cancel_token: ContextVar[int] = ContextVar("pypto_cancel_token", default=0)
_guard = threading.Lock()


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a program runs. `workers` counts the calling thread; `task_window` bounds the tasks in flight."""

    workers: int
    task_window: int = 4096
    clusters: int = 24
    vector_units: int = 48
    checked: bool = False
    stall_seconds: int = 0


@dataclass(frozen=True, slots=True)
class NativeKernel:
    """One row of a program's kernel table."""

    func_id: int
    name: str
    is_cube: bool
    library: Path
    entry: str = KERNEL_ENTRY


@dataclass(frozen=True, slots=True)
class TraceTask:
    """A submitted task: kernel ids of its lanes (empty for a dummy task)."""

    task: int
    func_ids: tuple[int, ...]
    blocks: int


@dataclass(frozen=True, slots=True)
class TraceBlock:
    """When one block of one lane ran, in nanoseconds of a steady clock, and on which thread."""

    task: int
    block: int
    lane: int
    start_ns: int
    end_ns: int
    thread: int


@dataclass(frozen=True, slots=True)
class TraceScope:
    """A scope of the orchestration: `parent` is a place in the list of scopes, -1 for the outermost.

    `tasks`, `buffers` and `bytes` count what was submitted and made directly in it; `peak_bytes` is the most
    that lived at once of what was made since it began.
    """

    parent: int
    manual: bool
    depth: int
    tasks: int
    buffers: int
    bytes: int
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class TraceDump:
    """Contents of an argument of a task, at `offset` of the file of dumps."""

    task: int
    argument: int
    after: bool
    element: int
    tag: int
    shape: tuple[int, ...]
    offset: int
    bytes: int


@dataclass(frozen=True, slots=True)
class RunTrace:
    """What a traced run did. Edges go from a task to one that waited for it."""

    tasks: tuple[TraceTask, ...]
    edges: frozenset[tuple[int, int]]
    blocks: tuple[TraceBlock, ...]
    scopes: tuple[TraceScope, ...]
    dumps: tuple[TraceDump, ...]


def pack_layout(shape: Sequence[int], element: int, element_bytes: int) -> bytes:
    """The descriptor of a row-major tensor without its address."""
    strides, count = [0] * 5, 1
    for k in reversed(range(len(shape))):
        strides[k] = count
        count *= max(shape[k], 1)
    extents = [*shape, *([0] * (5 - len(shape)))]
    if any(extent >= 1 << 32 for extent in extents) or any(stride >= 1 << 32 for stride in strides):
        raise ValueError(f"tensor of shape {tuple(shape)} is too large: extents and strides are 32-bit")
    size = 0 if 0 in shape else count * element_bytes
    return _DESCRIPTOR.pack(0, size, 0, *extents, *strides, len(shape), element)


class NativeProgram:
    """An orchestration bound to the runtime, with its kernel table."""

    def __init__(self, orchestration: Path, entry: str, config: str, kernels: Sequence[NativeKernel]) -> None:
        global _orchestrations_loaded
        runtime = _runtime()
        library = load_library(orchestration)
        with _guard:
            _orchestrations_loaded += 1
        handle = runtime.pypto_program_new(
            _address(library, entry, orchestration),
            _optional_address(library, config),
            _address(library, "pypto_bind_runtime", orchestration),
            _stack_bytes(orchestration),
        )
        if handle is None:
            raise RuntimeError(f"{orchestration} was built against another version of the task API")
        self._handle = _VOID(handle)
        self._finalizer = weakref.finalize(self, runtime.pypto_program_free, self._handle)
        self._finalizer.atexit = False
        for kernel in kernels:
            code = _load_kernel(kernel)
            runtime.pypto_program_add_kernel(
                self._handle,
                kernel.func_id,
                _address(code, kernel.entry, kernel.library),
                _workspace_bytes(code),
                int(kernel.is_cube),
                kernel.name.encode(),
            )
        self._runtime = runtime
        self._run = runtime.pypto_run

    def run(self, layouts: bytes, addresses: Sequence[int], scalars: Sequence[int], options: bytes) -> None:
        """Run on tensors whose packed layouts are joined in `layouts`. Raises `RuntimeError` for a failed
        run, `KeyboardInterrupt` for one that a person ended.

        The memory at `addresses` must stay alive and unmoved until the call returns.
        """
        n, m = len(addresses), len(scalars)
        error = ctypes.create_string_buffer(_ERROR_BYTES)
        use, interruptible = _cancel_token.get(), _interruptible()
        try:
            if interruptible:
                # An earlier Ctrl-C raises after this call, a later one ends the run.
                use = self._runtime.pypto_arm()
            failed = self._run(
                self._handle,
                layouts,
                (ctypes.c_uint64 * n)(*addresses),
                n,
                (ctypes.c_uint64 * m)(*scalars),
                m,
                options,
                use,
                error,
                _ERROR_BYTES,
            )
        except BaseException:
            if interruptible:
                self._runtime.pypto_disarm()
            raise
        if failed == _INTERRUPTED:
            signal.pthread_sigmask(signal.SIG_BLOCK, ())  # runs the pending handler
            raise KeyboardInterrupt
        if failed:
            raise RuntimeError(error.value.decode(errors="replace"))

    def run_traced(
        self,
        layouts: bytes,
        addresses: Sequence[int],
        scalars: Sequence[int],
        options: RunOptions,
        *,
        dump_level: int = 0,
        dump_file: Path | None = None,
    ) -> RunTrace:
        """As `run`, and tell what happened.

        `dump_file` gets the contents of the arguments of tasks that are marked (level 1), or of all (2).
        """
        runtime = _runtime()
        if dump_level > 0:
            options = replace(options, workers=1)  # nobody writes what is being dumped
        trace = runtime.pypto_trace_new(dump_level, os.fsencode(dump_file or ""))
        try:
            self.run(layouts, addresses, scalars, pack_options(options, trace))
            return _read_trace(runtime, trace)
        finally:
            runtime.pypto_trace_free(trace)


@functools.lru_cache(maxsize=64)
def pack_options(options: RunOptions, trace: int = 0) -> bytes:
    """The options as the runtime reads them."""
    return _OPTIONS.pack(
        options.workers,
        options.task_window,
        options.clusters,
        options.vector_units,
        int(options.checked),
        options.stall_seconds,
        trace,
    )


def orchestrations_loaded() -> int:
    """How many orchestration libraries this process has bound to the runtime."""
    return _orchestrations_loaded


def _interruptible() -> bool:
    """Whether Ctrl-C ends the run: where it raises `KeyboardInterrupt` in Python code."""
    on_main = threading.current_thread() is threading.main_thread()
    return on_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler


def new_cancel_token() -> int:
    """A number for runs that `cancel` may end."""
    return next(_tokens)


def set_cancel_token(token: int) -> None:
    """Runs of this context on other threads than the main one can be ended by `cancel(token)`."""
    _cancel_token.set(token)


def cancel(token: int) -> None:
    """End the runs with that token; they raise `KeyboardInterrupt` on their threads."""
    if _task_runtime is not None:
        _task_runtime.pypto_cancel(token)


def use_runtime(library: Path) -> None:
    """Take the task runtime from `library`, unless this process has loaded one already."""
    _runtime(library)


def _runtime(given: Path | None = None) -> ctypes.CDLL:
    """The one task runtime of this process; the first use decides which file it comes from."""
    global _task_runtime
    with _task_runtime_guard:
        if _task_runtime is None:
            _task_runtime = _load_runtime(given or build.runtime_library())
        return _task_runtime


def _load_runtime(path: Path) -> ctypes.CDLL:
    library = ctypes.CDLL(str(path))
    i32, u64, text = ctypes.c_int32, ctypes.c_uint64, ctypes.c_char_p
    signatures = {
        "pypto_program_new": (_VOID, [_VOID, _VOID, _VOID, u64]),
        "pypto_program_free": (None, [_VOID]),
        "pypto_program_add_kernel": (None, [_VOID, i32, _VOID, u64, i32, text]),
        "pypto_run": (i32, [_VOID, text, _VOID, i32, _VOID, i32, text, u64, text, u64]),
        "pypto_arm": (u64, []),
        "pypto_disarm": (None, []),
        "pypto_cancel": (None, [u64]),
        "pypto_shutdown": (None, []),
        "pypto_trace_new": (_VOID, [i32, text]),
        "pypto_trace_free": (None, [_VOID]),
        "pypto_trace_tasks": (ctypes.POINTER(_TaskRow), [_VOID, ctypes.POINTER(u64)]),
        "pypto_trace_edges": (ctypes.POINTER(_EdgeRow), [_VOID, ctypes.POINTER(u64)]),
        "pypto_trace_scopes": (ctypes.POINTER(_ScopeRow), [_VOID, ctypes.POINTER(u64)]),
        "pypto_trace_dumps": (ctypes.POINTER(_DumpRow), [_VOID, ctypes.POINTER(u64)]),
        "pypto_trace_blocks": (ctypes.POINTER(_BlockRow), [_VOID, ctypes.POINTER(u64)]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    atexit.register(library.pypto_shutdown)
    return library


def load_library(path: Path) -> ctypes.CDLL:
    """The library at `path`, loaded once per process. Raises `OSError`."""
    with _guard:
        library = _libraries.get(path)
        if library is None:
            library = _libraries[path] = ctypes.CDLL(str(path))
        return library


def _load_kernel(kernel: NativeKernel) -> ctypes.CDLL:
    try:
        library = load_library(kernel.library)
    except OSError as error:
        raise RuntimeError(f"cannot load kernel '{kernel.name}': {error}") from error
    if not hasattr(library, kernel.entry):
        wanted = f'its source must define extern "C" void {kernel.entry}(int64_t* args)'
        raise ValueError(f"kernel '{kernel.name}' exports no '{kernel.entry}'; {wanted}")
    return library


def _address(library: ctypes.CDLL, name: str, path: Path) -> ctypes.c_void_p:
    try:
        return ctypes.cast(getattr(library, name), _VOID)
    except AttributeError as error:
        raise ValueError(f"{path} exports no '{name}'") from error


def _optional_address(library: ctypes.CDLL, name: str) -> ctypes.c_void_p | None:
    return ctypes.cast(getattr(library, name), _VOID) if name and hasattr(library, name) else None


def _stack_bytes(orchestration: Path) -> int:
    """The stack that an orchestration needs when that is more than every thread has, else 0.

    A straight-line orchestration has one frame with the arguments of all its tasks, about twice its code.
    """
    code = orchestration.stat().st_size
    return 8 * code if code > _LARGE_CODE else 0


def _workspace_bytes(library: ctypes.CDLL) -> int:
    try:
        return ctypes.c_uint64.in_dll(library, "kernel_workspace_bytes").value
    except ValueError:
        return 0  # hand-written kernels may do without an arena


class _TaskRow(ctypes.Structure):
    _fields_ = [("task", ctypes.c_uint64), ("func_ids", ctypes.c_int32 * 3), ("blocks", ctypes.c_int32)]


class _EdgeRow(ctypes.Structure):
    _fields_ = [("start", ctypes.c_uint64), ("end", ctypes.c_uint64)]


class _BlockRow(ctypes.Structure):
    _fields_ = [
        ("task", ctypes.c_uint64),
        ("block", ctypes.c_int32),
        ("lane", ctypes.c_int32),
        ("start_ns", ctypes.c_int64),
        ("end_ns", ctypes.c_int64),
        ("thread", ctypes.c_uint64),
    ]


class _ScopeRow(ctypes.Structure):
    _fields_ = [
        ("parent", ctypes.c_int64),
        ("manual", ctypes.c_int32),
        ("depth", ctypes.c_int32),
        ("tasks", ctypes.c_int64),
        ("buffers", ctypes.c_int64),
        ("bytes", ctypes.c_int64),
        ("peak_bytes", ctypes.c_int64),
        ("live_before", ctypes.c_int64),
    ]


class _DumpRow(ctypes.Structure):
    _fields_ = [
        ("task", ctypes.c_uint64),
        ("argument", ctypes.c_int32),
        ("after", ctypes.c_int32),
        ("element", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("shape", ctypes.c_uint32 * 5),
        ("tag", ctypes.c_uint32),
        ("offset", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
    ]


def _read_trace(runtime: ctypes.CDLL, trace: int) -> RunTrace:
    n = ctypes.c_uint64()
    tasks_at = runtime.pypto_trace_tasks(trace, ctypes.byref(n))
    rows = [tasks_at[i] for i in range(n.value)]
    tasks = tuple(TraceTask(r.task, tuple(i for i in r.func_ids if i >= 0), r.blocks) for r in rows)
    edges_at = runtime.pypto_trace_edges(trace, ctypes.byref(n))
    edges = frozenset((edges_at[i].start, edges_at[i].end) for i in range(n.value))
    blocks_at = runtime.pypto_trace_blocks(trace, ctypes.byref(n))
    blocks = tuple(
        TraceBlock(r.task, r.block, r.lane, r.start_ns, r.end_ns, r.thread)
        for r in (blocks_at[i] for i in range(n.value))
    )
    scopes_at = runtime.pypto_trace_scopes(trace, ctypes.byref(n))
    scopes = tuple(
        TraceScope(r.parent, bool(r.manual), r.depth, r.tasks, r.buffers, r.bytes, r.peak_bytes)
        for r in (scopes_at[i] for i in range(n.value))
    )
    dumps_at = runtime.pypto_trace_dumps(trace, ctypes.byref(n))
    dumps = tuple(
        TraceDump(
            r.task,
            r.argument,
            bool(r.after),
            r.element,
            r.tag,
            tuple(r.shape[: r.rank]),
            r.offset,
            r.bytes,
        )
        for r in (dumps_at[i] for i in range(n.value))
    )
    return RunTrace(tasks, edges, blocks, scopes, dumps)
