"""`benchmark` and its statistics, also read back from the timing lines of a log."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pypto import ir
from pypto.runtime import BenchmarkStats, RunConfig, TraceInvocation, TraceSpan, benchmark, log_level
from pypto.runtime.bench import _STRACE_LOG_LEVEL, _capture_fd_stderr, _parse_stats_from_strace
from pypto.runtime.compiled_program import CompiledProgram
from pypto.runtime.log_config import configure_log
from tests.runtime.programs import AddScaled

ONES = np.ones((32, 64), np.float32)
ARGS = [ONES, ONES, np.zeros_like(ONES)]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> CompiledProgram:
    return ir.compile(AddScaled, tmp_path_factory.mktemp("build"), dump_passes=False)


def test_a_benchmark_has_a_sample_per_round(compiled: CompiledProgram) -> None:
    level = log_level()
    stats = benchmark(compiled, ARGS, rounds=7, warmup=2)
    assert len(stats.device_wall_us) == len(stats.host_wall_us) == len(stats.invocations) == 7
    assert (stats.rounds, stats.warmup, stats.samples) == (7, 2, stats.device_wall_us)
    assert all(0 < d <= h for d, h in zip(stats.device_wall_us, stats.host_wall_us, strict=True))
    assert not stats.all_zero_device and not stats.fallback_flattened
    assert stats.per_round("host") == stats.host_wall_us and stats.per_round("device") == stats.samples
    assert len(stats.per_round("union")) == len(stats.per_round("effective")) == 7
    assert stats.per_rank("host") == stats.per_dispatch("host") == stats.dispatch_tasks() == {}
    assert stats.invocations[0].task_name == "main"
    assert log_level() == level


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rounds": 0}, "rounds must be positive"),
        ({"warmup": -1}, "warmup"),
        ({"config": RunConfig(), "platform": "a2a3sim"}, "either config or platform"),
        ({"config": RunConfig(), "device_id": 0}, "either config or platform"),
        ({"persistent": True}, "one chip"),
        ({"reset_persistent_windows": True}, "one chip"),
        ({"platform": "a5sim"}, "a5sim"),
    ],
)
def test_contradicting_options_are_refused(
    compiled: CompiledProgram, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        benchmark(compiled, ARGS, **options)


def test_the_log_level_is_restored_after_an_error(compiled: CompiledProgram) -> None:
    level = log_level()
    try:
        configure_log("error")
        chosen = log_level()
        with pytest.raises(TypeError, match="expects 3"):
            benchmark(compiled, ARGS[:1], rounds=1)
        assert log_level() == chosen
    finally:
        configure_log(level)


def test_statistics_of_no_one_and_several_samples() -> None:
    none = BenchmarkStats()
    assert none.device_us_min == none.device_us_median == none.device_us_mean == none.device_us_max == 0.0
    assert none.device_us_stdev == 0.0 and not none.all_zero_device and "no samples" in str(none)
    assert none.format_tree() == none.format_mean_tree() == "no samples"
    one = BenchmarkStats([4.0], [5.0], 1, 0)
    assert one.device_us_mean == 4.0 and one.device_us_stdev == 0.0
    many = BenchmarkStats([1.0, 2.0, 6.0], [2.0, 3.0, 7.0], 3, 0)
    assert (many.device_us_min, many.device_us_median, many.device_us_mean) == (1.0, 2.0, 3.0)
    assert many.device_wall_us_max == 6.0 and round(many.device_wall_us_stdev, 3) == 2.646
    zero = BenchmarkStats([0.0, 0.0], [3.0, 5.0], 2, 0)
    assert zero.all_zero_device and "all 0" in str(zero)
    for action in (lambda: many.per_round("wall"), lambda: many.per_rank("union"), many.mean_invocation):
        with pytest.raises(ValueError):
            action()


def test_trees_show_spans_below_those_that_contain_them(
    compiled: CompiledProgram, capsys: pytest.CaptureFixture[str]
) -> None:
    stats = benchmark(compiled, ARGS, rounds=3)
    stats.print_tree(0)
    lines = capsys.readouterr().out.splitlines()
    assert [line[:9].rstrip() for line in lines] == ["run", "|- bind", "`- device"]
    assert len({line.index("  ", 9) for line in lines[1:]} | {len(lines[2].split("  ")[0])}) <= 2
    for spread, mark in (("stdev", "±"), ("minmax", "…"), ("both", "±"), ("none", "")):
        assert mark in stats.format_mean_tree(spread=spread)
    assert "±" not in stats.format_mean_tree(spread="none")
    with pytest.raises(ValueError, match="spread"):
        stats.format_mean_tree(spread="all")
    assert stats.mean_invocation().root().dur > 0
    assert "ns" in stats.format_tree(us=False)


def test_the_timing_lines_of_a_log_give_the_same_statistics(
    compiled: CompiledProgram, tmp_path: Path
) -> None:
    log, before = tmp_path / "log", log_level()
    configure_log(_STRACE_LOG_LEVEL)
    try:
        with _capture_fd_stderr(log):
            for _ in range(5):
                compiled(*ARGS)
            os.write(2, b"something else\n")
    finally:
        configure_log(before)
    with _capture_fd_stderr(tmp_path / "silent"):
        compiled(*ARGS)
    assert (tmp_path / "silent").read_text() == ""
    stats = _parse_stats_from_strace(log.read_text(), rounds=3, warmup=2)
    assert len(stats.samples) == 3 and all(sample > 0 for sample in stats.samples)
    root = stats.invocations[0].root()
    assert root.name == "run" and root.attrs["task"] == "main" and not root.is_device
    assert stats.invocations[0].by_name()["run.device"].is_device
    with pytest.raises(RuntimeError, match="no timing"):
        _parse_stats_from_strace("nothing", rounds=1, warmup=0)


def _log(*runs: tuple[int, str, int]) -> str:
    """A log of runs: process, program, duration in microseconds."""
    lines = []
    for number, (pid, hid, us) in enumerate(runs):
        ts = number * 1000
        for depth, name in ((0, "run"), (1, "run.device")):
            lines.append(TraceSpan(pid, pid, number, hid, depth, name, ts, us * 1000, {"task": hid}).line())
    return "\n".join(lines)


def test_ranks_are_told_apart_by_process() -> None:
    rounds = [(1, "a", 10), (1, "b", 1), (2, "a", 20), (1, "a", 30), (1, "b", 2), (2, "a", 5)]
    stats = _parse_stats_from_strace(_log(*rounds), rounds=2, warmup=0, distributed=True)
    assert stats.device_wall_us == [20.0, 32.0]
    assert stats.per_rank("device") == {1: [11.0, 32.0], 2: [20.0, 5.0]}
    assert stats.per_dispatch("host") == {(1, 0): [10.0, 30.0], (1, 1): [1.0, 2.0], (2, 0): [20.0, 5.0]}
    assert stats.dispatch_tasks() == {(1, 0): "a", (1, 1): "b", (2, 0): "a"}
    with pytest.raises(ValueError, match="3 dispatches match"):
        stats.mean_invocation()
    assert stats.mean_invocation(pid=1, slot=0).host_wall_us == 20.0
    uneven = _parse_stats_from_strace(_log(*rounds[:-1]), rounds=2, warmup=0, distributed=True)
    assert uneven.fallback_flattened and len(uneven.samples) == 5
    moved = [(1, "a", 1), (1, "b", 1), (1, "b", 1), (1, "a", 1)]
    unstable = _parse_stats_from_strace(_log(*moved), rounds=2, warmup=0, distributed=True)
    assert unstable.unstable_dispatch_slots and unstable.per_dispatch("host") == {}


def test_an_invocation_tells_its_times() -> None:
    spans = [
        TraceSpan(1, 1, 0, "f", 0, "run", 0, 9000, {"task": "t"}),
        TraceSpan(1, 1, 0, "f", 1, "run.device", 2000, 6000),
    ]
    invocation = TraceInvocation(1, 0, "f", spans)
    assert (invocation.host_wall_us, invocation.device_wall_us, invocation.effective_us) == (9.0, 6.0, 6.0)
    assert (invocation.task, invocation.task_name, spans[1].dur_us) == ("f", "t", 6.0)
