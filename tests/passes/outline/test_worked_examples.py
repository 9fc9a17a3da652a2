"""Whole programs before and after outlining, side by side."""

from __future__ import annotations

from pypto import ir, passes
from tests.passes.dedup.programs import dispatches
from tests.passes.dsl import Step, assert_round_trips, assert_same, function, program, run

HIERARCHY, INCORE, CLUSTER = (
    passes.outline_hierarchy_scopes,
    passes.outline_incore_scopes,
    passes.outline_cluster_scopes,
)


def check(before: str, after: str, *steps: Step, header: str = "") -> ir.Program:
    """Outline `before` and compare with `after`; the result must keep its form and print."""
    actual = run(program(before, header), *steps)
    assert_same(actual, program(after, header))
    properties = passes.IRPropertySet()
    properties.insert(passes.IRProperty.SSAForm)
    properties.insert(passes.IRProperty.UseAfterDef)
    passes.verify_properties(properties, actual, "outlining")
    for step in steps:
        assert step()(actual) is actual or ir.structural_equal(step()(actual), actual)
    assert_round_trips(actual)
    return actual


def test_mixed_outputs_come_before_store_targets_in_reverse_order():
    check(
        """
    @opaque
    def main(self, src: T(32, 64), lo: pl.Out[T(32, 64)], hi: pl.Out[T(32, 64)], k: I):
        with pl.at(level=pl.Level.CORE_GROUP):
            tile = pl.load(src, [0, 0], [32, 64])
            nxt = k + 1
            pl.store(tile, [0, 0], lo)
            fresh = pl.mul(src, src)
            hi = pl.store(tile, [0, 0], hi)
        part = pl.slice(fresh, [16, 64], [nxt, 0])
        full = pl.assemble(fresh, part, [0, 0])
        return lo, hi, full
    """,
        """
    @incore
    def main_incore_0(
        self, src: T(32, 64), k: I, lo: pl.Out[T(32, 64)], hi: pl.Out[T(32, 64)]
    ) -> tuple[I, T(32, 64), T(32, 64), T(32, 64)]:
        tile = pl.load(src, [0, 0], [32, 64])
        nxt = k + 1
        lo_s = pl.store(tile, [0, 0], lo)
        fresh = pl.mul(src, src)
        hi_1 = pl.store(tile, [0, 0], hi)
        hi_s = hi_1
        return nxt, fresh, hi, lo
    @orch
    def main(self, src: T(32, 64), lo: pl.Out[T(32, 64)], hi: pl.Out[T(32, 64)], k: I):
        ret = self.main_incore_0(src, k, lo, hi)
        nxt = ret[0]
        fresh = ret[1]
        hi_2 = ret[2]
        lo_1 = ret[3]
        part = pl.slice(fresh, [16, 64], [nxt, 0])
        full = pl.assemble(fresh, part, [0, 0])
        return lo_1, hi_2, full
    """,
        INCORE,
    )


def test_task_id_dependencies_without_one_and_independent_arguments():
    check(
        """
    @opaque
    def main(self, x: T(64), o: pl.Out[T(64)]) -> T(64):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="produce") as t0:
            a = pl.add(x, x)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="consume", deps=[t0], no_dep_args=[x]):
            b = pl.add(a, x)
            o = pl.assemble(o, b, [0])
        return o
    """,
        """
    @incore
    def produce(self, x: T(64)) -> T(64):
        a = pl.add(x, x)
        return a
    @incore
    def consume(self, a: T(64), x: T(64), o: pl.Out[T(64)]) -> T(64):
        b = pl.add(a, x)
        o_1 = pl.assemble(o, b, [0])
        return o
    @orch
    def main(self, x: T(64), o: pl.Out[T(64)]) -> T(64):
        a, t0 = pl.submit(self.produce, x)
        o_1, unused = pl.submit(self.consume, a, pl.no_dep(x), o, deps=[t0])
        return o_1
    """,
        INCORE,
    )


def test_a_store_target_carried_by_a_loop_of_the_parent_is_a_plain_input_returned_through_lineage():
    check(
        """
    @opaque
    def main(self, x: T(128, 32), o: pl.Out[T(128, 32)]) -> T(128, 32):
        for r in pl.range(4):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [r * 32, 0], [32, 32])
                o = pl.store(t, [r * 32, 0], o)
        return o
    """,
        """
    @incore
    def main_incore_0(self, x: T(128, 32), r: I, o_it: T(128, 32)) -> T(128, 32):
        t = pl.load(x, [r * 32, 0], [32, 32])
        o_1 = pl.store(t, [r * 32, 0], o_it)
        return o_it
    @orch
    def main(self, x: T(128, 32), o: pl.Out[T(128, 32)]) -> T(128, 32):
        for r, (o_it,) in pl.range(4, init_values=(o,)):
            o_1 = self.main_incore_0(x, r, o_it)
            o_rv = pl.yield_(o_1)
        return o_rv
    """,
        INCORE,
    )


def test_a_conditional_store_gives_the_merged_value_and_the_target():
    check(
        """
    @opaque
    def main(self, x: T(32), flag: B, o: pl.InOut[T(32)]) -> T(32):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0], [32])
            if flag:
                o = pl.store(t, [0], o)
        return o
    """,
        """
    @incore
    def main_incore_0(self, x: T(32), flag: B, o: pl.InOut[T(32)]) -> tuple[T(32), T(32)]:
        t = pl.load(x, [0], [32])
        if flag:
            o_1 = pl.store(t, [0], o)
            o_s = o_1
            merged = pl.yield_(o_1)
        else:
            merged = pl.yield_(o)
        return merged, o
    @orch
    def main(self, x: T(32), flag: B, o: pl.InOut[T(32)]) -> T(32):
        ret = self.main_incore_0(x, flag, o)
        merged = ret[0]
        o_2 = ret[1]
        return merged
    """,
        INCORE,
    )


ROWS = """
    @incore
    def rows(self, x: T(128, 32), o: pl.Out[T(128, 32)]) -> T(128, 32):
        b = pl.tile.get_block_idx()
        t = pl.load(x, [b * 32, 0], [32, 32])
        o_1 = pl.store(t, [b * 32, 0], o)
        o_s = o_1
        return o
"""


def test_the_loop_form_with_every_submit_keyword_and_no_task_id():
    actual = check(
        """
    @opaque
    def main(self, x: T(128, 32), gate: pl.Tensor[[4], pl.INT32], o: pl.Out[T(128, 32)]) -> T(128, 32):
        for b in pl.spmd(4, sync_start=True, name_hint="rows", allow_early_resolve=True,
                         predicate=(gate[1] > 0)):
            t = pl.load(x, [b * 32, 0], [32, 32])
            o = pl.store(t, [b * 32, 0], o)
        return o
    """,
        ROWS
        + """
    @spmd
    def rows_spmd(self, x: T(128, 32), o: pl.Out[T(128, 32)]) -> T(128, 32):
        o_1 = self.rows(x, o)
        return o
    @orch
    def main(self, x: T(128, 32), gate: pl.Tensor[[4], pl.INT32], o: pl.Out[T(128, 32)]) -> T(128, 32):
        o_1, unused = pl.spmd_submit(self.rows_spmd, x, o, core_num=4, sync_start=True,
                                     allow_early_resolve=True, predicate=(gate[1] > 0))
        return o_1
    """,
        INCORE,
        CLUSTER,
    )
    assert [param.name_hint for param in function(actual, "rows").params_] == ["x__ssa_v0", "o__ssa_v0"]


STEP = """
    @incore
    def k(self, x: T(64), o: pl.Out[T(64)]) -> T(64):
        t = pl.load(x, [0], [64])
        o = pl.store(t, [0], o)
        return o
"""


def test_a_launch_with_dependencies_and_no_task_id():
    check(
        STEP
        + """
    @orch
    def main(self, x: T(64), o: pl.Out[T(64)], p: pl.Out[T(64)]) -> T(64):
        with pl.spmd(4, name_hint="first") as t0:
            o = self.k(x, o)
        with pl.spmd(4, deps=[t0], name_hint="second"):
            p = self.k(o, p)
        return p
    """,
        STEP
        + """
    @spmd
    def first(self, x: T(64), o: pl.Out[T(64)]) -> T(64):
        o_1 = self.k(x, o)
        return o
    @spmd
    def second(self, o: T(64), p: pl.Out[T(64)]) -> T(64):
        p_1 = self.k(o, p)
        return p
    @orch
    def main(self, x: T(64), o: pl.Out[T(64)], p: pl.Out[T(64)]) -> T(64):
        o_1, t0 = pl.spmd_submit(self.first, x, o, core_num=4)
        p_1, unused = pl.spmd_submit(self.second, o_1, p, deps=[t0], core_num=4)
        return p_1
    """,
        INCORE,
        CLUSTER,
    )


def test_a_launch_in_a_cluster_with_a_captured_count():
    actual = check(
        """
    @opaque
    def main(self, n: I, x: T(128, 32), o: pl.Out[T(128, 32)]) -> T(128, 32):
        with pl.cluster(name_hint="pack"):
            for b in pl.spmd(n // 2, sync_start=True):
                t = pl.load(x, [b * 32, 0], [32, 32])
                o = pl.store(t, [b * 32, 0], o)
        return o
    """,
        ROWS.replace("rows", "main_incore_0")
        + """
    @group
    def pack(self, n: I, x: T(128, 32), o: pl.Out[T(128, 32)]) -> T(128, 32):
        pl.func_attr({"spmd_unwrapped": True})
        o_1 = self.main_incore_0(x, o)
        return o
    @orch
    def main(self, n: I, x: T(128, 32), o: pl.Out[T(128, 32)]) -> T(128, 32):
        o_1 = self.pack(n, x, o, attrs={"core_num": n // 2, "sync_start": True})
        return o_1
    """,
        INCORE,
        CLUSTER,
    )
    (dispatch,) = dispatches(function(actual, "main"))
    assert list(dispatch.attrs_) == ["core_num", "sync_start"]
    assert dispatch.attrs_["core_num"].left is dispatch.args_[0]


def test_a_kernel_of_several_results_of_which_one_is_used_later():
    kernel = """
    @incore
    def step(self, x: T(32), acc: pl.InOut[T(32)], y: pl.Out[T(32)]) -> tuple[T(32), T(32)]:
        t = pl.load(x, [0], [32])
        a = pl.load(acc, [0], [32])
        acc = pl.store(pl.add(t, a), [0], acc)
        y = pl.store(t, [0], y)
        return acc, y
"""
    check(
        kernel
        + """
    @orch
    def main(self, x: T(32), acc: pl.InOut[T(32)], y: pl.Out[T(32)]) -> T(32):
        with pl.spmd(2, name_hint="stage"):
            acc, y = self.step(x, acc, y)
        return y
    """,
        kernel
        + """
    @spmd
    def stage(self, x: T(32), acc: pl.InOut[T(32)], y: pl.Out[T(32)]) -> T(32):
        acc_1, y_1 = self.step(x, acc, y)
        return y
    @orch
    def main(self, x: T(32), acc: pl.InOut[T(32)], y: pl.Out[T(32)]) -> T(32):
        y_1 = self.stage(x, acc, y, attrs={"core_num": 2})
        return y_1
    """,
        INCORE,
        CLUSTER,
    )


def test_a_hierarchy_scope_around_a_kernel_with_a_task_id_from_outside():
    actual = check(
        """
    @opaque
    def main(self, x: T(64)) -> T(64):
        with pl.at(level=pl.Level.CORE_GROUP) as t0:
            a = pl.add(x, x)
        with pl.at(level=pl.Level.GLOBAL, role=pl.Role.Orchestrator):
            with pl.at(level=pl.Level.CORE_GROUP, deps=[t0]):
                b = pl.mul(a, x)
        return b
    """,
        """
    @incore
    def main_incore_0(self, x: T(64)) -> T(64):
        a = pl.add(x, x)
        return a
    @incore
    def main_global_orch_0_incore_0(self, a: T(64), x: T(64)) -> T(64):
        b = pl.mul(a, x)
        return b
    @orch
    def main_global_orch_0(self, t0: pl.Scalar[pl.TASK_ID], a: T(64), x: T(64)) -> T(64):
        b, unused = pl.submit(self.main_global_orch_0_incore_0, a, x, deps=[t0])
        return b
    @orch
    def main(self, x: T(64)) -> T(64):
        a, t0 = pl.submit(self.main_incore_0, x)
        b = self.main_global_orch_0(t0, a, x)
        return b
    """,
        HIERARCHY,
        INCORE,
    )
    promoted = function(actual, "main_global_orch_0")
    assert (promoted.level, promoted.role) == (ir.Level.CHIP, ir.Role.Orchestrator)


def test_chained_stores_return_the_parameter_twice():
    check(
        """
    @opaque
    def main(self, x: T(64, 32), o: pl.Out[T(64, 32)]) -> T(64, 32):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [32, 32])
            o = pl.store(t, [0, 0], o)
            o = pl.store(t, [32, 0], o)
        return o
    """,
        """
    @incore
    def main_incore_0(self, x: T(64, 32), o: pl.Out[T(64, 32)]) -> tuple[T(64, 32), T(64, 32)]:
        t = pl.load(x, [0, 0], [32, 32])
        o_1 = pl.store(t, [0, 0], o)
        o_s = o_1
        o_2 = pl.store(t, [32, 0], o_1)
        return o, o
    @orch
    def main(self, x: T(64, 32), o: pl.Out[T(64, 32)]) -> T(64, 32):
        ret = self.main_incore_0(x, o)
        o_2 = ret[0]
        o_3 = ret[1]
        return o_2
    """,
        INCORE,
    )


def test_a_loop_of_pure_computation_on_a_captured_tensor_returns_its_parameter():
    check(
        """
    @opaque
    def main(self, x: T(64), n: I) -> T(64):
        with pl.at(level=pl.Level.CORE_GROUP):
            for i in pl.range(n):
                x = pl.add(x, x)
        return x
    """,
        """
    @incore
    def main_incore_0(self, x: T(64), n: I) -> T(64):
        for i, (x_it,) in pl.range(n, init_values=(x,)):
            x_1 = pl.add(x_it, x_it)
            x_rv = pl.yield_(x_1)
        return x
    @orch
    def main(self, x: T(64), n: I) -> T(64):
        x_1 = self.main_incore_0(x, n)
        return x_1
    """,
        INCORE,
    )


def test_reads_of_declared_extents_fold_on_promotion():
    actual = run(
        program(
            """
    @opaque
    def main(self, a: T(M, 32)):
        rows = pl.tensor.dim(a, -2)
        cols = pl.tensor.dim(a, 1)
        scratch = pl.create_tensor([rows, 32], dtype=pl.FP32)
        again = pl.tensor.dim(scratch, 0)
        for b in pl.spmd(again // 16):
            t = pl.load(a, [b * 16, 0], [16, 32])
            scratch = pl.store(t, [b * 16, 0], scratch)
    """,
            header='M = pl.dynamic("M")',
        ),
        INCORE,
        CLUSTER,
    )
    main = function(actual, "main")
    symbol = main.params_[0].type.shape_[0]
    reads = [s for s in main.body.stmts_ if isinstance(s, ir.AssignStmt) and s.value.op.name == "tensor.dim"]
    assert [read.var.name_hint for read in reads] == ["cols__ssa_v0"]
    (dispatch,) = dispatches(main)
    assert dispatch.attrs_["core_num"].left is symbol
    assert main.func_type is ir.FunctionType.Orchestration
