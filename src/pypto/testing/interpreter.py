"""Runs the IR of any stage on numpy arrays, to check the passes.

What a program computes comes from the source that `pypto.debug.torch_codegen` writes for it, which knows
nothing of the passes. Tasks may run in any order that their dependencies allow.
"""

from __future__ import annotations

import functools
from typing import Any

from pypto import ir
from pypto.debug.execution import Function, Machine, OutOfSteps, Undetermined
from pypto.debug.expressions import ExpressionSource
from pypto.debug.python_source import loaded

__all__ = ["MOST_STEPS", "OutOfSteps", "Undetermined", "evaluate", "run"]

MOST_STEPS = 20_000
"""How many turns all loops of a run may take together."""


def run(program: ir.Program, name: str, *arguments: Any, order: int | None = None) -> list[Any]:
    """Run a function on arrays, which are changed in place, and numbers; returns what it returns.

    Args:
        order: None runs tasks in the order of the text; a number seeds a random order of the tasks of a
            lowered program, among those that its dependencies allow.

    Raises:
        Undetermined: see there.
        OutOfSteps: the loops take more turns than a test should.
    """
    return Machine(order, MOST_STEPS, only_kernels_compute=True).run(_loaded(program)[name], arguments)


@functools.lru_cache(maxsize=4)
def _loaded(program: ir.Program) -> dict[str, Function]:
    return loaded(program)


def evaluate(expr: ir.Expr, values: dict[ir.Var, Any]) -> Any:
    """The value of a scalar expression."""
    source, variables = _scalar(expr)
    return eval(source, {name: values[var] for var, name in variables.items()})


@functools.lru_cache(maxsize=64)
def _scalar(expr: ir.Expr) -> tuple[Any, dict[ir.Var, str]]:
    source = ExpressionSource()
    return compile(source.expr(expr), "<scalar>", "eval"), source.names
