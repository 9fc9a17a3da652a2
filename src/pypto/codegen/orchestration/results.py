"""What the result of a dispatch is called.

A result that the callee writes through one of its parameters is the argument passed there: nothing is
declared. Which parameter, the callee's return says. A scalar result does not come back from a kernel; where
the callee computes it from its arguments alone, it is computed here once more.
"""

from __future__ import annotations

from collections.abc import Sequence

from pypto.codegen.orchestration.cpp_types import cpp_type, zero_literal
from pypto.codegen.orchestration.emission import (
    Binding,
    Emission,
    PendingOutput,
    PendingTaskId,
    Placeholder,
    TupleBinding,
)
from pypto.codegen.orchestration.naming import base_name
from pypto.codegen.orchestration.scalar_results import Scalars, with_parts_declared
from pypto.codegen.orchestration.scalars import scalar_text
from pypto.core.dtype import DataType
from pypto.core.errors import InternalError, located
from pypto.core.logging import log_warn
from pypto.ir.enums import ParamDirection
from pypto.ir.expr import Call, Expr, Submit, TupleGetItemExpr, Var
from pypto.ir.program import Function
from pypto.ir.return_lineage import ReturnedParams, argument_of_param, explicit_returned_params
from pypto.ir.types import ScalarType, TupleType, Type

__all__ = ["bind_item", "bind_results"]

Element = Binding | PendingTaskId | PendingOutput | Placeholder | None


def bind_results(
    emission: Emission,
    call: Call | Submit,
    callee: Function,
    result: Var | None,
    outputs: str,
    omitted: Sequence[int],
    scalars: Scalars,
) -> None:
    """Bind the variable that a dispatch is assigned to. `omitted` parameters are left to the runtime."""
    if result is None or id(result) not in emission.used:
        return
    types = _result_types(call, result)
    returned = _returned_params(callee, len(types), call)
    elements: list[Element] = []
    for position, (type_, param) in enumerate(zip(types, returned, strict=True)):
        if param is not None and param in omitted:
            elements.append(PendingOutput(outputs, omitted.index(param)))
        elif param is not None:
            elements.append(_argument_binding(emission, call, callee, param))
        else:
            elements.append(_scalar_result(scalars, call, position, type_))
    if isinstance(call, Submit):
        elements.append(PendingTaskId(outputs))
    if isinstance(result.type, TupleType):
        emission.bind(result, TupleBinding(tuple(elements)))
    elif elements:
        _bind_element(emission, result, elements[0], call)


def bind_item(emission: Emission, var: Var, item: TupleGetItemExpr) -> None:
    """Bind the variable that one element of a tuple result is assigned to."""
    elements = emission.tuple_of(item.tuple).elements
    _bind_element(emission, var, elements[item.index], item)


def _bind_element(emission: Emission, var: Var, element: Element, source: Expr) -> None:
    if id(var) not in emission.used:
        return
    if isinstance(element, Binding):
        emission.bind(var, element)
    elif isinstance(element, PendingTaskId):
        name = emission.names.of_variable(var)
        emission.line(f"PTO2TaskId {name} = {element.outputs}.task_id();")
        emission.bind(var, Binding(name, emission.block, certain=True))
    elif isinstance(element, PendingOutput):
        output = f"{element.outputs}.get_ref({element.index})"
        emission.declare(var, "ChipTensor", output, is_reference=True)
    elif isinstance(element, Placeholder):
        emission.declare(var, cpp_type(element.dtype), _scalar_value(emission, var, element, source))
    else:
        raise InternalError(
            located(
                f"the result '{var.name_hint}' is not written through a parameter of its callee, so "
                "nothing holds it",
                source.span,
            )
        )


def _scalar_result(scalars: Scalars, call: Call | Submit, position: int, type_: Type) -> Placeholder | None:
    return Placeholder(type_.dtype, scalars.result(call, position)) if isinstance(type_, ScalarType) else None


def _scalar_value(emission: Emission, var: Var, element: Placeholder, source: Expr) -> str:
    if element.value is not None:
        return scalar_text(emission, with_parts_declared(emission, element.value))
    log_warn(
        located(
            f"'{base_name(var.name_hint)}' is computed in a kernel by a branch, by a loop or from what the "
            "kernel reads, and a task hands back tensors only: it is 0 outside. Compute it outside the "
            "scope, or write it to a tensor and read it from there",
            source.span,
        )
    )
    return zero_literal(element.dtype)


def _result_types(call: Call | Submit, result: Var) -> list[Type]:
    """The types of the callee's results, without the task id of a Submit."""
    if not isinstance(result.type, TupleType):
        return [result.type]
    types = list(result.type.types_)
    if isinstance(call, Submit):
        last = types.pop()
        if not (isinstance(last, ScalarType) and last.dtype is DataType.TASK_ID):
            raise InternalError(
                located(f"the submit of '{call.op.name}' does not end in a task id", call.span)
            )
    return types


def _returned_params(callee: Function, count: int, call: Call | Submit) -> ReturnedParams:
    """Per result the parameter that it is."""
    explicit = explicit_returned_params(callee)
    if len(explicit) == count and None not in explicit:
        return explicit
    written = tuple(
        index
        for index, direction in enumerate(callee.param_directions_)
        if direction in (ParamDirection.Out, ParamDirection.InOut)
    )
    if count == 1 and (not explicit or explicit == (None,)) and _is_tensor_result(callee):
        if len(written) == 1:
            return written
        raise InternalError(
            located(
                f"'{callee.name}' writes {len(written)} parameters and does not say which one it returns",
                call.span,
            )
        )
    if not explicit and count > 1:
        # without a map the last results align with the written parameters
        aligned = written[-count:]
        return (*([None] * (count - len(aligned))), *aligned)
    return (*explicit, *([None] * (count - len(explicit))))[:count]


def _is_tensor_result(callee: Function) -> bool:
    return not (callee.return_types_ and isinstance(callee.return_types_[0], ScalarType))


def _argument_binding(emission: Emission, call: Call | Submit, callee: Function, param: int) -> Binding:
    arg = argument_of_param(call, callee, param)
    if not isinstance(arg, Var):
        raise InternalError(
            located(
                f"'{callee.name}' returns a parameter for which '{emission.function.name}' passes no "
                "variable",
                call.span,
            )
        )
    return emission.binding(arg, call.span)
