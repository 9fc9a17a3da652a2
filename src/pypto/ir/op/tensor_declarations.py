"""Declarations of the ``tensor.*`` and ``array.*`` operators, by family."""

from __future__ import annotations

from pypto.ir.enums import ArgEffect, WriteChannel
from pypto.ir.expr import ConstInt
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
from pypto.ir.op import tensor_rules as rules
from pypto.ir.op import tensor_view_rules as views
from pypto.ir.op.extents import show, show_all
from pypto.ir.op.results import fresh_tensor, int_elements, scalar_dtype, tensor_of
from pypto.ir.op_registry import INHERIT, WRITE_UNLESS_ATOMIC, Args, Deduce, Kwargs, MemorySpec, register
from pypto.ir.types import ArrayType, PtrType, ScalarType, Type, scalar_type

_INHERITS = MemorySpec((), INHERIT)


# --- elementwise ----------------------------------------------------------------------------------

_LHS_RHS, _LHS_ANY = "lhs: tensor, rhs: tensor", "lhs: tensor, rhs: tensor|scalar"
_LHS_SCALAR = "lhs: tensor, rhs: scalar"

#: leaf -> formula of a (tensor) and b (tensor, broadcast, or scalar)
_BINARY = {"add": "a + b", "sub": "a - b", "mul": "a * b", "fmod": "fmod(a, b)"}
_BINARY_ANY = {"maximum": "max(a, b)", "minimum": "min(a, b)"}
_SCALAR = {"adds": "a + b", "muls": "a * b", "divs": "div(a, b)", "fmods": "fmod(a, b)"}
_PARTIAL = {"part_add": "a + b", "part_mul": "a * b", "part_max": "max(a, b)", "part_min": "min(a, b)"}
_BITWISE = {"and": "a & b", "or": "a | b", "xor": "a ^ b", "shl": "shl(a, b)", "shr": "shr(a, b)"}
_VECTOR = {
    "add": "a + b", "sub": "a - b", "mul": "a * b", "div": "div(a, b)", "max": "max(a, b)", "min": "min(a, "
    "b)",
    "expdif": "exp(a - b)",
}  # fmt: skip


def _declare_elementwise() -> None:
    for leaf, formula in _BINARY.items():
        register(f"tensor.{leaf}", _LHS_RHS, rules.binary(f"tensor.{leaf}"), meaning=Elementwise(formula))
    for leaf, formula in _BINARY_ANY.items():
        register(f"tensor.{leaf}", _LHS_ANY, rules.binary(f"tensor.{leaf}"), meaning=Elementwise(formula))
    for leaf, formula in _PARTIAL.items():
        rule = rules.binary(f"tensor.{leaf}", carries=False)
        register(f"tensor.{leaf}", _LHS_RHS, rule, meaning=Partial(formula))
    register(
        "tensor.div",
        _LHS_RHS,
        rules.div("tensor.div"),
        kwargs="high_precision",
        meaning=Elementwise("div(a, b)"),
    )
    register(
        "tensor.cmp", _LHS_ANY, _compare, kwargs="cmp_type", meaning=Elementwise("compare(a, b, cmp_type)")
    )
    for leaf, formula in _SCALAR.items():
        register(
            f"tensor.{leaf}", _LHS_SCALAR, rules.tensor_scalar(f"tensor.{leaf}"), meaning=Elementwise(formula)
        )
    rule = rules.tensor_scalar("tensor.subs", allowed=dt.SUBTRACTABLE, keeps_dtype=True)
    register("tensor.subs", _LHS_SCALAR, rule, meaning=Elementwise("a - b"))
    for leaf, formula in _BITWISE.items():
        shift, carries = leaf in ("shl", "shr"), leaf != "xor"
        rule = rules.bitwise(f"tensor.{leaf}", keeps_lhs=shift, carries=carries)
        register(f"tensor.{leaf}", _LHS_RHS, rule, meaning=Elementwise(formula))
        rule = rules.bitwise_scalar(f"tensor.{leaf}s", shift=shift, carries=carries)
        register(f"tensor.{leaf}s", _LHS_SCALAR, rule, meaning=Elementwise(formula))
    register(
        "tensor.expands",
        "target: plain, scalar: scalar",
        rules.expands("tensor.expands"),
        meaning=Elementwise("b"),
    )


_compare_types = rules.binary("tensor.cmp", carries=False)


def _compare(args: Args, kwargs: Kwargs) -> Type:
    rules.check_compare_code("tensor.cmp", kwargs)
    return _compare_types(args, kwargs)


# --- unary ----------------------------------------------------------------------------------------

_FP32_HINT = "; convert with pl.cast(<value>, pl.FP32)"


def _declare_unary() -> None:
    for leaf, formula in (("neg", "-a"), ("abs", "abs(a)")):
        register(
            f"tensor.{leaf}", "input: tensor", rules.unary(f"tensor.{leaf}"), meaning=Elementwise(formula)
        )
    for leaf in ("exp", "sqrt"):
        rule = rules.unary(f"tensor.{leaf}", floats=True)
        register(f"tensor.{leaf}", "input: tensor", rule, meaning=Elementwise(f"{leaf}(a)"))
    for leaf, precise in (("rsqrt", None), ("recip", (dt.FP16, dt.FP32))):
        rule = rules.unary(f"tensor.{leaf}", floats=True, precise=precise)
        register(
            f"tensor.{leaf}",
            "input: tensor",
            rule,
            kwargs="high_precision",
            meaning=Elementwise(f"{leaf}(a)"),
        )
    rule = rules.unary("tensor.log", allowed=(dt.FP16, dt.FP32))
    register("tensor.log", "input: tensor", rule, kwargs="high_precision", meaning=Elementwise("log(a)"))
    for leaf in ("sin", "cos"):
        rule = rules.unary(f"tensor.{leaf}", allowed=(dt.FP32,), hint=_FP32_HINT)
        register(f"tensor.{leaf}", "input: tensor", rule, meaning=Elementwise(f"{leaf}(a)"))
    rule = rules.unary("tensor.not", allowed=(dt.INT16, dt.UINT16))
    register("tensor.not", "input: tensor", rule, meaning=Elementwise("~a"))
    register(
        "tensor.cast",
        "input: tensor",
        rules.cast("tensor.cast"),
        kwargs="target_type mode:int",
        meaning=Cast(),
    )


# --- along an axis --------------------------------------------------------------------------------


def _declare_axis_families() -> None:
    for side, axis in (("row", -1), ("col", -2)):
        for combine in ("sum", "max", "min", "prod", "argmax", "argmin"):
            name = f"tensor.{side}_{combine}"
            rule = rules.reduction(
                name,
                axis,
                result=dt.INT32 if combine.startswith("arg") else None,
                allowed=dt.INT16_INT32_FP16_FP32 if name == "tensor.row_min" else None,
            )
            meaning = Reduce(combine, side)  # type: ignore[arg-type]
            register(name, "input: plain", rule, kwargs="axis keep_dim", meaning=meaning)
        vector = f"{side}_vec"
        for suffix, formula in _VECTOR.items():
            name = f"tensor.{side}_expand_{suffix}"
            same = dt.INT8_TO_FP32 if name == "tensor.row_expand_add" else None
            rule = rules.vector_expand(name, axis, same_dtype=same)
            register(name, f"tensor: plain, {vector}: plain", rule, meaning=Elementwise(formula))
        name = f"tensor.{side}_expand"
        first = "target" if side == "row" else "tensor"
        register(
            name,
            f"{first}: plain, {vector}: plain",
            rules.vector_expand(name, axis),
            meaning=Elementwise("b"),
        )
    register(
        "tensor.expand_clone",
        "src: plain, target: plain",
        rules.expand_clone("tensor.expand_clone"),
        meaning=Elementwise("a"),
    )


# --- creation, elements, views --------------------------------------------------------------------


def _plain(deduce: Deduce, name: str, signature: str, meaning: Meaning, kwargs: str = "") -> None:
    register(f"tensor.{name}", signature, deduce, kwargs=kwargs, meaning=meaning)


def _ci(args: Args, kwargs: Kwargs) -> Type:
    return fresh_tensor(*rules.ci("tensor.ci", args, kwargs))


def _random(args: Args, kwargs: Kwargs) -> Type:
    dtype = rules.check_random("tensor.random", args, kwargs)
    shape = int_elements(args[6], "tensor.random", "shape")
    if len(shape) != 2:
        raise ValueError(f"The operator tensor.random requires a 2D shape, got {show_all(shape)}")
    return fresh_tensor(shape, dtype)


def _read(args: Args, kwargs: Kwargs) -> Type:
    source = tensor_of(args[0])
    rules.check_indices("tensor.read", args[1], len(source.shape_), "tensor")
    return scalar_type(source.dtype)


def _write(args: Args, kwargs: Kwargs) -> Type:
    target = tensor_of(args[0])
    rules.check_indices("tensor.write", args[1], len(target.shape_), "tensor")
    rules.check_value("tensor.write", args[2], target.dtype, "tensor")
    return target


def _index_scalar(args: Args, kwargs: Kwargs) -> Type:
    return scalar_type(dt.INDEX)


def _alloc(args: Args, kwargs: Kwargs) -> Type:
    return PtrType.get()


_WORDS = ", ".join(
    f"{name}: scalar" for name in ("key0", "key1", "counter0", "counter1", "counter2", "counter3")
)


def _declare_creation_and_views() -> None:
    _plain(views.create, "create", "shape: tuple", Move("create"), "dtype init_value layout manual_dep")
    _plain(views.full, "full", "shape: tuple, value: scalar", Move("full"), "dtype")
    _plain(_ci, "ci", "start: scalar, shape: tuple", Move("ci"), "dtype descending")
    _plain(_random, "random", f"{_WORDS}, shape: tuple", Move("random"), "dtype rounds")
    _plain(views.create_l1, "create_l1", "shape: tuple", Move("create"), "dtype transpose")
    _plain(_read, "read", "tensor: tensor, indices: tuple", Move("read"))
    _plain(views.dim, "dim", "tensor: plain, axis: scalar", Query("dim"))
    _plain(
        views.transpose,
        "transpose",
        "tensor: plain, axis1: scalar, axis2: scalar, valid_shape?: tuple",
        Move("transpose"),
    )
    _plain(views.concat, "concat", "src0: plain, src1: plain", Move("concat"))
    _plain(views.fillpad, "fillpad", "tensor: plain", Move("fillpad"), "pad_value")
    _plain(
        views.fillpad_expand,
        "fillpad_expand",
        "tensor: plain, shape: tuple",
        Move("fillpad_expand"),
        "pad_value",
    )
    _plain(
        views.aiv_shard,
        "aiv_shard",
        "x: tensor",
        Together("shard"),
        "split",
    )
    _plain(
        views.aic_gather,
        "aic_gather",
        "x: tensor",
        Together("gather"),
        "split",
    )
    for query in ("get_block_idx", "get_block_num", "get_subblock_idx"):
        register(f"tensor.{query}", "", _index_scalar, meaning=Query(query), metadata_only=True)
    register(
        "tensor.alloc",
        "memory_space: scalar, size: scalar",
        _alloc,
        meaning=Opaque("it only declares a buffer"),
    )
    register(
        "tensor.write",
        "tensor: tensor, indices: tuple, value: scalar",
        _write,
        effects={0: ArgEffect.Write},
        channel=WriteChannel.Scalar,
        meaning=Move("write"),
    )
    register(
        "tensor.assemble",
        "target: tensor, source: tensor, offset: tuple",
        views.assemble,
        kwargs="atomic",
        effects={0: WRITE_UNLESS_ATOMIC},
        channel=WriteChannel.Dma,
        reuses=0,
        meaning=Move("assemble"),
    )
    _declare_zero_copy()


def _declare_zero_copy() -> None:
    """Views that share the buffer of argument 0."""
    for leaf, signature, deduce, kwargs in (
        (
            "slice",
            "tensor: tensor, shape: tuple, offset: tuple, valid_shape?: tuple, drop_dims?: tuple",
            views.slice_,
            "clamp pad_value",
        ),
        ("reshape", "tensor: plain, shape: tuple, valid_shape?: tuple", views.reshape, ""),
        ("view", "tensor: tensor, shape?: tuple, valid_shape?: tuple", views.view, "layout"),
        ("reinterpret_view", "data: tensor, shape?: tuple", views.reinterpret_view, "dtype"),
    ):
        register(
            f"tensor.{leaf}",
            signature,
            deduce,
            kwargs=kwargs,
            memory=_INHERITS,
            views=True,
            metadata_only=leaf != "slice",
            meaning=Move(leaf),
        )
    register(
        "tensor.set_validshape",
        "tensor: plain, valid_rows: scalar, valid_cols: scalar",
        views.set_validshape,
        memory=_INHERITS,
        views=True,
        reuses=0,
        writes_nothing=True,
        metadata_only=True,
        meaning=Move("set_validshape"),
    )


# --- products, sorting, gather, scatter -----------------------------------------------------------


def _gather_row(args: Args, kwargs: Kwargs) -> Type:
    acc, source = tensor_of(args[0]), tensor_of(args[1])
    rules.check_gather_row("tensor.gather_row", acc.dtype, source.dtype, args, kwargs)
    return acc


def _scatter_mask(args: Args, kwargs: Kwargs) -> Type:
    rules.check_scatter_mask("tensor.scatter_mask", args[0], args[1], kwargs)
    target = tensor_of(args[1])
    return fresh_tensor(target.shape_, target.dtype)


def _scatter_update(args: Args, kwargs: Kwargs) -> Type:
    rules.check_scatter_update("tensor.scatter_update", args[0].type, args[1].type, args[2].type, kwargs)
    target = tensor_of(args[0])
    return fresh_tensor(target.shape_, target.dtype)


def _declare_products_and_permutations() -> None:
    _plain(
        rules.matmul("tensor.matmul"),
        "matmul",
        "lhs: plain, rhs: plain",
        Contraction(accumulate=False),
        "a_trans b_trans c_matrix_nz out_dtype",
    )
    _plain(
        rules.matmul_acc("tensor.matmul_acc"),
        "matmul_acc",
        "acc: plain, lhs: plain, rhs: plain, init_cond?: scalar",
        Contraction(accumulate=True),
        "a_trans b_trans",
    )
    _plain(rules.sort32("tensor.sort32"), "sort32", "src: plain, idx: plain", Move("sort32"))
    _plain(
        rules.merge_blocks("tensor.mrgsort_format1"),
        "mrgsort_format1",
        "src: plain, block_len: scalar",
        Move("mrgsort_blocks"),
    )
    _plain(
        rules.merge_lists("tensor.mrgsort_format2"),
        "mrgsort_format2",
        "src0: plain, src1: plain, src2?: plain, src3?: plain",
        Move("mrgsort_lists"),
        "exhausted",
    )
    _plain(rules.gather("tensor.gather"), "gather", "input: plain, index: plain", Move("gather"), "dim")
    _plain(
        rules.gather_mask("tensor.gather_mask"),
        "gather_mask",
        "input: plain",
        Move("gather_mask"),
        "mask_pattern output_dtype",
    )
    _plain(
        rules.gather_compare("tensor.gather_compare"),
        "gather_compare",
        "input: plain, kvalue: scalar",
        Move("gather_compare"),
        "cmp_mode count_dtype offset out_cols",
    )
    _plain(
        _gather_row,
        "gather_row",
        "acc: plain, src: plain, dst_offset: tuple, src_offset: tuple, shapes: tuple, valid_shape?: tuple",
        Move("gather_row"),
        "transpose",
    )
    _plain(
        rules.scatter("tensor.scatter"),
        "scatter",
        "input: plain, index: plain, src: plain",
        Move("scatter"),
        "dim",
    )
    _plain(_scatter_mask, "scatter_mask", "input: plain, dst: plain", Move("scatter_mask"), "mask_pattern")
    _plain(
        _scatter_update,
        "scatter_update",
        "input: plain, index: plain, src: plain",
        Move("scatter_update"),
        "dim",
    )
    _plain(
        rules.paged_gather("tensor.paged_gather"),
        "paged_gather",
        "src: plain, indices: plain, block_table: plain",
        Move("paged_gather"),
        "block_size col_off is_b_matrix is_trans max_indices size space",
    )


# --- arrays ---------------------------------------------------------------------------------------


def _array_create(args: Args, kwargs: Kwargs) -> Type:
    extent = args[0]
    if not isinstance(extent, ConstInt):
        raise ValueError(
            f"The operator array.create: extent must be a compile-time ConstInt, got {show(extent)}"
        )
    if "dtype" not in kwargs:
        raise ValueError("The operator array.create requires a 'dtype' kwarg")
    return ArrayType(kwargs["dtype"], extent)


def _check_array_index(op: str, args: Args) -> ArrayType:
    array = args[0].type
    assert isinstance(array, ArrayType)
    index = scalar_dtype(args[1], op, "index")
    if not index.is_int():
        raise ValueError(f"The operator {op} requires an integer index, got {index}")
    rules.check_not_negative(op, args[1], 0)
    return array


def _array_get(args: Args, kwargs: Kwargs) -> Type:
    return scalar_type(_check_array_index("array.get_element", args).dtype)


def _array_update(args: Args, kwargs: Kwargs) -> Type:
    op = "array.update_element"
    array = _check_array_index(op, args)
    kind = args[2].type
    assert isinstance(kind, ScalarType)
    mixes = dt.INDEX in (kind.dtype, array.dtype) and kind.dtype.is_int() and array.dtype.is_int()
    if kind.dtype is not array.dtype and not mixes:
        raise ValueError(f"The operator {op} requires value dtype {array.dtype}, got {kind.dtype}")
    return array


def _declare_arrays() -> None:
    register("array.create", "extent: scalar", _array_create, kwargs="dtype", meaning=Move("array_create"))
    register("array.get_element", "array: array, index: scalar", _array_get, meaning=Move("array_get"))
    register(
        "array.update_element",
        "array: array, index: scalar, value: scalar",
        _array_update,
        effects={0: ArgEffect.ReadWrite},
        meaning=Move("array_update"),
    )


_declare_elementwise()
_declare_unary()
_declare_axis_families()
_declare_creation_and_views()
_declare_products_and_permutations()
_declare_arrays()
