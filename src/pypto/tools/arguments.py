"""Arguments for running a program from the command line: random, or from an .npz file."""

from __future__ import annotations

import inspect
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pypto import ir
from pypto.core.dtype import DataType
from pypto.runtime.array_types import numpy_dtype, runtime_shape
from pypto.runtime.metadata import CallSignature


class ArgumentError(Exception):
    """The arguments asked for cannot be made."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a run. `initial` is a copy of the value before the run."""

    name: str
    direction: ir.ParamDirection
    value: Any
    initial: Any


@dataclass(frozen=True, slots=True)
class Parameter:
    """What a program takes at one place. `extents` is None for scalars; a dynamic one is known by a name.

    Every dynamic extent is also known by its place, `PARAM.AXIS`.
    """

    name: str
    direction: ir.ParamDirection
    dtype: DataType
    extents: tuple[int | str, ...] | None


def parameters_of(entry: ir.Function) -> list[Parameter]:
    """The parameters of a function; dynamic extents have the names that the program gives them."""
    return [_parameter(p, d) for p, d in zip(entry.params_, entry.param_directions_, strict=True)]


def _parameter(param: ir.Var, direction: ir.ParamDirection) -> Parameter:
    name, kind = param.name_hint, param.type
    if isinstance(kind, ir.ScalarType):
        return Parameter(name, direction, kind.dtype, None)
    if isinstance(kind, ir.TensorType):
        extents = tuple(e.value if isinstance(e, ir.ConstInt) else str(e) for e in kind.shape_)
        return Parameter(name, direction, kind.dtype, extents)
    raise ArgumentError(f"Parameter '{name}' is neither a tensor nor a scalar")


def parameters_of_signature(signature: CallSignature) -> list[Parameter]:
    """The parameters of a program without its source.

    Dynamic extents have the names that are recorded, which are those of several places; others are named
    `PARAM.AXIS`.
    """
    symbols = {place: shared.symbol for shared in signature.shared_extents for place in shared.places}
    return [
        Parameter(
            info.name,
            info.direction,
            info.dtype,
            None
            if info.shape is None
            else tuple(
                symbols.get((position, axis), _place(info.name, axis)) if extent == ir.DYNAMIC_DIM else extent
                for axis, extent in enumerate(info.shape)
            ),
        )
        for position, info in enumerate(signature.params)
    ]


def make_arguments(
    parameters: Sequence[Parameter],
    *,
    seed: int,
    dims: Mapping[str, int],
    inputs: Path | None,
    expected: Callable[..., Any] | None,
) -> list[Argument]:
    """Arguments in parameter order.

    Values come from the .npz file where it has the name, else from a normal distribution with deviation 0.5.
    Outputs start as zeros unless `expected` takes them as input. `dims` gives the extents of dynamic
    dimensions by name or place. Raises `ArgumentError` for what the program does not have, and for extents
    that are missing.
    """
    _check_dims(parameters, dims)
    given = _load(inputs)
    names = [parameter.name for parameter in parameters]
    unknown = sorted(given.keys() - set(names))
    if unknown:
        raise ArgumentError(
            f"{inputs} has arrays that are no parameters of the program: {', '.join(unknown)}; "
            f"the parameters are {', '.join(names) or 'none'}"
        )
    _check_complete([parameter for parameter in parameters if parameter.name not in given], dims)
    rng = np.random.default_rng(seed)
    reads = set() if expected is None else set(inspect.signature(expected).parameters)
    arguments = []
    for parameter in parameters:
        name, direction = parameter.name, parameter.direction
        if name in given:
            value = given[name]
        elif direction is ir.ParamDirection.Out and name not in reads:
            value = np.zeros(_shape(parameter, dims), numpy_dtype(parameter.dtype))
        else:
            value = _random(parameter, dims, rng)
        arguments.append(Argument(name, direction, value, np.copy(value)))
    return arguments


def _place(name: str, axis: int) -> str:
    return f"{name}.{axis}"


def _dynamic_extents(parameters: Sequence[Parameter]) -> list[tuple[str, str]]:
    """Name and place of each dynamic extent."""
    return [
        (extent, _place(parameter.name, axis))
        for parameter in parameters
        for axis, extent in enumerate(parameter.extents or ())
        if isinstance(extent, str)
    ]


def _check_dims(parameters: Sequence[Parameter], dims: Mapping[str, int]) -> None:
    dynamic = _dynamic_extents(parameters)
    for name in dims:
        if not any(name in names for names in dynamic):
            known = list(dict.fromkeys(extent for extent, _ in dynamic))
            raise ArgumentError(
                f"The program has no dynamic dimension '{name}'; it has {', '.join(known) or 'none'}"
            )


def _check_complete(parameters: Sequence[Parameter], dims: Mapping[str, int]) -> None:
    """All that is missing in one message."""
    missing: dict[str, list[str]] = {}
    for extent, place in _dynamic_extents(parameters):
        if extent not in dims and place not in dims:
            missing.setdefault(extent, []).append(place)
    if missing:
        where = "; ".join(
            extent if places == [extent] else f"{extent} ({', '.join(places)})"
            for extent, places in missing.items()
        )
        options = " ".join(f"--dim {extent}=N" for extent in missing)
        raise ArgumentError(f"Dynamic extents are not given: {where}. Add {options}")


def _load(path: Path | None) -> dict[str, np.ndarray[Any, Any]]:
    if path is None:
        return {}
    if not path.is_file():
        raise ArgumentError(f"There is no file {path}")
    try:
        with np.load(path) as archive:
            return {name: np.ascontiguousarray(archive[name]) for name in archive.files}
    except (ValueError, AttributeError, zipfile.BadZipFile) as error:
        raise ArgumentError(f"{path} is no archive of arrays as numpy.savez writes them") from error


def _shape(parameter: Parameter, dims: Mapping[str, int]) -> tuple[int, ...]:
    extents = []
    for axis, extent in enumerate(parameter.extents or ()):
        if isinstance(extent, str):
            place = _place(parameter.name, axis)
            extent = dims[place] if place in dims else dims[extent]
        extents.append(extent)
    return tuple(runtime_shape(extents, parameter.dtype))


def _random(parameter: Parameter, dims: Mapping[str, int], rng: np.random.Generator) -> Any:
    dtype = parameter.dtype
    shape = _shape(parameter, dims)
    if dtype.is_float():
        value = (rng.standard_normal(shape) * 0.5).astype(numpy_dtype(dtype))
    elif dtype is DataType.BOOL:
        value = rng.integers(0, 2, shape).astype(bool)
    else:
        value = rng.integers(0 if dtype.is_unsigned_int() else -8, 8, shape).astype(numpy_dtype(dtype))
    return value if parameter.extents is not None else value.item()
