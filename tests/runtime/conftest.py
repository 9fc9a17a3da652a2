"""One store for the session, and the two hand-written sources that most tests run."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pypto.runtime import build
from pypto.runtime.native_runtime import NativeKernel, NativeProgram
from tests.runtime.script import Runner, native_jobs


@pytest.fixture(scope="session", autouse=True)
def session_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Binaries of this session are kept apart from the user's."""
    root = tmp_path_factory.mktemp("store")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYPTO_CACHE_DIR", str(root))
        yield root


@pytest.fixture(scope="session")
def runner(session_store: Path) -> Runner:
    """The script orchestration with the test kernel as ids 0 (vector) and 1 (cube)."""
    orchestration, kernel = build.compile_jobs(native_jobs(), with_runtime=True)
    kernels = [NativeKernel(0, "vector_test", False, kernel), NativeKernel(1, "cube_test", True, kernel)]
    names = ("aicpu_orchestration_entry", "aicpu_orchestration_config")
    return Runner(NativeProgram(orchestration, *names, kernels))


@pytest.fixture
def warm_store(session_store: Path, tmp_path: Path) -> Path:
    """A store that holds the task runtime only."""
    runtime = build.runtime_library()
    store = tmp_path / "store"
    folder = store / "objects" / runtime.parent.name
    folder.mkdir(parents=True)
    for suffix in (".so", ".json"):
        shutil.copy(runtime.with_suffix(suffix), folder)
    return store


@pytest.fixture
def public_path() -> Iterator[Path]:
    """A folder that every user may enter and write, for `read_only`."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)
