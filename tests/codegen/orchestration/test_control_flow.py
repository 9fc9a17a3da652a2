"""Loops, branches, carries, and the parallel assignment of yields."""

from __future__ import annotations

import pytest

import pypto
from pypto import DataType, InternalError, ir
from tests.codegen.orchestration.builders import (
    FP32,
    INDEX,
    INT64,
    SPAN,
    TASK_ID,
    PDir,
    assign,
    auto,
    body_of,
    call,
    compile_text,
    const,
    create,
    generate,
    kernel,
    loop,
    manual,
    op,
    scalar,
    seq,
    submit,
    tensor,
    unary,
    unpack,
    upto,
    var,
    yields,
)


def evaluated(value):
    return ir.EvalStmt(value, SPAN)


def iter_arg(name, init):
    return ir.IterArg(name, init.type, init, SPAN)


@pytest.mark.parametrize(
    ("start", "stop", "step", "head"),
    [
        (0, 8, 1, "for (int64_t j = 0; j < 8; j += 1) {"),
        (7, -1, -1, "for (int64_t j = 7; j > -1; j += -1) {"),
        (0, 8, 0, "for (int64_t j = 0; false; j += 0) {"),
    ],
)
def test_loop_heads_follow_the_sign_of_a_constant_step(start, stop, step, head, tmp_path):
    bounds = (const(start), const(stop), const(step))
    result = generate([], auto(loop(scalar("j", INDEX), bounds, [], auto())))
    assert head in result.code
    compile_text(result.code, tmp_path)


def test_a_run_time_step_compares_by_its_sign(tmp_path):
    s, n = scalar("s", INDEX), scalar("n", INDEX)
    result = generate([s, n], auto(loop(scalar("j", INDEX), (const(0), n, s), [], auto())))
    assert "for (int64_t j = 0; (((s) > 0 && j < n) || ((s) < 0 && j > n)); j += s) {" in result.code
    compile_text(result.code, tmp_path)


def test_an_unnamed_loop_variable_is_called_i():
    inner = loop(scalar("_", INDEX), upto(2), [], auto())
    text = generate([], auto(loop(scalar("_", INDEX), upto(4), [], auto(inner)))).code
    assert "for (int64_t i = 0; i < 4; i += 1) {" in text
    assert "for (int64_t i_1 = 0; i_1 < 2; i_1 += 1) {" in text


def test_unrolled_and_pipelined_loops_are_reported():
    for kind in (ir.ForKind.Unroll, ir.ForKind.Pipeline):
        with pytest.raises(InternalError, match=kind.name):
            generate([], auto(loop(scalar("j", INDEX), upto(2), [], auto(), kind)))


def test_a_trivial_carry_declares_nothing():
    k = unary("k")
    x, out = var("x"), var("out")
    arg, result_var, inner = iter_arg("o", out), var("o_rv"), var("o_in")
    body = auto(assign(inner, call(k, [x, arg], "ix")), yields(inner))
    text = generate(
        [x, out],
        auto(
            loop(scalar("i", INDEX), upto(4), [(arg, result_var)], body, iter_arg_rebind_0=False),
            evaluated(call(k, [x, result_var], "ix")),
        ),
        k,
    ).code
    assert "ChipTensor" not in text.split("Entry")[-1].split("External tensors")[1].replace(
        "const ChipTensor&", ""
    )
    assert text.count("add_inout(ext_out);") == 2


def test_swapped_tensor_carries_keep_both_buffers(tmp_path):
    a, b = var("a"), var("b")
    left, right = iter_arg("l", a), iter_arg("r", b)
    left_rv, right_rv = var("l__rv"), var("r__rv")
    text = generate(
        [a, b],
        auto(
            loop(scalar("i", INDEX), upto(3), [(left, left_rv), (right, right_rv)], auto(yields(right, left)))
        ),
    ).code
    lines = [line.strip() for line in text.splitlines() if "__rv" in line]
    assert lines == [
        "ChipTensor l__rv = ext_a;",
        "ChipTensor r__rv = ext_b;",
        "ChipTensor r__rv_next = l__rv;",
        "l__rv = r__rv;",
        "r__rv = r__rv_next;",
    ]
    compile_text(text, tmp_path)


def test_fibonacci_carries_are_assigned_in_parallel(tmp_path):
    x, y = iter_arg("x", const(0, INT64)), iter_arg("y", const(1, INT64))
    x_rv, y_rv = scalar("x__rv"), scalar("y__rv")
    body = auto(yields(y, ir.Add(x, y, INT64, SPAN)))
    text = generate([], auto(loop(scalar("i", INDEX), upto(9), [(x, x_rv), (y, y_rv)], body))).code
    assert "int64_t x__rv = 0;" in text
    assert (
        """\
                int64_t y__rv_next = (x__rv + y__rv);
                x__rv = y__rv;
                y__rv = y__rv_next;
"""
        in text
    )
    compile_text(text, tmp_path)


def test_a_tensor_carry_that_alternates_two_buffers_is_a_variable(tmp_path):
    k = unary("k")
    x, a, b = var("x"), var("a"), var("b")
    cur, cur_rv = iter_arg("cur", a), var("cur__rv")
    made = var("t")
    creation = assign(made, op("tensor.create", [ir.MakeTuple([const(32)] * 2, SPAN)], made.type, dtype=FP32))
    written = var("t__ssa_v1")
    body = auto(creation, assign(written, call(k, [cur, made], "io")), yields(written))
    text = generate(
        [x, a, b],
        auto(loop(scalar("i", INDEX), upto(4), [(cur, cur_rv)], body), evaluated(call(k, [cur_rv, b], "io"))),
        k,
    ).code
    assert "ChipTensor cur__rv = ext_a;" in text
    assert "params_t0.add_input(cur__rv);" in text
    assert "cur__rv = t;" in text
    assert "params_t1.add_input(cur__rv);" in text
    compile_text(text, tmp_path)


def test_a_scalar_carry_seeded_by_a_literal_without_rebinding_is_the_literal():
    k = kernel("k", [(scalar("s"), PDir.In)])
    arg, rv = iter_arg("s", const(-1, INT64)), scalar("s__rv")
    body = auto(evaluated(call(k, [arg], "s")), yields(arg))
    text = generate(
        [], auto(loop(scalar("i", INDEX), upto(2), [(arg, rv)], body, iter_arg_rebind_0=False)), k
    ).code
    assert "add_scalar((uint64_t)-1);" in text


def test_an_if_with_a_tensor_result_starts_from_the_first_tensor_parameter(tmp_path):
    k = unary("k")
    x, out, c = var("x"), var("out"), scalar("c", DataType.BOOL)
    y, z = var("y"), var("z")
    branch = ir.IfStmt(
        c,
        auto(assign(y, call(k, [x, out], "io")), yields(y)),
        auto(yields(x)),
        [z],
        SPAN,
    )
    text = body_of(generate([x, out, c], auto(branch, evaluated(call(k, [z, out], "ix"))), k))
    assert "    ChipTensor z = ext_x;\n    if (c) {\n        PTO2_SCOPE() {\n" in text
    assert "z = ext_out;" in text
    assert "} else {" in text
    assert "z = ext_x;\n" in text.split("} else {")[1]
    compile_text(generate([x, out, c], auto(branch), k).code, tmp_path)


def test_an_if_without_tensor_parameters_starts_from_a_tensor_that_a_branch_yields(tmp_path):
    c = scalar("c", DataType.BOOL)
    made, other, z = var("t"), var("u"), var("z")
    shape = ir.MakeTuple([const(32)] * 2, SPAN)
    creation = assign(made, op("tensor.create", [shape], made.type, dtype=FP32))
    inner = assign(other, op("tensor.create", [shape], made.type, dtype=FP32))
    branch = ir.IfStmt(c, auto(inner, yields(other)), auto(yields(made)), [z], SPAN)
    result = generate([c], auto(creation, branch))
    assert "ChipTensor z = t;" in result.code
    compile_text(result.code, tmp_path)
    nothing = ir.IfStmt(c, auto(inner, yields(other)), auto(inner, yields(other)), [z], SPAN)
    with pytest.raises(InternalError, match="'z' has no tensor to start with"):
        generate([c], auto(nothing))


def test_scalar_and_task_results_of_a_branch_are_declared_before_it(tmp_path):
    k = unary("k")
    x, out, c = var("x"), var("out"), scalar("c", DataType.BOOL)
    n, tid = scalar("n"), var("tid", TASK_ID)
    none = var("none", TASK_ID)
    stmts, (_, made) = unpack("r", submit(k, [x, out], "io"))
    branch = ir.IfStmt(
        ir.Gt(scalar_of(c), const(0, INT64), DataType.BOOL, SPAN),
        auto(*stmts, yields(const(3, INT64), made)),
        auto(assign(none, op("system.task_invalid", [], TASK_ID)), yields(const(4, INT64), none)),
        [n, tid],
        SPAN,
    )
    dependent = evaluated(submit(k, [x, out], "ix", [tid]))
    result = generate([x, out, c], auto(branch, dependent), k)
    text = result.code
    assert "int64_t n;" in text
    assert "PTO2TaskId tid;" in text
    assert "if ((static_cast<int64_t>(c) > 0)) {" in text
    assert "if (tid.is_valid()) params_t1_deps[params_t1_deps_count++] = tid;" in text
    compile_text(text, tmp_path)


def scalar_of(flag):
    return ir.Cast(flag, INT64, SPAN)


def test_a_while_loop_is_a_loop_whose_condition_reads_the_carries(tmp_path):
    n = iter_arg("n", const(10, INT64))
    n_rv = scalar("n__rv")
    body = seq(yields(ir.Sub(n, const(1, INT64), INT64, SPAN)))
    stmt = ir.WhileStmt(ir.Gt(n, const(0, INT64), DataType.BOOL, SPAN), [n], body, [n_rv], SPAN)
    result = generate([], auto(stmt))
    assert (
        """\
        int64_t n__rv = 10;
        while ((n__rv > 0)) {
            if (rt_is_fatal()) break;
            n__rv = (n__rv - 1);
        }
"""
        in result.code
    )
    compile_text(result.code, tmp_path)


def test_array_carries_share_the_array_that_they_start_with(tmp_path):
    type_ = ir.ArrayType(INT64, 4)
    made, updated = var("a", type_), var("a__ssa_v1", type_)
    arg, rv = ir.IterArg("a_it", type_, made, SPAN), var("a__rv", type_)
    i = scalar("i", INDEX)
    body = auto(
        assign(updated, op("array.update_element", [arg, i, ir.Cast(i, INT64, SPAN)], type_)), yields(updated)
    )
    value = scalar("v")
    result = generate(
        [],
        auto(
            assign(made, op("array.create", [const(4)], type_, dtype=INT64)),
            loop(i, upto(4), [(arg, rv)], body),
            assign(value, op("array.get_element", [rv, const(2)], ir.ScalarType(INT64))),
        ),
    )
    assert "int64_t a[4] = {0};" in result.code
    assert "a[i] = static_cast<int64_t>(i);" in result.code
    assert "int64_t v = a[2];" in result.code
    assert result.code.count("int64_t a") == 1
    compile_text(result.code, tmp_path)


def test_the_phase_loop_keeps_the_ids_of_all_lanes(tmp_path):
    k = unary("k")
    x, out = var("x"), var("out")
    none = var("none", TASK_ID)
    outer_arg, outer_rv = ir.IterArg("prev", TASK_ID, none, SPAN), var("prev__rv", TASK_ID)
    inner_arg, inner_rv = ir.IterArg("lane", TASK_ID, outer_arg, SPAN), var("lane__rv", TASK_ID)
    stmts, (_, tid) = unpack("r", submit(k, [x, out], "io", [inner_arg]))
    inner = loop(
        scalar("j", INDEX),
        upto(4),
        [(inner_arg, inner_rv)],
        seq(*stmts, yields(tid)),
        ir.ForKind.Parallel,
        iter_arg_array_size_0=4,
    )
    outer = loop(
        scalar("p", INDEX),
        upto(3),
        [(outer_arg, outer_rv)],
        seq(inner, yields(inner_rv)),
        iter_arg_array_size_0=4,
    )
    body = auto(manual(assign(none, op("system.task_invalid", [], TASK_ID)), outer))
    result = generate([x, out], body, k)
    text = result.code
    for line in (
        "PTO2TaskId prev__rv[4];",
        "for (int64_t __init_i = 0; __init_i < 4; __init_i += 1) prev__rv[__init_i] = none;",
        "PTO2TaskId lane__rv[4];",
        "for (int64_t __init_i = 0; __init_i < 4; __init_i += 1) lane__rv[__init_i] = prev__rv[__init_i];",
        "PTO2TaskId params_t0_deps[4];",
        "if (prev__rv[3].is_valid()) params_t0_deps[params_t0_deps_count++] = prev__rv[3];",
        "lane__rv[j] = r_1;",
        "for (int64_t __yield_i = 0; __yield_i < 4; __yield_i += 1) "
        "prev__rv[__yield_i] = lane__rv[__yield_i];",
    ):
        assert line in text, line
    compile_text(text, tmp_path)


def test_slots_of_a_parallel_loop_count_iterations_from_its_start():
    k = unary("k")
    x, out = var("x"), var("out")
    none = var("none", TASK_ID)
    arg, rv = ir.IterArg("t", TASK_ID, none, SPAN), var("t__rv", TASK_ID)
    stmts, (_, tid) = unpack("r", submit(k, [x, out], "io"))
    bounds = (const(8), const(0), const(-2))
    parallel = loop(
        scalar("j", INDEX),
        bounds,
        [(arg, rv)],
        seq(*stmts, yields(tid)),
        ir.ForKind.Parallel,
        iter_arg_array_size_0=4,
    )
    text = generate(
        [x, out], auto(manual(assign(none, op("system.task_invalid", [], TASK_ID)), parallel)), k
    ).code
    assert "t__rv[(j - 8) / -2] = r_1;" in text


def test_jumps_leave_loops_that_carry_nothing_new(tmp_path):
    c = scalar("c", DataType.BOOL)
    out = var("out")
    arg, rv = iter_arg("o", out), var("o_rv")
    leave = ir.IfStmt(c, auto(ir.BreakStmt(SPAN)), auto(ir.ContinueStmt(SPAN)), [], SPAN)
    body = auto(leave, yields(arg))
    stmt = loop(scalar("i", INDEX), upto(4), [(arg, rv)], body, iter_arg_rebind_0=False)
    result = generate([out, c], auto(stmt))
    assert "break;" in result.code and "continue;" in result.code
    compile_text(result.code, tmp_path)


def test_jumps_that_would_lose_a_carried_value_are_refused():
    arg, rv = iter_arg("n", const(0, INT64)), scalar("n__rv")
    for jump, word in ((ir.BreakStmt(SPAN), "break"), (ir.ContinueStmt(SPAN), "continue")):
        stmt = loop(scalar("i", INDEX), upto(4), [(arg, rv)], auto(jump, yields(arg)))
        with pytest.raises(ValueError, match=f"{word} is not supported .* carries a value"):
            generate([], auto(stmt))


def test_a_return_inside_a_branch_is_refused():
    c = scalar("c", DataType.BOOL)
    branch = ir.IfStmt(c, auto(ir.ReturnStmt(SPAN)), None, [], SPAN)
    with pytest.raises(ValueError, match="a return inside a loop or branch"):
        generate([c], auto(branch))


def test_inline_text_and_unlowered_scopes_are_reported():
    with pytest.raises(ValueError, match="inline source text"):
        generate([], auto(ir.InlineStmt("x = 1", ir.InlineLanguage.Python, SPAN)))
    with pytest.raises(pypto.Error, match="SplitIncoreOrch does not hold"):
        generate([], auto(ir.InCoreScopeStmt(body=seq(), span=SPAN)))


@pytest.mark.parametrize(
    ("extent", "undo"),
    [
        (lambda m: m * 8, " / 8"),
        (lambda m: ir.Mul(const(8), m, INDEX, SPAN), " / 8"),
        (lambda m: m + 2, " - 2"),
        (lambda m: ir.Add(const(2), m, INDEX, SPAN), " - 2"),
        (lambda m: m - 2, " + 2"),
    ],
)
def test_a_symbol_is_recovered_from_a_composite_extent(extent, undo, tmp_path):
    m = scalar("M", INDEX)
    x = var("x", tensor([extent(m), 16]))
    loops = loop(scalar("i", INDEX), upto(m), [], auto())
    result = generate([x], auto(loops))
    assert f"int64_t M = (int64_t)orch_args.tensor(0).ref().shapes[0]{undo};" in result.code
    plain = var("y", tensor([m]))
    result = generate([x, plain], auto(loops))
    assert "int64_t M = (int64_t)orch_args.tensor(1).ref().shapes[0];" in result.code
    compile_text(result.code, tmp_path)


def test_a_symbol_that_no_extent_determines_is_named():
    m = scalar("M", INDEX)
    for extent in (m * m, ir.FloorDiv(m, const(2), INDEX, SPAN)):
        with pytest.raises(ValueError, match=r"Cannot recover dynamic dimension 'M' in 'orch'.* of 'x'"):
            generate([var("x", tensor([extent]))], auto(loop(scalar("i", INDEX), upto(m), [], auto())))


def test_loops_over_a_tensor_of_dynamic_extent_define_the_symbol_once(tmp_path):
    m = scalar("M", INDEX)
    unused = scalar("N", INDEX)
    x = var("x", tensor([m, unused]))
    result = generate(
        [x],
        auto(loop(scalar("i", INDEX), upto(m), [], auto()), loop(scalar("j", INDEX), upto(m), [], auto())),
    )
    assert result.code.count("int64_t M = (int64_t)orch_args.tensor(0).ref().shapes[0];") == 1
    assert "// Dynamic-dim symbols (extent of the declaring argument)" in result.code
    assert " N = " not in result.code
    compile_text(result.code, tmp_path)


def test_a_symbol_that_sizes_a_buffer_is_defined_once_from_the_first_tensor_that_declares_it(tmp_path):
    m = scalar("M", INDEX)
    x, y = var("x", tensor([8, m])), var("y", tensor([m]))
    result = generate([x, y], auto(create("t", [m]), create("u", [const(4), m])))
    assert result.code.count("int64_t M = (int64_t)orch_args.tensor(0).ref().shapes[1];") == 1
    assert result.code.count(" M = ") == 1
    assert "t_ci_shapes[1] = {static_cast<uint32_t>(M)};" in result.code
    compile_text(result.code, tmp_path)


def test_a_symbol_that_only_a_comment_mentions_is_not_defined():
    k = unary("M")
    x, out = var("x", tensor([scalar("M", INDEX), 16])), var("out")
    text = generate([x, out], auto(evaluated(call(k, [x, out], "io"))), k).code
    assert "// Task 0: M" in text
    assert "int64_t M" not in text and "Dynamic-dim" not in text


def test_a_scalar_parameter_with_the_name_of_a_symbol_stands_for_it(tmp_path):
    m, param = scalar("M", INDEX), scalar("M", INDEX)
    x = var("x", tensor([m, 16]))
    result = generate([x, param], auto(loop(scalar("i", INDEX), upto(m), [], auto())))
    assert "shapes[0]" not in result.code
    assert "i < M;" in result.code
    compile_text(result.code, tmp_path)
