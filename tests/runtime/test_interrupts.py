"""Ctrl-C ends a run that would go on for ever, wherever it is; the process can run programs afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

LIMIT_S = 3.0  # a second on a machine that does nothing else

PROGRAM = """
import os, signal, sys, threading, time
import numpy as np
import pypto.language as pl
from pypto import ir

INTS = pl.Tensor[[16], pl.INT32]

@pl.program
class Endless:
    @pl.function(type=pl.FunctionType.InCore)
    def count(self, x: INTS, n: pl.Scalar[pl.INT64], res: pl.InOut[INTS]) -> INTS:
        for i in pl.range(n):
            pl.write(res, [0], pl.read(res, [0]) * pl.const(3, pl.INT32) + pl.read(x, [0]))
        return res

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: INTS, loops: pl.Scalar[pl.INT64], tasks: pl.Scalar[pl.INT64], steps: pl.Scalar[pl.INT64],
        out: pl.InOut[INTS],
    ) -> INTS:
        left: pl.Scalar[pl.INT64] = loops
        while left > 0:
            left = left + loops - loops
        for i in pl.range(tasks):
            out = self.count(x, steps, out)
        return out

FOR_EVER = 1 << 60
kind, target = sys.argv[1:]
compiled = ir.compile(Endless, target, dump_passes=False)
x, out = np.ones(16, np.int32), np.zeros(16, np.int32)
endless = {
    "loop": (FOR_EVER, 0, 0), "tasks": (0, FOR_EVER, 1), "kernel": (0, 1, FOR_EVER)
}[kind.split("-")[0]]

def run_once():
    out[:] = 0
    compiled(x, 0, 2, 1, out)
    assert out[0] == 4, out

run_once()
if kind.endswith("-daemon"):
    threading.Thread(target=compiled, args=(x, *endless, out), daemon=True).start()
    time.sleep(0.3)
    print("leaving")
    sys.exit()
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets its background jobs ignore it
before = signal.getsignal(signal.SIGINT)
for _ in range(2):
    sent = []
    def send():
        time.sleep(0.3)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)
    thread = threading.Thread(target=send)
    thread.start()
    try:
        compiled(x, *endless, out)
    except KeyboardInterrupt:
        print(f"interrupted after {time.monotonic() - sent[0]:.3f} s")
    thread.join()
    assert signal.getsignal(signal.SIGINT) is before
    run_once()
"""


def run(kind: str, folder: Path, workers: int) -> str:
    script = folder / "endless.py"
    script.write_text(PROGRAM)
    words = [sys.executable, str(script), kind, str(folder / "build")]
    environment = {**os.environ, "PYPTO_WORKERS": str(workers)}
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(("kind", "workers"), [("loop", 2), ("tasks", 2), ("kernel", 1), ("kernel", 2)])
def test_control_c_ends_a_run_within_a_second(kind: str, workers: int, tmp_path: Path) -> None:
    lines = run(kind, tmp_path, workers).splitlines()
    assert len(lines) == 2
    assert all(float(line.split()[2]) < LIMIT_S for line in lines), lines


def test_a_process_ends_while_a_daemon_thread_runs_an_endless_program(tmp_path: Path) -> None:
    assert run("kernel-daemon", tmp_path, 2) == "leaving\n"
