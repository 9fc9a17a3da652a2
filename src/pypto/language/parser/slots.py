"""Slots that hold a dtype, an enum member or a dimension rather than a DSL value."""

from __future__ import annotations

import ast
import enum
from typing import TYPE_CHECKING, Any, TypeVar

from pypto import ir
from pypto.language.parser.closure import NOT_FOUND, Closure
from pypto.language.parser.diagnostics import ParserSyntaxError, ParserTypeError
from pypto.language.parser.names import Alias
from pypto.language.typing import DynVar, Scalar

if TYPE_CHECKING:
    from pypto.language.parser.function_parser import FunctionParser

_E = TypeVar("_E", bound=enum.Enum)

DTYPES: dict[str, ir.DataType] = {
    name: getattr(ir.DataType, name)
    for name in [
        "FP4",
        "FP8E4M3FN",
        "FP8E5M2",
        "FP8E8M0",
        "FP16",
        "FP32",
        "BF16",
        "HF4",
        "HF8",
        "INT4",
        "INT8",
        "INT16",
        "INT32",
        "INT64",
        "UINT4",
        "UINT8",
        "UINT16",
        "UINT32",
        "UINT64",
        "BOOL",
        "INDEX",
        "TASK_ID",
    ]
}
DTYPE_HINT = "Use one of " + ", ".join(f"pl.{name}" for name in DTYPES)


def last_name(node: ast.expr) -> str | None:
    """The last component of a (dotted) name, or None for anything else."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def dotted_name(node: ast.expr) -> str | None:
    """`a.b.c` as text, or None when the node is not a dotted name."""
    if isinstance(node, ast.Name):
        return node.id
    if not isinstance(node, ast.Attribute):
        return None
    value = node.value
    if isinstance(value, ast.Name):
        return f"{value.id}.{node.attr}"
    base = dotted_name(value)
    return None if base is None else f"{base}.{node.attr}"


def resolve_dtype(p: FunctionParser, node: ast.expr) -> ir.DataType:
    """The element type written in a dtype slot."""
    if isinstance(node, ast.Attribute):
        found = DTYPES.get(node.attr)
        if found is not None and isinstance(node.value, ast.Name):
            return found
        value = p.closure.lookup_attribute(node)
        if isinstance(value, ir.DataType):
            p.literal_annotation = False
            return value
        kind = "DataType" if last_name(node.value) == "DataType" else "dtype"
        raise ParserTypeError(f"Unknown {kind}: {node.attr}", span=p.span(node), hint=DTYPE_HINT)
    if isinstance(node, ast.Name):
        p.literal_annotation = False
        value = p.closure.lookup(node.id)
        if isinstance(value, ir.DataType):
            return value
        if node.id in DTYPES:
            return DTYPES[node.id]
        if value is not NOT_FOUND:
            raise ParserTypeError(
                f"Dtype variable '{node.id}' must be a DataType, got {type(value).__name__}",
                span=p.span(node),
                hint=DTYPE_HINT,
            )
        raise ParserTypeError(f"Unknown dtype: {node.id}", span=p.span(node), hint=DTYPE_HINT)
    raise ParserTypeError(f"Cannot resolve dtype: {ast.unparse(node)}", span=p.span(node), hint=DTYPE_HINT)


def enum_literal(
    p: FunctionParser, node: ast.expr, kind: type[_E], error: type[Any] = ParserSyntaxError
) -> _E:
    """The member written as `pl.Kind.MEMBER` or `Kind.MEMBER`.

    Raises:
        error: the member is unknown, or the expression has another form.
    """
    name = kind.__name__
    if isinstance(node, ast.Attribute) and names_enum(p.closure, node.value, kind):
        member = kind.__members__.get(node.attr)
        if member is not None:
            return member
        raise error(
            f"Unknown {name} value: {node.attr}",
            span=p.span(node),
            hint=f"Valid values: {', '.join(sorted(kind.__members__))}",
        )
    raise error(
        f"Expected pl.{name}.<name>, got '{ast.unparse(node)}'",
        span=p.span(node),
        hint=f"Valid values: {', '.join(sorted(kind.__members__))}",
    )


def names_enum(closure: Closure, node: ast.expr, kind: type[Any]) -> bool:
    """Whether `pl.Kind`, `Kind` or the name of a captured value stands for an enumeration."""
    return dotted_name(node) in (f"pl.{kind.__name__}", kind.__name__) or closure.lookup_path(node) is kind


def resolve_shape(p: FunctionParser, node: ast.expr) -> list[Any]:
    """The dimensions in a shape slot, as ints and IR expressions."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_dimension(p, element) for element in node.elts]
    p.literal_annotation = False
    span = p.span(node)
    if isinstance(node, ast.Name):
        value = p.closure.lookup(node.id)
        if value is NOT_FOUND:
            raise ParserTypeError(
                f"Unknown shape variable: {node.id}",
                span=span,
                hint="Define the shape where the decorator is applied",
            )
    elif isinstance(node, (ast.Constant, ast.Dict, ast.Set, ast.JoinedStr)):
        raise ParserTypeError(
            "Shape must be a list, tuple, or variable", span=span, hint="Write the shape as [d0, d1, ...]"
        )
    else:
        value = p.closure.evaluate(node, span)
    if not isinstance(value, (list, tuple)):
        raise ParserTypeError(
            f"Shape '{ast.unparse(node)}' must be a list or tuple, got {type(value).__name__}",
            span=span,
            hint="Write the shape as [d0, d1, ...]",
        )
    return [_evaluated_dimension(p, item, position, node) for position, item in enumerate(value)]


def _evaluated_dimension(p: FunctionParser, value: Any, position: int, node: ast.expr) -> Any:
    found = _as_dimension(p, value)
    if found is None:
        raise ParserTypeError(
            f"Shape '{ast.unparse(node)}' element {position} must be int or pl.dynamic(), "
            f"got {type(value).__name__}",
            span=p.span(node),
            hint='A dimension is an int or a symbol: M = pl.dynamic("M")',
        )
    return found


def _as_dimension(p: FunctionParser, value: Any) -> Any:
    """A captured value as dimension: int or IR expression; None when it is neither."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, DynVar):
        return p.resolve_dyn(value)
    if isinstance(value, Scalar) and value.has_expr():
        return value.unwrap()
    return value if isinstance(value, ir.Expr) else None


def _dimension(p: FunctionParser, node: ast.expr) -> Any:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    p.literal_annotation = False
    if isinstance(node, ast.Name):
        return _named_dimension(p, node)
    _reject_yield(p, node)
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    for name in names - _bound_names(p, names):
        _bind_scalar_of_caller(p, name)
    if not _contains_const(node) and not names & p.symbol_parameters.keys():
        try:
            value = p.closure.evaluate(node, p.span(node))
        except ParserTypeError:
            value = None
        found = _as_dimension(p, value)
        if found is not None:
            return _require_integer(found, p, node)
        if value is not None:
            raise ParserTypeError(
                f"Shape dimension '{ast.unparse(node)}' must be int or pl.dynamic(), "
                f"got {type(value).__name__}",
                span=p.span(node),
                hint='A dimension is an int or a symbol: M = pl.dynamic("M")',
            )
    elif not names <= _bound_names(p, names):
        raise ParserTypeError(
            f"Unknown shape variable: {', '.join(sorted(names - _bound_names(p, names)))}",
            span=p.span(node),
            hint="Declare a symbol before the function with pl.dynamic(...)",
        )
    if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Call, ast.Subscript)) and names <= _bound_names(
        p, names
    ):
        return _require_integer(p.expr(node), p, node)
    raise ParserTypeError(
        "Shape dimension must be int literal, variable, or evaluable expression",
        span=p.span(node),
        hint="Compute it before the function, or write it with int literals, names and + - * // %",
    )


def _bound_names(p: FunctionParser, names: set[str]) -> set[str]:
    return {n for n in names if n == "pl" or n in p.names or p.closure.lookup(n) is not NOT_FOUND}


def _named_dimension(p: FunctionParser, node: ast.Name) -> Any:
    symbol = p.symbol_parameters.get(node.id)
    if symbol is not None:
        return symbol
    value = p.closure.lookup(node.id)
    if value is not NOT_FOUND:
        found = _as_dimension(p, value)
        if found is not None:
            return _require_integer(found, p, node)
    if value is NOT_FOUND and node.id not in p.names:
        _bind_scalar_of_caller(p, node.id)
    variable = p.names.lookup(node.id)
    if variable is not None:
        return _require_integer(variable, p, node)
    if value is not NOT_FOUND:
        raise ParserTypeError(
            f"Shape variable '{node.id}' must be int or pl.dynamic(), got {type(value).__name__}",
            span=p.span(node),
            hint='A dimension is an int or a symbol: M = pl.dynamic("M")',
        )
    raise ParserTypeError(
        f"Unknown shape variable: {node.id}",
        span=p.span(node),
        hint=f'Declare it before the program: {node.id} = pl.dynamic("{node.id}")',
    )


def _bind_scalar_of_caller(p: FunctionParser, name: str) -> None:
    """Let a name in a printed signature stand for the scalar of the caller that it names."""
    if p.source.is_text and p.reads_signature:
        scalar = p.program.caller_scalar(name, p.function_name)
        if scalar is not None:
            p.names.bind(name, Alias(scalar))


def _require_integer(dimension: Any, p: FunctionParser, node: ast.expr) -> Any:
    if isinstance(dimension, int):
        return dimension
    if isinstance(dimension, ir.ConstInt):
        return dimension.value  # a static extent, whatever the constant was written as
    kind = dimension.type
    if not (isinstance(kind, ir.ScalarType) and kind.dtype.is_int()):
        raise ParserTypeError(
            f"Shape dimension '{ast.unparse(node)}' must be integer-typed, got {kind}",
            span=p.span(node),
            hint="Extents are counted in whole elements",
        )
    return dimension


def _reject_yield(p: FunctionParser, node: ast.expr) -> None:
    if any(isinstance(n, ast.Call) and last_name(n.func) == "yield_" for n in ast.walk(node)):
        raise ParserTypeError(
            "An index expression of a type cannot contain pl.yield_()",
            span=p.span(node),
            hint="Yield the value first, then use its name",
        )


def _contains_const(node: ast.expr) -> bool:
    return any(isinstance(n, ast.Call) and last_name(n.func) == "const" for n in ast.walk(node))


def index_expression(p: FunctionParser, node: ast.expr) -> ir.Expr:
    """An index expression of a view or memory reference."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return ir.ConstInt(node.value, ir.DataType.INDEX, p.span(node))
    p.literal_annotation = False
    if isinstance(node, ast.Name):
        return _named_index(p, node)
    _reject_yield(p, node)
    found = p.expr(node)
    if not isinstance(found.type, ir.ScalarType) or not found.type.dtype.is_int():
        raise ParserTypeError(
            f"'{ast.unparse(node)}' is not an index expression: its type is {found.type}",
            span=p.span(node),
            hint="Use ints, symbols and integer scalars",
        )
    return found


def _named_index(p: FunctionParser, node: ast.Name) -> ir.Expr:
    variable = p.names.lookup(node.id)
    if variable is not None:
        return variable
    found = _as_dimension(p, p.closure.lookup(node.id))
    if found is None:
        _bind_scalar_of_caller(p, node.id)
        return p.names.lookup(node.id) or p.program.symbol(node.id)
    return ir.ConstInt(found, ir.DataType.INDEX, p.span(node)) if isinstance(found, int) else found


def index_list(p: FunctionParser, node: ast.expr) -> list[ir.Expr]:
    """A list display of index expressions."""
    if not isinstance(node, ast.List):
        raise ParserTypeError(
            f"Expected a list, got '{ast.unparse(node)}'", span=p.span(node), hint="Write [a, b, ...]"
        )
    return [index_expression(p, element) for element in node.elts]
