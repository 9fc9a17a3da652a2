from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

import pypto
from pypto import ir
from pypto.ir.walk import vars_in, walk, walk_stmts

from .nodes import S, assign, call, const, function, loop, seq, tensor, var

X = var()


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
    x = var()
    stmt = seq(assign(var(), x + 1), loop(assign(var(), x + 2)))
    for pairs in ([], [(var(), var())]):
        assert (
            ir.substitute_stmt(stmt, pairs) is stmt
            and ir.substitute_expr(stmt[0].value, pairs) is stmt[0].value
        )


def test_substitution_gives_definition_and_uses_one_object_and_keeps_untouched_siblings():
    a, b, x, y = var("a"), var("b"), var("x"), var("y")
    before = seq(
        assign(a, const(1)), assign(y, x + 1), loop(assign(var(), a + x)), loop(assign(var(), x + 2))
    )
    after = ir.substitute_stmt(before, [(a, b)])
    assert after[0].var is b and after[2].body.value.left is b and after[2].body.value.right is x
    assert after[1] is before[1] and after[3] is before[3]
    assert after[0].value is before[0].value


@pytest.mark.parametrize("pairs", [[(X, 3)], [(3, X)], {X: X}, [(X, X, X)], [X]])
def test_replacements_are_pairs_of_a_variable_and_an_expression(pairs):
    for replace in (ir.substitute_expr, ir.deep_clone):
        with pytest.raises(TypeError):
            replace(ir.ReturnStmt([X], S) if replace is ir.deep_clone else X, pairs)


def test_substitution_rewrites_definitions_uses_and_types_consistently():
    n, m = var("N"), var("M")
    t = ir.Var("t", ir.TensorType([n], ir.FP32), S)
    body = seq(assign(t, call("o", type=t.type)), assign(var(), call("dim", t)))
    after = ir.substitute_stmt(body, [(n, m)])
    new_t = after[0].var
    assert new_t is not t and new_t.type.shape[0] is m
    assert after[1].value.args[0] is new_t
    assert after[0].value.type.shape[0] is m


def test_memory_references_and_window_buffers_take_the_name_of_their_new_base():
    old, new = (ir.Var(name, ir.PtrType(), S) for name in ("old", "new"))
    for buffer in (ir.MemRef(old, 0, 64), ir.WindowBuffer(old, const(64))):
        assert ir.substitute_expr(buffer, [(old, new)]).name_hint == "new"


def test_a_carried_value_is_replaced_by_carried_values_only():
    arg = ir.IterArg("c", ir.ScalarType(ir.INDEX), const(0), S)
    carrying = ir.ForStmt(
        var("i"), const(0), const(4), const(1), [arg], ir.YieldStmt([arg], S), [var("r")], S
    )
    with pytest.raises(pypto.InternalError, match="The definition of 'c'"):
        ir.substitute_stmt(carrying, [(arg, var())])


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
    assert all(
        old is not new and old.name_hint == new.name_hint and old.span is new.span for old, new in pairs
    )
    assert first[1].body.value.left is first[0].var
    assert all(
        set(variables_of(one)) & set(variables_of(another)) == {outer}
        for one, another in itertools.combinations((body, first, second), 2)
    )


def variables_of(stmt: ir.Stmt) -> list[ir.Var]:
    met: list[ir.Var] = []

    class Variables(ir.IRVisitor):
        def visit_var(self, op):
            met.append(op)

    Variables().visit_stmt(stmt)
    return met


@pytest.mark.parametrize("kind", ["for", "while"])
def test_a_loop_that_occurs_twice_is_rewritten_alike_in_both_places(kind):
    a, b = var("a"), var("b")
    carried = ir.IterArg("c", a.type, a, S)
    body = ir.YieldStmt([carried + 1], S)
    if kind == "for":
        stmt = ir.ForStmt(var("i"), const(0), const(4), const(1), [carried], body, [var("r")], S)
    else:
        stmt = ir.WhileStmt(carried < 3, [carried], body, [var("r")], S)
    twice = seq(stmt, stmt)

    class Renames(ir.IRMutator):
        def visit_var(self, op):
            return b if op is a else super().visit_var(op)

    for after in (ir.substitute_stmt(twice, [(a, b)]), ir.deep_clone(twice)[0], Renames().visit_stmt(twice)):
        for rewritten in after:
            assert rewritten.body.value[0].left is rewritten.iter_args[0] is not carried


def test_deep_clone_puts_the_seed_where_a_seeded_variable_is_defined():
    x, seed = var("x"), var("seed")
    clone, pairs = ir.deep_clone(seq(assign(x, const(1)), ir.ReturnStmt([x], S)), [(x, seed)])
    assert clone[0].var is seed and clone[1].value[0] is seed and pairs == []
    unchanged = seq(ir.BreakStmt(S), ir.ReturnStmt([x], S))
    assert ir.deep_clone(unchanged)[0] is unchanged


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
    assert parents.get_parent(inner) is outer and parents.get_parent(inner.then_body) is inner
    assert parents.get_parent(outer) is None and not parents.has_parent(outer) and parents.has_parent(inner)
    parents.clear()
    assert parents.get_parent(inner) is None


def wrappers() -> list[Callable[[ir.Stmt], ir.Stmt]]:
    """Each kind of statement that has a body, around a given body."""
    condition, scoped = var(dtype=ir.BOOL), {"span": S}
    return [
        loop,
        lambda body: ir.WhileStmt(condition, [], body, [], S),
        lambda body: ir.IfStmt(condition, body, None, [], S),
        lambda body: ir.IfStmt(condition, ir.ContinueStmt(S), body, [], S),
        lambda body: ir.InCoreScopeStmt(body=body, **scoped),
        lambda body: ir.ClusterScopeStmt(body=body, **scoped),
        lambda body: ir.HierarchyScopeStmt(ir.Level.HOST, body=body, **scoped),
        lambda body: ir.SpmdScopeStmt(3, body=body, **scoped),
        lambda body: ir.RuntimeScopeStmt(body=body, **scoped),
        lambda body: ir.CommDomainScopeStmt([], [], body=body, **scoped),
        lambda body: ir.SplitAivScopeStmt(ir.SplitMode.NONE, body=body, **scoped),
    ]


@pytest.mark.parametrize("wrap", wrappers())
def test_a_statement_with_a_body_is_the_parent_of_it(wrap):
    bare, listed = assign(var(), const(1)), assign(var(), const(1))
    single, several = wrap(bare), wrap(seq(listed))
    parents = ir.ParentStmtAnalysis()
    parents.build_map(function([], single, several))
    assert parents.get_parent(bare) is single
    sequence = parents.get_parent(listed)
    assert isinstance(sequence, ir.SeqStmts) and parents.get_parent(sequence) is several
    parents.build_map(function([], ir.BreakStmt(S)))
    assert parents.get_parent(bare) is None


def test_a_statement_that_occurs_twice_keeps_its_last_parent():
    shared = ir.BreakStmt(S)
    first, last = loop(shared), loop(shared)
    parents = ir.ParentStmtAnalysis()
    parents.build_map(function([], first, last))
    assert parents.get_parent(shared) is last


@pytest.mark.parametrize("wrap", wrappers())
def test_comments_stay_on_a_statement_rebuilt_because_its_body_changed(wrap):
    class Continues(ir.IRMutator):
        def visit_break_stmt(self, op):
            return ir.ContinueStmt(op.span)

    before = ir.attach_leading_comments(wrap(ir.BreakStmt(S)), ["one", "two"])
    after = Continues().visit_stmt(before)
    assert after is not before and after.leading_comments == ["one", "two"]


def test_comments_stay_on_rewritten_statements_and_their_clones():
    a, b = var("a"), var("b")
    for stmt in (assign(a, a + 1), ir.EvalStmt(a, S), ir.YieldStmt([a], S), ir.ReturnStmt([a], S)):
        ir.attach_leading_comments(stmt, ["why"])
        renamed, (clone, _) = ir.substitute_stmt(stmt, [(a, b)]), ir.deep_clone(stmt, [(a, b)])
        assert renamed is not stmt and clone is not stmt
        assert renamed.leading_comments == clone.leading_comments == ["why"]


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


def names_in_order(base: type, node: object) -> list[str]:
    """The variables, constants and memory references that a visitor or mutator meets, in order."""
    seen: list[str] = []

    def recording(name):
        default = getattr(base, name)

        def visit(self, op):
            seen.append(str(op.value) if isinstance(op, ir.ConstInt) else op.name_hint)
            return default(self, op)

        return visit

    leaves = ("visit_var", "visit_iter_arg", "visit_mem_ref", "visit_window_buffer", "visit_const_int")
    walker = type("Recorder", (base,), {name: recording(name) for name in leaves})()
    if isinstance(node, ir.Function):
        walker.visit_function(node)
    elif isinstance(node, ir.Stmt):
        walker.visit_stmt(node)
    else:
        walker.visit_expr(node)
    return seen


def ordered_examples() -> dict[str, tuple[object, str, str]]:
    """Per kind: a node, the order in which it is visited, the order in which it is rewritten."""
    x, y, n, m, a, b = (var(name) for name in "xynmab")
    typed = ir.TensorType([n], ir.FP32)
    carried = ir.IterArg("c", x.type, y, S)
    window = ir.WindowBuffer(var("w"), const(2))
    view = ir.TensorView(None, ir.TensorLayout.DN, [m, 4])
    body = ir.EvalStmt(const(5), S)
    five = {"attrs": {"k": a}}
    return {
        "tensor": (ir.Var("t", ir.TensorType([n, 4], ir.FP32, None, view), S), "t n 4", "t n 4 m 4"),
        "tile": (ir.Var("t", ir.TileType([n], ir.FP32), S), "t", "t n"),
        "distributed": (ir.Var("t", ir.DistributedTensorType([n], ir.FP32), S), "t", "t n"),
        "iter_arg": (carried, "c y", "c y"),
        "memref": (ir.MemRef(var("base"), const(1), 4), "base", "base base 1"),
        "window": (window, "w", "w w 2"),
        "call": (ir.Call(ir.Op("o"), [x], {}, {"k": a, "l": [b]}, typed, S), "x a b", "x n a b"),
        "submit": (
            ir.Submit(ir.Op("o"), [x], [y], {}, {"k": a}, typed, S, const(7), False, False, m),
            "x y 7 m a",
            "x y 7 m n a",
        ),
        "if": (ir.IfStmt(x, body, ir.EvalStmt(const(6), S), [y], S), "x 5 6 y", "x 5 6 y"),
        "for": (
            ir.ForStmt(x, const(0), const(1), const(2), [carried], body, [m], S, **five),
            "x 0 1 2 c y 5 m a",
            "x 0 1 2 c y 5 m a",
        ),
        "while": (ir.WhileStmt(const(3), [carried], body, [m], S), "3 c y 5 m", "c y 3 5 m"),
        "in_core": (ir.InCoreScopeStmt(body=body, span=S).replace(**five), "a 5", "5 a"),
        "cluster": (ir.ClusterScopeStmt(body=body, span=S).replace(**five), "a 5", "5 a"),
        "spmd": (ir.SpmdScopeStmt(const(8), body=body, span=S).replace(**five), "8 a 5", "8 5 a"),
        "comm": (
            ir.CommDomainScopeStmt([], [window], body=body, span=S).replace(**five), "a w 5", "5 w w 2 a",
        ),
        "function": (ir.Function("f", [x], [typed], body, S, **five), "x a 5", "x n 5 a"),
        "projection": (ir.TupleGetItemExpr(ir.MakeTuple([x, y], S), 0, S), "x y", "x y"),
    }  # fmt: skip


@pytest.mark.parametrize("kind", ordered_examples())
def test_visitors_and_mutators_keep_their_documented_order(kind):
    node, visited, rewritten = ordered_examples()[kind]
    assert " ".join(names_in_order(ir.IRVisitor, node)) == visited
    assert " ".join(names_in_order(ir.IRMutator, node)) == rewritten


def test_overriding_one_kind_leaves_the_depth_of_the_others_unlimited():
    deep: ir.Expr = call("o")
    x = var()
    for _ in range(100_000):
        deep = ir.Add(deep, x, ir.INT64, S)

    class Calls(ir.IRVisitor):
        met = 0

        def visit_call(self, op):
            self.met += 1

    class Keeps(ir.IRMutator):
        def visit_call(self, op):
            return super().visit_call(op)

    class Replaces(ir.IRMutator):
        def visit_call(self, op):
            return const(1)

    calls = Calls()
    calls.visit_expr(deep)
    assert calls.met == 1
    assert Keeps().visit_expr(deep) is deep
    assert isinstance(
        next(node for node in walk(Replaces().visit_expr(deep)) if not node._children()), ir.ConstInt
    )


def test_nothing_called_below_a_shared_expression_means_it_is_entered_once():
    shared: ir.Expr = var()
    for _ in range(200):
        shared = ir.Add(shared, shared, ir.INT64, S)

    class Calls(ir.IRVisitor):
        def visit_call(self, op):
            raise AssertionError

    class Keeps(ir.IRMutator):
        def visit_call(self, op):
            return op

    Calls().visit_expr(shared)
    assert Keeps().visit_expr(shared) is shared


def test_overriding_the_entry_methods_sees_every_node_in_both():
    stmt = seq(assign(var(), var() + 1), loop(ir.BreakStmt(S)))

    def counting(base):
        class Counts(base):
            exprs = stmts = 0

            def visit_expr(self, op):
                self.exprs += 1
                return super().visit_expr(op)

            def visit_stmt(self, op):
                self.stmts += 1
                return super().visit_stmt(op)

        counts = Counts()
        counts.visit_stmt(stmt)
        return counts.exprs, counts.stmts

    assert counting(ir.IRVisitor) == counting(ir.IRMutator) == (8, 4)


def test_group_methods_come_after_the_method_of_the_kind():
    met = []

    class Groups(ir.IRVisitor):
        def visit_add(self, op):
            met.append("add")
            super().visit_add(op)

        def visit_binary_expr(self, op):
            met.append(type(op).__name__)
            super().visit_binary_expr(op)

        def visit_unary_expr(self, op):
            met.append(type(op).__name__)
            super().visit_unary_expr(op)

        def visit_var_like(self, op):
            met.append(op.name_hint)

    Groups().visit_expr(-((var("x") + var("y")) * var("z")))
    assert met == ["Neg", "Mul", "add", "Add", "x", "y", "z"]


def test_constants_inside_types_reach_a_mutator_that_overrides_them():
    class Doubles(ir.IRMutator):
        def visit_const_int(self, op):
            return const(op.value * 2)

    tile = ir.TileType([4], ir.FP32, ir.MemRef("m", 8, 16), ir.TileView([2], [1], 3), ir.Mem.Vec)
    after = Doubles().visit_expr(ir.Var("t", ir.TupleType([tile]), S)).type.types[0]
    view = after.tile_view
    found = [
        after.shape[0],
        view.valid_shape[0],
        view.stride[0],
        view.start_offset,
        after.memref.byte_offset_,
    ]
    assert [constant.value for constant in found] == [8, 4, 2, 6, 16]


def test_a_retyped_variable_is_minted_once_for_its_definition_and_all_uses():
    n, m = var("n"), var("m")
    t = ir.Var("t", ir.TensorType([n], ir.FP32), ir.Span("f", 7, 1))

    class Renames(ir.IRMutator):
        def visit_var(self, op):
            return m if op is n else super().visit_var(op)

    before = ir.Function("f", [t], [t.type], seq(assign(var(), call("o", t)), ir.ReturnStmt([t], S)), S)
    after = Renames().visit_function(before)
    fresh = after.params[0]
    assert fresh is not t and fresh.name_hint == "t" and fresh.span is t.span and fresh.type.shape[0] is m
    assert after.body[0].value.args[0] is fresh and after.body[1].value[0] is fresh
    assert after.return_types[0].shape[0] is m


@pytest.mark.parametrize(
    "node",
    [
        var() + 1,
        (var() + 1) + var(),
        call("o", const(1)),
        call("o", k=const(1)),
        tensor(1),
        ir.EvalStmt(const(1), S),
        ir.ForStmt(var(), var(), var(), const(1), [], ir.BreakStmt(S), [], S),
    ],
)
@pytest.mark.parametrize(
    ("result", "message"), [(None, "mutated to null"), (5, "int"), (ir.BreakStmt(S), "Break")]
)
def test_a_child_must_be_mutated_to_a_node_that_fits_its_place(node, result, message):
    class Breaks(ir.IRMutator):
        def visit_const_int(self, op):
            return result

    breaks = Breaks()
    with pytest.raises(pypto.InternalError, match=message):
        (breaks.visit_stmt if isinstance(node, ir.Stmt) else breaks.visit_expr)(node)


def test_functions_and_bodies_must_not_be_mutated_to_null():
    class NoFunction(ir.IRMutator):
        def visit_function(self, op):
            return None

    class NoBreak(ir.IRMutator):
        def visit_break_stmt(self, op):
            return None

    with pytest.raises(pypto.InternalError, match="mutated to null"):
        NoFunction().visit_program(program())
    with pytest.raises(pypto.InternalError, match="mutated to null"):
        NoBreak().visit_program(program(ir.BreakStmt(S)))


@pytest.mark.parametrize(
    "stmt",
    [
        assign(var(), const(1)),
        loop(ir.BreakStmt(S)),
        ir.IfStmt(const(1), ir.BreakStmt(S), None, [var()], S),
        ir.WhileStmt(const(1), [ir.IterArg("c", var().type, const(1), S)], ir.BreakStmt(S), [], S),
    ],
)
def test_definitions_must_stay_variables_and_iter_args_iter_args(stmt):
    class Breaks(ir.IRMutator):
        def visit_var(self, op):
            return const(1)

        def visit_iter_arg(self, op):
            return var()

    with pytest.raises(pypto.InternalError, match="definition"):
        Breaks().visit_stmt(stmt)


def test_a_rebuilt_program_keeps_everything_that_did_not_change():
    class Changes(ir.IRMutator):
        def visit_const_int(self, op):
            return const(99) if op.value == 7 else op

    add = ir.Add(var(), const(7), ir.INT32, ir.Span("add", 1, 1))
    inner = ir.attach_leading_comments(ir.EvalStmt(add, S), ["inner"])
    outer = ir.attach_leading_comments(loop(inner, kind=ir.ForKind.Parallel, attrs={"k": 1}), ["outer"])
    f = ir.Function(
        "f", [(tensor(4), ir.ParamDirection.Out)], [], outer, ir.Span("f", 1, 1), ir.FunctionType.Opaque,
        ir.Level.HOST, ir.Role.SubWorker, {"q": 1}, True,
    )  # fmt: skip
    before = ir.Program([f, function([], name="g")], "P", S)
    after = Changes().visit_program(before)
    new, body = after["f"], after["f"].body
    assert after.name == "P" and after["g"] is before["g"]
    assert after.get_global_var("f") is before.get_global_var("f")
    assert (new.level, new.role, new.attrs, new.requires_runtime_binding) == (f.level, f.role, f.attrs, True)
    assert new.param_directions == f.param_directions and new.span is f.span
    assert (body.kind, body.attrs, body.leading_comments) == (ir.ForKind.Parallel, {"k": 1}, ["outer"])
    assert body.body.leading_comments == ["inner"]
    assert body.body.expr.dtype is ir.INT32 and body.body.expr.span is add.span


def test_deep_clone_leaves_outer_variables_even_where_their_types_mention_what_is_cloned():
    n = var("n")
    memref = ir.MemRef("m", 0, 64, S)
    outer = ir.Var("outer", ir.TileType([4], ir.FP32, memref, None, ir.Mem.Vec), S)
    symbolic = tensor(n)
    inner = ir.Var("inner", ir.TileType([n], ir.FP32, memref, None, ir.Mem.Vec), S)
    body = seq(assign(inner, call("o", outer, symbolic)), ir.EvalStmt(inner, S))
    clone, pairs = ir.deep_clone(body, [(n, const(8))])
    assert clone[0].value.args[0] is outer and clone[0].value.args[1] is symbolic
    fresh = clone[0].var
    assert clone[1].expr is fresh and fresh.type.shape[0].value == 8
    assert fresh.type.memref is not memref and fresh.type.memref.base_ is memref.base_
    assert len(pairs) == 1 and pairs[0][0] is inner and pairs[0][1] is fresh


@pytest.mark.parametrize("wrong", [None, 3, "s", ir.ScalarType(ir.INT64)], ids=["None", "int", "str", "type"])
def test_tree_functions_raise_a_type_error_for_what_is_not_a_node(wrong):
    visits = ("visit_program", "visit_function", "visit_expr", "visit_stmt")
    walkers = [getattr(cls(), name) for cls in (ir.IRVisitor, ir.IRMutator) for name in visits]
    tools = [
        ir.flatten_to_stmts,
        ir.collect_def_vars,
        ir.find_yield_stmt,
        ir.get_last_yield_stmt,
        ir.deep_clone,
        ir.ParentStmtAnalysis().build_map,
        ir.level_to_linqu_level,
        ir.is_incore_type,
        lambda value: ir.substitute_expr(value, []),
        lambda value: ir.substitute_stmt(value, []),
        lambda value: ir.deduce_call_return_type(value, [], []),
        lambda value: ir.deduce_call_return_type([], [value], []),
    ]
    for tool in (*walkers, *tools):
        with pytest.raises(TypeError):
            tool(wrong)


def test_statement_visits_raise_a_type_error_for_an_expression():
    value = const(1)
    for tool in (ir.IRVisitor().visit_stmt, ir.IRMutator().visit_stmt, ir.find_yield_stmt, ir.deep_clone):
        with pytest.raises(TypeError):
            tool(value)
