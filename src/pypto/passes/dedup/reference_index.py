"""Who names whom: one walk over the whole program, before any decision.

A function may be merged away only if every place that names it is known. So the walk follows every
edge: statements, operands, attributes, the expressions inside types, and the one attribute that names a
function by text. If it meets a value that it does not understand, there may be a name in it; the index
is then incomplete, and nothing may be merged.

A node that is reached over several edges is met once. On the way, the walk weighs each function and
notes what decides about eligibility.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any

from pypto import ir
from pypto.ir.node import (
    ATTRS,
    ITER_ARGS,
    NODE,
    NODES,
    OPERATOR,
    OPTIONAL_NODE,
    TYPE,
    TYPES,
    VALUE,
    VALUES,
    VIEW,
    Structure,
)  # fmt: skip
from pypto.ir.types import MemRefType
from pypto.passes.dedup.reflection import (
    PLAIN_TYPES,
    compile_functions,
    described_classes,
    instantiate,
    is_reference,
)

__all__ = ["FunctionFacts", "ReferenceIndex", "Site", "UnknownPayload", "index_references", "scan_functions"]

PEER_OP, PEER_KEY = "system.import_peer_buffer", "peer_func"
_BUILTIN_PREFIX = "builtin."

# Classes whose mere presence matters: see `eligibility`.
_NOTED = (
    ir.UnknownType, ir.PtrType, ir.WindowBufferType, ir.CommCtxType, ir.PrefetchAsyncContextType,
    ir.AsyncEventType, ir.AsyncSessionType, MemRefType, ir.MemRef, ir.WindowBuffer, ir.InlineStmt,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Site:
    """One dispatch: the node, and the function in whose body or attributes it stands."""

    function: ir.Function
    dispatch: ir.Call | ir.Submit


@dataclass(frozen=True, slots=True)
class FunctionFacts:
    """What the walk learned about one function.

    `weight` counts distinct nodes, their leaf fields, and the bytes of text in attributes. `calls` are
    the dispatches of program functions in program order, `peers` the functions named by text. `noted`
    are the classes that eligibility asks about, as far as they occur, and `builtin_op` an operator
    whose kernel is a template.
    """

    weight: int
    calls: tuple[ir.Call | ir.Submit, ...]
    peers: tuple[str, ...]
    noted: frozenset[type]
    builtin_op: str | None

    @property
    def callees(self) -> tuple[str, ...]:
        """The program functions that are dispatched, each once, in the order of first use."""
        return tuple(dict.fromkeys(call.op.name for call in self.calls))


@dataclass(frozen=True, slots=True)
class ReferenceIndex:
    """All references of a program.

    `sites` are by the dispatched function, `peer_users` by the function that is named as a peer.
    """

    facts: Mapping[str, FunctionFacts]
    sites: Mapping[str, tuple[Site, ...]]
    peer_users: Mapping[str, tuple[str, ...]]

    @property
    def weight(self) -> int:
        """The weight of the program."""
        return sum(facts.weight for facts in self.facts.values())

    def referrers(self, name: str) -> frozenset[str]:
        """Return the functions that dispatch `name` or name it as a peer."""
        callers = (site.function.name for site in self.sites.get(name, ()))
        return frozenset((*callers, *self.peer_users.get(name, ())))


class UnknownPayload(Exception):
    """A value that the walk does not understand, so that the index would be incomplete."""

    def __init__(self, function: str, node: str, key: str, payload: type) -> None:
        held = f"{payload.__module__}.{payload.__qualname__}"
        super().__init__(f"function '{function}': field '{key}' of a {node} holds a {held}")
        self.function = function
        self.node = node
        self.key = key
        self.payload = payload


def index_references(program: ir.Program) -> ReferenceIndex:
    """Index `program`; raise `UnknownPayload` if the index cannot be complete."""
    facts = scan_functions(program.functions_.values(), program.functions_)
    sites: dict[str, list[Site]] = {}
    peer_users: dict[str, list[str]] = {}
    for name, function in program.functions_.items():
        for call in facts[name].calls:
            sites.setdefault(call.op.name, []).append(Site(function, call))
        for peer in facts[name].peers:
            peer_users.setdefault(peer, []).append(name)
    return ReferenceIndex(
        facts,
        {name: tuple(found) for name, found in sites.items()},
        {name: tuple(found) for name, found in peer_users.items()},
    )


def scan_functions(functions: Iterable[ir.Function], names: Collection[str]) -> dict[str, FunctionFacts]:
    """Return the facts of `functions`; a call counts as a dispatch if it goes to one of `names`."""
    scanner = _Scanner(names)
    return {function.name: scanner.scan(function) for function in functions}


class _Scanner:
    """Walks functions on a stack of its own, with one generated function per class."""

    __slots__ = ("_builtins", "_calls", "_names", "_noted", "_peers", "_seen", "_stack", "_table", "_where")

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self._stack: list[Any] = []
        self._seen: set[int] = set()
        self._calls: list[ir.Call | ir.Submit] = []
        self._peers: list[str] = []
        self._noted: set[type] = set()
        self._builtins: list[str] = []
        self._where = ""
        self._table: Mapping[type, Callable[[Any], int]] = instantiate(
            _scanner_code(), "make_scanners", self._stack, self._seen, PLAIN_TYPES, self._noted.add,
            self._note_operator, self._payload, self._reject,
        )  # fmt: skip

    def scan(self, function: ir.Function) -> FunctionFacts:
        stack, seen, table = self._stack, self._seen, self._table
        for collected in (seen, self._calls, self._peers, self._noted, self._builtins):
            collected.clear()
        self._where = function.name
        stack.append(function)
        weight = 0
        pop, known, remember = stack.pop, seen.__contains__, seen.add
        while stack:
            node = pop()
            key = id(node)
            if known(key):
                continue
            remember(key)
            on_class = table.get(node.__class__)
            if on_class is None:
                stack.clear()
                raise UnknownPayload(function.name, type(node).__name__, "", type(node))
            weight += on_class(node)
        return FunctionFacts(
            weight,
            tuple(self._calls),
            tuple(dict.fromkeys(self._peers)),
            frozenset(self._noted),
            self._builtins[0] if self._builtins else None,
        )

    def _note_operator(self, node: ir.Call | ir.Submit) -> None:
        name = node.op.name
        if name in self._names:
            self._calls.append(node)
        elif name == PEER_OP:
            peer = node.kwargs_.get(PEER_KEY)
            if isinstance(peer, str):
                self._peers.append(peer)
        elif name.startswith(_BUILTIN_PREFIX):
            self._builtins.append(name)

    def _payload(self, node: Structure, attrs: Mapping[str, Any]) -> int:
        """Push what attribute values refer to; return their weight."""
        weight = 0
        pending = [(key, value) for key, value in reversed(list(attrs.items()))]
        while pending:
            key, value = pending.pop()
            kind = type(value)
            if kind in PLAIN_TYPES:
                weight += 1 + (len(value) if kind is str or kind is bytes else 0)
            elif is_reference(value):
                self._stack.append(value)
            elif kind is tuple or kind is list:
                pending += [(key, each) for each in reversed(value)]
            elif kind is dict and all(type(inner) is str for inner in value):
                pending += [(key, each) for each in reversed(value.values())]
            else:
                self._reject(node, key, value)
        return weight

    def _reject(self, node: Structure, key: str, value: object) -> None:
        self._stack.clear()
        raise UnknownPayload(self._where, type(node).__name__, key, type(value))


@functools.cache
def _scanner_code() -> CodeType:
    parameters = "stack, seen, plain, note, note_operator, payload, reject"
    return compile_functions(
        "make_scanners", parameters, {cls: _scanner_lines(cls) for cls in described_classes()}
    )


def _scanner_lines(cls: type[Structure]) -> list[str]:
    """Code that pushes what a node refers to, last first, and returns the node's weight.

    Fields that comparison ignores are followed as well: a memory reference is ignored there, and
    matters here.
    """
    lines: list[str] = []
    leaves = 0
    extra = []
    if cls in _NOTED:
        lines.append("note(n.__class__)")
    for field in reversed(cls.FIELDS):
        value = f"n.{field.stored}"
        if field.kind == VALUE:
            if field.role == "ignored":
                continue
            leaves += 1
            lines.append(f"if {value}.__class__ not in plain: reject(n, '{field.name}', {value})")
        elif field.kind == VALUES:
            leaves += 1
            lines.append(f"for v in {value}:")
            lines.append(f"    if v.__class__ not in plain: reject(n, '{field.name}', v)")
        elif field.kind == OPERATOR:
            leaves += 1
            lines.append("note_operator(n)")
        elif field.kind == ATTRS:
            lines.append(f"w_{field.name} = payload(n, {value}) if {value} else 0")
            extra.append(f"w_{field.name}")
        elif field.kind in (NODE, TYPE):
            lines.append(f"v = {value}")
            lines.append("if id(v) not in seen: stack.append(v)")
        elif field.kind in (OPTIONAL_NODE, VIEW):
            lines.append(f"if {value} is not None: stack.append({value})")
        elif field.kind in (NODES, TYPES):
            lines.append(f"stack.extend({value}[::-1])")
        elif field.kind == ITER_ARGS:
            lines.append(f"for v in {value}[::-1]: stack.append(v.initValue); stack.append(v)")
        else:
            lines.append(f"reject(n, '{field.name}', {value})")
    lines.append(f"return {' + '.join([str(1 + leaves), *extra])}")
    return lines
