"""How long the parts of a run took: spans, nested by dotted names, gathered into invocations.

A run writes one line per span to stderr when the runtime's log level is `v9` or finer; `parse_lines` reads
them. Within a process they can be collected without that.
"""

from __future__ import annotations

import itertools
import os
import re
import statistics
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

from pypto.runtime.log_config import log_level

LOG_LEVEL_NAME = "v9"
LOG_LEVEL = 24
_LINE = re.compile(
    r"\[STRACE\] pid=(\d+) tid=(\d+) inv=(\d+) hid=(\w+) depth=(\d+) name=(\S+) ts=(\d+) dur=(\d+)"
    r"((?: \w+=\S+)*)"
)
_DEVICE = "run.device"
_numbers = itertools.count()
_rank: ContextVar[int | None] = ContextVar("pypto_span_rank", default=None)
_collected: ContextVar[list[TraceInvocation] | None] = ContextVar("pypto_spans", default=None)


@dataclass(frozen=True)
class TraceSpan:
    """A part of a run; times in nanoseconds of a clock that all processes share."""

    pid: int
    tid: int
    inv: int
    hid: str
    depth: int
    name: str
    ts: int
    dur: int
    attrs: dict[str, str] = field(default_factory=dict)

    @property
    def dur_us(self) -> float:
        return self.dur / 1000

    @property
    def is_device(self) -> bool:
        """Whether tasks ran in it."""
        return self.name == _DEVICE or self.name.startswith(f"{_DEVICE}.")

    def line(self) -> str:
        """The span as the log has it."""
        more = "".join(f" {key}={value}" for key, value in self.attrs.items())
        return (
            f"[STRACE] pid={self.pid} tid={self.tid} inv={self.inv} hid={self.hid} depth={self.depth} "
            f"name={self.name} ts={self.ts} dur={self.dur}{more}"
        )


@dataclass(frozen=True)
class TraceInvocation:
    """The spans of one run of one program."""

    pid: int
    inv: int
    hid: str
    spans: list[TraceSpan]

    def root(self) -> TraceSpan:
        """The span of the whole run."""
        return min(self.spans, key=lambda span: span.depth)

    def by_name(self) -> dict[str, TraceSpan]:
        return {span.name: span for span in self.spans}

    @property
    def task(self) -> str:
        """What tells programs apart."""
        return self.hid

    @property
    def task_name(self) -> str:
        return self.root().attrs.get("task", "")

    @property
    def device_wall_us(self) -> float:
        """From the start of the orchestration to the end of the last task."""
        return sum(span.dur_us for span in self.spans if span.name == _DEVICE)

    @property
    def host_wall_us(self) -> float:
        """The whole call."""
        return self.root().dur_us

    @property
    def effective_us(self) -> float:
        """The window in which tasks were submitted and ran."""
        windows = [span for span in self.spans if span.is_device]
        if not windows:
            return 0.0
        return (max(s.ts + s.dur for s in windows) - min(s.ts for s in windows)) / 1000

    def format_tree(self, *, us: bool = True) -> str:
        """The spans, one a line, below those that contain them."""
        return tree([(span.name, _time(span.dur, us)) for span in self.spans])


def wanted() -> bool:
    """Whether somebody looks at the spans of a run."""
    return _collected.get() is not None or log_level() <= LOG_LEVEL


def record(task: str, hid: str, started: int, bound: int, ended: int) -> None:
    """Hand on the spans of a run that started, had its arguments bound, and ended at these times."""
    rank = _rank.get()
    pid, tid, number = os.getpid() if rank is None else rank, threading.get_native_id(), next(_numbers)
    parts = [
        (0, "run", started, ended, {"task": task}),
        (1, "run.bind", started, bound, {}),
        (1, _DEVICE, bound, ended, {}),
    ]
    spans = [TraceSpan(pid, tid, number, hid, d, name, a, b - a, attrs) for d, name, a, b, attrs in parts]
    collected = _collected.get()
    if collected is not None:
        collected.append(TraceInvocation(pid, number, hid, spans))
    if log_level() <= LOG_LEVEL:
        sys.stderr.flush()
        os.write(2, "".join(f"{span.line()}\n" for span in spans).encode())


def set_rank(rank: int) -> None:
    """In this context runs are those of a rank: all ranks share the process, so the rank stands for it."""
    _rank.set(rank)


clock = time.monotonic_ns


@contextmanager
def collect() -> Iterator[list[TraceInvocation]]:
    """The invocations of the runs inside: of this thread, and of ranks that it gives work to."""
    found: list[TraceInvocation] = []
    token = _collected.set(found)
    try:
        yield found
    finally:
        _collected.reset(token)


def parse_lines(text: str) -> list[TraceInvocation]:
    """The invocations in a log, in order of their first line; other lines are passed over."""
    found: dict[tuple[int, int], TraceInvocation] = {}
    for match in _LINE.finditer(text):
        pid, tid, inv, hid, depth, name, ts, dur, rest = match.groups()
        attrs = dict(pair.split("=", 1) for pair in rest.split())
        key = (int(pid), int(inv))
        invocation = found.setdefault(key, TraceInvocation(*key, hid, []))
        invocation.spans.append(
            TraceSpan(key[0], int(tid), key[1], hid, int(depth), name, int(ts), int(dur), attrs)
        )
    return list(found.values())


def mean_tree(invocations: Sequence[TraceInvocation], *, us: bool, spread: str) -> str:
    """Span-wise means over runs of one program, with their spread."""
    rows = []
    for name in dict.fromkeys(span.name for invocation in invocations for span in invocation.spans):
        durations = [span.dur for inv in invocations for span in inv.spans if span.name == name]
        text = _time(statistics.fmean(durations), us)
        if spread in ("stdev", "both"):
            text += f" ±{_time(statistics.stdev(durations) if len(durations) > 1 else 0, us)}"
        if spread in ("minmax", "both"):
            text += f" [{_time(min(durations), us)} … {_time(max(durations), us)}]"
        rows.append((name, text))
    return tree(rows)


def mean_of(invocations: Sequence[TraceInvocation]) -> TraceInvocation:
    """An invocation whose spans last as long as the mean of those of the same name."""
    first = invocations[0]
    spans = []
    for span in first.spans:
        durations = [s.dur for inv in invocations for s in inv.spans if s.name == span.name]
        spans.append(replace(span, dur=round(statistics.fmean(durations))))
    return TraceInvocation(first.pid, first.inv, first.hid, spans)


def tree(rows: Iterable[tuple[str, str]]) -> str:
    """Rows of dotted names and texts, drawn as a tree with the texts in a column."""
    entries = list(rows)
    names = [name for name, _ in entries]
    labels = []
    for place, name in enumerate(names):
        parts = name.split(".")
        label = parts[-1]
        for level in range(len(parts) - 1, 0, -1):
            parent = ".".join(parts[:level]) + "."
            more = any(
                n.startswith(parent) and not n.startswith(f"{parent}{parts[level]}") for n in names[place:]
            )
            if level == len(parts) - 1:
                label = ("|- " if more else "`- ") + label
            else:
                label = ("|  " if more else "   ") + label
        labels.append(label)
    width = max(map(len, labels), default=0)
    return "\n".join(f"{label:<{width}}  {text}" for label, (_, text) in zip(labels, entries, strict=True))


def _time(nanoseconds: float, us: bool) -> str:
    return f"{nanoseconds / 1000:.2f} us" if us else f"{nanoseconds:.0f} ns"
