"""`pypto cache`: what the store of compiled code holds, and making it smaller."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pypto.runtime.store import Entry
    from pypto.runtime.store_upkeep import Removal

app = typer.Typer(
    help="Show and shrink the store of compiled code. Safe while programs compile and run.",
    invoke_without_command=True,
)

_SHOWN = 20
_DAY = 86400.0
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)


@app.callback()
def default(context: typer.Context) -> None:
    """Show what the store holds, unless a command says otherwise."""
    if context.invoked_subcommand is None:
        show()


@app.command()
def show(
    all_entries: Annotated[
        bool, typer.Option("--all", help="List all entries, not only the last used ones.")
    ] = False,
) -> None:
    """List entries, the last used first, and totals by kind."""
    from pypto.runtime import build
    from pypto.tools.reports import print_table, store_summary_table, store_table

    store = build.store()
    entries = sorted(store.entries(), key=lambda entry: entry.used, reverse=True)
    shown = entries if all_entries else entries[:_SHOWN]
    if shown:
        print_table(store_table(shown, time.time()))
        print_table(store_summary_table(entries))
    if len(shown) < len(entries):
        typer.echo(f"the {len(shown)} last used of {len(entries)}; --all lists the others")
    typer.echo(f"{_counted(entries)} in {store.root}")


@app.command()
def prune(
    older_than: Annotated[
        float | None, typer.Option(metavar="DAYS", min=0, help="Remove what was not used for that long.")
    ] = None,
    max_size: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Remove the longest unused down to this, as 500M.")
    ] = None,
) -> None:
    """Remove entries by age or down to a size. What a running process uses stays."""
    from pypto.runtime import build, store_upkeep

    if older_than is None and max_size is None:
        raise typer.BadParameter("give --older-than DAYS, --max-size SIZE, or both")
    removal = store_upkeep.prune(
        build.store(),
        unused_seconds=None if older_than is None else older_than * _DAY,
        max_size=None if max_size is None else parse_size(max_size),
    )
    _report(removal)


@app.command()
def clear() -> None:
    """Remove all entries. What a running process uses stays."""
    from pypto.runtime import build, store_upkeep

    _report(store_upkeep.clear(build.store()))


@app.command()
def verify() -> None:
    """Read every entry and remove the damaged ones; status 1 when there were any."""
    from pypto.runtime import build, store_upkeep

    store = build.store()
    damaged = store_upkeep.remove_damaged(store)
    for entry in damaged:
        typer.echo(f"damaged, removed: {entry.label} ({entry.path})")
    typer.echo(f"{_counted(store.entries())} sound, {len(damaged)} damaged")
    if damaged:
        raise typer.Exit(1)


def parse_size(text: str) -> int:
    """Bytes of a size such as `500M`, `1.5 GiB` or `4096`."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise typer.BadParameter(f"'{text}' is no size; write 500M or 2G", param_hint="--max-size")
    return int(float(found[1]) * _UNITS[found[2].upper()])


def _report(removal: Removal) -> None:
    typer.echo(f"removed {_counted(removal.removed)}")
    if removal.kept:
        typer.echo(f"kept {_counted(removal.kept)} that running processes use")


def _counted(entries: Sequence[Entry]) -> str:
    from pypto.tools.reports import size_text

    count = f"{len(entries)} {'entry' if len(entries) == 1 else 'entries'}"
    return f"{count}, {size_text(sum(entry.size for entry in entries))}"
