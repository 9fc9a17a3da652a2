"""Generated sources of unchanged programs: what passes and code generation made once need not be made again.

The key covers the program as it came in (with source places, which the generated text names), the settings
that steer passes and code generation, and the compiler's own files. A compile that someone watches is never
answered from here: one with dumps, instruments or a profiler, or with passes or conversions that are not the
compiler's own.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgpack  # type: ignore[import-untyped]

import pypto
from pypto import ir, passes
from pypto.codegen.artifact import write_whole
from pypto.compile_profiling import get_active_profiler
from pypto.ir.op_conversion import registered_conversions
from pypto.ir.serialization import serialize
from pypto.passes.context import PassContext
from pypto.runtime import build
from pypto.runtime.store import StoreError

_SCHEMA = 1
_SUFFIX = ".sources"
_LAYERS = ("core", "ir", "passes", "backend", "codegen")


@dataclass(frozen=True, slots=True)
class Artifact:
    """Generated files by path below the build directory, and the names of the orchestrations."""

    files: dict[str, str]
    orchestrations: tuple[str, ...]

    def write(self, root: Path) -> None:
        """Write the files, each whole, in the order of the first time: what makes it loadable comes last."""
        for name, text in self.files.items():
            write_whole(root / name, text)


def key_of(program: ir.Program, context: PassContext, settings: Sequence[object]) -> str | None:
    """The key of this compile, or None when its result may not be reused. It will run in `context`."""
    if get_active_profiler() is not None or not _is_plain():
        return None
    outer = PassContext.current()
    if outer is not None and outer.get_instruments():
        return None
    try:
        content = serialize(program)
    except (TypeError, ValueError):  # it holds something that has no serialized form
        return None
    described = [
        _SCHEMA,
        hashlib.sha256(content).hexdigest(),
        [str(setting) for setting in settings],
        str(context.get_verification_level()),
        str(context.get_memory_planner()),
        context.get_enable_pypto_l0c_double_buffer(),
        str(context.get_runtime()),
        compiler_revision(),
    ]
    return hashlib.sha256(json.dumps(described).encode()).hexdigest()


def find(key: str) -> Artifact | None:
    """What an earlier compile with this key made."""
    store = build.store()
    if not store.contains(key, _SUFFIX):
        return None
    content = msgpack.unpackb(store.get(key, "", _never, _SUFFIX).read_bytes())
    return Artifact(content["files"], tuple(content["orchestrations"]))


def keep(key: str, program: ir.Program, root: Path, files: Sequence[Path], names: Sequence[str]) -> None:
    """Remember what a compile made. `files` are below `root`, in the order in which they were written."""
    if any(program.get_function(name) is None for name in names):
        return  # its call signature is not the user's; rare, and cheap to make again

    content = {
        "files": {str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in files},
        "orchestrations": list(names),
    }
    packed: bytes = msgpack.packb(content)
    with suppress(StoreError):  # a store that may only be read, or is full: then it is made again
        build.store().get(key, f"sources '{program.name}'", lambda path: _write(path, packed), _SUFFIX)


@functools.cache
def compiler_revision() -> str:
    """Changes when a file of the compiler does."""
    root = Path(pypto.__file__).parent
    stamps = []
    for layer in _LAYERS:
        for folder, _, names in os.walk(root / layer):
            for name in names:
                if name.endswith(".py"):
                    status = os.stat(os.path.join(folder, name))
                    stamps.append([os.path.relpath(folder, root), name, status.st_size, status.st_mtime_ns])
    return hashlib.sha256(json.dumps([pypto.__version__, sorted(stamps)]).encode()).hexdigest()[:16]


def _is_plain() -> bool:
    """Whether passes and op conversions are the compiler's own."""
    if registered_conversions():
        return False
    functions = [value for value in vars(passes).values() if callable(value)]
    return all(str(getattr(f, "__module__", "pypto")).startswith("pypto") for f in functions)


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _never(path: Path) -> Any:
    raise AssertionError(f"{path} was there a moment ago")
