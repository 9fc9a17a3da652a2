"""How a program is spread over several ranks, and the compiled form of such a program."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["DistributedConfig"]


@dataclass(frozen=True)
class DistributedConfig:
    """Rank `r` runs on `device_ids[r]`; the number of ids is the number of ranks.

    Raises `ValueError` for ids that are empty, negative or repeated, and for impossible counts.
    """

    device_ids: Sequence[int] = field(default_factory=lambda: [0])
    num_sub_workers: int = 0
    runtime: str = "tensormap_and_ringbuffer"
    aicpu_thread_num: int = 0

    def __post_init__(self) -> None:
        ids = list(self.device_ids)
        if not ids or min(ids) < 0 or len(set(ids)) != len(ids):
            raise ValueError(f"device_ids must be distinct numbers from 0 up, at least one, got {ids}")
        if self.num_sub_workers < 0:
            raise ValueError(f"num_sub_workers must be >= 0, got {self.num_sub_workers}")
        if self.aicpu_thread_num < 0 or self.aicpu_thread_num == 1:
            raise ValueError(f"aicpu_thread_num must be 0 (the default) or >= 2, got {self.aicpu_thread_num}")


def __getattr__(name: str) -> Any:
    if name == "DistributedCompiledProgram":  # belongs to the runtime, a layer above
        return getattr(importlib.import_module("pypto.runtime.distributed.program"), name)
    raise AttributeError(f"module 'pypto.ir.distributed_compiled_program' has no attribute '{name}'")
