"""Python's operators on captured values, with a bound on the size of the result.

Expressions over captured values are computed while a program is parsed. `9**9**9` or `[0] * 10**12` would
keep the parser busy for ever (or fill the memory), so results beyond anything a program can mean are refused
before they are computed."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

_LARGEST_BITS = 4096
_LONGEST = 10_000
_SEQUENCES = (str, bytes, list, tuple)


class TooLarge(ArithmeticError):
    """The result of an expression would be too large to be meant."""


def _power(base: Any, exponent: Any) -> Any:
    is_growing = isinstance(base, int) and isinstance(exponent, int) and abs(base) > 1
    if is_growing and base.bit_length() * exponent > _LARGEST_BITS:
        raise TooLarge("the power is too large to be computed")
    return base**exponent


def _shift_left(value: Any, count: Any) -> Any:
    if isinstance(value, int) and isinstance(count, int) and value.bit_length() + count > _LARGEST_BITS:
        raise TooLarge("the shifted value is too large to be computed")
    return value << count


def _multiply(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int) and a.bit_length() + b.bit_length() > _LARGEST_BITS:
        raise TooLarge("the product is too large to be computed")
    for sequence, count in ((a, b), (b, a)):
        if isinstance(sequence, _SEQUENCES) and isinstance(count, int) and len(sequence) * count > _LONGEST:
            raise TooLarge("the repeated sequence is too long")
    return a * b


def _add(a: Any, b: Any) -> Any:
    if isinstance(a, _SEQUENCES) and isinstance(b, _SEQUENCES) and len(a) + len(b) > _LONGEST:
        raise TooLarge("the joined sequence is too long")
    return a + b


def _modulo(a: Any, b: Any) -> Any:
    if isinstance(a, (str, bytes)):
        raise TypeError("text is not formatted while a program is parsed")
    return a % b


BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: _add,
    ast.Sub: operator.sub,
    ast.Mult: _multiply,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: _modulo,
    ast.Pow: _power,
    ast.LShift: _shift_left,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {ast.USub: operator.neg, ast.UAdd: operator.pos}
COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda item, container: item in container,
    ast.NotIn: lambda item, container: item not in container,
}
