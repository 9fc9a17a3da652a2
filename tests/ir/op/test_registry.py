"""The registry: queries, call creation, and the declared facts of all operators."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import pytest

from pypto import InternalError, ir
from pypto.ir import op_registry
from pypto.ir.meaning import Elementwise, Opaque, Partial, operands_used, parse_formula
from pypto.pypto_core import testing
from tests.ir.op import declared_facts as facts
from tests.ir.op.operands import NOWHERE, Vec, rejects, tensor, tile

HERE = ir.Span("prog.py", 7, 3)
Effect = ir.ArgEffect


# -- creating calls ------------------------------------------------------------------------------------------


def test_unknown_operator_is_a_value_error() -> None:
    rejects(lambda: ir.create_op_call("tile.nope", [], NOWHERE), "Operator 'tile.nope' not found in registry")
    rejects(lambda: ir.create_op_call("nope", [], NOWHERE), "not found in registry", "function name")
    rejects(lambda: ir.get_op("tile.nope"), "tile.nope")


INTERNAL = (
    "all_to_all all_to_all_v allgather allreduce allreduce_ring barrier broadcast reduce_scatter"
)  # fmt: skip


@pytest.mark.parametrize("leaf", INTERNAL.split())
def test_internal_operators_cannot_be_called(leaf: str) -> None:
    name = f"builtin.tensor.{leaf}"
    assert ir.is_op_registered(name)
    rejects(lambda: ir.create_op_call(name, [], NOWHERE), name, "internal-only")


def test_unknown_keyword_is_rejected_also_where_the_schema_is_empty() -> None:
    a = tile([8, 8])
    rejects(
        lambda: ir.create_op_call("tile.cmp", [a, a], {"zzz": 1}, NOWHERE),
        "Unknown kwarg 'zzz' for operator 'tile.cmp'",
    )
    for name, args in (("tile.add", [a, a]), ("prefetch.make_context", []), ("pld.system.world_size", [])):
        rejects(
            lambda name=name, args=args: ir.create_op_call(name, args, {"zzz": 1}, NOWHERE),
            f"Unknown kwarg 'zzz' for operator '{name}'", "takes no kwargs",
        )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "args", "key", "values"),
    [
        ("test.op", [tensor([4])], "int_attr", ["x", True, 1.0, None, ir.FP32]),
        ("test.op", [tensor([4])], "bool_attr", [0, 1, "True", None]),
        ("test.op", [tensor([4])], "string_attr", [1, True, None]),
        ("tensor.create", [ir.MakeTuple([], NOWHERE)], "init_value", [1, True, "1.0"]),
        ("tensor.create", [ir.MakeTuple([], NOWHERE)], "dtype", ["fp32", True, 1.0]),
        ("tensor.create", [ir.MakeTuple([], NOWHERE)], "layout", [0, ir.TileLayout.row_major]),
        ("tile.load", [tensor([8])], "target_memory", [1, ir.PadValue.zero]),
    ],
)
def test_keywords_of_another_type_are_type_errors(
    name: str, args: list[ir.Expr], key: str, values: list[object]
) -> None:
    for value in values:
        with pytest.raises(TypeError, match=f"'{key}'.*incompatible type"):
            ir.create_op_call(name, args, {key: value}, NOWHERE)


def test_dtype_keyword_accepts_a_code_and_stores_the_dtype() -> None:
    call = ir.create_op_call("tensor.cast", [tensor([8])], {"target_type": 0x13, "mode": 2}, NOWHERE)
    assert call.kwargs["target_type"] is ir.INT32


def test_enum_members_satisfy_int_keywords_and_are_stored_as_numbers() -> None:
    call = ir.create_op_call(
        "tile.store",
        [tile([8, 8]), ir.MakeTuple([], NOWHERE), tensor([8, 8])],
        {"atomic": ir.AtomicType.Add},
        NOWHERE,
    )
    assert call.kwargs == {"atomic": 1} and type(call.kwargs["atomic"]) is int


def test_location_is_appended_only_for_a_valid_span_and_the_class_is_kept() -> None:
    with pytest.raises(TypeError) as caught:
        ir.create_op_call("test.deduce_raises_type", [], HERE)
    assert str(caught.value) == "test.deduce_raises_type always fails at prog.py:7:3"
    with pytest.raises(TypeError) as caught:
        ir.create_op_call("test.deduce_raises_type", [], NOWHERE)
    assert str(caught.value) == "test.deduce_raises_type always fails"
    for span in (HERE, NOWHERE):
        with pytest.raises(InternalError) as internal:
            ir.create_op_call("test.deduce_raises_internal", [], span)
        assert type(internal.value) is InternalError


def test_wrong_argument_count_and_kind_name_operator_and_operand() -> None:
    a, t = tile([8, 8]), tensor([8, 8])
    rejects(lambda: ir.create_op_call("tile.add", [a], NOWHERE), "tile.add", "exactly 2 arguments", "got 1")
    rejects(
        lambda: ir.create_op_call("tile.add", [a, t], NOWHERE), "second argument to be a TileType", "'rhs'"
    )
    rejects(
        lambda: ir.create_op_call("tile.load", [a, a, a, a], NOWHERE),
        "requires first argument to be a TensorType",
    )


def test_result_takes_the_output_space_of_the_operator() -> None:
    free = tile([8, 8], space=None)
    assert ir.create_op_call("tile.add", [free, free], NOWHERE).type.memory_space is Vec


def test_operator_object_is_shared_and_knows_its_keywords() -> None:
    op = ir.get_op("tile.load")
    assert op is ir.get_op("tile.load") and op.name == "tile.load"
    assert op.has_attr("clamp") and op.get_attr_keys() == ["target_memory", "clamp"]
    call = ir.create_op_call(
        "test.op", [tensor([4])], {"int_attr": 3, "bool_attr": True, "string_attr": "s"}, NOWHERE
    )
    assert call.op is ir.get_op("test.op") and list(call.kwargs) == ["int_attr", "bool_attr", "string_attr"]


# -- declared facts ------------------------------------------------------------------------------------------


def test_every_operator_has_exactly_the_memory_spaces_of_the_table() -> None:
    assert facts.MEMORY.keys() <= set(op_registry.registered_names())
    for name in (*op_registry.registered_names(), "tile.nope"):
        inputs, output = facts.MEMORY.get(name, (None, None))
        expected = None if inputs is None else {"input_constraints": inputs, "output_memory": output}
        assert ir.get_op_memory_spec(name) == expected, name


def test_every_operator_has_exactly_the_effects_of_the_table() -> None:
    assert facts.EFFECTS.keys() <= set(op_registry.registered_names())
    for name in op_registry.registered_names():
        declared = facts.EFFECTS.get(name, {})
        for index in range(8):
            effect = ir.get_op_arg_effect(name, index)
            assert effect is declared.get(index, Effect.Read), (name, index)
            assert ir.op_has_declared_arg_effect(name, index) is (index in declared), (name, index)
        assert ir.get_op_arg_effect(name, 99) is Effect.Read
        assert ir.op_has_declared_arg_effects(name) is bool(declared), name


@pytest.mark.parametrize(("name", "index"), facts.ATOMIC.items())
def test_atomic_write_also_reads(name: str, index: int) -> None:
    for plain in ({}, {"atomic": 0}, {"atomic": ir.AtomicType.None_}):
        assert ir.get_op_arg_effect(name, index, **plain) is Effect.Write
    for atomic in (1, 7, ir.AtomicType.Add):
        assert ir.get_op_arg_effect(name, index, atomic=atomic) is Effect.ReadWrite


def test_effects_that_other_keywords_steer() -> None:
    effect = ir.get_op_arg_effect
    assert effect("tile.store", 0) is Effect.Read and effect("tile.store", 99) is Effect.Read
    assert effect("pld.system.notify", 0) is Effect.ReadWrite
    assert effect("pld.system.notify", 0, op=ir.NotifyOp.Set) is Effect.Write
    assert effect("system.syncall", 0) is Effect.Read
    assert effect("system.syncall", 0, mode="soft") is Effect.ReadWrite
    mat = {"target_memory": ir.MemorySpace.Mat}
    assert effect("tile.mgather", 2, coalesce=1, **mat) is Effect.Write
    assert effect("tile.mgather", 2, coalesce=1) is Effect.Read
    assert effect("tile.mgather", 2, coalesce=0, **mat) is Effect.Read
    rejects(lambda: effect("tile.nope", 0), "tile.nope")
    rejects(lambda: effect("tile.store", 2, atomic="x"), "incompatible type", error=TypeError)


def test_every_operator_has_exactly_the_write_channel_of_the_table() -> None:
    for name in op_registry.registered_names():
        assert ir.get_op_write_channel(name) is facts.CHANNELS.get(name), name


@pytest.mark.parametrize("query", [ir.get_op_write_channel, ir.op_has_declared_arg_effects, ir.get_op])
def test_questions_about_an_unknown_operator_are_value_errors(query: Callable[[str], object]) -> None:
    rejects(lambda: query("x.y"), "x.y")
    rejects(lambda: ir.get_op_arg_effect("x.y", 0), "x.y")
    rejects(lambda: ir.op_has_declared_arg_effect("x.y", 0), "x.y")
    assert not ir.is_op_registered("x.y") and ir.is_op_registered("tile.add")


def test_only_these_operators_have_a_core_affinity_and_only_notify_may_not_be_duplicated() -> None:
    for name in op_registry.registered_names():
        assert testing.get_declared_core_affinity(name) == facts.AFFINITIES.get(name), name
        assert testing.is_no_duplicate_op(name) is (name == "pld.system.notify"), name
    for query in (testing.get_declared_core_affinity, testing.is_no_duplicate_op):
        rejects(lambda query=query: query("x.y"), "x.y")


def test_tile_results_share_a_buffer_only_where_the_tables_allow_it() -> None:
    for name in op_registry.registered_names():
        if name.startswith("tile."):
            definition = op_registry.get_op_def(name)
            assert definition is not None
            assert definition.no_alias == facts.APART.get(name, ()), name
            assert definition.views is (name in facts.VIEWS), name


def test_results_that_are_an_argument() -> None:
    reuses = {
        name: definition.reuses
        for name in op_registry.registered_names()
        if (definition := op_registry.get_op_def(name)) is not None and definition.reuses is not None
    }
    assert reuses == {
        "tensor.assemble": 0, "tensor.set_validshape": 0, "tile.store": 2, "tile.mscatter": 2,
        "tile.matmul_acc": 0,
        "tile.batch_matmul_acc": 0, "tile.gemv_acc": 0, "tile.matmul_mx_acc": 0, "tile.fillpad_inplace": 0,
        "tile.scatter": 0, "tile.scatter_mask": 0, "tile.scatter_update": 0, "tile.gather_row": 0,
        "tile.tget_scale_addr": 0, "pld.tensor.barrier": 0,
            "pld.tensor.allreduce": 0, "pld.tensor.reduce_scatter": 0, "pld.tensor.broadcast": 0,
            "pld.tensor.allgather": 1, "pld.tensor.all_to_all": 1, "pld.tensor.all_to_all_v": 1,
    }  # fmt: skip


def test_every_operator_has_exactly_the_keywords_of_the_table() -> None:
    assert facts.SCHEMAS.keys() <= set(op_registry.registered_names())
    for name in op_registry.registered_names():
        keys = sorted(facts.SCHEMAS.get(name, "").split())
        op = ir.get_op(name)
        assert sorted(op.get_attr_keys()) == keys and all(map(op.has_attr, keys)), name


def test_every_formula_reads_only_arguments_that_the_operator_has() -> None:
    for name in op_registry.registered_names():
        definition = op_registry.get_op_def(name)
        assert definition is not None
        meaning = definition.meaning
        if isinstance(meaning, (Elementwise, Partial)):
            parse_formula(meaning.formula)
            assert max(operands_used(meaning.formula)) < len(definition.params), name


def test_every_tensor_and_tile_operator_declares_a_meaning() -> None:
    for name in op_registry.registered_names():
        definition = op_registry.get_op_def(name)
        assert definition is not None
        if definition.category in ("TensorOp", "TileOp") and isinstance(definition.meaning, Opaque):
            assert "no declared meaning" not in definition.meaning.reason, name


def test_registering_a_name_twice_or_without_effects_is_an_internal_error() -> None:
    with pytest.raises(InternalError):
        op_registry.register("tile.add", "", lambda args, kwargs: ir.UnknownType.get())
    with pytest.raises(InternalError, match="declares no effect"):
        op_registry.register("tile.fresh", "a: tile", lambda args, kwargs: args[0].type, reuses=0)
    with pytest.raises(InternalError, match="write channel"):
        op_registry.register("tile.fresh", "", lambda args, kwargs: args[0].type, channel=ir.WriteChannel.Dma)


# -- conversions ---------------------------------------------------------------------------------------------


def test_conversion_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    # Rules are for the whole process otherwise. The package attribute of that name is the decorator.
    monkeypatch.setattr(importlib.import_module("pypto.ir.op_conversion"), "_CONVERSIONS", {})
    assert ir.has_op_conversion("tensor.add") and ir.has_op_conversion("pld.tensor.put")
    assert not ir.has_op_conversion("test.tensor_op_no_conv") and not ir.has_op_conversion("tensor.dim")

    @ir.op_conversion("test.converted")
    def convert(ctx: ir.ConversionContext, args: list, kwargs: list, span: ir.Span) -> ir.Expr:
        doubled = ctx.let("d", ir.create_op_call("tile.add", [args[0], args[0]], span))
        return ir.create_op_call("tile.exp", [doubled], span)

    from pypto.ir.op_conversion import convert_call

    converted = convert_call("test.converted", [tile([8, 8])], [], NOWHERE)
    assert converted is not None
    statements, result = converted
    assert len(statements) == 1 and result.args[0] is statements[0].var
    ir.register_op_conversion("test.renamed", "tile.neg")
    renamed = convert_call("test.renamed", [tile([8, 8])], [], NOWHERE)
    assert renamed is not None and renamed[1].op.name == "tile.neg"


def test_custom_conversions_get_pairs_and_give_statements_or_a_replacement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from pypto.ir.op_conversion import convert_call

    monkeypatch.setattr(importlib.import_module("pypto.ir.op_conversion"), "_CONVERSIONS", {})
    given = []

    def bare(args: list, kwargs: list, span: ir.Span) -> ir.Expr:
        given.append(kwargs)
        return args[0]

    operand, stmt = tile([8, 8]), ir.BreakStmt(NOWHERE)
    ir.register_op_conversion_custom("test.bare", bare)
    ir.register_op_conversion_custom("test.listed", lambda args, kwargs, span: ([stmt], args[0]))
    for name, statements in (("test.bare", []), ("test.listed", [stmt])):
        converted = convert_call(name, [operand], [("k", 1)], NOWHERE)
        assert converted is not None
        assert list(converted[0]) == statements and converted[1] is operand
    assert given == [[("k", 1)]]
