from __future__ import annotations

import pytest

from pypto import ir, passes
from tests.passes.dsl import assert_round_trips, assert_same, assert_ssa, function, program, run, statements


def hierarchy(methods: str) -> ir.Program:
    result = run(program(methods), passes.outline_hierarchy_scopes)
    assert_ssa(result)
    assert_round_trips(result)
    assert passes.outline_hierarchy_scopes()(result) is result
    return result


def test_a_scope_becomes_an_opaque_function_with_its_level_and_role():
    actual = hierarchy(
        """
        @opaque
        def main(self, x: T(64)) -> T(64):
            with pl.at(level=pl.Level.HOST, role=pl.Role.Orchestrator):
                y = pl.add(x, x)
            return y
        """
    )
    expected = program(
        """
        @opaque(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def main_host_orch_0(self, x: T(64)) -> T(64):
            y = pl.add(x, x)
            return y
        @opaque
        def main(self, x: T(64)) -> T(64):
            y = self.main_host_orch_0(x)
            return y
        """
    )
    assert_same(actual, expected)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ("level=pl.Level.GLOBAL", "main_global_0"),
        ("level=pl.Level.POD", "main_cluster0_0"),
        ("level=pl.Level.NODE", "main_host_0"),
        ("level=pl.Level.UMA", "main_chip_0"),
        ("level=pl.Level.L2CACHE", "main_chip_die_0"),
        ("level=pl.Level.CLOS1", "main_cluster1_0"),
        ("level=pl.Level.CLOS2", "main_cluster2_0"),
        ("level=pl.Level.AIV", "main_aiv_0"),
        ("level=pl.Level.AIC", "main_aic_0"),
        ("level=pl.Level.PROCESSOR", "main_chip_0"),
        ("level=pl.Level.CHIP_DIE", "main_chip_die_0"),
        ("level=pl.Level.CHIP, role=pl.Role.SubWorker", "main_chip_sub_worker_0"),
        ("level=pl.Level.CHIP, role=pl.Role.Orchestrator", "main_chip_orch_0"),
    ],
)
def test_words_for_levels_and_roles(options: str, name: str):
    actual = hierarchy(
        f"""
        @opaque
        def main(self, x: T(64)) -> T(64):
            with pl.at({options}):
                y = pl.add(x, x)
            return y
        """
    )
    assert sorted(actual.functions_) == ["main", name]
    assert function(actual, "main").func_type is ir.FunctionType.Opaque


def test_the_counter_counts_scopes_of_all_levels():
    actual = hierarchy(
        """
        @opaque
        def main(self, x: T(64)) -> T(64):
            with pl.at(level=pl.Level.HOST):
                x = pl.add(x, x)
            with pl.at(level=pl.Level.GLOBAL):
                x = pl.add(x, x)
            return x
        """
    )
    assert sorted(actual.functions_) == ["main", "main_global_1", "main_host_0"]


def test_nested_scopes_have_chained_names_and_the_inner_call_is_in_the_outer_function():
    actual = hierarchy(
        """
        @opaque
        def main(self, x: T(64)) -> T(64):
            with pl.at(level=pl.Level.GLOBAL, role=pl.Role.Orchestrator):
                with pl.at(level=pl.Level.HOST, role=pl.Role.Orchestrator):
                    y = pl.add(x, x)
            return y
        """
    )
    outer = function(actual, "main_global_orch_0")
    assert statements(outer)[0].value.op.name == "main_global_orch_0_host_orch_0"
    assert statements(function(actual, "main"))[0].value.op.name == "main_global_orch_0"


def test_counters_restart_in_each_function():
    body = """
        @opaque
        def {name}(self, x: T(64)) -> T(64):
            with pl.at(level=pl.Level.HOST):
                x = pl.add(x, x)
            with pl.at(level=pl.Level.HOST):
                x = pl.add(x, x)
            return x
    """
    actual = hierarchy(body.format(name="f") + body.format(name="g"))
    assert sorted(actual.functions_) == ["f", "f_host_0", "f_host_1", "g", "g_host_0", "g_host_1"]


def test_scopes_of_other_kinds_and_other_functions_are_left_alone():
    source = run(
        program(
            """
            @opaque
            def main(self, x: T(64)) -> T(64):
                with pl.cluster():
                    with pl.at(level=pl.Level.CORE_GROUP):
                        y = pl.add(x, x)
                return y
            @orch
            def other(self, x: T(64)) -> T(64):
                with pl.at(level=pl.Level.HOST):
                    y = pl.add(x, x)
                return y
            """
        )
    )
    assert passes.outline_hierarchy_scopes()(source) is source


def test_task_ids_work_as_for_kernels():
    actual = hierarchy(
        """
        @opaque
        def main(self, x: T(64)) -> T(64):
            with pl.at(level=pl.Level.HOST, name_hint="first") as t1:
                y = pl.add(x, x)
            with pl.at(level=pl.Level.HOST, name_hint="second", deps=[t1]):
                z = pl.mul(y, x)
            return z
        """
    )
    values = [stmt.value for stmt in statements(function(actual, "main")) if isinstance(stmt, ir.AssignStmt)]
    first, second = (value for value in values if isinstance(value, ir.Submit))
    assert (first.op.name, second.op.name) == ("first", "second")
    assert second.deps_ == (statements(function(actual, "main"))[2].var,)
    assert "task_invalid" not in actual.as_python()


def test_a_task_id_from_outside_becomes_a_parameter():
    source = program(
        """
        @opaque
        def main(self, x: T(64)) -> T(64):
            with pl.at(level=pl.Level.CORE_GROUP) as t0:
                a = pl.add(x, x)
            with pl.at(level=pl.Level.GLOBAL, role=pl.Role.Orchestrator):
                with pl.at(level=pl.Level.CORE_GROUP, deps=[t0]):
                    b = pl.mul(a, x)
            return b
        """
    )
    actual = run(source, passes.outline_hierarchy_scopes, passes.outline_incore_scopes)
    outer = function(actual, "main_global_orch_0")
    assert [param.name_hint.partition("__")[0] for param in outer.params_] == ["t0", "a", "x"]
    assert outer.func_type is ir.FunctionType.Orchestration
    (submit,) = (
        stmt.value
        for stmt in statements(outer)
        if isinstance(stmt, ir.AssignStmt) and isinstance(stmt.value, ir.Submit)
    )
    assert submit.deps_ == (outer.params_[0],)
    call = next(
        stmt.value
        for stmt in statements(function(actual, "main"))
        if isinstance(stmt, ir.AssignStmt) and isinstance(stmt.value, ir.Call)
    )
    assert call.op.name == "main_global_orch_0"


def test_the_result_of_a_store_that_is_needed_later_leaves_as_the_parameter():
    actual = hierarchy(
        """
        @opaque
        def main(self, x: T(64), o: pl.Out[T(64)]) -> T(64):
            with pl.at(level=pl.Level.HOST):
                t = pl.load(x, [0], [64])
                o = pl.store(t, [0], o)
            return o
        """
    )
    callee = function(actual, "main_host_0")
    assert statements(callee)[-1].value_ == (callee.params_[1],)
    main = statements(function(actual, "main"))
    assert main[-1].value_[0] is main[0].var


def test_a_store_without_a_needed_result_leaves_nothing():
    actual = hierarchy(
        """
        @opaque
        def main(self, x: T(64), o: pl.InOut[T(64)]) -> T(64):
            with pl.at(level=pl.Level.HOST):
                t = pl.load(x, [0], [64])
                pl.store(t, [0], o)
                y = pl.add(x, x)
            return y
        """
    )
    callee = function(actual, "main_host_0")
    assert len(callee.return_types_) == 1
    assert callee.param_directions_ == (ir.ParamDirection.In, ir.ParamDirection.In)


def test_declared_properties():
    found = passes.outline_hierarchy_scopes()
    assert found.get_name() == "OutlineHierarchyScopes"
    assert found.get_required_properties().contains(passes.IRProperty.SSAForm)
    for made in ("SSAForm", "HierarchyOutlined", "OrchestrationReferencesResolved"):
        assert found.get_produced_properties().contains(passes.IRProperty[made])


def test_a_result_that_a_scalar_parameter_shapes_reads_back_in_the_terms_of_the_caller():
    result = hierarchy(  # compares with what its text parses to
        """
        @opaque
        def main(self, x: T(8, 16), n: I):
            with pl.at(level=pl.Level.GLOBAL):
                part = pl.slice(x, [8, 16], [0, 0], valid_shape=[n + 2, 16])
                y = pl.sub(part, x)
            z = pl.add(part, x)
            return y, z
        """
    )
    assert len(function(result, "main_global_0").return_types) == 2


def test_a_loop_returns_what_it_computes_and_not_the_parameter():
    result = hierarchy(
        """
        @opaque
        def main(self, x: T(64)) -> T(64):
            with pl.at(level=pl.Level.HOST):
                for i in pl.range(3):
                    with pl.at(level=pl.Level.CORE_GROUP):
                        x = pl.add(x, x)
            return x
        """
    )
    callee = function(result, "main_host_0")
    loop, final = statements(callee)
    assert isinstance(loop, ir.ForStmt) and isinstance(final, ir.ReturnStmt)
    assert final.value[0] is loop.return_vars[0]
