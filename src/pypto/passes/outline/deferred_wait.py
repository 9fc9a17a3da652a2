"""Scopes that register deferred waits.

Such a scope becomes a task that computes nothing: it registers at most 64 conditions and is complete when
all of them hold. Whether that is so must be known before the task runs, hence the narrow rules: scalar
bookkeeping, tensor reads before the first registration only, loops with a constant trip count.
"""

from __future__ import annotations

from dataclasses import dataclass

from pypto import ir
from pypto.core.errors import located
from pypto.ir.walk import exprs_of, substatements, walk

__all__ = ["check_deferred_waiter"]

MAX_CONDITIONS = 64
_WAIT, _READ = "pld.system.defer_wait", "tensor.read"
_TASK_SCOPES = (ir.InCoreScopeStmt, ir.HierarchyScopeStmt, ir.ClusterScopeStmt, ir.SpmdScopeStmt)


@dataclass(frozen=True, slots=True)
class _Effect:
    """What a piece of code does at most: conditions registered, and whether tensors are read."""

    registrations: int = 0
    reads: bool = False

    @property
    def registers(self) -> bool:
        return self.registrations > 0


def check_deferred_waiter(scope: ir.ScopeStmt, *, nested: bool) -> bool:
    """Return whether `scope` itself registers deferred waits; raise ValueError if it may not."""
    if not _registers_directly(scope.body):
        return False
    if not isinstance(scope, ir.InCoreScopeStmt):
        raise _error("pld.system.defer_wait must be in the body of a CORE_GROUP / InCore task", scope)
    if nested:
        raise _error(
            "defer_wait must be in a task-level CORE_GROUP scope; nesting it in another scope is unsupported",
            scope,
        )
    if scope.attrs_.get("allow_early_resolve"):
        raise _error("A scope with defer_wait cannot use allow_early_resolve=True", scope)
    if "predicate" in scope.attrs_:
        raise _error("A scope with defer_wait cannot use predicate=", scope)
    effect = _check(scope.body, registered=False)
    if effect.registrations > MAX_CONDITIONS:
        raise _error(
            f"A deferred waiter supports at most {MAX_CONDITIONS} conditions, this one may register "
            f"{effect.registrations}",
            scope,
        )
    return True


def _registers_directly(stmt: ir.Stmt) -> bool:
    """Whether a wait is registered in `stmt`, scopes that become tasks of their own left aside."""
    pending = [stmt]
    while pending:
        inner = pending.pop()
        if isinstance(inner, ir.EvalStmt) and _is_call(inner.expr, _WAIT):
            return True
        if not isinstance(inner, _TASK_SCOPES):
            pending += substatements(inner)
    return False


def _check(stmt: ir.Stmt, registered: bool) -> _Effect:
    """Check `stmt`, before which a condition may have been `registered`; return what it does at most."""
    match stmt:
        case ir.SeqStmts():
            total = _Effect()
            for inner in stmt.stmts_:
                done = _check(inner, registered or total.registers)
                total = _Effect(total.registrations + done.registrations, total.reads or done.reads)
            return total
        case ir.RuntimeScopeStmt():
            return _check(stmt.body, registered)
        case ir.AssignStmt():
            return _check_assignment(stmt, registered)
        case ir.EvalStmt() if _is_call(stmt.expr, _WAIT):
            for operand in stmt.expr._children():
                _check_scalar(operand, stmt)
            return _Effect(registrations=1)
        case ir.IfStmt():
            _check_scalar(stmt.condition, stmt)
            branches = [_check(inner, registered) for inner in substatements(stmt)]
            return _Effect(max(b.registrations for b in branches), any(b.reads for b in branches))
        case ir.ForStmt() if stmt.kind in (ir.ForKind.Sequential, ir.ForKind.Unroll):
            return _check_loop(stmt, registered)
        case ir.YieldStmt():
            for value in stmt.value_:
                _check_scalar(value, stmt)
                _check_scalar_type(value.type, stmt)
            return _Effect()
        case ir.ReturnStmt() if not stmt.value_:
            return _Effect()
    raise _error(
        "A deferred waiter supports only a pre-registration tensor.read and scalar bookkeeping", stmt
    )


def _check_assignment(stmt: ir.AssignStmt, registered: bool) -> _Effect:
    _check_scalar_type(stmt.var.type, stmt)
    if not _is_call(stmt.value, _READ):
        _check_scalar(stmt.value, stmt)
        return _Effect()
    if registered:
        raise _error("A deferred waiter cannot execute tensor reads after a condition's registration", stmt)
    return _Effect(reads=True)


def _check_loop(loop: ir.ForStmt, registered: bool) -> _Effect:
    for expr in exprs_of(loop):
        if not isinstance(expr, ir.IterArg):
            _check_scalar(expr, loop)
        _check_scalar_type(expr.type, loop)
    body = _check(loop.body, registered)
    if not body.registers:
        return body
    trips = _constant_trip_count(loop)
    if trips is None or trips <= 0:
        raise _error(
            "A loop that registers deferred waits needs a statically known positive trip count", loop
        )
    if trips > 1 and body.reads:
        raise _error(
            "The loop may execute tensor reads in a later iteration, after registering a condition", loop
        )
    return _Effect(body.registrations * trips, body.reads)


def _constant_trip_count(loop: ir.ForStmt) -> int | None:
    start, stop, step = loop.start, loop.stop, loop.step
    if not (
        isinstance(start, ir.ConstInt) and isinstance(stop, ir.ConstInt) and isinstance(step, ir.ConstInt)
    ):
        return None
    return len(range(start.value, stop.value, step.value)) if step.value else None


def _check_scalar(expr: ir.Expr, stmt: ir.Stmt) -> None:
    """Scalar arithmetic without calls; a tensor may be named only as an operand of a wait."""
    if any(isinstance(node, (ir.Call, ir.Submit)) for node in walk(expr, once=True)):
        raise _error(
            "A deferred waiter supports only a pre-registration tensor.read, and no other call", stmt
        )


def _check_scalar_type(type: ir.Type, stmt: ir.Stmt) -> None:
    if not isinstance(type, (ir.ScalarType, ir.TupleType)):
        raise _error("A deferred waiter cannot create or update payload tensors", stmt)


def _is_call(expr: ir.Expr, name: str) -> bool:
    return isinstance(expr, ir.Call) and expr.op.name == name


def _error(message: str, stmt: ir.Stmt) -> ValueError:
    return ValueError(located(message, stmt.span))
