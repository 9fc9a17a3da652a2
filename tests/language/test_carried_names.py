"""Names that a loop in SSA style carries and its body assigns again."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

import pypto.language as pl
from pypto import ir, passes
from pypto.ir.walk import walk_stmts
from pypto.testing.eager import run_text
from pypto.testing.interpreter import run
from tests.language.random_yields import METHOD

TEXT = (
    METHOD
    + """\
        for i, (a,) in pl.range(2, init_values=(pl.abs(y),)):
            {body}
            r = pl.yield_(pl.add(a, x))
        o = pl.assemble(o, r, [0, 0])
        return o
"""
)

BODIES = {
    "exchanged in an inner loop": "for j in pl.range(3):\n                x, a = a, x",
    "read before it is assigned": (
        "for j in pl.range(3):\n                b = pl.add(a, 1.0)\n                a = pl.mul(b, 2.0)"
    ),
    "in a branch of a while loop": (
        "w = 0\n            while w < 3:\n                if w > 0:\n                    a = pl.add(a, x)\n"
        "                w = w + 1"
    ),
    "carried again inside": (
        "for j, (a,) in pl.range(2, init_values=(a,)):\n                c = pl.yield_(pl.add(a, 1.0))\n"
        "            a = c"
    ),
    "in a branch": "if i > 0:\n                a = pl.add(a, 1.0)",
}


@pytest.mark.parametrize("name", BODIES)
def test_reading_a_carried_name_means_what_was_assigned_last(name: str) -> None:
    text = TEXT.format(body=BODIES[name])
    arguments = [np.full((2, 16), value, np.float32) for value in (1, -2, 0)]
    wanted = [each.copy() for each in arguments]
    run_text(text, "P", wanted)
    run(passes.convert_to_ssa()(pl.parse_program(text)), "main", *arguments)
    np.testing.assert_array_equal(arguments[2], wanted[2])


YIELDED = (
    METHOD
    + """\
        a = pl.abs(y)
        for i in pl.{loop}(4):
            {body}
        o = pl.assemble(o, a, [0, 0])
        return o
"""
)

YIELDING_BODIES = {
    "branches": (
        "if i > 1:\n                a = pl.yield_(pl.add(a, x))\n            else:\n"
        "                a = pl.yield_(pl.mul(a, 2.0))"
    ),
    "an inner loop": (
        "for j, (b,) in pl.range(2, init_values=(a,)):\n                a = pl.yield_(pl.add(b, x))"
    ),
    "a read before": (
        "c = pl.add(a, x)\n            for j, (b,) in pl.range(2, init_values=(c,)):\n"
        "                a = pl.yield_(pl.mul(b, 2.0))"
    ),
}


@pytest.mark.parametrize("loop", ["range", "unroll"])
@pytest.mark.parametrize("name", YIELDING_BODIES)
def test_a_yield_to_a_name_that_an_outer_loop_reads_is_read_by_its_next_turn(name: str, loop: str) -> None:
    text = YIELDED.format(loop=loop, body=YIELDING_BODIES[name])
    arguments = [np.full((2, 16), value, np.float32) for value in (1, -2, 0)]
    wanted = [each.copy() for each in arguments]
    run_text(text, "P", wanted)
    program = passes.convert_to_ssa()(passes.unroll_loops()(pl.parse_program(text)))
    run(program, "main", *arguments)
    np.testing.assert_array_equal(arguments[2], wanted[2])


def test_a_yield_to_a_name_that_only_the_condition_of_a_loop_reads_ends_the_loop() -> None:
    text = """
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, x: pl.Tensor[[2, 16], pl.FP32], o: pl.InOut[pl.Tensor[[2, 16], pl.FP32]]):
        s = 0
        k = 0
        while s < 3:
            o = pl.assemble(o, pl.add(o, x), [0, 0])
            k = k + 1
            if k > 2:
                s = pl.yield_(k)
            else:
                s = pl.yield_(0)
        return o
"""
    arguments = [np.full((2, 16), value, np.float32) for value in (1, 0)]
    program = passes.convert_to_ssa()(pl.parse_program(text))
    run(program, "main", *arguments)
    np.testing.assert_array_equal(arguments[1], np.full((2, 16), 3))


NESTED_YIELDS = {
    "a branch of a branch": """
        if n > 1:
            if n > {n}:
                a = pl.yield_(pl.add(a, x))
            else:
                a = pl.yield_(pl.mul(a, 3.0))
    """,
    "an elif": """
        if n > 3:
            a = pl.yield_(pl.add(a, x))
        elif n > {n}:
            a = pl.yield_(pl.mul(a, 3.0))
        elif n > 1:
            a = pl.yield_(pl.add(x, y))
        else:
            a = pl.yield_(x)
    """,
    "branches that end in a branch or a loop": """
        if n > {n}:
            b = pl.add(a, y)
            if n > 1:
                d, c = pl.yield_(pl.add(b, x), y)
            else:
                d, c = pl.yield_(x, b)
        elif n > 1:
            for j, (b, e) in pl.range(2, init_values=(a, y)):
                c, d = pl.yield_(pl.add(b, e), pl.mul(e, 2.0))
        else:
            c, d = pl.yield_(x, pl.mul(x, 5.0))
        a = pl.add(d, pl.mul(c, 7.0))
    """,
    "a loop in a branch": """
        if n > {n}:
            for j, (b,) in pl.range(2, init_values=(a,)):
                a = pl.yield_(pl.add(b, x))
    """,
    "a branch in a while loop": """
        while n < {n}:
            n = n + 1
            if n > 1:
                a = pl.yield_(pl.add(a, x))
            else:
                a = pl.yield_(y)
    """,
    "a loop of as many turns": """
        for i in pl.range({n}):
            if i > 0:
                a = pl.yield_(pl.add(x, y))
            else:
                a = pl.yield_(x)
    """,
    "a branch that yields another name": """
        if n > {n}:
            if n > 0:
                a = pl.yield_(pl.add(a, x))
            else:
                a = pl.yield_(x)
            c = pl.yield_(pl.add(a, 1.0))
        else:
            c = pl.yield_(x)
        a = pl.add(a, c)
    """,
    "a loop in a loop that carries the name": """
        for i, (a,) in pl.range({n}, init_values=(a,)):
            for j in pl.range(3):
                b = pl.add(a, x)
                if j > 0:
                    a = pl.yield_(pl.mul(b, 2.0))
                else:
                    a = pl.yield_(b)
            a = pl.yield_(pl.add(a, y))
    """,
    "a loop of the same result": """
        for i, (b,) in pl.range({n}, init_values=(a,)):
            for j, (c,) in pl.range(2, init_values=(b,)):
                a = pl.yield_(pl.add(c, x))
            a = pl.yield_(pl.mul(a, 2.0))
    """,
    "both branches for a new name": """
        if n > {n}:
            for j, (b,) in pl.range(2, init_values=(a,)):
                c = pl.yield_(pl.add(b, x))
        else:
            c = pl.mul(x, 2.0)
        a = pl.add(a, c)
    """,
    "a loop that ends with a new name": """
        c = x
        for i in pl.range({n}):
            for j in pl.range(2):
                if j > 0:
                    b = pl.yield_(pl.add(a, x))
                else:
                    b = pl.yield_(y)
                c = pl.add(c, b)
        a = pl.add(a, c)
    """,
}


@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize("name", NESTED_YIELDS)
def test_a_yield_in_any_nesting_assigns_the_name_for_whoever_reads_it_after(name: str, n: int) -> None:
    body = textwrap.indent(textwrap.dedent(NESTED_YIELDS[name].format(n=n)), 8 * " ")
    text = METHOD + f"        a = pl.abs(y)\n        n = 2\n{body}\n        return pl.add(a, x)\n"
    arguments = [np.full((2, 16), value, np.float32) for value in (1, -2, 0)]
    (wanted,) = run_text(text, "P", [each.copy() for each in arguments])
    program = pl.parse_program(text)
    ir.assert_structural_equal(pl.parse_program(program.as_python()), program)
    (result,) = run(passes.convert_to_ssa()(program), "main", *arguments)
    np.testing.assert_array_equal(result.data, wanted)


@pytest.mark.parametrize(
    ("loop", "body"),
    [
        ("range(4)", "if i > 1:\n    t = pl.yield_(y)\nelse:\n    t = pl.yield_(x)"),
        ("unroll(3)", "if i > 1:\n    t = pl.yield_(y)\nelse:\n    t = pl.yield_(x)"),
        ("range(3)", "for j, (c,) in pl.range(2, init_values=(a,)):\n    t = pl.yield_(pl.add(c, x))"),
        ("range(3)", "t = pl.mul(x, 2.0)\nif i > 1:\n    t = pl.yield_(t)\nelse:\n    t = pl.yield_(x)"),
    ],
)
def test_a_name_first_yielded_in_a_loop_is_read_after_it(loop: str, body: str) -> None:
    text = f"{METHOD}        a = pl.abs(y)\n        for i in pl.{loop}:\n{textwrap.indent(body, 12 * ' ')}\n"
    text = text.replace("o: pl.Out[pl.Tensor[[2, 16], pl.FP32]]", "o: pl.Tensor[[2, 16], pl.FP32]")
    text += "        return pl.add(a, t)\n"
    arguments = [np.full((2, 16), value, np.float32) for value in (1, -2, 0)]
    (wanted,) = run_text(text, "P", arguments)
    program = passes.convert_to_ssa()(passes.unroll_loops()(pl.parse_program(text)))
    (result,) = run(program, "main", *arguments)
    np.testing.assert_array_equal(result.data, wanted)


def test_a_name_may_be_yielded_with_another_type_in_a_block_of_its_own() -> None:
    body = """
        n = 2
        for i in pl.range(3):
            for j, (b,) in pl.range(2, init_values=(pl.slice(x, [1, 16], [0, 0]),)):
                a = pl.yield_(pl.add(b, 1.0))
            n = n + 1
            o = pl.assemble(o, a, [1, 0])
        return o
    """
    text = f"{METHOD}        a = pl.abs(y)\n{textwrap.indent(textwrap.dedent(body), 8 * ' ')}\n"
    arguments = [np.full((2, 16), value, np.float32) for value in (1, -2, 0)]
    run(passes.convert_to_ssa()(pl.parse_program(text)), "main", *arguments)
    np.testing.assert_array_equal(arguments[2], np.array([[0], [3]]) * np.ones((1, 16)))


@pytest.mark.parametrize("results", ["b", "a"])
def test_a_yielded_name_that_is_new_or_handed_on_needs_no_assignment(results: str) -> None:
    body = YIELDING_BODIES["branches"].replace("a = ", f"{results} = ")
    text = YIELDED.format(loop="range", body=body)
    if results == "a":
        text = text.replace("i in pl.range(4)", "i, (b,) in pl.range(4, init_values=(a,))")
        text = text.replace("        o = ", "            a = pl.yield_(pl.add(a, b))\n        o = ", 1)
    function = pl.parse_program(text).functions_["main"]
    assigned = [stmt.var.name_hint for stmt in walk_stmts(function.body) if isinstance(stmt, ir.AssignStmt)]
    assert assigned == ["a", "o"]
