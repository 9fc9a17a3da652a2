"""Removal of scalars and `if` results that nothing uses.

A scalar assignment goes if its variable is unused and its value contains no call. An unused result of an
`if` goes with its slot in both yields. Both are counted on one set of use counts: what a removed thing
used is released, until nothing more can go; then the function is rebuilt once.

The read of a task id from the result of a submit stays: outlining and code generation look for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from pypto import ir
from pypto.ir.walk import vars_in, walk, walk_stmts


def remove_unused(function: ir.Function) -> ir.Function:
    """Return the function without unused scalars and `if` results; the same object if it has none."""
    assigns: dict[ir.Var, list[ir.AssignStmt]] = {}
    results: dict[ir.Var, tuple[ir.Expr, ...]] = {}  # what the branches yield for each
    for stmt in walk_stmts(function.body):
        if isinstance(stmt, ir.AssignStmt):
            if isinstance(stmt.var.type, ir.ScalarType) and _is_removable(stmt):
                assigns.setdefault(stmt.var, []).append(stmt)
        elif isinstance(stmt, ir.IfStmt) and stmt.return_vars_:
            results.update(_results_of(stmt))
    if not assigns and not results:
        return function

    uses = Counter(_used_vars(function))
    dead_vars: set[ir.Var] = set()
    pending = [var for var in (*assigns, *results) if not uses[var]]
    while pending:
        var = pending.pop()
        if var in dead_vars:
            continue
        dead_vars.add(var)
        values = [*(stmt.value for stmt in assigns.get(var, ())), *results.get(var, ())]
        for released in (used for value in values for used in vars_in(value, types=True)):
            uses[released] -= 1
            if not uses[released] and (released in assigns or released in results):
                pending.append(released)
    if not dead_vars:
        return function
    return function.replace(body=_without(function.body, dead_vars))


def _is_removable(stmt: ir.AssignStmt) -> bool:
    value = stmt.value
    if (
        isinstance(value, ir.TupleGetItemExpr)
        and isinstance(value.type, ir.ScalarType)
        and value.type.dtype == ir.DataType.TASK_ID
    ):
        return False
    return not _has_call(value)


def _has_call(value: ir.Expr) -> bool:
    return any(isinstance(node, ir.Call | ir.Submit) for node in walk(value, once=True))


def _results_of(stmt: ir.IfStmt) -> Iterator[tuple[ir.Var, tuple[ir.Expr, ...]]]:
    """Yield the results of an `if`, with the values that the two branches give them; none with a call."""
    yields = [ir.get_last_yield_stmt(body) for body in (stmt.then_body, stmt.else_body) if body is not None]
    count = len(stmt.return_vars_)
    complete = [y for y in yields if y is not None and len(y.value_) == count]
    if len(complete) != 2:
        return
    for index, var in enumerate(stmt.return_vars_):
        values = tuple(each.value_[index] for each in complete)
        if not any(_has_call(value) for value in values):
            yield var, values


def _used_vars(function: ir.Function) -> Iterator[ir.Var]:
    """Yield every use of a variable, those in types of definitions included, definitions themselves not."""
    for type_ in (*(param.type for param in function.params_), *function.return_types_):
        yield from _vars_of_type(type_)
    for value in function.attrs_.values():
        yield from _vars_of_attr(value)
    for stmt in walk_stmts(function.body):
        defined = _definitions(stmt)
        for var in defined:
            yield from _vars_of_type(var.type)
        for used in _operands(stmt):
            yield from vars_in(used, types=True)


def _operands(stmt: ir.Stmt) -> Iterable[ir.Expr]:
    if isinstance(stmt, ir.AssignStmt):
        return (stmt.value,)
    if isinstance(stmt, ir.ForStmt):
        initial = (each.initValue for each in stmt.iter_args_)
        references = (value for value in stmt.attrs_.values() if isinstance(value, ir.Expr))
        return (stmt.start, stmt.stop, stmt.step, *initial, *references)
    if isinstance(stmt, ir.WhileStmt):
        return (stmt.condition, *(each.initValue for each in stmt.iter_args_))
    if isinstance(stmt, ir.IfStmt):
        return (stmt.condition,)
    return (child for child in stmt._children() if isinstance(child, ir.Expr))


def _definitions(stmt: ir.Stmt) -> Iterable[ir.Var]:
    if isinstance(stmt, ir.AssignStmt):
        return (stmt.var,)
    if isinstance(stmt, ir.ForStmt):
        return (stmt.loop_var, *stmt.iter_args_, *stmt.return_vars_)
    if isinstance(stmt, ir.WhileStmt):
        return (*stmt.iter_args_, *stmt.return_vars_)
    return stmt.return_vars_ if isinstance(stmt, ir.IfStmt) else ()


def _vars_of_type(type_: ir.Type) -> Iterator[ir.Var]:
    for expr in type_._children():
        yield from vars_in(expr, types=True)


def _vars_of_attr(value: object) -> Iterator[ir.Var]:
    for each in value if isinstance(value, tuple) else (value,):
        if isinstance(each, ir.Expr):
            yield from vars_in(each, types=True)


def _without(stmt: ir.Stmt, dead: set[ir.Var]) -> ir.Stmt:
    """Rebuild a statement without the assignments and results of dead variables."""
    if isinstance(stmt, ir.SeqStmts):
        kept = [_without(inner, dead) for inner in stmt.stmts_ if not _assigns(inner, dead)]
        if len(kept) == len(stmt.stmts_) and all(a is b for a, b in zip(kept, stmt.stmts_, strict=True)):
            return stmt
        return ir.flatten_stmts(kept, stmt.span)
    if _assigns(stmt, dead):
        return ir.SeqStmts([], stmt.span)
    if isinstance(stmt, ir.IfStmt):
        kept_slots = [i for i, var in enumerate(stmt.return_vars_) if var not in dead]
        then_body = _without(stmt.then_body, dead)
        else_body = _without(stmt.else_body, dead) if stmt.else_body is not None else None
        if len(kept_slots) != len(stmt.return_vars_):
            then_body = _keep_slots(then_body, kept_slots)
            else_body = _keep_slots(else_body, kept_slots) if else_body is not None else None
        return stmt.replace(
            then_body=then_body,
            else_body=else_body,
            return_vars=[stmt.return_vars_[i] for i in kept_slots],
        )
    if isinstance(stmt, ir.ForStmt | ir.WhileStmt | ir.ScopeStmt):
        return stmt.replace(body=_without(stmt.body, dead))
    return stmt


def _assigns(stmt: ir.Stmt, dead: set[ir.Var]) -> bool:
    return isinstance(stmt, ir.AssignStmt) and stmt.var in dead


def _keep_slots(body: ir.Stmt, slots: list[int]) -> ir.Stmt:
    """Reduce the trailing yield of a branch to some of its values; without values it goes."""
    stmts = ir.flatten_to_stmts(body)
    last = stmts[-1]
    if isinstance(last, ir.YieldStmt):
        stmts[-1:] = [last.replace(value=[last.value_[i] for i in slots])] if slots else []
    else:
        assert isinstance(last, ir.ScopeStmt)
        stmts[-1] = last.replace(body=_keep_slots(last.body, slots))
    return ir.flatten_stmts(stmts, body.span)
