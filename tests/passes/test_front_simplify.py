"""Simplify: what is folded, which loops and branches go, what is removed and what must stay."""

from __future__ import annotations

import pytest

from pypto import ir, passes
from tests.passes.dsl import assert_same, function, program, statements

S = ir.Span.unknown()
INDEX, BOOL = ir.DataType.INDEX, ir.DataType.BOOL
SCALAR = ir.ScalarType(INDEX)
TENSOR = ir.TensorType([4, 4], ir.DataType.FP32)


def c(value: int) -> ir.ConstInt:
    return ir.ConstInt(value, INDEX, S)


def var(name: str, type_: ir.Type = SCALAR) -> ir.Var:
    return ir.Var(name, type_, S)


x, n = var("x", TENSOR), var("n")


def simplified(text: str) -> ir.Program:
    return passes.simplify()(passes.convert_to_ssa()(program("@opaque\n" + text)))


def same(before: str, after: str) -> None:
    assert_same(simplified(before), program("@opaque\n" + after))


def of_body(*stmts: ir.Stmt, params: list[ir.Var] | None = None) -> ir.Program:
    owner = ir.Function("main", params or [x, n], [], ir.flatten_stmts(list(stmts), S), S)
    return ir.Program([owner], "P", S)


def body_of(*stmts: ir.Stmt, params: list[ir.Var] | None = None) -> list[ir.Stmt]:
    return statements(function(passes.simplify()(of_body(*stmts, params=params)), "main"))


def for_(
    body: ir.Stmt,
    *bounds: ir.Expr,
    carried: list | None = None,
    results: list | None = None,
    **options: object,
) -> ir.ForStmt:
    step = () if len(bounds) == 3 else (c(1),)
    return ir.ForStmt(var("i"), *bounds, *step, carried or [], body, results or [], S, **options)


def op(name: str, *args: ir.Expr) -> ir.Call:
    return ir.Call(ir.Op(f"tensor.{name}"), list(args), TENSOR, S)


# --- constants ---


def test_scalar_constants_reach_arguments_and_result_types() -> None:
    same(
        """
def main(self, y: T(256, 256)) -> T(64, 128):
    C = 32
    D = C * 2
    s = pl.slice(y, [D, 128], [0, 0])
    return s
""",
        """
def main(self, y: T(256, 256)) -> T(64, 128):
    s = pl.slice(y, [64, 128], [0, 0])
    return s
""",
    )


def test_a_constant_inside_a_loop_is_not_propagated() -> None:
    k = var("k")
    use = ir.EvalStmt(op("fill", x, k), S)
    (loop,) = body_of(for_(ir.SeqStmts([ir.AssignStmt(k, c(3), S), use], S), c(0), n))
    assert isinstance(loop.body.stmts[0], ir.AssignStmt) and loop.body.stmts[1].expr.args[1] is k


def test_a_reassigned_scalar_is_never_propagated() -> None:
    k = var("k")
    stmts = body_of(
        ir.AssignStmt(k, c(3), S),
        ir.EvalStmt(op("fill", x, k), S),
        ir.AssignStmt(k, c(4), S),
        ir.ReturnStmt([k], S),
    )
    assert stmts[1].expr.args[1] is k and stmts[3].value[0] is k


def test_a_used_scalar_stays_with_its_simplified_value() -> None:
    m = var("m")
    value = ir.Add(ir.Mul(n, c(2), INDEX, S), c(0), INDEX, S)
    assign, _ = body_of(ir.AssignStmt(m, value, S), ir.EvalStmt(op("fill", x, m), S))
    assert isinstance(assign.value, ir.Mul) and assign.var is m


def test_a_view_that_keeps_the_layout_is_its_argument() -> None:
    y = var("y", TENSOR)
    assign, _ = body_of(ir.AssignStmt(y, op("view", x), S), ir.ReturnStmt([y], S))
    assert assign.value is x


# --- loops ---


def test_a_loop_without_trips_becomes_its_initial_values() -> None:
    acc, rv = ir.IterArg("acc", TENSOR, x, S), var("rv", TENSOR)
    loop = for_(ir.YieldStmt([op("f", acc)], S), n, n, carried=[acc], results=[rv])
    assign, last = body_of(loop, ir.ReturnStmt([rv], S))
    assert isinstance(assign, ir.AssignStmt) and assign.value is x and last.value[0] is assign.var


@pytest.mark.parametrize("bounds", [(c(0), c(1)), (n, ir.add(n, c(1))), (c(0), c(4), c(4))])
def test_a_loop_with_one_trip_becomes_its_body(bounds: tuple[ir.Expr, ...]) -> None:
    acc, rv, y = ir.IterArg("acc", TENSOR, x, S), var("rv", TENSOR), var("y", TENSOR)
    body = ir.SeqStmts([ir.AssignStmt(y, op("f", acc), S), ir.YieldStmt([y], S)], S)
    assign, last = body_of(for_(body, *bounds, carried=[acc], results=[rv]), ir.ReturnStmt([rv], S))
    assert assign.value.args[0] is x and last.value[0] is assign.var


@pytest.mark.parametrize("escape", [ir.BreakStmt(S), ir.ContinueStmt(S)])
def test_a_loop_with_one_trip_stays_if_a_break_or_continue_needs_it(escape: ir.Stmt) -> None:
    leaves = ir.IfStmt(ir.gt(n, c(3)), escape, None, [], S)
    once = for_(ir.SeqStmts([leaves, ir.EvalStmt(op("f", x), S)], S), c(0), c(1))
    k = var("k")
    (outer,) = body_of(ir.ForStmt(k, c(0), n, c(1), [], once, [], S))
    assert isinstance(outer, ir.ForStmt) and isinstance(outer.body, ir.ForStmt)
    inner = for_(leaves, c(0), n)  # this one leaves a loop inside
    (inside,) = body_of(ir.ForStmt(k, c(0), c(1), c(1), [], inner, [], S))
    assert isinstance(inside, ir.ForStmt) and inside.stop is n


def test_parallel_loops_and_loops_with_attributes_stay() -> None:
    pipeline = {"kind": ir.ForKind.Pipeline, "attrs": {"pipeline_stages": 2}}
    for options in (
        {"kind": ir.ForKind.Parallel},
        {"kind": ir.ForKind.Pipeline},
        pipeline,
        {"attrs": {"note": 1}},
    ):
        (loop,) = body_of(for_(ir.EvalStmt(op("f", x), S), c(0), c(1), **options))
        assert isinstance(loop, ir.ForStmt)


def test_a_loop_with_an_unknown_step_stays() -> None:
    step = var("s", ir.ScalarType(ir.DataType.INT64))
    (loop,) = body_of(for_(ir.EvalStmt(op("f", x), S), n, n, step), params=[x, n, step])
    assert isinstance(loop, ir.ForStmt)


# --- branches ---


def test_a_decided_branch_in_a_loop_is_unwrapped() -> None:
    loop_var, rv, y, z = var("i"), var("rv", TENSOR), var("y", TENSOR), var("z", TENSOR)
    acc, out = ir.IterArg("acc", TENSOR, x, S), var("out", TENSOR)
    then = ir.SeqStmts([ir.AssignStmt(y, op("a", acc), S), ir.YieldStmt([y], S)], S)
    other = ir.SeqStmts([ir.AssignStmt(z, op("b", acc), S), ir.YieldStmt([z], S)], S)
    branch = ir.IfStmt(ir.lt(loop_var, c(4)), then, other, [rv], S)
    body = ir.SeqStmts([branch, ir.YieldStmt([rv], S)], S)
    loop = ir.ForStmt(loop_var, c(0), c(4), c(1), [acc], body, [out], S)
    result, _ = body_of(loop, ir.ReturnStmt([out], S))
    assign, last = statements(result.body)
    assert assign.value.op.name == "tensor.a" and last.value[0] is y


def test_a_condition_that_cannot_hold_removes_the_branch() -> None:
    loop_var = var("i")
    branch = ir.IfStmt(ir.lt(loop_var, c(0)), ir.EvalStmt(op("f", x), S), None, [], S)
    loop = ir.ForStmt(
        loop_var, c(0), n, c(1), [], ir.SeqStmts([branch, ir.EvalStmt(op("g", x), S)], S), [], S
    )
    (result,) = body_of(loop)
    assert isinstance(result.body, ir.EvalStmt)


@pytest.mark.parametrize("source", ["computed", "difference", "carried", "merged", "reassigned", "maximum"])
def test_an_index_that_is_computed_may_be_negative(source: str) -> None:
    loop_var, d, r = var("i"), var("d"), var("r")
    negative = ir.IfStmt(ir.lt(d, c(0)), ir.EvalStmt(op("f", x), S), None, [], S)
    kept = ir.EvalStmt(op("g", x), S)
    less = ir.sub(d, c(1))
    if source in ("computed", "maximum"):
        use = negative if source == "computed" else ir.EvalStmt(ir.Call(ir.Op("f"), [ir.max_(d, c(0))], S), S)
        steps = ir.SeqStmts([ir.AssignStmt(d, ir.sub(loop_var, c(2)), S), use], S)
        stmts = [ir.ForStmt(loop_var, c(0), c(4), c(1), [], steps, [], S)]
    elif source == "difference":
        stmts = [ir.AssignStmt(d, ir.sub(n, var("m")), S), negative]
    elif source == "carried":
        d = ir.IterArg("d", SCALAR, c(0), S)
        negative = ir.IfStmt(ir.lt(d, c(0)), ir.EvalStmt(op("f", x), S), None, [], S)
        steps = ir.SeqStmts([negative, ir.YieldStmt([ir.sub(d, c(1))], S)], S)
        stmts = [ir.ForStmt(loop_var, c(0), c(4), c(1), [d], steps, [r], S)]
    elif source == "merged":
        then, other = ir.YieldStmt([ir.sub(c(0), n)], S), ir.YieldStmt([n], S)
        stmts = [ir.IfStmt(ir.lt(c(3), n), then, other, [d], S), negative]
    else:
        stmts = [ir.AssignStmt(d, c(0), S), ir.AssignStmt(d, less, S), negative]
    source_program = of_body(*stmts, kept)
    ir.assert_structural_equal(passes.simplify()(source_program), source_program)


@pytest.mark.parametrize("is_called", [True, False])
def test_an_index_that_a_caller_computes_may_be_negative(is_called: bool) -> None:
    d = var("d")
    negative = ir.IfStmt(ir.lt(d, c(0)), ir.EvalStmt(op("f", x), S), None, [], S)
    kernel = ir.Function("k", [x, d], [], negative, S, type=ir.FunctionType.InCore)
    call = ir.EvalStmt(ir.Call(ir.GlobalVar("k"), [x, ir.sub(n, c(2))], S), S)
    main = ir.Function("main", [x, n], [], call, S, type=ir.FunctionType.Orchestration)
    result = passes.simplify()(ir.Program([kernel, main] if is_called else [kernel], "P", S))
    assert isinstance(result.functions_["k"].body, ir.IfStmt) is is_called


def test_a_branch_knows_its_condition_and_forgets_it_afterwards() -> None:
    inner = ir.IfStmt(ir.gt(n, c(2)), ir.EvalStmt(op("f", x), S), None, [], S)
    after = ir.IfStmt(ir.gt(n, c(2)), ir.EvalStmt(op("g", x), S), None, [], S)
    first, second = body_of(ir.IfStmt(ir.gt(n, c(3)), inner, None, [], S), after)
    assert isinstance(first.then_body, ir.EvalStmt)
    assert isinstance(first.condition, ir.Lt) and first.condition.right is n
    assert isinstance(second, ir.IfStmt)


def test_the_results_of_a_branch_that_stays_have_simplified_types() -> None:
    size = var("size")
    shaped = ir.TensorType([size, 4], ir.DataType.FP32)
    y, z, r = var("y", shaped), var("z", shaped), var("r", shaped)

    def branch(name: str, made: ir.Var) -> ir.Stmt:
        call = ir.Call(ir.Op(f"tensor.{name}"), [x], shaped, S)
        return ir.SeqStmts([ir.AssignStmt(made, call, S), ir.YieldStmt([made], S)], S)

    stmts = [
        ir.AssignStmt(size, ir.add(c(2), c(3)), S),
        ir.IfStmt(ir.lt(c(3), n), branch("f", y), branch("g", z), [r], S),
        ir.ReturnStmt([r], S),
    ]
    kept, last = body_of(*stmts)
    (result,) = kept.return_vars
    assert result is last.value[0] and result.type.shape[0].value == 5
    assert (
        passes.PropertyVerifierRegistry.verify(
            passes.get_structural_properties(), passes.simplify()(of_body(*stmts))
        )
        == []
    )


def test_a_condition_on_a_reassigned_variable_is_not_believed() -> None:
    inner = ir.IfStmt(ir.gt(n, c(2)), ir.EvalStmt(op("f", x), S), None, [], S)
    then = ir.SeqStmts([ir.AssignStmt(n, c(0), S), inner], S)
    (branch,) = body_of(ir.IfStmt(ir.gt(n, c(3)), then, None, [], S))
    assert isinstance(branch.then_body.stmts[1], ir.IfStmt)


def test_a_condition_that_reads_memory_is_not_believed_after_a_write() -> None:
    memory = var("m", ir.TensorType([4], INDEX))
    read = ir.gt(ir.op.tensor.read(memory, [0]), c(3))  # one object in both conditions
    inner = ir.IfStmt(read, ir.EvalStmt(op("f", x), S), None, [], S)
    write = ir.EvalStmt(ir.op.tensor.write(memory, [0], c(0)), S)
    outer = ir.IfStmt(read, ir.SeqStmts([write, inner], S), None, [], S)
    (result,) = body_of(outer, params=[memory, x])
    assert isinstance(result.then_body.stmts[1], ir.IfStmt)


def test_ranges_found_in_a_branch_do_not_leak() -> None:
    m = var("m")
    branch = ir.IfStmt(ir.gt(n, c(3)), ir.AssignStmt(m, c(5), S), ir.AssignStmt(m, c(1), S), [], S)
    after = ir.IfStmt(ir.gt(m, c(4)), ir.EvalStmt(op("f", x), S), None, [], S)
    assert isinstance(body_of(branch, after)[1], ir.IfStmt)


# --- what is removed ---


def test_a_chain_of_dead_scalars_goes() -> None:
    a, b = var("a"), var("b")
    (last,) = body_of(
        ir.AssignStmt(a, ir.mul(n, c(2)), S), ir.AssignStmt(b, ir.add(a, n), S), ir.ReturnStmt([x], S)
    )
    assert isinstance(last, ir.ReturnStmt)


def test_calls_and_tensors_are_never_removed() -> None:
    a, y = var("a"), var("y", TENSOR)
    dim = ir.Call(ir.Op("tensor.dim"), [x, c(0)], SCALAR, S)
    assert len(body_of(ir.AssignStmt(a, dim, S), ir.AssignStmt(y, x, S), ir.ReturnStmt([x], S))) == 3


def test_the_task_id_of_a_submit_is_never_removed() -> None:
    task = ir.ScalarType(ir.DataType.TASK_ID)
    result, tid = var("r", ir.TupleType([task])), var("t", task)
    submit = ir.Submit(ir.GlobalVar("k"), [x], [], ir.TupleType([task]), S)
    read = ir.AssignStmt(tid, ir.TupleGetItemExpr(result, 0, S), S)
    assert len(body_of(ir.AssignStmt(result, submit, S), read, ir.ReturnStmt([x], S))) == 3


@pytest.mark.parametrize("place", ["type", "attribute", "core_num"])
def test_a_scalar_used_only_in_a_type_an_attribute_or_a_launch_is_kept(place: str) -> None:
    m = var("m")
    assign = ir.AssignStmt(m, ir.add(n, c(1)), S)
    body: ir.Stmt = ir.EvalStmt(op("f", x), S)
    if place == "type":
        y = var("y", ir.TensorType([m, 4], ir.DataType.FP32))
        user: ir.Stmt = ir.AssignStmt(y, ir.Call(ir.Op("tensor.create"), [], y.type, S), S)
    elif place == "attribute":
        user = ir.InCoreScopeStmt(body=body, span=S).replace(attrs={"predicate": ir.gt(m, n)})
    else:
        user = ir.SpmdScopeStmt(m, body=body, span=S)
    assert isinstance(body_of(assign, user)[0], ir.AssignStmt)


def test_an_unused_result_of_an_if_goes_with_what_fed_it() -> None:
    a, b, r, s = var("a"), var("b"), var("r"), var("s", TENSOR)
    then = ir.SeqStmts([ir.AssignStmt(a, ir.add(n, c(1)), S), ir.YieldStmt([a, x], S)], S)
    other = ir.SeqStmts([ir.AssignStmt(b, ir.add(n, c(2)), S), ir.YieldStmt([b, x], S)], S)
    branch = ir.IfStmt(ir.gt(n, c(3)), then, other, [r, s], S)
    result, _ = body_of(branch, ir.ReturnStmt([s], S))
    (kept,) = result.return_vars
    assert kept is s
    assert isinstance(result.then_body, ir.YieldStmt) and len(result.then_body.value) == 1


def test_a_yield_left_without_values_disappears() -> None:
    r = var("r")
    branch = ir.IfStmt(
        ir.gt(n, c(3)),
        ir.SeqStmts([ir.EvalStmt(op("f", x), S), ir.YieldStmt([n], S)], S),
        ir.YieldStmt([c(1)], S),
        [r],
        S,
    )
    (result,) = body_of(branch)
    assert isinstance(result.then_body, ir.EvalStmt) and result.return_vars == []


# --- identity ---


def test_a_program_without_anything_to_simplify_is_returned_itself() -> None:
    source = passes.convert_to_ssa()(
        program(
            """
    @opaque
    def main(self, x: T(4, 4), n: I) -> T(4, 4):
        for i in pl.range(n):
            if i < 3:
                x = pl.add(x, x)
        return x
    """
        )
    )
    assert passes.simplify()(source) is source


def test_unchanged_statements_keep_their_identity() -> None:
    kept = ir.EvalStmt(op("f", x), S)
    folded = ir.EvalStmt(op("fill", x, ir.Add(c(1), c(2), INDEX, S)), S)
    first, second = body_of(kept, folded)
    assert first is kept and second.expr.args[1].value == 3


def test_a_very_deep_expression_is_simplified_without_recursion() -> None:
    value: ir.Expr = n
    for _ in range(20_000):
        value = ir.Add(value, c(1), INDEX, S)
    (stmt,) = body_of(ir.EvalStmt(op("fill", x, value), S))
    assert isinstance(stmt.expr.args[1].right, ir.ConstInt) and stmt.expr.args[1].right.value == 20_000


def test_a_call_yielded_by_a_loop_with_one_trip_stays_where_it_is() -> None:
    """The tensor that it reads is written before the result is used."""
    same(
        """def main(self, x: T(4, 4), o: pl.InOut[T(4, 4)]) -> T(4, 4):
    for i, (a,) in pl.range(1, init_values=(x,)):
        r = pl.yield_(pl.add(o, a))
    o = pl.assemble(o, x, [0, 0])
    o = pl.assemble(o, r, [0, 0])
    return o
""",
        """def main(self, x: T(4, 4), o: pl.InOut[T(4, 4)]) -> T(4, 4):
    r = pl.add(o, x)
    o = pl.assemble(o, x, [0, 0])
    o = pl.assemble(o, r, [0, 0])
    return o
""",
    )


def test_a_call_that_a_loop_with_one_trip_starts_from_is_made_once() -> None:
    same(
        """def main(self, x: T(4, 4), o: pl.InOut[T(4, 4)]) -> T(4, 4):
    for i, (a,) in pl.range(1, init_values=(pl.neg(o),)):
        o = pl.assemble(o, x, [0, 0])
        r = pl.yield_(a)
    o = pl.assemble(o, r, [0, 0])
    return o
""",
        """def main(self, x: T(4, 4), o: pl.InOut[T(4, 4)]) -> T(4, 4):
    a = pl.neg(o)
    o = pl.assemble(o, x, [0, 0])
    o = pl.assemble(o, a, [0, 0])
    return o
""",
    )


def test_statements_of_a_function_behind_a_return_go() -> None:
    text = """
    @pl.function
    def main(self, n: pl.Scalar[pl.INDEX]) -> pl.Scalar[pl.INDEX]:
        if True:
            return n
        m: pl.Scalar[pl.INDEX] = n + 1
        return m
    """
    simplified = passes.simplify()(passes.convert_to_ssa()(program(text)))
    body = simplified["main"].body
    assert isinstance(body, ir.ReturnStmt) and body.value[0] is simplified["main"].params[0]
