"""One small change to one node of a function: another value, attribute, order of operands, direction."""

from __future__ import annotations

import enum
import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pypto import ir
from pypto.ir.node import ATTRS, NODES, VALUE, Field, Structure

DTYPES = (ir.DataType.FP32, ir.DataType.BF16, ir.DataType.INT32, ir.DataType.UINT32, ir.DataType.BOOL)


@dataclass(frozen=True, slots=True)
class Change:
    """`field` of `node` becomes `value`."""

    node: Structure
    field: Field
    value: Any


def mutated(function: ir.Function, rng: random.Random) -> ir.Function:
    """Return `function` with one random change."""
    changes = [*_changes(function, rng)]
    if not changes or rng.random() < 0.1:
        return _with_other_direction(function, rng)
    change = rng.choice(changes)
    made: dict[int, Any] = {}

    def rebuild(node: Any) -> Any:
        if id(node) not in made:
            if node is change.node:
                names = [field.name for field in node.FIELDS]
                values = list(node._values())
                values[names.index(change.field.name)] = change.value
                made[id(node)] = type(node).make(*values)
            else:
                made[id(node)] = node if isinstance(node, ir.Var) else node._map_children(rebuild, rebuild)
        return made[id(node)]

    return rebuild(function)


def _with_other_direction(function: ir.Function, rng: random.Random) -> ir.Function:
    directions = list(function.param_directions_)
    index = rng.randrange(len(directions))
    directions[index] = rng.choice([each for each in ir.ParamDirection if each is not directions[index]])
    return function.replace(param_directions=directions)


def _changes(function: ir.Function, rng: random.Random) -> Iterator[Change]:
    """All changes to nodes and types below `function`, variables and their types left aside."""
    found: dict[int, Structure] = {}

    def collect(node: Any) -> Any:
        if id(node) not in found and not isinstance(node, ir.Var):
            found[id(node)] = node
            node._map_children(collect, collect)
        return node

    collect(function)
    for node in found.values():
        if node is function or isinstance(node, ir.TupleGetItemExpr):  # another index may not exist
            continue
        for field in node.FIELDS:
            old = getattr(node, field.stored)
            if field.kind == VALUE and field.role != "ignored":
                yield from (Change(node, field, new) for new in _other_values(old, rng))
            elif field.kind == ATTRS:
                yield Change(node, field, {**old, "further": 1})
                yield from (
                    Change(node, field, {**old, key: new})
                    for key in old
                    for new in _other_values(old[key], rng)
                )
            elif field.kind == NODES and field.role == "use" and len(old) > 1:
                yield Change(node, field, (*old[1:], old[0]))


def _other_values(old: object, rng: random.Random) -> Iterator[object]:
    match old:
        case bool():
            yield not old
        case enum.Enum():
            yield from (each for each in type(old) if each is not old)
        case int():
            yield old + 1
        case float():
            (bits,) = struct.unpack("<Q", struct.pack("<d", old))
            yield from (-old, old + 1.0, *struct.unpack("<d", struct.pack("<Q", bits ^ 1)))
        case str():
            yield old + "x"
        case ir.DataType():
            yield rng.choice([each for each in DTYPES if each is not old])
