"""AccToGmStoreValid: an accumulator tile is stored only to element types the write-out path converts to."""

from __future__ import annotations

from pypto import ir
from pypto.ir.walk import exprs_of, walk_stmts
from pypto.passes.diagnostics import Diagnostic, error

_D = ir.DataType
_STORABLE = frozenset({_D.INT32, _D.FP32, _D.FP16, _D.BF16})


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return the stores of accumulator tiles to other element types."""
    return [
        error(
            "AccToGmStoreValid",
            1,
            f"An Acc tile cannot be stored to a tensor of {call.args_[2].type.dtype} "  # type: ignore[attr-defined]
            f"in function '{function.name}'",
            call.span,
        )
        for function in program.functions_.values()
        for stmt in walk_stmts(function.body)
        for call in exprs_of(stmt)
        if isinstance(call, ir.Call) and call.op.name == "tile.store" and _is_bad_store(call)
    ]


def _is_bad_store(store: ir.Call) -> bool:
    if len(store.args_) < 3:
        return False
    tile, tensor = store.args_[0].type, store.args_[2].type
    return (
        isinstance(tile, ir.TileType)
        and isinstance(tensor, ir.TensorType)
        and tile.memory_space is ir.MemorySpace.Acc
        and tensor.dtype not in _STORABLE
    )
