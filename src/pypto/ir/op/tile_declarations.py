"""Declarations of the ``tile.*`` operators, by family."""

from __future__ import annotations

from pypto.ir.enums import ArgEffect, MemorySpace, WriteChannel
from pypto.ir.meaning import (
    Cast,
    Contraction,
    Elementwise,
    Meaning,
    Move,
    Opaque,
    Partial,
    Query,
    Reduce,
    Together,
)
from pypto.ir.op import dtypes as dt
from pypto.ir.op import tile_memory_rules as memory
from pypto.ir.op import tile_product_rules as products
from pypto.ir.op import tile_rules as rules
from pypto.ir.op.results import Acc, Left, Mat, Right, Vec
from pypto.ir.op_registry import (
    DEFERRED,
    INHERIT,
    WRITE_UNLESS_ATOMIC,
    Args,
    Deduce,
    EffectWhen,
    Kwargs,
    MemorySpec,
    register,
)
from pypto.ir.types import Type, UnknownType, scalar_type

_READ_WRITE_0 = {0: ArgEffect.ReadWrite}
Bias = MemorySpace.Bias
LeftScale, RightScale = MemorySpace.LeftScale, MemorySpace.RightScale

_ANY: tuple[MemorySpace, ...] = ()


def _spec(inputs: tuple[MemorySpace | None, ...], output: MemorySpace | str | None) -> MemorySpec:
    return MemorySpec(tuple(_ANY if space is None else (space,) for space in inputs), output)


_VECTOR = {count: _spec((Vec,) * count, Vec) for count in range(6)}
_VEC_ANY_VEC = _spec((Vec, None, Vec), Vec)
_INHERITS = _spec((), INHERIT)
_DEFERRED = _spec((), DEFERRED)
_MAKES_VEC = _spec((), Vec)


def _vector(
    leaf: str,
    signature: str,
    deduce: Deduce,
    meaning: Meaning,
    *,
    tiles: int | MemorySpec,
    kwargs: str = "",
    no_alias: tuple[int, ...] | str = (),
) -> None:
    """An operator on vector tiles; ``tiles`` is how many leading arguments must be in the vector buffer."""
    spec = _VECTOR[tiles] if isinstance(tiles, int) else tiles
    register(
        f"tile.{leaf}", signature, deduce, kwargs=kwargs, memory=spec, meaning=meaning, no_alias=no_alias
    )


# --- cell by cell ---------------------------------------------------------------------------------

_PAIR, _PAIR_TMP = "lhs: tile, rhs: tile", "lhs: tile, rhs: tile, tmp: tile"
_SCALAR, _SCALAR_TMP = "lhs: tile, rhs: scalar", "lhs: tile, rhs: scalar, tmp: tile"

_BINARY = {
    "add": "a + b",
    "sub": "a - b",
    "mul": "a * b",
    "maximum": "max(a, b)",
    "minimum": "min(a, b)",
    "fmod": "fmod(a, b)",
}
_SCALARS = {
    "adds": "a + b",
    "muls": "a * b",
    "divs": "div(a, b)",
    "maximums": "max(a, b)",
    "minimums": "min(a, b)",
    "fmods": "fmod(a, b)",
}
_PARTIAL = {"part_add": "a + b", "part_mul": "a * b", "part_max": "max(a, b)", "part_min": "min(a, b)"}
_BITWISE = {"and": "a & b", "or": "a | b", "shl": "shl(a, b)", "shr": "shr(a, b)"}
_EXPAND = {
    "sub": "a - b", "mul": "a * b", "div": "div(a, b)", "max": "max(a, b)", "min": "min(a, b)",
    "expdif": "exp(a - b)",
}  # fmt: skip
_APART = frozenset({"fmod", "fmods", "ands", "ors", "xors", "prelu", "recip", "rsqrt"})


def _no_alias(leaf: str) -> tuple[int, ...] | str:
    return "all" if leaf in _APART else ()


def _declare_arithmetic() -> None:
    for leaf, formula in _BINARY.items():
        _vector(
            leaf, _PAIR, rules.binary(f"tile.{leaf}"), Elementwise(formula), tiles=2, no_alias=_no_alias(leaf)
        )
    for leaf, formula in _PARTIAL.items():
        _vector(leaf, "src0: tile, src1: tile", rules.binary(f"tile.{leaf}"), Partial(formula), tiles=2)
    _vector("div", _PAIR, rules.div("tile.div"), Elementwise("div(a, b)"), tiles=2, kwargs="high_precision")
    _vector("rem", _PAIR_TMP, rules.binary("tile.rem"), Elementwise("floormod(a, b)"), tiles=3)
    for leaf, formula in _SCALARS.items():
        rule = rules.tile_scalar(f"tile.{leaf}")
        _vector(leaf, _SCALAR, rule, Elementwise(formula), tiles=1, no_alias=_no_alias(leaf))
    rule = rules.tile_scalar("tile.subs", allowed=dt.SUBTRACTABLE)
    _vector("subs", _SCALAR, rule, Elementwise("a - b"), tiles=1)
    _vector("rems", _SCALAR_TMP, rules.rems("tile.rems"), Elementwise("floormod(a, b)"), tiles=_VEC_ANY_VEC)
    three = "lhs: tile, rhs: tile, rhs2: tile"
    _vector("addc", three, rules.ternary("tile.addc"), Elementwise("a + b + c"), tiles=3)
    _vector("subc", three, rules.ternary("tile.subc"), Elementwise("a - b - c"), tiles=3)
    mixed = "lhs: tile, rhs: scalar, rhs2: tile"
    _vector(
        "addsc", mixed, rules.tile_scalar_tile("tile.addsc"), Elementwise("a + b + c"), tiles=_VEC_ANY_VEC
    )
    _vector(
        "subsc", mixed, rules.tile_scalar_tile("tile.subsc"), Elementwise("a - b - c"), tiles=_VEC_ANY_VEC
    )
    _vector(
        "prelu",
        "tile: tile, slope: tile, tmp: tile",
        rules.prelu,
        Elementwise("where(a > 0, a, a * b)"),
        tiles=3,
        no_alias="all",
    )
    _vector(
        "lrelu",
        "tile: tile, slope: scalar",
        rules.tile_scalar("tile.lrelu"),
        Elementwise("where(a > 0, a, a * b)"),
        tiles=1,
    )
    _vector(
        "expands", "target: tile, scalar: scalar", rules.expands("tile.expands"), Elementwise("b"), tiles=1
    )


def _declare_bitwise() -> None:
    for leaf, formula in _BITWISE.items():
        shift = leaf in ("shl", "shr")
        rule = rules.binary(f"tile.{leaf}", integers=True, keeps_lhs=shift)
        _vector(leaf, _PAIR, rule, Elementwise(formula), tiles=2)
        rule = rules.tile_scalar(f"tile.{leaf}s", integers=True)
        _vector(f"{leaf}s", _SCALAR, rule, Elementwise(formula), tiles=1, no_alias=_no_alias(f"{leaf}s"))
    _vector("xor", _PAIR_TMP, rules.binary("tile.xor", integers=True), Elementwise("a ^ b"), tiles=3)
    _vector(
        "xors",
        _SCALAR_TMP,
        rules.tile_scalar("tile.xors", integers=True),
        Elementwise("a ^ b"),
        tiles=_VEC_ANY_VEC,
        no_alias="all",
    )
    _vector(
        "not",
        "tile: tile",
        rules.unary("tile.not", allowed=(dt.INT16, dt.UINT16)),
        Elementwise("~a"),
        tiles=1,
    )


def _declare_unary() -> None:
    for leaf, formula in (
        ("neg", "-a"),
        ("abs", "abs(a)"),
        ("exp", "exp(a)"),
        ("sqrt", "sqrt(a)"),
        ("relu", "max(a, 0)"),
    ):
        _vector(leaf, "tile: tile", rules.unary(f"tile.{leaf}"), Elementwise(formula), tiles=1)
    rule = rules.unary("tile.log", allowed=(dt.FP16, dt.FP32))
    _vector("log", "tile: tile", rule, Elementwise("log(a)"), tiles=1, kwargs="high_precision")
    _vector(
        "recip",
        "tile: tile",
        rules.unary("tile.recip"),
        Elementwise("recip(a)"),
        tiles=1,
        kwargs="high_precision",
        no_alias="all",
    )
    _vector("rsqrt", "tile: tile, tmp?: tile", rules.rsqrt, Elementwise("rsqrt(a)"), tiles=2, no_alias="all")
    for leaf in ("sin", "cos"):
        rule = rules.unary(
            f"tile.{leaf}", allowed=(dt.FP32,), hint="; convert with pl.cast(<value>, pl.FP32)"
        )
        _vector(leaf, "tile: tile", rule, Elementwise(f"{leaf}(a)"), tiles=1)
    _vector("cast", "tile: tile", rules.cast, Cast(), tiles=1, kwargs="target_type mode:int")


def _declare_compare() -> None:
    packed = Elementwise("compare(a, b, cmp_type)", packs=True)
    _vector("cmp", _PAIR, rules.compare("tile.cmp"), packed, tiles=2, kwargs="cmp_type")
    _vector("cmps", _SCALAR, rules.compare("tile.cmps"), packed, tiles=1, kwargs="cmp_type")
    _vector(
        "sel",
        "mask: tile, lhs: tile, rhs: tile, tmp: tile",
        rules.sel,
        Elementwise("where(a, b, c)", mask_operands=(0,)),
        tiles=4,
        no_alias=(0, 3),
    )
    _vector(
        "sels",
        "mask: tile, src: tile, tmp: tile, scalar: scalar",
        rules.sels,
        Elementwise("where(a, b, d)", mask_operands=(0,)),
        tiles=3,
        no_alias=(0,),
    )


# --- along an axis --------------------------------------------------------------------------------


def _declare_axis_families() -> None:
    with_tmp = "tile: tile, tmp_tile: tile"
    for combine in ("sum", "max", "min", "prod", "argmax", "argmin"):
        index = combine.startswith("arg")
        rule = rules.row_reduction(f"tile.row_{combine}", index=index, nd_only=combine == "min")
        meaning = Reduce(combine, "row")
        _vector(f"row_{combine}", with_tmp, rule, meaning, tiles=2, no_alias="all")
        signature = with_tmp if index else "tile: tile, tmp_tile?: tile" if combine == "sum" else "tile: tile"
        rule = rules.col_reduction(f"tile.col_{combine}", index=index)
        meaning = Reduce(combine, "col")
        _vector(
            f"col_{combine}",
            signature,
            rule,
            meaning,
            tiles=2 if index or combine == "sum" else 1,
            no_alias="all" if index else (),
        )
    for side, rule_of in (("row", rules.row_expand), ("col", rules.col_expand)):
        signature = f"tile: tile, {side}_vec: tile"
        for suffix, formula in _EXPAND.items():
            leaf = f"{side}_expand_{suffix}"
            _vector(leaf, signature, rule_of(f"tile.{leaf}"), Elementwise(formula), tiles=2, no_alias=(1,))
        leaf = f"{side}_expand"
        _vector(
            leaf,
            f"target: tile, {side}_vec: tile",
            rule_of(f"tile.{leaf}"),
            Elementwise("b"),
            tiles=2,
            no_alias=(1,),
        )
    _vector(
        "col_expand_add",
        "tile: tile, col_vec: tile",
        rules.col_expand("tile.col_expand_add"),
        Elementwise("a + b"),
        tiles=2,
        no_alias=(1,),
    )
    _vector(
        "row_expand_add",
        "tile: tile, row_vec: tile, tmp?: any",
        rules.row_expand_add,
        Elementwise("a + b"),
        tiles=3,
        no_alias=(1, 2),
    )


# --- memory ---------------------------------------------------------------------------------------


def _declare_transfer() -> None:
    register(
        "tile.create",
        "shape: tuple",
        memory.create,
        kwargs="target_memory dtype flat_layout transpose",
        memory=_DEFERRED,
        affinity="shared",
        metadata_only=True,
        meaning=Move("create"),
    )
    register(
        "tile.load",
        "tensor: tensor, offsets: tuple, shapes: tuple, valid_shape: tuple",
        memory.load,
        kwargs="target_memory clamp",
        memory=_DEFERRED,
        meaning=Move("load"),
    )
    register(
        "tile.store",
        "tile: tile, offsets: tuple, output_tensor: tensor, shapes?: tuple",
        memory.store,
        kwargs="atomic",
        memory=MemorySpec(((Vec, Acc),), None),
        effects={2: WRITE_UNLESS_ATOMIC},
        channel=WriteChannel.Dma,
        reuses=2,
        meaning=Move("store"),
    )
    register(
        "tile.move",
        "tile: tile",
        memory.move,
        kwargs="target_memory blayout slayout",
        memory=_MAKES_VEC,
        no_alias="all",
        meaning=Move("move"),
    )
    register(
        "tile.alloc",
        "memory_space: scalar, size: scalar",
        memory.alloc,
        kwargs="pinned",
        affinity="vector",
        metadata_only=True,
        meaning=Opaque("it only declares a buffer"),
    )
    register(
        "tile.read",
        "tile: tile, indices: tuple",
        memory.read,
        memory=_spec((Vec,), None),
        meaning=Move("read"),
    )
    register(
        "tile.write",
        "tile: tile, indices: tuple, value: scalar",
        memory.write,
        memory=_VECTOR[1],
        effects=_READ_WRITE_0,
        meaning=Move("write"),
    )
    register(
        "tile.assemble",
        "target: tile, source: tile, offset: tuple",
        memory.assemble,
        memory=_INHERITS,
        effects=_READ_WRITE_0,
        meaning=Move("assemble"),
    )
    register(
        "tile.extract",
        "src: tile, index_row: scalar, index_col: scalar, shape: tuple",
        memory.extract,
        kwargs="target_memory",
        memory=_MAKES_VEC,
        no_alias="all",
        meaning=Move("extract"),
    )
    register(
        "tile.transpose",
        "tile: tile, axis1: scalar, axis2: scalar, tmp_tile?: tile",
        memory.transpose,
        memory=_INHERITS,
        no_alias="all",
        meaning=Move("transpose"),
    )
    register(
        "tile.gather_row",
        "dst: tile, src: tensor|tile, dst_offset: tuple, src_offset: tuple, shapes: tuple,"
        " valid_shape?: tuple",
        memory.gather_row,
        kwargs="transpose",
        effects=_READ_WRITE_0,
        reuses=0,
        meaning=Move("gather_row"),
    )
    register(
        "tile.tget_scale_addr",
        "dst_scale: tile, src: tile",
        memory.tget_scale_addr,
        memory=_INHERITS,
        effects={0: ArgEffect.Write},
        reuses=0,
        meaning=Opaque("the address of a scale has no meaning for a tile on the CPU"),
    )


def _declare_views() -> None:
    """Operators whose result shares the buffer of argument 0."""
    for leaf, signature, deduce, kwargs in (
        (
            "slice",
            "tile: tile, shape: tuple, offset: tuple, valid_shape?: tuple, drop_dims?: tuple",
            memory.slice_,
            "pad_value",
        ),
        ("reshape", "tile: tile, shape: tuple", memory.reshape, ""),
        ("reinterpret_view", "data: tile, shape?: tuple", memory.reinterpret_view, "dtype"),
        ("transpose_view", "tile: tile", memory.transpose_view, ""),
        ("set_validshape", "tile: tile, valid_rows: scalar, valid_cols: scalar", memory.set_validshape, ""),
    ):
        register(
            f"tile.{leaf}",
            signature,
            deduce,
            kwargs=kwargs,
            memory=_INHERITS,
            views=True,
            metadata_only=True,
            meaning=Move(leaf),
        )


def _declare_padding_and_generators() -> None:
    _vector("concat", "src0: tile, src1: tile", memory.concat, Move("concat"), tiles=2, no_alias="all")
    _vector(
        "fillpad", "tile: tile", memory.fillpad("tile.fillpad"), Move("fillpad"), tiles=1, kwargs="pad_value"
    )
    register(
        "tile.fillpad_inplace",
        "tile: tile",
        memory.fillpad("tile.fillpad_inplace"),
        kwargs="pad_value",
        memory=_VECTOR[1],
        effects=_READ_WRITE_0,
        reuses=0,
        meaning=Move("fillpad"),
    )
    _vector(
        "fillpad_expand",
        "tile: tile, shape: tuple",
        memory.fillpad_expand,
        Move("fillpad_expand"),
        tiles=1,
        kwargs="pad_value",
        no_alias="all",
    )
    words = ", ".join(
        f"{name}: scalar" for name in ("key0", "key1", "counter0", "counter1", "counter2", "counter3")
    )
    for leaf, signature, deduce, kwargs in (
        ("full", "shape: tuple, value: scalar", memory.full, "dtype"),
        ("ci", "start: scalar, shape: tuple", memory.arange, "dtype descending"),
        ("tri", "diagonal: scalar, shape: tuple, valid_shape?: tuple", memory.tri, "dtype upper"),
        ("random", f"{words}, shape: tuple, valid_shape?: tuple", memory.random, "dtype rounds"),
    ):
        register(f"tile.{leaf}", signature, deduce, kwargs=kwargs, memory=_MAKES_VEC, meaning=Move(leaf))
    for query, affinity in (
        ("get_block_idx", "shared"),
        ("get_block_num", "shared"),
        ("get_subblock_idx", "vector"),
    ):
        register(
            f"tile.{query}", "", _index_scalar, affinity=affinity, metadata_only=True, meaning=Query(query)
        )


def _index_scalar(args: Args, kwargs: Kwargs) -> Type:
    return scalar_type(dt.INDEX)


# --- matrix products ------------------------------------------------------------------------------


def _declare_products() -> None:
    plain, acc, bias = (Left, Right), (Acc, Left, Right), (Left, Right, Bias)
    operands = "lhs: tile, rhs: tile"
    for leaf, signature, deduce, spaces, meaning, kwargs in (
        ("matmul", operands, products.matmul, plain, Contraction(False), ""),
        (
            "matmul_acc",
            f"acc: tile, {operands}, init_cond?: scalar",
            products.matmul_acc,
            acc,
            Contraction(True),
            "",
        ),
        ("matmul_bias", f"{operands}, bias: tile", products.matmul_bias, bias, Contraction(False, True), ""),
        ("batch_matmul", operands, products.batch_matmul, plain, Contraction(False), ""),
        ("batch_matmul_acc", f"acc: tile, {operands}", products.batch_matmul_acc, acc, Contraction(True), ""),
        ("gemv", operands, products.gemv, plain, Contraction(False), "acc_phase"),
        ("gemv_acc", f"acc: tile, {operands}", products.gemv_acc, acc, Contraction(True), "acc_phase"),
        (
            "gemv_bias",
            f"{operands}, bias: tile",
            products.gemv_bias,
            bias,
            Contraction(False, True),
            "acc_phase",
        ),
    ):
        _product(leaf, signature, deduce, spaces, meaning, kwargs)
    scaled = "lhs: tile, lhs_scale: tile, rhs: tile, rhs_scale: tile"
    spaces4 = (Left, LeftScale, Right, RightScale)
    into, biased = Contraction(True, scaled=True), Contraction(False, bias=True, scaled=True)
    _product("matmul_mx", scaled, products.matmul_mx, spaces4, Contraction(False, scaled=True))
    _product("matmul_mx_acc", f"acc: tile, {scaled}", products.matmul_mx_acc, (Acc, *spaces4), into)
    _product("matmul_mx_bias", f"{scaled}, bias: tile", products.matmul_mx_bias, (*spaces4, Bias), biased)


def _product(
    leaf: str,
    signature: str,
    deduce: Deduce,
    spaces: tuple[MemorySpace, ...],
    meaning: Meaning,
    kwargs: str = "",
) -> None:
    in_place = leaf.endswith("_acc")
    register(
        f"tile.{leaf}",
        signature,
        deduce,
        kwargs=kwargs,
        memory=_spec(spaces, Acc),
        effects=_READ_WRITE_0 if in_place else {},
        reuses=0 if in_place else None,
        meaning=meaning,
    )


# --- sort, gather, scatter ------------------------------------------------------------------------


def _declare_permutations() -> None:
    _vector("sort32", "src: tile, idx: tile", products.sort32, Move("sort32"), tiles=2, no_alias="all")
    _vector(
        "mrgsort_format1",
        "src: tile, block_len: scalar",
        products.mrgsort_format1,
        Move("mrgsort_blocks"),
        tiles=1,
        no_alias="all",
    )
    _vector(
        "mrgsort_format2",
        "src0: tile, src1: tile, *more: tile",
        products.mrgsort_format2,
        Move("mrgsort_lists"),
        tiles=5,
        kwargs="exhausted",
        no_alias="all",
    )
    _vector(
        "gather",
        "src: tile, indices: tile, tmp: tile",
        products.gather,
        Move("gather_flat"),
        tiles=3,
        no_alias="all",
    )
    _vector(
        "gatherb",
        "src: tile, offset: tile",
        products.gatherb,
        Move("gather_blocks"),
        tiles=2,
        kwargs="output_dtype",
        no_alias="all",
    )
    _vector(
        "gather_mask",
        "src: tile",
        products.gather_mask,
        Move("gather_mask"),
        tiles=1,
        kwargs="mask_pattern output_dtype",
        no_alias="all",
    )
    _vector(
        "gather_compare",
        "src: tile, kvalue: scalar, tmp: tile",
        products.gather_compare,
        Move("gather_compare"),
        tiles=_VEC_ANY_VEC,
        kwargs="cmp_mode count_dtype offset out_cols",
        no_alias="all",
    )
    for leaf, signature, deduce, kwargs, tiles in (
        ("scatter", "dst: tile, src: tile, indexes: tile", products.scatter, "", 3),
        ("scatter_mask", "dst: tile, src: tile", products.scatter_mask, "mask_pattern", 2),
        ("scatter_update", "input: tile, index: tile, src: tile", products.scatter_update, "dim", 3),
    ):
        meaning = Move("scatter_flat" if leaf == "scatter" else leaf)
        register(
            f"tile.{leaf}",
            signature,
            deduce,
            kwargs=kwargs,
            memory=_VECTOR[tiles],
            effects=_READ_WRITE_0,
            reuses=0,
            meaning=meaning,
        )
    register(
        "tile.mscatter",
        "src: tile, idx: tile, output_tensor: tensor",
        products.mscatter,
        memory=_spec((Vec, Vec), None),
        effects={2: ArgEffect.Write},
        channel=WriteChannel.Dma,
        reuses=2,
        meaning=Move("mscatter"),
    )
    scratch = EffectWhen(ArgEffect.Read, (("target_memory", Mat), ("coalesce", 1)), ArgEffect.Write)
    register(
        "tile.mgather",
        "mem: tensor, idx: tensor|tile, scratch?: any, valid_shape?: tuple",
        products.mgather,
        kwargs="target_memory coalesce gather_oob",
        memory=_MAKES_VEC,
        effects={2: scratch},
        channel=WriteChannel.Dma,
        no_alias="all",
        meaning=Move("mgather"),
    )


# --- lanes ----------------------------------------------------------------------------------------


def _unknown(args: Args, kwargs: Kwargs) -> Type:
    return UnknownType.get()


def _declare_lanes() -> None:
    register(
        "tile.aiv_shard",
        "x: tile",
        memory.aiv_shard,
        kwargs="split lane_stride",
        memory=_MAKES_VEC,
        meaning=Together("shard"),
    )
    register(
        "tile.aic_gather",
        "x: tile",
        memory.aic_gather,
        kwargs="split",
        memory=_spec((), Mat),
        meaning=Together("gather"),
    )
    for leaf, signature, kwargs, affinity, kind in (
        ("tpush_to_aiv", "tile: tile", "id split lane_stride", "cube", "push_to_vector"),
        ("tpush_to_aic", "tile: tile", "id split", "vector", "push_to_cube"),
        ("tpop_from_aic", "", "id split lane_stride", "vector", "pop_from_cube"),
        ("tpop_from_aiv", "", "id split", "cube", "pop_from_vector"),
    ):
        meaning = Together(kind)
        register(f"tile.{leaf}", signature, _unknown, kwargs=kwargs, affinity=affinity, meaning=meaning)


_declare_arithmetic()
_declare_bitwise()
_declare_unary()
_declare_compare()
_declare_axis_families()
_declare_transfer()
_declare_views()
_declare_padding_and_generators()
_declare_products()
_declare_permutations()
_declare_lanes()
