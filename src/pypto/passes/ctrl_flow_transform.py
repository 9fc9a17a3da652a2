"""CtrlFlowTransform: remove `break` and `continue` from kernels.

Kernels run on cores that only know structured control flow: functions of type InCore, AIC and AIV, and the
scopes of other functions that will be outlined as such. Loops are rewritten from the inside out:

1. `continue`: the statements it skips move into the branch that does not continue (see `escape_lowering`).
2. `break` in a `while`: a flag joins the condition, and the statements after the break are guarded by it.
3. `break` in a `for`: the loop becomes a `while` with an explicit index, then as in 2.

Only sequential `for` and `while` loops are rewritten; a break in any other loop is an error that
BreakContinueValid reports. A `return` inside a loop is not handled here.
"""

from __future__ import annotations

from pypto import ir
from pypto.ir.rewrite import Substitution
from pypto.ir.walk import vars_in, walk_stmts
from pypto.passes.auto_name import base_of
from pypto.passes.base import IRProperty, Pass, PassProperties, create_function_pass, property_set
from pypto.passes.escape_lowering import (
    Carried,
    EscapeLowering,
    FreshNames,
    assign_flag,
    contains_escape,
)
from pypto.passes.leading_comments import with_comments_first
from pypto.passes.memory_effects import reads_memory, writes_memory
from pypto.passes.statement_lists import flat_stmts

_BOOL = ir.DataType.BOOL


def ctrl_flow_transform() -> Pass:
    """Make the CtrlFlowTransform pass."""
    produced = property_set(IRProperty.StructuredCtrlFlow)
    return create_function_pass(_transform_function, "CtrlFlowTransform", PassProperties(produced=produced))


def _transform_function(function: ir.Function) -> ir.Function:
    if not any(isinstance(s, ir.BreakStmt | ir.ContinueStmt) for s in walk_stmts(function.body)):
        return function
    in_kernel = ir.is_incore_type(function.func_type)
    return function.replace(body=_body(function.body, FreshNames(), in_kernel))


def _body(body: ir.Stmt, names: FreshNames, in_kernel: bool) -> ir.Stmt:
    old = flat_stmts(body)
    new: list[ir.Stmt] = []
    for stmt in old:
        new += _stmt(stmt, names, in_kernel)
    if len(new) == len(old) and all(a is b for a, b in zip(old, new, strict=True)):
        return body
    return ir.flatten_stmts(new, body.span)


def _stmt(stmt: ir.Stmt, names: FreshNames, in_kernel: bool) -> list[ir.Stmt]:
    if isinstance(stmt, ir.ForStmt | ir.WhileStmt):
        loop = stmt.replace(body=_body(stmt.body, names, in_kernel))
        if in_kernel and (isinstance(loop, ir.WhileStmt) or loop.kind is ir.ForKind.Sequential):
            return _rewrite_loop(loop, names)
        return [loop]
    if isinstance(stmt, ir.IfStmt):
        then_body = _body(stmt.then_body, names, in_kernel)
        else_body = _body(stmt.else_body, names, in_kernel) if stmt.else_body is not None else None
        return [stmt.replace(then_body=then_body, else_body=else_body)]
    if isinstance(stmt, ir.ScopeStmt):
        is_kernel = in_kernel or isinstance(stmt, ir.InCoreScopeStmt)
        return [stmt.replace(body=_body(stmt.body, names, is_kernel))]
    if isinstance(stmt, ir.SeqStmts):
        return [_body(stmt, names, in_kernel)]
    return [stmt]


def _rewrite_loop(loop: ir.ForStmt | ir.WhileStmt, names: FreshNames) -> list[ir.Stmt]:
    meant: tuple[ir.Expr, ...] | None = None
    if contains_escape(loop.body, ir.ContinueStmt):
        last = ir.get_last_yield_stmt(loop.body)
        meant = None if last is None else last.value_
        loop = _without_continue(loop, names)
    if not contains_escape(loop.body, ir.BreakStmt):
        return [loop]
    comments = loop.leading_comments
    if isinstance(loop, ir.ForStmt):
        return with_comments_first(_for_with_break(loop, names, meant), comments)
    return _while_with_break(loop, names, meant)


def _without_continue(loop: ir.ForStmt | ir.WhileStmt, names: FreshNames) -> ir.ForStmt | ir.WhileStmt:
    stmts, carried = _split_yield(loop)
    lowering = EscapeLowering(ir.ContinueStmt, names, carried, loop.span)
    stmts, values = lowering.lower_body(stmts, flag=None)
    return loop.replace(body=_joined(stmts, values, loop))


def _while_with_break(
    loop: ir.WhileStmt, names: FreshNames, meant: tuple[ir.Expr, ...] | None
) -> list[ir.Stmt]:
    span = loop.span
    flag = names.flag("break", span)
    stmts, carried = _split_yield(loop, meant)
    stmts, values = EscapeLowering(ir.BreakStmt, names, carried, span).lower_body(stmts, flag)
    condition = ir.And(loop.condition, ir.Not(flag, _BOOL, span), _BOOL, span)
    return [
        assign_flag(flag, False, span),
        loop.replace(condition=condition, body=_joined(stmts, values, loop)),
    ]


def _for_with_break(loop: ir.ForStmt, names: FreshNames, meant: tuple[ir.Expr, ...] | None) -> list[ir.Stmt]:
    span = loop.span
    flag = names.flag("break", span)
    index = names.var(base_of(loop.loop_var.name_hint), "idx", loop.loop_var.type, span)
    before, stop, step = _evaluated_once(loop, names)
    loop = _with_index(loop, index)

    stmts, carried = _split_yield(loop, meant)
    stmts, values = EscapeLowering(ir.BreakStmt, names, carried, span).lower_body(stmts, flag)
    values = [_stored(value, stmts, names) for value in values]
    advance = ir.AssignStmt(index, ir.add(index, step, span), span)
    stmts.append(ir.IfStmt(ir.Not(flag, _BOOL, span), advance, None, [], span))

    in_range = ir.gt(index, stop, span) if _is_negative(step) else ir.lt(index, stop, span)
    condition = ir.And(in_range, ir.Not(flag, _BOOL, span), _BOOL, span)
    return [
        *before,
        ir.AssignStmt(index, loop.start, span),
        assign_flag(flag, False, span),
        ir.WhileStmt(condition, loop.iter_args_, _joined(stmts, values, loop), loop.return_vars_, span),
    ]


def _with_index(loop: ir.ForStmt, index: ir.Var) -> ir.ForStmt:
    """Return the loop with its variable replaced by the index in the body."""
    if loop.loop_var in _assigned(loop.body):
        # The body overwrites its loop variable; the count must not follow it.
        copy = ir.AssignStmt(loop.loop_var, index, loop.span)
        return loop.replace(body=ir.flatten_stmts([copy, loop.body], loop.body.span))
    return loop.replace(body=Substitution({loop.loop_var: index}).stmt(loop.body))


def _evaluated_once(loop: ir.ForStmt, names: FreshNames) -> tuple[list[ir.Stmt], ir.Expr, ir.Expr]:
    """Return stop and step so that they keep their value from before the loop in every iteration."""
    assigned = _assigned(loop.body)
    writes = writes_memory(loop.body)
    saves: list[ir.Stmt] = []

    def save(expr: ir.Expr, base: str) -> ir.Expr:
        if assigned.isdisjoint(vars_in(expr)) and not (writes and reads_memory(expr)):
            return expr
        saved = names.var(base, "tmp", expr.type, loop.span)
        saves.append(ir.AssignStmt(saved, expr, loop.span))
        return saved

    stop = save(loop.stop, "stop")
    step = save(loop.step, "step")
    return saves, stop, step


def _assigned(body: ir.Stmt) -> set[ir.Var]:
    return {stmt.var for stmt in walk_stmts(body) if isinstance(stmt, ir.AssignStmt)}


def _stored(value: ir.Expr, stmts: list[ir.Stmt], names: FreshNames) -> ir.Expr:
    """Keep a computed yield value in a variable: the index it may depend on advances before the yield."""
    if isinstance(value, ir.Var):
        return value
    stored = names.var("yield", "tmp", value.type, value.span)
    stmts.append(ir.AssignStmt(stored, value, value.span))
    return stored


def _is_negative(step: ir.Expr) -> bool:
    if isinstance(step, ir.Neg) and isinstance(step.operand, ir.ConstInt):
        return step.operand.value > 0
    return isinstance(step, ir.ConstInt) and step.value < 0


def _split_yield(
    loop: ir.ForStmt | ir.WhileStmt, meant: tuple[ir.Expr, ...] | None = None
) -> tuple[list[ir.Stmt], Carried | None]:
    """Take the body apart into its statements and what its trailing yield carries."""
    stmts = flat_stmts(loop.body)
    if not loop.iter_args_:
        return stmts, None
    if not stmts or not isinstance(stmts[-1], ir.YieldStmt):
        raise ValueError(
            "break and continue in a loop that carries values need a yield at the end of its body "
            f"[{loop.span}]"
        )
    values = stmts[-1].value_
    return stmts[:-1], Carried(loop.iter_args_, values, values if meant is None else meant, stmts[-1].span)


def _joined(stmts: list[ir.Stmt], values: list[ir.Expr], loop: ir.ForStmt | ir.WhileStmt) -> ir.Stmt:
    if loop.iter_args_:
        stmts = [*stmts, ir.YieldStmt(values, loop.body.span)]
    return ir.flatten_stmts(stmts, loop.body.span)
