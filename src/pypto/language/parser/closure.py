"""Python values that a body captures from around it: looking them up, evaluating expressions over them.

Evaluation happens at parse time and only over these values; a body itself is never executed.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pypto import ir
from pypto.core.errors import InternalError
from pypto.language.parser.arithmetic import BINARY, UNARY, TooLarge
from pypto.language.parser.diagnostics import ParserTypeError
from pypto.language.typing import DynVar, Scalar

if TYPE_CHECKING:
    from pypto.language.parser.source import SourceText

SAFE_BUILTINS: dict[str, Any] = {
    f.__name__: f
    for f in (len, max, min, abs, sum, round, int, float, bool, list, tuple, range, isinstance, type)
} | {"True": True, "False": False, "None": None}

NOT_FOUND: Any = object()
BUG_CLASSES = (InternalError, AssertionError)


class Closure:
    """The values visible at a decorator: globals of the frame, overlaid by its locals."""

    __slots__ = ("namespace",)

    def __init__(self, *layers: Mapping[str, Any]) -> None:
        self.namespace: dict[str, Any] = {}
        for layer in layers:
            self.namespace.update(layer)
        self.namespace["__builtins__"] = SAFE_BUILTINS

    def lookup(self, name: str) -> Any:
        """The value of a name, or `NOT_FOUND`."""
        value = self.namespace.get(name, NOT_FOUND)
        return SAFE_BUILTINS.get(name, NOT_FOUND) if value is NOT_FOUND else value

    def lookup_attribute(self, node: ast.Attribute) -> Any:
        """The value of a dotted name, or `NOT_FOUND`."""
        base = self.lookup_path(node.value)
        return NOT_FOUND if base is NOT_FOUND else self._member(base, node.attr)

    def lookup_path(self, node: ast.expr) -> Any:
        """The value of a plain or dotted name, or `NOT_FOUND`, also for any other expression."""
        if isinstance(node, ast.Name):
            return self.lookup(node.id)
        return self.lookup_attribute(node) if isinstance(node, ast.Attribute) else NOT_FOUND

    def _member(self, base: Any, name: str) -> Any:
        return getattr(base, name, NOT_FOUND)

    def evaluate(self, node: ast.expr, span: ir.Span) -> Any:
        """Evaluate an expression over captured values.

        Raises:
            ParserTypeError: a name is unknown, or the evaluation fails.
        """
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            value = self.lookup(node.id)
            if value is not NOT_FOUND:
                return value
        try:
            return self._run(node)
        except NameError as error:
            raise ParserTypeError(
                f"Cannot resolve expression '{ast.unparse(node)}': {error}",
                span=span,
                hint="Only Python values that exist where the decorator is applied can be used here",
            ) from error
        except BUG_CLASSES:
            raise
        except Exception as error:
            raise ParserTypeError(
                f"Failed to evaluate expression '{ast.unparse(node)}': {error}",
                span=span,
                hint=self._members(node),
            ) from error

    def _members(self, node: ast.expr) -> str | None:
        """The members of the enumeration of which the expression names none."""
        owner = node.value if isinstance(node, ast.Attribute) else None
        found = self.lookup_attribute(owner) if isinstance(owner, ast.Attribute) else NOT_FOUND
        if isinstance(found, type) and issubclass(found, enum.Enum):
            return f"Valid values: {', '.join(sorted(found.__members__))}"
        return None

    def _run(self, node: ast.expr) -> Any:
        """The value of an expression that stands in Python code, computed by Python."""
        code = compile(ast.Expression(node), "<closure>", "eval")
        return eval(code, self.namespace)

    def derived(self, *layers: Mapping[str, Any]) -> Closure:
        """A closure of the same kind over other names."""
        return Closure(*layers)

    def check_signature_annotation(self, node: ast.expr, source: SourceText) -> None:
        """Raise what is wrong with a signature annotation; Python has evaluated those of its own code."""

    def fold(self, node: ast.expr, is_dsl_name: Callable[[str], bool]) -> Any:
        """The value of an arithmetic tree over constants and captured names, or `NOT_FOUND`.

        `NOT_FOUND` also when some name belongs to the DSL, or Python itself cannot compute the value.

        Raises:
            TooLarge: the value has more digits than a program can mean.
        """
        if not is_foldable(node, is_dsl_name):
            return NOT_FOUND
        try:
            return self._fold(node)
        except (TooLarge, *BUG_CLASSES):
            raise
        except Exception:
            return NOT_FOUND  # the ordinary path reports what is wrong

    def _fold(self, node: ast.expr) -> Any:
        pending: list[tuple[ast.operator, ast.expr]] = []
        while isinstance(node, ast.BinOp):  # a long sum leans left; follow it without recursion
            pending.append((node.op, node.right))
            node = node.left
        value = self._fold_operand(node)
        for op, right in reversed(pending):
            value = BINARY[type(op)](value, self._fold(right))
        return value

    def _fold_operand(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.UnaryOp):
            return UNARY[type(node.op)](self._fold(node.operand))
        assert isinstance(node, ast.Name)
        value = self.lookup(node.id)
        if value is NOT_FOUND:
            raise NameError(node.id)
        return value


def is_foldable(node: ast.expr, is_dsl_name: Callable[[str], bool]) -> bool:
    """Whether a tree consists of arithmetic over constants and captured names alone."""
    while True:
        if isinstance(node, ast.Constant):
            return True
        if isinstance(node, ast.Name):
            return not is_dsl_name(node.id)
        if isinstance(node, ast.UnaryOp):
            if type(node.op) not in UNARY:
                return False
            node = node.operand
        elif isinstance(node, ast.BinOp):
            if not is_foldable(node.right, is_dsl_name):
                return False
            node = node.left
        else:
            return False


def value_to_ir(value: Any, span: ir.Span, resolve_dyn: Callable[[DynVar], ir.Var]) -> ir.Expr:
    """The IR expression of a captured Python value.

    Raises:
        ParserTypeError: the value has no IR form.
    """
    if isinstance(value, bool):
        return ir.ConstBool(value, span)
    if isinstance(value, int):
        return ir.ConstInt(value, ir.DataType.INDEX, span)
    if isinstance(value, float):
        return ir.ConstFloat(value, ir.DataType.FP32, span)
    if isinstance(value, ir.Expr):
        return value
    if isinstance(value, DynVar):
        return resolve_dyn(value)
    if isinstance(value, Scalar) and value.has_expr():
        return value.unwrap()
    if isinstance(value, (list, tuple)):
        return ir.MakeTuple([value_to_ir(item, span, resolve_dyn) for item in value], span)
    raise ParserTypeError(
        f"Unsupported closure variable type: {type(value).__name__}",
        span=span,
        hint="int, float, bool, lists of these, pl.dynamic() symbols and IR expressions can be captured",
    )
