"""`pl.MemRef`: the DSL's spelling of memory references and declared allocations."""

from __future__ import annotations

from typing import Any

from pypto import ir
from pypto.language.typing.scalar import Scalar


class MemRef(ir.MemRef):
    """Declare an allocation, or refer to a piece of one.

    `MemRef()` and `MemRef("name", slots=N)` declare; `MemRef(base, offset, size, slots=N)` refers.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        plain = [arg.unwrap() if isinstance(arg, Scalar) else arg for arg in args]
        if len(plain) == 3 and isinstance(plain[0], str):
            plain[0] = ir.Var(plain[0], ir.PtrType.get(), ir.Span.unknown())
        super().__init__(*plain, **kwargs)

    def __getitem__(self, slot: int) -> ir.MemRef:
        """Slot `slot`; printed signatures also select slots of allocations that are already placed."""
        if self.is_pinned_ or self.slot_count_ == 1:
            return super().__getitem__(slot)
        return self.replace(slot_index_=ir.ConstInt(slot, ir.DataType.INDEX, self.span))
