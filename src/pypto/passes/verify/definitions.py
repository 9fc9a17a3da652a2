"""Which variables are defined where a function uses them.

`DefinitionWalk` goes through a function in program order and reports each use of a variable that is not
defined at that place. The caller decides which compound statements let the definitions of their bodies out:
none in SSA form; before SSA form those without return vars. A variable inside a type is used there; what the
signature mentions is defined everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from pypto import ir
from pypto.ir.rewrite import is_static_type
from pypto.ir.walk import vars_in

Report = Callable[[ir.Var, ir.Span], None]


def definitions_of(stmt: ir.Stmt) -> Iterator[ir.Var]:
    """Yield what a statement itself defines: targets, loop variables, iter_args, return vars."""
    if isinstance(stmt, ir.AssignStmt):
        yield stmt.var
    elif isinstance(stmt, ir.ForStmt):
        yield stmt.loop_var
        yield from stmt.iter_args_
        yield from stmt.return_vars_
    elif isinstance(stmt, ir.WhileStmt):
        yield from stmt.iter_args_
        yield from stmt.return_vars_
    elif isinstance(stmt, ir.IfStmt):
        yield from stmt.return_vars_


class DefinitionWalk:
    """One walk over one function.

    Args:
        function: the function to check.
        leaks: says of a loop or `if` whether definitions in its bodies are visible after it.
        report: called with each variable used where it is not defined, and the place of the use.
    """

    def __init__(self, function: ir.Function, leaks: Callable[[ir.Stmt], bool], report: Report) -> None:
        self._function = function
        self._leaks = leaks
        self._report = report
        self._defined: set[ir.Var] = set()
        self._trail: list[ir.Var] = []

    def run(self) -> None:
        """Walk the function."""
        function = self._function
        for param in function.params_:
            self._define(param)
        self._define_symbols(param.type for param in function.params_)
        self._define_symbols(function.return_types_)
        for value in function.attrs_.values():
            for each in value if isinstance(value, tuple) else (value,):
                if isinstance(each, ir.Expr):
                    self._use(each, function.span)
        self._stmt(function.body)

    def _define(self, var: ir.Var) -> None:
        if var not in self._defined:
            self._defined.add(var)
            self._trail.append(var)

    def _define_symbols(self, types: Iterable[ir.Type]) -> None:
        for type_ in types:
            if not is_static_type(type_):
                for var in _vars_of_type(type_):
                    self._define(var)

    def _define_typed(self, var: ir.Var, span: ir.Span) -> None:
        self._use_type(var.type, span)
        self._define(var)

    def _use(self, expr: ir.Expr, span: ir.Span) -> None:
        for var in vars_in(expr):
            if var not in self._defined and not isinstance(var, ir.MemRef | ir.WindowBuffer):
                self._report(var, expr.span if expr.span.is_valid() else span)
        if isinstance(expr, ir.Call | ir.Submit):
            self._use_type(expr.type, span)

    def _use_type(self, type_: ir.Type, span: ir.Span) -> None:
        if is_static_type(type_):
            return
        for var in _vars_of_type(type_):
            if var not in self._defined:
                self._report(var, span)

    def _region(self, body: ir.Stmt, local: Iterable[ir.Var], *, leaks: bool, span: ir.Span) -> None:
        """Walk a body with variables of its own; its definitions end with it unless they leak."""
        mark = len(self._trail)
        local = list(local)
        for var in local:
            self._define_typed(var, span)
        self._stmt(body)
        if leaks:
            self._forget(local)
            return
        for var in self._trail[mark:]:
            self._defined.discard(var)
        del self._trail[mark:]

    def _forget(self, variables: Iterable[ir.Var]) -> None:
        for var in variables:
            self._defined.discard(var)

    def _stmt(self, stmt: ir.Stmt) -> None:
        span = stmt.span
        if isinstance(stmt, ir.SeqStmts):
            for inner in stmt.stmts_:
                self._stmt(inner)
        elif isinstance(stmt, ir.AssignStmt):
            self._use(stmt.value, span)
            self._define_typed(stmt.var, span)
        elif isinstance(stmt, ir.ForStmt):
            self._use_all((stmt.start, stmt.stop, stmt.step), span)
            self._use_all((each.initValue for each in stmt.iter_args_), span)
            self._region(stmt.body, (stmt.loop_var, *stmt.iter_args_), leaks=self._leaks(stmt), span=span)
            self._define_results(stmt.return_vars_, span)
        elif isinstance(stmt, ir.WhileStmt):
            self._use_all((each.initValue for each in stmt.iter_args_), span)
            for iter_arg in stmt.iter_args_:
                self._define_typed(iter_arg, span)
            self._use(stmt.condition, span)
            self._region(stmt.body, (), leaks=self._leaks(stmt), span=span)
            self._forget(stmt.iter_args_)
            self._define_results(stmt.return_vars_, span)
        elif isinstance(stmt, ir.IfStmt):
            self._if(stmt)
        elif isinstance(stmt, ir.ScopeStmt):
            self._use_all((child for child in stmt._children() if isinstance(child, ir.Expr)), span)
            self._stmt(stmt.body)
        else:
            self._use_all((child for child in stmt._children() if isinstance(child, ir.Expr)), span)

    def _if(self, stmt: ir.IfStmt) -> None:
        self._use(stmt.condition, stmt.span)
        leaks = self._leaks(stmt)
        bodies = [body for body in (stmt.then_body, stmt.else_body) if body is not None]
        leaked: list[ir.Var] = []
        for body in bodies:
            mark = len(self._trail)
            self._stmt(body)
            new = self._trail[mark:]
            self._forget(new)
            del self._trail[mark:]
            leaked += new
        if leaks:
            for var in leaked:
                self._define(var)
        self._define_results(stmt.return_vars_, stmt.span)

    def _define_results(self, variables: Iterable[ir.Var], span: ir.Span) -> None:
        for var in variables:
            self._define_typed(var, span)

    def _use_all(self, exprs: Iterable[ir.Expr], span: ir.Span) -> None:
        for expr in exprs:
            self._use(expr, span)


def _vars_of_type(type_: ir.Type) -> Iterator[ir.Var]:
    for expr in type_._children():
        for var in vars_in(expr):
            if not isinstance(var, ir.MemRef | ir.WindowBuffer):
                yield var
