"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from pypto.passes.dedup.explain import DedupRecord
from pypto.tools.arguments import Argument


def print_table(table: Table) -> None:
    """Print to standard output; as wide as needed when that is no terminal."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=200)
    console.print(table)


def arguments_table(arguments: Sequence[Argument]) -> Table:
    """One row per argument: direction, shape, dtype and statistics of its values after the run."""
    table = Table("argument", "direction", "shape", "dtype", "min", "max", "mean", "std")
    for argument in arguments:
        values = np.asarray(argument.value)
        table.add_row(
            argument.name,
            argument.direction.name,
            str(list(values.shape)),
            str(values.dtype),
            *_statistics(values),
        )
    return table


def _statistics(values: Any) -> list[str]:
    if values.size == 0:
        return ["-"] * 4
    wide = values.astype(np.float64)
    return [f"{number:.6g}" for number in (wide.min(), wide.max(), wide.mean(), wide.std())]


def deduplication_table(records: Sequence[DedupRecord]) -> Table:
    """One row per kernel or bundle: what became of it, how many dispatches reach it, and why."""
    table = Table("unit", "members", "outcome", "sites", "reason", "detail")
    for record in records:
        outcome = f"merged into {record.into}" if record.into is not None else record.outcome
        members = ", ".join(record.members) if record.members != (record.name,) else ""
        table.add_row(record.name, members, outcome, str(record.sites), record.reason or "", record.detail)
    return table
