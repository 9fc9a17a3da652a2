"""One-line messages on the process's standard error.

A message appears when its level is at least the effective one: the thread's override if set, else the
process level, which starts from the environment variable `PYPTO_LOG_LEVEL`.
"""

from __future__ import annotations

import enum
import os
import threading
from datetime import datetime


class LogLevel(enum.IntEnum):
    DEBUG = 0
    INFO = 1
    WARN = 2
    ERROR = 3
    FATAL = 4
    EVENT = 5
    NONE = 6

    def __str__(self) -> str:
        return f"LogLevel.{self.name}"

    __repr__ = __str__


_LETTERS = {
    LogLevel.DEBUG: "D", LogLevel.INFO: "I", LogLevel.WARN: "W", LogLevel.ERROR: "E", LogLevel.FATAL: "F",
    LogLevel.EVENT: "V",
}  # fmt: skip
_STDERR_FD = 2
_thread = threading.local()
_process_level = LogLevel.__members__.get(os.environ.get("PYPTO_LOG_LEVEL", "").upper(), LogLevel.INFO)


def set_log_level(level: LogLevel) -> None:
    """Set the level of the whole process."""
    global _process_level
    _process_level = _checked(level)


def get_log_level() -> LogLevel:
    """The level of the whole process; a thread's override does not show here."""
    return _process_level


def set_thread_log_level(level: LogLevel) -> None:
    """Override the level for the calling thread."""
    _thread.level = _checked(level)


def _checked(level: LogLevel) -> LogLevel:
    if not isinstance(level, int):
        raise TypeError(f"A log level is a LogLevel, got {type(level).__name__}")
    return LogLevel(level)


def clear_thread_log_level() -> None:
    """Remove the calling thread's override."""
    _thread.level = None


def is_logged(level: LogLevel) -> bool:
    """Whether a message of `level` would appear; ask before building an expensive one."""
    effective = getattr(_thread, "level", None)
    return level >= (_process_level if effective is None else effective)


def _log(level: LogLevel, message: str) -> None:
    if not is_logged(level):
        return
    stamp = datetime.now().strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    os.write(_STDERR_FD, f"{stamp} {_LETTERS[level]} | {message}\n".encode())


def log_debug(message: str) -> None:
    _log(LogLevel.DEBUG, message)


def log_info(message: str) -> None:
    _log(LogLevel.INFO, message)


def log_warn(message: str) -> None:
    _log(LogLevel.WARN, message)


def log_error(message: str) -> None:
    _log(LogLevel.ERROR, message)


def log_fatal(message: str) -> None:
    _log(LogLevel.FATAL, message)


def log_event(message: str) -> None:
    _log(LogLevel.EVENT, message)
