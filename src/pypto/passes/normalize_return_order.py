"""NormalizeReturnOrder: a function that hands back one of its parameters says so.

1. Kernels and wrappers (InCore, AIC, AIV, Group, Spmd): a returned tensor that is the memory of a parameter
   *is* that parameter afterwards. A wrapper that forwards all results of one dispatch returns them one by
   one.
2. Kernels: returns are put into the order of the `Out` and `InOut` parameters. Left alone when there are more
   such parameters than returns, or when two returns would go to one place.
3. Callers read the results at their new positions.

Code generation for callers then maps results to arguments by looking at the return statement only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pypto import ir
from pypto.ir.walk import map_substatements, walk_stmts
from pypto.passes.base import IRProperty, Pass, PassProperties, create_program_pass, property_set
from pypto.passes.storage import NO_VIEWS, ProgramStorage, definitions, is_builtin, is_tensor, resolve

__all__ = ["normalize_return_order"]

_PROPERTIES = PassProperties(
    required=property_set(IRProperty.SplitIncoreOrch, IRProperty.IncoreTileOps),
    produced=property_set(IRProperty.ReturnParamsExplicit),
)

_WRAPPERS = (ir.FunctionType.Group, ir.FunctionType.Spmd)
_WRITTEN = (ir.ParamDirection.Out, ir.ParamDirection.InOut)

Order = tuple[int, ...]
"""Where each result goes: result `i` becomes result `order[i]`."""


def normalize_return_order() -> Pass:
    """Return the pass that makes returned parameters explicit and orders them."""
    return create_program_pass(_normalize, "NormalizeReturnOrder", _PROPERTIES)


def _normalize(program: ir.Program) -> ir.Program:
    storage = ProgramStorage(program, views=NO_VIEWS, outputs_by_position=True)
    explicit = program.replace(
        functions=[
            _with_explicit_params(function, storage) if _hands_back(function) else function
            for function in program.functions_.values()
        ]
    )
    orders = {
        name: order
        for name, function in explicit.functions_.items()
        if ir.is_incore_type(function.func_type) and (order := _wanted_order(function)) is not None
    }
    if not orders:
        return explicit
    return explicit.replace(
        functions=[
            _reordered(function, orders[name]) if name in orders else _reading_reordered(function, orders)
            for name, function in explicit.functions_.items()
        ]
    )


def _hands_back(function: ir.Function) -> bool:
    return ir.is_incore_type(function.func_type) or function.func_type in _WRAPPERS


# --- returned parameters ------------------------------------------------------------------------------------


def _with_explicit_params(function: ir.Function, program: ProgramStorage) -> ir.Function:
    storage = program.of(function)
    params = set(function.params_)
    defined = definitions(function.body)

    def explicit(value: ir.Expr) -> ir.Expr:
        root = storage.only_root(value) if is_tensor(value) else None
        return root if root is not None and root in params else value

    def rewrite(stmt: ir.Stmt) -> ir.Stmt:
        if not isinstance(stmt, ir.ReturnStmt):
            return map_substatements(stmt, rewrite)
        values = stmt.value_
        if len(values) == 1 and isinstance(values[0].type, ir.TupleType):
            forwarded = _forwarded_params(values[0], defined, program)
            if forwarded is not None and len(forwarded) == len(function.return_types_):
                return stmt.replace(value=[explicit(arg) for arg in forwarded])
        return stmt.replace(value=[explicit(value) for value in values])

    return function.replace(body=rewrite(function.body))


def _forwarded_params(
    value: ir.Expr, defined: Mapping[ir.Var, ir.Expr], program: ProgramStorage
) -> list[ir.Expr] | None:
    """The argument that each result of a forwarded dispatch is; None if one of them is no argument."""
    call = resolve(value, defined)
    if not isinstance(call, (ir.Call, ir.Submit)) or is_builtin(call.op):
        return None
    returned = program.returned_params(call.op.name)
    if not all(len(each) == 1 and 0 <= min(each) < len(call.args_) for each in returned):
        return None
    return [call.args_[min(each)] for each in returned]


# --- order --------------------------------------------------------------------------------------------------


def _wanted_order(function: ir.Function) -> Order | None:
    """Where each result of a kernel belongs; None to leave the kernel alone."""
    returns = [stmt for stmt in walk_stmts(function.body) if isinstance(stmt, ir.ReturnStmt)]
    outputs = [
        param
        for param, direction in zip(function.params_, function.param_directions_, strict=True)
        if direction in _WRITTEN
    ]
    if len(returns) != 1 or len(outputs) > len(returns[0].value_):
        return None
    places = {param: place for place, param in enumerate(outputs)}
    order = tuple(
        places.get(value, position) if isinstance(value, ir.Var) else position
        for position, value in enumerate(returns[0].value_)
    )
    identity = tuple(range(len(order)))
    return None if order == identity or tuple(sorted(order)) != identity else order


def _permuted(items: Sequence[object], order: Order) -> list[object]:
    permuted: list[object] = list(items)
    for position, place in enumerate(order):
        permuted[place] = items[position]
    return permuted


def _reordered(function: ir.Function, order: Order) -> ir.Function:
    def rewrite(stmt: ir.Stmt) -> ir.Stmt:
        if isinstance(stmt, ir.ReturnStmt):
            return stmt.replace(value=_permuted(stmt.value_, order))
        return map_substatements(stmt, rewrite)

    return function.replace(
        body=rewrite(function.body), return_types=_permuted(function.return_types_, order)
    )


def _reading_reordered(function: ir.Function, orders: Mapping[str, Order]) -> ir.Function:
    """The function reading the results of reordered kernels where they are now."""
    retyped: dict[ir.Var, tuple[ir.Var, Order]] = {}

    def rewrite(stmt: ir.Stmt) -> ir.Stmt:
        if isinstance(stmt, ir.AssignStmt):
            return _rewrite_assign(stmt)
        if isinstance(stmt, ir.ReturnStmt) and len(stmt.value_) == 1 and stmt.value_[0] in retyped:
            return _unpacked_return(stmt, *retyped[stmt.value_[0]])
        return map_substatements(stmt, rewrite)

    def _rewrite_assign(stmt: ir.AssignStmt) -> ir.Stmt:
        value = stmt.value
        if isinstance(value, (ir.Call, ir.Submit)) and value.op.name in orders:
            order = orders[value.op.name]
            call = value.replace(type=_permuted_type(value.type, order))
            var = stmt.var.replace(type=call.type)
            retyped[stmt.var] = (var, order)
            return stmt.replace(var=var, value=call)
        if isinstance(value, ir.TupleGetItemExpr) and value.tuple in retyped:
            source, order = retyped[value.tuple]
            index = order[value.index] if value.index < len(order) else value.index
            return stmt.replace(value=ir.TupleGetItemExpr(source, index, value.span))
        if isinstance(value, ir.Var) and value in retyped:
            source, order = retyped[value]
            var = stmt.var.replace(type=source.type)
            retyped[stmt.var] = (var, order)
            return stmt.replace(var=var, value=source)
        return stmt

    return function.replace(body=rewrite(function.body))


def _permuted_type(type: ir.Type, order: Order) -> ir.Type:
    """The type of a dispatch result; a task id behind the results stays last."""
    assert isinstance(type, ir.TupleType)
    results, rest = type.types_[: len(order)], type.types_[len(order) :]
    return ir.TupleType([*_permuted(results, order), *rest])  # type: ignore[list-item]


def _unpacked_return(stmt: ir.ReturnStmt, source: ir.Var, order: Order) -> ir.Stmt:
    """A forwarded tuple, taken apart so that the function's own results keep their order."""
    unpacked: list[ir.Stmt] = []
    values: list[ir.Expr] = []
    for position, place in enumerate(order):
        item = ir.TupleGetItemExpr(source, place, stmt.span)
        var = ir.Var(f"ret{position}__tmp", item.type, stmt.span)
        unpacked.append(ir.AssignStmt(var, item, stmt.span))
        values.append(var)
    return ir.flatten_stmts([*unpacked, stmt.replace(value=values)], stmt.span)
