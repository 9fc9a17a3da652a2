"""Diagnostics: what verifiers and checks find, and how findings become text.

A verifier finds errors; a report lists them. The diagnostics channel finds warnings and performance hints at
three points of a pipeline and writes them to the log. A finding never stops a run; only a verification
failure does, and that is the verifiers' business.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pypto import ir
from pypto.core.logging import log_info, log_warn
from pypto.passes.context import (
    DiagnosticCheck,
    DiagnosticCheckSet,
    DiagnosticPhase,
    PassContext,
    default_disabled_diagnostics,
    get_default_diagnostic_phase,
)


class DiagnosticSeverity(enum.Enum):
    """How serious a finding is."""

    Error = 0
    Warning = 1
    PerfHint = 2

    def __str__(self) -> str:
        return f"DiagnosticSeverity.{self.name}"

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding. `hint_code` is empty unless it is a performance hint."""

    severity: DiagnosticSeverity
    rule_name: str
    error_code: int
    message: str
    span: ir.Span = field(default_factory=ir.Span.unknown)
    hint_code: str = ""


def error(rule_name: str, code: int, message: str, span: ir.Span) -> Diagnostic:
    """Make an error."""
    return Diagnostic(DiagnosticSeverity.Error, rule_name, code, message, span)


def warning(rule_name: str, code: int, message: str, span: ir.Span) -> Diagnostic:
    """Make a warning."""
    return Diagnostic(DiagnosticSeverity.Warning, rule_name, code, message, span)


def has_errors(diagnostics: Iterable[Diagnostic]) -> bool:
    """Say whether any finding is an error."""
    return any(each.severity is DiagnosticSeverity.Error for each in diagnostics)


def generate_report(diagnostics: Sequence[Diagnostic]) -> str:
    """Write the findings as a numbered report with a status line."""
    errors = sum(each.severity is DiagnosticSeverity.Error for each in diagnostics)
    warnings = len(diagnostics) - errors
    title = "IR Verification Report"
    lines = [
        title,
        "=" * len(title),
        f"Total diagnostics: {len(diagnostics)} ({errors} errors, {warnings} warnings)",
        "",
    ]
    for number, each in enumerate(diagnostics, start=1):
        kind = "ERROR" if each.severity is DiagnosticSeverity.Error else "WARNING"
        lines += [
            f"[{number}] {kind} - {each.rule_name}",
            f"  Message: {each.message}",
            f"  Location: {each.span}",
            f"  Error Code: {each.error_code}",
            "",
        ]
    if errors:
        lines.append(f"Status: FAILED ({errors} error(s) found)")
    elif diagnostics:
        lines.append(f"Status: PASSED with {warnings} warning(s)")
    else:
        lines.append("Status: PASSED")
    return "\n".join(lines) + "\n"


# --- the checks of the channel ---


@dataclass(frozen=True, slots=True)
class _RegisteredCheck:
    """When a check runs, and what is stamped on its findings. `module` holds its `verify(program)`."""

    severity: DiagnosticSeverity
    phase: DiagnosticPhase
    module: str
    hint_code: str = ""


_CHECKS = {
    DiagnosticCheck.UnusedVariable: _RegisteredCheck(
        DiagnosticSeverity.Warning, DiagnosticPhase.PRE_PIPELINE, "unused_variable"
    ),
    DiagnosticCheck.UnusedControlFlowResult: _RegisteredCheck(
        DiagnosticSeverity.Warning, DiagnosticPhase.PRE_PIPELINE, "unused_control_flow_result"
    ),
    DiagnosticCheck.TileInnermostDimGranularity: _RegisteredCheck(
        DiagnosticSeverity.PerfHint,
        DiagnosticPhase.POST_PIPELINE,
        "tile_innermost_dim_granularity",
        "PH001",
    ),
    DiagnosticCheck.OutParamWriteDropped: _RegisteredCheck(
        DiagnosticSeverity.Warning, DiagnosticPhase.PRE_PIPELINE, "out_param_write_dropped"
    ),
}


class DiagnosticCheckRegistry:
    """Runs the registered checks."""

    @staticmethod
    def run_checks(
        checks: DiagnosticCheckSet, phase: DiagnosticPhase, program: ir.Program
    ) -> list[Diagnostic]:
        """Run those of `checks` that are registered for `phase`."""
        from pypto.passes.verify import load_verifier

        found: list[Diagnostic] = []
        for check in checks:
            registered = _CHECKS[check]
            if registered.phase is phase:
                found += [
                    replace(each, severity=registered.severity, hint_code=registered.hint_code)
                    for each in load_verifier(registered.module)(program)
                ]
        return found

    @staticmethod
    def get_all_checks() -> DiagnosticCheckSet:
        """Return every registered check."""
        return DiagnosticCheckSet.of(_CHECKS)

    @staticmethod
    def get_warning_checks() -> DiagnosticCheckSet:
        """Return the checks that find warnings."""
        return _checks_of(DiagnosticSeverity.Warning)

    @staticmethod
    def get_perf_hint_checks() -> DiagnosticCheckSet:
        """Return the checks that find performance hints."""
        return _checks_of(DiagnosticSeverity.PerfHint)


def _checks_of(severity: DiagnosticSeverity) -> DiagnosticCheckSet:
    return DiagnosticCheckSet.of(
        check for check, registered in _CHECKS.items() if registered.severity is severity
    )


def enabled_checks() -> DiagnosticCheckSet:
    """Return all checks but those that the active context disables."""
    context = PassContext.current()
    disabled = default_disabled_diagnostics() if context is None else context.get_disabled_diagnostics()
    return DiagnosticCheckRegistry.get_all_checks().difference(disabled)


def active_phase() -> DiagnosticPhase:
    """Return the phase setting of the active context, or of the environment."""
    context = PassContext.current()
    return get_default_diagnostic_phase() if context is None else context.get_diagnostic_phase()


# --- emission ---


def emit_diagnostics(diagnostics: Sequence[Diagnostic], label: str, report_dir: str | None = None) -> None:
    """Write findings to the log; performance hints go to a file in `report_dir` if that is given."""
    hints = [each for each in diagnostics if each.severity is DiagnosticSeverity.PerfHint]
    for each in diagnostics:
        if each.severity is not DiagnosticSeverity.PerfHint:
            log_warn(_warning_line(each, label))
    if hints and (report_dir is None or not _write_hints(hints, Path(report_dir))):
        for each in hints:
            log_info(_hint_line(each))


def _warning_line(each: Diagnostic, label: str) -> str:
    place = f" ({label})" if label else ""
    return f"[warning] [{each.rule_name}]{place} {each.message}{_at(each.span)}"


def _hint_line(each: Diagnostic) -> str:
    code = f" {each.hint_code}" if each.hint_code else ""
    return f"[perf_hint{code}] {each.rule_name}: {each.message}{_at(each.span)}"


def _at(span: ir.Span) -> str:
    return f" at {span}" if span.is_valid() else ""


def _write_hints(hints: Sequence[Diagnostic], directory: Path) -> bool:
    """Append the hints to the report file and log a summary; False if the file cannot be written."""
    path = directory / "perf_hints.log"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.writelines(_hint_line(each) + "\n" for each in hints)
    except OSError as problem:
        log_warn(f"cannot write performance hints to {path}: {problem}")
        return False
    sites = len({str(each.span) for each in hints if each.span.is_valid()})
    across = f" across {_counted(sites, 'site')}" if sites else ""
    log_info(f"[perf_hint] {_counted(len(hints), 'hint')}{across}; see {path}")
    return True


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
