"""AllocatedMemoryAddr: every tile has an address, and it is not negative.

Limits of memory spaces belong to a device; the CPU has none to check.
"""

from __future__ import annotations

from pypto import ir
from pypto.ir.walk import walk_stmts
from pypto.passes.diagnostics import Diagnostic, error
from pypto.passes.verify.definitions import definitions_of


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return the tile variables whose address is unknown or negative."""
    found: list[Diagnostic] = []
    for function in program.functions_.values():
        for stmt in walk_stmts(function.body):
            for var in definitions_of(stmt):
                if isinstance(var.type, ir.TileType) and var.type.memref is not None:
                    found += _address(var, var.type.memref, function.name)
    return found


def _address(var: ir.Var, memref: ir.MemRef, function: str) -> list[Diagnostic]:
    offset = memref.byte_offset_
    if isinstance(offset, ir.ConstInt) and offset.value >= 0:
        return []
    what = (
        f"the negative address {offset.value}" if isinstance(offset, ir.ConstInt) else "no constant address"
    )
    message = f"Tile variable '{var.name_hint}' in function '{function}' has {what}"
    return [error("AllocatedMemoryAddr", 0, message, var.span)]
