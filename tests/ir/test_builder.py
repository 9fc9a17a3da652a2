from __future__ import annotations

import inspect

import pytest

import pypto
from pypto import ir

from .nodes import S

I64 = ir.ScalarType(ir.INT64)


def test_function_with_one_statement_has_a_bare_body_and_the_users_span():
    b = ir.IRBuilder()
    with b.function("f") as f:
        x = f.param("x", I64)
        f.return_type(I64)
        b.return_stmt(x)
    made = f.get_result()
    assert isinstance(made.body, ir.ReturnStmt) and made.params[0] is x
    assert made.span.filename == __file__ and made.span.end_line >= made.span.begin_line


def test_loop_carries_a_value_and_gives_its_output():
    b = ir.IRBuilder()
    with b.function("f"):
        i = b.var("i", I64)
        with b.for_loop(i, 0, 4, 1) as loop:
            total = loop.iter_arg("total", 0)
            loop.return_var("result")
            b.emit(ir.YieldStmt([total + 1], S))
        assert loop.output().name_hint == "result"
        assert loop.get_result().iter_args[0] is total


@pytest.mark.parametrize("kind", ["for", "while"])
@pytest.mark.parametrize(("carried", "results"), [(1, 0), (0, 1), (2, 1)])
def test_mismatched_carries_are_a_runtime_error(kind, carried, results):
    b = ir.IRBuilder()
    with (
        pytest.raises(RuntimeError, match=rf"{carried} iteration argument\(s\), but {results} return"),
        b.function("f"),
        b.for_loop(b.var("i", I64), 0, 4, 1) if kind == "for" else b.while_loop(True) as loop,
    ):
        for _ in range(carried):
            loop.iter_arg("c", 0)
        for _ in range(results):
            loop.return_var("r", ir.ScalarType(ir.INDEX))


def test_bodies_of_one_statement_are_bare_and_others_are_sequences():
    def blocks(b):
        yield lambda: b.for_loop(b.var("i", I64), 0, 4, 1)
        yield lambda: b.while_loop(True)
        yield lambda: b.if_stmt(True)
        yield lambda: b.scope(ir.ScopeKind.Cluster)

    b = ir.IRBuilder()
    with b.function("f"):
        for block in blocks(b):
            for count in range(3):
                with block() as built:
                    emitted = [b.break_stmt() for _ in range(count)]
                made = built.get_result()
                body = made.then_body if isinstance(made, ir.IfStmt) else made.body
                assert body is emitted[0] if count == 1 else body.stmts == emitted


def test_while_condition_may_be_set_after_its_carries():
    b = ir.IRBuilder()
    with b.function("f"):
        with b.while_loop(True) as loop:
            c = loop.iter_arg("c", 0)
            loop.return_var("r")
            loop.set_condition(c < 3)
            b.emit(ir.YieldStmt([c + 1], S))
        assert isinstance(loop.get_result().condition, ir.Lt)


def test_branches_and_an_empty_else():
    b = ir.IRBuilder()
    with b.function("f"):
        with b.if_stmt(True) as branch:
            b.break_stmt()
            branch.else_()
            with pytest.raises(ValueError):
                branch.else_()
        assert branch.get_result().else_body is None


def test_misuse():
    b = ir.IRBuilder()
    for emit in (
        lambda: b.emit(ir.BreakStmt(S)), b.break_stmt, b.return_stmt, lambda: b.let("x", 1),
        lambda: b.eval_stmt(b.var("x", I64)), lambda: b.inline_stmt("x"),
    ):  # fmt: skip
        with pytest.raises(RuntimeError):
            emit()
    for error, begin in (
        (RuntimeError, lambda: b.for_loop(b.var("i", I64), 0, 1, 1)),
        (RuntimeError, lambda: b.while_loop(True)), (ValueError, lambda: b.if_stmt(True)),
        (ValueError, lambda: b.scope(ir.ScopeKind.Cluster)),
    ):  # fmt: skip
        with pytest.raises(error), begin():
            pass
        with pytest.raises(error), b.program("P"), begin():
            pass
    with b.function("f") as f:
        with pytest.raises(RuntimeError, match="Cannot begin function"), b.function("g"):
            pass
        with pytest.raises(AssertionError):
            f.get_result()
        for kind, error, lacks in (
            ("Hierarchy", ValueError, "level"), ("Runtime", ValueError, "manual"),
            ("SplitAiv", ValueError, "split"), ("Spmd", ValueError, "core_num"),
            ("CommDomain", RuntimeError, "CommDomain"),
        ):  # fmt: skip
            with pytest.raises(error, match=lacks), b.scope(ir.ScopeKind[kind]):
                pass
        with b.for_loop(b.var("i", I64), 0, 1, 1) as loop:
            with pytest.raises(ValueError):
                f.param("x", I64)
            with pytest.raises(RuntimeError):
                loop.output()
        with pytest.raises(IndexError, match="index 0 out of range"):
            loop.output()


def test_an_error_in_a_block_propagates_and_closes_it():
    b = ir.IRBuilder()
    with pytest.raises(ZeroDivisionError), b.function("f"):
        b.eval_stmt(ir.ConstInt(1 // 0, ir.INDEX, S))
    assert not b.in_function()


def test_scopes_take_attributes():
    b = ir.IRBuilder()
    with b.function("f"), b.scope(ir.ScopeKind.Spmd, core_num=4, attrs=[("k", 1)]) as scope:
        b.continue_stmt()
    assert scope.get_result().attrs == {"k": 1} and scope.get_result().core_num.value == 4


def test_program_let_infers_the_callee_type():
    b = ir.IRBuilder()
    with b.program("P") as p:
        callee = p.declare_function("g")
        assert p.declare_function("g") is callee
        with pytest.raises(RuntimeError):
            p.get_global_var("h")
        with b.function("g") as g:
            g.return_type(I64)
            b.return_stmt(1)
        p.add_function(g.get_result())
        with b.function("pair") as g:
            g.return_type(I64)
            g.return_type(I64)
            b.return_stmt([1, 2])
        p.add_function(g.get_result())
        with b.function("f") as f:
            y = b.let("y", ir.Call(callee, [], S))
            typed = b.let("z", ir.Call(callee, [], ir.ScalarType(ir.FP32), S))
            later = b.let("w", ir.Call(ir.GlobalVar("later"), [], S))
            with pytest.raises(ValueError, match="returns 2 values"):
                b.let("v", ir.Call(p.declare_function("pair"), [], S))
            with pytest.raises(TypeError, match="incompatible"):
                b.let("u", 1, ir.TensorType([4], ir.FP32))
            b.return_stmt(y)
        p.add_function(f.get_result())
    made = p.get_result()
    assert y.type == I64 and made["f"].body[0].value.type == I64
    assert typed.type == ir.ScalarType(ir.FP32) and isinstance(later.type, ir.UnknownType)
    assert [g.name for g in made.functions] == ["f", "g", "pair"]
    assert made.get_global_var("g") is not callee


def test_a_program_takes_one_function_of_each_name():
    builder = ir.IRBuilder()
    with builder.program("P") as p:
        with builder.function("twice") as f:
            builder.return_stmt()
        p.add_function(f.get_result())
        with pytest.raises(ValueError, match="already has a function 'twice'"):
            p.add_function(f.get_result())
    assert list(p.get_result().functions) == [p.get_result().get_global_var("twice")]


def test_comments_attach_to_the_next_statement():
    b = ir.IRBuilder()
    with b.function("f"):
        b.push_pending_leading_comments(["why"])
        assert b.break_stmt().leading_comments == ["why"]
        assert b.pop_pending_leading_comments() == []


def test_memref_forms_of_the_builder():
    b = ir.IRBuilder()
    assert b.memref(ir.Mem.Vec, 0, 64, 3).name_hint == "mem_vec_3"
    assert b.memref(0, 64, 3).name_hint == "mem_3"
    with pytest.raises(TypeError, match="exactly three"):
        b.memref(0, 1, 2, 3)
    with pytest.raises(TypeError, match="misses id"):
        b.memref(ir.Mem.Vec, 0, 64)
    assert b.memref(space=ir.Mem.Vec, addr=0, size=64, id=3).byte_offset_.dtype is ir.INDEX
    where = ir.Span("f", 1, 1)
    assert b.memref(0, 64, 3, where).span is b.memref(0, 64, 3, span=where).span is where


def test_the_span_of_a_block_ends_at_its_last_statement():
    b = ir.IRBuilder()
    first = inspect.currentframe().f_lineno + 1
    with b.function("f") as f:
        with b.for_loop(b.var("i", I64), 0, 4, 1) as loop:
            b.break_stmt()
        b.return_stmt()
    made = f.get_result().span
    assert (made.filename, made.begin_line, made.begin_column, made.end_line) == (
        __file__,
        first,
        -1,
        first + 3,
    )
    inner = loop.get_result().span
    assert (inner.begin_line, inner.end_line) == (first + 1, first + 2)


def test_comments_belong_to_the_construct_that_was_innermost_at_push():
    b = ir.IRBuilder()
    with pytest.raises(pypto.InternalError):
        b.pop_pending_leading_comments()
    with b.function("f"):
        b.push_pending_leading_comments(["on the loop"])
        with b.for_loop(b.var("i", I64), 0, 4, 1) as loop:
            assert b.break_stmt().leading_comments == []
        assert loop.get_result().leading_comments == ["on the loop"]
        b.push_pending_leading_comments(["outer"])
        b.push_pending_leading_comments(["inner"])
        assert b.pop_pending_leading_comments() == ["inner"]
        assert b.pop_pending_leading_comments() == ["outer"]


def test_helpers_of_a_block_work_only_directly_inside_it():
    b = ir.IRBuilder()
    with b.function("f") as f:
        with b.for_loop(b.var("i", I64), 0, 4, 1) as loop:
            with pytest.raises(ValueError):
                f.param("x", I64)
            with pytest.raises(ValueError):
                f.return_type(I64)
            with pytest.raises(ValueError):
                b.add_function_attrs({"k": 1})
            with b.if_stmt(True), pytest.raises(ValueError):
                loop.iter_arg("c", 0)
        with pytest.raises(ValueError):
            loop.return_var("r", I64)
    with pytest.raises(ValueError):
        f.param("x", I64)


def test_a_block_begins_when_it_is_entered():
    b = ir.IRBuilder()
    b.function("never")
    assert not b.in_function()
    with b.function("f"):
        assert b.in_function() and not b.in_loop() and not b.in_if()


def test_the_core_builder_has_begin_and_end_for_each_construct():
    from pypto.pypto_core import ir as core

    b = core.IRBuilder()
    b.begin_program("P", S)
    name = b.declare_function("f")
    b.begin_function("f", S, ir.FunctionType.Opaque, None, None, None, False)
    x = b.func_arg("x", I64, S)
    b.return_type(I64)
    b.begin_for_loop(b.var("i", I64, S), x, x, x, S, ir.ForKind.Sequential, None)
    carried = ir.IterArg("c", I64, x, S)
    b.add_iter_arg(carried)
    b.add_return_var(b.var("r", I64, S))
    b.emit(ir.YieldStmt([carried], S))
    loop = b.end_for_loop(S)
    b.begin_if(x < 1, S)
    b.begin_else(S)
    branch = b.end_if(S)
    b.begin_scope(ir.ScopeKind.Spmd, S, None, None, None, "s", 4, None, None, None)
    scope = b.end_scope(S)
    result = b.return_([x], S)
    function = b.end_function(S)
    b.add_function(function)
    assert b.get_function_return_types(name) == [I64] and b.get_function_return_types(ir.GlobalVar("g")) == []
    assert b.end_program(S)["f"] is function
    assert function.body.stmts == [loop, branch, scope, result]


def test_literal_statements_are_emitted_and_returned():
    build = ir.IRBuilder()
    with build.function("f") as f:
        made = [build.inline_stmt("print(1)"), build.break_stmt(), build.continue_stmt()]
    assert all(stmt is emitted for stmt, emitted in zip(made, f.get_result().body.stmts, strict=True))
    assert (made[0].body, made[0].language) == ("print(1)", ir.InlineLanguage.Python)


def test_outputs_beyond_the_results_of_a_block_are_index_errors():
    build = ir.IRBuilder()
    with build.function("f"):
        with build.for_loop(build.var("i", ir.ScalarType(ir.INDEX)), 0, 4, 1) as loop:
            carried = loop.iter_arg("a", 0)
            result = loop.return_var("r")
            with pytest.raises(RuntimeError):
                loop.output()
            build.emit(ir.YieldStmt([carried], ir.Span.unknown()))
        assert loop.output() is result and loop.outputs()[0] is result
        with pytest.raises(IndexError, match="Return variable index 3 out of range"):
            loop.output(3)


def test_a_memref_of_four_numbers_is_a_type_error():
    build = ir.IRBuilder()
    with pytest.raises(TypeError, match="accepts exactly three positional arguments"):
        build.memref(1, 2, 3, 4)
    assert build.memref(0, 64, 2).base_.name_hint == "mem_2"


def test_explicit_types_of_carried_values_must_match():
    build = ir.IRBuilder()
    with build.function("f"), build.for_loop(build.var("i", ir.ScalarType(ir.INDEX)), 0, 4, 1) as loop:
        for make in (
            lambda: loop.iter_arg("a", 0, type=ir.ScalarType(ir.FP32)),
            lambda: loop.return_var("r"),
        ):
            with pytest.raises(ValueError):
                make()
