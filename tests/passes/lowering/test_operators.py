"""The less common conversions compute what the tensor operators say."""

# ruff: noqa: RET504, E501 (the programs return what they were given)

from __future__ import annotations

import pytest

import pypto.language as pl
from pypto import ir

from .stages import calls, check_meaning, converted, random_args

KERNEL = """
import pypto.language as pl

@pl.program
class P:
    @pl.function
    def main(self, x: pl.Tensor[[16, 32], pl.FP32], v: pl.Tensor[[16, 1], pl.FP32], r: pl.Tensor[[32], pl.FP32],
             b: pl.Tensor[[4, 16, 32], pl.FP32], n: pl.Scalar[pl.INDEX],
             o: pl.InOut[pl.Tensor[{SHAPE}, pl.FP32]]) -> pl.Tensor[{SHAPE}, pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP):
            {BODY}
        return o
"""


def check(body: str, shape: tuple[int, ...] = (16, 32)) -> ir.Program:
    text = KERNEL.replace("{SHAPE}", str(list(shape))).replace(
        "{BODY}", body.strip().replace("\n", "\n            ")
    )
    program = pl.parse_program(text)
    check_meaning(program, random_args((16, 32), (16, 1), (32,), (4, 16, 32), 5, shape))
    return converted(program)


@pytest.mark.parametrize(
    "expression",
    [
        "pl.exp(x)",
        "pl.recip(x)",
        "pl.rsqrt(pl.abs(x))",
        "pl.rsqrt(pl.abs(x), high_precision=True)",
        "pl.sqrt(pl.abs(x))",
        "pl.log(pl.abs(x))",
        "pl.minimum(x, 0.25)",
        "pl.fmod(x, 0.5)",
        "pl.expands(x, 3.0)",
        "pl.cmp(x, 0.1, cmp_type=4)",
        "pl.cmp(x, pl.neg(x), cmp_type=2)",
        "pl.row_expand(x, v)",
        "pl.row_expand_add(x, v)",
        "pl.row_expand_expdif(x, v)",
        "pl.col_expand_div(x, pl.col_sum(x))",
        "pl.add(x, r)",
        "pl.sub(r, x)",
        "pl.mul(pl.row_prod(x), x)",
        "pl.transpose(pl.reshape(x, [32, 16]), 0, 1)",
        "pl.reshape(pl.reshape(x, [512]), [16, 32])",
        "pl.concat(x[:, 0:16], x[:, 16:32])",
        "pl.cast(pl.add(pl.cast(x, pl.INT32, mode='rint'), 2), pl.FP32)",
        "pl.exp(pl.cast(x, pl.INT32, mode='floor'))",
        "pl.fillpad(pl.slice(x, [16, 32], [0, 0], valid_shape=[n, 32]), pad_value=pl.PadValue.zero)",
        "pl.row_expand_sub(x, pl.row_max(pl.slice(x, [16, 32], [0, 0], valid_shape=[16, n])))",
        "pl.transpose(pl.reshape(pl.slice(x, [16, 32], [0, 0], valid_shape=[5, 32]), [32, 16]), 0, 1)",
    ],
)
def test_operator_in_a_kernel(expression: str):
    check(f"o = pl.assemble(o, {expression}, [0, 0])")


def test_vectors_in_matrix_products():
    check("o = pl.assemble(o, pl.reshape(pl.matmul(x, r), [16, 1]), [0, 3])")
    check("w = pl.reshape(x, [32, 16])\nt = pl.matmul(r, w)\no = pl.assemble(o, t, [2, 0])")


def test_batched_matrix_product():
    program = check("o = pl.assemble(o, pl.matmul(b, b, b_trans=True), [0, 0, 0])", (4, 16, 16))
    assert "tile.batch_matmul" in calls(program["main_incore_0"])


def test_source_of_lower_rank_stands_for_unit_axes():
    check("o = pl.assemble(o, x, [2, 0, 0])", (4, 16, 32))


def test_extent_of_a_computed_tensor():
    check("y = pl.exp(x)\nk = pl.tensor.dim(y, -1)\no = pl.assemble(o, x[0:4, :], [k - 24, 0])")


def test_created_tensor_with_content():
    check(
        "t = pl.create_tensor([16, 32], dtype=pl.FP32, init_value=2)\no = pl.assemble(o, pl.add(t, x), [0, 0])"
    )


def test_elements_of_a_computed_tensor():
    body = """
t = pl.exp(x)
s = pl.read(t, [3, 4])
pl.write(t, [0, 0], s)
o = pl.assemble(o, t, [0, 0])
"""
    assert {"tile.read", "tile.write"} <= set(calls(check(body)["main_incore_0"]))


def test_store_to_and_load_from_a_tensor_that_lives_in_the_kernel():
    body = """
t = pl.create_tensor([16, 32], dtype=pl.FP32, init_value=0)
t = pl.store(pl.load(x, [0, 0], [8, 32]), [4, 0], t)
o = pl.store(pl.load(t, [0, 0], [16, 32]), [0, 0], o)
"""
    assert {"tile.assemble", "tile.slice"} <= set(calls(check(body)["main_incore_0"]))


def test_bare_statements_take_effect():
    check("pl.assemble(o, pl.exp(x), [0, 0])")
    check("pl.store(pl.load(x, [0, 0], [8, 32]), [8, 0], o)")


def test_clamped_windows():
    check("o = pl.assemble(o, pl.exp(pl.slice(x, [16, 32], [n, 0], clamp=True)), [0, 0])")
    check("t = pl.exp(x)\no = pl.assemble(o, pl.slice(t, [16, 32], [n, 0], clamp=True), [0, 0])")


def test_block_index_of_a_launch():
    @pl.program
    class P:
        @pl.function
        def main(
            self, x: pl.Tensor[[64, 32], pl.FP32], o: pl.Out[pl.Tensor[[64, 32], pl.FP32]]
        ) -> pl.Tensor[[64, 32], pl.FP32]:
            for i in pl.spmd(4):
                t = pl.exp(x[i * 16 : i * 16 + 16, :])
                o = pl.assemble(o, t, [i * 16, 0])
            return o

    check_meaning(P, random_args((64, 32), (64, 32)))


@pytest.mark.parametrize("reduction", ["col_sum", "col_max", "col_min"])
def test_column_reduction_of_a_batch_reduces_each_matrix(reduction: str):
    check(f"o = pl.assemble(o, pl.{reduction}(b), [0, 0, 0])", (4, 1, 32))


def test_column_reduction_of_a_batch_that_is_valid_in_part_is_refused():
    window = "pl.slice(b, [4, 16, 32], [0, 0, 0], valid_shape=[4, n, 32])"
    with pytest.raises(
        ValueError, match=r"tensor\.col_sum in a kernel takes a tensor of rank 3 only when all"
    ):
        check(f"o = pl.assemble(o, pl.col_sum({window}), [0, 0, 0])", (4, 1, 32))


def test_minimum_of_a_single_column_is_that_column():
    check("o = pl.assemble(o, pl.row_min(v), [0, 0])")


@pytest.mark.parametrize(
    "expression",
    [
        "pl.add(b, x)",
        "pl.sub(b, r)",
        "pl.mul(pl.reshape(x, [1, 16, 32]), pl.reshape(pl.col_sum(x), [1, 1, 32]))",
        "pl.maximum(b, pl.reshape(v, [1, 16, 1]))",
        "pl.cmp(b, x, cmp_type=2)",
    ],
)
def test_operands_of_lower_rank_repeat_along_the_axes_they_lack(expression: str):
    check(f"o = pl.assemble(o, {expression}, [0, 0, 0])", (4, 16, 32))


def test_integer_division_truncates_and_keeps_its_type():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def k(
            self, x: pl.Tensor[[16, 32], pl.INT16], y: pl.Tensor[[16, 32], pl.INT32]
        ) -> pl.Tensor[[16, 32], pl.INT32]:
            z = pl.div(x, y)
            return z

    names = [var.name_hint for var in ir.collect_def_vars(converted(P)["k"].body)]
    assert "div_lhs_cast" in names and "div_rhs_cast" not in names


def test_slice_that_drops_everything_is_refused():
    span = ir.Span.unknown()
    x = ir.Var("x", ir.TensorType([4, 8], pl.FP32), span)
    call = ir.op.tensor.slice(x, [1, 1], [0, 0])
    dropped = ir.Call(call.op, [*call.args, ir.MakeTuple([], span), ir.MakeTuple([ir.ConstInt(0, pl.INDEX, span)], span)],
                      {}, ir.TensorType([], pl.FP32), span)  # fmt: skip
    y = ir.Var("y", dropped.type, span)
    kernel = ir.Function("k", [x], [], ir.AssignStmt(y, dropped, span), span, ir.FunctionType.InCore)
    from pypto import passes

    with pytest.raises(ValueError, match="cannot drop every dimension"):
        passes.convert_tensor_to_tile_ops()(ir.Program([kernel], "P", span))
