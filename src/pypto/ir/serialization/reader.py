"""From plain maps to nodes.

All nodes of the payload are indexed by id first and then built on demand, operands before owners, so that a
reference may stand anywhere relative to the node that it names. Older payloads lack some fields; `_DEFAULTS`
says what those mean.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from pypto.core.dtype import DataType, dtype_from_code
from pypto.core.errors import InternalError
from pypto.core.span import Span
from pypto.ir.enums import ArgDirection, ParamDirection
from pypto.ir.expr import Call, Expr, GlobalVar, MemRef, Op, Var
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
)
from pypto.ir.program import Function, Program
from pypto.ir.scope import ScopeStmt
from pypto.ir.serialization.wire import (
    ATTR_ENUMS,
    FIELD_ENUMS,
    NAMED_ENUMS,
    NODE_CLASSES,
    SPAN_KEYS,
    TYPE_CLASSES,
    expected_class,
    wire_name,
)
from pypto.ir.stmt import ForStmt, Stmt, attach_leading_comments
from pypto.ir.types import ArrayType, PtrType, ScalarType, TensorType, TileType, Type
from pypto.ir.views import TensorView, TileView

__all__ = ["Reader"]

_DEFAULTS: dict[type, dict[str, Any]] = {
    Call: {"attrs": []},
    ForStmt: {"attrs": [], "kind": 0},
    MemRef: {"is_pinned": False, "slot_count": 1},
    ScopeStmt: {"attrs": [], "name_hint": "", "sync_start": False, "manual": False, "role": None},
    Function: {
        "func_type": 0, "level": None, "role": None, "attrs": [], "requires_runtime_binding": False,
    },
    TensorView: {"pad": "null", "valid_shape": []},
    TileView: {"compact": "null"},
}  # fmt: skip
_ABSENT = object()
Raw = dict[str, Any]


class Reader:
    """Builds the nodes of one payload."""

    def __init__(self, root: Any) -> None:
        if not isinstance(root, dict):
            raise ValueError(f"Expected map for IR node, got {type(root).__name__}")
        self._raw: dict[int, Raw] = {}
        self._built: dict[int, IRNode] = {}
        self._bases: dict[str, Var] = {}  # bases of old memory references, by name
        self._root = self._identify(root)
        self._index(root)

    def read(self) -> IRNode:
        """The root node."""
        entered: set[int] = set()
        stack = [self._root]
        while stack:
            number = stack[-1]
            if number in self._built:
                stack.pop()
                continue
            raw = self._raw.get(number)
            if raw is None:
                raise ValueError(f"Invalid reference ID: {number}")
            missing = [each for each in self._needs(raw) if each not in self._built]
            if not missing:
                self._built[number] = self._node(raw)
                continue
            if number in entered:
                raise ValueError(f"Invalid reference ID: {missing[0]} (node {number} contains itself)")
            entered.add(number)
            stack += missing
        return self._built[self._root]

    # --- structure

    def _identify(self, raw: Any) -> int:
        """The id of a node or reference."""
        if not isinstance(raw, dict):
            raise ValueError(f"Expected map for IR node, got {type(raw).__name__}")
        if "ref" in raw and "fields" not in raw:
            number = raw["ref"]
        else:
            for key in ("id", "type", "fields"):
                if key not in raw:
                    raise InternalError(f"a serialized node has no '{key}'")
            number = raw["id"]
        if isinstance(number, bool) or not isinstance(number, int):
            raise RuntimeError(f"a node id must be an integer, got {type(number).__name__}")
        return number

    def _index(self, root: Raw) -> None:
        for raw in _maps(root):
            if "fields" in raw and "id" in raw:
                number = self._identify(raw)
                if number in self._raw:
                    raise ValueError(f"the node id {number} is defined twice")
                self._raw[number] = raw

    def _needs(self, raw: Raw) -> Iterator[int]:
        """The ids of the nodes directly inside a node, types and attributes included."""
        stack: list[Any] = [raw["fields"]]
        while stack:
            value = stack.pop()
            if isinstance(value, dict):
                if "ref" in value or ("fields" in value and "id" in value):
                    yield self._identify(value)
                else:
                    stack += value.values()
            elif isinstance(value, list):
                stack += value

    # --- nodes

    def _node(self, raw: Raw) -> IRNode:
        cls = NODE_CLASSES.get(raw["type"])
        if cls is None:
            raise TypeError(f"Unknown IR node type: {raw['type']}")
        fields = raw["fields"]
        if not isinstance(fields, dict):
            raise RuntimeError(f"the fields of a {cls.__name__} must be a map, got {type(fields).__name__}")
        if cls is ForStmt and fields.get("chunk_config") is not None:
            raise ValueError("ForStmt.chunk_config belongs to a feature that no longer exists")
        if cls is Program:
            return self._program(fields)
        if cls is Function:
            return self._function(fields)
        if cls is Call and "arg_directions" in fields:
            fields = _with_directions(fields)
        node: IRNode = self._checked(
            cls, {field.name: self._field(cls, field, fields) for field in cls.FIELDS}
        )
        comments = fields.get("leading_comments")
        if comments and isinstance(node, Stmt):
            attach_leading_comments(node, _strings(comments, "leading_comments"))
        return node

    def _checked(self, cls: type[Any], values: dict[str, Any]) -> Any:
        """What the constructor of a class makes of the values of its fields: it refuses bad combinations."""
        accepted = _constructor_parameters(cls)
        if cls is MemRef:
            return self._made_memref(**values)
        given = {name: value for name, value in values.items() if name in accepted}
        if "dtype" in accepted and "dtype" not in given:
            if not isinstance(values["type"], ScalarType):
                raise RuntimeError(
                    f"{cls.__name__}.type must be ScalarType, got {type(values['type']).__name__}"
                )
            given["dtype"] = values["type"].dtype
        made = cls(**given)
        if values.get("attrs") and "attrs" not in accepted:
            return made.replace(attrs=values["attrs"])
        return made

    def _program(self, fields: Raw) -> Program:
        values = {field.name: self._field(Program, field, fields) for field in Program.FIELDS}
        return Program(list(values["functions"].values()), values["name"], values["span"])

    def _function(self, fields: Raw) -> Function:
        params = _required(fields, "params")
        defaults = {"param_directions": [ParamDirection.In.value] * len(params), **fields}
        values = {field.name: self._field(Function, field, defaults) for field in Function.FIELDS}
        directions = values["param_directions"]
        if len(directions) != len(values["params"]):
            raise ValueError(f"{len(directions)} directions for {len(values['params'])} parameters")
        attrs = dict(values["attrs"])
        split = fields.get("split")
        if split and "split" not in attrs:
            attrs["split"] = split
        return Function(
            values["name"],
            list(zip(values["params"], directions, strict=True)),
            values["return_types"],
            values["body"],
            values["span"],
            values["func_type"],
            values["level"],
            values["role"],
            attrs,
            values["requires_runtime_binding"],
        )

    def _field(self, cls: type, field: Field, fields: Raw) -> Any:
        name = wire_name(field)
        raw = fields.get(name, _ABSENT)
        if raw is _ABSENT:
            defaults = _DEFAULTS.get(ScopeStmt if issubclass(cls, ScopeStmt) else cls, {})
            if name not in defaults and field.kind != OPTIONAL_NODE:
                raise RuntimeError(f"Missing required field: {name} (of {cls.__name__})")
            raw = defaults.get(name)
        kind = field.kind
        if kind == NODE:
            return self._child(cls, field, raw)
        if kind == OPTIONAL_NODE:
            return None if raw is None else self._child(cls, field, raw)
        if kind in (NODES, ITER_ARGS):
            return tuple(self._child(cls, field, each) for each in _list(raw, name))
        if kind == TYPE:
            return self._type(raw)
        if kind == TYPES:
            return tuple(self._type(each) for each in _list(raw, name))
        if kind == ATTRS:
            return self._attrs(raw)
        if kind == OPERATOR:
            return _operator(raw)
        if kind == FUNCTIONS:
            return self._functions(raw)
        if kind == VALUES:
            return tuple(_plain(cls, field, each) for each in _list(raw, name))
        return _span(raw) if name == "span" else _plain(cls, field, raw)

    def _child(self, cls: type, field: Field, raw: Any) -> Any:
        node = self._built[self._identify(raw)]
        wanted = expected_class(cls, field)
        if wanted is not None and not isinstance(node, wanted):
            raise RuntimeError(
                f"{cls.__name__}.{wire_name(field)} must be {wanted.__name__}, got {type(node).__name__}"
            )
        return node

    def _functions(self, raw: Any) -> dict[str, Function]:
        functions: dict[str, Function] = {}
        for entry in _list(raw, "functions"):
            name = _operator(_required(entry, "key")).name
            function = self._built[self._identify(_required(entry, "value"))]
            if not isinstance(function, Function):
                raise RuntimeError(f"Program.functions holds a {type(function).__name__} under '{name}'")
            functions[name] = function
        return functions

    # --- types

    def _type(self, raw: Any) -> Type:
        kind = _required(raw, "type_kind")
        cls = TYPE_CLASSES.get(kind)
        if cls is None:
            raise RuntimeError(f"Unknown type kind: {kind}")
        if cls is ArrayType:
            (extent,) = _list(_required(raw, "shape"), "shape")
            return ArrayType(_dtype(_required(raw, "dtype")), self._built[self._identify(extent)])
        values = [self._type_field(cls, field, raw) for field in cls.FIELDS]
        made = cls.make(*values)
        return made._rebuilt(values) if values else made  # rebuilding checks and normalises

    def _type_field(self, cls: type[Type], field: Field, raw: Raw) -> Any:
        name = wire_name(field)
        if name == "memref":
            return self._memref(raw["memref"]) if raw.get("memref") is not None else None
        if field.kind == VIEW:
            return self._view(cls, raw[name]) if raw.get(name) is not None else None
        if name == "memory_space" and raw.get(name) is None:
            return None
        return self._field(cls, field, raw)

    def _view(self, owner: type[Type], raw: Raw) -> TensorView | TileView:
        cls: type[TensorView] | type[TileView] = TileView if issubclass(owner, TileType) else TensorView
        assert issubclass(owner, TensorType | TileType)
        if not isinstance(raw, dict):
            raise RuntimeError(f"the view of a {owner.__name__} must be a map, got {type(raw).__name__}")
        values = {field.name: self._field(cls, field, raw) for field in cls.FIELDS}
        view: TensorView | TileView = self._checked(cls, values)
        return view

    def _memref(self, raw: Raw) -> MemRef:
        name = _required(raw, "base")
        if "base_node" in raw:
            base = self._built[self._identify(raw["base_node"])]
        else:
            base = self._bases.setdefault(name, Var(name, PtrType.get(), Span.unknown()))
        if not isinstance(base, Var):
            raise RuntimeError(f"the base of a MemRef must be Var, got {type(base).__name__}")
        slot = raw.get("slot_index")
        return self._made_memref(
            base_=base,
            byte_offset_=self._built[self._identify(_required(raw, "byte_offset"))],
            size_=_required(raw, "size"),
            is_pinned_=raw.get("is_pinned", False),
            slot_count_=raw.get("slot_count", 1),
            slot_index_=None if slot is None else self._built[self._identify(slot)],
            span=Span.unknown(),
        )

    def _made_memref(
        self,
        base_: Var,
        byte_offset_: Any,
        size_: int,
        is_pinned_: bool,
        slot_count_: int,
        slot_index_: Any,
        span: Span,
        **_derived: Any,
    ) -> MemRef:
        if not isinstance(byte_offset_, Expr):
            raise RuntimeError(f"MemRef.byte_offset must be Expr, got {type(byte_offset_).__name__}")
        memref = MemRef(base_, 0, size_, span, is_pinned_, slot_count_, slot_index_)
        return memref.replace(byte_offset_=byte_offset_)

    # --- attributes

    def _attrs(self, raw: Any) -> dict[str, Any]:
        attrs: dict[str, Any] = {}
        for entry in _list(raw, "attrs"):
            key = _required(entry, "key")
            if not isinstance(key, str):
                raise RuntimeError(f"the key of an attribute must be text, got {type(key).__name__}")
            attrs[key] = self._attr_value(key, _required(entry, "value"))
        return attrs

    def _attr_value(self, key: str, raw: Any) -> Any:
        if isinstance(raw, bool | int | float | str):
            return raw
        if not isinstance(raw, dict) or not isinstance(raw.get("type"), str):
            raise TypeError(f"the attribute '{key}' has a value of unknown form ({type(raw).__name__})")
        kind = raw["type"]
        if kind == "DataType":
            return _dtype(_required(raw, "code"))
        value = _required(raw, "value")
        if kind in ATTR_ENUMS:
            return _member_by_name(ATTR_ENUMS[kind], value, key)
        decoder = _ATTR_DECODERS.get(kind)
        if decoder is None:
            raise TypeError(f"the attribute '{key}' has a value of unknown kind '{kind}'")
        return decoder(self, key, value)

    def _expr_value(self, key: str, raw: Any) -> Expr:
        node = self._built[self._identify(raw)] if raw is not None else None
        if not isinstance(node, Expr):
            raise TypeError(f"the attribute '{key}' must hold an expression, got {type(node).__name__}")
        return node

    def _var_list(self, key: str, raw: Any) -> tuple[Expr, ...]:
        return tuple(self._expr_value(key, each) for each in _list(raw, key))


_ATTR_DECODERS: dict[str, Callable[[Reader, str, Any], Any]] = {
    "ArgDirection": lambda _reader, key, raw: _direction(key, raw),
    "ArgDirectionVector": lambda _reader, key, raw: tuple(_direction(key, each) for each in _list(raw, key)),
    "Int32Vector": lambda _reader, key, raw: tuple(_integer(key, each) for each in _list(raw, key)),
    "Var": Reader._expr_value,
    "Expr": Reader._expr_value,
    "VarList": Reader._var_list,
}


_accepted: dict[type[Any], frozenset[str]] = {}


def _constructor_parameters(cls: type[Any]) -> frozenset[str]:
    """The names of the fields that the constructor of a class takes, and `dtype` where it takes that."""
    found = _accepted.get(cls)
    if found is None:
        found = _accepted[cls] = _parameters(cls)
    return found


def _parameters(cls: type[Any]) -> frozenset[str]:
    parameters = inspect.signature(cls.__init__).parameters
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values()):
        return frozenset(field.name for field in cls.FIELDS)
    return frozenset(parameters)


def _maps(root: Any) -> Iterator[Raw]:
    """All maps of a payload, outer before inner."""
    stack = [root]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            yield value
            stack += value.values()
        elif isinstance(value, list):
            stack += value


def _required(raw: Any, name: str) -> Any:
    if not isinstance(raw, dict):
        raise RuntimeError(f"expected a map with '{name}', got {type(raw).__name__}")
    if name not in raw:
        raise RuntimeError(f"Missing required field: {name}")
    return raw[name]


def _list(raw: Any, name: str) -> list[Any]:
    if not isinstance(raw, list):
        raise RuntimeError(f"'{name}' must be a list, got {type(raw).__name__}")
    return raw


def _strings(raw: Any, name: str) -> list[str]:
    values = _list(raw, name)
    for value in values:
        if not isinstance(value, str):
            raise RuntimeError(f"'{name}' must hold text, got {type(value).__name__}")
    return values


def _plain(cls: type, field: Field, raw: Any) -> Any:
    name = wire_name(field)
    if name == "dtype":
        return _dtype(raw)
    if name in NAMED_ENUMS:
        return _member_by_name(NAMED_ENUMS[name], raw, name)
    wanted = expected_class(cls, field)
    if wanted in (int, bool, str, float):
        if type(raw) is not wanted and not (wanted is float and type(raw) is int):
            raise RuntimeError(f"{cls.__name__}.{name} must be {wanted.__name__}, got {type(raw).__name__}")
        return wanted(raw)
    if name in FIELD_ENUMS:
        return None if raw is None else _member(FIELD_ENUMS[name], raw, name)
    return raw


def _member(cls: type[enum.Enum], raw: Any, name: str) -> enum.Enum:
    if isinstance(raw, bool) or not isinstance(raw, int):
        raise RuntimeError(f"'{name}' must be an integer, got {type(raw).__name__}")
    try:
        return cls(raw)
    except ValueError:
        raise ValueError(f"'{name}' has no member with the number {raw}") from None


def _member_by_name(cls: type[enum.Enum], raw: Any, name: str) -> enum.Enum:
    try:
        return cls[raw]
    except KeyError:
        raise ValueError(f"'{name}' has no member named {raw!r}") from None


def _direction(key: str, raw: Any) -> ArgDirection:
    if isinstance(raw, bool) or not isinstance(raw, int):
        raise TypeError(f"the attribute '{key}' must hold direction numbers, got {type(raw).__name__}")
    try:
        return ArgDirection(raw)
    except ValueError:
        raise ValueError(f"the attribute '{key}' holds {raw}, which is no argument direction") from None


def _integer(key: str, raw: Any) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int):
        raise TypeError(f"the attribute '{key}' must hold integers, got {type(raw).__name__}")
    return raw


def _dtype(raw: Any) -> DataType:
    if isinstance(raw, bool) or not isinstance(raw, int):
        raise RuntimeError(f"a dtype must be a number, got {type(raw).__name__}")
    return dtype_from_code(raw)


def _operator(raw: Any) -> Op:
    name = _required(raw, "name")
    if not isinstance(name, str):
        raise RuntimeError(f"an operator name must be text, got {type(name).__name__}")
    return GlobalVar(name) if _required(raw, "is_global_var") else Op(name)


def _span(raw: Any) -> Span:
    values = {key: _required(raw, key) for key in SPAN_KEYS}
    for key, value in values.items():
        wanted = str if key == "filename" else int
        if type(value) is not wanted:
            raise RuntimeError(f"span.{key} must be {wanted.__name__}, got {type(value).__name__}")
    if values["filename"] == "" and all(values[key] == -1 for key in SPAN_KEYS[:-1]):
        return Span.unknown()
    return Span(**values)


def _with_directions(fields: Raw) -> Raw:
    """An old call kept its directions beside its attributes."""
    codes = _list(fields["arg_directions"], "arg_directions")
    directions = [_direction("arg_directions", code).value for code in codes]
    if directions and len(directions) != len(_list(_required(fields, "args"), "args")):
        raise ValueError(f"{len(directions)} arg_directions for {len(fields['args'])} arguments")
    attrs = list(_list(fields.get("attrs", []), "attrs"))
    if directions and not any(_required(entry, "key") == "arg_directions" for entry in attrs):
        attrs.append({"key": "arg_directions", "value": {"type": "ArgDirectionVector", "value": directions}})
    return {**fields, "attrs": attrs}
