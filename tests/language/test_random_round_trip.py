"""Random programs read back equal, before and after each front pass."""

from __future__ import annotations

import pytest

import pypto.language as pl
from pypto import ir, passes
from tests.language.random_programs import ProgramGenerator
from tests.language.test_round_trip import PIPELINE


def check(program: ir.Program, stage: str) -> None:
    text = program.as_python(format=False)
    try:
        again = pl.parse(text)
        ir.assert_structural_equal(program, again)
        assert again.as_python(format=False) == text
    except Exception as error:
        raise AssertionError(f"{stage}:\n{text}") from error


@pytest.mark.parametrize("seed", range(25))
def test_random_program_round_trips_after_every_front_pass(seed):
    source = ProgramGenerator(seed, statements=4).text()
    program = pl.parse_program(source)
    check(program, "parsed")
    for name in PIPELINE:
        program = getattr(passes, name)()(program)
        check(program, f"after {name}")
