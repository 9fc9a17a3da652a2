"""Error classes and checks.

User mistakes raise Python's own classes (`ValueError`, `TypeError`, ...). `Error` is what verification
raises. `InternalError` means that the compiler itself broke a promise; it deliberately is neither an `Error`
nor a
`ValueError`, so that code which handles user mistakes lets it through.
"""

from __future__ import annotations

import os
import traceback

from pypto.core.span import Span

_TRACE_HEADER = "C++ Traceback (most recent call last):"


class Error(Exception):
    """A program that fails verification, and other errors that no builtin class describes."""


class InternalError(RuntimeError):
    """A broken invariant of the compiler. The message names it; the program that triggers it is worth a
    report."""


class UsageError(InternalError, ValueError):
    """A mistake in the program that only a late stage can see.

    A `ValueError`, because the program is wrong, and an `InternalError`, because that is what callers have
    caught so far.
    """


Error.__module__ = "pypto"
InternalError.__module__ = "pypto"


def located(message: str, span: Span | None) -> str:
    """`message` followed by ` [file:line:col]` when `span` says where."""
    return f"{message} [{span}]" if span is not None and span.is_valid() else message


def internal_error(message: str, span: Span | None = None) -> InternalError:
    """An `InternalError` that carries its place and the stack that led to it."""
    frames = traceback.extract_stack()[:-1]
    trace = "\n".join(f' File "{frame.filename}", line {frame.lineno}' for frame in frames)
    return InternalError(f"{located(message, span)}\n\n{_TRACE_HEADER}\n{trace}")


def check(condition: bool, message: str) -> None:
    """Raise `ValueError(message)` unless `condition` holds."""
    if not condition:
        raise ValueError(with_optional_trace(message))


def internal_check(condition: bool, message: str) -> None:
    """Raise `InternalError` unless `condition` holds."""
    if not condition:
        raise internal_error(message)


def internal_check_span(condition: bool, message: str, span: Span) -> None:
    """Raise `InternalError` that names the source place unless `condition` holds."""
    if not condition:
        raise internal_error(f"{located(message, span)}\nCheck failed: {message}")


def with_optional_trace(message: str) -> str:
    """The message of a user error; with the stack that led to it when `PTO_BACKTRACE` is 1."""
    if os.environ.get("PTO_BACKTRACE") != "1":
        return message
    frames = traceback.extract_stack()[:-2]
    return "\n".join(
        [message, "", _TRACE_HEADER, *(f' File "{frame.filename}", line {frame.lineno}' for frame in frames)]
    )
