"""Values of `attrs` and `kwargs`: what may be stored, and how it reads back.

`kwargs` are the parameters a user gives to an operator, `attrs` are facts the compiler attaches. Both keep
insertion order. Lists are stored as tuples. Integer enumerations are stored as their number.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import Any

from pypto.core.dtype import DataType
from pypto.core.span import UNKNOWN_SPAN
from pypto.ir.enums import ArgDirection, MemorySpace, PadValue, SplitMode, TensorLayout, TileLayout

AttrDict = dict[str, Any]


class RepeatedKeys(dict[str, Any]):
    """Values given as pairs in which a key occurs twice; the last value stands.

    Structurally they equal nothing, not even themselves: which of the values is meant is unknown.
    """

    __slots__ = ("key",)

    def __init__(self, values: AttrDict, key: str) -> None:
        super().__init__(values)
        self.key = key


VAR_LIST_KEYS = frozenset(
    {"manual_dep_edges", "compiler_manual_dep_edges", "arg_direction_overrides_vars", "dump_vars"}
)
INT_LIST_KEYS = frozenset({"arg_direction_overrides"})
_LIST_KEYS = VAR_LIST_KEYS | INT_LIST_KEYS
EXPR_FROM_INT_KEYS = frozenset({"core_num"})

_KEPT = (DataType, MemorySpace, TensorLayout, TileLayout, PadValue, ArgDirection)
_PLAIN = (bool, str, float)
_INT32 = range(-(2**31), 2**31)
_EMPTY: AttrDict = {}


def normalise_attrs(owner: str, attrs: Any) -> AttrDict:
    """Stored form of `attrs`: None, a mapping, or a list of pairs. Raises `TypeError` or `ValueError` naming
    the key."""
    if attrs is None or (not attrs and isinstance(attrs, (dict, list))):
        return _EMPTY
    stored = _collected(
        (key, normalise_value(owner, key, value, from_attrs=True))
        for key, value in _pairs(owner, "attrs", attrs)
    )
    _check_directions_form(owner, stored)
    return stored


def normalise_kwargs(owner: str, kwargs: Any) -> AttrDict:
    """Stored form of `kwargs`, same rules as `normalise_attrs` except that a plain `core_num` stays an
    int."""
    if kwargs is None or (not kwargs and isinstance(kwargs, (dict, list))):
        return _EMPTY
    return _collected(
        (key, normalise_value(owner, key, value, from_attrs=False))
        for key, value in _pairs(owner, "kwargs", kwargs)
    )


def _collected(pairs: Iterable[tuple[str, Any]]) -> AttrDict:
    stored: AttrDict = {}
    repeated: str | None = None
    for key, value in pairs:
        if key in stored:
            repeated = key
        stored[key] = value
    return stored if repeated is None else RepeatedKeys(stored, repeated)


def read_back(stored: AttrDict) -> AttrDict:
    """A fresh dict for the user, with lists where tuples are stored."""
    return {key: list(value) if type(value) is tuple else value for key, value in stored.items()}


def _pairs(owner: str, what: str, given: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(given, Mapping):
        pairs: Iterable[Any] = given.items()
    elif isinstance(given, list):
        pairs = given
    else:
        raise TypeError(
            f"{owner} {what} must be a dict or a list of (key, value) pairs, got {type(given).__name__}"
        )
    for pair in pairs:
        if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str)):
            raise TypeError(f"{owner} {what} must hold (str, value) pairs, got {pair!r}")
        yield pair


def normalise_value(owner: str, key: str, value: Any, *, from_attrs: bool) -> Any:
    from pypto.ir.expr import ConstInt, Expr

    if key in _LIST_KEYS and not isinstance(value, (list, tuple)):
        raise TypeError(f"{owner}: '{key}' must be a list, got {type(value).__name__}")
    if isinstance(value, (*_KEPT, Expr)) or type(value) in _PLAIN:
        return value
    if isinstance(value, (enum.IntEnum, SplitMode)):
        return int(value.value)
    if isinstance(value, int) and not isinstance(value, enum.Enum):
        if value not in _INT32:
            raise ValueError(f"{owner}: the value {value} of '{key}' does not fit into 32 bits")
        if from_attrs and key in EXPR_FROM_INT_KEYS:
            return ConstInt(value, DataType.INDEX, UNKNOWN_SPAN)
        return value
    if isinstance(value, (list, tuple)):
        return _normalise_list(owner, key, value)
    raise TypeError(f"{owner}: '{key}' cannot hold a value of type {type(value).__name__}")


def _normalise_list(owner: str, key: str, values: list[Any] | tuple[Any, ...]) -> tuple[Any, ...]:
    from pypto.ir.expr import Var

    if key in INT_LIST_KEYS:
        for value in values:
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{owner}: '{key}' must be a list of ints, got {type(value).__name__}")
            if value not in _INT32:
                raise ValueError(f"{owner}: the value {value} in '{key}' does not fit into 32 bits")
        return tuple(values)
    wanted: type[Any] = ArgDirection
    if key in VAR_LIST_KEYS or (values and isinstance(values[0], Var)):
        wanted = Var
    for value in values:
        if not isinstance(value, wanted):
            raise TypeError(
                f"{owner}: '{key}' must be a list of {wanted.__name__}, "
                f"got an element of type {type(value).__name__}"
            )
    return tuple(values)


def _check_directions_form(owner: str, attrs: AttrDict) -> None:
    directions = attrs.get("arg_directions")
    if directions is not None and not (
        type(directions) is tuple and all(isinstance(direction, ArgDirection) for direction in directions)
    ):
        raise TypeError(f"{owner}: attrs['arg_directions'] must be a list of ArgDirection")


def check_direction_count(attrs: AttrDict, arg_count: int) -> None:
    """Raise `TypeError` unless the resolved directions, when present, are one per argument."""
    directions = attrs.get("arg_directions")
    if directions and len(directions) != arg_count:
        raise TypeError(
            f"attrs['arg_directions'] size ({len(directions)}) must match args size ({arg_count})"
        )
