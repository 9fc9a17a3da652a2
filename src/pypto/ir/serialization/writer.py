"""From nodes to bytes.

The object graph is laid out left to right by an explicit stack of pieces: finished bytes, or nodes and types
that are still to be written. So depth costs no recursion, and ids follow the order of the text.
"""

from __future__ import annotations

import enum
import functools
from typing import Any

import msgpack  # type: ignore[import-untyped]

from pypto.core.dtype import DataType
from pypto.core.span import Span
from pypto.ir.attrs import INT_LIST_KEYS, VAR_LIST_KEYS
from pypto.ir.enums import ArgDirection
from pypto.ir.expr import Expr, GlobalVar, MemRef, Op, Var
from pypto.ir.node import (
    ATTRS,
    FUNCTIONS,
    ITER_ARGS,
    NODE,
    NODES,
    OPERATOR,
    OPTIONAL_NODE,
    TYPE,
    TYPES,
    VALUES,
    VIEW,
    Field,
    IRNode,
    Structure,
)
from pypto.ir.serialization.wire import ATTR_ENUMS, NAMED_ENUMS, kind_name, wire_name
from pypto.ir.stmt import Stmt, comments_of
from pypto.ir.types import ArrayType, Type

__all__ = ["encode"]

Piece = bytes | IRNode | Type | Structure
_packer = msgpack.Packer(use_bin_type=True)
_NIL = b"\xc0"


@functools.cache
def _text(value: str) -> bytes:
    return bytes(_packer.pack(value))


def _pack(value: Any) -> bytes:
    return bytes(_packer.pack(value))


@functools.cache
def _map(size: int) -> bytes:
    return bytes(_packer.pack_map_header(size))


@functools.cache
def _array(size: int) -> bytes:
    return bytes(_packer.pack_array_header(size))


def encode(root: IRNode) -> bytes:
    """The bytes of a node and everything that it reaches."""
    ids: dict[int, int] = {}
    out: list[bytes] = []
    stack: list[Piece] = [root]
    while stack:
        piece = stack.pop()
        if isinstance(piece, bytes):
            out.append(piece)
            continue
        if isinstance(piece, IRNode):
            pieces = _node(piece, ids)
        elif isinstance(piece, Type):
            pieces = _type(piece)
        else:
            pieces = _view(piece)
        pieces.reverse()
        stack += pieces
    return b"".join(out)


def _node(node: IRNode, ids: dict[int, int]) -> list[Piece]:
    known = ids.get(id(node))
    if known is not None:
        return [_map(1), _text("ref"), _pack(known)]
    number = ids[id(node)] = len(ids)
    plan = _plan(type(node))
    pieces: list[Piece] = [_map(3), _text("fields"), _map(len(plan))]
    for key, field in plan:
        if field is None:
            assert isinstance(node, Stmt)
            pieces += [key, _pack(list(comments_of(node)))]
            continue
        pieces.append(key)
        pieces += _field(field, getattr(node, field.stored))
    pieces += [_text("id"), _pack(number), _text("type"), _text(node.KIND.__name__)]
    return pieces


_plans: dict[type[IRNode], tuple[tuple[bytes, Field | None], ...]] = {}


def _plan(cls: type[IRNode]) -> tuple[tuple[bytes, Field | None], ...]:
    """The layout of a class, worked out once."""
    found = _plans.get(cls)
    if found is None:
        found = _plans[cls] = _layout(cls)
    return found


def _layout(cls: type[IRNode]) -> tuple[tuple[bytes, Field | None], ...]:
    """Keys and fields of a class in the order of the text; None stands for a statement's comments."""
    entries: list[tuple[str, Field | None]] = [(wire_name(field), field) for field in cls.FIELDS]
    if issubclass(cls, Stmt):
        entries.append(("leading_comments", None))
    return tuple((_text(name), field) for name, field in sorted(entries, key=lambda entry: entry[0]))


def _field(field: Field, value: Any) -> list[Piece]:
    kind = field.kind
    if kind in (NODE, TYPE):
        return [value]
    if kind in (OPTIONAL_NODE, VIEW):
        return [_NIL if value is None else value]
    if kind in (NODES, ITER_ARGS, TYPES):
        return [_array(len(value)), *value]
    if kind == ATTRS:
        return _attrs(value)
    if kind == OPERATOR:
        return [_operator(value)]
    if kind == FUNCTIONS:
        pieces: list[Piece] = [_array(len(value))]
        for name, function in value.items():
            key = _pack({"is_global_var": True, "name": name})
            pieces += [_map(2), _text("key"), key, _text("value"), function]
        return pieces
    if kind == VALUES:
        return [_pack([_plain(field, each) for each in value])]
    return [_span(value) if isinstance(value, Span) else _pack(_plain(field, value))]


def _plain(field: Field, value: Any) -> Any:
    if isinstance(value, DataType):
        return value.code()
    if isinstance(value, enum.Enum):
        return value.name if field.name in NAMED_ENUMS else value.value
    return value


def _span(span: Span) -> bytes:
    return _pack(
        {
            "begin_column": span.begin_column,
            "begin_line": span.begin_line,
            "end_column": span.end_column,
            "end_line": span.end_line,
            "filename": span.filename,
        }
    )


def _operator(op: Op) -> bytes:
    return _pack({"is_global_var": isinstance(op, GlobalVar), "name": op.name})


# --- types


def _type(type_: Type) -> list[Piece]:
    entries: dict[str, list[Piece]] = {"type_kind": [_text(kind_name(type(type_)))]}
    if isinstance(type_, ArrayType):
        entries["dtype"] = [_pack(type_.dtype.code())]
        entries["shape"] = [_array(1), type_.extent]
        return _sorted_map(entries)
    for field in type_.FIELDS:
        value = getattr(type_, field.stored)
        if value is None:
            continue
        entries[wire_name(field)] = _memref(value) if isinstance(value, MemRef) else _field(field, value)
    return _sorted_map(entries)


def _memref(memref: MemRef) -> list[Piece]:
    entries: dict[str, list[Piece]] = {
        "base": [_text(memref.base_.name_hint)],
        "base_node": [memref.base_],
        "byte_offset": [memref.byte_offset_],
        "size": [_pack(memref.size_)],
    }
    if memref.is_pinned_:
        entries["is_pinned"] = [_pack(True)]
    if memref.slot_count_ != 1:
        entries["slot_count"] = [_pack(memref.slot_count_)]
    if memref.slot_index_ is not None:
        entries["slot_index"] = [memref.slot_index_]
    return _sorted_map(entries)


def _view(view: Structure) -> list[Piece]:
    return _sorted_map(
        {wire_name(field): _field(field, getattr(view, field.stored)) for field in view.FIELDS}
    )


def _sorted_map(entries: dict[str, list[Piece]]) -> list[Piece]:
    pieces: list[Piece] = [_map(len(entries))]
    for key in sorted(entries):
        pieces.append(_text(key))
        pieces += entries[key]
    return pieces


# --- attributes


def _attrs(attrs: dict[str, Any]) -> list[Piece]:
    pieces: list[Piece] = [_array(len(attrs))]
    for key, value in attrs.items():
        pieces += [_map(2), _text("key"), _text(key), _text("value"), *_attr_value(key, value)]
    return pieces


def _attr_value(key: str, value: Any) -> list[Piece]:
    if isinstance(value, DataType):
        return [_pack({"code": value.code(), "type": "DataType"})]
    if isinstance(value, ArgDirection):
        return _envelope("ArgDirection", _pack(value.value))
    if isinstance(value, enum.Enum):
        assert type(value).__name__ in ATTR_ENUMS
        return _envelope(type(value).__name__, _text(value.name))
    if isinstance(value, Expr):
        kind = "Var" if key == "task_id_var" and isinstance(value, Var) else "Expr"
        return _envelope(kind, value)
    if isinstance(value, tuple):
        return _list_value(key, value)
    return [_pack(value)]


def _list_value(key: str, values: tuple[Any, ...]) -> list[Piece]:
    if key in VAR_LIST_KEYS or (values and isinstance(values[0], Var)):
        return _envelope("VarList", _array(len(values)), *values)
    if key in INT_LIST_KEYS:
        return _envelope("Int32Vector", _pack(list(values)))
    return _envelope("ArgDirectionVector", _pack([direction.value for direction in values]))


def _envelope(kind: str, *value: Piece) -> list[Piece]:
    return [_map(2), _text("type"), _text(kind), _text("value"), *value]
