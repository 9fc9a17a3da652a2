"""The block of text that submits one task: payload, launch specification, dependencies, the submit call.

The payload is final before an id is asked for: tensors first, then scalars, in the order in which the kernel
wants them. What each line looks like depends on the direction only, so the rules are tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pypto.codegen.orchestration.cpp_types import (
    cpp_type,
    float_literal,
    int_literal,
    narrow_float_literal,
    runtime_token,
)
from pypto.codegen.orchestration.dependencies import Dependency, dependencies_of, dependency_lines
from pypto.codegen.orchestration.emission import Emission
from pypto.codegen.orchestration.launches import Launch, Launches
from pypto.codegen.orchestration.predicates import predicate_lines
from pypto.codegen.orchestration.results import bind_results
from pypto.codegen.orchestration.scalars import scalar_dtype, scalar_text
from pypto.codegen.registrations import MAX_SCALARS, MAX_TENSORS, tensor_signature
from pypto.core.dtype import DataType
from pypto.core.errors import InternalError, located
from pypto.ir.enums import ArgDirection, ParamDirection
from pypto.ir.expr import Call, ConstBool, ConstFloat, ConstInt, Expr, Submit, Var
from pypto.ir.program import Function
from pypto.ir.return_lineage import argument_of_param
from pypto.ir.types import CommCtxType, TensorType

__all__ = ["submit_task"]

_ADD = {
    ArgDirection.Input: "add_input",
    ArgDirection.Output: "add_output",
    ArgDirection.OutputExisting: "add_output",
    ArgDirection.InOut: "add_inout",
    ArgDirection.NoDep: "add_no_dep",
    ArgDirection.Scalar: "add_scalar",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One payload entry: how it is used, its C++ text, and whether its contents are marked for a dump."""

    direction: ArgDirection
    text: str
    dumped: bool = False


@dataclass(frozen=True, slots=True)
class OmittedOutput:
    """The Out parameter at `position`, left to the runtime."""

    position: int
    info: str


def submit_task(emission: Emission, launches: Launches, call: Call | Submit, result: Var | None) -> None:
    """Emit the task block of one dispatch and bind its result."""
    callee = emission.callee(call.op.name)
    launch = launches.of(callee)
    directions = _directions(call)
    deps = dependencies_of(emission, call)
    task = f"params_t{emission.tasks}"
    number = emission.tasks
    emission.tasks += 1
    omitted = _omitted_outputs(emission, call, callee, launch, task)
    payload = _payload(emission, call, callee, launch, directions, omitted)
    _check_limits(launch, payload)
    signature = tensor_signature(entry.direction for entry in payload)
    ids = {kernel.name: emission.registrations.id_of(kernel, signature) for kernel in _lanes(launch)}

    emission.blank()
    for line in _creation_lines(emission, call, callee, omitted):
        emission.line(line)
    emission.line(f"// {launch.comment}" if launch.is_wrapped else f"// Task {number}: {launch.comment}")
    emission.line(f"CoreTaskArgs {task};")
    for entry in payload:
        emission.line(f"{task}.{_ADD[entry.direction]}({entry.text});")
    dumped = [entry.text for entry in payload if entry.dumped]
    if dumped:
        emission.line(f"{task}.dump({', '.join(dict.fromkeys(dumped))});")
    mixed = _mixed_kernels(launch, ids)
    if mixed is not None:
        emission.line(f"MixedKernels mixed_{number} = {{{', '.join(mixed)}}};")
    for line in _options(emission, call, launch, task, deps):
        emission.line(line)
    needs_outputs = isinstance(call, Submit) or bool(omitted)
    outputs = f"task_{number}_outs"
    prefix = f"TaskOutputTensors {outputs} = " if needs_outputs else ""
    emission.line(f"{prefix}{_submit_text(launch, ids, mixed is not None, number, task)};")
    bind_results(emission, call, callee, result, outputs, [each.position for each in omitted])


def _lanes(launch: Launch) -> list[Function]:
    return [kernel for kernel in (launch.aic, launch.aiv) if kernel is not None]


def _directions(call: Call | Submit) -> tuple[ArgDirection, ...]:
    directions: tuple[ArgDirection, ...] = call.attrs_.get("arg_directions", ())
    if len(directions) != len(call.args_):
        raise InternalError(
            located(
                f"the dispatch of '{call.op.name}' has {len(directions)} directions for {len(call.args_)} "
                "arguments: "
                "DeriveCallDirections did not run",
                call.span,
            )
        )
    return directions


#
# --- payloa
# --- payload


def _payload(
    emission: Emission,
    call: Call | Submit,
    callee: Function,
    launch: Launch,
    directions: Sequence[ArgDirection],
    omitted: Sequence[OmittedOutput],
) -> list[Entry]:
    """The entries in final order."""
    dump_ids = {id(var) for var in call.attrs_.get("dump_vars", ())}

    def outer(position: int) -> Entry:
        arg = call.args_[position]
        direction = directions[position]
        if direction is ArgDirection.Scalar:
            return Entry(direction, _scalar_value(emission, arg))
        marked = id(arg) in dump_ids or position in launch.dumped
        return Entry(direction, _tensor_value(emission, arg, callee), marked)

    if launch.payload is None:
        entries = [outer(position) for position in range(len(call.args_))]
        entries += [Entry(ArgDirection.Output, each.info) for each in omitted]
    else:
        entries = [
            outer(entry)
            if isinstance(entry, int)
            else Entry(ArgDirection.Scalar, _scalar_value(emission, entry))
            for entry in launch.payload
        ]
    # stable: tensors keep their order, and so do scalars
    return sorted(entries, key=lambda entry: entry.direction is ArgDirection.Scalar)


def _tensor_value(emission: Emission, arg: Expr, callee: Function) -> str:
    if not isinstance(arg, Var) or not isinstance(arg.type, TensorType):
        raise InternalError(
            located(
                f"'{callee.name}' gets a {type(arg).__name__} where a tensor variable is expected", arg.span
            )
        )
    return emission.binding(arg, arg.span).text


def _scalar_value(emission: Emission, arg: Expr) -> str:
    if isinstance(arg, ConstInt | ConstFloat | ConstBool):
        return _constant_bits(arg)
    if not isinstance(arg, Var):
        raise InternalError(
            located(
                f"a dispatch gets a {type(arg).__name__}; arguments are variables or literals here", arg.span
            )
        )
    binding = emission.binding(arg, arg.span)
    if binding.constant is not None:
        return _constant_bits(binding.constant)
    if isinstance(arg.type, CommCtxType):
        return binding.text
    dtype = scalar_dtype(arg)
    return f"to_u64({binding.text})" if dtype.is_float() else binding.text


def _constant_bits(value: Expr) -> str:
    if isinstance(value, ConstBool):
        return f"(uint64_t){int(value.value)}"
    assert isinstance(value, ConstInt | ConstFloat)
    dtype = value.dtype
    if dtype is DataType.FP32:
        return f"to_u64({float_literal(float(value.value))})"
    if dtype.is_float():
        return f"to_u64({narrow_float_literal(dtype, float(value.value))})"
    number = int_literal(int(value.value))
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


# --- omitted outputs


def _omitted_outputs(
    emission: Emission, call: Call | Submit, callee: Function, launch: Launch, task: str
) -> list[OmittedOutput]:
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


def _creation_lines(
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
                    if dim is var:
                        return f"(int64_t){self.emission.binding(arg).text}.shapes[{axis}]"
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


#
# --- launc
# --- launch


def _mixed_kernels(launch: Launch, ids: dict[str, int]) -> tuple[str, str, str] | None:
    """The kernels of the three lanes when more than one is active."""
    absent = "INVALID_KERNEL_ID"
    if launch.aiv is None or (launch.aic is None and not launch.is_dual):
        return None
    aic = str(ids[launch.aic.name]) if launch.aic is not None else absent
    aiv = str(ids[launch.aiv.name])
    return (aic, aiv, aiv if launch.is_dual else absent)


def _submit_text(launch: Launch, ids: dict[str, int], is_mixed: bool, number: int, task: str) -> str:
    if is_mixed:
        return f"rt_submit_task(mixed_{number}, {task})"
    lane = "aic" if launch.aic is not None else "aiv"
    return f"rt_submit_{lane}_task({ids[launch.kernel.name]}, {task})"


def _options(
    emission: Emission, call: Call | Submit, launch: Launch, task: str, deps: Sequence[Dependency]
) -> list[str]:
    """Launch specification, early resolve, predicate and dependencies; the order differs between kinds of
    dispatch."""
    launch_lines = _launch_lines(emission, call, launch, task)
    early = call.allow_early_resolve if isinstance(call, Submit) else call.attrs_.get("allow_early_resolve")
    early_lines = [f"{task}.set_allow_early_resolve(true);"] if early else []
    predicate = call.predicate if isinstance(call, Submit) else call.attrs_.get("predicate")
    condition_lines = predicate_lines(emission, predicate, task) if predicate is not None else []
    dep_lines = dependency_lines(deps, task)
    if launch.is_wrapped:
        return [*launch_lines, *early_lines, *condition_lines, *dep_lines]
    return [*dep_lines, *launch_lines, *early_lines, *condition_lines]


def _launch_lines(emission: Emission, call: Call | Submit, launch: Launch, task: str) -> list[str]:
    core_num, sync_start = _launch_spec(call)
    if core_num is None:
        core_num, sync_start = (
            launch.launched.attrs_.get("core_num"),
            launch.launched.attrs_.get("sync_start", False),
        )
    lines = []
    if core_num is not None:
        lines.append(f"{task}.launch_spec.set_block_num({scalar_text(_CountScope(emission), core_num)});")
    if sync_start:
        lines.append(f"{task}.launch_spec.set_require_sync_start(true);")
    return lines


def _launch_spec(call: Call | Submit) -> tuple[Expr | None, bool]:
    if isinstance(call, Submit):
        return call.core_num, call.sync_start
    return call.attrs_.get("core_num"), bool(call.attrs_.get("sync_start", False))


@dataclass(frozen=True, slots=True)
class _CountScope:
    """The surroundings of a block count. A launch is valid for positive counts only, so variables in it are
    taken to be at least zero, and division needs no rounding."""

    emission: Emission

    def text_of(self, var: Var) -> str:
        return self.emission.text_of(var)

    def is_non_negative_var(self, var: Var) -> bool:
        return True

    def query_text(self, call: Call) -> str:
        return self.emission.query_text(call)

    def need_helper(self, name: str) -> None:
        self.emission.need_helper(name)
