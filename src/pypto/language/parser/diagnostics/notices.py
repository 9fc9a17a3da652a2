"""Warnings about a program, given at the place in the program that they are about."""

from __future__ import annotations

import warnings

from pypto import ir


def warn_at(span: ir.Span, message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at a place of the program, however deep inside the parser it is noticed."""
    warnings.warn_explicit(message, category, span.filename, max(span.begin_line, 1))
