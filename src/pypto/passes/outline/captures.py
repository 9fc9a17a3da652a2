"""What a scope body reads from outside: the parameters of the function that it becomes.

The order of first reads is the order of the parameters, so it is part of the result. A variable that occurs
only inside a type is not read: the outlined function's types keep naming the caller's symbol.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pypto import ir
from pypto.ir.node import attr_references
from pypto.ir.walk import vars_in

__all__ = ["Captures", "find_captures"]


@dataclass(frozen=True, slots=True)
class Captures:
    """The captured variables in first-read order; `positions` maps each to its place in that order."""

    vars: tuple[ir.Var, ...]
    positions: Mapping[ir.Var, int]

    def __contains__(self, var: ir.Var) -> bool:
        return var in self.positions


def find_captures(body: ir.Stmt) -> Captures:
    """Return the variables that `body` reads before it defines them."""
    reads = _FirstReads()
    reads.visit(body)
    return Captures(tuple(reads.captured), reads.captured)


class _FirstReads:
    """Walks statements in execution order and notes each read of a variable that is not defined yet."""

    __slots__ = ("_defined", "_trail", "captured")

    def __init__(self) -> None:
        self.captured: dict[ir.Var, int] = {}
        self._defined: set[ir.Var] = set()
        self._trail: list[
            ir.Var
        ] = []  # what `_defined` gained, in order: a branch is undone by its end of the trail

    def visit(self, stmt: ir.Stmt) -> None:
        match stmt:
            case ir.AssignStmt():
                self._read((stmt.value,))
                self._define((stmt.var,))
            case ir.EvalStmt():
                self._read((stmt.expr,))
            case ir.SeqStmts():
                for inner in stmt.stmts_:
                    self.visit(inner)
            case ir.YieldStmt() | ir.ReturnStmt():
                self._read(stmt.value_)
            case ir.ForStmt():
                self._read(arg.initValue for arg in stmt.iter_args_)
                self._define((stmt.loop_var, *stmt.return_vars_, *stmt.iter_args_))
                self._read((stmt.start, stmt.stop, stmt.step, *attr_references(stmt.attrs_)))
                self.visit(stmt.body)
            case ir.WhileStmt():
                self._read(arg.initValue for arg in stmt.iter_args_)
                self._define((*stmt.return_vars_, *stmt.iter_args_))
                self._read((stmt.condition,))
                self.visit(stmt.body)
            case ir.IfStmt():
                self._read((stmt.condition,))
                self._define(stmt.return_vars_)
                self._visit_branches(stmt)
            case ir.ScopeStmt():
                self._read(_scope_operands(stmt))
                self.visit(stmt.body)

    def _visit_branches(self, stmt: ir.IfStmt) -> None:
        """Walk both branches from the same state; afterwards only what both define stays defined."""
        mark = len(self._trail)
        self.visit(stmt.then_body)
        in_then = self._undo(mark)
        if stmt.else_body is not None:
            self.visit(stmt.else_body)
        in_else = self._undo(mark)
        self._define(var for var in in_else if var in in_then)

    def _undo(self, mark: int) -> dict[ir.Var, None]:
        gained = dict.fromkeys(self._trail[mark:])
        del self._trail[mark:]
        self._defined.difference_update(gained)
        return gained

    def _read(self, exprs: Iterable[ir.Expr]) -> None:
        for expr in exprs:
            for var in vars_in(expr):
                if var not in self._defined and var not in self.captured:
                    self.captured[var] = len(self.captured)

    def _define(self, variables: Iterable[ir.Var]) -> None:
        for var in variables:
            if var not in self._defined:
                self._defined.add(var)
                self._trail.append(var)


def _scope_operands(scope: ir.ScopeStmt) -> Iterable[ir.Expr]:
    """What a nested scope reads before its body. Dump lists of clusters and runtime scopes read nothing."""
    match scope:
        case ir.SpmdScopeStmt():
            return (scope.core_num, *attr_references(scope.attrs_))
        case ir.InCoreScopeStmt() | ir.HierarchyScopeStmt() | ir.SplitAivScopeStmt():
            return tuple(attr_references(scope.attrs_))
    return ()
