"""What differs per target: platforms and their hardware facts, kernel headers, the C++ toolchain."""

from __future__ import annotations

from pypto.backend.platforms import (
    BackendType,
    backend_of_platform,
    get_backend_type,
    is_backend_configured,
    reset_for_testing,
    set_backend_type,
    simulator_of,
)

__all__ = [
    "BackendType",
    "backend_of_platform",
    "get_backend_type",
    "is_backend_configured",
    "reset_for_testing",
    "set_backend_type",
    "simulator_of",
]
