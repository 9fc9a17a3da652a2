"""Small programs for the tests of compiling and running."""
# ruff: noqa: RET504  (a program names what it returns)

from __future__ import annotations

import pypto.language as pl


@pl.program
class AddScaled:
    """out = (a + b) * 3, in two kernels."""

    @pl.function(type=pl.FunctionType.InCore)
    def add(
        self,
        x: pl.Tensor[[32, 64], pl.FP32],
        y: pl.Tensor[[32, 64], pl.FP32],
        res: pl.Out[pl.Tensor[[32, 64], pl.FP32]],
    ) -> pl.Tensor[[32, 64], pl.FP32]:
        t = pl.load(x, [0, 0], [32, 64])
        u = pl.load(y, [0, 0], [32, 64])
        res = pl.store(pl.add(t, u), [0, 0], res)
        return res

    @pl.function(type=pl.FunctionType.InCore)
    def triple(
        self, x: pl.Tensor[[32, 64], pl.FP32], res: pl.Out[pl.Tensor[[32, 64], pl.FP32]]
    ) -> pl.Tensor[[32, 64], pl.FP32]:
        t = pl.load(x, [0, 0], [32, 64])
        res = pl.store(pl.mul(t, 3.0), [0, 0], res)
        return res

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[32, 64], pl.FP32],
        b: pl.Tensor[[32, 64], pl.FP32],
        out: pl.Out[pl.Tensor[[32, 64], pl.FP32]],
    ) -> pl.Tensor[[32, 64], pl.FP32]:
        both = pl.create_tensor([32, 64], dtype=pl.FP32)
        both = self.add(a, b, both)
        out = self.triple(both, out)
        return out


@pl.program
class TwoEntries:
    """Two orchestrations that share a kernel."""

    @pl.function(type=pl.FunctionType.InCore)
    def double(
        self, x: pl.Tensor[[16, 16], pl.FP32], res: pl.Out[pl.Tensor[[16, 16], pl.FP32]]
    ) -> pl.Tensor[[16, 16], pl.FP32]:
        t = pl.load(x, [0, 0], [16, 16])
        res = pl.store(pl.add(t, t), [0, 0], res)
        return res

    @pl.function(type=pl.FunctionType.Orchestration)
    def once(
        self, x: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]
    ) -> pl.Tensor[[16, 16], pl.FP32]:
        out = self.double(x, out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def twice(
        self, x: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]
    ) -> pl.Tensor[[16, 16], pl.FP32]:
        mid = pl.create_tensor([16, 16], dtype=pl.FP32)
        mid = self.double(x, mid)
        out = self.double(mid, out)
        return out


@pl.program
class TwoSignatures:
    """One kernel whose output is new in one task and read before in the next: two registrations."""

    @pl.function(type=pl.FunctionType.InCore)
    def double(
        self, x: pl.Tensor[[16, 16], pl.FP32], res: pl.InOut[pl.Tensor[[16, 16], pl.FP32]]
    ) -> pl.Tensor[[16, 16], pl.FP32]:
        t = pl.load(x, [0, 0], [16, 16])
        u = pl.load(res, [0, 0], [16, 16])
        res = pl.store(pl.add(t, u), [0, 0], res)
        return res

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[16, 16], pl.FP32], out: pl.InOut[pl.Tensor[[16, 16], pl.FP32]]
    ) -> pl.Tensor[[16, 16], pl.FP32]:
        out = self.double(x, out)
        out = self.double(pl.no_dep(x), out)
        return out
