"""Which dispatches share a registration: in the rows, in the ids of the text and in the configuration."""

from __future__ import annotations

import re

from pypto import ir
from pypto.codegen import kernel_config_text
from tests.codegen.orchestration.builders import (
    INDEX,
    INT32,
    SPAN,
    PDir,
    assign,
    auto,
    call,
    const,
    generate,
    kernel,
    loop,
    op,
    scalar,
    seq,
    submit,
    unary,
    upto,
    var,
)

AIC, GROUP, SPMD = ir.FunctionType.AIC, ir.FunctionType.Group, ir.FunctionType.Spmd


def evaluated(value):
    return ir.EvalStmt(value, SPAN)


def wrapped(kind, name, *callees):
    """A wrapper `(a, b)` that passes both to each callee."""
    a, b = var("a"), var("b")
    stmts = [evaluated(call(callee, [a, b], "io")) for callee in callees]
    return ir.Function(name, [a, (b, PDir.Out)], [], seq(*stmts), SPAN, kind)


def rows(result, *kernels):
    """The registrations; the configuration has one row for each, with the same contents."""
    functions = {each.name: each for each in kernels}
    text = kernel_config_text("orch", result.orchestration_signature, result.kernel_registrations, functions)
    config = {"__file__": "/build/kernel_config.py"}
    exec(text, config)
    registrations = result.kernel_registrations
    assert [
        (row["func_id"], row["name"], tuple(d.name for d in row.get("signature", ())), row["core_type"])
        for row in config["KERNELS"]
    ] == [
        (r.func_id, r.code_name, r.signature, "aic" if r.core_type is ir.CoreType.CUBE else "aiv")
        for r in registrations
    ]
    assert all(
        ("signature" in row) == bool(r.signature)
        for row, r in zip(config["KERNELS"], registrations, strict=True)
    )
    assert {each for found in submitted_ids(result) for each in found} == {r.func_id for r in registrations}
    assert [r.func_id for r in registrations] == list(range(len(registrations)))
    return [(r.func_id, r.code_name, r.signature) for r in registrations]


def submitted_ids(result):
    """The ids of all submits, in order of the text."""
    found = []
    for line in result.code.splitlines():
        if single := re.search(r"rt_submit_ai[cv]_task\((\d+),", line):
            found.append([int(single[1])])
        elif mixed := re.search(r"mixed_\d+ = \{(.*)\};", line):
            found.append([int(each) for each in mixed[1].split(", ") if each.isdigit()])
    return found


X, OUT = var("x"), var("out")


def test_five_sites_with_equal_directions_are_one_row_wherever_they_stand():
    k = unary("k")
    spmd = wrapped(SPMD, "w", k)
    flag = scalar("flag", INT32)
    condition = ir.Gt(flag, const(0, INT32), ir.BOOL, SPAN)
    body = auto(
        evaluated(call(k, [X, OUT], "io")),
        loop(scalar("i", INDEX), upto(3), [], auto(evaluated(call(k, [X, OUT], "io")))),
        ir.IfStmt(condition, auto(evaluated(call(k, [X, OUT], "io"))), None, [], SPAN),
        evaluated(call(spmd, [X, OUT], "io", {"core_num": 4})),
        evaluated(submit(k, [X, OUT], "io")),
    )
    result = generate([X, OUT, flag], body, k, spmd)
    assert rows(result, k) == [(0, "k", ("IN", "OUT"))]
    assert submitted_ids(result) == [[0]] * 5


def test_a_first_write_and_later_writes_are_two_rows():
    k = unary("k")
    body = auto(evaluated(call(k, [X, OUT], "io")), evaluated(call(k, [X, OUT], "ix")))
    result = generate([X, OUT], body, k)
    assert rows(result, k) == [(0, "k", ("IN", "OUT")), (1, "k", ("IN", "INOUT"))]
    assert submitted_ids(result) == [[0], [1]]


def test_no_dep_on_an_input_is_a_row_of_its_own_but_not_on_an_inout():
    k = unary("k")
    on_input = auto(evaluated(call(k, [X, OUT], "io")), evaluated(call(k, [X, OUT], "no")))
    result = generate([X, OUT], on_input, k)
    assert rows(result, k) == [(0, "k", ("IN", "OUT")), (1, "k", ("INOUT", "OUT"))]
    assert submitted_ids(result) == [[0], [1]]
    on_inout = auto(evaluated(call(k, [X, OUT], "ix")), evaluated(call(k, [X, OUT], "in")))
    result = generate([X, OUT], on_inout, k)
    assert rows(result, k) == [(0, "k", ("IN", "INOUT"))]
    assert submitted_ids(result) == [[0], [0]]
    assert "params_t1.add_no_dep(ext_out);" in result.code


def test_an_omitted_output_and_an_existing_one_have_one_signature():
    k = unary("k")
    body = auto(evaluated(submit(k, [X], "i")), evaluated(call(k, [X, OUT], "io")))
    result = generate([X, OUT], body, k)
    assert rows(result, k) == [(0, "k", ("IN", "OUT"))]
    assert submitted_ids(result) == [[0], [0]]


def test_a_kernel_with_scalars_only_has_an_empty_signature():
    k, other = kernel("k", [(scalar("s", INT32), PDir.In)]), unary("other")
    three = [const(3, INT32)]
    assert rows(generate([], auto(evaluated(call(k, three, "s"))), k), k) == [(0, "k", ())]
    body = auto(evaluated(call(other, [X, OUT], "io")), evaluated(call(k, three, "s")))
    result = generate([X, OUT], body, k, other)
    assert rows(result, k, other) == [(0, "other", ("IN", "OUT")), (1, "k", ())]


def test_kernels_with_equal_signatures_are_rows_of_their_own_and_one_reached_in_two_ways_is_not():
    k, twin = unary("k"), unary("twin")
    spmd, twin_spmd = wrapped(SPMD, "w", k), wrapped(SPMD, "v", twin)
    body = auto(
        evaluated(call(twin_spmd, [X, OUT], "io", {"core_num": const(2)})),
        evaluated(call(k, [X, OUT], "io")),
        evaluated(call(spmd, [X, OUT], "io", {"core_num": const(4)})),
        evaluated(call(twin, [X, OUT], "io")),
    )
    result = generate([X, OUT], body, k, twin, spmd, twin_spmd)
    assert rows(result, k, twin) == [(0, "twin", ("IN", "OUT")), (1, "k", ("IN", "OUT"))]
    assert submitted_ids(result) == [[0], [1], [1], [0]]


def test_a_kernel_on_both_vector_lanes_has_one_row():
    dual, cube = unary("dual", attrs={"dual_aiv_dispatch": True}), unary("cube", AIC)
    group = wrapped(GROUP, "g", cube, dual)
    body = auto(evaluated(call(dual, [X, OUT], "io")), evaluated(call(group, [X, OUT], "ix")))
    result = generate([X, OUT], body, dual, cube, group)
    assert rows(result, dual, cube) == [
        (0, "dual", ("IN", "OUT")),
        (1, "cube", ("IN", "INOUT")),
        (2, "dual", ("IN", "INOUT")),
    ]
    assert submitted_ids(result) == [[0, 0], [1, 2, 2]]


def test_a_vector_kernel_in_a_group_and_alone_is_one_row():
    cube, vector = unary("cube", AIC), unary("vector")
    group = wrapped(GROUP, "g", cube, vector)
    body = auto(evaluated(call(group, [X, OUT], "io")), evaluated(call(vector, [X, OUT], "io")))
    result = generate([X, OUT], body, cube, vector, group)
    assert rows(result, cube, vector) == [(0, "cube", ("IN", "OUT")), (1, "vector", ("IN", "OUT"))]
    assert submitted_ids(result) == [[0, 1], [1]]


def test_what_differs_per_task_does_not_make_rows():
    k = kernel("k", [(var("x"), PDir.In), (var("out"), PDir.Out), (scalar("s", INT32), PDir.In)])
    tid = var("tid", ir.ScalarType(ir.DataType.TASK_ID))
    body = auto(
        assign(tid, op("system.task_invalid", [], tid.type)),
        evaluated(submit(k, [X, OUT, const(1, INT32)], "ios", core_num=const(4), sync_start=True)),
        evaluated(submit(k, [X, OUT, const(2, INT32)], "ios", [tid], {"dump_vars": [X]})),
        evaluated(call(k, [OUT, X, const(3, INT32)], "ios")),
    )
    assert len(rows(generate([X, OUT], body, k), k)) == 1


def test_ids_follow_the_order_of_emission_also_into_branches():
    late, early = unary("a_late"), unary("z_early")
    flag = scalar("flag", INT32)
    branch = ir.IfStmt(
        ir.Gt(flag, const(0, INT32), ir.BOOL, SPAN),
        auto(evaluated(call(late, [X, OUT], "io"))),
        None,
        [],
        SPAN,
    )
    body = auto(evaluated(call(early, [X, OUT], "io")), branch, evaluated(call(early, [X, OUT], "ix")))
    result = generate([X, OUT, flag], body, late, early)
    assert [(number, name) for number, name, _ in rows(result, late, early)] == [
        (0, "z_early"),
        (1, "a_late"),
        (2, "z_early"),
    ]
    assert submitted_ids(result) == [[0], [1], [2]]


def test_kernels_that_are_never_submitted_have_no_row():
    used, unused = unary("used"), unary("unused")
    result = generate([X, OUT], auto(evaluated(call(used, [X, OUT], "io"))), used, unused)
    assert [name for _, name, _ in rows(result, used)] == ["used"]
