"""From the arguments of a jit function to what its program depends on.

A tensor counts with shape and element type, a scalar with its value. Without samples, annotations say both.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pypto import ir
from pypto.jit.call_graph import Symbols
from pypto.jit.definition import Kind, Parameter
from pypto.language.specialisation import Constant
from pypto.language.typing import RUNTIME, DynVar

_DTYPES = {
    "float32": ir.DataType.FP32,
    "float16": ir.DataType.FP16,
    "bfloat16": ir.DataType.BF16,
    "int8": ir.DataType.INT8,
    "int16": ir.DataType.INT16,
    "int32": ir.DataType.INT32,
    "int64": ir.DataType.INT64,
    "uint8": ir.DataType.UINT8,
    "uint16": ir.DataType.UINT16,
    "uint32": ir.DataType.UINT32,
    "uint64": ir.DataType.UINT64,
    "bool": ir.DataType.BOOL,
    "float8_e4m3fn": ir.DataType.FP8E4M3FN,
    "float8_e5m2": ir.DataType.FP8E5M2,
    "float8_e8m0fnu": ir.DataType.FP8E8M0,
}
_PACKED_FP4 = "float4_e2m1fn_x2"


@dataclass(frozen=True, slots=True)
class Fact:
    """What the program depends on in one argument.

    For a tensor the extents (None where any extent will do), element type and layout; for a scalar its value,
    None when it stays a run-time value.
    """

    extents: tuple[int | None, ...] | None = None
    dtype: ir.DataType | None = None
    layout: ir.TensorLayout | None = None
    constant: Constant | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        """Distinguishes facts that need different programs: `1`, `1.0` and `True` differ."""
        dtype = None if self.dtype is None else str(self.dtype)
        return (self.extents, dtype, self.layout, type(self.constant).__name__, self.constant)


def is_tensor(value: Any) -> bool:
    """Whether a value can stand for a tensor parameter: an array of torch or numpy, or a resident tensor."""
    return hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, np.generic)


def facts_of_samples(
    parameters: Sequence[Parameter], symbols: Symbols, values: Mapping[str, Any]
) -> list[Fact]:
    """The facts of given arguments; parameters without one count by their annotation.

    Raises:
        TypeError: an argument does not fit its parameter.
    """
    facts = []
    for parameter in parameters:
        if parameter.name not in values:
            facts.append(_declared_tensor(parameter, symbols[parameter.name]))
        elif parameter.is_shaped:
            facts.append(_tensor(parameter, symbols[parameter.name], values[parameter.name]))
        else:
            facts.append(Fact(constant=_scalar(parameter, values[parameter.name])))
    return facts


def facts_of_signature(
    parameters: Sequence[Parameter], symbols: Symbols, values: Mapping[str, Any]
) -> list[Fact]:
    """The facts that the annotations give, with scalars from keywords and defaults.

    Raises:
        TypeError: an annotation or a scalar is not enough.
    """
    facts = []
    for parameter in parameters:
        if parameter.is_shaped:
            facts.append(_declared_tensor(parameter, symbols[parameter.name]))
        elif parameter.kind is Kind.SCALAR:
            facts.append(Fact(constant=_declared_scalar(parameter, values)))
        else:
            raise TypeError(f"cannot infer parameter '{parameter.name}' from the signature")
    return facts


def bind(
    signature: inspect.Signature, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments by parameter name, defaults included.

    Raises:
        TypeError: what Python says of a call that does not fit.
    """
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"@pl.jit function '{name}': {error}") from None
    bound.apply_defaults()
    return dict(bound.arguments)


# -- tensors -------------------------------------------------------------------------------------------------


def _tensor(parameter: Parameter, symbols: Mapping[int, str], value: Any) -> Fact:
    if value is RUNTIME:
        raise TypeError(f"'{parameter.name}' received pl.RUNTIME, a compile-time marker for scalars")
    if not is_tensor(value):
        raise TypeError(
            f"Parameter '{parameter.name}' is a tensor; got {type(value).__name__}. "
            f"Pass a tensor, or lower() and compile() without arguments to use the annotations"
        )
    shape, dtype = [int(extent) for extent in value.shape], _dtype(parameter, value)
    if parameter.dims is not None and len(parameter.dims) != len(shape):
        raise TypeError(
            f"Parameter '{parameter.name}' has {len(parameter.dims)} dimensions, "
            f"got a tensor of shape {shape}"
        )
    if dtype == ir.DataType.FP4:
        if not shape or shape[-1] <= 0:
            raise TypeError(
                f"Parameter '{parameter.name}': a packed FP4 tensor needs a positive runtime x2 carrier "
                f"last dimension, got shape {shape}"
            )
        shape[-1] *= 2
    extents = tuple(None if axis in symbols else extent for axis, extent in enumerate(shape))
    return Fact(extents, dtype, parameter.layout)


def _dtype(parameter: Parameter, value: Any) -> ir.DataType:
    if isinstance(value.dtype, ir.DataType):
        return value.dtype
    name = str(value.dtype).removeprefix("torch.")
    if name == _PACKED_FP4:
        return ir.DataType.FP4
    found = _DTYPES.get(name)
    if found is None:
        library = "numpy" if isinstance(value.dtype, np.dtype) else "torch"
        raise TypeError(
            f"Parameter '{parameter.name}': Unsupported {library} dtype {value.dtype}; "
            f"supported: {', '.join([*_DTYPES, _PACKED_FP4])}"
        )
    return found


def _declared_tensor(parameter: Parameter, symbols: Mapping[int, str]) -> Fact:
    if parameter.dims is None or parameter.dtype is None:
        raise TypeError(
            f"Parameter '{parameter.name}' has a bare 'pl.Tensor' annotation, which says neither shape nor "
            f"dtype; call lower(*sample_tensors) or compile(*sample_tensors), or write "
            f"pl.Tensor[[...], dtype]"
        )
    extents: list[int | None] = []
    for axis, extent in enumerate(parameter.dims):
        if axis in symbols or isinstance(extent, DynVar):
            extents.append(None)
        elif isinstance(extent, int):
            extents.append(extent)
        else:
            raise TypeError(
                f"Parameter '{parameter.name}': extent {axis} must be an int or pl.dynamic(), "
                f"got {type(extent).__name__}"
            )
    return Fact(tuple(extents), parameter.dtype, parameter.layout)


# -- scalars -------------------------------------------------------------------------------------------------


def _scalar(parameter: Parameter, value: Any) -> Constant | None:
    if value is RUNTIME:
        raise TypeError(
            f"'{parameter.name}' received pl.RUNTIME, a compile-time marker; it is for lower() and compile() "
            f"without tensors"
        )
    if isinstance(value, np.generic):
        value = value.item()
    if is_tensor(value):
        raise TypeError(
            f"Parameter '{parameter.name}' is a scalar ({parameter.dtype}); got {type(value).__name__}. "
            f"Pass value.item()"
        )
    if isinstance(value, (str, bytes, list, tuple, dict)):
        raise TypeError(
            f"Parameter '{parameter.name}' is a scalar ({parameter.dtype}); got {type(value).__name__}"
        )
    _check_kind(parameter, value)
    return value if isinstance(value, (bool, int, float)) else None


def _check_kind(parameter: Parameter, value: Any) -> None:
    """A compiled program takes no float for an integer, so do not compile one for it."""
    if isinstance(value, float) and parameter.dtype is not None and not parameter.dtype.is_float():
        raise TypeError(
            f"Parameter '{parameter.name}' is a scalar ({parameter.dtype}); got {type(value).__name__}. "
            f"Pass an int, or annotate it with a floating-point dtype"
        )


def _declared_scalar(parameter: Parameter, values: Mapping[str, Any]) -> Constant | None:
    name = parameter.name
    if name not in values:
        raise TypeError(
            f"scalar parameter '{name}' has no value: give it by keyword ({name}=...), or {name}=pl.RUNTIME "
            f"to keep it a run-time value"
        )
    value = values[name]
    if value is RUNTIME:
        return None
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, (bool, int, float)):
        raise TypeError(
            f"scalar parameter '{name}' takes an int, a float, a bool or pl.RUNTIME, "
            f"got {type(value).__name__}"
        )
    _check_kind(parameter, value)
    return value
