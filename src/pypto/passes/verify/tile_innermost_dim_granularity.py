"""TileInnermostDimGranularity: loads and stores whose rows are shorter than the target moves well."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from pypto import ir
from pypto.ir.walk import exprs_of, walk_stmts
from pypto.passes.diagnostics import Diagnostic, DiagnosticSeverity
from pypto.passes.target import TargetFacts, current_target

_RULE = "TileInnermostDimGranularity"


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return one hint per place and kind of short row; none without a target."""
    target = current_target()
    if target is None:
        return []
    counts: Counter[tuple[str, str]] = Counter()
    spans: dict[str, ir.Span] = {}
    for message, span in _hits(program, target):
        counts[message, str(span)] += 1
        spans[str(span)] = span
    return [
        Diagnostic(DiagnosticSeverity.PerfHint, _RULE, 0, _counted(message, count), spans[place])
        for (message, place), count in counts.items()
    ]


def _counted(message: str, count: int) -> str:
    return message if count == 1 else f"{message} ({count} occurrences)"


def _hits(program: ir.Program, target: TargetFacts) -> Iterator[tuple[str, ir.Span]]:
    for function in program.functions_.values():
        for stmt in walk_stmts(function.body):
            for call in exprs_of(stmt):
                tile = _moved_tile(call)
                message = None if tile is None else _message(call.op.name, tile, target)  # type: ignore[attr-defined]
                if message is not None:
                    yield message, call.span


def _moved_tile(expr: ir.Expr) -> ir.TileType | None:
    if not isinstance(expr, ir.Call):
        return None
    moved: ir.Type | None = None
    if expr.op.name == "tile.load":
        moved = expr.type
    elif expr.op.name == "tile.store":
        moved = expr.args_[0].type
    return moved if isinstance(moved, ir.TileType) and moved.shape_ else None


def _message(op: str, tile: ir.TileType, target: TargetFacts) -> str | None:
    """The hint about a move of `tile`, None if its rows are long enough or of unknown length."""
    innermost = tile.shape_[-1]
    if not isinstance(innermost, ir.ConstInt):
        return None
    row = _bytes(innermost.value, tile.dtype)
    if row >= target.recommended_innermost_bytes:
        return None
    space = "" if tile.memory_space is None else f", target_memory={tile.memory_space.name}"
    return (
        f"{op} has innermost dim = {row}B (tile {tile.dtype}[{innermost.value}]{space}); "
        f"{_volume(tile)}recommended >= {target.recommended_innermost_bytes}B for backend {target.arch} "
        f"(L2 cache line = {target.l2_cache_line_bytes}B). "
        "Consider increasing tile shape on the innermost axis."
    )


def _volume(tile: ir.TileType) -> str:
    """How much is moved in how many rows, by the valid shape; nothing if that is symbolic."""
    extents = []
    for extent in tile.get_effective_tile_view().valid_shape_:
        if not isinstance(extent, ir.ConstInt):
            return ""
        extents.append(extent.value)
    rows, row = math.prod(extents[:-1]), _bytes(extents[-1], tile.dtype)
    return f"moves {rows * row}B as {rows} x {row}B rows; "


def _bytes(elements: int, dtype: ir.DataType) -> int:
    return (elements * dtype.get_bit() + 7) // 8
