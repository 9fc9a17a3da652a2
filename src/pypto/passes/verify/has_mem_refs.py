"""HasMemRefs: every tile variable has its place in memory."""

from __future__ import annotations

from pypto import ir
from pypto.ir.walk import walk_stmts
from pypto.passes.diagnostics import Diagnostic, error
from pypto.passes.verify.definitions import definitions_of


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return the tile variables of kernels without a memory reference."""
    return [
        error(
            "HasMemRefs",
            0,
            f"Tile variable '{var.name_hint}' in function '{function.name}' has no MemRef",
            var.span,
        )
        for function in program.functions_.values()
        for stmt in walk_stmts(function.body)
        for var in definitions_of(stmt)
        if isinstance(var.type, ir.TileType) and var.type.memref is None
    ]
