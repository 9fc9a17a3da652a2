"""From a `RunConfig` to the options of `ir.compile`, and to the context in which passes run."""

from __future__ import annotations

import dataclasses
from typing import Any

from pypto import ir
from pypto.backend import backend_of_platform, set_backend_type
from pypto.passes.context import MemoryPlanner, PassContext, derived_context
from pypto.passes.instruments import ReportInstrument
from pypto.passes.manager import PassManager
from pypto.runtime.run_config import RunConfig

_DEFAULT = RunConfig()


def checked_config(config: Any) -> RunConfig | None:
    """Raises `TypeError` for anything but a `RunConfig` or None."""
    if config is None or isinstance(config, RunConfig):
        return config
    raise TypeError(f"config must be a RunConfig, got {type(config).__name__}")


def compile_options(config: Any) -> dict[str, Any]:
    """The keyword arguments of `ir.compile` that a config stands for."""
    config = checked_config(config)
    if config is None:
        return {"platform": _DEFAULT.platform}
    options = {
        "strategy": config.strategy,
        "platform": config.platform,
        "dump_passes": config.dump_passes,
        "dump_ptoas_passes": config.dump_ptoas_passes,
        "profiling": config.compile_profiling,
        "analyze_auto_scopes_for_deps": config.analyze_auto_scopes_for_deps,
        "diagnostic_phase": config.diagnostic_phase,
        "disabled_diagnostics": config.disabled_diagnostics,
        "memory_planner": config.memory_planner,
        "output_dir": config.save_kernels_dir,
        "distributed_config": config.distributed_config,
    }
    return {name: value for name, value in options.items() if value is not None}


def key_of_config(config: Any) -> tuple[Any, ...]:
    """What of the options another compiled program is needed for."""
    config = checked_config(config) or _DEFAULT
    active = PassContext.current()
    planner = config.memory_planner
    runtime = double_buffer = None
    if active is not None:
        planner = planner or active.get_memory_planner()
        double_buffer = active.get_enable_pypto_l0c_double_buffer()
        runtime = active.get_runtime()
    distributed = config.distributed_config
    return (
        config.platform,
        config.strategy,
        config.analyze_auto_scopes_for_deps,
        config.dump_ptoas_passes,
        None if distributed is None else repr(dataclasses.asdict(distributed)),
        planner or MemoryPlanner.PYPTO,
        double_buffer,
        runtime,
    )


def lower_program(program: ir.Program, config: Any) -> ir.Program:
    """Run the passes in the active context, or in one made from the config.

    Raises `RuntimeError` when the config sets what an active context already decides.
    """
    config = checked_config(config) or _DEFAULT
    settings = {
        "memory_planner": config.memory_planner,
        "diagnostic_phase": config.diagnostic_phase,
        "disabled_diagnostics": config.disabled_diagnostics,
    }
    given = {name: value for name, value in settings.items() if value is not None}
    active = PassContext.current()
    if active is not None and given:
        raise RuntimeError(
            f"lower() was called with {', '.join(given)} while a PassContext is already active"
        )
    set_backend_type(backend_of_platform(config.platform))
    manager = PassManager.get_strategy(
        config.strategy, analyze_auto_scopes_for_deps=config.analyze_auto_scopes_for_deps
    )
    instruments = [] if active is None else active.get_instruments()
    silent = [each for each in instruments if not isinstance(each, ReportInstrument)]  # nothing is written
    with derived_context(silent, **given):
        return manager.run_passes(program)
