"""Messages of the layers below, without the parts that only a developer of the compiler wants to see."""

from __future__ import annotations

import re

_TRACE_BLOCK = re.compile(r"\n*C\+\+ Traceback \(most recent call last\):.*", re.DOTALL)
_CHECK_LINE = re.compile(r"\n?Check failed: [^\n]*\s*\Z")
_TRAILING_SPAN = re.compile(r"\s*\[[^\[\]\n]*:\d+:-?\d+\]\s*\Z")
_NO_TEXT = "An internal check failed; set PTO_BACKTRACE=1 to see where"


def concise_error_message(error: BaseException, strip_trailing_span: bool = False) -> str:
    """The message of `error` without traceback blocks and without a final `Check failed:` line.

    With `strip_trailing_span`, the `[file:line:column]` that ends such a message is removed as well.
    """
    message = _TRACE_BLOCK.sub("", str(error))
    without_check = _CHECK_LINE.sub("", message)
    if strip_trailing_span:
        without_check = _TRAILING_SPAN.sub("", without_check)
    text = without_check.rstrip()
    if not text:
        return _NO_TEXT if message.strip() else type(error).__name__
    return text
