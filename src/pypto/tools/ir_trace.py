"""`pypto-ir-trace`: what each pass did to each function, as one HTML page.

The input is the folder that `run_passes(dump_ir=True, ...)` writes: `00_frontend.py`, then one text per pass.
Consecutive texts are compared function by function; the page shows what was added, removed and changed, with
the warnings of the pass beside it. It needs no network and no other file.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import itertools
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2

__all__ = ["Change", "Snapshot", "TraceError", "changes_between", "load_snapshots", "main", "render"]

_SNAPSHOT = re.compile(r"(\d{2,})_(frontend|after_(\w+))\.py")
_OUTSIDE = "(outside functions)"


class TraceError(Exception):
    """The folder is not a dump, or a file cannot be read or written."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The program after one pass: its functions as lines of text, keyed `Program.function`."""

    number: int
    name: str
    functions: Mapping[str, tuple[str, ...]]
    warnings: str


@dataclass(frozen=True, slots=True)
class Change:
    """What a pass did to one function. `lines` are pairs of a mark (`+`, `-`, ` `, `@`) and a text."""

    function: str
    kind: str
    lines: tuple[tuple[str, str], ...]


def load_snapshots(folder: Path) -> list[Snapshot]:
    """Read the dump in `folder`, in the order of the passes. Raises `TraceError` unless it is complete."""
    if not folder.is_dir():
        raise TraceError(f"{folder} is no directory")
    found: dict[int, tuple[str, Path]] = {}
    for path in sorted(folder.iterdir()):
        match = _SNAPSHOT.fullmatch(path.name)
        if match is None:
            continue
        number = int(match.group(1))
        if number in found:
            raise TraceError(f"{found[number][1].name} and {path.name} have the same number")
        found[number] = match.group(3) or "frontend", path
    if not found or found.get(0, ("", folder))[0] != "frontend":
        raise TraceError(f"{folder} holds no 00_frontend.py")
    for number in range(len(found)):
        if number not in found:
            raise TraceError(f"{folder} has no snapshot number {number:02d}")
    return [_read_snapshot(number, name, path) for number, (name, path) in sorted(found.items())]


def _read_snapshot(number: int, name: str, path: Path) -> Snapshot:
    log = path.with_suffix(".log")
    return Snapshot(number, name, _functions_of(path), _read(log) if log.is_file() else "")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise TraceError(f"{path} is not UTF-8: {error}") from error
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror}") from error


def _functions_of(path: Path) -> dict[str, tuple[str, ...]]:
    text = _read(path)
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise TraceError(f"{path}:{error.lineno}: {error.msg}") from error
    lines = text.splitlines()
    found: dict[str, tuple[str, ...]] = {}
    inside: set[int] = set()
    for key, node in _definitions(tree):
        first = min([node.lineno, *(each.lineno for each in node.decorator_list)]) - 1
        last = node.end_lineno or node.lineno
        found[key] = tuple(lines[first:last])
        inside.update(range(first, last))
    found[_OUTSIDE] = tuple(
        line for number, line in enumerate(lines) if number not in inside and line.strip()
    )
    return found


def _definitions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{n.name}", n) for n in node.body if isinstance(n, ast.FunctionDef))


def changes_between(before: Snapshot, after: Snapshot, context: int) -> list[Change]:
    """Return what differs, in name order; changed functions with `context` lines around each change."""
    found: list[Change] = []
    for key in sorted({*before.functions, *after.functions}):
        old, new = before.functions.get(key), after.functions.get(key)
        if old == new:
            continue
        if old is None or new is None:
            mark, lines = ("-", old) if new is None else ("+", new)
            kind = "removed" if new is None else "added"
            found.append(Change(key, kind, tuple((mark, line) for line in lines or ())))
        else:
            found.append(Change(key, "changed", tuple(_difference(old, new, context))))
    return found


def _difference(old: Sequence[str], new: Sequence[str], context: int) -> Iterator[tuple[str, str]]:
    for line in list(difflib.unified_diff(old, new, n=context, lineterm=""))[2:]:
        yield ("@", line) if line.startswith("@@") else (line[0], line[1:])


_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>IR trace</title><style>
body { font: 14px/1.4 system-ui, sans-serif; margin: 2em; }
pre { background: #f6f8fa; padding: .6em; overflow-x: auto; margin: .3em 0 1em; }
pre span { display: block; min-height: 1.2em; white-space: pre; }
.add { background: #dafbe1; } .del { background: #ffebe9; } .hunk { color: #57606a; }
.same { color: #57606a; } .warn { background: #fff8c5; }
</style></head><body>
<h1>IR trace</h1>
<p>{{ steps|length }} passes, {{ functions }} functions at the beginning.</p>
{% for step in steps %}
<details{% if step.changes %} open{% endif %}><summary>
<b>{{ "%02d"|format(step.snapshot.number) }} {{ step.snapshot.name }}</b>
{% if step.changes %}changed {{ step.changes|length }}{% else %}<span class="same">no change</span>{% endif %}
</summary>
{% if step.snapshot.warnings %}<pre class="warn">{{ step.snapshot.warnings }}</pre>{% endif %}
{% for change in step.changes %}<h3>{{ change.function }} <small>{{ change.kind }}</small></h3>
<pre>{% for mark, line in change.lines %}<span class="{{ classes[mark] }}">
{{- "" if mark == "@" else mark }}{{ line }}</span>{% endfor %}</pre>{% endfor %}
</details>
{% endfor %}
</body></html>
"""
_CLASSES = {"+": "add", "-": "del", "@": "hunk", " ": "ctx"}


@dataclass(frozen=True, slots=True)
class _Step:
    """A section of the page."""

    snapshot: Snapshot
    changes: tuple[Change, ...]


def render(snapshots: Sequence[Snapshot], context: int = 3) -> str:
    """Return the page for a dump."""
    steps = [_Step(snapshots[0], ())]
    for before, after in itertools.pairwise(snapshots):
        steps.append(_Step(after, tuple(changes_between(before, after, context))))
    template = jinja2.Environment(autoescape=True).from_string(_PAGE)
    count = sum(key != _OUTSIDE for key in snapshots[0].functions)
    return template.render(steps=steps, functions=count, classes=_CLASSES)


def _write(path: Path, text: str) -> None:
    """Write beside the target, then rename: a reader sees the old page or the new one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise TraceError(f"{path} cannot be written: {error.strerror}") from error


def _count(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no integer") from None
    if number < 0:
        raise argparse.ArgumentTypeError(f"must be non-negative, got {number}")
    return number


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(
        "pypto-ir-trace", description="Show what each pass did, as an HTML page."
    )
    parser.add_argument("passes_dump", type=Path, help="folder with 00_frontend.py and NN_after_<Pass>.py")
    parser.add_argument("-o", "--output", type=Path, default=Path("ir_trace.html"), help="the page to write")
    parser.add_argument("--context", type=_count, default=3, help="lines shown around a change")
    options = parser.parse_args(arguments)
    try:
        _write(options.output, render(load_snapshots(options.passes_dump), options.context))
    except TraceError as error:
        print(f"pypto-ir-trace: error: {error}", file=sys.stderr)
        return 1
    print(options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
