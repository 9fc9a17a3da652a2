"""Random control flow gives the numbers that Python gives."""

from __future__ import annotations

import numpy as np
import pytest

import pypto.language as pl
from pypto import ir
from tests.codegen.random_orchestrations import int_program, tensor_program


@pytest.mark.parametrize("seed", range(5))
def test_integers_follow_python(seed, tmp_path):
    text, x, expected = int_program(seed)
    out = np.zeros(4, np.int64)
    ir.compile(pl.parse(text), output_dir=tmp_path, dump_passes=False)(x, out)
    assert out.tolist() == expected, text


@pytest.mark.parametrize("seed", range(5))
def test_tensors_follow_python(seed, tmp_path):
    text, inputs, scalars, expected = tensor_program(seed)
    outputs = [np.zeros((8, 8), np.float32) for _ in expected]
    ir.compile(pl.parse(text), output_dir=tmp_path, dump_passes=False)(*inputs, *scalars, *outputs)
    for actual, wanted in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-4, atol=1e-4, err_msg=text)
