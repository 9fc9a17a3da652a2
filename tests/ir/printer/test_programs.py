"""Text of statements, scopes, functions and programs, and the names that variables print under."""

from __future__ import annotations

import pytest

from pypto import InternalError, ir
from tests.ir.nodes import S, assign, const, function, loop, seq, tensor, var
from tests.work import lines_run

INDEX, INT64, FP32 = ir.INDEX, ir.INT64, ir.FP32
TASK_ID = ir.ScalarType(ir.DataType.TASK_ID)
T64 = ir.TensorType([64], FP32)


def text(node, **options):
    return ir.python_print(node, format=False, **options)


def program(*functions, name="P"):
    return ir.Program(list(functions), name, S)


def scope_with(scope, **attrs):
    return scope.replace(attrs=attrs)


def call(name, /, *args, type_=None, **attrs):
    return ir.Call(ir.GlobalVar(name), list(args), {}, attrs, type_ or ir.UnknownType(), S)


def op(name, /, *args, type_=None, attrs=None, **kwargs):
    return ir.Call(ir.Op(name), list(args), kwargs, attrs, type_ or ir.UnknownType(), S)


def invalid_id(target):
    return assign(target, op("system.task_invalid", type_=TASK_ID))


def yields(*values):
    return ir.YieldStmt(list(values), S)


# --- statements


@pytest.mark.parametrize(
    ("start", "stop", "step", "bounds"),
    [
        (const(0), const(8), const(1), "8"),
        (const(2), const(8), const(1), "2, 8"),
        (const(0), const(8), const(2), "0, 8, 2"),
        (var("n", INDEX), const(8), const(1), "n, 8"),
        (const(0), const(8), var("s", INDEX), "0, 8, s"),
        (const(0, INT64), const(8), const(1, INT64), "pl.const(0, pl.INT64), 8, pl.const(1, pl.INT64)"),
    ],
)
@pytest.mark.parametrize(
    ("kind", "name"),
    [(ir.ForKind.Sequential, "range"), (ir.ForKind.Unroll, "unroll"), (ir.ForKind.Parallel, "parallel")],
)
def test_loop_bounds_leave_out_only_index_defaults(start, stop, step, bounds, kind, name):
    stmt = ir.ForStmt(var("i", INDEX), start, stop, step, [], seq(), [], S, kind)
    assert text(stmt) == f"for i in pl.{name}({bounds}):\n    pass"


def test_loops_print_carries_stages_and_attributes():
    a, b = var("a"), var("b")
    carried = [ir.IterArg("p", a.type, a, S), ir.IterArg("q", b.type, b, S)]
    results = [var("r"), var("s")]
    stmt = ir.ForStmt(
        var("i", INDEX), const(0), const(4), const(1), carried, yields(*carried), results, S,
        ir.ForKind.Pipeline, {"pipeline_stages": 2, "k": 1.5, "name": "x"},
    )  # fmt: skip
    assert text(stmt) == (
        'for i, (p, q) in pl.pipeline(4, stage=2, init_values=(a, b), attrs={"k": 1.5, "name": "x"}):\n'
        "    r, s = pl.yield_(p, q)"
    )
    with pytest.raises(InternalError, match="pipeline_stages"):
        text(stmt.replace(attrs={}))
    with pytest.raises(InternalError, match=r"^an unrolled loop does not support iter_args"):
        text(stmt.replace(kind=ir.ForKind.Unroll))


def test_while_loops_with_carries_use_the_condition_form():
    a = var("a")
    arg, result = ir.IterArg("n", a.type, a, S), var("r")
    stmt = ir.WhileStmt(ir.Gt(arg, const(0), ir.BOOL, S), [arg], seq(yields(arg)), [result], S)
    assert text(stmt) == (
        "for (n,) in pl.while_(init_values=(a,)):\n"
        "    pl.cond(n > 0)\n"
        "    r: pl.Scalar[pl.INT64] = pl.yield_(n)"
    )
    assert text(ir.WhileStmt(a, [], seq(), [], S)) == "while a:\n    pass"


def test_branch_yields_assign_the_results_also_inside_a_runtime_scope():
    c, r = var("c"), var("r")
    inner = ir.RuntimeScopeStmt(body=seq(yields(c)), span=S)
    stmt = ir.IfStmt(c, inner, yields(c), [r], S)
    assert text(stmt, concise=True) == (
        "if c:\n    with pl.scope():\n        r = pl.yield_(c)\nelse:\n    r = pl.yield_(c)"
    )
    two = ir.IfStmt(c, yields(c, c), yields(c, c), [r, var("q")], S)
    assert "    r, q = pl.yield_(c, c)" in text(two)


def test_plain_statements_and_comments():
    x = var("x")
    body = seq(
        ir.attach_leading_comments(ir.EvalStmt(op("tile.abs", x), S), ["first", "second"]),
        ir.InlineStmt("a = 1\n\nb = 2", ir.InlineLanguage.Python, S),
        ir.BreakStmt(S),
        ir.ContinueStmt(S),
        ir.ReturnStmt([x, x], S),
        ir.ReturnStmt(S),
    )
    assert text(ir.ClusterScopeStmt(body=body, span=S)) == (
        "with pl.cluster():\n    # first\n    # second\n    pl.tile.abs(x)\n    a = 1\n\n    b = 2\n"
        "    break\n    continue\n    return x, x\n    return"
    )


def test_names_are_distinct_in_bare_statement_sequences_too():
    a = var("a")
    args = [ir.IterArg("acc", a.type, a, S) for _ in range(2)]
    loops = [
        ir.ForStmt(var("i", INDEX), const(0), const(2), const(1), [arg], yields(arg), [var("r")], S)
        for arg in args
    ]
    lines = text(seq(*loops), concise=True).split("\n")
    assert lines[0] == "for i, (acc,) in pl.range(2, init_values=(a,)):"
    assert lines[2] == "for i_1, (acc_1,) in pl.range(2, init_values=(a,)):"
    assert lines[3] == "    r_1 = pl.yield_(acc_1)"
    body = text(function([a], *loops), concise=True).split("\n")[2:]
    assert body == [f"    {line}" for line in lines]


def test_a_carry_used_where_its_loop_does_not_reach_has_a_name_of_its_own():
    a = var("a")
    own, dangling = (ir.IterArg("acc", a.type, a, S) for _ in range(2))
    use = ir.EvalStmt(op("tile.add", own, dangling), S)
    stmt = ir.ForStmt(
        var("i", INDEX), const(0), const(2), const(1), [own], seq(use, yields(own)), [var("r")], S
    )
    assert "    pl.tile.add(acc, acc_1)\n" in text(stmt)
    assert "        pl.tile.add(acc, acc_1__FREE_VAR)\n" in text(function([a], stmt))


# --- scopes


def test_at_scopes_print_their_options_in_order_and_recreate_their_task_id():
    x, out, tid, t2 = (
        tensor(64, name="x"),
        tensor(64, name="o"),
        ir.Var("tid", TASK_ID, S),
        ir.Var("t2", TASK_ID, S),
    )
    scope = scope_with(
        ir.InCoreScopeStmt(name_hint="h", body=seq(assign(out, op("tensor.abs", x, type_=T64))), span=S),
        task_id_var=t2,
        manual_dep_edges=[tid],
        arg_direction_overrides_vars=[x],
        dump_vars=[x],
        allow_early_resolve=True,
    )
    expected = (
        'with pl.at(level=pl.Level.CORE_GROUP, name_hint="h", deps=[tid], no_dep_args=[x], dumps=[x], '
        "allow_early_resolve=True) as t2:\n    o: pl.Tensor[[64], pl.FP32] = pl.tensor.abs(x)"
    )
    assert text(seq(invalid_id(t2), scope)) == expected
    assert "task_invalid" in text(seq(invalid_id(tid), scope))


def test_at_scopes_with_split_slots_levels_and_roles():
    body = seq()
    split = scope_with(ir.InCoreScopeStmt(ir.SplitMode.UP_DOWN, body=body, span=S), slot_num=4)
    assert text(split) == (
        "with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(pl.SplitMode.UP_DOWN), "
        "pl.cross_core_slot(slot_num=4)]):\n    pass"
    )
    host = ir.HierarchyScopeStmt(ir.Level.HOST, ir.Role.Orchestrator, body=body, span=S)
    assert text(host) == "with pl.at(level=pl.Level.HOST, role=pl.Role.Orchestrator):\n    pass"


def test_runtime_cluster_and_domain_scopes():
    x = var("x")
    stmt = ir.EvalStmt(op("tile.abs", x), S)
    assert text(ir.RuntimeScopeStmt(body=stmt, span=S)) == "with pl.scope():\n    pl.tile.abs(x)"
    manual = ir.RuntimeScopeStmt(True, body=stmt, span=S)
    assert text(manual) == "with pl.scope(mode=pl.ScopeMode.MANUAL):\n    pl.tile.abs(x)"
    assert text(ir.ClusterScopeStmt("cl", stmt, S)).startswith('with pl.cluster(name_hint="cl"):')
    buffer = ir.WindowBuffer(ir.Var("buf", ir.PtrType(), S), const(64))
    domain = ir.CommDomainScopeStmt([0, 1], [buffer], body=stmt, span=S)
    assert text(domain) == "# pld.comm_domain: devices=[0, 1], slots=[buf]\npl.tile.abs(x)"


def test_split_aiv_regions_name_their_lane_and_hide_the_split_of_shard_ops():
    lane = var("lane", INDEX)
    x = var("x")
    body = seq(
        assign(lane, op("tile.get_subblock_idx", type_=lane.type)),
        ir.EvalStmt(op("tile.aiv_shard", x, split=1), S),
    )
    region = ir.SplitAivScopeStmt(ir.SplitMode.UP_DOWN, body=body, span=S)
    assert text(region) == (
        "for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):\n    pl.tile.aiv_shard(x)"
    )
    assert text(ir.EvalStmt(op("tile.aiv_shard", x, split=1), S)) == "pl.tile.aiv_shard(x, split=1)"
    empty = ir.SplitAivScopeStmt(ir.SplitMode.NONE, body=seq(), span=S)
    assert text(empty) == "for aiv_id in pl.split_aiv(2, mode=pl.SplitMode.NONE):\n    pass"


def test_spmd_scopes_have_three_forms():
    i = var("i", INDEX)
    index = assign(i, op("tile.get_block_idx", type_=i.type))
    use = ir.EvalStmt(op("tile.abs", i), S)
    carrier = ir.InCoreScopeStmt(body=seq(index, use), span=S)
    named_carrier = ir.InCoreScopeStmt(name_hint="q", body=seq(index, use), span=S)
    loop_form = ir.SpmdScopeStmt(4, True, "q_spmd", named_carrier, S)
    assert text(loop_form) == 'for i in pl.spmd(4, sync_start=True, name_hint="q_spmd"):\n    pl.tile.abs(i)'
    other_name = text(ir.SpmdScopeStmt(4, False, "q", named_carrier, S))
    assert other_name.startswith('with pl.spmd(4, name_hint="q"):\n    with pl.at(')
    assert 'name_hint="q"' in other_name.splitlines()[1]
    plain = ir.SpmdScopeStmt(4, body=ir.EvalStmt(call("k", i), S), span=S)
    assert text(plain) == "with pl.spmd(4):\n    k(i)"
    tid, dep = ir.Var("tid", TASK_ID, S), ir.Var("dep", TASK_ID, S)
    named = scope_with(ir.SpmdScopeStmt(4, body=carrier, span=S), task_id_var=tid, manual_dep_edges=[dep])
    assert text(named, concise=True) == (
        "with pl.spmd(4, deps=[dep]) as tid:\n    i = pl.tile.get_block_idx()\n    pl.tile.abs(i)"
    )
    kept = scope_with(ir.SpmdScopeStmt(4, body=ir.InCoreScopeStmt(body=use, span=S), span=S), task_id_var=tid)
    assert text(kept) == (
        "with pl.spmd(4) as tid:\n    with pl.at(level=pl.Level.CORE_GROUP):\n        pl.tile.abs(i)"
    )
    when = scope_with(ir.SpmdScopeStmt(i, body=use, span=S), predicate=ir.Gt(i, const(0), ir.BOOL, S))
    assert text(when) == "with pl.spmd(i, predicate=(i > 0)):\n    pl.tile.abs(i)"


# --- dispatches


def test_calls_of_program_functions_print_self_device_and_attributes_in_order():
    x, out, d = tensor(64, name="x"), tensor(64, name="out"), var("d")
    dispatch = call(
        "k", x, out,
        core_num=4, device=d, arg_directions=[ir.ArgDirection.Input, ir.ArgDirection.OutputExisting],
        dump_vars=[out, x],
    )  # fmt: skip
    main = function([x, out, d], ir.EvalStmt(dispatch, S), name="main")
    assert (
        'self.k(x, out, device=d, attrs={"dump_vars": [x, out], "arg_directions": '
        '[pl.adir.input, pl.adir.output_existing], "core_num": 4})'
    ) in text(program(main))
    assert text(call("k", x)) == "k(x)"


def test_submits_print_their_launch_fields():
    a, t1, t2 = tensor(64, name="a"), ir.Var("t1", TASK_ID, S), ir.Var("t2", TASK_ID, S)

    def submit(*deps, **fields):
        return ir.Submit(ir.GlobalVar("kernel"), [a], list(deps), ir.TupleType([TASK_ID]), S, **fields)

    main = function([a, t1, t2], ir.EvalStmt(submit(), S), ir.EvalStmt(submit(t1, t2), S), name="main")
    printed = text(program(main))
    assert "pl.submit(self.kernel, a)\n" in printed
    assert "pl.submit(self.kernel, a, deps=[t1, t2])" in printed
    seed = ir.Submit(ir.GlobalVar("seed"), [], [t1], ir.TupleType([TASK_ID]), S)
    assert text(program(function([t1], ir.EvalStmt(seed, S)))).endswith("pl.submit(self.seed, deps=[t1])")
    full = submit(
        t1, core_num=const(4), sync_start=True, allow_early_resolve=True, predicate=ir.Gt(t1, t2, ir.BOOL, S)
    )
    assert text(full) == (
        "pl.spmd_submit(kernel, a, deps=[t1], core_num=4, sync_start=True, allow_early_resolve=True, "
        "predicate=(t1 > t2))"
    )


def test_dependencies_on_a_plain_call_are_an_error():
    t = ir.Var("t", TASK_ID, S)
    main = function([t], ir.EvalStmt(call("k", manual_dep_edges=[t]), S), name="main")
    with pytest.raises(InternalError, match="'k' carries 'manual_dep_edges'"):
        text(program(main))


# --- functions and programs


def test_function_headers():
    x = tensor(64, name="x")
    opaque = function([x], ir.ReturnStmt([x], S))
    assert text(opaque).startswith("@pl.function\ndef f(x: pl.Tensor[[64], pl.FP32]):\n    return x")
    kernel = function(
        [x, (tensor(64, name="o"), ir.ParamDirection.InOut)], type=ir.FunctionType.InCore, name="k"
    )
    header, signature, body = text(program(kernel)).split("\n")[-3:]
    assert header == (
        "    @pl.function(type=pl.FunctionType.InCore, level=pl.Level.CHIP_DIE, role=pl.Role.SubWorker)"
    )
    assert signature == ("    def k(x: pl.Tensor[[64], pl.FP32], o: pl.InOut[pl.Tensor[[64], pl.FP32]]):")
    assert body == "        pass"
    results = ir.Function("g", [x], [T64, T64], yields(x, x), S)
    assert text(results).split("\n")[1:] == [
        "def g(x: pl.Tensor[[64], pl.FP32]) -> tuple[pl.Tensor[[64], pl.FP32], pl.Tensor[[64], pl.FP32]]:",
        "    return x, x",
    ]


def test_function_attributes_print_as_a_prologue_or_in_the_decorator():
    split = function([], type=ir.FunctionType.AIV, attrs={"split": 1, "auto_scope": True})
    assert 'pl.func_attr({"split": pl.SplitMode.UP_DOWN})' in text(split)
    none = function([], attrs={"split": 0})
    assert text(none) == "@pl.function\ndef f():\n    pass"
    external = function(
        [], type=ir.FunctionType.AIC, attrs={"external_source": 'a"b.cpp', "auto_scope": False}
    )
    assert 'auto_scope=False, external_source="a\\"b.cpp")' in text(external)
    abstract = function([], requires_runtime_binding=True)
    assert text(abstract).endswith("def f():\n    ...")


def test_a_program_declares_the_symbols_that_no_function_binds():
    m1, m2 = var("M", INDEX), var("M", INDEX)
    bound = var("K", INDEX)
    a = function([tensor(m1, name="x")], name="a")
    b = function([tensor(m2, name="x"), bound, tensor(bound, name="y")], name="b")
    printed = text(program(a, b))
    assert printed.startswith(
        '# pypto.program: P\nimport pypto.language as pl\n\nM = pl.dynamic("M")\nM_1 = pl.dynamic("M_1")\n\n'
        "@pl.program\nclass P:\n"
    )
    assert (
        "def b(self, x: pl.Tensor[[M_1], pl.FP32], K: pl.Scalar[pl.INDEX], y: pl.Tensor[[K], pl.FP32]):"
        in printed
    )


def test_extents_that_a_body_computes_are_not_declared():
    local = var("L", INDEX)
    sized = ir.TensorType([local * 2], FP32)
    create = assign(ir.Var("t", sized, S), op("tensor.create", type_=sized))
    printed = text(program(function([], assign(local, const(4)), create)))
    assert "dynamic" not in printed and "FREE" not in printed
    assert "        t: pl.Tensor[[L * pl.const(2, pl.INDEX)], pl.FP32] = pl.tensor.create()" in printed


def test_symbols_of_distributed_tensors_are_declared_too():
    n = var("N", INDEX)
    x = ir.Var("x", ir.DistributedTensorType([n], FP32), S)
    printed = text(program(function([x], assign(var("a", INDEX), n + 1))))
    assert 'N = pl.dynamic("N")\n' in printed and "FREE" not in printed


def test_a_parameter_in_a_valid_shape_is_declared_because_annotations_come_first():
    n = var("N", INDEX)
    type_ = ir.TensorType([64], FP32, None, ir.TensorView([], ir.TensorLayout.ND, [n]))
    f = function([ir.Var("x", type_, S), n])
    printed = text(program(f))
    assert 'N = pl.dynamic("N")' in printed
    assert "N: pl.Scalar[pl.INDEX]" in printed


def test_a_local_with_the_name_of_a_symbol_in_use_is_renamed():
    m, local = var("M", INDEX), var("M", INDEX)
    f = function([tensor(m, name="x")], assign(local, m))
    assert "M_1: pl.Scalar[pl.INDEX] = M" in text(program(f))


def test_free_variables_are_marked_in_functions_but_not_in_statements():
    leaked = var("leaked")
    f = function([], assign(var("a"), leaked))
    assert "a: pl.Scalar[pl.INT64] = leaked__FREE_VAR" in text(f)
    assert "FREE" not in text(assign(var("a"), leaked))
    m = var("M", INDEX)
    own = function([tensor(m, name="x")], assign(var("a", INDEX), m))
    assert "FREE" not in text(own)


def test_callees_print_before_callers_and_cycles_by_name():
    main = function([], ir.EvalStmt(call("z"), S), ir.EvalStmt(call("b"), S), name="a_main")
    b, z = function([], name="b"), function([], ir.EvalStmt(call("b"), S), name="z")
    names = [
        line.split("(")[0].split()[-1] for line in text(program(main, b, z)).split("\n") if "def " in line
    ]
    assert names == ["b", "z", "a_main"]
    loop = function([], ir.EvalStmt(call("a_main"), S), name="b")
    names = [
        line.split("(")[0].split()[-1] for line in text(program(main, loop, z)).split("\n") if "def " in line
    ]
    assert names == ["a_main", "b", "z"]


def test_program_headers_follow_the_prefix_and_empty_programs_are_valid_python():
    empty = program(name="")
    assert text(empty) == (
        "# pypto.program: Program\nimport pypto.language as pl\n\n@pl.program\nclass Program:\n    pass"
    )
    assert "from pypto import language as custom\n" in text(empty, prefix="custom")


def test_a_program_of_hundreds_of_functions_prints_fast():
    def kernel(name):
        x, out = tensor(64, name="x"), tensor(64, name="out")
        stmts, current = [], x
        for _ in range(10):
            step = ir.Var("t", ir.TileType([64], FP32, None, None, ir.MemorySpace.Vec), S)
            stmts.append(assign(step, op("tile.adds", current, ir.ConstFloat(2.0, FP32, S), type_=step.type)))
            current = step
        return function([x, out], *stmts, ir.ReturnStmt([out], S), name=name, type=ir.FunctionType.InCore)

    many = program(*(kernel(f"k{i}") for i in range(770)))
    assert lines_run(lambda: text(many)) < 2_300_000, "the bar, 150 ms on an idle machine, is about that"


@pytest.mark.parametrize(
    "scope, attrs, fact",
    [
        (ir.ClusterScopeStmt("", seq(), S), {"task_id_var": var("t")}, "'task_id_var' of a ClusterScopeStmt"),
        (ir.RuntimeScopeStmt(False, "", seq(), S), {"z": 1}, "'z' of a RuntimeScopeStmt"),
        (ir.RuntimeScopeStmt(False, "hint", seq(), S), {}, "name hint 'hint' of a RuntimeScopeStmt"),
        (ir.SplitAivScopeStmt(ir.NONE, 2, "hint", seq(), S), {}, "name hint 'hint' of a SplitAivScopeStmt"),
        (ir.InCoreScopeStmt(body=seq(), span=S), {"predicate": var()}, "'predicate' of a InCoreScopeStmt"),
        (ir.HierarchyScopeStmt(ir.HOST, body=seq(), span=S), {"slot_num": 1}, "'slot_num' of a Hierarchy"),
        (ir.SpmdScopeStmt(2, body=seq(), span=S), {"windowize": True}, "'windowize' of a SpmdScopeStmt"),
    ],
)
def test_what_the_header_of_a_scope_cannot_say_is_an_error_not_a_loss(scope, attrs, fact):
    with pytest.raises(InternalError, match=fact):
        text(scope.replace(attrs=attrs) if attrs else scope)


def test_attributes_of_loops_are_numbers_flags_and_text():
    with pytest.raises(InternalError, match="'k' of a loop holds a value of type Add"):
        text(loop(seq()).replace(attrs={"k": var() + 1}))


def test_a_difference_is_told_also_of_nodes_that_have_no_text():
    for malformed in (
        ir.RuntimeScopeStmt(False, "hint", seq(), S),
        ir.EvalStmt(op("tile.cast", var(), mode=9), S),
        function([], attrs={"split": 7}),
    ):
        with pytest.raises(ValueError, match="which has no text") as caught:
            ir.assert_structural_equal(malformed, ir.BreakStmt(S))
        assert f"Node type mismatch ({type(malformed).__name__} != BreakStmt)" in str(caught.value)
