"""From the arguments of a call to what the runtime takes: addresses, layouts, scalar bits.

Arrays are used in place, never copied: numpy arrays, torch tensors (recognised by `data_ptr`, torch is not
imported), and whatever offers `__array_interface__` or `__dlpack__`. Everything about a parameter that does
not change from call to call is worked out once, in `ArgumentBinder`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pypto import ir
from pypto.core.dtype import DataType
from pypto.runtime import task_interface
from pypto.runtime.metadata import CallSignature, ParamInfo
from pypto.runtime.native_runtime import pack_layout
from pypto.runtime.scalar_arguments import ScalarEncoder

_ARRAY_NAMES = {
    DataType.BOOL: "bool",
    DataType.INT8: "int8",
    DataType.INT16: "int16",
    DataType.INT32: "int32",
    DataType.INT64: "int64",
    DataType.INDEX: "int64",
    DataType.UINT8: "uint8",
    DataType.UINT16: "uint16",
    DataType.UINT32: "uint32",
    DataType.UINT64: "uint64",
    DataType.FP16: "float16",
    DataType.FP32: "float32",
    DataType.BF16: "bfloat16",
    DataType.FP8E4M3FN: "float8_e4m3fn",
    DataType.FP8E5M2: "float8_e5m2",
    DataType.FP8E8M0: "float8_e8m0fnu",
    DataType.FP4: "uint8",  # two elements per byte
}
_LAYOUTS_KEPT = 256


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
        self.array_name = _ARRAY_NAMES[info.dtype]
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
        self.check_dtype(array.dtype, _dtype_name(array.dtype))
        flags = array.flags
        if not flags.c_contiguous:
            raise ValueError(
                f"Tensor at position {position} is not contiguous. "
                "Call .contiguous(), or numpy.ascontiguousarray on an array"
            )
        if self.written and not flags.writeable:
            raise ValueError(f"Parameter '{self._info.name}' is written, but its array is read-only")
        return _Buffer(array.__array_interface__["data"][0], array.shape)

    def take(self, value: Any, position: int) -> _Buffer:
        """Anything a user may pass."""
        if isinstance(value, np.generic | bool | int | float | complex | str | list | tuple | None):
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
            raise ValueError(f"Tensor at position {position} is not contiguous. Call .contiguous()")
        if self.written and value.requires_grad:
            raise ValueError(
                f"Parameter '{self._info.name}' is written, but its tensor requires grad; pass .detach()"
            )
        return _Buffer(value.data_ptr(), tuple(value.shape))

    def _not_a_tensor(self, value: Any) -> TypeError:
        return TypeError(
            f"Parameter '{self._info.name}' is a tensor; got {type(value).__name__}. "
            "Pass a torch.Tensor (host), a numpy array, or DeviceTensor (worker-resident)."
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
        self._scalars = [(i, ScalarEncoder(p)) for i, p in enumerate(signature.params) if p.shape is None]
        self._static = all(param.static for _, param in self._tensors)
        self._layouts: dict[tuple[tuple[int, ...], ...], bytes] = {}
        self._static_layouts = self._pack([p.shape for _, p in self._tensors]) if self._static else b""

    def bind(self, args: Sequence[Any]) -> BoundArguments:
        """Raises `TypeError` for a wrong count, kind, shape or dtype, `ValueError` for unusable memory."""
        result = None
        if len(args) != self._count:
            args, result = self._add_outputs(args)
        addresses: list[int] = []
        shapes: list[tuple[int, ...]] = []
        for position, param in self._tensors:
            value = args[position]
            if type(value) is np.ndarray:
                if value.dtype is not param.numpy_dtype:
                    param.check_dtype(value.dtype, _dtype_name(value.dtype))
                flags = value.flags
                if not flags.c_contiguous or (param.written and not flags.writeable):
                    param.take_array(value, position)
                shape = value.shape
                addresses.append(value.__array_interface__["data"][0])
            else:
                buffer = param.take(value, position)
                shape = buffer.shape
                addresses.append(buffer.address)
            if shape != param.shape:
                param.check_shape(shape)
            shapes.append(shape)
        scalars = [encoder.encode(args[position]) for position, encoder in self._scalars]
        layouts = self._static_layouts if self._static else self._layouts_of(shapes)
        return BoundArguments(layouts, addresses, scalars, result, args)

    def _layouts_of(self, shapes: list[tuple[int, ...]]) -> bytes:
        key = tuple(shapes)
        found = self._layouts.get(key)
        if found is None:
            if len(self._layouts) >= _LAYOUTS_KEPT:
                self._layouts.clear()
            found = self._layouts[key] = self._pack(shapes)
        return found

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
        model = next((a for a in args if hasattr(a, "data_ptr")), None)
        complete = [
            _fresh_output(p, model) if i in self._outputs else next(given) for i, p in enumerate(self._params)
        ]
        made = [complete[i] for i in self._outputs]
        return complete, made[0] if len(made) == 1 else tuple(made)


def numpy_dtype(dtype: DataType) -> np.dtype[Any]:
    """The numpy dtype of arrays of an element type; FP4 arrays hold two elements per byte.

    Raises `TypeError` for a type that has no arrays.
    """
    name = _ARRAY_NAMES.get(dtype)
    if name is None:
        raise TypeError(f"there are no arrays of {dtype}")
    if name.startswith(("bfloat", "float8")):
        import ml_dtypes

        narrow: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return narrow
    return np.dtype(name)


def _dtype_name(dtype: np.dtype[Any]) -> str:
    return dtype.name if dtype.isnative else f"{dtype.name} in foreign byte order"


def runtime_shape(shape: Sequence[int], dtype: DataType) -> list[int]:
    """The shape of the array that holds a tensor: FP4 packs two elements of the last dim into a byte."""
    result = list(shape)
    if dtype is DataType.FP4 and result and result[-1] != ir.DYNAMIC_DIM:
        result[-1] = (result[-1] + 1) // 2
    return result


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
    return torch.zeros(shape, dtype=getattr(torch, _ARRAY_NAMES[info.dtype]))
