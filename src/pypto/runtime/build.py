"""From C++ sources to shared libraries: each distinct one is compiled once, several at a time.

A job's key covers the source and the headers it reaches, the flags, the compiler, the CPU and, for what is
not shared, an extra identity. Equal keys are one compilation, here and in the store. The native task runtime
is a job like any other, made on first use.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import json
import os
import re
import subprocess
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from pypto.backend import toolchain
from pypto.backend.toolchain import CodeKind, CompilerIdentity
from pypto.runtime import sources
from pypto.runtime.progress import CompileProgress
from pypto.runtime.store import Store, StoreError, no_space

_KEY_SCHEMA = 1
_NATIVE = Path(__file__).parent / "native"
_SOURCE_PLACE = re.compile(r"//\s*(\S.*?:\d+)")
_NO_SPACE_TEXT = "No space left on device"

_runs = 0
_runs_guard = threading.Lock()


class CompileError(RuntimeError):
    """The C++ compiler refused a source. The text holds its message and, for a kernel, the DSL line."""


@dataclass(frozen=True, slots=True)
class CompileJob:
    """One source to compile. `identity` keeps apart what equal content must not join."""

    kind: CodeKind
    source: Path
    label: str
    include_dirs: tuple[Path, ...] = ()
    identity: tuple[str, ...] = ()


def compiler_runs() -> int:
    """How many times this process has started the compiler to make a binary."""
    return _runs


def cache_root() -> Path:
    """Folder of the store: `PYPTO_CACHE_DIR`, else the user's cache folder."""
    chosen = os.environ.get("PYPTO_CACHE_DIR", "").strip()
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("pypto", appauthor=False))


def store() -> Store:
    """The store in use; it follows `PYPTO_CACHE_DIR`."""
    return _open_store(cache_root())


@functools.cache
def _open_store(root: Path) -> Store:
    opened = Store(root)
    atexit.register(opened.close)
    return opened


def compiler() -> CompilerIdentity:
    """The compiler in use; what it is has been asked once per installed compiler."""
    return _identify(toolchain.find_compiler(), cache_root())


@functools.cache
def _identify(command: tuple[str, ...], root: Path) -> CompilerIdentity:
    files = [Path(word).resolve() for word in command if os.path.isabs(word) and os.path.exists(word)]
    stamps = [[str(f), f.stat().st_mtime_ns, f.stat().st_size] for f in files]
    package = _zig_version() if "ziglang" in command else ""
    asked = json.dumps([command, stamps, package, toolchain.target_cpu()])
    note = f"compiler-{hashlib.sha256(asked.encode()).hexdigest()[:24]}"
    known = _open_store(root).read_note(note)
    if isinstance(known, dict) and {"version", "target", "tuning"} <= known.keys():
        return CompilerIdentity(command, known["version"], known["target"], tuple(known["tuning"]))
    identity = toolchain.identify(command)
    fields = {"version": identity.version, "target": identity.target, "tuning": list(identity.tuning)}
    with suppress(StoreError):  # then it is asked again
        _open_store(root).write_note(note, {**fields, "command": list(command)})
    return identity


def _zig_version() -> str:
    from importlib.metadata import version

    return version("ziglang")


@functools.cache
def runtime_revision() -> str:
    """Digest of the native runtime's sources and of the headers that orchestrations and kernels include."""
    digest = hashlib.sha256()
    for folder in (_NATIVE, toolchain.kernel_include_dir()):
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                digest.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def orchestration_include_dir() -> Path:
    """Where `pto_orchestration_api.h` is."""
    return _NATIVE / "include"


def runtime_library() -> Path:
    """The native task runtime, compiled on first use."""
    return compile_jobs([_runtime_job()])[0]


def _runtime_job() -> CompileJob:
    return CompileJob(CodeKind.RUNTIME, _NATIVE / "src" / "runtime.cpp", "task runtime")


def compile_jobs(
    jobs: Sequence[CompileJob], *, with_runtime: bool = False, portable: bool = False
) -> list[Path]:
    """The libraries of `jobs`, in order; those that the store lacks are compiled in parallel.

    `with_runtime` makes the task runtime in the same go, so that it does not add to the time of a first
    compile. `portable` code uses only instructions that all CPUs of the target have. Raises `CompileError`
    with the messages of all sources that fail, `ToolchainError`, `StoreError`.
    """
    everything = [*([_runtime_job()] if with_runtime else []), *jobs]
    identity = toolchain.untuned(compiler()) if portable else compiler()
    target = store()
    keyed = [(_key_of(job, identity), job) for job in everything]
    distinct = dict(keyed)
    missing = [key for key in distinct if not target.contains(key)]
    with CompileProgress(len(missing)) as progress:
        paths = _compile_distinct(distinct, missing, identity, target, progress)
    return [paths[key] for key, _ in keyed][len(everything) - len(jobs) :]


def _compile_distinct(
    distinct: dict[str, CompileJob],
    missing: list[str],
    identity: CompilerIdentity,
    target: Store,
    progress: CompileProgress,
) -> dict[str, Path]:
    def make(key: str) -> Path:
        job = distinct[key]
        path = target.get(key, job.label, lambda output: _compile(job, identity, target, output))
        progress.advance(job.label)
        return path

    paths = {}
    if len(missing) > 1:
        with ThreadPoolExecutor(min(len(missing), _usable_cores()), "pypto-compile") as pool:
            # The longest first: the runtime, then by size of the source.
            def cost(key: str) -> tuple[bool, int]:
                return distinct[key].kind is CodeKind.RUNTIME, _size(distinct[key])

            futures = {key: pool.submit(make, key) for key in sorted(missing, key=cost, reverse=True)}
            wait(futures.values())
        _raise_failures([futures[key].exception() for key in missing])
        paths = {key: future.result() for key, future in futures.items()}
    for key in distinct:
        if key not in paths:
            paths[key] = make(key)
    return paths


def _raise_failures(errors: Sequence[BaseException | None]) -> None:
    """One error for all sources that the compiler refused; another kind of error comes first."""
    found = [error for error in errors if error is not None]
    refused = [error for error in found if isinstance(error, CompileError)]
    for error in found:
        if len(found) == 1 or error not in refused:
            raise error
    if refused:
        raise CompileError("\n\n".join(map(str, refused)))


def _size(job: CompileJob) -> int:
    return job.source.stat().st_size


def _usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _include_dirs(job: CompileJob) -> tuple[Path, ...]:
    if job.kind in (CodeKind.ORCHESTRATION, CodeKind.RUNTIME):
        return (*job.include_dirs, orchestration_include_dir(), toolchain.kernel_include_dir())
    return (*job.include_dirs, toolchain.kernel_include_dir())


def _key_of(job: CompileJob, identity: CompilerIdentity) -> str:
    if not job.source.is_file():
        raise FileNotFoundError(f"source of {job.label} not found: {job.source}")
    described = [
        _KEY_SCHEMA,
        job.kind.value,
        list(job.identity),
        sources.reached_files(job.source, _include_dirs(job)),
        toolchain.flags_for(job.kind, identity, _size(job)),
        [identity.command, identity.version, identity.target],
        toolchain.target_cpu(),
    ]
    return hashlib.sha256(json.dumps(described).encode()).hexdigest()


def _compile(job: CompileJob, identity: CompilerIdentity, target: Store, output: Path) -> None:
    global _runs
    with _runs_guard:
        _runs += 1
    scratch = target.scratch_dir()
    flags = toolchain.flags_for(job.kind, identity, _size(job))
    words = toolchain.command_line(identity, flags, job.source, output, _include_dirs(job))
    environment = {**os.environ, "TMPDIR": str(scratch), "LC_ALL": "C"}
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, errors="replace", env=environment, cwd=scratch, check=False
        )
    except OSError as error:
        raise CompileError(f"cannot start the compiler for {job.label}: {error}") from error
    if done.returncode == 0 and output.exists():
        return
    message = (done.stderr or done.stdout).strip() or f"exit status {done.returncode} without a message"
    if _NO_SPACE_TEXT in message:
        raise no_space(target.root)
    raise CompileError(_failure_text(job, identity, message))


def _failure_text(job: CompileJob, identity: CompilerIdentity, message: str) -> str:
    lines = [f"the C++ compiler failed on {job.label}", f"  source: {job.source}"]
    place = _dsl_place(job.source, message)
    if place is not None:
        lines.append(f"  DSL line: {place}")
    lines += [f"  compiler: {identity.describe()}", message]
    return "\n".join(lines)


def _dsl_place(source: Path, message: str) -> str | None:
    """The `file:line` comment that precedes the first line that the compiler complains about."""
    found = re.search(re.escape(str(source)) + r":(\d+)(?::\d+)?:\s*(?:fatal )?error", message)
    if found is None:
        return None
    lines = source.read_text(errors="replace").splitlines()[: int(found[1])]
    places = (_SOURCE_PLACE.search(line) for line in reversed(lines))
    return next((place[1] for place in places if place is not None), None)
