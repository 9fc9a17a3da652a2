"""Programs as bytes: what survives, what the format looks like, which payloads are refused and how."""

from __future__ import annotations

import math

import msgpack
import pytest

from pypto import InternalError, ir
from tests.ir.nodes import S, assign, const, function, loop, seq, tensor, var

INDEX, INT64, FP16, FP32 = ir.INDEX, ir.INT64, ir.FP16, ir.FP32
TASK_ID = ir.ScalarType(ir.DataType.TASK_ID)
Mem = ir.MemorySpace


def again(node):
    return ir.deserialize(ir.serialize(node))


def payload(node):
    return msgpack.unpackb(ir.serialize(node))


def read(raw):
    return ir.deserialize(msgpack.packb(raw))


def op(name, *args, attrs=None, type_=None, **kwargs):
    return ir.Call(ir.Op(name), list(args), kwargs, attrs, type_ or ir.UnknownType(), S)


def typed(type_):
    return ir.Var("v", type_, S)


# --- what survives


def test_shared_nodes_come_back_as_one_object():
    x = var("x")
    total = ir.Add(x, x, INT64, S)
    back = again(ir.Mul(total, total, INT64, S))
    assert back.left is back.right
    assert back.left.left is back.left.right
    assert back.left.left is not x


def test_a_whole_program_is_equal_and_prints_alike():
    m = var("M", INDEX)
    x, out = tensor(m, 64, name="x"), tensor(m, 64, name="out")
    k = ir.Function(
        "k",
        [x, (out, ir.ParamDirection.Out)],
        [out.type],
        seq(ir.ReturnStmt([out], S)),
        S,
        ir.FunctionType.InCore,
        attrs={"split": 2, "note": "a"},
    )
    a, b, r = tensor(m, 64, name="a"), tensor(m, 64, name="b"), tensor(m, 64, name="r")
    i = var("i", INDEX)
    arg, result = ir.IterArg("acc", b.type, b, S), tensor(m, 64, name="acc_rv")
    call = ir.Call(
        ir.GlobalVar("k"), [a, arg], {},
        {"arg_directions": [ir.ArgDirection.Input, ir.ArgDirection.OutputExisting]}, out.type, S,
    )  # fmt: skip
    body = seq(assign(r, call), ir.YieldStmt([r], S))
    stmt = ir.ForStmt(i, const(0), m, const(1), [arg], body, [result], S, ir.ForKind.Parallel, {"x": 1.5})
    branch = ir.IfStmt(ir.Gt(m, const(0), ir.BOOL, S), ir.BreakStmt(S), None, [], S)
    main = function([a, (b, ir.ParamDirection.InOut)], stmt, branch, ir.ReturnStmt(S), name="main")
    program = ir.Program([k, main], "P", S)
    back = again(program)
    ir.assert_structural_equal(program, back)
    assert back.as_python(format=False) == program.as_python(format=False)
    assert back.name == "P"
    assert back["k"].param_directions == [ir.ParamDirection.In, ir.ParamDirection.Out]
    assert back["k"].split is ir.SplitMode.LEFT_RIGHT
    assert isinstance(back["main"].body.stmts[0].body.stmts[0].value.op, ir.GlobalVar)
    assert ir.serialize(back) == ir.serialize(program)


def test_every_scope_and_statement_class_survives():
    n = var("n", INDEX)
    inner = ir.EvalStmt(op("tile.abs", n), S)
    buffer = ir.WindowBuffer(ir.Var("buf", ir.PtrType(), S), const(64), True, False)
    while_arg = ir.IterArg("w", n.type, n, S)
    statements = [
        ir.InCoreScopeStmt(ir.SplitMode.UP_DOWN, "h", inner, S),
        ir.ClusterScopeStmt("c", inner, S),
        ir.HierarchyScopeStmt(ir.Level.HOST, ir.Role.Orchestrator, "", inner, S),
        ir.SpmdScopeStmt(n, True, "s", inner, S),
        ir.RuntimeScopeStmt(True, "", inner, S),
        ir.SplitAivScopeStmt(ir.SplitMode.NONE, body=inner, span=S),
        ir.CommDomainScopeStmt([0, 3], [buffer], "", inner, S),
        ir.WhileStmt(n, [while_arg], ir.YieldStmt([while_arg], S), [var("r", INDEX)], S),
        ir.InlineStmt("a = 1", ir.InlineLanguage.Python, S),
        ir.ContinueStmt(S),
        ir.EvalStmt(ir.TupleGetItemExpr(ir.MakeTuple([n, n], S), 1, S), S),
        seq(),
    ]
    program = ir.Program([function([n], *statements)], "P", S)
    ir.assert_structural_equal(program, again(program), True)  # window buffers are compared by identity


def test_submits_keep_their_fields():
    a, t = tensor(4, name="a"), ir.Var("t", TASK_ID, S)
    submit = ir.Submit(
        ir.GlobalVar("k"), [a], [t], ir.TupleType([a.type, TASK_ID]), S,
        core_num=const(4), sync_start=True, allow_early_resolve=True, predicate=ir.Gt(t, t, ir.BOOL, S),
    )  # fmt: skip
    f = function([a, t], ir.EvalStmt(submit, S))
    back = again(f)
    ir.assert_structural_equal(f, back)
    value = back.body.stmts[0].expr
    assert value.deps[0] is back.params[1] is value.predicate.left


@pytest.mark.parametrize(
    "type_",
    [
        ir.ScalarType(INT64),
        ir.TensorType([], FP32),
        ir.TensorType([8], FP32, None, ir.TensorView([2], ir.TensorLayout.DN, [4], ir.PadValue.max)),
        ir.DistributedTensorType([8], FP32, ir.WindowBuffer(ir.Var("b", ir.PtrType(), S), const(32))),
        ir.TileType([16, 16], FP32, None, None, Mem.Acc),
        ir.TileType(
            [16, 16], FP16, None,
            ir.TileView([8, 16], [16, 1], 4, ir.TileLayout.col_major, ir.TileLayout.row_major, 1024,
                        ir.PadValue.zero, ir.CompactMode.normal), Mem.Vec,
        ),
        ir.ArrayType(ir.INT32, 8),
        ir.TupleType([ir.ScalarType(INT64), ir.TupleType([])]),
        ir.UnknownType(),
        ir.PtrType(),
        ir.CommCtxType(),
        ir.AsyncEventType(),
    ],
)  # fmt: skip
def test_every_type_survives(type_):
    back = again(typed(type_)).type
    assert type(back) is type(type_)
    ir.assert_structural_equal(typed(type_), ir.Var("v", back, S), True)


def test_memory_references_share_their_base_with_the_allocation():
    base = ir.Var("mem_vec_0", ir.PtrType(), S)
    pinned = ir.MemRef(base, const(64, INT64), 4096, S)
    tile = ir.TileType([16, 16], FP32, pinned, None, Mem.Vec)
    slots = ir.MemRef("c", slots=2)[1]
    other = ir.TileType([16, 16], FP32, slots, None, Mem.Vec)
    back = again(
        seq(assign(base, op("tile.alloc")), assign(ir.Var("t", tile, S), base), assign(typed(other), base))
    )
    alloc, use, declared = back.stmts
    memref = use.var.type.memref
    assert memref.base_ is alloc.var
    assert (memref.byte_offset_.value, memref.size_, memref.is_pinned_) == (64, 4096, False)
    memref = declared.var.type.memref
    assert (memref.is_pinned_, memref.slot_count_, memref.slot_index_.value) == (True, 2, 1)


def test_attributes_of_every_kind_keep_kind_order_and_identity():
    x, t = var("x"), ir.Var("t", TASK_ID, S)
    attrs = {
        "i": -3, "b": True, "s": "text", "f": 0.5, "dt": FP16, "m": Mem.LeftScale, "l": ir.TensorLayout.NZ,
        "tl": ir.TileLayout.col_major, "p": ir.PadValue.min, "d": ir.ArgDirection.NoDep,
        "arg_directions": [ir.ArgDirection.Input], "arg_direction_overrides": [0, 1],
        "dump_vars": [], "empty": [],
        "vars": [x, x], "v": x, "e": ir.Neg(x, INT64, S),
    }  # fmt: skip
    call = op("tile.abs", x, attrs=attrs, mode=2, target_type=FP16)
    back = again(call)
    assert list(back.attrs) == list(attrs)
    assert list(back.kwargs.items()) == [("mode", 2), ("target_type", FP16)]
    for key in (
        "i",
        "b",
        "s",
        "f",
        "dt",
        "m",
        "l",
        "tl",
        "p",
        "d",
        "arg_directions",
        "arg_direction_overrides",
    ):
        assert back.attrs[key] == attrs[key] and type(back.attrs[key]) is type(attrs[key])
    assert back.attrs["dump_vars"] == back.attrs["empty"] == []
    assert back.attrs["v"] is back.attrs["vars"][0] is back.args[0] is back.attrs["e"].operand
    scope = ir.InCoreScopeStmt(body=seq(), span=S).replace(attrs={"task_id_var": t})
    user = ir.InCoreScopeStmt(body=seq(), span=S).replace(attrs={"manual_dep_edges": [t]})
    first, second = again(seq(scope, user)).stmts
    assert first.attrs["task_id_var"] is second.attrs["manual_dep_edges"][0]


def test_numbers_survive_bit_by_bit():
    values = [math.nan, math.inf, -math.inf, -0.0, 0.1, 1e308]
    back = again(ir.MakeTuple([ir.ConstFloat(v, FP32, S) for v in values], S))
    assert [repr(e.value) for e in back.elements] == [repr(v) for v in values]
    ints = [-(2**63), 2**63 - 1, 0]
    assert [e.value for e in again(ir.MakeTuple([const(v, INT64) for v in ints], S)).elements] == ints
    assert again(ir.ConstBool(True, S)).value is True


def test_comments_spans_and_hints_survive():
    place = ir.Span("f.py", 3, 4, 5, 6)
    stmt = ir.attach_leading_comments(ir.EvalStmt(var("x"), place), ["one", "two"])
    back = again(stmt)
    assert back.leading_comments == ["one", "two"]
    assert (back.span.filename, back.span.begin_line, back.span.end_column) == ("f.py", 3, 6)
    assert not back.expr.span.is_valid()
    assert back.expr.name_hint == "x"


def test_depth_costs_no_recursion_in_either_direction():
    x = var("x")
    chain = x
    for _ in range(5_000):
        chain = ir.Add(chain, x, INT64, S)
    back = again(chain)
    assert back.right is back.left.right
    assert ir.structural_equal(chain, back, True)


def test_references_are_resolved_wherever_they_stand():
    n = var("n", INDEX)
    scope = ir.SpmdScopeStmt(n, body=ir.EvalStmt(op("tile.abs", n), S), span=S)
    back = again(scope)
    assert back.core_num is back.body.expr.args[0]
    view = ir.TileView([n, 16], None, n)
    tile = again(typed(ir.TileType([16, 16], FP32, None, view, Mem.Vec))).type.tile_view
    assert tile.valid_shape[0] is tile.start_offset
    raw = payload(ir.Add(n, n, INDEX, S))
    fields = raw["fields"]
    fields["left"], fields["right"] = fields["right"], fields["left"]
    swapped = read(raw)
    assert swapped.left is swapped.right


# --- the format


def test_the_format_is_as_documented():
    x = var("x")
    raw = payload(ir.Add(x, x, INT64, S))
    assert list(raw) == ["fields", "id", "type"]
    assert (raw["id"], raw["type"]) == (0, "Add")
    assert list(raw["fields"]) == ["left", "right", "span", "type"]
    assert raw["fields"]["left"]["id"] == 1
    assert raw["fields"]["right"] == {"ref": 1}
    assert raw["fields"]["type"] == {"dtype": 0x14, "type_kind": "ScalarType"}
    assert raw["fields"]["span"] == {
        "begin_column": -1, "begin_line": -1, "end_column": -1, "end_line": -1, "filename": "",
    }  # fmt: skip


def test_types_views_and_operators_have_their_documented_keys():
    memref = ir.MemRef("mem_vec_0", 0, 64)
    tile = ir.TileType([4, 4], FP32, memref, ir.TileView([2, 4]), Mem.Vec)
    raw = payload(typed(tile))["fields"]["type"]
    assert list(raw) == ["dtype", "memory_space", "memref", "shape", "tile_view", "type_kind"]
    assert raw["memory_space"] == 1
    assert list(raw["memref"]) == ["base", "base_node", "byte_offset", "size"]
    assert raw["tile_view"]["blayout"] == "row_major"
    assert raw["tile_view"]["compact"] == "null"
    assert raw["tile_view"]["start_offset"] is None
    assert payload(typed(ir.PtrType()))["fields"]["type"] == {"type_kind": "Ptr"}
    array = payload(typed(ir.ArrayType(ir.INT32, 3)))["fields"]["type"]
    assert list(array) == ["dtype", "shape", "type_kind"] and len(array["shape"]) == 1
    call = payload(op("tile.abs", attrs={"m": Mem.Vec, "n": 3}, dtype=FP16))["fields"]
    assert call["op"] == {"is_global_var": False, "name": "tile.abs"}
    assert call["kwargs"] == [{"key": "dtype", "value": {"code": 0x33, "type": "DataType"}}]
    assert call["attrs"] == [
        {"key": "m", "value": {"type": "MemorySpace", "value": "Vec"}},
        {"key": "n", "value": 3},
    ]
    program = payload(ir.Program([function([])], "P", S))["fields"]
    assert program["functions"][0]["key"] == {"is_global_var": True, "name": "f"}
    memref_node = payload(memref)["fields"]
    assert {"base", "byte_offset", "size", "is_pinned", "slot_count", "slot_index"} <= set(memref_node)


def test_bytes_after_the_first_object_are_ignored():
    assert ir.deserialize(ir.serialize(var("x")) + b"more").name_hint == "x"


# --- older payloads


def test_older_payloads_lack_fields_that_came_later():
    view = ir.TensorView([2], ir.TensorLayout.ND)
    raw = payload(typed(ir.TensorType([8], FP32, None, view)))
    del raw["fields"]["type"]["tensor_view"]["valid_shape"], raw["fields"]["type"]["tensor_view"]["pad"]
    assert read(raw).type.tensor_view.pad is ir.PadValue.null
    raw = payload(function([var("a"), var("b")], loop(seq())))
    for name in ("func_type", "param_directions", "level", "role", "attrs", "requires_runtime_binding"):
        del raw["fields"][name]
    raw["fields"]["split"] = 1
    body = raw["fields"]["body"]["fields"]["stmts"][0]["fields"]
    del body["kind"], body["attrs"], body["leading_comments"]
    back = read(raw)
    assert back.func_type is ir.FunctionType.Opaque and back.split is ir.SplitMode.UP_DOWN
    assert back.param_directions == [ir.ParamDirection.In] * 2
    assert back.body.stmts[0].kind is ir.ForKind.Sequential
    scopes = [
        ir.InCoreScopeStmt(body=seq(), span=S), ir.ClusterScopeStmt(body=seq(), span=S),
        ir.HierarchyScopeStmt(ir.Level.HOST, body=seq(), span=S), ir.SpmdScopeStmt(4, body=seq(), span=S),
        ir.RuntimeScopeStmt(body=seq(), span=S), ir.CommDomainScopeStmt([], [], body=seq(), span=S),
        ir.SplitAivScopeStmt(ir.SplitMode.NONE, body=seq(), span=S),
    ]  # fmt: skip
    for scope in scopes:
        raw = payload(scope)
        for name in ("name_hint", "sync_start", "manual", "attrs", "leading_comments"):
            raw["fields"].pop(name, None)
        ir.assert_structural_equal(read(raw), scope)
    raw = payload(op("tile.abs", var("x")))
    del raw["fields"]["attrs"]
    assert read(raw).attrs == {}
    raw = payload(ir.MemRef("m", 0, 64))
    for name in ("is_pinned", "slot_count", "slot_index"):
        del raw["fields"][name]
    back = read(raw)
    assert (back.is_pinned_, back.slot_count_, back.slot_index_) == (False, 1, None)


@pytest.mark.parametrize(
    "node, name",
    [
        (var("x"), "name_hint"),
        (op("f"), "kwargs"),
        (ir.HierarchyScopeStmt(ir.Level.HOST, body=seq(), span=S), "level"),
        (ir.SplitAivScopeStmt(ir.NONE, body=seq(), span=S), "split"),
    ],
)
def test_fields_that_were_always_there_are_required(node, name):
    raw = payload(node)
    del raw["fields"][name]
    with pytest.raises(RuntimeError, match=f"Missing required field: {name}"):
        read(raw)


def test_old_memory_references_share_a_base_per_name():
    def tile():
        return typed(ir.TileType([4, 4], FP32, ir.MemRef("mem_vec_0", 0, 64), None, Mem.Vec))

    raw = payload(ir.MakeTuple([tile(), tile()], S))
    for element in (*raw["fields"]["elements"], *raw["fields"]["type"]["types"]):
        del (element["fields"]["type"] if "fields" in element else element)["memref"]["base_node"]
    first, second = read(raw).elements
    assert first.type.memref.base_ is second.type.memref.base_


def test_directions_beside_the_attributes_are_lifted_into_them():
    raw = payload(op("f", var("x")))
    raw["fields"]["arg_directions"] = [2]
    assert read(raw).arg_directions == [ir.ArgDirection.InOut]
    raw["fields"]["arg_directions"] = [2, 2]
    with pytest.raises(ValueError, match="2 arg_directions for 1 arguments"):
        read(raw)
    raw["fields"]["arg_directions"] = [9]
    with pytest.raises(ValueError, match="no argument direction"):
        read(raw)


# --- what is refused


@pytest.mark.parametrize("data", [b"", b"\x83\xa6fields", b"\xc1", b"\x82\xa1a"])
def test_malformed_bytes_are_runtime_errors(data):
    with pytest.raises(RuntimeError):
        ir.deserialize(data)


def test_bytes_that_hold_no_node_are_value_errors():
    with pytest.raises(ValueError, match="Expected map for IR node"):
        ir.deserialize(b"not a program")
    with pytest.raises(ValueError, match="Expected map for IR node"):
        raw = payload(ir.Neg(var("x"), INT64, S))
        raw["fields"]["operand"] = 3
        read(raw)


def test_damaged_payloads_name_what_is_wrong():
    def damaged(change, node=None):
        raw = payload(node if node is not None else ir.Neg(var("x"), INT64, S))
        change(raw)
        return lambda: read(raw)

    cases = [
        (InternalError, "has no 'type'", damaged(lambda raw: raw.pop("type"))),
        (TypeError, "Sideways", damaged(lambda raw: raw.update(type="Sideways"))),
        (
            RuntimeError,
            "SquareType",
            damaged(lambda raw: raw["fields"]["type"].update(type_kind="SquareType")),
        ),
        (
            ValueError,
            "Invalid reference ID: 9",
            damaged(lambda raw: raw["fields"].update(operand={"ref": 9})),
        ),
        (
            ValueError,
            "Invalid reference ID: 0",
            damaged(lambda raw: raw["fields"].update(operand={"ref": 0})),
        ),
        (RuntimeError, "Missing required field: operand", damaged(lambda raw: raw["fields"].pop("operand"))),
        (RuntimeError, "must be int", damaged(lambda raw: raw["fields"].update(value="3"), const(3))),
        (RuntimeError, "must be Expr", damaged(_yield_as_operand)),
        (TypeError, "'k' has a value", damaged(_bad_envelope, op("f", attrs={"k": Mem.Vec}))),
        (ValueError, "no member named", damaged(_bad_space, op("f", attrs={"k": Mem.Vec}))),
        (
            ValueError,
            "no argument direction",
            damaged(_bad_direction, op("f", attrs={"k": ir.ArgDirection.Input})),
        ),
        (ValueError, "chunk_config", damaged(lambda raw: raw["fields"].update(chunk_config={}), loop(seq()))),
    ]
    for error, message, attempt in cases:
        with pytest.raises(error, match=message) as caught:
            attempt()
        assert type(caught.value) is error


def _yield_as_operand(raw):
    raw["fields"]["operand"] = payload(ir.BreakStmt(S)) | {"id": 7}


def _bad_envelope(raw):
    raw["fields"]["attrs"][0]["value"] = {"type": "Nothing", "value": 1}


def _bad_space(raw):
    raw["fields"]["attrs"][0]["value"]["value"] = "Attic"


def _bad_direction(raw):
    raw["fields"]["attrs"][0]["value"]["value"] = 17


def test_only_nodes_can_be_serialized():
    with pytest.raises(TypeError, match="put a type into a Var"):
        ir.serialize(ir.ScalarType(INT64))
    with pytest.raises(TypeError):
        ir.deserialize("text")


def test_files(tmp_path):
    path = tmp_path / "p.bin"
    ir.serialize_to_file(var("x"), path)
    assert ir.deserialize_from_file(path).name_hint == "x"
    with pytest.raises(ValueError, match=r"missing\.bin"):
        ir.deserialize_from_file(tmp_path / "missing.bin")
    with pytest.raises(ValueError, match="no_folder"):
        ir.serialize_to_file(var("x"), tmp_path / "no_folder" / "p.bin")


def test_communication_groups_of_older_programs_are_ignored():
    program = ir.Program([function([], ir.BreakStmt(S))], "P", S)
    raw = payload(program)
    raw["fields"]["comm_groups"] = [{"name": "g"}]
    assert ir.structural_equal(read(raw), program)
