"""What each architecture offers, for the rules of passes and verifiers that ask for it."""

from __future__ import annotations

from pypto.core.dtype import DataType
from pypto.passes.target import TargetFacts

__all__ = ["ASCEND_910B", "ASCEND_950"]

_ATOMIC_ADD = frozenset({DataType.FP32, DataType.FP16, DataType.INT32, DataType.INT16, DataType.INT8})

ASCEND_910B = TargetFacts(
    arch="a2a3",
    cube_cores=24,
    vector_cores=48,
    recommended_innermost_bytes=512,
    l2_cache_line_bytes=512,
    atomic_add_dtypes=_ATOMIC_ADD | {DataType.BF16},
)
ASCEND_950 = TargetFacts(
    arch="a5",
    cube_cores=36,
    vector_cores=72,
    recommended_innermost_bytes=128,
    l2_cache_line_bytes=512,
    atomic_add_dtypes=_ATOMIC_ADD,
)
