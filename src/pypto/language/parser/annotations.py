"""Type annotations of parameters, results and local variables, from syntax tree to IR type."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pypto import ir
from pypto.language.parser.closure import NOT_FOUND
from pypto.language.parser.diagnostics import ParserTypeError
from pypto.language.parser.slots import dotted_name, enum_literal, last_name, resolve_dtype, resolve_shape
from pypto.language.parser.view_annotations import (
    LAYOUTS,
    is_memref,
    memref,
    tensor_view,
    tile_view,
    view_of_layout,
)
from pypto.language.typing import DistributedTensor, Scalar, Tensor, Tile

if TYPE_CHECKING:
    from pypto.language.parser.function_parser import FunctionParser

Resolver = Callable[["FunctionParser", ast.expr, list[ast.expr]], ir.Type]

_DIRECTIONS = {"Out": ir.ParamDirection.Out, "InOut": ir.ParamDirection.InOut}
_HANDLES: dict[str, Callable[[], ir.Type]] = {
    "PrefetchAsyncContext": ir.PrefetchAsyncContextType.get,
    "AsyncEvent": ir.AsyncEventType.get,
    "AsyncSession": ir.AsyncSessionType.get,
    "CommCtx": ir.CommCtxType.get,
    "Ptr": ir.PtrType.get,
    "PtrType": ir.PtrType.get,
    "WindowBufferType": ir.WindowBufferType.get,
}
_HANDLES |= {f"{name}Type": make for name, make in list(_HANDLES.items()) if not name.endswith("Type")}
_TYPES_OF_THE_VALUE = frozenset({"UnknownType", "MemRefType", "Ptr", "WindowBufferType", "CommCtxType"})


def is_left_to_value(node: ast.expr) -> bool:
    """Whether a local annotation says nothing: the variable takes the type of its value."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    return isinstance(node, ast.Attribute) and node.attr in _TYPES_OF_THE_VALUE


def parameter_type(p: FunctionParser, node: ast.expr, name: str) -> tuple[ir.Type, ir.ParamDirection]:
    """Type and direction of a parameter."""
    direction = ir.ParamDirection.In
    if isinstance(node, ast.Subscript):
        direction = _DIRECTIONS.get(last_name(node.value) or "", direction)
    if direction is not ir.ParamDirection.In:
        assert isinstance(node, ast.Subscript)
        node = node.slice
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "tuple":
        raise ParserTypeError(
            "Parameter type cannot be a tuple",
            span=p.span(node),
            hint="Pass the values as separate parameters",
        )
    found = resolve_type(p, node)
    if direction is ir.ParamDirection.InOut and isinstance(found, ir.ScalarType):
        raise ParserTypeError(
            f"Scalar parameters cannot have InOut direction: '{name}'",
            span=p.span(node),
            hint="Pass a one-element tensor instead",
        )
    _check_extents(p, node, found)
    return found, direction


def _check_extents(p: FunctionParser, node: ast.expr, kind: ir.Type) -> None:
    """Reject extents of a signature that no memory has. Printed programs may pass empty windows around."""
    extents = kind.shape_ if isinstance(kind, (ir.TensorType, ir.TileType)) else ()
    for axis, extent in enumerate(extents):
        if isinstance(extent, ir.ConstInt) and extent.value < (0 if p.source.is_text else 1):
            raise ParserTypeError(
                f"A shape has positive extents, but dimension {axis} is {extent.value}",
                span=p.span(node),
                hint='For an extent that is known only at run time, use a symbol: M = pl.dynamic("M")',
            )


def result_types(p: FunctionParser, node: ast.expr | None) -> list[ir.Type]:
    """The types of a return annotation; `tuple[A, B]` means several results."""
    if node is None or (isinstance(node, ast.Constant) and node.value is None):
        return []
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "tuple":
        found = [_element_type(p, element) for element in _elements(node.slice)]
    else:
        found = [resolve_type(p, node)]
    for kind in found:
        _check_extents(p, node, kind)
    return found


def local_type(p: FunctionParser, node: ast.expr) -> ir.Type:
    """The type of a local annotation. Printed text may hold tuples in tuples, since values can be nested."""
    outer, p.nested_tuples = p.nested_tuples, p.source.is_text
    try:
        return resolve_type(p, node)
    finally:
        p.nested_tuples = outer


def resolve_type(p: FunctionParser, node: ast.expr) -> ir.Type:
    """The IR type of an annotation."""
    if isinstance(node, ast.Subscript):
        text = p.source.segment(node)
        known = p.program.annotation_types.get(text)
        if known is not None:
            return known
        outer, p.literal_annotation = p.literal_annotation, True
        found = _subscript_type(p, node)
        if p.literal_annotation:
            p.program.annotation_types[text] = found
        p.literal_annotation = outer and p.literal_annotation
        return found
    if isinstance(node, ast.Call):
        return _call_type(p, node)
    if isinstance(node, (ast.Attribute, ast.Name)):
        return _plain_type(p, node)
    raise _unsupported(p, node)


def _subscript_type(p: FunctionParser, node: ast.Subscript) -> ir.Type:
    name = last_name(node.value)
    resolver = _RESOLVERS.get(name or "")
    if resolver is None or dotted_name(node.value) is None:
        raise ParserTypeError(
            f"Unknown type in subscript: {ast.unparse(node.value)}",
            span=p.span(node),
            hint="Use pl.Tensor[...], pl.Tile[...], pl.Scalar[...], pl.Array[...] or pl.Tuple[...]",
        )
    return resolver(p, node, _elements(node.slice))


def _elements(node: ast.expr) -> list[ast.expr]:
    return list(node.elts) if isinstance(node, ast.Tuple) else [node]


def _call_type(p: FunctionParser, node: ast.Call) -> ir.Type:
    name = last_name(node.func)
    resolver = _RESOLVERS.get(name or "") if name in ("Tensor", "Tile", "Scalar", "Tuple") else None
    if resolver is None or dotted_name(node.func) is None:
        raise ParserTypeError(
            f"Unknown type constructor: {ast.unparse(node.func)}",
            span=p.span(node),
            hint="Write the type with a subscript: pl.Tensor[[shape], dtype]",
        )
    args = list(node.args)
    if name == "Tuple" and len(args) == 1 and isinstance(args[0], (ast.List, ast.Tuple)):
        args = list(args[0].elts)
    return resolver(p, node, args)


def _plain_type(p: FunctionParser, node: ast.Attribute | ast.Name) -> ir.Type:
    name = last_name(node) or ""
    make = _HANDLES.get(name)
    if make is not None:
        return make()
    if name == "TaskId":
        return ir.ScalarType(ir.DataType.TASK_ID)
    if isinstance(node, ast.Name):
        captured = p.closure.lookup(node.id)
        found = _captured_type(p, node, captured)
        if found is not None:
            p.literal_annotation = False
            return found
        raise _unsupported(p, node)
    captured = p.closure.lookup_attribute(node)
    found = None if captured is NOT_FOUND else _captured_type(p, node, captured)
    if found is not None and last_name(node.value) not in ("pl", "pld"):
        p.literal_annotation = False
        return found
    raise ParserTypeError(
        f"Incomplete type annotation: {ast.unparse(node)}",
        span=p.span(node),
        hint="Give shape and dtype: pl.Tensor[[64, 128], pl.FP32]",
    )


def _captured_type(p: FunctionParser, node: ast.expr, value: Any) -> ir.Type | None:
    """The type of an annotation object held by a captured variable (`T = pl.Tensor[[64], pl.FP32]`)."""
    if isinstance(value, ir.Type):
        return value
    if isinstance(value, Scalar) and not value.has_expr() and type(value) is Scalar:
        return ir.ScalarType(value.dtype)
    if isinstance(value, (Tensor, Tile)) and not value.has_expr():
        return _build(p, node, lambda: _captured_shaped_type(p, node, value))
    return None


def _captured_shaped_type(p: FunctionParser, node: ast.expr, value: Tensor | Tile) -> ir.Type:
    shape = [p.resolve_dyn(d) if hasattr(d, "bind") else d for d in value.shape]
    if isinstance(value, Tile):
        return ir.TileType(shape, value.dtype, value.memref, value.tile_view, value.memory_space)
    view = value.layout
    if isinstance(view, ir.TensorLayout):
        view = view_of_layout(p, node, view)
    kind = ir.DistributedTensorType if isinstance(value, DistributedTensor) else ir.TensorType
    return kind(shape, value.dtype, value.memref, view)


def _unsupported(p: FunctionParser, node: ast.expr) -> ParserTypeError:
    return ParserTypeError(
        f"Unsupported type annotation: {ast.unparse(node)}",
        span=p.span(node),
        hint="Use pl.Tensor[[shape], dtype], pl.Tile[[shape], dtype], pl.Scalar[dtype], pl.Array[N, dtype]",
    )


# -- one resolver per type name ------------------------------------------------------------------------------


def _tensor(p: FunctionParser, node: ast.expr, args: list[ast.expr]) -> ir.Type:
    return _tensor_like(p, node, args, "Tensor", ir.TensorType)


def _distributed_tensor(p: FunctionParser, node: ast.expr, args: list[ast.expr]) -> ir.Type:
    last = args[-1]
    if (
        isinstance(last, ast.Constant)
        and isinstance(last.value, str)
        and last.value.startswith("window_buffer=")
    ):
        args = args[:-1]
    return _tensor_like(p, node, args, "DistributedTensor", ir.DistributedTensorType)


def _tensor_like(
    p: FunctionParser, node: ast.expr, args: list[ast.expr], name: str, kind: type[ir.TensorType]
) -> ir.Type:
    if not 2 <= len(args) <= 4:
        raise _arity(p, node, name)
    shape, dtype = resolve_shape(p, args[0]), resolve_dtype(p, args[1])
    view: ir.TensorView | None = None
    reference: ir.MemRef | None = None
    if len(args) == 3 and is_memref(p, args[2]):
        reference = memref(p, args[2])
    elif len(args) > 2:
        view = tensor_view(p, args[2])
    if len(args) == 4:
        if not is_memref(p, args[3]):
            raise ParserTypeError(
                f"{name} annotation: the 4th argument must be pl.MemRef",
                span=p.span(args[3]),
                hint="Write pl.Tensor[[shape], dtype, layout or view, pl.MemRef(base, offset, size)]",
            )
        reference = memref(p, args[3])
    return _build(p, node, lambda: kind(shape, dtype, reference, view))


def _tile(p: FunctionParser, node: ast.expr, args: list[ast.expr]) -> ir.Type:
    if not 2 <= len(args) <= 5:
        raise _arity(p, node, "Tile")
    shape, dtype = resolve_shape(p, args[0]), resolve_dtype(p, args[1])
    extras: dict[str, ast.expr] = {}
    for extra in args[2:]:
        kind = _tile_extra(p, extra)
        if kind in extras:
            raise ParserTypeError(
                f"Tile annotation takes at most one {kind}", span=p.span(extra), hint="Keep one of them"
            )
        extras[kind] = extra
    space = _memory_space(p, extras[_SPACE]) if _SPACE in extras else None
    if _MEMREF in extras and space is None:
        raise ParserTypeError(
            "Tile annotation with a MemRef must also specify explicit memory space",
            span=p.span(node),
            hint="Add pl.Mem.Vec",
        )
    reference = memref(p, extras[_MEMREF]) if _MEMREF in extras else None
    view_node = extras.get(_VIEW)
    view = tile_view(p, view_node, shape, space) if isinstance(view_node, ast.Call) else None
    return _build(p, node, lambda: ir.TileType(shape, dtype, reference, view, space))


_MEMREF, _VIEW, _SPACE = "memref argument", "pl.TileView", "memory-space argument"


def _tile_extra(p: FunctionParser, node: ast.expr) -> str:
    if is_memref(p, node):
        return _MEMREF
    if isinstance(node, ast.Call) and last_name(node.func) == "TileView":
        return _VIEW
    if isinstance(node, ast.Attribute) and last_name(node.value) in ("Mem", "MemorySpace"):
        return _SPACE
    value = p.closure.lookup(node.id) if isinstance(node, ast.Name) else None
    if isinstance(value, ir.MemorySpace):
        return _SPACE
    if isinstance(value, ir.TensorLayout) or last_name(node) in LAYOUTS:
        raise ParserTypeError(
            "Tile does not accept layouts",
            span=p.span(node),
            hint="Use pl.TileView(blayout=..., slayout=...)",
        )
    raise ParserTypeError(
        f"Unsupported Tile annotation argument: {ast.unparse(node)}",
        span=p.span(node),
        hint="The extras of a tile are a memory space, a pl.MemRef(...) and a pl.TileView(...)",
    )


def _memory_space(p: FunctionParser, node: ast.expr) -> ir.MemorySpace:
    if isinstance(node, ast.Name):
        p.literal_annotation = False
        value = p.closure.lookup(node.id)
        assert isinstance(value, ir.MemorySpace)
        return value
    assert isinstance(node, ast.Attribute)
    member = ir.MemorySpace.__members__.get(node.attr)
    return member if member is not None else enum_literal(p, node, ir.MemorySpace, ParserTypeError)


def _scalar(p: FunctionParser, node: ast.expr, args: list[ast.expr]) -> ir.Type:
    if len(args) != 1:
        raise ParserTypeError(
            "Scalar subscript requires [dtype]", span=p.span(node), hint="For example pl.Scalar[pl.INT32]"
        )
    return ir.ScalarType(resolve_dtype(p, args[0]))


def _array(p: FunctionParser, node: ast.expr, args: list[ast.expr]) -> ir.Type:
    if len(args) != 2:
        raise ParserTypeError(
            "Array subscript requires [extent, dtype]",
            span=p.span(node),
            hint="For example pl.Array[4, pl.INT32]",
        )
    if not isinstance(args[0], ast.Constant):
        p.literal_annotation = False
    extent = p.closure.evaluate(args[0], p.span(args[0]))
    if isinstance(extent, bool) or not isinstance(extent, int):
        raise ParserTypeError(
            f"Array extent must be a compile-time int, got '{ast.unparse(args[0])}'",
            span=p.span(args[0]),
            hint="Use a literal or an int that exists where the decorator is applied",
        )
    dtype = resolve_dtype(p, args[1])
    return _build(p, node, lambda: ir.ArrayType(dtype, extent))


def _tuple(p: FunctionParser, node: ast.expr, args: list[ast.expr]) -> ir.Type:
    return ir.TupleType([_element_type(p, element) for element in args])


def _element_type(p: FunctionParser, node: ast.expr) -> ir.Type:
    if isinstance(node, (ast.Subscript, ast.Call)) and not p.nested_tuples:
        head = node.value if isinstance(node, ast.Subscript) else node.func
        if last_name(head) in ("Tuple", "tuple"):
            raise ParserTypeError(
                "Nested tuple types are not supported",
                span=p.span(node),
                hint="List the types side by side in one tuple",
            )
    return resolve_type(p, node)


def _arity(p: FunctionParser, node: ast.expr, name: str) -> ParserTypeError:
    return ParserTypeError(
        f"{name} subscript requires [shape, dtype]",
        span=p.span(node),
        hint=f"For example pl.{name}[[64, 128], pl.FP32]",
    )


def _build(p: FunctionParser, node: ast.expr, make: Callable[[], ir.Type]) -> ir.Type:
    try:
        return make()
    except (TypeError, ValueError) as error:
        raise ParserTypeError(str(error), span=p.span(node)) from error


_RESOLVERS: dict[str, Resolver] = {
    "Tensor": _tensor,
    "DistributedTensor": _distributed_tensor,
    "Tile": _tile,
    "Scalar": _scalar,
    "Array": _array,
    "Tuple": _tuple,
}
