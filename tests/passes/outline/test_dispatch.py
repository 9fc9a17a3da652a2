"""Calls and submits that replace scopes, and the information that moves to them."""

from __future__ import annotations

import pytest

from pypto import ir, passes
from tests.passes.dsl import assert_round_trips, assert_same, assert_ssa, function, program, run, statements


def incore(methods: str) -> ir.Program:
    result = run(program(methods), passes.outline_incore_scopes)
    assert_ssa(result)
    assert_round_trips(result)
    return result


def submits(found: ir.Function) -> list[ir.Submit]:
    values = [stmt.value for stmt in statements(found) if isinstance(stmt, ir.AssignStmt)]
    return [value for value in values if isinstance(value, ir.Submit)]


def test_task_ids_dependencies_and_independent_arguments():
    actual = incore(
        """
        @orch
        def main(self, x: T(64), o: pl.Out[T(64)]) -> T(64):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="produce") as t0:
                a = pl.add(x, x)
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="consume", deps=[t0], no_dep_args=[x]):
                b = pl.add(a, x)
                o = pl.assemble(o, b, [0])
            return o
        """
    )
    expected = program(
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
        """
    )
    assert_same(actual, expected)


def test_the_placeholder_of_a_task_id_goes_and_the_submit_defines_it():
    actual = incore(
        """
        @orch
        def main(self, x: T(64)) -> T(64):
            with pl.at(level=pl.Level.CORE_GROUP) as tid:
                y = pl.add(x, x)
            return y
        """
    )
    whole, first, second, _ = statements(function(actual, "main"))
    assert isinstance(whole.value, ir.Submit)
    assert whole.value.type.types_[-1] == ir.ScalarType(ir.DataType.TASK_ID)
    assert [first.value.index, second.value.index] == [0, 1]
    assert "task_invalid" not in actual.as_python()


def test_a_scope_without_results_submits_to_a_tuple_of_the_task_id_alone():
    actual = incore(
        """
        @orch
        def main(self, x: T(64)) -> T(64):
            with pl.at(level=pl.Level.CORE_GROUP) as t0:
                y = pl.add(x, x)
            with pl.at(level=pl.Level.CORE_GROUP, deps=[t0]):
                z = pl.add(x, x)
            return z
        """
    )
    first, second = submits(function(actual, "main"))
    assert first.type.types_ == (ir.ScalarType(ir.DataType.TASK_ID),)
    assert second.deps_ == (statements(function(actual, "main"))[1].var,)
    assert second.type.types_[1:] == (ir.ScalarType(ir.DataType.TASK_ID),)


def test_early_resolve_without_task_id_makes_a_submit():
    actual = incore(
        """
        @orch
        def main(self, x: T(64)) -> T(64):
            with pl.at(level=pl.Level.CORE_GROUP, allow_early_resolve=True):
                y = pl.add(x, x)
            return y
        """
    )
    (submit,) = submits(function(actual, "main"))
    assert submit.allow_early_resolve
    assert submit.attrs_ == {}
    assert statements(function(actual, "main"))[-2].var.name_hint == "tid__ssa_v0"


@pytest.mark.parametrize("deps", ["deps=[]", "deps=[None]"])
def test_empty_dependencies_keep_the_plain_call(deps: str):
    actual = incore(
        f"""
        @orch
        def main(self, x: T(64)) -> T(64):
            with pl.at(level=pl.Level.CORE_GROUP, {deps}):
                y = pl.add(x, x)
            return y
        """
    )
    assert submits(function(actual, "main")) == []


def test_positions_of_independent_arguments_replace_their_variables():
    actual = incore(
        """
        @orch
        def main(self, x: T(64), w: T(64)) -> T(64):
            with pl.at(level=pl.Level.CORE_GROUP, no_dep_args=[w]):
                y = pl.add(x, w)
            return y
        """
    )
    call = statements(function(actual, "main"))[0].value
    assert call.attrs == {"arg_direction_overrides": [1]}


def test_an_independent_argument_that_is_not_captured_is_an_error():
    with pytest.raises(ValueError, match=r"no_dep_args.*'w.*not captured"):
        incore(
            """
            @orch
            def main(self, x: T(64), w: T(64)) -> T(64):
                with pl.at(level=pl.Level.CORE_GROUP, no_dep_args=[w]):
                    y = pl.add(x, x)
                return y
            """
        )


def test_dumps_name_call_arguments_and_drop_what_is_not_captured():
    actual = incore(
        """
        @orch
        def main(self, x: T(64), w: T(64), v: T(64)) -> T(64):
            with pl.at(level=pl.Level.CORE_GROUP, dumps=[w, v, x]):
                y = pl.add(x, w)
            return y
        """
    )
    call = statements(function(actual, "main"))[0].value
    assert [var.name_hint for var in call.attrs["dump_vars"]] == [arg.name_hint for arg in call.args_]


def test_a_call_without_metadata_has_no_attributes():
    actual = incore(
        """
        @orch
        def main(self, x: T(64)) -> T(64):
            with pl.at(level=pl.Level.CORE_GROUP):
                y = pl.add(x, x)
            return y
        """
    )
    assert statements(function(actual, "main"))[0].value.attrs_ == {}


def test_dispatches_between_two_stores_pass_and_bind_the_newest_state():
    actual = incore(
        """
        @orch
        def main(self, x: T(64), o: pl.InOut[T(64)]) -> T(64):
            with pl.at(level=pl.Level.CORE_GROUP, dumps=[o]):
                t = pl.load(x, [0], [64])
                pl.store(t, [0], o)
            with pl.at(level=pl.Level.CORE_GROUP, dumps=[o]):
                u = pl.load(o, [0], [64])
                pl.store(u, [0], o)
            return o
        """
    )
    first, second, _ = statements(function(actual, "main"))
    assert second.value.attrs["dump_vars"][0] is first.var
    assert second.value.args_[0] is first.var


def test_kernel_attributes_go_to_the_function_and_launch_attributes_do_not():
    actual = incore(
        """
        @orch
        def main(self, x: T(64)) -> T(64):
            with pl.at(level=pl.Level.CORE_GROUP, windowize=True, allow_early_resolve=True, dumps=[x]):
                y = pl.add(x, x)
            return y
        """
    )
    assert function(actual, "main_incore_0").attrs == {"windowize": True}


def test_every_new_node_has_the_place_of_the_scope():
    source = passes.convert_to_ssa()(
        program(
            """
            @orch
            def main(self, x: T(64)) -> T(64):
                with pl.at(level=pl.Level.CORE_GROUP):
                    y = pl.add(x, x)
                return y
            """
        )
    )
    scope = statements(function(source, "main"))[0]
    actual = passes.outline_incore_scopes()(source)
    kernel = function(actual, "main_incore_0")
    dispatch = statements(function(actual, "main"))[0]
    spans = {
        kernel.span,
        kernel.params_[0].span,
        statements(kernel)[-1].span,
        dispatch.span,
        dispatch.value.span,
    }
    assert spans == {scope.span}
