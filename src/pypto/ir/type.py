"""Import path of the type classes and their views; extents may be ints, expressions or both."""

from __future__ import annotations

from pypto.ir.types import (
    ArrayType,
    AsyncEventType,
    AsyncSessionType,
    CommCtxType,
    DistributedTensorType,
    PrefetchAsyncContextType,
    PtrType,
    ScalarType,
    ShapedType,
    TensorType,
    TileType,
    TupleType,
    Type,
    UnknownType,
    WindowBufferType,
)  # fmt: skip
from pypto.ir.views import TensorView, TileView

__all__ = [
    "ArrayType", "AsyncEventType", "AsyncSessionType", "CommCtxType", "DistributedTensorType",
    "PrefetchAsyncContextType", "PtrType", "ScalarType", "ShapedType", "TensorType", "TensorView", "TileType",
    "TileView", "TupleType", "Type", "UnknownType", "WindowBufferType",
]  # fmt: skip
