"""Distributed builds with the helpers that run, replay and time build directories."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pypto.runtime import RunConfig, benchmark, execute_distributed_compiled
from pypto.runtime.debug import replay
from pypto.runtime.distributed import DistributedCompiledProgram
from tests.distributed.test_ranks import N, numbers, on, scale_host, scaled


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> DistributedCompiledProgram:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path_factory.mktemp("build")))
        return scale_host.compile(numbers(2), numbers(2), config=on(2))


def test_a_directory_runs_in_place(compiled: DistributedCompiledProgram) -> None:
    x, y = numbers(2), np.zeros((2, N, N), np.float32)
    assert execute_distributed_compiled(compiled.output_dir, [x, y]) is None
    np.testing.assert_array_equal(y, scaled(x))
    y[:] = 0
    replay(compiled.output_dir, x, y)
    np.testing.assert_array_equal(y, scaled(x))
    with pytest.raises(FileNotFoundError):
        execute_distributed_compiled(compiled.output_dir / "nothing", [x, y])


def test_a_benchmark_has_the_runs_of_each_rank(compiled: DistributedCompiledProgram) -> None:
    x, y = numbers(2), np.zeros((2, N, N), np.float32)
    stats = benchmark(compiled, [x, y], rounds=4, warmup=1)
    assert len(stats.samples) == len(stats.host_wall_us) == len(stats.rounds_dispatches) == 4
    assert {pid: len(times) for pid, times in stats.per_rank("host").items()} == {0: 4, 1: 4}
    assert stats.dispatch_tasks() == {(0, 0): "scale_chip", (1, 0): "scale_chip"}
    assert all(wall > 0 for wall in stats.per_round("union"))
    assert stats.mean_invocation(pid=1, slot=0).host_wall_us > 0
    for options in ({"platform": "a2a3sim"}, {"device_id": 0}, {"reset_persistent_windows": True}):
        with pytest.raises(ValueError):
            benchmark(compiled, [x, y], **options)
    assert len(benchmark(compiled, [x, y], rounds=2, persistent=True, config=RunConfig()).samples) == 2


def test_control_c_ends_ranks_that_compute_for_ever(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.distributed.endless"],
        env={**os.environ, "PYPTO_PROG_BUILD_DIR": str(tmp_path)},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split()[2]) < 3  # a second on a machine that does nothing else
