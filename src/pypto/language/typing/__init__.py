"""Annotation classes and expression wrappers of the DSL."""

from __future__ import annotations

from pypto.language.typing.array import Array
from pypto.language.typing.direction import InOut, Out
from pypto.language.typing.dynamic import RUNTIME, DynVar, dynamic
from pypto.language.typing.handle import ExprHandle
from pypto.language.typing.memref import MemRef
from pypto.language.typing.opaque import AsyncEvent, AsyncSession, CommCtx, PrefetchAsyncContext, Ptr
from pypto.language.typing.scalar import IntLike, Scalar
from pypto.language.typing.tensor import DistributedTensor, Tensor
from pypto.language.typing.tile import Tile
from pypto.language.typing.tuple import Tuple

__all__ = [
    "Array",
    "AsyncEvent",
    "AsyncSession",
    "CommCtx",
    "DistributedTensor",
    "DynVar",
    "ExprHandle",
    "InOut",
    "IntLike",
    "MemRef",
    "Out",
    "PrefetchAsyncContext",
    "Ptr",
    "RUNTIME",
    "Scalar",
    "Tensor",
    "Tile",
    "Tuple",
    "dynamic",
]
