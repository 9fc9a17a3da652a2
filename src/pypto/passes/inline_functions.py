"""InlineFunctions: put the bodies of Inline functions where they are called, then drop those functions.

1. A cycle among Inline functions is rejected before anything changes.
2. Inline functions are expanded callees first, so that each body is complete when it is used.
3. A call is replaced where it is a whole statement: `lhs = f(...)`, `f(...)`, `return f(...)`. A call nested
   in an expression is left; the InlineFunctionsEliminated verifier reports it.
4. A tuple result is never materialised: after `t = f(...)`, each `t[i]` becomes the i-th returned value. A
   value that the caller overwrites before `t[i]` is read is saved in a variable of its own first, and so is
   one that writes memory. Where the values are dropped, those that write memory are still evaluated.

Arguments are passed by name: an assignment to a parameter in the body assigns the caller's variable.
Programs rely on this (a helper that fills a tensor parameter and returns nothing). An argument that the body
would disturb is evaluated up front.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pypto import ir
from pypto.core.errors import UsageError, located
from pypto.ir.rewrite import map_expr
from pypto.ir.walk import vars_in, walk, walk_stmts
from pypto.passes.base import IRProperty, Pass, PassProperties, create_program_pass, property_set
from pypto.passes.inline_splice import (
    InlineCallee,
    MakeVar,
    Splice,
    fresh_inline_var,
    prepare_callee,
    splice,
)
from pypto.passes.leading_comments import with_comments_first
from pypto.passes.memory_effects import reads_memory, writes_memory
from pypto.passes.statement_lists import flat_stmts

_TupleItem = tuple[ir.Var, int]
"""An element of the tuple that a variable holds."""


def inline_functions() -> Pass:
    """Make the InlineFunctions pass."""
    produced = property_set(IRProperty.InlineFunctionsEliminated)
    return create_program_pass(_inline_program, "InlineFunctions", PassProperties(produced=produced))


def _inline_program(program: ir.Program) -> ir.Program:
    functions = program.functions_
    inline = {name: f for name, f in functions.items() if f.func_type is ir.FunctionType.Inline}
    if not inline:
        return program
    callees: dict[str, InlineCallee] = {}
    for name in callees_first(inline):
        callees[name] = prepare_callee(expand_function(inline[name], callees))
    kept = [expand_function(f, callees) for name, f in functions.items() if name not in inline]
    return ir.Program(kept, program.name, program.span)


def callees_first(inline: Mapping[str, ir.Function]) -> list[str]:
    """Order functions so that callees precede callers; raises ValueError on a cycle."""
    edges = {name: called_among(function, inline) for name, function in inline.items()}
    ordered: list[str] = []
    done: set[str] = set()
    for root in inline:
        path: dict[str, Iterator[str]] = {} if root in done else {root: iter(edges[root])}
        while path:
            name = next(reversed(path))
            callee = next((c for c in path[name] if c not in done), None)
            if callee is None:
                del path[name]
                done.add(name)
                ordered.append(name)
            elif callee in path:
                names = list(path)
                cycle = " -> ".join([*names[names.index(callee) :], callee])
                kind = inline[name].func_type.name
                raise ValueError(f"Cycle detected in FunctionType::{kind} call graph: {cycle}")
            else:
                path[callee] = iter(edges[callee])
    return ordered


def called_among(function: ir.Function, inline: Mapping[str, ir.Function]) -> list[str]:
    """Which of these functions the body calls or submits, each once."""
    names: dict[str, None] = {}
    for node in walk(function.body, once=True):
        if (
            isinstance(node, ir.Call | ir.Submit)
            and isinstance(node.op, ir.GlobalVar)
            and node.op.name in inline
        ):
            names[node.op.name] = None
    return list(names)


def expand_function(
    function: ir.Function, callees: Mapping[str, InlineCallee], fresh: MakeVar = fresh_inline_var
) -> ir.Function:
    """Put the bodies of `callees` where `function` calls them, with `fresh` variables."""
    if not any(
        isinstance(node, ir.Call) and isinstance(node.op, ir.GlobalVar) and node.op.name in callees
        for node in walk(function.body)
    ):
        return function
    return function.replace(body=_Expansion(callees, function, fresh).body(function.body))


class _Expansion:
    """The walk over one caller: which tuple results are known at the present statement."""

    def __init__(self, callees: Mapping[str, InlineCallee], function: ir.Function, fresh: MakeVar) -> None:
        self._callees = callees
        self._fresh = fresh
        self._tuples: dict[ir.Var, list[ir.Expr]] = {}
        self._reads = Counter(_tuple_reads(function.body))

    def body(self, body: ir.Stmt) -> ir.Stmt:
        """Expand one function, branch, loop or scope body."""
        old = flat_stmts(body)
        siblings = _Siblings(old)
        new: list[ir.Stmt] = []
        for position, stmt in enumerate(old):
            new += self._stmt(stmt, siblings, position)
        if len(new) == len(old) and all(a is b for a, b in zip(old, new, strict=True)):
            return body
        return ir.flatten_stmts(new, body.span)

    def _stmt(self, stmt: ir.Stmt, siblings: _Siblings, position: int) -> list[ir.Stmt]:
        stmt = self._read_tuples(stmt)
        if isinstance(stmt, ir.AssignStmt):
            self._tuples.pop(stmt.var, None)
            callee = self._callee_of(stmt.value)
            if callee is not None:
                return with_comments_first(
                    self._assign(stmt, callee, siblings, position), stmt.leading_comments
                )
        elif isinstance(stmt, ir.EvalStmt):
            callee = self._callee_of(stmt.expr)
            if callee is not None:
                spliced = splice(callee, stmt.expr, self._fresh)
                kept = [ir.EvalStmt(v, stmt.span) for v in spliced.values or () if writes_memory(v)]
                return with_comments_first([*spliced.stmts, *kept], stmt.leading_comments)
        elif isinstance(stmt, ir.ReturnStmt):
            callee = self._callee_of(stmt.value_[0]) if len(stmt.value_) == 1 else None
            if callee is not None:
                spliced = splice(callee, stmt.value_[0], self._fresh)
                result = stmt.replace(value=_values_of(spliced, callee))
                return with_comments_first([*spliced.stmts, result], stmt.leading_comments)
        elif isinstance(stmt, ir.IfStmt):
            else_body = self.body(stmt.else_body) if stmt.else_body is not None else None
            return [stmt.replace(then_body=self.body(stmt.then_body), else_body=else_body)]
        elif isinstance(stmt, ir.ForStmt | ir.WhileStmt | ir.ScopeStmt):
            return [stmt.replace(body=self.body(stmt.body))]
        elif isinstance(stmt, ir.SeqStmts):
            return [self.body(stmt)]
        return [stmt]

    def _callee_of(self, expr: ir.Expr) -> InlineCallee | None:
        if isinstance(expr, ir.Call) and isinstance(expr.op, ir.GlobalVar):
            return self._callees.get(expr.op.name)
        return None

    def _assign(
        self, stmt: ir.AssignStmt, callee: InlineCallee, siblings: _Siblings, position: int
    ) -> list[ir.Stmt]:
        spliced = splice(callee, stmt.value, self._fresh)
        values = _values_of(spliced, callee)
        if not callee.returns_tuple:
            value = values[0]
            if value is stmt.var:
                return spliced.stmts
            return [*spliced.stmts, ir.AssignStmt(stmt.var, value, stmt.span)]
        saves: list[ir.Stmt] = []
        for index, value in enumerate(values):
            item = (stmt.var, index)
            if writes_memory(value) or self._overwritten_before_read(value, item, siblings, position):
                saved = self._fresh(value if isinstance(value, ir.Var) else stmt.var, value.type)
                saves.append(ir.AssignStmt(saved, value, stmt.span))
                values[index] = saved
        self._tuples[stmt.var] = values
        return [*spliced.stmts, *saves]

    def _overwritten_before_read(
        self, value: ir.Expr, item: _TupleItem, siblings: _Siblings, position: int
    ) -> bool:
        """Say whether a statement changes what `value` reads while a read of `item` is to come."""
        if not self._reads.get(item):
            return False
        reads, end = siblings.reads_of(item, position)
        change = siblings.first_change(value, position)
        if change is not None and any(each >= change for each in reads):
            return True
        # What is read outside this list is read in an order that is not looked at.
        return end is None and self._reads[item] > len(reads)

    def _read_tuples(self, stmt: ir.Stmt) -> ir.Stmt:
        if not self._tuples:
            return stmt
        rebuilt: ir.Stmt = stmt._map_children(
            lambda child: child if isinstance(child, ir.Stmt) else map_expr(child, self._tuple_element),
            lambda type_: type_,
        )
        return rebuilt

    def _tuple_element(self, expr: ir.Expr) -> ir.Expr:
        if isinstance(expr, ir.TupleGetItemExpr) and isinstance(expr.tuple, ir.Var):
            values = self._tuples.get(expr.tuple)
            if values is not None:
                return values[expr.index]
        return expr


def _values_of(spliced: Splice, callee: InlineCallee) -> list[ir.Expr]:
    if spliced.values is None:
        raise UsageError(
            located(
                f"Inline function '{callee.name}' has no return value, but its call is used as one; return "
                "it at the end of the function",
                callee.span,
            )
        )
    return list(spliced.values)


class _Siblings:
    """The statements of one list, and at which positions they assign, write memory and read tuples."""

    def __init__(self, stmts: Sequence[ir.Stmt]) -> None:
        self._stmts = stmts

    @cached_property
    def _places(self) -> _Places:
        places = _Places()
        for position, stmt in enumerate(self._stmts):
            for inner in walk_stmts(stmt):
                if isinstance(inner, ir.AssignStmt):
                    places.assigned.setdefault(inner.var, []).append(position)
            if writes_memory(stmt):
                places.written.append(position)
            for item in _tuple_reads(stmt):
                places.read.setdefault(item, []).append(position)
        return places

    def first_change(self, value: ir.Expr, after: int) -> int | None:
        """The first position at which a read of `value` could find it changed after the statement `after`."""
        places = self._places
        changes = [places.assigned.get(var, []) for var in vars_in(value)]
        if reads_memory(value):
            changes.append(places.written)
        firsts = [next(_behind(positions, after), None) for positions in changes]
        # An assignment reads before it assigns; inside a loop or branch, the order is not looked at.
        return min(
            (at + isinstance(self._stmts[at], ir.AssignStmt) for at in firsts if at is not None), default=None
        )

    def reads_of(self, item: _TupleItem, after: int) -> tuple[list[int], int | None]:
        """Where an item is read after the statement `after`, and where its tuple is assigned anew."""
        tuple_var, _ = item
        end = next(
            (
                at
                for at in _behind(self._places.assigned.get(tuple_var, []), after)
                if isinstance(self._stmts[at], ir.AssignStmt)
            ),
            None,
        )
        reads = _behind(self._places.read.get(item, []), after)
        return [at for at in reads if end is None or at <= end], end


@dataclass(frozen=True, slots=True)
class _Places:
    """Positions in a list of statements, ascending."""

    assigned: dict[ir.Var, list[int]] = field(default_factory=dict)
    written: list[int] = field(default_factory=list)
    read: dict[_TupleItem, list[int]] = field(default_factory=dict)


def _behind(positions: Sequence[int], after: int) -> Iterator[int]:
    return (positions[at] for at in range(bisect_right(positions, after), len(positions)))


def _tuple_reads(node: ir.IRNode) -> Iterator[_TupleItem]:
    for each in walk(node):
        if isinstance(each, ir.TupleGetItemExpr) and isinstance(each.tuple, ir.Var):
            yield each.tuple, each.index
