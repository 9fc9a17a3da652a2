"""Where users of the public API look for the error of a partly failed code generation."""

from __future__ import annotations

from typing import Any

from pypto import backend


def __getattr__(name: str) -> Any:
    return getattr(backend, name)
