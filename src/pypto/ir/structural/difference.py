"""Finding and describing the first structural difference.

`structural_equal` answers fast; only when its answer is no does this module walk both sides again, in field
order, with the path to the place where they part.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from pypto.core.errors import InternalError
from pypto.ir.attrs import RepeatedKeys
from pypto.ir.expr import ConstInt, Expr, MemRef, Var
from pypto.ir.node import (
    ATTRS,
    DEFINITION,
    IGNORED,
    ITER_ARGS,
    NODES,
    OPERATOR,
    OPTIONAL_NODE,
    TYPE,
    TYPES,
    VALUE,
    VALUES,
    VIEW,
    Field,
    IRNode,
)  # fmt: skip
from pypto.ir.program import Program
from pypto.ir.stmt import SeqStmts
from pypto.ir.structural.equal import IDENTITY_ONLY, Comparison, check_comparable, structural_equal
from pypto.ir.structural.values import attr_kind, is_reference, same_int_dtype, same_value
from pypto.ir.types import Type


class Difference(Exception):
    """The first place where two sides part: path, reason, and the two nodes where showing them helps."""

    def __init__(self, path: str, reason: str, sides: tuple[Any, Any] | None = None) -> None:
        super().__init__(reason)
        self.path, self.reason, self.sides = path, reason, sides


def assert_structural_equal(
    lhs: IRNode | Type, rhs: IRNode | Type, enable_auto_mapping: bool = False
) -> None:
    """Raise `ValueError` that shows the first difference unless both sides are structurally equal."""
    check_comparable(lhs, rhs)
    if structural_equal(lhs, rhs, enable_auto_mapping):
        return
    raise ValueError(_message(first_difference(lhs, rhs, enable_auto_mapping)))


def first_difference(lhs: IRNode | Type, rhs: IRNode | Type, enable_auto_mapping: bool) -> Difference:
    """The first difference in field order of two sides that are known to differ."""
    try:
        _Walk(enable_auto_mapping).run(lhs, rhs)
    except Difference as difference:
        return difference
    return Difference("", "Structures differ")


def _message(difference: Difference) -> str:
    lines = [
        f"Structural equality assertion failed{f' at: {difference.path}' if difference.path else ''}",
        "",
    ]
    if difference.sides is not None:
        for title, node in zip(("Left-hand side:", "Right-hand side:"), difference.sides, strict=True):
            lines += [title, *(f"  {line}" for line in _printed(node).splitlines()), ""]
    return "\n".join([*lines, f"Reason: {difference.reason}"])


_SHOWN_NODES = 50_000


def _is_readable(node: IRNode) -> bool:
    """Whether the text of a node has a bearable length: it repeats what is shared, so it may be endless."""
    pending, seen = [node], 0
    while pending:
        seen += 1
        if seen > _SHOWN_NODES:
            return False
        pending += pending.pop()._children()
    return True


def _printed(node: Any) -> str:
    if node is None:
        return "(null)"
    if not _is_readable(node):
        return f"({type(node).__name__} of more than {_SHOWN_NODES} nodes)"
    try:
        return str(node)
    except (InternalError, ValueError) as error:  # malformed nodes are compared too
        return f"{node!r}, which has no text: {str(error).splitlines()[0]}"


_Step = Callable[[], "Iterable[_Step]"]


@dataclass(frozen=True, slots=True)
class _Context:
    """How a pair is compared, and where it stands."""

    auto: bool
    strong: bool
    path: str = ""
    role: str = ""

    def at(self, name: str) -> _Context:
        return replace(self, path=f"{self.path}.{name}" if self.path else name, role=name)

    def item(self, index: int) -> _Context:
        return replace(self, path=f"{self.path}[{index}]", role="")

    def in_type(self) -> _Context:
        return replace(self, strong=True, role="")


class _Walk(Comparison):
    """The comparison again as steps in field order; each step raises the difference or names the steps
    inside it."""

    def run(self, lhs: Any, rhs: Any) -> None:
        root = _Context(self.requested_auto, self.requested_auto or isinstance(lhs, Type))
        self._drain(self._pair(lhs, rhs, root))

    def _drain(self, first: _Step) -> None:
        """Take a step and all those that follow from it."""
        pending = [first]
        while pending:
            step = pending.pop()
            pending += reversed(list(step()))

    def _pair(self, left: Any, right: Any, context: _Context) -> _Step:
        return lambda: self._compare(left, right, context)

    def _compare(self, left: Any, right: Any, context: _Context) -> Iterable[_Step]:
        if left is right:
            if not self._shared_ok(left, context.strong):
                raise Difference(context.path, self._mapping_reason(left, right, context.auto), (left, right))
            return ()
        if left is None or right is None:
            raise Difference(context.path, "One node is null, the other is not", (left, right))
        kind = "Type name" if isinstance(left, Type) else "Node type"
        if left.KIND is not right.KIND:
            reason = f"{kind} mismatch ({type(left).__name__} != {type(right).__name__})"
            raise Difference(context.path, reason, None if isinstance(left, Type) else (left, right))
        if isinstance(left, Program):
            return self._programs(left, right, context)
        if isinstance(left, Var):
            return self._vars(left, right, context)
        if isinstance(left, Type):
            return self._types(left, right, context)
        if isinstance(left, Expr) and self.has_passed(left, right, context.auto, context.strong):
            return ()
        return [
            step
            for field in left.FIELDS
            if field.role != IGNORED
            for step in self._field(left, right, field, context)
        ]

    # -- nodes
    # -----------------------------------------------------------------------------------------------------

    def _field(self, left: Any, right: Any, field: Field, context: _Context) -> Iterable[_Step]:
        mine, theirs = getattr(left, field.stored), getattr(right, field.stored)
        here = context if isinstance(left, SeqStmts) else context.at(field.name)
        if field.role == DEFINITION:
            here = replace(here, auto=True)
        if field.kind in (VALUE, VALUES, OPERATOR):
            yield lambda: self._values_step(left, field, mine, theirs, here.path)
        elif field.kind == ATTRS:
            yield lambda: self._attrs(mine, theirs, here)
        elif field.kind == TYPES:
            yield lambda: self._sizes(
                "Type vector size mismatch ({} types != {} types)", mine, theirs, here.path
            )
            yield from (self._pair(a, b, here.in_type()) for a, b in zip(mine, theirs, strict=False))
        elif field.kind in (NODES, ITER_ARGS):
            yield lambda: self._sizes("Vector size mismatch ({} items != {} items)", mine, theirs, here.path)
            yield from (
                self._pair(a, b, here.item(i)) for i, (a, b) in enumerate(zip(mine, theirs, strict=False))
            )
        elif field.kind == OPTIONAL_NODE and (mine is None) != (theirs is None):
            yield lambda: _differ(here.path, "Optional field presence mismatch", (mine, theirs))
        elif mine is not None:
            yield self._pair(mine, theirs, here.in_type() if field.kind == TYPE else here)

    def _values_step(self, owner: Any, field: Field, mine: Any, theirs: Any, path: str) -> Iterable[_Step]:
        if field.kind == OPERATOR:
            if mine.name != theirs.name:
                raise Difference(path, f"Operator name mismatch ('{mine.name}' != '{theirs.name}')")
            return ()
        if not same_value(mine, theirs):
            raise Difference(path, _value_reason(owner, field, mine, theirs))
        return ()

    def _sizes(self, reason: str, mine: Any, theirs: Any, path: str) -> Iterable[_Step]:
        if len(mine) != len(theirs):
            raise Difference(path, reason.format(len(mine), len(theirs)))
        return ()

    def _programs(self, left: Program, right: Program, context: _Context) -> Iterable[_Step]:
        names, others = list(left.functions_), list(right.functions_)
        self._sizes("Map size mismatch ({} items != {} items)", names, others, context.path)
        for name, other in zip(names, others, strict=True):
            if name != other:
                raise Difference(context.path, f"Map key mismatch ('{name}' != '{other}')")
        return [
            self._pair(
                left.functions_[n], right.functions_[n], replace(context, path=f"{context.path}['{n}']")
            )
            for n in names
        ]

    def _attrs(self, left: dict[str, Any], right: dict[str, Any], context: _Context) -> Iterable[_Step]:
        if len(left) != len(right):
            raise Difference(context.path, f"Kwargs size mismatch ({len(left)} != {len(right)})")
        for side in (left, right):
            if isinstance(side, RepeatedKeys):
                raise Difference(context.path, _one_sided(side.key))
        steps: list[_Step] = []
        for key, mine in left.items():
            if key not in right:
                raise Difference(context.path, _one_sided(key))
            theirs = right[key]
            if attr_kind(key, mine) != attr_kind(key, theirs):
                raise Difference(context.path, f"Kwargs value type mismatch for key '{key}'")
            if not is_reference(mine) and not is_reference(theirs):
                if not same_value(mine, theirs):
                    raise Difference(context.path, f"Kwargs value mismatch for key '{key}'")
                continue
            mine = mine if type(mine) is tuple else (mine,)
            theirs = theirs if type(theirs) is tuple else (theirs,)
            if len(mine) != len(theirs):
                raise Difference(context.path, f"Kwargs value mismatch for key '{key}'")
            steps += [self._pair(a, b, context) for a, b in zip(mine, theirs, strict=True)]
        return steps

    # -- variables
    # -------------------------------------------------------------------------------------------------

    def _vars(self, left: Any, right: Any, context: _Context) -> Iterable[_Step]:
        is_new = left not in self.left_to_right and right not in self.right_to_left
        if not self._var_ok(left, right, context.auto, context.strong, IDENTITY_ONLY, []):
            raise Difference(context.path, self._mapping_reason(left, right, context.auto), (left, right))
        if context.role == "window_buffer":
            return
        if is_new:
            types = replace(context, auto=True, strong=True)
            yield self._pair(left.type, right.type, types if context.role == "loop_var" else types.in_type())
        for field in left.FIELDS:
            if field.role == IGNORED or field.kind == TYPE:
                continue
            if isinstance(left, MemRef):
                yield self._memref_part(left, right, field, context)
            else:
                yield from self._field(left, right, field, context)

    def _memref_part(self, left: MemRef, right: MemRef, field: Field, context: _Context) -> _Step:
        """One part of a memory reference; a difference inside it is told of the reference as a whole."""
        mine, theirs = getattr(left, field.stored), getattr(right, field.stored)
        name = field.name.rstrip("_")

        def compare() -> Iterable[_Step]:
            if field.kind == VALUE:
                if not same_value(mine, theirs):
                    reason = f"MemRef {name} mismatch ({_shown(mine)} != {_shown(theirs)})"
                    raise Difference(context.path, reason, (left, right))
            elif (mine is None) != (theirs is None):
                raise Difference(context.path, f"MemRef {name} presence mismatch", (left, right))
            elif mine is not None:
                try:
                    self._drain(self._pair(mine, theirs, context))
                except Difference:
                    raise Difference(context.path, f"MemRef {name} mismatch", (left, right)) from None
            return ()

        return compare

    def _mapping_reason(self, left: Any, right: Any, auto: bool) -> str:
        partner = self.left_to_right.get(left) if isinstance(left, Var) else None
        source = self.right_to_left.get(right) if isinstance(right, Var) else None
        if partner is None and source is None:
            return "Variable pointer mismatch (without auto-mapping)"
        if not auto:
            return "Variable mapping inconsistent (without auto-mapping)"
        if partner is not None:
            return (
                f"Variable mapping inconsistent ('{left.name_hint}' cannot map to both "
                f"'{partner.name_hint}' and '{right.name_hint}')"
            )
        assert source is not None
        return (
            f"Variable mapping inconsistent ('{right.name_hint}' is already mapped from "
            f"'{source.name_hint}', cannot map from '{left.name_hint}')"
        )

    # -- types
    # -----------------------------------------------------------------------------------------------------

    def _types(self, left: Type, right: Type, context: _Context) -> Iterable[_Step]:
        owner = type(left).__name__
        for field in left.FIELDS:
            mine, theirs = getattr(left, field.stored), getattr(right, field.stored)
            if field.role == IGNORED:
                continue
            if field.name == "dtype" and context.role == "loop_var" and same_int_dtype(mine, theirs):
                continue
            if field.kind == VIEW and mine is not None and theirs is not None:
                view = type(mine).__name__
                for part in mine.FIELDS:
                    values = getattr(mine, part.stored), getattr(theirs, part.stored)
                    yield from self._type_part(view, part, *values, context)
            else:
                yield from self._type_part(owner, field, mine, theirs, context)

    def _type_part(
        self, owner: str, field: Field, mine: Any, theirs: Any, context: _Context
    ) -> Iterable[_Step]:
        path, inside = context.path, context.in_type()
        if field.kind in (NODES, TYPES):
            what = f"{owner} {field.name} rank" if field.kind == NODES else "TupleType size"
            yield lambda: self._sizes(what + " mismatch ({} != {})", mine, theirs, path)
            yield from (self._pair(a, b, inside) for a, b in zip(mine, theirs, strict=False))
        elif field.kind == VALUE:
            if not same_value(mine, theirs):
                reason = f"{owner} {field.name} mismatch ({_shown(mine)} != {_shown(theirs)})"
                yield lambda: _differ(path, reason)
        elif (mine is None) != (theirs is None):
            yield lambda: _differ(path, f"{owner} {field.name} presence mismatch")
        elif mine is not None:
            yield self._pair(mine, theirs, replace(inside, role=field.name))


def _one_sided(key: str) -> str:
    return f"Kwargs key '{key}' present on one side only (or duplicated)"


def _differ(path: str, reason: str, sides: tuple[Any, Any] | None = None) -> NoReturn:
    raise Difference(path, reason, sides)


def _value_reason(owner: Any, field: Field, mine: Any, theirs: Any) -> str:
    if field.kind == VALUES and len(mine) == len(theirs):
        mine, theirs = next((a, b) for a, b in zip(mine, theirs, strict=True) if not same_value(a, b))
    elif field.kind == VALUES:
        return f"Vector size mismatch ({len(mine)} items != {len(theirs)} items)"
    if (mine is None) != (theirs is None):
        return f"{field.name.capitalize()} optional presence mismatch"
    integer = "int64_t" if isinstance(owner, ConstInt) else "Integer"
    for kind, name in ((bool, "Bool"), (int, integer), (float, "double"), (str, "String")):
        if isinstance(mine, kind) and not isinstance(mine, enum.Enum):
            return f"{name} value mismatch ({_shown(mine)} != {_shown(theirs)})"
    return f"{type(mine).__name__} mismatch ({_shown(mine)} != {_shown(theirs)})"


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    return value.name if isinstance(value, enum.Enum) else str(value)
