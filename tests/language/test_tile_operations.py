"""Operations on tiles from text to text: what each call prints as, and how refusals are worded."""

from __future__ import annotations

import pytest

import pypto.language as pl
from pypto import ir
from pypto.language.parser import InvalidOperationError, ParserSyntaxError, UnsupportedFeatureError
from tests.language.source import stmts_of

PARAMS = (
    "x: pl.Tensor[[16, 16], pl.FP32], t: pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec], "
    "u: pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec], i: pl.Tile[[16, 16], pl.INT32, pl.Mem.Vec], "
    "h: pl.Tile[[16, 16], pl.INT16, pl.Mem.Vec], b: pl.Tile[[16, 16], pl.BF16, pl.Mem.Vec], "
    "c: pl.Tile[[16, 1], pl.FP32, pl.Mem.Vec], r: pl.Tile[[1, 16], pl.FP32, pl.Mem.Vec], "
    "m: pl.Tile[[16, 32], pl.UINT8, pl.Mem.Vec], ix: pl.Tile[[1, 16], pl.INT32, pl.Mem.Vec], "
    "idx: pl.Tensor[[16, 16], pl.INT32], gm: pl.Tensor[[256], pl.FP32], s: pl.Scalar[pl.FP32], "
    "k: pl.Scalar[pl.INT32], n: pl.Scalar[pl.INDEX]"
)


def parsed(body: str) -> list[ir.Stmt]:
    function = pl.parse(f"@pl.function(type=pl.FunctionType.InCore)\ndef f({PARAMS}):\n    {body}\n")
    again = pl.parse(function.as_python())
    ir.assert_structural_equal(function, again)
    assert again.as_python() == function.as_python()
    return stmts_of(function.body)


def value(expression: str) -> str:
    return parsed(f"y = {expression}")[-1].value.as_python()


PAIRS = ["add", "sub", "mul", "div"]
SAME = [  # calls that are already in their canonical form
    *(f"pl.tile.{leaf}(t, u)" for leaf in (*PAIRS, "maximum", "minimum", "fmod", "part_add", "part_mul")),
    *(f"pl.tile.{leaf}(t, u)" for leaf in ("part_max", "part_min", "concat", "col_sum", "rsqrt")),
    *(f"pl.tile.{leaf}s(t, s)" for leaf in (*PAIRS, "maximum", "minimum", "fmod")),
    *(f"pl.tile.{leaf}(i, i)" for leaf in ("and_", "or_", "shl", "shr")),
    *(f"pl.tile.{leaf}(i, k)" for leaf in ("ands", "ors", "shls", "shrs")),
    *(f"pl.tile.{leaf}(t)" for leaf in ("exp", "log", "sin", "cos", "neg", "abs", "recip", "sqrt", "rsqrt")),
    *(f"pl.tile.{leaf}(t)" for leaf in ("relu", "col_sum", "col_max", "col_min", "col_prod")),
    *(f"pl.tile.row_{leaf}(t, u)" for leaf in ("sum", "max", "min", "prod", "argmax", "argmin")),
    *(f"pl.tile.row_expand{leaf}(t, c)" for leaf in ("", "_add", "_sub", "_mul", "_div", "_max", "_expdif")),
    *(f"pl.tile.col_expand{leaf}(t, r)" for leaf in ("", "_add", "_sub", "_mul", "_div", "_max", "_expdif")),
    "pl.tile.col_argmax(t, u)", "pl.tile.xor(i, i, i)", "pl.tile.xors(i, k, i)", "pl.tile.not_(h)",
    "pl.tile.addc(t, u, u)", "pl.tile.subc(t, u, u)", "pl.tile.addsc(t, s, u)", "pl.tile.subsc(t, s, u)",
    "pl.tile.prelu(t, u, u)", "pl.tile.rem(t, u, u)", "pl.tile.rems(t, s, u)", "pl.tile.lrelu(t, 0.5)",
    "pl.tile.sel(m, t, u, u)", "pl.tile.sels(m, t, u, 0.0)", "pl.tile.expands(t, 2.0)",
    "pl.tile.row_expand_add(t, c, u)", "pl.tile.div(t, u, high_precision=True)",
    "pl.tile.log(t, high_precision=True)", "pl.tile.recip(t, high_precision=True)",
    "pl.tile.cmp(t, u, cmp_type=5)", "pl.tile.cmps(t, 0.0, cmp_type=1)",
    "pl.tile.reshape(t, [8, 32])", "pl.tile.reinterpret_view(t, dtype=pl.INT16)",
    "pl.tile.reinterpret_view(t, dtype=pl.INT16, shape=[16, 32])", "pl.tile.transpose(t, 0, 1)",
    "pl.tile.transpose(t, -1, -2, u)", "pl.tile.transpose_view(t)", "pl.tile.set_validshape(t, n, 8)",
    "pl.tile.slice(t, [8, 8], [n, 0])", "pl.tile.slice(t, [8, 8], [0, 0], [4, n])",
    "pl.tile.slice(t, [1, 16], [3, 0], [], [0])", "pl.tile.slice(t, [1, 16], [3, 0], [1, 8], [0])",
    "pl.tile.slice(t, [8, 8], [0, 0], [4, 8], pad_value=pl.PadValue.zero)",
    "pl.tile.extract(t, n, 0, [8, 8], target_memory=pl.Mem.Left)", "pl.tile.assemble(t, u, [0, 0])",
    "pl.tile.fillpad(t, pad_value=pl.PadValue.min)", "pl.tile.fillpad_inplace(t, pad_value=pl.PadValue.max)",
    "pl.tile.fillpad_expand(t, [32, 16], pad_value=pl.PadValue.zero)",
    "pl.tile.full([8, 8], dtype=pl.FP32, value=0)", "pl.tile.full([8, 8], dtype=pl.BF16, value=0.5)",
    "pl.tile.tri(k, [8, 8], valid_shape=[4, 8], dtype=pl.INT32, upper=True)",
    "pl.tile.ci(k, [1, 16], dtype=pl.INT32, descending=False)", "pl.tile.get_subblock_idx()",
    "pl.tile.random(k, k, k, k, k, k, [8, 64], valid_shape=[4, 64], dtype=pl.UINT32, rounds=7)",
    "pl.tile.matmul(b, b)", "pl.tile.matmul_acc(t, b, b)", "pl.tile.matmul_acc(t, b, b, n == 0)",
    "pl.tile.batch_matmul(b, b)", "pl.tile.gather(t, i, u)", "pl.tile.gather_mask(t, mask_pattern=2)",
    "pl.tile.gather_mask(t, mask_pattern=2, output_dtype=pl.UINT32)",
    "pl.tile.gather_row(t, x, [0, 0], [n, 0], [4, 16], valid_shape=[n, 16], transpose=False)",
    "pl.tile.scatter(t, u, i)", "pl.tile.scatter_mask(t, u, mask_pattern=7)", "pl.tile.mscatter(t, i, gm)",
    "pl.tile.scatter_update(t, ix, u, dim=-2)", "pl.tile.mgather(x, ix, coalesce=0)",
    "pl.tile.mgather(x, idx, scratch=gm, valid_shape=[8, 16], coalesce=1, gather_oob=3,"
    " target_memory=pl.Mem.Mat)",
    "pl.tile.load(x, [0, k], [8, 8], [k, 8], target_memory=pl.Mem.Mat, clamp=True)",
    "pl.tile.store(t, [0, 0], x)", "pl.tile.store(t, [0, 0], x, [16, 16])",
    "pl.tile.store(t, [0, 0], x, atomic=pl.AtomicType.Add)", "pl.tile.read(t, [0, n])",
    "pl.tile.move(t, target_memory=pl.Mem.Mat, blayout=pl.TileLayout.row_major)",
    "pl.tile.create([8, 8], dtype=pl.FP32, target_memory=pl.Mem.Mat, flat_layout=True)",
    "pl.tile.cast(t, target_type=pl.BF16, mode='odd')", "pl.tile.write(t, [0, 1], s)",
]  # fmt: skip


@pytest.mark.parametrize("call", SAME)
def test_the_canonical_form_of_a_tile_operation_reads_back_as_itself(call: str) -> None:
    assert value(call) == call


CAST = "pl.tile.cast(t, target_type=pl.BF16, mode="
OTHERWISE = [
    *((f"pl.{leaf}(t, 2)", f"pl.tile.{leaf}s(t, 2.0)") for leaf in (*PAIRS, "maximum", "minimum", "fmod")),
    *((f"pl.{leaf}_(i, 3)", f"pl.tile.{leaf}s(i, pl.const(3, pl.INT32))") for leaf in ("and", "or")),
    *((f"pl.{leaf}(i, 3)", f"pl.tile.{leaf}s(i, pl.const(3, pl.INT32))") for leaf in ("shl", "shr")),
    ("pl.mul(b, 2)", "pl.tile.muls(b, pl.const(2.0, pl.BF16))"),
    ("pl.mul(b, 0.5)", "pl.tile.muls(b, 0.5)"),
    ("pl.add(h, pl.const(5, pl.INT32))", "pl.tile.adds(h, pl.const(5, pl.INT32))"),
    ("pl.add(t, 0.1)", "pl.tile.adds(t, 0.10000000000000001)"),
    ("pl.expands(b, 2)", "pl.tile.expands(b, pl.const(2.0, pl.BF16))"),
    ("pl.lrelu(b, 1)", "pl.tile.lrelu(b, 1.0)"),
    ("pl.cmp(t, 0)", "pl.tile.cmps(t, 0.0, cmp_type=0)"),
    ("pl.cast(t, pl.BF16)", f"{CAST}'round')"),
    ("pl.cast(t, pl.BF16, mode=4)", f"{CAST}'ceil')"),
    ("pl.fillpad(t, 0)", "pl.tile.fillpad(t, pad_value=pl.PadValue.zero)"),
    ("pl.matmul(b, b, out_dtype=pl.FP32)", "pl.tile.matmul(b, b)"),
    ("pl.load(x, [0, 0], [16, 16])", "pl.tile.load(x, [0, 0], [16, 16], [16, 16], target_memory=pl.Mem.Vec)"),
    ("pl.create_tile([8, 8], pl.FP32)", "pl.tile.create([8, 8], dtype=pl.FP32, target_memory=pl.Mem.Vec)"),
    ("pl.gemv(r, t)", "pl.tile.gemv(r, t, acc_phase='unspecified')"),
    ("pl.mrgsort(r, r, tmp=r)", "pl.tile.mrgsort_format2(r, r, r, exhausted=False)"),
    ("pl.tile.arange(k, [1, 16])", "pl.tile.ci(k, [1, 16], dtype=pl.INT32, descending=False)"),
    ("t[0, n]", "pl.tile.read(t, [0, n])"),
    ("t[0:8, 4:8]", "pl.tile.slice(t, [8, 4], [0, 4])"),
    ("t[3]", "pl.tile.slice(t, [1, 16], [3, 0], [], [0])"),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("written", "printed"), OTHERWISE)
def test_a_tile_operation_prints_in_its_canonical_form(written: str, printed: str) -> None:
    assert value(written) == printed


REFUSED = [
    *((f"pl.{leaf}(x, t)", "cannot mix Tensor and Tile") for leaf in (*PAIRS, "maximum", "cmp", "part_add")),
    *((f"pl.{leaf}(x, t)", "cannot mix Tensor and Tile") for leaf in ("concat", "matmul", "row_expand_mul")),
    *((f"pl.{leaf}(2, t)", "expected Tensor or Tile") for leaf in PAIRS),
    *((f"pl.{leaf}(s)", "expected Tensor or Tile") for leaf in ("exp", "log", "abs", "recip", "not_", "neg")),
    *((f"pl.{leaf}(s, s)", "expected Tensor or Tile") for leaf in ("maximum", "fmod", "shl", "or_")),
    *((f"pl.tile.{leaf}(i, 1)", f"operation '{leaf}'") for leaf in ("maximum", "fmod", "and_", "shr")),
    *((f"pl.{leaf}(t)", "tmp_tile") for leaf in ("row_sum", "row_max", "row_argmin", "col_argmax")),
    *((f"pl.{leaf}(x, t)", "tmp_tile") for leaf in ("row_sum", "col_sum", "row_argmin", "col_argmax")),
    ("pl.add(i, n)", r"pl operation 'add': .*index.*pl\.cast\(<value>, pl\.INT32\)"),
    ("pl.xor(i, i)", "require an explicit scratch tile"),
    ("pl.xors(i, 3)", "require an explicit scratch tile"),
    ("pl.rsqrt(t, high_precision=True)", r"pl\.tile\.rsqrt"),
    ("pl.div(t, 2.0, high_precision=True)", "requires a Tile rhs"),
    ("pl.slice(t, [8, 8], [0, 0], clamp=True)", "clamp=True is not supported for a Tile"),
    ("pl.slice(t, [8, 8], [k, 0])", "offset.*int32"),
    ("pl.matmul(b, b, out_dtype=pl.BF16)", "out_dtype"),
    ("pl.matmul(b, b, b_trans=True)", r"pl\.tile\.transpose_view"),
    ("pl.matmul_acc(t, b, b, init_cond=n)", "BOOL"),
    ("pl.assemble(t, u, [0, 0], atomic=pl.AtomicType.Add)", "atomic"),
    ("pl.cast(t, pl.BF16, mode='nearest')", "Invalid rounding mode"),
    ("pl.cast(s, pl.INT32, mode='floor')", "mode"),
    ("pl.load(x, [0, 0], [8, 8], valid_shapes=[8, 8])", "valid_shapes"),
    ("pl.store(t, [0, 0], t)", "requires third argument to be a TensorType"),
    ("pl.load(t, [0, 0], [16, 16])", "requires first argument to be a TensorType"),
    ("pl.read(t, [0])", "indices count 1 must match tile rank 2"),
    ("pl.write(t, [0, 0], 2)", "value dtype to match tile dtype fp32"),
    ("pl.tile.sum(t)", "sum"),
    ("pl.max(t, u)", r"pl\.max"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_a_refused_tile_operation_says_why(call: str, message: str) -> None:
    with pytest.raises(InvalidOperationError, match=message):
        value(call)


@pytest.mark.parametrize("expression", ["t + u", "t * 2", "-t", "t > u", "not t", "2 - t"])
def test_operators_of_python_are_for_scalars_not_tiles(expression: str) -> None:
    with pytest.raises(ParserSyntaxError, match="must be ScalarExpr or Var with ScalarType"):
        value(expression)


def test_an_element_of_a_tile_is_written_by_name_only() -> None:
    with pytest.raises(UnsupportedFeatureError, match="Element-write"):
        parsed("t[0, 0] = 1.0")
    (statement,) = parsed("pl.write(t, [0, 1], s)")
    assert isinstance(statement, ir.EvalStmt) and statement.as_python() == "pl.tile.write(t, [0, 1], s)"


def test_results_of_an_operator_with_two_are_taken_apart() -> None:
    call = "pl.tile.gather_compare(t, 0.5, u, cmp_mode='gt', out_cols=4)"
    made, first, second = parsed(f"dst, cdst = {call}")
    assert isinstance(made.value.type, ir.TupleType)
    assert [first.value.as_python(), second.value.as_python()] == ["_tuple_tmp[0]", "_tuple_tmp[1]"]
    assert made.value.kwargs == {"cmp_mode": 4, "offset": 0, "out_cols": 4}
