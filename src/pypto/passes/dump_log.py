"""The `.log` beside a dump: warnings of a pass, with the dumped line they are about and a caret below."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from pypto.passes.diagnostics import Diagnostic

_VARIABLE = re.compile(r"variable '([^']*)'")


def write_warning_log(dump: Path, text: str, warnings: Sequence[Diagnostic]) -> None:
    """Write the warnings about a dumped program beside the dump file."""
    shown = os.path.relpath(dump)
    lines = text.splitlines()
    entries = [_entry(shown, lines, each) for each in warnings]
    dump.with_suffix(".log").write_text("".join(entries), encoding="utf-8")


def _entry(shown: str, lines: Sequence[str], each: Diagnostic) -> str:
    found = _VARIABLE.search(each.message)
    name = found.group(1) if found else ""
    place = _first_mention(lines, name) if name else None
    text = f"warning: {each.message} [{each.rule_name}]\n"
    if place is None:
        return f"{shown}: {text}"
    line, column = place
    return (
        f"{shown}:{line}:{column}: {text}"
        f" {line} | {lines[line - 1]}\n"
        f"{' ' * (len(str(line)) + 1)} | {' ' * (column - 1)}^{'~' * (len(name) - 1)}\n"
    )


def _first_mention(lines: Sequence[str], name: str) -> tuple[int, int] | None:
    """Return line and column (from 1) of the first whole mention of a name that is being bound or passed."""
    pattern = re.compile(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?=:| =|,|$)")
    for number, line in enumerate(lines, start=1):
        match = pattern.search(line)
        if match:
            return number, match.start() + 1
    return None
