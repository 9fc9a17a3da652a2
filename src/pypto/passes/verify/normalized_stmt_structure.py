"""NormalizedStmtStructure: the same rule as NoRedundantBlocks, as a promise of one pass."""

from __future__ import annotations

from pypto import ir
from pypto.passes.diagnostics import Diagnostic
from pypto.passes.verify.no_redundant_blocks import check_sequences


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return the sequences that are not in normal form."""
    return check_sequences(program, "NormalizedStmtStructure")
