"""What a binary depends on, counted in starts of the compiler."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from pypto import ir
from pypto.backend import toolchain
from pypto.backend.toolchain import CodeKind
from pypto.runtime import build, sources
from pypto.runtime.assemble import compile_and_assemble
from pypto.runtime.build import CompileError, CompileJob, compile_jobs
from tests.runtime.programs import AddScaled

KERNEL = """#include "pypto_abi.h"
#include "part.h"
extern "C" __attribute__((visibility("default"))) void kernel_entry(int64_t* args) { args[0] = PART; }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    unique = uuid.uuid4().int >> 70  # no other test has compiled this
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "part.h").write_text(f"#define PART {unique}LL\n")
    (tmp_path / "a.cpp").write_text(KERNEL)
    (tmp_path / "b.cpp").write_text(KERNEL.replace('#include "part.h"\n', "").replace("PART", f"{unique}LL"))
    return tmp_path


def job(folder: Path, name: str, *identity: str, kind: CodeKind = CodeKind.KERNEL) -> CompileJob:
    return CompileJob(kind, folder / name, f"kernel '{name}'", (folder / "include",), identity)


def starts_of(action: Callable[[], object]) -> int:
    before = build.compiler_runs()
    action()
    return build.compiler_runs() - before


def test_binary_depends_on_content_only(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    jobs = [job(folder, "a.cpp"), job(folder, "b.cpp"), job(folder, "a.cpp")]
    assert starts_of(lambda: compile_jobs(jobs)) == 2, "one start per distinct code"
    paths = compile_jobs(jobs)
    assert paths[0] == paths[2] != paths[1]
    os.utime(folder / "a.cpp")
    assert starts_of(lambda: compile_jobs(jobs)) == 0, "touching changes nothing"
    elsewhere = tmp_path_factory.mktemp("moved") / "copy"
    shutil.copytree(folder, elsewhere)
    assert starts_of(lambda: compile_jobs([job(elsewhere, "a.cpp")])) == 0, "neither does moving"
    (folder / "include" / "part.h").write_text(f"#define PART {uuid.uuid4().int >> 70}LL\n")
    assert starts_of(lambda: compile_jobs(jobs)) == 1, "a header reaches the code that includes it"
    (folder / "b.cpp").write_text((folder / "b.cpp").read_text() + "// moved from demo.py:12\n")
    assert starts_of(lambda: compile_jobs(jobs)) == 0, "a source place in a comment is no content"


def script(path: Path, version: str) -> str:
    """A compiler of its own: passes everything on, but says another version."""
    real = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo {version} && exit\nexec {real} "$@"\n')
    path.chmod(0o755)
    return str(path)


def test_another_compiler_builds_anew(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compile_jobs([job(folder, "b.cpp")])
    monkeypatch.setenv("PYPTO_CXX", script(folder / "own-c++", "one"))
    assert starts_of(lambda: compile_jobs([job(folder, "b.cpp")])) == 1
    assert starts_of(lambda: compile_jobs([job(folder, "b.cpp")])) == 0


def test_compiler_that_was_replaced_under_its_name_builds_anew(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYPTO_CXX", script(folder / "own-c++", "version-one"))
    compile_jobs([job(folder, "b.cpp")])
    script(folder / "own-c++", "version-number-two")
    build._identify.cache_clear()  # as in a new process
    assert starts_of(lambda: compile_jobs([job(folder, "b.cpp")])) == 1


def test_other_flags_build_anew(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compile_jobs([job(folder, "b.cpp")])
    assert starts_of(lambda: compile_jobs([job(folder, "b.cpp")], portable=True)) == 1
    monkeypatch.setenv("PYPTO_CXX", f"{build.compiler().command[0]} -DOTHER")
    assert starts_of(lambda: compile_jobs([job(folder, "b.cpp")])) == 1


def test_another_cpu_builds_anew(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compile_jobs([job(folder, "b.cpp")])
    monkeypatch.setattr(toolchain, "target_cpu", lambda: "linux-x86_64-other")
    assert starts_of(lambda: compile_jobs([job(folder, "b.cpp")])) == 1


def test_another_runtime_or_platform_builds_anew(tmp_path: Path) -> None:
    compiled = ir.compile(AddScaled, tmp_path / "build", dump_passes=False)
    compiled.load()
    assert starts_of(lambda: compile_and_assemble(compiled.output_dir, compiled.platform)) == 0
    assert starts_of(lambda: compile_and_assemble(compiled.output_dir, "a5sim")) == 2, "both kernels"
    config = compiled.output_dir / "kernel_config.py"
    config.write_text(config.read_text().replace("tensormap_and_ringbuffer", "host_build_graph"))
    assert starts_of(lambda: compile_and_assemble(compiled.output_dir, compiled.platform)) == 3


def test_changed_runtime_source_gives_a_new_runtime_and_a_new_stamp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = ir.compile(AddScaled, tmp_path / "build", dump_passes=False)
    compiled.load()
    stamp = (compiled.output_dir / "cache" / "binary_context.json").read_text()
    shutil.copytree(build._NATIVE, tmp_path / "native")
    source = tmp_path / "native" / "src" / "runtime.cpp"
    source.write_text(source.read_text() + f"static const long changed_{uuid.uuid4().hex} = 1;\n")
    monkeypatch.setattr(build, "_NATIVE", tmp_path / "native")
    build.runtime_revision.cache_clear()
    try:
        starts = starts_of(lambda: compile_and_assemble(compiled.output_dir, compiled.platform))
    finally:
        build.runtime_revision.cache_clear()
    assert starts == 1, "the runtime alone: nothing else reaches that file"
    assert (compiled.output_dir / "cache" / "binary_context.json").read_text() != stamp


def test_identity_and_kind_keep_binaries_apart(folder: Path) -> None:
    jobs = [
        job(folder, "b.cpp"),
        job(folder, "b.cpp", "external"),
        job(folder, "b.cpp", "legacy", "0"),
        job(folder, "b.cpp", "legacy", "1"),
    ]
    assert starts_of(lambda: compile_jobs(jobs)) == 4


def test_compiler_message_comes_with_the_source_place(folder: Path) -> None:
    (folder / "bad.cpp").write_text(
        "// model.py:7\nint a;\n// model.py:8\nint b = nonsense;\n// model.py:9\nint c;\n"
    )
    with pytest.raises(CompileError) as caught:
        compile_jobs([job(folder, "bad.cpp")])
    text = str(caught.value)
    assert "kernel 'bad.cpp'" in text and str(folder / "bad.cpp") in text
    assert "DSL line: model.py:8\n" in text
    assert "nonsense" in text


def test_one_failure_does_not_lose_what_was_compiled(folder: Path) -> None:
    (folder / "bad.cpp").write_text("int b = nonsense;\n")
    with pytest.raises(CompileError):
        compile_jobs([job(folder, "b.cpp"), job(folder, "bad.cpp")])
    compile_jobs([job(folder, "b.cpp")])
    assert starts_of(lambda: compile_jobs([job(folder, "b.cpp")])) == 0


def test_missing_source_is_named(folder: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"kernel 'none.cpp' not found: .*none.cpp"):
        compile_jobs([job(folder, "none.cpp")])


def test_compiler_leaves_no_temporaries(folder: Path, session_store: Path) -> None:
    (folder / "bad.cpp").write_text("int b = nonsense;\n")
    with pytest.raises(CompileError):
        compile_jobs([job(folder, "bad.cpp"), job(folder, "a.cpp")])
    left = [p for p in (session_store / "tmp").rglob("*") if p.is_file()]
    assert left == []


def test_no_store_folder_no_compile(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYPTO_CACHE_DIR", str(tmp_path / "own"))
    compile_jobs([job(folder, "b.cpp")])
    assert list((tmp_path / "own" / "objects").rglob("*.so")), "PYPTO_CACHE_DIR is followed"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("int a; // x", "int a; // y", True),
        ("int a;\n// x\nint b;", "int a;\nint b;", True),
        ('char* a = "// x";', 'char* a = "// y";', False),
        ("char a = '\"'; // x", "char a = '\"'; // y", True),
        ("int a = __LINE__; // x", "int a = __LINE__;\n", False),
        ("int a; // x \\\nint b;", "int a; // y \\\nint b;", False),
        ("int a; /* x */", "int a; /* y */", False),
    ],
)
def test_line_comments_are_no_content(one: str, other: str, same: bool) -> None:
    assert (sources.content_digest(one) == sources.content_digest(other)) == same


def test_reached_files_follow_includes_through_folders(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.cpp").write_text(
        '#include <stdint.h>\n#include "b.h"\n#if 0\n#  include <sub/c.h>\n#endif\n'
    )
    (tmp_path / "b.h").write_text('#include "b.h"\n')
    (tmp_path / "sub" / "c.h").write_text('#include "d.h"\n')
    (tmp_path / "sub" / "d.h").write_text("")
    names = [name for name, _ in sources.reached_files(tmp_path / "a.cpp", [tmp_path])]
    assert names == ["", "b.h", "d.h", "sub/c.h"]
