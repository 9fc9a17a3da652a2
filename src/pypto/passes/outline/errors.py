"""Errors of outlining that are the user's mistake, although no earlier stage can see it."""

from __future__ import annotations

from pypto.core.errors import InternalError

__all__ = ["ScopeUsageError"]


class ScopeUsageError(InternalError, ValueError):
    """A scope that cannot be outlined as written.

    A `ValueError`, because the program is wrong, and an `InternalError`, because that is what callers have
    caught so far.
    """
