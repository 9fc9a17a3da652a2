"""A progress bar for compilations, on a terminal only."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class CompileProgress:
    """Shows how many of `total` compilations are done. Silent when there are none or nobody watches."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> CompileProgress:
        if self._total > 0 and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (
                "compiling",
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.description}"),
            )
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task("", total=self._total)
        return self

    def advance(self, label: str) -> None:
        """One compilation is done."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, advance=1, description=label)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
