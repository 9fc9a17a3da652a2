"""``pl.prefetch``: hints that bring global memory into a cache."""

from __future__ import annotations

from pypto.ir.op import prefetch_ops as _ir
from pypto.language.op import lifting as _lifting

make_context = _lifting.lift_operands(_ir.make_context, "prefetch.make_context")
async_prefetch = _lifting.lift_operands(_ir.async_prefetch, "prefetch.async_prefetch")
session = _lifting.lift_operands(_ir.session, "prefetch.session")
wait = _lifting.lift_operands(_ir.wait, "prefetch.wait")

__all__ = ["async_prefetch", "make_context", "session", "wait"]
