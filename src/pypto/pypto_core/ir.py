"""The lower layer of `pypto.ir`: the same objects under the same names.

Two differences: `IRBuilder` is the begin/end builder that takes every span explicitly, and the names that
`pypto.ir` adds for convenience (`compile`, `PassManager`, `make_call`, ...) are absent.
"""

from __future__ import annotations

from typing import Any

from pypto import ir as _ir
from pypto.ir.build_context import BuildContext as IRBuilder

_ADDED_BY_PYPTO_IR = frozenset({
    "CompiledProgram", "ConversionContext", "DiagnosticCheck", "DiagnosticCheckSet",
    "DiagnosticPhase", "OptimizationStrategy", "PassContext", "PassDumpLevel", "PassManager",
    "VerificationLevel", "VerificationMode", "builder", "compile", "compiled_program", "directions",
    "distributed_compiled_program", "formatter", "inout", "input", "instruments", "make_call",
    "make_roundtrip_instrument", "no_dep", "op", "op_conversion", "operators", "output", "output_existing",
    "pass_manager", "printer", "scalar_dir", "type", "utils",
})  # fmt: skip
_NAMES = frozenset(_ir.__all__) - _ADDED_BY_PYPTO_IR

__all__ = ["IRBuilder"]
__all__ += sorted(_NAMES - {"IRBuilder"})


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(_ir, name)


def __dir__() -> list[str]:
    return list(__all__)
