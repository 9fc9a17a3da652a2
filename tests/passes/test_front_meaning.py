"""Front-end passes keep the meaning of random programs, and the promises they declare."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import pypto.language as pl
from pypto import ir, passes
from pypto.testing.interpreter import OutOfSteps, run
from tests.passes.dsl import assert_round_trips
from tests.passes.random_inline_programs import STARTS, Writer
from tests.passes.random_scalar_programs import scalar_programs

FRONT = (
    passes.unroll_loops,
    passes.ctrl_flow_transform,
    passes.convert_to_ssa,
    passes.simplify,
    passes.normalize_stmt_structure,
    passes.flatten_call_expr,
)
ARGUMENTS = [(0, 0), (3, 1), (2, 7)]

slow = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def results(program: ir.Program) -> list[list[int]]:
    return [run(program, "main", *args) for args in ARGUMENTS]


def expected_results(program: ir.Program) -> list[list[int]]:
    try:
        return results(program)
    except OutOfSteps:
        assume(False)
        raise


@slow
@given(scalar_programs())
def test_front_passes_keep_the_results_of_random_kernels(program: ir.Program) -> None:
    expected = expected_results(program)
    for factory in FRONT:
        one_pass = factory()
        program = one_pass(program)
        assert results(program) == expected, one_pass.get_name()
        produced = one_pass.get_produced_properties()
        assert passes.PropertyVerifierRegistry.verify(produced, program) == [], one_pass.get_name()
    structural = passes.get_structural_properties()
    assert passes.PropertyVerifierRegistry.verify(structural, program) == []


@pytest.mark.parametrize("seed", range(24))
def test_front_passes_keep_the_results_of_random_kernels_with_inline_helpers(seed: int) -> None:
    writer = Writer(seed)
    program = pl.parse_program(writer.text())
    for factory in (passes.inline_functions, *FRONT):
        program = factory()(program)
        for start in (0, 5):
            memories = [np.array(values, np.int32) for values in STARTS]
            returned = run(program, "main", *memories, start)
            wanted, held = writer.expected(start)
            assert [*map(int, returned)] == wanted, factory.__name__
            assert [each.tolist() for each in memories] == held, factory.__name__


@slow
@given(scalar_programs())
def test_control_flow_lowering_leaves_no_escape(program: ir.Program) -> None:
    lowered = passes.ctrl_flow_transform()(program)
    found = passes.PropertyVerifierRegistry.verify(
        passes.ctrl_flow_transform().get_produced_properties(), lowered
    )
    assert found == []
    assert passes.ctrl_flow_transform()(lowered) is lowered


@slow
@given(scalar_programs(scopes=False))
def test_the_text_after_each_front_pass_reads_back_as_the_same_program(program: ir.Program) -> None:
    program = pl.parse_program(passes.normalize_stmt_structure()(program).as_python(format=False))
    for factory in FRONT:
        program = factory()(program)
        assert_round_trips(program)


@slow
@given(scalar_programs(kernel=False))
def test_simplify_is_sound_before_ssa_form(program: ir.Program) -> None:
    expected = expected_results(program)
    assert results(passes.simplify()(program)) == expected


@slow
@given(scalar_programs(kernel=False))
def test_ssa_conversion_of_ssa_input_keeps_the_structure(program: ir.Program) -> None:
    once = passes.convert_to_ssa()(program)
    ir.assert_structural_equal(passes.convert_to_ssa()(once), once)


@slow
@given(scalar_programs(), st.integers(0, 3), st.integers(0, 3))
def test_simplify_twice_keeps_the_results(program: ir.Program, p: int, q: int) -> None:
    try:
        expected = run(program, "main", p, q)
    except OutOfSteps:
        assume(False)
    for factory in (passes.ctrl_flow_transform, passes.convert_to_ssa, passes.simplify, passes.simplify):
        program = factory()(program)
    assert run(program, "main", p, q) == expected
