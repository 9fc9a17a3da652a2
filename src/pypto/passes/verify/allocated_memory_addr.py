"""AllocatedMemoryAddr: every tile has an address that is not negative, and the tiles of a function fit.

How much fits is a fact of the target; without one, only addresses are checked.
"""

from __future__ import annotations

from collections.abc import Iterator

from pypto import ir
from pypto.ir.walk import walk_stmts
from pypto.passes.diagnostics import Diagnostic, error
from pypto.passes.target import current_target
from pypto.passes.verify.definitions import definitions_of

_RULE = "AllocatedMemoryAddr"


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return the tiles whose address is unknown or negative, and the spaces that are too small."""
    return [each for function in program.functions_.values() for each in _function(function)]


def _function(function: ir.Function) -> Iterator[Diagnostic]:
    used: dict[ir.MemorySpace, int] = {}
    for var, memref in _placed_tiles(function):
        offset = memref.byte_offset_
        if isinstance(offset, ir.ConstInt) and offset.value >= 0:
            space = var.type.memory_space  # type: ignore[attr-defined]
            used[space] = max(used.get(space, 0), offset.value + memref.size_)
            continue
        is_constant = isinstance(offset, ir.ConstInt)
        what = f"the negative address {offset}" if is_constant else "no constant address"
        message = f"Tile variable '{var.name_hint}' in function '{function.name}' has {what}"
        yield error(_RULE, 0, message, var.span)
    target = current_target()
    if target is None:
        return
    for space, usage in used.items():
        limit = target.memory_bytes.get(space)
        if limit is not None and usage > limit:
            message = (
                f"Function '{function.name}' uses {usage} bytes of {space.name}, "
                f"but backend {target.arch} has {limit}"
            )
            yield error(_RULE, 1, message, function.span)


def _placed_tiles(function: ir.Function) -> Iterator[tuple[ir.Var, ir.MemRef]]:
    for stmt in walk_stmts(function.body):
        for var in definitions_of(stmt):
            if isinstance(var.type, ir.TileType) and var.type.memref is not None:
                yield var, var.type.memref
