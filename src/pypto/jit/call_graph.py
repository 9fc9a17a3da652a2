"""Which functions become part of a program, and which dimensions of their parameters are symbolic.

A dimension is symbolic when its function says so, or when the parameter is passed by its plain name to a
function where it is.
"""

from __future__ import annotations

import functools
import hashlib
from typing import TYPE_CHECKING, Any

from pypto import __version__
from pypto.jit.definition import Definition, DepCall, constant_key

if TYPE_CHECKING:
    from pypto.jit.function import JITFunction

Symbols = dict[str, dict[int, str]]  # symbol names by parameter and axis


class CallGraph:
    """The functions that an entry reaches, as they are now."""

    def __init__(self, entry: JITFunction) -> None:
        self._entry = entry
        self._symbols: dict[Definition, Symbols] = {}
        self.functions: list[JITFunction] = []
        self._values: list[tuple[Definition, str, Any, Any]] = []  # and what identifies the constant
        pending, seen = [entry], {entry}
        while pending:
            function = pending.pop()
            self.functions.append(function)
            definition = function.definition
            for path in definition.captured:
                value = definition.value_of(path)
                self._values.append((definition, path, value, constant_key(value)))
            for _, callee in self._deps(function.definition):
                if callee not in seen:
                    seen.add(callee)
                    pending.append(callee)

    def is_current(self) -> bool:
        """Whether everything the functions capture is what it was."""
        return all(
            definition.value_of(path) is value
            and (not isinstance(value, (list, tuple, dict)) or constant_key(value) == key)
            for definition, path, value, key in self._values
        )

    @functools.cached_property
    def source_key(self) -> str:
        """Digest of the text of all functions and of the constants they capture."""
        digest = hashlib.sha256(__version__.encode())
        for function in self.functions:
            digest.update(function.definition.text_hash().encode())
        for _, path, _, key in self._values:
            if key is not None:
                digest.update(repr((path, key)).encode())
        return digest.hexdigest()

    def external_keys(self) -> tuple[str, ...]:
        """Digests of the hand-written sources, read anew: they may be edited while the program runs."""
        return tuple(f.external.text_hash() for f in self.functions if f.external is not None)

    def symbols_of(self, definition: Definition) -> Symbols:
        """The symbolic dimensions of a function's parameters."""
        known = self._symbols.get(definition)
        if known is not None:
            return known
        found = {name: dict(axes) for name, axes in definition.own_symbols.items()}
        self._symbols[definition] = found  # what a circle of calls finds; such a program is refused later
        for call, callee in self._deps(definition):
            inner = self.symbols_of(callee.definition)
            names = [parameter.name for parameter in callee.definition.parameters]
            passed = dict(zip(names, call.positional, strict=False)) | dict(call.keywords)
            for name, argument in passed.items():
                if argument in found and name in inner:
                    for axis, symbol in inner[name].items():
                        found[argument].setdefault(axis, symbol)
        return found

    def _deps(self, definition: Definition) -> list[tuple[DepCall, JITFunction]]:
        from pypto.jit.function import JITFunction

        calls = [(call, definition.value_of(call.callee)) for call in definition.calls]
        return [(c, f) for c, f in calls if isinstance(f, JITFunction) and f.is_dep_of(self._entry)]
