"""Sources of unchanged programs are generated once, and never where somebody would miss the second time."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from pypto import backend, ir, passes
from pypto.passes.context import PassContext
from pypto.passes.instruments import CallbackInstrument
from pypto.runtime import build
from tests.runtime.permissions import read_only
from tests.runtime.programs import AddScaled, TwoEntries


@pytest.fixture(autouse=True)
def own_store(warm_store: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    backend.reset_for_testing()
    monkeypatch.setenv("PYPTO_CACHE_DIR", str(warm_store))
    yield
    backend.reset_for_testing()


def compile_into(folder: Path, program: ir.Program = AddScaled, **settings: object) -> dict[str, bytes]:
    """What the compile wrote, by path."""
    ir.compile(program, folder, **{"dump_passes": False, **settings})  # type: ignore[arg-type]
    files = (p for p in folder.rglob("*") if p.is_file() and p.suffix != ".lock")
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}


def kept() -> list[str]:
    return [entry.label for entry in build.store().entries() if entry.label.startswith("sources '")]


class Lowered(Exception):
    """Raised by the pass that stands in for one of the compiler's."""


def refuse_to_lower(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    def factory() -> passes.Pass:
        raise Lowered

    factory.__module__ = module
    monkeypatch.setattr(passes, "outline_cluster_scopes", factory)


@pytest.mark.parametrize("program", [AddScaled, TwoEntries])
def test_unchanged_program_is_not_lowered_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: ir.Program
) -> None:
    first = compile_into(tmp_path / "a", program)
    assert kept() == [f"sources '{program.name}'"]
    refuse_to_lower(monkeypatch, "pypto.passes.outline")
    assert compile_into(tmp_path / "b", program) == first


def test_program_from_the_cache_runs(tmp_path: Path) -> None:
    compile_into(tmp_path / "a")
    x = np.ones((32, 64), np.float32)
    assert (ir.compile(AddScaled, tmp_path / "b", dump_passes=False)(x, x) == 6).all()


def test_compiled_code_is_taken_from_a_store_that_may_only_be_read(
    warm_store: Path, tmp_path: Path, public_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ir.compile(AddScaled, tmp_path / "first", dump_passes=False).load()
    store = public_path / "store"
    shutil.copytree(warm_store, store)
    for entry in [*store.glob("objects/*/*.sources"), *store.glob("compiler-*.json")]:
        entry.unlink()  # what can be found anew must not need the store
    monkeypatch.setenv("PYPTO_CACHE_DIR", str(store))
    runs = build.compiler_runs()
    x = np.ones((32, 64), np.float32)
    with read_only(store):
        assert (ir.compile(AddScaled, public_path / "built", dump_passes=False)(x, x) == 6).all()
    assert build.compiler_runs() == runs and not list(store.glob("objects/*/*.sources"))


def test_passes_that_are_not_the_compilers_own_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compile_into(tmp_path / "a")
    refuse_to_lower(monkeypatch, __name__)
    with pytest.raises(Lowered):
        compile_into(tmp_path / "b")


def test_watched_compiles_do_all_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compile_into(tmp_path / "a")
    seen = []
    instrument = CallbackInstrument(after_pass=lambda p, program: seen.append(p.get_name()), name="watch")
    with PassContext([instrument]):
        compile_into(tmp_path / "b")
    assert "OutlineClusterScopes" in seen
    assert "passes_dump/00_frontend.py" in compile_into(tmp_path / "c", dump_passes=True)
    refuse_to_lower(monkeypatch, "pypto.passes.outline")
    for watching in ({"dump_passes": True}, {"profiling": True}):
        with pytest.raises(Lowered):
            compile_into(tmp_path / "d", **watching)


def test_other_settings_are_other_sources(tmp_path: Path) -> None:
    compile_into(tmp_path / "a", platform="a2a3")
    compile_into(tmp_path / "b", platform="a2a3sim")
    assert len(kept()) == 1, "one architecture"
    backend.reset_for_testing()
    compile_into(tmp_path / "c", platform="a5")
    assert len(kept()) == 2


def test_place_in_the_source_counts(tmp_path: Path) -> None:
    text = AddScaled.as_python()
    import pypto.language as pl

    compile_into(tmp_path / "a", pl.parse_program(text))
    compile_into(tmp_path / "b", pl.parse_program("\n" + text))
    assert len(kept()) == 2, "generated text names the lines of the program"


def test_damaged_sources_are_generated_again(tmp_path: Path) -> None:
    first = compile_into(tmp_path / "a")
    for entry in build.store().entries():
        if entry.label.startswith("sources '"):
            entry.path.write_bytes(entry.path.read_bytes()[:-1] + b"?")
    build._open_store.cache_clear()
    assert compile_into(tmp_path / "b") == first
