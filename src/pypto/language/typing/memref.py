"""`pl.MemRef`: the DSL's spelling of memory references and declared allocations."""

from __future__ import annotations

from typing import Any

from pypto import ir
from pypto.language.typing.scalar import Scalar


class MemRef(ir.MemRef):
    """`MemRef()` or `MemRef("name", slots=N)` declares an allocation; `MemRef(base, offset, size)` refers to
    one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        plain = [arg.unwrap() if isinstance(arg, Scalar) else arg for arg in args]
        super().__init__(*plain, **kwargs)
