"""Window buffers: memory of one size in every rank, which all ranks can reach.

In front of each rank's window lies its communication context, as `pypto_windows.h` reads it: the rank, how
many there are, whether one has failed, and where the windows of all ranks are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pypto.core.dtype import DataType
from pypto.ir.comm_layout import (
    COMM_CTX_SIZE,
    RANK_ID_OFFSET,
    RANK_NUM_OFFSET,
    WINDOW_SLOT_STRIDE,
    WINDOWS_IN_OFFSET,
)
from pypto.runtime.array_types import numpy_dtype, runtime_shape

MOST_RANKS = 64
_ALIGNMENT = 64
_CONTEXT_BYTES = -(-COMM_CTX_SIZE // _ALIGNMENT) * _ALIGNMENT  # so that the window behind it is aligned
_ABORTED_OFFSET = 24  # a reserved word of the context


class WindowBuffer:
    """The windows of all ranks."""

    def __init__(self, name: str, nbytes: int, ranks: int) -> None:
        if nbytes <= 0:
            raise ValueError(f"window buffer '{name}' must have a positive size, got {nbytes} bytes")
        self.name = name
        self.nbytes = nbytes
        self._memory = [_aligned(_CONTEXT_BYTES + nbytes) for _ in range(ranks)]
        addresses = [memory.ctypes.data + _CONTEXT_BYTES for memory in self._memory]
        for rank, memory in enumerate(self._memory):
            _words(memory, RANK_ID_OFFSET, np.int32, 1)[0] = rank
            _words(memory, RANK_NUM_OFFSET, np.int32, 1)[0] = ranks
            assert WINDOW_SLOT_STRIDE == 8
            _words(memory, WINDOWS_IN_OFFSET, np.uint64, ranks)[:] = addresses

    def of_rank(self, rank: int) -> np.ndarray[Any, Any]:
        """The bytes of one rank's window."""
        return self._memory[rank][_CONTEXT_BYTES:]

    def clear(self) -> None:
        """Make all windows zero."""
        for rank in range(len(self._memory)):
            self.of_rank(rank)[:] = 0

    def set_aborted(self, aborted: bool) -> None:
        """Tell kernels that wait for a signal whether a rank has failed."""
        for memory in self._memory:
            _words(memory, _ABORTED_OFFSET, np.int32, 1)[0] = aborted


@dataclass(frozen=True, slots=True)
class Window:
    """A buffer seen as a tensor; each rank sees its own part."""

    buffer: WindowBuffer
    shape: tuple[int, ...]
    dtype: DataType

    def of_rank(self, rank: int) -> np.ndarray[Any, Any]:
        """The tensor that one rank sees."""
        kind, shape = numpy_dtype(self.dtype), runtime_shape(list(self.shape), self.dtype)
        size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
        if size > self.buffer.nbytes:
            raise ValueError(
                f"a window {list(self.shape)} of {self.dtype} takes {size} bytes, buffer "
                f"'{self.buffer.name}' has {self.buffer.nbytes}"
            )
        return self.buffer.of_rank(rank)[:size].view(kind).reshape(shape)


def _aligned(nbytes: int) -> np.ndarray[Any, Any]:
    memory = np.zeros(nbytes + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + nbytes]


def _words(memory: np.ndarray[Any, Any], offset: int, kind: Any, count: int) -> np.ndarray[Any, Any]:
    return memory[offset : offset + np.dtype(kind).itemsize * count].view(kind)
