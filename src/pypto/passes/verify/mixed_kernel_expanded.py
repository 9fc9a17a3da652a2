"""MixedKernelExpanded: no InCore function does both matrix and vector work; those are AIC, AIV or a Group."""

from __future__ import annotations

from pypto import ir
from pypto.ir.walk import exprs_of, walk_stmts
from pypto.passes.diagnostics import Diagnostic, error
from pypto.passes.expand_mixed_kernel import core_sides


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return the InCore functions that need both kinds of core."""
    found: list[Diagnostic] = []
    for name, function in program.functions_.items():
        if function.func_type is not ir.FunctionType.InCore:
            continue
        sides = {
            side
            for stmt in walk_stmts(function.body)
            for call in exprs_of(stmt)
            if isinstance(call, ir.Call | ir.Submit)
            for side in core_sides(call)
        }
        if len(sides) > 1:
            message = f"InCore function '{name}' mixes cube and vector operators"
            found.append(error("MixedKernelExpanded", 0, message, function.span))
    return found
