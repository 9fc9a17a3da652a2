"""CtrlFlowTransform: the shape of what replaces break and continue. Meaning is tested on random programs."""

from __future__ import annotations

import pytest

from pypto import ir, passes
from pypto.ir.walk import walk
from pypto.testing.interpreter import run
from tests.passes.dsl import program

S = ir.Span.unknown()
INDEX, BOOL = ir.DataType.INDEX, ir.DataType.BOOL
SCALAR = ir.ScalarType(INDEX)


def c(value: int) -> ir.ConstInt:
    return ir.ConstInt(value, INDEX, S)


def var(name: str) -> ir.Var:
    return ir.Var(name, SCALAR, S)


i, a, b, n = var("i"), var("a"), var("b"), var("n")
BREAK, CONTINUE = ir.BreakStmt(S), ir.ContinueStmt(S)


def bump(target: ir.Var, by: int) -> ir.Stmt:
    return ir.AssignStmt(target, ir.add(target, c(by)), S)


def seq(*stmts: ir.Stmt) -> ir.Stmt:
    return ir.flatten_stmts(list(stmts), S)


def if_(condition: ir.Expr, then: ir.Stmt, other: ir.Stmt | None = None) -> ir.Stmt:
    return ir.IfStmt(condition, then, other, [], S)


def for_(body: ir.Stmt, start: int = 0, stop: int = 10, step: int = 1) -> ir.ForStmt:
    return ir.ForStmt(i, c(start), c(stop), c(step), [], body, [], S)


def kernel(*stmts: ir.Stmt, kind: ir.FunctionType = ir.FunctionType.InCore) -> ir.Program:
    starts = [ir.AssignStmt(a, n, S), ir.AssignStmt(b, c(0), S)]
    body = seq(*starts, *stmts, ir.ReturnStmt([a, b], S))
    return ir.Program([ir.Function("main", [n], [SCALAR, SCALAR], body, S, type=kind)], "P", S)


def lowered(source: ir.Program) -> list[str]:
    """The printed loop (and what precedes it) after the pass, which must compute the same."""
    result = passes.ctrl_flow_transform()(source)
    for value in range(6):
        assert run(result, "main", value) == run(source, "main", value)
    lines = result.as_python(format=False).splitlines()
    start = next(k for k, line in enumerate(lines) if "b: pl.Scalar" in line)
    return [
        line[8:].replace(": pl.Scalar[pl.INDEX]", "").replace(": pl.Scalar[pl.BOOL]", "")
        for line in lines[start + 1 : -1]
    ]


def test_continue_moves_the_rest_into_the_other_branch() -> None:
    body = seq(bump(a, 1), if_(ir.gt(i, c(3)), CONTINUE), bump(b, 2))
    assert lowered(kernel(for_(body))) == [
        "for i in pl.range(10):",
        "    a = a + 1",
        "    if i > 3:",
        "        pass",
        "    else:",
        "        b = b + 2",
    ]


def test_continue_in_the_else_branch_moves_the_rest_into_the_then_branch() -> None:
    body = seq(if_(ir.gt(i, c(3)), bump(a, 1), CONTINUE), bump(b, 2))
    assert lowered(kernel(for_(body))) == [
        "for i in pl.range(10):",
        "    if i > 3:",
        "        a = a + 1",
        "        b = b + 2",
        "    else:",
        "        pass",
    ]


def test_what_follows_a_bare_continue_goes() -> None:
    assert lowered(kernel(for_(seq(bump(a, 1), CONTINUE, bump(b, 2))))) == [
        "for i in pl.range(10):",
        "    a = a + 1",
    ]


def test_a_for_with_break_becomes_a_while_with_index_and_flag() -> None:
    body = seq(if_(ir.gt(i, c(3)), BREAK), bump(b, 2))
    assert lowered(kernel(for_(body))) == [
        "i__idx_v1 = 0",
        "break__tmp_v0 = False",
        "while i__idx_v1 < 10 and not break__tmp_v0:",
        "    if i__idx_v1 > 3:",
        "        break__tmp_v0 = True",
        "        pl.yield_()",
        "    else:",
        "        b = b + 2",
        "        pl.yield_()",
        "    if not break__tmp_v0:",
        "        i__idx_v1 = i__idx_v1 + 1",
    ]


def test_a_negative_step_counts_down() -> None:
    body = seq(if_(ir.gt(c(3), i), BREAK), bump(b, 2))
    text = lowered(kernel(for_(body, 9, 0, -1)))
    assert "while i__idx_v1 > 0 and not break__tmp_v0:" in text


def test_statements_before_the_break_stay() -> None:
    body = seq(if_(ir.gt(i, c(3)), seq(bump(a, 5), BREAK)), bump(b, 2))
    text = lowered(kernel(for_(body)))
    assert text[3:7] == [
        "    if i__idx_v1 > 3:",
        "        a = a + 5",
        "        break__tmp_v0 = True",
        "        pl.yield_()",
    ]


def test_statements_before_a_continue_in_its_branch_stay() -> None:
    body = seq(if_(ir.gt(i, c(3)), seq(bump(a, 5), CONTINUE)), bump(b, 2))
    assert lowered(kernel(for_(body))) == [
        "for i in pl.range(10):",
        "    if i > 3:",
        "        a = a + 5",
        "    else:",
        "        b = b + 2",
    ]


def test_what_follows_a_bare_break_goes() -> None:
    assert lowered(kernel(for_(seq(bump(a, 1), BREAK, bump(b, 2))))) == [
        "i__idx_v1 = 0",
        "break__tmp_v0 = False",
        "while i__idx_v1 < 10 and not break__tmp_v0:",
        "    a = a + 1",
        "    break__tmp_v0 = True",
        "    if not break__tmp_v0:",
        "        i__idx_v1 = i__idx_v1 + 1",
    ]


def test_a_step_that_is_not_constant_counts_up() -> None:
    body = seq(if_(ir.gt(i, c(3)), BREAK), bump(b, 2))
    loop = ir.ForStmt(i, c(0), c(9), ir.add(n, c(1)), [], body, [], S)
    assert "while i__idx_v1 < 9 and not break__tmp_v0:" in lowered(kernel(loop))


@pytest.mark.parametrize("kind", [ir.FunctionType.InCore, ir.FunctionType.AIC, ir.FunctionType.AIV])
def test_every_kind_of_kernel_loses_its_breaks(kind: ir.FunctionType) -> None:
    source = kernel(for_(seq(if_(ir.gt(i, c(3)), BREAK, CONTINUE), bump(b, 2))), kind=kind)
    lowered(source)
    properties = passes.ctrl_flow_transform().get_produced_properties()
    verify = passes.PropertyVerifierRegistry.verify
    assert verify(properties, source) and not verify(properties, passes.ctrl_flow_transform()(source))


def test_break_in_the_else_branch_is_the_mirror_image() -> None:
    body = seq(if_(ir.lt(i, c(3)), bump(a, 1), BREAK), bump(b, 2))
    assert lowered(kernel(for_(body)))[3:10] == [
        "    if i__idx_v1 < 3:",
        "        a = a + 1",
        "        b = b + 2",
        "        pl.yield_()",
        "    else:",
        "        break__tmp_v0 = True",
        "        pl.yield_()",
    ]


def test_break_in_both_branches_drops_the_rest() -> None:
    body = seq(if_(ir.lt(i, c(3)), seq(bump(a, 1), BREAK), BREAK), bump(b, 2))
    assert not any("b + 2" in line for line in lowered(kernel(for_(body))))


def test_a_nested_break_guards_the_rest() -> None:
    inner = seq(bump(a, 1), if_(ir.gt(i, c(5)), BREAK))
    body = seq(if_(ir.gt(i, c(3)), inner), bump(b, 2))
    assert lowered(kernel(for_(body)))[3:] == [
        "    if i__idx_v1 > 3:",
        "        a = a + 1",
        "        if i__idx_v1 > 5:",
        "            break__tmp_v0 = True",
        "            pl.yield_()",
        "        else:",
        "            pl.yield_()",
        "    else:",
        "        pass",
        "    if not break__tmp_v0:",
        "        b = b + 2",
        "        pl.yield_()",
        "    else:",
        "        pl.yield_()",
        "    if not break__tmp_v0:",
        "        i__idx_v1 = i__idx_v1 + 1",
    ]


def test_a_continue_nested_two_deep_skips_what_follows_the_outer_if() -> None:
    inner = seq(bump(a, 1), if_(ir.gt(i, c(5)), CONTINUE))
    body = seq(if_(ir.gt(i, c(3)), inner), bump(b, 2))
    text = lowered(kernel(for_(body)))
    assert text[:3] == ["for i in pl.range(10):", "    continue__tmp_v0 = False", "    if i > 3:"]
    assert "    if not continue__tmp_v0:" in text


def test_a_while_with_break_gets_a_flag_and_no_index() -> None:
    w = var("w")
    body = seq(ir.AssignStmt(w, ir.sub(w, c(1)), S), if_(ir.eq(w, c(2)), BREAK), bump(b, 1))
    loop = ir.WhileStmt(ir.gt(w, c(0)), [], body, [], S)
    text = lowered(kernel(ir.AssignStmt(w, c(5), S), loop))
    assert text == [
        "w = 5",
        "break__tmp_v0 = False",
        "while w > 0 and not break__tmp_v0:",
        "    w = w - 1",
        "    if w == 2:",
        "        break__tmp_v0 = True",
        "        pl.yield_()",
        "    else:",
        "        b = b + 1",
        "        pl.yield_()",
    ]


def test_break_and_continue_in_one_loop() -> None:
    body = seq(if_(ir.eq(i, n), CONTINUE), if_(ir.gt(i, c(6)), BREAK), bump(b, 2))
    lowered(kernel(for_(body)))


def test_breaks_on_both_levels_of_nested_loops() -> None:
    k = var("k")
    inner = ir.ForStmt(k, c(0), c(4), c(1), [], seq(if_(ir.gt(k, i), BREAK), bump(a, 1)), [], S)
    text = lowered(kernel(for_(seq(inner, if_(ir.gt(i, c(2)), BREAK), bump(b, 1)))))
    assert "break__tmp_v2 = False" in text and "    break__tmp_v0 = False" in text


def test_a_break_in_the_inner_loop_leaves_the_outer_one_alone() -> None:
    k = var("k")
    inner = ir.ForStmt(k, c(0), c(4), c(1), [], seq(if_(ir.gt(k, i), BREAK), bump(a, 1)), [], S)
    text = lowered(kernel(for_(seq(inner, bump(b, 1)))))
    assert text[0] == "for i in pl.range(10):" and not any(line.startswith("while") for line in text)


def test_a_break_in_the_first_statement() -> None:
    body = seq(if_(ir.gt(i, n), BREAK), bump(b, 2))
    assert lowered(kernel(for_(body)))[3] == "    if i__idx_v1 > n:"
    lowered(kernel(for_(seq(BREAK, bump(b, 2)))))


def test_a_second_run_finds_nothing_to_do() -> None:
    once = passes.ctrl_flow_transform()(kernel(for_(seq(if_(ir.gt(i, c(3)), BREAK), bump(b, 2)))))
    assert passes.ctrl_flow_transform()(once) is once


def test_the_bound_of_a_rewritten_loop_is_evaluated_once() -> None:
    body = seq(if_(ir.gt(i, c(6)), BREAK), ir.AssignStmt(n, ir.sub(n, c(1)), S), bump(b, 1))
    loop = ir.ForStmt(i, c(0), n, c(1), [], body, [], S)
    assert lowered(kernel(loop))[0] == "stop__tmp_v2 = n"


def test_a_bound_that_is_read_from_memory_is_read_once() -> None:
    source = program(
        """
    @incore
    def main(self, x: pl.InOut[pl.Tensor[[4], pl.INT32]]) -> pl.Tensor[[4], pl.INT32]:
        for i in pl.range(pl.read(x, [0])):
            if i > 2:
                break
            pl.write(x, [0], pl.read(x, [1]))
        return x
    """
    )
    first, *_, loop, _ = ir.flatten_to_stmts(passes.ctrl_flow_transform()(source).functions_["main"].body)
    assert first.var.name_hint == "stop__tmp_v2" and first.value.op.name == "tensor.read"
    nodes = list(walk(loop.condition))
    assert any(node is first.var for node in nodes) and not any(isinstance(node, ir.Call) for node in nodes)


def test_carried_values_pass_through_the_new_branches() -> None:
    """A loop in SSA form: the escape yields what is known there, the other side what it computes."""
    acc, result = ir.IterArg("acc", SCALAR, n, S), var("result")
    x, y = var("x"), var("y")
    body = seq(
        ir.AssignStmt(x, ir.add(acc, c(1)), S),
        if_(ir.gt(i, c(3)), BREAK),
        ir.AssignStmt(y, ir.add(x, i), S),
        ir.YieldStmt([y], S),
    )
    loop = ir.ForStmt(i, c(0), c(10), c(1), [acc], body, [result], S)
    main = ir.Function(
        "main", [n], [SCALAR], seq(loop, ir.ReturnStmt([result], S)), S, type=ir.FunctionType.InCore
    )
    converted = passes.convert_to_ssa()(passes.ctrl_flow_transform()(ir.Program([main], "P", S)))
    assert passes.PropertyVerifierRegistry.verify(passes.get_default_verify_properties(), converted) == []
    # Four trips add 1 + i each; at the fifth the break takes the value carried into it.
    assert run(converted, "main", 10) == [10 + 4 + 6]


def test_a_value_of_an_inner_branch_is_available_at_a_continue() -> None:
    acc, result, x = ir.IterArg("acc", SCALAR, n, S), var("result"), var("x")
    inner = ir.IfStmt(
        ir.gt(i, c(1)), ir.YieldStmt([ir.add(acc, c(1))], S), ir.YieldStmt([ir.add(acc, c(10))], S), [x], S
    )
    body = seq(inner, if_(ir.eq(i, c(0)), CONTINUE), ir.YieldStmt([x], S))
    loop = ir.ForStmt(i, c(0), c(3), c(1), [acc], body, [result], S)
    main = ir.Function(
        "main", [n], [SCALAR], seq(loop, ir.ReturnStmt([result], S)), S, type=ir.FunctionType.InCore
    )
    converted = passes.convert_to_ssa()(passes.ctrl_flow_transform()(ir.Program([main], "P", S)))
    assert run(converted, "main", 0) == [10 + 10 + 1]


def test_orchestrations_and_functions_without_escapes_are_returned_themselves() -> None:
    source = kernel(for_(seq(if_(ir.gt(i, c(3)), BREAK), bump(b, 2))), kind=ir.FunctionType.Orchestration)
    assert passes.ctrl_flow_transform()(source) is source
    source = kernel(for_(bump(b, 2)))
    assert passes.ctrl_flow_transform()(source) is source


def test_a_scope_that_becomes_a_kernel_loses_its_breaks_and_the_orchestration_around_it_keeps_them() -> None:
    escaping = seq(if_(ir.gt(i, c(3)), BREAK), bump(b, 2))
    scope = ir.InCoreScopeStmt(body=for_(escaping), span=S)
    k = var("k")
    around = ir.ForStmt(k, c(0), c(2), c(1), [], seq(scope, if_(ir.gt(k, c(0)), CONTINUE)), [], S)
    source = kernel(around, kind=ir.FunctionType.Opaque)
    result = passes.ctrl_flow_transform()(source)
    for value in range(6):
        assert run(result, "main", value) == run(source, "main", value)
    (kept,) = [node for node in walk(result.functions_["main"].body) if isinstance(node, ir.ForStmt)]
    assert kept.loop_var is k and any(isinstance(node, ir.ContinueStmt) for node in walk(kept))
    assert not any(isinstance(node, ir.BreakStmt) for node in walk(kept))


def test_an_escape_inside_an_if_that_returns_values_keeps_them() -> None:
    result = var("r")
    nested = if_(ir.gt(i, c(5)), BREAK)
    stmt = ir.IfStmt(ir.gt(i, c(3)), seq(nested, ir.YieldStmt([a], S)), ir.YieldStmt([b], S), [result], S)
    text = lowered(kernel(for_(seq(stmt, ir.AssignStmt(b, ir.add(result, c(1)), S)))))
    assert "    r = a" in text and "        b = r + 1" in text


def test_break_and_continue_in_one_loop_that_carries_values() -> None:
    acc, result, x, y = ir.IterArg("acc", SCALAR, n, S), var("result"), var("x"), var("y")
    body = seq(
        if_(ir.eq(i, c(1)), CONTINUE),
        ir.AssignStmt(x, ir.add(acc, c(1)), S),
        if_(ir.gt(i, c(3)), BREAK),
        ir.AssignStmt(y, ir.add(x, i), S),
        ir.YieldStmt([y], S),
    )
    loop = ir.ForStmt(i, c(0), c(10), c(1), [acc], body, [result], S)
    main = ir.Function(
        "main", [n], [SCALAR], seq(loop, ir.ReturnStmt([result], S)), S, type=ir.FunctionType.InCore
    )
    converted = passes.convert_to_ssa()(passes.ctrl_flow_transform()(ir.Program([main], "P", S)))
    assert passes.PropertyVerifierRegistry.verify(passes.get_default_verify_properties(), converted) == []
    assert run(converted, "main", 10) == [10 + (1 + 0) + (1 + 2) + (1 + 3)]


def test_the_result_of_an_if_with_a_break_inside_is_available_at_a_later_break() -> None:
    acc, result, r = ir.IterArg("acc", SCALAR, n, S), var("result"), var("r")
    nested = if_(ir.gt(i, c(5)), BREAK)
    then = seq(nested, ir.YieldStmt([ir.add(acc, c(1))], S))
    branch = ir.IfStmt(ir.gt(i, c(0)), then, ir.YieldStmt([ir.add(acc, c(10))], S), [r], S)
    body = seq(branch, if_(ir.gt(i, c(1)), BREAK), ir.YieldStmt([r], S))
    loop = ir.ForStmt(i, c(0), c(10), c(1), [acc], body, [result], S)
    main = ir.Function(
        "main", [n], [SCALAR], seq(loop, ir.ReturnStmt([result], S)), S, type=ir.FunctionType.InCore
    )
    converted = passes.convert_to_ssa()(passes.ctrl_flow_transform()(ir.Program([main], "P", S)))
    assert run(converted, "main", 100) == [100 + 10 + 1 + 1]


def test_an_escape_inside_an_if_that_computes_a_tensor_is_a_clear_error() -> None:
    tensor = ir.TensorType([4], ir.DataType.FP32)
    x, made, result = (ir.Var(name, tensor, S) for name in ("x", "made", "r"))
    compute = ir.AssignStmt(made, ir.op.tensor.add(x, x), S)
    then = seq(if_(ir.gt(i, c(5)), BREAK), compute, ir.YieldStmt([made], S))
    other = ir.Var("other", tensor, S)
    otherwise = seq(ir.AssignStmt(other, ir.op.tensor.mul(x, x), S), ir.YieldStmt([other], S))
    loop = for_(ir.IfStmt(ir.gt(i, c(3)), then, otherwise, [result], S))
    main = ir.Function("main", [x], [], loop, S, type=ir.FunctionType.InCore)
    with pytest.raises(ValueError, match="returns the new tensor 'r' is not supported"):
        passes.ctrl_flow_transform()(ir.Program([main], "P", S))


def test_names_after_ssa_conversion() -> None:
    source = kernel(for_(seq(if_(ir.gt(i, c(3)), BREAK), bump(b, 2))))
    converted = passes.convert_to_ssa()(passes.ctrl_flow_transform()(source))
    loop = next(
        s for s in ir.flatten_to_stmts(converted.functions_["main"].body) if isinstance(s, ir.WhileStmt)
    )
    assert [arg.name_hint for arg in loop.iter_args] == ["b__iter_v1", "break__iter_v1", "i__iter_v1"]
    assert [rv.name_hint for rv in loop.return_vars] == ["b__rv_v2", "break__rv_v2", "i__rv_v2"]
