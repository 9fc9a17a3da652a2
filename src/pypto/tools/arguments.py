"""Arguments for running a program from the command line: random, or from an .npz file."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pypto import ir
from pypto.core.dtype import DataType

_NUMPY_NAMES = {
    DataType.BOOL: "bool", DataType.INT8: "int8", DataType.INT16: "int16", DataType.INT32: "int32",
    DataType.INT64: "int64", DataType.INDEX: "int64", DataType.UINT8: "uint8", DataType.UINT16: "uint16",
    DataType.UINT32: "uint32", DataType.UINT64: "uint64", DataType.FP16: "float16", DataType.FP32: "float32",
}  # fmt: skip
_ML_NAMES = {
    DataType.BF16: "bfloat16", DataType.FP8E4M3FN: "float8_e4m3fn", DataType.FP8E5M2: "float8_e5m2",
    DataType.FP8E8M0: "float8_e8m0fnu",
}  # fmt: skip


class ArgumentError(Exception):
    """The arguments asked for cannot be made."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a run. `initial` is a copy of the value before the run."""

    name: str
    direction: ir.ParamDirection
    value: Any
    initial: Any


def numpy_dtype(dtype: DataType) -> np.dtype[Any]:
    """The numpy dtype of an element type. Raises `ArgumentError` where numpy has none."""
    if dtype in _NUMPY_NAMES:
        return np.dtype(_NUMPY_NAMES[dtype])
    if dtype in _ML_NAMES:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, _ML_NAMES[dtype]))
    raise ArgumentError(f"numpy has no dtype for {dtype}")


def make_arguments(
    entry: ir.Function,
    *,
    seed: int,
    dims: Mapping[str, int],
    inputs: Path | None,
    expected: Callable[..., Any] | None,
) -> list[Argument]:
    """Arguments in parameter order.

    Values come from the .npz file where it has the name, else from a normal distribution with deviation 0.5.
    Outputs start as zeros unless `expected` takes them as input. `dims` gives the extents of dynamic
    dimensions by
    name.
    """
    given = _load(inputs)
    rng = np.random.default_rng(seed)
    reads = set() if expected is None else set(inspect.signature(expected).parameters)
    arguments = []
    for param, direction in zip(entry.params_, entry.param_directions_, strict=True):
        name = param.name_hint
        if name in given:
            value = given[name]
        elif direction is ir.ParamDirection.Out and name not in reads:
            value = np.zeros(_shape(param, dims), numpy_dtype(_dtype(param)))
        else:
            value = _random(param, dims, rng)
        arguments.append(Argument(name, direction, value, np.copy(value)))
    return arguments


def _load(path: Path | None) -> dict[str, np.ndarray[Any, Any]]:
    if path is None:
        return {}
    if not path.is_file():
        raise ArgumentError(f"There is no file {path}")
    with np.load(path) as archive:
        return {name: np.ascontiguousarray(archive[name]) for name in archive.files}


def _dtype(param: ir.Var) -> DataType:
    if isinstance(param.type, (ir.ScalarType, ir.TensorType)):
        return param.type.dtype
    raise ArgumentError(f"Parameter '{param.name_hint}' is neither a tensor nor a scalar")


def _shape(param: ir.Var, dims: Mapping[str, int]) -> tuple[int, ...]:
    if not isinstance(param.type, ir.TensorType):
        return ()
    return tuple(_extent(extent, param, dims) for extent in param.type.shape_)


def _extent(extent: ir.Expr, param: ir.Var, dims: Mapping[str, int]) -> int:
    if isinstance(extent, ir.ConstInt):
        return extent.value
    if isinstance(extent, ir.Var) and extent.name_hint in dims:
        return dims[extent.name_hint]
    raise ArgumentError(
        f"The extent {extent} of '{param.name_hint}' is dynamic; give it with --dim {extent}=N"
    )


def _random(param: ir.Var, dims: Mapping[str, int], rng: np.random.Generator) -> Any:
    dtype = _dtype(param)
    shape = _shape(param, dims)
    if dtype.is_float():
        value = (rng.standard_normal(shape) * 0.5).astype(numpy_dtype(dtype))
    elif dtype is DataType.BOOL:
        value = rng.integers(0, 2, shape).astype(bool)
    else:
        value = rng.integers(0 if dtype.is_unsigned_int() else -8, 8, shape).astype(numpy_dtype(dtype))
    return value if isinstance(param.type, ir.TensorType) else value.item()
