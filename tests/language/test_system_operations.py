"""Operations of `pl.system`, `pl.prefetch` and `pld` from text to text: the canonical form of each, and the
type that its variable is annotated with."""

from __future__ import annotations

import pytest

import pypto.language as pl
from pypto import ir
from tests.language.source import stmts_of

PARAMS = (
    "e: pl.Scalar[pl.INDEX], c: pl.Scalar[pl.INT32], ffts: pl.Tensor[[256], pl.INT64], "
    "ws: pl.Tensor[[64], pl.INT32], x: pl.Tensor[[64, 64], pl.FP32], line: pl.Tensor[[1, 1, 256], pl.FP32], "
    "t: pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec], d: pld.DistributedTensor[[64, 64], pl.FP32], "
    "s: pld.DistributedTensor[[4, 1], pl.INT32], task: pl.Scalar[pl.TASK_ID]"
)


def survives(body: str, kind: str = "(type=pl.FunctionType.InCore)") -> ir.Function:
    """The function of the statements, after its text has been read back unchanged."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    function = pl.parse(f"@pl.function{kind}\ndef f({PARAMS}):\n{lines}\n")
    again = pl.parse(function.as_python())
    ir.assert_structural_equal(function, again)
    assert again.as_python() == function.as_python()
    return function


SET, WAIT = "pl.system.sync_set", "pl.system.sync_wait"
SET_3, WAIT_3 = f"{SET}(pipe=pl.PipeType.MTE3, event_id=3", f"{WAIT}(pipe=pl.PipeType.V, event_id=3"
ZERO = "pl.const(0, pl.INT32)"
PIPES = "dir_mask=3, slot_size=64, slot_num=2, local_slot_num=4, id=1"
LANES = "tpush_to_aiv(t, split=1, lane_stride=4, id=2)"
SOFT = 'pl.system.syncall(mode="soft", core_type="aiv_only", gm_workspace=ws, used_cores='
PUT, NONE = "pld.tensor.put(d, c, x", "atomic=pl.AtomicType.None_"
CHUNKS = "chunk_rows=4, chunk_cols=32, pipeline=True"
REGION = "[0, 0], [8, 0], [8, 64]"
STATEMENTS = [
    ("pl.system.sync_src(set_pipe=pl.PipeType.MTE2, wait_pipe=pl.PipeType.V, event_id=0)", None),
    ("pl.system.sync_dst(set_pipe=pl.PipeType.MTE2, wait_pipe=pl.PipeType.V, event_id=0)", None),
    (f"{SET}(3, pipe=pl.PipeType.MTE3, ffts_mode=1)", f"{SET_3}, ffts_mode=1)"),
    (f"{SET}(e, pipe=pl.PipeType.MTE3, ffts_mode=2, core_type='aic')", None),
    (f"{WAIT}(3, pipe=pl.PipeType.V, core_type='aiv')", f"{WAIT_3}, core_type='aiv')"),
    (f"{WAIT}(e, pipe=pl.PipeType.V)", None),
    ("pl.system.set_ffts(ffts)", None),
    ("pl.system.bar_v()", None),
    ("pl.system.bar_m()", None),
    ("pl.system.bar_all()", None),
    ("pl.system.fence()", None),
    ("pl.system.cacheinvalid()", None),
    ("pl.system.cacheinvalid(x, [4, e], [0, e])", None),
    ("pl.system.syncall()", "pl.system.syncall(core_type='mix')"),
    (f"{SOFT}4)", None),
    (f"{SOFT}c)", None),
    (f"{SOFT}0)", None),
    ("pl.system.tfree_to_aic(t)", None),
    ("pl.system.tfree_to_aiv(t, split=1, id=2)", None),
    (
        "pl.system.aic_initialize_pipe(dir_mask=1, slot_size=64)",
        f"pl.system.aic_initialize_pipe({ZERO}, {ZERO}, dir_mask=1, slot_size=64)",
    ),
    (f"pl.system.aiv_initialize_pipe(c, c, {PIPES})", None),
    (f"pl.{LANES}", f"pl.tile.{LANES}"),
    ("pl.system.tpush_to_aic(t, split=0)", "pl.tile.tpush_to_aic(t, split=0)"),
    ("pld.system.notify(s, c, [0, 0], 1, op=pld.NotifyOp.Set)", "pld.system.notify(s, c, [0, 0], 1, op=1)"),
    (
        "pld.system.notify(s, c, [0, 0], value=1, op=pld.NotifyOp.AtomicAdd)",
        "pld.system.notify(s, c, [0, 0], pl.const(1, pl.INT32), op=0)",
    ),
    ("pld.system.wait(s, [0, 0], c, cmp=pld.WaitCmp.Eq)", "pld.system.wait(s, [0, 0], c, cmp=0)"),
    ("pld.system.defer_wait(s, [0, 0], c, cmp=pld.WaitCmp.Ge)", "pld.system.defer_wait(s, [0, 0], c, cmp=1)"),
    (f"{PUT})", f"{PUT}, {NONE})"),
    (f"{PUT}, atomic=pld.AtomicType.Add)", f"{PUT}, atomic=pl.AtomicType.Add)"),
    (
        f"{PUT}, dst_offsets=[0, 0], src_offsets=[8, 0], shape=[8, 64], {CHUNKS})",
        f"{PUT}, {REGION}, {NONE}, {CHUNKS})",
    ),
    (f"{PUT}, [0, 0], [e, 0], [e, 64], {NONE}, chunk_rows=8)", None),
    ("pld.tensor.get(x, c, d)", None),
    (f"pld.tensor.get(x, c, d, {REGION})", None),
    ("pld.remote_store(t, d, c, [0, 0])", "pld.tile.remote_store(t, d, c, [0, 0])"),
    ("pld.remote_store(x, d, c, [0, 0])", "pld.tensor.remote_store(x, d, c, [0, 0])"),
    (
        "pld.tile.remote_store(t, d, c, [0, 0], atomic=pld.AtomicType.Add)",
        "pld.tile.remote_store(t, d, c, [0, 0], atomic=pl.AtomicType.Add)",
    ),
    ("pld.tile.put(d, c, x, t, t)", f"pld.tile.put(d, c, x, t, t, {NONE})"),
    ("pld.tile.get(x, c, d, t)", None),
]  # fmt: skip


@pytest.mark.parametrize(("written", "printed"), STATEMENTS)
def test_a_statement_without_a_value_has_one_canonical_form(written: str, printed: str | None) -> None:
    (statement,) = stmts_of(survives(written).body)
    assert isinstance(statement, ir.EvalStmt) and isinstance(statement.expr.type, ir.UnknownType)
    assert statement.as_python() == (printed or written)


TILE = "pl.Tile[[8, 8], pl.FP32, pl.Mem."
VALUES = [
    ("pl.Scalar[pl.INT32]", "pl.system.reserve_buffer(name='b', size=64)", ", base=-1)"),
    ("pl.Scalar[pl.INT32]", "pl.system.import_peer_buffer(name='b', peer_func='g')", ""),
    ("pl.Scalar[pl.TASK_ID]", "pl.system.task_invalid()", ""),
    ("pl.Scalar[pl.TASK_ID]", "pl.system.task_dummy(deps=[task])", ""),
    ("pl.Scalar[pl.BOOL]", "pl.system.task_is_valid(task)", ""),
    ("pl.Scalar[pl.INT32]", "pl.system.available_cluster_count()", ""),
    ("pl.Scalar[pl.INT32]", "pl.system.available_aiv_count()", ""),
    (f"{TILE}Vec]", "pl.tile.tpop_from_aic(split=1, lane_stride=4, id=3)", ""),
    (f"{TILE}Mat]", "pl.tile.tpop_from_aiv(split=0)", ""),
    ("pl.PrefetchAsyncContext", "pl.prefetch.make_context()", ""),
    ("pld.CommCtxType", "pld.system.get_comm_ctx(d)", ""),
    ("pl.Tile[[16, 64], pl.FP32]", "pld.tile.remote_load(d, c, [0, 0], [16, 64])", ""),
]


@pytest.mark.parametrize(("annotation", "call", "rest"), VALUES)
def test_a_value_is_annotated_with_its_type(annotation: str, call: str, rest: str) -> None:
    printed = call.removesuffix(")") + rest if rest else call
    (statement,) = stmts_of(survives(f"a: {annotation} = {call}", kind="").body)
    assert statement.as_python() == f"a: {annotation} = {printed}"


def test_the_type_of_a_pop_is_given_by_shape_and_dtype_or_by_the_annotation() -> None:
    written = survives("a = pl.tpop_from_aic(shape=[8, 8], dtype=pl.FP32, split=1)")
    annotated = survives(f"a: {TILE}Vec] = pl.tpop_from_aic(split=1)")
    ir.assert_structural_equal(written, annotated)
    with pytest.raises(pl.parser.InvalidOperationError, match="must both be provided or both omitted"):
        survives("a = pl.tpop_from_aic(shape=[8, 8])")


def test_a_prefetch_chain_is_annotated_with_its_handles() -> None:
    chain = (
        "ctx: pl.PrefetchAsyncContext = pl.prefetch.make_context()\n"
        "event: pl.AsyncEvent = pl.prefetch.async_prefetch(line, ctx)\n"
        "session: pl.AsyncSession = pl.prefetch.session(ctx)\n"
        "done: pl.Scalar[pl.BOOL] = pl.prefetch.wait(event, session)"
    )
    bare = "\n".join(f"{line.split(':')[0]} ={line.split(' =')[1]}" for line in chain.splitlines())
    for text in (chain, bare):
        assert "\n".join(each.as_python() for each in stmts_of(survives(text).body)) == chain


def test_short_and_long_names_of_window_operations_are_one_operation() -> None:
    short, long = (
        survives(f"a = pld.{system}get_comm_ctx(d)\nr = pld.{system}rank(a)\nm = pld.{system}nranks(a)")
        for system in ("", "system.")
    )
    ir.assert_structural_equal(short, long)
    loads = [
        survives(f"a = pld.{room}remote_load(d, c, [0, 0], [16, 64], [e, 64])") for room in ("", "tile.")
    ]
    ir.assert_structural_equal(*loads)
    assert "valid_shape=[pl.min(e, pl.const(16, pl.INDEX)), 64]" in loads[0].as_python()
