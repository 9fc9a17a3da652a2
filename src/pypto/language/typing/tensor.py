"""`pl.Tensor` and `pld.DistributedTensor`: annotations and wrappers of tensor-typed expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pypto import ir
from pypto.language.typing.shaped import ShapedHandle, split_annotation


class Tensor(ShapedHandle):
    """`Tensor[[shape], dtype]`, `Tensor[[shape], dtype, layout_or_memref]`, `Tensor[[shape], dtype, layout,
    memref]`."""

    __slots__ = ("layout", "memref")

    def __init__(
        self,
        shape: Sequence[Any] | None = None,
        dtype: ir.DataType | None = None,
        expr: ir.Expr | None = None,
        layout: Any = None,
        memref: Any = None,
    ) -> None:
        self._describe(shape, dtype, expr)
        self.layout = layout
        self.memref = memref

    def __class_getitem__(cls, item: object) -> Any:
        parts = split_annotation(cls.__name__, item, extras=2)
        layout: Any = None
        memref: Any = None
        if len(parts) == 4:
            layout, memref = parts[2], parts[3]
        elif len(parts) == 3:
            if isinstance(parts[2], ir.MemRef):
                memref = parts[2]
            else:
                layout = parts[2]
        return cls(parts[0], parts[1], layout=layout, memref=memref)

    def bind_dynamic(self, dim: int, var: object) -> None:
        """Mark dimension `dim` as dynamic; read from the source by the JIT, without effect here."""


class DistributedTensor(Tensor):
    """A tensor that lives in a window visible to all ranks."""

    __slots__ = ()

    def __class_getitem__(cls, item: object) -> Any:
        if isinstance(item, tuple) and item and isinstance(item[-1], str):
            item = item[:-1]  # printed text may name the window buffer; it is derived again from the body
        return super().__class_getitem__(item)
