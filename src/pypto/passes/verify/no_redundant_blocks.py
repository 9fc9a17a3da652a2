"""NoRedundantBlocks: no sequence of one statement, none inside a sequence, a yield only at the end."""

from __future__ import annotations

from collections.abc import Iterator

from pypto import ir
from pypto.ir.walk import walk_stmts
from pypto.passes.diagnostics import Diagnostic, error


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return the sequences that are not in normal form."""
    return check_sequences(program, "NoRedundantBlocks")


def check_sequences(program: ir.Program, rule: str) -> list[Diagnostic]:
    """Return the sequences that are not in normal form, reported under `rule`."""
    return [
        each
        for function in program.functions_.values()
        for stmt in walk_stmts(function.body)
        if isinstance(stmt, ir.SeqStmts)
        for each in _sequence(stmt, rule, function.name)
    ]


def _sequence(sequence: ir.SeqStmts, rule: str, function: str) -> Iterator[Diagnostic]:
    stmts = sequence.stmts_
    where = f"in function '{function}'"
    if len(stmts) == 1:
        yield error(rule, 0, f"SeqStmts with a single child {where}", sequence.span)
    last = len(stmts) - 1
    for position, stmt in enumerate(stmts):
        if isinstance(stmt, ir.SeqStmts):
            yield error(rule, 0, f"SeqStmts directly inside a SeqStmts {where}", stmt.span)
        elif isinstance(stmt, ir.YieldStmt) and position != last:
            yield error(
                rule, 0, f"YieldStmt before the terminating position of its sequence {where}", stmt.span
            )
