"""Running programs and build directories in one call, and the option bundles of such runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from pypto import ir
from pypto.runtime import metadata
from pypto.runtime.arguments import bind_as_given
from pypto.runtime.assemble import compile_and_assemble
from pypto.runtime.compile import compile
from pypto.runtime.compiled_program import CompiledProgram
from pypto.runtime.device_runner import execute
from pypto.runtime.distributed import DistributedCompiledProgram
from pypto.runtime.run_config import RunConfig
from pypto.runtime.worker import ChipWorker

__all__ = ["RunConfig", "RunResult", "_DfxOpts", "execute_compiled", "execute_distributed_compiled", "run"]


@dataclass(frozen=True)
class _DfxOpts:
    """Which diagnostics a run writes."""

    enable_chip_swimlane: int = 0
    enable_dump_args: int = 0
    enable_pmu: int = 0
    enable_dep_gen: bool = False
    enable_scope_stats: bool = False

    def any(self) -> bool:
        return any(asdict(self).values())

    def apply(self, config: RunConfig) -> RunConfig:
        """`config` with these diagnostics."""
        return replace(config, **asdict(self))

    @classmethod
    def from_run_config(cls, config: RunConfig) -> _DfxOpts:
        return cls(**{each.name: getattr(config, each.name) for each in fields(cls)})


@dataclass
class RunResult:
    """How a test run of a harness ended."""

    passed: bool
    test_name: str | None = None
    error: str | None = None
    execution_time: float | None = None
    profile: Any = None

    def __str__(self) -> str:
        parts = ["PASS" if self.passed else "FAIL"]
        if self.test_name:
            parts.append(self.test_name)
        if self.execution_time is not None:
            parts.append(f"({self.execution_time:.3f} s)")
        return " ".join(parts) + (f": {self.error}" if self.error else "")


def run(program: ir.Program, *tensors: Any, config: RunConfig | None = None) -> CompiledProgram:
    """Compile with `config`, and run in place when tensors are given and `codegen_only` is off."""
    settings = config or RunConfig()
    compiled = compile(
        program,
        settings.save_kernels_dir,
        strategy=settings.strategy,
        dump_passes=settings.dump_passes,
        platform=settings.platform,
        diagnostic_phase=settings.diagnostic_phase,
        disabled_diagnostics=settings.disabled_diagnostics,
        memory_planner=settings.memory_planner,
        profiling=settings.compile_profiling,
        distributed_config=settings.distributed_config,
        analyze_auto_scopes_for_deps=settings.analyze_auto_scopes_for_deps,
    )
    if tensors and not settings.codegen_only:
        compiled(*tensors, config=settings)
    return compiled


def execute_compiled(
    work_dir: Path | str,
    args: Sequence[Any],
    *,
    platform: str = "a2a3sim",
    device_id: int = 0,
    dfx: _DfxOpts = _DfxOpts(),
    level: int = 2,
    aicpu_thread_num: int | None = None,
    analyze_auto_scopes_for_deps: bool = False,
) -> None:
    """Run a build directory in place. Scalars may be Python numbers or ctypes values.

    A directory without metadata runs too; then the arguments are taken as they are, tensors before scalars.
    """
    if level != 2:
        raise ValueError(f"execute_compiled only supports level=2, got {level}")
    config = dfx.apply(RunConfig(platform=platform, device_id=device_id))
    root = Path(work_dir)
    if (root / metadata.SIDECAR).is_file():
        _run_in_place(CompiledProgram.from_dir(root, platform=platform), args, config)
        return
    chip, runtime_name, _ = compile_and_assemble(root, platform)
    worker = ChipWorker.current(level=level, platform=platform, device_id=device_id, runtime=runtime_name)
    execute(chip, bind_as_given(args, worker), config, root)


def execute_distributed_compiled(
    output_dir: Path | str,
    args: Sequence[Any],
    config: RunConfig | None = None,
    *,
    platform: str | None = None,
    distributed_config: Any = None,
) -> None:
    """Run a distributed build directory in place."""
    compiled = DistributedCompiledProgram.from_dir(
        output_dir, platform=platform, distributed_config=distributed_config
    )
    _run_in_place(compiled, args, config)


def _run_in_place(
    compiled: CompiledProgram | DistributedCompiledProgram, args: Sequence[Any], config: RunConfig | None
) -> None:
    """Run on all arguments: nobody gets the outputs that a call without them makes."""
    names = compiled.single().param_names
    if len(args) != len(names):
        raise TypeError(f"a build directory runs on {len(names)} arguments, got {len(args)}: {names}")
    compiled(*args, config=config)
