"""Which unit can stand for which.

Units are considered in name order, so that of equal units the smallest name stays. Each is looked up by
the hash of its form among the units that stay, and compared with at most eight of them; each comparison
costs the weights of both units, out of a budget of eight times the new unit's weight. Whoever matches
none stays, and is compared with later ones while there is room. It is fine to miss a duplicate. It is
never fine to merge wrongly, or to spend more than O(N log N).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pypto.passes.dedup.call_shape_proof import CallShapeProver, describe_unprovable
from pypto.passes.dedup.projection import Projection
from pypto.passes.dedup.reasons import Kept, Reason
from pypto.passes.dedup.reference_index import ReferenceIndex
from pypto.passes.dedup.units import Unit

__all__ = ["ProjectedUnit", "Sharing", "find_sharing"]

MAX_REPRESENTATIVES = 8
BUDGET_FACTOR = 8


@dataclass(frozen=True, slots=True)
class ProjectedUnit:
    """A closed unit with its normal form."""

    unit: Unit
    projection: Projection


@dataclass(frozen=True, slots=True)
class Sharing:
    """The decision: `canonical` maps an alias to the unit that stands for it, `kept` says why others stay.

    `refused` maps a unit that stays to the first one of equal form that it could not stand for.
    """

    canonical: Mapping[str, Unit]
    kept: Mapping[str, Kept]
    refused: Mapping[str, str]


def find_sharing(
    units: Sequence[ProjectedUnit],
    index: ReferenceIndex,
    prover: CallShapeProver,
    digest: Callable[[Projection], int] = Projection.digest,
) -> Sharing:
    """Decide for each of `units`, given in name order, whether an earlier one can stand for it."""
    canonical: dict[str, Unit] = {}
    kept: dict[str, Kept] = {}
    refused: dict[str, str] = {}
    buckets: dict[int, list[ProjectedUnit]] = {}
    for candidate in units:
        bucket = buckets.setdefault(digest(candidate.projection), [])
        found = _find_representative(candidate, bucket, index, prover, refused)
        if isinstance(found, ProjectedUnit):
            canonical[candidate.unit.name] = found.unit
            kept[found.unit.name] = Kept(Reason.CANONICAL, "it stands for equal units")
            continue
        if len(bucket) < MAX_REPRESENTATIVES:
            bucket.append(candidate)
        elif found.reason in (Reason.UNIQUE, Reason.BUDGET):
            found = Kept(Reason.BUCKET_FULL, f"{MAX_REPRESENTATIVES} units with the same hash stay already")
        kept[candidate.unit.name] = found
    return Sharing(canonical, kept, refused)


def _find_representative(
    candidate: ProjectedUnit,
    bucket: Sequence[ProjectedUnit],
    index: ReferenceIndex,
    prover: CallShapeProver,
    refused: dict[str, str],
) -> ProjectedUnit | Kept:
    """Return the first unit of `bucket` that can stand for `candidate`, or why there is none.

    Those of equal form that cannot are noted in `refused`.
    """
    budget = BUDGET_FACTOR * candidate.unit.weight
    nearest: Kept | None = None  # why the first unit of equal form was not enough
    for representative in bucket:
        cost = candidate.unit.weight + representative.unit.weight
        if cost > budget:
            return Kept(Reason.BUDGET, "comparing it with more units of the same hash exceeds its budget")
        budget -= cost
        if not candidate.projection.has_form_of(representative.projection):
            continue
        problem = _problem_of_merge(candidate, representative, index, prover)
        if problem is None:
            return representative
        refused.setdefault(representative.unit.name, candidate.unit.name)
        nearest = nearest or problem
    return nearest or Kept(Reason.UNIQUE, "no other unit has its form")


def _problem_of_merge(
    alias: ProjectedUnit, canonical: ProjectedUnit, index: ReferenceIndex, prover: CallShapeProver
) -> Kept | None:
    """Why `canonical` cannot stand for `alias` although their forms are equal.

    A parameter that is an extent is a variable of each definition of its own, so it is proved like a
    symbol; outside the proof it is bound like any parameter, and the symbols decide.
    """
    has_same_symbols = alias.projection.has_symbols_of(canonical.projection)
    if has_same_symbols and (alias.unit.is_bundle or not alias.projection.has_scalar_extents):
        return None
    name = canonical.unit.name
    if alias.unit.is_bundle:
        return Kept(
            Reason.SYMBOL_IDENTITY,
            f"'{name}' is equal, but uses other symbols, and Groups must share theirs: use the same "
            "pl.dynamic extents in both",
        )
    (kernel,) = canonical.unit.functions
    problem = describe_unprovable(kernel)
    if problem is not None and has_same_symbols:
        return None
    if problem is None:
        problem = prover.refute(index.sites.get(alias.unit.name, ()), kernel)
    if problem is None:
        return None
    return Kept(problem.reason, f"'{name}' is equal up to its symbols; {problem.detail}")
