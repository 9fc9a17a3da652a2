"""Looking after the store: what may go, what is damaged, what was left over.

Safe beside processes that use the store: an entry that a living process has taken stays, one that is being
made is left alone, and whatever goes is made again by whoever needs it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from pypto.runtime.store import Entry, Store, is_sound


@dataclass(frozen=True, slots=True)
class Removal:
    """What went, and what would have gone but is in use."""

    removed: tuple[Entry, ...]
    kept: tuple[Entry, ...]

    @property
    def size(self) -> int:
        """Bytes that went."""
        return sum(entry.size for entry in self.removed)


def prune(store: Store, *, unused_seconds: float | None = None, max_size: int | None = None) -> Removal:
    """Remove what nobody has taken for that long; then the longest unused, down to `max_size` bytes."""
    with store.removing() as in_use:
        entries = sorted(store.entries(), key=lambda entry: entry.used)
        chosen = _outdated(entries, unused_seconds)
        rest = [entry for entry in entries if entry not in chosen]
        excess = sum(entry.size for entry in rest) - max_size if max_size is not None else 0
        kept = [entry for entry in chosen if entry.key in in_use]
        excess += sum(entry.size for entry in kept)  # they count although they stay
        for entry in rest:
            if excess <= 0:
                break
            if entry.key in in_use:
                kept.append(entry)
            else:
                chosen.append(entry)
                excess -= entry.size
        removed = [entry for entry in chosen if entry.key not in in_use]
        return _remove(store, removed, kept)


def clear(store: Store) -> Removal:
    """Remove everything that no living process uses, and what is known about compilers."""
    with store.removing() as in_use:
        entries = store.entries()
        removed = [entry for entry in entries if entry.key not in in_use]
        kept = [entry for entry in entries if entry.key in in_use]
        for note in store.root.glob("compiler-*.json"):
            note.unlink(missing_ok=True)
        return _remove(store, removed, kept)


def remove_damaged(store: Store) -> list[Entry]:
    """Read every entry and remove those that are not what their record says. Returns them."""
    damaged = []
    for entry in store.entries():
        if is_sound(entry):
            continue
        with _unless_being_made(entry.path) as free:
            if free and not is_sound(entry):
                store.remove(entry.key)
                damaged.append(entry)
    return damaged


def _outdated(entries: Iterable[Entry], unused_seconds: float | None) -> list[Entry]:
    if unused_seconds is None:
        return []
    limit = time.time() - unused_seconds
    return [entry for entry in entries if entry.used <= limit]


def _remove(store: Store, removed: list[Entry], kept: list[Entry]) -> Removal:
    for entry in removed:
        store.remove(entry.key)
    _remove_leftovers(store)
    return Removal(tuple(removed), tuple(kept))


def _remove_leftovers(store: Store) -> None:
    """Files without a record, and the locks of what is gone."""
    known = {entry.key for entry in store.entries()}
    for path in (store.root / "objects").glob("*/*"):
        if path.stem in known:
            continue
        with _unless_being_made(path) as free:
            if free and not path.with_suffix(".json").exists():
                path.unlink(missing_ok=True)
                path.with_suffix(".lock").unlink(missing_ok=True)


@contextmanager
def _unless_being_made(path: Path) -> Iterator[bool]:
    """Whether nobody makes the entry of that file; nobody starts to during the block."""
    lock = FileLock(path.with_suffix(".lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()
