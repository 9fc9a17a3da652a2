"""IterArgCarryClassified: each carried value of an orchestration loop says how it is carried."""

from __future__ import annotations

from collections.abc import Iterator

from pypto import ir
from pypto.ir.walk import walk_stmts
from pypto.passes.diagnostics import Diagnostic, error

_RULE = "IterArgCarryClassified"


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return the carried values without classification."""
    return [
        each
        for function in program.functions_.values()
        if function.func_type is ir.FunctionType.Orchestration
        for stmt in walk_stmts(function.body)
        if isinstance(stmt, ir.ForStmt)
        for each in _loop(stmt, function.name)
    ]


def _loop(loop: ir.ForStmt, function: str) -> Iterator[Diagnostic]:
    for index, iter_arg in enumerate(loop.iter_args_):
        rebind = loop.attrs_.get(f"iter_arg_rebind_{index}")
        if rebind is None:
            message = (
                f"iter_arg '{iter_arg.name_hint}' of a loop in function '{function}' has no attribute "
                f"iter_arg_rebind_{index}"
            )
            yield error(_RULE, 0, message, loop.span)
        size = loop.attrs_.get(f"iter_arg_array_size_{index}", 0)
        if isinstance(size, int) and size > 0 and rebind is not True:
            message = (
                f"iter_arg '{iter_arg.name_hint}' of a loop in function '{function}' has an array size but "
                "is not rebound"
            )
            yield error(_RULE, 0, message, loop.span)
