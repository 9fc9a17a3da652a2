"""Buffers, views, elements, arrays, scalar expressions, identifiers, and the checks before translation."""

from __future__ import annotations

import pytest

import pypto
from pypto import DataType, InternalError, ir
from pypto.codegen import collect_vars_from_shape_expr, generate_orchestration, infer_function_core_type
from tests.codegen.orchestration.builders import (
    FP32,
    INDEX,
    INT32,
    INT64,
    SPAN,
    PDir,
    assign,
    auto,
    body_of,
    call,
    compile_text,
    const,
    create,
    generate,
    indices,
    kernel,
    loop,
    op,
    scalar,
    seq,
    submit,
    tensor,
    unary,
    upto,
    var,
)

BOOL = DataType.BOOL


def evaluated(value):
    return ir.EvalStmt(value, SPAN)


# --- buffers


def test_sixteen_buffers_are_allocated_per_call(tmp_path):
    creates = [create(f"b{i}", [const(8)]) for i in range(17)]
    result = generate([], auto(*creates))
    assert result.code.count("alloc_tensors(") == 2
    assert "TaskOutputTensors alloc_1 = alloc_tensors(b16_ci);" in result.code
    assert "const ChipTensor& b15 = alloc_0.get_ref(15);" in result.code
    compile_text(result.code, tmp_path)


def test_a_buffer_sized_by_a_scalar_of_the_same_sequence_stays_in_place(tmp_path):
    n, m = scalar("n", INDEX), scalar("m", INDEX)
    late = create("late", [m, const(4)])
    early = create("early", [n])
    body = auto(assign(m, ir.Add(n, const(1), INDEX, SPAN)), late, early)
    text = generate([n], body).code
    assert text.index("alloc_tensors(early_ci)") < text.index("int64_t m = (n + 1);") < text.index("late_ci(")
    assert "uint32_t late_ci_shapes[2] = {static_cast<uint32_t>(m), 4};" in text
    compile_text(text, tmp_path)


def test_options_of_a_buffer_reach_its_description(tmp_path):
    body = auto(
        create("a", [const(4)], manual_dep=True),
        create("z", [const(4)], INT32, init_value=0.0),
        create("v", [const(4)], INT32, init_value=7.0),
        create("f", [const(4)], FP32, init_value=0.1),
        create("b", [const(4)], BOOL),
        create("p", [const(2), const(8)], DataType.FP4),
    )
    text = generate([], body).code
    assert "a_ci(a_ci_shapes, 1, DataType::FLOAT32, /*manual_dep=*/true);" in text
    assert "z_ci.set_initial_value(0);" in text
    assert "v_ci.set_initial_value(static_cast<int32_t>(7));" in text
    assert "f_ci.set_initial_value(static_cast<float>(0.100000f));" in text
    assert "DataType::BOOL" in text
    assert "uint32_t p_ci_shapes[2] = {2, 4};" in text
    compile_text(text, tmp_path)


@pytest.mark.parametrize(
    ("dtype", "value", "message"),
    [
        (FP32, float("nan"), "must be finite"),
        (INT32, 0.5, "is no integer"),
        (INT64, 2.0**54, r"2\*\*53"),
        (DataType.FP16, 1.0, "is not zero"),
    ],
)
def test_initial_values_that_a_buffer_cannot_hold_are_refused(dtype, value, message):
    with pytest.raises(ValueError, match=message):
        generate([], auto(create("a", [const(4)], dtype, init_value=value)))


# --- views


def test_a_slice_is_clamped_to_its_source(tmp_path):
    x, i, r = var("x", tensor([64, 16])), scalar("i", INDEX), var("r", tensor([8, 16]))
    use = unary("use")
    value = op("tensor.slice", [x, indices(const(8), const(16)), indices(i, const(0))], r.type)
    result = generate([x, i], auto(assign(r, value), evaluated(call(use, [r, x], "io"))), use)
    expected = """\
    uint32_t r_offsets[2] = {static_cast<uint32_t>(i), 0};
    uint32_t r_shapes[2] = {(r_offsets[0] >= ext_x.shapes[0] ? 0u : \
std::min<uint32_t>(8, ext_x.shapes[0] - r_offsets[0])), (r_offsets[1] >= ext_x.shapes[1] ? 0u : \
std::min<uint32_t>(16, ext_x.shapes[1] - r_offsets[1]))};
    ChipTensor r = ext_x.view(r_shapes, r_offsets);
"""
    assert expected in body_of(result)
    compile_text(result.code, tmp_path)


def test_dropped_dims_keep_strides_and_recompute_contiguity(tmp_path):
    x, r = var("x", tensor([8, 16])), var("r", tensor([16]))
    value = op(
        "tensor.slice",
        [x, indices(const(1), const(16)), indices(const(3), const(0)), indices(), indices(const(0))],
        r.type,
    )
    use = unary("use")
    result = generate([x], auto(assign(r, value), evaluated(call(use, [r, x], "io"))), use)
    for line in (
        "ChipTensor r_view = ext_x.view(r_shapes, r_offsets);",
        "r.ndims = 1;",
        "r.shapes[0] = r_empty ? 0u : r_view.shapes[1];",
        "r.strides[0] = r_view.strides[1];",
    ):
        assert line in result.code
    compile_text(result.code, tmp_path)


def test_reshape_transpose_and_view_make_descriptors(tmp_path):
    x = var("x", tensor([8, 16]))
    flat, turned, same, flipped = (var(n) for n in ("flat", "turned", "same", "flipped"))
    body = auto(
        assign(flat, op("tensor.reshape", [x, indices(const(128))], tensor([128]))),
        assign(turned, op("tensor.transpose", [x, const(-1), const(0)], tensor([16, 8]))),
        assign(same, op("tensor.view", [x], x.type, layout=ir.TensorLayout.ND)),
        assign(flipped, op("tensor.view", [x], x.type, layout=ir.TensorLayout.DN)),
    )
    text = generate([x], body).code
    assert "ChipTensor flat = ext_x.reshape(flat_shapes, 1);" in text
    assert "ChipTensor turned = ext_x.transpose(1, 0);" in text
    assert "ChipTensor same = ext_x;" in text
    assert "ChipTensor flipped = ext_x.transpose(ext_x.ndims - 2, ext_x.ndims - 1);" in text
    compile_text(text, tmp_path)


def test_views_that_need_a_copy_are_refused():
    x, r = var("x", tensor([8, 16])), var("r")
    for axes, message in (((0, 0), "two different axes"), ((0, 5), "axis 5 is out of range")):
        value = op("tensor.transpose", [x, *map(const, axes)], x.type)
        with pytest.raises(ValueError, match=message):
            generate([x], auto(assign(r, value)))
    with pytest.raises(ValueError, match="move it into an InCore scope"):
        generate([x], auto(assign(r, op("tensor.reinterpret_view", [x], x.type, dtype=INT32))))
    both = op("tensor.view", [x, indices(const(128))], x.type, layout=ir.TensorLayout.DN)
    with pytest.raises(ValueError, match="shape and layout"):
        generate([x], auto(assign(r, both)))
    fp4, half_offset = var("q", tensor([8, 16], DataType.FP4)), indices(const(0), const(3))
    odd = op("tensor.slice", [fp4, indices(const(8), const(4)), half_offset], fp4.type)
    with pytest.raises(ValueError, match="must be even"):
        generate([fp4], auto(assign(r, odd)))


def test_an_assemble_is_only_a_name_when_the_data_is_in_place_already(tmp_path):
    k = unary("k")
    x, t = var("x", tensor([8, 16])), var("t", tensor([64, 16]))
    part, written, whole = (
        var("part", tensor([8, 16])),
        var("w", tensor([8, 16])),
        var("t2", tensor([64, 16])),
    )
    offsets = indices(const(8), const(0))
    slice_ = op("tensor.slice", [t, indices(const(8), const(16)), offsets], part.type)
    assemble = op("tensor.assemble", [t, written, offsets], t.type)
    body = auto(
        assign(part, slice_),
        assign(written, call(k, [x, part], "io")),
        assign(whole, assemble),
        evaluated(call(k, [whole, x], "ix")),
    )
    result = generate([x, t], body, k)
    assert "params_t1.add_input(ext_t);" in result.code
    compile_text(result.code, tmp_path)


def test_an_assemble_that_would_need_a_copy_is_refused_with_its_source():
    k = unary("k")
    x, t = var("x", tensor([8, 16])), var("t", tensor([64, 16]))
    own = create("own", [const(8), const(16)])
    written, whole = var("w", tensor([8, 16])), var("t2", tensor([64, 16]))
    offsets = indices(const(8), const(0))
    for kwargs, message in (({}, "assemble of 'w' would need a copy"), ({"atomic": 1}, "InCore scope")):
        assemble = op("tensor.assemble", [t, written, offsets], t.type, **kwargs)
        body = auto(own, assign(written, call(k, [x, own.var], "io")), assign(whole, assemble))
        with pytest.raises(ValueError, match=message):
            generate([x, t], body, k)


# --- elements, extents, arrays, queries


def test_elements_are_read_and_written_through_the_runtime(tmp_path):
    t, s, i, v, z = (
        var("t", tensor([4, 4], INT32)),
        var("s", tensor([], FP32)),
        *(scalar(n, d) for n, d in (("i", INDEX), ("v", INT32), ("z", FP32))),
    )
    body = auto(
        assign(v, op("tensor.read", [t, indices(i, const(2))], v.type)),
        assign(z, op("tensor.read", [s, indices()], z.type)),
        evaluated(op("tensor.write", [t, indices(const(0), i), v], t.type)),
        evaluated(op("tensor.write", [s, indices(), z], s.type)),
    )
    result = generate([t, s, i], body)
    assert """\
    uint32_t indices_v[2] = {static_cast<uint32_t>(i), 2};
    int32_t v = get_tensor_data<int32_t>(ext_t, 2, indices_v);
    float z = get_tensor_data<float>(ext_s, 0, nullptr);
    {
        uint32_t indices_t[2] = {0, static_cast<uint32_t>(i)};
        set_tensor_data<int32_t>(ext_t, 2, indices_t, v);
    }
    set_tensor_data<float>(ext_s, 0, nullptr, z);
""" in body_of(result)
    compile_text(result.code, tmp_path)


def test_extents_are_constants_argument_extents_or_local_extents(tmp_path):
    m = scalar("M", INDEX)
    x = var("x", tensor([m, 16]))
    a, b, c, local = scalar("a", INDEX), scalar("b", INDEX), scalar("c", INDEX), create("t", [m, const(16)])
    body = auto(
        local,
        assign(a, op("tensor.dim", [x, const(-1)], a.type)),
        assign(b, op("tensor.dim", [x, const(0)], b.type)),
        assign(c, op("tensor.dim", [local.var, const(0)], c.type)),
    )
    text = generate([x], body).code
    assert "int64_t a = 16;" in text
    assert "int64_t b = (int64_t)orch_args.tensor(0).ref().shapes[0];" in text
    assert "int64_t c = (int64_t)t.shapes[0];" in text
    compile_text(text, tmp_path)


def test_arrays_of_task_ids_start_invalid_and_reads_are_snapshots(tmp_path):
    type_ = ir.ArrayType(DataType.TASK_ID, 4)
    ids, before = var("ids", type_), var("before", ir.ScalarType(DataType.TASK_ID))
    valid = scalar("valid", BOOL)
    body = auto(
        assign(ids, op("array.create", [const(4)], type_, dtype=DataType.TASK_ID)),
        assign(before, op("array.get_element", [ids, const(1)], before.type)),
        assign(valid, op("system.task_is_valid", [before], valid.type)),
    )
    text = generate([], body).code
    assert (
        "PTO2TaskId ids[4]; for (int64_t __init_i = 0; __init_i < 4; __init_i += 1) "
        "ids[__init_i] = PTO2TaskId::invalid();"
    ) in text
    assert "PTO2TaskId before = ids[1];" in text
    assert "bool valid = before.is_valid();" in text
    compile_text(text, tmp_path)


def test_core_counts_are_queries_also_inside_a_launch(tmp_path):
    k = unary("k")
    x, out, n = var("x"), var("out"), scalar("n", INT32)
    query = op("system.available_aiv_count", [], n.type)
    body = auto(
        assign(n, op("system.available_cluster_count", [], n.type)),
        evaluated(submit(k, [x, out], "io", core_num=query)),
    )
    text = generate([x, out], body, k).code
    assert "int32_t n = rt_available_cluster_count();" in text
    assert "set_block_num(rt_available_aiv_count());" in text
    compile_text(text, tmp_path)


def test_compute_operators_are_misplaced_here():
    x, r = var("x"), var("r")
    with pytest.raises(
        InternalError,
        match=r"tensor op 'tensor\.exp' in Orchestration function \(should be inside InCore block\)",
    ):
        generate([x], auto(assign(r, op("tensor.exp", [x], x.type))))
    with pytest.raises(InternalError, match=r"Misplaced builtin op 'tile\.abs'"):
        generate([x], auto(assign(r, op("tile.abs", [x], x.type))))


# --- scalar expressions


a, b, flag, f = scalar("a"), scalar("b"), scalar("flag", BOOL), scalar("f", FP32)


def binary(cls, left, right, dtype=INT64):
    return cls(left, right, dtype, SPAN)


EXPRESSIONS = [
    (binary(ir.Add, a, b), "(a + b)"),
    (binary(ir.FloorDiv, a, b), "floor_div(a, b)"),
    (binary(ir.FloorMod, a, const(4, INT64)), "floor_mod(a, 4)"),
    (binary(ir.FloorDiv, const(7, INT64), const(2, INT64)), "(7 / 2)"),
    (ir.FloorDiv(ir.Cast(a, INT32, SPAN), const(2, INT32), INT32, SPAN),
     "static_cast<int32_t>(floor_div(static_cast<int32_t>(a), 2))"),
    (binary(ir.Min, a, b), "std::min<int64_t>(a, b)"),
    (binary(ir.Max, a, const(0, INT64)), "std::max<int64_t>(a, 0)"),
    (binary(ir.Lt, a, b, BOOL), "(a < b)"),
    (binary(ir.And, flag, binary(ir.Ne, a, b, BOOL), BOOL), "(flag && (a != b))"),
    (binary(ir.Or, flag, flag, BOOL), "(flag || flag)"),
    (binary(ir.Xor, flag, binary(ir.Lt, a, b, BOOL), BOOL), "(flag != (a < b))"),
    (ir.Not(flag, BOOL, SPAN), "(!flag)"),
    (binary(ir.BitAnd, a, b), "(a & b)"),
    (binary(ir.BitShiftLeft, a, const(2, INT64)), "(a << 2)"),
    (ir.BitNot(a, INT64, SPAN), "static_cast<int64_t>(~a)"),
    (ir.Neg(a, INT64, SPAN), "(-a)"),
    (ir.Neg(const(-3, INT64), INT64, SPAN), "(-(-3))"),
    (ir.Abs(a, INT64, SPAN), "static_cast<int64_t>(__builtin_llabs(a))"),
    (ir.Cast(a, FP32, SPAN), "static_cast<float>(a)"),
    (binary(ir.FloatDiv, f, ir.ConstFloat(3.0, FP32, SPAN), FP32), "(f / 3.000000f)"),
    (binary(ir.FloatDiv, a, b), "static_cast<int64_t>(static_cast<double>(a) / static_cast<double>(b))"),
    (binary(ir.Mul, f, ir.ConstFloat(1e-9, FP32, SPAN), FP32), "(f * 1e-09f)"),
    (binary(ir.Pow, a, const(3, INT64)), "int_pow(a, 3)"),
    (ir.ConstBool(True, SPAN), "1"),
]  # fmt: skip


@pytest.mark.parametrize(("expr", "text"), EXPRESSIONS)
def test_scalar_expressions(expr, text):
    target = ir.Var("r", expr.type, SPAN)
    result = generate([a, b, flag, f], auto(assign(target, expr)))
    assert f" r = {text};" in result.code


def test_all_scalar_expressions_compile(tmp_path):
    stmts = [assign(ir.Var(f"r{i}", expr.type, SPAN), expr) for i, (expr, _) in enumerate(EXPRESSIONS)]
    compile_text(generate([a, b, flag, f], auto(*stmts)).code, tmp_path)


def test_division_of_what_cannot_be_negative_needs_no_helper(tmp_path):
    m, i, r = scalar("M", INDEX), scalar("i", INDEX), scalar("r", INDEX)
    x = var("x", tensor([m]))
    inner = assign(r, binary(ir.FloorDiv, binary(ir.Add, i, m, INDEX), const(2), INDEX))
    text = generate([x], auto(loop(i, upto(m), [], auto(inner)))).code
    assert "int64_t r = ((i + M) / 2);" in text
    assert "floor_div" not in text
    compile_text(text, tmp_path)


def test_narrow_floats_travel_but_are_not_computed_with():
    h, r = scalar("h", DataType.FP16), scalar("r", DataType.FP16)
    with pytest.raises(ValueError, match="move it into an InCore scope"):
        generate([h], auto(assign(r, binary(ir.Add, h, h, DataType.FP16))))
    with pytest.raises(ValueError, match="cast to fp16"):
        generate([a], auto(assign(r, ir.Cast(a, DataType.FP16, SPAN))))


def test_a_deep_expression_is_translated_without_recursion(tmp_path):
    chain = a
    for _ in range(3_000):
        chain = binary(ir.Add, chain, b)
    assert generate([a, b], auto(assign(scalar("r"), chain))).code.count("+ b)") == 3_000


# --- identifiers


def test_hints_that_are_no_legal_identifiers_are_changed(tmp_path):
    hints = ["for", "half", "ext_x", "params_t0", "1st", "a-b", "t_ci", "TaskOutputTensors", "__x", "std"]
    params = [scalar(hint) for hint in hints]
    stmts = [assign(scalar(f"r{i}"), p) for i, p in enumerate(params)]
    tensors = [var("x"), var("a-b"), var("1st")]
    compile_text(generate([*tensors, *params], auto(*stmts)).code, tmp_path)


def test_variables_never_share_a_name_unless_they_are_one_value(tmp_path):
    left, right = var("a__l"), var("a__r")
    n1, n2, n3 = scalar("n__ssa_v0"), scalar("n__ssa_v1"), scalar("n__ssa_v1")
    out = create("ret0__out", [const(4)])
    body = auto(
        out,
        assign(n1, const(1, INT64)),
        assign(n2, binary(ir.Add, n1, n1)),
        assign(n3, binary(ir.Add, n2, n1)),
    )
    text = generate([left, right], body).code
    assert "& ext_a = " in text and "& ext_a_1 = " in text
    assert "int64_t n = 1;" in text
    assert "int64_t n__ssa_v1 = (n + n);" in text
    assert "int64_t n__ssa_v1_1 = (n__ssa_v1 + n);" in text
    assert "const ChipTensor& ret0__out = " in text
    compile_text(text, tmp_path)


# --- the interface


def test_the_text_is_the_same_for_equal_programs():
    k = unary("k")

    def text():
        x, out = var("x"), var("out")
        return generate([x, (out, PDir.Out)], auto(evaluated(call(k, [x, out], "io"))), k).code

    assert text() == text()


def test_only_a_current_orchestration_function_is_translated():
    func = ir.Function(
        "orch", [], [], seq(), SPAN, ir.FunctionType.Orchestration, attrs={"auto_scope": False}
    )
    program = ir.Program([func], "P", SPAN)
    for arguments in ((None, func), (program, None)):
        with pytest.raises(ValueError, match="None"):
            generate_orchestration(*arguments)
    with pytest.raises(ValueError, match="'other' is not in the program"):
        generate_orchestration(program, func.replace(name="other"))
    with pytest.raises(pypto.Error, match="stale function handle for 'orch'"):
        generate_orchestration(program, func.replace(return_types=[tensor()]))
    k = unary("k")
    with pytest.raises(ValueError, match="'k' is AIV"):
        generate_orchestration(ir.Program([k], "P", SPAN), k)


def test_a_property_that_does_not_hold_is_named():
    scoped = ir.Function(
        "orch", [], [], seq(), SPAN, ir.FunctionType.Orchestration, attrs={"auto_scope": True}
    )
    with pytest.raises(pypto.Error, match="RuntimeScopesMaterialized"):
        generate_orchestration(ir.Program([scoped], "P", SPAN), scoped)


def test_core_types_and_extent_variables():
    assert infer_function_core_type(unary("k")) is ir.CoreType.VECTOR
    assert infer_function_core_type(unary("k", ir.FunctionType.AIC)) is ir.CoreType.CUBE
    with pytest.raises(InternalError, match=r"InferFunctionCoreType.*'k'"):
        infer_function_core_type(unary("k", ir.FunctionType.InCore))
    m, n = scalar("M", INDEX), scalar("N", INDEX)
    found = collect_vars_from_shape_expr((n + m) * n)
    assert [v.name_hint for v in found] == ["N", "M"]


def test_deep_nesting_of_names_does_not_lose_interleaved_parameters(tmp_path):
    k = kernel("k", [(scalar("s"), PDir.In), (var("x"), PDir.In), (scalar("t"), PDir.In)])
    x, s, t = var("x"), scalar("s"), scalar("t")
    result = generate([s, x, t], auto(evaluated(call(k, [s, x, t], "sis"))), k)
    adds = [line.strip() for line in result.code.splitlines() if ".add_" in line]
    assert adds == ["params_t0.add_input(ext_x);", "params_t0.add_scalar(s);", "params_t0.add_scalar(t);"]
    compile_text(result.code, tmp_path)
