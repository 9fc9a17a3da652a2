"""Yields and assignments in random nestings mean what Python means by them."""

from __future__ import annotations

import numpy as np
import pytest

import pypto.language as pl
from pypto import ir, passes
from pypto.testing.eager import run_text
from pypto.testing.interpreter import run
from tests.language.random_yields import random_program


@pytest.mark.parametrize("seed", range(24))
def test_yields_and_assignments_in_random_nestings_mean_what_python_means(seed: int) -> None:
    text = random_program(seed)
    arguments = [np.full((2, 16), value, np.float32) for value in (1, -2, 0)]
    wanted = [each.copy() for each in arguments]
    run_text(text, "P", wanted)
    program = pl.parse_program(text)
    ir.assert_structural_equal(pl.parse_program(program.as_python()), program)
    converted = passes.convert_to_ssa()(passes.unroll_loops()(program))
    run(converted, "main", *arguments)
    np.testing.assert_array_equal(arguments[2], wanted[2])
