"""Remove the breaks, or the continues, of one loop from its body.

The body is read as a list of statements. At the first `if` that escapes there are two shapes:

- A branch ends in the escape. What follows the `if` runs only on the other side, so it moves there and is
  read again:                 `A; if c: break; B`   becomes   `A; if c: flag = True else: B`.
- The escape sits deeper. The flag tells whether it was taken, and what follows is guarded:
  `A; if c: (S; if d: break); B`   becomes   `A; if c: (S; if d: flag = True); if not flag: B`.

A break always sets its flag (the loop's condition reads it). A continue needs one only in the second shape;
that flag is cleared right before the `if`, once per iteration.

If the loop carries values (SSA form), every `if` made here carries them too: the escaping side yields the
values at the escape, the other side the ones it computes.

The results of an `if` with an escape deeper inside become plain assignments in its branches, for ConvertToSSA
to merge. They start from some value of their type, which nobody reads: what follows is guarded.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from pypto import ir
from pypto.ir.rewrite import definitions_of
from pypto.ir.walk import vars_in, walk_stmts
from pypto.passes.auto_name import auto_name, base_of
from pypto.passes.statement_lists import flat_stmts

_BOOL = ir.DataType.BOOL

Escape = type[ir.BreakStmt] | type[ir.ContinueStmt]
Lowered = tuple[list[ir.Stmt], list[ir.Expr]]


@dataclass(frozen=True, slots=True)
class Carried:
    """The values a loop carries: its iter_args and what its trailing yield gives.

    `meant` is what the yield gave as it was written: removing continues has put merged values in its place,
    which do not exist yet where the loop is left.
    """

    iter_args: tuple[ir.IterArg, ...]
    values: tuple[ir.Expr, ...]
    meant: tuple[ir.Expr, ...]
    span: ir.Span


class FreshNames:
    """Fresh variables of one function; one counter for all of them.

    `provisional` are the results that start from any value: they have their own one after the `if`.
    """

    def __init__(self) -> None:
        self._counter = itertools.count()
        self.provisional: set[ir.Var] = set()

    def var(self, base: str, role: str, type_: ir.Type, span: ir.Span) -> ir.Var:
        """Make `<base>__<role>_v<k>`."""
        return ir.Var(auto_name(base, role, next(self._counter)), type_, span)

    def flag(self, base: str, span: ir.Span) -> ir.Var:
        """Make a boolean `<base>__tmp_v<k>`."""
        return self.var(base, "tmp", ir.ScalarType(_BOOL), span)


def assign_flag(flag: ir.Var, value: bool, span: ir.Span) -> ir.Stmt:
    """Build `flag = value`."""
    return ir.AssignStmt(flag, ir.ConstBool(value, span), span)


def contains_escape(stmt: ir.Stmt, escape: Escape) -> bool:
    """Say whether `stmt` holds a break (or continue) of the enclosing loop, not of a loop inside."""
    pending = [stmt]
    while pending:
        current = pending.pop()
        if isinstance(current, escape):
            return True
        if isinstance(current, ir.SeqStmts):
            pending += current.stmts_
        elif isinstance(current, ir.IfStmt):
            pending.append(current.then_body)
            if current.else_body is not None:
                pending.append(current.else_body)
        elif isinstance(current, ir.ScopeStmt):
            pending.append(current.body)
    return False


class EscapeLowering:
    """The rewriting of one loop body for one kind of escape."""

    def __init__(self, escape: Escape, names: FreshNames, carried: Carried | None, span: ir.Span) -> None:
        self._escape = escape
        self._names = names
        self._carried = carried
        self._span = span
        self._in_body: frozenset[ir.Var] = frozenset()
        self._not_started = set(names.provisional)

    def lower_body(self, stmts: list[ir.Stmt], flag: ir.Var | None) -> Lowered:
        """Return the statements without escapes, and the values that the body now yields."""
        if self._carried is None:
            return self._lower(stmts, [], set(), flag)
        self._in_body = frozenset(var for stmt in stmts for var in _definitions(stmt))
        return self._lower(stmts, list(self._carried.values), set(), flag)

    def _lower(
        self, stmts: Sequence[ir.Stmt], normal: list[ir.Expr], defined: set[ir.Var], flag: ir.Var | None
    ) -> Lowered:
        """Lower a list; `normal` is what it yields when it runs to its end, `defined` what is known here."""
        done: list[ir.Stmt] = []
        for position, stmt in enumerate(stmts):
            if isinstance(stmt, self._escape):
                if flag is not None:
                    done.append(assign_flag(flag, True, stmt.span))
                return done, self._values_at_escape(defined)
            if contains_escape(stmt, self._escape):
                rest = stmts[position + 1 :]
                if isinstance(stmt, ir.IfStmt) and self._branch_escapes(stmt):
                    last, values = self._split(stmt, rest, normal, defined, flag)
                else:
                    last, values = self._guard(stmt, rest, normal, defined, flag)
                return [*done, *last], values
            done.append(stmt)
            if self._carried is not None:
                self._note_definitions(stmt, defined)
        return done, normal

    def _note_definitions(self, stmt: ir.Stmt, defined: set[ir.Var]) -> None:
        """Add what exists after `stmt`; what a result starts from is not its value yet."""
        if isinstance(stmt, ir.AssignStmt) and stmt.var in self._not_started:
            self._not_started.remove(stmt.var)
            return
        defined.update(_definitions(stmt))
        if isinstance(stmt, ir.IfStmt) and self._names.provisional:
            inside = {inner.var for inner in walk_stmts(stmt) if isinstance(inner, ir.AssignStmt)}
            defined.update(inside & self._names.provisional - self._not_started)

    def _branch_escapes(self, stmt: ir.IfStmt) -> bool:
        return self._ends_in_escape(stmt.then_body) or self._ends_in_escape(stmt.else_body)

    def _ends_in_escape(self, body: ir.Stmt | None) -> bool:
        return body is not None and any(isinstance(s, self._escape) for s in flat_stmts(body))

    def _split(
        self,
        stmt: ir.IfStmt,
        rest: Sequence[ir.Stmt],
        normal: list[ir.Expr],
        defined: set[ir.Var],
        flag: ir.Var | None,
    ) -> Lowered:
        """First shape: what follows the `if` moves into the branch that does not escape."""
        then_escapes = self._ends_in_escape(stmt.then_body)
        else_escapes = self._ends_in_escape(stmt.else_body)
        then_stmts = _branch_stmts(stmt, stmt.then_body)
        else_stmts = _branch_stmts(stmt, stmt.else_body)
        if not then_escapes:
            then_stmts += rest
        elif not else_escapes:
            else_stmts += rest
        then_done, then_values = self._lower(then_stmts, normal, set(defined), flag)
        else_done, else_values = self._lower(else_stmts, normal, set(defined), flag)
        phis = self._phis(then_values if then_escapes else else_values)
        merged = self._if(stmt, then_done, then_values, else_done, else_values, phis, closed=flag is not None)
        return [merged], list(phis)

    def _guard(
        self,
        stmt: ir.Stmt,
        rest: Sequence[ir.Stmt],
        normal: list[ir.Expr],
        defined: set[ir.Var],
        flag: ir.Var | None,
    ) -> Lowered:
        """Second shape: what follows `stmt` runs unless the escape inside it was taken."""
        taken = flag if flag is not None else self._names.flag("continue", stmt.span)
        done = [] if flag is not None else [assign_flag(taken, False, stmt.span)]
        if isinstance(stmt, ir.IfStmt):
            done += [self._any_value(stmt, index) for index in range(len(stmt.return_vars_))]
        nested, escaped = self._nested(stmt, defined, taken)
        done.append(nested)
        if isinstance(stmt, ir.IfStmt):
            defined.update(stmt.return_vars_)
            self._note_definitions(stmt, defined)
        rest_done, rest_values = self._lower(rest, normal, defined, flag)
        if not rest_done and self._carried is None:
            return done, normal
        phis = self._phis(escaped)
        condition = ir.Not(taken, _BOOL, stmt.span)
        guard = ir.IfStmt(
            condition,
            self._closed(rest_done, rest_values, stmt.span),
            self._closed([], escaped, stmt.span),
            phis,
            stmt.span,
        )
        return [*done, guard], list(phis)

    def _nested(self, stmt: ir.Stmt, defined: set[ir.Var], flag: ir.Var) -> tuple[ir.Stmt, list[ir.Expr]]:
        """Lower a statement with the escape somewhere inside; the values count only if the flag is set."""
        unused: list[ir.Expr] = list(self._carried.iter_args) if self._carried is not None else []
        if isinstance(stmt, ir.IfStmt):
            then_done, then_values = self._lower(
                _branch_stmts(stmt, stmt.then_body), unused, set(defined), flag
            )
            else_done, else_values = self._lower(
                _branch_stmts(stmt, stmt.else_body), unused, set(defined), flag
            )
            phis = self._phis(then_values)
            closed = self._carried is not None
            merged = self._if(stmt, then_done, then_values, else_done, else_values, phis, closed=closed)
            return merged, list(phis)
        assert isinstance(stmt, ir.ScopeStmt)
        body, values = self._lower(flat_stmts(stmt.body), unused, defined, flag)
        return stmt.replace(body=ir.flatten_stmts(body, stmt.body.span)), values

    def _any_value(self, stmt: ir.IfStmt, index: int) -> ir.AssignStmt:
        """Assign some value to a result of `stmt`, in front of it."""
        result = stmt.return_vars_[index]
        self._names.provisional.add(result)
        inside = {var for inner in walk_stmts(stmt) for var in definitions_of(inner)}
        yields = [
            ir.get_last_yield_stmt(body) for body in (stmt.then_body, stmt.else_body) if body is not None
        ]
        values = [each.value_[index] for each in yields if each is not None]
        carried = self._carried.iter_args if self._carried is not None else ()
        for value in (*values, *(each for each in carried if each.type == result.type)):
            if isinstance(value, ir.Var) and value not in inside:
                return ir.AssignStmt(result, value, stmt.span)
        if isinstance(result.type, ir.ScalarType):
            return ir.AssignStmt(result, _zero(result.type.dtype, stmt.span), stmt.span)
        raise ValueError(
            f"break or continue inside an `if` that returns the new tensor '{result.name_hint}' is not "
            f"supported; assign the variable before the `if` and in the branches instead [{stmt.span}]"
        )

    def _if(
        self,
        stmt: ir.IfStmt,
        then_done: list[ir.Stmt],
        then_values: list[ir.Expr],
        else_done: list[ir.Stmt],
        else_values: list[ir.Expr],
        phis: list[ir.Var],
        closed: bool,
    ) -> ir.IfStmt:
        if closed or self._carried is not None:
            then_body = self._closed(then_done, then_values, stmt.span)
            else_body = self._closed(else_done, else_values, stmt.span)
        else:
            then_body = ir.flatten_stmts(then_done, stmt.span)
            else_body = ir.flatten_stmts(else_done, stmt.span)
        return stmt.replace(then_body=then_body, else_body=else_body, return_vars=phis)

    def _closed(self, stmts: list[ir.Stmt], values: list[ir.Expr], span: ir.Span) -> ir.Stmt:
        return ir.flatten_stmts([*stmts, ir.YieldStmt(values, span)], span)

    def _phis(self, values: list[ir.Expr]) -> list[ir.Var]:
        phis = []
        for value in values:
            base = base_of(value.name_hint) if isinstance(value, ir.Var) else "phi"
            phis.append(self._names.var(base, "phi", value.type, value.span))
        return phis

    def _values_at_escape(self, defined: set[ir.Var]) -> list[ir.Expr]:
        if self._carried is None:
            return []
        iter_args = frozenset(self._carried.iter_args)
        return [
            value if self._is_known(value, iter_args, defined) else iter_arg
            for value, iter_arg in zip(self._carried.meant, self._carried.iter_args, strict=True)
        ]

    def _is_known(self, value: ir.Expr, iter_args: frozenset[ir.Var], defined: set[ir.Var]) -> bool:
        """Say whether the value that the body would yield already exists where the loop is left."""
        if isinstance(value, ir.Var):
            return value in iter_args or value in defined
        if self._escape is ir.BreakStmt:
            return False  # it belongs to the next iteration, which does not happen
        return all(var in defined or var not in self._in_body for var in vars_in(value))


def _zero(dtype: ir.DataType, span: ir.Span) -> ir.Expr:
    if dtype == _BOOL:
        return ir.ConstBool(False, span)
    return ir.ConstFloat(0.0, dtype, span) if dtype.is_float() else ir.ConstInt(0, dtype, span)


def _branch_stmts(stmt: ir.IfStmt, body: ir.Stmt | None) -> list[ir.Stmt]:
    """Return a branch as a list that more statements may follow: its yield becomes assignments."""
    if body is None:
        return []
    stmts = flat_stmts(body)
    if not stmts or not isinstance(stmts[-1], ir.YieldStmt):
        return stmts
    results = zip(stmt.return_vars_, stmts[-1].value_, strict=True)
    return [*stmts[:-1], *(ir.AssignStmt(var, value, value.span) for var, value in results)]


def _definitions(stmt: ir.Stmt) -> list[ir.Var]:
    """Return the variables that exist after `stmt` because of it."""
    if isinstance(stmt, ir.AssignStmt):
        return [stmt.var]
    if isinstance(stmt, ir.ForStmt | ir.WhileStmt | ir.IfStmt):
        return list(stmt.return_vars_)
    if isinstance(stmt, ir.ScopeStmt):
        return [var for inner in flat_stmts(stmt.body) for var in _definitions(inner)]
    return []
