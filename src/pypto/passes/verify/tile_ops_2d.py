"""TileOps2D: kernels compute on tiles of at most two dimensions."""

from __future__ import annotations

from collections.abc import Iterator

from pypto import ir
from pypto.ir.walk import exprs_of, walk_stmts
from pypto.passes.diagnostics import Diagnostic, error

_RULE = "TileOps2D"
_ANY_RANK = frozenset({"tile.load", "tile.store", "tile.reshape", "tile.reinterpret_view"})


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return the tile operators in a form that only earlier stages know."""
    return [
        each
        for function in program.functions_.values()
        if ir.is_incore_type(function.func_type)
        for stmt in walk_stmts(function.body)
        for call in exprs_of(stmt)
        if isinstance(call, ir.Call) and call.op.name.startswith("tile.")
        for each in _call(call, function.name)
    ]


def _call(call: ir.Call, function: str) -> Iterator[Diagnostic]:
    name = call.op.name
    where = f"'{name}' in function '{function}'"
    if name not in _ANY_RANK:
        for type_ in (call.type, *(argument.type for argument in call.args_)):
            if isinstance(type_, ir.TileType) and len(type_.shape_) > 2:
                yield error(_RULE, 0, f"{where} has a tile of rank {len(type_.shape_)}", call.span)
                break
    if name == "tile.transpose" and len(call.args_) != 4:
        yield error(_RULE, 0, f"{where} has {len(call.args_)} arguments, expected 4", call.span)
    if name == "tile.assemble" and not _has_literal_offset(call):
        yield error(_RULE, 0, f"{where} needs a literal offset of two elements", call.span)


def _has_literal_offset(call: ir.Call) -> bool:
    return (
        len(call.args_) > 2 and isinstance(call.args_[2], ir.MakeTuple) and len(call.args_[2].elements_) == 2
    )
