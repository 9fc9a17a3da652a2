"""InOutUseDiscipline: after a call has written a variable in place, its old name is not read.

The walk keeps the variables that are *dead*: passed to a function at an Out or InOut parameter, and not
assigned since. Reading one is an error. Builtin operators and submits kill nothing. Group and Spmd functions
are wrappers that forward their parameters, and are skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pypto import ir
from pypto.ir.walk import vars_in, walk
from pypto.passes.diagnostics import Diagnostic, error

RULE = "InOutUseDiscipline"
_WRAPPERS = (ir.FunctionType.Group, ir.FunctionType.Spmd)


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return the reads of overwritten variables."""
    return [
        each
        for function in program.functions_.values()
        if function.func_type not in _WRAPPERS
        for each in check_region(function.body, program)
    ]


def check_region(region: ir.Stmt, program: ir.Program) -> list[Diagnostic]:
    """Return the reads of overwritten variables in one region."""
    if not any(_has_outputs(function) for function in program.functions_.values()):
        return []
    walk_ = _DeadVars(program.functions_)
    walk_.stmt(region)
    return walk_.found


def _has_outputs(function: ir.Function) -> bool:
    return any(direction is not ir.ParamDirection.In for direction in function.param_directions_)


class _DeadVars:
    """The walk in program order; `_dead` maps a dead variable to the call that overwrote it.

    Changes are journalled, so that a branch is undone without copying.
    """

    def __init__(self, functions: Mapping[str, ir.Function]) -> None:
        self.found: list[Diagnostic] = []
        self._functions = functions
        self._dead: dict[ir.Var, ir.Span] = {}
        self._journal: list[tuple[ir.Var, ir.Span | None]] = []
        self._is_collecting = False

    def stmt(self, stmt: ir.Stmt) -> None:
        """Check a statement and what is inside it."""
        if isinstance(stmt, ir.SeqStmts):
            for inner in stmt.stmts_:
                self.stmt(inner)
        elif isinstance(stmt, ir.AssignStmt):
            self._read(stmt.value)
            self._kill(stmt.value)
            self._revive((stmt.var,))
        elif isinstance(stmt, ir.ForStmt):
            self._read_all((stmt.start, stmt.stop, stmt.step))
            self._loop(stmt)
        elif isinstance(stmt, ir.WhileStmt):
            self._loop(stmt)
        elif isinstance(stmt, ir.IfStmt):
            self._if(stmt)
        elif isinstance(stmt, ir.ScopeStmt):
            self._read_all(child for child in stmt._children() if isinstance(child, ir.Expr))
            self.stmt(stmt.body)
        else:
            operands = [child for child in stmt._children() if isinstance(child, ir.Expr)]
            self._read_all(operands)
            for operand in operands:
                self._kill(operand)

    def _loop(self, loop: ir.ForStmt | ir.WhileStmt) -> None:
        self._read_all(each.initValue for each in loop.iter_args_)
        carried = set(loop.iter_args_)
        for var, span in self._kills_inside(loop.body):
            if var not in carried:
                self._set(var, span)
        self._revive(loop.iter_args_)  # an outer loop comes here again, with new values
        if isinstance(loop, ir.WhileStmt):
            self._read(loop.condition)
        self.stmt(loop.body)
        self._revive(loop.return_vars_)

    def _kills_inside(self, body: ir.Stmt) -> list[tuple[ir.Var, ir.Span]]:
        """Return what one iteration leaves dead, so that the next one starts with it.

        While collecting for an outer loop, inner loops are gone through once.
        """
        if self._is_collecting:
            return []
        mark, found = len(self._journal), self.found
        self.found, self._is_collecting = [], True
        self.stmt(body)
        left = [(var, self._dead[var]) for var, _ in self._journal[mark:] if var in self._dead]
        self._undo(mark)
        self.found, self._is_collecting = found, False
        return left

    def _if(self, stmt: ir.IfStmt) -> None:
        self._read(stmt.condition)
        changed: dict[ir.Var, ir.Span] = {}
        revived: list[set[ir.Var]] = []
        bodies = [stmt.then_body] if stmt.else_body is None else [stmt.then_body, stmt.else_body]
        for body in bodies:
            mark = len(self._journal)
            self.stmt(body)
            touched = {var for var, _ in self._journal[mark:]}
            changed.update({var: self._dead[var] for var in touched if var in self._dead})
            revived.append({var for var in touched if var not in self._dead})
            self._undo(mark)
        if len(bodies) == 2:
            self._revive(revived[0] & revived[1])
        for var, span in changed.items():
            self._set(var, span)
        self._revive(stmt.return_vars_)

    def _read_all(self, exprs: Iterable[ir.Expr]) -> None:
        for expr in exprs:
            self._read(expr)

    def _read(self, expr: ir.Expr) -> None:
        if not self._dead:
            return
        for var in vars_in(expr):
            span = self._dead.get(var)
            if span is not None:
                message = (
                    f"variable '{var.name_hint}' was passed as InOut/Out at {span}; "
                    "read the post-call return value instead of the pre-call variable"
                )
                self.found.append(error(RULE, 0, message, expr.span))

    def _kill(self, expr: ir.Expr) -> None:
        for call in _program_calls(expr):
            callee = self._functions.get(call.op.name)
            if callee is None:
                continue
            for argument, direction in zip(call.args_, callee.param_directions_, strict=False):
                if direction is not ir.ParamDirection.In and isinstance(argument, ir.Var):
                    self._set(argument, call.span)

    def _revive(self, variables: Iterable[ir.Var]) -> None:
        for var in variables:
            if var in self._dead:
                self._journal.append((var, self._dead.pop(var)))
            else:
                self._journal.append((var, None))

    def _set(self, var: ir.Var, span: ir.Span) -> None:
        self._journal.append((var, self._dead.get(var)))
        self._dead[var] = span

    def _undo(self, mark: int) -> None:
        while len(self._journal) > mark:
            var, before = self._journal.pop()
            if before is None:
                self._dead.pop(var, None)
            else:
                self._dead[var] = before


def _program_calls(expr: ir.Expr) -> Iterator[ir.Call]:
    if isinstance(expr, ir.Var):
        return
    for node in walk(expr, once=True):
        if isinstance(node, ir.Call) and isinstance(node.op, ir.GlobalVar):
            yield node
