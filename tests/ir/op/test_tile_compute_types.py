"""Type inference of tile operators that compute, multiply, sort, gather and scatter."""

from __future__ import annotations

import pytest

from pypto import ir
from pypto.ir.op import tile as L
from tests.ir.op.operands import (
    COL,
    NONE,
    NOWHERE,
    ROW,
    Acc,
    Left,
    Mat,
    Right,
    Vec,
    bound,
    layout,
    rejects,
    shape,
    symbol,
    tensor,
    tile,
    valid,
)  # fmt: skip

M, N, n, S = (symbol(name) for name in "MNnS")


def with_scratch(source: ir.Var) -> tuple[ir.Var, ir.Var]:
    return source, tile(source.type.shape, source.type.dtype)  # type: ignore[attr-defined]


# -- elementwise ---------------------------------------------------------------------------------------------


BITWISE_WITH_SCALAR = ("ands", "ors", "shls", "shrs", "xors")
WITH_SCALAR = (
    "adds", "subs", "muls", "divs", "maximums", "minimums", "fmods", "rems", "addsc", "subsc", "cmps",
    "expands", *BITWISE_WITH_SCALAR,
)  # fmt: skip


def with_scalar(leaf: str, dtype: ir.DataType, scalar: object) -> ir.Call:
    """The call of a tile with a scalar; a third operand is a tile like the first."""
    rest = [tile([8, 8], dtype)] if leaf in ("rems", "addsc", "subsc", "xors") else []
    return getattr(L, leaf)(tile([8, 8], dtype), scalar, *rest)


@pytest.mark.parametrize("leaf", WITH_SCALAR)
def test_literal_becomes_a_constant_of_the_tile_dtype_and_an_index_variable_is_refused(leaf: str) -> None:
    for dtype in (ir.INT8, ir.INT16, ir.INT32):
        call = with_scalar(leaf, dtype, 5)
        assert isinstance(call.args[1], ir.ConstInt) and call.args[1].dtype is dtype
        rejects(
            lambda dtype=dtype: with_scalar(leaf, dtype, n), "index", f"pl.cast(<value>, pl.{dtype.member})"
        )
    if leaf in BITWISE_WITH_SCALAR:
        return
    for dtype in (ir.FP16, ir.FP32, ir.BF16):
        for literal in (5, 0.5):
            call = with_scalar(leaf, dtype, literal)
            assert isinstance(call.args[1], ir.ConstFloat) and call.args[1].dtype is dtype
            assert leaf == "cmps" or call.type.dtype is dtype


def test_scalar_operands() -> None:
    for dtype in (ir.FP16, ir.FP32, ir.BF16):
        scalar = L.add(tile([8, 8], dtype), 5).args[1]
        assert isinstance(scalar, ir.ConstFloat) and scalar.dtype is dtype
    ints = L.mul(tile([8, 8], ir.INT32), 2.5)
    assert ints.args[1].dtype is ir.FP32 and ints.type.dtype is ir.INT32
    typed = ir.ConstInt(5, ir.INT32, NOWHERE)
    assert L.add(tile([8, 8], ir.INT16), typed).args[1] is typed
    for slope in (0.1, 2):
        assert L.lrelu(tile([8, 8], ir.FP16), slope).args[1].dtype is ir.FP32
    assert L.expands(tile([8, 8], ir.INT32), 1.5).type.dtype is ir.FP32
    assert L.muls(tile([8, 8], ir.BF16), 0.0).type.dtype is ir.BF16
    assert L.mul(tile([8, 8], ir.BF16), ir.ConstFloat(0.5, ir.FP32, NOWHERE)).type.dtype is ir.BF16


def test_subs_dtypes() -> None:
    rejects(lambda: L.subs(tile([8, 8], ir.INT64), 1), "requires tile dtype in")
    for dtype in (ir.UINT32, ir.BOOL, ir.INT64):
        rejects(lambda dtype=dtype: L.subs(tile([8, 8]), symbol("s", dtype)), "requires scalar dtype in")


def test_division_checks() -> None:
    a = tile([16, 16])
    rejects(lambda: L.div(a, tile([16, 16], ir.FP16)), "same dtype")
    rejects(lambda: L.div(a, tile([16, 1])), "same physical shape")
    rejects(lambda: L.div(a, tile([16, 16], valid=[8, 16])), "same valid_shape")
    rejects(lambda: L.div(tile([8, 8], ir.INT8), tile([8, 8], ir.INT8)), "INT16, INT32, FP16, FP32")
    ints = tile([8, 8], ir.INT32)
    rejects(lambda: L.div(ints, ints, high_precision=True), "high_precision only for FP16 or FP32")
    rejects(lambda: L.div(a, 2, high_precision=True), "requires a Tile rhs", error=TypeError)


def test_broadcasting_of_shapes_and_valid_regions() -> None:
    rejects(lambda: L.add(tile([16, 16]), tile([32, 16])), "[16, 16]", "[32, 16]")
    rejects(lambda: L.add(tile([M, 16]), tile([N, 16])), "[M, 16]", "[N, 16]")
    narrow = L.add(tile([16, 32], valid=[5, 32]), tile([16, 32]))
    assert valid(narrow) == [5, 32] and valid(L.add(tile([16, 32]), tile([16, 32], valid=[5, 32]))) == [
        16,
        32,
    ]
    stretched = L.add(tile([1, 32]), tile([16, 32]))
    assert shape(stretched) == [16, 32] and valid(stretched) == [16, 32]


def test_unary_operators_carry_the_partial_region_and_nothing_else() -> None:
    x = tile([16, 32], valid=[5, 32])
    for build in (L.exp, L.neg, L.abs, L.relu, L.sqrt, L.rsqrt, L.recip, L.log, L.sin):
        call = build(x)
        assert valid(call) == [5, 32] and call.type.memref is None and call.type.memory_space is Vec
        assert build(tile([16, 32])).type.tile_view is None
    for dtype in (ir.FP16, ir.BF16, ir.INT32):
        rejects(lambda dtype=dtype: L.sin(tile([8, 8], dtype)), "tile.sin", "FP32")
        rejects(lambda dtype=dtype: L.cos(tile([8, 8], dtype)), "tile.cos", "FP32")
    rejects(lambda: L.log(tile([8, 8], ir.INT32)), "requires an FP16 or FP32")
    rejects(lambda: L.rsqrt(x, tile([8, 8])), "shape mismatch")
    assert len(L.rsqrt(x, tile([16, 32])).args) == 2
    rejects(lambda: L.log(tile([8, 8], ir.BF16)), "requires an FP16 or FP32")


def test_further_elementwise_results_carry_the_partial_region_but_no_stride() -> None:
    def built(source: ir.Var) -> list[ir.Call]:
        rows, columns, dtype = tile([16, 1]), tile([1, 32]), source.type.dtype
        unary = [L.cast(source, ir.BF16), L.expands(source, 1.0), L.rsqrt(source, tile([16, 32], dtype))]
        for suffix in ("", "_sub", "_mul", "_div", "_max", "_min", "_expdif"):
            unary.append(getattr(L, f"row_expand{suffix}")(source, rows))
        for suffix in ("", "_add", "_sub", "_mul", "_div", "_max", "_min", "_expdif"):
            unary.append(getattr(L, f"col_expand{suffix}")(source, columns))
        return unary

    strided = tile([16, 32], valid=[5, 32], stride=[64, 1])
    for call in [*built(strided), L.not_(tile([16, 32], ir.INT16, valid=[5, 32], stride=[64, 1]))]:
        view = call.type.tile_view
        assert valid(call) == [5, 32] and view.stride == [] and call.type.memref is None, call.op.name
    for call in built(tile([16, 32])):
        assert call.type.tile_view is None, call.op.name


def test_cast_checks() -> None:
    x = tile([8, 8])
    assert L.cast(x, ir.BF16).kwargs == {"target_type": ir.BF16, "mode": 2}
    rejects(
        lambda: ir.create_op_call("tile.cast", [x], {"target_type": ir.BF16}, NOWHERE),
        "requires a 'mode' kwarg",
    )
    rejects(lambda: L.cast(x, ir.FP32), "same-dtype cast is not a valid operation")
    for mode in (True, False, 7, -1, "nearest", 1.0, None):
        rejects(lambda mode=mode: L.cast(x, ir.BF16, mode), "Invalid rounding mode")


def test_bitwise_dtypes() -> None:
    a, b = tile([8, 8], ir.INT16), tile([8, 8], ir.INT32)
    assert L.shl(a, b).type.dtype is ir.INT16 and L.shr(a, b).type.dtype is ir.INT16
    assert L.shls(a, 2).type.dtype is ir.INT16 and L.and_(a, b).type.dtype is ir.INT32
    rejects(lambda: L.and_(tile([8, 8]), tile([8, 8])), "integer tile dtype")
    for dtype in (ir.INT8, ir.INT16, ir.INT32, ir.UINT8, ir.UINT16, ir.UINT32):
        shifted = tile([8, 8], dtype)
        for call in (L.shl(shifted, b), L.shr(shifted, b), L.shls(shifted, symbol("s", ir.INT32)),
                     L.shrs(shifted, symbol("s", ir.INT32))):  # fmt: skip
            assert call.type.dtype is dtype
        if dtype not in (ir.INT16, ir.UINT16):
            rejects(lambda shifted=shifted: L.not_(shifted), "INT16 or UINT16")
    assert L.not_(tile([8, 8], ir.UINT16)).type.dtype is ir.UINT16


def test_prelu_checks() -> None:
    x = tile([8, 8])
    assert L.prelu(x, x, tile([1, 8], ir.UINT8)).type.dtype is ir.FP32
    rejects(lambda: L.prelu(tile([8, 8], ir.BF16), x, x), "src dtype")
    rejects(lambda: L.prelu(x, tile([8, 8], ir.FP16), x), "slope dtype")
    rejects(lambda: L.prelu(x, tile([4, 8]), x), "physical shape")
    rejects(lambda: L.prelu(x, tile([8, 8], valid=[4, 8]), x), "valid_shape")
    rejects(lambda: L.prelu(x, x, tile([1, 8, 8])), "rank-2 tmp")


# -- compare and select --------------------------------------------------------------------------------------


def test_compare_gives_a_packed_predicate() -> None:
    call = L.cmp(tile([10, 33]), tile([10, 33]), cmp_type=5)
    assert shape(call) == [10, 32] and valid(call) == [10, 5] and call.type.dtype is ir.UINT8
    wide = L.cmps(tile([10, 300], valid=[10, 257]), 0.0, cmp_type=4)
    assert shape(wide) == [10, 64] and valid(wide) == [10, 33]
    x = tile([10, 64], valid=[10, n])
    for dynamic in (L.cmps(x, 0.0), L.cmp(x, x)):
        assert dynamic.type.tile_view.valid_shape[1].as_python() == "(n + 7) // 8"
    assert shape(L.cmps(tile([2, 3, 33]), 0.0)) == [2, 3, 32]
    for code in (-1, 6, 9):
        rejects(lambda code=code: L.cmps(tile([8, 8]), 0.0, cmp_type=code), "cmp_type")
        rejects(lambda code=code: L.cmp(tile([8, 8]), tile([8, 8]), cmp_type=code), "cmp_type")


def test_sels_checks_the_carrier() -> None:
    source, tmp = tile([2, 257]), tile([2, 257])
    carriers = ((ir.UINT8, 32), (ir.INT8, 32), (ir.UINT16, 16), (ir.INT16, 16), (ir.UINT32, 8), (ir.INT32, 8))
    for dtype, short in carriers:
        rejects(
            lambda dtype=dtype, short=short: L.sels(tile([2, 64], dtype, valid=[2, short]), source, tmp, 0.0),
            "each mask carrier row",
        )
        assert L.sels(tile([2, 64], dtype, valid=[2, short + 1]), source, tmp, 0.0).type.dtype is ir.FP32
    mask = tile([2, 64], ir.UINT8)
    rejects(lambda: L.sels(tile([1, 64], ir.UINT8), source, tmp, 0.0), "mask carrier rows")
    rejects(lambda: L.sels(tile([2, 64], ir.FP16), source, tmp, 0.0), "integer mask")
    rejects(lambda: L.sels(mask, tile([2, 64], ir.BF16), tmp, 0.0), "src dtype")
    packed = tile([16, 64], ir.UINT8, valid=[n, (M + 7) // 8])
    assert L.sels(packed, tile([16, 64], valid=[n, M]), tile([16, 64]), 0.0).type.dtype is ir.FP32


def test_sels_retypes_its_constant() -> None:
    mask = tile([2, 64], ir.UINT8)

    def scalar(dtype: ir.DataType, value: object) -> ir.Expr:
        return L.sels(mask, tile([2, 8], dtype), tile([2, 8]), value).args[3]

    assert (scalar(ir.UINT8, 0x82).value, scalar(ir.UINT8, 0x82).dtype) == (-126, ir.INT8)
    assert scalar(ir.INT16, 2.0).value == 2
    rejects(lambda: scalar(ir.INT16, 2.5), "non-integral")
    assert L.sels(mask, tile([2, 8], ir.UINT16), tile([2, 8]), symbol("s", ir.INT16)).type.dtype is ir.UINT16
    rejects(
        lambda: scalar(ir.UINT16, symbol("s", ir.UINT16)), "requires scalar dtype int16 for src dtype uint16"
    )


# -- reductions and expansion --------------------------------------------------------------------------------


@pytest.mark.parametrize("combine", ["sum", "max", "min", "prod", "argmax", "argmin"])
@pytest.mark.parametrize("side", ["row", "col"])
def test_reductions(side: str, combine: str) -> None:
    build = getattr(L, f"{side}_{combine}")
    scratch = side == "row" or combine.startswith("arg")

    def reduced(source: ir.Var) -> ir.Call:
        return build(*with_scratch(source)) if scratch else build(source)

    rows = side == "row"
    call = reduced(tile([8, 32], valid=[4, 20]))
    assert shape(call) == ([8, 1] if rows else [1, 32]) and valid(call) == ([4, 1] if rows else [1, 20])
    assert layout(call) == (COL if rows else ROW, NONE)
    assert call.type.dtype is (ir.INT32 if combine.startswith("arg") else ir.FP32)
    for extent in (3, n):
        partial = reduced(tile([8, 32], valid=[8, extent] if rows else [extent, 32]))
        assert partial.type.tile_view is None
    for zero in (0, ir.ConstInt(0, ir.UINT64, NOWHERE)):
        for axis, region in ((0, [zero, 32]), (1, [8, zero])):
            rejects(
                lambda region=region: reduced(tile([8, 32], valid=region)),
                f"valid extent on axis {axis} is 0",
            )
    broken = ir.Var("v", ir.TileType([8, 32], ir.FP32, None, ir.TileView([8]), Vec), NOWHERE)
    rejects(lambda: reduced(broken), "valid_shape rank")
    rejects(lambda: reduced(tile([32])), "rank >= 2")


def test_reduction_scratch() -> None:
    x = tile([8, 32])
    for build in (L.row_sum, L.row_max, L.row_min, L.row_prod):
        rejects(lambda build=build: build(x, tile([8, 16])), "at least the input shape")
        rejects(lambda build=build: build(x, tile([8, 32], ir.FP16)), "tmp_tile dtype to match input dtype")
        assert build(x, tile([16, 64])).type.dtype is ir.FP32
    for build in (L.row_argmax, L.row_argmin, L.col_argmax, L.col_argmin):
        rejects(lambda build=build: build(x, tile([8, 64])), "exactly match the input shape")
        rejects(lambda build=build: build(x, tile([8, 32], ir.FP16)), "tmp_tile dtype to match input dtype")
    for dtype in (ir.BF16, ir.INT8):
        rejects(
            lambda dtype=dtype: L.row_min(*with_scratch(tile([8, 32], dtype))), "INT16, INT32, FP16, FP32"
        )
    column = tile([8, 32], blayout=COL)
    rejects(lambda: L.row_min(column, tile([8, 32])), "requires an ND input layout")


def test_expansion_checks() -> None:
    x = tile([8, 32], valid=[4, 32])
    assert valid(L.row_expand_mul(x, tile([8, 1]))) == [4, 32]
    rejects(lambda: L.row_expand_mul(x, tile([1, 32])), "[M, 1]")
    rejects(lambda: L.row_expand_mul(x, tile([4, 1])), "matching rows")
    assert L.col_expand_mul(x, tile([1, 32], ir.FP16)).type.dtype is ir.FP32
    rejects(lambda: L.col_expand_mul(x, tile([3, 7])), "[1, N]")


def test_row_expand_add_vector_forms() -> None:
    x = tile([8, 32])
    assert L.row_expand_add(x, tile([8, 1])).type.dtype is ir.FP32
    assert L.row_expand_add(x, tile([10, 16], valid=[8, 8]), tmp=x).args[2] is x
    for columns in (7, 0):
        rejects(
            lambda columns=columns: L.row_expand_add(x, tile([10, 16], valid=[8, columns])),
            "last dimension to be 8",
        )
    rejects(lambda: L.row_expand_add(x, tile([8, 1], valid=[8, 0])), "last dimension")
    for dtype, block in ((ir.INT8, 32), (ir.INT16, 16), (ir.FP16, 16), (ir.INT32, 8)):
        assert len(L.row_expand_add(tile([8, 32], dtype), tile([8, block], dtype)).args) == 2
        rejects(
            lambda dtype=dtype, block=block: L.row_expand_add(
                tile([8, 32], dtype), tile([8, 2 * block], dtype)
            ),
            f"last dimension to be {block}",
        )
    rejects(lambda: L.row_expand_add(x, tile([8, 1], ir.FP16)), "same dtype")
    rejects(lambda: L.row_expand_add(x, tile([4, 1])), "src1 valid row extent to match src0/dst")
    rejects(
        lambda: L.row_expand_add(tile([8, 32], valid=[n, 32]), tile([8, 1], valid=[S, 1])),
        "src1 valid row extent to match",
    )
    rejects(lambda: L.row_expand_add(tile([8, 32], blayout=COL), tile([8, 1])), "blayout to be row_major")
    bf16 = tile([8, 32], ir.BF16)
    rejects(lambda: L.row_expand_add(bf16, tile([8, 1], ir.BF16)), "INT8, INT16, INT32, FP16, FP32")


# -- matrix products -----------------------------------------------------------------------------------------


def operands(
    m: int, k: int, n_: int, dtype: ir.DataType = ir.BF16, **valids: list[object]
) -> tuple[ir.Var, ir.Var]:
    return (
        tile([m, k], dtype, valids.get("lhs"), Left),
        tile([k, n_], dtype, valids.get("rhs"), Right),
    )


def test_matmul_type() -> None:
    call = L.matmul(*operands(16, 128, 32, ir.INT8, rhs=[128, 16]))
    assert shape(call) == [16, 32] and valid(call) == [16, 16]
    assert call.type.dtype is ir.INT32 and call.type.memory_space is Acc
    view = call.type.tile_view
    assert layout(call) == (COL, ROW) and view.fractal == 1024 and view.compact is ir.CompactMode.null
    assert L.matmul(*operands(16, 128, 32)).type.tile_view is None


def compact(call: ir.Call) -> ir.CompactMode:
    return call.type.get_effective_tile_view().compact


def test_a_product_is_compact_unless_its_rows_are_provably_full() -> None:
    bias, normal, null = tile([1, 32]), ir.CompactMode.normal, ir.CompactMode.null
    cases = (
        ({"lhs": [n, 128]}, normal), ({"lhs": [12, 128]}, normal), ({"rhs": [128, 16]}, null),
        ({"rhs": [128, n]}, null), ({"lhs": [16, 64]}, null), ({}, null),
    )  # fmt: skip
    for regions, wanted in cases:
        pair = operands(16, 128, 32, **regions)
        for call in (L.matmul(*pair), L.matmul_bias(*pair, bias)):
            assert compact(call) is wanted, regions
        assert compact(L.set_validshape(bound(call), 16, 32)) is wanted, regions
    short = operands(16, 64, 24, lhs=[12, 64])
    for mode in (normal, null):  # an accumulation keeps what its accumulator is
        acc = tile([16, 24], valid=[12, 24], space=Acc, compact=mode)
        assert compact(L.matmul_acc(acc, *short)) is mode


def test_products_are_boxed_in_the_accumulator_buffer() -> None:
    lhs, rhs = operands(16, 64, 32)
    for space in (Acc, None):
        acc = tile([16, 32], space=space)
        calls = (
            L.matmul(lhs, rhs), L.matmul_acc(acc, lhs, rhs), L.matmul_bias(lhs, rhs, tile([1, 32])),
            L.batch_matmul(lhs, rhs), L.batch_matmul_acc(acc, lhs, rhs), L.gemv(*operands(1, 64, 32)),
        )  # fmt: skip
        for call in calls:
            view = call.type.get_effective_tile_view()
            assert (view.blayout, view.slayout, view.fractal) == (COL, ROW, 1024), call.op.name
            assert call.type.memory_space is Acc


def test_matmul_inner_extents() -> None:
    rejects(lambda: L.matmul(tile([16, 64], ir.BF16), tile([32, 8], ir.BF16)), "physical K")
    rejects(lambda: L.matmul(tile([16, 64], ir.BF16), tile([64, 8], ir.FP16)), "identical")
    rejects(lambda: L.matmul(*operands(16, 256, 32, rhs=[255, 32])), "rhs valid K to cover lhs valid K")
    assert shape(L.matmul(*operands(16, 256, 32, lhs=[16, 255]))) == [16, 32]


def test_matmul_acc_checks() -> None:
    lhs, rhs = operands(16, 64, 24)
    acc = tile([16, 24], space=Acc)
    assert L.matmul_acc(acc, lhs, rhs).type is acc.type
    rejects(lambda: L.matmul_acc(tile([16, 24], valid=[15, 24], space=Acc), lhs, rhs), "acc valid M")
    rejects(lambda: L.matmul_acc(tile([16, 24], valid=[16, 23], space=Acc), lhs, rhs), "acc valid N")
    rejects(lambda: L.matmul_acc(tile([8, 24], space=Acc), lhs, rhs), "physical M")
    rejects(lambda: L.matmul_acc(tile([16, 24], ir.BF16, space=Acc), lhs, rhs), "accumulator dtype")
    assert L.matmul_acc(acc, lhs, rhs, init_cond=True).args[3].value is True
    rejects(lambda: L.matmul_acc(acc, lhs, rhs, init_cond=n), "BOOL")


def test_bias_gemv_and_batch() -> None:
    lhs, rhs = operands(16, 64, 32)
    bias = tile([1, 32], space=ir.MemorySpace.Bias)
    assert shape(L.matmul_bias(lhs, rhs, bias)) == [16, 32]
    rejects(lambda: L.matmul_bias(lhs, rhs, tile([1, 32], ir.BF16)), "requires bias dtype fp32")
    rejects(lambda: L.matmul_bias(lhs, rhs, tile([1, 32], valid=[1, 31])), "cover output valid N")
    rejects(lambda: L.matmul_bias(lhs, rhs, tile([1, 32], valid=[0, 32])), "cover one broadcast row")
    one, wide = operands(1, 64, 32)
    vector = L.gemv(one, wide)
    assert (
        shape(vector) == [16, 32]
        and valid(vector) == [1, 32]
        and vector.kwargs == {"acc_phase": "unspecified"}
    )
    rejects(lambda: L.gemv(lhs, rhs), "physical row extent to be exactly 1")
    rejects(lambda: L.gemv(*operands(16, 64, 32, lhs=[1, 64])), "row extent to be exactly 1")
    rejects(lambda: L.gemv(tile([1, 64], ir.FP16), tile([64, 32], ir.BF16)), "identical")
    rejects(
        lambda: L.gemv_acc(tile([16, 32], ir.INT32, valid=[1, 32], space=Acc), one, wide), "accumulator dtype"
    )
    biased = L.gemv_bias(one, wide, tile([1, 32]), acc_phase="final")
    assert shape(biased) == [16, 32] and valid(biased) == [1, 32]
    assert valid(L.batch_matmul(tile([2, 8, 8], valid=[1, 3, 4]), tile([2, 8, 8]))) == [2, 8, 8]
    assert L.gemv_acc(bound(vector), one, wide).type.dtype is ir.FP32
    rejects(lambda: L.gemv_acc(tile([16, 32], space=Acc), one, wide), "accumulator valid_shape")
    batch = L.batch_matmul(tile([1, 16, 32], ir.BF16), tile([4, 32, 64], ir.BF16))
    assert shape(batch) == [4, 16, 64] and batch.type.memory_space is Acc
    a, b = tile([2, 8, 8], ir.BF16), tile([2, 8, 8], ir.BF16)
    rejects(lambda: L.batch_matmul_acc(tile([3, 8, 8], space=Acc), a, b), "acc batch dim")


def test_block_scaled_products() -> None:
    lhs, rhs = tile([16, 64], ir.FP8E4M3FN), tile([64, 32], ir.FP8E4M3FN)
    ls, rs = tile([16, 2], ir.FP8E8M0), tile([2, 32], ir.FP8E8M0)
    assert shape(L.matmul_mx(lhs, ls, rhs, rs)) == [16, 32]
    rejects(lambda: L.matmul_mx(tile([16, 64], ir.FP4), ls, rhs, rs), "pl.cast")
    odd = tile([15, 64], ir.FP8E4M3FN)
    rejects(lambda: L.matmul_mx(odd, tile([15, 2], ir.FP8E8M0), rhs, rs), "divisible by 16")


# -- sort, gather, scatter -----------------------------------------------------------------------------------


def test_gather_dtypes_and_shapes() -> None:
    x, tmp = tile([8, 64]), tile([8, 64])
    for dtype in (ir.FP32, ir.INT32, ir.FP16, ir.INT16):
        source = tile([8, 64], dtype)
        gathered = L.gather(source, tile([4, 16], ir.INT32, valid=[2, 2]), tmp)
        assert shape(gathered) == valid(gathered) == [4, 16] and gathered.type.dtype is dtype
        if dtype in (ir.FP16, ir.INT16):
            assert L.gather(source, tile([4, 16], ir.INT16), tmp).type.dtype is dtype
        else:
            rejects(lambda source=source: L.gather(source, tile([4, 16], ir.INT16), tmp), "16-bit src")
    for dtype in (ir.BF16, ir.INT8, ir.UINT32, ir.INT64):
        rejects(lambda dtype=dtype: L.gather(tile([8, 64], dtype), tile([4, 16], ir.INT32), tmp), "src dtype")
    for dtype in (ir.UINT32, ir.INT64, ir.FP32):
        rejects(lambda dtype=dtype: L.gather(x, tile([4, 16], dtype), tmp), "indices dtype")
    offsets = tile([8, 16], ir.UINT32, valid=[5, 9])
    blocks = L.gatherb(tile([8, 64], ir.FP16), offsets)
    assert shape(blocks) == [8, 256] and valid(blocks) == [5, 144]
    symbolic = L.gatherb(x, tile([8, 16], ir.UINT32, valid=[5, n])).type.tile_view.valid_shape[1]
    assert isinstance(symbolic, ir.Mul) and symbolic.left is n
    wide = L.gatherb(tile([8, 64], ir.FP16), offsets, output_dtype=ir.FP32)
    assert shape(wide) == [8, 128] and valid(wide) == [5, 72]
    rejects(lambda: L.gatherb(x, tile([8, 12], ir.UINT32)), "multiple of 8")
    assert shape(L.gather_mask(x, L.MaskPattern.P0101)) == [8, 32]
    compared = L.gather_compare(x, 0.5, tmp, cmp_mode="gt", out_cols=16)
    assert isinstance(compared.type, ir.TupleType) and compared.type.types[0].memory_space is Vec
    rejects(lambda: L.gather_compare(x, symbol("s", ir.INT32), tmp, out_cols=16), "kvalue dtype")


def test_scatter_checks() -> None:
    masked = tile([8, 16])
    for pattern, columns in zip(range(1, 8), (8, 8, 4, 4, 4, 4, 16), strict=True):
        assert L.scatter_mask(masked, tile([8, columns]), pattern).type is masked.type
        rejects(
            lambda pattern=pattern: L.scatter_mask(masked, tile([8, 5]), pattern), f"mask_pattern={pattern}"
        )
    for pattern in (0, 8, 42, -1):
        rejects(lambda pattern=pattern: L.scatter_mask(masked, tile([8, 8]), pattern), "range [1, 7]")
    rejects(lambda: L.scatter_mask(tile([8, 16], ir.FP16), tile([8, 8], ir.INT16), 1), "same dtype")
    rejects(lambda: L.scatter_mask(tile([8, 12]), tile([8, 8]), 1), "mask_pattern=1")
    target, source = tile([8, 64]), tile([4, 16])
    assert L.scatter(target, source, tile([4, 16], ir.INT32)).type is target.type
    rejects(lambda: L.scatter(target, source, tile([4, 16], ir.INT16)), "requires indexes dtype")
    rejects(lambda: L.scatter(target, source, tile([4, 8], ir.INT32)), "indexes.shape[1] == src.shape[1]")
    for dim in (-1, 0, 1):
        rejects(
            lambda dim=dim: L.scatter_update(target, dim, tile([1, 4], ir.INT32), tile([4, 64])), "dim=-2"
        )
    rejects(lambda: L.scatter_update(target, -2, tile([1, 4], ir.INT32), tile([4, 64], ir.FP16)), "src dtype")
    out = tensor([1024])
    assert L.mscatter(source, tile([4, 16], ir.INT32), out).type is out.type
    rejects(lambda: L.mscatter(source, tile([4, 16], ir.UINT32), out), "INT32")


def test_mgather() -> None:
    memory = tensor([1024, 64])
    rows = L.mgather(memory, tile([1, 16], ir.INT32, valid=[1, 9]))
    assert shape(rows) == [16, 64] and valid(rows) == [9, 64] and rows.kwargs == {"coalesce": 0}
    elements = L.mgather(memory, tile([4, 16], ir.INT32, valid=[4, 9]), "elem", gather_oob="clamp")
    assert valid(elements) == [4, 9] and elements.kwargs == {"coalesce": 1, "gather_oob": 1}
    rejects(lambda: L.mgather(memory, tile([1, 16], ir.UINT32)), "INT32")
    for words, parameter in (
        (("row", "elem"), "coalesce"),
        (("undefined", "clamp", "wrap", "zero"), "gather_oob"),
    ):
        for code, word in enumerate(words):
            for spelling in (word, code):
                call = L.mgather(memory, tile([1, 16], ir.INT32), **{parameter: spelling})
                assert call.kwargs.get(parameter, 0) == code
        for wrong in (True, len(words), -1, "rows", 1.5):
            rejects(
                lambda parameter=parameter, wrong=wrong: L.mgather(
                    memory, tile([1, 16], ir.INT32), **{parameter: wrong}
                ),
                parameter,
            )
    mat = L.mgather(memory, tensor([1, 32], ir.INT32), target_memory=Mat)
    assert mat.type.memory_space is Mat and layout(mat) == (COL, ROW)
    index = tensor([16, 64], ir.INT32)
    rejects(lambda: L.mgather(memory, index, "elem", target_memory=Mat), "scratch")
    rejects(
        lambda: L.mgather(memory, index, "elem", target_memory=Mat, scratch=memory), "neither mem nor idx"
    )
    rejects(lambda: L.mgather(memory, tensor([1, 8], ir.INT32), target_memory=Mat), "divisible by 16")


def test_sorting() -> None:
    assert shape(L.sort32(tile([1, 64]), tile([1, 64], ir.UINT32))) == [1, 128]
    call = L.mrgsort(tile([1, 2048]), block_len=64)
    assert call.op.name == "tile.mrgsort_format1" and call.args[1].dtype is ir.INT32
    rejects(lambda: L.mrgsort(tile([1, 2048]), block_len=100), "positive multiple of 64")
    a, b = tile([1, 64]), tile([1, 128])
    assert shape(L.mrgsort(a, b, tmp=tile([1, 192]))) == [1, 192]
    rejects(lambda: L.mrgsort(a, b), "tmp")
    rejects(lambda: L.mrgsort(a), "block_len")


def test_gather_row_is_in_place() -> None:
    target = tile([16, 32], space=Mat)
    call = L.gather_row(target, tensor([1024, 32]), [0, 0], [n, 0], [1, 32])
    assert call.type is target.type and call.kwargs == {"transpose": False}


def test_tile_form_annotations_match_the_layout_table() -> None:
    assert (
        layout(bound(L.full([32, 1], ir.FP32, 0)))[0] is COL and layout(L.full([1, 1], ir.FP32, 0))[0] is ROW
    )
