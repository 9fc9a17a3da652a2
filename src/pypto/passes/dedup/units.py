"""What may be merged: ordinary kernels and bundles, with the reason for everything that may not.

A *bundle* is a Group function (the bridge) with all kernels that its body calls, in first-use order. It
is merged as a whole or not at all, so it must own its members: nobody else may name one. Bundles are
found before ordinary kernels, because a member of any Group is never an ordinary kernel.

Whatever is not referenced is kept: it may be an entry that a caller outside the program uses.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pypto import ir
from pypto.ir.types import MemRefType
from pypto.passes.dedup.reasons import Kept, Reason
from pypto.passes.dedup.reference_index import FunctionFacts, ReferenceIndex
from pypto.passes.dedup.value_rules import HANDLE_TYPES, find_escaping_handle, find_unknown_value

__all__ = ["Unit", "Units", "find_units"]

_UNREFERENCED = "nothing in the program names it, so it may be an entry; call it, or delete it"
_INLINE = "make that a pl.FunctionType.Inline function"
_MEMBER_KINDS = (ir.FunctionType.InCore, ir.FunctionType.AIC, ir.FunctionType.AIV)
_RESOURCES: dict[type, str] = {
    ir.MemRef: "memory that is placed explicitly",
    MemRefType: "memory that is placed explicitly",
    ir.PtrType: "a raw allocation",
    ir.WindowBufferType: "a communication window",
    ir.WindowBuffer: "a communication window",
    ir.CommCtxType: "a communication context",
}


@dataclass(frozen=True, slots=True)
class Unit:
    """What is merged as a whole: a kernel, or a bridge followed by its members in first-use order."""

    functions: tuple[ir.Function, ...]
    weight: int

    @property
    def name(self) -> str:
        return self.functions[0].name

    @property
    def members(self) -> tuple[str, ...]:
        return tuple(function.name for function in self.functions[1:])

    @property
    def is_bundle(self) -> bool:
        return self.functions[0].func_type is ir.FunctionType.Group


@dataclass(frozen=True, slots=True)
class Units:
    """All units of a program: candidates for merging, and those that are kept for a reason.

    Every function is in one unit, except that a member shared by two Groups shows in the unit of each.
    """

    candidates: tuple[Unit, ...]
    kept: tuple[tuple[Unit, Kept], ...]


def find_units(program: ir.Program, index: ReferenceIndex) -> Units:
    """Divide the functions of `program` into units, in name order, and decide which may be merged."""
    groups = [f for f in program.functions_.values() if f.func_type is ir.FunctionType.Group]
    groups_of: dict[str, list[str]] = {}
    for group in groups:
        for member in _members(group, program, index):
            groups_of.setdefault(member.name, []).append(group.name)
    candidates: list[Unit] = []
    kept: list[tuple[Unit, Kept]] = []
    for name, function in program.functions_.items():
        if function.func_type is ir.FunctionType.Group:
            members = tuple(_members(function, program, index))
            unit = _unit((function, *members), index)
            problem = _problem_of_bundle(unit, program, index, groups_of)
        elif name in groups_of:
            continue  # part of the unit of its Group, or of the first of its Groups
        else:
            unit = _unit((function,), index)
            problem = _problem_of_kernel(function, index)
        if problem is None:
            candidates.append(unit)
        else:
            kept.append((unit, problem))
    return Units(tuple(candidates), tuple(kept))


def _unit(functions: tuple[ir.Function, ...], index: ReferenceIndex) -> Unit:
    return Unit(functions, sum(index.facts[function.name].weight for function in functions))


def _members(group: ir.Function, program: ir.Program, index: ReferenceIndex) -> list[ir.Function]:
    called = (program.functions_[name] for name in index.facts[group.name].callees)
    return [function for function in called if function.func_type in _MEMBER_KINDS]


def _problem_of_bundle(
    unit: Unit, program: ir.Program, index: ReferenceIndex, groups_of: Mapping[str, list[str]]
) -> Kept | None:
    bridge = unit.functions[0]
    inside = {function.name for function in unit.functions}
    for member in unit.members:
        if len(groups_of[member]) > 1:
            others = ", ".join(f"'{name}'" for name in groups_of[member] if name != bridge.name)
            return Kept(
                Reason.SHARED_MEMBER,
                f"member '{member}' also belongs to {others}; give each Group members of its own",
            )
    for member in unit.members:
        outside = index.referrers(member) - inside
        if outside:
            return Kept(
                Reason.EXTERNAL_MEMBER_USE,
                f"member '{member}' is also named by '{min(outside)}', outside the bundle; name a copy there",
            )
    if not index.referrers(bridge.name) - inside:
        return Kept(Reason.UNREFERENCED, _UNREFERENCED)
    if bridge.name in index.peer_users:
        return Kept(
            Reason.EXTERNAL_MEMBER_USE, f"'{index.peer_users[bridge.name][0]}' names the bridge as its peer"
        )
    for name in index.facts[bridge.name].callees:
        if name not in inside or name == bridge.name:
            kind = program.functions_[name].func_type.name
            return Kept(Reason.HELPER_CALL, f"the bridge calls '{name}', a function of type {kind}")
    for function in unit.functions[1:]:
        for name in index.facts[function.name].callees:
            return Kept(
                Reason.HELPER_CALL, f"member '{function.name}' calls the function '{name}'; {_INLINE}"
            )
    void = {member.name for member in unit.functions[1:] if not member.return_types_}
    for function in unit.functions:
        for peer in index.facts[function.name].peers:
            if peer not in inside:
                return Kept(
                    Reason.HELPER_CALL, f"'{function.name}' names the peer '{peer}', outside the bundle"
                )
        problem = _problem_of_body(function, index.facts[function.name], void)
        if problem is not None:
            return Kept(problem.reason, f"in '{function.name}': {problem.detail}")
    return None


def _problem_of_kernel(function: ir.Function, index: ReferenceIndex) -> Kept | None:
    if function.func_type is not ir.FunctionType.InCore:
        return Kept(
            Reason.NOT_A_CANDIDATE_KIND, f"functions of type {function.func_type.name} keep their identity"
        )
    facts = index.facts[function.name]
    if not index.referrers(function.name) - {function.name}:
        return Kept(Reason.UNREFERENCED, _UNREFERENCED)
    if function.name in index.peer_users:
        user = index.peer_users[function.name][0]
        return Kept(Reason.EXTERNAL_MEMBER_USE, f"'{user}' names it as its peer")
    for name in facts.callees:
        return Kept(Reason.HELPER_CALL, f"it calls the function '{name}'; {_INLINE}")
    for peer in facts.peers:
        return Kept(Reason.HELPER_CALL, f"it names the peer '{peer}', but belongs to no Group")
    return _problem_of_body(function, facts)


def _problem_of_body(function: ir.Function, facts: FunctionFacts, void: Collection[str] = ()) -> Kept | None:
    """Why the function is open, as far as it can be told without resolving variables.

    `void` are the functions without results that it may call.
    """
    if function.attrs_.get("external_source"):
        return Kept(Reason.EXTERNAL_KERNEL, "its source is a file outside the program")
    if function.requires_runtime_binding:
        return Kept(Reason.RUNTIME_BINDING, "its body is bound at run time")
    if ir.InlineStmt in facts.noted:
        return Kept(Reason.EXTERNAL_KERNEL, "its body is source text in another language")
    if facts.builtin_op is not None:
        return Kept(Reason.BUILTIN_KERNEL, f"'{facts.builtin_op}' stands for a template kernel")
    for resource, description in _RESOURCES.items():
        if resource in facts.noted:
            return Kept(Reason.STORAGE_RESOURCE, f"it mentions {description}")
    if ir.UnknownType in facts.noted:
        unknown = find_unknown_value(function, void)
        if unknown is not None:
            return Kept(Reason.UNKNOWN_TYPE, unknown)
    if not facts.noted.isdisjoint(HANDLE_TYPES):
        escape = find_escaping_handle(function)
        if escape is not None:
            return Kept(Reason.ASYNC_HANDLE_ESCAPE, escape)
    return None
