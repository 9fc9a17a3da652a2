"""NormalizeStmtStructure and FlattenCallExpr."""

from __future__ import annotations

import pytest

from pypto import ir, passes
from tests.passes.dsl import function, program, statements

S = ir.Span.unknown()
INDEX = ir.DataType.INDEX
SCALAR = ir.ScalarType(INDEX)
TENSOR = ir.TensorType([4, 4], ir.DataType.FP32)
x, y, n = ir.Var("x", TENSOR, S), ir.Var("y", TENSOR, S), ir.Var("n", SCALAR, S)


def op(name: str, *args: ir.Expr, type_: ir.Type = TENSOR) -> ir.Call:
    return ir.Call(ir.Op(f"tensor.{name}"), list(args), type_, S)


def seq(*stmts: ir.Stmt) -> ir.SeqStmts:
    return ir.SeqStmts(list(stmts), S)


def of_body(body: ir.Stmt) -> ir.Program:
    return ir.Program([ir.Function("main", [x, n], [TENSOR], body, S)], "P", S)


def assign(value: ir.Expr = x) -> ir.AssignStmt:
    return ir.AssignStmt(ir.Var("a", value.type, S), value, S)


def body_after(factory: object, body: ir.Stmt) -> ir.Stmt:
    return factory()(of_body(body)).functions_["main"].body


def flattened(*stmts: ir.Stmt) -> list[ir.Stmt]:
    result = passes.flatten_call_expr()(of_body(ir.flatten_stmts(list(stmts), S)))
    produced = passes.flatten_call_expr().get_produced_properties()
    produced.remove(passes.IRProperty.SSAForm)
    assert passes.PropertyVerifierRegistry.verify(produced, result) == []
    return statements(function(result, "main"))


def calls(stmts: list[ir.Stmt]) -> list[str]:
    """`target = op` for each assignment of a call."""
    return [
        f"{s.var.name_hint} = {s.value.op.name.removeprefix('tensor.')}"
        for s in stmts
        if isinstance(s, ir.AssignStmt) and isinstance(s.value, ir.Call)
    ]


# --- NormalizeStmtStructure ---


def test_nested_sequences_are_spliced_and_single_children_unwrapped() -> None:
    a, b, c = assign(), assign(), assign()
    body = body_after(passes.normalize_stmt_structure, seq(a, seq(b, seq(c)), seq()))
    assert isinstance(body, ir.SeqStmts) and body.stmts == [a, b, c]
    assert body_after(passes.normalize_stmt_structure, seq(a)) is a
    assert body_after(passes.normalize_stmt_structure, seq(seq(a))) is a


def test_an_empty_sequence_stays() -> None:
    body = body_after(passes.normalize_stmt_structure, seq())
    assert isinstance(body, ir.SeqStmts) and body.stmts == []


def test_bodies_of_loops_branches_and_scopes_are_normalised() -> None:
    zero = ir.ConstInt(0, INDEX, S)
    a, b, c, d = (assign() for _ in range(4))
    loop = ir.ForStmt(ir.Var("i", SCALAR, S), zero, n, n, [], seq(a), [], S)
    branch = ir.IfStmt(ir.gt(n, n), seq(b), seq(seq(c)), [], S)
    scope = ir.InCoreScopeStmt(body=seq(d), span=S)
    body = body_after(passes.normalize_stmt_structure, seq(loop, branch, scope))
    assert body.stmts[0].body is a
    assert body.stmts[1].then_body is b and body.stmts[1].else_body is c
    assert body.stmts[2].body is d


def test_a_yield_in_a_nested_sequence_stays_last() -> None:
    zero, acc, a = ir.ConstInt(0, INDEX, S), ir.IterArg("acc", TENSOR, x, S), assign()
    end = ir.YieldStmt([acc], S)
    body = seq(seq(a), seq(seq(end)))
    loop = ir.ForStmt(ir.Var("i", SCALAR, S), zero, n, n, [acc], body, [y], S)
    assert body_after(passes.normalize_stmt_structure, loop).body.stmts == [a, end]
    once = passes.normalize_stmt_structure()(of_body(loop))
    produced = passes.normalize_stmt_structure().get_produced_properties()
    assert passes.PropertyVerifierRegistry.verify(produced, once) == []


def test_normalisation_is_idempotent_and_keeps_what_is_normal() -> None:
    source = of_body(seq(assign(), ir.ReturnStmt([x], S)))
    assert passes.normalize_stmt_structure()(source) is source
    once = passes.normalize_stmt_structure()(of_body(seq(seq(assign()), ir.ReturnStmt([x], S))))
    assert passes.normalize_stmt_structure()(once) is once


# --- FlattenCallExpr ---


def test_a_flat_program_is_returned_itself() -> None:
    source = program(
        """
    @opaque
    def main(self, x: T(4, 4)) -> T(4, 4):
        y = pl.add(x, x)
        return y
    """
    )
    assert passes.flatten_call_expr()(source) is source


def test_temporaries_come_left_to_right_and_inner_first() -> None:
    left = op("f", op("a", x))
    right = op("g", op("b", x))
    assert calls(flattened(ir.AssignStmt(y, op("h", left, right), S))) == [
        "t__tmp_v0 = a",
        "t__tmp_v1 = f",
        "t__tmp_v2 = b",
        "t__tmp_v3 = g",
        "y = h",
    ]


def test_operands_of_scalar_arithmetic_are_hoisted() -> None:
    dim = op("dim", x, type_=SCALAR)
    stmts = flattened(ir.AssignStmt(ir.Var("m", SCALAR, S), ir.add(ir.Neg(dim, INDEX, S), dim), S))
    assert calls(stmts) == ["t__tmp_v0 = dim"]  # one call object, evaluated once


def test_temporaries_of_a_condition_stay_outside_and_those_of_a_body_inside() -> None:
    condition = ir.gt(op("dim", x, type_=SCALAR), n)
    branch = ir.IfStmt(condition, ir.AssignStmt(y, op("f", op("a", x)), S), None, [], S)
    stmts = flattened(branch)
    assert calls(stmts) == ["t__tmp_v0 = dim"]
    assert calls(statements(stmts[1].then_body)) == ["t__tmp_v1 = a", "y = f"]


def test_loop_bounds_are_hoisted_in_order() -> None:
    bounds = [op(name, x, type_=SCALAR) for name in ("start", "stop", "step")]
    loop = ir.ForStmt(ir.Var("i", SCALAR, S), *bounds, [], assign(), [], S)
    assert calls(flattened(loop))[:3] == ["t__tmp_v0 = start", "t__tmp_v1 = stop", "t__tmp_v2 = step"]


def test_returned_and_yielded_calls_are_hoisted() -> None:
    stmts = flattened(ir.ReturnStmt([op("f", x)], S))
    assert calls(stmts) == ["t__tmp_v0 = f"]
    result = ir.Var("r", TENSOR, S)
    branch = ir.IfStmt(ir.gt(n, n), ir.YieldStmt([op("f", x)], S), ir.YieldStmt([x], S), [result], S)
    (stmt,) = flattened(branch)
    assert calls(statements(stmt.then_body)) == ["t__tmp_v0 = f"]


def test_a_single_statement_body_is_wrapped_inside_itself() -> None:
    inner = ir.AssignStmt(y, op("f", op("a", x)), S)
    zero = ir.ConstInt(0, INDEX, S)
    bodies = (
        ir.IfStmt(ir.gt(n, zero), seq(), inner, [], S),
        ir.ForStmt(ir.Var("i", SCALAR, S), zero, n, n, [], inner, [], S),
        ir.WhileStmt(ir.gt(n, zero), [], inner, [], S),
    )
    for stmt in bodies:
        (result,) = flattened(stmt)
        body = result.else_body if isinstance(result, ir.IfStmt) else result.body
        assert calls(statements(body)) == ["t__tmp_v0 = a", "y = f"]
    alone = body_after(passes.flatten_call_expr, inner)
    assert isinstance(alone, ir.SeqStmts) and calls(alone.stmts) == ["t__tmp_v0 = a", "y = f"]
    scope = ir.InCoreScopeStmt(body=ir.AssignStmt(y, op("f", op("a", x)), S), span=S)
    (stmt,) = flattened(scope)
    assert calls(statements(stmt.body)) == ["t__tmp_v0 = a", "y = f"]
    (evaluated,) = [s for s in flattened(ir.EvalStmt(op("f", op("a", x)), S)) if isinstance(s, ir.EvalStmt)]
    assert isinstance(evaluated.expr, ir.Call)


def test_elements_of_a_tuple_literal_are_not_hoisted_but_their_arguments_are() -> None:
    element = op("dim", op("a", x), type_=SCALAR)
    stmts = flattened(ir.AssignStmt(y, op("slice", x, ir.MakeTuple([element, n], S)), S))
    assert calls(stmts) == ["t__tmp_v0 = a", "y = slice"]
    assert isinstance(stmts[1].value.args[1].elements[0], ir.Call)


def test_arguments_of_a_submit_are_hoisted_and_its_deps_stay() -> None:
    task = ir.ScalarType(ir.DataType.TASK_ID)
    dep = ir.Var("t", task, S)
    submit = ir.Submit(
        ir.GlobalVar("k"),
        [op("a", x)],
        [dep],
        {},
        {},
        ir.TupleType([task]),
        S,
        predicate=ir.gt(op("read", x, type_=SCALAR), n),
    )
    stmts = flattened(ir.EvalStmt(submit, S))
    assert calls(stmts) == ["t__tmp_v0 = a"]
    assert stmts[1].expr.deps[0] is dep
    assert isinstance(stmts[1].expr.predicate.left, ir.Call)


def test_a_submit_in_an_argument_or_a_yield_is_hoisted() -> None:
    task = ir.ScalarType(ir.DataType.TASK_ID)

    def submit(*args: ir.Expr) -> ir.Submit:
        return ir.Submit(ir.GlobalVar("k"), list(args), [], {}, {}, task, S)

    nested = submit()
    first, second = flattened(ir.EvalStmt(submit(nested), S))
    assert first.value is nested and second.expr.args[0] is first.var
    result = ir.Var("r", task, S)
    branch = ir.IfStmt(ir.gt(n, n), ir.YieldStmt([nested], S), ir.YieldStmt([submit()], S), [result], S)
    (stmt,) = flattened(branch)
    hoisted, end = statements(stmt.then_body)
    assert hoisted.value is nested and end.value[0] is hoisted.var


def test_call_attributes_and_keywords_survive() -> None:
    outer = ir.Call(ir.Op("tensor.f"), [op("a", x)], {"axis": 1}, {"device": n}, TENSOR, S)
    stmts = flattened(ir.AssignStmt(y, outer, S))
    assert stmts[1].value.kwargs == {"axis": 1} and stmts[1].value.attrs["device"] is n


def test_a_call_on_a_carried_value_in_a_while_condition_is_a_clear_error() -> None:
    carried, result = ir.IterArg("c", TENSOR, x, S), ir.Var("r", TENSOR, S)
    condition = ir.gt(op("dim", carried, type_=SCALAR), n)
    loop = ir.WhileStmt(condition, [carried], ir.YieldStmt([carried], S), [result], S)
    with pytest.raises(ValueError, match=r"calls 'tensor\.dim' on a value that changes in the loop"):
        flattened(loop)


def test_a_call_on_memory_that_the_loop_writes_in_a_while_condition_is_a_clear_error() -> None:
    text = """
    @incore
    def main(self, x: pl.InOut[T(4, 4)], y: pl.InOut[T(4, 4)]) -> T(4, 4):
        while pl.read(x, [0, 0]) > 0.0:
            pl.write(x, [0, 0], pl.read(x, [0, 0]) - 1.0)
        return x
    """
    with pytest.raises(ValueError, match=r"calls 'tensor\.read' on a value that changes in the loop"):
        passes.flatten_call_expr()(program(text))
    passes.flatten_call_expr()(program(text.replace("pl.write(x", "pl.write(y")))


def test_a_very_deep_call_chain_is_flattened_without_recursion() -> None:
    value: ir.Expr = x
    for _ in range(20_000):
        value = op("f", value)
    assert len(flattened(ir.AssignStmt(y, value, S))) == 20_000


def test_a_call_that_a_loop_starts_from_is_hoisted() -> None:
    before = passes.convert_to_ssa()(
        program(
            """
            @incore
            def f(self, x: T(4, 8)) -> T(8, 4):
                for i, (a,) in pl.range(2, init_values=(pl.abs(pl.reshape(x, [8, 4])),)):
                    r = pl.yield_(pl.neg(a))
                return r
            """
        )
    )
    after = passes.flatten_call_expr()(before)
    first, second, loop, _ = statements(function(after, "f"))
    assert [stmt.value.op.name for stmt in (first, second)] == ["tensor.reshape", "tensor.abs"]
    assert loop.iter_args_[0].initValue is second.var
    produced = passes.flatten_call_expr().get_produced_properties()
    assert passes.PropertyVerifierRegistry.verify(produced, after) == []
