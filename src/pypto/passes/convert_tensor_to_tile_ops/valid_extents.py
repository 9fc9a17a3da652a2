"""Extents of valid regions that a kernel has to be told.

A parameter may be valid in part, up to an extent that only its callers know: `s: Tensor[[16, 64], valid
[16, n]]` where `n` is no parameter and no extent of one. Once tiles are loaded from it, `n` is a value that
the kernel computes with. It becomes a scalar parameter, and every dispatch passes what its argument says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pypto import ir
from pypto.ir.walk import exprs_of, type_exprs, vars_in, walk_stmts
from pypto.passes.convert_tensor_to_tile_ops.call_sites import (
    WRAPPERS,
    Dispatch,
    map_dispatches,
    wrappers_callees_first,
)

__all__ = ["pass_valid_extents"]


@dataclass(frozen=True, slots=True)
class _Extent:
    """Where callers find the value of an added parameter: the valid extent of an argument on an axis."""

    argument: int
    axis: int


def pass_valid_extents(program: ir.Program) -> ir.Program:
    """Make the symbols of valid regions that kernels compute with parameters of theirs."""
    functions = dict(program.functions_)
    added: dict[str, Sequence[_Extent]] = {}
    for name, function in program.functions_.items():
        if ir.is_incore_type(function.func_type):
            functions[name], added[name] = _with_parameters(function)
    added = {name: extents for name, extents in added.items() if extents}
    if not added:
        return program
    for name in wrappers_callees_first(program):
        wrapper = _with_arguments(functions[name], program, added)
        functions[name], extents = _with_parameters(wrapper)
        if extents:
            added[name] = extents
    for name, function in functions.items():
        if function.func_type not in WRAPPERS:
            functions[name] = _with_arguments(function, program, added)
    return program.replace(functions=functions)


def _with_parameters(function: ir.Function) -> tuple[ir.Function, Sequence[_Extent]]:
    """The function with a scalar parameter for each symbol of a valid region that its body mentions."""
    places = _open_extents(function)
    if not places:
        return function, ()
    mentioned = set(_mentioned(function.body))
    needed = {symbol: place for symbol, place in places.items() if symbol in mentioned}
    if not needed:
        return function, ()
    scalars = [ir.Var(symbol.name_hint, symbol.type, function.span) for symbol in needed]
    named = ir.Substitution(dict(zip(needed, scalars, strict=True))).function(function)
    params = [
        *zip(named.params_, named.param_directions_, strict=True),
        *((scalar, ir.ParamDirection.In) for scalar in scalars),
    ]
    return named.replace(params=params), tuple(needed.values())


def _open_extents(function: ir.Function) -> Mapping[ir.Var, _Extent]:
    """The symbols of valid regions of parameters that neither a parameter nor the shape of one gives."""
    given = set(function.params_)
    found: dict[ir.Var, _Extent] = {}
    for position, param in enumerate(function.params_):
        if isinstance(param.type, ir.TensorType):
            given.update(extent for extent in param.type.shape_ if isinstance(extent, ir.Var))
            for axis, extent in enumerate(_valid_shape(param.type)):
                if isinstance(extent, ir.Var):
                    found.setdefault(extent, _Extent(position, axis))
    return {symbol: place for symbol, place in found.items() if symbol not in given}


def _mentioned(body: ir.Stmt) -> Iterator[ir.Var]:
    for stmt in walk_stmts(body):
        for expr in exprs_of(stmt):
            yield from vars_in(expr, types=True)
        if isinstance(stmt, ir.AssignStmt):
            for extent in type_exprs(stmt.var.type):
                yield from vars_in(extent)


def _with_arguments(
    function: ir.Function, program: ir.Program, added: Mapping[str, Sequence[_Extent]]
) -> ir.Function:
    def extend(call: Dispatch) -> tuple[list[ir.Stmt], Dispatch]:
        callee = program.functions_[call.op.name]
        if len(call.args_) < len(callee.params_):
            raise ValueError(
                f"'{callee.name}' takes a tensor that is valid in part; pass all arguments [{call.span}]"
            )
        extents = [_valid_extent(call.args_[place.argument], place) for place in added[callee.name]]
        return [], call.replace(args=[*call.args_, *extents])

    body = map_dispatches(function.body, extend, added)
    return function if body is function.body else function.replace(body=body)


def _valid_extent(argument: ir.Expr, place: _Extent) -> ir.Expr:
    assert isinstance(argument.type, ir.TensorType)
    return _valid_shape(argument.type)[place.axis]


def _valid_shape(type: ir.TensorType) -> tuple[ir.Expr, ...]:
    view = type.tensor_view
    return view.valid_shape_ if view is not None and view.valid_shape_ else type.shape_
