"""Bytes that somebody damaged: every payload is read, or refused with a class that the API names.

What is read although it was changed must be as well formed as what a constructor makes: it prints, hashes,
compares and is written again.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Any

import msgpack
import pytest

from pypto import InternalError, ir

from . import instances

REFUSALS = (RuntimeError, ValueError, TypeError)
JUNK: list[Any] = [
    None, True, 0, 1, -1, 3, 99, 2**31, 2**63 - 1, -(2**63), 2**64 - 1, 1.5, "", "x", "ND", "Vec", "null",
    b"x",
    [], [1], [None], {}, {"ref": 0}, {"ref": 999}, {"ref": True}, [{"ref": 0}], {1: 2},
    {"type": "Var", "value": {"ref": 0}}, {"type_kind": "ScalarType", "dtype": 0x34},
    {"type_kind": "TupleType", "types": []}, {"type_kind": "UnknownType"},
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to everything inside a payload."""
    yield path
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, below in entries:
        yield from places(below, (*path, key))


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def copied(value: Any) -> Any:
    return msgpack.unpackb(msgpack.packb(value), strict_map_key=False)


def damage_tree(tree: Any, donor: Any, rng: random.Random) -> None:
    """Replace, remove, or transplant one part of a payload."""
    path = rng.choice([path for path in places(tree) if path])
    owner, key = at(tree, path[:-1]), path[-1]
    action = rng.randrange(4)
    if action == 0:
        owner.pop(key)
    elif action == 1:
        owner[key] = copied(at(donor, rng.choice(list(places(donor)))))
    else:
        owner[key] = copied(rng.choice(JUNK))


def damage_bytes(data: bytes, rng: random.Random) -> bytes:
    """Change, cut, remove or insert bytes."""
    place = rng.randrange(len(data))
    return rng.choice(
        [
            data[:place],
            data[:place] + bytes([rng.randrange(256)]) + data[place + 1 :],
            data[:place] + data[place + rng.randint(1, 5) :],
            data[:place] + bytes([rng.randrange(256)]) + data[place:],
        ]
    )


def is_read_well_formed_or_refused(data: bytes) -> bool:
    """Whether the payload was read. Fails for anything but a documented refusal or a usable node."""
    try:
        node = ir.deserialize(data)
    except REFUSALS as error:
        assert not isinstance(error, RecursionError)
        return False
    with contextlib.suppress(InternalError):  # the printer refuses what has no spelling
        ir.python_print(node)
    assert ir.structural_equal(node, ir.deserialize(ir.serialize(node)), True)
    assert ir.structural_hash(node, True) == ir.structural_hash(ir.deserialize(ir.serialize(node)), True)
    return True


def test_damaged_bytes_are_read_or_refused_with_a_documented_class():
    rng = random.Random(17)
    originals = [ir.serialize(node) for node in instances.nodes()]
    read = sum(is_read_well_formed_or_refused(damage_bytes(rng.choice(originals), rng)) for _ in range(1500))
    assert read > 0


def test_damaged_structures_are_read_or_refused_with_a_documented_class():
    rng = random.Random(18)
    originals = [msgpack.unpackb(ir.serialize(node)) for node in instances.nodes()]
    read = 0
    for _ in range(1500):
        tree = copied(rng.choice(originals))
        damage_tree(tree, rng.choice(originals), rng)
        read += is_read_well_formed_or_refused(msgpack.packb(tree))
    assert read > 50


def changed(node: ir.IRNode, **fields: Any) -> bytes:
    raw = msgpack.unpackb(ir.serialize(node))
    raw["fields"].update(fields)
    return msgpack.packb(raw)


def test_fields_that_contradict_each_other_are_refused_as_by_the_constructor():
    where = instances.WHERE
    x = ir.Var("x", ir.ScalarType(ir.INT64), where)
    pair = ir.MakeTuple([x, x], where)
    unknown = {"type_kind": "UnknownType"}
    split = ir.SplitAivScopeStmt(ir.NONE, 2, "", ir.SeqStmts([], where), where)
    cases = [
        (ValueError, "out of bounds", changed(ir.TupleGetItemExpr(pair, 1, where), index=2)),
        (RuntimeError, "must be ScalarType", changed(ir.ConstInt(1, ir.INT8, where), type=unknown)),
        (RuntimeError, "must be ScalarType", changed(ir.Neg(x, ir.INT8, where), type=unknown)),
        (InternalError, "must be 2", changed(split, count=4)),
        (ValueError, "slots must be >= 1", changed(ir.MemRef("m", where, 2), slot_count=0)),
        (
            ValueError,
            "sync_start",
            changed(ir.Submit(ir.GlobalVar("f"), [], [], ir.UnknownType(), where), sync_start=True),
        ),
    ]
    for error, message, data in cases:
        with pytest.raises(error, match=message):
            ir.deserialize(data)


def test_types_nested_beyond_the_stack_are_refused():
    nested: ir.Type = ir.ScalarType(ir.INT8)
    for _ in range(5000):
        nested = ir.TupleType([nested])
    data = ir.serialize(ir.Var("x", nested, instances.WHERE))
    with pytest.raises(RuntimeError, match="too deeply") as caught:
        ir.deserialize(data)
    assert type(caught.value) is RuntimeError
