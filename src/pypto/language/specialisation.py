"""Functions that are parsed anew for what they are called with.

The parser knows them by two classes only: a captured `SpecialisedFunction` gives, at each call, the
`ir.Function` for the arguments of that call; and a `Specialisation` says what is known of a function's
parameters when its body is parsed. Which functions exist, and when two calls share one, is decided by the
layer that implements them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pypto import ir

if TYPE_CHECKING:
    from pypto.language.parser.program_context import ProgramContext

Constant = int | float | bool


@dataclass(frozen=True, slots=True)
class GivenParameter:
    """A parameter whose type does not come from its annotation."""

    name: str
    type: ir.Type
    direction: ir.ParamDirection
    constant: Constant | None = None  # the value that stands for the parameter in the body


@dataclass(frozen=True, slots=True)
class Specialisation:
    """One version of a function: its name in the program and its parameters."""

    name: str
    parameters: Sequence[GivenParameter]

    @property
    def constants(self) -> dict[str, Constant]:
        """Values of the parameters that have one."""
        return {p.name: p.constant for p in self.parameters if p.constant is not None}

    @property
    def output_names(self) -> list[str]:
        """Names of the parameters that the function writes."""
        return [p.name for p in self.parameters if p.direction is not ir.ParamDirection.In]


@dataclass(frozen=True, slots=True)
class GivenArguments:
    """The arguments of one call, in the order of the callee's parameters.

    `constants` holds those that are, by plain name, a parameter of the caller with a known value.
    """

    values: Sequence[ir.Expr]
    span: ir.Span
    constants: Mapping[int, Constant] = field(default_factory=dict)


class SpecialisedFunction(ABC):
    """A function that gets an `ir.Function` per combination of argument types."""

    __name__: str

    @property
    @abstractmethod
    def parameter_names(self) -> list[str]:
        """Names of the positional parameters, in order."""

    @abstractmethod
    def specialise(self, program: ProgramContext, arguments: GivenArguments) -> ir.Function:
        """The version for these arguments, made part of the program when it is new."""
