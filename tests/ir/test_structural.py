from __future__ import annotations

import os
import subprocess
import sys

import pytest

from pypto import ir

from .nodes import S, assign, call, const, function, loop, seq, tensor, var


def equal_both_ways(a, b, auto=False):
    """Equality, checked to be symmetric and to imply equal hashes."""
    verdict = ir.structural_equal(a, b, auto)
    assert ir.structural_equal(b, a, auto) is verdict
    if verdict:
        assert ir.structural_hash(a, auto) == ir.structural_hash(b, auto)
    return verdict


def kernel(*shape, name="k", **options):
    x = tensor(*shape)
    y = ir.Var("y", x.type, S)
    return function([x], assign(y, call("o", x, type=x.type)), ir.ReturnStmt([y], S), name=name, **options)


def test_locals_and_names_do_not_matter_but_free_variables_do():
    assert equal_both_ways(kernel(4), kernel(4, name="other"))
    free = var()
    assert not equal_both_ways(free + 1, var() + 1)
    assert equal_both_ways(free + 1, free + 1)
    assert equal_both_ways(free + 1, var() + 1, True)


def test_two_variables_of_one_name_and_type_are_equal_under_auto_mapping_only():
    assert not equal_both_ways(var("x"), var("x"))
    assert equal_both_ways(var("x"), var("x"), True)
    assert not equal_both_ways(var("x"), var("x", ir.INT32), True)


def test_consistent_renaming_is_equal_and_merging_two_symbols_is_not():
    n, m = var("N"), var("M")
    assert equal_both_ways(kernel(n, m), kernel(m, n))
    assert not equal_both_ways(kernel(n, m), kernel(m, m))
    assert not equal_both_ways(kernel(n, n), kernel(n, m))
    x, y = var(), var()
    assert not equal_both_ways(x + x, x + y, True)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (const(1), const(2)), (const(1), const(1, ir.INT32)), (ir.ConstBool(True, S), const(1, ir.BOOL)),
        (ir.ConstFloat(0.0, ir.FP32, S), ir.ConstFloat(-0.0, ir.FP32, S)),
        (call("a"), call("b")), (call("a", k=1), call("a", k=True)), (call("a", k=1), call("a", k=1.0)),
        (call("a"), call("a", k=1)), (call("a", k="x"), call("a", j="x")),
        (call("a"), call("a", type=ir.ScalarType(ir.INT64))), (seq(ir.BreakStmt(S)), ir.BreakStmt(S)),
        (ir.Call(ir.Op("a"), [], S), ir.Submit(ir.Op("a"), [], [], ir.UnknownType(), S)),
        (kernel(4), kernel(5)), (kernel(4), kernel(4, type=ir.FunctionType.InCore)),
        (loop(seq()), loop(seq(), kind=ir.ForKind.Parallel)),
        (ir.ClusterScopeStmt("a", seq(), S), ir.ClusterScopeStmt("b", seq(), S)),
        (ir.ScalarType(ir.INT64), ir.ScalarType(ir.INDEX)),
    ],
)  # fmt: skip
def test_differences_that_matter(left, right):
    assert not equal_both_ways(left, right)
    with pytest.raises(ValueError, match="Structural equality assertion failed"):
        ir.assert_structural_equal(left, right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (const(1, ir.INT64), const(1, ir.INDEX)),
        (ir.ConstFloat(float("nan"), ir.FP32, S), ir.ConstFloat(float("nan"), ir.FP32, S)),
        (call("a", i=1, j=2), call("a", j=2, i=1)),
        (ir.Call(ir.Op("f"), [], S), ir.Call(ir.GlobalVar("f"), [], S)),
        (loop(seq(), var("i", ir.INT64)), loop(seq(), var("j", ir.INDEX))),
        (
            ir.TileType([4], ir.FP32, ir.MemRef("mem_vec_1", 0, 16)),
            ir.TileType([4], ir.FP32, None, None, ir.Mem.Vec),
        ),
    ],
)
def test_differences_that_do_not_matter(left, right):
    assert equal_both_ways(left, right)
    ir.assert_structural_equal(left, right)


@pytest.mark.parametrize("place", ["attrs", "kwargs"])
def test_kind_and_presence_of_attributes_matter_and_their_order_does_not(place):
    def made(**values):
        attrs, kwargs = (values, {}) if place == "attrs" else ({}, values)
        return ir.Call(ir.Op("q"), [], kwargs, attrs, ir.UnknownType(), S)

    kinds = [made(k=value) for value in (True, 1, 1.0, "1", ir.FP16, ir.Mem.Mat, [ir.input], [])] + [made()]
    for i, one in enumerate(kinds):
        for j, other in enumerate(kinds):
            assert equal_both_ways(one, other) is (i == j)
    assert equal_both_ways(made(k=1, j=True), made(j=True, k=1))
    assert not equal_both_ways(made(k=[ir.input, ir.inout]), made(k=[ir.inout, ir.input]))
    assert equal_both_ways(made(pipe=ir.PipeType.V), made(pipe=ir.PipeType.V.value))


def test_attributes_with_a_repeated_key_equal_nothing():
    def made(*pairs):
        return ir.Call(ir.Op("q"), [], {}, list(pairs), ir.UnknownType(), S)

    twice = made(("a", 1), ("a", 1))
    assert twice.attrs == {"a": 1}
    for other in (made(("a", 1), ("a", 1)), made(("a", 1))):
        assert not ir.structural_equal(twice, other)
        assert not ir.structural_equal(other, twice, True)
        with pytest.raises(ValueError, match=r"key 'a' present on one side only \(or duplicated\)"):
            ir.assert_structural_equal(twice, other)


def test_loop_variables_of_int64_and_index_are_equal_with_uses():
    def counted(dtype):
        i = var("i", dtype)
        return loop(assign(var("y", ir.INDEX), ir.Add(i, const(1), ir.INDEX, S)), i)

    assert equal_both_ways(counted(ir.INT64), counted(ir.INDEX))
    assert equal_both_ways(counted(ir.INT64), counted(ir.INDEX), True)


def test_shared_loop_bodies_are_equal_under_different_loop_variables():
    i, j = var("i", ir.INDEX), var("j", ir.INDEX)
    body = assign(var("y"), i + 1)
    assert ir.structural_equal(loop(body, i), loop(body, j))
    assert ir.structural_hash(loop(body, i)) != ir.structural_hash(loop(body, j))


TILE = ir.TileType([16, 16], ir.FP32, None, None, ir.Mem.Vec)
OFFSET = ir.TileType([16, 16], ir.FP32, None, ir.TileView(start_offset=0), ir.Mem.Vec)
COMPACT = ir.TileType([16, 16], ir.FP32, None, ir.TileView(compact=ir.CompactMode.normal), ir.Mem.Vec)


@pytest.mark.parametrize(
    ("left", "right", "verdict"),
    [
        (ir.TensorType([4], ir.FP32, ir.MemRef("m", 0, 16)), ir.TensorType([4], ir.FP32), True),
        (ir.TileType([16, 16], ir.FP32, ir.MemRef("m", 0, 1024), None, ir.Mem.Vec), TILE, True),
        (ir.TensorType([const(4, ir.INT64)], ir.FP32), ir.TensorType([const(4)], ir.FP32), True),
        (ir.TileType([const(4, ir.INT64)], ir.FP32), ir.TileType([const(4)], ir.FP32), True),
        (ir.TensorType([const(4, ir.INT32)], ir.FP32), ir.TensorType([const(4)], ir.FP32), False),
        (ir.TileType([const(4, ir.INT32)], ir.FP32), ir.TileType([const(4, ir.INT64)], ir.FP32), False),
        (OFFSET, TILE, False), (COMPACT, TILE, False), (COMPACT, OFFSET, False),
        (TILE, ir.TileType([16, 16], ir.FP32), False),
        (ir.TensorType([4], ir.FP32), ir.DistributedTensorType([4], ir.FP32), False),
    ],
)  # fmt: skip
def test_types_differ_by_extents_offset_compactness_and_space_but_not_by_their_memory(left, right, verdict):
    for auto in (False, True):
        assert equal_both_ways(left, right, auto) is verdict
    assert (left == right) is verdict
    assert len({left: 1, right: 2}) == (1 if verdict else 2)


def test_window_buffers_in_types_compare_by_identity_and_are_mapped_whatever_their_size():
    base = ir.Var("base", ir.PtrType(), S)
    small, large = ir.WindowBuffer(base, const(4)), ir.WindowBuffer(base, const(8))

    def over(buffer):
        return ir.DistributedTensorType([4], ir.FP32, buffer)

    assert equal_both_ways(over(small), over(small))
    assert not equal_both_ways(over(small), over(large))
    assert equal_both_ways(over(small), over(large), True)
    assert not equal_both_ways(over(small), ir.DistributedTensorType([4], ir.FP32), True)


def test_slots_of_a_communication_domain_are_uses_that_types_in_the_body_must_agree_with():
    base = ir.Var("base", ir.PtrType(), S)
    one, two = ir.WindowBuffer(base, const(4)), ir.WindowBuffer(base, const(4))

    def domain(slot, used=None):
        type = ir.UnknownType() if used is None else ir.DistributedTensorType([4], ir.FP32, used)
        return ir.CommDomainScopeStmt([], [slot], "", ir.EvalStmt(call("f", type=type), S), S)

    assert not equal_both_ways(domain(one), domain(two))
    assert equal_both_ways(domain(one), domain(two), True)
    assert equal_both_ways(domain(one, one), domain(two, two), True)
    assert not equal_both_ways(domain(one, one), domain(two, one), True)


def doubled(start, times=64):
    for _ in range(times):
        start = ir.Add(start, start, ir.INT64, S)
    return start


def test_expressions_that_share_operands_cost_no_more_than_these():
    x, y = var("x"), var("y")
    assert equal_both_ways(doubled(x), doubled(x))
    assert not equal_both_ways(doubled(x), doubled(y))
    assert equal_both_ways(doubled(x), doubled(y), True)
    assert not equal_both_ways(doubled(x + y), doubled(x + x), True)
    sizes = [ir.TensorType([4], ir.FP32, None, ir.TensorView([], ir.ND, [doubled(x)])) for _ in range(2)]
    assert equal_both_ways(*sizes)
    assert ir.TileView([doubled(x)]) == ir.TileView([doubled(x)])
    with pytest.raises(ValueError, match="Reason: int64_t value mismatch"):
        ir.assert_structural_equal(doubled(x + const(1)), doubled(x + const(2)))


def test_a_pair_met_again_is_compared_anew_once_variables_have_found_partners():
    x, fresh = var("x"), var("fresh")

    def around(extent):
        again = x + 1
        sized = assign(tensor(extent), call("f", type=ir.TensorType([extent], ir.FP32)))
        return seq(ir.EvalStmt(again, S), sized, ir.EvalStmt(again, S))

    assert equal_both_ways(around(x), around(x))
    assert not equal_both_ways(around(x), around(fresh))


def test_a_difference_between_huge_shared_expressions_is_told_without_their_text():
    total = doubled(var("x"))
    with pytest.raises(ValueError, match="of more than 50000 nodes") as caught:
        ir.assert_structural_equal(total, ir.Neg(total, ir.INT64, S))
    assert "Node type mismatch (Add != Neg)" in str(caught.value)


def test_order_matters_in_lists_but_not_among_attributes():
    first, second = var("t"), var("t")

    def submit(*deps):
        return ir.Submit(ir.GlobalVar("k"), [], list(deps), ir.UnknownType(), S)

    assert not equal_both_ways(submit(first, second), submit(second, first))
    assert not equal_both_ways(
        call("a", arg_direction_overrides=[0, 1]), call("a", arg_direction_overrides=[1, 0])
    )
    assert equal_both_ways(call("a", x=[first, second], y=1), call("a", y=1, x=[first, second]))


def test_comments_and_places_do_not_matter():
    plain = ir.BreakStmt(S)
    commented = ir.attach_leading_comments(ir.BreakStmt(ir.Span("f.py", 3, 4)), ["why"])
    assert equal_both_ways(plain, commented)


def test_reassigned_parameter_equals_its_renamed_form():
    out = tensor(4)
    first = function([out], assign(out, call("store", out, type=out.type)), ir.ReturnStmt([out], S))
    fresh = ir.Var("out_1", out.type, S)
    second = function([out], assign(fresh, call("store", out, type=out.type)), ir.ReturnStmt([fresh], S))
    assert ir.structural_equal(first, second)


def test_initial_values_are_mapped_inside_the_definition_field():
    def carried(dtype=ir.INT64):
        init = var("init", dtype)
        arg = ir.IterArg("c", init.type, init, S)
        body = ir.YieldStmt([arg], S)
        counted = ir.ForStmt(var("i"), const(0), const(4), const(1), [arg], body, [var("r", dtype)], S)
        return counted, ir.WhileStmt(ir.Lt(arg, const(4), ir.BOOL, S), [arg], body, [var("r", dtype)], S)

    for one, two, other in zip(carried(), carried(), carried(ir.INT32), strict=True):
        assert equal_both_ways(one, two)
        assert not equal_both_ways(one, other)


def test_programs_match_functions_by_name_and_symbols_across_functions():
    n, m = var("N"), var("M")
    one = ir.Program([kernel(n, name="a"), kernel(n, name="b")], "P", S)
    two = ir.Program([kernel(n, name="b"), kernel(n, name="a")], "Q", S)
    split = ir.Program([kernel(n, name="a"), kernel(m, name="b")], "P", S)
    assert equal_both_ways(one, two)
    assert not equal_both_ways(one, split)
    assert not equal_both_ways(one, ir.Program([kernel(n, name="a")], "P", S))


def test_hash_of_a_variable_free_node_is_the_same_in_every_process(tmp_path):
    options = {"note": "text", "dtype": ir.FP16, "space": ir.Mem.Mat, "ways": [ir.input], "number": -0.0}
    body = ir.EvalStmt(call("o", const(7), ir.ConstFloat(0.5, ir.BF16, S), **options), S)
    node = ir.Program([function([], body, type=ir.FunctionType.AIV, level=ir.Level.AIV)], "P", S)
    ir.serialize_to_file(node, tmp_path / "node")
    load = f"ir.deserialize_from_file({str(tmp_path / 'node')!r})"
    code = f"from pypto import ir; print(ir.structural_hash({load}))"
    other = {**os.environ, "PYTHONHASHSEED": "11"}
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=other).stdout
    assert told == f"{ir.structural_hash(node)}\n"


def test_only_two_nodes_or_two_types_are_comparable():
    for left, right in ((const(1), ir.UnknownType()), (None, const(1)), (1, 1)):
        with pytest.raises(TypeError):
            ir.structural_equal(left, right)
    with pytest.raises(TypeError):
        ir.structural_hash("text")


@pytest.mark.parametrize(
    ("left", "right", "path", "reason"),
    [
        (kernel(4), kernel(5), "params[0].value", "int64_t value mismatch (4 != 5)"),
        (
            kernel(4),
            kernel(4, type=ir.FunctionType.AIV),
            "func_type",
            "FunctionType mismatch (Opaque != AIV)",
        ),
        (
            seq(assign(var(), const(1))),
            seq(assign(var(), const(1, ir.INT32))),
            "[0].value.type",
            "ScalarType dtype mismatch (index != int32)",
        ),
        (call("a"), call("b"), "op", "Operator name mismatch ('a' != 'b')"),
        (call("a", var()), call("a"), "args", "Vector size mismatch (1 items != 0 items)"),
        (call("a", k=1), call("a"), "attrs", "Kwargs size mismatch (1 != 0)"),
        (call("a", k=1), call("a", k=2), "attrs", "Kwargs value mismatch for key 'k'"),
        (const(1), var(), "", "Node type mismatch (ConstInt != Var)"),
        (var(), var(), "", "Variable pointer mismatch (without auto-mapping)"),
        (
            ir.TensorType([4], ir.FP32),
            ir.TensorType([4, 4], ir.FP32),
            "",
            "TensorType shape rank mismatch (1 != 2)",
        ),
        (
            ir.TensorType([4], ir.FP32),
            ir.TileType([4], ir.FP32),
            "",
            "Type name mismatch (TensorType != TileType)",
        ),
    ],
)
def test_assertion_names_path_and_reason_of_the_first_difference(left, right, path, reason):
    with pytest.raises(ValueError) as error:
        ir.assert_structural_equal(left, right)
    text = str(error.value)
    assert text.startswith(f"Structural equality assertion failed{f' at: {path}' if path else ''}\n")
    assert text.endswith(f"Reason: {reason}")


def test_assertion_explains_inconsistent_mappings():
    x, y, z = var("x"), var("y"), var("z")
    with pytest.raises(ValueError, match="'x' cannot map to both 'y' and 'z'"):
        ir.assert_structural_equal(ir.Add(x, x, ir.INT64, S), ir.Add(y, z, ir.INT64, S), True)
    with pytest.raises(ValueError, match="'z' is already mapped from 'x', cannot map from 'y'"):
        ir.assert_structural_equal(ir.Add(x, y, ir.INT64, S), ir.Add(z, z, ir.INT64, S), True)


BASE = var("base")


def placed(base=BASE, offset=0, size=4, pinned=False, slots=1, slot=None):
    return ir.MemRef(base, offset, size, S, pinned, slots, slot)


@pytest.mark.parametrize(
    ("right", "reason"),
    [
        (placed(base=ir.Var("p", ir.PtrType(), S), size=8), "MemRef base mismatch"),
        (placed(offset=8, size=8), "MemRef byte_offset mismatch"),
        (placed(size=8), "MemRef size mismatch (4 != 8)"),
        (placed(pinned=True), "MemRef is_pinned mismatch (false != true)"),
        (placed(slots=2), "MemRef slot_count mismatch (1 != 2)"),
        (placed(slot=const(0)), "MemRef slot_index presence mismatch"),
    ],
)
def test_the_first_different_part_of_a_memory_reference_is_named(right, reason):
    with pytest.raises(ValueError) as error:
        ir.assert_structural_equal(placed(), right, True)
    text = str(error.value)
    assert text.startswith("Structural equality assertion failed\n\nLeft-hand side:\n")
    assert text.endswith(f"Reason: {reason}")


@pytest.mark.parametrize(
    ("left", "right", "path", "reason"),
    [
        (
            ir.TupleGetItemExpr(ir.MakeTuple([BASE, BASE], S), 0, S),
            ir.TupleGetItemExpr(ir.MakeTuple([BASE, BASE], S), 1, S),
            "index", "Integer value mismatch (0 != 1)",
        ),
        (
            ir.WindowBuffer(BASE, const(4), True), ir.WindowBuffer(BASE, const(4)),
            "load_from_host", "Bool value mismatch (true != false)",
        ),
        (
            ir.WindowBuffer(BASE, const(4)), ir.WindowBuffer(BASE, const(5)),
            "size.value", "int64_t value mismatch (4 != 5)",
        ),
        (call("a", k=BASE), call("a", k=[BASE]), "attrs", "Kwargs value type mismatch for key 'k'"),
        (call("a", k=1), call("a", k=True), "attrs", "Kwargs value type mismatch for key 'k'"),
        (call("a", k=[]), call("a", k=[BASE]), "attrs", "Kwargs value type mismatch for key 'k'"),
        (call("a", dump_vars=[]), call("a", dump_vars=[BASE]), "attrs", "value mismatch for key 'dump_vars'"),
        (
            function([], level=ir.Level.HOST), function([]),
            "level", "Level optional presence mismatch",
        ),
    ],
)  # fmt: skip
def test_reasons_tell_small_numbers_flags_and_kinds_of_attributes_apart(left, right, path, reason):
    with pytest.raises(ValueError) as error:
        ir.assert_structural_equal(left, right, True)
    text = str(error.value)
    assert text.startswith(f"Structural equality assertion failed at: {path}\n")
    assert text.endswith(reason)


def test_hashes_tell_neighbours_of_zero_and_the_first_variables_apart():
    numbers = [const(value) for value in (-3, -2, -1, 0, 1)]
    assert len({ir.structural_hash(number) for number in numbers}) == 5
    assert len({ir.structural_hash(call("a", k=number)) for number in (-3, -2, -1, 0)}) == 4
    code = "from pypto import ir; S = ir.Span.unknown(); T = ir.ScalarType(ir.INT64); "
    code += "print(len({ir.structural_hash(ir.Var('v', T, S)) for _ in range(5)}))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "5\n"


def program_of(*functions):
    return ir.Program(list(functions), "P", S)


def branch(value):
    return function(
        [], ir.IfStmt(ir.ConstBool(True, S), seq(), assign(var(), const(value)), [], S), name="main"
    )


def taken(value):
    return function(
        [], ir.IfStmt(ir.ConstBool(True, S), assign(var(), const(value)), seq(), [], S), name="main"
    )


def two(second):
    return function([], assign(var(), const(1)), assign(var(), second), name="main")


def in_loop(second):
    return function([], loop(seq(assign(var(), const(1)), assign(var(), second))), name="main")


def nested(value):
    inner = ir.IfStmt(ir.ConstBool(True, S), assign(var(), const(value)), None, [], S)
    return function([], loop(inner), name="main")


@pytest.mark.parametrize(
    ("left", "right", "path", "reason"),
    [
        (program_of(kernel(4)), program_of(), "", "Map size mismatch (1 items != 0 items)"),
        (
            program_of(kernel(4, name="a")),
            program_of(kernel(4, name="b")),
            "",
            "Map key mismatch ('a' != 'b')",
        ),
        (
            program_of(kernel(4, name="a"), kernel(4, name="b")),
            program_of(kernel(4, name="a"), kernel(4, name="b", type=ir.FunctionType.InCore)),
            "['b'].func_type",
            "FunctionType mismatch (Opaque != InCore)",
        ),
        (
            program_of(branch(1)),
            program_of(branch(2)),
            "['main'].body[0].else_body.value.value",
            "int64_t value mismatch (1 != 2)",
        ),
        (
            program_of(taken(1)),
            program_of(taken(2)),
            "['main'].body[0].then_body.value.value",
            "int64_t value mismatch (1 != 2)",
        ),
        (
            program_of(two(const(1))),
            program_of(two(const(2))),
            "['main'].body[1].value.value",
            "int64_t value mismatch (1 != 2)",
        ),
        (
            program_of(two(const(1))),
            program_of(two(var())),
            "['main'].body[1].value",
            "Node type mismatch (ConstInt != Var)",
        ),
        (
            program_of(in_loop(const(1))),
            program_of(in_loop(const(2) + 1)),
            "['main'].body[0].body[1].value",
            "Node type mismatch (ConstInt != Add)",
        ),
        (
            program_of(function([], loop(seq()), name="main")),
            program_of(function([], loop(seq()).replace(stop=const(5)), name="main")),
            "['main'].body[0].stop.value",
            "int64_t value mismatch (4 != 5)",
        ),
        (
            loop(seq()),
            loop(seq()).replace(stop=const(5)),
            "stop.value",
            "int64_t value mismatch (4 != 5)",
        ),
        (
            program_of(ir.Function("a", [], [ir.TensorType([4], ir.FP32)], seq(), S)),
            program_of(ir.Function("a", [], [ir.TensorType([4], ir.FP16)], seq(), S)),
            "['a'].return_types",
            "TensorType dtype mismatch (fp32 != fp16)",
        ),
        (
            program_of(function([], assign(var("x", ir.INT32), const(1)), name="main")),
            program_of(function([], assign(var("x", ir.INT64), const(1)), name="main")),
            "['main'].body[0].var",
            "ScalarType dtype mismatch (int32 != int64)",
        ),
        (
            program_of(nested(1)),
            program_of(nested(2)),
            "['main'].body[0].body.then_body.value.value",
            "int64_t value mismatch (1 != 2)",
        ),
        (
            program_of(kernel(4, name="f")),
            program_of(kernel(5, name="f")),
            "['f'].params[0].value",
            "int64_t value mismatch (4 != 5)",
        ),
        (
            program_of(kernel(const(4, ir.INT32), name="f")),
            program_of(kernel(4, name="f")),
            "['f'].params[0].type",
            "ScalarType dtype mismatch (int32 != index)",
        ),
        (
            assign(tensor(4), const(1)),
            assign(tensor(4, dtype=ir.FP16), const(1)),
            "var",
            "TensorType dtype mismatch (fp32 != fp16)",
        ),
        (
            assign(var(), const(1)),
            ir.YieldStmt(S),
            "",
            "Node type mismatch (AssignStmt != YieldStmt)",
        ),
        (const(1) + 2, const(1) - 2, "", "Node type mismatch (Add != Sub)"),
    ],
)
def test_the_path_of_a_difference_leads_through_functions_loops_branches_and_types(left, right, path, reason):
    with pytest.raises(ValueError) as error:
        ir.assert_structural_equal(left, right)
    first, *_, last = str(error.value).splitlines()
    assert first == f"Structural equality assertion failed{f' at: {path}' if path else ''}"
    assert last == f"Reason: {reason}"


@pytest.mark.parametrize("auto", [False, True])
def test_merging_distinct_free_variables_is_unequal_in_both_modes(auto):
    x, y, z, a = var("x"), var("y"), var("z"), var("a")
    assert not equal_both_ways(x + x, y + z, auto)
    assert not equal_both_ways(x + y, a + a, auto)


def test_an_assigned_variable_is_renamed_and_a_read_one_only_under_auto_mapping():
    x, y, z, v, w = var("x"), var("y"), var("z"), var("v"), var("w")
    assert equal_both_ways(assign(x, y), assign(z, y))
    assert not equal_both_ways(assign(x, y), assign(x, z))
    assert equal_both_ways(assign(x, y), assign(x, z), True)
    assert equal_both_ways(assign(x, y), assign(w, z), True)
    assert equal_both_ways(assign(v, v + 1), assign(w, w + 1))


def test_shared_symbols_swap_only_together_with_their_uses():
    n, m = var("N", ir.INDEX), var("M", ir.INDEX)

    def reading(first, second, read):
        return function([tensor(first, second)], ir.YieldStmt([read], S))

    for auto in (False, True):
        assert equal_both_ways(reading(n, m, n), reading(m, n, m), auto)
        assert not equal_both_ways(reading(n, m, n), reading(m, n, n), auto)
    assert equal_both_ways(kernel(var("N1", ir.INDEX), 64), kernel(var("N2", ir.INDEX), 64))


def test_functions_over_partial_tiles_and_scopes_that_refer_to_variables_are_hashable():
    rows, tid = var("rows", ir.INDEX), ir.Var("tid", ir.ScalarType(ir.DataType.TASK_ID), S)
    partial = ir.TileType([16, 16], ir.FP32, None, ir.TileView([rows, 16]), ir.Mem.Vec)
    offset = ir.TileType([16, 16], ir.FP32, None, ir.TileView(start_offset=0), ir.Mem.Vec)
    tiles = [ir.Var("t", partial, S), ir.Var("u", offset, S)]
    scope = ir.SpmdScopeStmt(4, body=seq(), span=S).replace(
        attrs={"task_id_var": tid, "predicate": ir.Gt(rows, const(0), ir.BOOL, S), "manual_dep_edges": [tid]}
    )
    f = ir.Function("f", tiles, [partial], seq(scope), S)
    for auto in (False, True):
        assert ir.structural_hash(f, auto) == ir.structural_hash(f.replace(name="g"), auto)
        assert ir.structural_hash(scope, auto) == ir.structural_hash(scope.replace(attrs={}), auto)
    assert not ir.structural_equal(scope, scope.replace(attrs={}))
