"""Programs whose control flow lives in the orchestration, compiled and run; numbers are compared with numpy.

Each program also prints and reads back after every pass on its way down.
"""

# ruff: noqa: RET504 - DSL programs spell their types out, and return what they assign

from __future__ import annotations

import textwrap

import ml_dtypes
import numpy as np
import pytest

import pypto.language as pl
from pypto import ir, passes

RNG = np.random.default_rng(0)


def random(*shape):
    return RNG.random(shape, dtype=np.float32)


def run(program, tmp_path, *args):
    compiled = ir.compile(program, output_dir=tmp_path, dump_passes=False)
    compiled(*args)
    return compiled


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


@pl.program
class Chain:
    @pl.function(type=pl.FunctionType.InCore)
    def inc(
        self, x: pl.Tensor[[32, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        out = pl.store(pl.add(pl.load(x, [0, 0], [32, 32]), 1.0), [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[32, 32], pl.FP32],
        n: pl.Scalar[pl.INT32],
        out: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        cur = x
        for _ in pl.range(n):
            nxt = pl.create_tensor([32, 32], dtype=pl.FP32)
            nxt = self.inc(cur, nxt)
            cur = nxt
        out = self.inc(cur, out)
        return out


def test_a_buffer_made_in_a_loop_outlives_its_iteration(tmp_path):
    x, out = random(32, 32), np.zeros((32, 32), np.float32)
    compiled = run(Chain, tmp_path, x, 5, out)
    close(out, x + 6)
    compiled(x, 0, out)
    close(out, x + 1)


@pl.program
class Swap:
    @pl.function(type=pl.FunctionType.InCore)
    def inc(
        self, x: pl.Tensor[[32, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        out = pl.store(pl.add(pl.load(x, [0, 0], [32, 32]), 1.0), [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[32, 32], pl.FP32],
        y: pl.Tensor[[32, 32], pl.FP32],
        a_out: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
        b_out: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
    ) -> tuple[pl.Tensor[[32, 32], pl.FP32], pl.Tensor[[32, 32], pl.FP32]]:
        a = x
        b = y
        for _ in pl.range(3):
            a, b = b, a
        a_out = self.inc(a, a_out)
        b_out = self.inc(b, b_out)
        return a_out, b_out


def test_carries_that_swap_keep_both_buffers(tmp_path):
    x, y, a, b = (
        random(32, 32),
        random(32, 32),
        np.zeros((32, 32), np.float32),
        np.zeros((32, 32), np.float32),
    )
    run(Swap, tmp_path, x, y, a, b)
    close(a, y + 1)
    close(b, x + 1)


@pl.program
class Decide:
    @pl.function(type=pl.FunctionType.InCore)
    def inc(
        self, x: pl.Tensor[[32, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        out = pl.store(pl.add(pl.load(x, [0, 0], [32, 32]), 1.0), [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[32, 32], pl.FP32],
        cnt: pl.Tensor[[4], pl.INT32],
        out: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        c = pl.tensor.read(cnt, [1])
        if c > 2:
            t = pl.create_tensor([32, 32], dtype=pl.FP32)
            t = self.inc(x, t)
            z = t
        else:
            z = x
        k = 0
        while k < 3:
            k = k + 1
        for _ in pl.range(k):
            step = pl.create_tensor([32, 32], dtype=pl.FP32)
            step = self.inc(z, step)
            z = step
        out = self.inc(z, out)
        return out


def test_branches_and_while_loops_follow_values_of_tensors(tmp_path):
    x, out = random(32, 32), np.zeros((32, 32), np.float32)
    compiled = run(Decide, tmp_path, x, np.array([0, 1, 0, 0], np.int32), out)
    close(out, x + 4)
    compiled(x, np.array([0, 7, 0, 0], np.int32), out)
    close(out, x + 5)


@pl.program
class Phases:
    @pl.function(type=pl.FunctionType.InCore)
    def acc(
        self, x: pl.Tensor[[8, 32], pl.FP32], out: pl.InOut[pl.Tensor[[8, 32], pl.FP32]]
    ) -> pl.Tensor[[8, 32], pl.FP32]:
        out = pl.store(pl.add(pl.load(x, [0, 0], [8, 32]), pl.load(out, [0, 0], [8, 32])), [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[32, 32], pl.FP32], out: pl.InOut[pl.Tensor[[32, 32], pl.FP32]]
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        with pl.manual_scope():
            prev = None
            for _ in pl.range(3):
                for j in pl.parallel(4):
                    part = pl.slice(out, [8, 32], [j * 8, 0])
                    _r, prev = pl.submit(self.acc, pl.slice(x, [8, 32], [j * 8, 0]), part, deps=[prev])
        return out


def test_phases_of_parallel_submits_wait_for_the_phase_before(tmp_path):
    x, out = random(32, 32), np.ones((32, 32), np.float32)
    run(Phases, tmp_path, x, out)
    close(out, 1 + 3 * x)


@pl.program
class Ids:
    @pl.function(type=pl.FunctionType.InCore)
    def acc(
        self, x: pl.Tensor[[8, 32], pl.FP32], out: pl.InOut[pl.Tensor[[8, 32], pl.FP32]]
    ) -> pl.Tensor[[8, 32], pl.FP32]:
        out = pl.store(pl.add(pl.load(x, [0, 0], [8, 32]), pl.load(out, [0, 0], [8, 32])), [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[8, 32], pl.FP32], out: pl.InOut[pl.Tensor[[8, 32], pl.FP32]]
    ) -> pl.Tensor[[8, 32], pl.FP32]:
        with pl.manual_scope():
            ids = pl.array.create(4, pl.TASK_ID)
            last = None
            for j in pl.range(4):
                out, tid = pl.submit(self.acc, x, out, deps=[last])
                ids[j] = tid
                last = tid
            bar = pl.system.task_dummy(deps=[ids])
            out, _last = pl.submit(self.acc, x, out, deps=[bar])
        return out


def test_ids_kept_in_arrays_and_barriers_order_tasks(tmp_path):
    x, out = random(8, 32), np.ones((8, 32), np.float32)
    run(Ids, tmp_path, x, out)
    close(out, 1 + 5 * x)


@pl.program
class Omitted:
    @pl.function(type=pl.FunctionType.InCore)
    def inc(
        self, x: pl.Tensor[[32, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        out = pl.store(pl.add(pl.load(x, [0, 0], [32, 32]), 1.0), [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[32, 32], pl.FP32],
        flag: pl.Tensor[[2], pl.INT32],
        out: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        y, first = pl.submit(self.inc, x)
        z, second = pl.submit(self.inc, y, deps=[first])
        out, _third = pl.submit(self.inc, z, out, deps=[second], predicate=(flag[1] > 0))
        return out


def test_omitted_outputs_flow_on_and_predicates_decide(tmp_path):
    x, out = random(32, 32), np.zeros((32, 32), np.float32)
    compiled = run(Omitted, tmp_path, x, np.array([1, 0], np.int32), out)
    close(out, 0)
    compiled(x, np.array([0, 1], np.int32), out)
    close(out, x + 3)


@pl.program
class OutputsOfManualScope:
    @pl.function(type=pl.FunctionType.InCore)
    def inc(
        self, x: pl.Tensor[[32, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        out = pl.store(pl.add(pl.load(x, [0, 0], [32, 32]), 1.0), [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[32, 32], pl.FP32],
        n: pl.Scalar[pl.INDEX],
        out: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
        rows: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        for _ in pl.range(n):
            with pl.manual_scope():
                y, first = pl.submit(self.inc, x)
                z, _second = pl.submit(self.inc, y, deps=[first])
                part = pl.slice(z, [16, 32], [16, 0])
            out = self.inc(z, out)
            with pl.at(level=pl.Level.CORE_GROUP):
                rows = pl.store(pl.load(part, [0, 0], [16, 32]), [0, 0], rows)
        return out


def test_outputs_that_the_runtime_makes_in_a_manual_scope_are_intact_after_it(tmp_path):
    x, out, rows = random(32, 32), np.zeros((32, 32), np.float32), np.zeros((16, 32), np.float32)
    run(OutputsOfManualScope, tmp_path, x, 50, out, rows)
    close(out, x + 3)
    close(rows, x[16:] + 2)


@pl.program
class BufferOfNestedScopes:
    @pl.function(type=pl.FunctionType.InCore)
    def inc(
        self, x: pl.Tensor[[32, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        out = pl.store(pl.add(pl.load(x, [0, 0], [32, 32]), 1.0), [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration, auto_scope=False)
    def main(
        self, x: pl.Tensor[[32, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        with pl.scope():  # noqa: SIM117 - one scope in another
            with pl.manual_scope():
                made = pl.create_tensor([32, 32], dtype=pl.FP32)
                made = self.inc(x, made)
        out = self.inc(made, out)
        return out


def test_buffer_made_in_a_manual_scope_inside_a_scope_is_intact_after_both(tmp_path):
    x, out = random(32, 32), np.zeros((32, 32), np.float32)
    run(BufferOfNestedScopes, tmp_path, x, out)
    close(out, x + 2)


ROWS = pl.dynamic("ROWS")


@pl.program
class Rows:
    @pl.function
    def main(
        self, x: pl.Tensor[[ROWS, 64], pl.FP32], out: pl.Out[pl.Tensor[[ROWS, 64], pl.FP32]]
    ) -> pl.Tensor[[ROWS, 64], pl.FP32]:
        n = pl.tensor.dim(x, 0)
        for i in pl.parallel(n // 8):
            with pl.at(level=pl.Level.CORE_GROUP):
                out = pl.store(pl.mul(pl.load(x, [i * 8, 0], [8, 64]), 2.0), [i * 8, 0], out)
        return out


def test_loops_count_by_the_extent_of_an_argument(tmp_path):
    for rows in (40, 16):
        x, out = random(rows, 64), np.zeros((rows, 64), np.float32)
        run(Rows, tmp_path, x, out)
        close(out, 2 * x)


@pl.program
class TwoSteps:
    @pl.function
    def main(
        self,
        a: pl.Tensor[[32, 32], pl.FP32],
        b: pl.Tensor[[32, 32], pl.FP32],
        out: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        with pl.cluster():
            with pl.at(level=pl.Level.CORE_GROUP):
                y = pl.matmul(a, b)
            with pl.at(level=pl.Level.CORE_GROUP):
                out[:] = pl.mul(y, 2.0)
        return out


def test_steps_of_a_cluster_follow_one_another(tmp_path):
    a, b, out = random(32, 32), random(32, 32), np.zeros((32, 32), np.float32)
    run(TwoSteps, tmp_path, a, b, out)
    np.testing.assert_allclose(out, (a @ b) * 2, rtol=1e-4)


@pl.program
class Twice:
    @pl.function
    def main(
        self, x: pl.Tensor[[8, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]
    ) -> pl.Tensor[[16, 16], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP):
            y = pl.mul(x, 3.0)
        out[0:8, :] = y
        out[8:16, :] = y
        return out


def test_a_buffer_assembled_into_two_places_is_in_both(tmp_path):
    x, out = random(8, 16), np.zeros((16, 16), np.float32)
    run(Twice, tmp_path, x, out)
    close(out, np.concatenate([x * 3, x * 3]))


@pl.program
class Scalars:
    @pl.function(type=pl.FunctionType.InCore)
    def scale(
        self,
        x: pl.Tensor[[16, 16], pl.FP32],
        s: pl.Scalar[pl.FP32],
        n: pl.Scalar[pl.INT32],
        out: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
    ) -> pl.Tensor[[16, 16], pl.FP32]:
        out = pl.store(pl.add(pl.mul(pl.load(x, [0, 0], [16, 16]), s), pl.cast(n, pl.FP32)), [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[16, 16], pl.FP32],
        s: pl.Scalar[pl.FP32],
        n: pl.Scalar[pl.INT32],
        out: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
    ) -> pl.Tensor[[16, 16], pl.FP32]:
        half = n // 2
        rest = n % 3
        t = pl.create_tensor([16, 16], dtype=pl.FP32)
        t = self.scale(x, s, half, t)
        out = self.scale(t, 1e-9, rest, out)
        return out


@pytest.mark.parametrize("n", [7, -7])
def test_division_rounds_down_and_small_literals_survive(tmp_path, n):
    x, out = random(16, 16), np.zeros((16, 16), np.float32)
    run(Scalars, tmp_path, x, 2.5, n, out)
    close(out, (x * np.float32(2.5) + n // 2) * np.float32(1e-9) + n % 3)


@pl.program
class Elements:
    @pl.function(type=pl.FunctionType.InCore)
    def inc(
        self, x: pl.Tensor[[4], pl.INT32], out: pl.Out[pl.Tensor[[4], pl.INT32]]
    ) -> pl.Tensor[[4], pl.INT32]:
        out = pl.store(pl.add(pl.load(x, [0], [4]), 1), [0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.InOut[pl.Tensor[[4], pl.INT32]], out: pl.Out[pl.Tensor[[4], pl.INT32]]
    ) -> pl.Tensor[[4], pl.INT32]:
        v = pl.tensor.read(x, [0])
        w = pl.max(v, pl.const(5, pl.INT32))
        pl.write(x, [1], w)
        if v > 3 and w > 4:
            pl.write(x, [2], pl.const(77, pl.INT32))
        out = self.inc(x, out)
        r = pl.tensor.read(out, [1])
        pl.write(x, [3], r)
        return out


def test_elements_are_read_and_written_between_tasks(tmp_path):
    x, out = np.array([4, 0, 0, 0], np.int32), np.zeros(4, np.int32)
    run(Elements, tmp_path, x, out)
    assert x.tolist() == [4, 5, 77, 6]
    assert out.tolist() == [5, 6, 78, 1]


def test_an_orchestration_writes_constants_and_elements_of_narrow_floats(tmp_path):
    halves, brains = "pl.Tensor[[3], pl.FP16]", "pl.Tensor[[3], pl.BF16]"
    text = f"""
        @pl.program
        class P:
            @pl.function(type=pl.FunctionType.Orchestration)
            def main(self, h: pl.InOut[{halves}], b: pl.InOut[{brains}]) -> tuple[{halves}, {brains}]:
                pl.write(h, [0], pl.const(1.5, pl.FP16))
                pl.write(b, [0], pl.const(-0.1, pl.BF16))
                pl.write(h, [1], pl.read(h, [2]))
                last = pl.const(7.0, pl.BF16)
                pl.write(b, [1], last)
                return h, b
    """
    h, b = np.array([0, 0, 4.25], np.float16), np.zeros(3, ml_dtypes.bfloat16)
    run(pl.parse_program(textwrap.dedent(text)), tmp_path, h, b)
    assert h.tolist() == [1.5, 4.25, 4.25]
    assert b.tolist() == np.array([-0.1, 7, 0], ml_dtypes.bfloat16).tolist()


@pl.program
class Nested:
    @pl.function(type=pl.FunctionType.InCore)
    def acc(
        self, x: pl.Tensor[[8, 32], pl.FP32], out: pl.InOut[pl.Tensor[[8, 32], pl.FP32]]
    ) -> pl.Tensor[[8, 32], pl.FP32]:
        out = pl.store(pl.add(pl.load(x, [0, 0], [8, 32]), pl.load(out, [0, 0], [8, 32])), [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[8, 32], pl.FP32], out: pl.InOut[pl.Tensor[[8, 32], pl.FP32]]
    ) -> pl.Tensor[[8, 32], pl.FP32]:
        total = 0
        for i in pl.range(3, 0, -1):
            for _ in pl.range(i):
                total = total + 1
                if total % 2 == 0:
                    out = self.acc(x, out)
        for _ in pl.range(total):
            out = self.acc(x, out)
        return out


def test_scalar_carries_run_through_nested_loops_and_branches(tmp_path):
    x, out = random(8, 32), np.ones((8, 32), np.float32)
    run(Nested, tmp_path, x, out)
    close(out, 1 + 9 * x)


PROGRAMS = [Chain, Swap, Decide, Phases, Ids, Omitted, Rows, TwoSteps, Twice, Scalars, Elements, Nested]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_every_stage_of_the_pipeline_prints_and_reads_back(program):
    with passes.PassContext([ir.make_roundtrip_instrument()]):
        ir.PassManager.get_strategy(ir.OptimizationStrategy.Default).run_passes(program)
