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
