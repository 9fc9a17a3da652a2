"""Checks the dumped stages of a compile by running each on arrays, without any code generation."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pypto import ir
from pypto.debug.arrays import as_float_array, as_numpy
from pypto.debug.execution import Machine, Undetermined
from pypto.debug.python_source import loaded

_SSA_SUFFIX = re.compile(r"__ssa_v\d+$")


def validate_pass_ir_codegen_results(
    ir_dir: str | os.PathLike[str],
    tensors: Mapping[str, Any],
    expected: Mapping[str, Any],
    *,
    rtol: float = 5e-2,
    atol: float = 5e-2,
) -> None:
    """Run the program in each `.py` of a directory, in the order of names, and compare its results.

    A stage whose text leaves open what a kernel returns is passed over.

    Args:
        ir_dir: the `passes_dump` directory of a compile, or one file.
        tensors: the arguments by parameter name, torch tensors or numpy arrays, and numbers for scalars; they
            stay as they are. A parameter that a pass renamed finds its tensor by the name before it.
        expected: what some of the parameters must hold afterwards, by name.

    Raises:
        FileNotFoundError: there is no such path.
        ValueError: there are no programs, several functions but no single orchestration to start from, an
            expected name is unknown, or a tolerance is negative.
        KeyError: a parameter has no tensor.
        TypeError: a tensor or a number is something else.
        AssertionError: a stage computes something else; the message names file, parameter and difference.
    """
    import pypto.language as pl

    if rtol < 0 or atol < 0:
        raise ValueError(f"tolerances must not be negative, got rtol={rtol}, atol={atol}")
    folder = Path(ir_dir)
    if not folder.exists():
        raise FileNotFoundError(f"{folder} does not exist: compile with dump_passes=True")
    files = [folder] if folder.is_file() else sorted(folder.glob("*.py"))
    if not files:
        raise ValueError(f"no .py files in {folder}")
    for name, wanted in expected.items():
        _check_tensor(name, wanted)
    for file in files:
        program = pl.parse(file.read_text(encoding="utf-8"))
        if not isinstance(program, ir.Program):
            raise ValueError(f"{file} does not hold a program")
        entry = _entry_of(program, file)
        names = [_SSA_SUFFIX.sub("", param.name_hint) for param in entry.params_]
        unknown = [name for name in expected if name not in names]
        if unknown:
            raise ValueError(f"{file.name}: no parameter {', '.join(unknown)}; there are {', '.join(names)}")
        arguments = [
            _argument(tensors, name, is_tensor=isinstance(param.type, ir.TensorType))
            for name, param in zip(names, entry.params_, strict=True)
        ]
        try:
            Machine().run(loaded(program, check_shapes=True)[entry.name], arguments)
        except Undetermined:
            continue
        for name, wanted in expected.items():
            actual, target = as_float_array(arguments[names.index(name)]), as_float_array(wanted)
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


def _argument(tensors: Mapping[str, Any], name: str, *, is_tensor: bool) -> Any:
    if name not in tensors:
        raise KeyError(f"no tensor for parameter '{name}'; given: {', '.join(tensors)}")
    value = tensors[name]
    if is_tensor:
        _check_tensor(name, value)
        return np.array(as_numpy(value))
    if not isinstance(value, bool | int | float | np.generic):
        raise TypeError(f"'{name}' must be a number, got {type(value).__name__}")
    return value


def _check_tensor(name: str, value: Any) -> None:
    if not hasattr(value, "shape") or isinstance(value, np.generic):
        raise TypeError(f"'{name}' must be a tensor, got {type(value).__name__}")
