"""Helpers marked with `@pl.inline`: what names of their bodies and parameters mean to their callers."""

# ruff: noqa: RET504 - lines and returns of DSL programs are what is tested

from __future__ import annotations

import pytest

import pypto.language as pl
from pypto.language.parser import ParserTypeError


@pl.inline
def twice(a):
    """Two results."""
    s = pl.add(a, a)
    return s, pl.mul(a, a)


@pl.inline
def effect(a):
    t = pl.add(a, a)


def test_inline_helper_with_two_results_unpacks():
    @pl.function
    def f(x: pl.Tensor[[64], pl.FP32]):
        p, q = twice(x)
        r = pl.add(p, q)
        return r

    names = [stmt.var.name_hint for stmt in f.body.stmts[:-1]]
    assert names == ["s", "_tuple_tmp", "p", "q", "r"]


def test_inline_names_leak_but_parameters_do_not():
    @pl.function
    def f(x: pl.Tensor[[64], pl.FP32], a: pl.Tensor[[64], pl.FP32]):
        effect(x)
        return t, a  # noqa: F821

    returned = f.body.stmts[-1].value
    assert returned[0].name_hint == "t"
    assert returned[1] is f.params[1]


def test_inline_argument_errors():
    with pytest.raises(ParserTypeError, match=r"expects 1 argument\(s\), got 0"):

        @pl.function
        def few(x: pl.Tensor[[64], pl.FP32]):
            y = twice()
            return y

    with pytest.raises(ParserTypeError, match="does not accept keyword argument"):

        @pl.function
        def keyword(x: pl.Tensor[[64], pl.FP32]):
            y = twice(a=x)
            return y

    with pytest.raises(ParserTypeError, match="has no return value"):

        @pl.function
        def void(x: pl.Tensor[[64], pl.FP32]):
            y = effect(x)
            return y


@pl.inline
def rebinding(a):
    a = pl.add(a, a)
    return a


def test_assigning_an_inline_parameter_leaves_the_callers_variable_alone():
    @pl.function
    def f(x: pl.Tensor[[64], pl.FP32]):
        y = rebinding(x)
        return x, y

    first = f.body.stmts[0]
    assert first.var is not f.params[0]
    assert f.body.stmts[-1].value[0] is f.params[0]


def test_assigning_an_inline_parameter_leaves_a_variable_of_its_name_alone():
    @pl.function
    def f(x: pl.Tensor[[64], pl.FP32], a: pl.Tensor[[64], pl.FP32]):
        y = rebinding(x)
        return a, y

    assert f.body.stmts[-1].value[0] is f.params[1]


@pl.inline
def filled(t, buf, k):
    """Writes into its argument and returns nothing."""
    if k > 0:
        buf[0:32] = t[0:32]
    for _i in pl.range(2):
        buf = pl.assemble(buf, t, [0])


def test_an_inline_helper_that_writes_into_a_parameter_fills_the_callers_variable():
    @pl.function
    def f(x: pl.Tensor[[64], pl.FP32], o: pl.Tensor[[64], pl.FP32], k: pl.Scalar[pl.INDEX]):
        filled(x, o, k)
        for _j, (acc,) in pl.range(2, init_values=(o,)):
            filled(x, acc, k)
            r = pl.yield_(acc)
        return o, r

    branch, loop, carrying, returned = f.body.stmts
    for stmt in (branch.then_body, loop.body):
        assert stmt.var is f.params[1] is stmt.value.args[0]
    assert returned.value[0] is f.params[1]
    start, branch, loop, handed_on = carrying.body.stmts
    assert start.value is carrying.iter_args[0]
    for stmt in (branch.then_body, loop.body):
        assert stmt.var is start.var
    assert loop.body.value.args[0] is handed_on.value[0] is start.var


@pl.inline
def filled_in_turns(t, buf):
    for _i in pl.range(2):
        buf = pl.assemble(buf, t, [0])


def test_an_inline_helper_that_fills_a_carried_value_in_a_loop_reads_what_the_turn_before_wrote():
    @pl.function
    def f(x: pl.Tensor[[64], pl.FP32], o: pl.Tensor[[64], pl.FP32]):
        for _j, (acc,) in pl.range(2, init_values=(o,)):
            filled_in_turns(x, acc)
            r = pl.yield_(acc)
        return r

    carrying, _ = f.body.stmts
    start, loop, handed_on = carrying.body.stmts
    assert loop.body.var is loop.body.value.args[0] is handed_on.value[0] is start.var


@pl.inline
def filled_inside(t, buf):
    filled_in_turns(t, buf)


def test_a_carried_value_that_helpers_fill_in_an_inner_loop_is_read_as_the_turn_before_left_it():
    @pl.function
    def f(x: pl.Tensor[[64], pl.FP32], o: pl.Tensor[[64], pl.FP32]):
        for _j, (acc,) in pl.range(2, init_values=(o,)):
            for _k in pl.range(3):
                t = pl.add(acc, x)
                filled_inside(t, acc)
            r = pl.yield_(acc)
        return r

    start, inner, handed_on = f.body.stmts[0].body.stmts
    read, turns = inner.body.stmts
    assert read.value.args[0] is turns.body.var is handed_on.value[0] is start.var


@pl.inline
def accumulated(a, x, k):
    for _i in pl.range(3):
        a = pl.add(a, x)
    if k > 0:
        x = pl.mul(x, 2.0)
    return pl.add(a, x)


def test_an_inline_parameter_assigned_in_a_loop_or_branch_starts_as_its_argument():
    @pl.function
    def f(x: pl.Tensor[[64], pl.FP32], y: pl.Tensor[[64], pl.FP32], n: pl.Scalar[pl.INDEX]):
        return accumulated(x, y, n)

    start, second, loop, branch, returned = f.body.stmts
    assert start.value is f.params[0] and second.value is f.params[1]
    assert loop.body.var is start.var and loop.body.value.args[0] is start.var
    assert branch.then_body.var is second.var
    left, right = returned.value[0].args
    assert left is start.var and right is second.var


@pl.inline
def shifted(a):
    s = pl.add(a, 1.0)
    return pl.mul(s, s)


@pl.inline
def reading_late(a):
    s = pl.add(a, 1.0)
    t = pl.mul(a, s)
    return t


def test_results_of_two_inline_calls_in_one_statement_do_not_overwrite_each_other():
    @pl.function
    def f(x: pl.Tensor[[64], pl.FP32], y: pl.Tensor[[64], pl.FP32]):
        r = pl.add(shifted(x), shifted(y))
        q = shifted(shifted(r))
        return q

    first, second, result, third, fourth, _ = f.body.stmts[:6]
    assert first.var is not second.var
    left, right = result.value.args
    assert left.args[0] is first.var and right.args[0] is second.var
    assert third.var is fourth.var is second.var


def test_inline_argument_keeps_its_value_while_the_body_assigns_a_variable_that_it_reads():
    @pl.function
    def f(x: pl.Tensor[[64], pl.FP32]):
        s = pl.exp(x)
        r = reading_late(s)
        return r

    _, start, added, product = f.body.stmts[:4]
    assert start.value is f.body.stmts[0].var and added.var is start.value
    assert product.value.args[0] is start.var and product.value.args[1] is added.var
