"""`benchmark`: time the calls of a compiled program, and statistics over them."""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from pypto.runtime import spans
from pypto.runtime.distributed import DistributedCompiledProgram
from pypto.runtime.run_config import RunConfig
from pypto.runtime.spans import TraceInvocation
from pypto.runtime.worker import ChipWorker

__all__ = ["BenchmarkStats", "benchmark"]

_STRACE_LOG_LEVEL = spans.LOG_LEVEL_NAME
_METRICS: dict[str, Callable[[TraceInvocation], float]] = {
    "device": lambda invocation: invocation.device_wall_us,
    "host": lambda invocation: invocation.host_wall_us,
    "effective": lambda invocation: invocation.effective_us,
}
_SPREADS = ("stdev", "minmax", "both", "none")
Slot = tuple[int, int]


@dataclass
class BenchmarkStats:
    """Samples in microseconds, one per round, and what was recorded of the rounds.

    In a distributed program a rank makes several runs per round; the walls are then the maximum over ranks
    of the rank's sum, and `rounds_dispatches` has the runs of each rank in each round, keyed by the number
    of the rank (by process when read from a log).
    """

    device_wall_us: list[float] = field(default_factory=list)
    host_wall_us: list[float] = field(default_factory=list)
    rounds: int = 0
    warmup: int = 0
    invocations: list[TraceInvocation] = field(default_factory=list)
    rounds_dispatches: list[dict[int, list[TraceInvocation]]] = field(default_factory=list)
    fallback_flattened: bool = False
    unstable_dispatch_slots: bool = False

    @property
    def samples(self) -> list[float]:
        return self.device_wall_us

    @property
    def device_us_min(self) -> float:
        return min(self.device_wall_us, default=0.0)

    @property
    def device_us_median(self) -> float:
        return statistics.median(self.device_wall_us) if self.device_wall_us else 0.0

    @property
    def device_us_mean(self) -> float:
        return statistics.fmean(self.device_wall_us) if self.device_wall_us else 0.0

    @property
    def device_us_max(self) -> float:
        return max(self.device_wall_us, default=0.0)

    @property
    def device_us_stdev(self) -> float:
        return statistics.stdev(self.device_wall_us) if len(self.device_wall_us) > 1 else 0.0

    device_wall_us_min = device_us_min
    device_wall_us_median = device_us_median
    device_wall_us_mean = device_us_mean
    device_wall_us_max = device_us_max
    device_wall_us_stdev = device_us_stdev

    @property
    def all_zero_device(self) -> bool:
        """There are samples, and none is above 0."""
        return bool(self.device_wall_us) and not any(self.device_wall_us)

    def per_round(self, metric: str) -> list[float]:
        """A sample per round: "device", "host", "effective", or, over ranks, "union"."""
        if metric == "union":
            return [_union(ranks) for ranks in self._rounds()]
        measure = _metric(metric, (*_METRICS, "union"))
        return [max(sum(map(measure, runs)) for runs in ranks.values()) for ranks in self._rounds()]

    def per_rank(self, metric: str) -> dict[int, list[float]]:
        """A list of samples per rank, keyed by process; empty for a program of one chip."""
        measure = _metric(metric, tuple(_METRICS))
        found: dict[int, list[float]] = {}
        for ranks in self.rounds_dispatches:
            for pid, runs in ranks.items():
                found.setdefault(pid, []).append(sum(map(measure, runs)))
        return found

    def per_dispatch(self, metric: str) -> dict[Slot, list[float]]:
        """A list of samples per process and place in its round."""
        measure = _metric(metric, tuple(_METRICS))
        return {slot: list(map(measure, runs)) for slot, runs in self.dispatch_groups().items()}

    def dispatch_groups(self) -> dict[Slot, list[TraceInvocation]]:
        """The runs of each process and place, over the rounds."""
        found: dict[Slot, list[TraceInvocation]] = {}
        if self.unstable_dispatch_slots:
            return found
        for ranks in self.rounds_dispatches:
            for pid, runs in ranks.items():
                for place, run in enumerate(runs):
                    found.setdefault((pid, place), []).append(run)
        return found

    def dispatch_tasks(self) -> dict[Slot, str]:
        """What runs at each process and place."""
        return {slot: runs[0].task_name for slot, runs in self.dispatch_groups().items()}

    def format_tree(self, launch: int | None = None, *, us: bool = True) -> str:
        """The spans of one measured run, the last without `launch`."""
        if not self.invocations:
            return "no samples"
        return self.invocations[-1 if launch is None else launch].format_tree(us=us)

    def print_tree(self, launch: int | None = None, *, us: bool = True, file: TextIO | None = None) -> None:
        print(self.format_tree(launch, us=us), file=file or sys.stdout)

    def mean_invocation(self, *, pid: int | None = None, slot: int | None = None) -> TraceInvocation:
        """Span-wise means. Raises `ValueError` when several dispatches match, or none."""
        return spans.mean_of(self._one_dispatch(pid, slot))

    def format_mean_tree(
        self, *, us: bool = True, spread: str = "stdev", pid: int | None = None, slot: int | None = None
    ) -> str:
        if spread not in _SPREADS:
            raise ValueError(f"spread must be one of {', '.join(_SPREADS)}, got '{spread}'")
        if not self.invocations:
            return "no samples"
        return spans.mean_tree(self._one_dispatch(pid, slot), us=us, spread=spread)

    def print_mean_tree(
        self,
        *,
        us: bool = True,
        spread: str = "stdev",
        pid: int | None = None,
        slot: int | None = None,
        file: TextIO | None = None,
    ) -> None:
        print(self.format_mean_tree(us=us, spread=spread, pid=pid, slot=slot), file=file or sys.stdout)

    def __str__(self) -> str:
        if not self.device_wall_us:
            return f"no samples ({self.rounds} rounds, {self.warmup} warmup)"
        if self.all_zero_device:
            host = statistics.median(self.host_wall_us) if self.host_wall_us else 0.0
            return f"device time: all 0 over {len(self.device_wall_us)} rounds; host median {host:.2f} us"
        return (
            f"device time over {len(self.device_wall_us)} rounds ({self.warmup} warmup): "
            f"min {self.device_us_min:.2f}, median {self.device_us_median:.2f}, "
            f"mean {self.device_us_mean:.2f}, max {self.device_us_max:.2f}, "
            f"stdev {self.device_us_stdev:.2f} us"
        )

    def _rounds(self) -> list[dict[int, list[TraceInvocation]]]:
        return self.rounds_dispatches or [{run.pid: [run]} for run in self.invocations]

    def _one_dispatch(self, pid: int | None, slot: int | None) -> list[TraceInvocation]:
        if not self.rounds_dispatches:
            if not self.invocations:
                raise ValueError("no samples")
            return self.invocations
        groups = {
            key: runs
            for key, runs in self.dispatch_groups().items()
            if pid in (None, key[0]) and slot in (None, key[1])
        }
        if len(groups) != 1:
            raise ValueError(f"{len(groups)} dispatches match pid={pid}, slot={slot}: {sorted(groups)}")
        return next(iter(groups.values()))


def benchmark(
    compiled: Any,
    args: Sequence[Any],
    *,
    rounds: int = 100,
    warmup: int = 3,
    platform: str | None = None,
    device_id: int | None = None,
    config: RunConfig | None = None,
    persistent: bool = False,
    reset_persistent_windows: bool | None = None,
) -> BenchmarkStats:
    """Call a program `warmup` + `rounds` times on a worker of its own; a sample per measured round.

    Raises `ValueError` for counts that are not possible and options that contradict each other,
    `RuntimeError` when nothing was recorded.
    """
    if rounds <= 0:
        raise ValueError(f"rounds must be positive, got {rounds}")
    if warmup < 0:
        raise ValueError(f"warmup must not be negative, got {warmup}")
    if config is not None and (platform is not None or device_id is not None):
        raise ValueError("pass either config or platform and device_id")
    if isinstance(compiled, DistributedCompiledProgram):
        if platform is not None or device_id is not None:
            raise ValueError("platform and device_id belong to programs of one chip; ranks have their own")
        windows = {"persistent": persistent, "reset_persistent_windows": reset_persistent_windows}
        with compiled.prepare(config, **windows) as ranks, spans.collect() as runs:
            for _ in range(warmup + rounds):
                ranks(*args)
        return _distributed_stats(runs, rounds, warmup)
    if persistent or reset_persistent_windows is not None:
        raise ValueError("persistent windows belong to distributed programs; this one runs on one chip")
    settings = config or RunConfig(platform=platform or compiled.platform, device_id=device_id or 0)
    worker = ChipWorker(settings)
    try:
        handle = worker.register(compiled)
        with spans.collect() as runs:
            for _ in range(warmup + rounds):
                handle(*args, config=config)
    finally:
        worker.close()
    return _single_chip_stats(runs, rounds, warmup)


@contextmanager
def _capture_fd_stderr(path: Path | str) -> Iterator[None]:
    """Send file descriptor 2, also of child processes, to a file."""
    sys.stderr.flush()
    saved = os.dup(2)
    target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        os.dup2(target, 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(saved, 2)
        os.close(saved)
        os.close(target)


def _parse_stats_from_strace(
    text: str, *, rounds: int, warmup: int, distributed: bool = False
) -> BenchmarkStats:
    """Statistics from the timing lines of a log. Raises `RuntimeError` when it has none."""
    runs = spans.parse_lines(text)
    return (_distributed_stats if distributed else _single_chip_stats)(runs, rounds, warmup)


def _single_chip_stats(runs: Sequence[TraceInvocation], rounds: int, warmup: int) -> BenchmarkStats:
    measured = list(runs[warmup:])[:rounds]
    if not measured:
        raise RuntimeError("no timing was recorded")
    device, host = ([metric(run) for run in measured] for metric in (_METRICS["device"], _METRICS["host"]))
    return BenchmarkStats(device, host, rounds, warmup, measured)


def _distributed_stats(runs: Sequence[TraceInvocation], rounds: int, warmup: int) -> BenchmarkStats:
    if not runs:
        raise RuntimeError("no timing was recorded")
    ranks: dict[int, list[TraceInvocation]] = {}
    for run in runs:
        ranks.setdefault(run.pid, []).append(run)
    total = rounds + warmup
    if any(len(of_rank) % total for of_rank in ranks.values()):
        pool = [run for of_rank in ranks.values() for run in of_rank]
        device, host = ([metric(run) for run in pool] for metric in (_METRICS["device"], _METRICS["host"]))
        return BenchmarkStats(device, host, rounds, warmup, pool, fallback_flattened=True)
    per_round: list[dict[int, list[TraceInvocation]]] = []
    for number in range(warmup, total):
        shares = {pid: len(of_rank) // total for pid, of_rank in ranks.items()}
        per_round.append({pid: ranks[pid][number * n : (number + 1) * n] for pid, n in shares.items()})
    orders = [{pid: [run.task for run in of_rank] for pid, of_rank in found.items()} for found in per_round]
    stats = BenchmarkStats(rounds=rounds, warmup=warmup, rounds_dispatches=per_round)
    stats.invocations = [run for found in per_round for of_rank in found.values() for run in of_rank]
    stats.unstable_dispatch_slots = any(order != orders[0] for order in orders)
    stats.device_wall_us = stats.per_round("device")
    stats.host_wall_us = stats.per_round("host")
    return stats


def _metric(name: str, allowed: Sequence[str]) -> Callable[[TraceInvocation], float]:
    if name not in _METRICS:
        raise ValueError(f"metric must be one of {', '.join(allowed)}, got '{name}'")
    return _METRICS[name]


def _union(ranks: dict[int, list[TraceInvocation]]) -> float:
    roots = [run.root() for runs in ranks.values() for run in runs]
    return (max(root.ts + root.dur for root in roots) - min(root.ts for root in roots)) / 1000
