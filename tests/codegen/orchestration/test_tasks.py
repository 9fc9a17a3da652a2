"""Task blocks: payload order, directions, wrappers, results, omitted outputs, predicates."""

from __future__ import annotations

import pytest

from pypto import DataType, InternalError, ir
from tests.codegen.orchestration.builders import (
    FP32,
    INDEX,
    INT32,
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
    generate,
    kernel,
    op,
    scalar,
    seq,
    submit,
    tensor,
    unary,
    unpack,
    var,
)

AIC, AIV, GROUP, SPMD = (
    ir.FunctionType.AIC,
    ir.FunctionType.AIV,
    ir.FunctionType.Group,
    ir.FunctionType.Spmd,
)


def wrapper(name, params, inner, kind=SPMD, returns=(), attrs=None):
    stmts = [ir.EvalStmt(each, SPAN) if isinstance(each, ir.Call | ir.Submit) else each for each in inner]
    body = seq(*stmts, ir.ReturnStmt(list(returns), SPAN))
    return ir.Function(name, list(params), [r.type for r in returns], body, SPAN, kind, attrs=attrs)


def test_the_worked_example_is_reproduced_line_by_line(tmp_path):
    add = kernel("addk", [(var("x"), PDir.In), (var("y"), PDir.In), (var("out"), PDir.Out)])
    p, q, r, t = var("p"), var("q"), var("r"), var("t")
    made = assign(t, op("tensor.create", [ir.MakeTuple([const(32), const(32)], SPAN)], t.type, dtype=FP32))
    t1, t2, r1 = var("t__ssa_v1"), var("t__ssa_v2"), var("r__ssa_v1")
    body = auto(
        made,
        assign(t1, call(add, [p, q, t], "iio")),
        assign(t2, call(add, [p, q, t1], "iix")),
        assign(r1, call(add, [t2, q, r], "iio")),
        ir.ReturnStmt([r1], SPAN),
    )
    result = generate([p, q, (r, PDir.Out)], body, add)
    assert (
        body_of(result)
        == """\
// External tensors
const ChipTensor& ext_p = orch_args.tensor(0).ref();
const ChipTensor& ext_q = orch_args.tensor(1).ref();
const ChipTensor& ext_r = orch_args.tensor(2).ref();

PTO2_SCOPE() {
    uint32_t t_ci_shapes[2] = {32, 32};
    TensorCreateInfo t_ci(t_ci_shapes, 2, DataType::FLOAT32);
    TaskOutputTensors alloc_0 = alloc_tensors(t_ci);
    const ChipTensor& t = alloc_0.get_ref(0);

    // Task 0: addk
    CoreTaskArgs params_t0;
    params_t0.add_input(ext_p);
    params_t0.add_input(ext_q);
    params_t0.add_output(t);
    rt_submit_aiv_task(0, params_t0);

    // Task 1: addk
    CoreTaskArgs params_t1;
    params_t1.add_input(ext_p);
    params_t1.add_input(ext_q);
    params_t1.add_inout(t);
    rt_submit_aiv_task(1, params_t1);

    // Task 2: addk
    CoreTaskArgs params_t2;
    params_t2.add_input(t);
    params_t2.add_input(ext_q);
    params_t2.add_output(ext_r);
    rt_submit_aiv_task(0, params_t2);
}"""
    )
    rows = [
        (r.func_id, r.code_name, r.core_type.name, list(r.signature)) for r in result.kernel_registrations
    ]
    assert rows == [(0, "addk", "VECTOR", ["IN", "IN", "OUT"]), (1, "addk", "VECTOR", ["IN", "IN", "INOUT"])]
    assert result.orchestration_signature == ["IN", "IN", "OUT"]
    compile_text(result.code, tmp_path)


def test_tensor_and_scalar_parameters_count_separately():
    x, n, y = var("x"), scalar("n"), var("y")
    text = generate([x, n, y], auto()).code
    assert "ext_x = orch_args.tensor(0).ref();" in text
    assert "ext_y = orch_args.tensor(1).ref();" in text
    assert "int64_t n = from_u64<int64_t>(orch_args.scalar(0));" in text
    assert ".expected_arg_count = 3," in text


def test_tensors_precede_scalars_in_the_payload():
    k = kernel("k", [(var("x"), PDir.In), (scalar("s", INT32), PDir.In), (var("out"), PDir.Out)])
    x, s, out = var("x"), scalar("s", INT32), var("out")
    result = generate([x, s, (out, PDir.Out)], auto(ir.EvalStmt(call(k, [x, s, out], "iso"), SPAN)), k)
    lines = [line.strip() for line in result.code.splitlines() if "params_t0.add" in line]
    assert lines == [
        "params_t0.add_input(ext_x);",
        "params_t0.add_output(ext_out);",
        "params_t0.add_scalar(s);",
    ]
    assert result.kernel_registrations[0].signature == ("IN", "OUT")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (ir.ConstFloat(1.5, FP32, SPAN), "to_u64(1.500000f)"),
        (ir.ConstFloat(1e-9, FP32, SPAN), "to_u64(1e-09f)"),
        (ir.ConstFloat(1.5, DataType.FP16, SPAN), "to_u64(half{15872})"),
        (ir.ConstFloat(1.0, DataType.BF16, SPAN), "to_u64(bfloat16_t{16256})"),
        (const(-5, INT32), "(uint64_t)static_cast<int32_t>(-5)"),
        (const(7, INT64), "(uint64_t)7"),
        (const(-(2**63), INT64), "(uint64_t)(-9223372036854775807 - 1)"),
        (ir.ConstBool(True, SPAN), "(uint64_t)1"),
        (scalar("f", FP32), "to_u64(f)"),
        (scalar("b", DataType.BOOL), "b"),
        (scalar("h", DataType.FP16), "to_u64(h)"),
    ],
)
def test_scalar_arguments_keep_their_bits(value, text, tmp_path):
    k = kernel("k", [(ir.Var("s", value.type, SPAN), PDir.In)])
    params = [value] if isinstance(value, ir.Var) else []
    result = generate(params, auto(ir.EvalStmt(call(k, [value], "s"), SPAN)), k)
    assert f"params_t0.add_scalar({text});" in result.code
    assert result.kernel_registrations[0].signature == ()
    compile_text(result.code, tmp_path)


def test_directions_choose_the_add_call_and_the_signature():
    k = kernel("k", [(var(n), PDir.InOut) for n in "abcde"])
    args = [var(n) for n in "abcde"]
    result = generate(args, auto(ir.EvalStmt(call(k, args, "iOoxn"), SPAN)), k)
    adds = [line.split(".")[1].split("(")[0] for line in result.code.splitlines() if "params_t0.add" in line]
    assert adds == ["add_input", "add_output", "add_output", "add_inout", "add_no_dep"]
    assert result.kernel_registrations[0].signature == ("IN", "OUT", "OUT", "INOUT", "INOUT")


def test_equal_signatures_share_an_id_and_different_ones_do_not():
    k = unary("k")
    x, out = var("x"), var("out")
    body = auto(*(ir.EvalStmt(call(k, [x, out], d), SPAN) for d in ("io", "ix", "io", "no", "in", "ix")))
    result = generate([x, out], body, k)
    ids = [int(line.split("(")[1][0]) for line in result.code.splitlines() if "rt_submit_aiv_task(" in line]
    assert ids == [0, 1, 0, 2, 1, 1]
    assert [r.func_id for r in result.kernel_registrations] == [0, 1, 2]
    assert {r.code_name for r in result.kernel_registrations} == {"k"}


def test_two_kernels_with_equal_signatures_have_two_ids():
    a, b = unary("a"), unary("b", AIC)
    x, out = var("x"), var("out")
    body = auto(ir.EvalStmt(call(b, [x, out], "io"), SPAN), ir.EvalStmt(call(a, [x, out], "io"), SPAN))
    result = generate([x, out], body, a, b)
    assert [(r.func_id, r.code_name, r.core_type) for r in result.kernel_registrations] == [
        (0, "b", ir.CoreType.CUBE),
        (1, "a", ir.CoreType.VECTOR),
    ]
    assert "rt_submit_aic_task(0, params_t0);" in result.code
    assert "rt_submit_aiv_task(1, params_t1);" in result.code


def test_a_kernel_on_both_vector_lanes_names_its_id_twice():
    k = unary("k", attrs={"dual_aiv_dispatch": True})
    x, out = var("x"), var("out")
    text = generate([x, out], auto(ir.EvalStmt(call(k, [x, out], "io"), SPAN)), k).code
    assert "MixedKernels mixed_0 = {INVALID_KERNEL_ID, 0, 0};" in text
    assert "rt_submit_task(mixed_0, params_t0);" in text


def test_an_spmd_wrapper_shares_the_registration_of_a_direct_call(tmp_path):
    k = unary("k")
    a, b = var("a"), var("b")
    w = wrapper("main_spmd_0", [(a, PDir.In), (b, PDir.Out)], [call(k, [a, b], "io")], returns=[b])
    x, out, n = var("x"), var("out"), scalar("n")
    count = ir.Add(ir.FloorDiv(n, const(2), INT64, SPAN), const(1), INT64, SPAN)
    y = var("y")
    body = auto(
        assign(y, call(w, [x, out], "io", {"core_num": count, "sync_start": True})),
        ir.EvalStmt(call(k, [x, y], "io"), SPAN),
    )
    result = generate([x, (out, PDir.Out), n], body, k, w)
    assert len(result.kernel_registrations) == 1
    assert "// Spmd main_spmd_0: k" in result.code
    assert "params_t0.launch_spec.set_block_num(((n / 2) + 1));" in result.code
    assert "params_t0.launch_spec.set_require_sync_start(true);" in result.code
    assert result.code.count("add_output(ext_out);") == 2
    compile_text(result.code, tmp_path)


def test_a_wrapper_passes_literals_and_permuted_parameters_in_kernel_order():
    k = kernel("k", [(var("x"), PDir.In), (scalar("s", FP32), PDir.In), (var("out"), PDir.Out)])
    b, a = var("b"), var("a")
    inner = call(k, [a, ir.ConstFloat(2.0, FP32, SPAN), b], "iso")
    w = wrapper("w", [(b, PDir.Out), (a, PDir.In)], [inner], returns=[b])
    x, out = var("x"), var("out")
    result = generate([x, out], auto(ir.EvalStmt(call(w, [out, x], "oi"), SPAN)), k, w)
    adds = [line.strip() for line in result.code.splitlines() if "params_t0.add" in line]
    assert adds == [
        "params_t0.add_input(ext_x);",
        "params_t0.add_output(ext_out);",
        "params_t0.add_scalar(to_u64(2.000000f));",
    ]


def test_a_buffer_aliased_through_spmd_and_group_appears_twice():
    k = kernel("k", [(var("a"), PDir.In), (var("b"), PDir.InOut)])
    g_in, g_out = var("g_in"), var("g_out")
    group = wrapper("g", [(g_in, PDir.In), (g_out, PDir.InOut)], [call(k, [g_in, g_out], "ix")], GROUP)
    s = var("s")
    spmd = wrapper("w", [(s, PDir.InOut)], [call(group, [s, s], "ix")])
    x = var("x")
    result = generate([x], auto(ir.EvalStmt(call(spmd, [x], "x", {"core_num": 2}), SPAN)), k, group, spmd)
    assert result.code.count("params_t0.add_inout(ext_x);") == 2
    assert "// Group g: AIV-only SPMD" in result.code
    assert "params_t0.launch_spec.set_block_num(2);" in result.code


def test_a_group_of_cube_and_vector_kernels_is_one_mixed_task(tmp_path):
    cube, vector = unary("k_aic", AIC), unary("k_aiv")
    a, b = var("a"), var("b")
    inner = [call(cube, [a, b], "io"), call(vector, [a, b], "io")]
    group = wrapper("k", [(a, PDir.In), (b, PDir.Out)], inner, GROUP, [b])
    x, out = var("x"), var("out")
    result = generate([x, out], auto(ir.EvalStmt(call(group, [x, out], "io"), SPAN)), cube, vector, group)
    assert "// Group k: MixedKernels (AIC + AIV lanes)" in result.code
    assert "MixedKernels mixed_0 = {0, 1, INVALID_KERNEL_ID};" in result.code
    assert [(r.code_name, r.core_type.name) for r in result.kernel_registrations] == [
        ("k_aic", "CUBE"),
        ("k_aiv", "VECTOR"),
    ]
    compile_text(result.code, tmp_path)


def test_a_group_whose_kernels_take_different_arguments_is_a_chain_of_tasks(tmp_path):
    product = kernel("product", [(var("x"), PDir.In), (var("p"), PDir.Out)], kind=AIC)
    scale = kernel("scale", [(var("p"), PDir.In), (scalar("s", FP32), PDir.In), (var("out"), PDir.Out)])
    a, b, mid, made = var("a"), var("b"), var("mid"), var("made")
    first = assign(made, call(product, [a, mid], "io"))
    second = call(scale, [made, ir.ConstFloat(2.0, FP32, SPAN), b], "iso")
    group = wrapper("g", [a, (b, PDir.Out), (mid, PDir.Out)], [first, second], GROUP, [b])
    x, out, tmp, tid = var("x"), var("out"), var("tmp"), var("tid", TASK_ID)
    stmts, (y, done) = unpack("r", submit(group, [x, out, tmp], "ixo", [tid], core_num=const(2)))
    body = auto(
        assign(tid, op("system.task_invalid", [], TASK_ID)),
        *stmts,
        ir.EvalStmt(submit(product, [y, tmp], "ix", [done]), SPAN),
    )
    result = generate([x, out, tmp], body, product, scale, group)
    lines = [line.strip() for line in result.code.splitlines()]
    start = lines.index("// Group g: product")
    assert lines[start : start + 9] == [
        "// Group g: product",
        "CoreTaskArgs params_t0;",
        "params_t0.add_input(ext_x);",
        "params_t0.add_output(ext_tmp);",
        "params_t0.launch_spec.set_block_num(2);",
        "PTO2TaskId params_t0_deps[1];",
        "uint32_t params_t0_deps_count = 0;",
        "if (tid.is_valid()) params_t0_deps[params_t0_deps_count++] = tid;",
        "params_t0.set_dependencies(params_t0_deps, params_t0_deps_count);",
    ]
    assert "params_t1.add_input(ext_tmp);" in lines
    assert "params_t1.add_inout(ext_out);" in lines
    assert "params_t1_deps[params_t1_deps_count++] = task_0_outs.task_id();" in lines
    assert "PTO2TaskId r_1 = task_1_outs.task_id();" in lines
    assert [r.signature for r in result.kernel_registrations] == [
        ("IN", "OUT"),
        ("IN", "INOUT"),
        ("IN", "INOUT"),
    ]
    compile_text(result.code, tmp_path)


def test_groups_that_cannot_be_launched_are_refused():
    cube, vector = unary("k_aic", AIC), unary("k_aiv")
    a, b, x, out = var("a"), var("b"), var("x"), var("out")
    no_vector = wrapper("k", [a, (b, PDir.Out)], [call(cube, [a, b], "io")], GROUP)
    with pytest.raises(InternalError, match="'k' has no AIV kernel"):
        generate([x, out], auto(ir.EvalStmt(call(no_vector, [x, out], "io"), SPAN)), cube, no_vector)
    submits = wrapper("k", [a, (b, PDir.Out)], [submit(vector, [a, b], "io")], GROUP)
    with pytest.raises(ValueError, match="inside a group"):
        generate([x, out], auto(ir.EvalStmt(call(submits, [x, out], "io"), SPAN)), vector, submits)


def test_wrappers_pass_on_only_what_they_have():
    k = kernel("k", [(var("x"), PDir.In), (scalar("s", INT32), PDir.In), (var("out"), PDir.Out)])
    a, b, s, x, out = var("a"), var("b"), scalar("s", INT32), var("x"), var("out")

    def dispatched(*inner, value=None, kind=SPMD):
        w = wrapper("w", [a, (b, PDir.Out), s], inner, kind)
        three = const(3, INT32)
        outer = value(w) if value else call(w, [x, out, three], "ios")
        return generate([x, out], auto(ir.EvalStmt(outer, SPAN)), k, w)

    for stray, args in (("t", [var("t"), s, b]), ("n", [a, scalar("n", INT32), b])):
        with pytest.raises(InternalError, match=f"'w' passes '{stray}' to 'k'"):
            dispatched(call(k, args, "iso"))
    with pytest.raises(InternalError, match="'w' has 0 dispatches instead of one"):
        dispatched()
    with pytest.raises(InternalError, match="the group 'w' has no AIV kernel"):
        dispatched(kind=GROUP)
    with pytest.raises(InternalError, match="'w' passes 1 arguments for 3 parameters"):
        dispatched(call(k, [a, s, b], "iso"), value=lambda w: submit(w, [x], "i"))


def test_dump_marks_follow_the_variable_outside_and_inside_a_wrapper(tmp_path):
    k = kernel("k", [(var("x"), PDir.In), (var("out"), PDir.Out), (scalar("s", INT32), PDir.In)])
    a, b, s = var("a"), var("b"), scalar("s", INT32)
    inner = call(k, [a, b, s], "ios", {"dump_vars": [b]})
    w = wrapper("w", [a, (b, PDir.Out), s], [inner], returns=[b])
    x, out, n = var("x"), var("out"), scalar("n", INT32)
    outer = call(w, [x, out, n], "ios", {"dump_vars": [x, n]})
    result = generate([x, out, n], auto(ir.EvalStmt(outer, SPAN)), k, w)
    assert "params_t0.dump(ext_x, ext_out);" in result.code
    compile_text(result.code, tmp_path)


def test_results_name_the_argument_that_the_callee_returns():
    a, b, c = var("a"), var("b"), var("c")
    k = kernel("k", [(a, PDir.InOut), (b, PDir.Out), (c, PDir.Out)], returns=[c, b])
    use = unary("use")
    x, y, z = var("x"), var("y"), var("z")
    whole = var("r", ir.TupleType([tensor(), tensor()]))
    first, second = var("first"), var("second")
    body = auto(
        assign(whole, call(k, [x, y, z], "xoo")),
        assign(first, ir.TupleGetItemExpr(whole, 0, SPAN)),
        assign(second, ir.TupleGetItemExpr(whole, 1, SPAN)),
        ir.EvalStmt(call(use, [first, second], "ix"), SPAN),
    )
    text = generate([x, y, z], body, k, use).code
    assert "params_t1.add_input(ext_z);\n        params_t1.add_inout(ext_y);" in text


def test_a_result_that_no_parameter_holds_is_refused_when_it_is_ambiguous():
    k = kernel("k", [(var("a"), PDir.Out), (var("b"), PDir.Out)], returns=[])
    k = k.replace(return_types=[tensor()])
    x, y, r = var("x"), var("y"), var("r")
    use = unary("use")
    body = auto(assign(r, call(k, [x, y], "oo")), ir.EvalStmt(call(use, [r, y], "ix"), SPAN))
    with pytest.raises(InternalError, match="'k' writes 2 parameters"):
        generate([x, y], body, k, use)


def test_an_auxiliary_scalar_result_is_a_placeholder_only_when_used():
    out, n = var("out"), scalar("n", INT32)
    k = kernel("k", [(out, PDir.Out)], returns=[out, n])
    use = kernel("use", [(scalar("s", INT32), PDir.In)])
    x, whole = var("x"), var("r", ir.TupleType([tensor(), ir.ScalarType(INT32)]))
    count = scalar("count", INT32)
    item = assign(count, ir.TupleGetItemExpr(whole, 1, SPAN))
    dispatch = assign(whole, call(k, [x], "o"))
    used = generate([x], auto(dispatch, item, ir.EvalStmt(call(use, [count], "s"), SPAN)), k, use).code
    assert "int32_t count = 0;" in used
    assert "count" not in generate([x], auto(dispatch, item), k, use).code.replace("_count", "")


# --- submits


def test_a_submit_declares_its_task_id_only_when_something_uses_it(tmp_path):
    k = unary("k")
    x, out = var("x"), var("out")
    stmts, (y, tid) = unpack("r", submit(k, [x, out], "io"))
    unused = generate([x, out], auto(*stmts), k)
    assert "TaskOutputTensors task_0_outs = rt_submit_aiv_task(0, params_t0);" in unused.code
    assert "task_id()" not in unused.code
    used = generate([x, out], auto(*stmts, ir.EvalStmt(submit(k, [x, y], "ix", [tid]), SPAN)), k)
    assert "PTO2TaskId r_1 = task_0_outs.task_id();" in used.code
    compile_text(used.code, tmp_path)


def test_omitted_outputs_are_made_by_the_runtime_and_named_by_their_results(tmp_path):
    n = scalar("N", INDEX)
    x_type = tensor([n, 16])
    k = kernel(
        "k",
        [(var("x", x_type), PDir.In), (var("a", x_type), PDir.Out), (var("b", tensor([8])), PDir.Out)],
    )
    use = kernel("use", [(var("a"), PDir.In), (var("b"), PDir.In), (var("o"), PDir.Out)])
    x, out = var("x", x_type), var("out")
    stmts, (a, b, _) = unpack("r", submit(k, [x], "i"))
    body = auto(*stmts, ir.EvalStmt(call(use, [a, b, out], "iio"), SPAN))
    result = generate([x, (out, PDir.Out)], body, k, use)
    text = result.code
    assert "uint32_t params_t0_synth_out_1_shapes[2] = {static_cast<uint32_t>(N), 16};" in text
    assert (
        "TensorCreateInfo params_t0_synth_out_2(params_t0_synth_out_2_shapes, 1, DataType::FLOAT32);" in text
    )
    assert "params_t0.add_output(params_t0_synth_out_1);" in text
    assert "const ChipTensor& r_0 = task_0_outs.get_ref(0);" in text
    assert "const ChipTensor& r_1 = task_0_outs.get_ref(1);" in text
    assert "params_t1.add_input(r_1);" in text
    assert result.kernel_registrations[0].signature == ("IN", "OUT", "OUT")
    compile_text(text, tmp_path)


def test_an_omitted_output_sized_by_the_callees_own_symbol_reads_the_argument(tmp_path):
    m = scalar("M", INDEX)
    k = kernel("k", [(var("x", tensor([m, 16])), PDir.In), (var("o", tensor([m])), PDir.Out)])
    use = unary("use")
    x, out = var("x", tensor([64, 16])), var("out")
    stmts, (a, _) = unpack("r", submit(k, [x], "i"))
    result = generate([x, out], auto(*stmts, ir.EvalStmt(call(use, [a, out], "io"), SPAN)), k, use)
    assert "{static_cast<uint32_t>((int64_t)ext_x.shapes[0])}" in result.code
    compile_text(result.code, tmp_path)
    k = kernel("k", [(var("x", tensor([m * 2, 16])), PDir.In), (var("o", tensor([m])), PDir.Out)])
    result = generate([x, out], auto(*stmts, ir.EvalStmt(call(use, [a, out], "io"), SPAN)), k, use)
    assert "{static_cast<uint32_t>(((int64_t)ext_x.shapes[0] / 2))}" in result.code
    compile_text(result.code, tmp_path)


def test_only_out_parameters_of_a_direct_submit_can_be_omitted():
    k = kernel("k", [(var("x"), PDir.In), (var("o"), PDir.InOut)])
    x = var("x")
    with pytest.raises(InternalError, match="'o' is no Out parameter"):
        generate([x], auto(ir.EvalStmt(submit(k, [x], "i"), SPAN)), k)
    out = unary("out")
    with pytest.raises(InternalError, match="1 arguments for 2 parameters"):
        generate([x], auto(ir.EvalStmt(call(out, [x], "i"), SPAN)), out)


def test_dispatches_that_earlier_passes_should_have_removed_are_reported():
    x, out = var("x"), var("out")
    k = unary("k")
    bare = ir.Call(ir.GlobalVar("k"), [x, out], {}, {}, tensor(), SPAN)
    with pytest.raises(InternalError, match="DeriveCallDirections"):
        generate([x, out], auto(ir.EvalStmt(bare, SPAN)), k)
    incore = unary("k", ir.FunctionType.InCore)
    with pytest.raises(InternalError, match="ExpandMixedKernel"):
        generate([x, out], auto(ir.EvalStmt(call(incore, [x, out], "io"), SPAN)), incore)
    graph = unary("g", ir.FunctionType.Graph)
    with pytest.raises(ValueError, match="'g' cannot be compiled yet"):
        generate([x, out], auto(ir.EvalStmt(call(graph, [x, out], "io"), SPAN)), graph)


def test_a_payload_beyond_the_limits_names_the_callee_and_the_count():
    k = kernel("wide", [(var(f"p{i}"), PDir.In) for i in range(33)])
    x = var("x")
    with pytest.raises(ValueError, match="'wide' is passed 33 tensors"):
        generate([x], auto(ir.EvalStmt(call(k, [x] * 33, "i" * 33), SPAN)), k)


# --- predicates


def predicated(condition, params, tmp_path=None):
    k = unary("k")
    x, out = var("x"), var("out")
    body = auto(ir.EvalStmt(submit(k, [x, out], "io", predicate=condition), SPAN))
    result = generate([x, out, *params], body, k)
    if tmp_path is not None:
        compile_text(result.code, tmp_path)
    return result.code


def element(tensor_var, *places):
    return op(
        "tensor.read", [tensor_var, ir.MakeTuple(list(places), SPAN)], ir.ScalarType(tensor_var.type.dtype)
    )


@pytest.mark.parametrize(
    ("cls", "name", "flipped"),
    [
        (ir.Eq, "EQ", "EQ"),
        (ir.Ne, "NE", "NE"),
        (ir.Gt, "GT", "LT"),
        (ir.Lt, "LT", "GT"),
        (ir.Ge, "GE", "LE"),
        (ir.Le, "LE", "GE"),
    ],
)
def test_a_predicate_compares_an_element_with_a_constant_either_way_round(cls, name, flipped, tmp_path):
    t, i = var("t", tensor([8], INT32)), scalar("i", INDEX)
    read = element(t, i)
    text = predicated(cls(read, const(0, INT32), DataType.BOOL, SPAN), [t, i], tmp_path)
    for line in (
        "CoreTaskPredicate params_t0_pred;",
        "params_t0_pred.operand.tensor = &ext_t;",
        "params_t0_pred.operand.ndims = 1;",
        "params_t0_pred.operand.indices[0] = i;",
        f"params_t0_pred.op = PredicateOp::{name};",
        "params_t0_pred.target = 0;",
        "params_t0.set_predicate(params_t0_pred);",
    ):
        assert line in text
    wide = ir.Cast(read, INT64, SPAN)
    text = predicated(cls(const(3, INT64), wide, DataType.BOOL, SPAN), [t, i])
    assert f"PredicateOp::{flipped};" in text
    assert "params_t0_pred.target = 3;" in text


def test_other_predicates_are_refused():
    bool_ = DataType.BOOL
    unsigned = var("t", tensor([8], DataType.UINT32))
    with pytest.raises(ValueError, match="signed integers"):
        predicated(ir.Gt(element(unsigned, const(0)), const(0, INT32), bool_, SPAN), [unsigned])
    t = var("t", tensor([8], INT32))
    one = ir.Gt(element(t, const(0)), const(0, INT32), bool_, SPAN)
    with pytest.raises(ValueError, match="one comparison"):
        predicated(ir.And(one, one, bool_, SPAN), [t])
    with pytest.raises(ValueError, match="index -1 is negative"):
        predicated(ir.Gt(element(t, const(-1)), const(0, INT32), bool_, SPAN), [t])
    deep = var("t", tensor([2] * 6, INT32))
    with pytest.raises(ValueError, match="6 indices"):
        predicated(ir.Gt(element(deep, *[const(0)] * 6), const(0, INT32), bool_, SPAN), [deep])
    with pytest.raises(ValueError, match="integer constant"):
        predicated(ir.Gt(element(t, const(0)), element(t, const(1)), bool_, SPAN), [t])
