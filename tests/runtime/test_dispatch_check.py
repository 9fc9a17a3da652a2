"""A kernel never gets a tensor that it would leave or misread."""

from __future__ import annotations

import pytest

import pypto.language as pl
from pypto import ir

PROGRAM = """
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self, x: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]
    ) -> pl.Tensor[[64, 64], pl.FP32]:
        out = pl.store(pl.load(x, [0, 0], [64, 64]), [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[64, 64], pl.FP32], o: pl.Out[pl.Tensor[[64, 64], pl.FP32]]
    ) -> pl.Tensor[[64, 64], pl.FP32]:
        y = pl.create_tensor({given})
        z = self.k(x, y)
        o = self.k(z, o)
        return o
"""


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("[1, 4], dtype=pl.FP32", r"Parameter 'out' of 'k' is a .*\[64, 64\].*, but it gets a .*\[1, 4\]"),
        ("[64, 64], dtype=pl.FP16", r"gets a .*FP16.* \[.*:\d+:\d+\]"),
    ],
)
def test_a_tensor_that_its_kernel_would_leave_or_misread_is_an_error(given, message, tmp_path):
    program = pl.parse_program(PROGRAM.format(given=given))
    with pytest.raises(ValueError, match=message):
        ir.compile(program, tmp_path, dump_passes=False)
    assert not (tmp_path / "kernel_config.py").exists()


def test_a_larger_tensor_is_fine(tmp_path):
    ir.compile(
        pl.parse_program(PROGRAM.format(given="[128, 64], dtype=pl.FP32")), tmp_path, dump_passes=False
    )
