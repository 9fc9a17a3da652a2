"""A fixed set of random programs keeps every property through all passes and on the CPU.

`benchmarks/soundness.py` runs as many as there is time for.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pypto.testing.checks import check_program, check_twins
from pypto.testing.compiled import check_compiled
from pypto.testing.programs import Generated, make_program, programs
from pypto.testing.programs.twins import MUTATIONS, make_twins


@pytest.mark.parametrize("seed", range(7000, 7020))
def test_every_property_holds_after_every_pass(seed: int) -> None:
    check_program(make_program(random.Random(seed), 3))


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(programs(max_statements=2), st.integers(0, 1000))
def test_numbers_and_text_survive_the_passes(generated: Generated, sample: int) -> None:
    check_program(generated, sample=sample)


@pytest.mark.parametrize("mutation", [None, *MUTATIONS])
def test_twins_are_merged_if_only_names_differ(mutation: str | None) -> None:
    for seed in range(8):
        check_twins(make_twins(random.Random(seed), mutation))


@pytest.mark.parametrize("seed", range(7100, 7103))
def test_compiled_programs_compute_what_numpy_computes(seed: int) -> None:
    check_compiled(make_program(random.Random(seed), 4))
