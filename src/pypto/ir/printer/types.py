"""Canonical text of types, views and memory references."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pypto.core.errors import InternalError
from pypto.ir.enums import CompactMode, MemorySpace, PadValue, TensorLayout
from pypto.ir.expr import ConstInt, Expr, MemRef, Var
from pypto.ir.printer.expressions import expr_text
from pypto.ir.printer.literals import double_quoted
from pypto.ir.printer.state import State
from pypto.ir.types import (
    ArrayType,
    AsyncEventType,
    AsyncSessionType,
    CommCtxType,
    DistributedTensorType,
    MemRefType,
    PrefetchAsyncContextType,
    PtrType,
    ScalarType,
    TensorType,
    TileType,
    TupleType,
    Type,
    UnknownType,
    WindowBufferType,
)
from pypto.ir.views import TensorView, TileView, implicit_tile_layout, same_extents

__all__ = ["dim_text", "memref_text", "type_text"]


def type_text(state: State, type_: Type) -> str:
    """The annotation that reads back as `type_`."""
    cached = state.type_texts.get(id(type_))
    if cached is not None and not state.in_signature:
        return cached[1]
    printer = _PRINTERS.get(type(type_))
    if printer is None:
        raise InternalError(f"type {type(type_).__name__} has no text")
    text = printer(state, type_)
    if not state.in_signature:
        state.type_texts[id(type_)] = (type_, text)
    return text


def dim_text(state: State, dim: Expr) -> str:
    """One extent: constants bare, names, otherwise an expression whose constants carry their type."""
    if isinstance(dim, ConstInt):
        return str(dim.value)
    if isinstance(dim, Var):
        return state.name(dim)
    return expr_text(state, dim, typed=True)


def memref_text(state: State, memref: MemRef) -> str:
    """`pl.MemRef("name")` for a declaration of the author, `pl.MemRef(base, offset, size)` otherwise."""
    p = state.prefix
    slots = f", slots={memref.slot_count_}" if memref.slot_count_ > 1 else ""
    index = f"[{expr_text(state, memref.slot_index_)}]" if memref.slot_index_ is not None else ""
    base = memref.base_
    if memref.is_pinned_:
        return f"{p}.MemRef({double_quoted(base.name_hint)}{slots}){index}"
    if id(base) in state.defined and not state.in_signature:
        name = state.name(base)
    else:
        name = double_quoted(base.name_hint)
    offset = expr_text(state, memref.byte_offset_)
    return f"{p}.MemRef({name}, {offset}, {memref.size_}{slots}){index}"


def _dims(state: State, dims: Sequence[Expr]) -> str:
    return f"[{', '.join([dim_text(state, d) for d in dims])}]"


def _tensor_view(state: State, view: TensorView, shape: Sequence[Expr]) -> str:
    p = state.prefix
    parts = []
    if view.valid_shape_ and not same_extents(view.valid_shape_, shape):
        parts.append(f"valid_shape={_dims(state, view.valid_shape_)}")
    plain = not parts and not view.stride_ and view.layout is TensorLayout.ND and view.pad is PadValue.null
    if plain:
        return f"{p}.TensorView()"
    parts.append(f"stride={_dims(state, view.stride_)}")
    parts.append(f"layout={p}.TensorLayout.{view.layout.name}")
    if view.pad is not PadValue.null:
        parts.append(f"pad={p}.PadValue.{view.pad.name}")
    return f"{p}.TensorView({', '.join(parts)})"


def _tile_view(state: State, view: TileView, shape: Sequence[Expr], space: MemorySpace | None) -> str:
    p = state.prefix
    parts = []
    if view.valid_shape_ and not same_extents(view.valid_shape_, shape):
        parts.append(f"valid_shape={_dims(state, view.valid_shape_)}")
    if view.stride_:
        parts.append(f"stride={_dims(state, view.stride_)}")
    if view.start_offset is not None:
        parts.append(f"start_offset={dim_text(state, view.start_offset)}")
    blayout, slayout, fractal = implicit_tile_layout(shape, space)
    every = state.explicit_layout
    if every or view.blayout is not blayout:
        parts.append(f"blayout={p}.TileLayout.{view.blayout.name}")
    if every or view.slayout is not slayout:
        parts.append(f"slayout={p}.TileLayout.{view.slayout.name}")
    if every or view.fractal != fractal:
        parts.append(f"fractal={view.fractal}")
    if view.pad is not PadValue.null:
        parts.append(f"pad={p}.PadValue.{view.pad.name}")
    if view.compact is not CompactMode.null:
        parts.append(f"compact={p}.CompactMode.{view.compact.name}")
    return f"{p}.TileView({', '.join(parts)})"


def _scalar(state: State, type_: ScalarType) -> str:
    return f"{state.prefix}.Scalar[{state.dtype(type_.dtype)}]"


def _tensor(state: State, type_: TensorType) -> str:
    return _tensor_like(state, type_, f"{state.prefix}.Tensor", "")


def _distributed_tensor(state: State, type_: DistributedTensorType) -> str:
    window = ""
    if state.explicit_layout and type_.window_buffer is not None:
        window = f', "window_buffer={state.name(type_.window_buffer)}"'
    return _tensor_like(state, type_, "pld.DistributedTensor", window)


def _tensor_like(state: State, type_: TensorType, head: str, tail: str) -> str:
    text = f"{head}[{_dims(state, type_.shape_)}, {state.dtype(type_.dtype)}"
    if type_.tensor_view is not None:
        text += f", {_tensor_view(state, type_.tensor_view, type_.shape_)}"
    if type_.memref is not None:
        text += f", {memref_text(state, type_.memref)}"
    return f"{text}{tail}]"


def _tile(state: State, type_: TileType) -> str:
    text = f"{state.prefix}.Tile[{_dims(state, type_.shape_)}, {state.dtype(type_.dtype)}"
    if type_.memref is not None:
        text += f", {memref_text(state, type_.memref)}"
    space = type_.memory_space
    if space is not None:
        text += f", {state.prefix}.Mem.{space.name}"
    view = type_.tile_view
    if view is None and state.explicit_layout:
        view = type_.get_effective_tile_view()
    if view is not None:
        text += f", {_tile_view(state, view, type_.shape_, space)}"
    return f"{text}]"


def _array(state: State, type_: ArrayType) -> str:
    return f"{state.prefix}.Array[{dim_text(state, type_.extent)}, {state.dtype(type_.dtype)}]"


def _tuple(state: State, type_: TupleType) -> str:
    inner = ", ".join([type_text(state, t) for t in type_.types_]) or "()"
    return f"{state.prefix}.Tuple[{inner}]"


def _marker(text: str) -> Callable[[State, Type], str]:
    return lambda _state, _type: text


def _prefixed(name: str) -> Callable[[State, Type], str]:
    return lambda state, _type: f"{state.prefix}.{name}"


_PRINTERS: dict[type, Callable[..., str]] = {
    ScalarType: _scalar,
    TensorType: _tensor,
    DistributedTensorType: _distributed_tensor,
    TileType: _tile,
    ArrayType: _array,
    TupleType: _tuple,
    MemRefType: _prefixed("MemRefType"),
    PtrType: _prefixed("Ptr"),
    UnknownType: _prefixed("UnknownType"),
    PrefetchAsyncContextType: _prefixed("PrefetchAsyncContext"),
    AsyncEventType: _prefixed("AsyncEvent"),
    AsyncSessionType: _prefixed("AsyncSession"),
    WindowBufferType: _marker("pld.WindowBufferType"),
    CommCtxType: _marker("pld.CommCtxType"),
}
