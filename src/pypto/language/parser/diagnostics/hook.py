"""Shows uncaught errors of the user's program in rendered form instead of as a traceback through the
compiler: those of the front end, and those of verification."""

from __future__ import annotations

import os
import sys
from types import TracebackType

from pypto.core.errors import Error
from pypto.language.parser.diagnostics.exceptions import ParserError
from pypto.language.parser.diagnostics.renderer import ErrorRenderer

_BACKTRACE_VARIABLE = "PTO_BACKTRACE"
_previous_hook = sys.excepthook


def wants_backtrace() -> bool:
    """Whether `PTO_BACKTRACE` asks for tracebacks.

    Raises:
        ValueError: the variable is set to something other than 0 or 1.
    """
    value = os.environ.get(_BACKTRACE_VARIABLE, "0")
    if value not in ("", "0", "1"):
        raise ValueError(f"{_BACKTRACE_VARIABLE} must be 0 or 1, got {value!r}")
    return value == "1"


def parser_excepthook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print an error of the program without the compiler's frames; hand everything else to the hook that was
    there before."""
    if isinstance(error, ParserError):
        text = ErrorRenderer().render(error)
    elif isinstance(error, Error):
        text = f"Error: {error}"
    else:
        _previous_hook(kind, error, trace)
        return
    print(text, file=sys.stderr)
    if wants_backtrace():
        sys.__excepthook__(kind, error, trace)
    else:
        print(
            f"   = note: run with {_BACKTRACE_VARIABLE}=1 in the environment to see the Python traceback",
            file=sys.stderr,
        )


def install_excepthook() -> None:
    """Put the hook in place, once."""
    global _previous_hook
    if sys.excepthook is not parser_excepthook:
        _previous_hook = sys.excepthook
        sys.excepthook = parser_excepthook
