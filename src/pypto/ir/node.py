"""The root of all IR nodes, and how a node class describes itself.

A class lists its fields once, each with a *role* (does a variable in it count as a definition, a use, or is
the field ignored when programs are compared) and a *kind* (what is stored). From that list this module
generates, per
class and at import, the straight-line functions that everything else runs on: construction, `children`,
`map_children`,
`replace`. Comparison, hashing, serialization and the deduplicator's projection read the same list.

Nodes are immutable. A sequence is stored as a tuple under its name with a trailing underscore (`args_`); the
public name reads it as a fresh list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn, TypeVar

from pypto.core.span import Span

DEFINITION, USE, IGNORED = "def", "use", "ignored"

NODE = "node"  # one IR node
OPTIONAL_NODE = "opt_node"
NODES = "nodes"  # a tuple of IR nodes
ITER_ARGS = "iter_args"  # a tuple of IterArgs; initial values are reached through the loop, not each use
TYPE = "type"
TYPES = "types"
VALUE = "value"  # anything compared by value: numbers, text, enumerations, None
ATTRS = "attrs"  # ordered mapping from key to attribute value
OPERATOR = "op"  # compared by name
FUNCTIONS = "functions"  # mapping from name to Function
VALUES = "values"  # a tuple of plain values
VIEW = "view"  # an optional structure that is part of its owner, such as the view of a tensor type

_NODE_KINDS = frozenset({NODE, OPTIONAL_NODE, NODES, ITER_ARGS})
_TUPLE_KINDS = frozenset({NODES, ITER_ARGS, TYPES, VALUES})


@dataclass(frozen=True)
class Field:
    """One entry of a class's field list. `name` is public, `stored` is the slot that holds the value."""

    name: str
    role: str
    kind: str
    stored: str


def define(name: str, kind: str = NODE) -> Field:
    """A field whose variables are introduced here."""
    return _field(name, DEFINITION, kind)


def use(name: str, kind: str = NODE) -> Field:
    """A field whose variables must have been introduced elsewhere, or that holds a plain value."""
    return _field(name, USE, kind)


def ignore(name: str, kind: str = VALUE) -> Field:
    """A field that comparison never looks at."""
    return _field(name, IGNORED, kind)


def _field(name: str, role: str, kind: str) -> Field:
    stored = name + "_" if kind in _TUPLE_KINDS or kind in (ATTRS, FUNCTIONS) else name
    return Field(name, role, kind, stored)


_SPAN_FIELD = ignore("span")
_T = TypeVar("_T", bound="Structure")
_Item = TypeVar("_Item")


class Structure:
    """A description with generated members: the common ground of nodes, types and views."""

    __slots__ = ()
    FIELDS: ClassVar[tuple[Field, ...]] = ()
    VISIT_ORDER: ClassVar[tuple[str, ...] | None] = None
    REWRITE_ORDER: ClassVar[tuple[str, ...] | None] = None
    ABSTRACT: ClassVar[bool] = True
    KIND: ClassVar[type[Structure]]  # the class itself, or the one it specialises without fields of its own

    _fill: ClassVar[Callable[..., None]]
    _values: ClassVar[Callable[[Any], tuple[Any, ...]]]
    _children: ClassVar[Callable[[Any], Sequence[Any]]]
    _map_children: ClassVar[Callable[[Any, Callable[[Any], Any], Callable[[Any], Any]], Any]]

    def __init_subclass__(cls) -> None:
        if "ABSTRACT" not in cls.__dict__:
            cls.ABSTRACT = False
        parent: Any = cls.__bases__[0]
        specialises = "FIELDS" not in cls.__dict__ and not getattr(parent, "ABSTRACT", True)
        cls.KIND = parent.KIND if specialises else cls
        if "FIELDS" in cls.__dict__:
            cls.FIELDS = (*cls.__dict__["FIELDS"], *cls._common_fields())
            _generate(cls)

    @classmethod
    def _common_fields(cls) -> tuple[Field, ...]:
        """Fields that every class of this branch ends with."""
        return ()

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise TypeError(f"{type(self).__name__} is abstract and cannot be instantiated")

    @classmethod
    def make(cls: type[_T], *values: Any) -> _T:
        """Build an object from stored values in field order. Nothing is checked or converted."""
        made = object.__new__(cls)
        made._fill(*values)
        return made

    def replace(self: _T, **changes: Any) -> _T:
        """A copy with these fields changed; the object itself when every given value is the present one."""
        values = list(self._values())
        changed = False
        for position, field in enumerate(self.FIELDS):
            if field.name in changes:
                value = self._stored_form(field, changes.pop(field.name))
                if value is not values[position] and not _same_items(field, value, values[position]):
                    values[position] = value
                    changed = True
        if changes:
            raise TypeError(f"{type(self).__name__} has no field {', '.join(sorted(changes))}")
        return self._rebuilt(values) if changed else self

    def _rebuilt(self: _T, values: Sequence[Any]) -> _T:
        """Build the changed copy; classes with derived fields recompute them here."""
        return type(self).make(*values)

    def _stored_form(self, field: Field, value: Any) -> Any:
        if field.kind in _TUPLE_KINDS:
            return tuple(value)
        if field.kind == ATTRS:
            return normalise_attrs(type(self).__name__, value)
        return value

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; cannot assign '{name}'")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; cannot delete '{name}'")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(f"{type(self).__name__} objects cannot be copied or pickled; use ir.serialize")


class IRNode(Structure):
    """Anything in a program that has a place in the source: expressions, statements, functions, programs."""

    __slots__ = ("__weakref__", "span")
    ABSTRACT = True

    span: Span

    @classmethod
    def _common_fields(cls) -> tuple[Field, ...]:
        return (_SPAN_FIELD,)

    def same_as(self, other: object) -> bool:
        """Whether `other` is this very object."""
        return self is other

    def as_python(self, prefix: str = "pl", concise: bool = False, format: bool = True) -> str:
        """The program text of this node, with `prefix` for the language module."""
        from pypto.ir.printer import python_print

        return python_print(self, prefix=prefix, concise=concise, format=format)

    def __str__(self) -> str:
        return self.as_python()


def show_value(value: object) -> str:
    """``value`` as a message shows it: a node by its text, since its repr is an address."""
    if isinstance(value, IRNode):
        return str(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(show_value, value))}]"
    return repr(value)


class _Required:
    """Stands for an argument that has to be given although optional ones precede it."""

    def __repr__(self) -> str:
        return "<required>"


REQUIRED: Any = _Required()


def _same_items(field: Field, value: Any, present: Any) -> bool:
    return (
        field.kind in _TUPLE_KINDS
        and len(value) == len(present)
        and all(a is b for a, b in zip(value, present, strict=True))
    )


def _generate(cls: type[Structure]) -> None:
    """Write the straight-line functions of one class."""
    fields = cls.FIELDS
    stored = [field.stored for field in fields]
    setters = {f"set_{name}": getattr(cls, name).__set__ for name in stored}
    cls._fill = _compile(
        f"def _fill({', '.join(['self', *stored])}):",
        [f"set_{name}(self, {name})" for name in stored] or ["pass"],
        setters,
    )
    cls._values = _compile("def _values(self):", [f"return ({''.join(f'self.{s}, ' for s in stored)})"], {})
    visited = _visited_fields(cls)
    if "_children" not in cls.__dict__:
        cls._children = _compile(
            "def _children(self):", _children_lines(visited), {"attr_refs": attr_references}
        )
    cls._map_children = _compile("def _map_children(self, f, t):", *_mapping(cls))


def _compile(head: str, lines: list[str], names: dict[str, Any]) -> Any:
    source = head + "".join(f"\n    {line}" for line in lines) + "\n"
    namespace = dict(names)
    exec(source, namespace)
    return namespace[head[len("def ") : head.index("(")]]


def _visited_fields(cls: type[Structure]) -> list[Field]:
    if cls.VISIT_ORDER is not None:
        by_name = {field.name: field for field in cls.FIELDS}
        return [by_name[name] for name in cls.VISIT_ORDER]
    ordered = [f for f in cls.FIELDS if f.kind in _NODE_KINDS or f.kind == VIEW]
    return ordered + [f for f in cls.FIELDS if f.kind in (ATTRS, FUNCTIONS)]


def _children_lines(fields: list[Field]) -> list[str]:
    if not fields:
        return ["return ()"]
    if all(field.kind == NODE for field in fields):
        return [f"return ({''.join(f'self.{f.stored}, ' for f in fields)})"]
    if len(fields) == 1 and fields[0].kind == NODES:
        return [f"return self.{fields[0].stored}"]
    lines = ["found = []"]
    for f in fields:
        read = f"self.{f.stored}"
        lines += {
            NODE: [f"found.append({read})"],
            OPTIONAL_NODE: [f"if {read} is not None: found.append({read})"],
            NODES: [f"found += {read}"],
            ITER_ARGS: [f"for each in {read}:", "    found.append(each); found.append(each.initValue)"],
            ATTRS: [f"if {read}: found += attr_refs({read})"],
            FUNCTIONS: [f"found += {read}.values()"],
            VIEW: [f"if {read} is not None: found += {read}._children()"],
        }[f.kind]
    return [*lines, "return found"]


def _mapping(cls: type[Structure]) -> tuple[list[str], dict[str, Any]]:
    """Copy-on-write rebuild: `f` maps each child node, `t` each type; the node itself when nothing changed.

    Fields are mapped in `REWRITE_ORDER`, else in field order.
    """
    lines, same = [], []
    fields = cls.FIELDS
    first = cls.REWRITE_ORDER or ()
    for field in sorted(fields, key=lambda f: first.index(f.name) if f.name in first else len(first)):
        name, read = field.stored, f"self.{field.stored}"
        if field.kind == NODE:
            lines += [f"{name} = f({read})"]
            same.append(f"{name} is {read}")
        elif field.kind == OPTIONAL_NODE:
            lines += [f"{name} = None if {read} is None else f({read})"]
            same.append(f"{name} is {read}")
        elif field.kind in (NODES, ITER_ARGS):
            lines += [f"{name} = map_tuple({read}, f)"]
            same.append(f"{name} is {read}")
        elif field.kind == TYPE:
            lines += [f"{name} = t({read})"]
            same.append(f"{name} is {read}")
        elif field.kind == VIEW:
            lines += [f"{name} = None if {read} is None else {read}._map_children(f, t)"]
            same.append(f"{name} is {read}")
        elif field.kind == TYPES:
            lines += [f"{name} = map_tuple({read}, t)"]
            same.append(f"{name} is {read}")
        elif field.kind == ATTRS:
            lines += [f"{name} = map_attrs({read}, f) if {read} else {read}"]
            same.append(f"{name} is {read}")
        else:
            lines += [f"{name} = {read}"]
    values = ", ".join(field.stored for field in fields)
    if same:
        lines.append(f"if {' and '.join(same)}: return self")
        lines.append(f"return self._rebuilt([{values}])")
    else:
        lines = ["return self"]
    return lines, {"map_tuple": map_tuple, "map_attrs": map_attr_references}


def map_tuple(items: tuple[_Item, ...], f: Callable[[_Item], Any]) -> tuple[Any, ...]:
    """`f` over a tuple; the tuple itself when no item changed."""
    changed = False
    mapped = []
    for item in items:
        new = f(item)
        changed = changed or new is not item
        mapped.append(new)
    return tuple(mapped) if changed else items


def attr_references(attrs: dict[str, Any]) -> Iterator[Any]:
    """The expressions and variables that attribute values refer to, in attribute order."""
    for value in attrs.values():
        if isinstance(value, IRNode):
            yield value
        elif type(value) is tuple and value and isinstance(value[0], IRNode):
            yield from value


def map_attr_references(attrs: dict[str, Any], f: Callable[[Any], Any]) -> dict[str, Any]:
    """`attrs` with `f` applied to every reference; the same dict when nothing changed."""
    mapped: dict[str, Any] | None = None
    for key, value in attrs.items():
        if isinstance(value, IRNode):
            new = f(value)
        elif type(value) is tuple and value and isinstance(value[0], IRNode):
            new = map_tuple(value, f)
        else:
            continue
        if new is not value:
            mapped = copy(attrs) if mapped is None else mapped
            mapped[key] = new
    return attrs if mapped is None else mapped


def normalise_attrs(owner: str, attrs: Any) -> dict[str, Any]:
    from pypto.ir.attrs import normalise_attrs as normalise

    return normalise(owner, attrs)


def expect(value: Any, cls: type[Any] | tuple[type[Any], ...], what: str) -> None:
    """Raise `TypeError` unless `value` is a `cls` (or one of several); `what` names the parameter, for
    example `AssignStmt.var`."""
    if not isinstance(value, cls):
        got = "nothing" if value is REQUIRED else type(value).__name__
        raise TypeError(f"{what} must be {_article(cls)}, got {got}")


def expect_callable(value: Any, what: str) -> None:
    """Raise `TypeError` unless `value` can be called."""
    if not callable(value):
        raise TypeError(f"{what} must be callable, got {type(value).__name__}")


def expect_all(values: Any, cls: type[_Item], what: str) -> tuple[_Item, ...]:
    """The values as a tuple. Raises `TypeError` unless they are a sequence of `cls`."""
    if not isinstance(values, (list, tuple)):
        raise TypeError(f"{what} must be a sequence of {cls.__name__}, got {type(values).__name__}")
    for position, value in enumerate(values):
        if not isinstance(value, cls):
            raise TypeError(f"{what}[{position}] must be {_article(cls)}, got {type(value).__name__}")
    return tuple(values)


def _article(cls: type[Any] | tuple[type[Any], ...]) -> str:
    if isinstance(cls, tuple):
        return " or ".join(map(_article, cls))
    return f"{'an' if cls.__name__[0] in 'AEIOUi' else 'a'} {cls.__name__}"
