"""Pausing the cyclic garbage collector.

Parsers and passes allocate long-lived trees without cycles, quickly. Collecting meanwhile finds nothing and
costs as much as the work itself, more so the larger the program.
"""

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
