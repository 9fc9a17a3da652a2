"""What a call does to the memory of its operands, and which calls let other cores' writes become visible."""

from __future__ import annotations

from collections.abc import Iterator

from pypto import ir
from pypto.ir.meaning import COLLECTIVES
from pypto.ir.op_registry import get_op_def
from pypto.ir.walk import exprs_of, walk, walk_stmts
from pypto.passes.storage import NO_VIEWS, Storage, is_builtin, is_tensor

__all__ = [
    "calls_in",
    "is_barrier",
    "may_write",
    "memory_operands",
    "reads_memory",
    "writes_memory",
    "written_roots",
]

_METADATA = frozenset({"tensor.dim", "tensor.view"})
_BARRIERS = frozenset(
    f"system.{name}"
    for name in ("syncall", "sync_wait", "bar_all", "bar_v", "bar_m", "fence", "cacheinvalid")
) | {"pld.system.wait", "pld.system.defer_wait", *(f"pld.tensor.{kind}" for kind in COLLECTIVES)}
_EFFECT_OF = {
    ir.ParamDirection.In: ir.ArgEffect.Read,
    ir.ParamDirection.Out: ir.ArgEffect.Write,
    ir.ParamDirection.InOut: ir.ArgEffect.ReadWrite,
}


def is_barrier(call: ir.Expr) -> bool:
    """Whether memory read before the call may have changed after it although this kernel did not write it."""
    return isinstance(call, ir.Call) and call.op.name in _BARRIERS


def may_write(call: ir.Call | ir.Submit) -> bool:
    """Whether memory may differ after the call, whatever a dispatch says of its arguments."""
    definition = get_op_def(call.op.name) if is_builtin(call.op) else None
    if definition is None or is_barrier(call):
        return True
    effects = (definition.effect(index, call.kwargs_) for index in range(len(call.args_)))
    return any(effect is not ir.ArgEffect.Read for effect in effects)


def calls_in(node: ir.Stmt | ir.Expr) -> Iterator[ir.Call | ir.Submit]:
    """The calls and submits in a statement or expression, each once."""
    return (each for each in walk(node, once=True) if isinstance(each, ir.Call | ir.Submit))


def writes_memory(node: ir.Stmt | ir.Expr) -> bool:
    """Whether memory may differ after a statement or after the evaluation of an expression."""
    return any(may_write(call) for call in calls_in(node))


def reads_memory(expr: ir.Expr) -> bool:
    """Whether the value of an expression may depend on what is in memory."""
    return any(call.op.name not in _METADATA for call in calls_in(expr))


def memory_operands(
    call: ir.Call | ir.Submit, program: ir.Program, views: frozenset[str] = NO_VIEWS
) -> Iterator[tuple[ir.Expr, ir.ArgEffect]]:
    """The tensor operands of a call with what it does to their memory.

    A dispatch does what its callee's directions say. An atomic update reads too. One of `views` touches no
    memory.
    """
    if is_builtin(call.op):
        definition = get_op_def(call.op.name)
        if definition is None or call.op.name in _METADATA or call.op.name in views:
            return
        for index, arg in enumerate(call.args_):
            if is_tensor(arg):
                yield arg, definition.effect(index, call.kwargs_)
        return
    callee = program.get_function(call.op.name)
    directions = () if callee is None else callee.param_directions_
    for index, arg in enumerate(call.args_):
        if is_tensor(arg):
            yield arg, _EFFECT_OF[directions[index]] if index < len(directions) else ir.ArgEffect.ReadWrite


def written_roots(stmt: ir.Stmt, storage: Storage, program: ir.Program) -> frozenset[ir.Var]:
    """The memory that a statement, or one inside it, writes."""
    written: set[ir.Var] = set()
    for inner in walk_stmts(stmt):
        for expr in exprs_of(inner):
            if isinstance(expr, (ir.Call, ir.Submit)):
                for arg, effect in memory_operands(expr, program):
                    if effect is not ir.ArgEffect.Read:
                        written |= storage.roots_of(arg)
    return frozenset(written)
