"""The call signature of a compiled program, and the file that keeps it beside the binaries.

`compiled_meta.json` lets a build directory be called without the program it came from. It is written
atomically and read strictly: whatever is not as described is a `ValueError` that names the file.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto import ir
from pypto.backend import BackendType
from pypto.codegen.artifact import write_whole
from pypto.core.dtype import DataType, dtype_from_text
from pypto.ir.entry_points import entry_points

SIDECAR = "compiled_meta.json"
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class ParamInfo:
    """One parameter: `shape` is None for scalars, and has -1 for dynamic dims."""

    name: str
    direction: ir.ParamDirection
    shape: list[int] | None
    dtype: DataType


@dataclass(frozen=True, slots=True)
class SharedExtent:
    """A symbol that several dimensions are declared with: `places` are pairs of parameter and axis."""

    symbol: str
    places: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class CallSignature:
    """What a caller passes and gets."""

    params: tuple[ParamInfo, ...]
    return_count: int
    shared_extents: tuple[SharedExtent, ...] = ()

    @property
    def output_indices(self) -> list[int]:
        """Places of the pure outputs."""
        return [i for i, p in enumerate(self.params) if p.direction is ir.ParamDirection.Out]

    @property
    def has_return(self) -> bool:
        return self.return_count > 0


def signature_function(program: ir.Program) -> ir.Function:
    """The function that a caller of the program calls. Raises `ValueError` when that is not clear."""
    functions = list(program.functions_.values())
    entries = entry_points(program)
    orchestrations = [f for f in entries if f.func_type is ir.FunctionType.Orchestration]
    if orchestrations:
        return orchestrations[0]
    # Outlining turns the one function that is no kernel into the orchestration.
    candidates = [f for f in entries if f.func_type is ir.FunctionType.Opaque]
    if len(candidates) == 1:
        return candidates[0]
    if len(functions) == 1:
        return functions[0]
    raise ValueError("Program has no Orchestration function and multiple InCore functions")


def signature_of(func: ir.Function) -> CallSignature:
    """Raises `TypeError` for a parameter that is neither a tensor nor a scalar."""
    params = tuple(_param_info(p, d) for p, d in zip(func.params_, func.param_directions_, strict=True))
    return CallSignature(params, len(func.return_types_), _shared_extents(func))


def _shared_extents(func: ir.Function) -> tuple[SharedExtent, ...]:
    places: dict[ir.Var, list[tuple[int, int]]] = {}
    for position, param in enumerate(func.params_):
        for axis, extent in enumerate(param.type.shape_ if isinstance(param.type, ir.TensorType) else ()):
            if isinstance(extent, ir.Var):
                places.setdefault(extent, []).append((position, axis))
    return tuple(SharedExtent(var.name_hint, tuple(at)) for var, at in places.items() if len(at) > 1)


def extract_param_infos(program: ir.Program) -> tuple[list[ParamInfo], list[int], list[ir.Type]]:
    """Parameters of the signature function, places of its pure outputs, and its return types."""
    func = signature_function(program)
    signature = signature_of(func)
    return list(signature.params), signature.output_indices, list(func.return_types_)


def _param_info(param: ir.Var, direction: ir.ParamDirection) -> ParamInfo:
    kind = param.type
    name = param.name_hint
    if isinstance(kind, ir.ScalarType):
        return ParamInfo(name, direction, None, kind.dtype)
    if isinstance(kind, ir.TensorType):
        shape = [dim.value if isinstance(dim, ir.ConstInt) else ir.DYNAMIC_DIM for dim in kind.shape_]
        return ParamInfo(name, direction, shape, kind.dtype)
    raise TypeError(f"Parameter '{name}' is a {type(kind).__name__}; a caller can pass tensors and scalars")


def sidecar_content(signature: CallSignature, platform: str, backend: BackendType) -> dict[str, Any]:
    """What `compiled_meta.json` says."""
    content = {
        "schema": SCHEMA,
        "params": [
            {"name": p.name, "direction": p.direction.name, "shape": p.shape, "dtype": str(p.dtype)}
            for p in signature.params
        ],
        "num_return_types": signature.return_count,
        "platform": platform,
        "backend_type": backend.name,
    }
    if signature.shared_extents:
        content["shared_extents"] = [
            {"symbol": shared.symbol, "places": [list(place) for place in shared.places]}
            for shared in signature.shared_extents
        ]
    return content


def write_sidecar(output_dir: Path, signature: CallSignature, platform: str, backend: BackendType) -> Path:
    """Write `compiled_meta.json`; a reader sees the old file or the new one."""
    content = sidecar_content(signature, platform, backend)
    return write_whole(output_dir / SIDECAR, json.dumps(content, indent=1) + "\n")


@dataclass(frozen=True, slots=True)
class Sidecar:
    """The content of `compiled_meta.json`."""

    signature: CallSignature
    platform: str
    backend: BackendType


def read_sidecar(output_dir: Path) -> Sidecar:
    """Raises `FileNotFoundError` without the file, `ValueError` for one that is not as described."""
    path = output_dir / SIDECAR
    if not path.is_file():
        raise FileNotFoundError(f"no {SIDECAR} in {output_dir}: not a compiled program; compile it again")
    try:
        content = json.loads(path.read_bytes().decode("utf-8"))
    except (OSError, ValueError) as error:
        raise _malformed(path, f"cannot be read: {error}") from error
    return parse_sidecar(path, content)


def parse_sidecar(path: object, content: Any) -> Sidecar:
    """The metadata in parsed JSON. `path` says where it is from. Raises `ValueError`."""
    if not isinstance(content, dict):
        raise _malformed(path, "is not an object")
    schema = _field(path, content, "schema", int)
    if schema != SCHEMA:
        raise ValueError(f"{path}: Incompatible schema {schema}, expected {SCHEMA}; recompile the program")
    params = tuple(_read_param(path, entry) for entry in _field(path, content, "params", list))
    returns = _field(path, content, "num_return_types", int)
    entries = _field(path, content, "shared_extents", list) if "shared_extents" in content else []
    shared = tuple(_read_shared_extent(path, entry, params) for entry in entries)
    signature = CallSignature(params, returns, shared)
    backend = _member(path, BackendType, _field(path, content, "backend_type", str))
    return Sidecar(signature, _field(path, content, "platform", str), backend)


def _read_param(path: object, entry: Any) -> ParamInfo:
    if not isinstance(entry, dict):
        raise _malformed(path, "has a parameter that is not an object")
    name = _field(path, entry, "name", str)
    direction = _member(path, ir.ParamDirection, _field(path, entry, "direction", str))
    text = _field(path, entry, "dtype", str)
    dtype = dtype_from_text(text)
    if dtype is None:
        raise _malformed(path, f"names an unknown dtype '{text}'")
    if "shape" not in entry:
        raise _malformed(path, "lacks the field 'shape'")
    shape = entry["shape"]
    if shape is not None and not (isinstance(shape, list) and all(type(n) is int for n in shape)):
        raise _malformed(path, f"has a wrong shape for '{name}'")
    return ParamInfo(name, direction, shape, dtype)


def _read_shared_extent(path: object, entry: Any, params: tuple[ParamInfo, ...]) -> SharedExtent:
    if not isinstance(entry, dict):
        raise _malformed(path, "has a shared extent that is not an object")
    symbol, places = _field(path, entry, "symbol", str), _field(path, entry, "places", list)
    for place in places:
        if not (isinstance(place, list) and len(place) == 2 and all(type(n) is int for n in place)):
            raise _malformed(path, f"has wrong places for '{symbol}'")
        position, axis = place
        shape = params[position].shape if 0 <= position < len(params) else None
        if shape is None or not 0 <= axis < len(shape):
            raise _malformed(path, f"has wrong places for '{symbol}'")
    return SharedExtent(symbol, tuple((position, axis) for position, axis in places))


def _field(path: object, content: dict[str, Any], name: str, kind: type) -> Any:
    if name not in content:
        raise _malformed(path, f"lacks the field '{name}'")
    if type(content[name]) is not kind:
        raise _malformed(path, f"has a wrong value for '{name}'")
    return content[name]


def _member(path: object, enum_class: Any, name: str) -> Any:
    found = enum_class.__members__.get(name)
    if found is None:
        raise _malformed(path, f"names an unknown {enum_class.__name__} '{name}'")
    return found


def _malformed(path: object, what: str) -> ValueError:
    return ValueError(f"{path} {what}; recompile the program")
