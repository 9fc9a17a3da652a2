"""Random programs mean the same before and after lowering."""

from __future__ import annotations

import pytest

import pypto.language as pl

from .program_maker import COLUMNS, ROWS, make_program
from .stages import check_meaning, random_args

FULL = (ROWS, COLUMNS)


@pytest.mark.parametrize("seed", range(30))
def test_random_program_keeps_its_meaning(seed: int):
    program = pl.parse_program(make_program(seed))
    for n in (0, 2):
        check_meaning(program, random_args(FULL, FULL, n, FULL, FULL, seed=seed))
