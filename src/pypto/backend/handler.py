"""Facts of an architecture that lowering and code generation ask for, one method each."""

from __future__ import annotations

from dataclasses import dataclass

from pypto.core.dtype import DataType

__all__ = ["BackendHandler", "HandlerFacts"]

_BIAS_MOVES = frozenset(
    {(DataType.FP32, DataType.FP32), (DataType.FP16, DataType.FP32), (DataType.INT32, DataType.INT32)}
)


@dataclass(frozen=True, slots=True)
class HandlerFacts:
    """Where architectures differ."""

    target_arch: str
    simulator: str
    assembler_arch: str
    core_count_method: str
    is_split: bool
    """Cube and vector cores are apart: what they exchange goes through global memory."""
    access_bytes: int
    acc_bytes: int
    bias_bytes: int
    int32_acc_rows: int
    more_bias_moves: frozenset[tuple[DataType, DataType]] = frozenset()


class BackendHandler:
    """Answers of one architecture."""

    def __init__(self, facts: HandlerFacts) -> None:
        self._facts = facts

    def get_pto_target_arch(self) -> str:
        return self._facts.target_arch

    def get_default_sim_platform(self) -> str:
        return self._facts.simulator

    def get_launch_spec_core_count_method(self) -> str:
        """The setter of a launch's block count in orchestration code."""
        return self._facts.core_count_method

    def get_extra_ptoas_flags(self) -> list[str]:
        return ["--pto-arch", self._facts.assembler_arch]

    def requires_gm_pipe_buffer(self) -> bool:
        """Queues between cube and vector lie in global memory."""
        return self._facts.is_split

    def requires_split_load_tpop_workaround(self) -> bool:
        return self._facts.is_split

    def requires_vto_c_fractal_adapt(self) -> bool:
        return not self._facts.is_split

    def requires_runtime_subblock_bridge(self) -> bool:
        return self._facts.is_split

    def requires_no_split_dual_aiv_dispatch(self) -> bool:
        return self._facts.is_split

    def get_gm_access_granularity_bytes(self) -> int:
        return self._facts.access_bytes

    def get_recommended_innermost_dim_bytes(self) -> int:
        return self._facts.access_bytes

    def get_l2_cache_line_bytes(self) -> int:
        return 512

    def get_l0a_capacity_bytes(self) -> int:
        return 65536

    def get_l0b_capacity_bytes(self) -> int:
        return 65536

    def get_l0c_capacity_bytes(self) -> int:
        return self._facts.acc_bytes

    def get_mat_capacity_bytes(self) -> int:
        return 524288

    def get_bias_capacity_bytes(self) -> int:
        return self._facts.bias_bytes

    def get_l0_fractal_alignment(self) -> int:
        return 16

    def get_min_l0_tile_dim(self) -> int:
        return 16

    def get_l0c_m_alignment(self, acc_dtype: DataType) -> int:
        """Rows that an accumulator of this type is aligned to."""
        return self._facts.int32_acc_rows if acc_dtype is DataType.INT32 else 16

    def supports_mat_to_bias_move(self, src: DataType, bias: DataType) -> bool:
        return (src, bias) in _BIAS_MOVES | self._facts.more_bias_moves
