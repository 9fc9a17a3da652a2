"""Applying a decision: every dispatch of an alias goes to the unit that stands for it, the alias leaves
the program.

A dispatch keeps everything but its callee: arguments, attributes, result type, and all fields of a
Submit. Functions without such a dispatch, and statements and expressions that do not contain one, stay
the objects they are. A bundle leaves as a whole, its members with its bridge.
"""

from __future__ import annotations

from collections.abc import Mapping

from pypto import ir
from pypto.core.errors import internal_error
from pypto.ir.rewrite import Substitution
from pypto.passes.dedup.reference_index import ReferenceIndex, scan_functions
from pypto.passes.dedup.units import Unit

__all__ = ["redirect"]


def redirect(
    program: ir.Program, index: ReferenceIndex, aliases: Mapping[str, Unit], canonical: Mapping[str, Unit]
) -> ir.Program:
    """Return `program` without the units in `aliases`, whose dispatches go to their `canonical` units.

    Both maps are by the name of the alias. Raises InternalError if a name is left dangling. Without
    aliases the program itself is returned.
    """
    if not aliases:
        return program
    targets = {name: program.global_vars[canonical[name].name] for name in aliases}
    removed = {function.name for unit in aliases.values() for function in unit.functions}
    callers = {site.function.name for name in aliases for site in index.sites.get(name, ())}
    redirection = _Redirection(targets)
    functions = {
        name: redirection.function(function) if name in callers else function
        for name, function in program.functions_.items()
        if name not in removed
    }
    _check_references(functions, callers - removed, removed, index)
    return program.replace(functions=list(functions.values()))


class _Redirection(Substitution):
    """A substitution of no variables that changes the callee of each dispatch on its way."""

    def __init__(self, targets: Mapping[str, ir.GlobalVar]) -> None:
        super().__init__()
        self._targets = targets

    def rebuild(self, node: ir.Expr) -> ir.Expr:
        rebuilt = super().rebuild(node)
        if isinstance(rebuilt, (ir.Call, ir.Submit)) and rebuilt.op.name in self._targets:
            return rebuilt.replace(op=self._targets[rebuilt.op.name])
        return rebuilt


def _check_references(
    functions: Mapping[str, ir.Function], rewritten: set[str], removed: set[str], index: ReferenceIndex
) -> None:
    """No name of a removed function may be left: neither in what was rewritten, nor in what was not."""
    fresh = scan_functions([functions[name] for name in rewritten], removed)
    for name in functions:
        facts = fresh.get(name) or index.facts[name]
        for referred in (*facts.callees, *facts.peers):
            if referred in removed:
                raise internal_error(
                    f"function '{name}' still names '{referred}', which has been merged away"
                )
