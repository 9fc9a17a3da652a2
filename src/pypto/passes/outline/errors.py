"""Errors of outlining that are the user's mistake, although no earlier stage can see it."""

from __future__ import annotations

from pypto.core.errors import UsageError

__all__ = ["ScopeUsageError"]


class ScopeUsageError(UsageError):
    """A scope that cannot be outlined as written."""
