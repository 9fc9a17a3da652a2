"""The error classes of the DSL front end.

They are neither `SyntaxError` nor `TypeError`: a caller that catches those catches mistakes of its own Python
code, not of the program it hands to the parser. `str(error)` is the message alone; where, how to fix it and
what else is worth knowing are separate fields, which the renderer puts together."""

from __future__ import annotations

from typing import Any

from pypto import ir

SpanDict = dict[str, Any]


def span_to_dict(span: ir.Span | SpanDict | None) -> SpanDict | None:
    """The place of an error as plain data, under both the short and the long key names."""
    if span is None or isinstance(span, dict):
        return span
    return {
        "filename": span.filename,
        "file": span.filename,
        "line": span.begin_line,
        "begin_line": span.begin_line,
        "column": span.begin_column,
        "begin_column": span.begin_column,
    }


class ParserError(Exception):
    """Base of everything the front end reports about a program.

    Attributes: message: what is wrong. span: where, as a dict with `file`, `line` and `column` (from 1), or
    None. hint: what to write instead, or None. note: a further fact, or None. source_lines: lines of the
    file, indexed so that `source_lines[line - 1]` is the offending one, or None."""

    def __init__(
        self,
        message: str,
        span: ir.Span | SpanDict | None = None,
        hint: str | None = None,
        note: str | None = None,
        source_lines: list[str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.span = span_to_dict(span)
        self.hint = hint
        self.note = note
        self.source_lines = source_lines

    def __str__(self) -> str:
        return self.message


class ParserSyntaxError(ParserError):
    """A construct is used in a wrong form."""


class ParserTypeError(ParserError):
    """Annotations, argument counts or types, or evaluated Python values do not fit."""


class UndefinedVariableError(ParserError):
    """A name or method that nobody defines."""


class SSAViolationError(ParserError):
    """A name is bound twice under `strict_ssa=True`; `previous_span` is the first binding."""

    def __init__(
        self,
        message: str,
        span: ir.Span | SpanDict | None = None,
        previous_span: ir.Span | SpanDict | None = None,
        hint: str | None = None,
        note: str | None = None,
        source_lines: list[str] | None = None,
    ) -> None:
        super().__init__(message, span, hint, note, source_lines)
        self.previous_span = span_to_dict(previous_span)


class ScopeIsolationError(ParserError):
    """Reserved for names that leave a scope they may not leave."""


class UnsupportedFeatureError(ParserError):
    """A feature of Python that the DSL does not have."""


class InvalidOperationError(ParserError):
    """An unknown or failing operator, or a misplaced break or continue."""
