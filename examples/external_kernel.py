"""A kernel written in C++ beside generated ones, checked against numpy.

    python examples/external_kernel.py

The middle of three tasks is `external_kernel.cpp`, which smooths each row with a recursive filter. Its
function in the program is only a signature. It is compiled with the headers that pypto offers to kernels and
with the include folders that it names; when the file or a header that it includes changes, it is compiled
again.
"""

from __future__ import annotations

import sys
import tempfile

import numpy as np

import pypto.language as pl
from pypto import ir

ROWS, SAMPLES, POLE = 8, 256, 0.75
TOLERANCE = 1e-5


@pl.program
class Envelope:
    """Squares, smooths, and takes the root of what came out."""

    @pl.function(type=pl.FunctionType.InCore)
    def square(
        self, x: pl.Tensor[[ROWS, SAMPLES], pl.FP32], out: pl.Out[pl.Tensor[[ROWS, SAMPLES], pl.FP32]]
    ) -> pl.Tensor[[ROWS, SAMPLES], pl.FP32]:
        t = pl.load(x, [0, 0], [ROWS, SAMPLES])
        return pl.store(pl.mul(t, t), [0, 0], out)

    @pl.function(type=pl.FunctionType.AIV, external_source="external_kernel.cpp")
    def smooth(
        self,
        x: pl.Tensor[[ROWS, SAMPLES], pl.FP32],
        out: pl.Out[pl.Tensor[[ROWS, SAMPLES], pl.FP32]],
        pole: pl.Scalar[pl.FP32],
    ) -> pl.Tensor[[ROWS, SAMPLES], pl.FP32]:
        pl.func_attr({"external_include_dirs": '["external_kernel_include"]'})
        ...  # noqa: PIE790  (the language wants it)

    @pl.function(type=pl.FunctionType.InCore)
    def root(
        self, x: pl.Tensor[[ROWS, SAMPLES], pl.FP32], out: pl.Out[pl.Tensor[[ROWS, SAMPLES], pl.FP32]]
    ) -> pl.Tensor[[ROWS, SAMPLES], pl.FP32]:
        t = pl.load(x, [0, 0], [ROWS, SAMPLES])
        return pl.store(pl.sqrt(t), [0, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[ROWS, SAMPLES], pl.FP32],
        pole: pl.Scalar[pl.FP32],
        out: pl.Out[pl.Tensor[[ROWS, SAMPLES], pl.FP32]],
    ) -> pl.Tensor[[ROWS, SAMPLES], pl.FP32]:
        power = pl.create_tensor([ROWS, SAMPLES], dtype=pl.FP32)
        power = self.square(x, power)
        mean = pl.create_tensor([ROWS, SAMPLES], dtype=pl.FP32)
        mean = self.smooth(power, mean, pole)
        return self.root(mean, out)


def expected(x: np.ndarray, pole: float) -> dict[str, np.ndarray]:
    """The same in numpy, in double precision."""
    once, twice = np.zeros(len(x)), np.zeros(len(x))
    out = np.zeros(x.shape)
    for i, sample in enumerate(x.astype(np.float64).T):
        once = pole * once + (1 - pole) * sample**2
        twice = pole * twice + (1 - pole) * once
        out[:, i] = np.sqrt(twice)
    return {"out": out}


def main() -> int:
    x = np.random.default_rng(0).standard_normal((ROWS, SAMPLES), np.float32)
    with tempfile.TemporaryDirectory() as folder:
        result = ir.compile(Envelope, folder, dump_passes=False)(x, POLE)
    error = float(np.abs(result - expected(x, POLE)["out"]).max())
    print(f"largest error against numpy: {error:.2e}")
    return 0 if error <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
