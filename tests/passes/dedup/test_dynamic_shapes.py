"""Kernels with different symbols for their extents merge if every call proves that it makes no difference."""

from __future__ import annotations

import pytest

from pypto import ir, passes
from tests.passes.dedup.programs import dedup, function, kernels, reason, records, ssa

SPAN = ir.Span.unknown()
FP32, INDEX = ir.DataType.FP32, ir.DataType.INDEX
Out = ir.ParamDirection.Out


def symbol(name: str) -> ir.Var:
    return ir.Var(name, ir.ScalarType(INDEX), SPAN)


def const(value: int) -> ir.ConstInt:
    return ir.ConstInt(value, INDEX, SPAN)


def times(left: ir.Expr, right: ir.Expr) -> ir.Expr:
    return ir.Mul(left, right, INDEX, SPAN)


def tensor(*extents: ir.Expr | int, view: ir.TensorView | None = None) -> ir.TensorType:
    return ir.TensorType(list(extents), FP32, None, view)


def kernel(
    name: str, params: list[ir.Type], results: list[int] | None = None, **options: object
) -> ir.Function:
    """An InCore function that returns the parameters at the positions `results` (the last one by default)."""
    variables = [ir.Var(f"p{number}", kind, SPAN) for number, kind in enumerate(params)]
    returned = [len(params) - 1] if results is None else results
    values = [variables[position] for position in returned]
    directions = [Out if position in returned else ir.ParamDirection.In for position in range(len(params))]
    types = options.get("result_types") or [value.type for value in values]
    body = ir.ReturnStmt(values, SPAN)
    return ir.Function(
        name, list(zip(variables, directions, strict=True)), types, body, SPAN, ir.FunctionType.InCore
    )


Arg = ir.Type | ir.Expr


def call(callee: str, args: list[Arg], result: ir.Type | None) -> ir.Call:
    """A call with arguments of these types (or these expressions) and this result type."""
    values = [arg if isinstance(arg, ir.Expr) else ir.Var("v", arg, SPAN) for arg in args]
    return ir.Call(ir.GlobalVar(callee), values, ir.UnknownType.get() if result is None else result, SPAN)


def submit(callee: str, args: list[Arg], results: list[ir.Type]) -> ir.Submit:
    values = [arg if isinstance(arg, ir.Expr) else ir.Var("v", arg, SPAN) for arg in args]
    kind = ir.TupleType([*results, ir.ScalarType(ir.DataType.TASK_ID)])
    return ir.Submit(ir.GlobalVar(callee), values, [], kind, SPAN)


def program_of(functions: list[ir.Function], calls: list[ir.Expr]) -> ir.Program:
    body = ir.SeqStmts([ir.EvalStmt(each, SPAN) for each in calls], SPAN)
    main = ir.Function("main", [], [], body, SPAN, ir.FunctionType.Orchestration)
    return ir.Program([*functions, main], "P", SPAN)


M, N, P, Q = (symbol(name) for name in "MNPQ")


def pair(
    first: list[ir.Type], second: list[ir.Type], args: list[Arg], result: ir.Type | None = None
) -> ir.Program:
    """Kernels `a` and `b` of these parameters, each called with `args`; the last argument comes back."""
    last = args[-1]
    made = result or (last if isinstance(last, ir.Type) else last.type)
    return program_of(
        [kernel("a", first), kernel("b", second)], [call("a", args, made), call("b", args, made)]
    )


def test_distinct_symbols_at_one_extent_merge():
    source = pair([tensor(M, 32)] * 2, [tensor(N, 32)] * 2, [tensor(64, 32)] * 2)
    assert kernels(dedup(source)) == ["a"]


def test_the_program_of_the_language_merges_too():
    text = """
    @incore
    def shift_m(self, x: T(M, 32), out: pl.Out[T(M, 32)]) -> T(M, 32):
        t = pl.load(x, [0, 0], [32, 32])
        out = pl.store(t, [0, 0], out)
        return out
    """
    source = ssa(
        text
        + text.replace("M,", "N,").replace("shift_m", "shift_n")
        + """
    @orch
    def main(self, x: T(64, 32), a: pl.Out[T(64, 32)], b: pl.Out[T(64, 32)]):
        a = self.shift_m(x, a)
        b = self.shift_n(x, b)
    """,
        header='M = pl.dynamic("M")\nN = pl.dynamic("N")',
    )
    assert kernels(dedup(source)) == ["shift_m"]


def test_a_repeated_symbol_that_the_call_binds_consistently_merges():
    source = pair([tensor(M, M)], [tensor(N, N)], [tensor(64, 64)])
    assert kernels(dedup(source)) == ["a"]


def test_a_repeated_symbol_that_the_call_binds_inconsistently_keeps_both():
    source = pair([tensor(M, M)], [tensor(N, N)], [tensor(64, 32)])
    assert reason(source, "b") == "proof_binding"


def test_one_symbol_is_not_two():
    source = pair([tensor(M, N)], [tensor(P, P)], [tensor(64, 64)])
    assert reason(source, "b") == "unique"


@pytest.mark.parametrize(
    ("extent", "expected"),
    [
        (times(P, const(128)), None),
        (const(512), "proof_binding"),
        (times(const(128), P), "proof_binding"),
        (P, "proof_binding"),
        (ir.Mul(P, const(128), ir.DataType.INT32, SPAN), "proof_binding"),
        (times(P, ir.ConstInt(128, ir.DataType.INT64, SPAN)), "proof_binding"),
    ],
    ids=["P * 128", "512", "128 * P", "P", "other dtype", "other constant dtype"],
)
def test_expressions_match_by_structure_alone(extent: ir.Expr, expected: str | None):
    first, second = tensor(times(M, const(128))), tensor(times(N, const(128)))
    assert reason(pair([first], [second], [tensor(extent)]), "b") == expected


def scalar_extent(name: str, *, scalar_last: bool) -> ir.Function:
    n = ir.Var("n", ir.ScalarType(INDEX), SPAN)
    x = ir.Var("x", tensor(n, 32), SPAN)
    params = [(x, Out), (n, ir.ParamDirection.In)] if scalar_last else [(n, ir.ParamDirection.In), (x, Out)]
    return ir.Function(name, params, [x.type], ir.ReturnStmt([x], SPAN), SPAN, ir.FunctionType.InCore)


@pytest.mark.parametrize("scalar_last", [False, True], ids=["scalar first", "scalar after its tensor"])
@pytest.mark.parametrize("same", [True, False], ids=["same expression", "another expression"])
def test_a_scalar_parameter_that_is_an_extent_merges_if_calls_pass_the_same_expression(
    scalar_last: bool, same: bool
):
    rows = symbol("rows")
    passed, extent = (ir.Add(rows, const(1 if same else n), INDEX, SPAN) for n in (1, 2))
    made = tensor(extent, 32)
    functions = [scalar_extent(name, scalar_last=scalar_last) for name in ("a", "b")]
    args: list[Arg] = [made, passed] if scalar_last else [passed, made]
    source = program_of(functions, [call("a", args, made), call("b", args, made)])
    assert reason(source, "b") == (None if same else "proof_binding")


def test_a_scalar_extent_must_be_passed_at_every_submit():
    functions = [scalar_extent(name, scalar_last=False) for name in ("a", "b")]
    calls = [submit(name, [const(8)], [tensor(8, 32)]) for name in ("a", "b")]
    assert reason(program_of(functions, calls), "b") == "proof_arity"


def test_a_scalar_extent_of_a_signature_outside_the_proof_is_a_renamed_parameter():
    """Strides take the signature out of the proof; the symbols, of which there are none, are identical."""

    def made(name: str) -> ir.Function:
        base = scalar_extent(name, scalar_last=False)
        extra = ir.Var("y", tensor(64, 32, view=STRIDED), SPAN)
        params = [*zip(base.params_, base.param_directions_, strict=True), (extra, ir.ParamDirection.In)]
        return ir.Function(name, params, base.return_types_, base.body, SPAN, ir.FunctionType.InCore)

    args: list[Arg] = [const(8), tensor(9, 32), tensor(64, 32, view=STRIDED)]
    calls = [call(name, args, tensor(9, 32)) for name in ("a", "b")]
    assert reason(program_of([made("a"), made("b")], calls), "b") is None


@pytest.mark.parametrize("scalar_last", [False, True])
@pytest.mark.parametrize("same", [True, False])
def test_a_scalar_argument_binds_the_extent_that_it_is(scalar_last: bool, same: bool):
    """A further symbol makes the proof necessary; the scalar is bound first, wherever it stands."""

    def made(name: str, free: ir.Var) -> ir.Function:
        base = scalar_extent(name, scalar_last=scalar_last)
        extra = ir.Var("y", tensor(free), SPAN)
        params = [*zip(base.params_, base.param_directions_, strict=True), (extra, ir.ParamDirection.In)]
        return ir.Function(name, params, base.return_types_, base.body, SPAN, ir.FunctionType.InCore)

    rows = symbol("rows")
    passed = ir.Add(rows, const(1), INDEX, SPAN)
    extent = ir.Add(rows, const(1), INDEX, SPAN) if same else ir.Add(rows, const(2), INDEX, SPAN)
    data: list[Arg] = [tensor(extent, 32), passed] if scalar_last else [passed, tensor(extent, 32)]
    args: list[Arg] = [*data, tensor(8)]
    result = tensor(ir.Add(rows, const(1 if same else 2), INDEX, SPAN), 32)
    source = program_of([made("a", M), made("b", N)], [call("a", args, result), call("b", args, result)])
    assert reason(source, "b") == (None if same else "proof_binding")


def test_a_result_with_a_symbol_that_only_an_output_binds_merges():
    source = pair([tensor(8), tensor(M)], [tensor(8), tensor(N)], [tensor(8), tensor(64)])
    assert kernels(dedup(source)) == ["a"]


def test_a_result_type_that_is_not_reproduced_keeps_both():
    source = pair([tensor(M)], [tensor(N)], [tensor(64)], result=tensor(32))
    assert reason(source, "b") == "proof_result_type"


def test_a_result_symbol_that_no_argument_binds_keeps_both():
    def made(name: str, free: ir.Var) -> ir.Function:
        x = ir.Var("x", tensor(8), SPAN)
        y = ir.Var("y", tensor(free), SPAN)
        fill = ir.AssignStmt(y, ir.Call(ir.Op("tensor.make"), [x], y.type, SPAN), SPAN)
        body = ir.SeqStmts([fill, ir.ReturnStmt([y], SPAN)], SPAN)
        return ir.Function(name, [x], [y.type], body, SPAN, ir.FunctionType.InCore)

    calls = [call("a", [tensor(8)], tensor(64)), call("b", [tensor(8)], tensor(64))]
    assert reason(program_of([made("a", M), made("b", N)], calls), "b") == "proof_result_type"


def test_a_submit_that_omits_an_output_keeps_both_unless_symbols_are_identical():
    def source(second: ir.Var) -> ir.Program:
        functions = [kernel("a", [tensor(M), tensor(M)]), kernel("b", [tensor(second), tensor(second)])]
        calls = [submit("a", [tensor(64)], [tensor(64)]), submit("b", [tensor(64)], [tensor(64)])]
        return program_of(functions, calls)

    assert reason(source(N), "b") == "proof_arity"
    assert kernels(dedup(source(M))) == ["a"]


def test_a_submit_with_all_arguments_is_proved_with_its_task_id():
    functions = [kernel("a", [tensor(M), tensor(M)]), kernel("b", [tensor(N), tensor(N)])]
    calls = [submit(name, [tensor(64), tensor(64)], [tensor(64)]) for name in ("a", "b")]
    assert kernels(dedup(program_of(functions, calls))) == ["a"]


def test_several_results_are_reproduced_one_by_one():
    functions = [
        kernel("a", [tensor(M), tensor(P)], [0, 1]),
        kernel("b", [tensor(N), tensor(Q)], [0, 1]),
    ]
    good = ir.TupleType([tensor(64), tensor(8)])
    swapped = ir.TupleType([tensor(8), tensor(64)])
    args = [tensor(64), tensor(8)]
    assert reason(program_of(functions, [call("a", args, good), call("b", args, good)]), "b") is None
    assert (
        reason(program_of(functions, [call("a", args, good), call("b", args, swapped)]), "b")
        == "proof_result_type"
    )


def test_one_bad_call_keeps_the_alias_whole():
    functions = [kernel("a", [tensor(M, M)]), kernel("b", [tensor(N, N)])]
    good, bad = tensor(64, 64), tensor(64, 32)
    source = program_of(functions, [call("a", [good], good), call("b", [good], good), call("b", [bad], bad)])
    assert passes.deduplicate_outlined_kernels()(source) is source
    assert reason(source, "b") == "proof_binding"
    assert "'main'" in records(source)["b"].detail


def test_calls_inside_wrappers_are_proved_in_the_coordinates_of_the_wrapper():
    rows = symbol("rows")
    made = tensor(rows, 32)
    functions = [kernel("a", [tensor(M, 32)]), kernel("b", [tensor(N, 32)])]
    wrappers = []
    for name in ("a", "b"):
        param = ir.Var("o", made, SPAN)
        inner = ir.Call(ir.GlobalVar(name), [param], made, SPAN)
        body = ir.SeqStmts([ir.EvalStmt(inner, SPAN), ir.ReturnStmt([param], SPAN)], SPAN)
        wrappers.append(ir.Function(f"w{name}", [(param, Out)], [made], body, SPAN, ir.FunctionType.Spmd))
    source = program_of(
        [*functions, *wrappers],
        [call("wa", [tensor(64, 32)], tensor(64, 32)), call("wb", [tensor(64, 32)], tensor(64, 32))],
    )
    result = dedup(source)
    assert sorted(result.functions_) == ["a", "main", "wa", "wb"]


NZ = ir.TensorView(layout=ir.TensorLayout.NZ)
STRIDED = ir.TensorView(stride=[64, 1], layout=ir.TensorLayout.ND)


def test_a_view_of_a_layout_alone_is_inside_the_proof():
    source = pair([tensor(M, 32, view=NZ)], [tensor(N, 32, view=NZ)], [tensor(64, 32, view=NZ)])
    assert kernels(dedup(source)) == ["a"]


def test_layouts_of_argument_and_parameter_must_agree():
    source = pair([tensor(M, 32, view=NZ)], [tensor(N, 32, view=NZ)], [tensor(64, 32)])
    assert reason(source, "b") == "proof_binding"


@pytest.mark.parametrize(
    "view",
    [STRIDED, ir.TensorView(valid_shape=[8, 8], layout=ir.TensorLayout.ND)],
    ids=["strides", "valid shape"],
)
def test_strides_and_valid_shapes_need_identical_symbols(view: ir.TensorView):
    args = [tensor(64, 32, view=view)]
    assert (
        reason(pair([tensor(M, 32, view=view)], [tensor(N, 32, view=view)], args), "b")
        == "proof_unsupported_type"
    )
    assert kernels(dedup(pair([tensor(M, 32, view=view)], [tensor(M, 32, view=view)], args))) == ["a"]


def test_an_argument_may_have_strides_of_its_own():
    source = pair(
        [tensor(M, 32), tensor(M)], [tensor(N, 32), tensor(N)], [tensor(64, 32, view=STRIDED), tensor(64)]
    )
    assert kernels(dedup(source)) == ["a"]


def test_large_signatures_need_identical_symbols():
    def source(second: ir.Var, count: int) -> ir.Program:
        first = [tensor(8)] * (count - 2) + [tensor(M)]
        other = [tensor(8)] * (count - 2) + [tensor(second)]
        return pair(first, other, [tensor(8)] * (count - 2) + [tensor(64)])

    assert reason(source(N, 256), "b") is None
    assert reason(source(N, 257), "b") == "symbol_identity"
    assert reason(source(M, 257), "b") is None


def test_large_extents_need_identical_symbols():
    def deep(leaf: ir.Var, depth: int) -> ir.Expr:
        extent: ir.Expr = leaf
        for _ in range(depth):
            extent = ir.Add(extent, const(1), INDEX, SPAN)
        return extent

    def source(second: ir.Var, depth: int) -> ir.Program:
        return pair([tensor(deep(M, depth))], [tensor(deep(second, depth))], [tensor(deep(P, depth))])

    assert reason(source(N, 127), "b") is None
    assert reason(source(N, 128), "b") == "symbol_identity"
    assert reason(source(M, 128), "b") is None


def test_a_call_in_an_extent_is_outside_the_proof():
    def extent(name: ir.Var) -> ir.Expr:
        return ir.Call(ir.Op("scalar.round_up"), [name], ir.ScalarType(INDEX), SPAN)

    source = pair(
        [tensor(M), tensor(extent(M))], [tensor(N), tensor(extent(N))], [tensor(64), tensor(extent(P))]
    )
    assert reason(source, "b") == "proof_unsupported_type"


def test_a_third_kernel_may_match_a_representative_that_the_second_did_not():
    """`b` fails against `a` and becomes a representative; `c` has the symbols of `b`."""
    functions = [kernel("a", [tensor(M, M)]), kernel("b", [tensor(N, N)]), kernel("c", [tensor(N, N)])]
    bad = tensor(64, 32)
    source = program_of(functions, [call(name, [bad], bad) for name in ("a", "b", "c")])
    assert kernels(dedup(source)) == ["a", "b"]
    assert records(source)["c"].into == "b"


def test_a_type_at_a_redirected_call_stays_as_it_is():
    source = pair([tensor(M, 32)], [tensor(N, 32)], [tensor(64, 32)])
    before = function(source, "main").body.stmts_[1].expr
    after = function(dedup(source), "main").body.stmts_[1].expr
    assert after.type is before.type


def test_a_symbol_and_a_parameter_never_correspond():
    n = ir.Var("n", ir.ScalarType(INDEX), SPAN)
    x = ir.Var("x", tensor(n), SPAN)
    first = ir.Function("a", [n, x], [], ir.SeqStmts([], SPAN), SPAN, ir.FunctionType.InCore)
    m, y = ir.Var("m", ir.ScalarType(INDEX), SPAN), ir.Var("y", tensor(M), SPAN)
    second = ir.Function("b", [m, y], [], ir.SeqStmts([], SPAN), SPAN, ir.FunctionType.InCore)
    args: list[Arg] = [const(8), tensor(8)]
    source = program_of([first, second], [call("a", args, None), call("b", args, None)])
    assert reason(source, "b") == "unique"
