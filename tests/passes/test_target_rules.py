"""Rules that depend on the machine: atomic additions, barriers over all blocks, lengths of rows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import pypto
from pypto import backend, ir, passes
from pypto.backend import BackendType
from pypto.passes import DiagnosticCheckRegistry, DiagnosticPhase, IRProperty, IRPropertySet
from tests.passes.dsl import program, run

S = ir.Span.unknown()


@pytest.fixture(autouse=True)
def no_backend() -> Iterator[None]:
    """Each test starts without a backend, and what was chosen before comes back."""
    before = backend.get_backend_type() if backend.is_backend_configured() else None
    backend.reset_for_testing()
    yield
    backend.reset_for_testing()
    if before is not None:
        backend.set_backend_type(before)


def findings(prop: IRProperty, source: ir.Program) -> list[passes.Diagnostic]:
    properties = IRPropertySet()
    properties.insert(prop)
    return passes.PropertyVerifierRegistry.verify(properties, source)


# ---- atomic additions


def adding(dtype: str) -> ir.Program:
    tensor = f"pl.Tensor[[64], pl.{dtype}]"
    return program(f"""
    @incore
    def k(self, x: {tensor}, o: pl.InOut[{tensor}]) -> {tensor}:
        t = pl.load(x, [0], [64])
        o = pl.store(t, [0], o, atomic=pl.AtomicType.Add)
        return o
    """)


def test_atomic_addition_of_bf16_is_for_one_backend_only():
    rule = IRProperty.AtomicAddDtypeValid
    backend.set_backend_type(BackendType.Ascend910B)
    assert findings(rule, adding("BF16")) == []
    backend.reset_for_testing()
    backend.set_backend_type(BackendType.Ascend950)
    assert findings(rule, adding("FP32")) == []
    (found,) = findings(rule, adding("BF16"))
    assert (found.rule_name, found.error_code) == ("AtomicAddDtypeValid", 1)
    assert "bfloat16" in found.message and "a5" in found.message and "'k'" in found.message


def test_an_atomic_addition_is_not_judged_without_a_backend():
    assert findings(IRProperty.AtomicAddDtypeValid, adding("BF16")) == []


def test_a_pipeline_rejects_an_atomic_addition_at_its_input():
    backend.set_backend_type(BackendType.Ascend950)
    with pytest.raises(pypto.Error, match=r"pipeline_input.*(?s:.*)AtomicAddDtypeValid"):
        passes.PassPipeline().run(adding("BF16"))


# ---- barriers over all blocks


def barrier(launch: str, core_type: str = "aiv_only", *, mode: str = "") -> ir.Program:
    """A vector kernel with a barrier, launched by `pl.spmd(<launch>)`."""
    return run(
        program(f"""
    @incore
    def k(self, x: T(64), o: pl.Out[T(64)]) -> T(64):
        t = pl.load(x, [0], [64])
        pl.system.syncall(core_type="{core_type}"{mode})
        o = pl.store(t, [0], o)
        return o
    @orch
    def main(self, n: I, x: T(64), o: pl.Out[T(64)]) -> T(64):
        with pl.spmd({launch}):
            o = self.k(x, o)
        return o
    """),
        passes.outline_incore_scopes,
        passes.outline_cluster_scopes,
    )


RULE = IRProperty.HardSyncallOccupancyValid


@pytest.mark.parametrize(
    ("launch", "core_type", "fact"),
    [
        ("48, sync_start=True", "aiv_only", None),
        ("pl.system.available_aiv_count(), sync_start=True", "aiv_only", None),
        ("n, sync_start=True", "aiv_only", None),
        ("48", "aiv_only", "sync_start=True"),
        ("n", "aiv_only", "sync_start=True"),
        ("24, sync_start=True", "aiv_only", "24 blocks"),
        ("pl.system.available_cluster_count(), sync_start=True", "aiv_only", "one block per cluster"),
        ("48, sync_start=True", "mix", "waits for mix"),
        ("48, sync_start=True", "aic_only", "waits for aic_only"),
    ],
)
def test_a_hard_barrier_needs_a_full_launch_that_starts_together(
    launch: str, core_type: str, fact: str | None
):
    backend.set_backend_type(BackendType.Ascend910B)
    found = findings(RULE, barrier(launch, core_type))
    if fact is None:
        assert found == []
    else:
        (problem,) = found
        assert problem.rule_name == "HardSyncallOccupancy"
        assert fact in problem.message and "'k'" in problem.message


def test_the_full_width_is_that_of_the_backend():
    backend.set_backend_type(BackendType.Ascend950)
    assert findings(RULE, barrier("72, sync_start=True")) == []
    (problem,) = findings(RULE, barrier("48, sync_start=True"))
    assert "(72)" in problem.message and "a5" in problem.message


def test_a_hard_barrier_is_not_judged_without_a_backend():
    assert findings(RULE, barrier("3")) == []


def test_a_group_fills_the_machine_with_one_block_per_cluster():
    def source(count: int, core_type: str) -> ir.Program:
        return run(
            program(f"""
    @aiv
    def v(self, x: T(64), o: pl.Out[T(64)]) -> T(64):
        t = pl.load(x, [0], [64])
        pl.system.syncall(core_type="{core_type}")
        o = pl.store(t, [0], o)
        return o
    @group
    def g(self, x: T(64), o: pl.InOut[T(64)]) -> T(64):
        o = self.v(x, o)
        return o
    @orch
    def main(self, x: T(64), o: pl.InOut[T(64)]) -> T(64):
        with pl.spmd({count}, sync_start=True):
            o = self.g(x, o)
        return o
    """),
            passes.outline_incore_scopes,
            passes.outline_cluster_scopes,
        )

    backend.set_backend_type(BackendType.Ascend910B)
    assert findings(RULE, source(24, "mix")) == []
    assert findings(RULE, source(24, "aiv_only")) == []
    (problem,) = findings(RULE, source(48, "mix"))
    assert "48 blocks" in problem.message


# ---- lengths of rows


def hints(source: ir.Program) -> list[passes.Diagnostic]:
    checks = DiagnosticCheckRegistry.get_perf_hint_checks()
    return DiagnosticCheckRegistry.run_checks(checks, DiagnosticPhase.POST_PIPELINE, source)


def moving(columns: int, *, loads: int = 1) -> ir.Program:
    lines = "".join(f"        t = pl.load(x, [0, {n}], [16, {columns}])\n" for n in range(loads))
    return program(f"""
    @incore
    def k(self, x: T(64, 512), o: pl.Out[T(64, 512)]) -> T(64, 512):
{lines}        o = pl.store(t, [0, 0], o)
        return o
    """)


def test_short_rows_of_loads_and_stores_are_hinted_at():
    backend.set_backend_type(BackendType.Ascend910B)
    load, store = hints(moving(16))
    assert load.severity is passes.DiagnosticSeverity.PerfHint
    assert (load.rule_name, load.hint_code) == ("TileInnermostDimGranularity", "PH001")
    assert load.message == (
        "tile.load has innermost dim = 64B (tile fp32[16], target_memory=Vec); moves 1024B as 16 x 64B rows; "
        "recommended >= 512B for backend a2a3 (L2 cache line = 512B). "
        "Consider increasing tile shape on the innermost axis."
    )
    assert store.message.startswith("tile.store has innermost dim = 64B")
    assert hints(moving(128)) == []


def test_the_recommended_length_is_that_of_the_backend():
    backend.set_backend_type(BackendType.Ascend950)
    assert hints(moving(32)) == []
    assert "recommended >= 128B for backend a5" in hints(moving(31))[0].message


def test_rows_are_not_judged_without_a_backend(capfd: pytest.CaptureFixture[str]):
    assert hints(moving(16)) == []
    with passes.PassContext([]):
        passes.PassPipeline().run(moving(16))
    assert "perf_hint" not in capfd.readouterr().err


def test_equal_hints_at_one_place_are_counted():
    source = moving(16)
    backend.set_backend_type(BackendType.Ascend910B)
    unrolled = program("""
    @incore
    def k(self, x: T(64, 512), o: pl.Out[T(64, 512)]) -> T(64, 512):
        for i in pl.unroll(3):
            t = pl.load(x, [i, 0], [16, 16])
            o = pl.store(t, [i, 0], o)
        return o
    """)
    found = hints(passes.unroll_loops()(unrolled))
    assert len(found) == 2 == len(hints(source))
    assert all(each.message.endswith("(3 occurrences)") for each in found)


def test_a_symbolic_valid_shape_leaves_the_moved_bytes_out():
    backend.set_backend_type(BackendType.Ascend910B)
    source = program("""
    @incore
    def k(self, n: I, x: T(64, 512), o: pl.Out[T(64, 512)]) -> T(64, 512):
        t = pl.load(x, [0, 0], [16, 16], [n, 16])
        o = pl.store(t, [0, 0], o)
        return o
    """)
    assert "moves" not in hints(source)[0].message


# ---- buffers


def placing(offset: int) -> ir.Program:
    memref = ir.MemRef(ir.Var("base", ir.PtrType(), S), offset, 1024)
    tile = ir.Var("t", ir.TileType([16, 16], ir.DataType.FP32, memref, None, ir.MemorySpace.Vec), S)
    value = ir.Var("v", tile.type, S)
    function = ir.Function("k", [value], [], ir.AssignStmt(tile, value, S), S, ir.FunctionType.InCore)
    return ir.Program([function], "P", S)


def test_buffers_fit_the_memory_of_the_backend():
    beyond = placing(188416)
    assert findings(IRProperty.AllocatedMemoryAddr, beyond) == []
    backend.set_backend_type(BackendType.Ascend910B)
    (each,) = findings(IRProperty.AllocatedMemoryAddr, beyond)
    assert each.error_code == 1 and "189440 bytes of Vec" in each.message and "188416" in each.message
    assert findings(IRProperty.AllocatedMemoryAddr, placing(188416 - 1024)) == []
