"""Which program a jit function becomes for its arguments, and that it computes the right numbers."""

# ruff: noqa: B007, RET504, RUF043, RUF059 - programs of the DSL are what is tested

from __future__ import annotations

import warnings

import numpy as np
import pytest

import pypto.language as pl
from pypto import ir
from pypto.ir.pass_manager import PassManager
from pypto.ir.walk import walk
from pypto.runtime import RunConfig

M = pl.dynamic("M")
ROWS = 16
SCALE = 2.0
MODE = "rint"
HALF = pl.FP16


class CFG:
    rows = 16
    dim = pl.dynamic("D")


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


@pytest.fixture(autouse=True)
def build_dir(tmp_path, monkeypatch):
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path))


@pl.jit.inline
def helper(x: pl.Tensor, out: pl.Tensor):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [ROWS, 64])
        out = pl.store(t, [0, 0], out)
    return out


@pl.jit.incore
def inc(x: pl.Tensor, n: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor]):
    t = pl.load(x, [0, 0], [16, 64])
    out = pl.store(t, [0, 0], out)
    return out


@pl.jit
def main(a: pl.Tensor[[M, 64], pl.FP32], n: pl.Scalar[pl.INT32], c: pl.Out[pl.Tensor]):
    m, w = a.shape
    tmp = pl.create_tensor([M, 64], dtype=pl.FP32)
    tmp = helper(a, tmp)
    for i in pl.range(n):
        c = inc(tmp, n, out=c)
    return c


@pl.jit.incore
def times(x: pl.Tensor, n: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor]):
    t = pl.load(x, [0, 0], [16, 64])
    out = pl.store(pl.mul(t, pl.cast(n, pl.FP32)), [0, 0], out)
    return out


@pl.jit.incore
def plus_one(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    m, n = x.shape
    out = pl.store(pl.add(pl.load(x, [0, 0], [m, n]), 1.0), [0, 0], out)
    return out


def names_of(program: ir.Program) -> list[str]:
    return sorted(function.name for function in program.functions.values())


# -- the produced program ------------------------------------------------------------------------------------


def test_lower_equals_the_passes_on_the_program_written_by_hand():
    @pl.program
    class _jit_main:
        @pl.function(type=pl.FunctionType.Inline)
        def helper(
            self, x: pl.Tensor[[M, 64], pl.FP32], out: pl.Tensor[[M, 64], pl.FP32]
        ) -> pl.Tensor[[M, 64], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [0, 0], [ROWS, 64])
                out = pl.store(t, [0, 0], out)
            return out

        @pl.function(type=pl.FunctionType.InCore)
        def inc(
            self,
            x: pl.Tensor[[M, 64], pl.FP32],
            n: pl.Scalar[pl.INT32],
            out: pl.Out[pl.Tensor[[32, 64], pl.FP32]],
        ) -> pl.Tensor[[32, 64], pl.FP32]:
            t = pl.load(x, [0, 0], [16, 64])
            out = pl.store(t, [0, 0], out)
            return out

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self,
            a: pl.Tensor[[M, 64], pl.FP32],
            n: pl.Scalar[pl.INT32],
            c: pl.Out[pl.Tensor[[32, 64], pl.FP32]],
        ) -> pl.Tensor[[32, 64], pl.FP32]:
            m = pl.tensor.dim(a, 0)
            tmp = pl.create_tensor([pl.tensor.dim(a, 0), 64], dtype=pl.FP32)
            tmp_v1 = self.helper(a, tmp)
            for i in pl.range(3):
                c = self.inc(tmp_v1, 3, c)
            return c

    lowered = main.lower(ones(32, 64), 3, ones(32, 64))
    assert lowered.name == "_jit_main"
    ir.assert_structural_equal(
        lowered, PassManager.get_strategy().run_passes(_jit_main), enable_auto_mapping=True
    )


def test_signature_mode_and_samples_of_equal_facts_give_equal_programs():
    @pl.jit
    def k(a: pl.Tensor[[32, 64], pl.FP32], n: pl.Scalar[pl.INT32], c: pl.Out[pl.Tensor[[32, 64], pl.FP32]]):
        c = times(a, n, c)
        return c

    sampled = k.lower(ones(32, 64), 3, ones(32, 64))
    ir.assert_structural_equal(k.lower(n=3), sampled, enable_auto_mapping=True)
    ir.assert_structural_equal(
        k.lower(a=ones(32, 64), n=3, c=ones(32, 64)), sampled, enable_auto_mapping=True
    )


def test_the_argument_wins_over_the_annotation():
    @pl.jit
    def k(a: pl.Tensor[[64, 64], pl.FP16], c: pl.Out[pl.Tensor]):
        c = plus_one(a, c)
        return c

    entry = k.lower(ones(32, 64), ones(32, 64)).get_function("k")
    assert str(entry.params[0].type) == "Tensor([32, 64], FP32)" or "32, 64" in str(entry.params[0].type)


def test_one_version_of_a_dep_per_combination_of_types():
    @pl.jit
    def k(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor], d: pl.Out[pl.Tensor]):
        c = plus_one(a, c)
        d = plus_one(b, d)
        c = plus_one(c, c)
        return c, d

    a, b, c, d = ones(16, 64), ones(32, 32), ones(16, 64), ones(32, 32)
    assert names_of(k.lower(a, b, c, d)) == ["k", "plus_one", "plus_one_1"]
    k(a, b, c, d)
    assert (c == 3).all() and (d == 2).all()


def test_two_deps_of_one_name_are_two_functions():
    def other():
        @pl.jit.incore
        def plus_one(x: pl.Tensor, out: pl.Out[pl.Tensor]):
            out = pl.store(pl.add(pl.load(x, [0, 0], [16, 64]), 5.0), [0, 0], out)
            return out

        return plus_one

    plus_five = other()

    @pl.jit
    def k(a: pl.Tensor, c: pl.Out[pl.Tensor], d: pl.Out[pl.Tensor]):
        c = plus_one(a, c)
        d = plus_five(a, d)
        return c, d

    a, c, d = ones(16, 64), ones(16, 64), ones(16, 64)
    k(a, c, d)
    assert (c == 2).all() and (d == 6).all()


def test_a_dep_is_found_behind_an_attribute_and_an_alias():
    class module:
        dep = plus_one

    @pl.jit
    def k(a: pl.Tensor, c: pl.Out[pl.Tensor], d: pl.Out[pl.Tensor]):
        again = plus_one
        c = module.dep(a, c)
        d = again(c, d)
        return c, d

    a, c, d = ones(16, 64), ones(16, 64), ones(16, 64)
    k(a, c, d)
    assert (c == 2).all() and (d == 3).all()


def test_a_plain_jit_function_is_no_dep():
    @pl.jit
    def inner(a: pl.Tensor, c: pl.Out[pl.Tensor]):
        return c

    @pl.jit
    def k(a: pl.Tensor, c: pl.Out[pl.Tensor]):
        c = inner(a, c)
        return c

    with pytest.raises(pl.parser.UnsupportedFeatureError, match="Unsupported function call"):
        k.lower(ones(16, 64), ones(16, 64))


def test_recursion_is_refused():
    @pl.jit.inline
    def again(a: pl.Tensor):
        return again(a)

    @pl.jit
    def k(a: pl.Tensor, c: pl.Out[pl.Tensor]):
        c = again(a)
        return c

    with pytest.raises(ValueError, match="Cycle detected in FunctionType::Inline call graph: again -> again"):
        k.lower(ones(16, 64), ones(16, 64))


def test_out_on_an_inline_helper_is_dropped_with_one_warning():
    @pl.jit.inline
    def old(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        out = plus_one(x, out)
        return out

    @pl.jit
    def k(a: pl.Tensor, c: pl.Out[pl.Tensor]):
        c = old(a, c)
        c = old(c, c)
        return c

    with pytest.warns(DeprecationWarning, match="'old'.* on out has no effect") as caught:
        k.lower(ones(16, 64), ones(16, 64))
    assert len([w for w in caught if "old" in str(w.message)]) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        main.lower(ones(32, 64), 3, ones(32, 64))


# -- bodies --------------------------------------------------------------------------------------------------


def test_a_name_may_change_its_type_in_one_block():
    @pl.jit
    def k(a: pl.Tensor, c: pl.Out[pl.Tensor]):
        for i in pl.range(2):
            with pl.at(level=pl.Level.CORE_GROUP):
                x = pl.load(a, [i * 16, 0], [16, 64])
                x = pl.cast(x, HALF, mode=MODE)
                x = pl.cast(x, pl.FP32)
                x_v1 = pl.mul(x, SCALE)
                x = pl.add(x_v1, x)
                c = pl.store(x, [i * 16, 0], c)
        return c

    a, c = ones(32, 64), np.zeros((32, 64), np.float32)
    k(a, c)
    assert (c == 3).all()


def test_blocks_side_by_side_may_use_a_name_for_different_types():
    @pl.jit
    def k(a: pl.Tensor, c: pl.Out[pl.Tensor], d: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(a, [0, 0], [32, 64])
            c = pl.store(t, [0, 0], c)
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(a, [0, 0], [16, 64])
            d = pl.store(pl.add(t, t), [0, 0], d)
        return c, d

    a, c, d = ones(32, 64), np.zeros((32, 64), np.float32), np.zeros((16, 64), np.float32)
    k(a, c, d)
    assert (c == 1).all() and (d == 2).all()


def test_another_type_in_a_deeper_block_is_refused():
    @pl.jit.incore
    def kernel(a: pl.Tensor, c: pl.Out[pl.Tensor]):
        x = pl.load(a, [0, 0], [16, 64])
        for i in pl.range(2):
            x = pl.cast(x, pl.FP16)
        return c

    with pytest.raises(pl.parser.ParserTypeError, match="Cannot reassign 'x' with a different type"):
        kernel.lower(ones(16, 64), ones(16, 64))


def test_another_type_in_the_other_branch_is_refused():
    @pl.jit.incore
    def kernel(a: pl.Tensor, n: pl.Scalar[pl.INT32], c: pl.Out[pl.Tensor]):
        if pl.tensor.dim(a, 0) > 3:
            x = pl.load(a, [0, 0], [16, 64])
        else:
            x = pl.load(a, [0, 0], [8, 64])
        c = pl.store(x, [0, 0], c)
        return c

    with pytest.raises(pl.parser.ParserTypeError, match="Cannot reassign 'x' with a different type"):
        kernel.lower(ones(16, 64), 1, ones(16, 64))


def test_branches_that_rebind_a_name_merge():
    @pl.jit
    def k(a: pl.Tensor, c: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(a, [0, 0], [16, 64])
            for i in pl.range(3):
                if i == 1:
                    u = pl.mul(t, 2.0)
                    u = pl.add(u, 1.0)
                else:
                    u = pl.add(t, 1.0)
                    u = pl.mul(u, 3.0)
                t = u
            c = pl.store(t, [0, 0], c)
        return c

    a, c = ones(16, 64), np.zeros((16, 64), np.float32)
    k(a, c)
    assert (c == ((1 + 1) * 3 * 2 + 1 + 1) * 3).all()


def test_a_loop_carries_what_the_block_before_it_made():
    @pl.jit
    def k(a: pl.Tensor, c: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y = pl.add(a, 1.0)
        for i in pl.range(3):
            with pl.at(level=pl.Level.CORE_GROUP):
                y = pl.add(y, 1.0)
        with pl.at(level=pl.Level.CORE_GROUP):
            c[:] = y
        return c

    a, c = ones(16, 64), np.zeros((16, 64), np.float32)
    k(a, c)
    assert (c == 5).all()


def test_the_name_of_a_comprehension_is_not_carried_into_a_loop():
    @pl.jit
    def k(a: pl.Tensor, c: pl.Out[pl.Tensor]):
        t = pl.create_tensor([16, 64], dtype=pl.FP32)
        with pl.manual_scope():
            tasks = pl.array.create(2, pl.TASK_ID)
            for i in pl.range(2):
                t, task = pl.submit(plus_one, a, t)
                tasks[i] = task
            for j in pl.range(2):
                c, last = pl.submit(plus_one, t, c, deps=[tasks[i] for i in range(2)])
        return c

    c = ones(16, 64)
    k(ones(16, 64), c)
    assert (c == 3).all()


def test_what_a_loop_carries_keeps_its_type():
    @pl.jit
    def k(a: pl.Tensor, c: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y = pl.add(a, 1.0)
        for i in pl.range(3):
            y = pl.create_tensor([pl.tensor.dim(y, 0) + 1, 64], dtype=pl.FP32)
        return c

    with pytest.raises(pl.parser.ParserTypeError, match="Cannot reassign 'y' with a different type"):
        k.lower(ones(16, 64), ones(16, 64))


def test_shape_and_dtype_of_parameters_and_locals():
    @pl.jit
    def k(a: pl.Tensor, c: pl.Out[pl.Tensor]):
        m, n = a.shape
        y = pl.create_tensor([a.shape[0], a.shape[-1]], dtype=a.dtype)
        y = plus_one(a, y)
        c = plus_one(y[0 : m // 2, 0:n], c)
        return c

    a, c = ones(32, 64), np.zeros((16, 64), np.float32)
    k(a, c)
    assert (c == 3).all()


def test_an_axis_that_does_not_exist_is_an_error_in_the_users_line():
    @pl.jit
    def k(a: pl.Tensor, c: pl.Out[pl.Tensor]):
        n = a.shape[2]
        return c

    with pytest.raises(pl.parser.ParserTypeError, match="has 2 extents, there is none at 2") as caught:
        k.lower(ones(16, 64), ones(16, 64))
    assert caught.value.span["filename"] == __file__
    assert caught.value.source_lines[caught.value.span["begin_line"] - 1].strip() == "n = a.shape[2]"


def test_constants_of_module_closure_and_objects():
    def build(rows: int, half: bool):
        @pl.jit
        def k(a: pl.Tensor, c: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(a, [0, 0], [rows, 64])
                c = pl.store(pl.mul(t, SCALE), [CFG.rows - ROWS, 0], c)
            return c

        return k

    for rows in (16, 32):
        a, c = ones(32, 64), np.zeros((32, 64), np.float32)
        build(rows, True)(a, c)
        assert (c[:rows] == 2).all() and not c[rows:].any()


def test_a_sequence_is_a_constant_also_behind_an_attribute_and_a_subscript():
    class Sizes:
        window = [16, 64]
        types = (pl.FP16, pl.FP32)
        halves = {"columns": 32}

    @pl.jit
    def k(a: pl.Tensor, c: pl.Out[pl.Tensor]):
        t = pl.create_tensor(Sizes.window, dtype=Sizes.types[1])
        with pl.at(level=pl.Level.CORE_GROUP):
            t[:, :] = pl.add(pl.slice(a, Sizes.window, [0, 0]), 1.0)
        with pl.at(level=pl.Level.CORE_GROUP):
            half = pl.slice(t, [Sizes.window[-2], Sizes.halves["columns"]], [0, 0])
            c = pl.assemble(c, half, [0, 0])
        return c

    a, c = ones(16, 64), np.zeros((16, 64), np.float32)
    k(a, c)
    assert (c[:, :32] == 2).all() and not c[:, 32:].any()
    Sizes.window[0] = 8
    c[:] = 0
    k(a, c)  # a changed constant is another program
    assert (c[:8, :32] == 2).all() and not c[8:].any()


def test_a_local_shadows_a_constant_of_the_module():
    @pl.jit
    def k(a: pl.Tensor, c: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            SCALE = 5.0
            c = pl.store(pl.mul(pl.load(a, [0, 0], [16, 64]), SCALE), [0, 0], c)
        return c

    a, c = ones(16, 64), np.zeros((16, 64), np.float32)
    k(a, c)
    assert (c == 5).all()


def test_stores_without_return_are_the_outputs():
    @pl.jit
    def k(a: pl.Tensor, c: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.mul(pl.load(a, [0, 0], [16, 64]), 2), [0, 0], c)

    a, c = ones(16, 64), np.zeros((16, 64), np.float32)
    assert k(a, c) is None
    assert (c == 2).all()
    assert (k(a) == 2).all()  # a left-out output is made and returned


def test_a_docstring_becomes_a_comment():
    @pl.jit
    def k(a: pl.Tensor, c: pl.Out[pl.Tensor]):
        """Adds one."""
        c = plus_one(a, c)
        return c

    assert "# Adds one." in str(k.lower(ones(16, 64), ones(16, 64)))


def test_kernels_are_submitted_by_name():
    @pl.jit
    def k(a: pl.Tensor, c: pl.Out[pl.Tensor]):
        y = pl.create_tensor([16, 64], dtype=pl.FP32)
        with pl.manual_scope():
            y, first = pl.submit(plus_one, a, out=y)
            c, _ = pl.submit(plus_one, y, c, deps=[first])
        return c

    a, c = ones(16, 64), np.zeros((16, 64), np.float32)
    k(a, c)
    assert (c == 3).all()


def test_a_kernel_can_be_the_entry():
    a, c = ones(16, 64), np.zeros((16, 64), np.float32)
    plus_one(a, c)
    assert (c == 2).all()
    assert names_of(plus_one.lower(a, c)) == ["plus_one"]


def test_slices_and_other_results_are_arguments():
    @pl.jit
    def k(a: pl.Tensor, c: pl.Out[pl.Tensor]):
        for i in pl.range(2):
            y = plus_one(a[i], pl.create_tensor([16, 64], dtype=pl.FP32))
            with pl.at(level=pl.Level.CORE_GROUP):
                c[i * 16 : (i + 1) * 16, :] = pl.mul(y, 2.0)
        return c

    a, c = ones(2, 16, 64), np.zeros((32, 64), np.float32)
    k(a, c)
    assert (c == 4).all()


def test_an_argument_that_is_no_tensor_has_no_metadata():
    @pl.jit
    def k(a: pl.Tensor, c: pl.Out[pl.Tensor]):
        c = plus_one(3, c)
        return c

    with pytest.raises(ValueError, match="missing inferred tensor metadata for parameter 'x'"):
        k.lower(ones(16, 64), ones(16, 64))


# -- scalars -------------------------------------------------------------------------------------------------


def test_a_specialised_scalar_reaches_the_dep_that_takes_it_by_name():
    @pl.jit
    def k(a: pl.Tensor, n: pl.Scalar[pl.INT32], c: pl.Out[pl.Tensor], d: pl.Out[pl.Tensor]):
        c = times(a, n, c)
        d = times(a, n + 1, d)
        return c, d

    a, c, d = ones(16, 64), ones(16, 64), ones(16, 64)
    assert names_of(k.lower(a, 3, c, d)) == ["k", "times", "times_1"]
    k(a, 3, c, d)
    assert (c == 3).all() and (d == 4).all()


def test_literal_scalars_share_one_symbolic_dep():
    @pl.jit
    def k(a: pl.Tensor, c: pl.Out[pl.Tensor], d: pl.Out[pl.Tensor]):
        c = times(a, 1, c)
        d = times(a, 2, d)
        return c, d

    a, c, d = ones(16, 64), ones(16, 64), ones(16, 64)
    assert names_of(k.lower(a, c, d)) == ["k", "times"]
    k(a, c, d)
    assert (c == 1).all() and (d == 2).all()


def test_each_scalar_value_is_a_program_of_its_own():
    a, c = ones(32, 64), ones(32, 64)
    three = main.compile(a, 3, c)
    assert main.compile(a, 3, c) is three
    assert main.compile(a, 4, c) is not three
    with pytest.raises(ValueError, match="Parameter 'n' was compiled for the value 3, got 4"):
        three(a, 4, c)


@pytest.mark.parametrize(
    ("dtype", "given", "value"),
    [
        (pl.INT32, True, ir.ConstInt(1, ir.DataType.INDEX, ir.Span.unknown())),
        (pl.FP32, 3, ir.ConstFloat(3.0, ir.DataType.FP32, ir.Span.unknown())),
        (pl.BOOL, 1, ir.ConstBool(True, ir.Span.unknown())),
    ],
)
def test_a_scalar_stands_in_the_body_as_a_number_of_its_type(dtype, given, value):
    @pl.jit.incore
    def kernel(a: pl.Tensor, n: dtype, c: pl.Out[pl.Tensor]):
        c = pl.store(pl.load(a, [0, 0], [16, 64]), [0, 0], c)
        return c

    @pl.jit
    def k(a: pl.Tensor, n: dtype, c: pl.Out[pl.Tensor]):
        c = kernel(a, n, c)
        return c

    a, c = ones(16, 64), ones(16, 64)
    call = next(node for node in walk(k.lower(a, given, c)["k"].body) if isinstance(node, ir.Call))
    ir.assert_structural_equal(call.args[1], value)


def test_a_runtime_scalar_serves_all_values():
    @pl.jit
    def k(
        a: pl.Tensor[[16, 64], pl.FP32],
        c: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
        n: pl.Scalar[pl.INT32] = pl.RUNTIME,
    ):
        c = times(a, n, c)
        return c

    compiled = k.compile()
    assert k.compile(n=pl.RUNTIME) is compiled
    assert k.compile(n=3) is not compiled
    for n in (3, 5):
        c = ones(16, 64)
        compiled(ones(16, 64), c, n)
        assert (c == n).all()


def test_a_reassigned_scalar_starts_with_its_value():
    @pl.jit.incore
    def kernel(a: pl.Tensor, n: pl.Scalar[pl.INDEX], c: pl.Out[pl.Tensor]):
        for i in pl.range(2):
            n = n + 1
        c = pl.store(pl.mul(pl.load(a, [0, 0], [16, 64]), pl.cast(n, pl.FP32)), [0, 0], c)
        return c

    a, c = ones(16, 64), ones(16, 64)
    kernel(a, 3, c)
    assert (c == 5).all()


# -- dynamic dimensions --------------------------------------------------------------------------------------


def test_a_dynamic_dimension_takes_any_extent():
    a, c = ones(32, 64), ones(32, 64)
    compiled = main.compile(a, 3, c)
    assert main.compile(ones(16, 64), 3, c) is compiled
    assert main.compile(a, 3, ones(64, 64)) is not compiled


def test_bind_dynamic_declares_and_vanishes():
    @pl.jit
    def k(a: pl.Tensor, c: pl.Out[pl.Tensor]):
        N = pl.dynamic("N")
        a.bind_dynamic(0, N)
        c.bind_dynamic(0, N)
        for i in pl.range(0, N, 16):
            with pl.at(level=pl.Level.CORE_GROUP):
                c = pl.assemble(c, pl.add(a[i : i + 16, :], 1.0), [i, 0])
        return c

    for rows in (16, 48):
        a, c = ones(rows, 64), np.zeros((rows, 64), np.float32)
        k(a, c)
        assert (c == 2).all()
    assert len(k._cache) == 1


def test_a_dynamic_dimension_of_a_dep_is_dynamic_in_its_caller():
    @pl.jit.incore
    def head(x: pl.Tensor[[CFG.dim, 64], pl.FP32], out: pl.Out[pl.Tensor]):
        out = pl.store(pl.load(x, [0, 0], [16, 64]), [0, 0], out)
        return out

    @pl.jit
    def k(a: pl.Tensor, c: pl.Out[pl.Tensor]):
        c = head(a, c)
        return c

    c = np.zeros((16, 64), np.float32)
    k(ones(32, 64), c)
    k(ones(64, 64), c)
    assert (c == 1).all() and len(k._cache) == 1


# -- the cache -----------------------------------------------------------------------------------------------


def test_calls_and_compile_share_one_artefact():
    @pl.jit
    def k(a: pl.Tensor, c: pl.Out[pl.Tensor]):
        c = plus_one(a, c)
        return c

    a, c = ones(16, 64), ones(16, 64)
    k(a, c)
    compiled = k.compile(a, c)
    assert len(k._cache) == 1
    assert k.compile(a, c, config=RunConfig()) is compiled
    assert k.compile(ones(32, 64), ones(32, 64)) is not compiled
    assert k.compile(a.astype(np.float16), c.astype(np.float16)) is not compiled
    strategy = RunConfig(analyze_auto_scopes_for_deps=True)
    assert k.compile(a, c, config=strategy) is not compiled


def test_a_changed_constant_is_a_new_artefact():
    factor = 2.0

    @pl.jit
    def k(a: pl.Tensor, c: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            c[:] = pl.mul(a, factor)
        return c

    a, c = ones(16, 64), ones(16, 64)
    k(a, c)
    assert (c == 2).all()
    factor = 7.0
    k(a, c)
    assert (c == 7).all() and len(k._cache) == 2


# -- errors --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "kwargs", "text"),
    [
        ((0,), {}, "@pl.jit function 'main': missing a required argument"),
        ((0, 3, 0), {"foo": 1}, "@pl.jit function 'main': got an unexpected keyword argument 'foo'"),
    ],
)
def test_arguments_bind_as_in_python(args, kwargs, text):
    given = [ones(32, 64) if value == 0 else value for value in args]
    with pytest.raises(TypeError, match=text):
        main.lower(*given, **kwargs)


def test_a_missing_output_that_cannot_be_made_from_its_annotation_is_named():
    @pl.jit
    def k(a: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            out[:] = pl.add(a, 1.0)
        return out

    for given in ((ones(32, 64),), ()):
        keywords = {} if given else {"a": ones(32, 64)}
        with pytest.raises(TypeError, match="@pl.jit function 'k': missing a required argument: 'out'"):
            k(*given, **keywords)


def test_wrong_arguments_are_named():
    a, c = ones(32, 64), ones(32, 64)
    with pytest.raises(TypeError, match="Parameter '\\w+': Unsupported numpy dtype float64"):
        main.lower(a.astype(np.float64), 3, c)
    with pytest.raises(TypeError, match="Parameter 'a' has 2 dimensions"):
        main.lower(ones(3, 4, 5), 3, c)
    with pytest.raises(TypeError, match="Parameter 'a' is a tensor; got int"):
        main.lower(3, 3, c)
    with pytest.raises(TypeError, match="Parameter 'n' is a scalar"):
        main.lower(a, ones(1), c)
    with pytest.raises(TypeError, match=r"Parameter 'n' is a scalar \(int32\); got str"):
        main.lower(a, "3", c)
    with pytest.raises(TypeError, match="'n' received pl.RUNTIME.*compile-time marker"):
        main.lower(a, pl.RUNTIME, c)
    with pytest.raises(TypeError, match="config must be a RunConfig, got dict"):
        main.lower(a, 3, c, config={})


def test_signature_mode_names_what_is_missing():
    @pl.jit
    def bare(a: pl.Tensor, c: pl.Out[pl.Tensor]):
        return c

    @pl.jit
    def scalar(a: pl.Tensor[[16, 64], pl.FP32], n: pl.Scalar[pl.INT32]):
        return a

    with pytest.raises(TypeError, match=r"bare 'pl.Tensor'.*lower\(\*sample_tensors\)"):
        bare.lower()
    with pytest.raises(TypeError, match="scalar parameter 'n' has no value.*pl.RUNTIME"):
        scalar.lower()
    with pytest.raises(TypeError, match="pl.RUNTIME"):
        scalar.lower(n="3")


def test_a_parser_error_points_into_the_users_file():
    @pl.jit
    def k(a: pl.Tensor, c: pl.Out[pl.Tensor]):
        c = pl.no_such_op(a)
        return c

    with pytest.raises(pl.parser.ParserError) as caught:
        k.lower(ones(16, 64), ones(16, 64))
    line = caught.value.source_lines[caught.value.span["begin_line"] - 1]
    assert caught.value.span["filename"] == __file__ and "no_such_op" in line


def test_the_argument_count_of_a_called_function_is_checked():
    @pl.jit
    def k(a: pl.Tensor, c: pl.Out[pl.Tensor]):
        c = plus_one(a)
        return c

    with pytest.raises(pl.parser.ParserTypeError, match=r"expects 2 argument\(s\), got 1; missing: 'out'"):
        k.lower(ones(16, 64), ones(16, 64))


def test_a_call_without_any_argument_is_refused_at_its_place():
    @pl.jit
    def k(a: pl.Tensor, c: pl.Out[pl.Tensor]):
        c = plus_one()
        return c

    with pytest.raises(pl.parser.ParserTypeError, match=r"expects 2 argument\(s\), got 0") as caught:
        k.lower(ones(16, 64), ones(16, 64))
    assert "plus_one()" in caught.value.source_lines[caught.value.span["begin_line"] - 1]


@pytest.mark.parametrize("value", [3.0, 2.5, np.float32(3)])
def test_a_float_for_an_integer_scalar_is_refused_by_name(value):
    @pl.jit
    def repeated(x: pl.Tensor[[16, 16], pl.FP32], n: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor]):
        for _ in pl.range(n):
            with pl.at(level=pl.Level.CORE_GROUP):
                out[:, :] = pl.add(x, 1.0)
        return out

    x, out = np.ones((16, 16), np.float32), np.zeros((16, 16), np.float32)
    with pytest.raises(TypeError, match=r"Parameter 'n' is a scalar \(int32\); got float"):
        repeated(x, value, out)
    with pytest.raises(TypeError, match=r"Parameter 'n' is a scalar \(int32\); got float"):
        repeated.lower(x, n=value, out=out)
