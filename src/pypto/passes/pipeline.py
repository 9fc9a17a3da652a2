"""PassPipeline: passes in order, with verification and diagnostics between them."""

from __future__ import annotations

from types import NoneType

from pypto import ir
from pypto.ir.node import expect
from pypto.passes.base import Pass, create_program_pass
from pypto.passes.context import (
    DiagnosticPhase,
    PassContext,
    VerificationLevel,
    get_default_verification_level,
)
from pypto.passes.diagnostics import DiagnosticCheckRegistry, active_phase, emit_diagnostics, enabled_checks
from pypto.passes.instruments import DiagnosticInstrument, PassInstrument, report_directory
from pypto.passes.properties import (
    IRPropertySet,
    get_default_verify_properties,
    get_structural_properties,
    get_verified_properties,
)
from pypto.passes.verify import PropertyVerifierRegistry, verify_properties

_INPUT = "pipeline_input"
_OUTPUT = "pipeline_output"


class PassPipeline:
    """Runs passes one after the other.

    A property that a pass produces is verified once, until a pass invalidates it. Required properties are not
    checked here; `VerificationInstrument` does that.
    """

    def __init__(self) -> None:
        self._passes: list[Pass] = []

    def add_pass(self, pass_obj: Pass) -> None:
        """Append a pass."""
        expect(pass_obj, Pass, "PassPipeline.add_pass")
        self._passes.append(pass_obj)

    def get_passes(self) -> list[Pass]:
        """Return the passes in order."""
        return list(self._passes)

    def get_pass_names(self) -> list[str]:
        """Return the names of the passes in order."""
        return [each.get_name() for each in self._passes]

    def run(self, program: ir.Program) -> ir.Program:
        """Run all passes; raises `pypto.Error` if a verified property does not hold."""
        expect(program, ir.Program, "PassPipeline.run: the program")
        channel = _Channel.open()
        verification = _Verification() if _level() is not VerificationLevel.NONE else None
        channel.check(DiagnosticPhase.PRE_PIPELINE, program, _INPUT)
        if verification is not None:
            verification.check_input(program)
        for each in self._passes:
            program = each(program)
            if verification is not None:
                verification.check_pass(each, program)
            channel.check(DiagnosticPhase.POST_PASS, program, each.get_name())
        channel.check(DiagnosticPhase.POST_PIPELINE, program, _OUTPUT)
        for instrument in _active_instruments():
            instrument.run_after_pipeline(program)
        return program


def _level() -> VerificationLevel:
    context = PassContext.current()
    return get_default_verification_level() if context is None else context.get_verification_level()


def _active_instruments() -> list[PassInstrument]:
    context = PassContext.current()
    return context.get_instruments() if context is not None else []


class _Channel:
    """The diagnostics channel of one run."""

    def __init__(self, is_open: bool) -> None:
        self._is_open = is_open

    @staticmethod
    def open() -> _Channel:
        """Open the channel unless it is silenced or an instrument runs it."""
        is_taken = any(isinstance(each, DiagnosticInstrument) for each in _active_instruments())
        return _Channel(active_phase() is not DiagnosticPhase.NONE and not is_taken)

    def check(self, phase: DiagnosticPhase, program: ir.Program, label: str) -> None:
        """Run the checks of a phase and emit what they find."""
        if self._is_open:
            found = DiagnosticCheckRegistry.run_checks(enabled_checks(), phase, program)
            emit_diagnostics(found, label, report_directory())


class _Verification:
    """What one run has verified so far."""

    def __init__(self) -> None:
        self._checkable = get_verified_properties()
        self._verified = IRPropertySet()

    def check_input(self, program: ir.Program) -> None:
        """Verify what must hold of every input."""
        self._verify(get_structural_properties().intersection(self._checkable), program, _INPUT)

    def check_pass(self, pass_obj: Pass, program: ir.Program) -> None:
        """Verify what a pass has produced and what is not known to hold already."""
        self._verified = self._verified.difference(pass_obj.get_invalidated_properties())
        produced = pass_obj.get_produced_properties().intersection(self._checkable)
        self._verify(produced.difference(self._verified), program, pass_obj.get_name())

    def _verify(self, properties: IRPropertySet, program: ir.Program, pass_name: str) -> None:
        if not properties.empty():
            verify_properties(properties, program, pass_name)
            self._verified = self._verified.union_with(properties)


def run_verifier(properties: IRPropertySet | None = None) -> Pass:
    """Make a pass that verifies `properties` (by default `get_default_verify_properties()`)."""
    expect(properties, (IRPropertySet, NoneType), "the properties to verify")
    checked = get_default_verify_properties() if properties is None else properties.copy()

    def verify(program: ir.Program) -> ir.Program:
        PropertyVerifierRegistry.verify_or_throw(checked, program)
        return program

    return create_program_pass(verify, "IRVerifier")
