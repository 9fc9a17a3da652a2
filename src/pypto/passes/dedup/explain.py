"""What the pass did and why, for people and for tables: one record per unit.

A kernel author wants to know what to change to get a merge. So a unit that is unique is compared with
the one most like it: of the same operators in the same order, if possible on the same extents or at least
the same element types; of the same name but for its number; or of the same signature. The record tells the
first difference.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pypto import ir
from pypto.ir.rewrite import Substitution
from pypto.ir.walk import exprs_of, walk, walk_stmts
from pypto.passes.dedup.near_miss import describe_difference
from pypto.passes.dedup.reasons import Kept, Reason
from pypto.passes.dedup.reference_index import PEER_KEY, PEER_OP, ReferenceIndex, UnknownPayload
from pypto.passes.dedup.sharing import Sharing
from pypto.passes.dedup.units import Unit

__all__ = ["DedupRecord", "describe", "describe_incomplete"]

_LIKE_NO_OTHER = "no other kernel has its operators, its name or its signature"
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
    aliases: dict[str, list[str]] = {}
    for name, canonical in sharing.canonical.items():
        aliases.setdefault(canonical.name, []).append(name)
    similar = _SimilarUnits(units)
    records = [_kept_record(unit, why, index) for unit, why in kept]
    for unit in units:
        stands_for = sharing.canonical.get(unit.name)
        if stands_for is not None:
            records.append(_merged_record(unit, stands_for, index))
            continue
        why = sharing.kept[unit.name]
        if why.reason is Reason.UNIQUE and unit.name in sharing.refused:
            other = sharing.refused[unit.name]
            why = replace(why, detail=f"'{other}' is equal up to its symbols, but cannot share it; see there")
        elif why.reason is Reason.UNIQUE:
            why = replace(why, detail=similar.difference_of(unit) or _LIKE_NO_OTHER)
        elif why.reason is Reason.CANONICAL:
            why = replace(why, detail=f"it stands for {_listed(aliases[unit.name])}")
        records.append(_kept_record(unit, why, index))
    return sorted(records, key=lambda record: record.name)


class _Renaming(Substitution):
    """A substitution of no variables that renames the functions that are called or named as a peer."""

    def __init__(self, names: Mapping[str, str]) -> None:
        super().__init__()
        self._names = names

    def rebuild(self, node: ir.Expr) -> ir.Expr:
        rebuilt = super().rebuild(node)
        if not isinstance(rebuilt, (ir.Call, ir.Submit)):
            return rebuilt
        if rebuilt.op.name in self._names:
            return rebuilt.replace(op=ir.GlobalVar(self._names[rebuilt.op.name]))
        peer = rebuilt.kwargs_.get(PEER_KEY)
        if rebuilt.op.name == PEER_OP and isinstance(peer, str) and peer in self._names:
            return rebuilt.replace(kwargs={**rebuilt.kwargs_, PEER_KEY: self._names[peer]})
        return rebuilt


def _listed(names: Sequence[str], limit: int = 5) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


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

    __slots__ = ("_groups", "_keys")

    def __init__(self, units: Sequence[Unit]) -> None:
        sequences = {unit.name: _operator_sequence(unit) for unit in units}

        def operators(unit: Unit) -> tuple[str, ...]:
            return sequences[unit.name]

        def keyed(*keys: Callable[[Unit], Any]) -> dict[str, Any]:
            return {unit.name: tuple(key(unit) for key in keys) for unit in units}

        self._keys = [
            keyed(operators, _shapes),
            keyed(operators, _element_types),
            keyed(operators),
            keyed(_name_stem),
            keyed(_signature),
        ]
        self._groups = [_grouped(units, keys) for keys in self._keys]

    def difference_of(self, unit: Unit) -> str | None:
        """Return the first difference from the most similar unit in words, None if no unit is similar."""
        for keys, groups in zip(self._keys, self._groups, strict=True):
            for other in groups[keys[unit.name]][:2]:
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


def _shapes(unit: Unit) -> tuple[Any, ...]:
    """The parameters with their constant extents; what symbols are called makes no difference."""
    return tuple(
        (kind, tuple(dim.value if isinstance(dim, ir.ConstInt) else None for dim in shape))
        for kind, shape in _parts_of_params(unit)
    )


def _element_types(unit: Unit) -> tuple[Any, ...]:
    return tuple((kind, len(shape)) for kind, shape in _parts_of_params(unit))


def _parts_of_params(unit: Unit) -> Iterator[tuple[str, tuple[ir.Expr, ...]]]:
    """Per parameter its kind with the element type, and its extents."""
    for function in unit.functions:
        for param in function.params_:
            shape = param.type.shape_ if isinstance(param.type, ir.ShapedType) else ()
            yield f"{type(param.type).__name__} {getattr(param.type, 'dtype', '')}", shape


def _signature(unit: Unit) -> tuple[str, ...]:
    return tuple(str(param.type) for function in unit.functions for param in function.params_)


def _difference(unit: Unit, other: Unit) -> str:
    """The first function of the two units that differs, and where.

    Members are called by the names that they have in `unit`, so that a name is no difference.
    """
    names = {theirs.name: mine.name for mine, theirs in zip(unit.functions, other.functions, strict=True)}
    renaming = _Renaming(names)
    for mine, original in zip(unit.functions, other.functions, strict=True):
        theirs = renaming.function(original) if unit.is_bundle else original
        if not ir.structural_equal(mine, theirs):
            return f"differs from '{other.name}' at {describe_difference(mine, theirs)}"
    return f"differs from '{other.name}' in a way that only bits of constants or integer kinds show"
