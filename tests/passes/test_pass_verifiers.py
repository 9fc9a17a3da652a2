"""Verifiers: what each rule reports, with its code, and what it lets pass."""

from __future__ import annotations

import pytest

import pypto
import pypto.language as pl
from pypto import ir, passes
from pypto.ir.op_registry import registered_names
from pypto.passes import IRProperty, IRPropertySet, stmt_dependency_analysis
from pypto.passes.verify import PropertyVerifierRegistry

S = ir.Span.unknown()
D = ir.DataType
INDEX, BOOL, FP32 = D.INDEX, D.BOOL, D.FP32
SCALAR = ir.ScalarType(INDEX)
TENSOR = ir.TensorType([4, 4], FP32)
P = IRProperty
In, Out, InOut = ir.ParamDirection.In, ir.ParamDirection.Out, ir.ParamDirection.InOut
F = ir.FunctionType


def c(value: int) -> ir.ConstInt:
    return ir.ConstInt(value, INDEX, S)


def var(name: str, type_: ir.Type = SCALAR) -> ir.Var:
    return ir.Var(name, type_, S)


x, y, n = var("x", TENSOR), var("y", TENSOR), var("n")


def op(name: str, *args: ir.Expr, type_: ir.Type = TENSOR) -> ir.Call:
    return ir.Call(ir.Op(name), list(args), type_, S)


def call(name: str, *args: ir.Expr, type_: ir.Type = TENSOR, attrs: dict | None = None) -> ir.Call:
    return ir.Call(ir.GlobalVar(name), list(args), {}, attrs or {}, type_, S)


def seq(*stmts: ir.Stmt) -> ir.Stmt:
    return ir.flatten_stmts(list(stmts), S)


def assign(target: ir.Var, value: ir.Expr) -> ir.Stmt:
    return ir.AssignStmt(target, value, S)


def function(
    *stmts: ir.Stmt,
    name: str = "main",
    params: list | None = None,
    returns: list | None = None,
    **options: object,
) -> ir.Function:
    return ir.Function(name, [x, n] if params is None else params, returns or [], seq(*stmts), S, **options)


def of(*functions: ir.Function) -> ir.Program:
    return ir.Program(list(functions), "P", S)


def body(*stmts: ir.Stmt, **options: object) -> ir.Program:
    return of(function(*stmts, **options))


def for_(
    inner: ir.Stmt,
    *bounds: ir.Expr,
    carried: list | None = None,
    results: list | None = None,
    **options: object,
):
    start, stop, step = bounds or (c(0), n, c(1))
    return ir.ForStmt(var("i"), start, stop, step, carried or [], inner, results or [], S, **options)


def found(prop: IRProperty, program: ir.Program) -> list[passes.Diagnostic]:
    properties = IRPropertySet()
    properties.insert(prop)
    return PropertyVerifierRegistry.verify(properties, program)


def codes(prop: IRProperty, program: ir.Program) -> list[int]:
    return [each.error_code for each in found(prop, program)]


NOP = ir.EvalStmt(op("tensor.f", x), S)


def test_every_verifier_module_loads_and_accepts_an_empty_function() -> None:
    everything = IRPropertySet()
    for each in IRProperty:
        everything.insert(each)
    empty = of(function(ir.ReturnStmt([], S), params=[]))
    assert PropertyVerifierRegistry.verify(everything, empty) == []
    PropertyVerifierRegistry.verify_or_throw(everything, empty)


# --- SSA and scoping ---


def test_repeated_assignment_names_the_variable_the_count_and_the_function() -> None:
    (each,) = found(P.SSAForm, body(assign(y, x), assign(y, x)))
    assert each.rule_name == "SSAVerify" and each.error_code == passes.SSAErrorType.MULTIPLE_ASSIGNMENT.value
    assert each.message.startswith("Variable 'y' is assigned more than once (2 times), violating SSA form")
    assert "In function 'main':" in each.message


def test_loop_variables_end_with_their_loop_and_scope_definitions_do_not() -> None:
    loop = for_(assign(y, x))
    assert codes(P.SSAForm, body(loop, ir.ReturnStmt([loop.loop_var], S))) == [6]
    assert codes(P.SSAForm, body(loop, ir.ReturnStmt([y], S))) == [6]
    scope = ir.InCoreScopeStmt(body=assign(y, x), span=S)
    assert codes(P.SSAForm, body(scope, ir.ReturnStmt([y], S))) == []


def test_results_of_loops_and_branches_count_as_assignments_and_loop_variables_do_not() -> None:
    result, loop_var = var("r"), var("k")
    acc = ir.IterArg("acc", SCALAR, n, S)
    loops = [
        ir.ForStmt(loop_var, c(0), n, c(1), [acc], ir.YieldStmt([acc], S), [each], S)
        for each in (var("r1"), var("r2"))
    ]
    assert codes(P.SSAForm, body(*loops)) == []
    again = [each.replace(return_vars=[result]) for each in loops]
    assert codes(P.SSAForm, body(*again)) == [1]


def test_a_variable_in_a_type_counts_as_a_use() -> None:
    inner = var("m")
    shaped = var("z", ir.TensorType([inner, 4], FP32))
    loop = for_(assign(inner, n))
    assert codes(P.SSAForm, body(loop, assign(shaped, op("tensor.create", type_=shaped.type))))[0] == 6
    symbol = var("M")
    free = var("z", ir.TensorType([symbol, 4], FP32))
    made = assign(free, op("tensor.create", type_=free.type))
    assert codes(P.SSAForm, body(made))[0] == 6
    assert codes(P.UseAfterDef, body(made))[0] == 401
    known = var("p", ir.TensorType([symbol], FP32))
    assert codes(P.SSAForm, body(made, params=[known])) == []


def test_carried_values_must_be_yielded_in_equal_number() -> None:
    def loop(inner: ir.Stmt, results: int = 1) -> ir.Program:
        carried = ir.IterArg("a", TENSOR, x, S)
        return body(for_(inner, carried=[carried], results=[var("r", TENSOR) for _ in range(results)]))

    assert codes(P.SSAForm, loop(ir.YieldStmt([x], S))) == []
    assert codes(P.SSAForm, loop(NOP)) == [3]
    assert codes(P.SSAForm, loop(ir.YieldStmt([x, x], S))) == [5]
    assert codes(P.SSAForm, loop(ir.YieldStmt([x], S), results=2)) == [4]
    early = ir.SeqStmts([ir.YieldStmt([x], S), NOP, ir.YieldStmt([x], S)], S)
    assert codes(P.SSAForm, loop(early)) == [7]


def test_an_if_with_results_needs_both_yields() -> None:
    def branch(then: ir.Stmt, other: ir.Stmt | None) -> ir.Program:
        return body(ir.IfStmt(ir.gt(n, c(1)), then, other, [var("r", TENSOR)], S))

    assert codes(P.SSAForm, branch(ir.YieldStmt([x], S), ir.YieldStmt([x], S))) == []
    assert codes(P.SSAForm, branch(ir.YieldStmt([x], S), None)) == [3]
    assert codes(P.SSAForm, branch(NOP, ir.YieldStmt([x, x], S))) == [3, 5]
    inside = ir.RuntimeScopeStmt(manual=False, body=ir.YieldStmt([x], S), span=S)
    assert codes(P.SSAForm, branch(inside, ir.YieldStmt([x], S))) == []


def test_equal_names_of_different_variables_are_fine() -> None:
    assert codes(P.SSAForm, body(assign(var("t"), n), assign(var("t"), n))) == []


def test_use_before_definition() -> None:
    late = var("late")
    (each,) = found(P.UseAfterDef, body(assign(var("a"), late), assign(late, n)))
    assert (each.error_code, each.rule_name) == (401, "UseAfterDefCheck")
    assert each.message == "Variable 'late' used before definition in function 'main'"


def test_before_ssa_form_definitions_leave_loops_and_branches() -> None:
    assert codes(P.UseAfterDef, body(for_(assign(y, x)), ir.ReturnStmt([y], S))) == []
    branch = ir.IfStmt(ir.gt(n, c(1)), assign(y, x), None, [], S)
    assert codes(P.UseAfterDef, body(branch, ir.ReturnStmt([y], S))) == []
    with_results = ir.IfStmt(
        ir.gt(n, c(1)), seq(assign(y, x), ir.YieldStmt([y], S)), ir.YieldStmt([x], S), [var("r", TENSOR)], S
    )
    assert codes(P.UseAfterDef, body(with_results, ir.ReturnStmt([y], S))) == [401]


# --- types ---


def test_headers_must_be_scalars_and_conditions_boolean() -> None:
    assert codes(P.TypeChecked, body(for_(NOP, x, x, c(1)))) == [107, 107]
    assert codes(P.TypeChecked, body(ir.IfStmt(x, NOP, None, [], S))) == [106]
    (each,) = found(P.TypeChecked, body(ir.IfStmt(n, NOP, None, [], S)))
    assert each.error_code == 108 and each.message == "IfStmt condition dtype must be BOOL, but got index"
    assert codes(P.TypeChecked, body(ir.WhileStmt(n, [], NOP, [], S))) == [108]


@pytest.mark.parametrize(
    ("other", "code", "text"),
    [
        (SCALAR, 101, "Type kind mismatch in ForStmt"),
        (ir.TensorType([4, 4], D.FP16), 102, "Dtype mismatch in"),
        (ir.TensorType([4], FP32), 103, "Shape dimension count mismatch in"),
        (ir.TensorType([4, 5], FP32), 104, "Shape dimension mismatch in"),
        (ir.TensorType([4, n], FP32), 104, "not provable and the boundary has no runtime guard"),
        (
            ir.TensorType([4, 4], FP32, None, ir.TensorView([], ir.TensorLayout.ND, [4, 2])),
            104,
            "Valid shape dimension mismatch in",
        ),
        (
            ir.TensorType([4, 4], FP32, None, ir.TensorView([], ir.TensorLayout.ND, [], ir.PadValue.zero)),
            109,
            "Tensor padding mismatch in",
        ),
    ],
)
def test_carried_values_keep_their_type(other: ir.Type, code: int, text: str) -> None:
    carried = ir.IterArg("a", TENSOR, x, S)
    changed = var("z", other)
    loop = for_(ir.YieldStmt([changed], S), carried=[carried], results=[var("r", TENSOR)])
    errors = found(P.TypeChecked, body(assign(changed, op("tensor.f", type_=other)), loop))
    assert errors[0].error_code == code and text in errors[0].message


def test_extents_that_are_provably_equal_are_no_mismatch() -> None:
    first = ir.TensorType([ir.add(n, c(2)), 4], FP32)
    second = ir.TensorType([ir.add(c(2), n), 4], FP32)
    start, changed = var("s", first), var("z", second)
    carried = ir.IterArg("a", first, start, S)
    loop = for_(ir.YieldStmt([changed], S), carried=[carried], results=[var("r", first)])
    program = body(
        assign(start, op("tensor.f", type_=first)), assign(changed, op("tensor.f", type_=second)), loop
    )
    assert codes(P.TypeChecked, program) == []


def test_tuples_are_compared_element_by_element() -> None:
    pair, triple = ir.TupleType([SCALAR, TENSOR]), ir.TupleType([SCALAR, TENSOR, TENSOR])
    start, changed = var("s", pair), var("z", triple)
    loop = for_(
        ir.YieldStmt([changed], S), carried=[ir.IterArg("a", pair, start, S)], results=[var("r", pair)]
    )
    assert 105 in codes(P.TypeChecked, body(loop, params=[n, start, changed]))


@pytest.mark.parametrize(
    ("valid", "code", "text"),
    [
        ([17, 4], 104, "dimension 0 extent 17 provably exceeds physical shape extent 16"),
        ([ir.ConstInt(-1, INDEX, S), 4], 104, "provably negative extent -1"),
        ([4], 103, "valid_shape rank mismatch: got rank 1 but physical shape has rank 2"),
    ],
)
def test_valid_shapes_lie_inside_their_shapes(valid: list, code: int, text: str) -> None:
    view = ir.TensorView([], ir.TensorLayout.ND, valid)
    parameter = var("p", ir.TensorType([16, 4], FP32, None, view))
    (each,) = found(P.TypeChecked, body(NOP, params=[x, n, parameter]))
    assert each.error_code == code and text in each.message
    assert each.message.startswith("Function 'main' parameter[2] 'p' has invalid TensorType")


def test_assignments_are_compared_with_their_value_on_demand() -> None:
    other = var("z", ir.TensorType([2, 2], FP32))
    assert codes(P.AssignTypeSymmetry, body(assign(other, x))) == [1]
    assert codes(P.AssignTypeSymmetry, body(assign(y, x))) == []


def test_arrays_do_not_leave_their_function() -> None:
    array = ir.ArrayType(D.INT32, 4)
    assert codes(
        P.ArrayNotEscaped, body(NOP, params=[x, var("a", array)], returns=[ir.TupleType([array])])
    ) == [0, 0]


def test_views_pads_and_windows_of_carried_values_are_compared() -> None:
    def mismatch(first: ir.Type, second: ir.Type) -> list[int]:
        start, changed = var("s", first), var("z", second)
        carried = ir.IterArg("a", first, start, S)
        loop = for_(ir.YieldStmt([changed], S), carried=[carried], results=[var("r", second)])
        return codes(P.TypeChecked, body(loop, params=[n, start, changed]))

    def tile_type(**view: object) -> ir.Type:
        return ir.TileType([16, 16], FP32, tile_view=ir.TileView(**view))

    assert mismatch(tile_type(pad=ir.PadValue.zero), tile_type(pad=ir.PadValue.max)) == [111]
    assert mismatch(tile_type(pad=ir.PadValue.zero), tile_type(pad=ir.PadValue.zero)) == []
    assert mismatch(ir.TileType([16, 16], FP32), tile_type(pad=ir.PadValue.zero)) == []
    windows = [ir.WindowBuffer(var("w", ir.PtrType()), c(64)) for _ in range(2)]
    assert mismatch(*(ir.DistributedTensorType([4], FP32, w) for w in windows)) == [110]


def test_branch_results_are_compared_with_both_yields() -> None:
    other = var("z", ir.TensorType([4, 4], D.FP16))

    def branch(then: ir.Expr, otherwise: ir.Expr) -> list[int]:
        stmt = ir.IfStmt(
            ir.gt(n, c(1)), ir.YieldStmt([then], S), ir.YieldStmt([otherwise], S), [var("r", TENSOR)], S
        )
        return codes(P.TypeChecked, body(stmt, params=[x, n, other]))

    assert branch(x, x) == [] and branch(x, other) == [102] and branch(other, other) == [102]


# --- statements and calls ---


def test_nested_calls_by_place() -> None:
    inner = op("tensor.f", x)
    dim = op("tensor.dim", x, type_=SCALAR)
    E = passes.NestedCallErrorType
    cases = [
        (assign(y, op("tensor.g", inner)), E.CALL_IN_CALL_ARGS),
        (ir.IfStmt(op("tensor.t", x, type_=ir.ScalarType(BOOL)), NOP, None, [], S), E.CALL_IN_IF_CONDITION),
        (for_(NOP, c(0), dim, c(1)), E.CALL_IN_FOR_RANGE),
        (assign(var("a"), ir.add(dim, n)), E.CALL_IN_BINARY_EXPR),
        (assign(var("a"), ir.Neg(dim, INDEX, S)), E.CALL_IN_UNARY_EXPR),
        (
            ir.WhileStmt(op("tensor.t", x, type_=ir.ScalarType(BOOL)), [], NOP, [], S),
            E.CALL_IN_WHILE_CONDITION,
        ),
    ]
    for stmt, kind in cases:
        (each,) = found(P.NoNestedCalls, body(stmt))
        assert each.error_code == kind.value and each.rule_name == "NoNestedCall"
    for fine in (ir.ReturnStmt([inner], S), assign(y, op("tensor.s", x, ir.MakeTuple([dim], S)))):
        assert codes(P.NoNestedCalls, body(fine)) == []


@pytest.mark.parametrize("element", ["u", "pl.cast(u, pl.INT64)"])
def test_the_condition_of_a_dispatch_is_no_nested_call(element: str) -> None:
    element = element.replace("u", "u[0, 0]")
    program = pl.parse_program(
        f"""
@pl.program
class Main:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[8], pl.FP32]) -> pl.Tensor[[8], pl.FP32]:
        return x

    @pl.function
    def main(self, x: pl.Tensor[[8], pl.FP32], u: pl.Tensor[[8, 8], pl.INT32]) -> pl.Tensor[[8], pl.FP32]:
        y, tid = pl.submit(self.k, x, predicate=({element} > 0))
        return y
"""
    )
    assert codes(P.NoNestedCalls, program) == []


def test_sequences_in_normal_form() -> None:
    def of_sequence(*stmts: ir.Stmt) -> ir.Program:
        return of(ir.Function("main", [x, n], [], ir.SeqStmts(list(stmts), S), S))

    for prop in (P.NormalizedStmtStructure, P.NoRedundantBlocks):
        assert len(found(prop, of_sequence(NOP))) == 1
        assert len(found(prop, of_sequence(NOP, ir.SeqStmts([], S)))) == 1
        (each,) = found(prop, of_sequence(ir.YieldStmt([], S), NOP))
        assert "before the terminating position" in each.message and each.rule_name == prop.name
        assert found(prop, of_sequence()) == []


def test_break_and_continue_are_judged_by_the_innermost_loop() -> None:
    stop, go_on = ir.BreakStmt(S), ir.ContinueStmt(S)
    both = ir.SeqStmts([stop, go_on], S)
    assert codes(P.BreakContinueValid, body(both)) == [305, 306]
    assert codes(P.BreakContinueValid, body(for_(both, kind=ir.ForKind.Parallel))) == [301, 303]
    assert codes(P.BreakContinueValid, body(for_(both, kind=ir.ForKind.Unroll))) == [302, 304]
    assert codes(P.BreakContinueValid, body(for_(both))) == []
    assert codes(P.BreakContinueValid, body(for_(for_(stop), kind=ir.ForKind.Parallel))) == []


def test_kernels_hold_no_break_after_lowering() -> None:
    program = body(for_(ir.SeqStmts([ir.BreakStmt(S), ir.ContinueStmt(S)], S)), type=F.InCore)
    assert codes(P.StructuredCtrlFlow, program) == [0, 1]
    assert codes(P.StructuredCtrlFlow, body(for_(ir.BreakStmt(S)))) == []


def test_pipeline_loops_and_their_stages_go_together() -> None:
    stages = {"attrs": {"pipeline_stages": 2}}
    assert codes(P.PipelineLoopValid, body(for_(NOP, kind=ir.ForKind.Pipeline))) == [0]
    assert codes(P.PipelineLoopValid, body(for_(NOP, **stages))) == [1]
    good = body(for_(NOP, kind=ir.ForKind.Pipeline, **stages))
    assert codes(P.PipelineLoopValid, good) == [] and len(found(P.PipelineResolved, good)) == 1
    assert len(found(P.UnrollResolved, body(for_(NOP, kind=ir.ForKind.Unroll)))) == 1


def test_remaining_scopes_by_function_kind() -> None:
    core = ir.InCoreScopeStmt(body=NOP, span=S)
    assert len(found(P.SplitIncoreOrch, body(core))) == 1
    assert found(P.SplitIncoreOrch, body(core, type=F.InCore)) == []
    cluster = ir.ClusterScopeStmt(body=ir.SpmdScopeStmt(4, body=NOP, span=S), span=S)
    assert len(found(P.ClusterOutlined, body(cluster))) == 2
    assert found(P.ClusterOutlined, body(cluster, type=F.Group)) == []
    place = ir.HierarchyScopeStmt(ir.Level.HOST, body=NOP, span=S)
    assert len(found(P.HierarchyOutlined, body(place))) == 1
    assert found(P.HierarchyOutlined, body(place, type=F.Orchestration)) == []
    nested = ir.InCoreScopeStmt(body=core, span=S)
    assert codes(P.NoNestedInCore, body(nested)) == [501] and codes(P.NoNestedInCore, body(core)) == []


NO_COMPUTATION = "create read write slice reshape transpose view dim assemble reinterpret_view"


def test_a_compute_operator_in_an_orchestration_is_only_a_warning() -> None:
    moving = {f"tensor.{leaf}" for leaf in NO_COMPUTATION.split()}
    for name in (name for name in registered_names() if name.startswith("tensor.")):
        diagnostics = found(P.SplitIncoreOrch, body(assign(y, op(name, x, x)), type=F.Orchestration))
        if name in moving:
            assert diagnostics == []
            continue
        (each,) = diagnostics
        assert each.severity is passes.DiagnosticSeverity.Warning
        assert f"Compute tensor op '{name}' found in Orchestration function" in each.message


def test_orchestrations_call_functions_that_exist() -> None:
    program = body(ir.EvalStmt(call("gone", x), S), type=F.Orchestration)
    (each,) = found(P.OrchestrationReferencesResolved, program)
    assert "'main'" in each.message and "undefined function 'gone'" in each.message
    result = ir.TupleType([ir.ScalarType(ir.DataType.TASK_ID)])
    submit = ir.Submit(ir.GlobalVar("gone"), [x], [], result, S)
    for unchecked in (
        body(ir.EvalStmt(submit, S), type=F.Orchestration),
        body(ir.EvalStmt(call("gone", x), S), type=F.Graph),
        body(ir.EvalStmt(op("pld.system.notify", x), S), type=F.Orchestration),
    ):
        assert found(P.OrchestrationReferencesResolved, unchecked) == []


def test_an_output_parameter_is_not_replaced_by_an_allocation() -> None:
    out = var("c", TENSOR)
    program = body(assign(out, op("tensor.create")), params=[(out, Out)])
    (each,) = found(P.OutParamNotShadowed, program)
    assert each.error_code == 501
    assert "'c' is an Out parameter and cannot be reassigned via tensor.create" in each.message
    assert codes(P.OutParamNotShadowed, body(assign(out, op("tensor.create")), params=[out])) == []


def test_declared_dependencies_belong_to_submits() -> None:
    tid = var("t", ir.ScalarType(D.TASK_ID))
    edges = {"manual_dep_edges": [tid]}
    (each,) = found(P.ManualDepsOnSubmitOnly, body(ir.EvalStmt(call("k", x, attrs=edges), S)))
    assert each.error_code == 0 and "pl.submit" in each.message
    submit = ir.Submit(ir.GlobalVar("k"), [x], [], {}, edges, ir.TupleType([]), S)
    assert codes(P.ManualDepsOnSubmitOnly, body(ir.EvalStmt(submit, S))) == [1]
    builtin = ir.Call(ir.Op("system.x"), [], {}, edges, TENSOR, S)
    assert codes(P.ManualDepsOnSubmitOnly, body(ir.EvalStmt(builtin, S))) == []


# --- the in-out discipline ---

KERNEL = function(
    ir.ReturnStmt([], S), name="k", params=[(var("o", TENSOR), InOut), var("i", TENSOR)], returns=[TENSOR]
)


def discipline(*stmts: ir.Stmt) -> list[str]:
    return [each.message for each in found(P.InOutUseValid, of(function(*stmts), KERNEL))]


def test_a_variable_written_in_place_is_not_read_under_its_old_name() -> None:
    (message,) = discipline(assign(y, call("k", x, x)), ir.ReturnStmt([x], S))
    assert message.startswith(
        "variable 'x' was passed as InOut/Out at :-1:-1; read the post-call return value"
    )
    assert discipline(assign(y, call("k", x, x)), ir.ReturnStmt([y], S)) == []


def test_assigning_the_variable_revives_it() -> None:
    assert discipline(assign(x, call("k", x, x)), ir.ReturnStmt([x], S)) == []


def test_kills_of_branches_are_joined_and_those_of_a_loop_reach_its_next_trip() -> None:
    kill = ir.EvalStmt(call("k", x, y), S)
    branch = ir.IfStmt(ir.gt(n, c(1)), kill, assign(x, x), [], S)
    assert len(discipline(assign(y, x), branch, ir.ReturnStmt([x], S))) == 1
    loop = for_(ir.SeqStmts([ir.EvalStmt(op("tensor.f", x), S), kill], S))
    assert len(discipline(assign(y, x), loop)) == 2


def test_builtin_operators_and_submits_kill_nothing() -> None:
    submit = ir.Submit(ir.GlobalVar("k"), [x, x], [], ir.TupleType([]), S)
    assert (
        discipline(ir.EvalStmt(submit, S), ir.EvalStmt(op("tensor.write", x), S), ir.ReturnStmt([x], S)) == []
    )


# --- after lowering ---


def test_orchestrations_say_that_their_scopes_are_written_out() -> None:
    assert len(found(P.RuntimeScopesMaterialized, body(NOP, type=F.Orchestration))) == 1
    done = body(NOP, type=F.Orchestration, attrs={"auto_scope": False})
    assert found(P.RuntimeScopesMaterialized, done) == []


def test_carried_values_of_orchestration_loops_are_classified() -> None:
    def loop(attrs: dict) -> ir.Program:
        carried = ir.IterArg("a", TENSOR, x, S)
        stmt = for_(ir.YieldStmt([x], S), carried=[carried], results=[var("r", TENSOR)], attrs=attrs)
        return body(stmt, type=F.Orchestration)

    assert len(found(P.IterArgCarryClassified, loop({}))) == 1
    assert found(P.IterArgCarryClassified, loop({"iter_arg_rebind_0": False})) == []
    bad = {"iter_arg_rebind_0": False, "iter_arg_array_size_0": 2}
    assert len(found(P.IterArgCarryClassified, loop(bad))) == 1


def test_dispatches_carry_one_direction_per_argument() -> None:
    A = ir.ArgDirection
    out, inp = var("a", TENSOR), var("b", TENSOR)
    kernel = function(ir.ReturnStmt([], S), name="k", params=[(out, Out), inp, var("s")], type=F.InCore)

    def dispatch(*directions: ir.ArgDirection) -> int:
        attrs = {"arg_directions": list(directions)} if directions else {}
        stmt = ir.EvalStmt(call("k", x, x, n, attrs=attrs), S)
        return len(found(P.CallDirectionsResolved, of(function(stmt, type=F.Orchestration), kernel)))

    assert dispatch(A.OutputExisting, A.Input, A.Scalar) == 0
    assert dispatch() == 1
    assert dispatch(A.Input, A.Input, A.Scalar) == 1
    assert dispatch(A.Output, A.Scalar, A.Input) == 2
    nothing = function(ir.ReturnStmt([], S), name="k", params=[], type=F.InCore)
    without = function(ir.EvalStmt(call("k"), S), type=F.Orchestration)
    assert found(P.CallDirectionsResolved, of(without, nothing)) == []


def test_a_direction_agrees_with_what_the_callee_declares() -> None:
    A = ir.ArgDirection
    allowed = {
        In: {A.Input, A.NoDep},
        InOut: {A.InOut, A.OutputExisting, A.NoDep},
        Out: {A.Output, A.OutputExisting, A.InOut, A.NoDep},
    }
    for declared, accepted in allowed.items():
        kernel = function(
            ir.ReturnStmt([], S), name="k", params=[(var("a", TENSOR), declared)], type=F.InCore
        )
        for direction in A.__members__.values():
            stmt = ir.EvalStmt(call("k", x, attrs={"arg_directions": [direction]}), S)
            errors = found(P.CallDirectionsResolved, of(function(stmt, type=F.Orchestration), kernel))
            assert (errors == []) == (direction in accepted), (declared, direction)


def test_a_wrapper_declares_what_its_dispatches_do() -> None:
    A = ir.ArgDirection
    kernel = function(ir.ReturnStmt([], S), name="k", params=[(var("a", TENSOR), InOut)], type=F.InCore)

    def errors(declared: ir.ParamDirection, direction: ir.ArgDirection) -> list[passes.Diagnostic]:
        g = var("g", TENSOR)
        inner = ir.EvalStmt(call("k", g, attrs={"arg_directions": [A.InOut]}), S)
        group = function(inner, name="g", params=[(g, declared)], type=F.Group)
        outer = ir.EvalStmt(call("g", x, attrs={"arg_directions": [direction]}), S)
        return found(P.CallDirectionsResolved, of(function(outer, type=F.Orchestration), kernel, group))

    assert errors(InOut, A.InOut) == []
    for declared, direction in ((In, A.Input), (Out, A.Output)):
        assert "wrapper 'g'" in errors(declared, direction)[0].message


def test_a_kernel_returns_the_parameter_that_it_wrote() -> None:
    out, tile, stored = var("o", TENSOR), var("t", ir.TileType([4, 4], FP32)), var("s", TENSOR)
    offsets = ir.MakeTuple([c(0), c(0)], S)
    store = assign(stored, op("tile.store", tile, offsets, out))

    def kernel(value: ir.Var) -> ir.Program:
        return body(
            store, ir.ReturnStmt([value], S), params=[tile, (out, Out)], returns=[TENSOR], type=F.InCore
        )

    assert found(P.ReturnParamsExplicit, kernel(out)) == []
    (each,) = found(P.ReturnParamsExplicit, kernel(stored))
    assert "position 0: 's' is parameter 1 'o' and must reference the param directly" in each.message
    nothing = body(store, params=[tile, (out, Out)], returns=[TENSOR], type=F.InCore)
    assert "has no ReturnStmt" in found(P.ReturnParamsExplicit, nothing)[0].message


def test_tensor_operators_with_a_tile_form_are_gone_from_kernels() -> None:
    assert len(found(P.IncoreTileOps, body(assign(y, op("tensor.add", x, x)), type=F.InCore))) == 1
    assert found(P.IncoreTileOps, body(assign(y, op("tensor.add", x, x)))) == []


def test_tensor_views_have_consistent_strides() -> None:
    def program(view: ir.TensorView | None) -> ir.Program:
        return body(NOP, params=[x, n, var("p", ir.TensorType([4, 8], FP32, None, view))])

    weak = passes.verify_tensor_view_canonical
    assert weak(program(ir.TensorView([], ir.TensorLayout.DN))) == []
    assert len(weak(program(ir.TensorView([], ir.TensorLayout.NZ)))) == 1
    assert len(weak(program(ir.TensorView([8, 2], ir.TensorLayout.ND)))) == 1
    assert len(weak(program(ir.TensorView([], ir.TensorLayout.DN)), require_materialized=True)) == 2


def test_a_tile_view_that_is_implied_is_not_stored() -> None:
    assert found(P.TileTypeCoherence, body(NOP, params=[x, n, var("t", ir.TileType([4, 4], FP32))])) == []


# --- memory ---


def placed_tile(name: str, space: ir.MemorySpace | None, offset: ir.Expr | int | None = None) -> ir.Var:
    memref = None if offset is None else ir.MemRef(var("base", ir.PtrType()), offset, 1024)
    return var(name, ir.TileType([16, 16], FP32, memref, memory_space=space))


def test_tiles_have_a_memory_reference_with_a_valid_address() -> None:
    vec = ir.MemorySpace.Vec

    def program(tile_: ir.Var) -> ir.Program:
        return body(assign(tile_, op("tile.load", x, type_=tile_.type)), type=F.InCore)

    assert len(found(P.HasMemRefs, program(placed_tile("t", vec)))) == 1
    assert found(P.HasMemRefs, program(placed_tile("t", vec, 0))) == []
    assert found(P.AllocatedMemoryAddr, program(placed_tile("t", vec, 64))) == []
    assert codes(P.AllocatedMemoryAddr, program(placed_tile("t", vec, -64))) == [0]
    assert codes(P.AllocatedMemoryAddr, program(placed_tile("t", vec, n))) == [0]


def test_operands_sit_in_a_space_that_their_operator_reads() -> None:
    vec, mat = placed_tile("v", ir.MemorySpace.Vec), placed_tile("m", ir.MemorySpace.Mat)
    nowhere = placed_tile("t", None)
    add = op("tile.add", vec, mat, type_=vec.type)
    (each,) = found(P.TileMemoryInferred, body(assign(vec, add), type=F.InCore))
    assert "Argument 1 of 'tile.add'" in each.message and "is in Mat, but must be in Vec" in each.message
    assert (
        len(found(P.TileMemoryInferred, body(assign(nowhere, op("tile.load", x, type_=TILE)), type=F.InCore)))
        == 1
    )


def test_tile_operators_have_at_most_two_dimensions() -> None:
    cube = ir.TileType([2, 16, 16], FP32)
    stmt = assign(var("t", cube), op("tile.add", var("a", cube), var("b", cube), type_=cube))
    assert len(found(P.TileOps2D, body(stmt, type=F.InCore))) == 1
    load = assign(var("t", cube), op("tile.load", x, type_=cube))
    assert found(P.TileOps2D, body(load, type=F.InCore)) == []
    transpose = assign(var("t", TILE), op("tile.transpose", var("a", TILE), type_=TILE))
    assert len(found(P.TileOps2D, body(transpose, type=F.InCore))) == 1


def test_a_kernel_does_not_mix_matrix_and_vector_work() -> None:
    multiply = assign(tile("a"), op("tile.matmul", tile("b"), tile("b"), type_=TILE))
    add = assign(tile("a"), op("tile.add", tile("b"), tile("b"), type_=TILE))
    assert len(found(P.MixedKernelExpanded, body(multiply, add, type=F.InCore))) == 1
    assert found(P.MixedKernelExpanded, body(multiply, type=F.InCore)) == []
    assert found(P.MixedKernelExpanded, body(multiply, add, type=F.AIV)) == []


def test_window_buffers_belong_to_one_domain() -> None:
    buffer = ir.WindowBuffer(var("w", ir.PtrType()), c(1024))

    def domain(*slots: ir.WindowBuffer) -> ir.Stmt:
        return ir.CommDomainScopeStmt([], list(slots), body=NOP, span=S)

    assert found(P.CommDomainScopesMaterialized, body(domain(buffer))) == []
    assert len(found(P.CommDomainScopesMaterialized, body(domain()))) == 1
    assert len(found(P.CommDomainScopesMaterialized, body(domain(buffer), domain(buffer)))) == 1


def test_communication_contexts_are_looked_up_on_the_host() -> None:
    lookup = ir.EvalStmt(op("pld.system.get_comm_ctx", x), S)
    host = {"level": ir.Level.HOST, "role": ir.Role.Orchestrator}
    assert len(found(P.DistTensorCtxMaterialized, body(lookup))) == 1
    assert found(P.DistTensorCtxMaterialized, body(lookup, **host)) == []


def test_an_accumulator_is_stored_to_elements_it_converts_to() -> None:
    acc = placed_tile("t", ir.MemorySpace.Acc)

    def store(dtype: ir.DataType) -> list[int]:
        target = var("o", ir.TensorType([16, 16], dtype))
        offsets = ir.MakeTuple([c(0), c(0)], S)
        return codes(P.AccToGmStoreValid, body(ir.EvalStmt(op("tile.store", acc, offsets, target), S)))

    assert store(D.FP16) == [] and store(D.INT8) == [1]


# --- inline functions and unused results ---


def test_what_is_left_of_inline_functions() -> None:
    helper = function(ir.ReturnStmt([], S), name="h", type=F.Inline)
    main = function(ir.EvalStmt(call("h", x), S), ir.EvalStmt(call("gone", x), S))
    assert sorted(codes(P.InlineFunctionsEliminated, of(helper, main))) == [0, 1, 2]


def test_unused_results_of_loops_and_branches_are_reported_when_asked_for() -> None:
    carried, result = ir.IterArg("a", TENSOR, x, S), var("r", TENSOR)
    loop = for_(ir.YieldStmt([x], S), carried=[carried], results=[result])
    checks = passes.DiagnosticCheckSet()
    checks.insert(passes.DiagnosticCheck.UnusedControlFlowResult)

    def reported(*rest: ir.Stmt) -> list[int]:
        run = passes.DiagnosticCheckRegistry.run_checks
        found_ = run(checks, passes.DiagnosticPhase.PRE_PIPELINE, body(loop, *rest))
        return [each.error_code for each in found_]

    assert reported(NOP) == [1002] and reported(ir.ReturnStmt([result], S)) == []


def test_a_memory_base_of_a_used_tile_is_used() -> None:
    base = var("base", ir.PtrType())
    tile_ = var("t", ir.TileType([16, 16], FP32, ir.MemRef(base, 0, 1024), memory_space=ir.MemorySpace.Vec))
    stmts = (
        assign(base, op("tile.alloc", type_=ir.PtrType())),
        assign(tile_, op("tile.load", x, type_=tile_.type)),
    )
    checks = passes.DiagnosticCheckSet()
    checks.insert(passes.DiagnosticCheck.UnusedVariable)
    run = passes.DiagnosticCheckRegistry.run_checks
    phase = passes.DiagnosticPhase.PRE_PIPELINE
    assert run(checks, phase, body(*stmts, ir.ReturnStmt([tile_], S))) == []
    assert len(run(checks, phase, body(*stmts))) == 2


# --- split_aiv regions ---

TILE = ir.TileType([16, 16], FP32)


def tile(name: str) -> ir.Var:
    return var(name, TILE)


def region(*stmts: ir.Stmt, split: ir.SplitMode = ir.SplitMode.UP_DOWN) -> ir.Stmt:
    return ir.SplitAivScopeStmt(split, body=seq(*stmts), span=S)


def split_errors(*stmts: ir.Stmt, **options: object) -> list[str]:
    options = options or {"type": F.InCore, "attrs": {"split_aiv": True}}
    return [each.message for each in found(P.AivSplitValid, body(*stmts, **options))]


def test_matrix_work_stays_outside_a_region_and_vector_work_inside() -> None:
    a, b = tile("a"), tile("b")
    multiply = assign(b, op("tile.matmul", a, a, type_=TILE))
    add = assign(b, op("tile.add", a, a, type_=TILE))
    assert split_errors(region(add), multiply) == []
    assert "inside a pl.split_aiv region" in split_errors(region(multiply))[0]
    assert "outside every pl.split_aiv region" in split_errors(region(add), add)[0]
    load = assign(b, op("tile.load", x, type_=TILE))
    assert split_errors(region(add), load) == []


def test_a_reduction_over_the_split_axis_is_partial() -> None:
    rows = assign(tile("r"), op("tile.row_sum", tile("a"), type_=TILE))
    cols = assign(tile("r"), op("tile.col_sum", tile("a"), type_=TILE))
    up, left, none = ir.SplitMode.UP_DOWN, ir.SplitMode.LEFT_RIGHT, ir.SplitMode.NONE
    assert "partial reduction" in split_errors(region(cols, split=up))[0]
    assert "partial reduction" in split_errors(region(rows, split=left))[0]
    assert split_errors(region(rows, split=up)) == split_errors(region(cols, split=left)) == []
    assert split_errors(region(rows, cols, split=none)) == []


def test_values_cross_the_boundary_through_its_operators() -> None:
    a, b, d, e = (tile(name) for name in "abde")
    made = assign(a, op("tile.matmul", d, d, type_=TILE))
    use = assign(b, op("tile.add", a, a, type_=TILE))
    assert "without pl.aiv_shard" in split_errors(made, region(use))[0]
    shard = assign(b, op("tile.aiv_shard", a, type_=TILE))
    used = assign(e, op("tile.add", b, b, type_=TILE))
    assert split_errors(made, region(shard, used)) == []
    consume = assign(d, op("tile.matmul", e, e, type_=TILE))
    assert "without pl.aic_gather" in split_errors(region(used), consume)[0]
    gathered = assign(e, op("tile.aic_gather", b, type_=TILE))
    assert split_errors(region(gathered), consume) == []
    assert "must appear inside" in split_errors(gathered)[0]


def test_boundary_operators_need_their_memory_spaces() -> None:
    vec = ir.TileType([16, 16], FP32, memory_space=ir.MemorySpace.Vec)
    shard = assign(var("s", vec), op("tile.aiv_shard", var("v", vec), type_=vec))
    assert "operand in Vec, but Acc is required" in split_errors(region(shard))[0]


def test_a_region_is_not_written_in_a_function_declared_in_core() -> None:
    (message,) = split_errors(region(NOP), type=F.InCore)
    assert "declare it Opaque or use pl.at(CORE_GROUP)" in message
    assert split_errors(region(NOP), type=F.Opaque) == []


# --- dependencies between statements ---


def test_statements_depend_on_the_latest_definition_before_them() -> None:
    a, b = var("a", TENSOR), var("b", TENSOR)
    first, second = assign(a, op("tensor.f", x)), assign(a, op("tensor.g", a))
    third = for_(assign(b, op("tensor.f", a)))
    fourth = ir.ReturnStmt([b, a], S)
    region = ir.SeqStmts([first, second, third, fourth], S)
    graph = stmt_dependency_analysis.build_stmt_dependency_graph(region)
    assert graph.stmts == [first, second, third, fourth]
    assert [graph.get_predecessors(stmt) for stmt in graph.stmts] == [[], [first], [second], [second, third]]
    alone = stmt_dependency_analysis.build_stmt_dependency_graph(first)
    assert alone.stmts == [first] and alone.get_predecessors(first) == []


def test_the_discipline_is_checked_for_a_region_of_a_program() -> None:
    region = ir.SeqStmts([ir.EvalStmt(call("k", x, x), S), ir.ReturnStmt([x], S)], S)
    program = of(function(region), KERNEL)
    with pytest.raises(pypto.Error, match="InOutUseDiscipline"):
        stmt_dependency_analysis.build_stmt_dependency_graph(region, program)
