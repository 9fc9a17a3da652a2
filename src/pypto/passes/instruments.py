"""Instruments: what watches passes from outside.

The instruments of the active `PassContext` are called before and after every pass, in list order, also for a
pass that is called directly. `CallbackInstrument` is the extension point for users.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from types import NoneType
from typing import TYPE_CHECKING

from pypto import ir
from pypto.core.errors import Error
from pypto.ir.node import expect, expect_callable
from pypto.passes.context import DiagnosticCheckSet, DiagnosticPhase, VerificationMode
from pypto.passes.diagnostics import (
    DiagnosticCheckRegistry,
    active_phase,
    emit_diagnostics,
    generate_report,
    has_errors,
)
from pypto.passes.properties import IRPropertySet, get_structural_properties
from pypto.passes.verify import PropertyVerifierRegistry

if TYPE_CHECKING:
    from pypto.passes.base import Pass

PassCallback = Callable[["Pass", "ir.Program"], object]


class PassInstrument:
    """Base of the instruments; not meant to be constructed."""

    def __init__(self) -> None:
        if type(self) is PassInstrument:
            raise TypeError("PassInstrument is abstract and cannot be instantiated")

    def get_name(self) -> str:
        """Return the name of the instrument."""
        return type(self).__name__

    def run_before_pass(self, pass_obj: Pass, program: ir.Program) -> None:
        """See the program that a pass is about to take."""

    def run_after_pass(self, pass_obj: Pass, program: ir.Program) -> None:
        """See the program that a pass has made."""

    def run_after_pipeline(self, program: ir.Program) -> None:
        """See the program at the end of a pipeline."""


class VerificationInstrument(PassInstrument):
    """Verifies, around every pass, what the pass declares and what must always hold."""

    def __init__(self, mode: VerificationMode) -> None:
        super().__init__()
        expect(mode, VerificationMode, "VerificationInstrument.mode")
        self._mode = mode

    def run_before_pass(self, pass_obj: Pass, program: ir.Program) -> None:
        """Verify the required and the structural properties."""
        if self._mode in (VerificationMode.BEFORE, VerificationMode.BEFORE_AND_AFTER):
            required = pass_obj.get_checked_requirements()
            _verify(required, program, f"Pre-verification failed before pass '{pass_obj.get_name()}':")

    def run_after_pass(self, pass_obj: Pass, program: ir.Program) -> None:
        """Verify the produced and the structural properties."""
        if self._mode in (VerificationMode.AFTER, VerificationMode.BEFORE_AND_AFTER):
            produced = pass_obj.get_produced_properties()
            _verify(produced, program, f"Post-verification failed after pass '{pass_obj.get_name()}':")


def _verify(properties: IRPropertySet, program: ir.Program, failure: str) -> None:
    checked = properties.union_with(get_structural_properties())
    diagnostics = PropertyVerifierRegistry.verify(checked, program)
    if has_errors(diagnostics):
        raise Error(f"{failure}\n{generate_report(diagnostics)}")


class CallbackInstrument(PassInstrument):
    """Calls `before_pass(pass, program)` and `after_pass(pass, program)`; None skips."""

    def __init__(
        self,
        before_pass: PassCallback | None = None,
        after_pass: PassCallback | None = None,
        name: str = "CallbackInstrument",
    ) -> None:
        super().__init__()
        for callback in (before_pass, after_pass):
            if callback is not None:
                expect_callable(callback, "CallbackInstrument: a callback")
        expect(name, str, "CallbackInstrument.name")
        self._before_pass = before_pass
        self._after_pass = after_pass
        self._name = name

    def get_name(self) -> str:
        """Return the name given at construction."""
        return self._name

    def run_before_pass(self, pass_obj: Pass, program: ir.Program) -> None:
        """Call the before-callback."""
        if self._before_pass is not None:
            self._before_pass(pass_obj, program)

    def run_after_pass(self, pass_obj: Pass, program: ir.Program) -> None:
        """Call the after-callback."""
        if self._after_pass is not None:
            self._after_pass(pass_obj, program)


class ReportInstrument(PassInstrument):
    """Observes nothing; tells the diagnostics channel where reports go."""

    def __init__(self, output_dir: str | os.PathLike[str]) -> None:
        super().__init__()
        self._output_dir = os.fspath(output_dir)

    def get_output_dir(self) -> str:
        """Return the directory of the reports."""
        return self._output_dir


class DiagnosticInstrument(PassInstrument):
    """Runs the diagnostics channel itself, also for passes called directly; a pipeline then leaves it alone.

    Args:
        checks: the checks to run; by default all.
    """

    def __init__(self, checks: DiagnosticCheckSet | None = None) -> None:
        super().__init__()
        expect(checks, (DiagnosticCheckSet, NoneType), "DiagnosticInstrument.checks")
        self._checks = DiagnosticCheckRegistry.get_all_checks() if checks is None else checks.copy()
        self._has_seen_input = False

    def run_before_pass(self, pass_obj: Pass, program: ir.Program) -> None:
        """Run the checks of the input, once per instrument."""
        if not self._has_seen_input:
            self._has_seen_input = True
            self._run(DiagnosticPhase.PRE_PIPELINE, program, "pipeline_input")

    def run_after_pass(self, pass_obj: Pass, program: ir.Program) -> None:
        """Run the checks that follow every pass."""
        self._run(DiagnosticPhase.POST_PASS, program, pass_obj.get_name())

    def run_after_pipeline(self, program: ir.Program) -> None:
        """Run the checks of the output."""
        self._run(DiagnosticPhase.POST_PIPELINE, program, "pipeline_output")

    def _run(self, phase: DiagnosticPhase, program: ir.Program, label: str) -> None:
        if active_phase() is not DiagnosticPhase.NONE:
            found = DiagnosticCheckRegistry.run_checks(self._checks, phase, program)
            emit_diagnostics(found, label, report_directory())


def report_directory() -> str | None:
    """Return the directory of the first ReportInstrument of the active context, None if there is none."""
    from pypto.passes.context import PassContext

    context = PassContext.current()
    for instrument in context.get_instruments() if context is not None else ():
        if isinstance(instrument, ReportInstrument):
            return instrument.get_output_dir()
    return None


def make_roundtrip_instrument() -> CallbackInstrument:
    """Make an instrument that prints and re-parses the program after every pass and compares the two."""
    from pypto.passes.roundtrip import check_roundtrip

    return CallbackInstrument(after_pass=check_roundtrip, name="RoundtripInstrument")
