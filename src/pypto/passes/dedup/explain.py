"""What the pass did and why, for people and for tables: one record per unit.

A kernel author wants to know what to change to get a merge. So a unit that is unique is compared with
the one most like it, of the same operators in the same order or of the same name but for its number,
and the record tells the first difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pypto import ir
from pypto.ir.structural.difference import first_difference
from pypto.ir.walk import exprs_of, walk, walk_stmts
from pypto.passes.dedup.reasons import Kept, Reason
from pypto.passes.dedup.reference_index import ReferenceIndex, UnknownPayload
from pypto.passes.dedup.sharing import Sharing
from pypto.passes.dedup.units import Unit

__all__ = ["DedupRecord", "describe", "describe_incomplete"]

_NUMBER = re.compile(r"_\d+(?=_|$)")


@dataclass(frozen=True, slots=True)
class DedupRecord:
    """One unit and its fate.

    `outcome` is "merged" or "kept". A merged unit names the unit that stands for it in `into`, and
    `sites` is the number of its dispatches, which now go there. A kept one has a `reason` code; the
    canonical of a class has "canonical", and counts its own dispatches in `sites`. `detail` is a
    sentence.
    """

    name: str
    members: tuple[str, ...]
    outcome: str
    into: str | None
    sites: int
    reason: str | None
    detail: str


def describe(
    candidates: Iterable[Unit], kept: Iterable[tuple[Unit, Kept]], sharing: Sharing, index: ReferenceIndex
) -> list[DedupRecord]:
    """Return the records of all units, in name order. `kept` are those that were no candidates."""
    units = list(candidates)
    similar = _SimilarUnits(units)
    records = [_kept_record(unit, why, index) for unit, why in kept]
    for unit in units:
        canonical = sharing.canonical.get(unit.name)
        if canonical is not None:
            records.append(_merged_record(unit, canonical, index))
            continue
        why = sharing.kept[unit.name]
        if why.reason is Reason.UNIQUE:
            why = replace(why, detail=similar.difference_of(unit) or why.detail)
        records.append(_kept_record(unit, why, index))
    return sorted(records, key=lambda record: record.name)


def describe_incomplete(program: ir.Program, payload: UnknownPayload) -> list[DedupRecord]:
    """Return the records of a program that cannot be indexed: everything is kept."""
    detail = f"not every reference of the program can be known: {payload}"
    code = Reason.INDEX_INCOMPLETE.value
    return [DedupRecord(name, (), "kept", None, 0, code, detail) for name in program.functions_]


def _merged_record(unit: Unit, canonical: Unit, index: ReferenceIndex) -> DedupRecord:
    sites = len(index.sites.get(unit.name, ()))
    detail = f"equal to '{canonical.name}'; {sites} dispatch{'es' if sites != 1 else ''} redirected"
    return DedupRecord(unit.name, unit.members, "merged", canonical.name, sites, None, detail)


def _kept_record(unit: Unit, why: Kept, index: ReferenceIndex) -> DedupRecord:
    sites = len(index.sites.get(unit.name, ()))
    return DedupRecord(unit.name, unit.members, "kept", None, sites, why.reason.value, why.detail)


class _SimilarUnits:
    """Finds, for a unit that is unique, the one that it was probably meant to equal."""

    __slots__ = ("_by_name", "_by_operators", "_operators")

    def __init__(self, units: Sequence[Unit]) -> None:
        self._operators = {unit.name: _operator_sequence(unit) for unit in units}
        self._by_operators = _grouped(units, self._operators)
        self._by_name = _grouped(units, {unit.name: _name_stem(unit) for unit in units})

    def difference_of(self, unit: Unit) -> str | None:
        """Return the first difference from the most similar unit in words, None if no unit is similar."""
        for group in (self._by_operators[self._operators[unit.name]], self._by_name[_name_stem(unit)]):
            for other in group[:2]:
                if other is not unit and len(other.functions) == len(unit.functions):
                    return _difference(unit, other)
        return None


def _grouped(units: Sequence[Unit], keys: Mapping[str, Any]) -> dict[Any, list[Unit]]:
    groups: dict[Any, list[Unit]] = {}
    for unit in units:
        groups.setdefault(keys[unit.name], []).append(unit)
    return groups


def _operator_sequence(unit: Unit) -> tuple[str, ...]:
    return tuple(name for function in unit.functions for name in _operators_of(function))


def _operators_of(function: ir.Function) -> Iterator[str]:
    for stmt in walk_stmts(function.body):
        for expr in exprs_of(stmt):
            for node in walk(expr, once=True):
                if isinstance(node, (ir.Call, ir.Submit)) and not isinstance(node.op, ir.GlobalVar):
                    yield node.op.name


def _name_stem(unit: Unit) -> str:
    return _NUMBER.sub("", unit.name)


def _difference(unit: Unit, other: Unit) -> str:
    """The first function of the two units that differs, and where."""
    for mine, theirs in zip(unit.functions, other.functions, strict=True):
        if not ir.structural_equal(mine, theirs):
            found = first_difference(mine, theirs, False)
            shown = "" if found.sides is None else " ({} against {})".format(*map(_short, found.sides))
            return f"differs from '{other.name}' at {mine.name}.{found.path}: {found.reason}{shown}"
    return f"differs from '{other.name}' in a way that only bits of constants or integer kinds show"


def _short(node: Any, limit: int = 80) -> str:
    text = " ".join(str(node).split())
    return text if len(text) <= limit else f"{text[:limit]}..."
