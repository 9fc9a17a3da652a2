"""The registry: queries, call creation, and the declared facts of all operators."""

from __future__ import annotations

import importlib

import pytest

from pypto import InternalError, ir
from pypto.ir import op_registry
from pypto.ir.meaning import Elementwise, Opaque, Partial, operands_used, parse_formula
from tests.ir.op.operands import NOWHERE, Acc, Left, Right, Vec, rejects, tensor, tile

HERE = ir.Span("prog.py", 7, 3)
Effect = ir.ArgEffect


# -- creating calls ------------------------------------------------------------------------------------------


def test_unknown_operator_is_a_value_error() -> None:
    rejects(lambda: ir.create_op_call("tile.nope", [], NOWHERE), "Operator 'tile.nope' not found in registry")
    rejects(lambda: ir.create_op_call("nope", [], NOWHERE), "not found in registry", "function name")
    rejects(lambda: ir.get_op("tile.nope"), "tile.nope")


def test_internal_operators_cannot_be_called() -> None:
    rejects(lambda: ir.create_op_call("builtin.tensor.allreduce", [], NOWHERE), "internal-only")


def test_unknown_keyword_is_rejected_also_where_the_schema_is_empty() -> None:
    a = tile([8, 8])
    rejects(
        lambda: ir.create_op_call("tile.cmp", [a, a], {"zzz": 1}, NOWHERE),
        "Unknown kwarg 'zzz' for operator 'tile.cmp'",
    )
    rejects(lambda: ir.create_op_call("tile.add", [a, a], {"zzz": 1}, NOWHERE), "Unknown kwarg 'zzz'")


@pytest.mark.parametrize("value", ["x", True, 1.0, None])
def test_int_keyword_takes_only_ints(value: object) -> None:
    a = tile([8, 8])
    rejects(
        lambda: ir.create_op_call("tile.cmp", [a, a], {"cmp_type": value}, NOWHERE), "incompatible type",
        error=TypeError,
    )  # fmt: skip


def test_bool_keyword_rejects_an_int() -> None:
    a = tensor([8, 8])
    rejects(
        lambda: ir.create_op_call("tensor.matmul", [a, a], {"a_trans": 1}, NOWHERE), "incompatible type",
        error=TypeError,
    )  # fmt: skip


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
    with pytest.raises(InternalError) as internal:
        ir.create_op_call("test.deduce_raises_internal", [], HERE)
    assert not isinstance(internal.value, ValueError)


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


def test_memory_specs() -> None:
    spec = ir.get_op_memory_spec
    assert spec("tile.matmul") == {"input_constraints": [[Left], [Right]], "output_memory": Acc}
    assert spec("tile.load") == {"input_constraints": [], "output_memory": "deferred"}
    assert spec("tile.reshape") == {"input_constraints": [], "output_memory": "inherit_from_input"}
    assert spec("tile.store") == {"input_constraints": [[Vec, Acc]], "output_memory": None}
    assert spec("tile.row_expand_add") == {"input_constraints": [[Vec], [Vec], [Vec]], "output_memory": Vec}
    assert spec("tile.addsc") == {"input_constraints": [[Vec], [], [Vec]], "output_memory": Vec}
    assert spec("tile.sel")["input_constraints"] == [[Vec]] * 4
    assert spec("tile.mrgsort_format2")["input_constraints"] == [[Vec]] * 5
    assert spec("tensor.slice")["output_memory"] == "inherit_from_input"
    for name in (
        "tile.get_block_idx",
        "tile.gather_row",
        "tile.tpush_to_aic",
        "tensor.add",
        "system.fence",
        "nope",
    ):
        assert spec(name) is None, name


VECTOR_PAIRS = (
    "add sub mul div maximum minimum fmod and or shl shr cmp concat gatherb rsqrt scatter_mask sort32"
    " part_add part_mul"
    " part_max part_min row_sum row_max row_min row_prod row_argmax row_argmin row_expand row_expand_sub"
    " row_expand_mul row_expand_div row_expand_max row_expand_min row_expand_expdif col_sum col_argmax"
    " col_argmin"
    " col_expand col_expand_add col_expand_sub col_expand_mul col_expand_div col_expand_max col_expand_min"
    " col_expand_expdif"
)
VECTOR_SINGLES = (
    "abs neg exp log sqrt recip relu sin cos not cast expands fillpad fillpad_expand fillpad_inplace"
    " write gather_mask"
    " mrgsort_format1 lrelu adds subs muls divs fmods maximums minimums ands ors shls shrs cmps col_max"
    " col_min"
    " col_prod"
)


@pytest.mark.parametrize(("leaves", "count"), [(VECTOR_PAIRS, 2), (VECTOR_SINGLES, 1)])
def test_vector_operators_take_and_give_vector_tiles(leaves: str, count: int) -> None:
    for leaf in leaves.split():
        spec = ir.get_op_memory_spec(f"tile.{leaf}")
        assert spec == {"input_constraints": [[Vec]] * count, "output_memory": Vec}, leaf


READ_WRITE_0 = (
    "array.update_element builtin.tensor.barrier pld.tensor.barrier tile.assemble tile.batch_matmul_acc"
    " tile.fillpad_inplace tile.gather_row tile.gemv_acc tile.matmul_acc tile.matmul_mx_acc tile.scatter"
    " tile.scatter_mask tile.scatter_update tile.write"
)


def test_effects_of_in_place_operators() -> None:
    for name in READ_WRITE_0.split():
        assert ir.get_op_arg_effect(name, 0) is Effect.ReadWrite, name
    for name in ("pld.tensor.get", "pld.tile.get", "tensor.write", "tile.tget_scale_addr"):
        assert ir.get_op_arg_effect(name, 0) is Effect.Write, name
    for leaf in ("allreduce", "broadcast", "reduce_scatter"):
        assert [ir.get_op_arg_effect(f"pld.tensor.{leaf}", i) for i in (0, 1)] == [Effect.ReadWrite] * 2
    assert ir.get_op_arg_effect("pld.tensor.all_to_all_v", 4) is Effect.Write
    assert ir.get_op_arg_effect("pld.tensor.allgather", 2) is Effect.ReadWrite


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("tensor.assemble", 0),
        ("pld.tensor.put", 0),
        ("pld.tile.put", 0),
        ("pld.tile.remote_store", 1),
        ("tile.store", 2),
    ],
)
def test_atomic_write_also_reads(name: str, index: int) -> None:
    assert ir.get_op_arg_effect(name, index) is Effect.Write
    assert ir.get_op_arg_effect(name, index, atomic=1) is Effect.ReadWrite
    assert ir.get_op_arg_effect(name, index, atomic=ir.AtomicType.Add) is Effect.ReadWrite


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


def test_declared_effect_queries() -> None:
    assert ir.op_has_declared_arg_effect("pld.system.wait", 7)
    assert ir.op_has_declared_arg_effect("tile.store", 2) and not ir.op_has_declared_arg_effect(
        "tile.store", 0
    )
    assert ir.op_has_declared_arg_effects("tensor.set_validshape")
    assert not ir.op_has_declared_arg_effects("tensor.add")
    rejects(lambda: ir.op_has_declared_arg_effects("x.y"), "x.y")


def test_write_channels() -> None:
    channel = ir.get_op_write_channel
    dma = (
        "tile.store tile.mscatter tile.mgather tensor.assemble pld.tensor.put pld.tile.get"
        " pld.tensor.remote_store"
    )
    for name in dma.split():
        assert channel(name) is ir.WriteChannel.Dma, name
    assert channel("tensor.write") is ir.WriteChannel.Scalar
    assert channel("pld.system.notify") is None and channel("pld.tensor.allreduce") is None


def test_core_affinity_and_duplication() -> None:
    affinity = op_registry.declared_core_affinity
    for name in ("pld.tensor.put", "pld.tile.get", "prefetch.wait", "tile.alloc", "tile.tpop_from_aic"):
        assert affinity(name) == "vector", name
    assert affinity("tile.tpush_to_aiv") == "cube" and affinity("tile.create") == "shared"
    assert affinity("pld.system.notify") is None and affinity("tile.add") is None
    alone = [name for name in op_registry.registered_names() if op_registry.is_no_duplicate_op(name)]
    assert alone == ["pld.system.notify"]


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


SCHEMAS = {
    "tensor.matmul": "a_trans b_trans c_matrix_nz out_dtype", "tensor.matmul_acc": "a_trans b_trans",
    "tile.gemv_acc": "acc_phase", "pld.tensor.put": "atomic chunk_rows chunk_cols pipeline",
    "pld.tensor.get": "chunk_rows chunk_cols pipeline", "tensor.row_argmax": "axis keep_dim",
    "tile.move": "target_memory blayout slayout", "tile.create": "target_memory dtype flat_layout transpose",
    "tensor.create": "dtype init_value layout manual_dep", "tensor.slice": "clamp pad_value",
    "tile.slice": "pad_value",
    "tile.gather_compare": "cmp_mode count_dtype offset out_cols", "tensor.rsqrt": "high_precision",
    "tile.rsqrt": "",
    "tensor.paged_gather": "block_size col_off is_b_matrix is_trans max_indices size space",
    "tile.aiv_shard": "split lane_stride", "system.sync_set": "core_type event_id pipe ffts_mode",
    "pld.tensor.allreduce": "core_num mode op", "builtin.tensor.broadcast": "dtype root",
}  # fmt: skip


def test_keyword_schemas() -> None:
    for name, keys in SCHEMAS.items():
        assert sorted(ir.get_op(name).get_attr_keys()) == sorted(keys.split()), name


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
