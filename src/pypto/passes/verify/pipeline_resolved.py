"""PipelineResolved: no pipeline loop and no stage attribute remains."""

from __future__ import annotations

from pypto import ir
from pypto.ir.walk import walk_stmts
from pypto.passes.diagnostics import Diagnostic, error
from pypto.passes.verify.pipeline_loop_valid import STAGES


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return the remaining pipeline loops."""
    return [
        error("PipelineResolved", 0, f"Pipeline loop remains in function '{function.name}'", stmt.span)
        for function in program.functions_.values()
        for stmt in walk_stmts(function.body)
        if isinstance(stmt, ir.ForStmt) and (stmt.kind is ir.ForKind.Pipeline or STAGES in stmt.attrs_)
    ]
