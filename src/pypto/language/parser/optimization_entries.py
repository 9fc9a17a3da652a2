"""`optimizations=[...]` on `pl.at` and `pl.spmd`."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from pypto import ir
from pypto.language.parser.diagnostics import ParserSyntaxError
from pypto.language.parser.diagnostics.notices import warn_at
from pypto.language.parser.function_parser import FunctionParser
from pypto.language.parser.slots import dotted_name, enum_literal

_SPLIT = frozenset({"pl.split", "pl.optimizations.split"})
_SLOT = frozenset({"pl.cross_core_slot", "pl.optimizations.cross_core_slot"})


@dataclass(frozen=True, slots=True)
class Optimizations:
    """What the list says. `split` is None when no `pl.split(...)` is written."""

    split: ir.SplitMode | None = None
    slot_num: int | None = None

    @property
    def is_empty(self) -> bool:
        return self.split is None and self.slot_num is None


def parse_optimizations(p: FunctionParser, node: ast.expr, owner: str) -> Optimizations:
    """Read the entries; each kind at most once."""
    if not isinstance(node, ast.List):
        raise ParserSyntaxError(
            f"{owner}(optimizations=...) must be a list literal",
            span=p.span(node),
            hint="Write optimizations=[pl.split(pl.SplitMode.UP_DOWN)]",
        )
    split: ir.SplitMode | None = None
    slot_num: int | None = None
    for entry in node.elts:
        name = dotted_name(entry.func) if isinstance(entry, ast.Call) else None
        if isinstance(entry, ast.Call) and name in _SPLIT:
            if split is not None:
                raise ParserSyntaxError(
                    "Duplicate 'pl.split(...)' in optimizations", span=p.span(entry), hint="Keep one of them"
                )
            split, inner_slots = _split_entry(p, entry)
            if inner_slots is not None:
                slot_num = _only_slot(p, slot_num, inner_slots, entry)
        elif isinstance(entry, ast.Call) and name in _SLOT:
            if slot_num is not None and not _has_split_slots(node):
                raise ParserSyntaxError(
                    "Duplicate 'pl.cross_core_slot(...)' in optimizations",
                    span=p.span(entry),
                    hint="Keep one of them",
                )
            slot_num = _only_slot(p, slot_num, _slot_entry(p, entry), entry)
        else:
            raise ParserSyntaxError(
                f"Unsupported entry in {owner}(optimizations=[...]): {ast.unparse(entry)}",
                span=p.span(entry),
                hint="Use pl.split(pl.SplitMode.X) and pl.cross_core_slot(slot_num=N)",
            )
    return Optimizations(split, slot_num)


def _has_split_slots(node: ast.List) -> bool:
    return any(
        isinstance(entry, ast.Call)
        and dotted_name(entry.func) in _SPLIT
        and any(keyword.arg == "slot_num" for keyword in entry.keywords)
        for entry in node.elts
    )


def _only_slot(p: FunctionParser, present: int | None, given: int, entry: ast.expr) -> int:
    if present is not None:
        raise ParserSyntaxError(
            "optimizations sets the cross-core slot count twice",
            span=p.span(entry),
            hint="Give it in pl.cross_core_slot(slot_num=n) only",
        )
    return given


def _split_entry(p: FunctionParser, node: ast.Call) -> tuple[ir.SplitMode, int | None]:
    slot_num: int | None = None
    for keyword in node.keywords:
        if keyword.arg != "slot_num":
            raise ParserSyntaxError(
                f"Unknown keyword argument '{keyword.arg}' in pl.split()",
                span=p.span(keyword.value),
                hint="pl.split takes a mode only",
            )
        slot_num = _slot_literal(p, keyword.value, "pl.split()")
    if len(node.args) != 1:
        raise ParserSyntaxError(
            "pl.split() takes exactly 1 positional argument",
            span=p.span(node),
            hint="Write pl.split(pl.SplitMode.UP_DOWN)",
        )
    if slot_num is not None:
        warn_at(
            p.span(node),
            "pl.split(..., slot_num=N) is deprecated; add pl.cross_core_slot(slot_num=N) instead",
            DeprecationWarning,
        )
    return enum_literal(p, node.args[0], ir.SplitMode), slot_num


def _slot_entry(p: FunctionParser, node: ast.Call) -> int:
    if node.args:
        raise ParserSyntaxError(
            "pl.cross_core_slot() takes no positional arguments",
            span=p.span(node),
            hint="Write pl.cross_core_slot(slot_num=2)",
        )
    for keyword in node.keywords:
        if keyword.arg != "slot_num":
            raise ParserSyntaxError(
                f"Unknown keyword argument '{keyword.arg}' in pl.cross_core_slot()",
                span=p.span(keyword.value),
                hint="Write pl.cross_core_slot(slot_num=2)",
            )
    if not node.keywords:
        raise ParserSyntaxError(
            "pl.cross_core_slot() requires the slot_num= keyword",
            span=p.span(node),
            hint="Write pl.cross_core_slot(slot_num=2)",
        )
    return _slot_literal(p, node.keywords[0].value, "pl.cross_core_slot()")


def _slot_literal(p: FunctionParser, node: ast.expr, owner: str) -> int:
    value = p.closure.fold(node, lambda name: True)
    if type(value) is not int:
        raise ParserSyntaxError(
            f"{owner} slot_num must be an integer literal",
            span=p.span(node),
            hint="Write the number out, as in slot_num=2",
        )
    if value <= 0:
        raise ParserSyntaxError(
            f"{owner} slot_num must be positive, got {value}",
            span=p.span(node),
            hint="It is the number of slots",
        )
    return value
