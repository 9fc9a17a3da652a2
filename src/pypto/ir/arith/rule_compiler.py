"""Rewrite rules written as text, compiled to straight-line Python.

A rule is a pattern, a result and an optional condition, in Python's expression syntax:

    Rule("(x * c1 + y) // c2", "x * (c1 // c2) + y // c2", "c2 > 0 and c1 % c2 == 0")

`c`, `c1`, `c2`, `c3` match integer constants, `x`, `y`, `z` anything. A letter that occurs again must
match the same expression. In a condition the constants are plain integers, and `lo(x)`, `hi(x)` are the
proven bounds of an expression, `lo(x, y)` and `hi(x, y)` those of `x - y` (infinite when no analyzer
owns the simplifier). In a result, an operation on constants only is computed; if it leaves 64 bits the
rule does not apply. The literals 0, 1, 2 take the dtype of the node being rewritten (for a comparison:
of its left operand).

Rules of one operator are tried in order; those that cannot match the kinds of the two operands are
skipped.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from pypto.core.dtype import DataType
from pypto.ir import expr as nodes
from pypto.ir.arith.fold import binary, dtype_of, folded, is_int, logical
from pypto.ir.arith.integers import fits_int64
from pypto.ir.expr import BinaryExpr, ConstBool, ConstInt, Expr, UnaryExpr

_BINARY_OPERATORS: dict[type[ast.AST], type[BinaryExpr]] = {
    ast.Add: nodes.Add,
    ast.Sub: nodes.Sub,
    ast.Mult: nodes.Mul,
    ast.FloorDiv: nodes.FloorDiv,
    ast.Mod: nodes.FloorMod,
}
_COMPARISONS: dict[type[ast.AST], type[BinaryExpr]] = {
    ast.Eq: nodes.Eq,
    ast.NotEq: nodes.Ne,
    ast.Lt: nodes.Lt,
    ast.LtE: nodes.Le,
    ast.Gt: nodes.Gt,
    ast.GtE: nodes.Ge,
}
_LOGIC: dict[type[ast.AST], type[BinaryExpr]] = {ast.And: nodes.And, ast.Or: nodes.Or}
_FUNCTIONS: dict[str, type[BinaryExpr]] = {"min": nodes.Min, "max": nodes.Max}
_BOOLEAN = frozenset((*_COMPARISONS.values(), *_LOGIC.values()))


class Rule(NamedTuple):
    """One rewrite rule, as text."""

    pattern: str
    result: str
    when: str = ""


class BoundSource(Protocol):
    """Who answers `lo` and `hi` in conditions."""

    def lower(self, expr: Expr, minus: Expr | None = None) -> float:
        """Return a proven lower bound of `expr`, or of `expr - minus`."""

    def upper(self, expr: Expr, minus: Expr | None = None) -> float:
        """Return a proven upper bound of `expr`, or of `expr - minus`."""


Matcher = Callable[[Any, Expr, Expr, BoundSource], "Expr | None"]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A node of a pattern: an operator with operands, or a letter."""

    cls: type[Expr] | None
    operands: tuple[Pattern, ...]
    letter: str


def parse_pattern(text: str) -> Pattern:
    return _pattern(ast.parse(text, mode="eval").body)


def _pattern(node: ast.AST) -> Pattern:
    if isinstance(node, ast.Name):
        return Pattern(None, (), node.id)
    if isinstance(node, ast.Constant):
        return Pattern(None, (), str(node.value))
    cls, operands = _operator(node)
    return Pattern(cls, tuple(_pattern(operand) for operand in operands), "")


def _operator(node: ast.AST) -> tuple[type[Expr], list[ast.expr]]:
    if isinstance(node, ast.BinOp):
        return _BINARY_OPERATORS[type(node.op)], [node.left, node.right]
    if isinstance(node, ast.Compare):
        return _COMPARISONS[type(node.ops[0])], [node.left, node.comparators[0]]
    if isinstance(node, ast.BoolOp):
        return _LOGIC[type(node.op)], list(node.values)
    if isinstance(node, ast.UnaryOp):
        return (nodes.Not if isinstance(node.op, ast.Not) else nodes.Neg), [node.operand]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return _FUNCTIONS[node.func.id], list(node.args)
    raise AssertionError(f"not a rule expression: {ast.dump(node)}")


def _is_constant_letter(letter: str) -> bool:
    return letter.startswith("c")


class RuleWriter:
    """Writes the function of one rule."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.lines: list[str] = []
        self.bound: dict[str, str] = {}
        self.names: dict[str, Any] = {
            "ConstInt": ConstInt,
            "ConstBool": ConstBool,
            "same": same_expr,
            "is_int": is_int,
            "binary": binary,
            "logical": logical,
            "unary": _unary,
            "fits": fits_int64,
        }
        self._count = 0

    def function(self) -> Matcher:
        """Compile the rule to `f(node, left, right, bounds) -> Expr | None`."""
        pattern = parse_pattern(self.rule.pattern)
        places = ["left", "right"] if len(pattern.operands) == 2 else ["left"]
        for place, operand in zip(places, pattern.operands, strict=True):
            self._match(operand, place)
        if self.rule.when:
            self.lines.append(f"if not ({self._condition()}): return None")
        result = self._build(parse_pattern(self.rule.result))
        self.lines.append(f"return {result}")
        source = "def rule(node, left, right, bounds):\n" + "".join(f"    {line}\n" for line in self.lines)
        exec(source, self.names)
        matcher: Matcher = self.names["rule"]
        return matcher

    def _fresh(self) -> str:
        self._count += 1
        return f"v{self._count}"

    def _class(self, cls: type[Expr]) -> str:
        self.names[cls.__name__] = cls
        return cls.__name__

    def _match(self, pattern: Pattern, place: str) -> None:
        if pattern.cls is None:
            self._match_letter(pattern.letter, place)
            return
        self.lines.append(f"if {place}.__class__ is not {self._class(pattern.cls)}: return None")
        parts = ["left", "right"] if len(pattern.operands) == 2 else ["operand"]
        for part, operand in zip(parts, pattern.operands, strict=True):
            name = self._fresh()
            self.lines.append(f"{name} = {place}.{part}")
            if part == "left" and pattern.cls in _COMPARISONS.values():
                self.lines.append(f"if not is_int({name}): return None")
            self._match(operand, name)

    def _match_letter(self, letter: str, place: str) -> None:
        if letter in self.bound:
            self.lines.append(f"if not same({self.bound[letter]}, {place}): return None")
            return
        if _is_constant_letter(letter):
            self.lines.append(f"if {place}.__class__ is not ConstInt: return None")
        self.bound[letter] = place

    def _condition(self) -> str:
        bound = self.bound

        class Names(ast.NodeTransformer):
            def visit_Name(self, node: ast.Name) -> ast.AST:
                if _is_constant_letter(node.id):
                    return ast.parse(f"{bound[node.id]}.value", mode="eval").body
                return ast.Name(id=bound.get(node.id, node.id), ctx=node.ctx)

            def visit_Call(self, node: ast.Call) -> ast.AST:
                assert isinstance(node.func, ast.Name)
                method = {"lo": "bounds.lower", "hi": "bounds.upper"}[node.func.id]
                arguments = ", ".join(ast.unparse(self.visit(argument)) for argument in node.args)
                return ast.parse(f"{method}({arguments})", mode="eval").body

        return ast.unparse(Names().visit(ast.parse(self.rule.when, mode="eval").body))

    def _build(self, pattern: Pattern) -> str:
        """Write what builds the result; return the name (or text) that holds it."""
        if pattern.cls is None:
            return self._build_letter(pattern.letter)
        number = self._number(pattern)
        if number is not None:
            name = self._fresh()
            self.lines += [f"{name} = {number}", f"if not fits({name}): return None"]
            return f"ConstInt({name}, {self._first_dtype(pattern)}, node.span)"
        built = [self._build(operand) for operand in pattern.operands]
        name = self._fresh()
        cls = self._class(pattern.cls)
        if len(built) == 1:
            self.lines.append(f"{name} = unary({cls}, {built[0]}, node.span)")
        else:
            builder = "logical" if pattern.cls in _BOOLEAN else "binary"
            self.lines.append(f"{name} = {builder}({cls}, {built[0]}, {built[1]}, node.span)")
        return name

    def _build_letter(self, letter: str) -> str:
        if letter in ("True", "False"):
            return f"ConstBool({letter}, node.span)"
        if letter.isdigit():
            self.names["literal_dtype"] = _literal_dtype
            return f"ConstInt({letter}, literal_dtype(node), node.span)"
        return self.bound[letter]

    def _number(self, pattern: Pattern) -> str | None:
        """Return integer arithmetic for a result part made of constants only, None for any other."""
        if pattern.cls is None:
            if pattern.letter.isdigit():
                return pattern.letter
            return f"{self.bound[pattern.letter]}.value" if _is_constant_letter(pattern.letter) else None
        parts = [self._number(operand) for operand in pattern.operands]
        if any(part is None for part in parts):
            return None
        template = _NUMBER_TEMPLATES.get(pattern.cls)
        return template.format(*parts) if template is not None else None

    def _first_dtype(self, pattern: Pattern) -> str:
        while pattern.operands:
            pattern = pattern.operands[0]
        if pattern.letter.isdigit():
            self.names["literal_dtype"] = _literal_dtype
            return "literal_dtype(node)"
        return f"{self.bound[pattern.letter]}.dtype"


_NUMBER_TEMPLATES: dict[type[Expr], str] = {
    nodes.Add: "({} + {})",
    nodes.Sub: "({} - {})",
    nodes.Mul: "({} * {})",
    nodes.FloorDiv: "({} // {})",
    nodes.FloorMod: "({} % {})",
    nodes.Min: "min({}, {})",
    nodes.Max: "max({}, {})",
    nodes.Neg: "(-{})",
}


def _literal_dtype(node: Expr) -> DataType:
    if isinstance(node, BinaryExpr) and type(node) in _BOOLEAN:
        return dtype_of(node.left)
    return dtype_of(node)


def _unary(cls: type[UnaryExpr], operand: Expr, span: Any) -> Expr:
    return folded(cls(operand, DataType.BOOL if cls is nodes.Not else dtype_of(operand), span))


def same_expr(a: Expr, b: Expr) -> bool:
    """Say whether two expressions are the same: one object, equal constants, or structurally equal."""
    if a is b:
        return True
    if a.__class__ is not b.__class__ or isinstance(a, nodes.Var):
        return False
    if isinstance(a, ConstInt) and isinstance(b, ConstInt):
        return a.value == b.value and a.dtype == b.dtype
    if isinstance(a, ConstBool) and isinstance(b, ConstBool):
        return a.value == b.value
    from pypto.ir.structural import structural_equal

    return structural_equal(a, b)


class RuleSet:
    """The rules of one operator, compiled on first use and sorted by the kinds of the operands."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules
        self._compiled: list[tuple[Matcher, type[Expr] | None, type[Expr] | None]] | None = None
        self._by_kinds: dict[tuple[type[Expr], type[Expr]], list[Matcher]] = {}

    def apply(self, node: BinaryExpr | UnaryExpr, bounds: BoundSource) -> Expr | None:
        """Return the result of the first rule that matches."""
        if isinstance(node, BinaryExpr):
            left, right = node.left, node.right
        else:
            left = right = node.operand
        kinds = (left.__class__, right.__class__)
        matchers = self._by_kinds.get(kinds)
        if matchers is None:
            matchers = self._by_kinds[kinds] = self._candidates(kinds)
        for matcher in matchers:
            result = matcher(node, left, right, bounds)
            if result is not None:
                return result
        return None

    def _candidates(self, kinds: tuple[type[Expr], type[Expr]]) -> list[Matcher]:
        if self._compiled is None:
            self._compiled = [(RuleWriter(rule).function(), *_required_kinds(rule)) for rule in self._rules]
        return [
            matcher
            for matcher, left, right in self._compiled
            if left in (None, kinds[0]) and right in (None, kinds[1])
        ]


def _required_kinds(rule: Rule) -> tuple[type[Expr] | None, type[Expr] | None]:
    operands = parse_pattern(rule.pattern).operands
    kinds = [ConstInt if o.cls is None and _is_constant_letter(o.letter) else o.cls for o in operands]
    return (kinds[0], kinds[1]) if len(kinds) == 2 else (kinds[0], None)
