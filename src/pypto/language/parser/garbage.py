"""Parsing allocates long-lived trees quickly; collecting garbage meanwhile costs as much as the parsing
itself."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_gc() -> Iterator[None]:
    """Keep the cyclic collector from running, unless it is off anyway."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
