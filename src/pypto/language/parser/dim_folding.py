"""`pl.tensor.dim` in orchestration: an extent that the signature already names is that symbol, not an
operation."""

from __future__ import annotations

import ast

from pypto import ir
from pypto.language.parser.function_parser import FunctionParser
from pypto.language.parser.slots import dotted_name, last_name


def is_dim_call(node: ast.expr) -> bool:
    """Whether an expression is written `pl.tensor.dim(...)`."""
    return (
        isinstance(node, ast.Call)
        and last_name(node.func) == "dim"
        and dotted_name(node.func) == "pl.tensor.dim"
    )


def fold_dim(p: FunctionParser, node: ast.Call) -> ir.Var | None:
    """The symbol that is the extent asked for, or None when the call stays an operation."""
    if p.func_type is not ir.FunctionType.Orchestration:
        return None
    operands: dict[str | None, ast.expr] = dict(zip(("tensor", "axis"), node.args, strict=False))
    operands |= {keyword.arg: keyword.value for keyword in node.keywords}
    tensor, axis = operands.get("tensor"), operands.get("axis")
    if len(operands) != 2 or not isinstance(tensor, ast.Name) or axis is None:
        return None
    value = p.names.lookup(tensor.id)
    position = _constant_axis(p, axis)
    if value is None or position is None or not isinstance(value.type, ir.TensorType):
        return None
    shape = value.type.shape_
    if not -len(shape) <= position < len(shape):
        return None
    extent = shape[position]
    return extent if isinstance(extent, ir.Var) and _is_declared_extent(p, extent) else None


def _constant_axis(p: FunctionParser, node: ast.expr) -> int | None:
    value = p.closure.fold(node, p.names.__contains__)
    return value if type(value) is int else None


def _is_declared_extent(p: FunctionParser, symbol: ir.Var) -> bool:
    return any(
        dimension is symbol
        for param in p.params
        if isinstance(param.type, ir.TensorType)
        for dimension in param.type.shape_
    )
