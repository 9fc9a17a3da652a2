"""PassManager: the list of passes, runs with dumps and profiles."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pypto.language as pl
from pypto import ir, passes
from pypto.compile_profiling import CompileProfiler, StageRecord, get_active_profiler
from pypto.ir import pass_manager
from pypto.ir.pass_manager import OptimizationStrategy, PassDumpLevel, PassManager, coerce_dump_level
from pypto.passes import MemoryPlanner, PassContext
from pypto.passes.diagnostics import warning
from pypto.passes.dump_log import write_warning_log
from tests.passes.dsl import program

SOURCE = """
@opaque
def main(self, x: T(32, 32), out: pl.Out[T(32, 32)]) -> T(32, 32):
    h = x
    for _layer in pl.unroll(2):
        with pl.at(level=pl.Level.CORE_GROUP):
            h = pl.add(h, x)
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.mul(h, 1.0)
    return out
"""

# The order of the whole pipeline, with the deduplicator between outlining and lowering.
ORDER_TEXT = """
InlineFunctions UnrollLoops CtrlFlowTransform ConvertToSSA Simplify NormalizeStmtStructure
FlattenCallExpr OutlineHierarchyScopes OutlineIncoreScopes OutlineClusterScopes
DeduplicateOutlinedKernels ConvertTensorToTileOps OptimizeOrchTensors LowerCompositeOps FlattenTileNdTo2D
LegalizeTileCast AutoTileMatmulL0 CanonicalizeTileSlice InferTileMemorySpace InsertMxScaleAddr
ResolveBackendOpLayouts LowerAutoVectorSplit ExpandMixedKernel InjectGMPipeBuffer SplitVectorKernel
StampTfreeSplit NormalizeReturnOrder SkewCrossCorePipeline LowerPipelineToSlots LowerPipelineLoops
CanonicalizeIOOrder MaterializeTensorStrides InitMemRef MaterializeSemanticAliases MemoryReuse
AllocateMemoryAddr FoldNoOpReshape FuseCreateAssembleToSlice DeriveCallDirections
AutoDeriveTaskDependencies ExpandManualPhaseFence SynthesizeAllReduceSignals MaterializeCommDomainScopes
LowerHostTensorCollectives MaterializeDistTensorCtx Simplify MaterializeRuntimeScopes
ClassifyIterArgCarry InsertCommFence MaterializeValidShapeSymbols
"""
ORDER = re.split(r"\s+", ORDER_TEXT.strip())


def manager() -> PassManager:
    return PassManager.get_strategy()


def test_passes_are_in_pipeline_order() -> None:
    names = manager().pass_names
    remaining = iter(ORDER)
    assert all(name in remaining for name in names)  # each is found after the one before it
    assert names[:11] == ORDER[:11]
    assert manager().get_pass_names() == names == [each.get_name() for each in manager().passes]


def test_names_and_passes_cannot_be_set_and_managers_share_nothing() -> None:
    one = manager()
    for attribute in ("passes", "pass_names"):
        with pytest.raises(AttributeError):
            setattr(one, attribute, [])
    one.pass_names.append("x")
    assert "x" not in one.pass_names
    assert one.passes[0] is not manager().passes[0]
    assert one.strategy is OptimizationStrategy.Default and OptimizationStrategy.Default.value == "Default"


def test_an_unknown_strategy_is_rejected() -> None:
    with pytest.raises(ValueError, match="Unsupported optimization strategy: other"):
        PassManager("other")  # type: ignore[arg-type]


def test_factories_are_looked_up_when_the_manager_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, object]] = []

    def factory(**options: object) -> passes.Pass:
        seen.append(options)
        return passes.create_program_pass(lambda source: source, "Mine")

    monkeypatch.setattr(pass_manager.passes, "auto_derive_task_dependencies", factory)
    assert "Mine" in PassManager.get_strategy(analyze_auto_scopes_for_deps=True).pass_names
    assert seen == [{"analyze_auto_scopes": True}]


def test_a_manager_runs_only_under_the_planner_it_was_built_for() -> None:
    built = manager()
    with (
        PassContext([], memory_planner=MemoryPlanner.PTOAS),
        pytest.raises(RuntimeError, match=r"memory_planner .*MemoryPlanner.PTOAS.*MemoryPlanner.PYPTO"),
    ):
        built.run_passes(program(SOURCE))


def test_the_planner_decides_which_memory_passes_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("memory_reuse", "allocate_memory_addr"):
        made = passes.create_program_pass(lambda source: source, name)
        monkeypatch.setattr(pass_manager.passes, name, lambda made=made: made, raising=False)

    def listed(planner: MemoryPlanner) -> list[str]:
        with PassContext([], memory_planner=planner):
            return [n for n in manager().pass_names if n in ("memory_reuse", "allocate_memory_addr")]

    assert listed(MemoryPlanner.PYPTO) == ["memory_reuse", "allocate_memory_addr"]
    assert listed(MemoryPlanner.DSA_RP) == ["allocate_memory_addr"]
    assert listed(MemoryPlanner.PTOAS) == []


def test_dump_levels_are_coerced() -> None:
    assert coerce_dump_level(True) is PassDumpLevel.CONCISE and coerce_dump_level(False) is PassDumpLevel.NONE
    assert coerce_dump_level(PassDumpLevel.NONE) is PassDumpLevel.NONE
    assert coerce_dump_level(PassDumpLevel.EXPLICIT) is PassDumpLevel.EXPLICIT


def test_a_dump_holds_the_program_before_and_after_each_pass(tmp_path: Path) -> None:
    source, out = program(SOURCE), tmp_path / "deep" / "dump"
    seen: list[str] = []
    with PassContext([passes.CallbackInstrument(after_pass=lambda p, _: seen.append(p.get_name()))]):
        result = manager().run_passes(source, dump_ir=True, output_dir=out)
    expected = [
        "00_frontend.py",
        *(f"{k:02d}_after_{name}.py" for k, name in enumerate(manager().pass_names, 1)),
    ]
    assert sorted(path.name for path in out.iterdir()) == sorted(expected)
    assert seen == manager().pass_names
    for path in out.glob("*.py"):
        text = path.read_text()
        assert text.endswith("\n") and isinstance(pl.parse_program(text), ir.Program)
    ir.assert_structural_equal(result, manager().run_passes(source))


def test_a_dump_needs_a_directory_and_a_program(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="output_dir is required when dumping IR"):
        manager().run_passes(program(SOURCE), dump_ir=True)
    function = program(SOURCE).functions_["main"]
    with pytest.raises(ValueError, match="only Program input"):
        manager().run_passes(function, dump_ir=True, output_dir=tmp_path)  # type: ignore[arg-type]


def test_a_dump_runs_under_the_settings_of_the_active_context(tmp_path: Path) -> None:
    seen: list[PassContext] = []
    look = passes.CallbackInstrument(after_pass=lambda p, _: seen.append(PassContext.current()), name="Look")
    nothing = passes.DiagnosticCheckSet()
    settings = (
        passes.VerificationLevel.NONE,
        passes.DiagnosticPhase.POST_PASS,
        nothing,
        MemoryPlanner.DSA_RP,
        True,
        passes.RuntimeKind.HOST_BUILD_GRAPH,
    )
    with PassContext([look], *settings):
        manager().run_passes(program(SOURCE), dump_ir=True, output_dir=tmp_path)
    inner = seen[0]
    assert [each.get_name() for each in inner.get_instruments()] == ["Look", "IRDump"]
    assert inner.get_verification_level() is passes.VerificationLevel.NONE
    assert inner.get_diagnostic_phase() is passes.DiagnosticPhase.PRE_PIPELINE
    assert inner.get_disabled_diagnostics() == nothing
    assert inner.get_memory_planner() is MemoryPlanner.DSA_RP
    assert inner.get_enable_pypto_l0c_double_buffer() is True
    assert inner.get_runtime() is passes.RuntimeKind.HOST_BUILD_GRAPH


def test_dumps_written_before_a_failure_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(source: ir.Program) -> ir.Program:
        raise KeyError("stop")

    monkeypatch.setattr(
        pass_manager.passes, "unroll_loops", lambda: passes.create_program_pass(fail, "Fails")
    )
    with pytest.raises(KeyError):
        manager().run_passes(program(SOURCE), dump_ir=True, output_dir=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "00_frontend.py",
        "01_after_InlineFunctions.py",
    ]


def test_the_log_beside_a_dump_points_at_the_dumped_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    dump = tmp_path / "03_after_X.py"
    text = "class P:\n    not_u = 1\n    u: int = 2\n"
    known = warning("Rule", 1, "Unused variable 'u' in f", ir.Span.unknown())
    unknown = warning("Rule", 1, "Something else", ir.Span.unknown())
    write_warning_log(dump, text, [known, unknown])
    assert (tmp_path / "03_after_X.log").read_text() == (
        "03_after_X.py:3:5: warning: Unused variable 'u' in f [Rule]\n"
        " 3 |     u: int = 2\n"
        "   |     ^\n"
        "03_after_X.py: warning: Something else [Rule]\n"
    )


# --- profiling ---


def test_each_pass_is_a_stage_of_the_active_profiler(tmp_path: Path) -> None:
    source = program(SOURCE)
    with CompileProfiler() as profiler, profiler.stage("passes") as stage:
        manager().run_passes(source)
        manager().run_passes(source, dump_ir=True, output_dir=tmp_path)
    assert [child.name for child in stage.children] == manager().pass_names * 2


def test_profiler_reports(tmp_path: Path) -> None:
    profiler = CompileProfiler()
    profiler.add_stage_record(StageRecord("compile", 0.0, 2.0, [StageRecord("parse", 0.0, 0.0005)]))
    assert profiler.summary().splitlines() == [
        "PyPTO Compile Profile",
        "=" * 22,
        "Total: 2.000s",
        "",
        "  " + "compile".ljust(28) + "    2.000s  (100.0%)",
        "    " + "parse".ljust(28) + "   500.0us  (0.0%)",
    ]
    profiler.write_report(tmp_path / "report")
    assert (tmp_path / "report" / "pipeline_profile.json").read_text().endswith("}\n")
    assert profiler.to_dict()["stages"][0]["children"] == [
        {"name": "parse", "seconds": 0.0005, "children": []}
    ]


def test_the_environment_turns_on_one_profiler_for_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYPTO_COMPILE_PROFILING", raising=False)
    assert get_active_profiler() is None
    monkeypatch.setenv("PYPTO_COMPILE_PROFILING", "yes")
    assert get_active_profiler() is get_active_profiler() is not None
    with CompileProfiler() as inner:
        assert get_active_profiler() is inner is CompileProfiler.current()


def test_front_half_of_the_pipeline_verifies_every_declared_property() -> None:
    """Each produced property that has a verifier holds after its pass."""
    current = program(SOURCE)
    for each in manager().passes:
        current = each(current)
        found = passes.PropertyVerifierRegistry.verify(each.get_produced_properties(), current)
        errors = [d for d in found if d.severity is passes.DiagnosticSeverity.Error]
        assert errors == [], (each.get_name(), errors)


def test_a_kernel_that_mixes_matrix_and_vector_work_is_verified_around_every_pass() -> None:
    """Nothing here splits such a kernel or flattens its tiles, so nobody may ask whether somebody did."""
    mixed = pl.parse_program("""
import pypto.language as pl

@pl.program
class P:
    @pl.function
    def main(self, x: pl.Tensor[[2, 64, 64], pl.FP32], y: pl.Tensor[[64, 64], pl.FP32],
             o: pl.Out[pl.Tensor[[64, 64], pl.FP32]], p: pl.Out[pl.Tensor[[2, 64, 64], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            o = pl.assemble(o, pl.add(pl.matmul(y, y), y), [0, 0])
            p = pl.assemble(p, pl.add(x, x), [0, 0, 0])
        return o, p
""")
    both = passes.VerificationInstrument(passes.VerificationMode.BEFORE_AND_AFTER)
    with PassContext([both]):
        result = PassManager.get_strategy().run_passes(mixed)
    required = passes.expand_mixed_kernel().get_required_properties()
    assert required.contains(passes.IRProperty.TileMemoryInferred)
    found = passes.PropertyVerifierRegistry.verify(required, result)
    assert {each.rule_name for each in found} >= {"TileMemoryInferred"}
