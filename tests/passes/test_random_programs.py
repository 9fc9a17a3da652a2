"""Outlining and deduplication keep the meaning, and the form, of random programs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pypto.language as pl
from pypto import ir, passes
from pypto.testing.interpreter import run
from tests.passes.dedup.programs import dedup
from tests.passes.dsl import program
from tests.passes.random_programs import programs

STEPS = (
    passes.convert_to_ssa,
    passes.normalize_stmt_structure,
    passes.flatten_call_expr,
    passes.outline_hierarchy_scopes,
    passes.outline_incore_scopes,
    passes.outline_cluster_scopes,
)
CHECKED = ("SSAForm", "UseAfterDef", "SplitIncoreOrch", "ClusterOutlined", "ManualDepsOnSubmitOnly")


def results(stage: ir.Program, *, flag: bool) -> list[np.ndarray]:
    """The storage after running `main` on arrays of small distinct integers, and what it returns."""
    x, y, o, p = (np.arange(64, dtype=np.float32).reshape(8, 8) * k + k for k in (1, 3, 5, 7))
    returned = run(stage, "main", x, y, o, p, flag)
    return [o, p, *returned]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs(), st.booleans())
def test_outlining_and_deduplication_keep_numbers_and_form(methods: str, flag: bool):
    stage = program(methods)
    stages = [stage := step()(stage) for step in STEPS]
    wanted = results(stages[2], flag=flag)
    shared = dedup(stages[-1])
    properties = passes.IRPropertySet()
    for name in CHECKED:
        properties.insert(passes.IRProperty[name])
    for after in (*stages[3:], shared):
        for got, want in zip(results(after, flag=flag), wanted, strict=True):
            np.testing.assert_array_equal(got, want)
        ir.assert_structural_equal(after, pl.parse_program(after.as_python(format=False)))
    passes.verify_properties(properties, shared, "deduplication")
    bodies = {name: f for name, f in shared.functions_.items() if f.func_type is ir.FunctionType.InCore}
    assert len(bodies) <= sum(f.func_type is ir.FunctionType.InCore for f in stages[-1].functions_.values())


@pytest.mark.parametrize("order", [1, -1])
def test_the_choice_of_the_canonical_depends_on_the_order_of_names_alone(order: int):
    """Renaming functions without changing their order changes nothing but the names."""
    kernel = """
    @incore
    def {name}(self, x: T(8)) -> T(8):
        y = pl.add(x, x)
        return y
"""
    calls = "    @orch\n    def main(self, x: T(8)):\n" + "".join(
        f"        x = self.{{{n}}}(x)\n" for n in range(3)
    )

    def deduplicated(*names: str) -> ir.Program:
        methods = "".join(kernel.format(name=name) for name in names[::order]) + calls.format(*names)
        return dedup(passes.convert_to_ssa()(program(methods)))

    first, second = deduplicated("a", "b", "c"), deduplicated("k1", "k2", "k3")
    assert sorted(first.functions_) == ["a", "main"]
    assert sorted(second.functions_) == ["k1", "main"]
