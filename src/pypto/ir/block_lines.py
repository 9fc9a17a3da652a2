"""Where a `with` block of the user ends.

While a block is left, Python reports the line of its `with`, not the line of its last statement. The code
object knows better: the instructions between entering and leaving the block belong to its statements.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import CodeType, FrameType

from pypto.core.span import Span

_MACHINERY = ("contextlib.py", "ir/builder.py", "ir/block_lines.py")


@dataclass(frozen=True, slots=True)
class BlockStart:
    """The code that entered a block, and the instruction at which it did."""

    code: CodeType
    instruction: int

    @staticmethod
    def of_user() -> BlockStart:
        frame = _user_frame()
        return BlockStart(frame.f_code, frame.f_lasti)

    def end_of_block(self) -> Span:
        """The last line of the block that is being left; the present line where another code leaves it."""
        frame = _user_frame()
        last = frame.f_lineno
        if frame.f_code is self.code:
            lines = [
                line
                for start, _, line in self.code.co_lines()
                if line is not None and self.instruction < start <= frame.f_lasti
            ]
            last = max([last, *lines])
        return Span(frame.f_code.co_filename, last, -1)


def _user_frame() -> FrameType:
    """The nearest frame that is neither the builder nor the context manager machinery."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.endswith(_MACHINERY):
        frame = frame.f_back
    return frame
