"""Programs made to provoke a wrong merge: each is a pair that must merge, or must not, by the contract."""

from __future__ import annotations

import pytest

from pypto import ir, passes
from tests.passes.dedup.programs import dedup, dispatches, function, kernels, reason, records, ssa
from tests.passes.dedup.test_dynamic_shapes import (
    FP32,
    INDEX,
    NZ,
    SPAN,
    M,
    N,
    P,
    Q,
    call,
    const,
    kernel,
    pair,
    program_of,
    submit,
    symbol,
    tensor,
    times,
)

In, Out, InOut = ir.ParamDirection.In, ir.ParamDirection.Out, ir.ParamDirection.InOut

STEP = """
    @incore
    def {name}(self, x: T(64), out: pl.Out[T(64)]) -> T(64):
        t = pl.load(x, [0], [64])
        u = pl.add(t, {value})
        out = pl.store(u, [0], out)
        return out
"""


def steps(*names: str, value: str = "1.0") -> str:
    return "".join(STEP.format(name=name, value=value) for name in names)


# ---- symbols


def test_the_same_symbols_in_another_order_need_the_proof():
    """`a(x: M, y: N)` and `b(x: N, y: M)` mention the very same two variables, crosswise."""
    functions = [kernel("a", [tensor(M), tensor(N)]), kernel("b", [tensor(N), tensor(M)])]
    args = [tensor(64), tensor(8)]
    assert reason(program_of(functions, [call(n, args, tensor(8)) for n in "ab"]), "b") is None
    calls = [call("a", args, tensor(8)), submit("b", [tensor(64)], [tensor(8)])]
    assert reason(program_of(functions, calls), "b") == "proof_arity"


def test_a_symbol_of_the_kernel_that_is_also_a_variable_of_the_caller_is_bound_like_any_other():
    """The caller passes extents stated in the alias's own symbol, which is free there."""
    source = pair([tensor(M, 32)], [tensor(N, 32)], [tensor(N, 32)])
    assert reason(source, "b") is None
    crossed = pair([tensor(M, N)], [tensor(N, M)], [tensor(M, N)])
    assert reason(crossed, "b") is None


def test_a_caller_that_confuses_the_symbols_of_two_parameters_keeps_both():
    first, second = [tensor(M), tensor(P), tensor(M)], [tensor(N), tensor(Q), tensor(N)]
    source = pair(first, second, [tensor(64), tensor(8), tensor(8)])
    assert reason(source, "b") == "proof_binding"


def test_an_extent_computed_by_a_kernel_is_no_symbol_that_arguments_bind():
    """The result has an extent that the body computes: it may not leave by another name."""

    def made(name: str) -> ir.Function:
        x = ir.Var("x", tensor(8), SPAN)
        count = symbol("count")
        y = ir.Var("y", tensor(count), SPAN)
        body = ir.SeqStmts(
            [
                ir.AssignStmt(count, ir.Add(const(1), const(2), INDEX, SPAN), SPAN),
                ir.AssignStmt(y, ir.Call(ir.Op("tensor.make"), [x], y.type, SPAN), SPAN),
                ir.ReturnStmt([y], SPAN),
            ],
            SPAN,
        )
        return ir.Function(name, [x], [y.type], body, SPAN, ir.FunctionType.InCore)

    calls = [call(name, [tensor(8)], tensor(3)) for name in ("a", "b")]
    assert reason(program_of([made("a"), made("b")], calls), "b") == "proof_result_type"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (times(M, const(2)), times(N, const(3))),
        (times(M, const(2)), ir.Add(N, const(2), INDEX, SPAN)),
        (times(M, M), times(N, P)),
        (M, times(N, const(1))),
        (const(64), N),
    ],
    ids=["constant", "operator", "repeated symbol", "product with one", "constant against symbol"],
)
def test_extents_that_could_be_equal_numbers_are_different_forms(first: ir.Expr, second: ir.Expr):
    source = pair([tensor(first)], [tensor(second)], [tensor(64)])
    assert reason(source, "b") == "unique"


def test_a_scalar_argument_that_only_equals_the_extent_in_value_keeps_both():
    """`rows` and a copy of it are two variables: no algebra, also none about copies."""
    n = [ir.Var("n", ir.ScalarType(INDEX), SPAN) for _ in range(2)]
    functions = []
    for name, count in zip("ab", n, strict=True):
        x = ir.Var("x", tensor(count), SPAN)
        params = [(count, In), (x, Out)]
        body = ir.ReturnStmt([x], SPAN)
        functions.append(ir.Function(name, params, [x.type], body, SPAN, ir.FunctionType.InCore))
    rows, copy = symbol("rows"), symbol("copy")
    calls = [call(name, [copy, tensor(rows)], tensor(rows)) for name in "ab"]
    assert reason(program_of(functions, calls), "b") == "proof_binding"


def test_a_scalar_of_another_width_is_not_the_extent():
    n32 = ir.ConstInt(8, ir.DataType.INT32, SPAN)
    functions = []
    for name in "ab":
        count = ir.Var("n", ir.ScalarType(INDEX), SPAN)
        x = ir.Var("x", tensor(count), SPAN)
        body = ir.ReturnStmt([x], SPAN)
        functions.append(
            ir.Function(name, [(count, In), (x, Out)], [x.type], body, SPAN, ir.FunctionType.InCore)
        )
    calls = [call(name, [n32, tensor(8)], tensor(8)) for name in "ab"]
    assert reason(program_of(functions, calls), "b") == "proof_binding"


# ---- types


def test_a_layout_that_only_one_kernel_has_keeps_both():
    args = [tensor(64, 32)]
    assert reason(pair([tensor(64, 32)], [tensor(64, 32, view=NZ)], args), "b") == "unique"
    assert reason(pair([tensor(M, 32)], [tensor(N, 32, view=NZ)], args), "b") == "unique"


def test_valid_shapes_are_compared_and_their_symbols_must_be_identical():
    def valid(extent: ir.Expr) -> ir.TensorView:
        return ir.TensorView(valid_shape=[extent], layout=ir.TensorLayout.ND)

    args = [tensor(64)]
    same = pair([tensor(64, view=valid(M))], [tensor(64, view=valid(M))], args)
    assert reason(same, "b") is None
    other = pair([tensor(64, view=valid(M))], [tensor(64, view=valid(N))], args)
    assert reason(other, "b") == "proof_unsupported_type"
    constant = pair([tensor(64, view=valid(const(8)))], [tensor(64, view=valid(const(9)))], args)
    assert reason(constant, "b") == "unique"


def test_a_padded_view_is_outside_the_proof():
    view = ir.TensorView(layout=ir.TensorLayout.ND, pad=ir.PadValue.zero)
    args = [tensor(64, view=view)]
    assert reason(pair([tensor(M, view=view)], [tensor(N, view=view)], args), "b") == "proof_unsupported_type"


def test_a_tensor_that_peers_can_reach_is_outside_the_proof():
    first, second = ir.DistributedTensorType([M], FP32), ir.DistributedTensorType([N], FP32)
    assert reason(pair([first], [second], [tensor(64)]), "b") == "proof_unsupported_type"
    plain = pair([first], [ir.TensorType([M], FP32)], [tensor(64)])
    assert reason(plain, "b") == "unique"


def test_element_types_of_equal_width_are_different():
    def typed(dtype: ir.DataType) -> ir.TensorType:
        return ir.TensorType([64], dtype)

    for one, other in ((FP32, ir.DataType.INT32), (ir.DataType.FP16, ir.DataType.BF16)):
        assert reason(pair([typed(one)], [typed(other)], [typed(one)]), "b") == "unique"


# ---- signatures


@pytest.mark.parametrize(
    ("one", "other"), [(Out, InOut), (In, Out), (In, InOut)], ids=["Out InOut", "In Out", "In InOut"]
)
def test_directions_are_significant(one: ir.ParamDirection, other: ir.ParamDirection):
    def made(name: str, direction: ir.ParamDirection) -> ir.Function:
        x = ir.Var("x", tensor(8), SPAN)
        body = ir.ReturnStmt([x], SPAN)
        return ir.Function(name, [(x, direction)], [x.type], body, SPAN, ir.FunctionType.InCore)

    calls = [call(name, [tensor(8)], tensor(8)) for name in "ab"]
    assert reason(program_of([made("a", one), made("b", other)], calls), "b") == "unique"


def test_which_parameter_comes_back_is_significant():
    functions = [kernel("a", [tensor(8), tensor(8)], [0]), kernel("b", [tensor(8), tensor(8)], [1])]
    both = [ir.Function(f.name, [(p, InOut) for p in f.params_], f.return_types_, f.body, SPAN,
                        ir.FunctionType.InCore) for f in functions]  # fmt: skip
    calls = [call(name, [tensor(8), tensor(8)], tensor(8)) for name in "ab"]
    assert reason(program_of(both, calls), "b") == "unique"


def test_two_results_in_another_order_are_significant():
    functions = [
        kernel("a", [tensor(8), tensor(8)], [0, 1]),
        kernel("b", [tensor(8), tensor(8)], [1, 0]),
    ]
    calls = [call(n, [tensor(8), tensor(8)], ir.TupleType([tensor(8), tensor(8)])) for n in "ab"]
    assert reason(program_of(functions, calls), "b") == "unique"


# ---- who names whom


def test_a_recursive_kernel_is_a_helper_graph():
    def made(name: str) -> ir.Function:
        x = ir.Var("x", tensor(8), SPAN)
        again = ir.EvalStmt(ir.Call(ir.GlobalVar(name), [x], x.type, SPAN), SPAN)
        body = ir.SeqStmts([again, ir.ReturnStmt([x], SPAN)], SPAN)
        return ir.Function(name, [(x, Out)], [x.type], body, SPAN, ir.FunctionType.InCore)

    calls = [call(name, [tensor(8)], tensor(8)) for name in "ab"]
    assert reason(program_of([made("a"), made("b")], calls), "b") == "helper_call"
    alone = program_of([made("a"), made("b")], calls[:1])
    assert reason(alone, "b") == "unreferenced"  # its own call is no reference from outside


def test_a_kernel_called_only_from_a_function_that_nothing_calls_is_referenced():
    """Nobody calls `spare`, but whoever loads the program may."""
    source = ssa(
        steps("one", "two")
        + """
    @orch
    def main(self, x: T(64), a: pl.Out[T(64)]):
        a = self.one(x, a)
    @orch
    def spare(self, x: T(64), a: pl.Out[T(64)]):
        a = self.two(x, a)
    """
    )
    result = dedup(source)
    assert kernels(result) == ["one"]
    assert [each.op.name for each in dispatches(function(result, "spare"))] == ["one"]


def test_an_unreferenced_kernel_never_stands_for_another():
    """`first` has the smallest name and the same body, but is an entry: `second` stays beside it."""
    source = ssa(
        steps("first", "second", "third")
        + """
    @orch
    def main(self, x: T(64), a: pl.Out[T(64)], b: pl.Out[T(64)]):
        a = self.second(x, a)
        b = self.third(x, b)
    """
    )
    assert kernels(dedup(source)) == ["first", "second"]
    assert records(source)["third"].into == "second"


def test_external_kernels_are_kept_whether_their_files_agree_or_not():
    def made(name: str, file: str) -> ir.Function:
        base = kernel(name, [tensor(8)])
        return base.replace(attrs={"external_source": file})

    calls = [call(name, [tensor(8)], tensor(8)) for name in "ab"]
    for second in ("/k.cpp", "/other.cpp"):
        source = program_of([made("a", "/k.cpp"), made("b", second)], calls)
        assert reason(source, "b") == "external_kernel"


def test_a_kernel_bound_at_run_time_keeps_itself_and_does_not_stand_for_its_twin():
    bound = kernel("a", [tensor(8)]).replace(requires_runtime_binding=True)
    calls = [call(name, [tensor(8)], tensor(8)) for name in "abc"]
    source = program_of([bound, kernel("b", [tensor(8)]), kernel("c", [tensor(8)])], calls)
    assert reason(source, "a") == "runtime_binding"
    assert records(source)["c"].into == "b"


def test_a_peer_name_that_is_no_text_is_compared_as_a_plain_value():
    def made(name: str, peer: int) -> ir.Function:
        base = kernel(name, [tensor(8)])
        asked = ir.Call(
            ir.Op("system.import_peer_buffer"), [], {"peer_func": peer}, ir.ScalarType(INDEX), SPAN
        )
        local = ir.Var("v", ir.ScalarType(INDEX), SPAN)
        body = ir.SeqStmts([ir.AssignStmt(local, asked, SPAN), base.body], SPAN)
        return base.replace(body=body)

    calls = [call(name, [tensor(8)], tensor(8)) for name in "abc"]
    source = program_of([made("a", 1), made("b", 1), made("c", 2)], calls)
    assert kernels(dedup(source)) == ["a", "c"]


# ---- groups

MEMBER = """
    @aiv
    def {name}(self, x: T(64), o: pl.Out[T(64)]) -> T(64):
        t = pl.load(x, [0], [64])
        o = pl.store(t, [0], o)
        return o
"""


def grouped(name: str, *callees: str) -> str:
    calls = "".join(f"        o = self.{callee}(x, o)\n" for callee in callees)
    return (
        f"    @group\n    def {name}(self, x: T(64), o: pl.InOut[T(64)]) -> T(64):\n{calls}        return o\n"
    )


def launched(*callees: str) -> str:
    calls = "".join(f"        o = self.{callee}(x, o)\n" for callee in callees)
    return f"    @orch\n    def main(self, x: T(64), o: pl.InOut[T(64)]):\n{calls}"


def test_a_group_inside_a_group_merges_and_the_outer_ones_stay():
    members = MEMBER.format(name="v1") + MEMBER.format(name="v2")
    source = ssa(
        members
        + grouped("g1", "v1")
        + grouped("g2", "v2")
        + grouped("h1", "g1")
        + grouped("h2", "g2")
        + launched("h1", "h2")
    )
    assert reason(source, "h2") == "helper_call"
    result = dedup(source)
    assert kernels(result) == ["g1", "h1", "h2", "v1"]
    assert [each.op.name for each in dispatches(function(result, "h2"))] == ["g1"]


def test_a_group_that_calls_itself_is_a_helper_graph():
    source = ssa(
        MEMBER.format(name="v1")
        + MEMBER.format(name="v2")
        + grouped("g1", "v1", "g1")
        + grouped("g2", "v2", "g2")
        + launched("g1", "g2")
    )
    assert reason(source, "g2") == "helper_call"


def test_how_often_and_in_which_order_a_bridge_calls_its_members_is_significant():
    members = "".join(MEMBER.format(name=name) for name in ("v1", "v2", "w1", "w2"))
    for second in (("v2", "w2", "w2"), ("v2", "v2", "w2", "v2")):
        source = ssa(
            members + grouped("g1", "v1", "w1", "v1") + grouped("g2", *second) + launched("g1", "g2")
        )
        assert reason(source, "g2") == "unique"
    same = ssa(
        members + grouped("g1", "v1", "w1", "v1") + grouped("g2", "v2", "w2", "v2") + launched("g1", "g2")
    )
    assert kernels(dedup(same)) == ["g1", "v1", "w1"]


def test_members_of_equal_bundles_are_not_merged_within_a_bundle():
    """`v1` and `w1` are equal to one another too, but a bundle merges position by position."""
    members = "".join(MEMBER.format(name=name) for name in ("v1", "w1"))
    source = ssa(members + grouped("g1", "v1", "w1") + launched("g1"))
    assert passes.deduplicate_outlined_kernels()(source) is source


def test_an_ordinary_twin_of_a_member_stays_beside_it():
    source = ssa(
        MEMBER.format(name="v1").replace("@aiv", "@incore")
        + grouped("g1", "v1")
        + MEMBER.format(name="a").replace("@aiv", "@incore")
        + launched("g1", "a")
    )
    assert passes.deduplicate_outlined_kernels()(source) is source


def test_a_group_and_a_kernel_of_equal_text_are_different_kinds():
    source = ssa(
        MEMBER.format(name="v1")
        + grouped("g1", "v1")
        + MEMBER.format(name="g2").replace("@aiv", "@incore")
        + launched("g1", "g2")
    )
    assert passes.deduplicate_outlined_kernels()(source) is source


# ---- executions


def test_launch_specs_and_attributes_of_calls_do_not_take_part_in_equality():
    """They belong to the execution: each call keeps its own."""
    source = ssa(
        steps("one", "two")
        + """
    @orch
    def main(self, n: I, x: T(64), a: pl.Out[T(64)], b: pl.Out[T(64)]):
        with pl.spmd(n + 1, name_hint="w1"):
            a = self.one(x, a)
        with pl.spmd(4, sync_start=True, name_hint="w2"):
            b = self.two(x, b)
    """
    )
    result = dedup(source)
    assert sorted(result.functions_) == ["main", "one", "w1", "w2"]
    first, second = dispatches(function(result, "main"))
    assert first.attrs["core_num"] is dispatches(function(source, "main"))[0].attrs["core_num"]
    assert second.attrs["sync_start"] is True


def test_the_same_tensor_in_two_slots_stays_where_the_call_put_it():
    source = ssa(
        """
    @incore
    def one(self, x: T(64), y: T(64), out: pl.Out[T(64)]) -> T(64):
        t = pl.load(x, [0], [64])
        u = pl.load(y, [0], [64])
        out = pl.store(pl.sub(t, u), [0], out)
        return out
    @incore
    def two(self, x: T(64), y: T(64), out: pl.Out[T(64)]) -> T(64):
        t = pl.load(x, [0], [64])
        u = pl.load(y, [0], [64])
        out = pl.store(pl.sub(u, t), [0], out)
        return out
    @orch
    def main(self, x: T(64), a: pl.Out[T(64)], b: pl.Out[T(64)]):
        a = self.one(x, x, a)
        b = self.two(x, x, b)
    """
    )
    assert reason(source, "two") == "unique"  # equal for these arguments, but not as definitions


def test_places_in_the_source_and_comments_make_no_difference():
    source = ssa(
        steps("one")
        + "\n\n    # a comment above\n"
        + steps("two").replace("        u =", "        # a comment inside\n\n        u =")
        + """
    @orch
    def main(self, x: T(64), a: pl.Out[T(64)], b: pl.Out[T(64)]):
        a = self.one(x, a)
        b = self.two(x, b)
    """
    )
    assert kernels(dedup(source)) == ["one"]


# ---- details in unusual places


def operator_kernel(name: str, attrs: object) -> ir.Function:
    """A kernel of one operator call with these attributes."""
    x, y = (ir.Var(hint, tensor(64), SPAN) for hint in "xy")
    made = ir.Call(ir.Op("tensor.foo"), [x], {}, attrs, y.type, SPAN)
    body = ir.SeqStmts([ir.AssignStmt(y, made, SPAN), ir.ReturnStmt([y], SPAN)], SPAN)
    return ir.Function(name, [x], [y.type], body, SPAN, ir.FunctionType.InCore)


def reason_of_attrs(first: object, second: object) -> str | None:
    functions = [operator_kernel("a", first), operator_kernel("b", second)]
    calls = [call(name, [tensor(64)], tensor(64)) for name in "ab"]
    return reason(program_of(functions, calls), "b")


def test_symbols_of_other_element_types_never_correspond():
    narrow = ir.Var("N", ir.ScalarType(ir.DataType.INT32), SPAN)
    assert reason(pair([tensor(M)], [tensor(narrow)], [tensor(64)]), "b") == "unique"


def test_an_attribute_given_twice_equals_no_other():
    twice = [("foo", 1), ("foo", 2)]
    assert reason_of_attrs(twice, twice) == "unique"
    assert reason_of_attrs({"foo": 2}, {"foo": 2}) is None


def test_the_element_type_of_a_constant_in_an_attribute_is_significant():
    narrow = ir.ConstInt(1, ir.DataType.INT32, SPAN)
    assert reason_of_attrs({"foo": const(1)}, {"foo": narrow}) == "unique"
    assert reason_of_attrs({"foo": narrow}, {"foo": ir.ConstInt(1, ir.DataType.INT32, SPAN)}) is None


def test_a_near_miss_that_has_no_spelling_in_the_language_is_told_by_its_class():
    """Explaining, and with it the pass under debug logs, must not fail where only the printer would."""

    def looped(name: str, attrs: dict[str, object]) -> ir.Function:
        x, i = ir.Var("x", tensor(64), SPAN), symbol("i")
        empty = ir.SeqStmts([], SPAN)
        loop = ir.ForStmt(i, const(0), const(4), const(1), [], empty, [], SPAN, attrs=attrs)
        body = ir.SeqStmts([loop, ir.ReturnStmt([x], SPAN)], SPAN)
        return ir.Function(name, [(x, Out)], [x.type], body, SPAN, ir.FunctionType.InCore)

    functions = [looped("a", {}), looped("b", {"further": const(1)})]
    calls = [call(name, [tensor(64)], tensor(64)) for name in "ab"]
    record = records(program_of(functions, calls))["b"]
    assert record.reason == "unique" and "a ForStmt" in record.detail
