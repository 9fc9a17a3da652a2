"""UnrollLoops: replace every loop of kind Unroll by copies of its body.

1. Bounds and step must be integer constants (or the negation of one); nothing is folded first.
2. In copy number k the loop variable is the constant of that trip, in expressions, types and attributes.
3. Definitions are not renamed: the same variables are assigned again in every copy. ConvertToSSA versions
   them later. A body that does not mention the loop variable is therefore repeated as it is, not copied.
4. The copies take the loop's place in the enclosing sequence.
"""

from __future__ import annotations

from pypto import ir
from pypto.core.errors import internal_error
from pypto.ir.rewrite import Substitution
from pypto.passes.base import IRProperty, Pass, PassProperties, create_function_pass, property_set
from pypto.passes.leading_comments import with_comments_first

MAX_TRIP_COUNT = 1024


def unroll_loops() -> Pass:
    """Make the UnrollLoops pass."""
    produced = property_set(IRProperty.UnrollResolved)
    return create_function_pass(_unroll_function, "UnrollLoops", PassProperties(produced=produced))


def _unroll_function(function: ir.Function) -> ir.Function:
    return function.replace(body=_unroll(function.body))


def _unroll(stmt: ir.Stmt) -> ir.Stmt:
    """Return `stmt` without unroll loops; the same object if it has none."""
    if isinstance(stmt, ir.SeqStmts):
        return _unroll_sequence(stmt)
    if isinstance(stmt, ir.ForStmt):
        if stmt.kind is ir.ForKind.Unroll:
            return ir.flatten_stmts(_copies(stmt), stmt.span)
        return stmt.replace(body=_unroll(stmt.body))
    if isinstance(stmt, ir.IfStmt):
        else_body = _unroll(stmt.else_body) if stmt.else_body is not None else None
        return stmt.replace(then_body=_unroll(stmt.then_body), else_body=else_body)
    if isinstance(stmt, ir.WhileStmt | ir.ScopeStmt):
        return stmt.replace(body=_unroll(stmt.body))
    return stmt


def _unroll_sequence(sequence: ir.SeqStmts) -> ir.Stmt:
    stmts: list[ir.Stmt] = []
    changed = False
    for stmt in sequence.stmts_:
        result = _unroll(stmt)
        changed |= result is not stmt
        stmts.append(result)
    return ir.flatten_stmts(stmts, sequence.span) if changed else sequence


def _copies(loop: ir.ForStmt) -> list[ir.Stmt]:
    """Return one body per trip, in trip order."""
    if loop.iter_args_:
        raise internal_error("Unroll loop cannot carry values (iter_args)", loop.span)
    trips = _trips(loop)
    if not trips:
        return []
    if _body_for(loop, trips[0]) is loop.body:
        bodies = [_unroll(loop.body)] * len(trips)
    else:
        bodies = [_unroll(_body_for(loop, value)) for value in trips]
    return with_comments_first(bodies, loop.leading_comments)


def _body_for(loop: ir.ForStmt, value: int) -> ir.Stmt:
    constant = ir.ConstInt(value, ir.DataType.INDEX, loop.loop_var.span)
    return Substitution({loop.loop_var: constant}).stmt(loop.body)


def _trips(loop: ir.ForStmt) -> range:
    start = _constant(loop.start, "start")
    stop = _constant(loop.stop, "stop")
    step = _constant(loop.step, "step")
    if step == 0:
        raise ValueError("Unroll loop step cannot be zero")
    count = max(0, -((start - stop) // step))  # len(range(...)) overflows for huge ranges
    if count > MAX_TRIP_COUNT:
        raise ValueError(
            f"Unroll loop trip count {count} exceeds maximum allowed ({MAX_TRIP_COUNT}). "
            "Use pl.range() for a loop with that many iterations, or split the loop"
        )
    return range(start, stop, step)


def _constant(expr: ir.Expr, role: str) -> int:
    if isinstance(expr, ir.ConstInt):
        return expr.value
    if isinstance(expr, ir.Neg) and isinstance(expr.operand, ir.ConstInt):
        return -expr.operand.value
    raise ValueError(f"Unroll loop {role} must be a compile-time integer constant, got {type(expr).__name__}")
