"""Kill a cold compile at random moments, then run again: right results, nothing left over.

    python benchmarks/kill_recovery.py [TIMES] [SEED]

Each round compiles and runs a decoder layer on an empty store in a process of its own, kills it (SIGKILL)
after a random part of the time that a whole run takes, and runs the same again. Ends with status 1 when a
second run fails, gives wrong numbers, or leaves temporary files that are older than itself.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUN = """
import sys
sys.path.insert(0, sys.argv[1])
import decoder, numpy as np
from pypto import ir
state = decoder.random_state(1)
want, want_k, want_v = decoder.reference(state, 1)
ir.compile(decoder.build(1), sys.argv[2], dump_passes=False)(*state.arguments())
for got, expected in ((state.out, want), (state.k_cache, want_k), (state.v_cache, want_v)):
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-3)
"""
EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def start(store: Path, out: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYPTO_CACHE_DIR": str(store)}
    command = [sys.executable, "-c", RUN, str(EXAMPLES), str(out)]
    return subprocess.Popen(
        command, env=environment, text=True, stderr=subprocess.PIPE, start_new_session=True
    )


def finish(process: subprocess.Popen[str]) -> str:
    """Wait for the end of a run; its error output when it failed, else nothing."""
    _, errors = process.communicate(timeout=600)
    return errors if process.returncode else ""


def kill_and_recover(after: float) -> str:
    """One round; what went wrong, or nothing."""
    with tempfile.TemporaryDirectory() as folder:
        store, out = Path(folder, "store"), Path(folder, "out")
        process = start(store, out)
        time.sleep(after)
        os.killpg(process.pid, signal.SIGKILL)  # the compilers it started as well
        process.communicate()
        begun = time.time()
        problem = finish(start(store, out))
        if problem:
            return problem
        files = [path for path in Path(folder).rglob("*") if path.is_file() and path.stat().st_mtime < begun]
        left = [str(path) for path in files if "tmp" in str(path.relative_to(folder))]
        return f"left over: {left}" if left else ""


def main() -> int:
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    moments = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else None)
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        problem = finish(start(Path(folder, "store"), Path(folder, "out")))
        whole = time.perf_counter() - started
    print(f"a whole cold run takes {whole:.2f} s {problem}")
    failures = 0
    for _ in range(times):
        after = moments.uniform(0.0, whole)
        problem = kill_and_recover(after)
        failures += bool(problem)
        print(f"killed after {after:.2f} s: {problem or 'recovered'}", flush=True)
    print(f"{times - failures} recovered, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
