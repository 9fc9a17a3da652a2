"""Specifications of test data, and the `golden.py` that is written from them."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pypto import ir
from pypto.core.dtype import DataType
from pypto.runtime import ScalarSpec, TensorSpec
from pypto.runtime.execute_artifact import execute_artifact_dir
from pypto.runtime.golden import load_golden
from pypto.runtime.golden_writer import generate_golden_source, write_golden
from tests.runtime.programs import AddScaled

FACTOR = 3.0


def scaled_sum(tensors: dict[str, Any], params: Any) -> None:
    tensors["out"][:] = (tensors["a"] + tensors["b"]) * FACTOR


@pytest.mark.parametrize(
    ("init", "expected"),
    [
        (None, 0),
        (2, 2),
        (True, 1),
        (np.ones, 1),
        (np.zeros, 0),
        (lambda: np.full((2, 3), 7.0), 7),
        (np.full((2, 3), 5), 5),
    ],
)
def test_a_tensor_is_made_as_its_specification_says(init: Any, expected: int) -> None:
    made = TensorSpec("x", [2, 3], np.float32, init).create_tensor()
    assert made.shape == (2, 3) and made.dtype == np.float32 and (made == expected).all()
    assert str(TensorSpec("x", [2, 3], DataType.BF16, init).create_tensor().dtype) == "bfloat16"


def test_specifications_have_documented_defaults() -> None:
    spec = TensorSpec("x", [2], np.int32)
    assert spec.init_value is None and spec.is_output is False
    assert ScalarSpec("n", 3).ctype == "int64"


def test_a_written_golden_checks_a_build(tmp_path: Path) -> None:
    ir.compile(AddScaled, tmp_path, dump_passes=False)
    values = np.random.default_rng(0).standard_normal((32, 64))
    specs = [
        TensorSpec("a", [32, 64], np.float32, values),
        TensorSpec("b", [32, 64], np.float32, 2.0),
        TensorSpec("out", [32, 64], np.float32, is_output=True),
    ]
    path = write_golden(specs, scaled_sum, tmp_path / "golden.py", data_dir=tmp_path / "data" / "in")
    assert path == tmp_path / "golden.py" and (tmp_path / "data" / "in" / "a.npy").is_file()
    golden = load_golden(tmp_path)
    assert golden.outputs == ("out",) and golden.rtol == golden.atol == 1e-5
    execute_artifact_dir(tmp_path, "a2a3sim", 0)
    write_golden([*specs[:1], TensorSpec("b", [32, 64], np.float32), specs[2]], wrong, path)
    with pytest.raises(AssertionError, match="'out'"):
        execute_artifact_dir(tmp_path, "a2a3sim", 0)


def wrong(tensors: dict[str, Any], params: Any) -> None:
    tensors["out"][:] = 1


def test_scalars_and_narrow_floats_are_written(tmp_path: Path) -> None:
    specs = [
        TensorSpec("x", [2], DataType.BF16, 1.5),
        TensorSpec("y", [2], DataType.BF16, lambda: [1.0, 2.0]),
    ]
    scalars = [ScalarSpec("n", 3), ScalarSpec("f", 0.5, "float"), ScalarSpec("b", True, "bool")]
    write_golden(specs, wrong, tmp_path / "golden.py", 1e-2, 1e-3, scalars)
    golden = load_golden(tmp_path)
    (_, x), (_, y), (_, n), (_, f), (_, b) = golden.generate_inputs({})
    assert str(x.dtype) == str(y.dtype) == "bfloat16" and x[0] == 1.5 and y[1] == 2
    assert [type(n), type(f), type(b)] == [ctypes.c_int64, ctypes.c_float, ctypes.c_bool] and n.value == 3
    assert (golden.rtol, golden.atol) == (1e-2, 1e-3)
    with pytest.raises(ValueError, match="unknown ctype"):
        generate_golden_source(specs[:1], wrong, scalar_specs=[ScalarSpec("n", 1, "int128")])
    with pytest.raises(ValueError, match="data_dir"):
        generate_golden_source(specs[1:], wrong)
