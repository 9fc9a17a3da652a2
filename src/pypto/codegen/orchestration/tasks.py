"""The block of text that submits one task: payload, launch specification, dependencies, the submit call.

The payload is final before an id is asked for. What each line looks like depends on the direction only, so
the rules are a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pypto.backend import Backend910B, get_handler, is_backend_configured
from pypto.codegen.orchestration.dependencies import Dependency, dependencies_of, dependency_lines
from pypto.codegen.orchestration.emission import Emission
from pypto.codegen.orchestration.launches import Launch, Launches
from pypto.codegen.orchestration.payload import (
    Entry,
    OmittedOutput,
    creation_lines,
    directions_of,
    omitted_outputs,
    payload_of,
)
from pypto.codegen.orchestration.predicates import predicate_lines
from pypto.codegen.orchestration.results import bind_results
from pypto.codegen.orchestration.scalars import scalar_text
from pypto.codegen.registrations import tensor_signature
from pypto.core.errors import located
from pypto.ir.enums import ArgDirection
from pypto.ir.expr import Call, Expr, Submit, Var
from pypto.ir.program import Function

__all__ = ["submit_task"]

_ADD = {
    ArgDirection.Input: "add_input",
    ArgDirection.Output: "add_output",
    ArgDirection.OutputExisting: "add_output",
    ArgDirection.InOut: "add_inout",
    ArgDirection.NoDep: "add_no_dep",
    ArgDirection.Scalar: "add_scalar",
}


def submit_task(emission: Emission, launches: Launches, call: Call | Submit, result: Var | None) -> None:
    """Emit the task blocks of one dispatch, almost always one, and bind its result."""
    callee = emission.callee(call.op.name)
    steps = launches.of(callee)
    directions_of(call)
    if len(steps) > 1 and _predicate(call) is not None:
        raise ValueError(
            located(f"the group '{callee.name}' is several tasks; a predicate can guard only one", call.span)
        )
    deps = dependencies_of(emission, call)
    omitted = omitted_outputs(call, callee, steps[0], f"params_t{emission.tasks}")
    for line in creation_lines(emission, call, callee, omitted):
        emission.line(line)
    outputs = ""
    for launch in steps:
        is_last = launch is steps[-1]
        needs_outputs = isinstance(call, Submit) or bool(omitted) or not is_last
        outputs = _submit(emission, call, callee, launch, omitted, deps, needs_outputs)
        deps = [Dependency(f"{outputs}.task_id()", certain=True)]
    bind_results(
        emission, call, callee, result, outputs, [each.position for each in omitted], launches.scalars
    )


def _submit(
    emission: Emission,
    call: Call | Submit,
    callee: Function,
    launch: Launch,
    omitted: Sequence[OmittedOutput],
    deps: Sequence[Dependency],
    needs_outputs: bool,
) -> str:
    """One task block; the name of what the submit returns."""
    number = emission.tasks
    emission.tasks += 1
    task = f"params_t{number}"
    payload = payload_of(emission, call, callee, launch, omitted)
    signature = tensor_signature(entry.direction for entry in payload)
    lanes = [kernel for kernel in (launch.aic, launch.aiv) if kernel is not None]
    ids = {kernel.name: emission.registrations.id_of(kernel, signature) for kernel in lanes}
    mixed = _mixed_kernels(launch, ids)
    emission.blank()
    emission.line(f"// {launch.comment}" if launch.is_wrapped else f"// Task {number}: {launch.comment}")
    emission.line(f"CoreTaskArgs {task};")
    for line in _payload_lines(payload, task):
        emission.line(line)
    if mixed is not None:
        emission.line(f"MixedKernels mixed_{number} = {{{', '.join(mixed)}}};")
    for line in _options(emission, call, launch, task, deps):
        emission.line(line)
    outputs = f"task_{number}_outs"
    prefix = f"TaskOutputTensors {outputs} = " if needs_outputs else ""
    emission.line(f"{prefix}{_submit_text(launch, ids, mixed is not None, number, task)};")
    return outputs


def _payload_lines(payload: Sequence[Entry], task: str) -> list[str]:
    lines = [f"{task}.{_ADD[entry.direction]}({entry.text});" for entry in payload]
    dumped = dict.fromkeys(entry.text for entry in payload if entry.dumped)
    if dumped:
        lines.append(f"{task}.dump({', '.join(dumped)});")
    return lines


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
    predicate = _predicate(call)
    condition_lines = predicate_lines(emission, predicate, task) if predicate is not None else []
    dep_lines = dependency_lines(deps, task)
    if launch.is_wrapped:
        return [*launch_lines, *early_lines, *condition_lines, *dep_lines]
    return [*dep_lines, *launch_lines, *early_lines, *condition_lines]


def _predicate(call: Call | Submit) -> Expr | None:
    predicate: Expr | None = call.predicate if isinstance(call, Submit) else call.attrs_.get("predicate")
    return predicate


def _launch_lines(emission: Emission, call: Call | Submit, launch: Launch, task: str) -> list[str]:
    core_num, sync_start = _launch_spec(call)
    if core_num is None:
        core_num, sync_start = (
            launch.launched.attrs_.get("core_num"),
            launch.launched.attrs_.get("sync_start", False),
        )
    lines = []
    if core_num is not None:
        count = scalar_text(_CountScope(emission), core_num)
        lines.append(f"{task}.launch_spec.{_count_method()}({count});")
    if sync_start:
        lines.append(f"{task}.launch_spec.set_require_sync_start(true);")
    return lines


def _count_method() -> str:
    """What the configured architecture calls a block count; the runtime knows both names."""
    handler = get_handler() if is_backend_configured() else Backend910B.instance().get_handler()
    return handler.get_launch_spec_core_count_method()


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
