"""How two kernels that look alike differ, in the words of the one who wrote them.

The first structural difference has a path, such as `body[5].value.args[1].value`. This module follows the
path on both sides, shows what stands there with its line, and says what to write to make the two equal.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import Any

from pypto import ir
from pypto.core.errors import InternalError
from pypto.ir.node import Structure
from pypto.ir.structural.difference import Difference, first_difference

__all__ = ["describe_difference", "shown"]

_VERSION = re.compile(r"__(?:\w+?_)?(?:ssa|iter|rv|phi|tile|tmp|out|store|idx)(?:_v\d+)?\b")
_TOKEN = re.compile(r"(\w+)|\[(\d+)\]")


def describe_difference(mine: ir.Function, theirs: ir.Function) -> str:
    """Return place, both values and advice for the first difference of two functions that are not equal."""
    found = first_difference(mine, theirs, False)
    field = found.path.partition("[")[0].partition(".")[0]
    if field == "param_directions":
        return _directions(mine, theirs)
    if field == "params" and len(mine.params_) == len(theirs.params_):
        return _parameter(mine, theirs, _index(found.path))
    if field == "params":
        counts = f"{len(mine.params_)} against {len(theirs.params_)}"
        return f"{mine.name}.params: the number of parameters differs, {counts}"
    if field == "return_types" and len(mine.return_types_) == len(theirs.return_types_):
        return _result(mine, theirs)
    if field == "attrs":
        return _attributes(mine, theirs)
    if found.path == "body" or found.path.startswith(("body.", "body[")):
        return _statement(mine, theirs, found)
    return f"{mine.name}.{found.path}: {found.reason}"


def shown(value: Any, limit: int = 80) -> str:
    """A text of one line, cut at `limit` characters; names appear as they were written."""
    if isinstance(value, ir.AssignStmt):
        value = value.value
    try:
        text = value.name if isinstance(value, enum.Enum) else str(value)
    except (InternalError, ValueError):  # hand-built, without a spelling in the language
        text = f"a {type(value).__name__}"
    text = _VERSION.sub("", " ".join(text.split()))
    return text if len(text) <= limit else f"{text[:limit]}..."


# ---- the signature


def _directions(mine: ir.Function, theirs: ir.Function) -> str:
    pairs = zip(mine.param_directions_, theirs.param_directions_, strict=True)
    index = next(i for i, (a, b) in enumerate(pairs) if a is not b)
    one, other = mine.param_directions_[index], theirs.param_directions_[index]
    return (
        f"{mine.name}.param_directions[{index}]: '{shown(mine.params_[index])}' is {one.name} against "
        f"{other.name}; declare it in the same direction"
    )


def _parameter(mine: ir.Function, theirs: ir.Function, index: int) -> str:
    one, other = mine.params_[index], theirs.params_[index]
    return (
        f"{mine.name}.params[{index}]: '{shown(one)}' is {shown(one.type)} against {shown(other.type)}; "
        f"{_advice_on_types(one.type, other.type)}"
    )


def _result(mine: ir.Function, theirs: ir.Function) -> str:
    pairs = [*zip(mine.return_types_, theirs.return_types_, strict=True)]
    index = next((i for i, (a, b) in enumerate(pairs) if shown(a) != shown(b)), 0)
    one, other = pairs[index]
    return (
        f"{mine.name}.return_types[{index}]: {shown(one)} against {shown(other)}; "
        f"{_advice_on_types(one, other)}"
    )


def _advice_on_types(one: ir.Type, other: ir.Type) -> str:
    if type(one) is ir.TensorType and type(other) is ir.TensorType:
        if one.dtype is not other.dtype or len(one.shape_) != len(other.shape_):
            return "element type and rank must agree"
        if _would_agree_if_dynamic(one, other):
            return "a pl.dynamic extent in both would make them equal"
        return "extents must have the same form, and repeat a symbol at the same places"
    return "the types must agree"


def _would_agree_if_dynamic(one: ir.TensorType, other: ir.TensorType) -> bool:
    """Whether extents differ only where one of the two is a constant, and no symbol is repeated."""
    for shape in (one.shape_, other.shape_):
        symbols = [extent for extent in shape if isinstance(extent, ir.Var)]
        if len(symbols) > len(set(symbols)):
            return False
    constants = 0
    for left, right in zip(one.shape_, other.shape_, strict=True):
        if isinstance(left, ir.ConstInt) and isinstance(right, ir.ConstInt):
            constants += left.value != right.value
        elif isinstance(left, ir.ConstInt) or isinstance(right, ir.ConstInt):
            constants += 1
        elif type(left) is not type(right):
            return False
    return constants > 0


def _attributes(mine: ir.Function, theirs: ir.Function) -> str:
    absent = object()
    for key in dict.fromkeys((*mine.attrs_, *theirs.attrs_)):
        one, other = (each.attrs_.get(key, absent) for each in (mine, theirs))
        texts = ["absent" if value is absent else shown(value) for value in (one, other)]
        if texts[0] != texts[1] or type(one) is not type(other):
            return (
                f"{mine.name}.attrs['{key}']: {texts[0]} against {texts[1]}; "
                "kernels share a definition only with the same attributes"
            )
    return f"{mine.name}.attrs: their values differ"


# ---- the body


@dataclass(frozen=True, slots=True)
class _Place:
    """What a path leads to: the node or value, the owner of it, and the statement around it."""

    value: Any
    owner: Any
    stmt: ir.Stmt | None


def _statement(mine: ir.Function, theirs: ir.Function, found: Difference) -> str:
    one, other = _follow(mine, found.path), _follow(theirs, found.path)
    if isinstance(one.value, ir.SeqStmts) and isinstance(other.value, ir.SeqStmts):
        return _lengths(mine, found.path, one.value, other.value)
    texts = shown(one.value), shown(other.value)
    if texts[0] == texts[1] or isinstance(one.value, (tuple, dict, ir.Op)):
        texts = shown(one.stmt), shown(other.stmt)  # the statement tells more
    where = f"{mine.name}.{found.path}{_lines(one.stmt, other.stmt)}"
    if texts[0] == texts[1]:
        return f"{where}: {found.reason}"
    return f"{where}: {texts[0]} against {texts[1]}{_advice_on_values(one, other)}"


def _lengths(mine: ir.Function, path: str, one: ir.SeqStmts, other: ir.SeqStmts) -> str:
    """Sequences of different length: name the first statement that the shorter one has not at its place."""
    counts = f"{len(one.stmts_)} statements against {len(other.stmts_)}"
    longer, shorter = sorted((one, other), key=lambda each: len(each.stmts_), reverse=True)
    kinds = [_kind(stmt) for stmt in shorter.stmts_]
    index = next(
        (i for i, stmt in enumerate(longer.stmts_) if i >= len(kinds) or _kind(stmt) != kinds[i]),
        len(kinds),
    )
    extra = longer.stmts_[index]
    side = "only here" if longer is one else "only there"
    return f"{mine.name}.{path}: {counts}; {side}: {shown(extra)}{_lines(extra)}"


def _kind(stmt: ir.Stmt) -> tuple[type, str]:
    value = stmt.value if isinstance(stmt, ir.AssignStmt) else getattr(stmt, "expr", None)
    return type(stmt), value.op.name if isinstance(value, (ir.Call, ir.Submit)) else type(value).__name__


def _advice_on_values(one: _Place, other: _Place) -> str:
    constants = (ir.ConstInt, ir.ConstFloat)
    for left, right in ((one.owner, other.owner), (one.value, other.value)):
        if isinstance(left, constants) and isinstance(right, constants):
            return "; pass the number as a scalar argument to share one kernel"
    return ""


def _lines(*stmts: ir.Stmt | None) -> str:
    lines = [stmt.span.begin_line for stmt in stmts if stmt is not None and stmt.span.is_valid()]
    if not lines or len(lines) < len(stmts):
        return ""
    return f" (line {lines[0]})" if len(lines) == 1 else f" (line {lines[0]} against line {lines[1]})"


def _follow(function: ir.Function, path: str) -> _Place:
    """Walk along `path`; stop where it leads into what has no fields."""
    node: Any = function
    owner: Any = None
    stmt: ir.Stmt | None = None
    for name, index in _TOKEN.findall(path):
        inside = _member(node, name) if name else _item(node, int(index))
        if inside is None:
            break
        node, owner = inside, node
        if isinstance(node, ir.Stmt) and not isinstance(node, ir.SeqStmts):
            stmt = node
    return _Place(node, owner, stmt)


def _member(node: Any, name: str) -> Any:
    if not isinstance(node, Structure):
        return None
    stored = next((field.stored for field in node.FIELDS if field.name == name), name)
    return getattr(node, stored, None)


def _item(node: Any, index: int) -> Any:
    items = node.stmts_ if isinstance(node, ir.SeqStmts) else node
    return items[index] if isinstance(items, tuple) and index < len(items) else None


def _index(path: str) -> int:
    found = re.search(r"\[(\d+)\]", path)
    return int(found.group(1)) if found else 0
