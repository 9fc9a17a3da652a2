from __future__ import annotations

from pypto import ir, passes
from tests.passes.dsl import assert_round_trips, assert_same, assert_ssa, function, program, run, statements

In, Out, InOut = ir.ParamDirection.In, ir.ParamDirection.Out, ir.ParamDirection.InOut


def incore(methods: str, header: str = "", *, round_trips: bool = True) -> ir.Program:
    """The program after OutlineIncoreScopes.

    It is in SSA form, it prints and parses back, and a second run changes nothing.
    """
    result = run(program(methods, header), passes.outline_incore_scopes)
    assert_ssa(result)
    if round_trips:
        assert_round_trips(result)
    assert passes.outline_incore_scopes()(result) is result
    return result


def names(result: ir.Program) -> list[str]:
    return [name for name, found in result.functions_.items() if found.func_type is ir.FunctionType.InCore]


def params(found: ir.Function) -> list[str]:
    return [param.name_hint.partition("__")[0] for param in found.params_]


# ---- types of functions


def test_opaque_function_with_a_scope_becomes_orchestration():
    actual = incore(
        """
        @opaque
        def main(self, x: T(64)) -> T(64):
            with pl.at(level=pl.Level.CORE_GROUP):
                y = pl.add(x, x)
            return y
        """
    )
    expected = program(
        """
        @incore
        def main_incore_0(self, x: T(64)) -> T(64):
            y = pl.add(x, x)
            return y
        @orch
        def main(self, x: T(64)) -> T(64):
            y = self.main_incore_0(x)
            return y
        """
    )
    assert_same(actual, expected)


def test_functions_without_a_scope_are_the_same_objects():
    source = passes.convert_to_ssa()(
        program(
            """
            @opaque
            def plain(self, x: T(64)) -> T(64):
                y = pl.add(x, x)
                return y
            @incore
            def kernel(self, x: T(64)) -> T(64):
                y = pl.add(x, x)
                return y
            """
        )
    )
    assert passes.outline_incore_scopes()(source) is source


def test_graph_stays_graph_and_helpers_stay_opaque():
    actual = incore(
        """
        @graph
        def main(self, x: T(64)) -> T(64):
            with pl.at(level=pl.Level.CORE_GROUP):
                y = pl.add(x, x)
            return y
        @opaque
        def helper(self, x: T(64)) -> T(64):
            y = pl.mul(x, x)
            return y
        """
    )
    assert function(actual, "main").func_type is ir.FunctionType.Graph
    assert function(actual, "helper").func_type is ir.FunctionType.Opaque
    assert names(actual) == ["main_incore_0"]


def test_promotion_takes_level_and_role_of_an_orchestration():
    actual = incore(
        """
        @opaque(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def main(self, x: T(64)) -> T(64):
            with pl.at(level=pl.Level.CORE_GROUP):
                y = pl.add(x, x)
            return y
        """
    )
    main = function(actual, "main")
    assert (main.func_type, main.level) == (ir.FunctionType.Orchestration, ir.Level.CHIP)


# ---- captures


def test_parameters_come_in_the_order_of_first_reads():
    actual = incore(
        """
        @orch
        def main(self, x: T(64), y: T(64), z: T(64)) -> T(64):
            with pl.at(level=pl.Level.CORE_GROUP):
                a = pl.mul(z, y)
                b = pl.add(a, x)
            return b
        """
    )
    assert params(function(actual, "main_incore_0")) == ["z", "y", "x"]


def test_a_condition_is_read_before_its_branches():
    actual = incore(
        """
        @orch
        def main(self, x: T(64), o: pl.Out[T(64)], cond: B) -> T(64):
            with pl.at(level=pl.Level.CORE_GROUP):
                if cond:
                    t = pl.load(x, [0], [64])
                    pl.store(t, [0], o)
            return o
        """
    )
    assert params(function(actual, "main_incore_0")) == ["cond", "x", "o"]


def test_a_loop_reads_its_initial_values_before_its_bounds():
    actual = incore(
        """
        @orch
        def main(self, x: T(64), o: pl.Out[T(64)], n: I) -> T(64):
            with pl.at(level=pl.Level.CORE_GROUP):
                for i in pl.range(n):
                    t = pl.load(x, [i], [1])
                    o = pl.store(t, [i], o)
            return o
        """
    )
    assert params(function(actual, "main_incore_0")) == ["o", "n", "x"]


def test_a_carried_value_of_an_outer_loop_is_captured_and_its_initial_value_is_not():
    actual = incore(
        """
        @orch
        def main(self, x: T(128, 32), o: pl.Out[T(128, 32)]) -> T(128, 32):
            for r in pl.range(4):
                with pl.at(level=pl.Level.CORE_GROUP):
                    t = pl.load(x, [r * 32, 0], [32, 32])
                    o = pl.store(t, [r * 32, 0], o)
            return o
        """
    )
    expected = program(
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
        """
    )
    assert_same(actual, expected)


def test_a_carried_value_of_a_while_loop_is_captured_in_the_same_way():
    actual = incore(
        """
        @orch
        def main(self, x: T(64), n: I) -> T(64):
            i: I = 0
            while i < n:
                with pl.at(level=pl.Level.CORE_GROUP):
                    x = pl.add(x, x)
                i = i + 1
            return x
        """
    )
    assert params(function(actual, "main_incore_0")) == ["x"]
    (loop,) = (s for s in statements(function(actual, "main")) if isinstance(s, ir.WhileStmt))
    dispatch = statements(loop.body)[0].value
    carried = next(arg for arg in loop.iter_args_ if arg.type == dispatch.type)
    assert dispatch.args_ == (carried,)
    assert type(function(actual, "main_incore_0").params_[0]) is ir.Var


def test_a_symbol_that_occurs_in_types_only_is_not_captured():
    actual = incore(
        """
        @orch
        def main(self, x: pl.Tensor[[M, 32], pl.FP32]) -> pl.Tensor[[M, 32], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                y = pl.add(x, x)
            return y
        """,
        header='M = pl.dynamic("M")',
    )
    main, kernel = function(actual, "main"), function(actual, "main_incore_0")
    assert params(kernel) == ["x"]
    assert kernel.params_[0].type.shape_[0] is main.params_[0].type.shape_[0]


def test_a_captured_scalar_that_is_also_an_extent_renames_the_types_inside_and_not_those_at_the_call():
    actual = incore(
        """
        @orch
        def main(self, x: T(64), n: I) -> T(64):
            buf = pl.create_tensor([n, 32], dtype=pl.FP32)
            with pl.at(level=pl.Level.CORE_GROUP):
                y = pl.mul(buf, buf)
                z = pl.create_tensor([n, 32], dtype=pl.FP32)
                o = pl.assemble(z, y, [0, 0])
            w = pl.add(o, o)
            return x
        """,
        round_trips=False,  # a result type that names a scalar parameter has no printed form
    )
    main, kernel = function(actual, "main"), function(actual, "main_incore_0")
    names_of = dict(zip(params(kernel), kernel.params_, strict=True))
    assert names_of["buf"].type.shape_[0] is names_of["n"]
    assert kernel.return_types_[0].shape_[0] is names_of["n"]
    call = next(
        s for s in statements(main) if isinstance(s, ir.AssignStmt) and s.value.op.name == kernel.name
    )
    assert call.value.type.shape_[0] is main.params_[1]
    assert call.var.type.shape_[0] is main.params_[1]


def test_a_value_computed_in_the_scope_leaves_it_with_the_tensor_that_it_shapes():
    source = program(
        """
        @orch
        def main(self, k: I) -> I:
            with pl.at(level=pl.Level.CORE_GROUP):
                n = k * 2
                z = pl.create_tensor([n, 32], dtype=pl.FP32)
            w = pl.tensor.dim(z, 1)
            return w
        """
    )
    actual = run(source, passes.outline_incore_scopes)
    kernel = function(actual, "main_incore_0")
    assert len(kernel.return_types_) == 2
    assert isinstance(kernel.return_types_[0], ir.ScalarType)


# ---- outputs


def test_two_regular_outputs_are_unpacked_from_one_tuple():
    actual = incore(
        """
        @orch
        def main(self, x: T(64)) -> tuple[T(64), T(64)]:
            with pl.at(level=pl.Level.CORE_GROUP):
                a = pl.add(x, x)
                b = pl.mul(x, x)
            return a, b
        """
    )
    first, *rest = statements(function(actual, "main"))
    assert first.var.name_hint == "ret__tmp_v0"
    assert [stmt.value.index for stmt in rest[:2]] == [0, 1]


def test_a_value_that_nothing_needs_later_stays_inside():
    actual = incore(
        """
        @orch
        def main(self, x: T(64)) -> T(64):
            with pl.at(level=pl.Level.CORE_GROUP):
                unused = pl.mul(x, x)
                y = pl.add(x, x)
            return y
        """
    )
    assert len(function(actual, "main_incore_0").return_types_) == 1


def test_a_scope_in_one_branch_is_one_assignment_in_that_branch():
    actual = incore(
        """
        @orch
        def main(self, x: T(64), cond: B) -> T(64):
            y = pl.mul(x, x)
            if cond:
                with pl.at(level=pl.Level.CORE_GROUP):
                    y = pl.add(x, x)
            return y
        """
    )
    main = function(actual, "main")
    branch = next(stmt for stmt in statements(main) if isinstance(stmt, ir.IfStmt))
    assigned = [stmt for stmt in statements(branch.then_body) if isinstance(stmt, ir.AssignStmt)]
    assert [stmt.value.op.name for stmt in assigned] == ["main_incore_0"]


def test_an_unbound_store_becomes_an_out_parameter_that_is_returned_and_renamed_in_the_caller():
    actual = incore(
        """
        @orch
        def main(self, x: T(64), o: pl.Out[T(64)]) -> T(64):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [0], [64])
                pl.store(t, [0], o)
            return o
        """
    )
    expected = program(
        """
        @incore
        def main_incore_0(self, x: T(64), o: pl.Out[T(64)]) -> T(64):
            t = pl.load(x, [0], [64])
            o_s = pl.store(t, [0], o)
            return o
        @orch
        def main(self, x: T(64), o: pl.Out[T(64)]) -> T(64):
            o_1 = self.main_incore_0(x, o)
            return o_1
        """
    )
    assert_same(actual, expected)


def test_three_store_targets_leave_in_exact_reverse_order():
    actual = incore(
        """
        @orch
        def main(self, x: T(64), a: pl.Out[T(64)], b: pl.Out[T(64)], c: pl.Out[T(64)]) -> T(64):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [0], [64])
                pl.store(t, [0], a)
                pl.store(t, [0], b)
                pl.store(t, [0], c)
                pl.store(t, [0], a)
            return a
        """
    )
    kernel = function(actual, "main_incore_0")
    returned = statements(kernel)[-1]
    assert [value.name_hint.partition("__")[0] for value in returned.value_] == ["c", "b", "a"]


def test_chained_stores_give_the_last_result_and_the_target_both_as_the_parameter():
    actual = incore(
        """
        @orch
        def main(self, x: T(64, 32), o: pl.Out[T(64, 32)]) -> T(64, 32):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [0, 0], [32, 32])
                o = pl.store(t, [0, 0], o)
                o = pl.store(t, [32, 0], o)
            return o
        """
    )
    expected = program(
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
        """
    )
    assert_same(actual, expected)


def test_a_conditional_store_returns_the_merged_value_and_the_target():
    actual = incore(
        """
        @orch
        def main(self, x: T(32), o: pl.InOut[T(32)], flag: B) -> T(32):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [0], [32])
                if flag:
                    o = pl.store(t, [0], o)
            return o
        """
    )
    expected = program(
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
        def main(self, x: T(32), o: pl.InOut[T(32)], flag: B) -> T(32):
            ret = self.main_incore_0(x, flag, o)
            merged = ret[0]
            o_2 = ret[1]
            return merged
        """
    )
    assert_same(actual, expected)


def test_four_sibling_scopes_that_store_to_one_tensor_thread_it_through():
    actual = incore(
        """
        @orch
        def main(self, x: T(128), o: pl.Out[T(128)]) -> T(128):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [0], [32])
                pl.store(t, [0], o)
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [32], [32])
                pl.store(t, [32], o)
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [64], [32])
                pl.store(t, [64], o)
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [96], [32])
                pl.store(t, [96], o)
            return o
        """
    )
    assert len(actual.functions_) == 5
    *calls, returned = statements(function(actual, "main"))
    assert [call.value.args_[1] for call in calls[1:]] == [call.var for call in calls[:-1]]
    assert returned.value_[0] is calls[-1].var
    assert len({call.var.name_hint for call in calls}) == 4


def test_pre_ssa_stores_to_one_variable_bind_different_results():
    source = program(
        """
        @orch
        def main(self, a: T(64), c: pl.Out[T(64)]) -> T(64):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(a, [0], [32])
                c = pl.store(t, [0], c)
                c = pl.store(t, [32], c)
            return c
        """
    )
    actual = passes.outline_incore_scopes()(source)
    kernel = function(actual, "main_incore_0")
    assert params(kernel) == ["a", "c"]
    assert kernel.param_directions_ == (In, Out)
    assigned = [stmt.var for stmt in statements(kernel) if isinstance(stmt, ir.AssignStmt)]
    assert kernel.params_[1] not in set(assigned)
    assert len(set(assigned)) == 3
    assert_round_trips(actual)


def test_a_loop_over_a_captured_tensor_returns_the_parameter():
    actual = incore(
        """
        @orch
        def main(self, x: T(64), n: I) -> T(64):
            with pl.at(level=pl.Level.CORE_GROUP):
                for i in pl.range(n):
                    x = pl.add(x, x)
            return x
        """
    )
    kernel = function(actual, "main_incore_0")
    assert statements(kernel)[-1].value_[0] is kernel.params_[0]
    assert kernel.param_directions_[0] is In


def test_a_last_scope_of_a_function_without_results_exports_its_top_level_tensors_only():
    actual = incore(
        """
        @orch
        def main(self, x: T(64), n: I):
            with pl.at(level=pl.Level.CORE_GROUP):
                k = n + 1
                t = pl.load(x, [0], [64])
                y = pl.add(x, x)
                for i in pl.range(n):
                    z = pl.mul(y, y)
        """
    )
    returned = statements(function(actual, "main_incore_0"))[-1]
    assert [value.name_hint.partition("__")[0] for value in returned.value_] == ["y"]


def test_a_last_scope_inside_an_spmd_exports_store_targets_only():
    actual = incore(
        """
        @orch
        def main(self, x: T(128, 32), o: pl.Out[T(128, 32)]):
            for b in pl.spmd(4):
                t = pl.load(x, [b * 32, 0], [32, 32])
                y = pl.mul(x, x)
                pl.store(t, [b * 32, 0], o)
        """
    )
    kernel = function(actual, "main_incore_0")
    assert statements(kernel)[-1].value_ == (kernel.params_[-1],)


def test_a_tensor_created_and_stored_inside_does_not_leave_twice():
    actual = incore(
        """
        @orch
        def main(self, x: T(32)) -> T(32):
            for i, (acc,) in pl.range(4, init_values=(x,)):
                with pl.at(level=pl.Level.CORE_GROUP):
                    t = pl.load(acc, [0], [32])
                    b = pl.create_tensor([32], dtype=pl.FP32)
                    b1 = pl.store(t, [0], b)
                out = pl.yield_(b1)
            return out
        """
    )
    assert len(function(actual, "main_incore_0").return_types_) == 1


# ---- renames across control flow


def test_a_rename_made_in_a_branch_ends_with_it():
    actual = incore(
        """
        @orch
        def main(self, x: T(64), o: pl.InOut[T(64)], cond: B) -> T(64):
            if cond:
                with pl.at(level=pl.Level.CORE_GROUP):
                    t = pl.load(x, [0], [64])
                    pl.store(t, [0], o)
                y = pl.add(o, o)
            else:
                y = pl.mul(o, o)
            z = pl.add(y, o)
            return o
        """
    )
    main = function(actual, "main")
    branch, after, returned = statements(main)
    o = main.params_[1]
    assert statements(branch.then_body)[1].value.args_[0] is statements(branch.then_body)[0].var
    assert statements(branch.else_body)[0].value.args_[0] is o
    assert after.value.args_[1] is o
    assert returned.value_[0] is o


def test_a_rename_made_in_a_loop_body_ends_with_it():
    actual = incore(
        """
        @orch
        def main(self, x: T(64), o: pl.InOut[T(64)]) -> T(64):
            for i in pl.range(4):
                with pl.at(level=pl.Level.CORE_GROUP):
                    t = pl.load(x, [0], [64])
                    pl.store(t, [0], o)
            return o
        """
    )
    main = function(actual, "main")
    assert statements(main)[-1].value_[0] is main.params_[1]


def test_a_rename_made_in_a_manual_scope_outlives_it():
    actual = incore(
        """
        @orch
        def main(self, x: T(64), o: pl.InOut[T(64)]) -> T(64):
            with pl.manual_scope():
                with pl.at(level=pl.Level.CORE_GROUP):
                    t = pl.load(x, [0], [64])
                    pl.store(t, [0], o)
            return o
        """
    )
    scope, returned = statements(function(actual, "main"))
    assert returned.value_[0] is statements(scope.body)[0].var


def test_a_loop_after_a_store_starts_from_the_new_state():
    actual = incore(
        """
        @orch
        def main(self, x: T(64), o: pl.InOut[T(64)]) -> T(64):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [0], [64])
                pl.store(t, [0], o)
            for i in pl.range(4):
                with pl.at(level=pl.Level.CORE_GROUP):
                    u = pl.load(x, [0], [32])
                    o = pl.store(u, [0], o)
            return o
        """
    )
    first, loop, returned = statements(function(actual, "main"))
    assert loop.iter_args_[0].initValue is first.var
    assert statements(loop.body)[0].value.args_[1] is loop.iter_args_[0]
    assert returned.value_[0] is loop.return_vars_[0]


# ---- comments


def test_comments_above_a_scope_move_to_its_dispatch():
    actual = incore(
        """
        @orch
        def main(self, x: T(64)) -> T(64):
            # first the sum
            with pl.at(level=pl.Level.CORE_GROUP):
                y = pl.add(x, x)
            return y
        """
    )
    assert statements(function(actual, "main"))[0].leading_comments == ["first the sum"]


def test_a_symbol_that_is_captured_after_a_tensor_that_it_shapes_reads_back():
    actual = run(
        program(
            """
            @orch
            def main(self, x: T(M, 32), o: pl.InOut[T(M, 32)]) -> T(M, 32):
                with pl.at(level=pl.Level.CORE_GROUP):
                    for i in pl.range(M // 4):
                        t = pl.load(x, [i * 4, 0], [4, 32])
                        o = pl.store(t, [i * 4, 0], o)
                return o
            """,
            header='M = pl.dynamic("M")',
        ),
        passes.outline_incore_scopes,
    )
    kernel = function(actual, "main_incore_0")
    assert kernel.params[0].type.shape[0] is kernel.params[1]
    assert_round_trips(actual)
