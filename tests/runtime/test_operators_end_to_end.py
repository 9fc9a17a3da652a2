"""Operators written in the DSL, compiled, run and compared with numpy.

A case is a few statements. Several cases share a kernel, so that the compiler starts a few times only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pypto.language as pl
from pypto import ir

Arrays = Mapping[str, np.ndarray]
rng = np.random.default_rng(7)

_NAMES = {
    np.dtype(np.float32): "FP32",
    np.dtype(np.float16): "FP16",
    np.dtype(ml_dtypes.bfloat16): "BF16",
    np.dtype(np.int8): "INT8",
    np.dtype(np.int16): "INT16",
    np.dtype(np.int32): "INT32",
    np.dtype(np.int64): "INT64",
    np.dtype(np.uint8): "UINT8",
    np.dtype(np.uint32): "UINT32",
    np.dtype(np.uint64): "UINT64",
    np.dtype(ml_dtypes.float8_e4m3fn): "FP8E4M3FN",
    np.dtype(ml_dtypes.float8_e8m0fnu): "FP8E8M0",
}
_SCALE_LAYOUTS = {(16, 2): ", pl.MX_A_ZZ", (2, 32): ", pl.MX_B_NN"}
"""How scales that are stored as bytes lie in memory: those of a left and of a right operand."""
UNTOUCHED = 77
CASES_PER_KERNEL = 8


@dataclass(frozen=True)
class Case:
    """Inputs, statements that assign `o`, and what `o` must hold. `kernel` is written with tiles."""

    name: str
    body: str
    inputs: dict[str, np.ndarray]
    expected: np.ndarray
    tolerance: float = 0.0
    kernel: bool = False
    output: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "output", np.full(self.expected.shape, UNTOUCHED, self.expected.dtype))

    def parameters(self, prefix: str) -> list[str]:
        shown = [f"{prefix}{name}: {annotation(array)}" for name, array in self.inputs.items()]
        return [*shown, f"{prefix}o: pl.Out[{annotation(self.expected)}]"]


def annotation(array: np.ndarray) -> str:
    layout = _SCALE_LAYOUTS.get(array.shape, "") if array.dtype == np.uint8 else ""
    return f"pl.Tensor[{list(array.shape)}, pl.{_NAMES[array.dtype]}{layout}]"


def program_of(cases: list[Case]) -> str:
    """One entry function with a kernel for every few cases."""
    kernels: list[str] = []
    statements: list[str] = []
    for first in range(0, len(cases), CASES_PER_KERNEL):
        group = list(enumerate(cases))[first : first + CASES_PER_KERNEL]
        kernels_before = len(kernels)
        lines = [line for number, case in group for line in renamed(case, f"c{number}_")]
        if cases[0].kernel:
            outputs = [f"c{number}_o" for number, _ in group]
            parameters = [each for number, case in group for each in case.parameters(f"c{number}_")]
            types = ", ".join(annotation(case.expected) for _, case in group)
            kernels += [
                "    @pl.function(type=pl.FunctionType.InCore)",
                f"    def k{kernels_before}(self, {', '.join(parameters)}) -> tuple[{types}]:",
                *(f"        {line}" for line in lines),
                f"        return {', '.join(outputs)}",
            ]
            arguments = ", ".join(parameter.split(":")[0] for parameter in parameters)
            statements.append(f"{', '.join(outputs)} = self.k{kernels_before}({arguments})")
        else:
            statements += ["with pl.at(level=pl.Level.CORE_GROUP):", *("    " + line for line in lines)]
    parameters = [each for number, case in enumerate(cases) for each in case.parameters(f"c{number}_")]
    results = [f"c{number}_o" for number in range(len(cases))]
    types = ", ".join(annotation(case.expected) for case in cases)
    kind = "(type=pl.FunctionType.Orchestration)" if kernels else ""
    return "\n".join([
        "import pypto.language as pl", "@pl.program", "class P:", *kernels, f"    @pl.function{kind}",
        f"    def main(self, {', '.join(parameters)}) -> tuple[{types}]:",
        *(f"        {line}" for line in statements), f"        return {', '.join(results)}",
    ])  # fmt: skip


def renamed(case: Case, prefix: str) -> list[str]:
    """The statements of a case with names that no other case has."""
    lines = case.body.strip().splitlines()
    assigned = {names for line in lines for names in re.findall(r"^\s*(?:for )?([\w, ]+?) (?:=|in) ", line)}
    local = {name.strip() for names in assigned for name in names.split(",")} | {*case.inputs, "o"}
    pattern = rf"\b({'|'.join(sorted(local))})\b(?!=)"
    return [re.sub(pattern, rf"{prefix}\1", line) for line in lines]


CASES: list[Case] = []


def tensors(
    name: str, body: str, expected: Callable[..., Any], tolerance: float = 0.0, **inputs: Any
) -> None:
    CASES.append(Case(name, body, inputs, np.asarray(expected(**inputs)), tolerance))


def tiles(name: str, body: str, expected: Callable[..., Any], tolerance: float = 0.0, **inputs: Any) -> None:
    CASES.append(Case(name, body, inputs, np.asarray(expected(**inputs)), tolerance, kernel=True))


def floats(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return rng.standard_normal(shape).astype(dtype)


def indices(*shape: int, below: int, dtype: Any = np.int32) -> np.ndarray:
    return rng.integers(0, below, shape).astype(dtype)


# ---- picking and placing in tensors -----------------------------------------------------------------------


def along(a: np.ndarray, i: np.ndarray, axis: int) -> np.ndarray:
    kept = tuple(slice(None) if d == axis else slice(0, extent) for d, extent in enumerate(i.shape))
    return np.take_along_axis(a[kept], i.astype(np.int64), axis)


for _axis in (0, 1):
    tensors(
        f"gather_along_dimension_{_axis}",
        f"o = pl.assemble(o, pl.gather(a, {_axis}, i), [0, 0])",
        lambda a, i, axis=_axis: along(a, i, axis),
        a=floats(4, 17),
        i=indices(3, 5, below=4),
    )
tensors(
    "gather_of_a_stack_of_matrices",
    "o = pl.assemble(o, pl.gather(a, 1, i), [0, 0, 0])",
    lambda a, i: along(a, i, 1),
    a=floats(3, 4, 5),
    i=indices(2, 3, 3, below=4),
)
tensors(
    "gather_with_sixteen_bit_indices",
    "o = pl.assemble(o, pl.gather(a, -1, i), [0, 0])",
    lambda a, i: along(a, i, 1),
    a=floats(4, 16, dtype=np.float16),
    i=indices(4, 7, below=16, dtype=np.int16),
)
tensors(
    "gather_compare_gives_indices_and_counts",
    "found, count = pl.gather(a, kvalue=1.5, cmp_mode='gt', out_cols=4, offset=10)\n"
    "o = pl.assemble(o, count, [0, 0])\n"
    "o = pl.assemble(o, pl.slice(found, [1, 2], [0, 0]), [0, 2])",
    lambda a: np.array([[3, 1, 11, 12]], np.int32),
    a=np.array([[1, 5, 2, 7], [9, 1, 1, 1]], np.float32),
)
tensors(
    "gather_row_in_a_loop_and_both_branches",
    "t = pl.full([8, 16], pl.FP32, value=0.0)\n"
    "for j in pl.range(8):\n"
    "    if j < 4:\n"
    "        t = pl.gather_row(t, a, [j, 0], [j * 3, 0], [1, 16])\n"
    "    else:\n"
    "        t = pl.gather_row(t, b, [j, 0], [j, 0], [1, 16])\n"
    "o = pl.assemble(o, t, [0, 0])",
    lambda a, b: np.concatenate([a[0:12:3], b[4:8]]),
    a=floats(30, 16),
    b=floats(30, 16),
)
tensors(
    "gather_row_window_overhangs_its_target",
    "t = pl.full([16, 32], pl.FP32, value=1.0)\n"
    "u = pl.gather_row(t, a, [12, 0], [2, 0], [16, 32], valid_shape=[3, 32])\n"
    "o = pl.assemble(o, u, [0, 0])",
    lambda a: np.concatenate([np.ones((12, 32), np.float32), a[2:5], np.ones((1, 32), np.float32)]),
    a=floats(30, 32),
)
tensors(
    "gather_row_fills_a_matrix_operand",
    "t = pl.create_l1([16, 8], pl.FP32, transpose=True)\n"
    "for j in pl.range(8):\n"
    "    v = pl.read(s, j)\n"
    "    t = pl.gather_row(t, a, [0, j], [pl.cast(v, pl.INDEX), 0], [1, 16], transpose=True)\n"
    "o = pl.assemble(o, pl.matmul(t, b), [0, 0])",
    lambda a, s, b: a[s].T @ b,
    1e-4,
    a=floats(30, 16),
    s=indices(8, below=30),
    b=floats(8, 8),
)
_PAGED: dict[str, np.ndarray] = {
    "a": floats(32, 16),
    "i": np.array([3, 9, 0, 17], np.int32),
    "t": np.array([2, 0, 1, 3], np.int32),
}
tensors(
    "paged_gather",
    "o = pl.assemble(o, pl.paged_gather(a, i, t, 8, 8, 4, col_off=4), [0, 0])",
    lambda a, i, t: a[t[i // 8] * 8 + i % 8, 4:12],
    **_PAGED,
)
tensors(
    "paged_gather_transposed",
    "o = pl.assemble(o, pl.paged_gather(a, i, t, 8, 8, 4, is_trans=True), [0, 0])",
    lambda a, i, t: a[t[i // 8] * 8 + i % 8, 0:8].T,
    **_PAGED,
)


def scattered(a: np.ndarray, i: np.ndarray, s: np.ndarray) -> np.ndarray:
    out = a.copy()
    np.put_along_axis(out[: len(i)], i.astype(np.int64), s, 1)
    return out


for _dtype in (np.float32, np.float16, ml_dtypes.bfloat16, np.int8):
    _wide = np.dtype(_dtype).itemsize == 4
    tensors(
        f"scatter_of_{np.dtype(_dtype).name}_keeps_its_input",
        "r = pl.scatter(a, -1, i, s)\no = pl.assemble(o, r, [0, 0])\no = pl.assemble(o, a, [4, 0])",
        lambda a, i, s: np.concatenate([scattered(a, i, s), a]),
        a=(floats(4, 8) * 9).astype(_dtype),
        i=np.array([[0, 7, 3], [2, 1, 0], [5, 6, 4]], np.int32 if _wide else np.int16),
        s=(floats(3, 3) * 9).astype(_dtype),
    )
tensors(
    "scatter_by_mask_keeps_the_other_columns",
    "o = pl.assemble(o, pl.scatter(a, mask_pattern=2, dst=b), [0, 0])",
    lambda a, b: np.where(np.arange(32) % 2 == 1, np.repeat(a, 2, 1), b),
    a=floats(3, 16),
    b=floats(3, 32),
)
tensors(
    "scatter_update_takes_the_last_of_repeated_rows",
    "o = pl.assemble(o, pl.scatter_update(a, -2, i, s), [0, 0])",
    lambda a, i, s: np.stack([s[2] if row == 2 else s[1] if row == 5 else a[row] for row in range(8)]),
    a=floats(8, 16),
    i=np.array([[2, 5, 2]], np.int32),
    s=floats(3, 16),
)
tensors(
    "sorted_lists_merge",
    "left = pl.sort32(a, pl.arange(0, [1, 32], dtype=pl.UINT32))\n"
    "right = pl.sort32(b, pl.arange(32, [1, 32], dtype=pl.UINT32))\n"
    "merged = pl.mrgsort(left, right)\n"
    "o = pl.assemble(o, pl.gather(merged, mask_pattern=2, output_dtype=pl.INT32), [0, 0])",
    lambda a, b: np.argsort(-np.concatenate([a, b], 1), kind="stable").astype(np.int32),
    a=floats(1, 32),
    b=floats(1, 32),
)

# ---- shapes -----------------------------------------------------------------------------------------------

tensors(
    "operands_repeat_along_axes_in_the_middle",
    "o = pl.assemble(o, pl.sub(a, b), [0, 0, 0])",
    lambda a, b: a - b,
    a=floats(3, 1, 7),
    b=floats(1, 5, 7),
)
for _left, _right in (((3, 1, 7), (5, 7)), ((5, 7), (3, 5, 1)), ((1,), (7,)), ((7,), (1,))):
    for _dtype in (np.float16, np.int32):
        tensors(
            f"quotient_of_{_left}_and_{_right}_of_{np.dtype(_dtype).name}",
            f"o = pl.assemble(o, pl.div(a, b), {[0] * max(len(_left), len(_right))})",
            lambda a, b: np.trunc(a / b).astype(a.dtype) if a.dtype == np.int32 else a / b,
            a=(floats(*_left) * 99).astype(_dtype),
            b=indices(*_right, below=9, dtype=_dtype) - _dtype(10),
        )
tensors(
    "comparisons_repeat_their_operands",
    "o = pl.assemble(o, pl.cmp(a, b, cmp_type=4), [0, 0, 0])",
    lambda a, b: (a > b).astype(np.float32),
    a=floats(3, 1, 7),
    b=floats(1, 5, 7),
)
tensors(
    "comparisons_happen_in_the_promoted_type",
    "o = pl.assemble(o, pl.cmp(a, 1.5, cmp_type=0), [0, 0])\n"
    "o = pl.assemble(o, pl.cmp(a, b, cmp_type=2), [3, 0])",
    lambda a, b: np.concatenate([a == 1.5, a < b]).astype(np.float32),
    a=indices(3, 7, below=3),
    b=floats(3, 7),
)
for _left, _right in (((4, 1), (4, 7)), ((2, 4, 7), (7,))):
    tensors(
        f"partial_operator_of_{_left}_and_{_right}_of_two_types",
        f"o = pl.assemble(o, pl.part_max(a, b), {[0] * len(_left)})",
        lambda a, b: np.maximum(a.astype(np.float32), b),
        a=indices(*_left, below=3),
        b=floats(*_right),
    )
tensors(
    "vector_times_a_batch_of_matrices", "o = pl.assemble(o, pl.matmul(a, b), [0, 0])",
    lambda a, b: a @ b, 1e-4, a=floats(5), b=floats(2, 5, 3),
)  # fmt: skip
tensors(
    "expand_clone",
    "o = pl.assemble(o, pl.expand_clone(a, b), [0, 0, 0])",
    lambda a, b: np.broadcast_to(a, b.shape).copy(),
    a=floats(2, 1, 4),
    b=floats(2, 3, 4),
)
tensors(
    "columns_of_a_batch_reduce",
    "o = pl.assemble(o, pl.col_sum(a), [0, 0, 0])",
    lambda a: a.sum(1, keepdims=True),
    1e-5,
    a=floats(3, 4, 5),
)
tensors(
    "column_index_of_a_batch",
    "o = pl.assemble(o, pl.col_argmax(a), [0, 0, 0])",
    lambda a: a.argmax(1)[:, None].astype(np.int32),
    a=floats(3, 4, 5),
)


# ---- valid regions and memory ---------------------------------------------------------------------------

_COUNT = "count = pl.cast(pl.read(n, 0), pl.INDEX)\n"
_PART = f"{_COUNT}p = pl.slice(a, [6, 8], [0, 0], valid_shape=[count, 8])\n"
_FOUR_ROWS = np.arange(6)[:, None] < 4


def four_rows(values: np.ndarray) -> np.ndarray:
    return np.where(_FOUR_ROWS, values, np.float32(UNTOUCHED))


def _after_writes(a: np.ndarray) -> np.ndarray:
    out = np.full_like(a, UNTOUCHED)
    out[0, 1], out[1, 1] = a[0, 0], 2 * a[0, 0]
    return out


for _name, _expression, _value in (
    ("add", "pl.add(p, b)", lambda a, b: a + b),
    ("sub_from_a_column", "pl.sub(pl.row_max(b), p)", lambda a, b: b.max(1, keepdims=True) - a),
    ("row_expand_mul", "pl.row_expand_mul(p, pl.row_max(b))", lambda a, b: a * b.max(1, keepdims=True)),
    ("matmul", "pl.matmul(p, b, b_trans=True)", lambda a, b: np.pad(a @ b.T, ((0, 0), (0, 2)))),
    ("scalar", "pl.mul(p, 2.0)", lambda a, b: a * 2 + 0 * b),
):
    _columns = 6 if _name == "matmul" else 8
    tensors(
        f"{_name}_writes_only_the_rows_that_are_valid_in_its_first_operand",
        f"{_PART}o = pl.assemble(o, {_expression}, [0, 0])",
        lambda a, b, n, value=_value, columns=_columns: four_rows(value(a, b)[:, :columns]),
        1e-4,
        a=floats(6, 8),
        b=floats(6, 8),
        n=np.array([4], np.int32),
    )
tensors(
    "assemble_writes_only_the_rows_that_are_valid_in_its_source",
    f"{_PART}o = pl.assemble(o, p, [0, 0])",
    lambda a, n: four_rows(a),
    a=floats(6, 8),
    n=np.array([4], np.int32),
)
tensors(
    "reduction_of_a_window_at_a_run_time_offset_takes_its_valid_cells_only",
    f"{_COUNT}p = pl.slice(a, [8], [count], valid_shape=[count])\no = pl.assemble(o, pl.row_sum(p), [0])",
    lambda a, n: a[5:10].sum(keepdims=True),
    1e-5,
    a=floats(16),
    n=np.array([5], np.int32),
)
tensors(
    "softmax_over_the_columns_that_are_valid_at_run_time",
    f"{_COUNT}"
    "p = pl.fillpad(pl.slice(a, [6, 8], [0, 0], valid_shape=[6, count]), pl.PadValue.min)\n"
    "e = pl.exp(pl.row_expand_sub(p, pl.row_max(p)))\n"
    "o = pl.assemble(o, pl.row_expand_div(e, pl.row_sum(e)), [0, 0])",
    lambda a, n: np.pad(np.exp(a[:, :3]) / np.exp(a[:, :3]).sum(1, keepdims=True), ((0, 0), (0, 5))),
    1e-4,
    a=floats(6, 8),
    n=np.array([3], np.int32),
)
tensors(
    "rows_of_a_partially_valid_product_are_taken_and_reshaped",
    f"{_PART}t = pl.matmul(p, b)\n"
    "o = pl.assemble(o, t[2], [0])\n"
    "q = pl.set_validshape(t, 3, 4)\n"
    "o = pl.assemble(o, pl.reshape(q, [24]), [4])",
    lambda a, b, n: np.concatenate([(a @ b)[2], (a @ b)[:3].ravel(), np.full(12, UNTOUCHED, np.float32)]),
    1e-4,
    a=floats(6, 8),
    b=floats(8, 4),
    n=np.array([4], np.int32),
)
tensors(
    "bits_of_computed_columns_and_products_are_read_in_rows",
    "w = pl.reinterpret_view(pl.row_max(a), pl.INT16)\n"
    "o = pl.assemble(o, w, [0, 0])\n"
    "o = pl.assemble(o, pl.reinterpret_view(pl.matmul(a, b), pl.INT16), [0, 2])",
    lambda a, b: np.concatenate([a.max(1, keepdims=True), a @ b], 1).view(np.int16),
    a=np.eye(6, 8, dtype=np.float32),
    b=floats(8, 4),
)
tensors(
    "window_of_fewer_axes_lies_at_the_start_of_the_leading_ones",
    "p = pl.slice(pl.neg(a), [2, 4], [1, 3])\n"
    "o = pl.assemble(o, pl.add(p, pl.slice(a, [2, 4], [0, 0])), [0, 0])",
    lambda a: a[0, :2, :4] - a[0, 1:3, 3:7],
    a=floats(3, 4, 8),
)
tensors(
    "clamped_windows_of_a_local_value_end_where_it_ends",
    f"{_COUNT}t = pl.neg(a)\n"
    "p = pl.slice(t, [4, 8], [count, 5], clamp=True)\n"
    "o = pl.assemble(o, pl.abs(p), [0, 0])\n"
    "q = pl.slice(t, [4, 8], [5, 0], clamp=True)\n"
    "o = pl.assemble(o, pl.abs(q), [2, 0])",
    lambda a, n: np.vstack([
        np.pad(abs(a[4:6, 5:]), ((0, 0), (0, 5)), constant_values=UNTOUCHED),
        abs(a[5:6]),
        np.full((3, 8), UNTOUCHED, np.float32),
    ]),
    a=floats(6, 8),
    n=np.array([4], np.int32),
)  # fmt: skip
tensors(
    "windows_of_an_unrolled_loop_end_where_their_local_source_ends",
    "t = pl.neg(a)\n"
    "for j in pl.unroll(3):\n"
    "    p = pl.slice(t, [4, 8], [j * 4, 0], valid_shape=[pl.min(10 - j * 4, 4), 8])\n"
    "    o = pl.assemble(o, pl.mul(p, 2.0), [j * 4, 0])",
    lambda a: np.pad(-2 * a, ((0, 2), (0, 0)), constant_values=UNTOUCHED),
    a=floats(10, 8),
)
tensors(
    "element_writes_need_no_rebinding_and_are_seen_by_later_reads",
    "v = pl.read(a, [0, 0])\npl.write(o, [0, 1], v)\nw = pl.read(o, [0, 1])\npl.write(o, [1, 1], w * 2.0)",
    lambda a: _after_writes(a),
    a=floats(6, 8),
)
tensors(
    "assemble_is_seen_by_later_windows_of_the_buffer",
    "o = pl.assemble(o, pl.neg(a), [0, 0])\n"
    "row = pl.slice(o, [1, 8], [1, 0])\n"
    "o = pl.assemble(o, row, [2, 0])",
    lambda a: -a[[0, 1, 1, 3, 4, 5]],
    a=floats(6, 8),
)


tensors(
    "view_of_memory_under_another_shape_sees_what_is_written",
    "w = pl.tensor.view(o, [12, 4])\n"
    "o = pl.assemble(o, pl.neg(a), [0, 0])\n"
    "rows = pl.reshape(pl.mul(w[0:2, :], 3.0), [1, 8])\n"
    "o = pl.assemble(o, rows, [5, 0])",
    lambda a: np.concatenate([-a[:5], -3 * a[:1]]),
    a=floats(6, 8),
)
tensors(
    "view_of_memory_in_the_other_layout_is_its_transpose",
    "w = pl.tensor.view(a, layout=pl.TensorLayout.DN)\no = pl.assemble(o, pl.neg(w), [0, 0])",
    lambda a: np.ascontiguousarray(-a.T),
    a=floats(6, 8),
)


for _dtype, _large in ((np.int64, 2**40), (np.uint64, 2**62 + 5)):
    _dsl = np.dtype(_dtype).name.upper()
    tensors(
        f"constants_of_{np.dtype(_dtype).name}",
        f"f = pl.full([3, 5], dtype=pl.{_dsl}, value={_large})\n"
        "g = pl.add(pl.mul(a, 3), f)\n"
        "o = pl.assemble(o, pl.add(g, pl.cmp(a, 2, cmp_type=4)), [0, 0])",
        lambda a, large=_large: a * 3 + np.array(large, a.dtype) + (a > 2),
        a=indices(3, 5, below=9, dtype=_dtype),
    )


# ---- tiles ------------------------------------------------------------------------------------------------


def scaled(cells: np.ndarray, scales: np.ndarray, axis: int) -> np.ndarray:
    return cells.astype(np.float32) * np.repeat(scales.astype(np.float32), 32, axis)


_SCALE = ml_dtypes.float8_e8m0fnu
_SCALED: dict[str, np.ndarray] = {
    "a": floats(16, 64).astype(ml_dtypes.float8_e4m3fn),
    "u": np.exp2(rng.integers(-3, 4, (16, 2))).astype(ml_dtypes.float8_e8m0fnu),
    "b": floats(64, 32).astype(ml_dtypes.float8_e4m3fn),
    "v": np.exp2(rng.integers(-3, 4, (2, 32))).astype(ml_dtypes.float8_e8m0fnu),
}
_LOADS = (
    "la = pl.load(a, [0, 0], [16, 64])\nlu = pl.load(u, [0, 0], [16, 2])\n"
    "lb = pl.load(b, [0, 0], [64, 32])\nlv = pl.load(v, [0, 0], [2, 32])\n"
)
tiles(
    "block_scaled_product_and_accumulation",
    _LOADS + "p = pl.matmul_mx(la, lu, lb, lv)\n"
    "p2 = pl.matmul_mx_acc(p, la, lu, lb, lv)\n"
    "o = pl.store(p2, [0, 0], o)",
    lambda a, u, b, v: 2 * scaled(a, u, 1) @ scaled(b, v, 0),
    1e-4,
    **_SCALED,
)
tiles(
    "block_scaled_product_with_bias",
    _LOADS + "lc = pl.load(c, [0, 0], [1, 32])\n"
    "p = pl.matmul_mx_bias(la, lu, lb, lv, lc)\n"
    "o = pl.store(p, [0, 0], o)",
    lambda a, u, b, v, c: scaled(a, u, 1) @ scaled(b, v, 0) + c,
    1e-4,
    c=floats(1, 32),
    **_SCALED,
)
tiles(
    "bytes_become_scales_when_they_are_moved",
    "la = pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Mat)\n"
    "lb = pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat)\n"
    "lu = pl.move(pl.load(u, [0, 0], [16, 2], target_memory=pl.Mem.Mat), pl.Mem.LeftScale)\n"
    "lv = pl.move(pl.load(v, [0, 0], [2, 32], target_memory=pl.Mem.Mat), pl.Mem.RightScale)\n"
    "p = pl.matmul_mx(pl.move(la, pl.Mem.Left), lu, pl.move(lb, pl.Mem.Right), lv)\n"
    "o = pl.store(p, [0, 0], o)",
    lambda a, u, b, v: scaled(a, u.view(_SCALE), 1) @ scaled(b, v.view(_SCALE), 0),
    1e-4,
    **(_SCALED | {name: _SCALED[name].view(np.uint8) for name in "uv"}),
)
tiles(
    "mgather_of_rows_by_an_index_in_memory",
    "p = pl.mgather(a, i, target_memory=pl.Mem.Mat)\n"
    "lb = pl.load(b, [0, 0], [32, 16], target_memory=pl.Mem.Mat)\n"
    "o = pl.store(pl.matmul(p, lb), [0, 0], o)",
    lambda a, i, b: a[i[0]] @ b,
    1e-4,
    a=floats(40, 32),
    i=indices(1, 16, below=40),
    b=floats(32, 16),
)
tiles(
    "mgather_of_elements_by_an_index_in_memory",
    "p = pl.mgather(a, i, 'elem', target_memory=pl.Mem.Mat, scratch=w)\n"
    "lb = pl.load(b, [0, 0], [16, 16], target_memory=pl.Mem.Mat)\n"
    "o = pl.store(pl.matmul(p, lb), [0, 0], o)",
    lambda a, i, b, w: a.flat[i] @ b,
    1e-4,
    a=floats(8, 8),
    i=indices(16, 16, below=64),
    b=floats(16, 16),
    w=floats(256),
)
tiles(
    "column_reduction_of_a_stack_reduces_its_first_axis",
    "la = pl.load(a, [0, 0, 0], [4, 3, 5])\no = pl.store(pl.col_sum(la), [0, 0, 0], o)",
    lambda a: a.sum(0, keepdims=True),
    1e-5,
    a=floats(4, 3, 5),
)


tensors(
    "matmul of two vectors", "o = pl.assemble(o, pl.reshape(pl.matmul(a, b), [1]), [0])",
    lambda a, b: np.reshape(a @ b, [1]), 1e-5, a=floats(33), b=floats(33),
)  # fmt: skip
tensors(
    "matmul of two vectors into a tensor without dimensions", "o = pl.assemble(o, pl.matmul(a, b), [])",
    lambda a, b: np.asarray(a @ b), 1e-5, a=floats(33), b=floats(33),
)  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Case]]:
    """All cases after one run."""
    for kernel in (False, True):
        cases = [case for case in CASES if case.kernel is kernel]
        if cases:
            folder: Path = tmp_path_factory.mktemp("operators")
            compiled = ir.compile(pl.parse_program(program_of(cases)), output_dir=str(folder))
            compiled(*(array for case in cases for array in (*case.inputs.values(), case.output)))
    yield {case.name: case for case in CASES}


@pytest.mark.parametrize("name", [case.name for case in CASES])
def test_operator_computes_what_numpy_does(name: str, finished: Mapping[str, Case]) -> None:
    case = finished[name]
    np.testing.assert_allclose(
        case.output.astype(np.float64),
        case.expected.astype(np.float64),
        rtol=case.tolerance,
        atol=case.tolerance,
    )
