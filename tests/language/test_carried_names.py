"""Names that a loop in SSA style carries and its body assigns again."""

from __future__ import annotations

import numpy as np
import pytest

import pypto.language as pl
from pypto import passes
from pypto.testing.eager import run_text
from pypto.testing.interpreter import run

HEAD = """
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def main(
        self,
        x: pl.Tensor[[2, 16], pl.FP32],
        y: pl.Tensor[[2, 16], pl.FP32],
        o: pl.Out[pl.Tensor[[2, 16], pl.FP32]],
    ) -> pl.Tensor[[2, 16], pl.FP32]:
"""

TEXT = (
    HEAD
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
    HEAD
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


def test_a_yield_to_a_carried_name_in_a_loop_that_does_not_carry_it_is_an_error() -> None:
    body = "for j in pl.range(3):\n                " + YIELDING_BODIES["branches"].replace("\n", "\n    ")
    with pytest.raises(
        pl.parser.ParserSyntaxError, match="'a' is yielded inside a loop that reads it"
    ) as caught:
        pl.parse_program(TEXT.format(body=body))
    assert "init_values=(a,)" in caught.value.hint


def test_a_name_that_no_outer_loop_reads_before_is_bound_to_the_result() -> None:
    body = YIELDING_BODIES["branches"].replace("(a,", "(y,")
    loop = pl.parse_program(YIELDED.format(loop="range", body=body)).functions_["main"].body.stmts[1]
    assert type(loop.body).__name__ == "IfStmt"
