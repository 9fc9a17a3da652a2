"""Compile-once store, task scheduler, callables: what turns generated C++ into results.

Importing this package needs no compiler and starts nothing; parts are loaded on first use.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from pypto.backend.toolchain import kernel_include_dir
from pypto.runtime.log_config import configure_log, log_level

_HOMES = {
    "BenchmarkStats": "bench",
    "ChipWorker": "worker",
    "CompiledProgram": "compiled_program",
    "DeviceTensor": "device_tensor",
    "DistributedCompiledProgram": "distributed",
    "DistributedRunHandle": "distributed",
    "DistributedWorker": "distributed",
    "RegistrationHandle": "worker",
    "RunConfig": "run_config",
    "RunResult": "runner",
    "ScalarSpec": "tensor_spec",
    "TensorSpec": "tensor_spec",
    "StackedDeviceTensor": "device_tensor",
    "Worker": "worker",
    "TraceInvocation": "spans",
    "TraceSpan": "spans",
    "benchmark": "bench",
    "compile_program": "compile",
    "compiler_runs": "build",
    "execute_compiled": "runner",
    "execute_distributed_compiled": "runner",
    "load_bundle": "bundle",
    "run": "runner",
    "CompileError": "build",
    "StoreError": "store",
    "write_bundle": "bundle",
}

__all__ = [*_HOMES, "configure_log", "ensure_pto_isa_root", "log_level", "pto_isa_include_dir"]


def pto_isa_include_dir() -> Path:
    """Where the headers are that hand-written kernels include."""
    return kernel_include_dir()


def ensure_pto_isa_root() -> str:
    """The folder that holds the kernel headers' include folder."""
    return str(kernel_include_dir().parent)


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'pypto.runtime' has no attribute '{name}'")
    value = getattr(importlib.import_module(f"pypto.runtime.{home}"), name)
    globals()[name] = value
    return value
