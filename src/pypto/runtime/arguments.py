"""From the arguments of a call to what the runtime takes: addresses, layouts, scalar bits.

Arrays are used in place, never copied: numpy arrays, torch tensors (recognised by `data_ptr`, torch is not
imported), and whatever offers `__array_interface__` or `__dlpack__`. Everything about a parameter that does
not change from call to call is worked out once, in `ArgumentBinder`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any

import numpy as np

from pypto import ir
from pypto.runtime import task_interface
from pypto.runtime.array_types import ARRAY_NAMES, dtype_name, numpy_dtype, runtime_shape
from pypto.runtime.device_tensor import DeviceTensor, StackedDeviceTensor
from pypto.runtime.metadata import CallSignature, ParamInfo, SharedExtent
from pypto.runtime.native_runtime import pack_layout
from pypto.runtime.scalar_arguments import CTYPES_NUMBER, FixedScalar, ScalarEncoder
from pypto.runtime.worker import ChipWorker

_LAYOUTS_KEPT = 256
_NO_TENSORS = (np.generic, bool, int, float, complex, str, list, tuple, NoneType, StackedDeviceTensor)


@dataclass(frozen=True, slots=True)
class BoundArguments:
    """`keep` holds the objects whose memory is at `addresses`; `result` is what a return-style call gives."""

    layouts: bytes
    addresses: list[int]
    scalars: list[int]
    result: Any
    keep: Sequence[Any]


@dataclass(frozen=True, slots=True)
class _Buffer:
    """Memory of an argument that is no plain numpy array."""

    address: int
    shape: tuple[int, ...]


class _TensorParam:
    """What a call must pass for one tensor parameter."""

    __slots__ = (
        "_accepted",
        "_info",
        "array_name",
        "code",
        "itemsize",
        "numpy_dtype",
        "shape",
        "static",
        "written",
    )

    def __init__(self, info: ParamInfo) -> None:
        self._info = info
        assert info.shape is not None
        self.code = task_interface.element_code(info.dtype)
        self.array_name = ARRAY_NAMES[info.dtype]
        self.numpy_dtype = numpy_dtype(info.dtype)
        self.itemsize = self.numpy_dtype.itemsize
        self._accepted: set[Any] = {self.numpy_dtype}
        self.shape = tuple(runtime_shape(info.shape, info.dtype))
        self.static = ir.DYNAMIC_DIM not in self.shape
        self.written = info.direction is not ir.ParamDirection.In
        if len(self.shape) > task_interface.MAX_DIMS:
            raise TypeError(f"Parameter '{info.name}' has rank {len(self.shape)}; at most 5 is supported")

    def check_dtype(self, dtype: Any, text: str) -> None:
        """`dtype` is a numpy or torch dtype whose name is `text`."""
        if dtype in self._accepted:
            return
        if text != self.array_name:
            raise TypeError(f"Parameter '{self._info.name}' expects dtype {self._info.dtype}; got {text}")
        self._accepted.add(dtype)

    def check_shape(self, shape: tuple[int, ...]) -> None:
        if len(shape) == len(self.shape) and all(
            want in (ir.DYNAMIC_DIM, got) for want, got in zip(self.shape, shape, strict=True)
        ):
            return
        expected = ", ".join("?" if n == ir.DYNAMIC_DIM else str(n) for n in self.shape)
        actual = ", ".join(map(str, shape))
        raise TypeError(f"Parameter '{self._info.name}' expects shape [{expected}]; got [{actual}]")

    def take_array(self, array: np.ndarray[Any, Any], position: int) -> _Buffer:
        """A numpy array of any subclass."""
        self.check_dtype(array.dtype, dtype_name(array.dtype))
        flags = array.flags
        if not flags.c_contiguous:
            name = self._info.name
            remedy = (
                f"parameter '{name}' is written in place: allocate its array contiguous, as numpy.zeros does"
                if self.written
                else f"for the array of parameter '{name}' pass numpy.ascontiguousarray(array)"
            )
            raise ValueError(
                f"Tensor at position {position} is not contiguous. "
                f"Call .contiguous() on a tensor of torch; {remedy}"
            )
        if self.written and not flags.writeable:
            raise ValueError(f"Parameter '{self._info.name}' is written, but its array is read-only")
        return _Buffer(array.__array_interface__["data"][0], array.shape)

    def take(self, value: Any, position: int, worker: ChipWorker | None) -> _Buffer:
        """Anything a user may pass."""
        if isinstance(value, DeviceTensor):
            return self._take_resident(value, worker)
        if isinstance(value, _NO_TENSORS):
            raise self._not_a_tensor(value)
        if isinstance(value, np.ndarray):
            return self.take_array(value, position)
        if hasattr(value, "data_ptr"):
            return self._take_torch(value, position)
        if hasattr(value, "__array_interface__"):
            return self.take_array(np.asarray(value), position)
        if hasattr(value, "__dlpack__"):
            return self.take_array(np.from_dlpack(value), position)
        raise self._not_a_tensor(value)

    def _take_torch(self, value: Any, position: int) -> _Buffer:
        if value.device.type != "cpu":
            raise ValueError(f"Tensor at position {position} is on {value.device}, expected CPU")
        self.check_dtype(value.dtype, str(value.dtype).removeprefix("torch."))
        if not value.is_contiguous():
            raise ValueError(
                f"Tensor at position {position} is not contiguous. Call .contiguous() "
                f"on the tensor of parameter '{self._info.name}'"
            )
        if self.written and value.requires_grad:
            raise ValueError(
                f"Parameter '{self._info.name}' is written, but its tensor requires grad; pass .detach()"
            )
        return _Buffer(value.data_ptr(), tuple(value.shape))

    def _take_resident(self, value: DeviceTensor, worker: ChipWorker | None) -> _Buffer:
        self.check_dtype(value.dtype, dtype_name(value.dtype))
        self.check_shape(value.shape)
        if worker is None:
            raise TypeError(
                f"Parameter '{self._info.name}' got a DeviceTensor, which needs the worker that allocated "
                "it: call the program inside `with worker:`, or through worker.run"
            )
        worker.check_dispatch(value, self._info.name)
        return _Buffer(value.data_ptr, value.shape)

    def _not_a_tensor(self, value: Any) -> TypeError:
        return TypeError(
            f"Parameter '{self._info.name}' is a tensor; got {type(value).__name__}. "
            "Pass a torch.Tensor (host) or DeviceTensor (worker-resident). A numpy array is a host tensor."
        )


class ArgumentBinder:
    """Checks and packs the arguments of one call signature."""

    def __init__(self, signature: CallSignature, kind: str = "CompiledProgram") -> None:
        self._kind = kind
        self._params = signature.params
        self._outputs = signature.output_indices
        self._count = len(signature.params)
        self._has_return = signature.has_return
        self._tensors = [(i, _TensorParam(p)) for i, p in enumerate(signature.params) if p.shape is not None]
        self._scalars: list[tuple[int, ScalarEncoder | FixedScalar]] = [
            (i, ScalarEncoder(p)) for i, p in enumerate(signature.params) if p.shape is None
        ]
        self._shared = [self._of_tensors(shared) for shared in signature.shared_extents]
        self._static = all(param.static for _, param in self._tensors)
        self._layouts: dict[tuple[tuple[int, ...], ...], bytes] = {}
        self._static_layouts = self._pack([p.shape for _, p in self._tensors]) if self._static else b""

    def bind(self, args: Sequence[Any], worker: ChipWorker | None = None) -> BoundArguments:
        """`worker` owns the resident tensors among the arguments.

        Raises `TypeError` for a wrong count, kind, shape or dtype, `ValueError` for unusable memory.
        """
        result = None
        if len(args) != self._count:
            args, result = self._add_outputs(args)
        addresses: list[int] = []
        shapes: list[tuple[int, ...]] = []
        for position, param in self._tensors:
            value = args[position]
            if type(value) is np.ndarray:
                if value.dtype is not param.numpy_dtype:
                    param.check_dtype(value.dtype, dtype_name(value.dtype))
                flags = value.flags
                if not flags.c_contiguous or (param.written and not flags.writeable):
                    param.take_array(value, position)
                shape = value.shape
                addresses.append(value.__array_interface__["data"][0])
            else:
                buffer = param.take(value, position, worker)
                shape = buffer.shape
                addresses.append(buffer.address)
            if shape != param.shape:
                param.check_shape(shape)
            shapes.append(shape)
        scalars = [encoder.encode(args[position]) for position, encoder in self._scalars]
        layouts = self._static_layouts if self._static else self._layouts_of(shapes)
        return BoundArguments(layouts, addresses, scalars, result, args)

    def fix_scalars(self, values: Mapping[str, Any]) -> None:
        """Accept these values alone for the named scalars: the code was compiled for them."""
        self._scalars = [
            (i, FixedScalar(encoder, self._params[i].name, values[self._params[i].name]))
            if self._params[i].name in values
            else (i, encoder)
            for i, encoder in self._scalars
        ]

    def check_tensor(self, position: int, value: Any) -> tuple[int, tuple[int, ...]]:
        """Address and shape of one tensor argument; raises as `bind` does."""
        param = next(param for place, param in self._tensors if place == position)
        buffer = param.take(value, position, None)
        param.check_shape(buffer.shape)
        return buffer.address, buffer.shape

    def check_scalar(self, position: int, value: Any) -> Any:
        """One scalar argument, also in a tensor of one element, as a number. Raises as `bind` does."""
        if callable(getattr(value, "item", None)):
            value = value.item()
        next(encoder for place, encoder in self._scalars if place == position).encode(value)
        return getattr(value, "value", value)

    def complete(self, args: Sequence[Any]) -> tuple[Sequence[Any], Any]:
        """All arguments, with outputs made where a call leaves them out, and what such a call returns."""
        return (args, None) if len(args) == self._count else self._add_outputs(args)

    def _layouts_of(self, shapes: list[tuple[int, ...]]) -> bytes:
        key = tuple(shapes)
        found = self._layouts.get(key)
        if found is None:
            self._check_shared_extents(shapes)
            if len(self._layouts) >= _LAYOUTS_KEPT:
                self._layouts.clear()
            found = self._layouts[key] = self._pack(shapes)
        return found

    def _of_tensors(self, shared: SharedExtent) -> SharedExtent:
        """The places as positions among the tensors. FP4 packs its last dimension, which is then another."""
        number = {position: k for k, (position, _) in enumerate(self._tensors)}
        places = [
            (number[position], axis)
            for position, axis in shared.places
            if list(self._tensors[number[position]][1].shape) == self._params[position].shape
        ]
        return SharedExtent(shared.symbol, tuple(places))

    def _check_shared_extents(self, shapes: Sequence[tuple[int, ...]]) -> None:
        for shared in self._shared:
            for tensor, axis in shared.places[1:]:
                first, first_axis = shared.places[0]
                if shapes[tensor][axis] != shapes[first][first_axis]:
                    names = [self._params[self._tensors[k][0]].name for k in (first, tensor)]
                    raise ValueError(
                        f"Parameter '{names[1]}' has extent {shapes[tensor][axis]} in dimension {axis}, but "
                        f"{shared.symbol} is {shapes[first][first_axis]} in parameter '{names[0]}'"
                    )

    def _pack(self, shapes: Sequence[tuple[int, ...]]) -> bytes:
        params = (param for _, param in self._tensors)
        return b"".join(pack_layout(s, p.code, p.itemsize) for s, p in zip(shapes, params, strict=True))

    def _add_outputs(self, args: Sequence[Any]) -> tuple[list[Any], Any]:
        """Arguments with fresh outputs in their places, and what the call returns."""
        without = self._count - len(self._outputs)
        returns = self._has_return and bool(self._outputs)
        if not returns or len(args) != without:
            allowed = f"{self._count} (in-place)" + (f" or {without} (return)" if returns else "")
            names = [p.name for p in self._params]
            raise TypeError(f"{self._kind} expects {allowed} arguments, got {len(args)}. Parameters: {names}")
        given = iter(args)
        model = next((a for a in args if callable(getattr(a, "data_ptr", None))), None)
        complete = [
            _fresh_output(p, model) if i in self._outputs else next(given) for i, p in enumerate(self._params)
        ]
        made = [complete[i] for i in self._outputs]
        return complete, made[0] if len(made) == 1 else tuple(made)


def bind_as_given(args: Sequence[Any], worker: ChipWorker | None = None) -> BoundArguments:
    """Arguments of a program whose signature is unknown: arrays tell their types, scalars are ctypes values.

    Raises `TypeError` for anything else.
    """
    layouts, addresses, scalars = [], [], []
    for position, value in enumerate(args):
        if isinstance(value, CTYPES_NUMBER):
            scalars.append(int.from_bytes(bytes(value), sys.byteorder))
            continue
        name = dtype_name(getattr(value, "dtype", None))
        dtype = next((dtype for dtype, array in ARRAY_NAMES.items() if array == name), None)
        if dtype is None:
            raise TypeError(f"argument {position} is neither an array nor a ctypes scalar: {value!r}")
        info = ParamInfo(f"#{position}", ir.ParamDirection.InOut, list(value.shape), dtype)
        param = _TensorParam(info)
        addresses.append(param.take(value, position, worker).address)
        layouts.append(pack_layout(param.shape, param.code, param.itemsize))
    return BoundArguments(b"".join(layouts), addresses, scalars, None, args)


def _fresh_output(info: ParamInfo, model: Any) -> Any:
    """Zeros; a torch tensor when the caller passes torch tensors (`model` is one of them)."""
    assert info.shape is not None
    if ir.DYNAMIC_DIM in info.shape:
        raise ValueError(
            f"Output parameter '{info.name}' contains dynamic dimensions. Pass all tensors explicitly"
        )
    shape = runtime_shape(info.shape, info.dtype)
    if model is None:
        return np.zeros(shape, numpy_dtype(info.dtype))
    torch = sys.modules[type(model).__module__.partition(".")[0]]
    return torch.zeros(shape, dtype=getattr(torch, ARRAY_NAMES[info.dtype]))
