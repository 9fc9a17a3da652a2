"""ExpandManualPhaseFence: when a fence pays, and when it would change what waits for what."""

# ruff: noqa: E501

from __future__ import annotations

import pytest

import pypto.language as pl
from pypto import ir, passes
from pypto.ir.walk import walk

from .stages import calls, dispatches, through

TEXT = """
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def fill(self, x: T, o: pl.Out[T]) -> T:
        o = pl.store(pl.load(x, [0, 0], [16, 32]), [0, 0], o)
        return o

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: T, n: pl.Scalar[pl.INDEX], o: pl.Out[T]) -> T:
        {AROUND}
{BODY}
        return o
"""


def fenced(body: str, around: str = "with pl.manual_scope():") -> ir.Function:
    lines = "\n".join(f"            {line}" for line in body.strip("\n").split("\n"))
    tensor = "pl.Tensor[[16, 32], pl.FP32]"
    text = TEXT.replace("T]", f"{tensor}]").replace(": T", f": {tensor}").replace("-> T", f"-> {tensor}")
    program = through(
        pl.parse_program(text.replace("{AROUND}", around).replace("{BODY}", lines)),
        "convert_to_ssa",
        "normalize_stmt_structure",
        "flatten_call_expr",
        "derive_call_directions",
    )
    main = passes.expand_manual_phase_fence()(program)["main"]
    assert main is not None
    return main


FOUR = """
ids = pl.array.create(4, pl.TASK_ID)
for i in pl.parallel(4):
    o, first = pl.submit(self.fill, x, o)
    ids[i] = first
"""


def test_many_consumers_of_many_tasks_wait_for_a_fence():
    main = fenced(FOUR + "for j in pl.parallel(4):\n    o, second = pl.submit(self.fill, x, o, deps=[ids])")
    fences = [s for s in walk(main.body) if isinstance(s, ir.AssignStmt) and calls_dummy(s.value)]
    assert len(fences) == 1
    assert fences[0].var.name_hint == "phase_fence_barrier_0_tid"
    assert fences[0].value.attrs["dummy_task"] is True and len(fences[0].value.attrs["manual_dep_edges"]) == 1
    consumer = dispatches(main)[1]
    assert isinstance(consumer, ir.Submit) and [dep is fences[0].var for dep in consumer.deps] == [True]


def calls_dummy(value: ir.Expr) -> bool:
    return isinstance(value, ir.Call) and value.op.name == "system.task_dummy"


@pytest.mark.parametrize(
    "loops",
    [
        "for j in pl.parallel(1):\n    o, t = pl.submit(self.fill, x, o, deps=[ids])",
        "for j in pl.parallel(n):\n    o, t = pl.submit(self.fill, x, o, deps=[ids])",
        "for j in pl.range(4):\n    o, t = pl.submit(self.fill, x, o, deps=[ids])\n    ids[j] = t",
        "for j in pl.range(4):\n    more = ids\n    o, t = pl.submit(self.fill, x, o, deps=[more])\n    more[j] = t",
    ],
)
def test_no_fence_where_it_saves_nothing_or_the_array_changes(loops: str):
    assert "system.task_dummy" not in calls(fenced(FOUR + loops))


def test_nested_loops_multiply_and_the_fence_stands_outside():
    body = (
        FOUR
        + "for j in pl.range(2):\n    for k in pl.parallel(2):\n        o, t = pl.submit(self.fill, x, o, deps=[ids])"
    )
    main = fenced(body)
    order = [type(s).__name__ for s in main.body.stmts[0].body.stmts if not isinstance(s, ir.YieldStmt)]
    assert order.count("ForStmt") == 2 and calls(main).count("system.task_dummy") == 1


def test_outside_a_manual_scope_nothing_happens():
    body = FOUR + "for j in pl.parallel(4):\n    o, second = pl.submit(self.fill, x, o, deps=[ids])"
    assert "system.task_dummy" not in calls(fenced(body, "if n > 0:"))


def test_two_loops_get_two_fences_and_a_second_run_adds_none():
    loop = "for j in pl.parallel(4):\n    o, t = pl.submit(self.fill, x, o, deps=[ids])\n"
    main = fenced(FOUR + loop + loop)
    assert calls(main).count("system.task_dummy") == 2
    program = ir.Program([main], "P", ir.Span.unknown())
    assert passes.expand_manual_phase_fence()(program) is program
