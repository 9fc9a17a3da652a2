"""ConvertToSSA: versions, what loops carry and branches merge, and what is renamed along."""

from __future__ import annotations

import pytest

import pypto
from pypto import ir, passes
from tests.passes.dsl import function, program, statements
from tests.work import lines_run

S = ir.Span.unknown()
INDEX = ir.DataType.INDEX
SCALAR = ir.ScalarType(INDEX)
TENSOR = ir.TensorType([4, 4], ir.DataType.FP32)


def converted(source: ir.Program) -> ir.Program:
    return passes.convert_to_ssa()(source)


def ssa_errors(result: ir.Program) -> list[tuple[int, str]]:
    found = passes.PropertyVerifierRegistry.verify(passes.convert_to_ssa().get_produced_properties(), result)
    return [(each.error_code, each.message) for each in found]


def of_body(*stmts: ir.Stmt, params: list | None = None, **options: object) -> ir.Program:
    function_ = ir.Function("main", params or [], [], ir.flatten_stmts(list(stmts), S), S, **options)
    return ir.Program([function_], "P", S)


def main(text: str) -> ir.Function:
    """Convert a function given by its signature and body."""
    result = converted(program("@opaque\n" + text))
    assert ssa_errors(result) == []
    return function(result, "main")


def targets(owner: ir.Function | ir.Stmt) -> list[str]:
    return [s.var.name_hint for s in statements(owner) if isinstance(s, ir.AssignStmt)]


def the(kind: type, owner: ir.Function | ir.Stmt) -> ir.Stmt:
    return next(s for s in statements(owner) if isinstance(s, kind))


def hints(variables: list[ir.Var]) -> list[str]:
    return [var.name_hint for var in variables]


# --- names ---


def test_assignments_get_increasing_versions() -> None:
    result = main(
        """
def main(self, x: T(4, 4)) -> T(4, 4):
    y = x
    y = pl.add(y, y)
    return y
"""
    )
    assert hints(result.params) == ["x__ssa_v0"]
    assert targets(result) == ["y__ssa_v0", "y__ssa_v1"]


def test_a_reassigned_parameter_continues_its_versions() -> None:
    result = main(
        """
def main(self, x: T(4, 4)) -> T(4, 4):
    x = pl.add(x, x)
    return x
"""
    )
    assert targets(result) == ["x__ssa_v1"]


def test_a_loop_carries_what_it_assigns_and_numbers_it_in_order() -> None:
    result = main(
        """
def main(self, x: T(4, 4)) -> T(4, 4):
    acc = x
    for i in pl.range(10):
        acc = pl.add(acc, x)
    for i in pl.range(10):
        acc = pl.mul(acc, x)
    return acc
"""
    )
    first, second = (s for s in statements(result) if isinstance(s, ir.ForStmt))
    assert first.loop_var is not second.loop_var
    assert first.loop_var.name_hint == second.loop_var.name_hint == "i__idx_v0"
    assert (hints(first.iter_args), hints(first.return_vars)) == (["acc__iter_v1"], ["acc__rv_v2"])
    assert targets(first.body) == ["acc__ssa_v3"]
    assert (hints(second.iter_args), hints(second.return_vars)) == (["acc__iter_v4"], ["acc__rv_v5"])
    assert targets(second.body) == ["acc__ssa_v6"]
    assert first.iter_args[0].initValue.name_hint == "acc__ssa_v0"


def test_a_parameter_that_a_loop_stores_into_is_carried() -> None:
    result = function(
        converted(
            program(
                """
@incore
def main(self, x: T(4, 4), o: pl.Out[T(4, 4)]) -> T(4, 4):
    for i in pl.range(4):
        t = pl.load(x, [0, 0], [4, 4])
        o = pl.store(t, [0, 0], o)
    return o
"""
            )
        ),
        "main",
    )
    loop = the(ir.ForStmt, result)
    assert (hints(loop.iter_args), hints(loop.return_vars)) == (["o__iter_v1"], ["o__rv_v2"])
    assert targets(loop.body) == ["t__ssa_v0", "o__ssa_v3"]


def test_a_branch_in_a_loop_merges_with_the_carried_value() -> None:
    result = main(
        """
def main(self, x: T(4, 4), n: I) -> T(4, 4):
    y = x
    for i in pl.range(4):
        if i > n:
            if i > 2:
                y = pl.add(y, x)
    return y
"""
    )
    loop = the(ir.ForStmt, result)
    outer = the(ir.IfStmt, loop.body)
    inner = the(ir.IfStmt, outer.then_body)
    assert (hints(inner.return_vars), hints(outer.return_vars)) == (["y__phi_v4"], ["y__phi_v5"])
    assert hints(inner.else_body.value) == hints(outer.else_body.value) == ["y__iter_v1"]
    assert hints(ir.get_last_yield_stmt(loop.body).value) == ["y__phi_v5"]


def test_a_branch_without_else_merges_with_the_old_version() -> None:
    result = main(
        """
def main(self, x: T(4, 4), n: I) -> T(4, 4):
    y = x
    if n > 3:
        y = pl.add(x, x)
    return y
"""
    )
    branch = the(ir.IfStmt, result)
    assert targets(branch.then_body) == ["y__ssa_v1"] and hints(branch.return_vars) == ["y__phi_v2"]
    assert isinstance(branch.else_body, ir.YieldStmt)
    assert hints(branch.else_body.value) == ["y__ssa_v0"]


def test_a_variable_defined_in_both_branches_is_merged() -> None:
    result = main(
        """
def main(self, a: T(4, 4), b: T(4, 4), n: I) -> T(4, 4):
    if n > 3:
        z = a
    else:
        z = b
    return z
"""
    )
    branch = the(ir.IfStmt, result)
    assert targets(branch.then_body) == ["z__ssa_v0"] and targets(branch.else_body) == ["z__ssa_v1"]
    assert hints(branch.return_vars) == ["z__phi_v2"]


def test_an_inlined_local_keeps_its_name_as_the_base() -> None:
    var = ir.Var("t_inline0", SCALAR, S)
    result = converted(of_body(ir.AssignStmt(var, ir.ConstInt(1, INDEX, S), S)))
    assert targets(function(result, "main")) == ["t_inline0__ssa_v0"]


def test_the_reserved_delimiter_in_a_name_is_rejected() -> None:
    var = ir.Var("my__var", SCALAR, S)
    with pytest.raises(ValueError, match="cannot contain reserved delimiter '__': 'my__var'"):
        converted(of_body(ir.AssignStmt(var, ir.ConstInt(1, INDEX, S), S)))


# --- what a loop carries ---


def test_carried_values_are_ordered_by_name_and_a_dead_one_is_carried_too() -> None:
    result = main(
        """
def main(self, n: I) -> I:
    b = n
    a = n
    dead = n
    for i in pl.range(4):
        b = b + 1
        dead = i
        a = a + b
    return a
"""
    )
    loop = the(ir.ForStmt, result)
    assert hints(loop.iter_args) == ["a__iter_v1", "b__iter_v1", "dead__iter_v1"]


def test_a_loop_local_variable_is_not_carried() -> None:
    result = main(
        """
def main(self, n: I) -> I:
    a = n
    for i in pl.range(4):
        t = a + i
        a = t * 2
    for j in pl.range(4):
        t = a + j
        a = t * 3
    return a
"""
    )
    loops = [s for s in statements(result) if isinstance(s, ir.ForStmt)]
    assert [hints(loop.iter_args) for loop in loops] == [["a__iter_v1"], ["a__iter_v4"]]


def test_the_condition_of_a_while_reads_the_carried_values() -> None:
    w, cond = ir.Var("w", SCALAR, S), ir.ConstInt(0, INDEX, S)
    body = ir.AssignStmt(w, ir.sub(w, ir.ConstInt(1, INDEX, S)), S)
    start = ir.AssignStmt(w, ir.ConstInt(5, INDEX, S), S)
    result = converted(of_body(start, ir.WhileStmt(ir.gt(w, cond), [], body, [], S)))
    loop = the(ir.WhileStmt, function(result, "main"))
    assert loop.condition.left is loop.iter_args[0]


def test_existing_carried_values_come_first_and_keep_their_names() -> None:
    acc, x, out = (
        ir.IterArg("acc", SCALAR, ir.ConstInt(0, INDEX, S), S),
        ir.Var("x", SCALAR, S),
        ir.Var("out", SCALAR, S),
    )
    i = ir.Var("i", SCALAR, S)
    body = ir.SeqStmts([ir.AssignStmt(x, ir.add(x, i), S), ir.YieldStmt([ir.add(acc, x)], S)], S)
    bounds = [ir.ConstInt(value, INDEX, S) for value in (0, 4, 1)]
    loop = ir.ForStmt(i, *bounds, [acc], body, [out], S)
    result = converted(of_body(ir.AssignStmt(x, bounds[0], S), loop, ir.ReturnStmt([out, x], S)))
    new = the(ir.ForStmt, function(result, "main"))
    assert hints(new.iter_args) == ["acc", "x__iter_v1"] and hints(new.return_vars) == ["out", "x__rv_v2"]
    assert len(ir.get_last_yield_stmt(new.body).value) == 2
    assert ssa_errors(result) == []


def test_escaping_values_follow_the_carried_ones_each_ordered_by_name() -> None:
    acc, out = ir.IterArg("acc", SCALAR, ir.ConstInt(0, INDEX, S), S), ir.Var("out", SCALAR, S)
    n, i, a, b, y, z = (ir.Var(name, SCALAR, S) for name in ("n", "i", "a", "b", "y", "z"))
    bounds = [ir.ConstInt(value, INDEX, S) for value in (0, 4, 1)]
    new = [ir.AssignStmt(var, ir.add(i, n), S) for var in (z, y)]
    old = [ir.AssignStmt(var, ir.add(var, i), S) for var in (b, a)]
    body = ir.SeqStmts([*new, *old, ir.YieldStmt([ir.add(acc, i)], S)], S)
    loop = ir.ForStmt(i, *bounds, [acc], body, [out], S)
    starts = [ir.AssignStmt(var, n, S) for var in (b, a)]
    result = converted(of_body(*starts, loop, ir.ReturnStmt([out, z, y, a, b], S), params=[n]))
    carried = the(ir.ForStmt, function(result, "main"))
    assert hints(carried.iter_args) == ["acc", "a__iter_v1", "b__iter_v1", "y__iter_v0", "z__iter_v0"]
    assert hints(carried.return_vars) == ["out", "a__rv_v2", "b__rv_v2", "y__rv_v1", "z__rv_v1"]
    assert hints(ir.get_last_yield_stmt(carried.body).value[1:]) == [
        "a__ssa_v3",
        "b__ssa_v3",
        "y__ssa_v2",
        "z__ssa_v2",
    ]
    assert ssa_errors(result) == []


def test_an_escaping_variable_starts_from_an_output_parameter_of_its_type() -> None:
    result = main(
        """
def main(self, x: T(4, 4), out: pl.Out[T(4, 4)]) -> T(4, 4):
    for i in pl.range(4):
        y = pl.add(x, x)
    z = pl.add(y, y)
    return z
"""
    )
    loop = the(ir.ForStmt, result)
    assert hints(loop.iter_args) == ["y__iter_v0"]
    assert loop.iter_args[0].initValue is result.params[1]


def test_an_escaping_variable_starts_from_the_earliest_variable_of_its_type() -> None:
    result = main(
        """
def main(self, s: T(2, 2), x: T(4, 4), w: T(4, 4)) -> T(4, 4):
    for i in pl.range(4):
        y = pl.add(x, w)
    return y
"""
    )
    assert the(ir.ForStmt, result).iter_args[0].initValue is result.params[1]


def test_an_escaping_variable_without_a_candidate_is_reported_as_undefined() -> None:
    y, i = ir.Var("y", TENSOR, S), ir.Var("i", SCALAR, S)
    make = ir.AssignStmt(y, ir.Call(ir.Op("tensor.create"), [], TENSOR, S), S)
    bounds = [ir.ConstInt(value, INDEX, S) for value in (0, 4, 1)]
    result = converted(of_body(ir.ForStmt(i, *bounds, [], make, [], S), ir.ReturnStmt([y], S)))
    assert (6, "Variable 'y' used outside its defining scope") in ssa_errors(result)


def test_a_variable_of_one_branch_only_is_reported_where_it_is_used() -> None:
    y, n = ir.Var("y", SCALAR, S), ir.Var("n", SCALAR, S)
    branch = ir.IfStmt(ir.gt(n, n), ir.AssignStmt(y, n, S), None, [], S)
    result = converted(of_body(branch, ir.ReturnStmt([y], S), params=[n]))
    assert [code for code, _ in ssa_errors(result)] == [6]


def test_a_loop_in_a_branch_promotes_a_variable_used_after_the_branch() -> None:
    result = main(
        """
def main(self, n: I) -> I:
    if n > 2:
        a = n
        for i in pl.range(4):
            y = a + i
    else:
        y = n
    return y
"""
    )
    branch = the(ir.IfStmt, result)
    assert hints(the(ir.ForStmt, branch.then_body).iter_args) == ["y__iter_v0"]


# --- scopes ---


def test_a_loop_in_a_scope_does_not_promote_for_uses_after_the_scope() -> None:
    y, i = ir.Var("y", SCALAR, S), ir.Var("i", SCALAR, S)
    n = ir.Var("n", SCALAR, S)
    bounds = [ir.ConstInt(value, INDEX, S) for value in (0, 4, 1)]
    loop = ir.ForStmt(i, *bounds, [], ir.AssignStmt(y, ir.add(n, i), S), [], S)
    for scope in (ir.InCoreScopeStmt(body=loop, span=S), ir.ClusterScopeStmt(body=loop, span=S)):
        result = converted(of_body(scope, ir.ReturnStmt([y], S), params=[n]))
        assert the(type(scope), function(result, "main")).body.iter_args == []
    transparent = ir.RuntimeScopeStmt(manual=False, body=loop, span=S)
    result = converted(of_body(transparent, ir.ReturnStmt([y], S), params=[n]))
    assert len(the(ir.RuntimeScopeStmt, function(result, "main")).body.iter_args) == 1


def test_a_loop_in_a_scope_carries_an_outer_variable() -> None:
    result = main(
        """
def main(self, x: T(4, 4)) -> T(4, 4):
    y = x
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.range(4):
            y = pl.add(y, x)
    return y
"""
    )
    scope = the(ir.InCoreScopeStmt, result)
    assert hints(the(ir.ForStmt, scope.body).return_vars) == ["y__rv_v2"]
    assert statements(result)[-1].value[0].name_hint == "y__rv_v2"


def test_a_yield_stays_inside_a_transparent_scope() -> None:
    acc, i = ir.Var("acc", SCALAR, S), ir.Var("i", SCALAR, S)
    bounds = [ir.ConstInt(value, INDEX, S) for value in (0, 4, 1)]
    step = ir.AssignStmt(acc, ir.add(acc, i), S)
    loop = ir.ForStmt(i, *bounds, [], ir.RuntimeScopeStmt(manual=False, body=step, span=S), [], S)
    result = converted(of_body(ir.AssignStmt(acc, bounds[0], S), loop, ir.ReturnStmt([acc], S)))
    body = the(ir.ForStmt, function(result, "main")).body
    assert isinstance(body, ir.RuntimeScopeStmt) and isinstance(body.body.stmts[-1], ir.YieldStmt)
    assert ssa_errors(result) == []


# --- what is renamed along ---


def test_types_that_mention_a_renamed_scalar_are_renamed() -> None:
    n, m, x, y = *(ir.Var(name, SCALAR, S) for name in "nm"), *(ir.Var(name, TENSOR, S) for name in "xy")
    type_ = ir.TensorType([n, 4], ir.DataType.FP32, None, ir.TensorView([], ir.TensorLayout.ND, [m, 4]))
    value = ir.Call(ir.Op("tensor.slice"), [x], type_, S)
    alias = ir.Var("z", TENSOR, S)
    result = function(
        converted(of_body(ir.AssignStmt(y, value, S), ir.AssignStmt(alias, y, S), params=[n, m, x])), "main"
    )
    first, second = statements(result)
    assert first.value.type.shape[0] is result.params[0]
    assert first.var.type.shape[0] is result.params[0]
    assert first.var.type.tensor_view.valid_shape[0] is result.params[1]
    assert second.var.type is first.var.type


def test_attributes_deps_and_launch_fields_are_renamed() -> None:
    x, tid, n = (
        ir.Var("x", TENSOR, S),
        ir.Var("t", ir.ScalarType(ir.DataType.TASK_ID), S),
        ir.Var("n", SCALAR, S),
    )
    tuple_ = ir.TupleType([ir.ScalarType(ir.DataType.TASK_ID)])
    submit = ir.Submit(ir.GlobalVar("k"), [x], [tid], {}, {"dump_vars": [x]}, tuple_, S, core_num=n)
    scope = ir.SpmdScopeStmt(n, body=ir.EvalStmt(submit, S), span=S).replace(
        attrs={"manual_dep_edges": [tid]}
    )
    result = function(converted(of_body(scope, params=[x, tid, n])), "main")
    new_x, new_tid, new_n = result.params
    new = the(ir.SpmdScopeStmt, result)
    assert new.core_num is new_n and new.attrs["manual_dep_edges"][0] is new_tid
    call = new.body.expr
    assert (call.args[0], call.deps[0], call.core_num) == (new_x, new_tid, new_n)
    assert call.attrs["dump_vars"][0] is new_x


def test_function_attributes_follow_the_parameters() -> None:
    n = ir.Var("n", SCALAR, S)
    result = function(
        converted(
            of_body(ir.ReturnStmt([], S), params=[n], type=ir.FunctionType.Spmd, attrs={"core_num": n})
        ),
        "main",
    )
    assert result.attrs["core_num"] is result.params[0]


# --- limits ---


def test_a_yield_before_the_end_is_an_internal_error() -> None:
    with pytest.raises(pypto.InternalError, match="YieldStmt at position 0"):
        converted(of_body(ir.YieldStmt([], S), ir.ReturnStmt([], S)))


def test_a_worker_of_the_host_is_left_alone() -> None:
    x = ir.Var("x", SCALAR, S)
    source = of_body(ir.ReturnStmt([x], S), params=[x], level=ir.Level.HOST, role=ir.Role.SubWorker)
    assert converted(source) is source
    changed = of_body(ir.ReturnStmt([x], S), params=[x], level=ir.Level.HOST, role=ir.Role.Orchestrator)
    assert converted(changed) is not changed


def test_phis_on_an_if_that_already_returns_values_follow_them() -> None:
    r, y, n = ir.Var("r", SCALAR, S), ir.Var("y", SCALAR, S), ir.Var("n", SCALAR, S)
    then = ir.SeqStmts([ir.AssignStmt(y, ir.add(y, n), S), ir.YieldStmt([n], S)], S)
    branch = ir.IfStmt(ir.gt(n, n), then, ir.YieldStmt([y], S), [r], S)
    result = converted(of_body(ir.AssignStmt(y, n, S), branch, ir.ReturnStmt([r, y], S), params=[n]))
    new = the(ir.IfStmt, function(result, "main"))
    assert hints(new.return_vars) == ["r__rv_v0", "y__phi_v2"]
    assert ssa_errors(result) == []
    assert all(len(ir.get_last_yield_stmt(body).value) == 2 for body in (new.then_body, new.else_body))


def test_conversion_is_linear_in_loops_and_branches() -> None:
    """Many loops and branches over many live variables: nothing is copied per region."""

    def work(count: int) -> int:
        variables = [ir.Var(f"v{k}", SCALAR, S) for k in range(count)]
        zero, n = ir.ConstInt(0, INDEX, S), ir.Var("n", SCALAR, S)
        stmts: list[ir.Stmt] = [ir.AssignStmt(var, zero, S) for var in variables]
        for k, var in enumerate(variables):
            step = ir.AssignStmt(var, ir.add(var, n), S)
            fresh = ir.AssignStmt(ir.Var(f"e{k}", SCALAR, S), n, S)
            i = ir.Var("i", SCALAR, S)
            stmts.append(ir.ForStmt(i, zero, n, zero, [], ir.SeqStmts([step, fresh], S), [], S))
            stmts.append(ir.IfStmt(ir.gt(var, n), step, None, [], S))
        source = of_body(*stmts, params=[n])
        return lines_run(lambda: converted(source))

    assert work(400) < 4 * 1.1 * work(100)
