"""Settings of compiling and running, as a user writes them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import InitVar, dataclass
from typing import Any

from pypto.backend import BackendType, backend_of_platform
from pypto.passes.manager import OptimizationStrategy
from pypto.runtime.native_runtime import RunOptions

_INT32_MAX = (1 << 31) - 1
_RING_COUNT = 4
_SWIMLANE_LEVELS = 4


def _is_power_of_two(n: int, least: int) -> bool:
    return n >= least and n & (n - 1) == 0


_RING_RULES: dict[str, tuple[str, Callable[[int], bool]]] = {
    "ring_task_window": ("a power of 2 >= 4", lambda n: _is_power_of_two(n, 4)),
    "ring_heap": ("a power of 2 >= 1024 (bytes per ring)", lambda n: _is_power_of_two(n, 1024)),
    "ring_dep_pool": ("in [4, INT32_MAX]", lambda n: 4 <= n <= _INT32_MAX),
}


@dataclass
class RunConfig:
    """How to compile and run. Only the constructor validates.

    `platform` names the target ("a2a3", "a2a3sim", "a5", "a5sim"; all run on the CPU) and decides
    `backend_type`. Settings that steer a device (`enable_pmu`, `aicpu_thread_num`, ring sizes) are checked
    and have no effect. The number of worker threads comes from the environment variable `PYPTO_WORKERS`, by
    default the cores.
    """

    platform: str = "a2a3sim"
    device_id: int = 0
    rtol: float = 1e-5
    atol: float = 1e-5
    strategy: OptimizationStrategy = OptimizationStrategy.Default
    backend_type: BackendType = BackendType.Ascend910B
    dump_passes: Any = False
    save_kernels: bool = False
    save_kernels_dir: str | None = None
    codegen_only: bool = False
    enable_chip_swimlane: int = 0
    enable_dump_args: int = 0
    enable_pmu: int = 0
    enable_dep_gen: bool = False
    enable_scope_stats: bool = False
    compile_profiling: bool = False
    diagnostic_phase: Any = None
    disabled_diagnostics: Any = None
    golden_data_dir: str | None = None
    aicpu_thread_num: int | None = None
    ring_task_window: int | list[int] | None = None
    ring_heap: int | list[int] | None = None
    ring_dep_pool: int | list[int] | None = None
    distributed_config: Any = None
    analyze_auto_scopes_for_deps: bool = False
    memory_planner: Any = None
    dump_ptoas_passes: bool = False
    enable_l2_swimlane: InitVar[int | None] = None

    def __post_init__(self, enable_l2_swimlane: int | None) -> None:
        self.backend_type = backend_of_platform(self.platform)
        if self.device_id < 0:
            raise ValueError(f"device_id must not be negative, got {self.device_id}")
        if enable_l2_swimlane is not None and not isinstance(enable_l2_swimlane, _ReadBack):
            if self.enable_chip_swimlane:
                raise ValueError("pass only enable_chip_swimlane, enable_l2_swimlane is its old name")
            _warn_of_old_name()
            self.enable_chip_swimlane = enable_l2_swimlane
        self.enable_chip_swimlane = _swimlane_level(self.enable_chip_swimlane)
        for name in _RING_RULES:
            setattr(self, name, _ring_setting(name, getattr(self, name)))
        if self.any_dfx_enabled():
            self.save_kernels = True

    def any_dfx_enabled(self) -> bool:
        """Whether a run writes diagnostics."""
        return bool(
            self.enable_chip_swimlane
            or self.enable_dump_args
            or self.enable_pmu
            or self.enable_dep_gen
            or self.enable_scope_stats
        )


class _ReadBack(int):
    """A level read under the old name; the constructor ignores it when `dataclasses.replace` hands it on."""


def _get_old_swimlane(config: RunConfig) -> int:
    return _ReadBack(config.enable_chip_swimlane)


def _set_old_swimlane(config: RunConfig, value: int) -> None:
    _warn_of_old_name()
    config.enable_chip_swimlane = value


# After the dataclass has made its constructor, whose keyword of this name is an InitVar.
setattr(RunConfig, "enable_l2_swimlane", property(_get_old_swimlane, _set_old_swimlane))  # noqa: B010


def _warn_of_old_name() -> None:
    warnings.warn("enable_l2_swimlane is now enable_chip_swimlane", DeprecationWarning, stacklevel=4)


def _swimlane_level(value: Any) -> int:
    if value is True:
        return _SWIMLANE_LEVELS
    if not isinstance(value, int):
        raise TypeError(f"enable_chip_swimlane must be an int or a bool, got {type(value).__name__}")
    if not 0 <= value <= _SWIMLANE_LEVELS:
        raise ValueError(f"enable_chip_swimlane takes a collection level in [0, 4], got {value}")
    return int(value)


def _ring_setting(name: str, value: Any) -> Any:
    text, accepts = _RING_RULES[name]
    if value is None:
        return None
    if isinstance(value, list | tuple):
        if len(value) != _RING_COUNT:
            raise ValueError(f"{name} must have exactly {_RING_COUNT} entries, got {len(value)}")
        for entry in value:
            if type(entry) is not int or (entry != 0 and not accepts(entry)):
                raise ValueError(f"{name} entries must be {text} (or 0 to keep default), got {entry!r}")
        return list(value)
    if type(value) is not int or not accepts(value):
        raise ValueError(f"{name} must be {text}, got {value!r}")
    return value


def run_options() -> RunOptions:
    """Settings of the task runtime from the environment.

    `PYPTO_WORKERS` threads run tasks (default: the cores), `PYPTO_TASK_WINDOW` tasks are in flight at most,
    `PYPTO_CHECKED=1` verifies accesses and poisons fresh buffers, `PYPTO_STALL_SECONDS` ends a run without
    progress.
    """
    environ = os.environ
    given = tuple(environ.get(name) for name in _ENVIRONMENT)
    found = _options.get(given)
    if found is None:
        found = _options[given] = _parse_options(dict(zip(_ENVIRONMENT, given, strict=True)))
    return found


_ENVIRONMENT = ("PYPTO_WORKERS", "PYPTO_TASK_WINDOW", "PYPTO_CHECKED", "PYPTO_STALL_SECONDS")
_options: dict[tuple[str | None, ...], RunOptions] = {}


def _parse_options(given: dict[str, str | None]) -> RunOptions:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return RunOptions(
        workers=_number(given, "PYPTO_WORKERS", cores, 1, 4096),
        task_window=_number(given, "PYPTO_TASK_WINDOW", 4096, 4, 1 << 22),
        checked=(given["PYPTO_CHECKED"] or "0") not in ("0", "false", "no"),
        stall_seconds=_number(given, "PYPTO_STALL_SECONDS", 0, 0, _INT32_MAX),
    )


def _number(given: dict[str, str | None], name: str, default: int, low: int, high: int) -> int:
    text = given[name]
    if not text:
        return default
    if not text.isdecimal() or not low <= int(text) <= high:
        raise ValueError(f"{name} must be a number in [{low}, {high}], got '{text}'")
    return int(text)
