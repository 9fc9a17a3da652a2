"""Which parameters of a kernel may be the same memory: some dispatch passes one tensor, or views of one, for
several of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pypto import ir
from pypto.ir.walk import walk
from pypto.passes.storage import ProgramStorage

__all__ = ["SharedArguments", "shared_arguments"]

SharedArguments = Mapping[str, frozenset[tuple[int, int]]]
"""By function the pairs of parameters, the lower index first; functions without such pairs are left out."""


def shared_arguments(program: ir.Program, dispatches: ProgramStorage) -> SharedArguments:
    """The pairs of all functions; what a wrapper is passed twice its kernel is, too."""
    found: dict[str, set[tuple[int, int]]] = {}
    pending = [f for f in program.functions_.values() if not ir.is_incore_type(f.func_type)]
    while pending:
        caller = pending.pop()
        for name, pairs in _passed_twice(caller, dispatches, found.get(caller.name, set())):
            known = found.setdefault(name, set())
            callee = program.functions_.get(name)
            if pairs <= known or callee is None:
                continue
            known |= pairs
            if not ir.is_incore_type(callee.func_type):
                pending.append(callee)
    return {name: frozenset(pairs) for name, pairs in found.items() if pairs}


def _passed_twice(
    caller: ir.Function, dispatches: ProgramStorage, own: set[tuple[int, int]]
) -> Iterator[tuple[str, set[tuple[int, int]]]]:
    """Each function that is dispatched with arguments that share memory, and the pairs of these."""
    storage = dispatches.of(caller)
    same: dict[ir.Var, list[ir.Var]] = {}  # parameters that the caller is passed twice
    for a, b in own:
        first, second = caller.params_[a], caller.params_[b]
        same.setdefault(first, []).append(second)
        same.setdefault(second, []).append(first)
    for node in walk(caller.body, once=True):
        if not isinstance(node, (ir.Call, ir.Submit)) or not isinstance(node.op, ir.GlobalVar):
            continue
        positions: dict[ir.Var, list[int]] = {}
        for position, arg in enumerate(node.args_):
            own_roots = storage.roots_of(arg)
            for root in own_roots.union(*(same.get(own_root, ()) for own_root in own_roots)):
                positions.setdefault(root, []).append(position)
        pairs = {
            (a, b)
            for places in positions.values()
            for index, a in enumerate(places)
            for b in places[index + 1 :]
        }
        if pairs:
            yield node.op.name, pairs
