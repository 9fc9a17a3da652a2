"""Text of constants that need no context: floats, strings."""

from __future__ import annotations

import math

__all__ = ["double_quoted", "float_literal", "single_quoted"]

_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\x00"}


def float_literal(value: float) -> str:
    """C's `%.17g`, with `.0` where a finite number would read as an integer."""
    text = f"{value:.17g}"
    if math.isfinite(value) and "." not in text and "e" not in text:
        return text + ".0"
    return text


def single_quoted(text: str) -> str:
    """A Python string literal in single quotes."""
    return _quoted(text, "'")


def double_quoted(text: str) -> str:
    """A Python string literal in double quotes."""
    return _quoted(text, '"')


def _quoted(text: str, quote: str) -> str:
    if text.isalnum():
        return f"{quote}{text}{quote}"
    escaped = "".join("\\" + c if c == quote else _ESCAPES.get(c, c) for c in text)
    return f"{quote}{escaped}{quote}"
