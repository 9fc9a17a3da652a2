"""``pl.array``: small local arrays."""

from __future__ import annotations

from pypto.ir.op import array_ops as _ir
from pypto.language.op import lifting as _lifting

create = _lifting.lift(_ir.create, "extent, dtype")
get_element = _lifting.lift(_ir.get_element, "array, index")
update_element = _lifting.lift(_ir.update_element, "array, index, value")

__all__ = ["create", "get_element", "update_element"]
