"""Operators that move elements: transfers with tensors, views and windows of tiles, fills, element access."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pypto import ir
from pypto.codegen.kernel.elements import element_of
from pypto.codegen.kernel.layout import constant_extents, valid_extents
from pypto.codegen.kernel.operators.context import OpContext
from pypto.codegen.kernel.views import row_weights, window_extents


def _at(context: OpContext, exprs: Sequence[ir.Expr]) -> str:
    return f"pypto::at({context.list_of(exprs)})"


def _tensor(context: OpContext, index: int, rank: int) -> str:
    """A tensor operand seen with `rank` dimensions."""
    type_ = context.args[index].type
    if not isinstance(type_, ir.TensorType):
        raise ValueError(f"argument {index} must be a tensor")
    name = context.name(index)
    return name if len(type_.shape_) == rank else f"pypto::with_rank<{rank}>({name})"


# ---- transfers -------------------------------------------------------------------------------------------


def emit_load(context: OpContext) -> None:
    """tile := tensor[offset : offset + valid]"""
    if not isinstance(context.args[0].type, ir.TensorType):
        raise ValueError("only a tensor can be loaded")
    offsets, shape = context.elements(1), context.elements(2)
    extents = constant_extents(shape)
    if extents is None:
        raise ValueError("the extents of a load must be compile-time constants")
    result = context.call.type
    assert isinstance(result, ir.TileType)
    asked = context.elements(3) if len(context.args) > 3 else shape
    valid = valid_extents(result) if context.emitter.knows(result) else asked
    out = (
        context.declare_typed()
        if context.emitter.knows(result)
        else context.declare(_last_two(context, asked))
    )
    if out is None:
        return
    tensor = _tensor(context, 0, len(offsets))
    place = f"{out}, {tensor}, {_at(context, offsets)}"
    if len(offsets) == 2:
        context.emitter.line(f"pypto::load(kernel, {place}, {context.detail});")
        return
    physical = ", ".join(str(extent) for extent in extents)
    wanted = physical if valid is None else context.list_of(valid)
    context.emitter.line(
        f"pypto::load(kernel, {place}, pypto::box({physical}), pypto::box({wanted}), {context.detail});"
    )


def _last_two(context: OpContext, extents: Sequence[ir.Expr]) -> tuple[str, str]:
    if len(extents) != 2:
        raise ValueError("the valid extents of a load of rank other than 2 must be known where it is loaded")
    return context.emitter.scalar(extents[0]), context.emitter.scalar(extents[1])


def emit_store(context: OpContext) -> None:
    """tensor[offset : offset + valid] := tile[:valid]"""
    offsets = context.elements(1)
    rank = len(offsets)
    source = context.args[0].type
    if not isinstance(source, ir.TileType):
        raise ValueError("only a tile can be stored")
    shape = context.elements(3) if len(context.args) > 3 else source.shape_
    extents = constant_extents(shape)
    if extents is None:
        raise ValueError("the extents of a store must be compile-time constants")
    tile, tensor = context.name(0), _tensor(context, 2, rank)
    function = "pypto::store"
    if context.keyword("atomic", 0):
        context.emitter.headers.add("pypto_atomic.h")
        function = "pypto::store_add"
    place = f"kernel, {tile}, {tensor}, {_at(context, offsets)}"
    if rank == 2 and len(extents) == 2:
        context.emitter.line(f"{function}({place}, {context.detail});")
    else:
        physical = _fitted([str(extent) for extent in extents], rank, extents)
        valid = _fitted(_stored_extents(context, source, shape, extents), rank, extents)
        boxes = f"pypto::box({', '.join(physical)}), pypto::box({', '.join(valid)})"
        context.emitter.line(f"{function}({place}, {boxes}, {context.detail});")
    _bind_tensor(context, 2)


def _stored_extents(
    context: OpContext, source: ir.TileType, shape: Sequence[ir.Expr], extents: list[int]
) -> list[str]:
    """How much of each dimension of a store is written."""
    valid = valid_extents(source)
    if valid is None:
        return [str(extent) for extent in extents]
    if len(valid) == len(shape):
        return [context.emitter.scalar(extent) for extent in valid]
    if all(extent == 1 for extent in extents[:-2]):
        tile = context.name(0)
        return [*(["1"] * (len(extents) - 2)), f"{tile}.valid_rows", f"{tile}.valid_cols"][-len(extents) :]
    raise ValueError("a tile that is valid in part cannot be stored with another rank")


def _fitted(texts: list[str], rank: int, extents: list[int]) -> list[str]:
    """Extents of another rank: unit dimensions are added or removed in front."""
    if len(texts) <= rank:
        return ["1"] * (rank - len(texts)) + texts
    surplus = len(texts) - rank
    if any(extent != 1 for extent in extents[:surplus]):
        raise ValueError(f"a tile of shape {extents} cannot be stored with {rank} offsets")
    return texts[surplus:]


def _bind_tensor(context: OpContext, index: int) -> None:
    """The result is the tensor that was written."""
    if context.result is not None:
        context.emitter.bind(context.result, context.name(index))


def emit_read(context: OpContext) -> None:
    """One element of a tensor or tile as a scalar."""
    if context.result is None:
        return
    indices = context.elements(1)
    if context.is_tile(0):
        row, col = _folded_index(context, indices)
        text = f"pypto::read(kernel, {context.name(0)}, {row}, {col}, {context.detail})"
    else:
        tensor = _tensor(context, 0, len(indices))
        text = f"pypto::read(kernel, {tensor}, {_at(context, indices)}, {context.detail})"
    context.emitter.define_scalar(context.result, text)


def emit_write(context: OpContext) -> None:
    """Set one element of a tensor or tile."""
    indices, value = context.elements(1), context.scalar(2)
    if context.is_tile(0):
        row, col = _folded_index(context, indices)
        target = context.update(0)
        context.emitter.line(f"pypto::write(kernel, {target}, {row}, {col}, {value}, {context.detail});")
        return
    tensor = _tensor(context, 0, len(indices))
    ctype = context.args[0].type.dtype  # type: ignore[attr-defined]
    value = f"{element_of(ctype).compute}({value})"
    context.emitter.line(
        f"pypto::write(kernel, {tensor}, {_at(context, indices)}, {value}, {context.detail});"
    )
    _bind_tensor(context, 0)


def _folded_index(context: OpContext, indices: Sequence[ir.Expr]) -> tuple[str, str]:
    type_ = context.args[0].type
    assert isinstance(type_, ir.TileType)
    extents = constant_extents(type_.shape_)
    assert extents is not None
    return _folded_offset(context, extents, [1] * len(extents), indices)


def _folded_offset(
    context: OpContext, extents: Sequence[int], window: Sequence[int], offsets: Sequence[ir.Expr]
) -> tuple[str, str]:
    """Row and column in the folded tile of an index of any rank."""
    if not offsets:
        return "0", "0"
    terms = []
    for weight, offset in zip(row_weights(extents, window), offsets[:-1], strict=True):
        if isinstance(offset, ir.ConstInt) and offset.value == 0:
            continue
        text = context.emitter.scalar.render(offset).operand
        terms.append(text if weight == 1 else f"{text} * {weight}")
    return " + ".join(terms) or "0", context.emitter.scalar(offsets[-1])


# ---- windows and views -----------------------------------------------------------------------------------


def _define_view(context: OpContext, text: str) -> None:
    """`auto v = <view>;` with the valid extents of the result's type."""
    if context.result is None:
        return
    result = context.call.type
    assert isinstance(result, ir.TileType)
    valid = context.emitter.typed_valid(result) if context.emitter.knows(result) else None
    name = context.emitter.bind(context.result)
    if valid is not None:
        text = f"pypto::with_valid({text}, {valid[0]}, {valid[1]})"
    context.emitter.line(f"auto {name} = {text};")


def emit_slice(context: OpContext) -> None:
    """A window of a tile; no data moves."""
    extents, window = window_extents(context.call)
    offsets = context.elements(2)
    row, col = _folded_offset(context, extents, window, offsets)
    _define_view(context, _window(context, offsets, row, col))


def _window(context: OpContext, offsets: Sequence[ir.Expr], row: str, col: str) -> str:
    """A window of a tile as large as the result. The compiler knows that constant offsets are in range."""
    layout, result = context.result_layout, context.call.type
    assert isinstance(result, ir.TileType)
    function = f"pypto::window<{layout.rows}, {layout.cols}>"
    if constant_extents(offsets) is not None:
        return f"{function}({context.name(0)}, {row}, {col})"
    valid = context.emitter.typed_valid(result) if context.emitter.knows(result) else None
    rows, cols = valid or (str(layout.rows), str(layout.cols))
    return f"{function}(kernel, {context.name(0)}, {row}, {col}, {rows}, {cols}, {context.detail})"


def emit_reshape(context: OpContext) -> None:
    """The same elements under another shape; copied first where they are not packed."""
    if context.result is None:
        return
    source, layout = context.layout(0), context.result_layout
    name = context.name(0)
    if source.is_packed:
        _define_view(context, f"pypto::reshape<{layout.rows}, {layout.cols}>({name})")
        return
    out = context.declare_typed()
    context.emitter.line(f"pypto::copy(pypto::reshape<{source.rows}, {source.cols}>({out}), {name});")


def emit_reinterpret(context: OpContext) -> None:
    """The same bytes as elements of another type."""
    layout = context.result_layout
    if not context.layout(0).is_packed:
        raise ValueError("only a packed tile can be reinterpreted")
    element = layout.element.stored
    _define_view(context, f"pypto::reinterpret<{element}, {layout.rows}, {layout.cols}>({context.name(0)})")


def emit_tensor_view(context: OpContext) -> None:
    """Memory under other extents, or with its last two dimensions swapped; no data moves."""
    if context.result is None:
        return
    source, result = context.args[0].type, context.call.type
    assert isinstance(source, ir.TensorType) and isinstance(result, ir.TensorType)
    text = context.name(0)
    swaps = _is_column_major(result)
    if len(context.args) > 1:
        extents = list(result.shape_)
        if swaps:
            extents[-2:] = reversed(extents[-2:])
        box = f"pypto::box({context.list_of(extents)})"
        text = f"pypto::packed_view(kernel, {text}, {box}, {context.detail})"
    else:
        swaps = swaps != _is_column_major(source)
    if swaps:
        text = f"pypto::swapped_view({text})"
    context.emitter.line(f"const auto {context.emitter.bind(context.result)} = {text};")


def _is_column_major(tensor: ir.TensorType) -> bool:
    return tensor.tensor_view is not None and tensor.tensor_view.layout is ir.TensorLayout.DN


def emit_transpose_view(context: OpContext) -> None:
    """Rows and columns swapped; no data moves."""
    type_ = context.args[0].type
    assert isinstance(type_, ir.TileType)
    if constant_extents(type_.shape_[:-2]) != [1] * (len(type_.shape_) - 2):
        raise ValueError("a transposed view of several matrices in one tile is not supported on the CPU")
    _define_view(context, f"pypto::transpose_view({context.name(0)})")


def emit_set_validshape(context: OpContext) -> None:
    """The same tile with other valid extents."""
    name = f"pypto::with_valid({context.name(0)}, {context.scalar(1)}, {context.scalar(2)})"
    if context.result is not None:
        context.emitter.line(f"auto {context.emitter.bind(context.result)} = {name};")


def emit_transpose(context: OpContext) -> None:
    """A copy with two axes swapped."""
    out = context.declare_typed()
    if out is None:
        return
    type_ = context.args[0].type
    assert isinstance(type_, ir.TileType)
    rank = len(type_.shape_)
    axes = sorted(axis.value % rank for axis in context.args[1:3] if isinstance(axis, ir.ConstInt))
    context.emitter.headers.add("pypto_permute.h")
    if rank == 2:
        context.emitter.line(f"pypto::transpose({out}, {context.name(0)});")
        return
    extents = constant_extents(type_.shape_)
    if extents is None or not context.layout(0).is_packed:
        raise ValueError("transposing a tile of rank above 2 needs a packed tile")
    first, second = axes
    between = _product(extents[first + 1 : second])
    groups = [
        _product(extents[:first]),
        extents[first],
        between,
        extents[second],
        _product(extents[second + 1 :]),
    ]
    numbers = ", ".join(str(extent) for extent in groups)
    context.emitter.line(f"pypto::swap_axes<{numbers}>({out}.data, {context.name(0)}.data);")


def _product(extents: Sequence[int]) -> int:
    result = 1
    for extent in extents:
        result *= extent
    return result


def emit_move(context: OpContext) -> None:
    """The same tile in another memory: on the CPU the same elements, copied unless the source is not
    needed any more.
    """
    if context.result is None:
        return
    emitter = context.emitter
    source, target = emitter.tile(context.args[0]), emitter.plan.values[context.result]
    name, layout = context.name(0), source.layout
    same_element = layout.element.stored == target.layout.element.stored
    if same_element and emitter.plan.shares(source, target):
        emitter.bind(context.result, name)
        return
    out = context.declare_like(0)
    if not same_element:  # bytes become scales: the bits are kept
        if not layout.is_packed:
            raise ValueError("only a packed tile can become scales")
        name = f"pypto::reinterpret<{target.layout.element.stored}, {layout.rows}, {layout.cols}>({name})"
    emitter.line(f"pypto::copy({out}, {name});")


def emit_extract(context: OpContext) -> None:
    """A copy of a window."""
    out = context.declare_typed()
    if out is None:
        return
    window = _window(context, context.args[1:3], context.scalar(1), context.scalar(2))
    context.emitter.line(f"pypto::copy({out}, {window});")


def emit_assemble(context: OpContext) -> None:
    """target[offset:] := valid part of source"""
    if not context.is_tile(0):
        raise ValueError("assembling into a tensor needs a tile and becomes a store; it was not lowered")
    target_type, source_type = context.args[0].type, context.args[1].type
    assert isinstance(target_type, ir.TileType) and isinstance(source_type, ir.TileType)
    extents, window = constant_extents(target_type.shape_), constant_extents(source_type.shape_)
    assert extents is not None and window is not None
    padded = [1] * (len(extents) - len(window)) + window
    row, col = _folded_offset(context, extents, padded, context.elements(2))
    source = context.name(1)
    target = context.update(0)
    context.emitter.line(f"pypto::assemble(kernel, {target}, {source}, {row}, {col}, {context.detail});")


# ---- fills -----------------------------------------------------------------------------------------------


def emit_create(context: OpContext) -> None:
    """A tile of zeros: its contents are undefined, but the same every time. Unread scratch has no tile."""
    if context.result not in context.emitter.plan.values:
        return
    out = context.declare_typed()
    if out is not None:
        context.emitter.line(f"pypto::clear_outside({out}, 0, 0);")


def emit_full(context: OpContext) -> None:
    """A tile of one value."""
    out = context.declare_typed()
    if out is not None:
        element = context.result_element
        value = context.scalar_as(1, element)
        context.emitter.line(f"pypto::fill({out}, pypto::convert<{element.stored}>({value}));")


def emit_fillpad(context: OpContext) -> None:
    """The valid part of the source, everything else one value."""
    source = context.name(0)
    if context.definition.reuses is not None:
        out: str | None = _padded_in_place(context, source)
    else:
        out = context.declare(None)
    if out is None:
        return
    context.emitter.headers.add("pypto_permute.h")
    kind = context.keyword("pad_value", ir.PadValue.zero).name
    pad = f"pypto::pad_{kind}<{context.result_element.stored}>()"
    context.emitter.line(f"pypto::fillpad({out}, {source}, {pad});")


def _padded_in_place(context: OpContext, source: str) -> str:
    layout = context.layout(0)
    full = f"pypto::with_valid({source}, {layout.rows}, {layout.cols})"
    if context.result is None:
        return full
    name = context.emitter.bind(context.result)
    context.emitter.line(f"auto {name} = {full};")
    return name


MOVES: dict[str, Callable[[OpContext], None]] = {
    "load": emit_load,
    "store": emit_store,
    "read": emit_read,
    "write": emit_write,
    "slice": emit_slice,
    "reshape": emit_reshape,
    "reinterpret_view": emit_reinterpret,
    "transpose_view": emit_transpose_view,
    "view": emit_tensor_view,
    "set_validshape": emit_set_validshape,
    "transpose": emit_transpose,
    "move": emit_move,
    "extract": emit_extract,
    "assemble": emit_assemble,
    "create": emit_create,
    "full": emit_full,
    "fillpad": emit_fillpad,
    "fillpad_expand": emit_fillpad,
}
