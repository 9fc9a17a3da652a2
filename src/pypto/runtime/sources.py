"""Which files a C++ source reaches, and what their content says.

Quoted and angle includes are followed through the folder of the including file and the given include
directories; whatever is found nowhere belongs to the compiler and is covered by its identity. Conditional
includes count as reached: a key may change too often, never too seldom. Line comments do not count: generated
code carries source places in them, and a kernel that only moved in its file is the same kernel.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include(?:_next)?[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)', re.MULTILINE)
_COMMENT_OR_LITERAL = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
# Text in which a comment may matter: line numbers, raw strings, and comments that end in a backslash.
_FRAGILE = re.compile(r'__LINE__|\bR"|\\\n|\bassert\b')

_CLOCK_GRAIN_NS = 2_000_000_000


@dataclass(frozen=True, slots=True)
class _Scanned:
    stamp: tuple[int, int]
    digest: str
    includes: tuple[tuple[str, bool], ...]  # spelling, quoted


_scanned: dict[Path, _Scanned] = {}


def content_digest(text: str) -> str:
    """Digest of C++ text that stays the same when only line comments change."""
    if _FRAGILE.search(text) is None:
        text = _COMMENT_OR_LITERAL.sub(lambda m: "" if m[0].startswith("//") else m[0], text)
        text = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
        text = re.sub(r"\n{2,}", "\n", text)
    return hashlib.sha256(text.encode()).hexdigest()


def reached_files(source: Path, include_dirs: Iterable[Path]) -> list[tuple[str, str]]:
    """(spelling, digest) of `source` (spelled "") and of every file it includes, sorted by spelling."""
    dirs = [Path(d) for d in include_dirs]
    found: dict[Path, str] = {}
    waiting: list[tuple[Path, str]] = [(source, "")]
    while waiting:
        path, spelling = waiting.pop()
        if path in found:
            continue
        found[path] = spelling
        for name, quoted in _scan(path).includes:
            folders = [path.parent, *dirs] if quoted else dirs
            target = next((folder / name for folder in folders if (folder / name).is_file()), None)
            if target is not None:
                waiting.append((target.resolve(), name))
    return sorted((spelling, _scan(path).digest) for path, spelling in found.items())


def _scan(path: Path) -> _Scanned:
    status = path.stat()
    stamp = (status.st_mtime_ns, status.st_size)
    known = _scanned.get(path)
    # A file changed a moment ago may change again within the clock's grain, without a new stamp.
    settled = time.time_ns() - status.st_mtime_ns > _CLOCK_GRAIN_NS
    if known is not None and known.stamp == stamp and settled:
        return known
    text = path.read_text(encoding="utf-8", errors="surrogateescape")
    includes = tuple((m[1] or m[2], m[1] is not None) for m in _INCLUDE.finditer(text))
    scanned = _Scanned(
        stamp, content_digest(text.encode("utf-8", "surrogateescape").decode("latin-1")), includes
    )
    _scanned[path] = scanned
    return scanned
