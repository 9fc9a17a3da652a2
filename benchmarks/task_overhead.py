"""Cost of a task: empty kernels in chains, fan-outs and other graphs, beside OpenMP tasks in the same run.

    python benchmarks/task_overhead.py [--tasks 1000000] [--workers 2] [--rounds 3]

Prints microseconds per task (best of the rounds), the peak memory that a graph added, and the ratio to OpenMP
where the compiler has it. Ends with status 1 when the chain takes more than 1.5 microseconds per task.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from pypto.backend.toolchain import CodeKind
from pypto.runtime import build
from pypto.runtime.build import CompileJob
from pypto.runtime.native_runtime import (
    NativeKernel,
    NativeProgram,
    RunOptions,
    pack_layout,
    pack_options,
)

NATIVE = Path(__file__).parent / "native"
SHAPES = ("chain", "fan-out", "independent", "windows", "temporaries")
CHAIN_LIMIT_US = 1.5


def load_program() -> NativeProgram:
    """The orchestration that submits empty kernels."""
    orchestration, kernel = build.compile_jobs(
        [
            CompileJob(CodeKind.ORCHESTRATION, NATIVE / "overhead.cpp", "overhead orchestration"),
            CompileJob(CodeKind.EXTERNAL_KERNEL, NATIVE / "empty_kernel.cpp", "empty kernel"),
        ],
        with_runtime=True,
    )
    names = ("aicpu_orchestration_entry", "aicpu_orchestration_config")
    return NativeProgram(orchestration, *names, [NativeKernel(0, "empty", False, kernel)])


def load_openmp() -> ctypes.CDLL | None:
    """The comparison, or None when the compiler has no OpenMP."""
    identity = build.compiler()
    folder = tempfile.mkdtemp(prefix="pypto-openmp-")
    library = Path(folder) / "openmp.so"
    words = [*identity.command, "-O2", "-fopenmp", "-fPIC", "-shared", str(NATIVE / "openmp_tasks.cpp")]
    done = subprocess.run([*words, "-o", str(library)], capture_output=True, check=False)
    if done.returncode != 0:
        return None
    try:
        loaded = ctypes.CDLL(str(library))
    except OSError:
        return None
    for name in ("openmp_chain", "openmp_fan_out"):
        getattr(loaded, name).argtypes = [ctypes.c_int64, ctypes.c_int]
    return loaded


def best_us(action: Callable[[], object], tasks: int, rounds: int) -> float:
    """Microseconds per task, best of the rounds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times) / tasks * 1e6


def peak_mb() -> float:
    """Peak resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> int:
    """Measure every shape and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    program = load_program()
    openmp = load_openmp()
    tensor = np.zeros(16_000, np.float32)
    layout = pack_layout(tensor.shape, 0, 4)
    options = pack_options(RunOptions(given.workers))

    def run(tasks: int, shape: int) -> None:
        program.run(layout, [tensor.ctypes.data], [tasks, shape], options)

    for shape in range(len(SHAPES)):
        run(1000, shape)
    print(f"{given.tasks} tasks, {given.workers} workers\n")
    print(f"{'graph':12s} {'us per task':>12s} {'memory MB':>10s} {'OpenMP us':>10s} {'ratio':>6s}")
    chain = 0.0
    for shape, name in enumerate(SHAPES):
        before = peak_mb()
        cost = best_us(lambda shape=shape: run(given.tasks, shape), given.tasks, given.rounds)
        line = f"{name:12s} {cost:12.3f} {peak_mb() - before:10.1f}"
        if shape == 0:
            chain = cost
        function = getattr(openmp, f"openmp_{name.replace('-', '_')}", None) if openmp is not None else None
        if function is not None:
            other = best_us(lambda f=function: f(given.tasks, given.workers), given.tasks, given.rounds)
            line += f" {other:10.3f} {cost / other:6.2f}"
        print(line)
    single = best_us(lambda: run(1, 0), 1, 2000)
    print(f"\ncall of one task: {single:.2f} us")
    return 0 if chain <= CHAIN_LIMIT_US else 1


if __name__ == "__main__":
    sys.exit(main())
