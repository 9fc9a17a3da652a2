"""Platform names and the one backend type of a process.

All platforms run on the CPU; the name decides which hardware table the passes consult. The choice is
announced to them in `pypto.passes.target`.
"""

from __future__ import annotations

import enum

from pypto.backend.capabilities import ASCEND_910B, ASCEND_950
from pypto.backend.handler import BackendHandler
from pypto.backend.models import Backend, Backend910B, Backend950
from pypto.passes.target import set_target

PLATFORMS = ("a2a3", "a2a3sim", "a5", "a5sim")


class BackendType(enum.Enum):
    """The architecture a program is lowered for."""

    Ascend910B = 0
    Ascend950 = 1


_FACTS = {BackendType.Ascend910B: ASCEND_910B, BackendType.Ascend950: ASCEND_950}
_configured: BackendType | None = None


def backend_of_platform(platform: str) -> BackendType:
    """The architecture of a platform. Raises `ValueError` for an unknown name."""
    if platform not in PLATFORMS:
        raise ValueError(f"Invalid platform '{platform}'. Expected one of {', '.join(PLATFORMS)}")
    return BackendType.Ascend910B if platform.startswith("a2a3") else BackendType.Ascend950


def simulator_of(backend: BackendType) -> str:
    """The default platform of an architecture."""
    return "a2a3sim" if backend is BackendType.Ascend910B else "a5sim"


def set_backend_type(backend: BackendType) -> None:
    """Choose the architecture of this process. Raises `ValueError` when another one was chosen before."""
    global _configured
    if _configured is not None and _configured is not backend:
        raise ValueError(f"Backend type already set to {_configured.name}, cannot change to {backend.name}")
    _configured = backend
    set_target(_FACTS[backend])


def get_backend_type() -> BackendType:
    """Raises `ValueError` before `set_backend_type`."""
    if _configured is None:
        raise ValueError("Backend type not configured; call set_backend_type first")
    return _configured


def get_backend_instance(backend: BackendType) -> Backend:
    """The hardware description of an architecture."""
    return Backend910B.instance() if backend is BackendType.Ascend910B else Backend950.instance()


def get_handler() -> BackendHandler:
    """The handler of the chosen architecture. Raises `ValueError` before `set_backend_type`."""
    return get_backend_instance(get_backend_type()).get_handler()


def is_backend_configured() -> bool:
    """Whether the architecture of this process was chosen."""
    return _configured is not None


def reset_for_testing() -> None:
    """Forget the chosen architecture."""
    global _configured
    _configured = None
    set_target(None)
