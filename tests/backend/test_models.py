"""The hardware tables of the two architectures, and the facts that lowering asks for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pypto import backend
from pypto.backend import Backend, Backend910B, Backend950, BackendType, Cluster, Core, Die, Mem, SoC
from pypto.core.dtype import DataType
from pypto.ir import CoreType, MemorySpace
from pypto.pypto_core import backend as core_backend

M = MemorySpace
BOTH = pytest.mark.parametrize("kind", [Backend910B, Backend950])


@pytest.fixture(autouse=True)
def unset() -> Iterator[None]:
    backend.reset_for_testing()
    yield
    backend.reset_for_testing()


def test_there_is_one_object_of_each_architecture() -> None:
    assert Backend910B.instance() is Backend910B.instance()
    assert backend.get_backend_instance(BackendType.Ascend910B) is Backend910B.instance()
    assert backend.get_backend_instance(BackendType.Ascend950) is Backend950.instance()
    for kind in (Backend, Backend910B, Backend950):
        with pytest.raises(TypeError):
            kind()
    assert [kind.value for kind in BackendType] == [0, 1]


def test_the_handler_is_that_of_the_configured_backend() -> None:
    for action in (backend.get_backend_type, core_backend.get_handler):
        with pytest.raises(ValueError, match="Backend type not configured"):
            action()
    backend.set_backend_type(BackendType.Ascend950)
    assert core_backend.get_handler() is Backend950.instance().get_handler()
    with pytest.raises(ValueError, match="already set to Ascend950, cannot change to Ascend910B"):
        backend.set_backend_type(BackendType.Ascend910B)


@pytest.mark.parametrize(
    ("method", "of_910b", "of_950"),
    [
        ("get_pto_target_arch", "a2a3", "a5"),
        ("get_default_sim_platform", "a2a3sim", "a5sim"),
        ("get_launch_spec_core_count_method", "set_block_num", "set_core_num"),
        ("get_extra_ptoas_flags", ["--pto-arch", "a3"], ["--pto-arch", "a5"]),
        ("requires_gm_pipe_buffer", True, False),
        ("requires_split_load_tpop_workaround", True, False),
        ("requires_vto_c_fractal_adapt", False, True),
        ("requires_runtime_subblock_bridge", True, False),
        ("requires_no_split_dual_aiv_dispatch", True, False),
        ("get_gm_access_granularity_bytes", 512, 128),
        ("get_recommended_innermost_dim_bytes", 512, 128),
        ("get_l2_cache_line_bytes", 512, 512),
        ("get_l0a_capacity_bytes", 65536, 65536),
        ("get_l0b_capacity_bytes", 65536, 65536),
        ("get_l0c_capacity_bytes", 131072, 262144),
        ("get_mat_capacity_bytes", 524288, 524288),
        ("get_bias_capacity_bytes", 1024, 4096),
        ("get_l0_fractal_alignment", 16, 16),
        ("get_min_l0_tile_dim", 16, 16),
    ],
)
def test_handlers_answer_as_documented(method: str, of_910b: object, of_950: object) -> None:
    for kind, expected in ((Backend910B, of_910b), (Backend950, of_950)):
        assert getattr(kind.instance().get_handler(), method)() == expected


def test_accumulator_rows_and_bias_moves_depend_on_the_type() -> None:
    old, new = Backend910B.instance().get_handler(), Backend950.instance().get_handler()
    assert old.get_l0c_m_alignment(DataType.INT32) == 32 and old.get_l0c_m_alignment(DataType.FP32) == 16
    assert new.get_l0c_m_alignment(DataType.INT32) == 16
    for src, bias in (("FP32", "FP32"), ("FP16", "FP32"), ("INT32", "INT32"), ("BF16", "FP32")):
        pair = getattr(DataType, src), getattr(DataType, bias)
        assert old.supports_mat_to_bias_move(*pair) is (src != "BF16")
        assert new.supports_mat_to_bias_move(*pair)
    assert not new.supports_mat_to_bias_move(DataType.FP32, DataType.FP16)


def test_memories_and_cores_are_counted() -> None:
    old, new = Backend910B.instance(), Backend950.instance()
    assert (old.get_type_name(), new.get_type_name()) == ("910B", "950")
    sizes = {M.Mat: 524288, M.Left: 65536, M.Right: 65536, M.Acc: 131072, M.Bias: 1024, M.Vec: 188416}
    for space in M.__members__.values():
        assert old.get_mem_size(space) == sizes.get(space, 0)
    more = {M.Acc: 262144, M.Bias: 4096, M.Vec: 245760, M.LeftScale: 4096, M.RightScale: 4096}
    for space in M.__members__.values():
        assert new.get_mem_size(space) == {**sizes, **more}.get(space, 0)
    assert [old.get_core_count(kind) for kind in (CoreType.VECTOR, CoreType.CUBE)] == [48, 24]
    assert [new.get_core_count(kind) for kind in (CoreType.VECTOR, CoreType.CUBE)] == [72, 36]
    assert (old.soc.total_core_count(), old.soc.total_cluster_count(), old.soc.total_die_count()) == (
        72,
        72,
        1,
    )
    assert (new.soc.total_core_count(), new.soc.total_cluster_count(), new.soc.total_die_count()) == (
        108,
        36,
        2,
    )
    aligned = {m.mem_type: m.alignment for core in new.soc.cores() for m in core.mems}
    assert aligned == {
        M.Mat: 128, M.Left: 64, M.Right: 64, M.Acc: 128, M.Bias: 64, M.LeftScale: 32, M.RightScale: 32,
        M.Vec: 128,
    }  # fmt: skip


def test_data_takes_the_shortest_way_between_memories() -> None:
    old, new = Backend910B.instance(), Backend950.instance()
    assert old.find_mem_path(M.DDR, M.Left) == [M.DDR, M.Mat, M.Left]
    assert old.find_mem_path(M.Vec, M.Mat) == [M.Vec, M.DDR, M.Mat]
    assert old.find_mem_path(M.Acc, M.Vec) == [M.Acc, M.DDR, M.Vec]
    assert old.find_mem_path(M.Vec, M.Vec) == [M.Vec]
    assert new.find_mem_path(M.Vec, M.Mat) == [M.Vec, M.Mat]
    assert new.find_mem_path(M.Acc, M.Vec) == [M.Acc, M.Vec]
    assert new.find_mem_path(M.DDR, M.LeftScale) == [M.DDR, M.Mat, M.LeftScale]
    with pytest.raises(ValueError, match="No path found"):
        old.find_mem_path(M.Left, M.DDR)
    with pytest.raises(ValueError, match="No path found"):
        old.find_mem_path(M.DDR, M.LeftScale)


@BOTH
def test_a_description_goes_through_a_file(kind: type[Backend], tmp_path: Path) -> None:
    path = tmp_path / "backend"
    kind.instance().export_to_file(path)
    assert Backend.import_from_file(path) is kind.instance()
    path.write_text(path.read_text().replace("DDR", "HBM"))
    with pytest.raises(ValueError, match="no known backend"):
        Backend.import_from_file(path)
    path.write_bytes(b"\x00")
    with pytest.raises(ValueError, match="no description"):
        Backend.import_from_file(path)


def test_parts_multiply_through() -> None:
    core = Core(CoreType.VECTOR, [Mem(M.Vec, 100, 32)])
    assert core.core_type is CoreType.VECTOR and core.mems[0].mem_size == 100 and core.mems[0].alignment == 32
    cluster = Cluster(core, 2)
    die = Die(cluster, 3)
    soc = SoC(die, 4)
    assert (
        cluster.core_counts == {core: 2} and die.cluster_counts == {cluster: 3} and soc.die_counts == {die: 4}
    )
    assert (soc.total_die_count(), soc.total_cluster_count(), soc.total_core_count()) == (4, 12, 24)
    assert (die.total_core_count(), cluster.total_core_count()) == (6, 2)
    assert SoC(Die(Cluster(Core(CoreType.VECTOR, [Mem(M.Vec, 100, 32)]), 2), 3), 4) == soc
    with pytest.raises(ValueError):
        Cluster(core, 0)


def test_orchestration_text_uses_the_count_method_of_the_backend() -> None:
    from pypto.codegen.orchestration import tasks

    assert tasks._count_method() == "set_block_num"
    backend.set_backend_type(BackendType.Ascend950)
    assert tasks._count_method() == "set_core_num"
