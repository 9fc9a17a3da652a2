"""UnrollLoops: replace every loop of kind Unroll by copies of its body.

1. Bounds and step must be integer constants (or the negation of one); nothing is folded first.
2. In copy number k the loop variable is the INDEX constant of that trip (INT64 for an INT64 variable), in
   expressions, types and attributes.
3. Assigned variables are not renamed: every copy assigns the same ones, and ConvertToSSA versions them
   later. A body that does not mention the loop variable is therefore repeated as it is, not copied.
4. Variables that a construct binds (loop variables, results, block and lane indices, task ids) are fresh in
   every copy but the last, because each written loop or scope has its own. So printed text reads back the
   same. A variable that exists before the loop is never renamed.
5. The copies take the loop's place in the enclosing sequence.
"""

from __future__ import annotations

from collections.abc import Sequence

from pypto import ir
from pypto.core.errors import internal_error
from pypto.ir.rewrite import Substitution
from pypto.ir.walk import exprs_of, substatements, vars_in, walk_stmts
from pypto.passes.base import IRProperty, Pass, PassProperties, create_function_pass, property_set
from pypto.passes.leading_comments import with_comments_first

MAX_TRIP_COUNT = 1024
_BLOCK_INDEX, _LANE_INDEX = "tile.get_block_idx", "tile.get_subblock_idx"


def unroll_loops() -> Pass:
    """Make the UnrollLoops pass."""
    produced = property_set(IRProperty.UnrollResolved)
    return create_function_pass(_unroll_function, "UnrollLoops", PassProperties(produced=produced))


def _unroll_function(function: ir.Function) -> ir.Function:
    return function.replace(body=_Unrolling(function.params_).unrolled(function.body))


class _Unrolling:
    """The unrolling of one function, which knows at each loop the variables that exist before it."""

    def __init__(self, params: Sequence[ir.Var]) -> None:
        self._existing = set(params)

    def unrolled(self, stmt: ir.Stmt) -> ir.Stmt:
        """Return `stmt` without unroll loops; the same object if it has none."""
        if isinstance(stmt, ir.SeqStmts):
            return self._sequence(stmt)
        if isinstance(stmt, ir.ForStmt) and stmt.kind is ir.ForKind.Unroll:
            return ir.flatten_stmts(self._copies(stmt), stmt.span)
        self._existing.update((stmt.var,) if isinstance(stmt, ir.AssignStmt) else _bound_by(stmt))
        if isinstance(stmt, ir.IfStmt):
            then_body = self.unrolled(stmt.then_body)
            else_body = self.unrolled(stmt.else_body) if stmt.else_body is not None else None
            return stmt.replace(then_body=then_body, else_body=else_body)
        if isinstance(stmt, ir.ForStmt | ir.WhileStmt | ir.ScopeStmt):
            return stmt.replace(body=self.unrolled(stmt.body))
        return stmt

    def _sequence(self, sequence: ir.SeqStmts) -> ir.Stmt:
        stmts: list[ir.Stmt] = []
        changed = False
        for stmt in sequence.stmts_:
            result = self.unrolled(stmt)
            changed |= result is not stmt
            stmts.append(result)
        return ir.flatten_stmts(stmts, sequence.span) if changed else sequence

    def _copies(self, loop: ir.ForStmt) -> list[ir.Stmt]:
        """Return one body per trip, in trip order."""
        if loop.iter_args_:
            raise internal_error("Unroll loop cannot carry values (iter_args)", loop.span)
        trips = _trips(loop)
        if not trips:
            return []
        bound = tuple(var for var in bound_variables(loop.body) if var not in self._existing)
        if not bound and _copy(loop, trips[0], ()) is loop.body:
            bodies = [self.unrolled(loop.body)] * len(trips)
        else:
            bodies = [self.unrolled(_copy(loop, value, bound)) for value in trips[:-1]]
            bodies.append(self.unrolled(_copy(loop, trips[-1], ())))
        return with_comments_first(bodies, loop.leading_comments)


def _copy(loop: ir.ForStmt, value: int, fresh: Sequence[ir.Var]) -> ir.Stmt:
    """Return the body with the loop variable replaced by its value and new variables for `fresh`."""
    index = loop.loop_var
    # An INT64 variable stays INT64, so that the operations on it keep operands of their own type.
    is_wide = index.type == ir.ScalarType(ir.DataType.INT64)
    constant = ir.ConstInt(value, ir.DataType.INT64 if is_wide else ir.DataType.INDEX, index.span)
    substitution = Substitution({index: constant})
    for var in fresh:
        renewed = var._map_children(substitution.expr, substitution.type)
        if isinstance(var, ir.IterArg):
            renewed = renewed.replace(initValue=substitution.expr(var.initValue))
        substitution.set(var, type(var).make(*renewed._values()) if renewed is var else renewed)
    return substitution.stmt(loop.body)


def bound_variables(body: ir.Stmt) -> tuple[ir.Var, ...]:
    """Return what the loops, branches and scopes of a body bind, in order of definition.

    To these belong the variables that only bodies with carried values assign: such a body is closed. Whoever
    asks leaves out the variables that exist before. A variable that is read before its definition is left
    out: it hands a value from one copy to the next. So is one that a plain assignment defines first.
    """
    bound: dict[ir.Var, None] = {}
    assigned_first: set[ir.Var] = set()
    defined: set[ir.Var] = set()
    early: set[ir.Var] = set()
    pending = [(body, False)]
    while pending:
        stmt, is_closed = pending.pop()
        own = _bound_by(stmt)
        if isinstance(stmt, ir.AssignStmt):
            early.update(var for var in vars_in(stmt.value) if var not in defined)
            if is_closed:
                own = (stmt.var,)
            else:
                assigned_first.update({stmt.var} - defined)
            defined.add(stmt.var)
        bound.update(dict.fromkeys(own))
        defined.update(own)
        if not isinstance(stmt, ir.AssignStmt):
            early.update(var for expr in exprs_of(stmt) for var in vars_in(expr) if var not in defined)
        closes = isinstance(stmt, ir.ForStmt | ir.WhileStmt | ir.IfStmt) and bool(stmt.return_vars_)
        pending += [(inner, is_closed or closes) for inner in reversed(substatements(stmt))]
    elsewhere = assigned_first.difference(_named_by_scopes(body))
    return tuple(var for var in bound if var not in early and var not in elsewhere)


def _named_by_scopes(body: ir.Stmt) -> set[ir.Var]:
    """Return the task ids and indices that a statement assigns although a scope binds them."""
    return {var for stmt in walk_stmts(body) if isinstance(stmt, ir.ScopeStmt) for var in _bound_by(stmt)}


def _bound_by(stmt: ir.Stmt) -> tuple[ir.Var, ...]:
    if isinstance(stmt, ir.ForStmt):
        return (stmt.loop_var, *stmt.iter_args_, *stmt.return_vars_)
    if isinstance(stmt, ir.WhileStmt):
        return (*stmt.iter_args_, *stmt.return_vars_)
    if isinstance(stmt, ir.IfStmt):
        return stmt.return_vars_
    if isinstance(stmt, ir.SpmdScopeStmt):
        return (*_task_id(stmt), *_block_index(stmt))
    if isinstance(stmt, ir.SplitAivScopeStmt):
        return _leading_binding(stmt.body, _LANE_INDEX)
    return _task_id(stmt) if isinstance(stmt, ir.ScopeStmt) else ()


def _task_id(scope: ir.ScopeStmt) -> tuple[ir.Var, ...]:
    var = scope.attrs_.get("task_id_var")
    return (var,) if isinstance(var, ir.Var) else ()


def _block_index(scope: ir.SpmdScopeStmt) -> tuple[ir.Var, ...]:
    """Return the loop variable of `for i in pl.spmd(n)`: the first assignment of the kernel inside."""
    kernel = scope.body
    return _leading_binding(kernel.body, _BLOCK_INDEX) if isinstance(kernel, ir.InCoreScopeStmt) else ()


def _leading_binding(body: ir.Stmt, operator: str) -> tuple[ir.Var, ...]:
    """Return the variable of a first statement `v = operator()`."""
    first = next(iter(ir.flatten_to_stmts(body)), None)
    if isinstance(first, ir.AssignStmt) and isinstance(first.value, ir.Call):
        return (first.var,) if first.value.op.name == operator else ()
    return ()


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
