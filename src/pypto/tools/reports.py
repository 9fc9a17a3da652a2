"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pypto.passes.dedup.explain import DedupRecord
from pypto.passes.dedup.reasons import Reason
from pypto.runtime.store import Entry
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
        members, reason = ", ".join(record.members), record.reason or ""
        _add_texts(table, record.name, members, outcome, str(record.sites), reason, record.detail)
    return table


def sharing_table(records: Sequence[DedupRecord]) -> Table:
    """One row per kernel or bundle that stands for others, with all dispatches that reach it now."""
    table = Table("kernel", "dispatches", "merged into it", title="Shared definitions", title_justify="left")
    merged: dict[str, list[DedupRecord]] = {}
    for record in records:
        if record.into is not None:
            merged.setdefault(record.into, []).append(record)
    for record in records:
        aliases = merged.get(record.name)
        if aliases:
            sites = record.sites + sum(alias.sites for alias in aliases)
            _add_texts(table, _unit_name(record), str(sites), _listed([alias.name for alias in aliases]))
    return table


def own_definitions_table(records: Sequence[DedupRecord]) -> Table:
    """One row per kernel or bundle that keeps a definition of its own, and what stands in the way."""
    table = Table(
        "kernel",
        "dispatches",
        "reason",
        "why it is not shared, and what to change",
        title="Definitions of their own",
        title_justify="left",
    )
    for record in records:
        if record.outcome == "kept" and record.reason not in (_CANONICAL, _NO_KERNEL):
            reason = record.reason or ""
            _add_texts(table, _unit_name(record), str(record.sites), reason, record.detail)
    return table


def deduplication_summary(records: Sequence[DedupRecord]) -> str:
    """The numbers in one line, and what was not looked at."""
    others = [record.name for record in records if record.reason == _NO_KERNEL]
    merged = sum(record.outcome == "merged" for record in records)
    kernels = len(records) - len(others)
    left = _count(kernels - merged, "definition")
    line = f"{_count(kernels, 'kernel')}: {merged} merged, {left} left to compile"
    return f"{line}\nNo kernels, so left alone: {_listed(others)}" if others else line


_CANONICAL, _NO_KERNEL = Reason.CANONICAL.value, Reason.NOT_A_CANDIDATE_KIND.value


def _add_texts(table: Table, *cells: str) -> None:
    """Add a row of plain texts: brackets of types are no markup."""
    table.add_row(*map(Text, cells))


def _unit_name(record: DedupRecord) -> str:
    return f"{record.name} (with {', '.join(record.members)})" if record.members else record.name


def _listed(names: Sequence[str], limit: int = 6) -> str:
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def store_table(entries: Sequence[Entry], now: float) -> Table:
    """One row per entry of the store."""
    table = Table("kind", "name", "size", "used", "made", "key")
    for entry in entries:
        name = entry.label.removeprefix(entry.kind).strip()
        ages = (age_text(now - entry.used), age_text(now - entry.created))
        table.add_row(entry.kind, name, size_text(entry.size), *ages, entry.key[:12])
    return table


def store_summary_table(entries: Sequence[Entry]) -> Table:
    """Count and size by kind."""
    table = Table("kind", "entries", "size")
    for kind in sorted({entry.kind for entry in entries}):
        sizes = [entry.size for entry in entries if entry.kind == kind]
        table.add_row(kind, str(len(sizes)), size_text(sum(sizes)))
    return table


def size_text(size: float) -> str:
    """Bytes for people."""
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


def age_text(seconds: float) -> str:
    """How long ago, for people."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit} ago"
    return "now"
