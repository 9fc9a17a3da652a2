from __future__ import annotations

import pytest

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


def test_mismatched_carries_are_a_runtime_error():
    b = ir.IRBuilder()
    with (
        pytest.raises(RuntimeError, match="1 iteration"),
        b.function("f"),
        b.for_loop(b.var("i", I64), 0, 4, 1) as loop,
    ):
        loop.iter_arg("c", 0)


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
    with pytest.raises(RuntimeError):
        b.emit(ir.BreakStmt(S))
    with pytest.raises(RuntimeError):
        b.for_loop(b.var("i", I64), 0, 1, 1)
    with b.function("f") as f:
        with pytest.raises(RuntimeError, match="Cannot begin function"):
            b.function("g")
        with pytest.raises(AssertionError):
            f.get_result()
        with pytest.raises(ValueError, match="level"):
            b.scope(ir.ScopeKind.Hierarchy)
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
        with b.function("f") as f:
            y = b.let("y", ir.Call(callee, [], S))
            b.return_stmt(y)
        p.add_function(f.get_result())
    assert y.type == I64
    assert [g.name for g in p.get_result().functions] == ["f", "g"]


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
