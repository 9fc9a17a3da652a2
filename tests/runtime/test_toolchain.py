"""Finding a compiler, and what is said when there is none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pypto.backend import toolchain
from pypto.backend.toolchain import CodeKind, CompilerIdentity, ToolchainError
from pypto.runtime import build


def test_chosen_compiler_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    compiler = tmp_path / "my compiler"
    compiler.write_text("#!/bin/sh\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("PYPTO_CXX", f"'{compiler}' -m32")
    assert toolchain.find_compiler() == (str(compiler), "-m32")


def test_chosen_compiler_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYPTO_CXX", "no-such-compiler -O9")
    with pytest.raises(ToolchainError, match="PYPTO_CXX names 'no-such-compiler'"):
        toolchain.find_compiler()


def test_compilers_on_path_in_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PYPTO_CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("clang++", "g++", "c++"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
        assert toolchain.find_compiler() == (str(tmp_path / name),)


def test_zig_package_is_the_last_resort(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "ziglang").mkdir()
    (tmp_path / "ziglang" / "__init__.py").touch()
    monkeypatch.delenv("PYPTO_CXX", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert toolchain.find_compiler() == (sys.executable, "-m", "ziglang", "c++")


def test_without_any_compiler_the_error_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("PYPTO_CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "path", [str(Path(toolchain.__file__).parents[2])])
    monkeypatch.delitem(sys.modules, "ziglang", raising=False)
    with pytest.raises(ToolchainError, match=r"pip install ziglang .*'pypto\[zig\]'.*pypto bundle"):
        toolchain.find_compiler()


def test_program_that_compiles_nothing_is_refused(tmp_path: Path) -> None:
    fake = tmp_path / "c++"
    fake.write_text(
        "#!/bin/sh\ncase $1 in --version|-dumpmachine) echo fake;; *) echo nope >&2; exit 1;; esac\n"
    )
    fake.chmod(0o755)
    with pytest.raises(ToolchainError, match="cannot make a shared library:\nnope"):
        toolchain.identify((str(fake),))


def test_compiler_is_asked_once(session_store: Path) -> None:
    identity = build.compiler()
    assert identity.version and identity.target
    notes = list(session_store.glob("compiler-*.json"))
    before = [note.stat().st_mtime_ns for note in notes]
    build._identify.cache_clear()
    assert build.compiler() == identity
    assert [note.stat().st_mtime_ns for note in session_store.glob("compiler-*.json")] == before


def test_long_orchestrations_are_not_optimised() -> None:
    identity = CompilerIdentity(("c++",), "1", "x", ())
    assert "-O1" in toolchain.flags_for(CodeKind.ORCHESTRATION, identity, 1000)
    assert "-O0" in toolchain.flags_for(CodeKind.ORCHESTRATION, identity, 100_000)
    assert "-O3" in toolchain.flags_for(CodeKind.KERNEL, identity, 100_000)
