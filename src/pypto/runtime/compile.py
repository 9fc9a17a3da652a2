"""`ir.compile`: passes, code generation, files, and the compiled program.

Nothing is written before the arguments are known to be right. A directory that held another build is left
with the markers of this one only.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from pypto import ir
from pypto.backend import BackendType, backend_of_platform, set_backend_type, simulator_of
from pypto.codegen.artifact import remove_markers, write_artifact
from pypto.codegen.dispatch_check import check_argument_kinds, check_dispatches
from pypto.codegen.element_check import check_element_indices
from pypto.codegen.signature_check import check_signatures
from pypto.compile_profiling import CompileProfiler, get_active_profiler
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.ir.entry_points import host_entry
from pypto.passes.context import (
    PassContext,
    VerificationLevel,
    derived_context,
    get_default_verification_level,
)
from pypto.passes.instruments import PassInstrument, ReportInstrument, make_roundtrip_instrument
from pypto.passes.manager import OptimizationStrategy, PassDumpLevel, PassManager, coerce_dump_level
from pypto.passes.pipeline import PassPipeline
from pypto.runtime import artifact_cache, metadata
from pypto.runtime._binary_cache import binary_context_lock
from pypto.runtime.compiled_program import NEXT_LEVELS, CompiledProgram
from pypto.runtime.distributed.program import DistributedCompiledProgram, write_distributed_sidecar

_TEMPORARIES = (
    ".compiled_meta.json.tmp",
    ".distributed_meta.json.tmp",
    ".kernel_config.py.tmp",
    "orchestration/.*.tmp",
    "kernels/*/.*.tmp",
)


def compile(
    program: ir.Program,
    output_dir: Path | str | None = None,
    strategy: OptimizationStrategy = OptimizationStrategy.Default,
    dump_passes: Any = True,
    backend_type: BackendType = BackendType.Ascend910B,
    skip_ptoas: bool = False,
    verification_level: Any = None,
    diagnostic_phase: Any = None,
    disabled_diagnostics: Any = None,
    memory_planner: Any = None,
    enable_pypto_l0c_double_buffer: bool | None = None,
    profiling: bool = False,
    platform: str | None = None,
    distributed_config: Any = None,
    analyze_auto_scopes_for_deps: bool = False,
    emit_source_loc: bool | None = None,
    dump_ptoas_passes: bool = False,
    runtime: Any = None,
) -> CompiledProgram | DistributedCompiledProgram:
    """Lower `program`, generate its C++ into `output_dir`, and return it as a callable.

    Without `output_dir` a new directory is made under `PYPTO_PROG_BUILD_DIR` (default `build_output`).
    `platform` decides `backend_type` when given. `skip_ptoas`, `emit_source_loc` and `dump_ptoas_passes` have
    no effect on a CPU. The C++ is compiled when the program is loaded or first called.

    Raises `ValueError` for an unknown platform, `RuntimeError` for a setting that an active `PassContext`
    already decides, and whatever passes and code generation raise.
    """
    if not isinstance(program, ir.Program):
        raise TypeError(f"compile needs a Program, got {type(program).__name__}. {_remedy(program)}")
    backend = backend_of_platform(platform) if platform is not None else backend_type
    set_backend_type(backend)
    check_argument_kinds(program)
    check_signatures(program)
    check_element_indices(program)
    settings = {
        "verification_level": verification_level,
        "diagnostic_phase": diagnostic_phase,
        "disabled_diagnostics": disabled_diagnostics,
        "memory_planner": memory_planner,
        "enable_pypto_l0c_double_buffer": enable_pypto_l0c_double_buffer,
        "runtime": runtime,
    }
    given = {name: value for name, value in settings.items() if value is not None}
    _refuse_conflict(given)
    root = _make_output_dir(program.name, output_dir)
    chosen = platform or simulator_of(backend)
    context = _pass_context(root, given)
    watched = profiling or coerce_dump_level(dump_passes) is not PassDumpLevel.NONE
    steering = (strategy, backend, analyze_auto_scopes_for_deps)
    key = None if watched else artifact_cache.key_of(program, context, steering)
    known = artifact_cache.find(key) if key is not None else None
    lowered: ir.Program | None = None
    with _profile(root, profiling) as stage:
        with stage("passes"), context:
            if known is not None:
                PassPipeline().run(program)  # what is checked of every input, and its warnings
            else:
                manager = PassManager.get_strategy(
                    strategy, analyze_auto_scopes_for_deps=analyze_auto_scopes_for_deps
                )
                lowered = manager.run_passes(program, dump_ir=dump_passes, output_dir=root / "passes_dump")
                check_dispatches(lowered)
        with stage("codegen"), binary_context_lock(root):
            _clear_for_build(root)
            host = None if lowered is None else host_entry(lowered)
            if known is not None:
                known.write(root)
                functions = [program.functions_[name] for name in known.orchestrations]
            else:
                assert lowered is not None
                files = write_artifact(lowered, root)
                functions = _orchestrations(lowered)
                if key is not None and host is None:
                    artifact_cache.keep(key, program, root, files, [f.name for f in functions])
            signatures = _write_sidecars(program, functions, root, chosen, backend, alone=host is None)
            if lowered is not None and host is not None:
                config = distributed_config or DistributedConfig()
                return _distributed(program, lowered, host, root, chosen, backend, config)
    return CompiledProgram(program, root, backend_type=backend, platform=chosen, _signatures=signatures)


def compile_program(
    program: ir.Program,
    work_dir: Path | str,
    *,
    strategy: OptimizationStrategy = OptimizationStrategy.Default,
    backend_type: BackendType = BackendType.Ascend910B,
    dump_passes: Any = False,
    dump_ptoas_passes: bool = False,
    diagnostic_phase: Any = None,
    disabled_diagnostics: Any = None,
    profiling: bool = False,
    analyze_auto_scopes_for_deps: bool = False,
    memory_planner: Any = None,
    enable_pypto_l0c_double_buffer: bool | None = None,
) -> None:
    """Compile into `work_dir`; see `compile`."""
    compile(
        program,
        work_dir,
        strategy=strategy,
        backend_type=backend_type,
        dump_passes=dump_passes,
        dump_ptoas_passes=dump_ptoas_passes,
        diagnostic_phase=diagnostic_phase,
        disabled_diagnostics=disabled_diagnostics,
        profiling=profiling,
        analyze_auto_scopes_for_deps=analyze_auto_scopes_for_deps,
        memory_planner=memory_planner,
        enable_pypto_l0c_double_buffer=enable_pypto_l0c_double_buffer,
    )


def _refuse_conflict(given: dict[str, Any]) -> None:
    if given and PassContext.current() is not None:
        names = ", ".join(given)
        raise RuntimeError(f"compile() was called with {names} while a PassContext is already active")


def _pass_context(root: Path, given: dict[str, Any]) -> PassContext:
    """The context of this compile: settings of the active one, or the given ones; reports go to `report/`."""
    report = ReportInstrument(str(root / "report"))
    active = PassContext.current()
    if active is None:
        instruments: list[PassInstrument] = [report]
        level = given.get("verification_level", get_default_verification_level())
    else:
        instruments = [*active.get_instruments(), report]
        level = active.get_verification_level()
    roundtrip = make_roundtrip_instrument()
    names = [each.get_name() for each in instruments]
    if level is VerificationLevel.ROUNDTRIP and roundtrip.get_name() not in names:
        instruments.append(roundtrip)
    return derived_context(instruments, **given)


@contextmanager
def _profile(root: Path, wanted: bool) -> Iterator[Callable[[str], AbstractContextManager[Any]]]:
    """Gives a function that records stages. An active profiler owns the record; else `report/` gets it."""
    active = get_active_profiler()
    if active is not None:
        yield active.stage
    elif wanted:
        with CompileProfiler() as profiler:
            yield profiler.stage
        profiler.write_report(root / "report")
    else:
        yield nullcontext


def _remedy(given: object) -> str:
    if hasattr(given, "lower") and callable(given):
        return "Call the jit function with its arguments, or use its compile(...)"
    return "Write it as a class under @pl.program; functions under @pl.jit compile themselves"


def _make_output_dir(name: str, chosen: Path | str | None) -> Path:
    parent = os.environ.get("PYPTO_PROG_BUILD_DIR") or "build_output"
    root = Path(parent if chosen is None else chosen)
    try:
        root.mkdir(parents=True, exist_ok=True)
        if not os.access(root, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(root))
        return root if chosen is not None else _new_output_dir(name, root)
    except OSError as error:
        raise type(error)(
            f"cannot write generated code into {root.absolute()}: {error}. "
            "Choose another folder with output_dir= (--output of the command), or set PYPTO_PROG_BUILD_DIR"
        ) from error


def _new_output_dir(name: str, parent: Path) -> Path:
    stem = f"{name}_{time.strftime('%Y%m%d_%H%M%S')}"
    for attempt in range(10_000):
        root = parent / (stem if attempt == 0 else f"{stem}_{attempt}")
        try:
            root.mkdir()
            return root
        except FileExistsError:
            continue
    raise FileExistsError(f"no free directory name for {stem} in {parent}")


def _clear_for_build(root: Path) -> None:
    """Remove the markers of another build, and what a killed compile has left half-written."""
    for folder in (root, *(root / NEXT_LEVELS).glob("*")):
        for pattern in _TEMPORARIES:
            for temporary in folder.glob(pattern):
                temporary.unlink(missing_ok=True)
        remove_markers(folder)


def _distributed(
    program: ir.Program,
    lowered: ir.Program,
    host: ir.Function,
    root: Path,
    platform: str,
    backend: BackendType,
    config: DistributedConfig,
) -> DistributedCompiledProgram:
    """Write the metadata of a program for several ranks, and make what the user holds of it."""
    signature = metadata.signature_of(program.get_function(host.name) or host)
    write_distributed_sidecar(root, signature, platform, backend, config)
    return DistributedCompiledProgram(
        lowered,
        root,
        backend_type=backend,
        platform=platform,
        distributed_config=config,
        _signature=signature,
    )


def _orchestrations(lowered: ir.Program) -> list[ir.Function]:
    return [f for f in lowered.functions_.values() if f.func_type is ir.FunctionType.Orchestration]


def _write_sidecars(
    program: ir.Program,
    functions: list[ir.Function],
    root: Path,
    platform: str,
    backend: BackendType,
    *,
    alone: bool,
) -> dict[str, metadata.CallSignature]:
    """Signatures by orchestration name, with the parameter names and directions that the user wrote."""
    from pypto.runtime.debug.run_script_writer import write_run_script  # its package needs this module

    signatures = {}
    for function in functions:
        written = program.get_function(function.name) or function
        signatures[function.name] = metadata.signature_of(written)
        folder = root if alone and len(functions) == 1 else root / NEXT_LEVELS / function.name
        metadata.write_sidecar(folder, signatures[function.name], platform, backend)
        if os.environ.get("PYPTO_EMIT_DEBUG_RUNNER", "").lower() not in ("0", "false", "no"):
            with suppress(OSError):  # a convenience; a compile never fails for it
                write_run_script(folder, signatures[function.name].params, platform=platform)
    return signatures
