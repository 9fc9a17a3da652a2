"""Registrations, compiler runs and compile times of programs of L equal layers, cold and warm.

    python benchmarks/registrations.py [1 2 4 ... 128]

Cold: an empty store that holds the task runtime only. Warm: the same program again, in a new process of the
compiler's caches as far as they are on disk. Ends with status 1 when a warm compile of the program with 64
layers takes more than 15 % of the cold one, or when compiler runs grow with the layers.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import compile_scaling

from pypto import ir
from pypto.runtime import build
from pypto.runtime.kernel_config import load_kernel_config

WARM_LIMIT = 0.15
LIMIT_LAYERS = 64


def compile_once(layers: int, store: str) -> dict[str, float]:
    """Compile in this process with `store`; seconds, compiler runs, codes and registrations."""
    os.environ["PYPTO_CACHE_DIR"] = store
    build.runtime_library()
    program = compile_scaling.load_decoder().build(layers)
    with tempfile.TemporaryDirectory() as output:
        runs, start = build.compiler_runs(), time.perf_counter()
        compiled = ir.compile(program, output, dump_passes=False)
        compiled.load()
        seconds = time.perf_counter() - start
        rows = load_kernel_config(Path(output)).kernels
    return {
        "seconds": seconds,
        "runs": build.compiler_runs() - runs,
        "codes": len({row.code_name for row in rows}),
        "rows": len(rows),
    }


def in_new_process(layers: int, store: str) -> dict[str, float]:
    """The same in a process of its own."""
    command = [sys.executable, __file__, "--one", str(layers), store]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("layers", nargs="*", type=int, default=[1, 2, 4, 8, 16, 32, 64, 128])
    parser.add_argument("--one", nargs=2, metavar=("LAYERS", "STORE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(compile_once(int(given.one[0]), given.one[1])))
        return 0
    failed = False
    all_runs = set()
    print("layers  cold s  warm s  warm/cold  compiler runs  codes  registrations")
    for layers in given.layers:
        with tempfile.TemporaryDirectory() as store:
            os.environ["PYPTO_CACHE_DIR"] = store
            build.runtime_library()
            cold, warm = in_new_process(layers, store), in_new_process(layers, store)
        share = warm["seconds"] / cold["seconds"]
        failed = failed or warm["runs"] > 0 or (layers == LIMIT_LAYERS and share > WARM_LIMIT)
        all_runs.add(cold["runs"])
        print(
            f"{layers:6d} {cold['seconds']:7.3f} {warm['seconds']:7.3f} {share:10.2f} {cold['runs']:14.0f} "
            f"{cold['codes']:6.0f} {cold['rows']:14.0f}"
        )
    return 1 if failed or len(all_runs) > 1 else 0


if __name__ == "__main__":
    sys.exit(main())
