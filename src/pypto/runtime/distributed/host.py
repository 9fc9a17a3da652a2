"""What a generated host function asks of the runtime: slices, windows, dispatches."""

from __future__ import annotations

import contextvars
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pypto.core.dtype import DataType, dtype_from_text
from pypto.runtime.array_types import numpy_dtype
from pypto.runtime.device_tensor import DeviceTensor, StackedDeviceTensor
from pypto.runtime.distributed.collectives import ON_ALL_RANKS
from pypto.runtime.distributed.ranks import Access, Ranks, Run, Task
from pypto.runtime.distributed.windows import Window, WindowBuffer
from pypto.runtime.native_runtime import set_cancel_token

Dispatch = Callable[[int, str, Sequence[Any]], object]


class HostRuntime:
    """One run of a host function. The generated code calls its methods; see `codegen.host_orchestration`.

    `dispatch_to(rank, name, args)` runs a chip program on a rank's thread.
    """

    def __init__(
        self,
        ranks: Ranks,
        dispatch_to: Dispatch,
        callbacks: Mapping[str, Callable[..., Any]],
        buffers: dict[str, WindowBuffer],
    ) -> None:
        self._ranks = ranks
        self._dispatch_to = dispatch_to
        self._callbacks = callbacks
        self._buffers = buffers
        self._turn = 0
        self.run = Run(self._abort)

    def _abort(self) -> None:
        for buffer in self._buffers.values():
            buffer.set_aborted(True)

    # -- topology and windows ----------------------------------------------------------------------------

    def world_size(self) -> int:
        return len(self._ranks)

    def alloc_window_buffer(self, name: str, nbytes: int) -> WindowBuffer:
        known = self._buffers.get(name)
        if known is None or known.nbytes != nbytes:
            known = self._buffers[name] = WindowBuffer(name, nbytes, len(self._ranks))
        return known

    def window(self, buffer: WindowBuffer, shape: Sequence[int], dtype: str) -> Window:
        return Window(buffer, tuple(shape), _element_type(dtype))

    # -- host tensors ------------------------------------------------------------------------------------

    def slice(self, tensor: Any, shape: Sequence[int], offset: Sequence[int], dropped: Sequence[int]) -> Any:
        """A view of a host tensor; of a stacked resident tensor, the shard of one rank."""
        if isinstance(tensor, StackedDeviceTensor):
            return tensor[offset[0]]
        for begin, extent, limit in zip(offset, shape, tensor.shape, strict=True):
            if begin < 0 or begin + extent > limit:
                raise ValueError(
                    f"slice {list(offset)} of shape {list(shape)} exceeds a tensor of shape "
                    f"{list(tensor.shape)}"
                )
        part = tensor[tuple(slice(o, o + n) for o, n in zip(offset, shape, strict=True))]
        kept = [extent for axis, extent in enumerate(part.shape) if axis not in set(dropped)]
        return part.reshape(kept) if dropped else part

    def reshape(self, tensor: Any, shape: Sequence[int]) -> Any:
        return tensor.reshape(shape)

    def create(self, shape: Sequence[int], dtype: str) -> np.ndarray[Any, Any]:
        return np.zeros(tuple(shape), numpy_dtype(_element_type(dtype)))

    def dim(self, tensor: Any, axis: int) -> int:
        return int(tensor.shape[axis])

    def read(self, tensor: Any, index: Sequence[int]) -> Any:
        """One element, once earlier dispatches have written it."""
        self.run.wait(self.run.conflicting(_accesses([tensor], "r")))
        return tensor[tuple(index)].item()

    def write(self, tensor: Any, index: Sequence[int], value: Any) -> Any:
        self.run.wait(self.run.conflicting(_accesses([tensor], "w")))
        tensor[tuple(index)] = value
        return tensor

    # -- dispatches --------------------------------------------------------------------------------------

    def dispatch(
        self,
        name: str,
        args: Sequence[Any],
        access: str,
        returned: Sequence[int | None] = (),
        device: int | None = None,
    ) -> Any:
        """Give a chip program to a rank: to the next in turn without `device`. Gives what it returns: the
        arguments at the places `returned`."""
        if self.run.error is not None:
            self.run.wait()
        if device is None:
            device, self._turn = self._turn, (self._turn + 1) % len(self._ranks)
        rank = int(device)
        if not 0 <= rank < len(self._ranks):
            raise ValueError(f"'{name}' is dispatched to rank {rank} of {len(self._ranks)}")
        own = [arg.of_rank(rank) if isinstance(arg, Window) else arg for arg in args]
        host = [arg for arg in args if not isinstance(arg, Window)]
        letters = "".join(
            letter for letter, arg in zip(access, args, strict=False) if not isinstance(arg, Window)
        )
        context = contextvars.copy_context()
        context.run(set_cancel_token, self.run.token)
        work = functools.partial(context.run, self._dispatch_to, rank, name, own)
        self._ranks.start(Task(rank, work, _accesses(host, letters), self.run))
        results = [args[index] for index in returned if index is not None]
        return results[0] if len(results) == 1 else tuple(results)

    def collective(self, kind: str, args: Sequence[Any], result: int, **options: int) -> Any:
        """Do with the windows of all ranks what `kind` says, once earlier dispatches have ended; gives the
        argument at the place `result`."""
        self.run.wait()
        ranks = range(len(self._ranks))
        ON_ALL_RANKS[kind](
            *([arg.of_rank(rank) if isinstance(arg, Window) else arg for rank in ranks] for arg in args),
            **options,
        )
        return args[result]

    def sub_worker(self, name: str, args: Sequence[Any]) -> Any:
        """Run a function of the host on the arguments, once earlier dispatches are done with them."""
        function = self._callbacks.get(name)
        if function is None:
            raise ValueError(f"SubWorker '{name}' has no body: it must be supplied via callbacks")
        self.run.wait(self.run.conflicting(_accesses(args, "w" * len(args))))
        return function(list(args))


def _element_type(text: str) -> DataType:
    dtype = dtype_from_text(text)
    assert dtype is not None, "generated code names known types"
    return dtype


def _accesses(args: Sequence[Any], letters: str) -> list[Access]:
    """What a dispatch does to memory outside of windows. Without letters everything is taken as written."""
    found = []
    for position, arg in enumerate(args):
        writes = position >= len(letters) or letters[position] == "w"
        if isinstance(arg, np.ndarray):
            begin = arg.__array_interface__["data"][0]
            found.append(Access(begin, begin + arg.nbytes, writes))
        elif isinstance(arg, DeviceTensor):
            found.append(Access(arg.data_ptr, arg.data_ptr + arg.nbytes, writes))
    return found
