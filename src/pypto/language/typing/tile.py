"""`pl.Tile`: annotation and wrapper of tile-typed expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pypto import ir
from pypto.language.typing.shaped import ShapedHandle, split_annotation


class Tile(ShapedHandle):
    """`Tile[[shape], dtype, *extras]` with a memory space, a MemRef and a TileView as extras, in any
    order."""

    __slots__ = ("memory_space", "memref", "tile_view")

    def __init__(
        self,
        shape: Sequence[Any] | None = None,
        dtype: ir.DataType | None = None,
        expr: ir.Expr | None = None,
        memref: Any = None,
        memory_space: ir.MemorySpace | None = None,
        tile_view: ir.TileView | None = None,
    ) -> None:
        self._describe(shape, dtype, expr)
        self.memref = memref
        self.memory_space = memory_space
        self.tile_view = tile_view

    def __class_getitem__(cls, item: object) -> Any:
        parts = split_annotation(cls.__name__, item, extras=3)
        found: dict[str, Any] = {}
        for extra in parts[2:]:
            key = _extra_kind(extra)
            if key in found:
                raise TypeError(f"Tile annotation takes at most one {key}")
            found[key] = extra
        if "memref" in found and "memory_space" not in found:
            raise TypeError(
                "Tile annotation with a MemRef must also specify explicit memory space (pl.Mem.X)"
            )
        return cls(parts[0], parts[1], **found)


def _extra_kind(extra: object) -> str:
    if isinstance(extra, ir.MemRef):
        return "memref"
    if isinstance(extra, ir.MemorySpace):
        return "memory_space"
    if isinstance(extra, ir.TileView):
        return "tile_view"
    if isinstance(extra, ir.TensorLayout):
        raise TypeError("Tile does not accept layouts; use pl.TileView(blayout=..., slayout=...)")
    raise TypeError(f"Unsupported Tile annotation argument of type {type(extra).__name__}")
