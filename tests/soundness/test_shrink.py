"""Shrinking keeps what the caller looks for and drops the rest."""

from __future__ import annotations

from pypto.testing.shrink import shrink


def test_statements_blocks_and_operands_that_do_not_matter_go():
    text = "def f(x):\n    y = g(x)\n    if x:\n        z = pl.add(pl.neg(y), x)\n    return y\n"
    assert shrink(text, lambda t: "neg" in t) == "def f(x):\n    z = pl.neg(y)\n    return y\n"


def test_text_that_cannot_shrink_stays():
    text = "def f(x):\n    return x\n"
    assert shrink(text, lambda t: t == text) == text
