"""Making the store smaller while others use it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pypto.runtime import store_upkeep
from pypto.runtime.store import Store


def writer(content: bytes) -> Callable[[Path], None]:
    def build(path: Path) -> None:
        path.write_bytes(content)

    return build


def filled(root: Path) -> Store:
    """Entries a0 (oldest use) to a4 of 100 bytes each, which no process uses."""
    store = Store(root)
    now = time.time()
    for k in range(5):
        path = store.get(f"a{k}", f"kernel 'k{k}'", writer(b"x" * 100))
        os.utime(path.with_suffix(".json"), (now, now - 86400 * (10 - k)))
    store.close()
    return Store(root)


def keys(store: Store) -> list[str]:
    return sorted(entry.key for entry in store.entries())


def test_entries_tell_kind_size_and_times(tmp_path: Path) -> None:
    first = min(filled(tmp_path).entries(), key=lambda entry: entry.used)
    assert (first.key, first.kind, first.size) == ("a0", "kernel", 100)
    assert time.time() - first.used == pytest.approx(864000, abs=60)
    assert time.time() - first.created == pytest.approx(0, abs=60)


def test_prune_by_time_of_last_use(tmp_path: Path) -> None:
    store = filled(tmp_path)
    Store(tmp_path).get("a0", "kernel 'k0'", writer(b""))  # used again
    user = Store(tmp_path)
    user.close()
    removal = store_upkeep.prune(store, unused_seconds=7.5 * 86400)
    assert [entry.key for entry in removal.removed] == ["a1", "a2"] and removal.size == 200
    assert keys(store) == ["a0", "a3", "a4"]


def test_prune_to_a_size_takes_the_longest_unused_first(tmp_path: Path) -> None:
    store = filled(tmp_path)
    assert store_upkeep.prune(store, max_size=500).removed == ()
    assert [e.key for e in store_upkeep.prune(store, max_size=250).removed] == ["a0", "a1", "a2"]
    assert keys(store) == ["a3", "a4"]


def test_removed_entries_leave_no_files_and_are_made_again(tmp_path: Path) -> None:
    store = filled(tmp_path)
    (tmp_path / "objects" / "a0" / "left.so").write_bytes(b"without a record")
    (tmp_path / "compiler-1.json").write_text("{}")
    assert len(store_upkeep.clear(store).removed) == 5
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.name for path in left] == ["upkeep.lock"]
    assert store.get("a0", "kernel 'k0'", writer(b"new")).read_bytes() == b"new"


USER = """
import sys
from pathlib import Path
from pypto.runtime.store import Store

store = Store(Path(sys.argv[1]))
path = store.get("a1", "kernel 'k1'", lambda path: sys.exit("must be there"))
assert store.contains("a2")
print("ready", flush=True)
sys.stdin.readline()
print(len(path.read_bytes()), flush=True)
"""


def test_what_a_living_process_uses_stays(tmp_path: Path) -> None:
    store = filled(tmp_path)
    command = [sys.executable, "-c", USER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as user:
        assert user.stdin is not None and user.stdout is not None
        assert user.stdout.readline() == "ready\n"
        removal = store_upkeep.prune(store, max_size=0)
        assert sorted(entry.key for entry in removal.kept) == ["a1", "a2"]
        assert len(store_upkeep.clear(store).kept) == 2
        user.stdin.write("\n")
        user.stdin.flush()
        assert user.stdout.readline() == "100\n"
    assert keys(store) == ["a1", "a2"]
    assert len(store_upkeep.clear(store).removed) == 2, "its process is gone"


def test_entry_that_is_being_made_is_left_alone(tmp_path: Path) -> None:
    store = Store(tmp_path)

    def build(path: Path) -> None:
        path.write_bytes(b"code")
        assert store_upkeep.clear(Store(tmp_path)).removed == ()
        assert store_upkeep.remove_damaged(Store(tmp_path)) == []

    assert store.get("a1", "kernel 'k1'", build).read_bytes() == b"code"


def test_damaged_entries_are_found_and_removed(tmp_path: Path) -> None:
    store = filled(tmp_path)
    path = tmp_path / "objects" / "a2" / "a2.so"
    path.write_bytes(b"y" * 100)
    assert [entry.key for entry in store_upkeep.remove_damaged(store)] == ["a2"]
    assert keys(store) == ["a0", "a1", "a3", "a4"]
    assert store_upkeep.remove_damaged(store) == []


WORKER = """
import random, sys, time
from pathlib import Path
from pypto.runtime.store import Store

chance = random.Random(int(sys.argv[2]))
end = time.monotonic() + 1.5
while time.monotonic() < end:
    store = Store(Path(sys.argv[1]))
    taken = {}
    for key in chance.sample([f"{k:02x}" for k in range(24)], 6):
        taken[key] = store.get(key, f"kernel '{key}'", lambda path: path.write_text(key * 50))
    time.sleep(0.002)
    for key, path in taken.items():
        assert path.read_text() == key * 50, key
    store.close()
"""


def test_pruning_beside_many_users_takes_nothing_from_them(tmp_path: Path) -> None:
    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER, str(tmp_path), str(seed)]) for seed in range(4)
    ]
    store, removed = Store(tmp_path), 0
    while any(worker.poll() is None for worker in workers):
        removed += len(store_upkeep.prune(store, max_size=500).removed)
        removed += len(store_upkeep.clear(store).removed)
        assert store_upkeep.remove_damaged(store) == []
        time.sleep(0.005)
    assert [worker.returncode for worker in workers] == [0] * 4
    assert removed > 0
