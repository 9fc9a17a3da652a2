"""The `@pl.jit` family: functions that are compiled for the arguments they meet."""

from __future__ import annotations

from pypto.jit.decorator import jit
from pypto.jit.function import JITFunction

__all__ = ["JITFunction", "jit"]
