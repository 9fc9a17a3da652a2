"""Which values a kernel returns: the *param-explicit* rule, held back where it would lie.

A result that is the storage of a parameter is returned as that very parameter, so that callers match results
to arguments by identity. Lineage takes the result of a loop for its initial value. That is true where the loop
updates the tensor in place. Where the loop yields something else there are two cases:

- The loop computes the tensor anew and the parameter is otherwise untouched. The parameter is returned all the
  same; ConvertTensorToTileOps recognises the untouched parameter and returns the computed value. It can tell
  which value is meant only if there is one such value.
- In every other case (the parameter is written as well, the loop yields another tensor, two values stand for
  one parameter) the value itself is returned.
"""

from __future__ import annotations

from collections.abc import Mapping

from pypto import ir
from pypto.ir.op_registry import get_op_def
from pypto.ir.return_lineage import BodyLineage, ReturnLineage
from pypto.ir.walk import exprs_of, walk_stmts

__all__ = ["returned_values"]

Loop = ir.ForStmt | ir.WhileStmt

_SAME_STORAGE = frozenset({"tensor.reshape", "tensor.view", "tensor.transpose", "tensor.write"})


def returned_values(
    body: ir.Stmt,
    params: tuple[ir.Var, ...],
    results: tuple[ir.Var, ...],
    lineage: ReturnLineage,
    callees: Mapping[str, ir.Function],
) -> list[ir.Expr]:
    """The values to return for `results`: parameters wherever a result is one."""
    origins = BodyLineage.of(body, params)
    indices = [
        lineage.param_of(result, origins) if isinstance(result.type, ir.TensorType) else None
        for result in results
    ]
    loops = [stmt for stmt in walk_stmts(body) if isinstance(stmt, (ir.ForStmt, ir.WhileStmt))]
    if loops and any(index is not None for index in indices):
        truth = _truth(origins, loops, lineage)
        doubtful = {
            result: index
            for result, index in zip(results, indices, strict=True)
            if index is not None and lineage.param_of(result, truth) != index
        }
        if doubtful:
            deferred = _deferred(body, doubtful, origins, truth, loops, lineage, callees)
            indices = [
                None if result in doubtful and result not in deferred else index
                for result, index in zip(results, indices, strict=True)
            ]
    return [
        result if index is None else params[index] for result, index in zip(results, indices, strict=True)
    ]


def _truth(origins: BodyLineage, loops: list[Loop], lineage: ReturnLineage) -> BodyLineage:
    """The lineage in which only what loops update in place passes through them."""
    carries: dict[ir.Var, ir.Var] = {}
    for loop in reversed(loops):  # inner loops first
        own: dict[ir.Var, int] = {carried: position for position, carried in enumerate(loop.iter_args_)}
        inside = BodyLineage(own, origins.definitions, carries, {})
        for position, value in enumerate(_yielded(loop)):
            if not (isinstance(value, ir.Var) and isinstance(value.type, ir.TensorType)):
                continue
            if lineage.param_of(value, inside) == position:
                carried = loop.iter_args_[position]
                for var in (carried, *loop.return_vars_[position : position + 1]):
                    if var in origins.carries:
                        carries[var] = origins.carries[var]
    return BodyLineage(origins.params, origins.definitions, carries, {})


def _yielded(loop: Loop) -> tuple[ir.Expr, ...]:
    last = ir.flatten_to_stmts(loop.body)[-1:]
    return last[0].value_ if last and isinstance(last[0], ir.YieldStmt) else ()


def _deferred(
    body: ir.Stmt,
    doubtful: Mapping[ir.Var, int],
    origins: BodyLineage,
    truth: BodyLineage,
    loops: list[Loop],
    lineage: ReturnLineage,
    callees: Mapping[str, ir.Function],
) -> set[ir.Var]:
    """The doubtful results that stand for their parameter until ConvertTensorToTileOps mends the return."""
    computed = _computed_results(loops, origins)
    written = _written_params(body, origins, lineage, callees)
    descending: dict[int, list[ir.Var]] = {}
    for stmt in ir.flatten_to_stmts(body):
        bound = (stmt.var,) if isinstance(stmt, ir.AssignStmt) else getattr(stmt, "return_vars_", ())
        for var in bound:
            index = lineage.param_of(var, origins) if isinstance(var.type, ir.TensorType) else None
            if index is not None and lineage.param_of(var, truth) != index:
                descending.setdefault(index, []).append(var)
    return {
        result
        for result, index in doubtful.items()
        if index not in written and descending.get(index) == [result] and result in computed
    }


def _computed_results(loops: list[Loop], origins: BodyLineage) -> set[ir.Var]:
    """Loop results whose loop yields what an operator computes."""
    computed: set[ir.Var] = set()
    for loop in reversed(loops):
        for result, value in zip(loop.return_vars_, _yielded(loop), strict=False):
            source: ir.Expr | None = value
            while isinstance(source, ir.Var) and source not in computed and source in origins.definitions:
                source = origins.definitions[source]
            if isinstance(source, ir.Call) and _is_computation(source):
                computed.add(result)
            elif isinstance(source, ir.Var) and source in computed:
                computed.add(result)
    return computed


def _is_computation(call: ir.Call) -> bool:
    definition = get_op_def(call.op.name)
    if definition is None or call.op.name in _SAME_STORAGE:
        return False
    return all(
        definition.effect(index, call.kwargs_) is ir.ArgEffect.Read for index in range(len(call.args_))
    )


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
