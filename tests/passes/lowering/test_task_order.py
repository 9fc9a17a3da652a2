"""The derived directions order every two tasks whose order matters."""

from __future__ import annotations

import numpy as np
import pytest

import pypto.language as pl
from pypto import ir
from pypto.testing.interpreter import run

from .program_maker import COLUMNS, ROWS, make_program
from .stages import TO_SSA, lowered, random_args, through

FULL = (ROWS, COLUMNS)


def check_order(program: ir.Program, make_args, orders: int) -> None:
    wanted = make_args()
    run(through(program, *TO_SSA), "main", *wanted)
    last = lowered(program)
    for seed in range(orders):
        args = make_args()
        run(last, "main", *args, order=seed)
        for position, (got, expected) in enumerate(zip(args, wanted, strict=True)):
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5, err_msg=f"argument {position}")


@pytest.mark.parametrize("seed", range(100, 125))
def test_random_program_runs_in_any_order_that_the_dependencies_allow(seed: int):
    program = pl.parse_program(make_program(seed))
    if lowered(program)["main"].func_type is ir.FunctionType.Orchestration:
        check_order(program, random_args(FULL, FULL, 2, FULL, FULL, seed=seed), orders=5)


def test_copies_in_a_parallel_loop_that_hands_its_buffer_on_are_ordered_before_the_next_writer():
    program = pl.parse_program(
        """
@pl.program
class P:
    @pl.function
    def main(
        self, x: pl.Tensor[[8, 16], pl.FP32], o: pl.InOut[pl.Tensor[[8, 16], pl.FP32]]
    ) -> pl.Tensor[[8, 16], pl.FP32]:
        for j in pl.parallel(2):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.add(pl.slice(o, [4, 16], [j * 4, 0]), 1.0)
            o = pl.assemble(o, t, [j * 4, 0])
        o = pl.assemble(o, x, [0, 0])
        return o
"""
    )
    check_order(program, random_args((8, 16), (8, 16)), orders=20)


def test_a_number_that_a_task_computes_is_known_before_the_task_runs():
    program = pl.parse_program(
        """
@pl.program
class P:
    @pl.function
    def main(
        self, x: pl.Tensor[[8, 16], pl.FP32], o: pl.InOut[pl.Tensor[[8, 16], pl.FP32]], n: pl.Scalar[pl.INDEX]
    ) -> pl.Tensor[[8, 16], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP):
            row = n * 2
            o = pl.assemble(o, pl.mul(x, 2.0), [0, 0])
        with pl.at(level=pl.Level.CORE_GROUP):
            o = pl.assemble(o, pl.slice(x, [4, 16], [0, 0]), [row, 0])
        return o
"""
    )
    check_order(program, random_args((8, 16), (8, 16), 2), orders=3)
