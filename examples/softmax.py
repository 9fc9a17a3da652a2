"""A row softmax and what it has to compute.

pypto run examples/softmax.py --check
"""

from __future__ import annotations

import numpy as np

import pypto.language as pl


@pl.program
class Softmax:
    @pl.function
    def main(
        self,
        x: pl.Tensor[[32, 64], pl.FP32],
        out: pl.Out[pl.Tensor[[32, 64], pl.FP32]],
    ) -> pl.Tensor[[32, 64], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP):
            e = pl.exp(pl.row_expand_sub(x, pl.row_max(x)))
            out[:] = pl.row_expand_div(e, pl.row_sum(e))
        return out


def expected(x: np.ndarray) -> dict[str, np.ndarray]:
    """The outputs by name; `pypto run --check` calls it with the inputs that it names."""
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return {"out": e / e.sum(axis=1, keepdims=True)}
