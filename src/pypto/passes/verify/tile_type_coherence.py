"""TileTypeCoherence: a tile view that says only what its memory space implies is not stored."""

from __future__ import annotations

from pypto import ir
from pypto.ir.walk import walk_stmts
from pypto.passes.diagnostics import Diagnostic, error
from pypto.passes.verify.definitions import definitions_of


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return the tile types with a redundant view."""
    found: list[Diagnostic] = []
    for function in program.functions_.values():
        variables = list(function.params_)
        for stmt in walk_stmts(function.body):
            variables += definitions_of(stmt)
        for var in variables:
            if _has_redundant_view(var.type):
                message = (
                    f"Tile '{var.name_hint}' in function '{function.name}' stores the view that its memory "
                    "space implies; the canonical form has no view"
                )
                found.append(error("TileTypeCoherence", 1, message, var.span))
    return found


def _has_redundant_view(type_: ir.Type) -> bool:
    if not isinstance(type_, ir.TileType) or type_.tile_view is None:
        return False
    implicit = ir.TileType(type_.shape_, type_.dtype, memory_space=type_.memory_space)
    return type_.get_effective_tile_view() == implicit.get_effective_tile_view()
