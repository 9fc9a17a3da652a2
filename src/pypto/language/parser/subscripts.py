"""Subscripts: tuple items, tensor and tile slices and elements, array elements; reading and writing."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from pypto import ir
from pypto.ir.op_registry import create_op_call
from pypto.ir.utils import use_parser_span
from pypto.ir.walk import vars_in
from pypto.language.parser.diagnostics import ParserSyntaxError, ParserTypeError, UnsupportedFeatureError
from pypto.language.parser.diagnostics.notices import warn_at
from pypto.language.parser.function_parser import FunctionParser, expression

_NO_WRAP = "Negative indices do not count from the end: write the extent minus the distance"
_FROM_LO_TO_HI = "[lo:hi] takes the elements from lo to hi - 1, so hi must not be below lo"


@dataclass(frozen=True, slots=True)
class AxisIndex:
    """How one axis is indexed: by a scalar (`lower` only) or by a slice."""

    is_scalar: bool
    lower: ir.Expr | None
    upper: ir.Expr | None = None


@expression(ast.Subscript)
def parse_subscript(p: FunctionParser, node: ast.Subscript) -> ir.Expr:
    """`base[...]` as a value."""
    base = p.expr(node.value)
    kind = base.type
    if isinstance(kind, ir.TupleType):
        return _tuple_item(p, base, node)
    if isinstance(kind, ir.TensorType):
        return _read_tensor(p, base, kind, node)
    if isinstance(kind, ir.TileType):
        return _read_tile(p, base, kind, node)
    if isinstance(kind, ir.ArrayType):
        return create_op_call("array.get_element", [base, _array_index(p, node)], p.span(node))
    raise ParserTypeError(
        f"Subscript requires Tuple, Tensor, Tile, or Array, got {kind}",
        span=p.span(node),
        hint="Scalars have no elements",
    )


def _tuple_item(p: FunctionParser, base: ir.Expr, node: ast.Subscript) -> ir.Expr:
    index = node.slice
    if not isinstance(index, ast.Constant):
        raise UnsupportedFeatureError(
            "Only constant integer indices are supported on tuples",
            span=p.span(node),
            hint="Write t[0], t[1], ...",
        )
    if type(index.value) is not int:
        raise ParserSyntaxError(
            f"Tuple index must be an integer, got {index.value!r}",
            span=p.span(node),
            hint="Write t[0], t[1], ...",
        )
    return ir.TupleGetItemExpr(base, index.value, p.span(node))


def _array_index(p: FunctionParser, node: ast.Subscript) -> ir.Expr:
    if isinstance(node.slice, (ast.Tuple, ast.Slice)):
        raise ParserTypeError(
            "An Array subscript requires a single index", span=p.span(node), hint="Write a[i]"
        )
    return p.expr(node.slice)


# -- indices -------------------------------------------------------------------------------------------------


def _axes(p: FunctionParser, node: ast.Subscript, rank: int, what: str) -> list[AxisIndex]:
    """One index per axis; missing trailing axes are taken whole."""
    written = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if len(written) > rank:
        noun = what.split()[0].lower()
        raise ParserTypeError(
            f"{what} has {len(written)} indices but the {noun} is {rank}D",
            span=p.span(node),
            hint="Give at most one index per dimension; missing ones at the end are taken whole",
        )
    axes = [_axis(p, index) for index in written]
    return axes + [AxisIndex(False, None)] * (rank - len(axes))


def _axis(p: FunctionParser, node: ast.expr) -> AxisIndex:
    if isinstance(node, ast.Constant) and node.value is Ellipsis:
        raise ParserTypeError(
            "Unsupported constant type: ellipsis",
            span=p.span(node),
            hint="Write : for each whole dimension; missing ones at the end are taken whole, as in x[:]",
        )
    if not isinstance(node, ast.Slice):
        return AxisIndex(True, p.expr(node))
    if node.step is not None:
        raise UnsupportedFeatureError(
            "Slice step is not supported", span=p.span(node), hint="Take consecutive elements, or gather them"
        )
    lower = None if node.lower is None else p.expr(node.lower)
    upper = None if node.upper is None else p.expr(node.upper)
    return AxisIndex(False, lower, upper)


def _zero(span: ir.Span) -> ir.Expr:
    return ir.ConstInt(0, ir.DataType.INDEX, span)


def _index(value: int, span: ir.Span) -> ir.Expr:
    return ir.ConstInt(value, ir.DataType.INDEX, span)


def _constant(value: ir.Expr | None) -> int | None:
    return value.value if isinstance(value, ir.ConstInt) else None


def difference(upper: ir.Expr, lower: ir.Expr | None, span: ir.Span) -> ir.Expr:
    """`upper - lower`, as simple as arithmetic allows whatever the signs of its variables are."""
    if lower is None or _constant(lower) == 0:
        return upper
    high, low = _constant(upper), _constant(lower)
    if high is not None and low is not None:
        return _index(high - low, span)
    from pypto.ir.arith import Analyzer, ConstIntBound

    analyzer, size = Analyzer(), ir.sub(upper, lower, span)
    everything = ConstIntBound(ConstIntBound.kNegInf, ConstIntBound.kPosInf)
    for var in vars_in(size):
        analyzer.const_int_bound.update(var, everything)
    return analyzer.simplify(size)


def _call(builder: Any, span: ir.Span, *args: Any, **kwargs: Any) -> ir.Expr:
    with use_parser_span(span):
        made: ir.Expr = builder(*args, **kwargs)
    return made


def _window_call(
    p: FunctionParser,
    node: ast.Subscript,
    shape: tuple[ir.Expr, ...],
    builder: Any,
    *args: Any,
    **kwargs: Any,
) -> ir.Expr:
    """The call that reads or writes the window of a subscript; a window outside shows the extents."""
    try:
        return _call(builder, p.span(node), *args, **kwargs)
    except (TypeError, ValueError) as error:
        extents = ", ".join(map(str, shape))
        note = f"'{ast.unparse(node.value)}' has the extents [{extents}]; a slice must lie inside. {_NO_WRAP}"
        raise p.rejected(error, node, note) from error


# -- reading -------------------------------------------------------------------------------------------------


def _read_tensor(p: FunctionParser, base: ir.Expr, kind: ir.TensorType, node: ast.Subscript) -> ir.Expr:
    from pypto.ir.op import tensor

    span = p.span(node)
    shape = kind.shape_
    axes = _axes(p, node, len(shape), "Tensor subscript")
    if axes and all(axis.is_scalar for axis in axes):
        return _call(tensor.read, span, base, [axis.lower for axis in axes])
    offsets, sizes, dropped = _tensor_window(axes, shape, span)
    for position, (axis, size) in enumerate(zip(axes, sizes, strict=True)):
        if (_constant(size) or 0) < 0:
            bounds = (_constant(axis.lower) or 0, _constant(axis.upper) or 0)
            raise UnsupportedFeatureError(
                f"A tensor slice cannot have the negative extent {_constant(size)} in dimension {position}",
                span=span,
                hint=_NO_WRAP if min(bounds) < 0 else _FROM_LO_TO_HI,
            )
    kwargs = {"drop_dims": dropped} if dropped else {}
    return _window_call(p, node, shape, tensor.slice, base, sizes, offsets, **kwargs)


def _tensor_window(
    axes: list[AxisIndex], shape: tuple[ir.Expr, ...], span: ir.Span
) -> tuple[list[ir.Expr], list[ir.Expr], list[int]]:
    """Offsets, sizes and scalar-indexed axes of a tensor window."""
    offsets: list[ir.Expr] = []
    sizes: list[ir.Expr] = []
    dropped: list[int] = []
    for position, (axis, extent) in enumerate(zip(axes, shape, strict=True)):
        offsets.append(axis.lower if axis.lower is not None else _zero(span))
        if axis.is_scalar:
            dropped.append(position)
            sizes.append(_index(1, span))
        else:
            sizes.append(difference(axis.upper if axis.upper is not None else extent, axis.lower, span))
    return offsets, sizes, dropped


def _read_tile(p: FunctionParser, base: ir.Expr, kind: ir.TileType, node: ast.Subscript) -> ir.Expr:
    from pypto.ir.op import tile

    span = p.span(node)
    axes = _axes(p, node, len(kind.shape_), "Tile subscript")
    if axes and all(axis.is_scalar for axis in axes):
        return _call(tile.read, span, base, [axis.lower for axis in axes])
    valid_source = kind.get_effective_tile_view().valid_shape_
    offsets, sizes, valid, dropped = [], [], [], []
    narrowed = False
    for position, (axis, extent, limit) in enumerate(zip(axes, kind.shape_, valid_source, strict=True)):
        if axis.is_scalar:
            assert axis.lower is not None
            window = (axis.lower, _index(1, span), _index(1, span), False)
            dropped.append(position)
        else:
            window = _tile_axis(p, axis, extent, limit, node)
        offsets.append(window[0])
        sizes.append(window[1])
        valid.append(window[2])
        narrowed = narrowed or window[3]
    kwargs: dict[str, Any] = {"drop_dims": dropped} if dropped else {}
    if narrowed:
        kwargs["valid_shape"] = valid
    if len(kind.shape_) - len(dropped) < 2 and dropped:
        warn_at(
            span, "A tile subscript with scalar indices is auto-promoting to 2D, the least rank of a tile"
        )
    return _window_call(p, node, kind.shape_, tile.slice, base, sizes, offsets, **kwargs)


def _tile_axis(
    p: FunctionParser, axis: AxisIndex, extent: ir.Expr, limit: ir.Expr, node: ast.Subscript
) -> tuple[ir.Expr, ir.Expr, ir.Expr, bool]:
    """Offset, allocated extent and valid extent of a sliced axis, and whether the last two differ."""
    span = p.span(node)
    low = 0 if axis.lower is None else _constant(axis.lower)
    if low is None:
        raise UnsupportedFeatureError(
            "Dynamic lower bounds are not supported in tile slices",
            span=span,
            hint="Use pl.tile.slice(tile, shape, offset) with the offset as a value",
        )
    dim, high = _constant(extent), _constant(axis.upper)
    if dim is None:
        raise UnsupportedFeatureError(
            "A tile slice must produce a positive static extent",
            span=span,
            hint="Slice tiles whose extents are known while parsing",
        )
    allocated = (dim if high is None else min(high, dim)) - low
    if allocated <= 0:
        raise UnsupportedFeatureError(
            f"A tile slice must produce a positive static extent, got {allocated}",
            span=span,
            hint=f"The tile has {dim} elements on this axis; [lo:hi] takes those from lo to hi - 1",
        )
    valid = _valid_extent(axis, limit, low, dim, span)
    return _index(low, span), _index(allocated, span), valid, _constant(valid) != allocated


def _valid_extent(axis: AxisIndex, limit: ir.Expr, low: int, dim: int, span: ir.Span) -> ir.Expr:
    """`max(min(upper, valid extent of the source) - lower, 0)`."""
    source = _constant(limit)
    upper = _index(dim, span) if axis.upper is None else axis.upper
    high = _constant(upper)
    if source is not None and high is not None:
        return _index(max(min(high, source) - low, 0), span)
    end = limit if high is not None and high >= dim else ir.min_(upper, limit, span)
    if low == 0:
        return end
    return ir.max_(ir.sub(end, _index(low, span), span), _zero(span), span)


# -- writing -------------------------------------------------------------------------------------------------


def parse_subscript_write(p: FunctionParser, node: ast.Assign, target: ast.Subscript) -> tuple[str, ir.Expr]:
    """`name[...] = value`: the name and the expression of its new value."""
    span = p.span(node)
    if p.strict_ssa:
        raise UnsupportedFeatureError(
            "Subscript writes are only supported before SSA conversion",
            span=span,
            hint="Use out = pl.assemble(out, value, offsets)",
        )
    if not isinstance(target.value, ast.Name):
        raise ParserSyntaxError(
            "Subscript-write target must be a variable name",
            span=span,
            hint="Assign the value to a name first, then write to a part of that",
        )
    destination = p.expr(target.value)
    kind = destination.type
    if isinstance(kind, ir.ArrayType):
        return target.value.id, _write_array(p, destination, kind, target, node)
    if not isinstance(kind, (ir.TensorType, ir.TileType)):
        raise ParserTypeError(
            f"A subscript write requires a Tensor, Tile, or Array target, got {kind}",
            span=span,
            hint="Assign a scalar with name = value",
        )
    return target.value.id, _assembled(p, destination, kind, target, node)


def _write_array(
    p: FunctionParser, array: ir.Expr, kind: ir.ArrayType, target: ast.Subscript, node: ast.Assign
) -> ir.Expr:
    index = _array_index(p, target)
    value = p.expr(node.value)
    if isinstance(value, ir.ConstInt) and isinstance(node.value, (ast.Constant, ast.UnaryOp)):
        value = ir.ConstInt(value.value, kind.dtype, value.span)
    return create_op_call("array.update_element", [array, index, value], p.span(node))


def _assembled(
    p: FunctionParser,
    destination: ir.Expr,
    kind: ir.TensorType | ir.TileType,
    target: ast.Subscript,
    node: ast.Assign,
) -> ir.Expr:
    from pypto.ir.op import tensor, tile

    span = p.span(node)
    is_tensor = isinstance(kind, ir.TensorType)
    noun = "tensor" if is_tensor else "tile"
    axes = _axes(p, target, len(kind.shape_), f"{noun.capitalize()} subscript-write")
    if axes and all(axis.is_scalar for axis in axes):
        raise UnsupportedFeatureError(
            f"Element-write '{ast.unparse(target)} = scalar' is not supported",
            span=span,
            hint=f"Use pl.write({ast.unparse(target.value)}, [indices], value)",
        )
    source = p.expr(node.value)
    if not isinstance(source.type, ir.TensorType if is_tensor else ir.TileType):
        raise ParserTypeError(
            f"In a write to a {noun}, the source must also be a {noun}, got {source.type}",
            span=p.span(node.value),
            hint="Bring it over with pl.load(tensor, offsets, shape) or pl.store(tile, offsets, tensor)",
        )
    offsets, sizes, dropped = _tensor_window(axes, kind.shape_, span)
    source = _fitted_source(p, source, sizes, dropped, node)
    builder = tensor.assemble if is_tensor else tile.assemble
    return _window_call(p, target, kind.shape_, builder, destination, source, offsets)


def _fitted_source(
    p: FunctionParser, source: ir.Expr, sizes: list[ir.Expr], dropped: list[int], node: ast.Assign
) -> ir.Expr:
    """The source in the rank of the target, after checking it against the window."""
    kind = source.type
    assert isinstance(kind, (ir.TensorType, ir.TileType))
    span = p.span(node.value)
    kept = [size for position, size in enumerate(sizes) if position not in dropped]
    rank = len(kind.shape_)
    window = kept
    noun = "tile" if isinstance(kind, ir.TileType) else "tensor"
    if rank != len(kept):
        is_floored = isinstance(kind, ir.TileType) and rank == max(len(kept), 2)
        if not is_floored:
            raise ParserTypeError(
                f"The source must be {len(kept)}D to match the rank-reduced {noun} window, got {rank}D",
                span=span,
                hint="An index removes its dimension from the window, a slice i:i + 1 keeps it",
            )
        window = sizes if rank == len(sizes) else []
    valid = _valid_shape(kind)
    for axis, size in enumerate(window):
        expected, extent = _constant(size), _constant(kind.shape_[axis])
        if expected is not None and extent is not None and expected not in (extent, _constant(valid[axis])):
            raise ParserTypeError(
                f"Subscript-write shape mismatch on source axis {axis}: window expects {expected} elements, "
                f"source has {extent}",
                span=span,
                hint="Make the window as large as the source",
            )
    return source if rank >= len(sizes) else _lifted(source, kind, valid, dropped, len(sizes), span)


def _valid_shape(kind: ir.TensorType | ir.TileType) -> tuple[ir.Expr, ...]:
    view = kind.tile_view if isinstance(kind, ir.TileType) else kind.tensor_view
    return view.valid_shape_ if view is not None and view.valid_shape_ else kind.shape_


def _lifted(
    source: ir.Expr,
    kind: ir.TensorType | ir.TileType,
    valid: tuple[ir.Expr, ...],
    dropped: list[int],
    rank: int,
    span: ir.Span,
) -> ir.Expr:
    """The source with unit dimensions at the scalar-indexed axes."""
    from pypto.ir.op import tensor, tile

    def lift(extents: tuple[ir.Expr, ...]) -> list[ir.Expr]:
        remaining = iter(extents[len(extents) - (rank - len(dropped)) :])
        return [_index(1, span) if axis in dropped else next(remaining) for axis in range(rank)]

    if isinstance(kind, ir.TileType):
        return _call(tile.reshape, span, source, lift(kind.shape_))
    if valid is not kind.shape_:
        return _call(tensor.reshape, span, source, lift(kind.shape_), lift(valid))
    return _call(tensor.reshape, span, source, lift(kind.shape_))
