"""SSAVerify: every variable assigned once, used inside its scope, and every carried value yielded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from pypto import ir
from pypto.ir.walk import walk_stmts
from pypto.passes.diagnostics import Diagnostic, error
from pypto.passes.verify.codes import SSAErrorType
from pypto.passes.verify.definitions import DefinitionWalk

_RULE = "SSAVerify"


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return the violations of SSA form."""
    found: list[Diagnostic] = []
    for function in program.functions_.values():
        found += _scope_violations(function)
        found += _yield_violations(function)
        found += _repeated_assignments(function)
    return found


def _error(kind: SSAErrorType, message: str, span: ir.Span) -> Diagnostic:
    return error(_RULE, kind.value, message, span)


def _scope_violations(function: ir.Function) -> list[Diagnostic]:
    found: list[Diagnostic] = []

    def report(var: ir.Var, span: ir.Span) -> None:
        message = f"Variable '{var.name_hint}' used outside its defining scope"
        found.append(_error(SSAErrorType.SCOPE_VIOLATION, message, span))

    DefinitionWalk(function, leaks=lambda stmt: False, report=report).run()
    return found


def _repeated_assignments(function: ir.Function) -> Iterator[Diagnostic]:
    counts: Counter[ir.Var] = Counter()
    for stmt in walk_stmts(function.body):
        counts.update(_assigned_by(stmt))
    for var, count in counts.items():
        if count > 1:
            yield _error(
                SSAErrorType.MULTIPLE_ASSIGNMENT,
                f"Variable '{var.name_hint}' is assigned more than once ({count} times), "
                f"violating SSA form\nIn function '{function.name}':\n{function.as_python(format=False)}",
                var.span,
            )


def _assigned_by(stmt: ir.Stmt) -> Iterable[ir.Var]:
    """Return what counts as an assignment; a loop variable and iter_args belong to their loop's body."""
    if isinstance(stmt, ir.AssignStmt):
        return (stmt.var,)
    return stmt.return_vars_ if isinstance(stmt, ir.ForStmt | ir.WhileStmt | ir.IfStmt) else ()


def _yield_violations(function: ir.Function) -> Iterator[Diagnostic]:
    for stmt in walk_stmts(function.body):
        if isinstance(stmt, ir.ForStmt | ir.WhileStmt):
            yield from _loop_violations(stmt)
        elif isinstance(stmt, ir.IfStmt) and stmt.return_vars_:
            yield from _branch_violations(stmt)


def _loop_violations(loop: ir.ForStmt | ir.WhileStmt) -> Iterator[Diagnostic]:
    kind = type(loop).__name__
    carried, results = len(loop.iter_args_), len(loop.return_vars_)
    if carried != results:
        yield _error(
            SSAErrorType.ITER_ARGS_RETURN_VARS_MISMATCH,
            f"{kind} has {carried} iter_args but {results} return_vars",
            loop.span,
        )
    if carried:
        yield from _body_violations(loop.body, carried, f"{kind} with iter_args", loop.span)


def _branch_violations(stmt: ir.IfStmt) -> Iterator[Diagnostic]:
    if stmt.else_body is None:
        yield _error(
            SSAErrorType.MISSING_YIELD, "IfStmt with return_vars must have an else branch", stmt.span
        )
    for name, body in (("then", stmt.then_body), ("else", stmt.else_body)):
        if body is not None:
            what = f"{name} branch of an IfStmt with return_vars"
            yield from _body_violations(body, len(stmt.return_vars_), what, stmt.span)


def _body_violations(body: ir.Stmt, count: int, what: str, span: ir.Span) -> Iterator[Diagnostic]:
    last = ir.get_last_yield_stmt(body)
    if last is None:
        yield _error(SSAErrorType.MISSING_YIELD, f"{what} must end in a YieldStmt", span)
    elif len(last.value_) != count:
        yield _error(
            SSAErrorType.YIELD_COUNT_MISMATCH,
            f"{what} yields {len(last.value_)} values, expected {count}",
            last.span,
        )
    for stmt in ir.flatten_to_stmts(body)[:-1]:
        if isinstance(stmt, ir.YieldStmt):
            yield _error(
                SSAErrorType.MISPLACED_YIELD, f"{what} has a YieldStmt before its last position", stmt.span
            )
