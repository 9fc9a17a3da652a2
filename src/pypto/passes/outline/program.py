"""Outlining over a whole program: which functions are processed, and the program that results."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pypto import ir
from pypto.passes.outline.outliner import OutlinedFunction

__all__ = ["outline_program"]


def outline_program(
    program: ir.Program,
    processed: Iterable[ir.FunctionType],
    outline: Callable[[ir.Function, set[str]], OutlinedFunction],
) -> ir.Program:
    """Apply `outline` to each function of a processed type, in name order.

    `outline` is given the names taken so far, and adds to them. Returns the same program if nothing changed.
    """
    types = frozenset(processed)
    reserved = set(program.functions_)
    functions: list[ir.Function] = []
    changed = False
    for function in program.functions_.values():
        if function.func_type in types:
            result = outline(function, reserved)
            changed = changed or result.parent is not function
            functions += (result.parent, *result.outlined)
        else:
            functions.append(function)
    return ir.Program(functions, program.name, program.span) if changed else program
