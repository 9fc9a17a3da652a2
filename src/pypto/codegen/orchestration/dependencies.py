"""Declared dependencies of a task.

A task id names a task of a scope; when the scope's block has closed, the id is gone, and a dependency on it
cannot be honored. Ids kept in carries and arrays outlive blocks, but may be invalid, so they are guarded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pypto.codegen.orchestration.emission import Binding, Emission
from pypto.core.errors import InternalError, located
from pypto.ir.expr import Call, Expr, Submit, Var
from pypto.ir.types import ArrayType

__all__ = ["Dependency", "dependencies_of", "dependency_lines", "submit_barrier"]


@dataclass(frozen=True, slots=True)
class Dependency:
    """One id to wait for."""

    text: str
    certain: bool  # never invalid


def dependencies_of(emission: Emission, call: Call | Submit) -> list[Dependency]:
    """The ids that a dispatch waits for, each once, array elements one by one."""
    declared = call.deps_ if isinstance(call, Submit) else call.attrs_.get("manual_dep_edges", ())
    found = _resolve(emission, declared, call, derived=False)
    found += _resolve(emission, call.attrs_.get("compiler_manual_dep_edges", ()), call, derived=True)
    return list({dep.text: dep for dep in found}.values())


def dependency_lines(deps: Sequence[Dependency], task: str) -> list[str]:
    """The lines that attach `deps` to the arguments `task`; none for no dependency."""
    if not deps:
        return []
    count = f"{task}_deps_count"
    append = f"{task}_deps[{count}++]"
    return [
        f"PTO2TaskId {task}_deps[{len(deps)}];",
        f"uint32_t {count} = 0;",
        *(
            f"{append} = {dep.text};" if dep.certain else f"if ({dep.text}.is_valid()) {append} = {dep.text};"
            for dep in deps
        ),
        f"{task}.set_dependencies({task}_deps, {count});",
    ]


def submit_barrier(emission: Emission, call: Call, result: Var | None) -> None:
    """`system.task_dummy`: a task without a kernel that others can wait for."""
    deps = dependencies_of(emission, call)
    number = emission.barriers
    emission.barriers += 1
    task = f"params_phase_fence_barrier_{number}"
    outputs = f"phase_fence_barrier_{number}_outs"
    emission.blank()
    emission.line(f"// Phase-fence barrier {number}: dependency-only dummy task")
    emission.line(f"CoreTaskArgs {task};")
    for line in dependency_lines(deps, task):
        emission.line(line)
    submit = f"TaskOutputTensors {outputs} = rt_submit_dummy_task({task});"
    if not deps:
        emission.line(submit)
        if result is not None:
            name = emission.names.of_variable(result)
            emission.line(f"PTO2TaskId {name} = {outputs}.task_id();")
            emission.bind(result, Binding(name, emission.block, certain=True))
        return
    name = emission.names.of_variable(result) if result is not None else ""
    if name:
        emission.line(f"PTO2TaskId {name} = PTO2TaskId::invalid();")
    emission.line(f"if ({task}_deps_count > 0) {{")
    emission.line(f"    {submit}")
    if name:
        emission.line(f"    {name} = {outputs}.task_id();")
    emission.line("}")
    if result is not None:
        emission.bind(result, Binding(name, emission.block))


def _resolve(
    emission: Emission, deps: Iterable[Expr], call: Call | Submit, *, derived: bool
) -> list[Dependency]:
    found: list[Dependency] = []
    for dep in {id(dep): dep for dep in deps}.values():
        if not isinstance(dep, Var):
            raise InternalError(located(f"a dependency of '{call.op.name}' is no variable", call.span))
        binding = emission.lookup(dep)
        if binding is None:
            raise InternalError(
                located(f"the dependency '{dep.name_hint}' of '{call.op.name}' is not defined", call.span)
            )
        if binding.block is not None and not binding.block.is_open:
            if derived:
                continue
            raise ValueError(
                located(
                    f"the dependency '{dep.name_hint}' of '{call.op.name}' cannot be honored: its task "
                    "belongs to a "
                    "scope that has closed (loop bodies and branches are scopes); carry the id out through "
                    "the loop, "
                    "or keep it in an array declared outside",
                    call.span,
                )
            )
        found += _entries(dep, binding)
    return found


def _entries(dep: Var, binding: Binding) -> list[Dependency]:
    slots = binding.slots or (_extent(dep.type) if isinstance(dep.type, ArrayType) else 0)
    if slots:
        return [Dependency(f"{binding.text}[{slot}]", False) for slot in range(slots)]
    if binding.constant is not None:
        return []
    return [Dependency(binding.text, binding.certain)]


def _extent(type_: ArrayType) -> int:
    return int(type_.extent.value)  # type: ignore[attr-defined]
