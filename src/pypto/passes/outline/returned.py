"""Which values a kernel returns: the *param-explicit* rule, held back where it would lie.

A result that is the storage of a parameter is returned as that very parameter, so that callers match
results to arguments by identity. Lineage takes the result of a loop for its initial value. That is true
where the loop updates the tensor in place. Where the loop yields something else there are two cases:

- The loop computes the tensor anew and the parameter is otherwise untouched. The parameter is returned all
  the same; ConvertTensorToTileOps recognises the untouched parameter and returns the computed value. It can
  tell which value is meant only if there is one such value.
- In every other case (the parameter is written as well, the loop yields another tensor, two values stand for
  one parameter, the function is no kernel and so not converted) the value itself is returned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pypto import ir
from pypto.ir.carry_kinds import CarryKind, carry_kinds
from pypto.ir.op_registry import get_op_def
from pypto.ir.return_lineage import BodyLineage, ReturnLineage
from pypto.ir.walk import exprs_of, walk_stmts

__all__ = ["returned_values"]

Loop = ir.ForStmt | ir.WhileStmt


def returned_values(
    body: ir.Stmt,
    params: tuple[ir.Var, ...],
    results: tuple[ir.Var, ...],
    lineage: ReturnLineage,
    callees: Mapping[str, ir.Function],
    *,
    is_converted: bool,
) -> list[ir.Expr]:
    """The values to return for `results`: parameters wherever a result is one.

    `is_converted` tells that ConvertTensorToTileOps will see the function.
    """
    origins = BodyLineage.of(body, params)
    indices = [
        lineage.param_of(result, origins) if isinstance(result.type, ir.TensorType) else None
        for result in results
    ]
    loops = [stmt for stmt in walk_stmts(body) if isinstance(stmt, (ir.ForStmt, ir.WhileStmt))]
    if loops and any(index is not None for index in indices):
        kinds = carry_kinds(body)
        truth = _truth(origins, loops, kinds, lineage)
        computed = _computed_from(body, origins, truth, lineage)
        written = _written_params(body, origins, lineage, callees)
        mended = {
            index: values for index, values in computed.items() if is_converted and index not in written
        }
        indices = [
            index
            if index is None or _may_return_param(result, mended.get(index, ()), truth, index, kinds, lineage)
            else None
            for result, index in zip(results, indices, strict=True)
        ]
    return [
        result if index is None else params[index] for result, index in zip(results, indices, strict=True)
    ]


def _may_return_param(
    result: ir.Var,
    mended: Sequence[ir.Var],
    truth: BodyLineage,
    index: int,
    kinds: Mapping[ir.Var, CarryKind],
    lineage: ReturnLineage,
) -> bool:
    """Whether the parameter `index` may be returned for `result`.

    `mended` are the values that ConvertTensorToTileOps would return where this parameter is returned.
    """
    if lineage.param_of(result, truth) == index:
        return not mended
    return list(mended) == [result] and kinds.get(result) is CarryKind.COMPUTED


def _truth(
    origins: BodyLineage, loops: list[Loop], kinds: Mapping[ir.Var, CarryKind], lineage: ReturnLineage
) -> BodyLineage:
    """The lineage in which only what loops update in place passes through them."""
    carries: dict[ir.Var, ir.Var] = {}
    for loop in reversed(loops):  # inner loops first
        own: dict[ir.Var, int] = {carried: position for position, carried in enumerate(loop.iter_args_)}
        inside = BodyLineage(own, origins.definitions, carries, {})
        for position, carried in enumerate(loop.iter_args_):
            if carried not in origins.carries:
                continue
            kind = kinds[carried]
            if kind is CarryKind.UNKNOWN:
                value = _yielded(loop)[position]
                in_place = isinstance(value, ir.Var) and lineage.param_of(value, inside) == position
            else:
                in_place = kind is CarryKind.IN_PLACE
            if in_place:
                for var in (carried, *loop.return_vars_[position : position + 1]):
                    carries[var] = origins.carries[carried]
    return BodyLineage(origins.params, origins.definitions, carries, {})


def _yielded(loop: Loop) -> tuple[ir.Expr, ...]:
    last = ir.flatten_to_stmts(loop.body)[-1]
    assert isinstance(last, ir.YieldStmt)
    return last.value_


def _computed_from(
    body: ir.Stmt, origins: BodyLineage, truth: BodyLineage, lineage: ReturnLineage
) -> dict[int, list[ir.Var]]:
    """Per parameter the values at the top of the body that lineage takes for it although they are others."""
    found: dict[int, list[ir.Var]] = {}
    for stmt in ir.flatten_to_stmts(body):
        bound = (stmt.var,) if isinstance(stmt, ir.AssignStmt) else getattr(stmt, "return_vars_", ())
        for var in bound:
            index = lineage.param_of(var, origins) if isinstance(var.type, ir.TensorType) else None
            if index is not None and lineage.param_of(var, truth) != index:
                found.setdefault(index, []).append(var)
    return found


def _written_params(
    body: ir.Stmt, origins: BodyLineage, lineage: ReturnLineage, callees: Mapping[str, ir.Function]
) -> set[int]:
    """Parameters whose memory the body may write."""
    written: set[int] = set()
    for stmt in walk_stmts(body):
        for expr in exprs_of(stmt):
            if not isinstance(expr, (ir.Call, ir.Submit)):
                continue
            for index, arg in enumerate(expr.args_):
                if isinstance(arg, ir.Var) and _may_write(expr, index, callees):
                    param = lineage.param_of(arg, origins)
                    if param is not None:
                        written.add(param)
    return written


def _may_write(call: ir.Call | ir.Submit, index: int, callees: Mapping[str, ir.Function]) -> bool:
    definition = get_op_def(call.op.name)
    if definition is not None:
        return definition.effect(index, call.kwargs_) is not ir.ArgEffect.Read
    callee = callees.get(call.op.name)
    if callee is None or index >= len(callee.params_):
        return True
    return callee.param_directions_[index] is not ir.ParamDirection.In
