"""Checks the dumped stages of a compile by running each on arrays, without any code generation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pypto import ir
from pypto.runtime.golden import as_array

_SSA_SUFFIX = re.compile(r"__ssa_v\d+$")


def validate_stages(
    folder: Path, tensors: Mapping[str, Any], expected: Mapping[str, Any], *, rtol: float, atol: float
) -> None:
    """Run the program in each `.py` of `folder`, in the order of names, and compare what it leaves in arrays.

    `tensors` are the arguments by parameter name, numbers for scalars; they stay as they are. A stage whose
    text leaves open what a kernel returns is passed over.

    Raises `FileNotFoundError` without the folder, `ValueError` without programs in it, for an unknown
    expected name or a negative tolerance, `KeyError` for a parameter without a tensor, `AssertionError` with
    file and name for a stage that computes something else.
    """
    import pypto.language as pl
    from pypto.testing.interpreter import Undetermined, run

    if rtol < 0 or atol < 0:
        raise ValueError(f"tolerances must not be negative, got rtol={rtol}, atol={atol}")
    if not folder.exists():
        raise FileNotFoundError(f"{folder} does not exist: compile with dump_passes=True")
    files = [folder] if folder.is_file() else sorted(folder.glob("*.py"))
    if not files:
        raise ValueError(f"no .py files in {folder}")
    for file in files:
        program = pl.parse(file.read_text(encoding="utf-8"))
        if not isinstance(program, ir.Program):
            raise ValueError(f"{file} does not hold a program")
        entry = _entry_of(program, file)
        names = [_SSA_SUFFIX.sub("", param.name_hint) for param in entry.params_]
        unknown = [name for name in expected if name not in names]
        if unknown:
            raise ValueError(f"{file.name}: no parameter {', '.join(unknown)}; there are {', '.join(names)}")
        arguments = [_argument(tensors, name) for name in names]
        try:
            run(program, entry.name, *arguments)
        except Undetermined:
            continue
        for name, wanted in expected.items():
            actual, target = as_array(arguments[names.index(name)]), as_array(wanted)
            if actual.shape != target.shape or not np.allclose(actual, target, rtol=rtol, atol=atol):
                worst = np.abs(actual - target).max() if actual.shape == target.shape else "another shape"
                raise AssertionError(f"{file.name}: '{name}' differs from what is expected: {worst}")


def _entry_of(program: ir.Program, file: Path) -> ir.Function:
    functions = list(program.functions_.values())
    entries = [f for f in functions if f.func_type is ir.FunctionType.Orchestration]
    if len(functions) == 1:
        entries = functions
    elif not entries:
        entries = [f for f in functions if f.func_type is ir.FunctionType.Opaque]
    if len(entries) != 1:
        raise ValueError(
            f"{file}: no single function to start from among {', '.join(f.name for f in functions)}"
        )
    return entries[0]


def _argument(tensors: Mapping[str, Any], name: str) -> Any:
    if name not in tensors:
        raise KeyError(f"no tensor for parameter '{name}'; given: {', '.join(tensors)}")
    value = tensors[name]
    if isinstance(value, bool | int | float | np.generic):
        return value
    if not hasattr(value, "shape"):
        raise TypeError(f"'{name}' must be a tensor, got {type(value).__name__}")
    return np.array(value)
