"""Every rewrite rule, taken from the tables: it applies to its own pattern, and it keeps the value."""

from __future__ import annotations

import itertools
import random

import pytest

from pypto import ir
from pypto.arith import RewriteSimplifier
from pypto.ir.arith import rules
from pypto.ir.arith.rule_compiler import Pattern, Rule, RuleWriter, parse_pattern
from tests.arith.expressions import BOOL, INT64, S, c, value_of, x, y, z

TABLES = {name: table for name, table in vars(rules).items() if name.isupper() and isinstance(table, list)}
TABLES = {name: table for name, table in TABLES.items() if not name.startswith("_")}
ALL = [pytest.param(rule, id=f"{name}: {rule.pattern}") for name, table in TABLES.items() for rule in table]
CONSTANTS = (0, 1, 2, 3, 4, 6, 8, 12, -1, -2, -4, 16)
VARIABLES = {"x": x, "y": y, "z": z}
BOOLEANS = (ir.And, ir.Or, ir.Not)


class Bounds:
    """Bounds that a test chooses for plain variables and their differences."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high

    def lower(self, expr: ir.Expr, minus: ir.Expr | None = None) -> float:
        return self.low

    def upper(self, expr: ir.Expr, minus: ir.Expr | None = None) -> float:
        return self.high


UNKNOWN = Bounds(float("-inf"), float("inf"))


def letters(pattern: Pattern) -> set[str]:
    if pattern.cls is None:
        return {pattern.letter}
    return set().union(*(letters(operand) for operand in pattern.operands))


def build(pattern: Pattern, env: dict[str, ir.Expr]) -> ir.Expr:
    if pattern.cls is None:
        return env[pattern.letter]
    operands = [build(operand, env) for operand in pattern.operands]
    is_truth = pattern.cls in (*BOOLEANS, ir.Eq, ir.Ne, ir.Lt, ir.Le, ir.Gt, ir.Ge)
    return pattern.cls(*operands, BOOL if is_truth else INT64, S)


def environments(rule: Rule) -> list[dict[str, ir.Expr]]:
    """Letters as variables (conditions where the pattern is logical), constants in all combinations."""
    pattern = parse_pattern(rule.pattern)
    names = sorted(name for name in letters(pattern) if name.startswith("c"))
    logical = pattern.cls in BOOLEANS and not any(
        operand.cls in (ir.Eq, ir.Ne, ir.Lt, ir.Le, ir.Gt, ir.Ge) for operand in pattern.operands
    )
    base: dict[str, ir.Expr] = dict(VARIABLES)
    if logical:
        base = {name: ir.Lt(var, c(index), BOOL, S) for index, (name, var) in enumerate(VARIABLES.items())}
    found = []
    for values in itertools.product(CONSTANTS, repeat=len(names)):
        found.append({**base, **{name: c(value) for name, value in zip(names, values, strict=True)}})
    random.Random(7).shuffle(found)
    return found[:400]


def bounds_of(rule: Rule) -> Bounds:
    """Bounds under which a rule that asks for them applies."""
    if "lo(x, y)" in rule.when:
        return Bounds(0, float("inf"))
    if "hi(x, y)" in rule.when:
        return Bounds(float("-inf"), 0)
    return Bounds(1, 5) if "lo(" in rule.when else UNKNOWN


def values_for(rule: Rule, generator: random.Random) -> dict[ir.Var, int]:
    """Values of the variables that respect the bounds of `bounds_of`."""
    if "lo(x, y)" in rule.when or "hi(x, y)" in rule.when:
        low, high = sorted(generator.sample(range(-20, 20), 2))
        return {x: high, y: low, z: 0} if "lo(x, y)" in rule.when else {x: low, y: high, z: 0}
    span = (1, 5) if "lo(" in rule.when else (-20, 20)
    return {var: generator.randint(*span) for var in (x, y, z)}


@pytest.mark.parametrize("rule", ALL)
def test_rule_applies_to_its_pattern_and_keeps_the_value(rule: Rule) -> None:
    matcher = RuleWriter(rule).function()
    pattern = parse_pattern(rule.pattern)
    generator = random.Random(rule.pattern)
    applied = 0
    for env in environments(rule):
        expr = build(pattern, env)
        left = expr.left if isinstance(expr, ir.BinaryExpr) else expr.operand
        right = expr.right if isinstance(expr, ir.BinaryExpr) else expr.operand
        result = matcher(expr, left, right, bounds_of(rule))
        if result is None:
            continue
        applied += 1
        for _ in range(5):
            values = values_for(rule, generator)
            try:
                expected = value_of(expr, values)
            except ZeroDivisionError:
                continue  # undefined before, so anything may come after
            assert value_of(result, values) == expected, (str(expr), str(result), values)
    assert applied, "the rule never applied"


@pytest.mark.parametrize("rule", [param for param in ALL if param.values[0].when])
def test_rule_does_not_apply_against_its_condition(rule: Rule) -> None:
    matcher = RuleWriter(rule).function()
    pattern = parse_pattern(rule.pattern)
    refused = 0
    for env in [*environments(rule), {**VARIABLES, **dict.fromkeys(("c", "c1", "c2", "c3"), c(0))}]:
        expr = build(pattern, env)
        assert isinstance(expr, ir.BinaryExpr)
        refused += matcher(expr, expr.left, expr.right, UNKNOWN) is None
    assert refused


@pytest.mark.parametrize(
    ("source", "simplified"),
    [
        (x + 1 + 2, x + 3),
        (c(3) + x, x + c(3)),
        (c(3) * x, x * c(3)),
        (x * c(2) + x, x * c(3)),
        (x // c(8) * c(8) + x % c(8), x),
        (x - (y + c(3)), ir.Add(ir.Sub(x, y, INT64, S), c(-3), INT64, S)),
        (x - c(3), x - c(3)),
        (x > y, y < x),
        (x >= y, y <= x),
        (ir.not_(x < y), y <= x),
        (ir.not_(x > y), x <= y),
        ((x * c(4) + y) // c(4), x + y // c(4)),
        (ir.min_(ir.min_(x, c(7)), c(4)), ir.min_(x, c(4))),
    ],
)
def test_simplified_forms(source: ir.Expr, simplified: ir.Expr) -> None:
    ir.assert_structural_equal(RewriteSimplifier()(source), simplified)
