from __future__ import annotations

import copy
import pickle

import pytest

import pypto
from pypto import ir

from .nodes import S, assign, call, const, function, loop, seq, tensor, var


def test_call_forms_and_their_defaults():
    op, x = ir.Op("o"), var()
    scalar = ir.ScalarType(ir.INT64)
    for made in (
        ir.Call(op, [x], S), ir.Call(op, [x], scalar, S), ir.Call(op, [x], {"k": 1}, S),
        ir.Call(op, [x], {"k": 1}, scalar, S),
    ):  # fmt: skip
        assert made.attrs == {} and made.arg_directions == []
    assert isinstance(ir.Call(op, [x], S).type, ir.UnknownType)
    plain, without = ir.Call(op, [x], scalar, S), ir.Call(op, [x], {}, None, scalar, S)
    assert without.attrs == {} and ir.structural_equal(plain, without)
    assert ir.structural_hash(plain) == ir.structural_hash(without)
    pairs = ir.Call(op, [x], {}, [("b", 1), ("a", 2)], scalar, S)
    assert list(pairs.attrs.items()) == [("b", 1), ("a", 2)]


def test_call_fields_return_the_objects_given_and_fresh_lists():
    x = var()
    made = call("o", x)
    assert made.args[0] is x
    made.args.append(x)
    assert len(made.args) == 1
    for name in ("op", "args", "kwargs", "attrs", "arg_directions", "type", "span", "unknown"):
        with pytest.raises(AttributeError):
            setattr(made, name, None)


def test_attribute_values_are_converted_by_kind():
    x = var()
    kwargs = ir.Call(
        ir.Op("o"), [], {"pipe": ir.PipeType.V, "d": ir.FP32, "f": True, "n": 3, "e": x}, S
    ).kwargs
    assert kwargs["pipe"] == 4 and type(kwargs["pipe"]) is int
    assert kwargs["d"] is ir.FP32 and kwargs["f"] is True and kwargs["e"] is x
    attrs = call("o", core_num=4, dump_vars=[x], arg_direction_overrides=[1]).attrs
    assert isinstance(attrs["core_num"], ir.ConstInt) and attrs["core_num"].dtype is ir.INDEX
    assert attrs["dump_vars"] == [x] or attrs["dump_vars"][0] is x
    assert attrs["arg_direction_overrides"] == [1]


@pytest.mark.parametrize(
    ("attrs", "error"),
    [
        ({"k": None}, TypeError),
        ({"k": ir.Level.CHIP}, TypeError),
        ({"k": {}}, TypeError),
        ({"k": 2**31}, ValueError),
        ({"arg_direction_overrides": [True]}, TypeError),
        ({"arg_direction_overrides": [2**31]}, ValueError),
        ({"manual_dep_edges": [1]}, TypeError),
        ({"k": [1]}, TypeError),
        ((("k", 1),), TypeError),
    ],
)
def test_unsupported_attribute_values_name_the_key(attrs, error):
    with pytest.raises(error):
        ir.Call(ir.Op("o"), [], {}, attrs, ir.UnknownType(), S)


def test_directions_must_match_the_arguments():
    with pytest.raises(TypeError, match=r"attrs\['arg_directions'\] size \(1\) must match args size \(0\)"):
        call("o", arg_directions=[ir.ArgDirection.Input])
    with pytest.raises(ValueError, match="must match args length"):
        ir.make_call(ir.Op("o"), [], directions=[ir.input])
    assert ir.make_call(ir.Op("o"), [var()], directions=[ir.scalar_dir]).arg_directions == [ir.scalar_dir]


def test_submit_checks_its_launch():
    op = ir.Op("k")
    with pytest.raises(ValueError, match=r"sync_start.*core_num"):
        ir.Submit(op, [], [], ir.UnknownType(), S, sync_start=True)
    for dtype in (ir.FP32, ir.BOOL, ir.DataType.TASK_ID):
        with pytest.raises(TypeError):
            ir.Submit(op, [], [], ir.UnknownType(), S, core_num=var(dtype=dtype))
    with pytest.raises(TypeError):
        ir.Submit(op, [], [], ir.UnknownType(), S, core_num=4)
    made = ir.Submit(op, [], [], {}, {}, ir.UnknownType(), S, const(4), True)
    assert not isinstance(made, ir.Call) and made.sync_start and made.core_num.value == 4


def test_tuple_projection_checks_type_and_bounds():
    pair = ir.MakeTuple([var(), tensor(4)], S)
    assert isinstance(ir.TupleGetItemExpr(pair, 1, S).type, ir.TensorType)
    for source, index in ((var(), 0), (tensor(4), 0), (pair, -1), (pair, 2), (ir.MakeTuple([], S), 0)):
        with pytest.raises(ValueError):
            ir.TupleGetItemExpr(source, index, S)


def test_nodes_are_immutable_and_cannot_be_copied():
    node = const(1)
    with pytest.raises(AttributeError):
        node.value = 2
    with pytest.raises(AttributeError):
        node.unknown = 2
    for copier in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            copier(node)


def test_comments_attach_to_single_statements_and_survive_rebuilding():
    stmt = assign(var(), const(1))
    assert ir.attach_leading_comments(stmt, ["why"]) is stmt
    assert stmt.replace(value=const(2)).leading_comments == ["why"]
    with pytest.raises(AttributeError):
        stmt.leading_comments = ["no"]
    stmt.leading_comments.append("no")
    assert stmt.leading_comments == ["why"] and ir.attach_leading_comments(stmt, []).leading_comments == []
    with pytest.raises(ValueError):
        ir.attach_leading_comments(seq(), ["no"])
    for target in (stmt, seq()):
        with pytest.raises(TypeError):
            ir.attach_leading_comments(target, None)


def test_sequences_keep_what_they_get_and_index_like_lists():
    inner = seq(ir.BreakStmt(S))
    outer = seq(inner, ir.ContinueStmt(S))
    assert outer[0] is inner and isinstance(outer[-1], ir.ContinueStmt)
    assert outer[-2] is inner and seq(inner).stmts[0] is inner
    for outside in (2, -3):
        with pytest.raises(IndexError):
            outer[outside]
    assert [type(s).__name__ for s in outer] == ["SeqStmts", "ContinueStmt"]


def test_normal_form_splices_sequences_and_unwraps_a_single_statement():
    one, two = ir.BreakStmt(S), ir.ContinueStmt(S)
    assert ir.flatten_stmts([seq(seq(one))], S) is one
    assert ir.flatten_stmts([seq(one, seq(two))], S).stmts == [one, two]
    assert ir.flatten_stmts([], S).stmts == []


def test_statement_constructors_require_their_parts():
    with pytest.raises(TypeError):
        ir.IfStmt(var(), seq())
    with pytest.raises(TypeError):
        ir.InCoreScopeStmt(span=S)
    with pytest.raises(TypeError):
        ir.ForStmt(var(), const(0), const(1), const(1), [var()], seq(), [], S)
    assert ir.YieldStmt(S).value == [] and ir.ReturnStmt([var()], S).value


def test_scopes():
    body = seq()
    where = ir.Span("f", 3, 1)
    blocks = ir.SpmdScopeStmt(core_num=8, body=body, span=where).core_num
    assert isinstance(blocks, ir.ConstInt) and (blocks.value, blocks.dtype, blocks.span) == (
        8,
        ir.INDEX,
        where,
    )
    with pytest.raises(TypeError):
        ir.SpmdScopeStmt(None, body=body, span=S)
    for count in (4, 1):
        with pytest.raises(pypto.InternalError):
            ir.SplitAivScopeStmt(ir.SplitMode.UP_DOWN, count, body=body, span=S)
    assert ir.SplitAivScopeStmt(ir.SplitMode.NONE, body=body, span=S).count == 2
    scope = ir.RuntimeScopeStmt(True, "name", body, S)
    assert scope.manual and scope.name_hint == "name" and scope.scope_kind is ir.ScopeKind.Runtime
    assert scope.replace(attrs={"k": 1}).attrs == {"k": 1}


def test_function_directions_and_derived_place():
    x, out = tensor(4), tensor(4)
    plain = function([x, (out, ir.ParamDirection.Out)])
    assert plain.param_directions == [ir.ParamDirection.In, ir.ParamDirection.Out]
    assert function([x, out]).param_directions == [ir.ParamDirection.In] * 2
    orch = function([x], type=ir.FunctionType.Orchestration)
    kernel = orch.replace(func_type=ir.FunctionType.InCore)
    assert (kernel.level, kernel.role) == (ir.Level.CHIP_DIE, ir.Role.SubWorker)
    assert function([x], level=ir.Level.POD).level is ir.Level.CLUSTER_0
    for wrong in ((x,), (x, ir.Out, 1), (3, ir.Out), (x, 3), [x, ir.Out], 3, None):
        with pytest.raises(TypeError):
            function([wrong])


@pytest.mark.parametrize(
    ("func_type", "level", "role"),
    [
        ("Orchestration", "CHIP", "Orchestrator"), ("Graph", "CHIP", "Orchestrator"),
        ("InCore", "CHIP_DIE", "SubWorker"), ("AIC", "AIC", "SubWorker"), ("AIV", "AIV", "SubWorker"),
        ("Group", "CORE_GROUP", "SubWorker"),
    ],
)  # fmt: skip
def test_function_types_imply_level_and_role_and_refuse_others(func_type, level, role):
    kind, place = ir.FunctionType[func_type], {"level": ir.Level[level], "role": ir.Role[role]}
    for options in ({}, place):
        made = function([], type=kind, **options)
        assert {"level": made.level, "role": made.role} == place
    other = "SubWorker" if role == "Orchestrator" else "Orchestrator"
    with pytest.raises(ValueError, match=f"'f' of type {func_type} implies level {level}, but GLOBAL"):
        function([], type=kind, level=ir.Level.GLOBAL)
    with pytest.raises(ValueError, match=f"'f' of type {func_type} implies role {role}, but {other}"):
        function([], type=kind, role=ir.Role[other])


@pytest.mark.parametrize("func_type", ["Opaque", "Spmd", "Inline"])
def test_other_function_types_keep_level_and_role_as_given(func_type):
    made = function([], type=ir.FunctionType[func_type])
    assert (made.level, made.role) == (None, None)
    placed = function([], type=ir.FunctionType[func_type], level=ir.Level.CLOS2, role=ir.Role.SubWorker)
    assert (placed.level, placed.role) == (ir.Level.CLUSTER_2, ir.Role.SubWorker)


@pytest.mark.parametrize(
    ("attrs", "split"), [({}, None), ({"split": 0}, None), ({"split": 2}, ir.SplitMode.LEFT_RIGHT)]
)
def test_function_split(attrs, split):
    assert function([], attrs=attrs).split is split


def test_malformed_split_raises_on_reading():
    with pytest.raises(ValueError):
        function([], attrs={"split": 7}).split
    with pytest.raises(TypeError):
        function([], attrs={"split": "x"}).split


def test_program_orders_functions_by_code_point_and_finds_them_by_name():
    names = ["b", "a2", "Z", "a", "a10"]
    program = ir.Program([function([], name=n) for n in names], "P", S)
    assert [v.name for v in program.functions] == ["Z", "a", "a10", "a2", "b"]
    assert program.get_global_var("a") is program.get_global_var("a")
    assert program["nope"] is None and program.get_function("nope") is None
    with pytest.raises(ValueError, match="'a'"):
        ir.Program([function([], name="a"), function([], name="a")], "P", S)
    with pytest.raises(pypto.InternalError):
        ir.Program([function([], name="")], "P", S)


def test_program_replacement_keeps_identity_and_global_vars():
    f, g = function([], name="f"), function([], name="g")
    program = ir.Program([f, g], "P", S)
    assert program.replace(functions=[f, g]) is program
    changed = program.replace(functions=[f, g.replace(attrs={"k": 1})])
    assert changed.get_global_var("f") is program.get_global_var("f")


def test_loops_read_back_attributes_of_every_kind():
    x = var()
    assert loop(seq(), attrs={"e": x + 1, "l": [x]}).attrs["l"][0] is x


@pytest.mark.parametrize(
    "make",
    [
        lambda op: ir.Submit(op, [], [], S),
        lambda op: ir.Submit(op, [], [], {}, ir.UnknownType(), S),
        lambda op: ir.Submit(op, [], [], {}, {}, ir.UnknownType(), S, const(4), "yes"),
        lambda op: ir.Submit(op, [], [], {}, {}, ir.UnknownType(), S, const(4), True, False, None, 1),
        lambda op: ir.Submit(op, [], [], {}, {}, ir.UnknownType(), S, const(4), core_num=const(4)),
        lambda op: ir.Submit(op, [], [1], ir.UnknownType(), S),
        lambda op: ir.Call(op, [], False, ir.UnknownType(), S),
        lambda op: ir.Call(op, [], {}, (), ir.UnknownType(), S),
        lambda op: ir.Call(op, [], S, span=S),
        lambda op: ir.Call(op, [], {}, {"arg_directions": [var()]}, ir.UnknownType(), S),
        lambda op: ir.Call(op, []),
        lambda op: ir.Function("f", [], [], seq(), S, ir.FunctionType.Opaque, 3),
        lambda op: ir.Function("f", [], [], seq(), S, ir.FunctionType.Opaque, None, 3),
        lambda op: ir.Function("f", [], [], seq(), S, requires_runtime_binding=1),
        lambda op: ir.SplitAivScopeStmt(ir.SplitMode.NONE, "2", body=seq(), span=S),
    ],
)
def test_missing_repeated_and_wrong_arguments_are_type_errors(make):
    with pytest.raises(TypeError):
        make(ir.Op("o"))


def test_iterating_a_program_is_an_error_not_an_endless_loop():
    with pytest.raises(TypeError):
        list(ir.Program([], "P", S))


def test_functions_declare_no_keywords_and_registered_operators_do():
    assert ir.get_op("tile.store").has_attr("atomic")
    assert ir.GlobalVar("tile.store").get_attr_keys() == [] and ir.Op("mine").get_attr_keys() == []


ATTR_HOLDERS = {
    "call kwargs": lambda key, value: ir.Call(ir.Op("o"), [], {key: value}, S).kwargs,
    "call": lambda key, value: call("o", **{key: value}).attrs,
    "submit": lambda key, value: ir.Submit(ir.Op("o"), [], [], {}, {key: value}, ir.UnknownType(), S).attrs,
    "function": lambda key, value: function([], attrs={key: value}).attrs,
    "loop": lambda key, value: loop(seq(), attrs={key: value}).attrs,
    "scope": lambda key, value: ir.ClusterScopeStmt(body=seq(), span=S).replace(attrs={key: value}).attrs,
}
LOADED = var() + 1
X = var("x")


@pytest.mark.parametrize("holder", ATTR_HOLDERS)
@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (ir.FP32, ir.FP32), (ir.Mem.Vec, ir.Mem.Vec), (ir.TensorLayout.DN, ir.TensorLayout.DN),
        (ir.TileLayout.row_major, ir.TileLayout.row_major), (ir.PadValue.min, ir.PadValue.min),
        (ir.ArgDirection.InOut, ir.ArgDirection.InOut), (ir.PipeType.V, 4), (ir.CoreType.VECTOR, 1),
        (ir.SplitMode.LEFT_RIGHT, 2), (ir.NotifyOp.Set, 1), (ir.WaitCmp.Ge, 1), (ir.AtomicType.Add, 1),
        (ir.ReduceOp.Prod, 3), (True, True), (-(2**31), -(2**31)), ("s", "s"), (1.5, 1.5),
        ((ir.ArgDirection.Input,), [ir.ArgDirection.Input]), ((), []),
    ],
)  # fmt: skip
def test_each_attribute_value_reads_back_from_every_holder(holder, value, stored):
    got = ATTR_HOLDERS[holder]("key", value)["key"]
    assert type(got) is type(stored) and got == stored


@pytest.mark.parametrize("holder", ATTR_HOLDERS)
def test_references_in_attributes_read_back_as_the_same_objects(holder):
    hold = ATTR_HOLDERS[holder]
    assert hold("key", LOADED)["key"] is LOADED
    assert hold("key", [X])["key"][0] is X
    assert hold("dump_vars", [])["dump_vars"] == []


@pytest.mark.parametrize("holder", ATTR_HOLDERS)
@pytest.mark.parametrize(
    "value",
    [None, ir.CompactMode.null, ir.Level.CHIP, ir.FunctionType.AIC, {}, [1], [X, 1], [ir.input, 1]],
)
def test_every_holder_rejects_other_values_and_names_the_key(holder, value):
    with pytest.raises(TypeError, match="a_key"):
        ATTR_HOLDERS[holder]("a_key", value)
