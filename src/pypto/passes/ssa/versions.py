"""The current version of every source variable, and the renaming of expressions and types.

Regions (branches, loop bodies) are undone through a journal: leaving one restores what it changed and returns
its final versions, so that nothing is copied per region.
"""

from __future__ import annotations

from typing import Any

from pypto import ir
from pypto.ir.node import map_attr_references
from pypto.ir.rewrite import is_static_type
from pypto.passes.auto_name import auto_name, name_seed

_CONSTANTS = (ir.ConstInt, ir.ConstFloat, ir.ConstBool)
_LEAVES = (ir.Var, *_CONSTANTS)


class Versions:
    """Current versions and version counters of one function."""

    def __init__(self) -> None:
        self._current: dict[ir.Var, ir.Expr] = {}
        self._next: dict[ir.Var, int] = {}
        self._seeds: dict[ir.Var, tuple[str, str]] = {}
        self._journal: list[dict[ir.Var, ir.Expr | None]] = []
        self._order: list[tuple[ir.Var, ir.Type]] = []
        self._by_type: dict[ir.Type, list[ir.Var]] = {}
        self._indexed = 0

    def get(self, var: ir.Var) -> ir.Var | None:
        """Return the current version of `var`, None if it has none."""
        version = self._current.get(var)
        assert version is None or isinstance(version, ir.Var)
        return version

    def __contains__(self, var: ir.Var) -> bool:
        return var in self._current

    def define(self, var: ir.Var, version: ir.Var) -> None:
        """Make `version` the current one."""
        if self._journal:
            self._journal[-1].setdefault(var, self._current.get(var))
        if var not in self._current:
            self._order.append((var, version.type))
        self._current[var] = version

    def fresh_name(self, var: ir.Var, role: str) -> str:
        """Return the next versioned name of `var`."""
        number = self._next.get(var, 0)
        self._next[var] = number + 1
        seed = self._seeds.get(var)
        if seed is None:
            seed = self._seeds[var] = name_seed(var.name_hint)
        return auto_name(seed[0], role, number, seed[1])

    def enter_region(self) -> None:
        """Start recording changes."""
        self._journal.append({})

    def leave_region(self) -> dict[ir.Var, ir.Var]:
        """Restore the versions from before the region; return the final ones of what it changed."""
        changes = self._journal.pop()
        final: dict[ir.Var, ir.Var] = {}
        for var, before in changes.items():
            version = self._current[var]
            assert isinstance(version, ir.Var)
            final[var] = version
            if before is None:
                del self._current[var]
            else:
                self._current[var] = before
        return final

    def earliest_of_type(self, type_: ir.Type) -> ir.Var | None:
        """Return the current version of the variable defined first among those whose type equals `type_`."""
        for var, version_type in self._order[self._indexed :]:
            self._by_type.setdefault(version_type, []).append(var)
        self._indexed = len(self._order)
        for var in self._by_type.get(type_, ()):
            version = self.get(var)
            if version is not None and version.type == type_:
                return version
        return None

    def expr(self, expr: ir.Expr) -> ir.Expr:
        """Rename an expression, result types and attributes included. A shared part is renamed once."""
        current = self._current
        if isinstance(expr, ir.Var):
            return current.get(expr, expr)
        if _is_shallow(expr):
            shallow: ir.Expr = expr._map_children(self._version_of, self.type)
            return shallow
        done: dict[ir.Expr, ir.Expr] = {}
        pending = [expr]
        while pending:
            node = pending[-1]
            if node in done:
                pending.pop()
                continue
            is_ready = True
            for child in node._children():
                if child in done:
                    continue
                if isinstance(child, ir.Var):
                    done[child] = current.get(child, child)
                elif isinstance(child, _CONSTANTS):
                    done[child] = child
                else:
                    pending.append(child)
                    is_ready = False
            if is_ready:
                done[node] = node._map_children(done.__getitem__, self.type)
                pending.pop()
        return done[expr]

    def _version_of(self, leaf: ir.Expr) -> ir.Expr:
        return self._current.get(leaf, leaf)  # type: ignore[call-overload,no-any-return]

    def type(self, type_: ir.Type) -> ir.Type:
        """Rename the variables in a type."""
        if is_static_type(type_):
            return type_
        renamed: ir.Type = type_._map_children(self.expr, self.type)
        return renamed

    def attrs(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Rename the references in attributes."""
        return map_attr_references(attrs, self.expr) if attrs else attrs


def _is_shallow(expr: ir.Expr) -> bool:
    """Say whether the operands are leaves, or tuples of constants: the usual case, renamed in one step."""
    for child in expr._children():
        if isinstance(child, _LEAVES):
            continue
        if not isinstance(child, ir.MakeTuple):
            return False
        for element in child.elements_:
            if not isinstance(element, _CONSTANTS):
                return False
    return True
