"""CallDirectionsResolved: every dispatch says how it uses each argument, in agreement with its callee."""

from __future__ import annotations

from collections.abc import Iterator

from pypto import ir
from pypto.passes.derive_call_directions import effective_wrapper_directions
from pypto.passes.diagnostics import Diagnostic, error
from pypto.passes.verify.dispatches import Dispatch, dispatches_of

_RULE = "CallDirectionsResolved"
_A = ir.ArgDirection
_ALLOWED = {
    ir.ParamDirection.In: frozenset({_A.Input, _A.NoDep}),
    ir.ParamDirection.InOut: frozenset({_A.InOut, _A.OutputExisting, _A.NoDep}),
    ir.ParamDirection.Out: frozenset({_A.Output, _A.OutputExisting, _A.InOut, _A.NoDep}),
}


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return the dispatches and wrappers with missing or wrong directions."""
    found: list[Diagnostic] = []
    for name, directions in effective_wrapper_directions(program).items():
        wrapper = program.functions_[name]
        if tuple(directions) != wrapper.param_directions_:
            message = f"Parameter directions of wrapper '{name}' differ from what its dispatches do"
            found.append(error(_RULE, 0, message, wrapper.span))
    for function in program.functions_.values():
        for call in dispatches_of(function):
            callee = program.functions_.get(call.op.name)
            if callee is not None:
                found += _dispatch(call, callee)
    return found


def _dispatch(call: Dispatch, callee: ir.Function) -> Iterator[Diagnostic]:
    directions = call.attrs_.get("arg_directions", ())
    if len(directions) != len(call.args_):
        counts = f"{len(directions)} arg_directions for {len(call.args_)} arguments"
        message = f"Dispatch of '{callee.name}' has {counts}"
        yield error(_RULE, 0, message, call.span)
        return
    gap = len(callee.params_) - len(call.args_)
    for index, (argument, direction) in enumerate(zip(call.args_, directions, strict=True)):
        what = f"argument {index} of the dispatch of '{callee.name}'"
        if not isinstance(argument.type, ir.TensorType):
            if direction is not _A.Scalar:
                yield error(_RULE, 0, f"{what} is no tensor but has direction {direction.name}", call.span)
            continue
        if direction is _A.Scalar:
            yield error(_RULE, 0, f"{what} is a tensor but has direction Scalar", call.span)
        elif gap == 0:
            declared = callee.param_directions_[index]
            if direction not in _ALLOWED[declared]:
                message = f"{what} has direction {direction.name}, but the parameter is {declared.name}"
                yield error(_RULE, 0, message, call.span)
