"""Transfers with the windows of other ranks, in terms of tiles."""

from __future__ import annotations

from pypto import ir
from pypto.passes.convert_tensor_to_tile_ops.kernel import KernelLowering, Vec
from pypto.passes.convert_tensor_to_tile_ops.pieces import elements, scratch, shown_name, with_rank

__all__ = ["remote_store", "transfer"]

_STAGE_BYTES = 1 << 16


def remote_store(k: KernelLowering, call: ir.Call, var: ir.Var | None) -> ir.Expr:
    """What is stored is a tile."""
    source, target, peer, offsets = call.args_
    tile = with_rank(k, k.tile(source, Vec), max(2, len(elements(offsets))))
    return k.op("pld.tile.remote_store", [tile, k.current(target), peer, offsets], **call.kwargs_)


def transfer(k: KernelLowering, call: ir.Call, var: ir.Var | None) -> ir.Expr:
    """A transfer goes through a staging tile, or two that take turns."""
    dst, peer, src, *region = call.args_
    for operand in (dst, src):
        if not k.is_memory(operand):
            raise ValueError(
                f"{call.op.name} moves memory, but '{shown_name(operand)}' is computed inside the kernel; "
                f"use pld.tensor.remote_store [{k.span}]"
            )
    kind = dst.type
    assert isinstance(kind, ir.TensorType)
    extents = elements(region[2]) if region else kind.shape_
    stages = [
        scratch(k, f"{call.op.name.rpartition('.')[2]}_stage{n}", _stage(k, call, kind, extents), kind.dtype)
        for n in range(2 if call.kwargs_.get("pipeline") else 1)
    ]
    kwargs = {"atomic": call.kwargs_["atomic"]} if call.kwargs_.get("atomic") is not None else {}
    name = f"pld.tile.{call.op.name.rpartition('.')[2]}"
    return k.op(name, [k.current(dst), peer, k.current(src), *stages, *region], **kwargs)


def _stage(
    k: KernelLowering, call: ir.Call, kind: ir.TensorType, extents: tuple[ir.Expr, ...]
) -> list[ir.Expr]:
    """Rows and columns of the staging tile: the chunk that is asked for, else what fits."""
    columns = call.kwargs_.get("chunk_cols") or _constant(extents[-1])
    fitting = max(1, _STAGE_BYTES // (columns * kind.dtype.get_byte()))
    rows = _constant(extents[-2]) if len(extents) > 1 else 1
    return [k.index(call.kwargs_.get("chunk_rows") or min(rows, fitting)), k.index(columns)]


def _constant(extent: ir.Expr) -> int:
    return extent.value if isinstance(extent, ir.ConstInt) else 1
