"""UnrollLoops: how many copies, of what, and what is rejected."""

from __future__ import annotations

import pytest

import pypto
from pypto import ir, passes
from pypto.passes.verify.unroll_resolved import verify
from pypto.testing.interpreter import run
from tests.passes.dsl import assert_round_trips, function, program, statements

S = ir.Span.unknown()
INDEX = ir.DataType.INDEX
SCALAR = ir.ScalarType(INDEX)


def var(name: str) -> ir.Var:
    return ir.Var(name, SCALAR, S)


i, a, n = var("i"), var("a"), var("n")


def c(value: int) -> ir.ConstInt:
    return ir.ConstInt(value, INDEX, S)


def loop(start: ir.Expr, stop: ir.Expr, step: ir.Expr, body: ir.Stmt | None = None) -> ir.ForStmt:
    body = body or ir.AssignStmt(a, ir.add(ir.mul(a, c(10)), i), S)
    return ir.ForStmt(i, start, stop, step, [], body, [], S, kind=ir.ForKind.Unroll)


def main(*stmts: ir.Stmt) -> ir.Program:
    body = ir.SeqStmts([ir.AssignStmt(a, c(0), S), *stmts, ir.ReturnStmt([a], S)], S)
    return ir.Program([ir.Function("main", [n], [SCALAR], body, S)], "P", S)


def unrolled(source: ir.Program) -> ir.Program:
    result = passes.unroll_loops()(source)
    assert verify(result) == []
    return result


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [((0, 0, 1), 0), ((2, 3, 1), 2), ((1, 4, 1), 123), ((3, 0, -1), 321), ((0, 5, 2), 24), ((5, 0, 1), 0)],
)
def test_the_body_runs_once_per_trip_in_order(bounds: tuple[int, int, int], expected: int) -> None:
    result = unrolled(main(loop(*(c(value) for value in bounds))))
    assert run(result, "main", 0) == [expected]


def test_zero_trips_leave_nothing() -> None:
    assert len(statements(function(unrolled(main(loop(c(0), c(0), c(1)))), "main"))) == 2


def test_nested_loops_expand_with_the_outer_value_as_a_bound() -> None:
    j = ir.Var("j", SCALAR, S)
    body = ir.AssignStmt(a, ir.add(a, c(1)), S)
    inner = ir.ForStmt(j, c(0), i, c(1), [], body, [], S, kind=ir.ForKind.Unroll)
    assert run(unrolled(main(loop(c(0), c(4), c(1), inner))), "main", 0) == [6]


def test_copies_are_spliced_into_the_enclosing_sequence() -> None:
    body = ir.SeqStmts([ir.AssignStmt(a, ir.add(a, i), S), ir.AssignStmt(a, ir.add(a, c(1)), S)], S)
    stmts = statements(function(unrolled(main(loop(c(0), c(3), c(1), body))), "main"))
    assert len(stmts) == 1 + 6 + 1
    assert not any(isinstance(stmt, ir.SeqStmts) for stmt in stmts)


def test_a_loop_that_is_the_whole_body_becomes_its_copies() -> None:
    def body_of(stop: int) -> ir.Stmt:
        only = ir.Function("main", [a], [], loop(c(0), c(stop), c(1)), S)
        return unrolled(ir.Program([only], "P", S)).functions_["main"].body

    assert isinstance(body_of(2), ir.SeqStmts)
    assert isinstance(body_of(1), ir.AssignStmt)


def test_the_limit_is_1024_trips() -> None:
    unrolled(main(loop(c(0), c(1024), c(1))))
    with pytest.raises(ValueError, match=r"trip count 1025 exceeds maximum allowed \(1024\)"):
        unrolled(main(loop(c(0), c(1025), c(1))))
    with pytest.raises(ValueError, match="trip count"):
        unrolled(main(loop(c(-(2**63)), c(2**63 - 1), c(1))))


def test_a_step_of_zero_is_rejected() -> None:
    with pytest.raises(ValueError, match="Unroll loop step cannot be zero"):
        unrolled(main(loop(c(0), c(4), c(0))))


def test_bounds_must_be_constants_and_are_not_folded() -> None:
    for role, bounds in (("start", (n, c(4), c(1))), ("stop", (c(0), n, c(1))), ("step", (c(0), c(4), n))):
        with pytest.raises(ValueError, match=f"{role} must be a compile-time integer constant, got Var"):
            unrolled(main(loop(*bounds)))
    with pytest.raises(ValueError, match="got Add"):
        unrolled(main(loop(c(0), ir.add(c(1), c(1)), c(1))))


def test_a_negated_constant_is_a_constant() -> None:
    minus_one = ir.Neg(c(1), INDEX, S)
    assert run(unrolled(main(loop(c(3), c(0), minus_one))), "main", 0) == [321]


def test_types_and_attributes_that_mention_the_loop_variable_are_rewritten() -> None:
    tensor = ir.Var("t", ir.TensorType([4, i], ir.DataType.FP32), S)
    create = ir.Call(ir.Op("tensor.create"), [], {}, {"device": i}, tensor.type, S)
    result = unrolled(main(loop(c(3), c(4), c(1), ir.AssignStmt(tensor, create, S))))
    assign = statements(function(result, "main"))[1]
    assert isinstance(assign, ir.AssignStmt)
    assert assign.var.type.shape[1].value == 3
    assert assign.value.type.shape[1].value == 3
    assert assign.value.attrs["device"].value == 3


def test_a_body_that_ignores_the_loop_variable_is_repeated_not_copied() -> None:
    body = ir.AssignStmt(a, ir.add(a, c(1)), S)
    stmts = statements(function(unrolled(main(loop(c(0), c(3), c(1), body))), "main"))
    assert all(stmt is body for stmt in stmts[1:4])


def test_leading_comments_of_the_loop_go_to_the_first_copy() -> None:
    commented = ir.attach_leading_comments(loop(c(0), c(2), c(1)), ["three times"])
    _, first, second, _ = statements(function(unrolled(main(commented)), "main"))
    assert first.leading_comments == ["three times"] and second.leading_comments == []


@pytest.mark.parametrize("header", ["pl.range(4)", "pl.parallel(4)", "pl.pipeline(4, stage=2)", "while"])
def test_other_loops_keep_their_header_and_unchanged_functions_their_identity(header: str) -> None:
    opening = "while n > 2:" if header == "while" else f"for i in {header}:"

    def of_body(*lines: str) -> ir.Program:
        body = "\n".join("            " + line for line in lines)
        return program(
            f"""
    @incore
    def main(self, x: T(4, 4), n: I) -> T(4, 4):
        {opening}
            n = n - 1
{body}
        return x
    """
        )

    step = "x = pl.add(x, x)"
    source = of_body(step)
    assert passes.unroll_loops()(source) is source
    copies = unrolled(of_body("for k in pl.unroll(2):", "    " + step))
    ir.assert_structural_equal(copies, of_body(step, step), enable_auto_mapping=True)


def test_an_unrolled_loop_inside_another_loop_is_expanded() -> None:
    source = program(
        """
    @opaque
    def main(self, n: I) -> I:
        a = n
        for i in pl.range(2):
            for k in pl.unroll(3):
                a = a * 2 + k
        return a
    """
    )
    result = unrolled(source)
    assert run(result, "main", 1) == run(source, "main", 1)


BODIES = {
    "loop": """
        for i in pl.range(4):
            t = pl.add(x, x)
            x = pl.mul(t, t)
""",
    "loop with carried values": """
        for i, (a,) in pl.range(4, init_values=(x,)):
            b = pl.add(a, a)
            r = pl.yield_(b)
        x = pl.mul(r, r)
""",
    "loop result that is assigned again": """
        for i, (a,) in pl.range(4, init_values=(x,)):
            b = pl.add(a, a)
            r = pl.yield_(b)
        r = pl.mul(r, r)
        x = r
""",
    "branch result that is assigned again": """
        if n > 2:
            r = pl.yield_(x)
        else:
            r = pl.yield_(pl.add(x, x))
        if n > 3:
            r = pl.mul(r, r)
        x = r
""",
    "branch": """
        if n > 3:
            t = pl.add(x, x)
            x = pl.mul(t, t)
""",
    "block index": """
        for i in pl.spmd(4):
            t = pl.load(x, [i * 16, 0], [16, 64])
            x = pl.store(t, [i * 16, 0], x)
""",
    "lane index": """
        with pl.at(level=pl.Level.CORE_GROUP):
            for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
                x = pl.assemble(x, pl.slice(x, [32, 64], [lane * 32, 0]), [lane * 32, 0])
""",
    "task id": """
        with pl.at(level=pl.Level.CORE_GROUP) as tid:
            x = pl.add(x, x)
        with pl.at(level=pl.Level.CORE_GROUP, deps=[tid]):
            x = pl.mul(x, x)
""",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_the_text_of_an_unrolled_program_reads_back_as_the_same_program(body: str) -> None:
    """Each copy binds its own loop variables, results, indices and task ids, as written loops do."""
    result = unrolled(
        program(
            f"""
@opaque
def main(self, x: T(64, 64), n: I) -> T(64, 64):
    for l in pl.unroll(3):
{body}
    return x
"""
        )
    )
    assert_round_trips(result)
    assert_round_trips(passes.convert_to_ssa()(result))


@pytest.mark.parametrize("dtype", ["INDEX", "INT64", "INT32"])
def test_the_text_of_copies_reads_back_whatever_the_type_of_the_loop_variable(dtype: str) -> None:
    source = program(
        f"""
@opaque
def main(self, x: T(64, 64), n: pl.Scalar[pl.INT64]) -> T(64, 64):
    for l in pl.unroll(pl.const(0, pl.{dtype}), pl.const(2, pl.{dtype})):
        a = n + l
        b = (l + 1) * n - l * 2
    return x
"""
    )
    assert_round_trips(unrolled(source))


def test_a_result_used_after_the_loop_is_that_of_the_last_copy() -> None:
    acc, r, k = ir.IterArg("acc", SCALAR, i, S), var("r"), var("k")
    inner = ir.ForStmt(k, c(0), c(2), c(1), [acc], ir.YieldStmt([ir.add(acc, c(1))], S), [r], S)
    source = main(loop(c(0), c(3), c(1), inner), ir.AssignStmt(a, r, S))
    result = unrolled(source)
    assert run(result, "main", 0) == [4]
    loops = [s for s in statements(function(result, "main")) if isinstance(s, ir.ForStmt)]
    assert len({s.return_vars[0] for s in loops}) == 3 and loops[-1].return_vars[0] is r


def test_a_result_read_before_its_definition_is_shared_by_all_copies() -> None:
    acc, r, k = ir.IterArg("acc", SCALAR, c(1), S), var("r"), var("k")
    use = ir.AssignStmt(a, ir.add(a, r), S)
    inner = ir.ForStmt(k, c(0), c(2), c(1), [acc], ir.YieldStmt([ir.add(acc, i)], S), [r], S)
    body = ir.SeqStmts([use, inner], S)
    source = main(ir.AssignStmt(r, c(0), S), loop(c(1), c(4), c(1), body))
    assert run(unrolled(source), "main", 0) == [0 + 3 + 5]


def test_a_variable_from_before_the_loop_that_a_yielding_branch_assigns_stays_one() -> None:
    """Assigned in one branch and read in the other, it must mean the same variable in every copy."""
    source = program(
        """
@opaque
def main(self, n: I) -> I:
    s: I = n + 1
    for i in pl.unroll(3):
        if n > i:
            s = n - i
            r: I = pl.yield_(n)
        else:
            r: I = pl.yield_(s)
        n = n + r
    return s + n
"""
    )
    for entry in (0, 1, 5):
        assert run(unrolled(source), "main", entry) == run(source, "main", entry)


def test_a_loop_that_carries_values_is_an_internal_error() -> None:
    carried = ir.IterArg("acc", SCALAR, a, S)
    bounds = (c(0), c(2), c(1))
    source = ir.ForStmt(
        i, *bounds, [carried], ir.YieldStmt([carried], S), [var("r")], S, kind=ir.ForKind.Unroll
    )
    with pytest.raises(pypto.InternalError, match="iter_args"):
        passes.unroll_loops()(main(source))
