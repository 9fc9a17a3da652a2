"""Clusters become Groups, standalone spmd scopes become Spmd functions, launch specs go to the dispatch."""

from __future__ import annotations

import pytest

import pypto
from pypto import ir, passes
from pypto.ir.walk import vars_in, walk_stmts
from pypto.passes.outline import effective_launch_spec, is_launch_wrapper
from tests.passes.dsl import assert_round_trips, assert_same, assert_ssa, function, program, run, statements

Out = ir.ParamDirection.Out

KERNEL = """
        @incore
        def kernel(self, x: T(64), out: pl.Out[T(64)]) -> T(64):
            tile = pl.load(x, [0], [64])
            out = pl.store(pl.add(tile, tile), [0], out)
            return out
"""


def cluster(methods: str, header: str = "", *, incore: bool = True) -> ir.Program:
    steps = [passes.flatten_call_expr]
    steps += [passes.outline_incore_scopes] if incore else []
    result = run(program(methods, header), *steps, passes.outline_cluster_scopes)
    assert_ssa(result)
    assert_round_trips(result)
    assert passes.outline_cluster_scopes()(result) is result
    return result


def dispatches(found: ir.Function) -> list[ir.Call | ir.Submit]:
    made = []
    for stmt in statements(found):
        value = getattr(stmt, "value", None) or getattr(stmt, "expr", None)
        if isinstance(value, (ir.Call, ir.Submit)) and isinstance(value.op, ir.GlobalVar):
            made.append(value)
    return made


# ---- clusters


def test_a_cluster_becomes_a_group_and_inner_scopes_survive_when_they_come_first():
    actual = cluster(
        """
        @opaque
        def main(self, x: T(64)) -> T(64):
            with pl.cluster():
                with pl.at(level=pl.Level.CORE_GROUP):
                    y = pl.add(x, x)
            return y
        """,
        incore=False,
    )
    expected = program(
        """
        @group
        def main_cluster_0(self, x: T(64)) -> T(64):
            with pl.at(level=pl.Level.CORE_GROUP):
                y = pl.add(x, x)
            return y
        @opaque
        def main(self, x: T(64)) -> T(64):
            y = self.main_cluster_0(x)
            return y
        """
    )
    assert_same(actual, expected)


def test_scopes_inside_groups_are_outlined_when_the_kernel_pass_runs_afterwards():
    source = program(
        """
        @opaque
        def main(self, x: T(64)) -> T(64):
            with pl.cluster():
                with pl.at(level=pl.Level.CORE_GROUP):
                    y = pl.add(x, x)
            return y
        """
    )
    actual = run(source, passes.outline_cluster_scopes, passes.outline_incore_scopes)
    kinds = {name: found.func_type.name for name, found in actual.functions_.items()}
    assert kinds == {"main": "Opaque", "main_cluster_0": "Group", "main_cluster_0_incore_0": "InCore"}


def test_a_cluster_without_and_with_several_results():
    actual = cluster(
        """
        @orch
        def main(self, x: T(64)) -> tuple[T(64), T(64)]:
            with pl.cluster():
                with pl.at(level=pl.Level.CORE_GROUP):
                    a = pl.add(x, x)
                    b = pl.mul(x, x)
            with pl.cluster():
                with pl.at(level=pl.Level.CORE_GROUP):
                    unused = pl.mul(a, b)
            return a, b
        """
    )
    assert len(function(actual, "main_cluster_0").return_types_) == 2
    assert function(actual, "main_cluster_1").return_types_ == ()
    assert [type(s).__name__ for s in statements(function(actual, "main"))] == ["AssignStmt"] * 3 + [
        "EvalStmt",
        "ReturnStmt",
    ]


def test_a_nested_spmd_is_unwrapped_and_its_count_is_translated_to_the_caller():
    actual = cluster(
        """
        @orch
        def main(self, x: T(128, 32), o: pl.Out[T(128, 32)], n: I) -> T(128, 32):
            with pl.cluster(name_hint="pack"):
                for b in pl.spmd(n // 2, sync_start=True):
                    t = pl.load(x, [b * 32, 0], [32, 32])
                    o = pl.store(t, [b * 32, 0], o)
            return o
        """
    )
    expected = program(
        """
        @incore
        def main_incore_0(self, x: T(128, 32), o: pl.Out[T(128, 32)]) -> T(128, 32):
            b = pl.tile.get_block_idx()
            t = pl.load(x, [b * 32, 0], [32, 32])
            o_1 = pl.store(t, [b * 32, 0], o)
            o_s = o_1
            return o
        @group
        def pack(self, n: I, x: T(128, 32), o: pl.Out[T(128, 32)]) -> T(128, 32):
            pl.func_attr({"spmd_unwrapped": True})
            o_1 = self.main_incore_0(x, o)
            return o
        @orch
        def main(self, x: T(128, 32), o: pl.Out[T(128, 32)], n: I) -> T(128, 32):
            o_1 = self.pack(n, x, o, attrs={"core_num": n // 2, "sync_start": True})
            return o_1
        """
    )
    assert_same(actual, passes.flatten_call_expr()(passes.convert_to_ssa()(expected)))
    (call,) = dispatches(function(actual, "main"))
    (named,) = (var for var in call.attrs["core_num"]._children() if isinstance(var, ir.Var))
    assert named in set(call.args_)
    assert named not in set(function(actual, "pack").params_)
    assert "FREE_VAR" not in actual.as_python()


def test_a_spmd_in_a_loop_of_a_cluster_is_unwrapped_where_it_sits():
    actual = cluster(
        KERNEL
        + """
        @orch
        def main(self, x: T(64), o: pl.InOut[T(64)]) -> T(64):
            with pl.cluster():
                for i in pl.range(3):
                    with pl.spmd(4):
                        o = self.kernel(x, o)
            return o
        """
    )
    group = function(actual, "main_cluster_0")
    assert group.attrs == {"spmd_unwrapped": True}
    assert not any(isinstance(s, ir.SpmdScopeStmt) for s in walk_stmts(group.body))


def test_a_dispatch_inside_an_outer_group_gets_its_launch_spec_too():
    actual = cluster(
        KERNEL
        + """
        @orch
        def main(self, x: T(64), o: pl.InOut[T(64)], n: I) -> T(64):
            with pl.cluster(name_hint="outer"):
                with pl.cluster(name_hint="inner"):
                    with pl.spmd(n):
                        o = self.kernel(x, o)
            return o
        """
    )
    (inner_call,) = dispatches(function(actual, "outer"))
    assert inner_call.attrs["core_num"] is function(actual, "outer").params_[0]
    assert "core_num" not in dispatches(function(actual, "main"))[0].attrs


def test_a_group_without_spmd_has_neither_marker_nor_launch_spec():
    actual = cluster(
        KERNEL
        + """
        @orch
        def main(self, x: T(64), o: pl.InOut[T(64)]) -> T(64):
            with pl.cluster():
                o = self.kernel(x, o)
            return o
        """
    )
    assert function(actual, "main_cluster_0").attrs == {}
    assert dispatches(function(actual, "main"))[0].attrs == {}


def test_two_spmd_in_one_cluster_are_rejected_as_user_error_and_as_internal_error():
    source = (
        KERNEL
        + """
        @orch
        def main(self, x: T(64), o: pl.InOut[T(64)]) -> T(64):
            with pl.cluster():
                with pl.spmd(2):
                    o = self.kernel(x, o)
                with pl.spmd(4):
                    o = self.kernel(x, o)
            return o
        """
    )
    for kind in (ValueError, pypto.InternalError):
        with pytest.raises(
            kind, match=r"Only one pl\.spmd\(\) block is allowed per cluster scope.*\[.*:\d+:\d+\]"
        ):
            cluster(source)


def test_a_count_that_is_computed_inside_the_cluster_is_rejected():
    with pytest.raises(
        ValueError, match=r"'n.*defined inside the enclosing pl\.cluster\(\).*before.*captures"
    ):
        cluster(
            KERNEL
            + """
        @orch
        def main(self, x: T(64), o: pl.InOut[T(64)]) -> T(64):
            with pl.cluster():
                n = pl.system.available_cluster_count()
                with pl.spmd(n):
                    o = self.kernel(x, o)
            return o
        """
        )


def test_a_count_that_is_a_call_binds_nothing_and_moves_to_the_dispatch():
    actual = cluster(
        KERNEL
        + """
        @orch
        def main(self, x: T(64), o: pl.InOut[T(64)]) -> T(64):
            with pl.cluster():
                with pl.spmd(pl.system.available_cluster_count()):
                    o = self.kernel(x, o)
            return o
        """
    )
    (dispatch,) = dispatches(function(actual, "main"))
    assert dispatch.attrs_["core_num"].op.name == "system.available_cluster_count"


def test_a_nested_spmd_with_submit_metadata_is_rejected():
    source = run(
        program(
            KERNEL
            + """
        @orch
        def main(self, x: T(64), o: pl.InOut[T(64)]) -> T(64):
            with pl.cluster():
                with pl.spmd(2):
                    o = self.kernel(x, o)
            return o
        """
        )
    )
    main = function(source, "main")
    outer, *rest = statements(main)
    spmd = statements(outer.body)[0].replace(attrs={"allow_early_resolve": True})
    body = ir.flatten_stmts([outer.replace(body=spmd), *rest], main.span)
    broken = ir.Program([main.replace(body=body), function(source, "kernel")], "P", main.span)
    with pytest.raises(
        pypto.InternalError, match="task_id_var, manual_dep_edges, allow_early_resolve, predicate"
    ):
        passes.outline_cluster_scopes()(broken)


# ---- standalone spmd


def test_a_dispatch_body_becomes_a_wrapper_and_the_call_carries_the_launch_spec():
    actual = cluster(
        KERNEL
        + """
        @orch
        def main(self, x: T(64), out: pl.Out[T(64)]) -> T(64):
            with pl.spmd(4, sync_start=True):
                out = self.kernel(x, out)
            return out
        """
    )
    expected = program(
        KERNEL
        + """
        @spmd
        def main_spmd_0(self, x: T(64), out: pl.Out[T(64)]) -> T(64):
            out_1 = self.kernel(x, out)
            return out
        @orch
        def main(self, x: T(64), out: pl.Out[T(64)]) -> T(64):
            out_1 = self.main_spmd_0(x, out, attrs={"core_num": 4, "sync_start": True})
            return out_1
        """
    )
    assert_same(actual, passes.flatten_call_expr()(passes.convert_to_ssa()(expected)))
    assert function(actual, "main_spmd_0").attrs == {}


def test_sync_start_is_on_the_call_only_when_true():
    actual = cluster(
        KERNEL
        + """
        @orch
        def main(self, x: T(64), out: pl.Out[T(64)]) -> T(64):
            with pl.spmd(4):
                out = self.kernel(x, out)
            return out
        """
    )
    assert list(dispatches(function(actual, "main"))[0].attrs) == ["core_num"]


@pytest.mark.parametrize("hint", ["q_proj", "q_proj_spmd"])
def test_the_loop_form_becomes_a_kernel_and_a_wrapper_with_split_hints(hint: str):
    actual = cluster(
        f"""
        @orch
        def main(self, x: T(128, 32), o: pl.Out[T(128, 32)]) -> T(128, 32):
            for b in pl.spmd(4, name_hint="{hint}"):
                t = pl.load(x, [b * 32, 0], [32, 32])
                o = pl.store(t, [b * 32, 0], o)
            return o
        """
    )
    kinds = {name: found.func_type.name for name, found in actual.functions_.items()}
    assert kinds == {"main": "Orchestration", "q_proj": "InCore", "q_proj_spmd": "Spmd"}


LOOP = """for b in pl.spmd(4{0}):
                t = pl.load(x, [b], [1])
                o = pl.store(t, [b], o)"""
BLOCK = """with pl.spmd(4{0}):
                b = pl.tile.get_block_idx()
                t = pl.load(x, [b], [1])
                o = pl.store(t, [b], o)"""
DISPATCH = """with pl.spmd(4{0}):
                o = self.kernel(x, o)"""
CARRIER = """with pl.spmd(4{0}):
                with pl.at(level=pl.Level.CORE_GROUP):
                    b = pl.tile.get_block_idx()
                    t = pl.load(x, [b], [1])
                    o = pl.store(t, [b], o)"""


@pytest.mark.parametrize(
    "form", [LOOP, BLOCK, DISPATCH, CARRIER], ids=["loop", "block", "dispatch", "carrier"]
)
@pytest.mark.parametrize(
    ("keyword", "is_submit"),
    [
        ("", False),
        ("deps=[]", False),
        ("deps=[None]", False),
        ("allow_early_resolve=False", False),
        ("deps=[t0]", True),
        ("deps=[t0, None]", True),
        ("allow_early_resolve=True", True),
        ("predicate=(gate[1] > 0)", True),
    ],
)
def test_a_launch_without_task_id_is_a_submit_only_if_a_keyword_needs_one(
    form: str, keyword: str, is_submit: bool
):
    actual = cluster(
        KERNEL
        + f"""
        @orch
        def main(self, x: T(64), o: pl.Out[T(64)], gate: pl.Tensor[[4], pl.INT32]) -> T(64):
            with pl.spmd(2, name_hint="first") as t0:
                o = self.kernel(x, o)
            {form.format(", " + keyword if keyword else "")}
            return o
        """
    )
    main = function(actual, "main")
    first, second = dispatches(main)
    assert isinstance(first, ir.Submit) and first.core_num is not None and first.deps_ == ()
    if not is_submit:
        assert isinstance(second, ir.Call) and list(second.attrs_) == ["core_num"]
        return
    assert isinstance(second, ir.Submit) and second.attrs_ == {} and second.core_num is not None
    *_, result, task_id, _ = statements(main)
    assert [result.value.index, task_id.value.index] == [0, 1]
    assert task_id.var.type == ir.ScalarType(ir.DataType.TASK_ID)
    assert second.deps_ == ((statements(main)[2].var,) if "t0" in keyword else ())
    assert second.allow_early_resolve is ("early" in keyword)
    assert (second.predicate is not None) is ("predicate" in keyword)


def test_submit_only_keywords_without_task_id_make_a_submit_with_a_new_one():
    actual = cluster(
        """
        @orch
        def main(self, x: T(128, 32), o: pl.Out[T(128, 32)], gate: pl.Tensor[[4], pl.INT32]) -> T(128, 32):
            for b in pl.spmd(
                4, sync_start=True, name_hint="rows", allow_early_resolve=True, predicate=(gate[1] > 0)
            ):
                t = pl.load(x, [b * 32, 0], [32, 32])
                o = pl.store(t, [b * 32, 0], o)
            return o
        """
    )
    (submit,) = dispatches(function(actual, "main"))
    assert isinstance(submit, ir.Submit)
    assert submit.sync_start and submit.allow_early_resolve
    assert isinstance(submit.predicate, ir.Gt)
    assert isinstance(submit.core_num, ir.ConstInt)
    assert submit.attrs == {}
    assert [p.name_hint.partition("__")[0] for p in function(actual, "rows_spmd").params_] == ["x", "o"]


@pytest.mark.parametrize(
    ("second", "name"),
    [
        ('with pl.spmd(4, deps=[t0], name_hint="second"):\n                p = self.kernel(o, p)', "second"),
        (
            'for b in pl.spmd(4, deps=[t0], name_hint="second"):\n                t = pl.load(o, [b], [1])\n'
            "                p = pl.store(t, [b], p)",
            "second_spmd",
        ),
    ],
    ids=["plain form", "loop form"],
)
def test_dependencies_without_task_id_make_a_submit(second: str, name: str):
    source = run(
        program(
            KERNEL
            + f"""
        @orch
        def main(self, x: T(64), o: pl.Out[T(64)], p: pl.Out[T(64)]) -> T(64):
            with pl.spmd(4, name_hint="first") as t0:
                o = self.kernel(x, o)
            {second}
            return p
        """
        ),
    )
    assert_round_trips(source)
    actual = source
    for step in (passes.outline_incore_scopes(), passes.outline_cluster_scopes()):
        actual = step(actual)
    assert_round_trips(actual)
    _, submit = dispatches(function(actual, "main"))
    _, _, task_id = statements(function(actual, "main"))[:3]
    assert submit.deps_ == (task_id.var,)
    assert submit.args_[0] is statements(function(actual, "main"))[1].var
    assert submit.op.name == name
    assert submit.core_num is not None
    assert submit.type.types_[-1] == ir.ScalarType(ir.DataType.TASK_ID)
    assert function(actual, name).attrs == {}


def test_a_dynamic_count_stays_an_expression_on_the_dispatch():
    actual = cluster(
        KERNEL
        + """
        @orch
        def main(self, x: T(64), o: pl.Out[T(64)], k: I) -> T(64):
            m = k + 1
            with pl.spmd(m // 16):
                o = self.kernel(x, o)
            return o
        """
    )
    (call,) = dispatches(function(actual, "main"))
    assert isinstance(call.attrs["core_num"], ir.FloorDiv)
    assert function(actual, "main_spmd_0").attrs == {}
    assert len(function(actual, "main_spmd_0").params_) == 2


def test_a_wrapper_takes_a_repeated_argument_once():
    actual = cluster(
        """
        @incore
        def kernel(self, a: T(64), b: T(64), bias: T(64), out: pl.Out[T(64)]) -> T(64):
            t = pl.load(b, [0], [64])
            out = pl.store(t, [0], out)
            return out
        @orch
        def main(self, b: T(64), bias: T(64), out: pl.InOut[T(64)]) -> T(64):
            with pl.spmd(2):
                out = self.kernel(out, b, bias, out)
            return out
        """
    )
    assert len(function(actual, "main_spmd_0").params_) == 3


def test_a_wrapper_of_several_results_returns_what_is_needed_later():
    actual = cluster(
        """
        @incore
        def step(self, x: T(32), acc: pl.InOut[T(32)], y: pl.Out[T(32)]) -> tuple[T(32), T(32)]:
            t = pl.load(x, [0], [32])
            u = pl.load(acc, [0], [32])
            acc = pl.store(u, [0], acc)
            y = pl.store(t, [0], y)
            return acc, y
        @orch
        def main(self, x: T(32), acc: pl.InOut[T(32)], y: pl.Out[T(32)]) -> T(32):
            with pl.spmd(2, name_hint="stage"):
                acc, y = self.step(x, acc, y)
            return y
        """
    )
    stage = function(actual, "stage")
    assert [way.name for way in stage.param_directions_] == ["In", "InOut", "Out"]
    assert statements(stage)[-1].value_ == (stage.params_[2],)


def test_a_wrapper_whose_result_is_unused_returns_nothing():
    actual = cluster(
        KERNEL
        + """
        @orch
        def main(self, x: T(64), o: pl.InOut[T(64)]) -> T(64):
            with pl.spmd(2):
                self.kernel(x, o)
            return o
        """
    )
    wrapper = function(actual, "main_spmd_0")
    assert wrapper.return_types_ == ()
    assert not any(isinstance(stmt, ir.ReturnStmt) for stmt in statements(wrapper))
    assert isinstance(statements(function(actual, "main"))[0], ir.EvalStmt)


def test_a_count_that_names_a_tensor_read_sees_the_newest_state():
    actual = cluster(
        """
        @incore
        def fill(self, o: pl.Out[pl.Tensor[[4], pl.INT32]]) -> pl.Tensor[[4], pl.INT32]:
            return o
        @incore
        def kernel(self, x: T(64), out: pl.Out[T(64)]) -> T(64):
            t = pl.load(x, [0], [64])
            out = pl.store(t, [0], out)
            return out
        @orch
        def main(self, x: T(64), o: pl.Out[T(64)], gate: pl.InOut[pl.Tensor[[4], pl.INT32]]) -> T(64):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(gate, [0], [4])
                pl.store(t, [0], gate)
            with pl.spmd(2, predicate=(gate[1] > 0)):
                o = self.kernel(x, o)
            return o
        """
    )
    _, submit = dispatches(function(actual, "main"))
    newest = statements(function(actual, "main"))[0].var
    assert [var for var in vars_in(submit.predicate) if var.name_hint.startswith("gate")] == [newest]


def test_dump_tags_reach_the_dispatch_of_the_group_and_of_the_kernel():
    actual = cluster(
        KERNEL
        + """
        @orch
        def main(self, x: T(64), o: pl.InOut[T(64)]) -> T(64):
            pl.dump_tag(x)
            with pl.cluster():
                o = self.kernel(x, o)
            return o
        """
    )
    (group_call,) = dispatches(function(actual, "main"))
    (kernel_call,) = dispatches(function(actual, "main_cluster_0"))
    assert group_call.attrs["dump_vars"] == [group_call.args_[0]]
    assert kernel_call.attrs["dump_vars"] == [kernel_call.args_[0]]


def test_functions_of_other_kinds_are_left_alone():
    source = run(
        program(
            KERNEL
            + """
        @incore
        def odd(self, x: T(64)) -> T(64):
            with pl.cluster():
                y = pl.add(x, x)
            return y
        """
        )
    )
    assert passes.outline_cluster_scopes()(source) is source


def test_a_cluster_in_a_kernel_is_not_outlined_and_the_verifier_reports_it():
    source = run(
        program(
            """
        @incore
        def odd(self, x: T(64)) -> T(64):
            with pl.cluster():
                y = pl.add(x, x)
            return y
        """
        )
    )
    result = passes.outline_cluster_scopes()(source)
    properties = passes.IRPropertySet()
    properties.insert(passes.IRProperty.ClusterOutlined)
    (found,) = passes.PropertyVerifierRegistry.verify(properties, result)
    assert "Cluster ScopeStmt found in non-Group function 'odd'" in found.message


# ---- who reads the launch spec


def test_the_spec_of_a_dispatch_takes_precedence_over_the_one_of_its_callee():
    span = ir.Span.unknown()
    two, four = (ir.ConstInt(n, ir.DataType.INDEX, span) for n in (2, 4))
    legacy = ir.Function(
        "f",
        [],
        [],
        ir.SeqStmts([], span),
        span,
        ir.FunctionType.Spmd,
        attrs={"core_num": two, "sync_start": True},
    )
    functions = {"f": legacy}
    own = ir.Call(ir.GlobalVar("f"), [], {}, {"core_num": four}, ir.UnknownType.get(), span)
    plain = ir.Call(ir.GlobalVar("f"), [], span)
    assert effective_launch_spec(own, functions).core_num is four
    assert effective_launch_spec(own, functions).sync_start is False
    assert effective_launch_spec(plain, functions).core_num is two
    assert effective_launch_spec(plain, functions).sync_start is True
    assert effective_launch_spec(plain, {}) is None


def test_which_functions_launch_the_kernels_of_their_body():
    actual = cluster(
        KERNEL
        + """
        @orch
        def main(self, x: T(64), o: pl.InOut[T(64)]) -> T(64):
            with pl.cluster(name_hint="plain"):
                o = self.kernel(x, o)
            with pl.cluster(name_hint="unwrapped"):
                with pl.spmd(2):
                    o = self.kernel(x, o)
            with pl.spmd(2, name_hint="wrapper"):
                o = self.kernel(x, o)
            return o
        """
    )
    wrappers = {name for name, found in actual.functions_.items() if is_launch_wrapper(found)}
    assert wrappers == {"unwrapped", "wrapper"}
