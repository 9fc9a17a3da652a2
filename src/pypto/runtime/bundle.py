"""Prebuilt bundles: a compiled program as a folder that runs without a compiler and without sources.

`write_bundle` copies the binaries of a compiled program, the task runtime among them, and describes them in
a manifest (`bundle_manifest`). `load_bundle` gives back something callable. It reads each file once, checks
it against the manifest, and hands exactly the bytes that it checked to the dynamic linker, through a private
copy that is named by their digest; so a bundle that is replaced while a process uses it changes nothing
there. Nothing is loaded before everything is checked, and no Python of the bundle is ever run.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import os
import re
import shutil
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pypto.backend import toolchain
from pypto.runtime import build, native_runtime
from pypto.runtime.assemble import compile_and_assemble
from pypto.runtime.bundle_manifest import (
    MANIFEST,
    PLATFORM,
    BundledFile,
    BundledKernel,
    BundledOrchestration,
    BundledRegistration,
    Manifest,
    Requirements,
    manifest_text,
    read_manifest,
)
from pypto.runtime.callables import Binary, ChipCallable, CoreCallable
from pypto.runtime.compiled_program import Assembled, CompiledProgram, OrchestrationProgram
from pypto.runtime.kernel_config import RUNTIMES
from pypto.runtime.metadata import CallSignature, Sidecar, read_sidecar

__all__ = ["BundleProgram", "is_bundle", "load_bundle", "write_bundle"]

_FOLDER = "bin"
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")
_NO_CODE_HERE = "failed to map segment"

_loading = threading.Lock()  # equal libraries of two bundles have one private copy
_T = TypeVar("_T")


class BundleProgram(OrchestrationProgram):
    """A program that was loaded from a bundle; called like a compiled program."""

    kind = "Bundle"

    def __init__(self, root: Path, platform: str, signature: CallSignature, assembled: Assembled) -> None:
        super().__init__(root.name, root, platform, signature)
        self._given = assembled

    def _assemble(self) -> Assembled:
        return self._given


def is_bundle(directory: Path | str) -> bool:
    """Whether the folder holds a bundle."""
    return (Path(directory) / MANIFEST).is_file()


# Writing


def write_bundle(
    compiled: CompiledProgram | OrchestrationProgram, directory: Path | str, *, portable: bool = False
) -> Path:
    """Write a compiled program as a bundle; the path of its manifest.

    An older bundle in `directory` is replaced. Equal programs give equal bundles on one kind of machine. A
    bundle asks for the instruction sets of the CPU that it was made on; a `portable` one is compiled anew for
    every CPU of that family, and runs slower where the better instructions would have helped.
    Raises `TypeError` for a program of several orchestrations (bundle `compiled[name]` then) or ranks,
    `FileExistsError` for a folder that holds something else, and what compiling raises.
    """
    program = compiled.single() if isinstance(compiled, CompiledProgram) else compiled
    if not isinstance(program, OrchestrationProgram):
        raise TypeError("a program for several ranks cannot be bundled; keep its build directory")
    if isinstance(program, BundleProgram):
        raise TypeError(f"{program.output_dir} is a bundle already; copy the folder")
    if portable:
        chip, runtime_name, _ = compile_and_assemble(program.output_dir, program.platform, portable=True)
    else:
        chip, runtime_name = program.load(), program.runtime_name
    requirements = _requirements_of(runtime_name, portable)
    meta = Sidecar(program.signature, program.platform, read_sidecar(program.output_dir).backend)
    root = Path(directory)
    _make_room(root)
    files = _FileNames(root)
    orchestration = BundledOrchestration(
        files.copy("orchestration", "orchestration", chip.binary.path),
        chip.func_name,
        chip.config_name,
        chip.signature,
    )
    runtime = files.copy("task_runtime", "task_runtime", build.runtime_library())
    binaries: dict[str, BundledKernel] = {}
    names: dict[tuple[str, str, Path], str] = {}
    rows = []
    for func_id, child in chip.children:
        code = (child.name, child.core_type, child.binary.path)
        if code not in names:
            names[code] = name = _free_name(f"{child.name}.{child.core_type}", binaries)
            library = files.copy(f"binaries.{name}", name, child.binary.path)
            binaries[name] = BundledKernel(library, child.core_type, child.entry)
        row = BundledRegistration(func_id, child.name, child.core_type, names[code], child.signature)
        rows.append(row)
    text = manifest_text(requirements, binaries, orchestration, tuple(rows), runtime, meta)
    files.remove_others()
    return _write(root / MANIFEST, text.encode())


def _requirements_of(runtime: str, portable: bool) -> Requirements:
    """What this machine and this version of the package are, as a bundle made here states it."""
    tuned = not portable and bool(build.compiler().tuning)
    return Requirements(
        platform=PLATFORM,
        runtime=runtime,
        target=toolchain.target_system(),
        abi=build.runtime_revision(),
        cpu_features=tuple(sorted(toolchain.cpu_features())) if tuned else (),
    )


def _make_room(root: Path) -> None:
    """An empty folder, or one that holds an older bundle, which is no longer loadable from here on."""
    root.mkdir(parents=True, exist_ok=True)
    if is_bundle(root):
        (root / MANIFEST).unlink()
    elif any(root.iterdir()):
        raise FileExistsError(f"{root} is not empty and holds no bundle; choose another folder")


def _free_name(wanted: str, taken: dict[str, BundledKernel]) -> str:
    """Several binaries of one code name exist only in hand-written configurations."""
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}.{number}"
    return name


class _FileNames:
    """Copies binaries into the bundle, each under a name of its own."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._taken: set[str] = set()
        (root / _FOLDER).mkdir(exist_ok=True)

    def copy(self, field: str, name: str, source: Path) -> BundledFile:
        stem = _UNSAFE.sub("_", name)
        file, number = f"{stem}.so", 1
        while file.casefold() in self._taken:
            number += 1
            file = f"{stem}.{number}.so"
        self._taken.add(file.casefold())
        content = source.read_bytes()
        _write(self._root / _FOLDER / file, content)
        return BundledFile(field, f"{_FOLDER}/{file}", len(content), hashlib.sha256(content).hexdigest())

    def remove_others(self) -> None:
        """What an older bundle left."""
        for path in (self._root / _FOLDER).iterdir():
            if path.name.casefold() not in self._taken:
                path.unlink()


def _write(path: Path, content: bytes) -> Path:
    """Write a file that exists whole or not at all; a process that uses the old one keeps it."""
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_bytes(content)
    os.replace(temporary, path)
    return path


# Loading


def load_bundle(directory: Path | str) -> BundleProgram:
    """The program of a bundle, ready to be called. Needs no compiler.

    Raises `FileNotFoundError` for a folder without a manifest, and `ValueError` naming manifest and field
    for everything that is not as the manifest and this machine require; then nothing is loaded.
    """
    root = Path(directory)
    manifest = read_manifest(root)
    _check_requirements(manifest)
    with _loading, _staged_libraries(root.resolve(), manifest) as staged:
        assembled = _assemble(manifest, staged)
    return BundleProgram(root, manifest.meta.platform, manifest.meta.signature, assembled)


def _check_requirements(manifest: Manifest) -> None:
    needed = manifest.requirements
    ours = {
        "platform": [PLATFORM],
        "runtime": list(RUNTIMES),
        "target": [toolchain.target_system()],
        "abi": [build.runtime_revision()],
    }
    for field, mine in ours.items():
        theirs = getattr(needed, field)
        if theirs not in mine:
            hint = "; write the bundle again with this version of pypto" if field == "abi" else ""
            known = " or ".join(f"'{name}'" for name in mine)
            raise manifest.wrong(field, f"is '{theirs}', but this process has {known}{hint}")
    missing = sorted(set(needed.cpu_features) - toolchain.cpu_features())
    if missing:
        raise manifest.wrong("cpu_features", f"names what this CPU lacks: {', '.join(missing)}")


@dataclass(frozen=True, slots=True)
class _Staged:
    """Private copies of the checked files. `kernels` by the name of the binary."""

    orchestration: Binary
    task_runtime: Path | None
    kernels: dict[str, Binary]


@contextmanager
def _staged_libraries(root: Path, manifest: Manifest) -> Iterator[_Staged]:
    """Check every file that is needed and copy what was checked; the copies go at the end of the block."""
    referenced = {row.binary for row in manifest.kernels}
    needed = [manifest.orchestration.library]
    needed += [kernel.library for name, kernel in manifest.binaries.items() if name in referenced]
    needed += [manifest.task_runtime] if manifest.task_runtime is not None else []
    _check_distinct(root, manifest)
    copies: dict[str, Binary] = {}
    try:
        for file in needed:
            copies[file.field] = _stage(manifest, file, root)
        yield _Staged(
            copies[manifest.orchestration.library.field],
            copies[manifest.task_runtime.field].path if manifest.task_runtime is not None else None,
            {name: copies[manifest.binaries[name].library.field] for name in referenced},
        )
    finally:
        for copy in copies.values():
            copy.path.unlink(missing_ok=True)


def _check_distinct(root: Path, manifest: Manifest) -> None:
    """No file stands for two binaries, also not by another spelling or through a link."""
    files = [manifest.orchestration.library, *(kernel.library for kernel in manifest.binaries.values())]
    files += [manifest.task_runtime] if manifest.task_runtime is not None else []
    seen: dict[Path, str] = {}
    for file in files:
        path = Path(os.path.realpath(root / file.file))
        if path in seen:
            raise manifest.wrong(
                f"{file.field}.file", f"is the file of '{seen[path]}' as well: {file.file!r}"
            )
        seen[path] = file.field


def _stage(manifest: Manifest, file: BundledFile, root: Path) -> Binary:
    content = _read_checked(manifest, file, root)
    # Named by content: the linker, which knows libraries by name, takes equal ones for one.
    path = _private_folder(os.getpid()) / f"{file.sha256}.so"
    _write(path, content)
    return Binary(path, len(content))


def _read_checked(manifest: Manifest, file: BundledFile, root: Path) -> bytes:
    """The content of a file, when it is what the manifest says."""
    field = f"{file.field}.file"
    try:
        path = (root / file.file).resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise manifest.wrong(field, f"cannot be found: {file.file!r}") from error
    if not path.is_relative_to(root):
        raise manifest.wrong(field, f"leaves the bundle through a link: {file.file!r}")
    try:
        content = _read_regular(path, file.size)
    except OSError as error:
        raise manifest.wrong(field, f"cannot be read: {file.file!r}: {error}") from error
    if content is None:
        raise manifest.wrong(field, f"is no regular file: {file.file!r}")
    if len(content) != file.size:
        raise manifest.wrong(f"{file.field}.size", f"is {file.size}, which {file.file!r} has not")
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise manifest.wrong(f"{file.field}.sha256", f"does not match the content of {file.file!r}")
    return content


def _read_regular(path: Path, size: int) -> bytes | None:
    """Up to one byte more than `size`; None for what is no regular file."""
    # Not blocking: the name may be that of a pipe.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        with open(handle, "rb", closefd=False) as stream:
            return stream.read(size + 1)
    finally:
        os.close(handle)


@functools.cache
def _private_folder(process: int) -> Path:
    """Where this process keeps copies while they are loaded."""
    folder = Path(tempfile.mkdtemp(prefix="pypto-bundle-"))

    def remove() -> None:
        if os.getpid() == process:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


def _assemble(manifest: Manifest, staged: _Staged) -> Assembled:
    def load(field: str, symbol_field: str, path: Path, symbols: list[str]) -> None:
        library = _loaded(manifest, f"{field}.file", lambda: native_runtime.load_library(path))
        for symbol in symbols:
            if not hasattr(library, symbol):
                raise manifest.wrong(f"{field}.{symbol_field}", f"names '{symbol}', which is not exported")

    runtime = staged.task_runtime
    if runtime is not None:
        _loaded(manifest, "task_runtime.file", lambda: native_runtime.use_runtime(runtime))
    orchestration = manifest.orchestration
    load("orchestration", "function_name", staged.orchestration.path, [orchestration.function_name])
    if orchestration.config_name:
        load("orchestration", "config_name", staged.orchestration.path, [orchestration.config_name])
    for name, binary in staged.kernels.items():
        load(f"binaries.{name}", "entry", binary.path, [manifest.binaries[name].entry])
    chip = ChipCallable.build(
        orchestration.signature,
        orchestration.function_name,
        staged.orchestration,
        [
            (
                row.func_id,
                CoreCallable.build(
                    row.signature,
                    staged.kernels[row.binary],
                    name=row.name,
                    core_type=row.core_type,
                    entry=manifest.binaries[row.binary].entry,
                ),
            )
            for row in manifest.kernels
        ],
        orchestration.config_name,
    )
    _ = chip.program  # bind now, while the copies exist
    return chip, manifest.requirements.runtime, {"runtime": manifest.requirements.runtime}


def _loaded(manifest: Manifest, field: str, action: Callable[[], _T]) -> _T:
    try:
        return action()
    except OSError as error:
        hint = "; set TMPDIR to a folder that code may run from" if _NO_CODE_HERE in str(error) else ""
        raise manifest.wrong(field, f"cannot be loaded here: {error}{hint}") from error
