"""DeduplicateOutlinedKernels: equal kernel definitions become one, every execution stays.

Rules:

1. Every reference of the program is indexed; if that cannot be complete, nothing is done.
2. Ordinary kernels and Group bundles that are referenced and closed are candidates.
3. Candidates are brought into normal form; equal forms are equal kernels.
4. Kernels whose signatures use different symbols merge only if every call proves that it makes no difference.
5. Dispatches of an alias are redirected, and the alias leaves; all else keeps its identity.
6. Each unit has a record that says what happened to it and why.

What equality means and why a merge is safe is told in `pypto.passes.dedup`.
"""

from __future__ import annotations

from dataclasses import dataclass

from pypto import ir
from pypto.core.logging import LogLevel, is_logged, log_debug
from pypto.passes.base import IRProperty, Pass, PassProperties, create_program_pass, property_set
from pypto.passes.dedup.call_shape_proof import CallShapeProver
from pypto.passes.dedup.explain import DedupRecord, describe, describe_incomplete
from pypto.passes.dedup.numbering import FreeCapture, Numbering, StructureTable
from pypto.passes.dedup.projection import Projector
from pypto.passes.dedup.reasons import Kept, Reason
from pypto.passes.dedup.reference_index import ReferenceIndex, UnknownPayload, index_references
from pypto.passes.dedup.rewrite import redirect
from pypto.passes.dedup.sharing import ProjectedUnit, Sharing, find_sharing
from pypto.passes.dedup.units import Unit, Units, find_units

__all__ = ["deduplicate_outlined_kernels", "explain_deduplication"]


def deduplicate_outlined_kernels() -> Pass:
    """Return the pass that shares equal kernel definitions."""
    kept = (
        IRProperty.SSAForm,
        IRProperty.SplitIncoreOrch,
        IRProperty.ClusterOutlined,
        IRProperty.NormalizedStmtStructure,
    )
    properties = PassProperties(required=property_set(*kept), produced=property_set(*kept))
    return create_program_pass(_deduplicate, "DeduplicateOutlinedKernels", properties)


def explain_deduplication(program: ir.Program) -> list[DedupRecord]:
    """Return what the pass would do to `program`, one record per unit in name order."""
    try:
        return _decide(program).records()
    except UnknownPayload as payload:
        return describe_incomplete(program, payload)


def _deduplicate(program: ir.Program) -> ir.Program:
    try:
        decision = _decide(program)
    except UnknownPayload as payload:
        log_debug(f"DeduplicateOutlinedKernels keeps the program: {payload}")
        return program
    if is_logged(LogLevel.DEBUG):
        _log(decision.records())
    return redirect(program, decision.index, decision.aliases(), decision.sharing.canonical)


@dataclass(frozen=True, slots=True)
class _Decision:
    """What is to be merged, before anything is."""

    index: ReferenceIndex
    candidates: tuple[Unit, ...]
    kept: tuple[tuple[Unit, Kept], ...]
    sharing: Sharing

    def aliases(self) -> dict[str, Unit]:
        return {unit.name: unit for unit in self.candidates if unit.name in self.sharing.canonical}

    def records(self) -> list[DedupRecord]:
        return describe(self.candidates, self.kept, self.sharing, self.index)


def _decide(program: ir.Program) -> _Decision:
    index = index_references(program)
    units = find_units(program, index)
    table = StructureTable()
    projected, open_units = _project(units, Projector(table, program.functions_))
    prover = CallShapeProver(Numbering(table, program.functions_, is_open=True), index.weight)
    sharing = find_sharing(projected, index, prover)
    candidates = tuple(each.unit for each in projected)
    return _Decision(index, candidates, (*units.kept, *open_units), sharing)


def _project(units: Units, projector: Projector) -> tuple[list[ProjectedUnit], list[tuple[Unit, Kept]]]:
    """Bring the candidates into normal form; those that turn out not to be closed are kept."""
    projected: list[ProjectedUnit] = []
    open_units: list[tuple[Unit, Kept]] = []
    for unit in units.candidates:
        try:
            projected.append(ProjectedUnit(unit, projector.project(unit)))
        except FreeCapture as capture:
            open_units.append((unit, Kept(Reason.FREE_CAPTURE, str(capture))))
    return projected, open_units


def _log(records: list[DedupRecord]) -> None:
    for record in records:
        fate = f"merged into '{record.into}'" if record.into else f"kept ({record.reason})"
        log_debug(f"DeduplicateOutlinedKernels: '{record.name}' {fate}: {record.detail}")
