"""The settings under which passes run.

A `PassContext` is a frame on a thread-local stack. The innermost one replaces the others entirely: nothing
is inherited. Without a context, the verification level and the diagnostic phase come from the environment.
"""

from __future__ import annotations

import enum
import functools
import os
import threading
from collections.abc import Sequence
from types import NoneType, TracebackType
from typing import TYPE_CHECKING, Any

from pypto.core.errors import internal_error
from pypto.ir.node import expect, expect_all
from pypto.passes.properties import EnumSet

if TYPE_CHECKING:
    from pypto.passes.instruments import PassInstrument


class _NamedEnum(enum.Enum):
    """An enum that prints as `ClassName.MEMBER`."""

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    __repr__ = __str__


class VerificationMode(_NamedEnum):
    """When a `VerificationInstrument` verifies."""

    NONE = 0
    BEFORE = 1
    AFTER = 2
    BEFORE_AND_AFTER = 3


class VerificationLevel(_NamedEnum):
    """How much a pipeline verifies by itself."""

    NONE = 0
    BASIC = 1
    ROUNDTRIP = 2


class MemoryPlanner(_NamedEnum):
    """Which planner places on-chip buffers."""

    PYPTO = 0
    DSA_RP = 1
    PTOAS = 2


class RuntimeKind(_NamedEnum):
    """Which task runtime the program is built for."""

    TENSORMAP_AND_RINGBUFFER = 0
    HOST_BUILD_GRAPH = 1


class DiagnosticPhase(_NamedEnum):
    """When a diagnostic check runs."""

    NONE = 0
    PRE_PIPELINE = 1
    POST_PASS = 2
    POST_PIPELINE = 3


class DiagnosticCheck(_NamedEnum):
    """The checks of the diagnostics channel."""

    UnusedVariable = 0
    UnusedControlFlowResult = 1
    TileInnermostDimGranularity = 2
    OutParamWriteDropped = 3


class DiagnosticCheckSet(EnumSet[DiagnosticCheck]):
    """A set of diagnostic checks."""

    __slots__ = ()
    KIND = DiagnosticCheck


def runtime_kind_to_name(kind: RuntimeKind) -> str:
    """Return the name users type for a runtime kind, e.g. `tensormap_and_ringbuffer`."""
    expect(kind, RuntimeKind, "runtime")
    return kind.name.lower()


def runtime_kind_from_name(name: str) -> RuntimeKind:
    """Return the runtime kind called `name`; raises ValueError listing the accepted names."""
    for kind in RuntimeKind:
        if runtime_kind_to_name(kind) == name:
            return kind
    accepted = ", ".join(f"'{runtime_kind_to_name(kind)}'" for kind in RuntimeKind)
    raise ValueError(f"Unknown runtime '{name}'; accepted names: {accepted}")


def default_disabled_diagnostics() -> DiagnosticCheckSet:
    """Return the checks that are off unless a context says otherwise."""
    return DiagnosticCheckSet.of([DiagnosticCheck.UnusedControlFlowResult])


class PassContext:
    """Instruments and settings for the passes run inside a `with` block of this thread.

    Args:
        instruments: called around every pass, in list order.
        verification_level: what a pipeline verifies by itself.
        diagnostic_phase: NONE silences the diagnostics channel, any other value turns it on.
        disabled_diagnostics: checks that do not run; by default UnusedControlFlowResult.
        memory_planner: decides the pass list of a `PassManager`.
        enable_pypto_l0c_double_buffer: lets the tile planner use both halves of the accumulator buffer.
        runtime: the task runtime that the program is compiled for.
    """

    _stacks = threading.local()

    def __init__(
        self,
        instruments: Sequence[PassInstrument],
        verification_level: VerificationLevel = VerificationLevel.BASIC,
        diagnostic_phase: DiagnosticPhase = DiagnosticPhase.PRE_PIPELINE,
        disabled_diagnostics: DiagnosticCheckSet | None = None,
        memory_planner: MemoryPlanner = MemoryPlanner.PYPTO,
        enable_pypto_l0c_double_buffer: bool = False,
        runtime: RuntimeKind = RuntimeKind.TENSORMAP_AND_RINGBUFFER,
    ) -> None:
        from pypto.passes.instruments import PassInstrument

        self._instruments = expect_all(instruments, PassInstrument, "PassContext.instruments")
        expect(verification_level, VerificationLevel, "PassContext.verification_level")
        expect(diagnostic_phase, DiagnosticPhase, "PassContext.diagnostic_phase")
        expect(disabled_diagnostics, (DiagnosticCheckSet, NoneType), "PassContext.disabled_diagnostics")
        expect(memory_planner, MemoryPlanner, "PassContext.memory_planner")
        expect(runtime, RuntimeKind, "PassContext.runtime")
        self._verification_level = verification_level
        self._diagnostic_phase = diagnostic_phase
        self._disabled = (
            default_disabled_diagnostics() if disabled_diagnostics is None else disabled_diagnostics.copy()
        )
        self._memory_planner = memory_planner
        self._enable_l0c_double_buffer = enable_pypto_l0c_double_buffer
        self._runtime = runtime

    @staticmethod
    def current() -> PassContext | None:
        """Return the innermost active context of this thread."""
        stack = PassContext._stack()
        return stack[-1] if stack else None

    def get_instruments(self) -> list[PassInstrument]:
        """Return the instruments in order."""
        return list(self._instruments)

    def get_verification_level(self) -> VerificationLevel:
        """Return the verification level."""
        return self._verification_level

    def get_diagnostic_phase(self) -> DiagnosticPhase:
        """Return the diagnostic phase."""
        return self._diagnostic_phase

    def get_disabled_diagnostics(self) -> DiagnosticCheckSet:
        """Return a copy of the set of disabled checks."""
        return self._disabled.copy()

    def get_memory_planner(self) -> MemoryPlanner:
        """Return the memory planner."""
        return self._memory_planner

    def get_enable_pypto_l0c_double_buffer(self) -> bool:
        """Say whether accumulator double buffering is on."""
        return self._enable_l0c_double_buffer

    def get_runtime(self) -> RuntimeKind:
        """Return the runtime kind."""
        return self._runtime

    @staticmethod
    def _stack() -> list[PassContext]:
        stack: list[PassContext] | None = getattr(PassContext._stacks, "frames", None)
        if stack is None:
            stack = PassContext._stacks.frames = []
        return stack

    def __enter__(self) -> PassContext:
        self._stack().append(self)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        stack = self._stack()
        if not stack or stack[-1] is not self:
            raise internal_error("PassContext exited out of order: it is not the innermost active context")
        stack.pop()


@functools.cache
def get_default_verification_level() -> VerificationLevel:
    """Return the level that `PYPTO_VERIFY_LEVEL` asks for (read once)."""
    names = {"none": VerificationLevel.NONE, "roundtrip": VerificationLevel.ROUNDTRIP}
    return names.get(os.environ.get("PYPTO_VERIFY_LEVEL", ""), VerificationLevel.BASIC)


@functools.cache
def get_default_diagnostic_phase() -> DiagnosticPhase:
    """Return the phase that `PYPTO_WARNING_LEVEL` asks for (read once)."""
    names = {
        "none": DiagnosticPhase.NONE,
        "post_pass": DiagnosticPhase.POST_PASS,
        "post_pipeline": DiagnosticPhase.POST_PIPELINE,
    }
    return names.get(os.environ.get("PYPTO_WARNING_LEVEL", ""), DiagnosticPhase.PRE_PIPELINE)


def derived_context(instruments: Sequence[PassInstrument], **changes: Any) -> PassContext:
    """Make a context with these instruments; settings that are not given are those in force.

    In force are those of the active context, and without one those that the environment asks for.
    """
    active = PassContext.current()
    if active is None:
        settings: dict[str, Any] = {
            "verification_level": get_default_verification_level(),
            "diagnostic_phase": get_default_diagnostic_phase(),
        }
    else:
        settings = {
            "verification_level": active.get_verification_level(),
            "diagnostic_phase": active.get_diagnostic_phase(),
            "disabled_diagnostics": active.get_disabled_diagnostics(),
            "memory_planner": active.get_memory_planner(),
            "enable_pypto_l0c_double_buffer": active.get_enable_pypto_l0c_double_buffer(),
            "runtime": active.get_runtime(),
        }
    return PassContext(instruments, **{**settings, **changes})
