"""Lowering keeps the meaning of kernels that read and write the same tensors, carry them and merge them."""

# ruff: noqa: RET504 (the programs return what they were given)

from __future__ import annotations

import pypto.language as pl
from pypto import ir, passes
from pypto.ir.return_lineage import explicit_returned_params
from pypto.ir.walk import walk_stmts

from .stages import check_meaning, converted, random_args


def test_read_after_write_of_one_tensor_sees_the_write():
    @pl.program
    class P:
        @pl.function
        def main(
            self, x: pl.Tensor[[16, 32], pl.FP32], o: pl.Out[pl.Tensor[[16, 32], pl.FP32]]
        ) -> pl.Tensor[[16, 32], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                before = pl.add(o, x)
                o = pl.assemble(o, before, [0, 0])
                after = pl.mul(o, o)
                o = pl.assemble(o, after, [0, 0])
            return o

    check_meaning(P, random_args((16, 32), (16, 32)))


def test_slice_taken_before_a_write_keeps_the_old_data():
    @pl.program
    class P:
        @pl.function
        def main(
            self, x: pl.Tensor[[16, 32], pl.FP32], o: pl.Out[pl.Tensor[[16, 32], pl.FP32]]
        ) -> pl.Tensor[[16, 32], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                old = pl.slice(o, [8, 32], [0, 0])
                o = pl.assemble(o, x, [0, 0])
                new = pl.slice(o, [8, 32], [0, 0])
                o = pl.assemble(o, pl.add(old, new), [8, 0])
            return o

    check_meaning(P, random_args((16, 32), (16, 32)))


def test_element_write_is_seen_by_a_later_read_of_the_whole():
    @pl.program
    class P:
        @pl.function
        def main(
            self, x: pl.Tensor[[4, 32], pl.FP32], o: pl.Out[pl.Tensor[[4, 32], pl.FP32]]
        ) -> pl.Tensor[[4, 32], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                first = pl.add(x, 1.0)
                pl.write(x, [0, 3], 42.0)
                second = pl.add(x, 1.0)
                o = pl.assemble(o, pl.sub(second, first), [0, 0])
            return o

    check_meaning(P, random_args((4, 32), (4, 32)))


def test_loop_that_updates_an_outer_tensor_in_place_reads_its_own_writes():
    @pl.program
    class P:
        @pl.function
        def main(
            self, x: pl.Tensor[[4, 32], pl.FP32], o: pl.Out[pl.Tensor[[4, 32], pl.FP32]]
        ) -> pl.Tensor[[4, 32], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                for _i in pl.range(3):
                    t = pl.add(o, x)
                    o = pl.assemble(o, t, [0, 0])
            return o

    check_meaning(P, random_args((4, 32), (4, 32)))


def test_loop_that_computes_a_captured_tensor_anew_returns_the_computed_one():
    @pl.program
    class P:
        @pl.function
        def main(self, x: pl.Tensor[[4, 32], pl.FP32]) -> pl.Tensor[[4, 32], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                for _i in pl.range(3):
                    x = pl.add(x, x)
            return x

    check_meaning(P, random_args((4, 32)))


def test_two_computed_carries_come_back_in_their_places():
    @pl.program
    class P:
        @pl.function
        def main(
            self, x: pl.Tensor[[4, 32], pl.FP32], y: pl.Tensor[[4, 32], pl.FP32]
        ) -> tuple[pl.Tensor[[4, 32], pl.FP32], pl.Tensor[[4, 32], pl.FP32]]:
            with pl.at(level=pl.Level.CORE_GROUP):
                for _i in pl.range(3):
                    x = pl.add(x, y)
                    y = pl.sub(y, x)
                for _j in pl.range(2):
                    x = pl.mul(x, y)
            return x, y

    check_meaning(P, random_args((4, 32), (4, 32)))


def test_swapped_carries_keep_both_tensors():
    @pl.program
    class P:
        @pl.function
        def main(
            self,
            x: pl.Tensor[[4, 32], pl.FP32],
            y: pl.Tensor[[4, 32], pl.FP32],
            o: pl.Out[pl.Tensor[[4, 32], pl.FP32]],
        ) -> pl.Tensor[[4, 32], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                a = pl.mul(x, 1.0)
                b = pl.mul(y, 1.0)
                for _i in pl.range(3):
                    c = pl.add(a, 1.0)
                    a = b
                    b = c
                o = pl.assemble(o, pl.sub(a, b), [0, 0])
            return o

    check_meaning(P, random_args((4, 32), (4, 32), (4, 32)))


def test_accumulation_in_a_local_tensor():
    @pl.program
    class P:
        @pl.function
        def main(
            self, x: pl.Tensor[[64, 32], pl.FP32], o: pl.Out[pl.Tensor[[16, 32], pl.FP32]]
        ) -> pl.Tensor[[16, 32], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                acc = pl.full([16, 32], dtype=pl.FP32, value=0.0)
                for i in pl.range(4):
                    acc = pl.add(acc, x[i * 16 : (i + 1) * 16, 0:32])
                o = pl.assemble(o, acc, [0, 0])
            return o

    check_meaning(P, random_args((64, 32), (16, 32)))


def test_branch_that_computes_and_branch_that_keeps_the_tensor():
    @pl.program
    class P:
        @pl.function
        def main(
            self,
            x: pl.Tensor[[4, 32], pl.FP32],
            n: pl.Scalar[pl.INDEX],
            o: pl.Out[pl.Tensor[[4, 32], pl.FP32]],
        ) -> pl.Tensor[[4, 32], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                t = x
                if n > 2:
                    t = pl.exp(x)
                o = pl.assemble(o, pl.add(t, x), [0, 0])
            return o

    for n in (1, 3):
        check_meaning(P, random_args((4, 32), n, (4, 32)))


def test_conditional_store_leaves_the_rest_alone():
    @pl.program
    class P:
        @pl.function
        def main(
            self,
            x: pl.Tensor[[4, 32], pl.FP32],
            n: pl.Scalar[pl.INDEX],
            o: pl.InOut[pl.Tensor[[8, 32], pl.FP32]],
        ) -> pl.Tensor[[8, 32], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                if n > 2:
                    o = pl.assemble(o, pl.exp(x), [4, 0])
                t = pl.slice(o, [4, 32], [4, 0])
                o = pl.assemble(o, pl.add(t, 1.0), [0, 0])
            return o

    for n in (1, 3):
        check_meaning(P, random_args((4, 32), n, (8, 32)))


def test_ragged_tail_writes_only_valid_rows():
    @pl.program
    class P:
        @pl.function
        def main(
            self,
            x: pl.Tensor[[64, 32], pl.FP32],
            v: pl.Tensor[[16, 1], pl.FP32],
            n: pl.Scalar[pl.INDEX],
            o: pl.InOut[pl.Tensor[[64, 32], pl.FP32]],
        ) -> pl.Tensor[[64, 32], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                a = pl.slice(x, [16, 32], [16, 0], valid_shape=[n, 32])
                o = pl.assemble(o, pl.row_expand_mul(pl.add(a, 1.0), v), [16, 0])
            return o

    check_meaning(P, random_args((64, 32), (16, 1), 5, (64, 32)))


def test_broadcast_keeps_numpy_meaning_whichever_side_is_narrow():
    @pl.program
    class P:
        @pl.function
        def main(
            self,
            x: pl.Tensor[[8, 32], pl.FP32],
            c: pl.Tensor[[8, 1], pl.FP32],
            r: pl.Tensor[[1, 32], pl.FP32],
            o: pl.Out[pl.Tensor[[80, 32], pl.FP32]],
        ) -> pl.Tensor[[80, 32], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                o = pl.assemble(o, pl.sub(c, x), [0, 0])
                o = pl.assemble(o, pl.sub(x, c), [8, 0])
                o = pl.assemble(o, pl.sub(r, x), [16, 0])
                o = pl.assemble(o, pl.sub(x, r), [24, 0])
                o = pl.assemble(o, pl.div(c, x), [32, 0])
                o = pl.assemble(o, pl.div(x, r), [40, 0])
                o = pl.assemble(o, pl.add(c, r), [48, 0])
                o = pl.assemble(o, pl.sub(r, c), [56, 0])
                o = pl.assemble(o, pl.maximum(r, x), [64, 0])
                o = pl.assemble(o, pl.div(x, c), [72, 0])
            return o

    check_meaning(P, random_args((8, 32), (8, 1), (1, 32), (80, 32)))


def test_matrix_products_with_transposed_and_computed_operands():
    @pl.program
    class P:
        @pl.function
        def main(
            self,
            a: pl.Tensor[[16, 32], pl.FP32],
            b: pl.Tensor[[16, 32], pl.FP32],
            w: pl.Tensor[[64, 32], pl.FP32],
            o: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
        ) -> pl.Tensor[[16, 16], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                s = pl.matmul(pl.add(a, b), b, b_trans=True)
                for i in pl.range(4):
                    part = w[i * 16 : (i + 1) * 16, :]
                    s = pl.matmul_acc(s, a, part, b_trans=True)
                o = pl.assemble(o, s, [0, 0])
            return o

    check_meaning(P, random_args((16, 32), (16, 32), (64, 32), (16, 16)))


def test_parts_assembled_by_the_orchestration():
    @pl.program
    class P:
        @pl.function
        def main(
            self, x: pl.Tensor[[64, 32], pl.FP32], o: pl.Out[pl.Tensor[[64, 32], pl.FP32]]
        ) -> pl.Tensor[[64, 32], pl.FP32]:
            for i in pl.range(4):
                with pl.at(level=pl.Level.CORE_GROUP):
                    part = pl.exp(x[i * 16 : (i + 1) * 16, :])
                o = pl.assemble(o, part, [i * 16, 0])
            return o

    check_meaning(P, random_args((64, 32), (64, 32)))


def test_result_filled_piece_by_piece():
    @pl.program
    class P:
        @pl.function
        def main(self, x: pl.Tensor[[64, 32], pl.FP32]) -> pl.Tensor[[64, 32], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                out = pl.create_tensor([64, 32], dtype=pl.FP32)
                for i in pl.range(4):
                    out = pl.assemble(out, pl.exp(x[i * 16 : (i + 1) * 16, :]), [i * 16, 0])
            return out

    check_meaning(P, random_args((64, 32)))


def test_filled_result_that_starts_with_content_keeps_it_where_no_piece_goes():
    @pl.program
    class P:
        @pl.function
        def main(self, x: pl.Tensor[[64, 32], pl.FP32]) -> pl.Tensor[[64, 32], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                out = pl.full([64, 32], dtype=pl.FP32, value=3.0)
                for i in pl.range(2):
                    out = pl.assemble(out, pl.exp(x[i * 16 : (i + 1) * 16, :]), [i * 16, 0])
            return out

    check_meaning(P, random_args((64, 32)))


def test_loop_around_a_scope_that_updates_in_place():
    @pl.program
    class P:
        @pl.function
        def main(
            self, x: pl.Tensor[[4, 32], pl.FP32], o: pl.InOut[pl.Tensor[[4, 32], pl.FP32]]
        ) -> pl.Tensor[[4, 32], pl.FP32]:
            for _i in pl.range(3):
                with pl.at(level=pl.Level.CORE_GROUP):
                    o = pl.assemble(o, pl.add(o, x), [0, 0])
            return o

    check_meaning(P, random_args((4, 32), (4, 32)))


def test_rank_one_tensors():
    @pl.program
    class P:
        @pl.function
        def main(
            self, x: pl.Tensor[[64], pl.FP32], o: pl.Out[pl.Tensor[[64], pl.FP32]]
        ) -> pl.Tensor[[64], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                s = pl.row_sum(x)
                o = pl.assemble(o, pl.mul(x, s), [0])
            return o

    check_meaning(P, random_args((64,), (64,)))


def test_dropped_dimensions_and_rows_written_by_subscript():
    @pl.program
    class P:
        @pl.function
        def main(
            self, x: pl.Tensor[[4, 32], pl.FP32], o: pl.InOut[pl.Tensor[[4, 32], pl.FP32]]
        ) -> pl.Tensor[[4, 32], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                for i in pl.range(3):
                    row = x[i]
                    o[i + 1, :] = pl.add(row, 1.0)
            return o

    check_meaning(P, random_args((4, 32), (4, 32)))


def test_while_loop_with_a_computed_and_an_updated_tensor():
    @pl.program
    class P:
        @pl.function
        def main(
            self,
            x: pl.Tensor[[4, 32], pl.FP32],
            n: pl.Scalar[pl.INDEX],
            o: pl.InOut[pl.Tensor[[4, 32], pl.FP32]],
        ) -> pl.Tensor[[4, 32], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                i = n
                t = pl.mul(x, 1.0)
                while i > 0:
                    i = i - 1
                    t = pl.add(t, o)
                    o = pl.assemble(o, t, [0, 0])
                o = pl.assemble(o, pl.neg(t), [0, 0])
            return o

    for n in (0, 3):
        check_meaning(P, random_args((4, 32), n, (4, 32)))


def test_branch_between_two_memory_tensors_reads_the_chosen_one():
    @pl.program
    class P:
        @pl.function
        def main(
            self,
            x: pl.Tensor[[4, 32], pl.FP32],
            y: pl.Tensor[[4, 32], pl.FP32],
            n: pl.Scalar[pl.INDEX],
            o: pl.Out[pl.Tensor[[4, 32], pl.FP32]],
        ) -> pl.Tensor[[4, 32], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                if n > 2:
                    t = x
                else:
                    t = y
                o = pl.assemble(o, pl.exp(t), [0, 0])
            return o

    for n in (1, 3):
        check_meaning(P, random_args((4, 32), (4, 32), n, (4, 32)))


def test_branch_of_the_orchestration_that_computes_a_tensor():
    @pl.program
    class P:
        @pl.function
        def main(
            self,
            x: pl.Tensor[[4, 32], pl.FP32],
            n: pl.Scalar[pl.INDEX],
            o: pl.Out[pl.Tensor[[4, 32], pl.FP32]],
        ) -> pl.Tensor[[4, 32], pl.FP32]:
            h = x
            for i in pl.range(3):
                if i > n:
                    with pl.at(level=pl.Level.CORE_GROUP):
                        h = pl.mul(h, 2.0)
                else:
                    with pl.at(level=pl.Level.CORE_GROUP):
                        h = pl.add(h, 1.0)
            with pl.at(level=pl.Level.CORE_GROUP):
                o = pl.assemble(o, h, [0, 0])
            return o

    for n in (0, 5):
        check_meaning(P, random_args((4, 32), n, (4, 32)))


def test_group_of_two_scopes_with_an_intermediate_result():
    @pl.program
    class P:
        @pl.function
        def main(
            self, x: pl.Tensor[[4, 32], pl.FP32], o: pl.Out[pl.Tensor[[4, 32], pl.FP32]]
        ) -> pl.Tensor[[4, 32], pl.FP32]:
            with pl.cluster():
                with pl.at(level=pl.Level.CORE_GROUP):
                    y = pl.exp(x)
                with pl.at(level=pl.Level.CORE_GROUP):
                    o = pl.assemble(o, pl.add(y, x), [0, 0])
            return o

    check_meaning(P, random_args((4, 32), (4, 32)))


def test_tile_loaded_in_one_branch_is_not_used_in_the_other():
    @pl.program
    class P:
        @pl.function
        def main(
            self,
            x: pl.Tensor[[4, 32], pl.FP32],
            n: pl.Scalar[pl.INDEX],
            o: pl.InOut[pl.Tensor[[4, 32], pl.FP32]],
            p: pl.InOut[pl.Tensor[[4, 32], pl.FP32]],
        ) -> pl.Tensor[[4, 32], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                o = pl.assemble(o, pl.add(o, x), [0, 0])
                if n > 2:
                    t = pl.exp(o)
                else:
                    t = pl.neg(o)
                p = pl.assemble(p, pl.add(t, o), [0, 0])
            return p

    for n in (1, 3):
        check_meaning(P, random_args((4, 32), n, (4, 32), (4, 32)))


def test_loop_that_yields_another_tensor_returns_that_tensor():
    @pl.program
    class P:
        @pl.function
        def main(
            self,
            y: pl.Tensor[[4, 32], pl.FP32],
            p: pl.InOut[pl.Tensor[[4, 32], pl.FP32]],
            o: pl.Out[pl.Tensor[[4, 32], pl.FP32]],
        ) -> pl.Tensor[[4, 32], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                for _i, (_a,) in pl.range(2, init_values=(p,)):
                    r = pl.yield_(y)
            with pl.at(level=pl.Level.CORE_GROUP):
                o = pl.assemble(o, r, [0, 0])
            return o

    check_meaning(P, random_args((4, 32), (4, 32), (4, 32)))


def test_tensor_computed_anew_from_memory_that_is_written_too_is_returned_itself():
    @pl.program
    class P:
        @pl.function
        def main(
            self,
            x: pl.Tensor[[4, 32], pl.FP32],
            p: pl.InOut[pl.Tensor[[4, 32], pl.FP32]],
            o: pl.Out[pl.Tensor[[4, 32], pl.FP32]],
        ) -> tuple[pl.Tensor[[4, 32], pl.FP32], pl.Tensor[[4, 32], pl.FP32]]:
            with pl.at(level=pl.Level.CORE_GROUP):
                for _i, (a,) in pl.range(2, init_values=(p,)):
                    r = pl.yield_(pl.add(a, x))
                p = pl.assemble(p, x, [0, 0])
            with pl.at(level=pl.Level.CORE_GROUP):
                o = pl.assemble(o, r, [0, 0])
            return o, p

    check_meaning(P, random_args((4, 32), (4, 32), (4, 32)))


def test_two_tensors_computed_from_one_keep_apart():
    @pl.program
    class P:
        @pl.function
        def main(
            self, x: pl.Tensor[[4, 32], pl.FP32], o: pl.InOut[pl.Tensor[[8, 32], pl.FP32]]
        ) -> pl.Tensor[[8, 32], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                for _i, (a,) in pl.range(2, init_values=(x,)):
                    first = pl.yield_(pl.add(a, 1.0))
                for _j, (b,) in pl.range(2, init_values=(first,)):
                    second = pl.yield_(pl.mul(b, 2.0))
                o = pl.assemble(o, second, [4, 0])
            with pl.at(level=pl.Level.CORE_GROUP):
                o = pl.assemble(o, first, [0, 0])
            return o

    check_meaning(P, random_args((4, 32), (8, 32)))


def test_loop_that_carries_a_computed_tensor_hands_one_out_although_it_yields_memory():
    @pl.program
    class P:
        @pl.function
        def main(
            self,
            x: pl.Tensor[[4, 32], pl.FP32],
            y: pl.Tensor[[4, 32], pl.FP32],
            o: pl.InOut[pl.Tensor[[4, 32], pl.FP32]],
        ) -> pl.Tensor[[4, 32], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                for _i, (_a,) in pl.range(2, init_values=(pl.mul(x, 2.0),)):
                    first = pl.yield_(y)
                for _j, (_b,) in pl.range(2, init_values=(x,)):
                    second = pl.yield_(first)
                o = pl.assemble(o, pl.add(second, 1.0), [0, 0])
            return o

    check_meaning(P, random_args((4, 32), (4, 32), (4, 32)))
    once = converted(P)
    ir.assert_structural_equal(passes.convert_tensor_to_tile_ops()(once), once)
    (kernel,) = (f for f in once.functions_.values() if f.func_type is ir.FunctionType.InCore)
    for loop in (stmt for stmt in walk_stmts(kernel.body) if isinstance(stmt, ir.ForStmt)):
        assert isinstance(loop.iter_args[0].type, ir.TileType)


def test_tensor_that_control_flow_chooses_is_handed_out_as_a_copy():
    @pl.program
    class P:
        @pl.function
        def main(
            self,
            x: pl.Tensor[[4, 32], pl.FP32],
            y: pl.Tensor[[4, 32], pl.FP32],
            n: pl.Scalar[pl.INDEX],
            o: pl.Out[pl.Tensor[[4, 32], pl.FP32]],
        ) -> pl.Tensor[[4, 32], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                for _i in pl.range(n):
                    x = y
            with pl.at(level=pl.Level.CORE_GROUP):
                o = pl.assemble(o, x, [0, 0])
            return o

    for n in (0, 2):
        last = check_meaning(P, random_args((4, 32), (4, 32), n, (4, 32)))
        assert explicit_returned_params(last["main_incore_0"]) == (3,)


def test_exchanged_tensors_need_no_tuple_in_the_kernel():
    @pl.program
    class P:
        @pl.function
        def main(
            self,
            x: pl.Tensor[[4, 32], pl.FP32],
            y: pl.Tensor[[4, 32], pl.FP32],
            o: pl.Out[pl.Tensor[[4, 32], pl.FP32]],
        ) -> pl.Tensor[[4, 32], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                a, b = pl.mul(x, 2.0), pl.mul(y, 3.0)
                for _i in pl.range(3):
                    a, b = b, a
                o = pl.assemble(o, pl.sub(a, b), [0, 0])
            return o

    last = check_meaning(P, random_args((4, 32), (4, 32), (4, 32)))
    kernel = last["main_incore_0"]
    assert not any(
        isinstance(stmt, ir.AssignStmt) and isinstance(stmt.value, ir.MakeTuple)
        for stmt in walk_stmts(kernel.body)
    )


def test_tensor_is_kept_beside_what_a_loop_computes_from_its_name():
    @pl.program
    class P:
        @pl.function
        def main(
            self,
            x: pl.Tensor[[4, 32], pl.FP32],
            y: pl.Tensor[[4, 32], pl.FP32],
            o: pl.Out[pl.Tensor[[8, 32], pl.FP32]],
        ) -> pl.Tensor[[8, 32], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                before = y
                for _i in pl.range(2):
                    y = pl.add(y, x)
            with pl.at(level=pl.Level.CORE_GROUP):
                o = pl.assemble(o, before, [0, 0])
                o = pl.assemble(o, y, [4, 0])
            return o

    check_meaning(P, random_args((4, 32), (4, 32), (8, 32)))


def test_first_of_two_loops_from_one_tensor_is_returned_although_the_second_exchanges_it():
    @pl.program
    class P:
        @pl.function
        def main(
            self,
            x: pl.Tensor[[4, 32], pl.FP32],
            y: pl.Tensor[[4, 32], pl.FP32],
            n: pl.Scalar[pl.INDEX],
            o: pl.Out[pl.Tensor[[4, 32], pl.FP32]],
        ) -> pl.Tensor[[4, 32], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                for _i, (_carried,) in pl.range(3, init_values=(y,)):
                    result = pl.yield_(pl.mul(x, x))
                for _j in pl.range(2):
                    if n > 0:
                        x, y = y, x
                    else:
                        x = pl.add(x, 1.0)
            o = pl.assemble(o, result, [0, 0])
            return o

    for n in (0, 1):
        check_meaning(P, random_args((4, 32), (4, 32), n, (4, 32)))


def test_loop_that_keeps_its_tensor_is_returned_beside_one_from_the_same_tensor_by_another_name():
    @pl.program
    class P:
        @pl.function
        def main(
            self,
            x: pl.Tensor[[4, 32], pl.FP32],
            y: pl.Tensor[[4, 32], pl.FP32],
            o: pl.Out[pl.Tensor[[4, 32], pl.FP32]],
        ) -> pl.Tensor[[4, 32], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                for _i, (kept,) in pl.range(3, init_values=(x,)):
                    result = pl.yield_(kept)
                y, x = x, y
                for _j, (_carried,) in pl.range(3, init_values=(y,)):
                    _other = pl.yield_(pl.mul(x, x))
            o = pl.assemble(o, result, [0, 0])
            return o

    check_meaning(P, random_args((4, 32), (4, 32), (4, 32)))


def test_view_of_a_tensor_sees_what_the_kernel_has_written_to_the_tensor():
    @pl.program
    class P:
        @pl.function
        def main(
            self,
            x: pl.Tensor[[4, 32], pl.FP32],
            y: pl.InOut[pl.Tensor[[4, 32], pl.FP32]],
            o: pl.Out[pl.Tensor[[8, 16], pl.FP32]],
        ) -> pl.Tensor[[8, 16], pl.FP32]:
            view = pl.reshape(y, [8, 16])
            with pl.at(level=pl.Level.CORE_GROUP):
                y = pl.assemble(y, pl.neg(x), [0, 0])
                o = pl.assemble(o, pl.add(view, view), [0, 0])
            return o

    check_meaning(P, random_args((4, 32), (4, 32), (8, 16)))


def test_group_hands_out_what_its_kernel_computes_anew():
    @pl.program
    class P:
        @pl.function
        def main(
            self,
            x: pl.Tensor[[16, 32], pl.FP32],
            y: pl.Tensor[[4, 32], pl.FP32],
            n: pl.Scalar[pl.INDEX],
            o: pl.Out[pl.Tensor[[4, 32], pl.FP32]],
        ) -> pl.Tensor[[4, 32], pl.FP32]:
            with pl.cluster():  # noqa: SIM117
                with pl.at(level=pl.Level.CORE_GROUP):
                    for i in pl.range(n):
                        y = pl.slice(x, [4, 32], [i * 4, 0])
            o = pl.assemble(o, y, [0, 0])
            return o

    for n in (0, 2):
        check_meaning(P, random_args((16, 32), (4, 32), n, (4, 32)))
