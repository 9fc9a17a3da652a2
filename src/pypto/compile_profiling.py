"""Where compile time goes: nested, named stages.

    with CompileProfiler() as profiler:
        with profiler.stage("parse"):
            ...
    print(profiler.summary())

Without an explicit profiler, `PYPTO_COMPILE_PROFILING=1` turns on one for the whole process.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

__all__ = ["CompileProfiler", "StageRecord", "get_active_profiler", "record_stage"]

_ENVIRONMENT_SWITCH = "PYPTO_COMPILE_PROFILING"
_NAME_WIDTH = 28
_TIME_WIDTH = 10


@dataclass(slots=True)
class StageRecord:
    """One stage: start and end in seconds of a monotonic clock, and the stages inside it."""

    name: str
    start: float
    end: float = 0
    children: list[StageRecord] = field(default_factory=list)

    @property
    def duration(self) -> float:
        """Seconds between start and end."""
        return self.end - self.start

    def to_dict(self) -> dict[str, Any]:
        """Return name, seconds and children as plain data."""
        return {
            "name": self.name,
            "seconds": round(self.duration, 6),
            "children": [child.to_dict() for child in self.children],
        }


class CompileProfiler:
    """Records stages. As a context manager it is the active profiler of its thread."""

    _active = threading.local()

    def __init__(self) -> None:
        self._stages: list[StageRecord] = []
        self._open: list[StageRecord] = []
        self._outer: CompileProfiler | None = None

    @staticmethod
    def current() -> CompileProfiler | None:
        """Return the active profiler of this thread."""
        active: CompileProfiler | None = getattr(CompileProfiler._active, "profiler", None)
        return active

    def __enter__(self) -> CompileProfiler:
        self._outer = CompileProfiler.current()
        CompileProfiler._active.profiler = self
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        CompileProfiler._active.profiler = self._outer
        self._outer = None

    @contextmanager
    def stage(self, name: str) -> Iterator[StageRecord]:
        """Record a stage around a block; stages opened inside become its children."""
        record = StageRecord(name, time.perf_counter())
        self.add_stage_record(record)
        self._open.append(record)
        try:
            yield record
        finally:
            record.end = time.perf_counter()
            self._open.pop()

    def add_stage_record(self, record: StageRecord) -> None:
        """Attach a record to the stage that is open, or at the top level."""
        (self._open[-1].children if self._open else self._stages).append(record)

    @property
    def total_seconds(self) -> float:
        """Seconds of all top-level stages."""
        return sum(stage.duration for stage in self._stages)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            "total_seconds": round(self.total_seconds, 6),
            "stages": [stage.to_dict() for stage in self._stages],
        }

    def to_json(self, path: str | os.PathLike[str] | None = None, indent: int = 2) -> str:
        """Return the record as JSON; write it to `path` too if that is given."""
        text = json.dumps(self.to_dict(), indent=indent)
        if path is not None:
            _write(Path(path), text + "\n")
        return text

    def summary(self) -> str:
        """Return the record as an indented table."""
        total = self.total_seconds
        lines = ["PyPTO Compile Profile", "=" * 22, f"Total: {_duration(total)}", ""]
        pending = [(stage, 1) for stage in reversed(self._stages)]
        while pending:
            stage, depth = pending.pop()
            share = 100.0 * stage.duration / total if total > 0 else 0.0
            name = f"{'  ' * depth}{stage.name:<{_NAME_WIDTH}}"
            lines.append(f"{name}{_duration(stage.duration):>{_TIME_WIDTH}}  ({share:.1f}%)")
            pending += [(child, depth + 1) for child in reversed(stage.children)]
        return "\n".join(lines)

    def write_report(self, directory: str | os.PathLike[str]) -> None:
        """Write `pipeline_profile.txt` and `pipeline_profile.json` into a directory."""
        _write(Path(directory) / "pipeline_profile.txt", self.summary() + "\n")
        self.to_json(Path(directory) / "pipeline_profile.json")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _duration(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.1f}us"
    if seconds < 1.0:
        return f"{seconds * 1e3:.1f}ms"
    return f"{seconds:.3f}s"


_process_profiler: CompileProfiler | None = None


def get_active_profiler() -> CompileProfiler | None:
    """Return the profiler to record into: the thread's, else that of the process if the environment asks."""
    active = CompileProfiler.current()
    if active is not None:
        return active
    if os.environ.get(_ENVIRONMENT_SWITCH, "").lower() not in ("1", "true", "yes"):
        return None
    global _process_profiler
    if _process_profiler is None:
        _process_profiler = CompileProfiler()
    return _process_profiler


def record_stage(name: str) -> AbstractContextManager[object]:
    """Record a stage with the active profiler; without one, nothing is recorded."""
    profiler = get_active_profiler()
    return nullcontext() if profiler is None else profiler.stage(name)
