"""FuseCreateAssembleToSlice and MaterializeAssembleCopies: how an orchestration assembles without copying."""

# ruff: noqa: RET504 (the programs are written as users write them)

from __future__ import annotations

import pypto.language as pl
from pypto import ir, passes
from pypto.ir.walk import walk

from .stages import calls, check_meaning, dispatches, lowered, random_args

BIG = pl.Tensor[[64, 32], pl.FP32]
PART = pl.Tensor[[16, 32], pl.FP32]


def fused(program: ir.Program) -> list[str]:
    return calls(lowered(program, "fuse_create_assemble_to_slice")["main"])


def test_one_create_and_one_assemble_become_a_slice():
    @pl.program
    class P:
        @pl.function
        def main(self, x: BIG, o: pl.Out[BIG]) -> BIG:
            with pl.at(level=pl.Level.CORE_GROUP):
                part = pl.exp(x[0:16, :])
            o = pl.assemble(o, part, [16, 0])
            return o

    assert fused(P) == ["tensor.slice", "main_incore_0"]
    check_meaning(P, random_args((64, 32), (64, 32)))


def test_two_assembles_of_one_create_stay_and_are_copied():
    @pl.program
    class P:
        @pl.function
        def main(self, x: BIG, o: pl.Out[BIG]) -> BIG:
            with pl.at(level=pl.Level.CORE_GROUP):
                part = pl.exp(x[0:16, :])
            o = pl.assemble(o, part, [16, 0])
            o = pl.assemble(o, part, [32, 0])
            return o

    assert fused(P) == ["tensor.create", "main_incore_0", "tensor.assemble", "tensor.assemble"]
    program = check_meaning(P, random_args((64, 32), (64, 32)))
    assert "tensor.assemble" not in calls(program["main"])
    copies = [
        call.op.name for call in dispatches(program["main"]) if call.op.name.startswith("assemble_copy")
    ]
    assert copies == ["assemble_copy_0", "assemble_copy_0"]


def test_loop_carry_that_only_passed_the_target_through_is_dropped():
    @pl.program
    class P:
        @pl.function
        def main(self, x: BIG, o: pl.Out[BIG]) -> BIG:
            for i in pl.parallel(2):
                for j in pl.range(2):
                    with pl.at(level=pl.Level.CORE_GROUP):
                        part = pl.exp(x[i * 32 + j * 16 : i * 32 + j * 16 + 16, :])
                    o = pl.assemble(o, part, [i * 32 + j * 16, 0])
            return o

    main = lowered(P, "fuse_create_assemble_to_slice")["main"]
    assert [loop.iter_args for loop in walk(main.body) if isinstance(loop, ir.ForStmt)] == [[], []]
    check_meaning(P, random_args((64, 32), (64, 32)))


def test_target_of_higher_rank_gets_leading_unit_axes():
    @pl.program
    class P:
        @pl.function
        def main(self, x: BIG, o: pl.Out[pl.Tensor[[4, 16, 32], pl.FP32]]) -> pl.Tensor[[4, 16, 32], pl.FP32]:
            for i in pl.range(4):
                with pl.at(level=pl.Level.CORE_GROUP):
                    part = pl.exp(x[i * 16 : i * 16 + 16, :])
                o = pl.assemble(o, part, [i, 0, 0])
            return o

    main = lowered(P, "fuse_create_assemble_to_slice")["main"]
    window = next(
        node for node in walk(main.body) if isinstance(node, ir.Call) and node.op.name == "tensor.slice"
    )
    assert str(window.type) == "pl.Tensor[[1, 16, 32], pl.FP32]"
    check_meaning(P, random_args((64, 32), (4, 16, 32)))


def test_target_read_between_the_kernel_and_the_assemble_is_not_overwritten_early():
    @pl.program
    class P:
        @pl.function
        def main(self, x: BIG, o: pl.InOut[BIG], p: pl.Out[BIG]) -> BIG:
            with pl.at(level=pl.Level.CORE_GROUP):
                part = pl.exp(x[0:16, :])
            with pl.at(level=pl.Level.CORE_GROUP):
                p = pl.assemble(p, pl.neg(o), [0, 0])
            o = pl.assemble(o, part, [16, 0])
            return o

    assert "tensor.assemble" in fused(P)
    check_meaning(P, random_args((64, 32), (64, 32), (64, 32)))


def test_target_read_by_the_loop_that_fills_the_buffer_is_seen_as_it_was_in_every_iteration():
    @pl.program
    class P:
        @pl.function
        def main(self, x: BIG, o: pl.InOut[BIG], p: pl.InOut[BIG]) -> BIG:
            part = pl.create_tensor([16, 32], dtype=pl.FP32)
            for i in pl.range(2):
                with pl.at(level=pl.Level.CORE_GROUP):
                    p = pl.assemble(p, pl.neg(o[16:32, :]), [i * 16, 0])
                with pl.at(level=pl.Level.CORE_GROUP):
                    part = pl.assemble(part, pl.exp(x[0:8, :]), [i * 8, 0])
            o = pl.assemble(o, part, [16, 0])
            return o

    assert "tensor.assemble" in fused(P)
    check_meaning(P, random_args((64, 32), (64, 32), (64, 32)))


def test_kernel_that_reads_the_target_itself_writes_to_a_buffer_of_its_own():
    @pl.program
    class P:
        @pl.function
        def main(self, x: BIG, o: pl.InOut[BIG]) -> BIG:
            for i in pl.range(4):
                with pl.at(level=pl.Level.CORE_GROUP):
                    part = pl.transpose(o[i * 16 : i * 16 + 16, 0:16], 0, 1)
                o = pl.assemble(o, part, [i * 16, 0])
            return o

    assert "tensor.assemble" in fused(P)
    check_meaning(P, random_args((64, 32), (64, 32)))


def test_buffer_read_after_its_place_in_the_target_was_overwritten_keeps_its_data():
    @pl.program
    class P:
        @pl.function
        def main(self, x: BIG, o: pl.InOut[BIG], p: pl.Out[PART]) -> PART:
            with pl.at(level=pl.Level.CORE_GROUP):
                one = pl.exp(x[0:16, :])
            o = pl.assemble(o, one, [16, 0])
            with pl.at(level=pl.Level.CORE_GROUP):
                two = pl.neg(x[0:16, :])
            o = pl.assemble(o, two, [16, 0])
            with pl.at(level=pl.Level.CORE_GROUP):
                p = pl.assemble(p, pl.add(one, 1.0), [0, 0])
            return p

    check_meaning(P, random_args((64, 32), (64, 32), (16, 32)))


def test_later_assemble_wins_where_windows_overlap_whatever_the_order_of_the_kernels():
    @pl.program
    class P:
        @pl.function
        def main(self, x: BIG, o: pl.InOut[BIG]) -> BIG:
            with pl.at(level=pl.Level.CORE_GROUP):
                one = pl.exp(x[0:16, :])
            with pl.at(level=pl.Level.CORE_GROUP):
                two = pl.neg(x[0:16, :])
            o = pl.assemble(o, two, [16, 0])
            o = pl.assemble(o, one, [24, 0])
            return o

    check_meaning(P, random_args((64, 32), (64, 32)))


def test_kernels_first_assembles_afterwards_is_fused_when_windows_are_disjoint():
    @pl.program
    class P:
        @pl.function
        def main(self, x: BIG, i: pl.Scalar[pl.INDEX], o: pl.InOut[BIG]) -> BIG:
            with pl.at(level=pl.Level.CORE_GROUP):
                one = pl.exp(x[0:16, :])
            with pl.at(level=pl.Level.CORE_GROUP):
                two = pl.neg(x[0:16, :])
            o = pl.assemble(o, two, [i + 16, 0])
            o = pl.assemble(o, one, [i, 0])
            return o

    assert "tensor.assemble" not in fused(P)
    check_meaning(P, random_args((64, 32), 16, (64, 32)))


def test_buffer_with_initial_content_is_not_fused():
    @pl.program
    class P:
        @pl.function
        def main(self, x: BIG, o: pl.InOut[BIG]) -> BIG:
            part = pl.create_tensor([16, 32], dtype=pl.FP32, init_value=2.0)
            with pl.at(level=pl.Level.CORE_GROUP):
                part = pl.assemble(part, pl.exp(x[0:8, :]), [0, 0])
            o = pl.assemble(o, part, [16, 0])
            return o

    assert "tensor.create" in fused(P)
    check_meaning(P, random_args((64, 32), (64, 32)))


def test_buffer_written_again_after_it_was_assembled_is_not_fused():
    @pl.program
    class P:
        @pl.function
        def main(self, x: BIG, o: pl.InOut[BIG], p: pl.Out[PART]) -> tuple[BIG, PART]:
            part = pl.create_tensor([16, 32], dtype=pl.FP32)
            with pl.at(level=pl.Level.CORE_GROUP):
                part = pl.assemble(part, pl.exp(x[0:16, :]), [0, 0])
            o = pl.assemble(o, part, [16, 0])
            with pl.at(level=pl.Level.CORE_GROUP):
                part = pl.assemble(part, pl.neg(x[0:8, :]), [0, 0])
            with pl.at(level=pl.Level.CORE_GROUP):
                p = pl.assemble(p, part, [0, 0])
            return o, p

    assert "tensor.create" in fused(P)
    check_meaning(P, random_args((64, 32), (64, 32), (16, 32)))


def test_target_that_is_assembled_elsewhere_in_between_is_kept_until_then():
    @pl.program
    class P:
        @pl.function
        def main(self, x: PART, o: pl.InOut[PART], p: pl.InOut[PART]) -> tuple[PART, PART]:
            with pl.at(level=pl.Level.CORE_GROUP):
                part = pl.exp(x)
            p = pl.assemble(p, o, [0, 0])
            o = pl.assemble(o, part, [0, 0])
            return o, p

    assert "tensor.create" in fused(P)
    check_meaning(P, random_args((16, 32), (16, 32), (16, 32)))


def test_assemble_in_a_branch_does_not_write_when_the_branch_is_not_taken():
    @pl.program
    class P:
        @pl.function
        def main(self, x: BIG, n: pl.Scalar[pl.INDEX], o: pl.InOut[BIG]) -> BIG:
            with pl.at(level=pl.Level.CORE_GROUP):
                part = pl.exp(x[0:16, :])
            if n > 2:
                o = pl.assemble(o, part, [16, 0])
            return o

    for n in (1, 3):
        check_meaning(P, random_args((64, 32), n, (64, 32)))


def test_buffer_filled_in_a_loop_is_one_window():
    @pl.program
    class P:
        @pl.function
        def main(self, x: BIG, o: pl.InOut[BIG]) -> BIG:
            part = pl.create_tensor([32, 32], dtype=pl.FP32)
            for i in pl.range(2):
                with pl.at(level=pl.Level.CORE_GROUP):
                    part = pl.assemble(part, pl.exp(x[i * 16 : i * 16 + 16, :]), [i * 16, 0])
            o = pl.assemble(o, part, [16, 0])
            return o

    assert fused(P) == ["tensor.slice", "main_incore_0"]
    check_meaning(P, random_args((64, 32), (64, 32)))


def test_windows_of_a_window():
    @pl.program
    class P:
        @pl.function
        def main(self, x: BIG, o: pl.InOut[BIG]) -> BIG:
            half = pl.create_tensor([32, 32], dtype=pl.FP32)
            for i in pl.range(2):
                with pl.at(level=pl.Level.CORE_GROUP):
                    part = pl.exp(x[i * 16 : i * 16 + 16, :])
                half = pl.assemble(half, part, [i * 16, 0])
            o = pl.assemble(o, half, [16, 0])
            return o

    assert "tensor.assemble" not in fused(P)
    check_meaning(P, random_args((64, 32), (64, 32)))


def test_offset_computed_after_the_buffer_is_used_moves_the_slice_no_further_than_the_first_use():
    @pl.program
    class P:
        @pl.function
        def main(self, x: BIG, n: pl.Tensor[[4], pl.INT32], o: pl.InOut[BIG]) -> BIG:
            with pl.at(level=pl.Level.CORE_GROUP):
                part = pl.exp(x[0:16, :])
            start = pl.read(n, [1])
            o = pl.assemble(o, part, [start, 0])
            return o

    import numpy as np

    def make():
        x, o = random_args((64, 32), (64, 32))()
        return [x, np.array([0, 8, 0, 0], np.int32), o]

    check_meaning(P, make)


def test_parameter_assembled_by_the_orchestration_is_copied_also_with_unknown_extents():
    m = pl.dynamic("M")

    @pl.program
    class P:
        @pl.function
        def main(
            self, x: pl.Tensor[[m, 32], pl.FP32], o: pl.InOut[pl.Tensor[[96, 32], pl.FP32]]
        ) -> pl.Tensor[[96, 32], pl.FP32]:
            o = pl.assemble(o, x, [8, 0])
            with pl.at(level=pl.Level.CORE_GROUP):
                o = pl.assemble(o, pl.exp(o[0:8, :]), [0, 0])
            return o

    check_meaning(P, random_args((50, 32), (96, 32)))


def test_a_copy_between_overlapping_windows_gives_what_the_source_was_before():
    m = pl.dynamic("M")

    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: pl.InOut[pl.Tensor[[m, 32], pl.FP32]]) -> pl.Tensor[[m, 32], pl.FP32]:
            for _ in pl.range(2):
                x[1:m, :] = x[0 : m - 1, :]
            x[0:8, 1:32] = x[0:8, 0:31]
            return x

    check_meaning(P, random_args((50, 32)))


def test_program_without_assembles_is_returned_as_it_is():
    @pl.program
    class P:
        @pl.function
        def main(self, x: BIG) -> BIG:
            with pl.at(level=pl.Level.CORE_GROUP):
                y = pl.exp(x)
            return y

    program = lowered(P, "normalize_return_order")
    assert passes.fuse_create_assemble_to_slice()(program) is program
    assert passes.materialize_assemble_copies()(program) is program


def test_tasks_of_a_manual_scope_that_read_the_source_and_write_the_target_keep_them_apart():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def copy(self, x: PART, o: pl.Out[PART]) -> PART:
            o = pl.store(pl.load(x, [0, 0], [16, 32]), [0, 0], o)
            return o

        @pl.function
        def main(self, x: PART, p: pl.InOut[PART], o: pl.Out[PART]) -> PART:
            with pl.at(level=pl.Level.CORE_GROUP):
                part = pl.exp(x)
            p = pl.assemble(p, part, [0, 0])
            with pl.manual_scope():
                o, _first = pl.submit(self.copy, part, o)
                p, _second = pl.submit(self.copy, x, p)  # not ordered after the first
            return o

    assert fused(P)[0] == "tensor.create"
