"""Operators that combine many elements into one: reductions and matrix products; and casts."""

from __future__ import annotations

from pypto import ir
from pypto.codegen.kernel.elements import element_of
from pypto.codegen.kernel.layout import TileLayout, constant_extents, valid_extents
from pypto.codegen.kernel.operators.context import OpContext
from pypto.ir.meaning import Cast, Contraction, Reduce

_COMBINE = {
    "sum": "Sum",
    "max": "Maximum",
    "min": "Minimum",
    "prod": "Product",
    "argmax": "Greater",
    "argmin": "Less",
}
_ROUND = ("NONE", "RINT", "AWAY", "FLOOR", "CEIL", "TRUNC", "ODD")


def emit_reduce(context: OpContext, meaning: Reduce) -> None:
    """`reduce_rows<Sum>(out, x);`"""
    source = context.name(0)
    is_row = meaning.axis == "row"
    valid = (f"{source}.valid_rows", "1") if is_row else ("1", f"{source}.valid_cols")
    out = context.declare(valid)
    if out is None:
        return
    context.emitter.headers.add("pypto_reduce.h")
    if not is_row and context.result_layout.rows != 1:
        source = _first_axis_as_rows(context, source)
        out = f"pypto::reshape<1, {context.result_layout.rows * context.result_layout.cols}>({out})"
    kind = "arg" if meaning.combine.startswith("arg") else "reduce"
    axis = "rows" if is_row else "cols"
    context.emitter.line(f"pypto::{kind}_{axis}<pypto::{_COMBINE[meaning.combine]}>({out}, {source});")


def _first_axis_as_rows(context: OpContext, source: str) -> str:
    """A tile of rank above 2 whose first axis is reduced: all other axes become columns."""
    type_ = context.args[0].type
    assert isinstance(type_, ir.TileType)
    extents = constant_extents(type_.shape_)
    layout = context.layout(0)
    if extents is None or not layout.is_packed or valid_extents(type_) is not None:
        raise ValueError("reducing the first axis needs a packed tile that is valid in full")
    return f"pypto::reshape<{extents[0]}, {layout.rows * layout.cols // extents[0]}>({source})"


def emit_cast(context: OpContext, meaning: Cast) -> None:
    """`cast<Round::RINT>(out, x);`"""
    out = context.declare_like(0)
    if out is None:
        return
    context.emitter.headers.add("pypto_cast.h")
    mode = _ROUND[context.keyword("mode")]
    context.emitter.line(f"pypto::cast<pypto::Round::{mode}>({out}, {context.name(0)});")


def emit_contraction(context: OpContext, meaning: Contraction) -> None:
    """`matmul(out, lhs, rhs, accumulate, scratch);`"""
    first, second = meaning.operands
    lhs, rhs = context.name(first), context.name(second)
    emitter = context.emitter
    if meaning.accumulate:
        out: str | None = context.update(0)
    else:
        valid = (f"{lhs}.valid_rows", f"{rhs}.valid_cols")
        out = context.declare(valid)
    if out is None:
        return
    accumulate = _accumulates(context, meaning)
    if meaning.bias:
        bias = context.name(meaning.bias_position)
        ctype = context.result_element.compute
        emitter.line(f"pypto::each({out}, []({ctype} a) {{ return a; }}, pypto::per_column({bias}));")
        accumulate = "true"
    if meaning.scaled:
        emitter.headers.add("pypto_scaled.h")
        scales = context.name(first + 1), context.name(second + 1)
        emitter.line(f"pypto::matmul_scaled({out}, {lhs}, {scales[0]}, {rhs}, {scales[1]}, {accumulate});")
        return
    emitter.headers.add("pypto_matmul.h")
    emitter.needs_scratch = True
    tiles = _batches(context, first, context.result_layout)
    if tiles is None:
        if context.layout(first).rows != context.result_layout.rows:  # a single row in a taller accumulator
            rows = context.layout(first).rows
            if accumulate == "false":
                emitter.line(f"pypto::clear_outside({out}, {rows}, {context.result_layout.cols});")
            out = f"pypto::window<{rows}, {context.result_layout.cols}>({out}, 0, 0)"
        emitter.line(f"pypto::matmul({out}, {lhs}, {rhs}, {accumulate}, scratch);")
        return
    for target, left, right in tiles:
        emitter.line(
            f"pypto::matmul({target.of(out)}, {left.of(lhs)}, {right.of(rhs)}, {accumulate}, scratch);"
        )


def _accumulates(context: OpContext, meaning: Contraction) -> str:
    if not meaning.accumulate:
        return "false"
    if not meaning.scaled and len(context.args) == 4:
        return f"!({context.scalar(3)})"
    return "true"


class _Batch:
    """One matrix of a batch: a window of folded rows."""

    def __init__(self, rows: int, cols: int, start: int) -> None:
        self.rows, self.cols, self.start = rows, cols, start

    def of(self, name: str) -> str:
        return f"pypto::window<{self.rows}, {self.cols}>({name}, {self.start}, 0)"


def _batches(
    context: OpContext, first: int, result: TileLayout
) -> list[tuple[_Batch, _Batch, _Batch]] | None:
    """The windows of each product of a batch; None for plain matrices.

    Leading dimensions broadcast as in numpy. Whole extents count: the padding of operands is zero.
    """
    types = [context.args[first].type, context.args[first + 1].type, context.call.type]
    shapes = []
    for type_ in types:
        assert isinstance(type_, ir.TileType)
        element_of(type_.dtype)
        extents = constant_extents(type_.shape_)
        if extents is None:
            raise ValueError("the extents of a matrix product must be compile-time constants")
        shapes.append(extents)
    lhs, rhs, out = shapes
    if len(out) <= 2 and len(lhs) <= 2 and len(rhs) <= 2:
        return None
    batches = []
    for index in _indices(out[:-2]):
        parts = [
            _Batch(shape[-2], shape[-1], _flat_index(shape[:-2], index) * shape[-2])
            for shape in (out, lhs, rhs)
        ]
        batches.append((parts[0], parts[1], parts[2]))
    return batches


def _indices(extents: list[int]) -> list[tuple[int, ...]]:
    indices: list[tuple[int, ...]] = [()]
    for extent in extents:
        indices = [(*index, i) for index in indices for i in range(extent)]
    return indices


def _flat_index(extents: list[int], index: tuple[int, ...]) -> int:
    flat = 0
    for extent, i in zip(extents, index[len(index) - len(extents) :], strict=True):
        flat = flat * extent + (i if extent > 1 else 0)
    return flat
