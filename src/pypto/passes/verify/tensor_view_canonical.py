"""TensorViewCanonical: explicit strides that agree with the layout; no NZ layout."""

from __future__ import annotations

from collections.abc import Iterator

from pypto import ir
from pypto.ir.tensor_view_semantics import check_canonical_view
from pypto.ir.walk import walk_stmts
from pypto.passes.diagnostics import Diagnostic, error
from pypto.passes.verify.definitions import definitions_of


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return the tensor views that are not canonical; strides must be explicit."""
    return verify_tensor_view_canonical(program, require_materialized=True)


def verify_tensor_view_canonical(program: ir.Program, require_materialized: bool = False) -> list[Diagnostic]:
    """Return the tensor views that are not canonical.

    Args:
        program: the program to check.
        require_materialized: also reject views and tensors without explicit strides.
    """
    return [
        each
        for function in program.functions_.values()
        for place, type_, span in _tensor_types(function)
        for each in _tensor(type_, place, span, require_materialized)
    ]


def _tensor_types(function: ir.Function) -> Iterator[tuple[str, ir.TensorType, ir.Span]]:
    variables = list(function.params_)
    for stmt in walk_stmts(function.body):
        variables += definitions_of(stmt)
    for var in variables:
        for type_ in _flat(var.type):
            if isinstance(type_, ir.TensorType):
                yield f"Variable '{var.name_hint}' in function '{function.name}'", type_, var.span
    for index, result in enumerate(function.return_types_):
        for type_ in _flat(result):
            if isinstance(type_, ir.TensorType):
                yield f"Return type[{index}] of function '{function.name}'", type_, function.span


def _flat(type_: ir.Type) -> Iterator[ir.Type]:
    if isinstance(type_, ir.TupleType):
        for element in type_.types_:
            yield from _flat(element)
    else:
        yield type_


def _tensor(
    type_: ir.TensorType, place: str, span: ir.Span, require_materialized: bool
) -> Iterator[Diagnostic]:
    view = type_.tensor_view
    if view is None or not view.stride_:
        if view is not None and view.layout is ir.TensorLayout.NZ:
            yield error("TensorViewCanonical", 1, f"{place}: layout NZ is not allowed on a tensor", span)
        elif require_materialized and type_.shape_:
            yield error("TensorViewCanonical", 1, f"{place} has no explicit strides", span)
        return
    is_canonical, reason = check_canonical_view(type_.shape_, view.stride_, view.layout)
    if not is_canonical:
        yield error("TensorViewCanonical", 1, f"{place}: {reason}", span)
