"""What is found out about a kernel before its body is converted.

- Which tensor variables are memory and which are values (`kernel_storage`).
- Which variables feed a matrix product, so that a slice can be loaded to where the product reads
  (`matrix_operands`).
- Which value a returned parameter really stands for (`materialised_returns`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pypto import ir
from pypto.ir.carry_kinds import RESULT_IS_ARGUMENT, CarryKind, carry_kinds
from pypto.ir.walk import walk_stmts
from pypto.passes.memory_effects import written_roots
from pypto.passes.storage import (
    Definitions,
    ProgramStorage,
    Storage,
    is_builtin,
    is_tensor,
    trace,
    written_back_argument,
)

__all__ = ["kernel_storage", "materialised_returns", "matrix_operands"]

_SAME_MEMORY = frozenset({"tensor.assemble", "tensor.write", "tensor.view"})
_PRODUCTS = {"tensor.matmul": (0, 1), "tensor.matmul_acc": (1, 2)}


def kernel_storage(function: ir.Function, dispatches: ProgramStorage) -> Storage:
    """Memory and values of a kernel at tensor level: a computed tensor, a slice included, is a value."""

    def rule(var: ir.Var, value: ir.Expr, defined: Definitions) -> Sequence[ir.Expr] | None:
        if isinstance(value, ir.Call) and is_builtin(value.op):
            name = value.op.name
            if name in _SAME_MEMORY:
                return [value.args_[0]]
            if name.startswith("tensor."):
                return None
            index = written_back_argument(value)
            return [var] if index is None else [value.args_[index]]
        return dispatches.rule(var, value, defined)

    return trace(function, rule)


def matrix_operands(function: ir.Function) -> frozenset[ir.Var]:
    """Variables that reach a matrix product as themselves or through copies and slices.

    Reshapes end the search: their result has to be row-major, which an operand of a product is not.
    """
    wanted: list[ir.Expr] = []
    source: dict[ir.Var, ir.Expr] = {}
    for stmt in walk_stmts(function.body):
        value = (
            stmt.value
            if isinstance(stmt, ir.AssignStmt)
            else stmt.expr
            if isinstance(stmt, ir.EvalStmt)
            else None
        )
        if isinstance(value, ir.Call):
            wanted += [value.args_[index] for index in _PRODUCTS.get(value.op.name, ())]
        if isinstance(stmt, ir.AssignStmt):
            if isinstance(value, ir.Var):
                source[stmt.var] = value
            elif isinstance(value, ir.Call) and value.op.name == "tensor.slice":
                source[stmt.var] = value.args_[0]
    found: set[ir.Var] = set()
    while wanted:
        expr = wanted.pop()
        if isinstance(expr, ir.Var) and expr not in found:
            found.add(expr)
            if expr in source:
                wanted.append(source[expr])
    return frozenset(found)


def materialised_returns(
    function: ir.Function, storage: Storage, program: ir.Program
) -> dict[ir.Var, list[ir.Var]]:
    """Values that were meant where the function returns one of its parameters.

    The outliner takes a carried tensor for its initial value, so a scope that computes `x = f(x)` in a loop
    arrives here returning the untouched parameter `x`. A parameter that nothing writes and from which a value
    descends in that reading stands for this value. The result gives these values per such parameter, in the
    order of their definition.
    """
    returned = [
        value
        for stmt in walk_stmts(function.body)
        if isinstance(stmt, ir.ReturnStmt)
        for value in stmt.value_
        if isinstance(value, ir.Var)
    ]
    written = written_roots(function.body, storage, program)
    params = {param for param in function.params_ if is_tensor(param)}
    suspects = {var for var in returned if var in params and var not in written}
    if not suspects:
        return {}
    return _descending_values(function, storage, suspects)


def _descending_values(
    function: ir.Function, storage: Storage, params: set[ir.Var]
) -> dict[ir.Var, list[ir.Var]]:
    """Top-level values that descend from each parameter if a loop is taken for its initial value."""
    ancestor: dict[ir.Var, ir.Var] = {param: param for param in params}
    found: dict[ir.Var, list[ir.Var]] = {}
    kinds = carry_kinds(function.body)
    for stmt in ir.flatten_to_stmts(function.body):
        for var, source in _naive_sources(stmt, kinds):
            if isinstance(source, ir.Var) and source in ancestor:
                ancestor[var] = ancestor[source]
                if var in storage.values:
                    found.setdefault(ancestor[var], []).append(var)
    return found


def _naive_sources(stmt: ir.Stmt, kinds: Mapping[ir.Var, CarryKind]) -> list[tuple[ir.Var, ir.Expr]]:
    """Pairs (variable, what it would be if every loop updated its initial value in place).

    As in the lineage of the outliner, a loop that goes on with another tensor does not.
    """
    if isinstance(stmt, ir.AssignStmt):
        if isinstance(stmt.value, ir.Var):
            return [(stmt.var, stmt.value)]
        if isinstance(stmt.value, ir.Call) and stmt.value.op.name in RESULT_IS_ARGUMENT:
            return [(stmt.var, stmt.value.args_[RESULT_IS_ARGUMENT[stmt.value.op.name]])]
    if isinstance(stmt, (ir.ForStmt, ir.WhileStmt)):
        return [
            (result, carried.initValue)
            for result, carried in zip(stmt.return_vars_, stmt.iter_args_, strict=True)
            if is_tensor(result) and kinds.get(carried) is not CarryKind.OTHER
        ]
    return []
