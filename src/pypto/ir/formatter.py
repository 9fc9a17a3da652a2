"""What happens to printed text before it is shown: by default `ruff format`, where an executable of that name
exists.

A failing formatter never costs the text: whatever goes wrong, the unformatted text is shown.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable

from pypto.core.logging import log_debug

__all__ = ["formatted", "register_format_callback"]

LINE_LENGTH = 200
TIMEOUT_SECONDS = 5

FormatCallback = Callable[[str], str]


class _Registration:
    """The installed callback. Until one is registered, `ruff` is looked for when text is first formatted."""

    def __init__(self) -> None:
        self.callback: FormatCallback | None = None
        self.decided = False

    def current(self) -> FormatCallback | None:
        if not self.decided:
            self.decided = True
            self.callback = _ruff_format if shutil.which("ruff") else None
        return self.callback


_registration = _Registration()


def register_format_callback(callback: FormatCallback | None) -> None:
    """Install a post-processor of printed text; None removes it."""
    if callback is not None and not callable(callback):
        raise TypeError(f"register_format_callback expects a callable or None, got {type(callback).__name__}")
    _registration.callback = callback
    _registration.decided = True


def formatted(text: str) -> str:
    """`text` after the registered callback."""
    callback = _registration.current()
    if callback is None:
        return text
    try:
        result: object = callback(text)
        if not isinstance(result, str):
            raise TypeError(f"it returned a {type(result).__name__}, not text")
        return result
    except Exception as error:
        log_debug(f"the format callback failed, showing the text as it is: {error}")
        return text


def _ruff_format(text: str) -> str:
    if "\n" not in text and len(text) <= LINE_LENGTH:
        return text
    result = subprocess.run(
        ["ruff", "format", "--line-length", str(LINE_LENGTH), "-"],
        input=text,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=True,
    )
    return result.stdout if text.endswith("\n") else result.stdout.rstrip("\n")
