"""Values that loops carry and branches produce.

A `Target` is a C++ variable that a yield assigns. Yields are one parallel assignment: a value that names a
target which the same yield assigns earlier is saved first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pypto.codegen.orchestration.cpp_types import cpp_type
from pypto.codegen.orchestration.emission import Binding, Emission
from pypto.codegen.orchestration.scalars import scalar_text
from pypto.core.errors import InternalError, located
from pypto.ir.expr import ConstBool, ConstFloat, ConstInt, Expr, Var
from pypto.ir.stmt import YieldStmt
from pypto.ir.types import ArrayType, ScalarType, TensorType

__all__ = [
    "Target",
    "assign_targets",
    "clear_slots",
    "emit_declaration",
    "is_constant",
    "raw_name",
    "slot_fill",
    "value_binding",
    "value_type",
]


@dataclass(frozen=True, slots=True)
class Target:
    """A variable that a yield assigns.

    `slots` is the extent of an array; `slot` the element that a scalar id yielded by this loop goes to.
    """

    name: str
    cpp_type: str
    slots: int = 0
    slot: str = ""


def assign_targets(emission: Emission, stmt: YieldStmt, targets: Sequence[Target | None]) -> None:
    """Write the assignments of one yield. A target of None is another name for the value: nothing to do."""
    if len(stmt.value_) != len(targets):
        raise InternalError(
            located(f"a yield of {len(stmt.value_)} values where {len(targets)} are carried", stmt.span)
        )
    pending = [
        (target, value_binding(emission, value))
        for value, target in zip(stmt.value_, targets, strict=True)
        if target is not None
    ]
    pending = [(target, value) for target, value in pending if value.text != target.name]
    assigned: set[str] = set()
    saved: dict[int, str] = {}
    for position, (target, value) in enumerate(pending):
        if assigned.intersection(re.findall(r"\w+", value.text)):
            saved[position] = _save(emission, target, value)
        assigned.add(target.name)
    for position, (target, value) in enumerate(pending):
        _assign(emission, target, value.slots, saved.get(position, value.text))


def _save(emission: Emission, target: Target, value: Binding) -> str:
    name = emission.names.derived(f"{target.name}_next")
    if value.slots:
        emission.line(f"{target.cpp_type} {name}[{value.slots}];")
        emission.line(slot_fill("__yield_i", value.slots, name, f"{value.text}[__yield_i]"))
    else:
        emission.line(f"{target.cpp_type} {name} = {value.text};")
    return name


def _assign(emission: Emission, target: Target, value_slots: int, text: str) -> None:
    if not target.slots:
        if value_slots:
            raise ValueError(
                f"'{target.name}' takes one task id, but is given {value_slots} of a parallel loop; "
                "collect them in an "
                "array, or depend on them with task_dummy"
            )
        emission.line(f"{target.name} = {text};")
    elif value_slots:
        if value_slots > target.slots:
            raise InternalError(f"'{target.name}' has {target.slots} slots, but is given {value_slots}")
        first = f"({target.slot}) * {value_slots}" if target.slot else ""
        emission.line(slot_fill("__yield_i", value_slots, target.name, f"{text}[__yield_i]", first=first))
        if not target.slot:
            clear_slots(emission, target.name, value_slots, target.slots)
    elif target.slot:
        emission.line(f"{target.name}[{target.slot}] = {text};")
    else:
        emission.line(slot_fill("__yield_i", target.slots, target.name, text))


def slot_fill(index: str, slots: int, name: str, value: str, *, first: str = "") -> str:
    """A loop that writes `slots` slots of an array, from `first` on."""
    slot = f"{first} + {index}" if first else index
    return f"for (int64_t {index} = 0; {index} < {slots}; {index} += 1) {name}[{slot}] = {value};"


def clear_slots(emission: Emission, name: str, start: int, end: int) -> None:
    """Let the slots of an array of ids that are left over name no task."""
    if start < end:
        loop = f"for (int64_t __rest_i = {start}; __rest_i < {end}; __rest_i += 1)"
        emission.line(f"{loop} {name}[__rest_i] = PTO2TaskId::invalid();")


def value_binding(emission: Emission, value: Expr) -> Binding:
    """What a yielded or initial value is called."""
    if isinstance(value, Var):
        return emission.binding(value, value.span)
    return Binding(scalar_text(emission, value), constant=value if is_constant(value) else None)


def value_type(var: Var) -> str:
    """The C++ type of a carry."""
    type_ = var.type
    if isinstance(type_, TensorType):
        return "ChipTensor"
    if isinstance(type_, ScalarType | ArrayType):
        return cpp_type(type_.dtype)
    raise InternalError(
        located(f"'{var.name_hint}' of type {type(type_).__name__} cannot be carried", var.span)
    )


def is_constant(value: Expr) -> bool:
    return isinstance(value, ConstInt | ConstFloat | ConstBool)


def raw_name(emission: Emission, var: Var) -> str:
    """A carry is named after the whole hint of the loop's result."""
    return emission.names.unique(var.name_hint)


def emit_declaration(emission: Emission, kind: str, name: str, *, slots: int = 0, start: str = "") -> None:
    """Declare a value that outlives a manual scope when it stands directly in one."""
    text = f"{kind} {name}"
    text += f"[{slots}];" if slots else f" = {start};" if start else ";"
    if emission.outside_manual_scope():
        emission.outer_line(text)
        emission.block.declared_ahead.add(name)
    else:
        emission.line(text)
