"""The native runtime has no data race, and neither have the kernels that it orders."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from pypto.backend import toolchain
from pypto.runtime import build

SOURCE = Path(__file__).parent / "native" / "thread_sanitizer.cpp"


def test_runtime_is_free_of_races(tmp_path: Path, session_store: Path) -> None:
    identity = build.compiler()
    program = tmp_path / "stress"
    includes = [f"-I{build.orchestration_include_dir()}", f"-I{toolchain.kernel_include_dir()}"]
    flags = ["-std=c++17", "-O1", "-g", "-w", "-pthread", "-fsanitize=thread"]
    words = [*identity.command, *flags, *includes, str(SOURCE), "-o", str(program)]
    made = subprocess.run(words, capture_output=True, text=True, check=False)
    if made.returncode != 0 and "tsan" in made.stderr:
        pytest.skip("the compiler has no thread sanitizer")
    assert made.returncode == 0, made.stderr
    run = subprocess.run(
        # The sanitizer needs its shadow memory at a fixed place.
        ["setarch", "-R", str(program)] if os.path.exists("/usr/bin/setarch") else [str(program)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert run.stdout == "ok\n" and run.returncode == 0, run.stdout + run.stderr[:4000]
