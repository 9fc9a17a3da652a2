"""FlattenCallExpr: three-address form.

Afterwards a Call stands only as the value of an assignment or an EvalStmt.

1. A Call in any other position becomes `t__tmp_v<n> = call` right before the statement, inner calls first,
   left to right.
2. Temporaries of a condition, of loop bounds or of the values that a loop starts from stay outside the
   compound statement.
3. A single-statement body that needs temporaries becomes a sequence inside that body.
4. Not hoisted: elements of a tuple literal, and the deps, attributes, keyword values, predicate and core_num
   of a Submit.

A call in a `while` condition that reads a carried value, or memory that the loop writes, cannot be hoisted:
it would be evaluated once, before the loop. That is an error.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, TypeVar

from pypto import ir
from pypto.ir.rewrite import Substitution
from pypto.ir.walk import vars_in
from pypto.passes.auto_name import auto_name
from pypto.passes.base import IRProperty, Pass, PassProperties, create_function_pass, property_set
from pypto.passes.memory_effects import calls_in, may_write

_P = IRProperty

_Loop = TypeVar("_Loop", ir.ForStmt, ir.WhileStmt)

_LEAVES = (ir.Var, ir.ConstInt, ir.ConstFloat, ir.ConstBool)


def flatten_call_expr() -> Pass:
    """Make the FlattenCallExpr pass."""
    return create_function_pass(
        flatten_function,
        "FlattenCallExpr",
        PassProperties(
            required=property_set(_P.SSAForm, _P.NormalizedStmtStructure),
            produced=property_set(_P.SSAForm, _P.NoNestedCalls, _P.NormalizedStmtStructure),
        ),
    )


def flatten_function(function: ir.Function) -> ir.Function:
    """The function in three-address form; the same object if it is already."""
    body = _Flattening().body(function.body)
    return function if body is function.body else function.replace(body=body)


class _Flattening:
    """The walk over one function; counts its temporaries."""

    def __init__(self) -> None:
        self._counter = itertools.count()

    def body(self, body: ir.Stmt) -> ir.Stmt:
        """Flatten a body; the same object if it is flat already."""
        if not isinstance(body, ir.SeqStmts):
            stmts = self._stmt(body)
            return stmts[0] if len(stmts) == 1 else ir.flatten_stmts(stmts, body.span)
        stmts = []
        changed = False
        for stmt in body.stmts_:
            flat = self._stmt(stmt)
            changed |= len(flat) != 1 or flat[0] is not stmt
            stmts += flat
        return ir.flatten_stmts(stmts, body.span) if changed else body

    def _stmt(self, stmt: ir.Stmt) -> list[ir.Stmt]:
        """Return the temporaries that `stmt` needs, then the statement."""
        before: list[ir.Stmt] = []
        if isinstance(stmt, ir.AssignStmt):
            new: ir.Stmt = stmt.replace(value=self._operands(stmt.value, before))
        elif isinstance(stmt, ir.EvalStmt):
            new = stmt.replace(expr=self._operands(stmt.expr, before))
        elif isinstance(stmt, ir.ReturnStmt):
            new = stmt.replace(value=[self._operand(v, before, (ir.Call,)) for v in stmt.value_])
        elif isinstance(stmt, ir.YieldStmt):
            new = stmt.replace(value=[self._operand(v, before, (ir.Call, ir.Submit)) for v in stmt.value_])
        elif isinstance(stmt, ir.IfStmt):
            new = stmt.replace(
                condition=self._operand(stmt.condition, before, (ir.Call,)),
                then_body=self.body(stmt.then_body),
                else_body=self.body(stmt.else_body) if stmt.else_body is not None else None,
            )
        elif isinstance(stmt, ir.ForStmt):
            bounds = {
                name: self._operand(getattr(stmt, name), before, (ir.Call,))
                for name in ("start", "stop", "step")
            }
            loop = self._with_flat_carries(stmt, before)
            new = loop.replace(**bounds, body=self.body(loop.body))
        elif isinstance(stmt, ir.WhileStmt):
            _reject_varying_calls(stmt)
            flat = self._with_flat_carries(stmt, before)
            new = flat.replace(
                condition=self._operand(flat.condition, before, (ir.Call,)), body=self.body(flat.body)
            )
        elif isinstance(stmt, ir.ScopeStmt):
            new = stmt.replace(body=self.body(stmt.body))
        elif isinstance(stmt, ir.SeqStmts):
            new = self.body(stmt)
        else:
            new = stmt
        before.append(new)
        return before

    def _with_flat_carries(self, loop: _Loop, before: list[ir.Stmt]) -> _Loop:
        """The loop whose carried values start from variables and constants."""
        renamed: dict[ir.Var, ir.Expr] = {}
        iter_args = []
        for carried in loop.iter_args_:
            initial = self._operand(carried.initValue, before, (ir.Call, ir.Submit))
            if initial is not carried.initValue:
                renamed[carried] = carried.replace(initValue=initial)
            iter_args.append(renamed.get(carried, carried))
        if not renamed:
            return loop
        substitution = Substitution(renamed)
        parts: dict[str, Any] = {"iter_args": iter_args, "body": substitution.stmt(loop.body)}
        if isinstance(loop, ir.WhileStmt):
            parts["condition"] = substitution.expr(loop.condition)
        return loop.replace(**parts)

    def _operand(self, expr: ir.Expr, before: list[ir.Stmt], hoisted: tuple[type[ir.Expr], ...]) -> ir.Expr:
        """Flatten an expression that may not be a call itself."""
        expr = self._operands(expr, before)
        return self._hoist(expr, before) if isinstance(expr, hoisted) else expr

    def _hoist(self, call: ir.Expr, before: list[ir.Stmt]) -> ir.Expr:
        temporary = ir.Var(auto_name("t", "tmp", next(self._counter)), call.type, call.span)
        before.append(ir.AssignStmt(temporary, call, call.span))
        return temporary

    def _operands(self, expr: ir.Expr, before: list[ir.Stmt]) -> ir.Expr:
        """Flatten below the root: post-order, left to right, each call hoisted before its right neighbour."""
        if _is_flat(expr):
            return expr
        done: dict[ir.Expr, ir.Expr] = {}
        temporaries: dict[ir.Expr, ir.Expr] = {}
        frames = [_Frame(expr)]
        while frames:
            frame = frames[-1]
            if frame.is_complete():
                frames.pop()
                done[frame.node] = frame.rebuilt()
                continue
            operand = frame.next_operand()
            if operand not in done and not isinstance(operand, _LEAVES):
                frames.append(_Frame(operand))
                continue
            flat = done.get(operand, operand)
            if isinstance(flat, frame.hoisted):
                if operand not in temporaries:
                    temporaries[operand] = self._hoist(flat, before)
                flat = temporaries[operand]
            frame.flat.append(flat)
        return done[expr]


class _Frame:
    """A node whose operands are being flattened, the first of them done."""

    __slots__ = ("flat", "hoisted", "node", "operands")

    def __init__(self, node: ir.Expr) -> None:
        self.node = node
        self.operands = _visited(node)
        self.hoisted = _hoisted_below(node)
        self.flat: list[ir.Expr] = []

    def is_complete(self) -> bool:
        return len(self.flat) == len(self.operands)

    def next_operand(self) -> ir.Expr:
        return self.operands[len(self.flat)]

    def rebuilt(self) -> ir.Expr:
        return _with_operands(self.node, self.operands, self.flat)


def _visited(node: ir.Expr) -> Sequence[ir.Expr]:
    """Return the operands that may hold calls to hoist."""
    if isinstance(node, ir.Call | ir.Submit):
        return node.args_
    return node._children()


def _hoisted_below(node: ir.Expr) -> tuple[type[ir.Expr], ...]:
    """Return which kinds of operand of `node` must become temporaries."""
    if isinstance(node, ir.Submit):
        return (ir.Call, ir.Submit)
    if isinstance(node, ir.Call | ir.BinaryExpr | ir.UnaryExpr):
        return (ir.Call,)
    return ()


def _with_operands(node: ir.Expr, old: Sequence[ir.Expr], new: list[ir.Expr]) -> ir.Expr:
    if all(a is b for a, b in zip(old, new, strict=True)):
        return node
    if isinstance(node, ir.Call | ir.Submit):
        return node.replace(args=new)
    replacement = dict(zip(old, new, strict=True))
    rebuilt: ir.Expr = node._map_children(replacement.__getitem__, lambda type_: type_)
    return rebuilt


def _is_flat(expr: ir.Expr) -> bool:
    """Say quickly that there is nothing to hoist: a leaf, or a call of leaves and flat tuples."""
    if isinstance(expr, _LEAVES):
        return True
    if not isinstance(expr, ir.Call):
        return False
    for argument in expr.args_:
        if isinstance(argument, ir.MakeTuple):
            if not all(isinstance(element, _LEAVES) for element in argument.elements_):
                return False
        elif not isinstance(argument, _LEAVES):
            return False
    return True


def _reject_varying_calls(loop: ir.WhileStmt) -> None:
    """Raise ValueError if a call in the condition depends on what the loop carries, or writes in place."""
    calls = list(calls_in(loop.condition))
    if not calls:
        return
    varying: set[ir.Expr] = set(loop.iter_args_)
    for call in calls_in(loop.body):
        if may_write(call):
            varying.update(arg for arg in call.args_ if isinstance(arg, ir.Var))
    for call in calls:
        if not varying.isdisjoint(vars_in(call)):
            raise ValueError(
                f"The while condition calls '{call.op.name}' on a value that changes in the loop; "
                "compute it in the loop body and carry the result "
                f"[{loop.span}]"
            )
