"""`predicate=`: a task runs only if one tensor element compares true with a constant."""

from __future__ import annotations

import ast

from pypto import ir
from pypto.language.parser.diagnostics import ParserSyntaxError, ParserTypeError
from pypto.language.parser.function_parser import FunctionParser
from pypto.language.parser.slots import last_name
from pypto.language.parser.task_ids import is_task_id_array

_OPERAND_DTYPES = (ir.DataType.INT8, ir.DataType.INT16, ir.DataType.INT32, ir.DataType.INT64)


def parse_predicate(
    p: FunctionParser, node: ast.expr, deps: list[ir.Expr], remedy: str = "Add deps=[{0}]"
) -> ir.Expr:
    """The comparison of a `predicate=`; `deps` are the dependencies of the same launch.

    `remedy` says how to name the task `{0}` that produces the operand.
    """
    span = p.span(node)
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        extra = "; omit predicate= to run unconditionally" if _is_none(node) else ""
        raise ParserSyntaxError(
            f"predicate= must be a single comparison{extra}", span=span, hint="Write predicate=(flags[0] > 0)"
        )
    read_node = _read_side(p, node)
    operand = p.expr(read_node.value)
    _check_operand(p, operand, read_node)
    comparison = p.expr(node)
    _check_producer(p, operand, deps, span, remedy)
    return comparison


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _read_side(p: FunctionParser, node: ast.Compare) -> ast.Subscript:
    """The subscript of `x[i] op constant` in either order."""
    sides = [_without_cast(node.left), _without_cast(node.comparators[0])]
    for read, other in (sides, sides[::-1]):
        if isinstance(read, ast.Subscript) and isinstance(p.closure.fold(other, p.names.__contains__), int):
            return read
    raise ParserSyntaxError(
        "predicate= must compare one tensor element with an integer constant",
        span=p.span(node),
        hint="Write predicate=(flags[0] > 0)",
    )


def _without_cast(node: ast.expr) -> ast.expr:
    """A read or constant without casts and `pl.const` around it."""
    while isinstance(node, ast.Call) and node.args:
        name = last_name(node.func)
        if name in ("cast", "const"):
            node = node.args[0]
        elif name == "read" and len(node.args) == 2:
            index = node.args[1]
            if isinstance(index, ast.List):
                index = ast.copy_location(ast.Tuple(index.elts, ast.Load()), index)
            node = ast.copy_location(ast.Subscript(node.args[0], index, ast.Load()), node)
        else:
            return node
    return node


def _check_operand(p: FunctionParser, operand: ir.Expr, node: ast.Subscript) -> None:
    span = p.span(node)
    tensor = operand.type
    if not isinstance(tensor, ir.TensorType):
        raise ParserTypeError(
            f"predicate operand must be a tensor, got {tensor}",
            span=span,
            hint="Compare one element of a tensor, as in flags[0] > 0",
        )
    if tensor.dtype not in _OPERAND_DTYPES:
        raise ParserTypeError(
            f"predicate operand must be a signed 8/16/32/64-bit integer tensor, got {tensor.dtype}",
            span=span,
            hint="Keep the flags in a tensor of pl.INT32",
        )
    indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    for index in indices:
        if isinstance(index, ast.Slice):
            raise ParserTypeError(
                "predicate indices must be integer scalars",
                span=p.span(node),
                hint="Use ints, symbols and integer scalars",
            )
        value = p.expr(index)
        if not (isinstance(value.type, ir.ScalarType) and value.type.dtype.is_int()):
            raise ParserTypeError(
                "predicate indices must be integer scalars",
                span=p.span(index),
                hint="Use ints, symbols and integer scalars",
            )
        if isinstance(value, ir.ConstInt) and value.value < 0:
            raise ParserTypeError(
                f"predicate index must be non-negative, got {value.value}",
                span=p.span(index),
                hint="Indices count from 0",
            )
    rank = len(tensor.shape_)
    if len(indices) != rank:
        raise ParserTypeError(
            f"predicate needs {rank} index(es), got {len(indices)}",
            span=span,
            hint="Give one index per dimension",
        )


def _check_producer(
    p: FunctionParser, operand: ir.Expr, deps: list[ir.Expr], span: ir.Span, remedy: str
) -> None:
    """The task that writes the operand must have finished: its id has to be among the dependencies."""
    produced = p.producers.get(operand)  # type: ignore[call-overload]
    if produced is None or any(is_task_id_array(dep.type) for dep in deps):
        return
    name, task_id, version = produced
    current = p.task_id_versions.get(task_id, 0)
    if current == version and any(dep is task_id for dep in deps):
        return
    operand_name = operand.name_hint if isinstance(operand, ir.Var) else str(operand)
    raise ParserSyntaxError(
        f"predicate operand '{operand_name}' is produced by the task bound to '{name}', "
        f"but '{name}' is not in deps=",
        span=span,
        hint=f"{remedy.format(name)}; the id must not have been bound to another task in between",
    )
