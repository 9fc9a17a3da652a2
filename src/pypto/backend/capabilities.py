"""What each architecture offers, for the rules of passes and verifiers that ask for it."""

from __future__ import annotations

from pypto.backend.models import Backend, Backend910B, Backend950
from pypto.core.dtype import DataType
from pypto.ir.enums import CoreType
from pypto.passes.target import TargetFacts

__all__ = ["ASCEND_910B", "ASCEND_950"]

_ATOMIC_ADD = frozenset({DataType.FP32, DataType.FP16, DataType.INT32, DataType.INT16, DataType.INT8})


def _facts(backend: Backend, atomic_add_dtypes: frozenset[DataType]) -> TargetFacts:
    handler = backend.get_handler()
    return TargetFacts(
        arch=handler.get_pto_target_arch(),
        cube_cores=backend.get_core_count(CoreType.CUBE),
        vector_cores=backend.get_core_count(CoreType.VECTOR),
        recommended_innermost_bytes=handler.get_recommended_innermost_dim_bytes(),
        l2_cache_line_bytes=handler.get_l2_cache_line_bytes(),
        atomic_add_dtypes=atomic_add_dtypes,
        memory_bytes={mem.mem_type: mem.mem_size for core in backend.soc.cores() for mem in core.mems_},
    )


ASCEND_910B = _facts(Backend910B.instance(), _ATOMIC_ADD | {DataType.BF16})
ASCEND_950 = _facts(Backend950.instance(), _ATOMIC_ADD)
