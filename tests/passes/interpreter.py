"""Runs scalar functions of the IR on Python numbers: the meaning that front-end passes must keep.

It knows both forms of control flow: assignments to the same variable (before SSA form), and carried values
with yields (SSA form). Functions of the program can be called. Reading a variable that has no value is an
error.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from pypto import ir

STEP_LIMIT = 20_000


class OutOfSteps(Exception):
    """The program runs longer than a test should."""


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


class _Return(Exception):
    def __init__(self, values: list[Any]) -> None:
        super().__init__()
        self.values = values


_BINARY: dict[type[ir.Expr], Callable[[Any, Any], Any]] = {
    ir.Add: operator.add,
    ir.Sub: operator.sub,
    ir.Mul: operator.mul,
    ir.FloorDiv: operator.floordiv,
    ir.FloorMod: operator.mod,
    ir.Min: min,
    ir.Max: max,
    ir.Pow: operator.pow,
    ir.Eq: operator.eq,
    ir.Ne: operator.ne,
    ir.Lt: operator.lt,
    ir.Le: operator.le,
    ir.Gt: operator.gt,
    ir.Ge: operator.ge,
    ir.And: lambda a, b: a and b,
    ir.Or: lambda a, b: a or b,
    ir.Xor: operator.xor,
    ir.BitAnd: operator.and_,
    ir.BitOr: operator.or_,
    ir.BitXor: operator.xor,
    ir.BitShiftLeft: operator.lshift,
    ir.BitShiftRight: operator.rshift,
}
_UNARY: dict[type[ir.Expr], Callable[[Any], Any]] = {
    ir.Neg: operator.neg,
    ir.Not: operator.not_,
    ir.Abs: abs,
    ir.BitNot: operator.invert,
    ir.Cast: int,
}


def run_function(program: ir.Program, name: str, args: Sequence[Any]) -> list[Any]:
    """Return what a function returns for these arguments."""
    return _Run(program).call(name, args)


def evaluate(expr: ir.Expr, values: dict[ir.Var, Any]) -> Any:
    """Return the value of a scalar expression."""
    run = _Run(None)
    run.values = dict(values)
    return run.expr(expr)


class _Run:
    def __init__(self, program: ir.Program | None) -> None:
        self.program = program
        self.values: dict[ir.Var, Any] = {}
        self.steps = 0

    def call(self, name: str, args: Sequence[Any]) -> list[Any]:
        assert self.program is not None
        function = self.program.functions_[name]
        outer, self.values = self.values, dict(zip(function.params_, args, strict=True))
        try:
            self.stmt(function.body)
        except _Return as result:
            return result.values
        finally:
            self.values = outer
        return []

    def stmt(self, stmt: ir.Stmt) -> list[Any]:
        """Run a statement; return what its trailing yield gives."""
        self.steps += 1
        if self.steps > STEP_LIMIT:
            raise OutOfSteps
        if isinstance(stmt, ir.SeqStmts):
            yielded: list[Any] = []
            for inner in stmt.stmts_:
                yielded = self.stmt(inner)
            return yielded
        if isinstance(stmt, ir.AssignStmt):
            self.values[stmt.var] = self.expr(stmt.value)
        elif isinstance(stmt, ir.EvalStmt):
            self.expr(stmt.expr)
        elif isinstance(stmt, ir.YieldStmt):
            return [self.expr(value) for value in stmt.value_]
        elif isinstance(stmt, ir.ReturnStmt):
            raise _Return([self.expr(value) for value in stmt.value_])
        elif isinstance(stmt, ir.IfStmt):
            body = stmt.then_body if self.expr(stmt.condition) else stmt.else_body
            yielded = self.stmt(body) if body is not None else []
            self.values.update(zip(stmt.return_vars_, yielded, strict=bool(stmt.return_vars_)))
        elif isinstance(stmt, ir.ForStmt):
            bounds = [self.expr(each) for each in (stmt.start, stmt.stop, stmt.step)]
            trips = iter(range(*bounds))
            self.loop(stmt, lambda: self.next_trip(stmt, trips))
        elif isinstance(stmt, ir.WhileStmt):
            self.loop(stmt, lambda: self.expr(stmt.condition))
        elif isinstance(stmt, ir.ScopeStmt):
            return self.stmt(stmt.body)
        elif isinstance(stmt, ir.BreakStmt):
            raise _Break
        elif isinstance(stmt, ir.ContinueStmt):
            raise _Continue
        else:
            raise AssertionError(f"cannot run {type(stmt).__name__}")
        return []

    def next_trip(self, loop: ir.ForStmt, trips: Any) -> bool:
        for value in trips:
            self.values[loop.loop_var] = value
            return True
        return False

    def loop(self, loop: ir.ForStmt | ir.WhileStmt, enters: Callable[[], Any]) -> None:
        carried = [self.expr(each.initValue) for each in loop.iter_args_]
        self.values.update(zip(loop.iter_args_, carried, strict=True))
        while enters():
            try:
                yielded = self.stmt(loop.body)
            except _Break:
                break
            except _Continue:
                continue
            self.values.update(zip(loop.iter_args_, yielded, strict=bool(loop.iter_args_)))
        results = [self.values[each] for each in loop.iter_args_]
        self.values.update(zip(loop.return_vars_, results, strict=True))

    def expr(self, expr: ir.Expr) -> Any:
        if isinstance(expr, ir.ConstInt | ir.ConstFloat | ir.ConstBool):
            return expr.value
        if isinstance(expr, ir.Var):
            return self.values[expr]
        if isinstance(expr, ir.BinaryExpr):
            return _BINARY[type(expr)](self.expr(expr.left), self.expr(expr.right))
        if isinstance(expr, ir.UnaryExpr):
            return _UNARY[type(expr)](self.expr(expr.operand))
        if isinstance(expr, ir.MakeTuple):
            return [self.expr(element) for element in expr.elements_]
        if isinstance(expr, ir.TupleGetItemExpr):
            return self.expr(expr.tuple)[expr.index]
        if isinstance(expr, ir.Call):
            values = self.call(expr.op.name, [self.expr(argument) for argument in expr.args_])
            return values if isinstance(expr.type, ir.TupleType) else values[0] if values else None
        raise AssertionError(f"cannot evaluate {type(expr).__name__}")
