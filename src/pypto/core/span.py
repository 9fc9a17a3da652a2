"""Places in source files."""

from __future__ import annotations

import sys


class Span:
    """A range of source text; lines and columns count from 1, -1 means unknown.

    A column of -1 with a valid line is normal: spans taken from Python frames know no column. Spans have no
    value equality; two spans with the same numbers are different objects.
    """

    __slots__ = ("begin_column", "begin_line", "end_column", "end_line", "filename")

    filename: str
    begin_line: int
    begin_column: int
    end_line: int
    end_column: int

    def __init__(
        self, filename: str, begin_line: int, begin_column: int, end_line: int = -1, end_column: int = -1
    ) -> None:
        if not isinstance(filename, str):
            raise TypeError(f"Span filename must be a str, got {type(filename).__name__}")
        for number in (begin_line, begin_column, end_line, end_column):
            if not isinstance(number, int):
                raise TypeError(f"Span positions must be ints, got {type(number).__name__}")
        _set_filename(self, filename)
        _set_begin_line(self, begin_line)
        _set_begin_column(self, begin_column)
        _set_end_line(self, end_line)
        _set_end_column(self, end_column)

    @staticmethod
    def unknown() -> Span:
        """The span of something that has no source."""
        return UNKNOWN_SPAN

    @staticmethod
    def from_frame(depth: int) -> Span:
        """The line that frame `depth` levels above the caller executes; unknown when there is no such
        frame."""
        try:
            frame = sys._getframe(depth + 1)
        except ValueError:
            return UNKNOWN_SPAN
        return Span(frame.f_code.co_filename, frame.f_lineno, -1)

    def is_valid(self) -> bool:
        if self.begin_line <= 0 or (self.begin_column <= 0 and self.begin_column != -1):
            return False
        if self.end_line == -1 or self.end_column == -1:
            return True
        if self.end_line <= 0 or self.end_column <= 0:
            return False
        if self.begin_column == -1:
            return self.end_line >= self.begin_line
        return (self.end_line, self.end_column) >= (self.begin_line, self.begin_column)

    def to_string(self) -> str:
        return f"{self.filename}:{self.begin_line}:{self.begin_column}"

    __str__ = to_string
    __repr__ = to_string

    def __reduce__(self) -> tuple[type[Span], tuple[str, int, int, int, int]]:
        return Span, (self.filename, self.begin_line, self.begin_column, self.end_line, self.end_column)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Span is immutable; cannot assign '{name}'")


_set_filename = Span.__dict__["filename"].__set__
_set_begin_line = Span.__dict__["begin_line"].__set__
_set_begin_column = Span.__dict__["begin_column"].__set__
_set_end_line = Span.__dict__["end_line"].__set__
_set_end_column = Span.__dict__["end_column"].__set__

UNKNOWN_SPAN = Span("", -1, -1)
