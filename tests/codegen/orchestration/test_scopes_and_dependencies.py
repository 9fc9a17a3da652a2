"""Scopes, task ids, declared dependencies, and values that outlive the scope that makes them."""

from __future__ import annotations

import pytest

from pypto import ir
from tests.codegen.orchestration.builders import (
    FP32,
    INDEX,
    INT32,
    SPAN,
    TASK_ID,
    assign,
    auto,
    body_of,
    call,
    compile_text,
    const,
    generate,
    indices,
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


def invalid(name):
    target = var(name, TASK_ID)
    return assign(target, op("system.task_invalid", [], TASK_ID)), target


def barrier(name, *deps):
    target = var(name, TASK_ID)
    value = ir.Call(
        ir.Op("system.task_dummy"),
        [],
        {},
        {"dummy_task": True, "manual_dep_edges": list(deps)},
        TASK_ID,
        SPAN,
    )
    return assign(target, value), target


def test_dependencies_are_unique_and_guarded_unless_the_producer_is_certain(tmp_path):
    k = unary("k")
    x, out = var("x"), var("out")
    stmts, (_, tid) = unpack("r", submit(k, [x, out], "io"))
    none_stmt, none = invalid("none")
    array_type = ir.ArrayType(TASK_ID.dtype, 4)
    array = var("ids", array_type)
    body = auto(
        *stmts,
        none_stmt,
        assign(array, op("array.create", [const(4)], array_type, dtype=TASK_ID.dtype)),
        evaluated(submit(k, [x, out], "ix", [tid, none, tid, array])),
    )
    result = generate([x, out], body, k)
    lines = [line.strip() for line in result.code.splitlines() if "params_t1_deps" in line]
    assert lines == [
        "PTO2TaskId params_t1_deps[6];",
        "uint32_t params_t1_deps_count = 0;",
        "params_t1_deps[params_t1_deps_count++] = r_1;",
        "if (none.is_valid()) params_t1_deps[params_t1_deps_count++] = none;",
        *(f"if (ids[{i}].is_valid()) params_t1_deps[params_t1_deps_count++] = ids[{i}];" for i in range(4)),
        "params_t1.set_dependencies(params_t1_deps, params_t1_deps_count);",
    ]
    compile_text(result.code, tmp_path)


def test_a_dispatch_without_dependencies_has_no_dependency_lines():
    k = unary("k")
    x, out = var("x"), var("out")
    assert "deps" not in generate([x, out], auto(evaluated(submit(k, [x, out], "io"))), k).code


@pytest.mark.parametrize("wrapped", [False, True])
def test_the_options_of_a_task_have_a_fixed_order_and_dependencies_come_first_or_for_a_wrapper_last(wrapped):
    cube, k = unary("cube", ir.FunctionType.AIC), unary("k")
    a, b = var("a"), var("b")
    inner = [evaluated(call(each, [a, b], "io")) for each in (cube, k)]
    group = ir.Function(
        "g",
        [a, (b, ir.ParamDirection.Out)],
        [b.type],
        seq(*inner, ir.ReturnStmt([b], SPAN)),
        SPAN,
        ir.FunctionType.Group,
    )
    x, out, flags = var("x"), var("out"), var("flags", tensor([4], INT32))
    stmts, (_, tid) = unpack("r", submit(k, [x, out], "io"))
    flag = op("tensor.read", [flags, indices(const(1))], ir.ScalarType(INT32))
    second = submit(
        group if wrapped else k,
        [x, out],
        "ix",
        [tid],
        {"dump_vars": [x]},
        core_num=const(4),
        sync_start=True,
        allow_early_resolve=True,
        predicate=ir.Gt(flag, const(0, INT32), ir.BOOL, SPAN),
    )
    text = generate([x, out, flags], auto(*stmts, evaluated(second)), k, cube, group).code
    launch = [
        "set_block_num(4)",
        "set_require_sync_start(true)",
        "set_allow_early_resolve(true)",
        "set_predicate",
    ]
    order = [
        "params_t1.dump(ext_x)",
        "MixedKernels mixed_1",
        *launch,
        "set_dependencies",
        "rt_submit_task(mixed_1",
    ]
    if not wrapped:
        order = ["params_t1.dump(ext_x)", "set_dependencies", *launch, "task_1_outs = rt_submit_aiv_task("]
    places = [text.index(each) for each in order]
    assert places == sorted(places)


def test_a_launch_specification_on_the_function_counts_when_the_dispatch_has_none():
    k = unary("k")
    a, b, x, out = var("a"), var("b"), var("x"), var("out")
    inner = evaluated(call(k, [a, b], "io"))
    attrs = {"core_num": const(6), "sync_start": True}
    spmd = ir.Function(
        "w", [a, (b, ir.ParamDirection.Out)], [], seq(inner), SPAN, ir.FunctionType.Spmd, attrs=attrs
    )
    body = auto(
        evaluated(call(spmd, [x, out], "io")), evaluated(call(spmd, [x, out], "ix", {"core_num": const(2)}))
    )
    lines = [
        line.strip() for line in generate([x, out], body, k, spmd).code.splitlines() if "launch_spec" in line
    ]
    assert lines == [
        "params_t0.launch_spec.set_block_num(6);",
        "params_t0.launch_spec.set_require_sync_start(true);",
        "params_t1.launch_spec.set_block_num(2);",
    ]


def test_a_dependency_on_a_task_of_a_closed_scope_cannot_be_honored():
    k = unary("k")
    x, out = var("x"), var("out")
    stmts, (_, tid) = unpack("r", submit(k, [x, out], "io"))
    with pytest.raises(
        ValueError, match=r"'r_1' of 'k' cannot be honored.*loop bodies and branches are scopes"
    ):
        generate([x, out], auto(manual(*stmts), evaluated(submit(k, [x, out], "ix", [tid]))), k)
    in_loop = loop(scalar("i", INDEX), upto(2), [], auto(*stmts))
    dummy, _ = barrier("b", tid)
    with pytest.raises(ValueError, match="cannot be honored"):
        generate([x, out], auto(in_loop, dummy), k)


def test_a_compiler_derived_dependency_on_a_closed_scope_is_dropped():
    k = unary("k")
    x, out = var("x"), var("out")
    stmts, (_, tid) = unpack("r", submit(k, [x, out], "io"))
    late = submit(k, [x, out], "ix", attrs={"compiler_manual_dep_edges": [tid]})
    assert "params_t1_deps" not in generate([x, out], auto(manual(*stmts), evaluated(late)), k).code


def test_a_task_id_carried_by_a_loop_outside_manual_scopes_is_honored(tmp_path):
    k = unary("k")
    x, out = var("x"), var("out")
    none_stmt, none = invalid("none")
    arg, rv = ir.IterArg("t", TASK_ID, none, SPAN), var("t__rv", TASK_ID)
    stmts, (_, tid) = unpack("r", submit(k, [x, out], "ix", [arg]))
    body = auto(
        none_stmt,
        loop(scalar("i", INDEX), upto(4), [(arg, rv)], auto(*stmts, yields(tid))),
        evaluated(submit(k, [x, out], "ix", [rv])),
    )
    text = generate([x, out], body, k).code
    assert "PTO2TaskId t__rv = none;" in text
    assert "if (t__rv.is_valid()) params_t0_deps[params_t0_deps_count++] = t__rv;" in text
    assert "t__rv = r_1;" in text
    assert "if (t__rv.is_valid()) params_t1_deps[params_t1_deps_count++] = t__rv;" in text
    compile_text(text, tmp_path)


def test_a_barrier_waits_for_its_dependencies_and_is_submitted_only_if_there_are_any(tmp_path):
    k = unary("k")
    x, out = var("x"), var("out")
    stmts, (_, tid) = unpack("r", submit(k, [x, out], "io"))
    dummy, bar = barrier("bar", tid)
    result = generate([x, out], auto(*stmts, dummy, evaluated(submit(k, [x, out], "ix", [bar]))), k)
    expected = """\
    // Phase-fence barrier 0: dependency-only dummy task
    CoreTaskArgs params_phase_fence_barrier_0;
    PTO2TaskId params_phase_fence_barrier_0_deps[1];
    uint32_t params_phase_fence_barrier_0_deps_count = 0;
    params_phase_fence_barrier_0_deps[params_phase_fence_barrier_0_deps_count++] = r_1;
    params_phase_fence_barrier_0.set_dependencies(params_phase_fence_barrier_0_deps, \
params_phase_fence_barrier_0_deps_count);
    PTO2TaskId bar = PTO2TaskId::invalid();
    if (params_phase_fence_barrier_0_deps_count > 0) {
        TaskOutputTensors phase_fence_barrier_0_outs = rt_submit_dummy_task(params_phase_fence_barrier_0);
        bar = phase_fence_barrier_0_outs.task_id();
    }
"""
    assert expected in body_of(result)
    assert "if (bar.is_valid())" in result.code
    compile_text(result.code, tmp_path)


def test_an_empty_barrier_is_submitted_unconditionally(tmp_path):
    dummy, _ = barrier("bar")
    result = generate([], auto(dummy))
    assert "if (" not in result.code
    assert "PTO2TaskId bar = phase_fence_barrier_0_outs.task_id();" in result.code
    compile_text(result.code, tmp_path)


def test_buffers_of_a_manual_scope_are_allocated_before_it(tmp_path):
    k = unary("k")
    x, made = var("x"), var("t")
    creation = assign(made, op("tensor.create", [indices(const(32), const(32))], made.type, dtype=FP32))
    y = var("y")
    body = auto(manual(creation, assign(y, call(k, [x, made], "io"))), evaluated(call(k, [y, x], "ix")))
    result = generate([x], body, k)
    text = body_of(result)
    assert text.index("const ChipTensor& t = alloc_0.get_ref(0);") < text.index("PTO2ScopeMode::MANUAL")
    assert "\n    const ChipTensor& t = " in text
    assert "params_t1.add_input(t);" in text
    compile_text(result.code, tmp_path)


def test_tensor_carries_and_results_of_a_manual_scope_are_declared_before_it(tmp_path):
    k = unary("k")
    x, out, c = var("x"), var("out"), scalar("c", INT32)
    arg, rv = ir.IterArg("cur", tensor(), x, SPAN), var("cur__rv")
    z = var("z")
    branch = ir.IfStmt(
        ir.Gt(c, const(0, INT32), ir.ScalarType(INT32).dtype, SPAN), yields(x), yields(out), [z], SPAN
    )
    body = auto(
        manual(loop(scalar("i", INDEX), upto(2), [(arg, rv)], yields(out)), branch),
        evaluated(call(k, [rv, z], "ix")),
    )
    result = generate([x, out, c], body, k)
    text = result.code
    scope = text.index("PTO2ScopeMode::MANUAL")
    assert text.index("ChipTensor cur__rv = ext_x;") < scope
    assert text.index("ChipTensor z = ext_x;") < scope
    compile_text(text, tmp_path)


def test_scalars_and_views_used_after_their_scope_are_declared_before_it(tmp_path):
    k = unary("k")
    x, out, counts = var("x"), var("out"), var("counts", tensor([4], INT32))
    n, view = scalar("n", INT32), var("v", tensor([16, 32]))
    body = auto(
        manual(
            assign(n, op("tensor.read", [counts, indices(const(0))], n.type)),
            assign(view, op("tensor.transpose", [x, const(0), const(1)], view.type)),
        ),
        loop(scalar("i", INDEX), upto(n), [], auto(evaluated(call(k, [view, out], "ix")))),
    )
    result = generate([x, out, counts], body, k)
    text = result.code
    scope = text.index("PTO2ScopeMode::MANUAL")
    assert (
        text.index("int32_t n{};")
        < scope
        < text.index("n = get_tensor_data<int32_t>(ext_counts, 1, indices_n);")
    )
    assert text.index("ChipTensor v{};") < scope
    compile_text(text, tmp_path)


def test_buffers_and_outputs_made_in_a_scope_and_used_after_it_are_declared_before_it(tmp_path):
    k = unary("k")
    x, made, y = var("x"), var("t"), var("y")
    creation = assign(made, op("tensor.create", [indices(const(32), const(32))], made.type, dtype=FP32))
    body = auto(auto(creation, assign(y, call(k, [x, made], "io"))), evaluated(call(k, [y, x], "ix")))
    text = generate([x], body, k).code
    assert text.index("ChipTensor t{};") < text.index("t = alloc_0.get_ref(0);") < text.index("add_input(t);")
    compile_text(text, tmp_path)
    stmts, (z, _) = unpack("r", submit(k, [x], "i"))
    text = generate([x], auto(manual(*stmts), evaluated(call(k, [z, x], "ix"))), k).code
    scope = text.index("PTO2ScopeMode::MANUAL")
    assert text.index("ChipTensor r_0{};") < scope < text.index("r_0 = task_0_outs.get_ref(0);")
    compile_text(text, tmp_path)


def test_a_function_without_automatic_scopes_starts_with_what_the_user_wrote(tmp_path):
    k = unary("k")
    x, out = var("x"), var("out")
    text = generate([x, out], evaluated(call(k, [x, out], "io")), k).code
    assert "PTO2_SCOPE" not in text
    compile_text(text, tmp_path)
