"""PipelineLoopValid: a pipeline loop says its stages, and no other loop does."""

from __future__ import annotations

from pypto import ir
from pypto.ir.walk import walk_stmts
from pypto.passes.diagnostics import Diagnostic, error

STAGES = "pipeline_stages"


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return the loops whose kind and stage attribute disagree."""
    found: list[Diagnostic] = []
    for function in program.functions_.values():
        for stmt in walk_stmts(function.body):
            if isinstance(stmt, ir.ForStmt):
                found += _loop(stmt, function.name)
    return found


def _loop(loop: ir.ForStmt, function: str) -> list[Diagnostic]:
    is_pipeline, has_stages = loop.kind is ir.ForKind.Pipeline, STAGES in loop.attrs_
    if is_pipeline == has_stages:
        return []
    if is_pipeline:
        message = f"Pipeline loop without attribute '{STAGES}' in function '{function}'"
        return [error("PipelineLoopValid", 0, message, loop.span)]
    message = f"{loop.kind.name} loop with attribute '{STAGES}' in function '{function}'"
    return [error("PipelineLoopValid", 1, message, loop.span)]
