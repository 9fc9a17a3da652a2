"""Finding and describing the first structural difference.

`structural_equal` answers fast; only when its answer is no does this module walk both sides again, in field order,
with the path to the place where they part.
"""

from __future__ import annotations

import enum
from typing import Any

from pypto.core.dtype import DataType
from pypto.ir.expr import ConstInt, Expr, IterArg, MemRef, Var, WindowBuffer
from pypto.ir.node import IRNode
from pypto.ir.program import Program
from pypto.ir.stmt import SeqStmts
from pypto.ir.structural.equal import Comparison, check_comparable, structural_equal
from pypto.ir.structural.values import is_reference, same_int_dtype, same_value
from pypto.ir.types import ShapedType, Type


class Difference(Exception):
    """The first place where two sides part: path, reason, and the two nodes where showing them helps."""

    def __init__(self, path: str, reason: str, sides: tuple[Any, Any] | None = None) -> None:
        super().__init__(reason)
        self.path, self.reason, self.sides = path, reason, sides


def assert_structural_equal(lhs: IRNode | Type, rhs: IRNode | Type, enable_auto_mapping: bool = False) -> None:
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
    lines = [f"Structural equality assertion failed{f' at: {difference.path}' if difference.path else ''}", ""]
    if difference.sides is not None:
        for title, node in zip(("Left-hand side:", "Right-hand side:"), difference.sides, strict=True):
            lines += [title, *(f"  {line}" for line in _printed(node).splitlines()), ""]
    return "\n".join([*lines, f"Reason: {difference.reason}"])


def _printed(node: Any) -> str:
    if node is None:
        return "(null)"
    return node.as_python() if isinstance(node, IRNode) else str(node)


_Pair = tuple[Any, Any, bool, bool, str, str]


class _Walk(Comparison):
    """The comparison again, with paths. Each pending pair carries its context, path and field kind."""

    def run(self, lhs: Any, rhs: Any) -> None:
        strong = self.requested_auto or isinstance(lhs, Type)
        pending: list[_Pair] = [(lhs, rhs, self.requested_auto, strong, "", "")]
        while pending:
            left, right, auto, strong, path, role = pending.pop()
            pending += reversed(self._compare(left, right, auto, strong, path, role))

    def _compare(self, left: Any, right: Any, auto: bool, strong: bool, path: str, role: str) -> list[_Pair]:
        if left is right:
            if not self._shared_ok(left, strong):
                raise Difference(path, self._mapping_reason(left, right, auto), (left, right))
            return []
        if left is None or right is None:
            raise Difference(path, "One node is null, the other is not", (left, right))
        if isinstance(left, Type):
            return self._compare_types(left, right, auto, path, role)
        if left.__class__ is not right.__class__:
            reason = f"Node type mismatch ({type(left).__name__} != {type(right).__name__})"
            raise Difference(path, reason, (left, right))
        if isinstance(left, Var):
            return self._compare_vars(left, right, auto, strong, path, role)
        return self._compare_fields(left, right, auto, strong, path)

    def _compare_vars(
        self, left: Any, right: Any, auto: bool, strong: bool, path: str, role: str
    ) -> list[_Pair]:
        known = left in self.left_to_right or right in self.right_to_left
        pushed: list[Any] = []
        if not self._var_ok(left, right, auto, strong, None, pushed):
            raise Difference(path, self._var_reason(left, right, auto), (left, right))
        if role == "window_buffer":
            return []
        pairs: list[_Pair] = []
        if not known:
            pairs.append((left.type, right.type, True, True, path, "loop_var" if role == "loop_var" else "type"))
        if isinstance(left, IterArg):
            pairs.append((left.initValue, right.initValue, auto, strong, _dot(path, "initValue"), ""))
        elif isinstance(left, MemRef):
            pairs += [
                (left.base_, right.base_, auto, strong, _dot(path, "base_"), ""),
                (left.byte_offset_, right.byte_offset_, auto, strong, _dot(path, "byte_offset_"), ""),
            ]
            if left.slot_index_ is not None:
                pairs.append((left.slot_index_, right.slot_index_, auto, strong, _dot(path, "slot_index_"), ""))
        elif isinstance(left, WindowBuffer):
            pairs += [
                (left.base, right.base, auto, strong, _dot(path, "base"), ""),
                (left.size, right.size, auto, strong, _dot(path, "size"), ""),
            ]
        return pairs

    def _var_reason(self, left: Any, right: Any, auto: bool) -> str:
        if isinstance(left, MemRef):
            for field, name in (("size_", "size"), ("is_pinned_", "is_pinned"), ("slot_count_", "slot_count")):
                mine, theirs = getattr(left, field), getattr(right, field)
                if mine != theirs:
                    return f"MemRef {name} mismatch ({_shown(mine)} != {_shown(theirs)})"
            if (left.slot_index_ is None) != (right.slot_index_ is None):
                return "MemRef slot_index presence mismatch"
        return self._mapping_reason(left, right, auto)

    def _mapping_reason(self, left: Any, right: Any, auto: bool) -> str:
        partner, source = self.left_to_right.get(left), self.right_to_left.get(right)
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

    def _compare_fields(self, left: Any, right: Any, auto: bool, strong: bool, path: str) -> list[_Pair]:
        if isinstance(left, Program):
            return self._compare_programs(left, right, auto, strong, path)
        pairs: list[_Pair] = []
        for field in left.FIELDS:
            if field.role == "ignored":
                continue
            mine, theirs = getattr(left, field.stored), getattr(right, field.stored)
            here = path if isinstance(left, SeqStmts) else _dot(path, field.name)
            inner = True if field.role == "def" else auto
            if field.kind in ("value", "values", "op"):
                pairs.append((_Leaf(left, field.name, mine), _Leaf(right, field.name, theirs), inner, strong, here, ""))
            elif field.kind == "attrs":
                pairs += self._compare_attrs(mine, theirs, inner, strong, here)
            elif field.kind in ("nodes", "iter_args", "types"):
                pairs.append((_Size(mine, field.kind), _Size(theirs, field.kind), inner, strong, here, ""))
                pairs += [
                    (a, b, inner, strong or field.kind == "types", here if field.kind == "types" else f"{here}[{i}]", "")
                    for i, (a, b) in enumerate(zip(mine, theirs, strict=False))
                ]
            elif field.kind == "opt_node" and (mine is None) != (theirs is None):
                raise_now = Difference(here, "Optional field presence mismatch", (mine, theirs))
                pairs.append((_Raise(raise_now), _Raise(raise_now), inner, strong, here, ""))
            else:
                kind = field.name if field.name == "loop_var" else ""
                pairs.append((mine, theirs, inner, strong or field.kind == "type", here, kind))
        return _resolve_leaves(pairs)

    def _compare_programs(self, left: Any, right: Any, auto: bool, strong: bool, path: str) -> list[_Pair]:
        names, others = list(left.functions_), list(right.functions_)
        if len(names) != len(others):
            raise Difference(path, f"Map size mismatch ({len(names)} items != {len(others)} items)")
        for name, other in zip(names, others, strict=True):
            if name != other:
                raise Difference(path, f"Map key mismatch ('{name}' != '{other}')")
        return [
            (left.functions_[name], right.functions_[name], auto, strong, f"{path}['{name}']", "") for name in names
        ]

    def _compare_attrs(self, left: Any, right: Any, auto: bool, strong: bool, path: str) -> list[_Pair]:
        pairs: list[_Pair] = []
        reason = _attrs_reason(left, right)
        if reason is not None:
            pairs.append((_Raise(Difference(path, reason)), None, auto, strong, path, ""))
            return pairs
        for key, value in left.items():
            if is_reference(value):
                mine = value if type(value) is tuple else (value,)
                theirs = right[key] if type(right[key]) is tuple else (right[key],)
                pairs += [(a, b, auto, strong, path, "") for a, b in zip(mine, theirs, strict=True)]
        return pairs

    def _compare_types(self, left: Type, right: Any, auto: bool, path: str, role: str) -> list[_Pair]:
        if left.__class__ is not right.__class__:
            raise Difference(path, f"Type name mismatch ({type(left).__name__} != {type(right).__name__})")
        name = type(left).__name__
        pairs: list[_Pair] = []
        for field in left.FIELDS:
            if field.role == "ignored":
                continue
            mine, theirs = getattr(left, field.stored), getattr(right, field.stored)
            if field.kind == "value":
                if role == "loop_var" and field.name == "dtype" and same_int_dtype(mine, theirs):
                    continue
                if not same_value(mine, theirs):
                    raise Difference(path, f"{name} {field.name} mismatch ({_shown(mine)} != {_shown(theirs)})")
            elif field.kind == "view":
                pairs += self._compare_views(name, field.name, mine, theirs, auto, path)
            elif field.kind == "types":
                if len(mine) != len(theirs):
                    raise Difference(path, f"TupleType size mismatch ({len(mine)} != {len(theirs)})")
                pairs += [(a, b, auto, True, path, "type") for a, b in zip(mine, theirs, strict=True)]
            elif field.kind == "nodes":
                if len(mine) != len(theirs):
                    raise Difference(path, f"{name} shape rank mismatch ({len(mine)} != {len(theirs)})")
                pairs += [(a, b, auto, True, path, "") for a, b in zip(mine, theirs, strict=True)]
            else:
                if (mine is None) != (theirs is None):
                    raise Difference(path, f"{name} {field.name} presence mismatch")
                pairs.append((mine, theirs, auto, True, path, field.name))
        return pairs

    def _compare_views(
        self, owner: str, name: str, left: Any, right: Any, auto: bool, path: str
    ) -> list[_Pair]:
        if (left is None) != (right is None):
            raise Difference(path, f"{owner} {name} presence mismatch")
        if left is None:
            return []
        view = type(left).__name__
        pairs: list[_Pair] = []
        for field in left.FIELDS:
            mine, theirs = getattr(left, field.stored), getattr(right, field.stored)
            if field.kind == "nodes":
                if len(mine) != len(theirs):
                    raise Difference(path, f"{view} {field.name} rank mismatch ({len(mine)} != {len(theirs)})")
                pairs += [(a, b, auto, True, path, "") for a, b in zip(mine, theirs, strict=True)]
            elif field.kind == "opt_node":
                if (mine is None) != (theirs is None):
                    raise Difference(path, f"{view} {field.name} presence mismatch")
                if mine is not None:
                    pairs.append((mine, theirs, auto, True, path, ""))
            elif not same_value(mine, theirs):
                raise Difference(path, f"{view} {field.name} mismatch ({_shown(mine)} != {_shown(theirs)})")
        return pairs
