"""Expressions of program text, evaluated without executing anything.

Text that is given to `pl.parse` may come from anywhere, so its expressions are never compiled or run by
Python. This evaluator walks the syntax tree and knows a closed list of things: literals, operators, displays,
comprehensions, subscripts of plain data, members of the language modules and of enums, and calls of the few
functions in `_CALLABLE`. Everything else is refused, and the work and the size of values are bounded."""

from __future__ import annotations

import ast
import enum
import operator
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

from pypto import ir
from pypto.ir.op.tile_permute_ops import MaskPattern
from pypto.language.markers import const
from pypto.language.parser.arithmetic import BINARY, COMPARE, UNARY, TooLarge
from pypto.language.parser.closure import BUG_CLASSES, NOT_FOUND, SAFE_BUILTINS, Closure
from pypto.language.parser.diagnostics import ParserError, ParserSyntaxError
from pypto.language.parser.slots import DTYPES
from pypto.language.parser.source import SourceText
from pypto.language.typing import (
    Array,
    DistributedTensor,
    DynVar,
    InOut,
    MemRef,
    Out,
    Scalar,
    Tensor,
    Tile,
    Tuple,
    dynamic,
)

_MOST_STEPS = 100_000
_MOST_ELEMENTS = 10_000
_LANGUAGE = "pypto.language"
_MATH_CONSTANTS = frozenset({"e", "inf", "nan", "pi", "tau"})
_ANNOTATION_CLASSES = (Tensor, DistributedTensor, Tile, Scalar, Array, Tuple, Out, InOut)
_CONTAINERS = (list, tuple, dict, str, range)
_BUILDERS = (
    dynamic, DynVar, MemRef, const, ir.TensorView, ir.TileView, Tensor, DistributedTensor, Tile, Scalar,
    Tuple,
)  # fmt: skip
_CALLABLE = {id(function) for function in _BUILDERS}
_BUILTIN_CALLABLE = {
    id(SAFE_BUILTINS[name]): name
    for name in SAFE_BUILTINS
    if callable(SAFE_BUILTINS[name]) and name != "type"
}


class Refused(Exception):
    """The expression would need Python to execute something."""


class TextEvaluator:
    """Evaluates expressions of program text; `lookup` gives the value of a name or raises `NameError`."""

    def __init__(self, lookup: Callable[[str], Any]) -> None:
        self._lookup = lookup
        self._bound: dict[str, Any] = {}  # targets of comprehensions
        self._steps = 0

    def value(self, node: ast.expr) -> Any:
        """The value of an expression.

        Raises:
            Refused: the expression is of a kind that program text may not contain.
            Exception: whatever the operation itself raises (`NameError`, `ZeroDivisionError`, ...).
        """
        self._charge(1)
        handler = _HANDLERS.get(type(node))
        if handler is None:
            raise Refused(f"an expression of kind {type(node).__name__}")
        return handler(self, node)

    def _charge(self, steps: int) -> None:
        self._steps += steps
        if self._steps > _MOST_STEPS:
            raise TooLarge("the expression needs too many steps")

    def _sized(self, value: Any) -> Any:
        """`value`, after paying for all that it contains."""
        pending, count = [value], 0
        while pending:
            current = pending.pop()
            count += 1
            if count > _MOST_ELEMENTS:
                raise TooLarge("the value has too many elements")
            if isinstance(current, (list, tuple)):
                pending.extend(current)
            elif isinstance(current, dict):
                pending.extend(current.values())
        self._charge(count)
        return value

    # -- leaves ----------------------------------------------------------------------------------------------

    def _constant(self, node: ast.Constant) -> Any:
        return node.value

    def _name(self, node: ast.Name) -> Any:
        return self._bound[node.id] if node.id in self._bound else self._lookup(node.id)

    def _attribute(self, node: ast.Attribute) -> Any:
        return member(self.value(node.value), node.attr)

    # -- operators -------------------------------------------------------------------------------------------

    def _binary(self, node: ast.BinOp) -> Any:
        links: list[ast.BinOp] = []
        leaf: ast.expr = node
        while isinstance(leaf, ast.BinOp):  # a long sum leans left
            links.append(leaf)
            leaf = leaf.left
        value = self.value(leaf)
        for link in reversed(links):
            apply = BINARY.get(type(link.op))
            if apply is None:
                raise Refused(f"the operator {type(link.op).__name__}")
            value = self._sized(apply(value, self.value(link.right)))
        return value

    def _unary(self, node: ast.UnaryOp) -> Any:
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            return not value
        return operator.invert(value) if isinstance(node.op, ast.Invert) else UNARY[type(node.op)](value)

    def _boolean(self, node: ast.BoolOp) -> Any:
        value: Any = None
        for operand in node.values:
            value = self.value(operand)
            if bool(value) is isinstance(node.op, ast.Or):
                break
        return value

    def _compare(self, node: ast.Compare) -> Any:
        left = self.value(node.left)
        result: Any = True
        for op, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.value(comparator)
            result = COMPARE[type(op)](self._readable(left), self._readable(right))
            if len(node.ops) > 1 and not result:
                break
            left = right
        return result

    def _conditional(self, node: ast.IfExp) -> Any:
        return self.value(node.body if self.value(node.test) else node.orelse)

    # -- displays and comprehensions -------------------------------------------------------------------------

    def _list(self, node: ast.List) -> list[Any]:
        return list(self._sized([self.value(element) for element in node.elts]))

    def _tuple(self, node: ast.Tuple) -> tuple[Any, ...]:
        return tuple(self._sized([self.value(element) for element in node.elts]))

    def _dict(self, node: ast.Dict) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                raise Refused("`**` in a dict display")
            found[self.value(key)] = self.value(value)
        return dict(self._sized(found))

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp) -> list[Any]:
        outer = dict(self._bound)
        found: list[Any] = []
        try:
            self._generate(node.generators, node.elt, found)
        finally:
            self._bound = outer
        return found

    def _generate(self, clauses: list[ast.comprehension], element: ast.expr, found: list[Any]) -> None:
        if not clauses:
            found.append(self._sized(self.value(element)))
            return
        clause = clauses[0]
        if clause.is_async or not isinstance(clause.target, ast.Name):
            raise Refused("a comprehension over anything but one plain name")
        for item in self._readable(self.value(clause.iter)):
            self._bound[clause.target.id] = item
            if all(self.value(test) for test in clause.ifs):
                self._generate(clauses[1:], element, found)

    def _readable(self, value: Any) -> Any:
        """A value that is about to be walked through: a range is paid for in full."""
        if isinstance(value, (range, str)):
            self._charge(len(value))
            return value
        return self._sized(value)

    # -- subscripts and calls --------------------------------------------------------------------------------

    def _subscript(self, node: ast.Subscript) -> Any:
        base = self.value(node.value)
        index = self.value(node.slice)
        is_annotation = isinstance(base, type) and (issubclass(base, _ANNOTATION_CLASSES) or base is tuple)
        if is_annotation or isinstance(base, (*_CONTAINERS, ir.MemRef)):
            return base[index]
        raise Refused(f"a subscript of {_described(base)}")

    def _slice(self, node: ast.Slice) -> slice:
        parts = (node.lower, node.upper, node.step)
        return slice(*(None if part is None else self.value(part) for part in parts))

    def _call(self, node: ast.Call) -> Any:
        func = node.func
        if isinstance(func, ast.Attribute) and func.attr == "get_byte":
            owner = self.value(func.value)
            if isinstance(owner, ir.DataType) and not (node.args or node.keywords):
                return owner.get_byte()
        called = self._called(func)
        args = [self.value(argument) for argument in node.args]
        kwargs: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                raise Refused("`**` in a call")
            kwargs[keyword.arg] = self.value(keyword.value)
        name = _BUILTIN_CALLABLE.get(id(called))
        if name is None:
            return called(*args, **kwargs)
        if kwargs:
            raise Refused(f"keyword arguments of {name}()")
        return self._builtin(name, called, args)

    def _called(self, node: ast.expr) -> Callable[..., Any]:
        """The function that a call names, if it is one of those that may be called."""
        try:
            called = self.value(node)
        except (Refused, NameError, AttributeError):
            called = NOT_FOUND
        if id(called) in _CALLABLE or id(called) in _BUILTIN_CALLABLE:
            function: Callable[..., Any] = called
            return function
        raise Refused(f"a call of {_source_name(node)}")

    def _builtin(self, name: str, function: Callable[..., Any], args: list[Any]) -> Any:
        if name not in ("isinstance", "range", "len"):
            args = [self._readable(argument) for argument in args]
        if name == "sum" and not all(isinstance(item, (int, float, Scalar)) for item in _items(args)):
            raise Refused("sum() of anything but numbers")
        if name == "round" and len(args) == 2 and not (isinstance(args[1], int) and abs(args[1]) < 400):
            raise TooLarge("round() to this many digits")
        return function(*args)


def _items(args: list[Any]) -> Iterable[Any]:
    return [*args[0], *args[1:]] if args and isinstance(args[0], (*_CONTAINERS, dict)) else args


def _source_name(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        return "'" + ".".join([node.id, *reversed(parts)]) + "'"
    return f"an expression of kind {type(node).__name__}"


def _described(value: Any) -> str:
    return value.__name__ if isinstance(value, type) else f"a value of type {type(value).__name__}"


def member(owner: Any, name: str) -> Any:
    """The member of a module, enum or dtype class that program text may name.

    Raises:
        Refused: program text may not look into such a value.
        AttributeError: there is no such member.
    """
    if name.startswith("_"):
        raise Refused(f"the private attribute '{name}'")
    if isinstance(owner, ModuleType):
        return _module_member(owner, name)
    if isinstance(owner, type) and issubclass(owner, enum.Enum):
        known: Mapping[str, Any] = owner.__members__
    elif owner is ir.DataType:
        known = DTYPES
    elif owner is MaskPattern:
        known = vars(MaskPattern)
    elif isinstance(owner, enum.Enum) and name in ("name", "value"):
        return getattr(owner, name)
    else:
        raise Refused(f"the attribute '{name}' of {_described(owner)}")
    if name not in known:
        raise AttributeError(name)
    return known[name]


def _module_member(module: ModuleType, name: str) -> Any:
    home = module.__name__
    if home == "math":
        visible = name in _MATH_CONSTANTS
    elif home == "pypto":
        visible = name in ("language", "ir", "DataType")
    elif home == "pypto.ir":
        value = getattr(module, name, None)
        visible = isinstance(value, type) and (issubclass(value, enum.Enum) or value is ir.DataType)
    elif home == _LANGUAGE or home.startswith(f"{_LANGUAGE}."):
        visible = name in module.__all__ or (home == _LANGUAGE and name == "distributed")
    else:
        raise Refused(f"the attribute '{name}' of the module {home}")
    if not visible:
        raise AttributeError(f"module '{home}' has no attribute '{name}'")
    return getattr(module, name)


_HANDLERS: dict[type[ast.expr], Callable[[TextEvaluator, Any], Any]] = {
    ast.Constant: TextEvaluator._constant,
    ast.Name: TextEvaluator._name,
    ast.Attribute: TextEvaluator._attribute,
    ast.BinOp: TextEvaluator._binary,
    ast.UnaryOp: TextEvaluator._unary,
    ast.BoolOp: TextEvaluator._boolean,
    ast.Compare: TextEvaluator._compare,
    ast.IfExp: TextEvaluator._conditional,
    ast.List: TextEvaluator._list,
    ast.Tuple: TextEvaluator._tuple,
    ast.Dict: TextEvaluator._dict,
    ast.ListComp: TextEvaluator._comprehension,
    ast.GeneratorExp: TextEvaluator._comprehension,
    ast.Subscript: TextEvaluator._subscript,
    ast.Slice: TextEvaluator._slice,
    ast.Call: TextEvaluator._call,
}


class TextClosure(Closure):
    """The names of program text around a definition. Expressions over them are walked, never run."""

    __slots__ = ("postponed_annotations",)

    def __init__(self, *layers: Mapping[str, Any], postponed_annotations: bool = False) -> None:
        super().__init__(*layers)
        del self.namespace["__builtins__"]  # nothing is run here, so nothing needs them
        self.postponed_annotations = postponed_annotations

    def derived(self, *layers: Mapping[str, Any]) -> TextClosure:
        return TextClosure(*layers)

    def _member(self, base: Any, name: str) -> Any:
        try:
            return member(base, name)
        except (Refused, AttributeError):
            return NOT_FOUND

    def _run(self, node: ast.expr) -> Any:
        try:
            return TextEvaluator(self._known).value(node)
        except Refused as refusal:
            raise Refused(f"program text is parsed and never executed, so it cannot hold {refusal}") from None

    def _known(self, name: str) -> Any:
        value = self.lookup(name)
        if value is NOT_FOUND:
            raise NameError(f"name '{name}' is not defined")
        return value

    def check_signature_annotation(self, node: ast.expr, source: SourceText) -> None:
        """Report what Python itself would report when it evaluates the annotation of a signature."""
        if self.postponed_annotations:
            return
        try:
            TextEvaluator(self._known).value(node)
        except (Refused, TooLarge, ParserError, *BUG_CLASSES):
            return
        except Exception as error:
            raise python_error(error, source, node.lineno) from error


def python_error(error: Exception, source: SourceText, line: int) -> ParserSyntaxError:
    """An error of Python at a line of program text, as the front end reports it."""
    return ParserSyntaxError(f"{type(error).__name__}: {error}", span=source.point(line, 0))
