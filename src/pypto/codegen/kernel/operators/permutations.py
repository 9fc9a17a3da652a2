"""Operators that pick, place, sort or generate elements."""

from __future__ import annotations

from collections.abc import Callable

from pypto import ir
from pypto.codegen.kernel.elements import element_of
from pypto.codegen.kernel.layout import constant_extents
from pypto.codegen.kernel.operators.context import OpContext

#: mask pattern -> (first column, step)
_PATTERNS = {1: (0, 2), 2: (1, 2), 3: (0, 4), 4: (1, 4), 5: (2, 4), 6: (3, 4), 7: (0, 1)}
_COMPARE = ("==", "!=", "<", "<=", ">", ">=")
_OUT_OF_BOUNDS = ("UNDEFINED", "CLAMP", "WRAP", "ZERO")


def _line(context: OpContext, header: str, text: str) -> None:
    context.emitter.headers.add(header)
    context.emitter.line(text)


def _flag(value: object) -> str:
    return "true" if value else "false"


# ---- generators ---------------------------------------------------------------------------------------


def emit_sequence(context: OpContext) -> None:
    """start, start + 1, ..."""
    out = context.declare_typed()
    if out is not None:
        element = context.result_element
        start = f"{element.stored}({context.scalar_as(0, element)})"
        descending = _flag(context.keyword("descending"))
        _line(context, "pypto_generate.h", f"pypto::sequence({out}, {start}, {descending});")


def emit_triangle(context: OpContext) -> None:
    """Ones on one side of a diagonal."""
    out = context.declare_typed()
    if out is not None:
        upper = _flag(context.keyword("upper"))
        _line(context, "pypto_generate.h", f"pypto::triangle({out}, {context.scalar(0)}, {upper});")


def emit_random(context: OpContext) -> None:
    """Counter-based random numbers."""
    out = context.declare_typed()
    if out is None:
        return
    words = [f"uint32_t({context.scalar(i)})" for i in range(6)]
    counter = f"pypto::Counter{{{{{', '.join(words[2:])}}}}}"
    rounds = context.keyword("rounds", 10)
    _line(context, "pypto_generate.h", f"pypto::random({out}, {words[0]}, {words[1]}, {counter}, {rounds});")


# ---- picking and placing ------------------------------------------------------------------------------


def emit_concat(context: OpContext) -> None:
    """Two tiles side by side."""
    out = context.declare_typed()
    if out is not None:
        _line(context, "pypto_gather.h", f"pypto::concat({out}, {context.name(0)}, {context.name(1)});")


def emit_gather_flat(context: OpContext) -> None:
    """out[i, j] := src.flat[index[i, j]]"""
    out = context.declare_typed()
    if out is not None:
        _line(context, "pypto_gather.h", f"pypto::gather_flat({out}, {context.name(0)}, {context.name(1)});")


def emit_scatter_flat(context: OpContext) -> None:
    """dst.flat[index[i, j]] := src[i, j]"""
    src, index = context.name(1), context.name(2)
    _line(context, "pypto_gather.h", f"pypto::scatter_flat({context.update(0)}, {src}, {index});")


def emit_scatter_update(context: OpContext) -> None:
    """dst[index[k], :] := src[k, :]"""
    index, src = context.name(1), context.name(2)
    _line(context, "pypto_gather.h", f"pypto::scatter_rows({context.update(0)}, {index}, {src});")


def _pattern(context: OpContext) -> str:
    first, step = _PATTERNS[context.keyword("mask_pattern")]
    return f"{first}, {step}"


def emit_gather_mask(context: OpContext) -> None:
    """The columns that a pattern selects."""
    out = context.declare_typed()
    if out is not None:
        text = f"pypto::gather_columns<{_pattern(context)}>({out}, {context.name(0)});"
        _line(context, "pypto_gather.h", text)


def emit_scatter_mask(context: OpContext) -> None:
    """Columns into the places that a pattern selects."""
    src = context.name(1)
    text = f"pypto::scatter_columns<{_pattern(context)}>({context.update(0)}, {src});"
    _line(context, "pypto_gather.h", text)


def emit_gather_blocks(context: OpContext) -> None:
    """Blocks of 32 bytes by byte offset."""
    if not context.layout(0).is_packed:
        raise ValueError("blocks can only be gathered from a packed tile")
    out = context.declare_typed()
    if out is not None:
        _line(
            context, "pypto_gather.h", f"pypto::gather_blocks({out}, {context.name(0)}, {context.name(1)});"
        )


def emit_gather_compare(context: OpContext) -> None:
    """Indices of matching columns and how many match, as a tuple."""
    if context.result is None:
        return
    names = context.emitter.declare_parts(context.result)
    source = context.args[0].type
    assert isinstance(source, ir.TileType)
    element = element_of(source.dtype)
    compare = _COMPARE[context.keyword("cmp_mode", 0)]
    matches = f"[k = {context.scalar_as(1, element)}]({element.compute} a) {{ return a {compare} k; }}"
    offset = context.keyword("offset", 0)
    text = f"pypto::gather_matches({names[0]}, {names[1]}, {context.name(0)}, {offset}, {matches});"
    _line(context, "pypto_gather.h", text)


def emit_gather_row(context: OpContext) -> None:
    """A window of a pool into a window of a tile."""
    to, origin = context.list_of(context.elements(2)), context.elements(3)
    box = context.elements(5) if len(context.args) > 5 else context.elements(4)
    if len(origin) != 2 or len(box) != 2:
        raise ValueError("rows can only be gathered from two dimensions")
    pool = f"pypto::as_tensor({context.name(1)})" if context.is_tile(1) else _as_matrix(context, 1)
    target = context.update(0)
    places = f"pypto::at({to}), pypto::at({context.list_of(origin)}), {context.list_of(box)}"
    transposed = _flag(context.keyword("transpose"))
    text = f"pypto::gather_row(kernel, {target}, {pool}, {places}, {transposed}, {context.detail});"
    _line(context, "pypto_gather.h", text)


def _as_matrix(context: OpContext, index: int) -> str:
    type_ = context.args[index].type
    assert isinstance(type_, ir.TensorType)
    name = context.name(index)
    return name if len(type_.shape_) == 2 else f"pypto::with_rank<2>({name})"


def emit_mgather(context: OpContext) -> None:
    """Rows or elements of global memory by index."""
    index = context.name(1) if context.is_tile(1) else _as_matrix(context, 1)
    out = context.declare_typed()
    if out is None:
        return
    function = "gather_elements" if context.keyword("coalesce", 0) == 1 else "gather_rows"
    mode = f"pypto::OutOfBounds::{_OUT_OF_BOUNDS[context.keyword('gather_oob', 0)]}"
    text = f"pypto::{function}({out}, {context.name(0)}, {index}, {mode});"
    _line(context, "pypto_gather.h", text)


def emit_mscatter(context: OpContext) -> None:
    """tensor.flat[index[i, j]] := src[i, j]"""
    tensor = context.name(2)
    places = f"{tensor}, {context.name(0)}, {context.name(1)}"
    _line(context, "pypto_gather.h", f"pypto::scatter_elements(kernel, {places}, {context.detail});")
    if context.result is not None:
        context.emitter.bind(context.result, tensor)


# ---- sorting ------------------------------------------------------------------------------------------


def emit_sort32(context: OpContext) -> None:
    """Blocks of 32 columns in descending order, as records."""
    out = context.declare_typed()
    if out is not None:
        _line(context, "pypto_sort.h", f"pypto::sort32({out}, {context.name(0)}, {context.name(1)});")


def emit_merge_blocks(context: OpContext) -> None:
    """Every four sorted runs become one."""
    out = context.declare_typed()
    if out is not None:
        _line(context, "pypto_sort.h", f"pypto::merge_blocks({out}, {context.name(0)}, {context.scalar(1)});")


def emit_merge_lists(context: OpContext) -> None:
    """Two to four sorted lists become one."""
    out = context.declare_typed()
    if out is None:
        return
    if context.result_layout.rows != 1:
        raise ValueError("only single rows can be merged")
    lists = ", ".join(context.name(i) for i in range(len(context.args) - 1))
    early = _flag(context.keyword("exhausted"))
    _line(context, "pypto_sort.h", f"pypto::merge_lists({out}, {early}, {lists});")


# ---- arrays of scalars --------------------------------------------------------------------------------


def emit_array_create(context: OpContext) -> None:
    """A small array of scalars, all zero."""
    type_ = context.call.type
    assert isinstance(type_, ir.ArrayType)
    extents = constant_extents(type_.shape_)
    if context.result is None or extents is None:
        return
    name = context.emitter.bind(context.result)
    context.emitter.line(f"{element_of(type_.dtype).compute} {name}[{extents[0]}] = {{}};")


def _check_index(context: OpContext) -> None:
    """In checked mode an index into an array must be in range; the compiler knows that of a constant."""
    type_, index = context.args[0].type, context.args[1]
    assert isinstance(type_, ir.ArrayType)
    if isinstance(index, ir.ConstInt):
        return
    extent = context.list_of(type_.shape_[:1])
    boxes = f"pypto::box({extent}).at, pypto::at({context.scalar(1)}).at, pypto::box(1).at"
    context.emitter.line(f"kernel.check(1, {boxes}, {context.detail});")


def emit_array_get(context: OpContext) -> None:
    """One element of an array."""
    if context.result is not None:
        _check_index(context)
        context.emitter.define_scalar(context.result, f"{context.name(0)}[{context.scalar(1)}]")


def emit_array_update(context: OpContext) -> None:
    """Set one element; the array stays the same one."""
    name = context.name(0)
    _check_index(context)
    context.emitter.line(f"{name}[{context.scalar(1)}] = {context.scalar(2)};")
    if context.result is not None:
        context.emitter.bind(context.result, name)


PERMUTATIONS: dict[str, Callable[[OpContext], None]] = {
    "ci": emit_sequence,
    "tri": emit_triangle,
    "random": emit_random,
    "concat": emit_concat,
    "gather_flat": emit_gather_flat,
    "gather_mask": emit_gather_mask,
    "gather_blocks": emit_gather_blocks,
    "gather_compare": emit_gather_compare,
    "gather_row": emit_gather_row,
    "scatter_flat": emit_scatter_flat,
    "scatter_mask": emit_scatter_mask,
    "scatter_update": emit_scatter_update,
    "mgather": emit_mgather,
    "mscatter": emit_mscatter,
    "sort32": emit_sort32,
    "mrgsort_blocks": emit_merge_blocks,
    "mrgsort_lists": emit_merge_lists,
    "array_create": emit_array_create,
    "array_get": emit_array_get,
    "array_update": emit_array_update,
}
