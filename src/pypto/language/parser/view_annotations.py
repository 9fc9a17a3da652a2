"""Extras of tensor and tile annotations: layouts, views, memory references."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from pypto import ir
from pypto.ir.views import implicit_tile_layout
from pypto.language.parser.closure import NOT_FOUND
from pypto.language.parser.diagnostics import ParserTypeError
from pypto.language.parser.slots import enum_literal, index_expression, index_list, last_name

if TYPE_CHECKING:
    from pypto.language.parser.function_parser import FunctionParser

LAYOUTS = ir.TensorLayout.__members__


# -- tensor layouts and views --------------------------------------------------------------------------------


def tensor_view(p: FunctionParser, node: ast.expr) -> ir.TensorView:
    """The third element of a tensor annotation: a layout or a `pl.TensorView(...)`."""
    if isinstance(node, ast.Call) and last_name(node.func) == "TensorView":
        return _tensor_view_call(p, node)
    if isinstance(node, ast.Name):
        value = p.closure.lookup(node.id)
        if isinstance(value, ir.TensorView):
            p.literal_annotation = False
            return value
        if value is not NOT_FOUND and not isinstance(value, ir.TensorLayout):
            raise ParserTypeError(
                f"Layout variable '{node.id}' must be a TensorLayout, got {type(value).__name__}",
                span=p.span(node),
                hint="Use a layout (pl.ND, pl.DN, pl.NZ, pl.MX_A_ZZ, pl.MX_B_NN) or pl.TensorView(...)",
            )
    return view_of_layout(p, node, _layout(p, node))


def view_of_layout(p: FunctionParser, node: ast.expr, layout: ir.TensorLayout) -> ir.TensorView:
    """The view that a layout without strides stands for.

    Raises:
        ParserTypeError: the layout does not say how the elements lie.
    """
    if layout is ir.TensorLayout.DN:
        raise ParserTypeError(
            f"pl.Tensor[..., {ast.unparse(node)}] is not supported",
            span=p.span(node),
            hint="Give the strides as well: pl.TensorView(stride=[...], layout=pl.TensorLayout.DN)",
        )
    return ir.TensorView(stride=[], layout=layout)


def _layout(p: FunctionParser, node: ast.expr) -> ir.TensorLayout:
    name = last_name(node)
    if isinstance(node, ast.Name):
        value = p.closure.lookup(node.id)
        if isinstance(value, ir.TensorLayout):
            p.literal_annotation = False
            return value
    elif isinstance(node, ast.Attribute) and name not in LAYOUTS:
        value = p.closure.lookup_attribute(node)
        if isinstance(value, ir.TensorLayout):
            p.literal_annotation = False
            return value
    if name is None or name not in LAYOUTS:
        raise ParserTypeError(
            f"Unknown layout: {name or ast.unparse(node)}",
            span=p.span(node),
            hint=f"Use a layout ({', '.join(f'pl.{key}' for key in LAYOUTS)}) or pl.TensorView(...)",
        )
    return LAYOUTS[name]


def _keywords(p: FunctionParser, node: ast.Call, what: str, allowed: tuple[str, ...]) -> dict[str, ast.expr]:
    if node.args:
        raise ParserTypeError(
            f"pl.{what} does not accept positional arguments",
            span=p.span(node),
            hint="Name the fields, as in valid_shape=[8, 16]",
        )
    found: dict[str, ast.expr] = {}
    for keyword in node.keywords:
        if keyword.arg not in allowed:
            raise ParserTypeError(
                f"Unknown {what} keyword argument '{keyword.arg}'",
                span=p.span(keyword.value),
                hint=f"Supported: {', '.join(allowed)}",
            )
        found[keyword.arg] = keyword.value
    return found


def _tensor_view_call(p: FunctionParser, node: ast.Call) -> ir.TensorView:
    keywords = _keywords(p, node, "TensorView", ("valid_shape", "stride", "layout", "pad"))
    fields: dict[str, Any] = {}
    for name in ("stride", "valid_shape"):
        if name in keywords:
            fields[name] = index_list(p, keywords[name])
    if "layout" in keywords:
        fields["layout"] = _layout(p, keywords["layout"])
    if "pad" in keywords:
        fields["pad"] = enum_literal(p, keywords["pad"], ir.PadValue, ParserTypeError)
    try:
        return ir.TensorView(**fields)
    except ValueError as error:
        raise ParserTypeError(str(error), span=p.span(node), hint="Add layout=pl.TensorLayout.ND") from error


# -- tile views ----------------------------------------------------------------------------------------------


def tile_view(
    p: FunctionParser, node: ast.Call, shape: list[Any], memory_space: ir.MemorySpace | None
) -> ir.TileView:
    """A `pl.TileView(...)`; omitted layout fields are those implied by the shape and memory space."""
    allowed = ("valid_shape", "stride", "start_offset", "blayout", "slayout", "fractal", "pad", "compact")
    keywords = _keywords(p, node, "TileView", allowed)
    extents = ir.TileType(shape, ir.DataType.INT8).shape_
    blayout, slayout, fractal = implicit_tile_layout(extents, memory_space)
    fields: dict[str, Any] = {
        "blayout": blayout,
        "slayout": slayout,
        "fractal": fractal,
        "valid_shape": shape,
    }
    for name, value in keywords.items():
        if name in ("valid_shape", "stride"):
            fields[name] = index_list(p, value)
        elif name == "start_offset":
            fields[name] = index_expression(p, value)
        elif name == "fractal":
            fields[name] = _fractal(p, value)
        else:
            fields[name] = enum_literal(p, value, _VIEW_ENUMS[name], ParserTypeError)
    return ir.TileView(**fields)


_VIEW_ENUMS: dict[str, type[Any]] = {
    "blayout": ir.TileLayout,
    "slayout": ir.TileLayout,
    "pad": ir.PadValue,
    "compact": ir.CompactMode,
}


def _fractal(p: FunctionParser, node: ast.expr) -> int:
    value = p.closure.fold(node, p.names.__contains__)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ParserTypeError(
            "TileView fractal must be an integer", span=p.span(node), hint="For example fractal=512"
        )
    return value


# -- memory references ---------------------------------------------------------------------------------------


def is_memref(p: FunctionParser, node: ast.expr) -> bool:
    """Whether an annotation element denotes a memory reference."""
    if isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Call):
        return last_name(node.func) == "MemRef"
    return _captured_memref(p, node) is not None


def _captured_memref(p: FunctionParser, node: ast.expr) -> ir.MemRef | None:
    value: Any = None
    if isinstance(node, ast.Name):
        value = p.closure.lookup(node.id)
    elif isinstance(node, ast.Attribute):
        value = p.closure.lookup_attribute(node)
    return value if isinstance(value, ir.MemRef) else None


def memref(p: FunctionParser, node: ast.expr) -> ir.MemRef:
    """The memory reference that an annotation element denotes."""
    p.literal_annotation = False
    index: ir.Expr | None = None
    target = node
    if isinstance(node, ast.Subscript):
        index = index_expression(p, node.slice)
        target = node.value
    if isinstance(target, ast.Call):
        found = _memref_call(p, target)
    else:
        found = _declared_memref(p, target)
    return found if index is None else _select_slot(p, found, index, node)


def _memref_call(p: FunctionParser, node: ast.Call) -> ir.MemRef:
    slots = _slots(p, node)
    args = node.args
    if len(args) <= 1:
        return _inline_declaration(p, node, slots)
    values = [_legacy_number(p, arg) for arg in args]
    if len(args) == 3 and isinstance(values[0], int):
        return ir.MemRef(values[0], values[1], values[2], p.span(node))
    if len(args) == 4:
        space = enum_literal(p, args[0], ir.MemorySpace, ParserTypeError) if values[0] is None else values[0]
        return ir.MemRef(space, index_expression(p, args[1]), values[2], values[3], p.span(node))
    if len(args) != 3:
        raise ParserTypeError(
            "pl.MemRef requires 3 arguments: base, byte offset and size",
            span=p.span(node),
            hint='Write pl.MemRef(base, byte_offset, size), or pl.MemRef("name") for a new allocation',
        )
    size = values[2]
    if not isinstance(size, int) or size < 0:
        raise ParserTypeError(
            "The size of pl.MemRef must be an int >= 0",
            span=p.span(args[2]),
            hint="Write the size in bytes as a literal",
        )
    base = _pointer(p, args[0])
    offset = index_expression(p, args[1])
    return ir.MemRef(base, offset, size, p.span(node), slots=slots)


def _legacy_number(p: FunctionParser, node: ast.expr) -> int | None:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name) and node.id not in p.names:
        value = p.closure.lookup(node.id)
        return value if type(value) is int else None
    return None


def _pointer(p: FunctionParser, node: ast.expr) -> ir.Var:
    """The allocation called by a bare or quoted name."""
    if isinstance(node, ast.Name):
        name = node.id
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        name = node.value
    else:
        raise ParserTypeError(
            "The base of pl.MemRef must be a name or a string",
            span=p.span(node),
            hint="Write pl.MemRef(base, byte_offset, size)",
        )
    bound = p.names.lookup(name)
    if isinstance(bound, ir.Var) and isinstance(bound.type, ir.PtrType):
        return bound
    return p.pointers.setdefault(name, ir.Var(name, ir.PtrType.get(), p.span(node)))


def _slots(p: FunctionParser, node: ast.Call) -> int:
    slots = 1
    for keyword in node.keywords:
        if keyword.arg != "slots":
            raise ParserTypeError(
                f"Unknown MemRef keyword argument '{keyword.arg}'",
                span=p.span(keyword.value),
                hint="pl.MemRef has the one keyword slots=",
            )
        value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
        if type(value) is not int or value < 1:
            raise ParserTypeError(
                "pl.MemRef slots must be a positive integer literal",
                span=p.span(keyword.value),
                hint="Write slots=2",
            )
        slots = value
    return slots


def _inline_declaration(p: FunctionParser, node: ast.Call, slots: int) -> ir.MemRef:
    name = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
    if not isinstance(name, str) or not name:
        raise ParserTypeError(
            "The name of an inline pl.MemRef declaration must be a non-empty string literal",
            span=p.span(node),
            hint='Write pl.MemRef("name")',
        )
    return _allocation(p, name, slots, p.span(node))


def _declared_memref(p: FunctionParser, node: ast.expr) -> ir.MemRef:
    declared = _captured_memref(p, node)
    assert declared is not None
    if not declared.is_pinned_:
        slots = declared.slot_count_
        return ir.MemRef(declared.base_, declared.byte_offset_, declared.size_, declared.span, slots=slots)
    written = ast.unparse(node)
    name = declared.name_hint or written.replace(".", "_")
    known_as = p.declared_names.setdefault(id(declared), name)
    if known_as != name:
        raise ParserTypeError(
            f"pl.MemRef declaration '{name}' is also referenced as '{known_as}'",
            span=p.span(node),
            hint='Use one variable for one allocation, or name it: pl.MemRef("name")',
        )
    if p.declared_objects.setdefault(name, declared) is not declared:
        raise ParserTypeError(
            f"Two separate pl.MemRef() declarations are called '{name}'",
            span=p.span(node),
            hint="Rename one of them",
        )
    return _allocation(p, name, declared.slot_count_, p.span(node))


def _allocation(p: FunctionParser, name: str, slots: int, span: ir.Span) -> ir.MemRef:
    base = p.allocations.setdefault(name, ir.Var(name, ir.PtrType.get(), span))
    return ir.MemRef(base, 0, 0, span, True, slots)


def _select_slot(p: FunctionParser, whole: ir.MemRef, index: ir.Expr, node: ast.expr) -> ir.MemRef:
    if whole.slot_count_ == 1:
        was = "was declared with a single slot" if whole.is_pinned_ else "holds a single slot"
        raise ParserTypeError(
            f"pl.MemRef '{whole.name_hint}' {was} and cannot be subscripted",
            span=p.span(node),
            hint="Declare it with slots=N",
        )
    if isinstance(index, ir.ConstInt) and not 0 <= index.value < whole.slot_count_:
        raise ParserTypeError(
            f"Slot index {index.value} is out of range for pl.MemRef '{whole.name_hint}' with "
            f"{whole.slot_count_} slots",
            span=p.span(node),
            hint="Slots count from 0",
        )
    return whole.replace(slot_index_=index)
