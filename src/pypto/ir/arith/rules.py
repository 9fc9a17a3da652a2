"""The rewrite rules, per operator and in the order in which they are tried.

See `rule_compiler` for the notation. Max has the rules of Min with the two exchanged; Gt and Ge are
turned into Lt and Le by the simplifier.
"""

from __future__ import annotations

from pypto.ir import expr as nodes
from pypto.ir.arith.rule_compiler import Rule, RuleSet
from pypto.ir.expr import Expr


def _commuted(operator: str, inner: str, result: str) -> list[Rule]:
    """Four rules: `(x . y) OP (x . z)` and its commuted forms, for a commutative inner operator."""
    forms = {"*": "{} * {}", "+": "{} + {}", "min": "min({}, {})", "max": "max({}, {})"}
    form = forms[inner]
    if operator in forms and operator.isalpha():
        outer = operator + "({}, {})"
    else:
        outer = "({}) " + operator + " ({})"
    return [
        Rule(outer.format(form.format(*left), form.format(*right)), result)
        for left in ("xy", "yx")
        for right in ("xz", "zx")
    ]


def _exchanged(rules: list[Rule]) -> list[Rule]:
    """The same rules with min and max exchanged in pattern and result."""

    def exchange(text: str) -> str:
        return text.replace("min(", "?(").replace("max(", "min(").replace("?(", "max(")

    return [Rule(exchange(rule.pattern), exchange(rule.result), rule.when) for rule in rules]


_NON_ZERO = "lo({0}) >= 1 or hi({0}) <= -1"

_MIN_PLUS = [
    Rule("min(x, y - z) + z", "min(x + z, y)"),
    Rule("z + min(x, y - z)", "min(x + z, y)"),
    Rule("min(x - z, y) + z", "min(x, y + z)"),
]

ADD = [
    Rule("(x + c1) + c2", "x + (c1 + c2)"),
    Rule("(c1 + x) + c2", "x + (c1 + c2)"),
    Rule("(x - y) + y", "x"),
    Rule("x + (y - x)", "y"),
    Rule("(x - y) + (y - z)", "x - z"),
    Rule("(x - y) + (z - x)", "z - y"),
    Rule("x + x", "x * 2"),
    Rule("x * y + x", "(y + 1) * x"),
    Rule("x + x * y", "(y + 1) * x"),
    *_commuted("+", "*", "(y + z) * x"),
    Rule("(x // y) * y + x % y", "x"),
    Rule("x % y + (x // y) * y", "x"),
    Rule("y * (x // y) + x % y", "x"),
    Rule("x % y + y * (x // y)", "x"),
    *_MIN_PLUS,
    *_exchanged(_MIN_PLUS),
    Rule("max(x, y) + min(x, y)", "x + y"),
    Rule("max(x, y) + min(y, x)", "x + y"),
    Rule("min(x, y) + max(x, y)", "x + y"),
    Rule("min(x, y) + max(y, x)", "x + y"),
    Rule("c + x", "x + c"),
    Rule("x + (c - y)", "(x - y) + c"),
    Rule("(c - y) + x", "(x - y) + c"),
    Rule("(x + c) + y", "(x + y) + c"),
]

_MIN_MINUS = [
    Rule("min(x, y) - x", "min(0, y - x)"),
    Rule("min(x, y) - y", "min(x - y, 0)"),
]
_MINUS_MIN = [
    Rule("x - min(x, y)", "max(0, x - y)"),
    Rule("y - min(x, y)", "max(y - x, 0)"),
]
_MIN_SUM_MINUS = [
    Rule("min(x + y, z) - x", "min(y, z - x)"),
    Rule("min(y + x, z) - x", "min(y, z - x)"),
    Rule("min(z, x + y) - x", "min(z - x, y)"),
    Rule("min(z, y + x) - x", "min(z - x, y)"),
]
_MINUS_MIN_SUM = [
    Rule("x - min(x + y, z)", "max(0 - y, x - z)"),
    Rule("x - min(y + x, z)", "max(0 - y, x - z)"),
    Rule("x - min(z, x + y)", "max(x - z, 0 - y)"),
    Rule("x - min(z, y + x)", "max(x - z, 0 - y)"),
]
_MIN_MINUS_MIN = [Rule("min(x, y) - min(y, x)", "0")]

SUB = [
    Rule("x - x", "0"),
    Rule("(x + y) - y", "x"),
    Rule("(x + y) - x", "y"),
    Rule("x - (x + y)", "-y"),
    Rule("x - (y + x)", "-y"),
    Rule("(x + c1) - c2", "x + (c1 - c2)"),
    Rule("(c1 + x) - c2", "x + (c1 - c2)"),
    Rule("c1 - (c2 - x)", "x + (c1 - c2)"),
    Rule("c1 - (x + c2)", "(c1 - c2) - x"),
    Rule("c1 - (c2 + x)", "(c1 - c2) - x"),
    Rule("(c1 - x) - (c2 - y)", "(y - x) + (c1 - c2)"),
    Rule("(x - y) - (x - z)", "z - y"),
    *_commuted("-", "+", "y - z"),
    Rule("x * y - x", "(y - 1) * x"),
    Rule("x - x * y", "(1 - y) * x"),
    *_commuted("-", "*", "(y - z) * x"),
    Rule("x - (x // c) * c", "x % c", "c != 0"),
    Rule("x - c * (x // c)", "x % c", "c != 0"),
    Rule("(x // c) * c - x", "0 - x % c", "c != 0"),
    Rule("x - ((x + y) // c) * c", "(x + y) % c - y", "c != 0"),
    Rule("((x + y) // c) * c - x", "y - (x + y) % c", "c != 0"),
    Rule("x - ((x - y) // c) * c", "(x - y) % c + y", "c != 0"),
    Rule("((x - y) // c) * c - x", "0 - (x - y) % c - y", "c != 0"),
    *_MIN_MINUS,
    *_exchanged(_MIN_MINUS),
    *_MINUS_MIN,
    *_exchanged(_MINUS_MIN),
    *_MIN_SUM_MINUS,
    *_exchanged(_MIN_SUM_MINUS),
    *_MINUS_MIN_SUM,
    *_exchanged(_MINUS_MIN_SUM),
    *_MIN_MINUS_MIN,
    *_exchanged(_MIN_MINUS_MIN),
    Rule("x - (y + c)", "(x - y) + (0 - c)"),
    Rule("(x + c) - y", "(x - y) + c"),
    Rule("x - (y - z)", "(x + z) - y"),
]

MUL = [
    Rule("(x * c1) * c2", "x * (c1 * c2)"),
    Rule("(c1 * x) * c2", "x * (c1 * c2)"),
    Rule("min(x, y) * max(x, y)", "x * y"),
    Rule("max(x, y) * min(x, y)", "x * y"),
    Rule("c * x", "x * c"),
    Rule("x * (c * y)", "(x * y) * c"),
    Rule("(x + c1) * c2", "x * c2 + c1 * c2"),
    Rule("(x - y) * c", "(y - x) * (-c)", "c < 0"),
]

_DIVIDES = "c2 > 0 and c1 % c2 == 0"

FLOOR_DIV = [
    Rule("(x * c1) // c2", "x * (c1 // c2)", _DIVIDES),
    Rule("(c1 * x) // c2", "x * (c1 // c2)", _DIVIDES),
    Rule("(x * c1) // c2", "x // (c2 // c1)", "c1 > 0 and c2 % c1 == 0 and c2 // c1 > 0"),
    Rule("(x // c1) // c2", "x // (c1 * c2)", "c1 > 0 and c2 > 0"),
    Rule("(x // c1 + c2) // c3", "(x + c1 * c2) // (c1 * c3)", "c1 > 0 and c3 > 0"),
    Rule("x // x", "1", _NON_ZERO.format("x")),
    Rule("(x * c) // x", "c", _NON_ZERO.format("x")),
    Rule("(c * x) // x", "c", _NON_ZERO.format("x")),
    Rule("(x + c1) // c2", "x // c2 + c1 // c2", _DIVIDES),
    Rule("(c1 + x) // c2", "x // c2 + c1 // c2", _DIVIDES),
    Rule("(x * c1 + y) // c2", "x * (c1 // c2) + y // c2", _DIVIDES),
    Rule("(c1 * x + y) // c2", "x * (c1 // c2) + y // c2", _DIVIDES),
    Rule("(y + x * c1) // c2", "y // c2 + x * (c1 // c2)", _DIVIDES),
    Rule("(y + c1 * x) // c2", "y // c2 + x * (c1 // c2)", _DIVIDES),
    Rule("min(x * c1, y) // c2", "min(x * (c1 // c2), y // c2)", _DIVIDES),
    Rule("min(y, x * c1) // c2", "min(y // c2, x * (c1 // c2))", _DIVIDES),
    Rule("max(x * c1, y) // c2", "max(x * (c1 // c2), y // c2)", _DIVIDES),
    Rule("max(y, x * c1) // c2", "max(y // c2, x * (c1 // c2))", _DIVIDES),
    Rule("(x - x % c) // c", "x // c", "c != 0"),
    Rule("(x * y) // y", "x", _NON_ZERO.format("y")),
    Rule("(y * x) // y", "x", _NON_ZERO.format("y")),
    Rule("(x * z + y) // z", "x + y // z", "lo(z) >= 0"),
    Rule("(z * x + y) // z", "x + y // z", "lo(z) >= 0"),
    Rule("(y + x * z) // z", "y // z + x", "lo(z) >= 0"),
    Rule("(y + z * x) // z", "y // z + x", "lo(z) >= 0"),
    Rule("x // c", "0", "c > 0 and lo(x) >= 0 and hi(x) < c"),
]

FLOOR_MOD = [
    Rule("(x * c1) % c2", "0", _DIVIDES),
    Rule("(c1 * x) % c2", "0", _DIVIDES),
    Rule("(x + c1) % c2", "x % c2", _DIVIDES),
    Rule("(c1 + x) % c2", "x % c2", _DIVIDES),
    Rule("(x * c1 + y) % c2", "y % c2", _DIVIDES),
    Rule("(c1 * x + y) % c2", "y % c2", _DIVIDES),
    Rule("(y + x * c1) % c2", "y % c2", _DIVIDES),
    Rule("(y + c1 * x) % c2", "y % c2", _DIVIDES),
    Rule("(x * c1) % c2", "(x * (c1 % c2)) % c2", "c2 != 0 and c1 % c2 != c1"),
    Rule("(x * y) % y", "0", _NON_ZERO.format("y")),
    Rule("(y * x) % y", "0", _NON_ZERO.format("y")),
    Rule("(x + y * c1) % c2", "(x + y * (c1 % c2)) % c2", "c2 > 0 and c1 % c2 != c1"),
    Rule("(x * c1) % (x * c2)", "x * (c1 % c2)", f"c2 != 0 and ({_NON_ZERO.format('x')})"),
    Rule("(x + c1) % c2", "(x + c1 % c2) % c2", "c2 > 0 and c1 % c2 != 0 and (c1 >= c2 or c1 < 0)"),
    Rule("x % c", "x", "c > 0 and lo(x) >= 0 and hi(x) < c"),
]

_MIN_START = [
    Rule("min(x, x)", "x"),
    Rule("min(min(x, c1), c2)", "min(x, min(c1, c2))"),
    Rule("min(c1, min(x, c2))", "min(x, min(c1, c2))"),
    Rule("min(y - x, z - x)", "min(y, z) - x"),
    Rule("min(x - y, x - z)", "x - max(y, z)"),
    *_commuted("min", "+", "x + min(y, z)"),
    Rule("min(x + c1, x + c2)", "x + min(c1, c2)"),
]
_MIN_MIDDLE = [
    Rule("min(c1 - x, c2 - x)", "min(c1, c2) - x"),
    Rule("min(min(x, y), x)", "min(x, y)"),
    Rule("min(min(x, y), y)", "min(x, y)"),
    Rule("min(x, min(x, y))", "min(x, y)"),
    Rule("min(y, min(x, y))", "min(x, y)"),
    Rule("min(max(x, y), y)", "y"),
    Rule("min(max(y, x), y)", "y"),
    Rule("min(y, max(x, y))", "y"),
    Rule("min(y, max(y, x))", "y"),
    *_commuted("min", "max", "max(min(y, z), x)"),
    *_commuted("min", "min", "min(min(y, z), x)"),
]
_MIN_SCALED = [
    Rule("min(x // c, y // c)", "min(x, y) // c", "c > 0"),
    Rule("min(x // c, y // c)", "max(x, y) // c", "c < 0"),
    Rule("min(x * c, y * c)", "min(x, y) * c", "c > 0"),
    Rule("min(x * c, y * c)", "max(x, y) * c", "c < 0"),
]
_MIN_ORDER = [
    Rule("min(c, x)", "min(x, c)"),
    Rule("min(min(x, c), y)", "min(min(x, y), c)"),
]

MIN = [
    *_MIN_START,
    Rule("min(x + c, x)", "x + c", "c < 0"),
    Rule("min(x + c, x)", "x", "c >= 0"),
    Rule("min(x, x + c)", "x + c", "c < 0"),
    Rule("min(x, x + c)", "x", "c >= 0"),
    *_MIN_MIDDLE,
    *_MIN_SCALED,
    Rule("min(x, y)", "x", "hi(x, y) <= 0"),
    Rule("min(x, y)", "y", "lo(x, y) >= 0"),
    *_MIN_ORDER,
]

MAX = [
    *_exchanged(_MIN_START),
    Rule("max(x + c, x)", "x + c", "c > 0"),
    Rule("max(x + c, x)", "x", "c <= 0"),
    Rule("max(x, x + c)", "x + c", "c > 0"),
    Rule("max(x, x + c)", "x", "c <= 0"),
    *_exchanged(_MIN_MIDDLE),
    *_exchanged(_MIN_SCALED),
    Rule("max(x, y)", "x", "lo(x, y) >= 0"),
    Rule("max(x, y)", "y", "hi(x, y) <= 0"),
    *_exchanged(_MIN_ORDER),
]


def _equality(op: str) -> list[Rule]:
    """The rules that Eq and Ne share; the last rearrangement is for Eq only."""
    return [
        *_commuted(op, "+", f"y {op} z"),
        Rule(f"x - c1 {op} c2", f"x {op} c1 + c2"),
        Rule(f"x + c1 {op} c2", f"x {op} c2 - c1"),
    ]


EQ = [
    Rule("x == x", "True"),
    *_equality("=="),
    Rule("c1 - x == c2", "x == c1 - c2"),
    Rule("c == x", "x == c"),
]

NE = [
    Rule("x != x", "False"),
    *_equality("!="),
    Rule("c != x", "x != c"),
]


def _ordering(op: str) -> list[Rule]:
    """Cancellation on both sides of < or <=."""
    return [
        *_commuted(op, "+", f"y {op} z"),
        Rule(f"y - x {op} z - x", f"y {op} z"),
    ]


def _moved_constants(op: str) -> list[Rule]:
    return [
        Rule(f"x + c1 {op} c2", f"x {op} c2 - c1"),
        Rule(f"x - c1 {op} c2", f"x {op} c2 + c1"),
        Rule(f"c1 - x {op} c2", f"c1 - c2 {op} x"),
        Rule(f"c1 {op} x + c2", f"c1 - c2 {op} x"),
        Rule(f"c1 {op} x - c2", f"c1 + c2 {op} x"),
    ]


def _scaled_sides(op: str) -> list[Rule]:
    return [
        Rule(f"x * c {op} y * c", f"x {op} y", "c > 0"),
        Rule(f"x * c {op} y * c", f"y {op} x", "c < 0"),
    ]


LT = [
    Rule("x < x", "False"),
    *_ordering("<"),
    Rule("x - y < x - z", "z < y"),
    Rule("x < x + z", "0 < z"),
    Rule("x < z + x", "0 < z"),
    Rule("x < x - z", "z < 0"),
    *_moved_constants("<"),
    *_scaled_sides("<"),
    Rule("x // c1 < c2", "x < c1 * c2", "c1 > 0"),
    Rule("c1 < x // c2", "(c1 + 1) * c2 - 1 < x", "c2 > 0"),
    Rule("(x // c) * c < x", "0 < x % c", "c > 0"),
    Rule("(x // c) * c < x + y", "0 < x % c + y", "c > 0"),
    Rule("(x // c) * c < x - y", "y < x % c", "c > 0"),
    Rule("min(x, y) < z", "x < z or y < z"),
    Rule("max(x, y) < z", "x < z and y < z"),
    Rule("z < min(x, y)", "z < x and z < y"),
    Rule("z < max(x, y)", "z < x or z < y"),
]

LE = [
    Rule("x <= x", "True"),
    *_ordering("<="),
    Rule("x - y <= x - z", "z <= y"),
    *_moved_constants("<="),
    *_scaled_sides("<="),
]


def _both_orders(connective: str, first: str, second: str, result: str, when: str = "") -> list[Rule]:
    return [
        Rule(f"({first}) {connective} ({second})", result, when),
        Rule(f"({second}) {connective} ({first})", result, when),
    ]


NOT = [
    Rule("not (not x)", "x"),
    Rule("not (x < y)", "y <= x"),
    Rule("not (x <= y)", "y < x"),
    Rule("not (x > y)", "y >= x"),
    Rule("not (x >= y)", "y > x"),
    Rule("not (x == y)", "x != y"),
    Rule("not (x != y)", "x == y"),
    Rule("not (x and y)", "(not x) or (not y)"),
    Rule("not (x or y)", "(not x) and (not y)"),
]

AND = [
    Rule("x and x", "x"),
    *_both_orders("and", "x", "not x", "False"),
    *_both_orders("and", "x == y", "x != y", "False"),
    *_both_orders("and", "x <= y", "y < x", "False"),
    *_both_orders("and", "x < c1", "c2 < x", "False", "c2 + 1 >= c1"),
    *_both_orders("and", "x <= c1", "c2 <= x", "False", "c2 > c1"),
    Rule("x and (y and z)", "(x and y) and z"),
]

OR = [
    Rule("x or x", "x"),
    *_both_orders("or", "x", "not x", "True"),
    *_both_orders("or", "x == y", "x != y", "True"),
    *_both_orders("or", "x <= y", "y < x", "True"),
    Rule("x < y or y < x", "x != y"),
    *_both_orders("or", "x < c1", "c2 < x", "True", "c2 < c1"),
    *_both_orders("or", "x <= c1", "c2 <= x", "True", "c2 <= c1 + 1"),
    *_both_orders("or", "x < y", "x == y", "x <= y"),
    Rule("x or (y or z)", "(x or y) or z"),
]

NEG = [
    Rule("-(-x)", "x"),
    Rule("-(x - y)", "y - x"),
]

RULES: dict[type[Expr], RuleSet] = {
    nodes.Add: RuleSet(ADD),
    nodes.Sub: RuleSet(SUB),
    nodes.Mul: RuleSet(MUL),
    nodes.FloorDiv: RuleSet(FLOOR_DIV),
    nodes.FloorMod: RuleSet(FLOOR_MOD),
    nodes.Min: RuleSet(MIN),
    nodes.Max: RuleSet(MAX),
    nodes.Eq: RuleSet(EQ),
    nodes.Ne: RuleSet(NE),
    nodes.Lt: RuleSet(LT),
    nodes.Le: RuleSet(LE),
    nodes.Not: RuleSet(NOT),
    nodes.And: RuleSet(AND),
    nodes.Or: RuleSet(OR),
    nodes.Neg: RuleSet(NEG),
}
