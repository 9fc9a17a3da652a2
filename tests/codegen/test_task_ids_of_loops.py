"""Task ids that loops of a manual scope carry: every task that a name stands for is waited for."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

import pypto.language as pl
from pypto import ir

HEAD = """
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def add_to(
        self, x: pl.Tensor[[8, 8], pl.FP32], acc: pl.InOut[pl.Tensor[[8, 8], pl.FP32]], k: pl.Scalar[pl.INT64]
    ) -> pl.Tensor[[8, 8], pl.FP32]:
        t = pl.add(pl.load(x, [0, 0], [8, 8]), pl.load(acc, [0, 0], [8, 8]))
        acc = pl.store(pl.add(t, pl.cast(k, pl.FP32)), [0, 0], acc)
        return acc

    @pl.function(type=pl.FunctionType.InCore)
    def join(
        self, big: pl.Tensor[[64, 8], pl.FP32], out: pl.Out[pl.Tensor[[64, 8], pl.FP32]]
    ) -> pl.Tensor[[64, 8], pl.FP32]:
        out = pl.store(pl.load(big, [0, 0], [64, 8]), [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[8, 8], pl.FP32], n: pl.Scalar[pl.INT64], out: pl.Out[pl.Tensor[[64, 8], pl.FP32]]
    ) -> pl.Tensor[[64, 8], pl.FP32]:
        big = pl.create_tensor([64, 8], dtype=pl.FP32, init_value=0.0)
        with pl.manual_scope():
            tid = None
{body}
            out, end = pl.submit(self.join, big, out, deps=[tid])
        return out
"""

CASES = {
    "a sequential loop after a parallel one": (
        """
        for i in pl.parallel(4):
            STEP(i)
        for i in pl.range(n):
            STEP(i)
        """,
        [2, 2, 2, 1],
    ),
    "a parallel loop in a parallel loop": (
        """
        for i in pl.parallel(2):
            for j in pl.parallel(4):
                STEP(i * 4 + j)
        for j in pl.parallel(8):
            STEP(7 - j)
        """,
        [2] * 8,
    ),
    "parallel loops of different length around one another": (
        """
        for i in pl.parallel(6):
            STEP(i)
        for q in pl.range(n):
            for j in pl.parallel(2):
                STEP(j * 5)
        """,
        [4, 1, 1, 1, 1, 4],
    ),
    "branches that keep different numbers of ids": (
        """
        for q in pl.range(2):
            if q == 0:
                for i in pl.parallel(4):
                    STEP(i)
            else:
                STEP(3)
        """,
        [1, 1, 1, 2],
    ),
    "a while loop around a parallel one": (
        """
        w: pl.Scalar[pl.INT64] = 0
        while w < n:
            for i in pl.parallel(4):
                STEP(i)
            w = w + 1
        """,
        [3, 3, 3, 3],
    ),
    "a chain in each iteration of a parallel loop": (
        """
        for q in pl.range(n):
            for i in pl.parallel(4):
                for r in pl.range(2):
                    STEP(i)
        """,
        [6, 6, 6, 6],
    ),
    "descending and strided parallel loops": (
        """
        for i in pl.parallel(7, -1, -1):
            STEP(i)
        for i in pl.parallel(0, 8, 2):
            STEP(i)
        """,
        [2, 1, 2, 1, 2, 1, 2, 1],
    ),
}


def parsed(body):
    lines = []
    for line in textwrap.dedent(body).strip("\n").splitlines():
        indent, step = line[: len(line) - len(line.lstrip())], line.strip()
        if step.startswith("STEP("):
            block = step.removeprefix("STEP(").removesuffix(")")
            lines.append(f"{indent}part = pl.slice(big, [8, 8], [({block}) * 8, 0])")
            lines.append(f"{indent}part, tid = pl.submit(self.add_to, x, part, {block}, deps=[tid])")
        else:
            lines.append(line)
    return pl.parse_program(HEAD.format(body=textwrap.indent("\n".join(lines), " " * 12)))


@pytest.mark.parametrize("case", CASES)
def test_a_consumer_waits_for_all_tasks_of(case, tmp_path):
    body, times = CASES[case]
    x, out = np.full((8, 8), 0.5, np.float32), np.zeros((64, 8), np.float32)
    compiled = ir.compile(parsed(body), output_dir=tmp_path, dump_passes=False)
    wanted = np.zeros(8)
    for block, count in enumerate(times):
        wanted[block] = count * (0.5 + block)
    for _ in range(10):
        out[:] = -1
        compiled(x, 3, out)
        assert out[::8, 0].tolist() == wanted.tolist()


def test_loops_that_multiply_what_they_carry_without_end_are_refused(tmp_path):
    body = """
    for q in pl.range(n):
        for i in pl.parallel(4):
            for r in pl.range(n):
                STEP(i)
    """
    with pytest.raises(ValueError, match=r"'tid.*' would keep \d+ task ids or more; wait for them with"):
        ir.compile(parsed(body), output_dir=tmp_path, dump_passes=False)
