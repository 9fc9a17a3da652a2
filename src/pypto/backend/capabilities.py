"""What each architecture offers, for the rules of passes and verifiers that ask for it."""

from __future__ import annotations

from pypto.core.dtype import DataType
from pypto.ir.enums import MemorySpace
from pypto.passes.target import TargetFacts

__all__ = ["ASCEND_910B", "ASCEND_950"]

_ATOMIC_ADD = frozenset({DataType.FP32, DataType.FP16, DataType.INT32, DataType.INT16, DataType.INT8})

_BUFFERS = {
    MemorySpace.Mat: 524288,
    MemorySpace.Left: 65536,
    MemorySpace.Right: 65536,
    MemorySpace.Acc: 131072,
    MemorySpace.Bias: 1024,
    MemorySpace.Vec: 188416,
}

ASCEND_910B = TargetFacts(
    arch="a2a3",
    cube_cores=24,
    vector_cores=48,
    recommended_innermost_bytes=512,
    l2_cache_line_bytes=512,
    atomic_add_dtypes=_ATOMIC_ADD | {DataType.BF16},
    memory_bytes=_BUFFERS,
)
ASCEND_950 = TargetFacts(
    arch="a5",
    cube_cores=36,
    vector_cores=72,
    recommended_innermost_bytes=128,
    l2_cache_line_bytes=512,
    atomic_add_dtypes=_ATOMIC_ADD,
    memory_bytes={
        **_BUFFERS,
        MemorySpace.Acc: 262144,
        MemorySpace.Bias: 4096,
        MemorySpace.Vec: 245760,
        MemorySpace.LeftScale: 4096,
        MemorySpace.RightScale: 4096,
    },
)
