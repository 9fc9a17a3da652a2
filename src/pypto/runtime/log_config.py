"""The level of the runtime's own log, apart from that of the compiler.

Levels are numbers with names, finer than the compiler's: `v0` to `v9` lie between `debug` and `timing`. The
initial level is that of `PYPTO_RUNTIME_LOG`; with `PYPTO_RUNTIME_LOG_SYNC=1` the compiler follows it.
"""

from __future__ import annotations

import os

from pypto.core.logging import LogLevel, set_log_level

__all__ = ["configure_log", "current_level", "log_level"]

_LEVELS = {
    "debug": 10,
    **{f"v{number}": 15 + number for number in range(10)},
    "info": 20,
    "timing": 25,
    "warn": 30,
    "warning": 30,
    "error": 40,
    "null": 60,
}
_DEFAULT = _LEVELS["timing"]
# Highest runtime level at which the compiler still writes messages of its level.
_COMPILER_LEVELS = ((10, LogLevel.DEBUG), (20, LogLevel.INFO), (30, LogLevel.WARN), (40, LogLevel.ERROR))


def configure_log(level: str | int, *, sync_pypto: bool = False) -> None:
    """Set the level by name or number; with `sync_pypto` the compiler's threshold follows.

    Raises `ValueError` for an unknown name or a negative number, `TypeError` for another kind of value.
    """
    global _level
    _level = _number_of(level)
    if sync_pypto:
        set_log_level(_compiler_level(_level))


def log_level() -> int:
    """Return the present level as a number."""
    return _level


current_level = log_level


def _number_of(level: str | int) -> int:
    if isinstance(level, str):
        number = _LEVELS.get(level.strip().lower())
        if number is not None:
            return number
        if not level.strip().isdigit():
            raise ValueError(f"Unknown log level '{level}'. Expected a number or one of {', '.join(_LEVELS)}")
        return int(level)
    if isinstance(level, bool) or not isinstance(level, int):
        raise TypeError(f"A log level is a name or a number, got {type(level).__name__}")
    if level < 0:
        raise ValueError(f"A log level is not negative, got {level}")
    return level


def _compiler_level(level: int) -> LogLevel:
    return next((found for limit, found in _COMPILER_LEVELS if level <= limit), LogLevel.NONE)


_level = _DEFAULT
if os.environ.get("PYPTO_RUNTIME_LOG"):
    configure_log(os.environ["PYPTO_RUNTIME_LOG"], sync_pypto=os.environ.get("PYPTO_RUNTIME_LOG_SYNC") == "1")
