"""Programs for several ranks: each runs chip programs on its own thread and reaches its peers' windows."""

from __future__ import annotations

from pypto.runtime.distributed.program import DistributedCompiledProgram
from pypto.runtime.distributed.worker import DistributedRunHandle, DistributedWorker

__all__ = ["DistributedCompiledProgram", "DistributedRunHandle", "DistributedWorker"]
