"""What a pass is: a named transformation of programs with declared properties.

A pass module defines a transform and one factory:

    def unroll_loops() -> Pass:
        return create_function_pass(_unroll, "UnrollLoops", PassProperties(produced=property_set(...)))

A transform that changes nothing returns the object it was given; the pass then returns the same program.
Calling a pass fires the instruments of the active context. It verifies nothing: only a pipeline does.
"""

from __future__ import annotations

from collections.abc import Callable
from types import NoneType

from pypto import ir
from pypto.core.errors import internal_error
from pypto.core.garbage import paused_gc
from pypto.ir.node import expect, expect_callable
from pypto.passes.context import PassContext
from pypto.passes.properties import IRProperty, IRPropertySet, property_set

__all__ = [
    "IRProperty",
    "IRPropertySet",
    "Pass",
    "PassProperties",
    "create_function_pass",
    "create_program_pass",
    "prepared_by",
    "property_set",
]

ProgramTransform = Callable[["ir.Program"], "ir.Program"]
FunctionTransform = Callable[["ir.Function"], "ir.Function"]


class PassProperties:
    """What a pass requires, produces and invalidates.

    `nominal` are requirements that a pass declares for a device and that have no meaning here.
    """

    __slots__ = ("invalidated", "nominal", "produced", "required")

    def __init__(
        self,
        required: IRPropertySet | None = None,
        produced: IRPropertySet | None = None,
        invalidated: IRPropertySet | None = None,
        nominal: IRPropertySet | None = None,
    ) -> None:
        for given in (required, produced, invalidated, nominal):
            expect(given, (IRPropertySet, NoneType), "PassProperties: a set")
        self.required = required if required is not None else IRPropertySet()
        self.produced = produced if produced is not None else IRPropertySet()
        self.invalidated = invalidated if invalidated is not None else IRPropertySet()
        self.nominal = nominal if nominal is not None else IRPropertySet()


class Pass:
    """A transformation of programs. Made by `create_program_pass` and `create_function_pass` only."""

    __slots__ = ("_invalidated", "_name", "_nominal", "_produced", "_required", "_transform")

    _transform: ProgramTransform
    _name: str
    _required: IRPropertySet
    _produced: IRPropertySet
    _invalidated: IRPropertySet
    _nominal: IRPropertySet

    def __init__(self) -> None:
        raise TypeError("Pass cannot be constructed; use create_program_pass or create_function_pass")

    def __call__(self, program: ir.Program) -> ir.Program:
        """Run the pass; the instruments of the active context see the program before and after."""
        expect(program, ir.Program, f"the input of pass '{self._name}'")
        context = PassContext.current()
        instruments = context.get_instruments() if context is not None else []
        for instrument in instruments:
            instrument.run_before_pass(self, program)
        with paused_gc():
            result = self._transform(program)
        if result is None:
            raise internal_error(f"Pass '{self._name}' returned a null program")
        expect(result, ir.Program, f"the result of pass '{self._name}'")
        for instrument in instruments:
            instrument.run_after_pass(self, result)
        return result

    def get_name(self) -> str:
        """Return the name of the pass, e.g. `ConvertToSSA`."""
        return self._name

    def get_required_properties(self) -> IRPropertySet:
        """Return a copy of the required properties."""
        return self._required.copy()

    def get_produced_properties(self) -> IRPropertySet:
        """Return a copy of the produced properties."""
        return self._produced.copy()

    def get_invalidated_properties(self) -> IRPropertySet:
        """Return a copy of the invalidated properties."""
        return self._invalidated.copy()

    def get_checked_requirements(self) -> IRPropertySet:
        """Return the required properties without those that are required in name only."""
        return self._required.difference(self._nominal)

    def __repr__(self) -> str:
        return f"Pass({self._name})"


def create_program_pass(
    transform: ProgramTransform, name: str = "", properties: PassProperties | None = None
) -> Pass:
    """Make a pass from a transform of whole programs."""
    expect_callable(transform, "the transform of a pass")
    expect(name, str, "the name of a pass")
    expect(properties, (PassProperties, NoneType), "the properties of a pass")
    declared = properties if properties is not None else PassProperties()
    result = Pass.__new__(Pass)
    result._transform = transform
    result._name = name or "ProgramPass"
    result._required = declared.required.copy()
    result._produced = declared.produced.copy()
    result._invalidated = declared.invalidated.copy()
    result._nominal = declared.nominal.copy()
    return result


def create_function_pass(
    transform: FunctionTransform, name: str = "", properties: PassProperties | None = None
) -> Pass:
    """Make a pass that transforms every function of a program, in the order of their names."""
    expect_callable(transform, "the transform of a pass")
    pass_name = name or "FunctionPass"

    def transform_program(program: ir.Program) -> ir.Program:
        functions = list(program.functions_.values())
        results = [transform(function) for function in functions]
        if any(result is None for result in results):
            raise internal_error(f"Pass '{pass_name}' returned a null function")
        if all(old is new for old, new in zip(functions, results, strict=True)):
            return program
        return ir.Program(results, program.name, program.span)

    return create_program_pass(transform_program, pass_name, properties)


def prepared_by(first: Pass, second: Pass) -> Pass:
    """Make one pass that does what both do, in this order; to the outside it is the second."""

    def transform(program: ir.Program) -> ir.Program:
        return second._transform(first._transform(program))

    properties = PassProperties(second._required, second._produced, second._invalidated, second._nominal)
    return create_program_pass(transform, second._name, properties)
