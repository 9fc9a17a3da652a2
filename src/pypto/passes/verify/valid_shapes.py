"""Valid shapes of all types of a function: same rank as the shape, no extent negative or beyond it."""

from __future__ import annotations

from collections.abc import Iterator

from pypto import ir
from pypto.ir.arith import Analyzer
from pypto.ir.walk import exprs_of, walk, walk_stmts
from pypto.passes.diagnostics import Diagnostic, error
from pypto.passes.verify.codes import TypeCheckErrorType
from pypto.passes.verify.definitions import definitions_of

_E = TypeCheckErrorType


def check_valid_shapes(function: ir.Function, rule: str) -> Iterator[Diagnostic]:
    """Yield what is wrong with the valid shapes in a function, each type object once."""
    seen: set[int] = set()
    for place, type_, span in _types_of(function):
        if id(type_) not in seen:
            seen.add(id(type_))
            yield from _type(type_, place, span, rule)


def _types_of(function: ir.Function) -> Iterator[tuple[str, ir.Type, ir.Span]]:
    """Yield every type that may hold a valid shape, and how to call its place."""
    prefix = f"Function '{function.name}'"
    for index, param in enumerate(function.params_):
        yield f"{prefix} parameter[{index}] '{param.name_hint}'", param.type, param.span
    for index, type_ in enumerate(function.return_types_):
        yield f"{prefix} return type[{index}]", type_, function.span
    for stmt in walk_stmts(function.body):
        for var in definitions_of(stmt):
            kind = "IterArg" if isinstance(var, ir.IterArg) else "Var"
            if _may_be_partial(var.type):
                yield f"{kind} '{var.name_hint}'", var.type, var.span
        for expr in exprs_of(stmt):
            if isinstance(expr, ir.Var):
                continue
            for node in walk(expr, once=True):
                if isinstance(node, ir.Call | ir.Submit) and _may_be_partial(node.type):
                    yield "Call result", node.type, node.span


def _may_be_partial(type_: ir.Type) -> bool:
    if isinstance(type_, ir.TensorType):
        return type_.tensor_view is not None
    if isinstance(type_, ir.TileType):
        return type_.tile_view is not None
    return isinstance(type_, ir.TupleType)


def _type(type_: ir.Type, place: str, span: ir.Span, rule: str) -> Iterator[Diagnostic]:
    if isinstance(type_, ir.TupleType):
        for index, element in enumerate(type_.types_):
            yield from _type(element, f"{place} TupleType element[{index}]", span, rule)
        return
    view: ir.TensorView | ir.TileView | None = None
    if isinstance(type_, ir.TensorType):
        view = type_.tensor_view
    elif isinstance(type_, ir.TileType):
        view = type_.tile_view
    if view is None or not view.valid_shape_:
        return
    assert isinstance(type_, ir.ShapedType)
    valid, shape = view.valid_shape_, type_.shape_
    what = f"{place} has invalid {type(type_).__name__}"
    if len(valid) != len(shape):
        yield error(
            rule,
            _E.SHAPE_DIMENSION_MISMATCH.value,
            f"{what} valid_shape rank mismatch: got rank {len(valid)} "
            f"but physical shape has rank {len(shape)}",
            span,
        )
        return
    for index, (extent, physical) in enumerate(zip(valid, shape, strict=True)):
        problem = _extent_problem(extent, physical)
        if problem:
            message = f"{what} valid_shape dimension {index} {problem}"
            yield error(rule, _E.SHAPE_VALUE_MISMATCH.value, message, span)


def _extent_problem(extent: ir.Expr, physical: ir.Expr) -> str:
    if extent is physical:
        return ""
    analyzer = Analyzer()
    if analyzer.can_prove_less(extent, 0):
        return f"has provably negative extent {extent}"
    if analyzer.can_prove(ir.Gt(extent, physical, ir.DataType.BOOL, extent.span)):
        return f"extent {extent} provably exceeds physical shape extent {physical}"
    return ""
