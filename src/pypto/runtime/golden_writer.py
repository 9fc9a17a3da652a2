"""Writes `golden.py`: the test data of a build directory, from specifications and a Python function."""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from pypto.core.dtype import DataType
from pypto.runtime.array_types import numpy_dtype
from pypto.runtime.golden import TOLERANCE
from pypto.runtime.tensor_spec import ScalarSpec, TensorSpec

__all__ = ["generate_golden_source", "write_golden"]

_CTYPES = {
    "bool": "c_bool",
    "float": "c_float",
    "double": "c_double",
    **{f"{sign}int{bits}": f"c_{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
_CONSTANTS = (bool, int, float, str, type(None))


def write_golden(
    tensor_specs: Sequence[TensorSpec],
    golden_fn: Callable[..., object],
    output_path: Path | str,
    rtol: float = TOLERANCE,
    atol: float = TOLERANCE,
    scalar_specs: Sequence[ScalarSpec] | None = None,
    data_dir: Path | str | None = None,
) -> Path:
    """Write the file and return its path; see `generate_golden_source`."""
    path = Path(output_path)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = generate_golden_source(
        tensor_specs, golden_fn, rtol, atol, scalar_specs, data_dir or path.parent / "data"
    )
    path.write_text(text, encoding="utf-8")
    return path


def generate_golden_source(
    tensor_specs: Sequence[TensorSpec],
    golden_fn: Callable[..., object],
    rtol: float = TOLERANCE,
    atol: float = TOLERANCE,
    scalar_specs: Sequence[ScalarSpec] | None = None,
    data_dir: Path | str | None = None,
) -> str:
    """The text of a `golden.py` that makes these tensors and scalars and computes with `golden_fn`.

    `golden_fn(tensors, params)` fills the outputs in the dict `tensors`; its source is copied, with the
    constants of its module that it uses. Arrays that no expression describes are saved in `data_dir`.
    """
    source = textwrap.dedent(inspect.getsource(golden_fn))
    scalars = list(scalar_specs or ())
    torch = any(type(spec.dtype).__module__ == "torch" for spec in tensor_specs)
    folder = Path(data_dir) if data_dir is not None else None
    rows = [f'        ("{spec.name}", {_tensor_text(spec, folder)}),' for spec in tensor_specs]
    rows += [f'        ("{spec.name}", {_scalar_text(spec)}),' for spec in scalars]
    outputs = [spec.name for spec in tensor_specs if spec.is_output]
    imports = ["import ctypes"] * bool(scalars) + ["import numpy as np"] + ["import torch"] * torch
    name = getattr(golden_fn, "__name__", "")
    lines = [
        '"""Test data of this build directory."""',
        "",
        "from __future__ import annotations",
        "",
        *imports,
        "",
        f"__outputs__ = {outputs!r}",
        f"RTOL = {rtol!r}",
        f"ATOL = {atol!r}",
        *_constants_of(golden_fn, source),
        "",
        "",
        "def generate_inputs(params):",
        "    return [",
        *rows,
        "    ]",
        "",
        "",
        source.rstrip(),
    ]
    if name != "compute_golden":
        lines += ["", "", "def compute_golden(tensors, params):", f"    {name}(tensors, params)"]
    return "\n".join(lines) + "\n"


def _constants_of(function: Callable[..., object], source: str) -> list[str]:
    """Assignments of the module's constants, and imports of the modules, that the function names."""
    known = inspect.getclosurevars(function)
    used = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
    lines = []
    for name, value in sorted({**known.globals, **known.nonlocals}.items()):
        if name not in used or name in ("np", "torch"):
            continue
        if isinstance(value, types.ModuleType):
            lines.append(f"import {value.__name__} as {name}")
        elif isinstance(value, _CONSTANTS) or (
            isinstance(value, tuple | list) and all(isinstance(entry, _CONSTANTS) for entry in value)
        ):
            lines.append(f"{name} = {value!r}")
        else:
            raise ValueError(f"the golden function uses '{name}', which is no constant and cannot be copied")
    return lines


def _tensor_text(spec: TensorSpec, folder: Path | None) -> str:
    shape, value = tuple(spec.shape), spec.init_value
    library, dtype = _dtype_text(spec)
    if value is None:
        return f"{library}.zeros({shape}, dtype={dtype})"
    if isinstance(value, bool | int | float):
        return f"{library}.full({shape}, {value!r}, dtype={dtype})"
    known = ("zeros", "ones", "rand", "randn") if library == "torch" else ("zeros", "ones")
    name = getattr(value, "__name__", "")
    if callable(value) and name in known and getattr(value, "__module__", None) in (library, "numpy", None):
        return f"{library}.{name}({shape}, dtype={dtype})"
    if folder is None:
        raise ValueError(f"'{spec.name}' has values of its own: a data_dir is needed to keep them")
    folder.mkdir(parents=True, exist_ok=True)
    made = spec.create_tensor()
    path = (folder / spec.name).resolve()
    if library == "torch":
        import torch

        torch.save(made, f"{path}.pt")
        return f"torch.load({str(path) + '.pt'!r})"
    np.save(f"{path}.npy", made.view(np.uint8) if made.dtype.kind == "V" else made)
    return f"np.load({str(path) + '.npy'!r}).view({dtype})"


def _dtype_text(spec: TensorSpec) -> tuple[str, str]:
    if type(spec.dtype).__module__ == "torch":
        return "torch", str(spec.dtype)
    kind = numpy_dtype(spec.dtype) if isinstance(spec.dtype, DataType) else np.dtype(spec.dtype)
    if kind.kind in "biuf":
        return "np", f"np.dtype('{kind.name}')"
    return "np", f"np.dtype(__import__('ml_dtypes').{kind.name})"


def _scalar_text(spec: ScalarSpec) -> str:
    ctype = _CTYPES.get(spec.ctype.removesuffix("_t").removeprefix("c_"))
    if ctype is None:
        raise ValueError(f"scalar '{spec.name}' has an unknown ctype '{spec.ctype}'")
    return f"ctypes.{ctype}({spec.value!r})"
