"""Errors of orchestration code generation that are the user's mistake, seen by no earlier stage."""

from __future__ import annotations

from pypto.core.errors import InternalError

__all__ = ["UsageError"]


class UsageError(InternalError, ValueError):
    """A program from which no orchestration can be made.

    A `ValueError`, because the program is wrong, and an `InternalError`, because that is what callers have
    caught so far.
    """
