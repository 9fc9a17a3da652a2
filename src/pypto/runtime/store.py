"""The store of compiled binaries on disk: what has been compiled once on this machine is not compiled again.

An entry is a file `objects/<kk>/<key>.so` (or with another suffix) with a record `<key>.json` that states its
size and digest; the record is written last, so an entry without a valid record does not exist. Everything is
written to this process's folder under `tmp/`, flushed, and renamed into place; a folder whose process is gone
is removed by the next process that opens the store. One process makes an entry at a time (a lock file per
key); taking an entry that is there needs no right to write. What is read is verified against the record and
made again when it does not match. A process lists the entries that it uses (in its file under `users/`);
those are not pruned while it lives. What prunes is in `store_upkeep`.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import logging
import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

_SCHEMA = 1
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)

_log = logging.getLogger(__name__)


class StoreError(RuntimeError):
    """The store cannot keep a binary: no space, no permission, or no folder."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One file in the store. `created` and `used` (last taken by a process) are seconds of the epoch."""

    key: str
    path: Path
    size: int
    label: str
    created: float
    used: float

    @property
    def kind(self) -> str:
        """What it is, without its name."""
        return self.label.partition(" '")[0]


class Store:
    """A folder of binaries keyed by content. Safe for many threads and processes at once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._objects = root / "objects"
        self._owner = -1
        self._set_owner()
        self._verified: dict[str, Path] = {}
        self._counter = 0
        self._guard = threading.Lock()
        with self._disk_errors():
            self._objects.mkdir(parents=True, exist_ok=True)
            self._remove_abandoned()

    def get(self, key: str, label: str, build: Callable[[Path], None], suffix: str = ".so") -> Path:
        """The file of `key`; when the store has none, `build(path)` makes it and it is kept.

        `label` says what it is, for people; `suffix` is that of the file, the same at every call with this
        key. Raises what `build` raises, and `StoreError`.
        """
        known = self._verified.get(key)
        if known is not None and known.exists():
            return known
        path, record = self._paths(key, suffix)
        if not self._take(key, path, record):
            with self._disk_errors():
                path.parent.mkdir(exist_ok=True)
                with FileLock(path.with_suffix(".lock")):
                    if not self._take(key, path, record):
                        self._make(path, record, label, build)
            self._verified[key] = path
        return path

    def contains(self, key: str, suffix: str = ".so") -> bool:
        """Whether the store holds a sound file of `key`."""
        return self._take(key, *self._paths(key, suffix))

    @contextmanager
    def scratch_file(self, suffix: str) -> Iterator[Path]:
        """A path for a temporary file, removed at the end of the block."""
        folder = self.scratch_dir()
        with self._guard:
            self._counter += 1
            path = folder / f"{self._counter}{suffix}"
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)

    def scratch_dir(self) -> Path:
        """This process's folder for temporaries, also for those of the compilers it starts."""
        self._set_owner()
        self._scratch.mkdir(parents=True, exist_ok=True)
        return self._scratch

    def close(self) -> None:
        """Remove this process's temporaries."""
        if os.getpid() == self._owner:
            shutil.rmtree(self._scratch, ignore_errors=True)
            with suppress(OSError):
                self._used.unlink(missing_ok=True)

    def entries(self) -> list[Entry]:
        """What is in the store, oldest first."""
        found = []
        for record in self._objects.glob("*/*.json"):
            entry = _entry_of(record)
            if entry is not None:
                found.append(entry)
        return sorted(found, key=lambda entry: entry.created)

    def remove(self, key: str) -> None:
        """Forget one entry. Programs that have loaded it keep it."""
        self._verified.pop(key, None)
        _, record = self._paths(key, "")
        content = _read_record(record)
        record.unlink(missing_ok=True)
        if content is not None:
            record.with_name(content["file"]).unlink(missing_ok=True)

    def read_note(self, name: str) -> Any:
        """The JSON value kept under `name`, or None. For facts that are costly to find."""
        try:
            return json.loads((self.root / f"{name}.json").read_text())
        except (OSError, ValueError):
            return None

    def write_note(self, name: str, value: Any) -> None:
        """Keep a JSON value under `name`."""
        with self._disk_errors(), self.scratch_file(".json") as temporary:
            temporary.write_text(json.dumps(value, indent=1, sort_keys=True))
            os.replace(temporary, self.root / f"{name}.json")

    @contextmanager
    def removing(self) -> Iterator[set[str]]:
        """Gives the keys that living processes use; during the block none can take another one."""
        with self._disk_errors(), _locked(self._upkeep_lock, fcntl.LOCK_EX):
            self._remove_abandoned()
            yield {key for path in (self.root / "users").glob("*") for key in _keys_in(path)}

    def _take(self, key: str, path: Path, record: Path) -> bool:
        """Whether the store holds a sound file; if so, it stays as long as this process lives."""
        self._list_as_used(key)
        if not _is_valid(path, record):
            return False
        self._verified[key] = path
        with suppress(OSError):  # a store that may only be read has no times of use
            os.utime(record)
        return True

    def _list_as_used(self, key: str) -> None:
        self._set_owner()
        if key in self._listed:
            return
        try:
            self._used.parent.mkdir(exist_ok=True)
            with _locked(self._upkeep_lock, fcntl.LOCK_SH), self._used.open("a") as stream:
                stream.write(f"{key}\n")
        except OSError as error:  # read-only, or full: then others may prune what this process uses
            _log.debug("cannot list %s as used: %s", key, error)
        self._listed.add(key)

    def _set_owner(self) -> None:
        """At first, and again after a fork."""
        if self._owner == os.getpid():
            return
        self._owner = os.getpid()
        name = _process_name(self._owner)
        self._scratch = self.root / "tmp" / name
        self._used = self.root / "users" / name
        self._listed: set[str] = set()

    @property
    def _upkeep_lock(self) -> Path:
        return self.root / "upkeep.lock"

    def _paths(self, key: str, suffix: str) -> tuple[Path, Path]:
        folder = self._objects / key[:2]
        return folder / f"{key}{suffix}", folder / f"{key}.json"

    def _make(self, path: Path, record: Path, label: str, build: Callable[[Path], None]) -> None:
        record.unlink(missing_ok=True)
        with self.scratch_file(".so") as binary, self.scratch_file(".json") as text:
            build(binary)
            _flush(binary)
            content = {
                "schema": _SCHEMA,
                "file": path.name,
                "size": binary.stat().st_size,
                "sha256": _digest(binary),
                "label": label,
                "created": time.time(),
            }
            text.write_text(json.dumps(content, sort_keys=True))
            _flush(text)
            os.replace(binary, path)
            os.replace(text, record)
            _flush(path.parent)

    def _remove_abandoned(self) -> None:
        for item in [*(self.root / "tmp").glob("*"), *(self.root / "users").glob("*")]:
            if _is_alive(item.name):
                continue
            if item.is_dir():
                shutil.rmtree(item, ignore_errors=True)
            else:
                with suppress(OSError):  # gone already, or a store that may only be read
                    item.unlink()

    @contextmanager
    def _disk_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno in _NO_SPACE:
                raise no_space(self.root) from error
            raise StoreError(
                f"cannot use the binary store in {self.root}: {error}. "
                "What it lacks has to be written there; set PYPTO_CACHE_DIR to a folder that may be written"
            ) from error


def _keys_in(path: Path) -> list[str]:
    """The keys that a process lists as used; none when it has just ended and taken its list along."""
    try:
        return path.read_text().split()
    except FileNotFoundError:
        return []


@contextmanager
def _locked(path: Path, kind: int) -> Iterator[None]:
    """Hold a lock that several may share (`LOCK_SH`) or one has alone (`LOCK_EX`)."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(handle, kind)
        yield
    finally:
        os.close(handle)


def no_space(folder: Path) -> StoreError:
    """The error for a disk that is full."""
    return StoreError(
        f"no space left for compiled code in {folder}. "
        "Free some space there, or set PYPTO_CACHE_DIR to another disk"
    )


def _is_valid(path: Path, record: Path) -> bool:
    content = _read_record(record)
    if content is None:
        return False
    try:
        return bool(path.stat().st_size == content["size"] and _digest(path) == content["sha256"])
    except OSError:
        return False


def is_sound(entry: Entry) -> bool:
    """Whether the file of an entry is what its record says."""
    return _is_valid(entry.path, entry.path.with_name(f"{entry.key}.json"))


def _entry_of(record: Path) -> Entry | None:
    content = _read_record(record)
    if content is None:
        return None
    try:
        used = record.stat().st_mtime
    except FileNotFoundError:  # removed a moment ago
        return None
    path = record.with_name(content["file"])
    return Entry(record.stem, path, content["size"], content["label"], content["created"], used)


def _read_record(record: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(record.read_text())
    except (OSError, ValueError):
        return None
    expected = {"schema": int, "file": str, "size": int, "sha256": str, "label": str, "created": float}
    if not isinstance(content, dict) or any(type(content.get(k)) is not t for k, t in expected.items()):
        return None
    sound = content["schema"] == _SCHEMA and Path(content["file"]).name == content["file"]
    return content if sound else None


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _process_name(pid: int) -> str:
    return f"{socket.gethostname()}_{pid}_{_start_of(pid)}"


def _start_of(pid: int) -> str:
    """When the process started, where the system tells; it makes a reused process id recognisable."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
    except (OSError, IndexError):
        return "0"


def _is_alive(name: str) -> bool:
    """Whether the process that named its folder so still runs. Folders of other machines are left alone."""
    try:
        host, pid, start = name.rsplit("_", 2)
        number = int(pid)
    except ValueError:
        return False
    if host != socket.gethostname():
        return True
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # someone else's, alive
    return start in ("0", _start_of(number))
