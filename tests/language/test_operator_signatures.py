"""Parameters of every tensor operator: as `pl.<op>`, as `pl.tensor.<op>` and as a builder of the IR."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import pypto.language as pl
from pypto.ir.op import array as array_builders
from pypto.ir.op import tensor as builders
from pypto.ir.op_registry import registered_names
from pypto.language.op import array_ops, tensor_ops


def signature(function: Callable[..., Any]) -> str:
    """Names and defaults, in order; what follows `*` is given by keyword."""
    shown, starred = [], False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            shown.append("*")
            starred = True
        starred = starred or parameter.kind is parameter.VAR_POSITIONAL
        name = str(parameter.replace(annotation=parameter.empty, default=parameter.empty))
        bare = parameter.default is parameter.empty
        shown.append(name if bare else f"{name}={parameter.default}")
    return ", ".join(shown)


def family(names: str, parameters: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), parameters)


_PAIRS = "add sub mul maximum minimum fmod fmods and_ or_ ands ors shl shr shls shrs"
_PARTS = "part_add part_mul part_max part_min"
_SINGLES = "exp sin cos neg abs sqrt not_"
_PRECISE = "log recip rsqrt"
_SCRATCHED = "row_sum row_max row_min row_prod row_argmax row_argmin col_argmax col_argmin col_sum"
_ROW = "row_expand_sub row_expand_mul row_expand_div row_expand_max row_expand_min row_expand_expdif"
_COL = (
    "col_expand col_expand_add col_expand_sub col_expand_mul col_expand_div col_expand_max col_expand_min "
    "col_expand_expdif"
)
_SLICE = "shape, offset, valid_shape=None, drop_dims=None, pad_value=None, clamp=False"
_MATMUL = "lhs, rhs, out_dtype=None, a_trans=False, b_trans=False, c_matrix_nz=False"
_WINDOW = "src, dst_offset, src_offset, shapes, transpose=False"
_RUNS = "src0, src1=None, src2=None, src3=None"

UNIFIED = {
    **family(f"{_PAIRS} {_PARTS} row_expand {_ROW} {_COL} batch_matmul min max", "lhs, rhs"),
    **family("row_expand_add xor xors", "lhs, rhs, tmp=None"),
    **family(f"{_SINGLES} col_max col_min col_prod", "input"),
    **family(_PRECISE, "input, high_precision=False"),
    **family(_SCRATCHED, "input, tmp_tile=None"),
    "div": "lhs, rhs, high_precision=False",
    "cmp": "lhs, rhs, cmp_type=0",
    "reshape": "input, shape",
    "transpose": "input, axis1, axis2",
    "concat": "src0, src1",
    "reinterpret_view": "data, dtype, *, shape=None",
    "slice": f"input, {_SLICE}",
    "fillpad": "value, pad_value=PadValue.zero",
    "fillpad_expand": "value, shape, pad_value=PadValue.zero",
    "expands": "target, scalar",
    "set_validshape": "input, valid_rows, valid_cols",
    "read": "src, offset",
    "write": "dst, offset, value",
    "cast": "input, target_type, mode=round",
    "matmul": _MATMUL,
    "matmul_acc": "acc, lhs, rhs, a_trans=False, b_trans=False, init_cond=None",
    "assemble": "target, source, offset, *, atomic=AtomicType.None_",
    "gather_row": f"dst, {_WINDOW}, *, valid_shape=None",
    "scatter_update": "input, *args, **kwargs",
    "sort32": "src, idx",
    "mrgsort": f"{_RUNS}, tmp=None, *, exhausted=False, block_len=None",
    "const": "value, dtype",
}

_ALIKE = {
    **family("create", "shape, dtype, layout=TensorLayout.ND, manual_dep=False, init_value=None"),
    **family("full", "shape, dtype, value"),
    **family("ci", "start, shape, dtype=int32, descending=False"),
    **family(
        "random",
        "key0, key1, counter0, counter1, counter2, counter3, shape, dtype=uint32, rounds=10",
    ),
    **family("create_l1", "shape, dtype, transpose=False"),
    **family("read", "tensor, indices"),
    **family("write", "tensor, indices, value"),
    **family("dim", "tensor, axis"),
    **family("slice", f"tensor, {_SLICE}"),
    **family("reshape", "tensor, shape, valid_shape=None"),
    **family("transpose", "tensor, axis1, axis2, valid_shape=None"),
    **family("set_validshape", "tensor, valid_rows, valid_cols"),
    **family("fillpad", "tensor, pad_value=PadValue.zero"),
    **family("fillpad_expand", "tensor, shape, pad_value=PadValue.zero"),
    **family("concat", "src0, src1"),
    **family("expands", "target, scalar"),
    **family("expand_clone", "src, target"),
    **family(f"{_PAIRS} {_PARTS} adds subs muls divs xor xors", "lhs, rhs"),
    **family("cmp", "lhs, rhs, cmp_type=0"),
    **family(_SINGLES, "input"),
    **family("rsqrt", "input, high_precision=False"),
    **family("cast", "input, target_type, mode=round"),
    **family("row_expand", "target, row_vec"),
    **family(f"{_ROW} row_expand_add", "tensor, row_vec"),
    **family(_COL, "tensor, col_vec"),
    **family("matmul", _MATMUL),
    **family("sort32", "src, idx"),
    **family("get_block_idx get_block_num get_subblock_idx", ""),
    **family("alloc", "memory_space, size"),
}
"""Those whose builder takes the same and `span` last."""

_REDUCTIONS = f"{_SCRATCHED} col_max col_min col_prod"
_PAGED = "src, indices, block_table, block_size, size, max_indices"
_PAGED_TAIL = "*, space=MemorySpace.Mat, col_off=0, is_trans=False, is_b_matrix=False"
TENSOR_AND_BUILDER = {
    **{name: (shown, f"{shown}, span=None".lstrip(", ")) for name, shown in _ALIKE.items()},
    **dict.fromkeys(_REDUCTIONS.split(), ("input", "input, span=None, **attributes")),
    **dict.fromkeys(
        ("log", "recip"), ("input, high_precision=False", "input, span=None, *, high_precision=False")
    ),
    "div": ("lhs, rhs, high_precision=False", "lhs, rhs, span=None, *, high_precision=False"),
    "view": (
        "tensor, shape=None, valid_shape=None, *, layout=None",
        "tensor, shape=None, valid_shape=None, span=None, *, layout=None",
    ),
    "reinterpret_view": ("data, dtype, *, shape=None", "data, dtype, span=None, *, shape=None"),
    "assemble": (
        "target, source, offset, *, atomic=AtomicType.None_",
        "target, source, offset, span=None, *, atomic=0",
    ),
    "matmul_acc": (
        "acc, lhs, rhs, a_trans=False, b_trans=False, init_cond=None",
        "acc, lhs, rhs, a_trans=False, b_trans=False, span=None, *, init_cond=None",
    ),
    "gather_row": (
        f"acc, {_WINDOW}, *, valid_shape=None",
        f"acc, {_WINDOW}, span=None, *, valid_shape=None",
    ),
    "mrgsort": (
        f"{_RUNS}, *, exhausted=False, block_len=None",
        f"{_RUNS}, span=None, *, exhausted=False, block_len=None",
    ),
    "gather": (
        "input, dim=None, index=None, *, mask_pattern=None, output_dtype=None, kvalue=None, cmp_mode=None, "
        "out_cols=None, offset=0, count_dtype=None",
        "input, dim=None, index=None, span=None, *, mask_pattern=None, output_dtype=None, kvalue=None, "
        "cmp_mode=None, out_cols=None, offset=None, count_dtype=None",
    ),
    "paged_gather": (f"{_PAGED}, {_PAGED_TAIL}", f"{_PAGED}, span=None, {_PAGED_TAIL}"),
    "scatter": (
        "input, dim=None, index=None, src=None, *, mask_pattern=None, dst=None",
        "input, dim=None, index=None, src=None, span=None, *, mask_pattern=None, dst=None",
    ),
    "scatter_update": ("input, *args, **kwargs", "input, *args, span=None, **kwargs"),
}

ONLY_BUILDERS = {
    "mrgsort_format1": "src, block_len, span=None",
    "mrgsort_format2": "src0, src1, src2=None, src3=None, exhausted=False, span=None",
    "gather_mask": "input, mask_pattern, span=None, *, output_dtype=None",
    "gather_compare": "input, kvalue, span=None, *, cmp_mode=eq, offset=0, out_cols, count_dtype=None",
    "scatter_mask": "input, dst, mask_pattern, span=None",
}
"""They exist to read printed text back."""

_BOUND_TO_TENSORS = (
    "arange create_tensor create_l1 dim expand_clone full gather scatter paged_gather random get_block_idx "
    "get_block_num get_subblock_idx no_dep dump_tag"
)


@pytest.mark.parametrize("name", UNIFIED)
def test_parameters_of_a_unified_operator(name: str) -> None:
    assert signature(getattr(pl, name)) == UNIFIED[name]


@pytest.mark.parametrize("name", TENSOR_AND_BUILDER)
def test_parameters_of_a_tensor_operator_and_of_its_builder(name: str) -> None:
    function, builder = TENSOR_AND_BUILDER[name]
    assert signature(getattr(tensor_ops, name)) == function
    assert signature(getattr(builders, name)) == builder


def test_builders_for_printed_text_have_no_function_of_the_language() -> None:
    for name, parameters in ONLY_BUILDERS.items():
        assert signature(getattr(builders, name)) == parameters
        assert not hasattr(tensor_ops, name)


def test_parameters_of_array_operators() -> None:
    for name, parameters in (
        ("create", "extent, dtype"),
        ("get_element", "array, index"),
        ("update_element", "array, index, value"),
    ):
        assert signature(getattr(array_ops, name)) == parameters
        assert signature(getattr(array_builders, name)) == f"{parameters}, span=None"


def test_the_tables_know_every_registered_tensor_operator() -> None:
    leaves = {name.removeprefix("tensor.") for name in registered_names() if name.startswith("tensor.")}
    spelled = {leaf + "_" * (leaf in ("and", "or", "not")) for leaf in leaves}
    in_regions_only = {"aiv_shard", "aic_gather"}
    assert spelled - in_regions_only == {*TENSOR_AND_BUILDER, *ONLY_BUILDERS} - {"mrgsort"}


def test_operators_without_a_tile_form_are_those_of_tensors() -> None:
    for name in _BOUND_TO_TENSORS.split():
        assert getattr(pl, name) is getattr(tensor_ops, name), name
    for name in ["view", "ci", "adds", "subs", "muls", "divs", "alloc"]:
        assert name not in pl.op.__all__ and hasattr(pl.tensor, name), name
