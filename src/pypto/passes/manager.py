"""PassManager: the default pass list, its run, and dumps of the program after each pass.

`_ORDER` is the order of the whole pipeline. A pass that this compiler does not have (some only serve the
memory of a device) has no factory in `pypto.passes` and is left out. The factories are looked up when a
manager is built.

The names of the pipeline are those that users know. A step that only this compiler needs runs as the first
part of the pass it prepares (`_PREPARED_BY`).
"""

from __future__ import annotations

import enum
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto import ir, passes
from pypto.compile_profiling import CompileProfiler, StageRecord, get_active_profiler
from pypto.ir.printer import python_print
from pypto.passes.base import Pass, prepared_by
from pypto.passes.context import (
    DiagnosticPhase,
    MemoryPlanner,
    PassContext,
    derived_context,
    get_default_diagnostic_phase,
)
from pypto.passes.diagnostics import (
    DiagnosticCheckRegistry,
    DiagnosticSeverity,
    enabled_checks,
)
from pypto.passes.dump_log import write_warning_log
from pypto.passes.instruments import CallbackInstrument, PassInstrument
from pypto.passes.pipeline import PassPipeline

_ORDER = (
    "inline_functions",
    "unroll_loops",
    "ctrl_flow_transform",
    "convert_to_ssa",
    "simplify",
    "normalize_stmt_structure",
    "flatten_call_expr",
    "outline_hierarchy_scopes",
    "outline_incore_scopes",
    "outline_cluster_scopes",
    "deduplicate_outlined_kernels",
    "convert_tensor_to_tile_ops",
    "optimize_orch_tensors",
    "lower_composite_ops",
    "flatten_tile_nd_to_2d",
    "legalize_tile_cast",
    "auto_tile_matmul_l0",
    "canonicalize_tile_slice",
    "infer_tile_memory_space",
    "insert_mx_scale_addr",
    "resolve_backend_op_layouts",
    "lower_auto_vector_split",
    "expand_mixed_kernel",
    "inject_gm_pipe_buffer",
    "split_vector_kernel",
    "stamp_tfree_split",
    "normalize_return_order",
    "skew_cross_core_pipeline",
    "lower_pipeline_to_slots",
    "lower_pipeline_loops",
    "canonicalize_io_order",
    "materialize_tensor_strides",
    "init_mem_ref",
    "materialize_semantic_aliases",
    "memory_reuse",
    "allocate_memory_addr",
    "fold_no_op_reshape",
    "fuse_create_assemble_to_slice",
    "derive_call_directions",
    "auto_derive_task_dependencies",
    "expand_manual_phase_fence",
    "synthesize_allreduce_signals",
    "materialize_comm_domain_scopes",
    "lower_host_tensor_collectives",
    "materialize_dist_tensor_ctx",
    "simplify",
    "materialize_runtime_scopes",
    "classify_iter_arg_carry",
    "insert_comm_fence",
    "materialize_valid_shape_symbols",
)

_PREPARED_BY = {
    "expand_mixed_kernel": "inline_orchestrations",
    "derive_call_directions": "materialize_assemble_copies",
}

_DROPPED_BY_PLANNER = {
    MemoryPlanner.PYPTO: frozenset[str](),
    MemoryPlanner.DSA_RP: frozenset({"memory_reuse"}),
    MemoryPlanner.PTOAS: frozenset({"memory_reuse", "allocate_memory_addr"}),
}


class OptimizationStrategy(enum.Enum):
    """Which passes a manager runs."""

    Default = "Default"


class PassDumpLevel(enum.Enum):
    """How much a dump shows. Every member is truthy; use `coerce_dump_level` for flags."""

    NONE = 0
    CONCISE = 1
    EXPLICIT = 2


def coerce_dump_level(level: PassDumpLevel | bool | None) -> PassDumpLevel:
    """Return a level as it is, CONCISE for anything else that is true, NONE for what is false."""
    if isinstance(level, PassDumpLevel):
        return level
    return PassDumpLevel.CONCISE if level else PassDumpLevel.NONE


class PassManager:
    """The passes of a strategy.

    Args:
        strategy: which passes to run.
        analyze_auto_scopes_for_deps: lets automatic task dependencies look into automatic scopes.
    """

    def __init__(self, strategy: OptimizationStrategy, *, analyze_auto_scopes_for_deps: bool = False) -> None:
        if strategy is not OptimizationStrategy.Default:
            raise ValueError(f"Unsupported optimization strategy: {strategy}")
        self.strategy = strategy
        self.analyze_auto_scopes_for_deps = analyze_auto_scopes_for_deps
        self._planner = _active_planner()
        self._passes = tuple(self._build())

    @classmethod
    def get_strategy(
        cls,
        strategy: OptimizationStrategy = OptimizationStrategy.Default,
        *,
        analyze_auto_scopes_for_deps: bool = False,
    ) -> PassManager:
        """Make the manager of a strategy."""
        return cls(strategy, analyze_auto_scopes_for_deps=analyze_auto_scopes_for_deps)

    def _build(self) -> list[Pass]:
        built: list[Pass] = []
        for factory_name in _ORDER:
            factory = getattr(passes, factory_name, None)
            if factory is None or factory_name in _DROPPED_BY_PLANNER[self._planner]:
                continue
            options: dict[str, Any] = {}
            if factory_name == "auto_derive_task_dependencies":
                options["analyze_auto_scopes"] = self.analyze_auto_scopes_for_deps
            made = factory(**options)
            preparation = _PREPARED_BY.get(factory_name)
            built.append(made if preparation is None else prepared_by(getattr(passes, preparation)(), made))
        return built

    @property
    def passes(self) -> tuple[Pass, ...]:
        """The passes in order."""
        return self._passes

    @property
    def pass_names(self) -> list[str]:
        """The names of the passes in order."""
        return [each.get_name() for each in self._passes]

    def get_pass_names(self) -> list[str]:
        """Return the names of the passes in order."""
        return self.pass_names

    def run_passes(
        self,
        input_ir: ir.Program,
        dump_ir: PassDumpLevel | bool = False,
        output_dir: str | os.PathLike[str] | None = None,
        prefix: str = "pl",
    ) -> ir.Program:
        """Run all passes in the active context.

        Args:
            input_ir: the program.
            dump_ir: write the program before the first and after each pass into `output_dir`.
            output_dir: where dumps go; created if missing.
            prefix: the name of the language module in the dumps.

        Raises:
            RuntimeError: the active context asks for another memory planner than the one at construction.
            ValueError: a dump without a directory, or of something that is not a Program.
            pypto.Error: verification failed. Dumps written until then stay.
        """
        active = _active_planner()
        if active is not self._planner:
            raise RuntimeError(
                f"memory_planner of the active PassContext is {active}, "
                f"but the PassManager was built for {self._planner}"
            )
        pipeline = PassPipeline()
        for each in self._passes:
            pipeline.add_pass(each)
        level = coerce_dump_level(dump_ir)
        added: list[PassInstrument] = []
        if level is not PassDumpLevel.NONE:
            dump = _start_dump(input_ir, level, output_dir, prefix)
            added.append(CallbackInstrument(after_pass=dump.after_pass, name="IRDump"))
        profiler = get_active_profiler()
        if profiler is not None:
            added.append(_profiling_instrument(profiler))
        if not added:
            return pipeline.run(input_ir)
        with _watching_context(added, is_dump=level is not PassDumpLevel.NONE):
            return pipeline.run(input_ir)


def _active_planner() -> MemoryPlanner:
    context = PassContext.current()
    return MemoryPlanner.PYPTO if context is None else context.get_memory_planner()


def _watching_context(added: list[PassInstrument], *, is_dump: bool) -> PassContext:
    """Make a context that is the active one plus some instruments."""
    outer = PassContext.current()
    instruments = added if outer is None else [*outer.get_instruments(), *added]
    phase = get_default_diagnostic_phase() if outer is None else outer.get_diagnostic_phase()
    if is_dump and phase is DiagnosticPhase.POST_PASS:
        phase = DiagnosticPhase.PRE_PIPELINE  # the dump runs the checks after each pass and writes a log
    return derived_context(instruments, diagnostic_phase=phase)


def _profiling_instrument(profiler: CompileProfiler) -> CallbackInstrument:
    """Make an instrument that records each pass as a stage of the profiler."""
    started: list[float] = []

    def before(pass_obj: Pass, program: ir.Program) -> None:
        started.append(time.perf_counter())

    def after(pass_obj: Pass, program: ir.Program) -> None:
        profiler.add_stage_record(StageRecord(pass_obj.get_name(), started.pop(), time.perf_counter()))

    return CallbackInstrument(before, after, name="PipelineProfiling")


@dataclass(slots=True)
class _Dump:
    """The running dump: where it goes, and how many passes it has seen."""

    directory: Path
    level: PassDumpLevel
    prefix: str
    count: int = 0

    def write(self, stem: str, program: ir.Program) -> str:
        text = python_print(program, prefix=self.prefix, explicit_layout=self.level is PassDumpLevel.EXPLICIT)
        text = text if text.endswith("\n") else text + "\n"
        (self.directory / f"{stem}.py").write_text(text, encoding="utf-8")
        return text

    def after_pass(self, pass_obj: Pass, program: ir.Program) -> None:
        self.count += 1
        stem = f"{self.count:02d}_after_{pass_obj.get_name()}"
        text = self.write(stem, program)
        found = DiagnosticCheckRegistry.run_checks(enabled_checks(), DiagnosticPhase.POST_PASS, program)
        warnings = [each for each in found if each.severity is DiagnosticSeverity.Warning]
        if warnings:
            write_warning_log(self.directory / f"{stem}.py", text, warnings)


def _start_dump(
    program: ir.Program,
    level: PassDumpLevel,
    output_dir: str | os.PathLike[str] | None,
    prefix: str,
) -> _Dump:
    if output_dir is None:
        raise ValueError("output_dir is required when dumping IR")
    if not isinstance(program, ir.Program):
        raise ValueError(f"dumping IR supports only Program input, got {type(program).__name__}")
    directory = Path(output_dir)
    directory.mkdir(parents=True, exist_ok=True)
    dump = _Dump(directory, level, prefix)
    dump.write("00_frontend", program)
    return dump
