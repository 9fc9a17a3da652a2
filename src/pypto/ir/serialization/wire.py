"""The wire format: what both directions of serialization agree on.

A program is one MessagePack object. Every map has its keys in alphabetical order. A node that occurs for the
first time is `{"fields": {...}, "id": n, "type": "<class>"}` with ids counted from 0 in the order of the
text; later occurrences are `{"ref": n}`. Types are written in place as `{"type_kind": "<kind>", ...}`. The
fields of a node or type are those of its class's field list, so a new class needs no line here.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Iterator
from typing import Any

from pypto.ir.enums import (
    CompactMode,
    ForKind,
    FunctionType,
    InlineLanguage,
    Level,
    MemorySpace,
    PadValue,
    ParamDirection,
    Role,
    SplitMode,
    TensorLayout,
    TileLayout,
)
from pypto.ir.expr import Expr, IterArg, Var, WindowBuffer
from pypto.ir.node import Field, IRNode, Structure
from pypto.ir.program import Function, Program
from pypto.ir.scope import ScopeStmt
from pypto.ir.stmt import Stmt
from pypto.ir.types import PtrType, Type

__all__ = [
    "ATTR_ENUMS",
    "FIELD_ENUMS",
    "NAMED_ENUMS",
    "NODE_CLASSES",
    "SPAN_KEYS",
    "TYPE_CLASSES",
    "annotation_of",
    "expected_class",
    "kind_name",
    "wire_name",
]

SPAN_KEYS = ("begin_column", "begin_line", "end_column", "end_line", "filename")

FIELD_ENUMS: dict[str, type[enum.Enum]] = {
    "kind": ForKind,
    "func_type": FunctionType,
    "level": Level,
    "role": Role,
    "split": SplitMode,
    "language": InlineLanguage,
    "param_directions": ParamDirection,
    "memory_space": MemorySpace,
}
"""Fields that hold an enumeration, written as its number."""

NAMED_ENUMS: dict[str, type[enum.Enum]] = {
    "layout": TensorLayout,
    "blayout": TileLayout,
    "slayout": TileLayout,
    "pad": PadValue,
    "compact": CompactMode,
}
"""Fields of views that hold an enumeration, written as its name."""

ATTR_ENUMS: dict[str, type[enum.Enum]] = {
    "MemorySpace": MemorySpace,
    "TensorLayout": TensorLayout,
    "TileLayout": TileLayout,
    "PadValue": PadValue,
}
"""Enumerations of attribute values, written as their name; `ArgDirection` alone is written as a number."""

PTR_KIND = "Ptr"


def wire_name(field: Field) -> str:
    """The key of a field."""
    return field.name.rstrip("_")


def kind_name(cls: type[Type]) -> str:
    """The `type_kind` of a type class."""
    return PTR_KIND if cls is PtrType else cls.__name__


def _concrete(root: type[Structure]) -> Iterator[type[Any]]:
    stack: list[type[Structure]] = [root]
    while stack:
        cls = stack.pop()
        stack += cls.__subclasses__()
        if not cls.ABSTRACT and cls.KIND is cls:
            yield cls


NODE_CLASSES: dict[str, type[IRNode]] = {cls.__name__: cls for cls in _concrete(IRNode)}
TYPE_CLASSES: dict[str, type[Type]] = {kind_name(cls): cls for cls in _concrete(Type)}

_ANNOTATED: dict[str, type] = {
    "Expr": Expr,
    "Var": Var,
    "IterArg": IterArg,
    "WindowBuffer": WindowBuffer,
    "Stmt": Stmt,
    "ScopeStmt": ScopeStmt,
    "Function": Function,
    "Program": Program,
    "int": int,
    "bool": bool,
    "str": str,
    "float": float,
}


def annotation_of(cls: type, field: Field) -> str:
    """What a class declares a field to be, as text."""
    for base in cls.__mro__:
        text = inspect.get_annotations(base).get(field.stored)
        if text is not None:
            return str(text)
    return ""


def expected_class(cls: type, field: Field) -> type | None:
    """The class that a field's values have; None where the declaration names none of the known ones."""
    key = (cls, field.name)
    if key not in _expected:
        text = annotation_of(cls, field).removeprefix("tuple[").partition(" ")[0].rstrip(",]")
        _expected[key] = _ANNOTATED.get(text)
    return _expected[key]


_expected: dict[tuple[type, str], type | None] = {}
