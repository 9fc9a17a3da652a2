"""What differs per target: platforms and their hardware facts, kernel headers, the C++ toolchain."""

from __future__ import annotations

import importlib
from typing import Any

from pypto.backend.handler import BackendHandler
from pypto.backend.hardware import Cluster, Core, Die, Mem, SoC
from pypto.backend.models import Backend, Backend910B, Backend950
from pypto.backend.platforms import (
    BackendType,
    backend_of_platform,
    get_backend_instance,
    get_backend_type,
    get_handler,
    is_backend_configured,
    reset_for_testing,
    set_backend_type,
    simulator_of,
)

__all__ = [
    "Backend",
    "Backend910B",
    "Backend950",
    "BackendHandler",
    "BackendType",
    "Cluster",
    "Core",
    "Die",
    "Mem",
    "PartialCodegenError",
    "SoC",
    "backend_of_platform",
    "get_backend_instance",
    "get_handler",
    "get_backend_type",
    "is_backend_configured",
    "reset_for_testing",
    "set_backend_type",
    "simulator_of",
]


def __getattr__(name: str) -> Any:
    """`PartialCodegenError` belongs to code generation, a layer above; users look for it here."""
    if name == "PartialCodegenError":
        return importlib.import_module("pypto.codegen.artifact").PartialCodegenError
    raise AttributeError(f"module 'pypto.backend' has no attribute '{name}'")
