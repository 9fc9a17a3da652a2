"""Tensors that live with a worker between runs: states, caches, weights.

On a CPU their memory is ordinary memory that the worker owns. A tensor that a worker allocated carries the
allocation itself, so that one whose memory was freed, or given to a newer tensor, is told from a live one.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pypto.core.dtype import DataType
from pypto.runtime.array_types import numpy_dtype

__all__ = ["DeviceBuffer", "DeviceTensor", "StackedDeviceTensor"]


@dataclass(frozen=True, eq=False, slots=True)
class DeviceBuffer:
    """One allocation of one worker."""

    base: int
    nbytes: int
    owner: object
    memory: np.ndarray[Any, Any] = field(repr=False)


@dataclass(frozen=True)
class DeviceTensor:
    """A row-major tensor in a worker's memory. Without `buffer` it is an address, which no run accepts."""

    data_ptr: int
    shape: tuple[int, ...]
    dtype: Any
    buffer: Any = field(default=None, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        if type(self.data_ptr) is not int or self.data_ptr <= 0:
            raise ValueError(f"data_ptr must be a positive int, got {self.data_ptr!r}")
        object.__setattr__(self, "shape", checked_shape(self.shape))
        object.__setattr__(self, "dtype", checked_dtype(self.dtype))
        base = getattr(self.buffer, "base", self.data_ptr)
        if base != self.data_ptr:
            raise ValueError(f"buffer base 0x{base:x} is not data_ptr 0x{self.data_ptr:x}")

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return math.prod(self.shape) * itemsize_of(self.dtype)

    def __repr__(self) -> str:
        return f"DeviceTensor(data_ptr=0x{self.data_ptr:x}, shape={self.shape}, dtype={self.dtype})"


@dataclass(frozen=True)
class StackedDeviceTensor:
    """One shard per worker of a tensor whose leading dim counts the workers."""

    shards: tuple[DeviceTensor, ...]
    full_shape: tuple[int, ...]
    worker_ids: tuple[int, ...]

    def __post_init__(self) -> None:
        for name in ("shards", "full_shape", "worker_ids"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if len(self.full_shape) < 2:
            raise ValueError(f"full_shape needs a rank of at least 2, got {self.full_shape}")
        checked_shape(self.full_shape)
        count = self.full_shape[0]
        if len(self.shards) != count or len(self.worker_ids) != count:
            raise ValueError(
                f"the leading dim is {count}, but there are {len(self.shards)} shards "
                f"and {len(self.worker_ids)} worker ids"
            )
        if len(set(self.worker_ids)) != count:
            raise ValueError(f"worker ids must be distinct, got {self.worker_ids}")
        for i, shard in enumerate(self.shards):
            if not isinstance(shard, DeviceTensor):
                raise TypeError(f"shard {i} must be a DeviceTensor, got {type(shard).__name__}")
            if shard.shape != self.full_shape[1:]:
                raise ValueError(f"shard {i} has shape {shard.shape}, expected {self.full_shape[1:]}")
            if shard.dtype != self.shards[0].dtype:
                raise ValueError(f"shard {i} has dtype {shard.dtype}, expected {self.shards[0].dtype}")

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the whole."""
        return self.full_shape

    @property
    def dtype(self) -> Any:
        """The dtype of all shards."""
        return self.shards[0].dtype

    def __getitem__(self, index: Any) -> DeviceTensor:
        """Shard i: `s[i]`, also with `...` or full slices after it."""
        first, *rest = index if isinstance(index, tuple) else (index,)
        if type(first) is not int:
            raise TypeError(f"the first index must be an int, got {type(first).__name__}")
        if not 0 <= first < len(self.shards):
            raise IndexError(f"shard {first} of {len(self.shards)}")
        tail = self.full_shape[1:]
        if sum(entry is Ellipsis for entry in rest) > 1 or len(rest) > len(tail) + (Ellipsis in rest):
            raise ValueError(f"too many indices for shape {self.full_shape}")
        if Ellipsis in rest:
            at = rest.index(Ellipsis)
            rest[at : at + 1] = [slice(None)] * (len(tail) - len(rest) + 1)
        for entry, extent in zip(rest, tail, strict=False):
            if not isinstance(entry, slice):
                raise TypeError(f"only full slices may follow the shard, got {type(entry).__name__}")
            if entry.indices(extent) != (0, extent, 1):
                raise ValueError(f"a shard cannot be cut: slice {entry} of extent {extent}")
        return self.shards[first]


def checked_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """`shape` as a tuple. Raises `TypeError` for what are no ints, `ValueError` for none or not positive."""
    if isinstance(shape, str | bytes) or not hasattr(shape, "__iter__"):
        raise TypeError(f"shape must be a sequence of ints, got {type(shape).__name__}")
    dims = tuple(shape)
    for dim in dims:
        if isinstance(dim, bool) or not isinstance(dim, int | np.integer):
            raise TypeError(f"shape must consist of ints, got {type(dim).__name__}")
    if not dims or min(dims) <= 0:
        raise ValueError(f"shape must be non-empty and positive, got {dims}")
    return tuple(int(dim) for dim in dims)


def checked_dtype(dtype: Any) -> Any:
    """A torch dtype as it is, everything else that names an element type as a numpy dtype. `TypeError`."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(dtype, torch.dtype):
        return dtype
    if isinstance(dtype, DataType):
        return numpy_dtype(dtype)
    if isinstance(dtype, np.dtype) or (isinstance(dtype, type) and issubclass(dtype, np.generic)):
        return np.dtype(dtype)
    raise TypeError(f"dtype must be a torch or numpy dtype, got {dtype!r}")


def itemsize_of(dtype: Any) -> int:
    """Bytes per element of a torch or numpy dtype."""
    return int(dtype.itemsize)
