"""Support for tests: raising each error class, asking the operator registry, random programs.

`pypto.testing.programs` makes random programs, `pypto.testing.eager` says what they compute, and
`pypto.testing.interpreter` runs the IR of any stage.
"""

from __future__ import annotations

from typing import NoReturn

from pypto import ir
from pypto.core.errors import Error, InternalError, internal_error, with_optional_trace
from pypto.core.span import Span
from pypto.ir.op_registry import declared_core_affinity, execution_memory_access, is_no_duplicate_op

__all__ = [
    "classify_call_affinity",
    "get_declared_core_affinity",
    "get_execution_memory_access_evidence",
    "is_no_duplicate_op",
    "raise_assertion_error",
    "raise_generic_error",
    "raise_index_error",
    "raise_internal_error",
    "raise_internal_error_with_span",
    "raise_not_implemented_error",
    "raise_runtime_error",
    "raise_type_error",
    "raise_value_error",
    "rethrow_with_message",
    "try_infer_pipe",
]

_CLASSES: dict[str, type[Exception]] = {
    "ValueError": ValueError,
    "TypeError": TypeError,
    "RuntimeError": RuntimeError,
    "NotImplementedError": NotImplementedError,
    "IndexError": IndexError,
    "AssertionError": AssertionError,
    "InternalError": InternalError,
    "Error": Error,
}


def raise_value_error(msg: str) -> NoReturn:
    """Raise ValueError with exactly this message."""
    raise ValueError(with_optional_trace(msg))


def raise_type_error(msg: str) -> NoReturn:
    """Raise TypeError with exactly this message."""
    raise TypeError(with_optional_trace(msg))


def raise_runtime_error(msg: str) -> NoReturn:
    """Raise RuntimeError with exactly this message."""
    raise RuntimeError(with_optional_trace(msg))


def raise_not_implemented_error(msg: str) -> NoReturn:
    """Raise NotImplementedError with exactly this message."""
    raise NotImplementedError(with_optional_trace(msg))


def raise_index_error(msg: str) -> NoReturn:
    """Raise IndexError with exactly this message."""
    raise IndexError(with_optional_trace(msg))


def raise_generic_error(msg: str) -> NoReturn:
    """Raise `pypto.Error` with exactly this message."""
    raise Error(with_optional_trace(msg))


def raise_assertion_error(msg: str) -> NoReturn:
    """Raise AssertionError as a failed check of the compiler does: the message, then the stack."""
    raise AssertionError(str(internal_error(msg)))


def raise_internal_error(msg: str) -> NoReturn:
    """Raise `pypto.InternalError`: the message, then the stack."""
    raise internal_error(msg)


def raise_internal_error_with_span(msg: str, filename: str, line: int, col: int) -> NoReturn:
    """Raise `pypto.InternalError` that names a place in a source file."""
    raise internal_error(msg, Span(filename, line, col))


def rethrow_with_message(kind: str, original: str, replacement: str) -> NoReturn:
    """Raise an error of class `kind` with `original`, catch it, and raise the class again with only
    `replacement`.

    Raises:
        KeyError: `kind` names none of the classes.
    """
    error_class = _CLASSES[kind]
    try:
        raise error_class(original)
    except error_class as error:
        raise type(error)(replacement) from None


def get_declared_core_affinity(op: str) -> str | None:
    """The kind of core that an operator is declared for: "vector", "cube", "shared", or None.

    Raises:
        ValueError: there is no such operator.
    """
    return declared_core_affinity(op)


def classify_call_affinity(call: ir.Call) -> str:
    """The kind of core that a call needs: "vector", "cube", "mixed" for both, "shared" for neither.

    Raises:
        ValueError: the callee is no operator.
    """
    from pypto.passes.expand_mixed_kernel import core_sides

    declared_core_affinity(call.op.name)
    sides = set(core_sides(call))
    return "mixed" if len(sides) > 1 else sides.pop() if sides else "shared"


def get_execution_memory_access_evidence(op: str) -> str | None:
    """What the declaration of an operator says about memory when it runs.

    "none" if it only computes metadata, "access" if it has effects or a write channel, None otherwise.

    Raises:
        ValueError: there is no such operator.
    """
    return execution_memory_access(op)


def try_infer_pipe(call: ir.Call) -> ir.PipeType | None:
    """The pipe of an accelerator's core that would run a call, None if it needs none or cannot be told.

    Raises:
        ValueError: the callee is no operator.
    """
    from pypto.passes.expand_mixed_kernel import pipe_of

    declared_core_affinity(call.op.name)
    return pipe_of(call)
