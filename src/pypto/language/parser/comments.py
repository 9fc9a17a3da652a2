"""Comments of a body and the statements they belong to.

A comment above a statement or behind it belongs to that statement; one on the header of a compound statement
belongs to the compound. A full-line comment after the last statement of a block has no statement and is
dropped, with a warning."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from pypto.language.parser.diagnostics.notices import warn_at
from pypto.language.parser.source import SourceText

_SHOWN_DROPPED = 3
_TOKENS = re.compile(
    r"""(?P<string>'''(?:\\.|[^\\])*?'''|\"\"\"(?:\\.|[^\\])*?\"\"\"|'(?:\\.|[^\\'\n])*'|"(?:\\.|[^\\"\n])*")"""
    r"|(?P<comment>\#[^\n]*)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Comment:
    """One `#` comment; `alone` when nothing else is on its line."""

    line: int
    column: int
    text: str
    alone: bool


class Comments:
    """The comments of a body in source order, handed out as the parser passes them."""

    def __init__(self, comments: list[Comment]) -> None:
        self._comments = comments
        self._next = 0
        self._held: list[str] = []  # text waiting for the next statement
        self.boundary = 1 << 60  # the line of whatever follows the current statement
        self._dropped: list[Comment] = []

    def hold(self, lines: list[str]) -> None:
        """Keep text for the next statement, behind what is already waiting."""
        self._held += lines

    def take(self, last_line: int) -> list[str]:
        """All comments up to and including a line, held text first."""
        taken, self._held = self._held, []
        while self._next < len(self._comments) and self._comments[self._next].line <= last_line:
            taken.append(self._comments[self._next].text)
            self._next += 1
        return taken

    def end_block(self, column: int, limit: int) -> None:
        """Drop the full-line comments at the end of a block whose statements start at `column`."""
        while self._next < len(self._comments):
            comment = self._comments[self._next]
            if comment.line >= limit or not comment.alone or comment.column < column:
                return
            self._dropped.append(comment)
            self._next += 1

    def warn_dropped(self, source: SourceText) -> None:
        """Report dropped comments of a source, once per body."""
        if not self._dropped:
            return
        shown = ", ".join(f"line {c.line}: '{c.text}'" for c in self._dropped[:_SHOWN_DROPPED])
        more = ", ..." if len(self._dropped) > _SHOWN_DROPPED else ""
        place = source.point(self._dropped[0].line, self._dropped[0].column)
        warn_at(place, f"Dropped {len(self._dropped)} tail-of-block comment(s): {shown}{more}")


def comments_between(source: SourceText, first_line: int, last_line: int) -> Comments | None:
    """The comments on these lines, or None when there are none."""
    with_hash = source.comment_lines
    if bisect_left(with_hash, first_line) == bisect_right(with_hash, last_line):
        return None
    text = "\n".join(source.lines[first_line - 1 : last_line])
    found: list[Comment] = []
    line, counted = first_line, 0
    for token in _TOKENS.finditer(text):
        start = token.start()
        line += text.count("\n", counted, start)
        counted = start
        if token.group("comment") is not None:
            line_start = text.rfind("\n", 0, start) + 1
            alone = not text[line_start:start].strip()
            found.append(Comment(line, start - line_start, _strip_marker(token.group()), alone))
    return Comments(found) if found else None


def _strip_marker(comment: str) -> str:
    text = comment[1:]
    return (text[1:] if text.startswith(" ") else text).rstrip()


def docstring_lines(text: str) -> list[str]:
    """The lines of a bare string statement, without common indentation and blank ends."""
    lines = text.expandtabs().split("\n")
    margins = [len(line) - len(line.lstrip()) for line in lines[1:] if line.strip()]
    margin = min(margins, default=0)
    cleaned = [lines[0].strip(), *(line[margin:].rstrip() for line in lines[1:])]
    while cleaned and not cleaned[-1]:
        cleaned.pop()
    while cleaned and not cleaned[0]:
        cleaned.pop(0)
    return cleaned


def header_end(source: SourceText, last_expression: ast.AST) -> int:
    """The line on which the header of a compound statement ends with its colon."""
    line = last_expression.end_lineno  # type: ignore[attr-defined]
    offset = last_expression.end_col_offset  # type: ignore[attr-defined]
    text = source.lines[line - 1]
    if not text.isascii():
        offset = source.column(line, offset) - 1
    text = text[offset:]
    while ":" not in text.split("#", 1)[0] and line < len(source.lines):
        line += 1
        text = source.lines[line - 1]
    return int(line)


def else_line(source: SourceText, after: int, before: int) -> int:
    """The line of the `else:` (or `elif`) between two lines."""
    for line in range(after + 1, before):
        if source.lines[line - 1].lstrip().startswith("else"):
            return line
    return before
