"""Simplify: constant folding, algebra, scalar constants, dead branches, trivial loops, dead scalars.

1. A scalar assigned once, at function level, from a constant is replaced by the constant everywhere, types
   included. Elsewhere only its range is remembered, and only inside the region that computes it.
2. A sequential loop without attributes that provably makes no trip becomes its initial values, one that
   provably makes one trip becomes its body unless a break or continue in it needs the loop.
3. An `if` whose condition is decided becomes one of its branches. Branches are simplified under their
   condition.
4. Statements of the function behind a return go: nothing reaches them.
5. What is unused afterwards goes (`simplification.unused`).

The pass is sound before SSA form too: a variable that is assigned more than once is never replaced, and
conditions on it are not used. Nor are conditions that call: memory may change in the branch.

An INDEX that comes from outside (a parameter, the result of a call) is taken for non-negative. One that is
computed is not: `d = i - 2` has the range of `i - 2`, and nothing is assumed of what loops and branches
hand on, nor of the parameters of a function that another one calls with what it computed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

from pypto import ir
from pypto.ir.arith import Analyzer, ConstIntBound
from pypto.ir.arith.const_int_bound import conjuncts
from pypto.ir.walk import type_exprs, vars_in, walk, walk_stmts
from pypto.passes.base import Pass, create_program_pass
from pypto.passes.escape_lowering import contains_escape
from pypto.passes.leading_comments import with_comments_first
from pypto.passes.simplification.expressions import Rewriting
from pypto.passes.simplification.unused import remove_unused
from pypto.passes.statement_lists import flat_stmts

_CONSTANTS = (ir.ConstInt, ir.ConstFloat, ir.ConstBool)
_EVERYTHING = ConstIntBound(ConstIntBound.kNegInf, ConstIntBound.kPosInf)


def simplify() -> Pass:
    """Make the Simplify pass."""
    return create_program_pass(_simplify_program, "Simplify")


def _simplify_program(program: ir.Program) -> ir.Program:
    called = _called(program)
    functions = [
        _simplify_function(function, name in called) for name, function in program.functions_.items()
    ]
    return program.replace(functions=functions)


def _called(program: ir.Program) -> set[str]:
    return {
        node.op.name
        for function in program.functions_.values()
        for node in walk(function.body, once=True)
        if isinstance(node, ir.Call | ir.Submit) and isinstance(node.op, ir.GlobalVar)
    }


def _simplify_function(function: ir.Function, is_called: bool) -> ir.Function:
    return remove_unused(_Simplification(function, is_called).run())


class _Simplification:
    """The walk over one function."""

    def __init__(self, function: ir.Function, is_called: bool) -> None:
        self._function = function
        self._is_called = is_called
        self._analyzer = Analyzer()
        self._rewriting = Rewriting(self._analyzer)
        self._folded: set[ir.Var] = set()
        self._depth = 0
        self._recorded: list[tuple[ir.Var, ConstIntBound | None]] = []
        self._definitions = _count_definitions(function)

    def run(self) -> ir.Function:
        """Simplify the body."""
        for var in _varying(self._function, self._definitions):
            self._analyzer.const_int_bound.update(var, _EVERYTHING)
        if self._is_called:  # with numbers that the callers compute
            for param in filter(_is_index, self._function.params_):
                self._analyzer.const_int_bound.update(param, _EVERYTHING)
        body = _until_return(self._body(self._function.body))
        return self._function.replace(body=body)

    def _is_stable(self, var: ir.Var) -> bool:
        """Say whether a variable has one definition, so that what is known of it stays true."""
        return self._definitions[var] <= 1

    # --- statements ---

    def _body(self, body: ir.Stmt) -> ir.Stmt:
        old = flat_stmts(body)
        new: list[ir.Stmt] = []
        changed = False
        for stmt in old:
            result = self._stmt(stmt)
            if isinstance(result, list):
                changed = True
                new += result
            else:
                changed = changed or result is not stmt
                new.append(result)
        return ir.flatten_stmts(new, body.span) if changed else body

    def _stmt(self, stmt: ir.Stmt) -> ir.Stmt | list[ir.Stmt]:
        """Return what the statement becomes; a list replaces it in its sequence."""
        if isinstance(stmt, ir.AssignStmt):
            return self._assign(stmt)
        if isinstance(stmt, ir.ForStmt):
            return self._for(stmt)
        if isinstance(stmt, ir.IfStmt):
            return self._if(stmt)
        if isinstance(stmt, ir.WhileStmt):
            return self._while(stmt)
        if isinstance(stmt, ir.ScopeStmt):
            return self._scope(stmt)
        if isinstance(stmt, ir.SeqStmts):
            return self._body(stmt)
        rebuilt: ir.Stmt = stmt._map_children(self._rewriting.expr, self._rewriting.type)
        return rebuilt

    def _assign(self, stmt: ir.AssignStmt) -> ir.Stmt:
        value = self._rewriting.expr(stmt.value)
        var = self._defined(stmt.var)
        if isinstance(var.type, ir.ScalarType) and self._is_stable(stmt.var):
            self._learn(stmt.var, var, value)
        if var is stmt.var and value is stmt.value:
            return stmt
        return stmt.replace(var=var, value=value)

    def _defined(self, var: ir.Var) -> ir.Var:
        """Return the variable to define in place of `var`: a new one if its type becomes simpler.

        The replacement holds for the rest of the function, also outside the region: the definition is there
        under the new variable only. A variable with several definitions keeps its type.
        """
        type_ = self._rewriting.type(var.type)
        if type_ is var.type or not self._is_stable(var):
            return var
        renamed: ir.Var = var.replace(type=type_)
        self._rewriting.replaced[var] = renamed
        return renamed

    def _learn(self, source: ir.Var, var: ir.Var, value: ir.Expr) -> None:
        if self._depth == 0 and isinstance(value, _CONSTANTS):
            self._rewriting.replaced[source] = value
            self._folded.add(source)
            return
        if isinstance(value, ir.Var | ir.BinaryExpr | ir.UnaryExpr | ir.ConstInt):
            self._record_bound(var, self._analyzer.const_int_bound(value))

    def _record_bound(self, var: ir.Var, bound: ConstIntBound) -> None:
        bounds = self._analyzer.const_int_bound
        self._recorded.append((var, bounds.get(var)))
        bounds.update(var, bound)

    @contextmanager
    def _region(self) -> Iterator[None]:
        """Enter a region: a level deeper, and forgetting its bounds at the end."""
        mark = len(self._recorded)
        self._depth += 1
        yield
        self._depth -= 1
        bounds = self._analyzer.const_int_bound
        while len(self._recorded) > mark:
            var, before = self._recorded.pop()
            if before is None:
                bounds.unbind(var)
            else:
                bounds.update(var, before)

    def _scope(self, scope: ir.ScopeStmt) -> ir.Stmt:
        changes: dict[str, Any] = {"attrs": self._rewriting.attrs(scope.attrs_)}
        if isinstance(scope, ir.SpmdScopeStmt):
            changes["core_num"] = self._rewriting.expr(scope.core_num)
            with self._region():
                changes["body"] = self._body(scope.body)
        else:
            changes["body"] = self._body(scope.body)
        if changes["attrs"] is scope.attrs_:
            del changes["attrs"]
        return scope.replace(**changes)

    # --- loops ---

    def _for(self, loop: ir.ForStmt) -> ir.Stmt | list[ir.Stmt]:
        expr = self._rewriting.expr
        start, stop, step = expr(loop.start), expr(loop.stop), expr(loop.step)
        if loop.kind is ir.ForKind.Sequential and not loop.attrs_ and self._proves_ge(step, 1):
            if self._analyzer.can_prove(ir.Le(stop, start, ir.DataType.BOOL, loop.span)):
                return self._no_trip(loop)
            if self._is_one_trip(loop, start, stop, step) and not _has_escape(loop):
                return self._one_trip(loop, start)
        iter_args = [self._iter_arg(each) for each in loop.iter_args_]
        with self._region():
            if self._is_stable(loop.loop_var):
                self._record_range(loop.loop_var, start, stop, step)
            body = self._body(loop.body)
        changes: dict[str, Any] = {}
        attrs = self._rewriting.attrs(loop.attrs_)
        if attrs is not loop.attrs_:
            changes["attrs"] = attrs
        return loop.replace(
            start=start,
            stop=stop,
            step=step,
            iter_args=iter_args,
            body=body,
            return_vars=[self._defined(var) for var in loop.return_vars_],
            **changes,
        )

    def _proves_ge(self, expr: ir.Expr, value: int) -> bool:
        return self._analyzer.can_prove_greater_equal(expr, value)

    def _record_range(self, var: ir.Var, start: ir.Expr, stop: ir.Expr, step: ir.Expr) -> None:
        """Remember the range of a loop variable, as far as start, stop and the sign of the step tell it."""
        first = self._analyzer.const_int_bound(start)
        last = self._analyzer.const_int_bound(stop)
        if self._proves_ge(step, 1):
            bound = ConstIntBound(first.min_value, _below(last.max_value))
        elif self._analyzer.can_prove_less(step, 0):
            bound = ConstIntBound(_above(last.min_value), first.max_value)
        else:
            bound = _EVERYTHING
        if bound.min_value <= bound.max_value:
            self._record_bound(var, bound)

    def _iter_arg(self, iter_arg: ir.IterArg) -> ir.IterArg:
        type_ = self._rewriting.type(iter_arg.type)
        initial = self._rewriting.expr(iter_arg.initValue)
        if type_ is iter_arg.type and initial is iter_arg.initValue:
            return iter_arg
        rebuilt = ir.IterArg(iter_arg.name_hint, type_, initial, iter_arg.span)
        if _is_index(rebuilt):
            self._analyzer.const_int_bound.update(rebuilt, _EVERYTHING)
        self._rewriting.replaced[iter_arg] = rebuilt
        return rebuilt

    def _no_trip(self, loop: ir.ForStmt) -> list[ir.Stmt]:
        results = zip(loop.return_vars_, loop.iter_args_, strict=True)
        assigns = [self._assign(ir.AssignStmt(var, arg.initValue, loop.span)) for var, arg in results]
        return with_comments_first(assigns, loop.leading_comments)

    def _is_one_trip(self, loop: ir.ForStmt, start: ir.Expr, stop: ir.Expr, step: ir.Expr) -> bool:
        """Say whether the loop runs once, and start and initial values may stand for what they initialise."""
        bool_ = ir.DataType.BOOL
        enters = ir.Lt(start, stop, bool_, loop.span)
        ends = ir.Le(stop, ir.add(start, step, loop.span), bool_, loop.span)
        if not (self._analyzer.can_prove(enters) and self._analyzer.can_prove(ends)):
            return False
        values = (start, *(each.initValue for each in loop.iter_args_))
        return (
            self._is_stable(loop.loop_var)
            and all(self._is_stable(var) for value in values for var in vars_in(value))
            and not (loop.return_vars_ and ir.get_last_yield_stmt(loop.body) is None)
        )

    def _one_trip(self, loop: ir.ForStmt, start: ir.Expr) -> list[ir.Stmt]:
        before = self._bound(loop.loop_var, start)
        for iter_arg in loop.iter_args_:
            before += self._bound(iter_arg, self._rewriting.expr(iter_arg.initValue))
        stmts = self._unwrapped(loop.body, loop.return_vars_, [])
        return with_comments_first([*before, *stmts], loop.leading_comments)

    def _unwrapped(
        self, body: ir.Stmt, return_vars: tuple[ir.Var, ...], comments: list[str]
    ) -> list[ir.Stmt]:
        """Return the statements of a body that replaces its loop or branch; its results become its values."""
        stmts, values = _split_yield(flat_stmts(self._body(body)))
        if return_vars:
            for var, value in zip(return_vars, values, strict=True):
                stmts += self._bound(var, value)
        return with_comments_first(stmts, comments)

    def _bound(self, var: ir.Var, value: ir.Expr) -> list[ir.Stmt]:
        """Let `var` be `value`, by putting it in place of the variable where it means the same there.

        A call is evaluated here and once; so is what mentions a variable that may change until it is used.
        """
        if not _has_call(value) and all(self._is_stable(each) for each in vars_in(value)):
            self._rewriting.replaced[var] = value
            return []
        if isinstance(var, ir.IterArg):
            plain = ir.Var(var.name_hint, self._rewriting.type(var.type), var.span)
            self._rewriting.replaced[var] = plain
            if _is_index(plain):
                self._analyzer.const_int_bound.update(plain, _EVERYTHING)
            return [ir.AssignStmt(plain, value, var.span)]
        return [ir.AssignStmt(self._defined(var), value, var.span)]

    def _while(self, loop: ir.WhileStmt) -> ir.Stmt:
        iter_args = [self._iter_arg(each) if self._is_stale(each) else each for each in loop.iter_args_]
        with self._region():
            condition = self._rewriting.expr(loop.condition)
            body = self._body(loop.body)
        return loop.replace(
            iter_args=iter_args,
            condition=condition,
            body=body,
            return_vars=[self._defined(var) for var in loop.return_vars_],
        )

    def _is_stale(self, iter_arg: ir.IterArg) -> bool:
        """Say whether an iter_arg mentions a variable that is no longer defined.

        The iter_args of a while loop are left alone otherwise: a constant stays in its variable.
        """
        parts = (iter_arg.initValue, *type_exprs(iter_arg.type))
        mentioned = chain.from_iterable(vars_in(part) for part in parts)
        return any(var in self._rewriting.replaced and var not in self._folded for var in mentioned)

    # --- branches ---

    def _if(self, stmt: ir.IfStmt) -> ir.Stmt | list[ir.Stmt]:
        condition = self._rewriting.expr(stmt.condition)
        negated = ir.Not(condition, ir.DataType.BOOL, stmt.span)
        comments = stmt.leading_comments
        if self._analyzer.can_prove(condition):
            return self._unwrapped(stmt.then_body, stmt.return_vars_, comments)
        if self._analyzer.can_prove(negated):
            if stmt.else_body is None:
                return []
            return self._unwrapped(stmt.else_body, stmt.return_vars_, comments)
        then_body = self._branch(stmt.then_body, condition)
        else_body = self._branch(stmt.else_body, negated) if stmt.else_body is not None else None
        return stmt.replace(
            condition=condition,
            then_body=then_body,
            else_body=else_body,
            return_vars=[self._defined(var) for var in stmt.return_vars_],
        )

    def _branch(self, body: ir.Stmt, condition: ir.Expr) -> ir.Stmt:
        contexts = [
            self._analyzer.constraint_context(part)
            for part in conjuncts(self._analyzer.simplify(condition))
            if not _has_call(part) and all(self._is_stable(var) for var in vars_in(part))
        ]
        with self._region():
            result = self._body(body)
        for context in reversed(contexts):
            context.exit_scope()
        return result


def _until_return(body: ir.Stmt) -> ir.Stmt:
    stmts = flat_stmts(body)
    position = next((i for i, stmt in enumerate(stmts) if isinstance(stmt, ir.ReturnStmt)), len(stmts))
    reached = stmts[: position + 1]
    return body if len(reached) == len(stmts) else ir.flatten_stmts(list(reached), body.span)


def _count_definitions(function: ir.Function) -> Counter[ir.Var]:
    """Count how often each variable is defined."""
    counts: Counter[ir.Var] = Counter(function.params_)
    for stmt in walk_stmts(function.body):
        if isinstance(stmt, ir.AssignStmt):
            counts[stmt.var] += 1
        elif isinstance(stmt, ir.ForStmt):
            counts[stmt.loop_var] += 1
            counts.update(stmt.iter_args_)
            counts.update(stmt.return_vars_)
        elif isinstance(stmt, ir.WhileStmt):
            counts.update(stmt.iter_args_)
            counts.update(stmt.return_vars_)
        elif isinstance(stmt, ir.IfStmt):
            counts.update(stmt.return_vars_)
    return counts


def _varying(function: ir.Function, definitions: Counter[ir.Var]) -> Iterator[ir.Var]:
    """Yield the INDEX variables that are assigned several times, carried by a loop, or handed on by one."""
    for var, count in definitions.items():
        if count > 1 and _is_index(var):
            yield var
    for stmt in walk_stmts(function.body):
        if isinstance(stmt, ir.ForStmt | ir.WhileStmt):
            yield from filter(_is_index, (*stmt.iter_args_, *stmt.return_vars_))
        elif isinstance(stmt, ir.IfStmt):
            yield from filter(_is_index, stmt.return_vars_)


def _is_index(var: ir.Var) -> bool:
    return isinstance(var.type, ir.ScalarType) and var.type.dtype == ir.DataType.INDEX


def _split_yield(stmts: list[ir.Stmt]) -> tuple[list[ir.Stmt], tuple[ir.Expr, ...]]:
    """Take the trailing yield off a list of statements, looking through transparent scopes."""
    last = stmts[-1] if stmts else None
    if isinstance(last, ir.YieldStmt):
        return stmts[:-1], last.value_
    if isinstance(last, ir.RuntimeScopeStmt | ir.SplitAivScopeStmt):
        inner, values = _split_yield(flat_stmts(last.body))
        return [*stmts[:-1], last.replace(body=ir.flatten_stmts(inner, last.body.span))], values
    return stmts, ()


def _has_escape(loop: ir.ForStmt) -> bool:
    return any(contains_escape(loop.body, escape) for escape in (ir.BreakStmt, ir.ContinueStmt))


def _has_call(expr: ir.Expr) -> bool:
    return any(isinstance(node, ir.Call | ir.Submit) for node in walk(expr, once=True))


def _below(value: int) -> int:
    return value if value >= ConstIntBound.kPosInf else value - 1


def _above(value: int) -> int:
    return value if value <= ConstIntBound.kNegInf else value + 1
