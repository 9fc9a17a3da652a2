"""MaterializeRuntimeScopes and ClassifyIterArgCarry."""

from __future__ import annotations

import pytest

import pypto.language as pl
from pypto import ir, passes
from pypto.ir.walk import walk

from .stages import lowered, through

T = pl.Tensor[[16, 32], pl.FP32]

KERNELS = """
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def fill(self, x: T, o: pl.Out[T]) -> T:
        o = pl.store(pl.load(x, [0, 0], [16, 32]), [0, 0], o)
        return o

    @pl.function(type=pl.FunctionType.Orchestration{OPTIONS})
    def main(self, x: T, n: pl.Scalar[pl.INDEX], o: pl.Out[T]) -> T:
"""


def program_of(body: str, options: str = "") -> ir.Program:
    lines = "\n".join(f"        {line}" for line in body.strip("\n").split("\n"))
    text = KERNELS.replace("{OPTIONS}", options) + lines + "\n        return o\n"
    program = pl.parse_program(
        text.replace(": T", ": " + TEXT).replace("-> T", "-> " + TEXT).replace("[T]", f"[{TEXT}]")
    )
    return through(
        program, "convert_to_ssa", "normalize_stmt_structure", "flatten_call_expr", "normalize_return_order"
    )


TEXT = "pl.Tensor[[16, 32], pl.FP32]"


def scoped(body: str, options: str = "") -> ir.Function:
    return through(program_of(body, options), "derive_call_directions", "materialize_runtime_scopes")["main"]


def classified(body: str) -> list[dict[str, object]]:
    program = through(
        program_of(body), "derive_call_directions", "materialize_runtime_scopes", "classify_iter_arg_carry"
    )
    return [dict(node.attrs) for node in walk(program["main"].body) if isinstance(node, ir.ForStmt)]


def is_auto(stmt: ir.Stmt) -> bool:
    return isinstance(stmt, ir.RuntimeScopeStmt) and not stmt.manual


def test_function_loop_and_branch_bodies_become_scopes():
    main = scoped("for i in pl.range(4):\n    if n > 0:\n        o = self.fill(x, o)")
    assert is_auto(main.body)
    loop = next(node for node in walk(main.body) if isinstance(node, ir.ForStmt))
    branch = next(node for node in walk(main.body) if isinstance(node, ir.IfStmt))
    assert is_auto(loop.body) and is_auto(branch.then_body) and is_auto(branch.else_body)
    assert main.attrs["auto_scope"] is False


def test_inside_a_manual_scope_nothing_is_wrapped():
    main = scoped(
        "with pl.manual_scope():\n    for i in pl.range(4):\n        o, tid = pl.submit(self.fill, x, o)"
    )
    loop = next(node for node in walk(main.body) if isinstance(node, ir.ForStmt))
    assert is_auto(main.body) and not isinstance(loop.body, ir.RuntimeScopeStmt)


def test_body_of_a_while_loop_is_no_scope_but_loops_inside_it_are():
    main = scoped(
        "i = n\nwhile i > 0:\n    i = i - 1\n    for j in pl.range(2):\n        o = self.fill(x, o)"
    )
    loop = next(node for node in walk(main.body) if isinstance(node, ir.WhileStmt))
    inner = next(node for node in walk(main.body) if isinstance(node, ir.ForStmt))
    assert not isinstance(loop.body, ir.RuntimeScopeStmt) and is_auto(inner.body)


def test_author_who_places_scopes_is_left_alone():
    program = program_of("o = self.fill(x, o)", ", auto_scope=False")
    assert passes.materialize_runtime_scopes()(program) is program


def test_second_run_changes_nothing():
    once = through(program_of("o = self.fill(x, o)"), "derive_call_directions", "materialize_runtime_scopes")
    assert passes.materialize_runtime_scopes()(once) is once
    carried = passes.classify_iter_arg_carry()(once)
    assert passes.classify_iter_arg_carry()(carried) is carried


def test_carry_that_is_updated_in_place_is_trivial():
    assert classified("for i in pl.range(4):\n    o = self.fill(x, o)") == [{"iter_arg_rebind_0": False}]
    assert classified("for i in pl.range(4):\n    for j in pl.range(2):\n        o = self.fill(x, o)") == [
        {"iter_arg_rebind_0": False},
        {"iter_arg_rebind_0": False},
    ]


def test_carry_updated_in_one_branch_and_kept_in_the_other_is_trivial():
    assert classified("for i in pl.range(4):\n    if n > 0:\n        o = self.fill(x, o)") == [
        {"iter_arg_rebind_0": False}
    ]


def test_alternating_buffers_and_scalars_are_rebound():
    body = """
a = pl.create_tensor([16, 32], dtype=pl.FP32)
b = pl.create_tensor([16, 32], dtype=pl.FP32)
s = n
for i in pl.range(4):
    a = self.fill(x, a)
    c = a
    a = b
    b = c
    s = s + i
o = self.fill(a, o)
"""
    attrs = classified(body)[0]
    assert sorted(attrs.values()) == [True, True, True]


def test_task_id_of_a_parallel_loop_in_a_manual_scope_keeps_a_slot_per_iteration():
    body = """
with pl.manual_scope():
    tid = None
    for i in pl.range(3):
        for j in pl.parallel(4):
            o, tid = pl.submit(self.fill, x, o, deps=[tid])
"""
    outer, inner = classified(body)
    assert [value for key, value in sorted(inner.items()) if "array_size" in key] == [4]
    assert [value for key, value in sorted(outer.items()) if "array_size" in key] == [4]


def test_task_id_of_a_parallel_loop_with_a_computed_trip_count_is_refused():
    body = """
with pl.manual_scope():
    tid = None
    for j in pl.parallel(n):
        o, tid = pl.submit(self.fill, x, o, deps=[tid])
"""
    with pytest.raises(ValueError, match="statically-known trip count"):
        classified(body)


def test_descending_loops_count_their_trips():
    body = """
with pl.manual_scope():
    tid = None
    for j in pl.parallel(7, -1, -2):
        o, tid = pl.submit(self.fill, x, o, deps=[tid])
"""
    assert 4 in classified(body)[0].values()


def test_whole_road_ends_with_stamped_loops():
    @pl.program
    class P:
        @pl.function
        def main(self, x: pl.Tensor[[64, 32], pl.FP32], o: pl.InOut[T]) -> T:
            for i in pl.range(4):
                with pl.at(level=pl.Level.CORE_GROUP):
                    o = pl.assemble(o, pl.add(o, x[i * 16 : i * 16 + 16, :]), [0, 0])
            return o

    loops = [node for node in walk(lowered(P)["main"].body) if isinstance(node, ir.ForStmt)]
    assert [loop.attrs for loop in loops] == [{"iter_arg_rebind_0": False}]
