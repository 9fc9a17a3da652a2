"""The calls and submits of a function that go to functions of the program."""

from __future__ import annotations

from collections.abc import Iterator

from pypto import ir
from pypto.ir.walk import exprs_of, walk, walk_stmts

Dispatch = ir.Call | ir.Submit


def dispatches_of(function: ir.Function) -> Iterator[Dispatch]:
    """Yield every call or submit whose callee is a GlobalVar, in program order."""
    for stmt in walk_stmts(function.body):
        for expr in exprs_of(stmt):
            if isinstance(expr, ir.Var):
                continue
            for node in walk(expr, once=True):
                if isinstance(node, Dispatch) and isinstance(node.op, ir.GlobalVar):
                    yield node
