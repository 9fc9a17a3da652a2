"""NoNestedCall: a call stands alone. Only direct `Call` operands count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pypto import ir
from pypto.ir.walk import exprs_of, walk, walk_stmts
from pypto.passes.diagnostics import Diagnostic, error
from pypto.passes.verify.codes import NestedCallErrorType

_E = NestedCallErrorType


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return the calls that are operands of something."""
    return [each for function in program.functions_.values() for each in _function(function)]


def _function(function: ir.Function) -> Iterator[Diagnostic]:
    for stmt in walk_stmts(function.body):
        if isinstance(stmt, ir.IfStmt):
            yield from _direct((stmt.condition,), _E.CALL_IN_IF_CONDITION, "an if condition")
        elif isinstance(stmt, ir.ForStmt):
            bounds = (stmt.start, stmt.stop, stmt.step)
            yield from _direct(bounds, _E.CALL_IN_FOR_RANGE, "a for range")
        elif isinstance(stmt, ir.WhileStmt):
            yield from _direct((stmt.condition,), _E.CALL_IN_WHILE_CONDITION, "a while condition")
        for expr in exprs_of(stmt):
            if not isinstance(expr, ir.Var):
                yield from _inside(expr, stmt)


def _inside(root: ir.Expr, stmt: ir.Stmt) -> Iterator[Diagnostic]:
    if isinstance(stmt, ir.ScopeStmt):
        return  # a dispatch condition is evaluated by the runtime
    predicate = root.predicate if isinstance(root, ir.Submit) else None
    skipped = {id(node) for node in walk(predicate, once=True)} if predicate is not None else set[int]()
    for node in walk(root, once=True):
        if id(node) in skipped:
            continue
        if isinstance(node, ir.Call | ir.Submit):
            yield from _direct(node.args_, _E.CALL_IN_CALL_ARGS, "the arguments of a call")
        elif isinstance(node, ir.BinaryExpr):
            operands = (node.left, node.right)
            yield from _direct(operands, _E.CALL_IN_BINARY_EXPR, "a binary expression")
        elif isinstance(node, ir.UnaryExpr):
            yield from _direct((node.operand,), _E.CALL_IN_UNARY_EXPR, "a unary expression")


def _direct(operands: Iterable[ir.Expr], kind: NestedCallErrorType, place: str) -> Iterator[Diagnostic]:
    for operand in operands:
        if isinstance(operand, ir.Call):
            message = f"Call to '{operand.op.name}' is nested in {place}"
            yield error("NoNestedCall", kind.value, message, operand.span)
