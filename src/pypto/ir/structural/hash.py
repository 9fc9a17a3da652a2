"""Structural hash: equal structures hash alike, in both modes.

Independent of object addresses and of Python's string salt, so a variable-free node hashes the same in every
process. With auto-mapping off, a free variable contributes its creation number; a variable under a definition
contributes the order in which it was met.
"""

from __future__ import annotations

import enum
import zlib
from typing import Any

from pypto.core.dtype import DataType
from pypto.ir.expr import ConstInt, Var
from pypto.ir.node import IRNode, Structure
from pypto.ir.program import Program
from pypto.ir.structural.values import float_bits, is_reference, lenient_dtype
from pypto.ir.types import DistributedTensorType, ScalarType, Type

_MASK = 2**64 - 1
_ABSENT = 0x9E3779B97F4A7C15
_text_hashes: dict[str, int] = {}


def structural_hash(node: IRNode | Type, enable_auto_mapping: bool = False) -> int:
    """A number below 2**64. Raises `TypeError` for anything but a node or a type."""
    if not isinstance(node, (IRNode, Type)):
        raise TypeError(f"Can only hash IR nodes and types, got {type(node).__name__}")
    return _Hashing(enable_auto_mapping).hash(node) & _MASK


def text_hash(text: str) -> int:
    """A stable hash of a string, the same in every process."""
    known = _text_hashes.get(text)
    if known is None:
        data = text.encode()
        known = _text_hashes[text] = zlib.crc32(data) | zlib.crc32(data[::-1]) << 32
    return known


def int_parts(value: int) -> tuple[int, int]:
    """A 64-bit integer as numbers that Python hashes apart: it takes them modulo 2**61 - 1, and -1 as -2."""
    return value & _MASK, value >> 60 & 15


def value_hash(value: Any) -> int:
    """A stable hash of a plain field value; kinds that compare different hash different."""
    if value is None:
        return _ABSENT
    if isinstance(value, str):
        return text_hash(value)
    if isinstance(value, bool):
        return 0x5BD1 + value
    if isinstance(value, enum.Enum):
        return hash((text_hash(type(value).__name__), value.value))
    if isinstance(value, int):
        return hash((0x17, *int_parts(value)))
    if isinstance(value, float):
        return hash((0x2B, float_bits(value)))
    if isinstance(value, DataType):
        return hash((0x3D, value.code()))
    if type(value) is tuple:
        return hash((0x49, *map(value_hash, value)))
    raise TypeError(f"Cannot hash a field of type {type(value).__name__}")


class _Hashing:
    """The state of one hash computation."""

    def __init__(self, auto: bool) -> None:
        self.auto = auto
        self.memo: dict[int, int] = {}
        self.identities: dict[int, int] = {}

    def hash(self, root: Any) -> int:
        memo = self.memo
        pending: list[tuple[Any, bool, bool]] = [(root, self.auto, False)]
        while pending:
            node, auto, ready = pending.pop()
            if id(node) in memo:
                continue
            plan = _PLANS.get(node.__class__)
            if plan is None:
                plan = _PLANS[node.__class__] = _make_plan(node.__class__)
            children, combine = plan
            if not ready:
                if isinstance(node, Var):
                    self.identity(node, auto)
                elif isinstance(node, DistributedTensorType) and node.window_buffer is not None:
                    self.identity(node.window_buffer, auto)
                below = children(node, auto)
                if below:
                    pending.append((node, auto, True))
                    pending += below[::-1]
                    continue
            memo[id(node)] = combine(node, memo, self.identities)
        return memo[id(root)]

    def identity(self, var: Var, auto: bool) -> None:
        if id(var) not in self.identities:
            # Below -1, because Python hashes -1 and -2 alike.
            self.identities[id(var)] = len(self.identities) if auto else ~var.unique_id


def _attrs_hash(attrs: dict[str, Any]) -> int:
    """Order of keys does not matter; references contribute nothing, equality compares them."""
    total = 0
    for key, value in attrs.items():
        if not is_reference(value):
            total += hash((text_hash(key), value_hash(value)))
    return total & _MASK


def _make_plan(cls: type[Structure]) -> tuple[Any, Any]:
    """Generate from the field list: the (child, auto, False) triples to hash first, and the combination."""
    tag = text_hash(cls.KIND.__name__)
    if cls is ConstInt:
        return (lambda node, auto: None), (
            lambda node, memo, ids: hash((tag, lenient_dtype(node.type.dtype).code(), *int_parts(node.value)))
        )
    if cls is Program:
        return _program_children, _program_hash
    below: list[str] = []
    parts: list[str] = []
    for field in cls.FIELDS:
        if field.role == "ignored":
            continue
        read = f"n.{field.stored}"
        auto = "True" if field.role == "def" else "auto"
        if field.kind in ("value", "values"):
            parts.append(f"value_hash({read})")
        elif field.kind == "op":
            parts.append(f"text_hash({read}.name)")
        elif field.kind == "attrs":
            parts.append(f"(attrs_hash({read}) if {read} else 0)")
        elif field.name == "window_buffer":
            parts.append(f"(absent if {read} is None else ids[id({read})])")
        elif field.kind == "type" and issubclass(cls, Var):
            below.append(f"pre.append(({read}, {auto}, False))")
            parts.append("var_type_hash(n, memo)")
        elif field.kind in ("node", "type"):
            below.append(f"pre.append(({read}, {auto}, False))")
            parts.append(f"memo[id({read})]")
        elif field.kind in ("opt_node", "view"):
            below.append(f"if {read} is not None: pre.append(({read}, {auto}, False))")
            parts.append(f"(absent if {read} is None else memo[id({read})])")
        elif field.kind in ("nodes", "iter_args", "types"):
            below.append(f"pre += [(x, {auto}, False) for x in {read}]")
            parts += [f"len({read})", f"*[memo[id(x)] for x in {read}]"]
    if issubclass(cls, Var):
        parts.append("ids[id(n)]")
    namespace = {
        "value_hash": value_hash, "text_hash": text_hash, "attrs_hash": _attrs_hash, "absent": _ABSENT,
        "var_type_hash": _var_type_hash,
    }  # fmt: skip
    body = ["pre = []", *below, "return pre"] if below else ["return None"]
    head = ["def children(n, auto):", *body]
    exec("\n    ".join(head), namespace)
    exec(f"def combine(n, memo, ids):\n    return hash(({', '.join([str(tag), *parts])},))", namespace)
    return namespace["children"], namespace["combine"]


def _var_type_hash(var: Var, memo: dict[int, int]) -> int:
    """Loop variables of INT64 and INDEX compare equal, and any variable may be one, so both hash alike."""
    if isinstance(var.type, ScalarType):
        return hash((0x61, lenient_dtype(var.type.dtype).code()))
    return memo[id(var.type)]


def _program_children(program: Program, auto: bool) -> list[Any]:
    return [(function, auto, False) for function in program.functions_.values()]


def _program_hash(program: Program, memo: dict[int, int], ids: dict[int, int]) -> int:
    return hash(tuple([(text_hash(name), memo[id(f)]) for name, f in program.functions_.items()]))


_PLANS: dict[type[Any], tuple[Any, Any]] = {}
