"""Turns a `ParserError` into the text a person reads: message, place, source window, caret, help and note."""

from __future__ import annotations

import linecache
import os
import re
import sys
from typing import Any

from pypto.language.parser.diagnostics.exceptions import ParserError, SSAViolationError

_CONTEXT_LINES = 2
_MAX_INLINE_MESSAGE = 50
_TAB_WIDTH = 4
_RED, _BLUE, _CYAN, _BOLD, _RESET = "\033[91m", "\033[94m", "\033[96m", "\033[1m", "\033[0m"
_SENTENCE_END = re.compile(r"\.(?:\s|$)")
_DOTTED_NAME = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")


def _terminal_wants_color() -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return os.environ.get("TERM") != "dumb" and sys.stderr.isatty()


class ErrorRenderer:
    """Renders errors, with colour when `use_color` (default: when stderr is a terminal that wants it)."""

    def __init__(self, use_color: bool | None = None) -> None:
        self.use_color = _terminal_wants_color() if use_color is None else use_color

    def render(self, error: ParserError) -> str:
        """The complete text for `error`."""
        lines = [f"{self._paint('Error', _RED, _BOLD)}: {error.message}"]
        span = error.span
        if span is not None:
            lines += self._location(span, prefix="  --> ")
            lines += self._window(error, span, _CONTEXT_LINES, self._inline_message(error.message))
        if isinstance(error, SSAViolationError) and error.previous_span is not None:
            lines.append("   = note: Previous definition was here:")
            lines += self._location(error.previous_span, prefix="  --> ")
            lines += self._window(error, error.previous_span, 1, "")
        if error.hint:
            lines.append(f"   = {self._paint('help', _CYAN)}: {error.hint}")
        if error.note:
            lines.append(f"   = {self._paint('note', _CYAN)}: {error.note}")
        return "\n".join(lines)

    def _paint(self, text: str, *codes: str) -> str:
        return f"{''.join(codes)}{text}{_RESET}" if self.use_color else text

    def _location(self, span: dict[str, Any], prefix: str) -> list[str]:
        filename = _file_of(span)
        if not filename:
            return []
        line, column = _line_of(span), _column_of(span)
        place = filename
        if line > 0:
            place += f":{line}"
            if column > 0:
                place += f":{column}"
        return [f"{self._paint(prefix, _BLUE)}{place}"]

    def _window(self, error: ParserError, span: dict[str, Any], context: int, inline: str) -> list[str]:
        source = _source_lines(error, span)
        line = _line_of(span)
        if not source or not 1 <= line <= len(source):
            return []
        first, last = max(1, line - context), min(len(source), line + context)
        width = len(str(last))
        bar = self._paint("|", _BLUE)
        empty = f"{' ' * width} {bar}"
        lines = [empty]
        for number in range(first, last + 1):
            text = source[number - 1].rstrip("\n").expandtabs(_TAB_WIDTH)
            lines.append(f"{number:>{width}} {bar} {text}".rstrip())
            if number == line and _column_of(span) > 0:
                carets = _carets(source[number - 1].rstrip("\n"), _column_of(span))
                marked = self._paint(carets.strip(), _RED)
                padding = carets[: len(carets) - len(carets.lstrip())]
                lines.append(f"{empty} {padding}{marked}{' ' + inline if inline else ''}")
        lines.append(empty)
        return lines

    @staticmethod
    def _inline_message(message: str) -> str:
        """The first sentence, when it is short enough to stand beside the caret."""
        first_line = message.split("\n", 1)[0]
        sentence = _SENTENCE_END.split(first_line, maxsplit=1)[0]
        return sentence if len(sentence) < _MAX_INLINE_MESSAGE else ""


def _file_of(span: dict[str, Any]) -> str:
    return str(span.get("file") or span.get("filename") or "")


def _line_of(span: dict[str, Any]) -> int:
    return int(span.get("line", span.get("begin_line", 0)) or 0)


def _column_of(span: dict[str, Any]) -> int:
    return int(span.get("column", span.get("begin_column", 0)) or 0)


def _source_lines(error: ParserError, span: dict[str, Any]) -> list[str] | None:
    filename = _file_of(span)
    if filename and os.path.exists(filename):
        lines = linecache.getlines(filename)
        if lines:
            return lines
    return error.source_lines


def _carets(line: str, column: int) -> str:
    """Spaces and carets under the (dotted) name that starts at `column`."""
    before = line[: column - 1].expandtabs(_TAB_WIDTH)
    name = _DOTTED_NAME.match(line, column - 1)
    length = len(name.group()) if name else 1
    return " " * len(before) + "^" * length
