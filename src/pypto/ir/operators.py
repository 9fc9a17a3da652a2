"""The functions behind the Python operators on expressions.

`a + b` on expressions is `add(a, b)` with the line of the operator as its place; this module names those
functions. The operators are installed with `pypto.ir` itself, nothing has to be imported for them.
"""

from __future__ import annotations

from pypto.ir.scalar_ops import (
    add,
    bit_and,
    bit_not,
    bit_or,
    bit_shift_left,
    bit_shift_right,
    bit_xor,
    eq,
    floordiv,
    ge,
    gt,
    le,
    lt,
    mod,
    mul,
    ne,
    neg,
    pow,
    sub,
    truediv,
)  # fmt: skip

__all__ = [
    "add", "bit_and", "bit_not", "bit_or", "bit_shift_left", "bit_shift_right", "bit_xor", "eq", "floordiv",
    "ge", "gt", "le", "lt", "mod", "mul", "ne", "neg", "pow", "sub", "truediv",
]  # fmt: skip
