"""Which kernels an orchestration submits, under which ids.

A registration is one row (id, code, core type, signature). Its identity is the code, the core type and the
tensor signature of the payload: equal rows share an id, and one code may have several rows. An id is given
when the payload of a submission is final, so ids follow the order of first submission.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pypto.core.errors import InternalError
from pypto.ir.enums import ArgDirection, CoreType, FunctionType
from pypto.ir.program import Function

__all__ = ["KernelRegistration", "RegistrationTable", "infer_function_core_type", "tensor_signature"]

MAX_TENSORS = 32  # of one kernel payload
MAX_SCALARS = 16

_SIGNATURE_TOKENS = {
    ArgDirection.Input: "IN",
    ArgDirection.Output: "OUT",
    ArgDirection.OutputExisting: "OUT",
    ArgDirection.InOut: "INOUT",
    ArgDirection.NoDep: "INOUT",  # its task line still says no_dep
}


@dataclass(frozen=True)
class KernelRegistration:
    """`signature` has one of "IN", "OUT", "INOUT" per tensor of the payload, in payload order."""

    func_id: int
    code_name: str
    core_type: CoreType
    signature: tuple[str, ...]

    def __post_init__(self) -> None:
        tokens = self.signature
        if isinstance(tokens, str) or not all(token in ("IN", "OUT", "INOUT") for token in tokens):
            raise ValueError(f'a signature is a sequence of "IN", "OUT" and "INOUT", got {tokens!r}')
        object.__setattr__(self, "signature", tuple(tokens))


def infer_function_core_type(func: Function) -> CoreType:
    """The kind of core that runs a kernel. Raises `InternalError` for a function that is not AIC or AIV."""
    if func.func_type is FunctionType.AIC:
        return CoreType.CUBE
    if func.func_type is FunctionType.AIV:
        return CoreType.VECTOR
    raise InternalError(
        f"InferFunctionCoreType: '{func.name}' is {func.func_type.name}, "
        "only AIC and AIV functions run on a core"
    )


def tensor_signature(directions: Iterable[ArgDirection]) -> tuple[str, ...]:
    """The tokens of a payload's tensor entries; scalars are left out."""
    return tuple(_SIGNATURE_TOKENS[d] for d in directions if d is not ArgDirection.Scalar)


class RegistrationTable:
    """Hands out ids in the order of first submission."""

    def __init__(self) -> None:
        self._ids: dict[tuple[str, CoreType, tuple[str, ...]], int] = {}

    def id_of(self, kernel: Function, signature: Sequence[str]) -> int:
        """The id of `kernel` submitted with this payload signature."""
        key = (kernel.name, infer_function_core_type(kernel), tuple(signature))
        return self._ids.setdefault(key, len(self._ids))

    def registrations(self) -> list[KernelRegistration]:
        """All rows, by id."""
        return [KernelRegistration(number, *key) for key, number in self._ids.items()]
