"""Builders of ``pld.tile.*`` calls: one-sided transfers of tiles."""

from __future__ import annotations

from typing import Any

from pypto.core.span import Span
from pypto.ir.expr import Call, Expr
from pypto.ir.op.build import at, call, extents
from pypto.ir.op.distributed.system_ops import int32_operand


def remote_load(
    target: Expr, peer: Any, offsets: Any, shape: Any, valid_shape: Any = None, span: Span | None = None
) -> Call:
    """A window of a peer's slice as a tile."""
    return _remote_load(target, peer, offsets, shape, valid_shape, at(span))


def _remote_load_with_physical_tail_padding(
    target: Expr, peer: Any, offsets: Any, shape: Any, valid_shape: Any = None, span: Span | None = None
) -> Call:
    """As `remote_load`, for a window that may reach past the slice; only the compiler makes such calls."""
    return _remote_load(target, peer, offsets, shape, valid_shape, at(span), allow_physical_tail_padding=True)


def _remote_load(
    target: Expr, peer: Any, offsets: Any, shape: Any, valid_shape: Any, span: Span, **kwargs: bool
) -> Call:
    args = [target, int32_operand(peer, span), extents(offsets, span), extents(shape, span)]
    if valid_shape is not None:
        args.append(extents(valid_shape, span))
    return call("pld.tile.remote_load", args, span, **kwargs)


def remote_store(
    src_tile: Expr, target: Expr, peer: Any, offsets: Any, span: Span | None = None, *, atomic: int = 0
) -> Call:
    """Write (or add) a tile into a peer's slice."""
    span = at(span)
    args = [src_tile, target, int32_operand(peer, span), extents(offsets, span)]
    return call("pld.tile.remote_store", args, span, **({"atomic": atomic} if atomic else {}))


def region_operands(dst_offsets: Any, src_offsets: Any, shape: Any, span: Span) -> list[Expr]:
    """The three operands of a region transfer, or none."""
    given = [part is not None for part in (dst_offsets, src_offsets, shape)]
    if not any(given):
        return []
    if not all(given):
        raise ValueError("dst_offsets, src_offsets and shape must be provided together")
    return [extents(part, span) for part in (dst_offsets, src_offsets, shape)]


def put(
    dst: Expr,
    peer: Any,
    src: Expr,
    stage: Expr,
    stage2: Expr | None = None,
    dst_offsets: Any = None,
    src_offsets: Any = None,
    shape: Any = None,
    span: Span | None = None,
    *,
    atomic: int = 0,
) -> Call:
    """Copy into a peer's slice through staging tiles."""
    span = at(span)
    args = _staged(
        dst, peer, src, stage, stage2, region_operands(dst_offsets, src_offsets, shape, span), span
    )
    return call("pld.tile.put", args, span, atomic=atomic)


def get(
    dst: Expr,
    peer: Any,
    src: Expr,
    stage: Expr,
    stage2: Expr | None = None,
    dst_offsets: Any = None,
    src_offsets: Any = None,
    shape: Any = None,
    span: Span | None = None,
) -> Call:
    """Copy from a peer's slice through staging tiles."""
    span = at(span)
    args = _staged(
        dst, peer, src, stage, stage2, region_operands(dst_offsets, src_offsets, shape, span), span
    )
    return call("pld.tile.get", args, span)


def _staged(
    dst: Expr, peer: Any, src: Expr, stage: Expr, stage2: Expr | None, region: list[Expr], span: Span
) -> list[Expr]:
    second = [] if stage2 is None else [stage2]
    return [dst, int32_operand(peer, span), src, stage, *second, *region]
