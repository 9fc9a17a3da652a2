"""What compilers of such programs have got wrong: each program is run and its numbers are compared.

Every case is an orchestration over the same four kernels; `expected` computes both results.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import numpy as np
import pytest

import pypto.language as pl
from pypto import ir

HEAD = """
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def inc(
        self, x: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]
    ) -> pl.Tensor[[16, 16], pl.FP32]:
        out = pl.store(pl.add(pl.load(x, [0, 0], [16, 16]), 1.0), [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.InCore)
    def double(
        self, x: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]
    ) -> pl.Tensor[[16, 16], pl.FP32]:
        out = pl.store(pl.mul(pl.load(x, [0, 0], [16, 16]), 2.0), [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.InCore)
    def add_to(
        self, x: pl.Tensor[[16, 16], pl.FP32], acc: pl.InOut[pl.Tensor[[16, 16], pl.FP32]]
    ) -> pl.Tensor[[16, 16], pl.FP32]:
        acc = pl.store(pl.add(pl.load(x, [0, 0], [16, 16]), pl.load(acc, [0, 0], [16, 16])), [0, 0], acc)
        return acc

    @pl.function(type=pl.FunctionType.InCore)
    def scale(
        self, x: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
        a: pl.Scalar[pl.FP32], b: pl.Scalar[pl.INT64],
    ) -> pl.Tensor[[16, 16], pl.FP32]:
        t = pl.add(pl.mul(pl.load(x, [0, 0], [16, 16]), a), pl.cast(b, pl.FP32))
        out = pl.store(t, [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[16, 16], pl.FP32], n: pl.Scalar[pl.INT64],
        y: pl.Out[pl.Tensor[[16, 16], pl.FP32]], z: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
    ):
"""
TWO_BUFFERS = """
a = pl.create_tensor([16, 16], dtype=pl.FP32)
b = pl.create_tensor([16, 16], dtype=pl.FP32)
a = self.inc(x, a)
b = self.double(x, b)
"""

CASES: dict[str, tuple[str, Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray]]]] = {
    "yields are one parallel assignment of tensors": (
        TWO_BUFFERS
        + """
for i in pl.range(n):
    a, b = b, a
y = self.inc(a, y)
z = self.inc(b, z)
""",
        lambda x, n: (2 * x + 1, x + 2),
    ),
    "yields are one parallel assignment of scalars": (
        """
p: pl.Scalar[pl.INT64] = 0
q: pl.Scalar[pl.INT64] = 1
for i in pl.range(n):
    p, q = q, p + q
y = self.scale(x, y, 1.0, p)
z = self.scale(x, z, 1.0, q)
""",
        lambda x, n: (x + 5, x + 8),
    ),
    "yields of a while loop are one parallel assignment": (
        TWO_BUFFERS
        + """
i: pl.Scalar[pl.INT64] = 0
j: pl.Scalar[pl.INT64] = 9
while i < n:
    a, b = b, a
    i, j = i + 1, j - i
y = self.scale(a, y, 1.0, i)
z = self.scale(b, z, 1.0, j)
""",
        lambda x, n: (2 * x + 5, x + 1 + 9 - 10),
    ),
    "a while loop runs until its condition fails": (
        TWO_BUFFERS
        + """
i: pl.Scalar[pl.INT64] = 0
while i * i < 10 and i != n:
    a = self.add_to(b, a)
    i = i + 1
while i < 0:
    b = self.add_to(a, b)
    i = i + 1
y = self.inc(a, y)
z = self.scale(b, z, 1.0, i)
""",
        lambda x, n: (x + 1 + 8 * x + 1, 2 * x + 4),
    ),
    "a buffer assembled into two places is in both": (
        """
t = pl.create_tensor([16, 16], dtype=pl.FP32)
t = self.inc(x, t)
y = pl.assemble(y, t, [0, 0])
z = pl.assemble(z, t, [0, 0])
""",
        lambda x, n: (x + 1, x + 1),
    ),
    "float literals keep all digits": (
        "y = self.scale(x, y, 1e-9, 0)\nz = self.scale(x, z, 16777217.5, 0)\n",
        lambda x, n: (x * np.float32(1e-9), x * np.float32(16777217.5)),
    ),
    "division and remainder round down": (
        """
m: pl.Scalar[pl.INT64] = 0 - n
y = self.scale(x, y, 1.0, m // 2 * 100 + m % 3)
z = self.scale(x, z, 1.0, n // -2 * 100 + n % -3)
""",
        lambda x, n: (x - 300 + 1, x - 300 - 1),
    ),
    "and, or, not and bit operators": (
        """
k: pl.Scalar[pl.INT64] = 0
for i in pl.range(10):
    if (i > 2 and i < n) or not (i < 9):
        k = k + i
y = self.scale(x, y, 1.0, k)
z = self.scale(x, z, 1.0, (n << 3 | 2) ^ (n & 4))
""",
        lambda x, n: (x + 3 + 4 + 9, x + ((5 << 3 | 2) ^ 4)),
    ),
    "a write after a manual scope waits for its readers": (
        TWO_BUFFERS
        + """
with pl.manual_scope():
    b, first = pl.submit(self.double, a, b)
    y, second = pl.submit(self.inc, b, y, deps=[first])
a = self.double(x, a)
b = self.add_to(a, b)
z = self.inc(b, z)
""",
        lambda x, n: (2 * (x + 1) + 1, 2 * (x + 1) + 2 * x + 1),
    ),
    "a task of a manual scope waits for what was written before it": (
        TWO_BUFFERS
        + """
for i in pl.range(20):
    a = self.add_to(x, a)
with pl.manual_scope():
    y, first = pl.submit(self.inc, a, y)
    z, second = pl.submit(self.inc, b, z)
""",
        lambda x, n: (21 * x + 2, 2 * x + 1),
    ),
    "a buffer outlives the branch that makes it": (
        TWO_BUFFERS
        + """
if n > 3:
    c = pl.create_tensor([16, 16], dtype=pl.FP32)
    c = self.double(a, c)
    a = c
for i in pl.range(40):
    d = pl.create_tensor([16, 16], dtype=pl.FP32)
    d = self.inc(x, d)
    z = self.inc(d, z)
y = self.inc(a, y)
""",
        lambda x, n: (2 * (x + 1) + 1, x + 2),
    ),
    "a buffer outlives the iteration that makes it": (
        TWO_BUFFERS
        + """
for i in pl.range(30):
    c = pl.create_tensor([16, 16], dtype=pl.FP32)
    c = self.inc(a, c)
    a = c
y = self.inc(a, y)
z = self.inc(b, z)
""",
        lambda x, n: (x + 32, 2 * x + 1),
    ),
    "a buffer outlives the manual scope that makes it": (
        """
with pl.manual_scope():
    c = pl.create_tensor([16, 16], dtype=pl.FP32)
    c, first = pl.submit(self.double, x, c)
y = self.inc(c, y)
z = self.double(c, z)
""",
        lambda x, n: (2 * x + 1, 4 * x),
    ),
    "loops of a manual scope start from what the statements before them gave": (
        TWO_BUFFERS
        + """
a, last = pl.submit(self.add_to, x, a)
b, other = pl.submit(self.add_to, x, b)
with pl.manual_scope():
    k: pl.Scalar[pl.INT64] = 1
    if n > 3:
        a, b = b, a
        a, last = pl.submit(self.add_to, x, a, deps=[last, other])
        k = n
    for i in pl.range(n):
        a, b = b, a
        a, last = pl.submit(self.add_to, x, a, deps=[last])
        k = k + i
    for i in pl.range(2):
        a, b = b, a
        k = k * 2
    y, first = pl.submit(self.scale, a, y, 1.0, k, deps=[last])
    z, second = pl.submit(self.inc, b, z, deps=[last])
""",
        lambda x, n: (2 * x + 1 + 3 * x + 60, 3 * x + 3 * x + 1),
    ),
    "a buffer is as large as a loop before it computes": (
        """
k: pl.Scalar[pl.INT64] = 0
for i in pl.range(n):
    k = k + 8
t = pl.create_tensor([k, 16], dtype=pl.FP32)
last = pl.slice(t, [16, 16], [24, 0])
last = self.inc(x, last)
y = self.inc(last, y)
z = self.inc(x, z)
""",
        lambda x, n: (x + 2, x + 1),
    ),
    "a task id carried by a loop outside manual scopes is honoured": (
        """
a = pl.create_tensor([16, 16], dtype=pl.FP32, manual_dep=True)
a, last = pl.submit(self.inc, x, a)
for i in pl.range(n):
    a, last = pl.submit(self.add_to, x, a, deps=[last])
y, end = pl.submit(self.inc, a, y, deps=[last])
z = self.inc(x, z)
""",
        lambda x, n: (6 * x + 2, x + 1),
    ),
    "two overlapping slices of one tensor are written in order": (
        """
big = pl.create_tensor([24, 16], dtype=pl.FP32)
first = pl.slice(big, [16, 16], [0, 0])
second = pl.slice(big, [16, 16], [8, 0])
first = self.inc(x, first)
second = self.double(x, second)
y = self.inc(pl.slice(big, [16, 16], [0, 0]), y)
z = self.inc(second, z)
""",
        lambda x, n: (np.vstack([x[:8] + 2, 2 * x[:8] + 1]), 2 * x + 1),
    ),
    "a slice of an untracked buffer is untracked, and its creator still comes first": (
        """
a = pl.create_tensor([32, 16], dtype=pl.FP32, manual_dep=True, init_value=3.0)
top = pl.slice(a, [16, 16], [0, 0])
top, done = pl.submit(self.add_to, x, top)
y, end = pl.submit(self.inc, top, y, deps=[done])
z = self.inc(pl.slice(a, [16, 16], [16, 0]), z)
""",
        lambda x, n: (x + 4, x * 0 + 4),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_orchestration_gets_it_right(case, tmp_path):
    body, expected = CASES[case]
    lines = textwrap.indent(f"{body.strip()}\nreturn y, z\n", " " * 8)
    program = pl.parse_program(HEAD + lines)
    x = np.random.default_rng(3).integers(-8, 8, (16, 16)).astype(np.float32) / 16  # sums are exact
    y, z = np.zeros_like(x), np.zeros_like(x)
    compiled = ir.compile(program, output_dir=tmp_path, dump_passes=False)
    for _ in range(5):  # an order that is not kept does not always show
        y[:], z[:] = 0, 0
        compiled(x, 5, y, z)
        for got, wanted in zip((y, z), expected(x, 5), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-6)
