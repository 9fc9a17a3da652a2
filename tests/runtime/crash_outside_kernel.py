"""Runs a task, then crashes outside of any kernel. A program of its own: it does not survive."""

from __future__ import annotations

import ctypes

import numpy as np

from pypto.runtime import build
from pypto.runtime.native_runtime import NativeKernel, NativeProgram
from tests.runtime.script import INOUT, NOTHING, Runner, Script, native_jobs

if __name__ == "__main__":
    orchestration, kernel = build.compile_jobs(native_jobs())
    names = ("aicpu_orchestration_entry", "aicpu_orchestration_config")
    program = NativeProgram(orchestration, *names, [NativeKernel(0, "kernel", False, kernel)])
    script = Script()
    script.submit(NOTHING, (INOUT, 0))
    Runner(program).run(script, np.zeros(1, np.uint32))
    print("ran", flush=True)
    ctypes.string_at(64)
