"""`pl.<op>`: which operator the kinds of the operands select, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

import pypto.language as pl
from pypto import ir
from pypto.language import op
from pypto.language.op import tensor_ops, tile_ops, unified_ops
from pypto.language.parser.diagnostics import InvalidOperationError

NOWHERE = ir.Span.unknown()


def tensor(dtype: ir.DataType = ir.FP32) -> pl.Tensor:
    return pl.Tensor(expr=ir.Var("t", ir.TensorType([16, 64], dtype), NOWHERE))


def tile(dtype: ir.DataType = ir.FP32) -> pl.Tile:
    return pl.Tile(expr=ir.Var("v", ir.TileType([16, 64], dtype, None, None, ir.MemorySpace.Vec), NOWHERE))


def scalar(dtype: ir.DataType = ir.INT32) -> pl.Scalar:
    return pl.Scalar(expr=ir.Var("s", ir.ScalarType(dtype), NOWHERE))


def name(value: Any) -> str:
    return value.unwrap().op.name


T, V = tensor(), tile()


@pytest.mark.parametrize("leaf", ["add", "sub", "mul", "div"])
def test_arithmetic_dispatches_on_both_operands(leaf: str) -> None:
    function = getattr(pl, leaf)
    assert name(function(T, T)) == f"tensor.{leaf}" and name(function(T, 5)) == f"tensor.{leaf}s"
    assert name(function(V, V)) == f"tile.{leaf}" and name(function(V, 5)) == f"tile.{leaf}s"
    expected = {"add": ir.Add, "sub": ir.Sub, "mul": ir.Mul, "div": ir.FloatDiv}[leaf]
    assert isinstance(function(scalar(), scalar()).unwrap(), expected)
    with pytest.raises(TypeError, match=f"pl.{leaf}: cannot mix Tensor and Tile arguments"):
        function(T, V)
    with pytest.raises(TypeError, match="expected Tensor or Tile operands"):
        function(5, T)


@pytest.mark.parametrize("leaf", ["maximum", "minimum", "fmod", "cmp", "and_", "or_", "shl", "shr"])
def test_second_operand_may_be_a_scalar(leaf: str) -> None:
    a, v = tensor(ir.INT32), tile(ir.INT32)
    bare = leaf.rstrip("_")
    on_tensor = {"fmod": "fmods", "and": "ands", "or": "ors", "shl": "shls", "shr": "shrs"}.get(bare, bare)
    function = getattr(pl, leaf)
    assert name(function(a, 1)) == f"tensor.{on_tensor}" and name(function(v, 1)) == f"tile.{bare}s"
    assert name(function(a, a)) == f"tensor.{bare}" and name(function(v, v)) == f"tile.{bare}"
    with pytest.raises(TypeError):
        function(scalar(), scalar())


@pytest.mark.parametrize(
    "leaf",
    ["row_sum", "row_max", "row_min", "row_prod", "row_argmax", "row_argmin", "col_argmax", "col_argmin"],
)
def test_reductions_take_scratch_for_tiles_only(leaf: str) -> None:
    function = getattr(pl, leaf)
    for call in (function(T), function(T, None), function(T, tmp_tile=None)):
        assert name(call) == f"tensor.{leaf}"
    assert name(function(V, V)) == f"tile.{leaf}"
    with pytest.raises(TypeError, match="Tensor inputs must not pass tmp_tile"):
        function(T, V)
    with pytest.raises(TypeError, match="Tile inputs require tmp_tile"):
        function(V)


TWO_OPERANDS = [
    "add", "sub", "mul", "div", "maximum", "minimum", "fmod", "cmp", "fmods", "and_", "or_", "shl", "shr",
    "ands", "ors", "shls", "shrs", "xor", "xors", "part_add", "part_mul", "part_max", "part_min", "concat",
    "matmul", "sort32", "mrgsort", "expands",
    *(f"{side}_expand{suffix}" for side in ("row", "col")
      for suffix in ("", "_add", "_sub", "_mul", "_div", "_max", "_min", "_expdif")),
]  # fmt: skip


@pytest.mark.parametrize("leaf", TWO_OPERANDS)
def test_operands_that_no_form_takes_are_listed_by_kind(leaf: str) -> None:
    function = getattr(pl, leaf)
    for operands, kinds in (((T, V), "Tensor, Tile"), ((V, T), "Tile, Tensor")):
        with pytest.raises(TypeError, match=rf"^pl.{leaf}: cannot mix Tensor and Tile arguments \({kinds}\)"):
            function(*operands)
    for operands, kinds in (
        ((scalar(), T), "Scalar, Tensor"), ((5, V), "Scalar, Tile"), ((T, True), "Tensor, bool"),
        ((T, "x"), "Tensor, str"),
    ):  # fmt: skip
        with pytest.raises(
            TypeError, match=rf"^pl.{leaf}: expected Tensor or Tile operands, got \({kinds}\)"
        ):
            function(*operands)


ONE_OPERAND = [
    "exp", "log", "sin", "cos", "neg", "abs", "recip", "sqrt", "rsqrt", "not_", "row_max", "row_sum",
    "col_argmax", "col_sum", "col_max", "col_prod",
]  # fmt: skip


@pytest.mark.parametrize("leaf", ONE_OPERAND)
def test_single_operand_of_another_kind_is_named(leaf: str) -> None:
    for operand, kind in ((scalar(), "Scalar"), (2.5, "Scalar"), ("x", "str"), (None, "NoneType")):
        with pytest.raises(TypeError, match=f"^pl.{leaf}: expected Tensor or Tile, got {kind}$"):
            getattr(pl, leaf)(operand)


def test_reductions_of_columns_need_no_scratch() -> None:
    assert name(pl.col_sum(V)) == name(pl.col_sum(V, V)) == "tile.col_sum"
    with pytest.raises(TypeError, match="Tensor inputs must not pass tmp_tile"):
        pl.col_sum(T, V)
    for leaf in ("col_max", "col_min", "col_prod"):
        assert name(getattr(pl, leaf)(T)) == f"tensor.{leaf}"
        assert name(getattr(pl, leaf)(V)) == f"tile.{leaf}"


@pytest.mark.parametrize(
    ("call", "keyword"),
    [
        (lambda: pl.slice(V, [8, 8], [0, 0], clamp=True), "clamp=True is not supported for a Tile"),
        (lambda: pl.matmul(V, V, b_trans=True), "'b_trans' is not supported for Tile operands"),
        (lambda: pl.matmul(V, V, c_matrix_nz=True), "c_matrix_nz"),
        (lambda: pl.matmul_acc(V, V, V, a_trans=True), "a_trans"),
        (lambda: pl.rsqrt(V, high_precision=True), "high_precision.*pl.tile.rsqrt"),
        (lambda: pl.assemble(V, V, [0, 0], atomic=pl.AtomicType.Add), "atomic"),
        (lambda: pl.xor(V, V), "scratch tile"),
        (lambda: pl.xor(T, T, V), "must not pass tmp"),
        (lambda: pl.row_expand_add(T, T, V), "must not pass tmp"),
        (lambda: pl.mrgsort(T, T, tmp=V), "must not pass tmp"),
        (lambda: pl.div(V, 2, high_precision=True), "requires a Tile rhs"),
        (lambda: pl.exp(5), "pl.exp: expected Tensor or Tile, got Scalar"),
        (lambda: pl.maximum(True, True), "expected Tensor or Tile operands"),
        (lambda: pl.batch_matmul(T, T), "pl.batch_matmul"),
        (lambda: pl.matmul(V, V, 0x34), "out_dtype"),
        (lambda: pl.matmul(V, V, pl.BF16), "out_dtype.*fp32"),
    ],
)
def test_level_that_cannot_honour_an_argument_names_it(call: Any, keyword: str) -> None:
    with pytest.raises(TypeError, match=keyword):
        call()


def test_cast_of_a_scalar_takes_no_mode() -> None:
    assert isinstance(pl.cast(scalar(), pl.INT64).unwrap(), ir.Cast)
    assert (
        name(pl.cast(T, pl.BF16, mode="rint")) == "tensor.cast" and name(pl.cast(V, pl.BF16)) == "tile.cast"
    )
    with pytest.raises(TypeError, match="Scalar inputs do not support non-default mode"):
        pl.cast(scalar(), pl.INT64, mode="floor")
    with pytest.raises(ValueError, match="Invalid rounding mode"):
        pl.cast(scalar(), pl.INT64, mode="bogus")


def test_tile_matmul_accepts_the_deduced_out_dtype() -> None:
    square = pl.Tile(expr=ir.Var("v", ir.TileType([16, 16], ir.BF16), NOWHERE))
    assert pl.matmul(square, square, pl.FP32).unwrap().kwargs == {}


def test_scalar_min_and_max() -> None:
    assert isinstance(pl.min(scalar(ir.INDEX), 4).unwrap(), ir.Min)
    assert pl.max(scalar(), 4).unwrap().type.dtype is ir.INDEX
    with pytest.raises(TypeError):
        pl.min(T, 4)


def test_literals_of_the_program_text_serve_as_compile_time_flags() -> None:
    yes, code = pl.Scalar(expr=ir.ConstBool(True, NOWHERE)), ir.ConstInt(5, ir.INDEX, NOWHERE)
    square = pl.Tensor(expr=ir.Var("t", ir.TensorType([16, 16], ir.FP32), NOWHERE))
    assert pl.tensor.matmul(square, square, None, yes).unwrap().kwargs["a_trans"] is True
    assert pl.cmp(T, T, code).unwrap().kwargs == {"cmp_type": 5}
    assert pl.tile.gather_mask(V, ir.ConstInt(1, ir.INDEX, NOWHERE)).unwrap().kwargs == {"mask_pattern": 1}
    assert pl.tensor.full([4], pl.FP32, ir.ConstInt(0, ir.INDEX, NOWHERE)).unwrap().args[1].dtype is ir.FP32
    assert pl.fillpad(T, ir.ConstInt(0, ir.INDEX, NOWHERE)).unwrap().kwargs["pad_value"] is ir.PadValue.zero


def test_multi_result_operator_gives_a_tuple_of_handles() -> None:
    matches, counts = pl.gather(T, kvalue=0.5, cmp_mode="gt", out_cols=8)
    assert isinstance(matches, pl.Tensor) and counts.unwrap().index == 1
    assert matches.unwrap().tuple is counts.unwrap().tuple


def test_split_region_operators_cannot_be_called_outside() -> None:
    for function in (pl.aiv_shard, pl.aic_gather):
        with pytest.raises(RuntimeError, match=r"must be used inside.*pl\.split_aiv"):
            function(V)
    with pytest.raises(RuntimeError, match="cannot be called directly"):
        pl.system.task_dummy(deps=[])


def test_promoted_names_are_one_object_in_every_namespace() -> None:
    for promoted in op.__all__:
        assert getattr(pl, promoted) is getattr(op, promoted), promoted
    assert len(op.__all__) == len(set(op.__all__))
    assert (
        pl.create_tensor is pl.tensor.create
        and pl.arange is pl.tensor.ci
        and pl.create_tile is pl.tile.create
    )
    assert pl.AUTO == -1 and pl.tile.MaskPattern.P1111 == 7


def test_every_unified_name_exists_at_tensor_and_tile_level() -> None:
    for promoted in set(unified_ops.__all__) - {"batch_matmul"}:
        assert hasattr(tensor_ops, promoted) and hasattr(tile_ops, promoted), promoted


def test_remote_store_dispatches_on_its_source() -> None:
    import pypto.language.distributed as pld

    peer = pl.Tensor(expr=ir.Var("w", ir.DistributedTensorType([64, 64], ir.FP32), NOWHERE))
    assert pld.remote_store(V, peer, 0, [0, 0]).op.name == "pld.tile.remote_store"
    assert pld.remote_store(T, peer, 0, [0, 0]).op.name == "pld.tensor.remote_store"
    with pytest.raises(TypeError, match="expected a Tensor or Tile src"):
        pld.remote_store(5, peer, 0, [0, 0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("pl.tile.abs('s')", "requires first argument to be a TileType .*, but got str"),
        ("pl.store([n, 0], [0, 0], x)", "requires first argument to be a TileType .*, but got list"),
        ("pl.load(x, 0, [16, 16])", "must be a list or tuple, got ConstInt"),
        ("pl.create_l1([4, 4], n + 1)", r"expected DataType, got Add n \+ 1$"),
        ("pl.cast(x, [n, 4])", r"expected DataType, got list \[n, 4\]$"),
        ("pl.cast(x, pl.BF16, n == 0)", "Invalid rounding mode n == 0;"),
        ("pl.fillpad(x, True)", "fillpad pad_value must be a PadValue, 0, inf or -inf, got True"),
        ("pl.dim(x, [n])", r"got \[n\]$"),
        ("pl.mgather(x, x, coalesce=n)", "got n$"),
        ("pl.gather(x, kvalue=1.0, cmp_mode=n, out_cols=4)", "got n$"),
    ],
)
def test_operands_of_another_nature_are_named(call: str, message: str) -> None:
    code = f"@pl.function\ndef f(x: pl.Tensor[[16, 16], pl.FP32], n: pl.Scalar[pl.INDEX]):\n    z = {call}\n"
    with pytest.raises(pl.parser.InvalidOperationError, match=message):
        pl.parse(code)


def test_none_is_no_operand_of_arithmetic() -> None:
    for call in ("pl.add(x, None)", "pl.mul(t, None)", "pl.row_sum(t, None)", "pl.min(None, None)"):
        code = (
            "@pl.function\ndef f(x: pl.Tensor[[16, 16], pl.FP32], t: pl.Tile[[16, 16], pl.FP32]):\n"
            f"    z = {call}\n"
        )
        with pytest.raises(pl.parser.InvalidOperationError):
            pl.parse(code)


def test_helpers_of_operator_modules_are_no_operations() -> None:
    for name in ("pl.tile.constant", "pl.tile.at", "pl.tensor.lift", "pl.tensor.Any", "pl.tile.MaskPattern",
                 "pl.system.AUTO", "pl.tensor.no_dep", "pld.tensor.lift"):  # fmt: skip
        with pytest.raises(pl.parser.InvalidOperationError, match="Unknown"):
            pl.parse(f"@pl.function\ndef f(x: pl.Tensor[[16, 16], pl.FP32]):\n    z = {name}(x)\n")


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("pl.no_dep", "marks an argument of a kernel call"),
        ("pl.tensor.no_dep", "marks an argument of a kernel call"),
        ("pl.dump_tag", "is a statement of its own"),
        ("pl.range", "for i in pl.range(...):"),
        ("pl.cond", "first statement of a pl.while_ loop"),
        ("pl.at", "with pl.at(...):"),
        ("pl.static_print", "is a statement of its own"),
        ("pl.dynamic", "before the function"),
        ("pl.split", "optimizations=[...]"),
    ],
)
def test_a_construct_that_is_no_operation_says_where_it_belongs(name: str, place: str) -> None:
    with pytest.raises(pl.parser.InvalidOperationError, match="Unknown") as caught:
        pl.parse(f"@pl.function\ndef f(x: pl.Tensor[[16, 16], pl.FP32]):\n    z = {name}(x)\n")
    assert place in caught.value.hint


@pytest.mark.parametrize(
    "call",
    [
        "pl.tile.mrgsort_format1",
        "pl.tensor.gather_mask",
        "pl.tile.tget_scale_addr",
        "pl.system.task_is_valid",
    ],
)
def test_registered_operations_of_lowered_programs_can_be_read_back(call: str) -> None:
    code = f"@pl.function\ndef f(x: pl.Tensor[[16, 16], pl.FP32]):\n    z = {call}()\n"
    with pytest.raises(pl.parser.InvalidOperationError, match=r"missing|requires"):
        pl.parse(code)
    code = "@pl.function\ndef f(t: pl.TaskId):\n    z = pl.system.task_is_valid(t)\n    return z\n"
    function = pl.parse(code)
    assert pl.parse(function.as_python()).as_python() == function.as_python()


OPERANDS = (
    "a: pl.Tensor[[16, 64], pl.FP32], h: pl.Tensor[[16, 64], pl.FP16], i: pl.Tensor[[16, 64], pl.INT32], "
    "j: pl.Tensor[[16, 64], pl.INT16], n: pl.Scalar[pl.INDEX], s: pl.Scalar[pl.INT32], f: pl.Scalar[pl.FP32]"
)


def written(expression: str) -> ir.AssignStmt:
    text = f"""
import pypto.language as pl

@pl.function(type=pl.FunctionType.InCore)
def k({OPERANDS}):
    x = {expression}
"""
    body = pl.parse(text).body
    return body.stmts_[0] if isinstance(body, ir.SeqStmts) else body


@pytest.mark.parametrize(
    ("expression", "printed", "dtype"),
    [
        ("pl.add(j, 5)", "pl.tensor.adds(j, pl.const(5, pl.INT16))", "INT16"),
        ("pl.mul(i, 2.5)", "pl.tensor.muls(i, 2.5)", "FP32"),
        ("pl.mul(h, -2)", "pl.tensor.muls(h, pl.const(-2.0, pl.FP16))", "FP16"),
        ("pl.mul(h, 2.0)", "pl.tensor.muls(h, 2.0)", "FP32"),
        ("pl.add(h, 2.0)", "pl.tensor.adds(h, 2.0)", "FP32"),
        ("pl.minimum(h, 2.0)", "pl.tensor.minimum(h, 2.0)", "FP32"),
        ("pl.mul(a, 3)", "pl.tensor.muls(a, 3.0)", "FP32"),
        ("pl.div(h, 2.0)", "pl.tensor.divs(h, 2.0)", "FP32"),
        ("pl.fmod(h, 2.0)", "pl.tensor.fmods(h, 2.0)", "FP32"),
        ("pl.maximum(h, 2.0)", "pl.tensor.maximum(h, 2.0)", "FP32"),
        ("pl.cmp(h, 2.0)", "pl.tensor.cmp(h, 2.0, cmp_type=0)", "FP32"),
        ("pl.sub(h, 1.0)", "pl.tensor.subs(h, 1.0)", "FP16"),
        ("pl.mul(h, rhs=2.0)", "pl.tensor.muls(h, pl.const(2.0, pl.FP16))", "FP16"),
        ("pl.mul(h, pl.const(2.0, pl.FP16))", "pl.tensor.muls(h, pl.const(2.0, pl.FP16))", "FP16"),
        ("pl.add(h, f)", "pl.tensor.adds(h, f)", "FP32"),
        ("pl.add(i, s)", "pl.tensor.adds(i, s)", "INT32"),
        ("pl.maximum(a, 0)", "pl.tensor.maximum(a, 0.0)", "FP32"),
        ("pl.expands(h, 0.5)", "pl.tensor.expands(h, 0.5)", "FP32"),
        ("pl.ands(i, -1)", "pl.tensor.ands(i, pl.const(-1, pl.INT32))", "INT32"),
    ],
)
def test_scalar_operand_and_result_dtype_follow_the_literal_rules(expression: str, printed: str, dtype: str):
    stmt = written(expression)
    assert stmt.value.as_python() == printed
    assert stmt.var.type.dtype is getattr(pl, dtype)


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [("pl.add(a, n)", "pl.INT32"), ("pl.add(j, n)", "pl.INT16"), ("pl.add(i, pl.add(s, 1))", "pl.INT32")],
)
def test_index_scalar_as_an_operand_asks_for_a_cast(expression: str, wanted: str):
    with pytest.raises(InvalidOperationError, match=rf"index.*pl\.cast\(<value>, {wanted}\)"):
        written(expression)


def test_loop_variable_as_an_operand_asks_for_a_cast():
    loop = "for r in pl.range(4):\n        z = pl.mul(i, {})"
    text = f"@pl.function(type=pl.FunctionType.InCore)\ndef k({OPERANDS}):\n    {loop}\n"
    with pytest.raises(InvalidOperationError, match=r"index.*pl\.cast\(<value>, pl\.INT32\)"):
        pl.parse(text.format("r"))
    pl.parse(text.format("pl.cast(r, pl.INT32)"))


def test_an_allocation_in_an_unknown_space_is_refused_where_it_stands():
    with pytest.raises(pl.parser.ParserTypeError, match="Unknown MemorySpace value: Nowhere") as caught:
        written("pl.tile.alloc(pl.Mem.Nowhere, 64)")
    assert caught.value.span["begin_line"] == 6


STATIC = (
    "x: pl.Tensor[[16, 16], pl.FP32], t: pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec], "
    "p: pl.Tile[[1, 128], pl.FP32]"
)


@pytest.mark.parametrize(
    ("by_position", "by_keyword"),
    [
        (
            "pl.create_tile([8, 8], pl.FP32, pl.Mem.Mat, True)",
            "pl.create_tile([8, 8], dtype=pl.FP32, target_memory=pl.Mem.Mat, transpose=True)",
        ),
        ("pl.cast(t, pl.INT8, 'trunc')", "pl.cast(t, target_type=pl.INT8, mode='trunc')"),
        ("pl.cmp(t, t, 5)", "pl.cmp(t, t, cmp_type=5)"),
        ("pl.tile.gather_mask(t, 1)", "pl.tile.gather_mask(t, mask_pattern=1)"),
        ("pl.tile.full([8, 8], pl.FP32, 0)", "pl.tile.full([8, 8], dtype=pl.FP32, value=0)"),
        (
            "pl.tile.ci(0, [1, 16], pl.INT32, True)",
            "pl.tile.ci(start=0, shape=[1, 16], dtype=pl.INT32, descending=True)",
        ),
        ("pl.tri(0, [8, 8], None, pl.INT32, True)", "pl.tri(0, [8, 8], upper=True)"),
        (
            "pl.load(x, [0, 0], [8, 8], None, pl.Mem.Mat, True)",
            "pl.load(x, [0, 0], [8, 8], target_memory=pl.Mem.Mat, clamp=True)",
        ),
        ("pl.slice(t, [1, 16], [0, 0], None, [0])", "pl.slice(t, [1, 16], [0, 0], drop_dims=[0])"),
        (
            "pl.slice(t, [8, 16], [0, 0], [4, 16], None, 0)",
            "pl.slice(t, [8, 16], [0, 0], valid_shape=[4, 16], pad_value=pl.PadValue.zero)",
        ),
        ("pl.mrgsort(p, p, None, None, p)", "pl.mrgsort(p, p, tmp=p)"),
        ("pl.tile.transpose(t, 0, 1, None)", "pl.tile.transpose(t, 0, 1)"),
    ],
)  # fmt: skip
def test_an_attribute_by_position_is_the_attribute_by_keyword(by_position: str, by_keyword: str) -> None:
    values = []
    for call in (by_position, by_keyword):
        values.append(pl.parse(f"@pl.function\ndef f({STATIC}):\n    y = {call}\n").body.value)
    assert values[0].as_python() == values[1].as_python() and values[0].kwargs == values[1].kwargs


def test_a_split_mode_stands_for_its_number() -> None:
    for name, mode in (("tpush_to_aic(t, ", "UP_DOWN"), ("tpush_to_aiv(t, ", "LEFT_RIGHT")):
        function = pl.parse(f"@pl.function\ndef f({STATIC}):\n    pl.{name}split=pl.SplitMode.{mode})\n")
        assert function.body.expr.kwargs == {"split": {"UP_DOWN": 1, "LEFT_RIGHT": 2}[mode]}
    with pytest.raises(InvalidOperationError, match=r"'split'.*incompatible type"):
        pl.parse(f"@pl.function\ndef f({STATIC}):\n    pl.tpush_to_aic(t, split=True)\n")
