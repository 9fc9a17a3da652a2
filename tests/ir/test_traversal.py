from __future__ import annotations

import pytest

import pypto
from pypto import ir
from pypto.ir.walk import vars_in, walk, walk_stmts

from .nodes import S, assign, call, const, function, loop, seq, tensor, var


def program(*stmts: ir.Stmt) -> ir.Program:
    return ir.Program([function([tensor(4)], *stmts)], "P", S)


def test_identity_mutation_returns_the_same_program():
    before = program(assign(var(), var() + 1), loop(seq(ir.BreakStmt(S))))
    assert ir.IRMutator().visit_program(before) is before


def test_overrides_see_nested_nodes_of_their_kind():
    class Adds(ir.IRVisitor):
        count = 0

        def visit_add(self, op):
            self.count += 1
            super().visit_add(op)

    adds = Adds()
    adds.visit_expr(var() + (var() + (var() + 1)))
    assert adds.count == 3


def test_visitor_order_of_a_loop_and_its_initial_values():
    init, i = var("init"), var("i", ir.INDEX)
    carried = ir.IterArg("c", init.type, init, S)
    body = ir.YieldStmt([carried], S)
    stmt = ir.ForStmt(i, const(0), const(4), const(1), [carried], body, [var("r")], S)
    seen = []

    class Names(ir.IRVisitor):
        def visit_var_like(self, op):
            seen.append(op.name_hint)

    Names().visit_stmt(stmt)
    assert seen == ["i", "c", "init", "c", "init", "r"]


def test_submit_dependencies_and_attribute_references_are_visited():
    dep, dump = var("dep", ir.DataType.TASK_ID), tensor(4, name="dump")
    submit = ir.Submit(ir.Op("k"), [], [dep], {}, {"dump_vars": [dump]}, ir.UnknownType(), S)
    seen = []

    class Vars(ir.IRVisitor):
        def visit_var(self, op):
            seen.append(op)

    Vars().visit_expr(submit)
    assert seen[0] is dep and seen[1] is dump


def test_mutator_rewrites_and_keeps_untouched_siblings():
    x = var()
    kept, changed = assign(var(), const(1)), assign(var(), x + 1)

    class Doubles(ir.IRMutator):
        def visit_const_int(self, op):
            return const(2) if op.value == 1 and op.dtype is ir.INDEX and op is changed.value.right else op

    result = Doubles().visit_stmt(seq(kept, changed))
    assert result[0] is kept and result[1].value.right.value == 2


def test_mutating_a_definition_to_no_variable_is_an_internal_error():
    class Breaks(ir.IRMutator):
        def visit_var(self, op):
            return const(1)

    with pytest.raises(pypto.InternalError):
        Breaks().visit_stmt(assign(var(), const(1)))

    class Drops(ir.IRMutator):
        def visit_const_int(self, op):
            return None

    with pytest.raises(pypto.InternalError, match="mutated to null"):
        Drops().visit_stmt(assign(var(), const(1)))


def test_removing_statements_flattens_the_sequence():
    class NoBreaks(ir.IRMutator):
        def visit_break_stmt(self, op):
            return seq()

    kept = assign(var(), const(1))
    assert NoBreaks().visit_stmt(seq(ir.BreakStmt(S), kept)) is kept


def test_substitution_without_a_match_returns_the_same_object():
    stmt = seq(assign(var(), const(1)))
    assert ir.substitute_stmt(stmt, [(var(), var())]) is stmt


def test_substitution_rewrites_definitions_uses_and_types_consistently():
    n, m = var("N"), var("M")
    t = ir.Var("t", ir.TensorType([n], ir.FP32), S)
    body = seq(assign(t, call("o", type=t.type)), assign(var(), call("dim", t)))
    after = ir.substitute_stmt(body, [(n, m)])
    new_t = after[0].var
    assert new_t is not t and new_t.type.shape[0] is m
    assert after[1].value.args[0] is new_t
    assert after[0].value.type.shape[0] is m


def test_chained_replacements_resolve_to_the_end_and_cycles_are_cut():
    a, b, c = var("a"), var("b"), var("c")
    assert ir.substitute_expr(a, [(a, b), (b, c)]) is c
    ir.substitute_expr(a + b, [(a, b), (b, a)])


def test_deep_clone_makes_fresh_definitions_and_keeps_outer_variables():
    outer, x, y = var("outer"), var("x"), var("y")
    body = seq(assign(x, outer + 1), loop(assign(y, x + 1)))
    first, pairs = ir.deep_clone(body)
    second, _ = ir.deep_clone(body)
    assert {old.name_hint for old, _ in pairs} == {"x", "y", "i"}
    assert first[0].var is not second[0].var
    assert first[0].value.left is outer
    assert first[1].body.value.left is first[0].var


def test_deep_clone_of_a_loop_keeps_its_initial_value_outside():
    init = var("init")
    carried = ir.IterArg("c", init.type, init, S)
    stmt = ir.ForStmt(
        var("i"), const(0), const(4), const(1), [carried], ir.YieldStmt([carried], S), [var("r")], S
    )
    clone, _ = ir.deep_clone(stmt, [(init, const(3))])
    assert clone.iter_args[0].initValue.value == 3
    assert clone.body.value[0] is clone.iter_args[0]


def test_parent_of_a_single_statement_body_is_the_loop_itself():
    inner = ir.IfStmt(var(dtype=ir.BOOL), ir.BreakStmt(S), None, [], S)
    outer = loop(inner)
    parents = ir.ParentStmtAnalysis()
    parents.build_map(ir.Function("f", [], [], outer, S))
    assert parents.get_parent(inner) is outer
    assert not parents.has_parent(outer)
    parents.clear()
    assert parents.get_parent(inner) is None


def test_tree_questions():
    target, value = var("a"), ir.YieldStmt([var()], S)
    body = seq(assign(target, const(1)), ir.RuntimeScopeStmt(body=seq(value), span=S))
    assert ir.collect_def_vars(body)[0] is target
    assert ir.get_last_yield_stmt(body) is value
    assert ir.find_yield_stmt(body) is None
    assert ir.flatten_to_stmts(value) == [value]


def test_depth_is_no_limit():
    x, y = var("x"), var("y")
    deep: ir.Expr = x
    for _ in range(100_000):
        deep = ir.add(deep, x)
    assert sum(1 for _ in vars_in(deep)) == 100_001
    renamed = ir.substitute_expr(deep, [(x, y)])
    assert ir.structural_equal(deep, renamed, True) and not ir.structural_equal(deep, renamed)
    assert ir.structural_hash(deep, True) == ir.structural_hash(renamed, True)
    assert ir.map_expr(deep, lambda e: e) is deep


def test_shared_subexpressions_cost_once():
    shared: ir.Expr = var("x")
    for _ in range(60):
        shared = ir.add(shared, shared)
    y = var("y")
    again = ir.substitute_expr(shared, [(next(iter(vars_in(shared))), y)])
    assert again.left is again.right
    assert len(list(walk(shared, once=True))) == 61
    assert ir.structural_hash(shared, True) == ir.structural_hash(again, True)


def test_walk_stmts_is_in_program_order():
    first, inner = assign(var(), const(1)), ir.BreakStmt(S)
    body = seq(first, loop(inner))
    assert list(walk_stmts(body))[1:] == [first, body[1], inner]
