"""The store of binaries: nothing half-written, nothing stale, one maker at a time."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from pypto.runtime.store import Store, StoreError, _process_name
from tests.runtime.permissions import read_only


def writer(content: bytes, calls: list[Path] | None = None):  # type: ignore[no-untyped-def]
    def build(path: Path) -> None:
        path.write_bytes(content)
        if calls is not None:
            calls.append(path)

    return build


def refuse(path: Path) -> None:
    raise AssertionError("nothing had to be built")


def test_entry_is_made_once_and_survives_the_process(tmp_path: Path) -> None:
    first = Store(tmp_path).get("aa11", "a kernel", writer(b"code"))
    assert first.read_bytes() == b"code"
    assert Store(tmp_path).get("aa11", "a kernel", refuse) == first


@pytest.mark.parametrize("damage", [b"", b"cod", b"kode", b"code and more"])
def test_damaged_entry_is_made_again(tmp_path: Path, damage: bytes) -> None:
    path = Store(tmp_path).get("aa11", "a kernel", writer(b"code"))
    path.write_bytes(damage)
    assert Store(tmp_path).get("aa11", "a kernel", writer(b"code")).read_bytes() == b"code"


@pytest.mark.parametrize("record", ["", "{", "[]", '{"schema": 1}', '{"schema": 2, "size": 4}'])
def test_entry_without_a_sound_record_does_not_exist(tmp_path: Path, record: str) -> None:
    path = Store(tmp_path).get("aa11", "a kernel", writer(b"old!"))
    path.with_suffix(".json").write_text(record)
    store = Store(tmp_path)
    assert not store.contains("aa11") and store.entries() == []
    assert store.get("aa11", "a kernel", writer(b"new!")).read_bytes() == b"new!"


def left_in(root: Path) -> list[Path]:
    """Files beside locks and the lists of what processes use."""
    files = [path for path in root.rglob("*") if path.is_file() and path.suffix != ".lock"]
    return [path for path in files if path.parent.name != "users"]


def test_failed_build_leaves_nothing(tmp_path: Path) -> None:
    def fail(path: Path) -> None:
        path.write_bytes(b"half")
        raise ValueError("the compiler says no")

    store = Store(tmp_path)
    with pytest.raises(ValueError, match="says no"):
        store.get("aa11", "a kernel", fail)
    assert not store.contains("aa11")
    assert left_in(tmp_path) == []


def test_full_disk_is_a_clear_error_and_leaves_nothing(tmp_path: Path) -> None:
    def fill(path: Path) -> None:
        path.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    store = Store(tmp_path)
    with pytest.raises(StoreError, match=r"no space left .* PYPTO_CACHE_DIR"):
        store.get("aa11", "a kernel", fill)
    assert left_in(tmp_path) == []
    assert store.get("aa11", "a kernel", writer(b"code")).read_bytes() == b"code"


def test_store_in_a_place_that_is_no_folder_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot use the binary store"):
        Store(tmp_path / "file" / "store")


def test_store_that_may_only_be_read_gives_what_it_has(public_path: Path) -> None:
    root = public_path / "store"
    path = Store(root).get("aa11", "a kernel", writer(b"code"))
    (root / "users" / f"{os.uname().nodename}_{2**22 + 1}_1").touch()  # left by a process that is gone
    with read_only(root):
        store = Store(root)
        assert store.contains("aa11")
        assert store.get("aa11", "a kernel", refuse) == path
        with pytest.raises(StoreError, match="PYPTO_CACHE_DIR") as refused:
            store.get("bb22", "another", refuse)
    assert str(root) in str(refused.value)


def test_temporaries_of_dead_processes_are_removed_and_those_of_living_ones_kept(tmp_path: Path) -> None:
    dead = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True
    )
    host = os.uname().nodename
    gone = tmp_path / "tmp" / f"{host}_{dead.stdout.strip()}_0"
    reused = tmp_path / "tmp" / f"{host}_{os.getpid()}_1"  # this process, but started at another time
    alive = tmp_path / "tmp" / _process_name(os.getppid())
    elsewhere = tmp_path / "tmp" / f"another-machine_{dead.stdout.strip()}_0"
    for folder in (gone, reused, alive, elsewhere):
        folder.mkdir(parents=True)
        (folder / "1.so").touch()
    Store(tmp_path)
    assert not gone.exists() and not reused.exists()
    assert alive.exists() and elsewhere.exists()


def test_threads_that_want_one_entry_make_it_once(tmp_path: Path) -> None:
    calls: list[Path] = []

    def slow(path: Path) -> None:
        calls.append(path)
        time.sleep(0.05)
        path.write_bytes(b"code")

    stores = [Store(tmp_path) for _ in range(4)]
    threads = [threading.Thread(target=s.get, args=("aa11", "k", slow)) for s in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1


_HAMMER = """
import sys, time, random
from pathlib import Path
from pypto.runtime.store import Store
root, log, seed = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
rng = random.Random(seed)
keys = [f"{i:02x}key" for i in range(6)]
rng.shuffle(keys)
store = Store(root)
for key in keys:
    def build(path):
        with open(log, "a") as out:
            out.write(key + "\\n")
        half = key.encode() * 5000
        path.write_bytes(half)
        time.sleep(rng.random() * 0.02)
        path.write_bytes(half * 2)
    content = store.get(key, key, build).read_bytes()
    assert content == key.encode() * 10000, key
"""


def test_many_processes_and_kills_leave_a_consistent_store(tmp_path: Path) -> None:
    """Eight processes want six entries; half are killed at random moments; the others get sound binaries."""
    root, log = tmp_path / "store", tmp_path / "log"
    log.touch()
    command = [sys.executable, "-c", _HAMMER, str(root), str(log)]
    processes = [subprocess.Popen([*command, str(seed)], stderr=subprocess.PIPE) for seed in range(8)]
    for i, process in enumerate(processes[::2]):
        time.sleep(0.08 + 0.02 * i)
        process.kill()
    for i, process in enumerate(processes):
        _, errors = process.communicate()
        assert i % 2 == 0 or process.returncode == 0, errors.decode()
    made = log.read_text().split()
    assert len(made) <= 6 + 4, "an entry is made again only when its maker was killed"
    store = Store(root)
    assert len(store.entries()) == 6
    assert not any((root / "tmp").iterdir()), "temporaries of the killed are gone"


def test_removed_entry_is_made_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.get("aa11", "a kernel", writer(b"code"))
    assert [(e.key, e.size, e.label) for e in store.entries()] == [("aa11", 4, "a kernel")]
    store.remove("aa11")
    assert store.entries() == []
    calls: list[Path] = []
    store.get("aa11", "a kernel", writer(b"code", calls))
    assert len(calls) == 1


def test_notes_are_kept(tmp_path: Path) -> None:
    Store(tmp_path).write_note("fact", {"a": [1]})
    assert Store(tmp_path).read_note("fact") == {"a": [1]}
    (tmp_path / "fact.json").write_text("{")
    assert Store(tmp_path).read_note("fact") is None
