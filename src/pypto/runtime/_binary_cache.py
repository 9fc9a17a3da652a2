"""The stamp of a build directory: under which circumstances its binaries were made.

Binaries themselves are in the store, keyed by content. The stamp serves directories that hold binaries of
their own: when platform, runtime or compiler differ from the stamp, those are removed before anything is
built. The stamp is absent while a build is under way, so an interrupted build leaves none.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

_SCHEMA = 1
_DIRECTORY = "cache"


@dataclass(frozen=True)
class BinaryCacheContext:
    """What binaries depend on beside their sources."""

    platform: str
    runtime_name: str
    runtime_revision: str
    pto_isa_revision: str
    schema: int = _SCHEMA

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def binary_context_path(work_dir: Path | str) -> Path:
    """Where the stamp is."""
    return Path(work_dir) / _DIRECTORY / "binary_context.json"


@contextmanager
def binary_context_lock(work_dir: Path | str) -> Iterator[None]:
    """One transaction per directory at a time, across processes. The lock file stays."""
    folder = Path(work_dir) / _DIRECTORY
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / ".binary_context.lock"):
        yield


def prepare_binary_context(work_dir: Path | str, context: BinaryCacheContext | None) -> int:
    """Remove binaries made in another context, and the stamp. Returns the number of binaries removed.

    None stands for an unknown context, which never matches.
    """
    path = binary_context_path(work_dir)
    same = context is not None and _read(path) == context.to_dict()
    if same:
        path.unlink()
        return 0
    return invalidate_binary_context(work_dir)


def invalidate_binary_context(work_dir: Path | str) -> int:
    """Remove all binaries of the directory, and the stamp. Returns the number of binaries removed."""
    root = Path(work_dir)
    binaries = [*(root / _DIRECTORY).glob("*.bin")]
    for folder in ("kernels", "orchestration"):
        for suffix in ("*.so", "*.o"):
            binaries += (root / folder).rglob(suffix)
    for binary in binaries:
        binary.unlink()
    binary_context_path(work_dir).unlink(missing_ok=True)
    return len(binaries)


def record_binary_context(work_dir: Path | str, context: BinaryCacheContext | None) -> None:
    """Write the stamp, after everything was built. An unknown context is not stamped."""
    if context is None:
        return
    path = binary_context_path(work_dir)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(context.to_dict(), indent=1, sort_keys=True) + "\n")
    os.replace(temporary, path)


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None
