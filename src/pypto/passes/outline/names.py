"""Names that outlining gives: to functions across the program, to variables within one function.

A function name is part of the meaning of a program, so who gets a contested name is fixed: functions are
processed in name order, a name is never given twice, and the rules of `ScopeNames.take` decide the rest. A
variable name is a hint for people; `VariableNames` only keeps hints apart.

Both remember where their last search for a free number ended, so that a thousand scopes with one hint cost
a thousand steps, not half a million.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pypto.passes.auto_name import ParsedName, auto_name, parse_name

__all__ = ["ScopeNames", "VariableNames"]


@dataclass(slots=True)
class ScopeNames:
    """Names of outlined functions, while the scopes of one function are outlined.

    `reserved` holds every function name of the program and grows with each outlined function; it is shared
    by all functions of a run. `local` holds what would confuse a reader of this function: the names of its
    variables, and the names already given to its scopes.
    """

    reserved: set[str]
    local: set[str]
    _next: dict[str, int] = field(default_factory=dict)

    def take(self, candidate: str, parent: str) -> str:
        """Return a free name for a scope of function `parent`, as close to `candidate` as the rules allow.

        The candidate itself if nobody has it; numbered (`c_0`, `c_1`, ...) if this function uses it already;
        prefixed with the parent's name, and numbered only if that is taken too, if another function has it.
        """
        if candidate in self.local:
            name = self._numbered(candidate)
        elif candidate in self.reserved:
            prefixed = f"{parent}_{candidate}"
            name = prefixed if self._is_free(prefixed) else self._numbered(prefixed)
        else:
            name = candidate
        self.reserved.add(name)
        self.local.add(name)
        return name

    def leave(self, names: Iterable[str]) -> None:
        """Forget, for the outer scopes of this function, names that were given inside a nested scope."""
        self.local.difference_update(names)

    def _is_free(self, name: str) -> bool:
        return name not in self.local and name not in self.reserved

    def _numbered(self, stem: str) -> str:
        number = self._next.get(stem, 0)
        while not self._is_free(f"{stem}_{number}"):
            number += 1
        self._next[stem] = number + 1
        return f"{stem}_{number}"


class VariableNames:
    """Names of variables known in one function, or in a scope of it that is becoming a function."""

    __slots__ = ("_known", "_next", "_outer")

    def __init__(self, known: set[str], outer: VariableNames | None = None) -> None:
        self._known = known
        self._next: dict[ParsedName, int] = {}
        self._outer = outer

    def inside(self) -> VariableNames:
        """Return the names known inside a scope. Names given there are not known outside."""
        return VariableNames(set(), self)

    def next_version(self, name: str) -> str:
        """Return `name` with the smallest larger version that is unused.

        `buf__ssa_v1` for `buf__ssa_v0`, `buf__ssa_v0` for `buf`.
        """
        parsed = parse_name(name)
        version = self._first_candidate(parsed)
        while self._is_known(
            fresh := auto_name(parsed.base, parsed.role or "ssa", version, parsed.qualifier)
        ):
            version += 1
        self._next[parsed] = version + 1
        self._known.add(fresh)
        return fresh

    def store_result(self, target: str) -> str:
        """Return the name of the result of the first store to `target`: `o__store` for `o__ssa_v3`."""
        name = f"{parse_name(target).base}__store"
        if self._is_known(name):
            return self.next_version(name)
        self._known.add(name)
        return name

    def _is_known(self, name: str) -> bool:
        return name in self._known or (self._outer is not None and self._outer._is_known(name))

    def _first_candidate(self, parsed: ParsedName) -> int:
        if parsed in self._next:
            return self._next[parsed]
        if self._outer is not None:
            return self._outer._first_candidate(parsed)
        return 0 if parsed.version is None else parsed.version + 1
