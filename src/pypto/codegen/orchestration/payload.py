"""What a task is passed: tensors first, then scalars, in the order in which the kernel wants them.

A Submit may leave trailing outputs to the runtime; they take part as descriptions of tensors to create.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pypto.codegen.extents import solve_extent
from pypto.codegen.orchestration.cpp_types import (
    NARROW_FLOATS,
    cpp_type,
    float_literal,
    int_literal,
    narrow_float_literal,
    runtime_token,
)
from pypto.codegen.orchestration.emission import Emission
from pypto.codegen.orchestration.launches import Launch
from pypto.codegen.orchestration.naming import base_name
from pypto.codegen.orchestration.scalar_results import with_arguments, with_parts_declared
from pypto.codegen.orchestration.scalars import scalar_dtype, scalar_text
from pypto.codegen.registrations import MAX_SCALARS, MAX_TENSORS
from pypto.core.dtype import DataType
from pypto.core.errors import InternalError, UsageError, located
from pypto.ir.enums import ArgDirection, ParamDirection
from pypto.ir.expr import Call, ConstBool, ConstFloat, ConstInt, Expr, Submit, Var
from pypto.ir.program import Function
from pypto.ir.return_lineage import argument_of_param
from pypto.ir.types import CommCtxType, ScalarType, TensorType
from pypto.passes.derive_call_directions import argument_slots

__all__ = ["Entry", "OmittedOutput", "creation_lines", "directions_of", "omitted_outputs", "payload_of"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One payload entry: how it is used, its C++ text, and whether its contents are marked for a dump."""

    direction: ArgDirection
    text: str
    dumped: bool = False


@dataclass(frozen=True, slots=True)
class OmittedOutput:
    """The Out parameter at `position`, left to the runtime; `info` describes the tensor to create."""

    position: int
    info: str


def directions_of(call: Call | Submit) -> tuple[ArgDirection, ...]:
    """How a dispatch uses its arguments."""
    directions: tuple[ArgDirection, ...] = call.attrs_.get("arg_directions", ())
    if len(directions) != len(call.args_):
        counts = f"{len(directions)} directions for {len(call.args_)} arguments"
        raise InternalError(
            located(
                f"the dispatch of '{call.op.name}' has {counts}: DeriveCallDirections did not run", call.span
            )
        )
    return directions


def payload_of(
    emission: Emission,
    call: Call | Submit,
    callee: Function,
    launch: Launch,
    omitted: Sequence[OmittedOutput],
) -> list[Entry]:
    """The entries of one task in final order."""
    directions = directions_of(call)
    dump_ids = {id(var) for var in call.attrs_.get("dump_vars", ())}

    given = dict(zip(callee.params_, call.args_, strict=False))

    def computed(scalar: Expr) -> Expr:
        return with_parts_declared(emission, with_arguments(scalar, given))

    def outer(position: int, param: Var, inner: ArgDirection | None = None) -> Entry:
        arg = call.args_[position]
        direction = directions[position]
        if direction is ArgDirection.Scalar:
            return Entry(direction, _scalar_value(emission, arg, param))
        if inner is not None:
            direction = _step_direction(direction, inner)
        marked = id(arg) in dump_ids or position in launch.dumped
        return Entry(direction, _tensor_value(emission, arg, callee), marked)

    if launch.payload is None:
        slots = argument_slots(call, callee)
        entries = [outer(position, callee.params_[slot or 0]) for position, slot in enumerate(slots)]
        entries += [Entry(ArgDirection.Output, each.info) for each in omitted]
    else:
        inner = launch.directions or (None,) * len(launch.payload)
        entries = [
            outer(entry, param, used)
            if isinstance(entry, int)
            else Entry(ArgDirection.Scalar, _scalar_value(emission, computed(entry), param))
            for entry, param, used in zip(launch.payload, launch.kernel.params_, inner, strict=True)
        ]
    _check_limits(launch, entries)
    # stable: tensors keep their order, and so do scalars
    return sorted(entries, key=lambda entry: entry.direction is ArgDirection.Scalar)


def _step_direction(outer: ArgDirection, inner: ArgDirection) -> ArgDirection:
    """How one of several tasks of a group uses an argument.

    As its own dispatch says, but in the order that the outer dispatch demands.
    """
    if outer is ArgDirection.NoDep:
        return outer
    if outer is ArgDirection.InOut and inner is ArgDirection.OutputExisting:
        return outer
    return inner


def _tensor_value(emission: Emission, arg: Expr, callee: Function) -> str:
    if not isinstance(arg, Var) or not isinstance(arg.type, TensorType):
        raise InternalError(
            located(
                f"'{callee.name}' gets a {type(arg).__name__} where a tensor variable is expected", arg.span
            )
        )
    return emission.binding(arg, arg.span).text


def _scalar_value(emission: Emission, arg: Expr, param: Var) -> str:
    """What is passed for the scalar parameter `param`: the bits of the argument in the parameter's type."""
    if isinstance(arg.type, CommCtxType) and isinstance(arg, Var):
        return emission.binding(arg, arg.span).text
    if not isinstance(arg.type, ScalarType) or isinstance(arg, Call | Submit):
        raise UsageError(
            located(
                f"a dispatch gets a {type(arg).__name__} of type {type(arg.type).__name__}; arguments are "
                "variables, literals or arithmetic on these here. Read what a kernel needs before it, into a "
                "variable",
                arg.span,
            )
        )
    binding = emission.binding(arg, arg.span) if isinstance(arg, Var) else None
    constant = arg if binding is None else binding.constant
    dtype, wanted = scalar_dtype(arg), scalar_dtype(param)
    _check_converts(dtype, wanted, arg, param)
    if isinstance(constant, ConstInt | ConstFloat | ConstBool):
        return _constant_bits(constant, wanted)
    text = scalar_text(emission, arg)
    if binding is None or not _same_low_bits(dtype, wanted):
        text = f"static_cast<{cpp_type(wanted)}>({text})"
    return f"to_u64({text})" if wanted.is_float() else text


def _check_converts(given: DataType, wanted: DataType, arg: Expr, param: Var) -> None:
    """Raise `ValueError` for a scalar that its parameter cannot take as it is."""
    if given is wanted or not (given.is_float() or wanted in NARROW_FLOATS):
        return
    if isinstance(arg, ConstInt | ConstFloat):
        if wanted.is_float() or float(arg.value).is_integer():
            return
    elif wanted.is_float() and wanted not in NARROW_FLOATS and given not in NARROW_FLOATS:
        return
    raise ValueError(
        located(
            f"the scalar parameter '{base_name(param.name_hint)}' of type {wanted} gets a value of type "
            f"{given}; convert it with pl.cast",
            arg.span,
        )
    )


def _same_low_bits(given: DataType, wanted: DataType) -> bool:
    """Whether the kernel, which takes the low bytes of 64 zero-extended bits, finds the value there."""
    if given is wanted:
        return True
    if given.is_float() or wanted.is_float() or wanted is DataType.BOOL:
        return False
    return not given.is_signed_int() or wanted.get_bit() <= given.get_bit()


def _constant_bits(value: ConstInt | ConstFloat | ConstBool, wanted: DataType) -> str:
    if isinstance(value, ConstBool) or wanted is DataType.BOOL:
        return f"(uint64_t){int(bool(value.value))}"
    if wanted in NARROW_FLOATS:
        return f"to_u64({narrow_float_literal(wanted, float(value.value))})"
    if wanted.is_float():
        return f"to_u64({float_literal(float(value.value))})"
    number = int_literal(int(value.value))
    dtype = wanted if isinstance(value, ConstFloat) else value.dtype
    if dtype in (DataType.INT64, DataType.INDEX):
        return f"(uint64_t){number}"
    return f"(uint64_t)static_cast<{cpp_type(dtype)}>({number})"


def _check_limits(launch: Launch, payload: Sequence[Entry]) -> None:
    scalars = sum(entry.direction is ArgDirection.Scalar for entry in payload)
    tensors = len(payload) - scalars
    if tensors > MAX_TENSORS:
        raise ValueError(
            f"'{launch.kernel.name}' is passed {tensors} tensors; a task takes at most {MAX_TENSORS}"
        )
    if scalars > MAX_SCALARS:
        raise ValueError(
            f"'{launch.kernel.name}' is passed {scalars} scalars; a task takes at most {MAX_SCALARS}"
        )


def omitted_outputs(call: Call | Submit, callee: Function, launch: Launch, task: str) -> list[OmittedOutput]:
    gap = len(callee.params_) - len(call.args_)
    if gap == 0:
        return []
    counts = f"{len(call.args_)} arguments for {len(callee.params_)} parameters"
    what = f"the dispatch of '{callee.name}' passes {counts}"
    if gap < 0 or isinstance(call, Call) or launch.is_wrapped:
        raise InternalError(located(what, call.span))
    contexts = 0
    while contexts < len(call.args_) and isinstance(callee.params_[-1 - contexts].type, CommCtxType):
        contexts += 1
    first = len(call.args_) - contexts
    omitted = []
    for position in range(first, first + gap):
        if callee.param_directions_[position] is not ParamDirection.Out:
            name = callee.params_[position].name_hint
            raise InternalError(
                located(f"{what}, but '{name}' is no Out parameter and cannot be omitted", call.span)
            )
        omitted.append(OmittedOutput(position, f"{task}_synth_out_{position}"))
    return omitted


def creation_lines(
    emission: Emission, call: Call | Submit, callee: Function, omitted: Sequence[OmittedOutput]
) -> list[str]:
    scope = _CalleeScope(emission, call, callee)
    lines = []
    for each in omitted:
        type_ = callee.params_[each.position].type
        assert isinstance(type_, TensorType)
        extents = ", ".join(_extent_text(scope, dim) for dim in type_.shape_)
        rank = len(type_.shape_)
        lines.append(f"uint32_t {each.info}_shapes[{rank}] = {{{extents}}};")
        token = runtime_token(type_.dtype)
        lines.append(f"TensorCreateInfo {each.info}({each.info}_shapes, {rank}, {token});")
    return lines


def _extent_text(scope: _CalleeScope, dim: Expr) -> str:
    return (
        str(dim.value) if isinstance(dim, ConstInt) else f"static_cast<uint32_t>({scalar_text(scope, dim)})"
    )


@dataclass(frozen=True, slots=True)
class _CalleeScope:
    """The callee's symbols as the caller sees them: its own symbols, its scalar arguments, extents of its
    arguments."""

    emission: Emission
    call: Call | Submit
    callee: Function

    def text_of(self, var: Var) -> str:
        own = self.emission.lookup(var)
        if own is not None:
            return own.text
        for index, param in enumerate(self.callee.params_):
            arg = argument_of_param(self.call, self.callee, index)
            if not isinstance(arg, Var):
                continue
            if param is var:
                return self.emission.binding(arg).text
            if isinstance(param.type, TensorType):
                for axis, dim in enumerate(param.type.shape_):
                    solved = solve_extent(dim)
                    if solved is not None and solved.exact and solved.var is var:
                        extent = f"(int64_t){self.emission.binding(arg).text}.shapes[{axis}]"
                        return f"({extent}{solved.undo})" if solved.undo else extent
        raise ValueError(
            located(
                f"the extent '{var.name_hint}' of an output of '{self.callee.name}' is not given by any "
                "argument; "
                "create the output and pass it",
                self.call.span,
            )
        )

    def is_non_negative_var(self, var: Var) -> bool:
        return True

    def query_text(self, call: Call) -> str:
        return self.emission.query_text(call)

    def need_helper(self, name: str) -> None:
        self.emission.need_helper(name)
