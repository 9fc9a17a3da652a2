"""Run by a test: interrupts a distributed program whose ranks would compute for ever."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np

import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig


@pl.jit.incore
def add(x: pl.Tensor, n: pl.Scalar[pl.INT64], y: pl.InOut[pl.Tensor]):
    for _ in pl.range(n):
        pl.write(y, [0, 0], pl.read(x, [0, 0]) + pl.read(y, [0, 0]))
    return y


@pl.jit
def chip(x: pl.Tensor, n: pl.Scalar[pl.INT64], y: pl.InOut[pl.Tensor]):
    return add(x, n, y)


@pl.jit.host
def host(x: pl.Tensor, n: pl.Scalar[pl.INT64], y: pl.InOut[pl.Tensor]):
    for r in pl.range(pld.world_size()):
        chip(x[r], n, y[r], device=r)


def main() -> None:
    x, y = np.ones((2, 8, 8), np.float32), np.zeros((2, 8, 8), np.float32)
    config = RunConfig(distributed_config=DistributedConfig(device_ids=[0, 1]))
    endless = host.compile(x, 1 << 60, y, config=config)
    for part in endless.chips.values():
        part.load()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets its background jobs ignore it
    sent = []

    def send() -> None:
        time.sleep(0.3)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=send).start()
    try:
        endless(x, 1 << 60, y)
    except KeyboardInterrupt:
        print(f"interrupted after {time.monotonic() - sent[0]:.3f} s")
    y[:] = 0
    host(x, 2, y, config=config)
    assert (y[:, 0, 0] == 2).all()


if __name__ == "__main__":
    main()
