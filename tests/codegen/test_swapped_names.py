"""Swapping names inside a kernel, as Python does it."""

from __future__ import annotations

import numpy as np

import pypto.language as pl
from pypto import ir


@pl.program
class Swap:
    @pl.function
    def main(
        self,
        x: pl.Tensor[[8, 16], pl.FP32],
        y: pl.Tensor[[8, 16], pl.FP32],
        first: pl.Out[pl.Tensor[[8, 16], pl.FP32]],
        second: pl.Out[pl.Tensor[[8, 16], pl.FP32]],
    ) -> pl.Tensor[[8, 16], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP):
            for _ in pl.range(3):
                x, y = y, x
            first = pl.assemble(first, x, [0, 0])
            second = pl.assemble(second, y, [0, 0])
        return first


def test_names_swapped_in_a_loop_of_a_kernel_end_up_swapped(tmp_path):
    x = np.arange(128, dtype=np.float32).reshape(8, 16)
    y = -x
    first, second = np.zeros_like(x), np.zeros_like(x)
    ir.compile(Swap, tmp_path, dump_passes=False)(x, y, first, second)
    np.testing.assert_array_equal(first, y)
    np.testing.assert_array_equal(second, x)


@pl.program
class SwapInCluster:
    @pl.function
    def main(
        self,
        x: pl.Tensor[[8, 16], pl.FP32],
        y: pl.Tensor[[8, 16], pl.FP32],
        first: pl.Out[pl.Tensor[[8, 16], pl.FP32]],
        second: pl.Out[pl.Tensor[[8, 16], pl.FP32]],
    ) -> pl.Tensor[[8, 16], pl.FP32]:
        with pl.cluster():  # noqa: SIM117
            with pl.at(level=pl.Level.CORE_GROUP):
                for _ in pl.range(3):
                    x, y = y, x
        with pl.at(level=pl.Level.CORE_GROUP):
            first = pl.assemble(first, x, [0, 0])
            second = pl.assemble(second, y, [0, 0])
        return first


def test_names_swapped_in_a_cluster_are_swapped_for_later_kernels(tmp_path):
    x = np.arange(128, dtype=np.float32).reshape(8, 16)
    y = -x
    first, second = np.zeros_like(x), np.zeros_like(x)
    ir.compile(SwapInCluster, tmp_path, dump_passes=False)(x, y, first, second)
    np.testing.assert_array_equal(first, y)
    np.testing.assert_array_equal(second, x)
