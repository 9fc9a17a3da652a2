"""Builders of ``prefetch.*`` calls: ``pypto.ir.op.prefetch``."""

from __future__ import annotations

from pypto.ir.op.build import simple

make_context = simple("prefetch.make_context")
async_prefetch = simple("prefetch.async_prefetch")
session = simple("prefetch.session")
wait = simple("prefetch.wait")
