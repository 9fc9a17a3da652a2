"""Scalars that a dispatch computes, and scalars of another type than the parameter they are passed for."""

from __future__ import annotations

import numpy as np
import pytest

import pypto.language as pl
from pypto import ir
from pypto.codegen import generate_orchestration
from pypto.ir.pass_manager import OptimizationStrategy, PassManager

HEAD = """
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def scale(
        self, x: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
        a: pl.Scalar[pl.FP32], b: pl.Scalar[pl.INT64], flag: pl.Scalar[pl.BOOL], h: pl.Scalar[pl.INT16],
    ) -> pl.Tensor[[16, 16], pl.FP32]:
        t = pl.mul(pl.load(x, [0, 0], [16, 16]), a)
        t = pl.add(pl.add(t, pl.cast(b, pl.FP32)), pl.cast(h, pl.FP32))
        if flag:
            t = pl.add(t, 1000.0)
        out = pl.store(t, [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[16, 16], pl.FP32], n: pl.Scalar[pl.INT32], m: pl.Scalar[pl.INT64],
        out: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
    ) -> pl.Tensor[[16, 16], pl.FP32]:
"""


def result(tmp_path, *body, n=-5, m=3):
    lines = "".join(f"        {line}\n" for line in (*body, "return out"))
    program = pl.parse_program(HEAD + lines)
    x = np.random.default_rng(0).random((16, 16), dtype=np.float32)
    out = np.zeros_like(x)
    ir.compile(program, output_dir=tmp_path, dump_passes=False)(x, n, m, out)
    return x, out


@pytest.mark.parametrize(
    ("arguments", "a", "added"),
    [
        ("0.5 * 0.5, m * 2 + 1, m > 2, 1", 0.25, 7 + 1000 + 1),
        ("pl.cast(m, pl.FP32) * 0.1, m // -2, m == 2, -4", 0.3, -2 - 4),
        ("2, n, False, n", 2.0, -10),  # an int for a float, a narrow negative one for a wide one
        ("m, -7, n, m", 3.0, -7 + 1000 + 3),  # an int variable for a float and for a bool
        ("1.0, 4.0, m, 2", 1.0, 6 + 1000),  # a float without a fraction for an int
    ],
)
def test_computed_and_converted_scalars_reach_the_kernel(arguments, a, added, tmp_path):
    x, out = result(tmp_path, f"out = self.scale(x, out, {arguments})")
    np.testing.assert_allclose(out, x * np.float32(a) + added, rtol=1e-5)


def test_wrappers_compute_scalars_from_their_parameters(tmp_path):
    x, out = result(
        tmp_path,
        "with pl.cluster():",
        "    k = m * 2",
        "    with pl.spmd(m - 1):",
        "        out = self.scale(x, out, n, k + 1, k > n, n + 2)",
    )
    np.testing.assert_allclose(out, x * -5 + 7 + 1000 - 3, rtol=1e-5)


def test_a_submit_in_a_loop_computes_its_scalars(tmp_path):
    x, out = result(
        tmp_path,
        "for i in pl.range(4):",
        "    out, tid = pl.submit(self.scale, x, out, 1.0, i * 16, i < 2, i - 1)",
    )
    np.testing.assert_allclose(out, x + 48 + 2, rtol=1e-5)


def test_a_scalar_that_would_lose_its_fraction_is_refused(tmp_path):
    with pytest.raises(RuntimeError, match="'b' of type int64 gets a value of type fp32; convert it"):
        result(tmp_path, "out = self.scale(x, out, 1.0, 2.5, True, 0)")


SCOPES = """
import pypto.language as pl

M = pl.dynamic("M")

@pl.program
class P:
    @pl.function
    def main(
        self, x: pl.Tensor[[M, 32], pl.FP32], k: pl.Scalar[pl.INDEX], o: pl.Out[pl.Tensor[[64, 32], pl.FP32]],
    ) -> pl.Tensor[[64, 32], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP):
            n = {count}
            z = pl.slice(x, [16, 32], [0, 0])
            part = pl.add(z, z)
        with pl.at(level=pl.Level.CORE_GROUP):
            o = pl.assemble(o, part, [n, 0])
        return o
"""


def test_a_scalar_that_a_scope_computes_has_its_value_in_the_next_one(tmp_path):
    x = np.random.default_rng(0).random((64, 32), dtype=np.float32)
    o = np.zeros_like(x)
    source = SCOPES.format(count="M // 4 + pl.max(k, 2)")
    ir.compile(pl.parse_program(source), output_dir=tmp_path, dump_passes=False)(x, 3, o)
    expected = np.zeros_like(x)
    expected[19:35] = 2 * x[:16]
    np.testing.assert_array_equal(o, expected)


@pytest.mark.parametrize(
    "count",
    [
        "pl.cast(pl.tensor.read(x, [k, 0]), pl.INDEX)",
        "0\n            while n < k:\n                n = n + 1",
    ],
)
def test_a_scalar_that_needs_the_kernel_does_not_come_back_and_the_writer_is_told(tmp_path, capfd, count):
    ir.compile(pl.parse_program(SCOPES.format(count=count)), output_dir=tmp_path, dump_passes=False)
    told = "'n' is computed in a kernel by a branch, by a loop or from what the kernel reads"
    assert told in capfd.readouterr().err
    assert "int64_t n = 0;" in (tmp_path / "orchestration" / "main.cpp").read_text()


def test_a_scalar_computed_in_many_steps_is_computed_in_as_many(tmp_path):
    steps = "".join(f"\n            n = (n * (n + {step}) + 1) % 1000" for step in range(30))
    source = SCOPES.format(count=f"k{steps}\n            n = n % 48")
    x = np.random.default_rng(0).random((64, 32), dtype=np.float32)
    o = np.zeros_like(x)
    ir.compile(pl.parse_program(source), output_dir=tmp_path, dump_passes=False)(x, 7, o)
    n = 7
    for step in range(30):
        n = (n * (n + step) + 1) % 1000
    n %= 48
    expected = np.zeros_like(x)
    expected[n : n + 16] = 2 * x[:16]
    np.testing.assert_array_equal(o, expected)
    assert len((tmp_path / "orchestration" / "main.cpp").read_text()) < 10_000


SCOPES_AROUND = {
    "spmd": "with pl.spmd(2):",
    "cluster": "with pl.cluster():\n            with pl.spmd(2):",
    "host": "with pl.at(level=pl.Level.HOST):",
}


@pytest.mark.parametrize("around", SCOPES_AROUND)
def test_a_scalar_computed_inside_nested_scopes_is_computed_by_the_orchestration(around):
    outer = SCOPES_AROUND[around]
    indent = " " * (4 * outer.count(":\n") + 12)
    program = pl.parse_program(
        f"""
import pypto.language as pl

@pl.program
class P:
    @pl.function
    def main(
        self, x: pl.Tensor[[64, 64], pl.FP32], n: pl.Scalar[pl.INDEX],
        o: pl.InOut[pl.Tensor[[64, 64], pl.FP32]],
    ) -> pl.Tensor[[64, 64], pl.FP32]:
        {outer}
{indent}with pl.at(level=pl.Level.CORE_GROUP):
{indent}    b = pl.tile.get_block_idx()
{indent}    base = n * 8
{indent}    t = pl.load(x, [b * 8, 0], [8, 64])
{indent}    pl.store(t, [b * 8, 0], o)
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [base, 0], [8, 64])
            o = pl.store(pl.add(t, 1.0), [base, 0], o)
        return o
"""
    )
    lowered = PassManager.get_strategy(OptimizationStrategy.Default).run_passes(program)
    code = generate_orchestration(lowered, lowered.get_function("main")).code
    assert "int64_t base = (n * 8);" in code
