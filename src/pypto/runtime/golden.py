"""The test data of a build directory: `golden.py` makes inputs and says what comes out.

`golden.py` defines `__outputs__` (names), `RTOL`, `ATOL`, `generate_inputs(params)`, which returns (name,
array or scalar) pairs in parameter order, outputs included, and `compute_golden(tensors, params)`, which
fills the outputs of a dict in place. Arrays are numpy arrays or torch tensors.
"""

from __future__ import annotations

import copy
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pypto.debug.arrays import as_float_array

FILE_NAME = "golden.py"
TOLERANCE = 1e-5
_POSITIONS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Golden:
    """The content of a `golden.py`."""

    outputs: tuple[str, ...]
    rtol: float
    atol: float
    generate_inputs: Callable[[Mapping[str, Any]], Sequence[tuple[str, Any]]]
    compute_golden: Callable[[dict[str, Any], Mapping[str, Any]], object]

    def expected(self, inputs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        """The outputs that `inputs` should give, which stay as they are."""
        tensors = {name: copy.deepcopy(value) for name, value in inputs}
        self.compute_golden(tensors, {})
        return {name: tensors[name] for name in self.outputs}


def load_golden(work_dir: Path) -> Golden:
    """Execute the directory's `golden.py`. Raises `FileNotFoundError`, `ValueError`, or what it raises."""
    path = work_dir / FILE_NAME
    if not path.is_file():
        raise FileNotFoundError(f"no {FILE_NAME} in {work_dir}, which makes the inputs of a run")
    name = f"_pypto_golden_{abs(hash(path.resolve()))}"
    description = importlib.util.spec_from_file_location(name, path)
    assert description is not None and description.loader is not None
    module = importlib.util.module_from_spec(description)
    sys.modules[name] = module
    try:
        description.loader.exec_module(module)
    finally:
        del sys.modules[name]
    needed = ("__outputs__", "generate_inputs", "compute_golden")
    missing = [field for field in needed if not hasattr(module, field)]
    if missing:
        raise ValueError(f"{path} does not define {', '.join(missing)}")
    return Golden(
        tuple(module.__outputs__),
        float(getattr(module, "RTOL", TOLERANCE)),
        float(getattr(module, "ATOL", TOLERANCE)),
        module.generate_inputs,
        module.compute_golden,
    )


def validate_golden(
    outputs: Mapping[str, Any], golden: Mapping[str, Any], rtol: float = TOLERANCE, atol: float = TOLERANCE
) -> None:
    """Compare outputs with what they should be; a NaN there means that any value will do.

    Raises `AssertionError` with the number of mismatches, and position and values of the first ones.
    """
    for name, value in golden.items():
        actual, wanted = as_float_array(outputs[name]), as_float_array(value)
        if actual.shape != wanted.shape:
            raise AssertionError(f"output '{name}' has shape {actual.shape}, golden {wanted.shape}")
        wrong = ~np.isclose(actual, wanted, rtol=rtol, atol=atol) & ~np.isnan(wanted)
        if not wrong.any():
            continue
        places = np.argwhere(wrong)
        lines = [f"output '{name}': {len(places)} of {wrong.size} elements differ (rtol={rtol}, atol={atol})"]
        for place in map(tuple, places[:_POSITIONS_SHOWN]):
            index = ", ".join(map(str, place))
            lines.append(f"  [{index}]: actual {actual[place]}, golden {wanted[place]}")
        raise AssertionError("\n".join(lines))
