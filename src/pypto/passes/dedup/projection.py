"""The normal form of a unit: what is left of it when everything that may differ is taken away.

A projection is a sequence of integers. Expressions and types appear as their numbers (`numbering`),
statements as their class and parts in order, variables as their position. Names, source places,
comments and the identity of bound variables do not appear; everything else does. So two units are
structurally equal, up to a renaming of what they bind, exactly if their forms are equal sequences.

What a unit refers to outside itself is kept beside the form: the functions it calls, as positions
within the bundle, and the symbols of its signature, as the variables they are. Two units with equal
forms may still differ in these.

All parameters are numbered before any type is looked at, so a type may mention a later parameter; then
come the symbols of the signature, in order of appearance; then what the body defines, in order. A
symbol and a parameter never share a number.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any

from pypto import ir
from pypto.ir.node import (
    ATTRS,
    ITER_ARGS,
    NODE,
    NODES,
    OPTIONAL_NODE,
    TYPES,
    VALUE,
    VALUES,
    Field,
    Structure,
)  # fmt: skip
from pypto.ir.rewrite import is_static_type
from pypto.passes.dedup.numbering import Numbering, StructureTable
from pypto.passes.dedup.reflection import compile_functions, described_classes, instantiate, semantic_fields
from pypto.passes.dedup.units import Unit

__all__ = ["Projection", "Projector", "extent_variables"]


@dataclass(frozen=True, slots=True)
class Projection:
    """A unit in normal form. `forms` has one sequence per function, `references` its calls within the bundle.

    `symbols` are the signature symbols of all functions, in order; `has_scalar_extents` says whether a
    parameter is an extent of a signature; `weight` is that of the unit.
    """

    forms: tuple[tuple[int, ...], ...]
    references: tuple[tuple[int, ...], ...]
    symbols: tuple[ir.Var, ...]
    has_scalar_extents: bool
    weight: int

    def digest(self) -> int:
        """Return a hash that equal forms share; symbols do not take part."""
        return hash((self.forms, self.references))

    def has_form_of(self, other: Projection) -> bool:
        """Whether both are equal up to the identity of signature symbols."""
        return self.forms == other.forms and self.references == other.references

    def has_symbols_of(self, other: Projection) -> bool:
        """Whether both name the very same symbols, position by position."""
        if len(self.symbols) != len(other.symbols):
            return False
        return all(mine is theirs for mine, theirs in zip(self.symbols, other.symbols, strict=True))


class Projector:
    """Brings units into normal form; their numbers are comparable with one another."""

    __slots__ = ("_class_marks", "_emitters", "_form", "_numbering", "_stack", "_table")

    def __init__(self, table: StructureTable, functions: Mapping[str, ir.Function]) -> None:
        self._table = table
        self._numbering = Numbering(table, functions, is_open=False)
        self._form: list[int] = []
        self._stack: list[Any] = []
        self._class_marks = {
            cls: mark for mark, cls in enumerate(described_classes()) if issubclass(cls, ir.Var)
        }
        self._emitters: Mapping[type, Callable[[Any], None]] = instantiate(
            _emitter_code(), "make_emitters", self._form.append, self._stack, self._numbering.number,
            table.atom, self._bind, self._numbering.number_of_attrs, self._numbering.open_scope, _Open,
            _Close,
        )  # fmt: skip

    def project(self, unit: Unit) -> Projection:
        """Return the projection of `unit`; raise `FreeCapture` if one of its functions is not closed."""
        positions = {function.name: position for position, function in enumerate(unit.functions)}
        forms: list[tuple[int, ...]] = []
        references: list[tuple[int, ...]] = []
        symbols: list[ir.Var] = []
        has_scalar_extents = False
        for function in unit.functions:
            params, mentioned = set(function.params_), extent_variables(function)
            own_symbols = tuple(var for var in mentioned if var not in params)
            has_scalar_extents |= len(own_symbols) < len(mentioned)
            try:
                self._emit_function(function, own_symbols)
                names = self._numbering.take_names()
            finally:
                forms.append(tuple(self._form))
                self._form.clear()
                self._stack.clear()
                self._numbering.reset()
            references.append(tuple(positions[name] for name in names))
            symbols += own_symbols
        return Projection(tuple(forms), tuple(references), tuple(symbols), has_scalar_extents, unit.weight)

    def _emit_function(self, function: ir.Function, symbols: tuple[ir.Var, ...]) -> None:
        emit, numbering, atom = self._form.append, self._numbering, self._table.atom
        for var in (*function.params_, *symbols):
            numbering.bind(var)
        emit(len(function.params_))
        emit(len(symbols))
        for var in (*function.params_, *symbols):
            emit(self._class_marks[var.__class__])
            emit(numbering.number(var.type))
        for field in semantic_fields(ir.Function):
            value = getattr(function, field.stored)
            if field.kind in (VALUE, VALUES):
                emit(atom(value))
            elif field.kind == ATTRS:
                emit(numbering.number_of_attrs(value))
            elif field.kind == TYPES:
                emit(len(value))
                for each in value:
                    emit(numbering.number(each))
        self._emit_body(function.body)

    def _emit_body(self, body: ir.Stmt) -> None:
        stack, emitters = self._stack, self._emitters
        stack.append(body)
        while stack:
            item = stack.pop()
            if item.__class__ is _Open:
                self._numbering.open_scope()
            elif item.__class__ is _Close:
                self._numbering.close_scope()
                for var in item.results:
                    self._bind(var)
            else:
                emitters[item.__class__](item)

    def _bind(self, var: ir.Var) -> None:
        """Emit a definition: the variable's class, type and number.

        The type is in force before the variable is.
        """
        emit = self._form.append
        emit(self._class_marks[var.__class__])
        emit(self._numbering.number(var.type))
        emit(self._numbering.bind(var))


class _Open:
    """Marks the beginning of a branch on the stack."""

    __slots__ = ()


class _Close:
    """Marks the end of a branch or loop body on the stack; `results` are bound after it."""

    __slots__ = ("results",)

    def __init__(self, results: tuple[ir.Var, ...]) -> None:
        self.results = results


def extent_variables(function: ir.Function) -> tuple[ir.Var, ...]:
    """Return the variables in parameter and result types, each once, in order of appearance.

    Those that are no parameters are the symbols of the signature.
    """
    found: dict[ir.Var, None] = {}
    for declared in (*(param.type for param in function.params_), *function.return_types_):
        if not is_static_type(declared):
            found.update(dict.fromkeys(_vars_of_type(declared)))
    return tuple(found)


def _vars_of_type(root: ir.Type) -> Iterator[ir.Var]:
    pending: list[Any] = [root]
    entered: set[int] = set()
    while pending:
        part = pending.pop()
        if isinstance(part, ir.Var):
            yield part
        elif id(part) not in entered:
            entered.add(id(part))
            pending += reversed(part.types_ if isinstance(part, ir.TupleType) else part._children())


# How statements are walked: the fields in order of execution. `+` marks fields whose variables come
# into force; `(` and `)` enclose what is in force only inside, and the field after `)` comes into force
# when it closes. Classes that are not listed bind nothing, and their bodies come last.
_PLANS: dict[type[Structure], tuple[str, ...]] = {
    ir.AssignStmt: ("value", "+var"),
    ir.ForStmt: (
        "start", "stop", "step", "kind", "attrs", "iter_args",
        "(", "+loop_var", "+iter_args", "body", ")return_vars",
    ),
    ir.WhileStmt: ("iter_args", "(", "+iter_args", "condition", "body", ")return_vars"),
    ir.IfStmt: ("condition", "(", "then_body", ")", "(", "else_body", ")return_vars"),
}  # fmt: skip
_BODIES = frozenset({"body", "then_body", "else_body", "stmts"})
_ABSENT = -(1 << 62)  # is no number of anything


@functools.cache
def _emitter_code() -> CodeType:
    classes = [cls for cls in described_classes() if issubclass(cls, ir.Stmt)]
    bodies: dict[type[Structure], list[str]] = {
        cls: _emitter_lines(position, cls) for position, cls in enumerate(classes)
    }
    return compile_functions(
        "make_emitters", "emit, stack, number, atom, bind, attrs, open_scope, Open, Close", bodies
    )


def _emitter_lines(position: int, cls: type[Structure]) -> list[str]:
    """Code that emits a statement: at once what precedes its first body, the rest by way of the stack."""
    fields = {field.name: field for field in semantic_fields(cls)}
    plan = _PLANS.get(cls) or tuple(sorted(fields, key=lambda name: _is_body(fields[name])))
    covered = {step.strip("+()") for step in plan} - {""}
    if covered != set(fields):
        raise AssertionError(f"the walk of {cls.__name__} must cover {sorted(fields)}, not {sorted(covered)}")
    lines = [f"emit({position})"]
    deferred: list[str] = []  # in order of execution; the stack gets them last first
    for step in plan:
        field = fields.get(step.strip("+()"))
        if step == "(":
            deferred.append("stack.append(Open())") if deferred else lines.append("open_scope()")
        elif step.startswith(")"):
            results = "()" if field is None else f"n.{field.stored}"
            lines.append(f"emit(len({results}))")
            deferred.append(f"stack.append(Close({results}))")
        elif field is not None and _is_body(field):
            lines += _presence_lines(field)
            deferred.append(_push_line(field))
        elif field is not None:
            lines += _binding_lines(field) if step.startswith("+") else _value_lines(field)
    return [*lines, *reversed(deferred)]


def _is_body(field: Field) -> bool:
    return field.name in _BODIES and field.kind in (NODE, OPTIONAL_NODE, NODES)


def _presence_lines(field: Field) -> list[str]:
    if field.kind == OPTIONAL_NODE:
        return [f"emit(0 if n.{field.stored} is None else 1)"]
    return [f"emit(len(n.{field.stored}))"] if field.kind == NODES else []


def _push_line(field: Field) -> str:
    value = f"n.{field.stored}"
    if field.kind == NODES:
        return f"stack.extend({value}[::-1])"
    return f"if {value} is not None: stack.append({value})"


def _binding_lines(field: Field) -> list[str]:
    if field.kind == NODE:
        return [f"bind(n.{field.stored})"]
    return [f"for each in n.{field.stored}: bind(each)"]


def _value_lines(field: Field) -> list[str]:
    value = f"n.{field.stored}"
    return {
        NODE: [f"emit(number({value}))"],
        OPTIONAL_NODE: [f"emit({_ABSENT} if {value} is None else number({value}))"],
        NODES: [f"emit(len({value}))", f"for each in {value}: emit(number(each))"],
        ITER_ARGS: [f"emit(len({value}))", f"for each in {value}: emit(number(each.initValue))"],
        ATTRS: [f"emit(attrs({value}))"],
        VALUE: [f"emit(atom({value}))"],
        VALUES: [f"emit(atom({value}))"],
    }[field.kind]
