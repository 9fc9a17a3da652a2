"""Every rewrite rule, taken from the tables: it applies to its own pattern, and it keeps the value."""

from __future__ import annotations

import itertools
import random
import re

import pytest

from pypto import ir
from pypto.arith import Analyzer, RewriteSimplifier
from pypto.ir.arith import rules
from pypto.ir.arith.rule_compiler import Pattern, Rule, RuleWriter, parse_pattern
from tests.arith.expressions import BOOL, INT64, S, c, i, value_of, x, y, z

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


# Written out from the description of the rewriter, independently of its tables. `i` is an INDEX in [1, 100).
ROWS = """
x + 3 + 4 -> x + 7 | 3 + x + 4 -> x + 7 | x - y + y -> x | x + (y - x) -> y | x - y + (y - z) -> x - z
x - y + (z - x) -> z - y | x + x -> x * 2 | x * y + x -> (y + 1) * x | x + x * y -> (y + 1) * x
x * y + x * z -> (y + z) * x | y * x + x * z -> (y + z) * x | x * y + z * x -> (y + z) * x
y * x + z * x -> (y + z) * x | x // y * y + x % y -> x | x % y + x // y * y -> x | y * (x // y) + x % y -> x
x % y + y * (x // y) -> x | min(x, y - z) + z -> min(x + z, y) | z + min(x, y - z) -> min(x + z, y)
min(x - z, y) + z -> min(x, y + z) | max(x, y - z) + z -> max(x + z, y) | max(x - z, y) + z -> max(x, y + z)
max(x, y) + min(x, y) -> x + y | min(x, y) + max(y, x) -> x + y | 3 + x -> x + 3 | x + (3 - y) -> x - y + 3
3 - y + x -> x - y + 3 | x + 3 + y -> x + y + 3 | x - x -> 0 | x + y - y -> x | x + y - x -> y
y + x - x -> y | x - (x + y) -> -y | x - (y + x) -> -y | x + 5 - 3 -> x + 2 | 5 + x - 3 -> x + 2
5 - (3 - x) -> x + 2 | 5 - (x + 3) -> 2 - x | 5 - (3 + x) -> 2 - x | (5 - x) - (3 - y) -> y - x + 2
(x - y) - (x - z) -> z - y | (x + y) - (x + z) -> y - z | (y + x) - (x + z) -> y - z
(x + y) - (z + x) -> y - z | (y + x) - (z + x) -> y - z | x * y - x -> (y - 1) * x
x - x * y -> (1 - y) * x | x * y - x * z -> (y - z) * x | y * x - z * x -> (y - z) * x
x - x // 4 * 4 -> x % 4 | x - 4 * (x // 4) -> x % 4 | x - x // -4 * -4 -> x % -4
x // 4 * 4 - x -> 0 - x % 4 | x - (x + y) // 4 * 4 -> (x + y) % 4 - y
(x + y) // 4 * 4 - x -> y - (x + y) % 4 | x - (x - y) // 4 * 4 -> (x - y) % 4 + y
(x - y) // 4 * 4 - x -> 0 - (x - y) % 4 - y | min(x, y) - x -> min(y - x, 0)
min(x, y) - y -> min(x - y, 0) | max(x, y) - x -> max(y - x, 0) | x - min(x, y) -> max(x - y, 0)
x - max(x, y) -> min(x - y, 0) | min(x + y, z) - x -> min(y, z - x) | min(y + x, z) - x -> min(y, z - x)
min(z, x + y) - x -> min(z - x, y) | max(z, y + x) - x -> max(z - x, y)
x - min(x + y, z) -> max(0 - y, x - z) | x - max(z, y + x) -> min(x - z, 0 - y) | min(x, y) - min(y, x) -> 0
max(x, y) - max(y, x) -> 0 | x - (y + 3) -> x - y + -3 | x + 3 - y -> x - y + 3 | x - (y - z) -> x + z - y
x * 3 * 4 -> x * 12 | 3 * x * 4 -> x * 12 | min(x, y) * max(x, y) -> x * y | max(x, y) * min(x, y) -> x * y
3 * x -> x * 3 | (x + 3) * 4 -> x * 4 + 12 | (x - y) * -2 -> (y - x) * 2 | x * 8 // 4 -> x * 2
8 * x // 4 -> x * 2 | x * 4 // 8 -> x // 2 | x // 4 // 8 -> x // 32 | (x // 4 + 3) // 8 -> (x + 12) // 32
(x + 8) // 4 -> x // 4 + 2 | (x * 8 + y) // 4 -> x * 2 + y // 4 | (y + x * 8) // 4 -> y // 4 + x * 2
min(x * 8, y) // 4 -> min(x * 2, y // 4) | max(y, x * 8) // 4 -> max(y // 4, x * 2)
(x - x % 4) // 4 -> x // 4 | i // i -> 1 | i * 5 // i -> 5 | 5 * i // i -> 5 | x * i // i -> x
i * x // i -> x | (x * i + y) // i -> x + y // i | (y + i * x) // i -> y // i + x | i // 100 -> 0
x * 8 % 4 -> 0 | (x + 8) % 4 -> x % 4 | (x * 8 + y) % 4 -> y % 4 | (y + 8 * x) % 4 -> y % 4
x * 6 % 4 -> x * 2 % 4 | (x + y * 6) % 4 -> (x + y * 2) % 4 | (x + 6) % 4 -> (x + 2) % 4
(x - 1) % 4 -> (x - 1) % 4 | (x + -1) % 4 -> (x + 3) % 4 | x * i % i -> 0 | i * x % i -> 0 | i % 100 -> i
i * 7 % (i * 4) -> i * 3 | min(x, x) -> x | min(min(x, 5), 3) -> min(x, 3) | min(5, min(x, 3)) -> min(x, 3)
min(y - x, z - x) -> min(y, z) - x | min(x - y, x - z) -> x - max(y, z) | min(x + y, z + x) -> x + min(y, z)
min(x + 3, x + 5) -> x + 3 | max(x + 3, x + 5) -> x + 5 | min(x + -3, x) -> x + -3 | min(x, x + 3) -> x
min(5 - x, 3 - x) -> 3 - x | min(min(x, y), x) -> min(x, y) | min(y, min(x, y)) -> min(x, y)
min(max(x, y), y) -> y | min(max(x, y), x) -> x | min(y, max(x, y)) -> y | max(min(x, y), y) -> y
min(max(x, y), max(z, x)) -> max(min(y, z), x) | min(min(x, y), min(x, z)) -> min(min(y, z), x)
min(x // 4, y // 4) -> min(x, y) // 4 | min(x // -4, y // -4) -> max(x, y) // -4
max(x * 4, y * 4) -> max(x, y) * 4 | max(x * -4, y * -4) -> min(x, y) * -4 | min(i, 0) -> 0 | max(i, 0) -> i
min(3, x) -> min(x, 3) | max(max(x, 3), y) -> max(max(x, y), 3) | x == x -> true | x + y == z + x -> y == z
x - 3 == 5 -> x == 8 | x + 3 == 5 -> x == 2 | 3 - x == 5 -> x == -2 | 3 == x -> x == 3 | x != x -> false
x + y != x + z -> y != z | x - 3 != 5 -> x != 8 | 3 != x -> x != 3 | x < x -> false | x + y < z + x -> y < z
y - x < z - x -> y < z | x - y < x - z -> z < y | x < x + z -> 0 < z | x < z + x -> 0 < z
x < x - z -> z < 0 | x + 3 < 5 -> x < 2 | x - 3 < 5 -> x < 8 | 3 - x < 5 -> -2 < x | 3 < x + 5 -> -2 < x
3 < x - 5 -> 8 < x | x * 3 < y * 3 -> x < y | x * -3 < y * -3 -> y < x | x // 3 < 5 -> x < 15
3 < x // 5 -> 19 < x | x // 4 * 4 < x -> 0 < x % 4 | x // 4 * 4 < x + y -> 0 < x % 4 + y
x // 4 * 4 < x - y -> y < x % 4 | min(x, y) < z -> Or(x < z, y < z) | max(x, y) < z -> And(x < z, y < z)
z < min(x, y) -> And(z < x, z < y) | z < max(x, y) -> Or(z < x, z < y) | x <= x -> true
x + y <= x + z -> y <= z | y - x <= z - x -> y <= z | x - y <= x - z -> z <= y | x + 3 <= 5 -> x <= 2
x - 5 <= 3 -> x <= 8 | 3 <= x + 5 -> -2 <= x | 3 <= x - 5 -> 8 <= x | 3 - x <= 5 -> -2 <= x
x * -3 <= y * -3 -> y <= x | x > y -> y < x | x >= y -> y <= x | x + 3 > 5 -> 2 < x
Not(Not(x < y)) -> x < y | Not(x < y) -> y <= x | Not(x <= y) -> y < x | Not(x > y) -> x <= y
Not(x == y) -> x != y | Not(x != y) -> x == y | Not(And(x < y, y < z)) -> Or(y <= x, z <= y)
Not(Or(x < y, y < z)) -> And(y <= x, z <= y) | Not(And(p, q)) -> Or(Not(p), Not(q)) | And(p, p) -> p
And(p, Not(p)) -> false | And(Not(p), p) -> false | And(x == y, x != y) -> false
And(x <= y, y < x) -> false | And(y < x, x <= y) -> false | And(x < 5, 4 < x) -> false
And(4 < x, x < 5) -> false | And(x <= 4, 5 <= x) -> false | And(p, And(q, r)) -> And(And(p, q), r)
Or(p, p) -> p | Or(p, Not(p)) -> true | Or(x == y, x != y) -> true | Or(x <= y, y < x) -> true
Or(x < y, y < x) -> x != y | Or(x < 5, 4 < x) -> true | Or(x <= 4, 5 <= x) -> true
Or(x < y, x == y) -> x <= y | Or(x == y, x < y) -> x <= y | Or(p, Or(q, r)) -> Or(Or(p, q), r) | -(-x) -> x
-(x - y) -> y - x
"""

UNCHANGED = """
x - 3 | x + y | x - y | x * y | x + y * z | x // y * z + x % y | (x - y) + (z - y) | min(x, y) + max(x, z)
x * 3 // 4 | x // x | x * 5 // x | (x + 3) // 4 | x * y // y | x // 8 | (x // -4) // 8 | (x + 1) // -4
x % 8 | x * y % y | x * 3 % 4 | (x + 3) % 4 | (x + y * 3) % 4 | x * 7 % (x * 4) | i // 99 | i % 99
min(x, y) | max(x, 3) | min(max(x, y), z) | min(x // 4, y // 8) | min(x * y, z * y) | min(i, 2) | max(i, 98)
x == y | x == 3 | 3 - x != 5 | x < y | x * z < y * z | x // -3 < 5 | 3 < x // -5 | x // 3 <= 5
min(x, y) <= z | Not(p) | And(p, q) | And(x < 5, 3 < x) | And(x <= 5, 5 <= x) | Or(x < 5, 5 < y)
Or(x < y, z == y) | -x | x - (x // 4) * 8 | x - (y // 4) * 4
"""

_CONDITIONS = {name: ir.Var(name, ir.ScalarType(BOOL), S) for name in "pqr"}


def built(text: str) -> ir.Expr:
    names = {"x": x, "y": y, "z": z, "i": i, "c": c, **_CONDITIONS, "min": ir.min_, "max": ir.max_}
    names |= {"And": ir.and_, "Or": ir.or_, "Not": ir.not_}
    names |= {"true": ir.ConstBool(True, S), "false": ir.ConstBool(False, S)}
    return eval(re.sub(r"(?<![^( ])-?\d+", r"c(\g<0>)", text.strip()), names)


def _shown(expr: ir.Expr) -> str:
    """The text without the types of constants, which are those of their sources."""
    return re.sub(r"pl\.const\((-?\d+), pl\.\w+\)", r"\1", str(expr))


def rows(text: str) -> list[str]:
    return [row.strip() for line in text.strip().splitlines() for row in line.split("|")]


def in_range() -> RewriteSimplifier:
    analyzer = Analyzer()
    analyzer.bind(i, 1, 100)
    return analyzer.rewrite_simplify


@pytest.mark.parametrize("row", rows(ROWS))
def test_the_rewriter_gives_the_described_form(row: str) -> None:
    source, expected = (built(side) for side in row.split("->"))
    assert _shown(in_range()(source)) == _shown(expected)


@pytest.mark.parametrize("text", rows(UNCHANGED))
def test_the_rewriter_leaves_alone_what_no_rule_describes(text: str) -> None:
    expr = built(text)
    assert in_range()(expr) is expr
