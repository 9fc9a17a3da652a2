"""What a kernel cannot be generated for, said to the writer of the program."""

from __future__ import annotations

import os

from pypto.core.span import Span


def place(span: Span) -> str:
    """`file.py:line` of a valid span (without folders: equal programs give equal text), else an empty
    string.
    """
    return f"{os.path.basename(span.filename)}:{span.begin_line}" if span.is_valid() else ""


class KernelError(ValueError):
    """A kernel uses something that the CPU code generator has no meaning for.

    The message names the operator, the kernel and the line of the program.
    """

    def __init__(self, message: str, *, kernel: str, span: Span) -> None:
        where = f" ({span})" if span.is_valid() else ""
        super().__init__(f"Kernel '{kernel}'{where}: {message}")
