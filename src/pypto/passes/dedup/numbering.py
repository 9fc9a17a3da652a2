"""Numbers for expressions and types, such that equal number means structurally equal.

Every distinct structure gets a number when it is first met: the key of a node is its class, its plain
values, and the numbers of its children. A node is numbered once however many edges lead to it, two
nodes with the same key get the same number, and comparing two expressions of any size is comparing two
integers. Nothing is hashed away: the table holds the keys themselves.

Variables are where structure ends. In a *closed* numbering each variable has the number that the caller
bound it to, by position in its function; any other variable is a free capture. In an *open* numbering
every variable stands for itself.

Whatever mentions no variable keeps its number for the life of the table. The rest is forgotten when the
newest variable it mentions goes out of scope: a shared node cannot smuggle a variable out of its
branch.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Iterable, Mapping
from types import CodeType
from typing import Any

from pypto import ir
from pypto.ir.attrs import RepeatedKeys
from pypto.ir.node import (
    ATTRS,
    ITER_ARGS,
    NODE,
    NODES,
    OPERATOR,
    OPTIONAL_NODE,
    TYPE,
    TYPES,
    VIEW,
    Structure,
)  # fmt: skip
from pypto.passes.dedup.reference_index import PEER_KEY, PEER_OP
from pypto.passes.dedup.reflection import (
    compile_functions,
    described_classes,
    instantiate,
    is_reference,
    semantic_fields,
)

__all__ = ["FreeCapture", "Numbering", "StructureTable"]

_OPAQUE_CLASSES = (ir.Stmt, ir.Function, ir.Program)
_LEAVES: frozenset[type] = frozenset({ir.ConstInt, ir.ConstFloat, ir.ConstBool, ir.Var, ir.IterArg})


class FreeCapture(Exception):
    """A variable that is used where nothing that binds it is in force."""

    def __init__(self, var: ir.Var) -> None:
        super().__init__(
            f"'{var.name_hint}' is neither a parameter, nor a symbol of the signature, nor defined here"
        )
        self.var = var


class StructureTable:
    """Numbers of structures: key to number, and per number the newest variable that the structure mentions.

    Numbers of structures count up from 0. Numbers of variables are negative and count down from -1, so
    the newest is the smallest; 0 stands for no variable.
    """

    __slots__ = ("atoms", "newest", "numbers")

    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}
        self.newest: list[int] = []
        self.atoms: dict[Any, int] = {}

    def intern(self, key: Any, children: Iterable[int]) -> int:
        """Return the number of `key`, a new one if it is new; `children` are the numbers it consists of."""
        number = self.numbers.get(key)
        if number is None:
            number = len(self.newest)
            self.numbers[key] = number
            newest = self.newest
            newest.append(min([child if child < 0 else newest[child] for child in children], default=0))
        return number

    def atom(self, value: Any) -> int:
        """Return the number of a plain value; kind and bits count: 1, True and 1.0 differ, so do 0.0
        and -0.0.
        """
        kind = type(value)
        if kind is float:
            key: Any = ("float", struct.pack("<d", value))
        elif kind is tuple or kind is list:
            key = ("tuple", tuple([self.atom(each) for each in value]))
        else:
            key = (kind, value)  # generated code looks for this form before it calls
        number = self.atoms.get(key)
        if number is None:
            number = self.atoms[key] = len(self.atoms)
        return number


class Numbering:
    """Numbers the expressions and types of one function at a time, over a shared table.

    `functions` are the names that count as functions of the program: a reference to one is numbered by the
    position of its first use, so that what is called can be compared apart from how.
    """

    __slots__ = (
        "_encoders", "_functions", "_is_open", "_levels", "_names", "_numbers", "_scoped", "_stack", "_table",
        "number",
    )  # fmt: skip

    number: Callable[[Any], int]

    def __init__(self, table: StructureTable, functions: Mapping[str, ir.Function], *, is_open: bool) -> None:
        self._table = table
        self._functions = functions
        self._is_open = is_open
        self._numbers: dict[int, int] = {}  # id of a node, type or variable -> number
        self._stack: list[Any] = []
        self._names: dict[str, Any] = {}
        self._levels: list[int] = [0]  # per variable, by minus its number: the scope that binds it
        self._scoped: list[list[int]] = [[]]  # per open scope: ids to forget when it closes
        self._encoders = instantiate(
            _encoder_code(), "make_encoders", self._numbers, table.numbers, table.intern, table.atoms,
            table.atom, self._push, self._operator, self._attrs, self._kwargs, self._variable,
        )  # fmt: skip
        self.number = self._driver()

    # ---- scopes and variables

    def open_scope(self) -> None:
        self._scoped.append([])

    def close_scope(self) -> None:
        """Forget the variables bound since the scope was opened, and what mentions them."""
        numbers = self._numbers
        for key in self._scoped.pop():
            del numbers[key]

    def bind(self, var: ir.Var) -> int:
        """Give `var` the next number, in force until the present scope closes; a bound one keeps its
        number.
        """
        key = id(var)
        known = self._numbers.get(key)
        if known is not None:
            return known
        number = -len(self._levels)
        self._levels.append(len(self._scoped) - 1)
        self._numbers[key] = number
        self._scoped[-1].append(key)
        return number

    def take_names(self) -> tuple[str, ...]:
        """Return the functions referred to since the last call, in the order of first use, and
        forget them.
        """
        names = tuple(self._names)
        self._names.clear()
        return names

    def number_of_attrs(self, attrs: Mapping[str, Any]) -> int:
        """Return the number of an attribute mapping, -1 for an empty one."""
        if not attrs:
            return -1
        for value in attrs.values():
            for each in _references(value):
                self.number(each)
        found = self._attrs(attrs)
        assert found is not None
        return found

    def reset(self) -> None:
        """Forget the function that was numbered, also after a free capture; what mentions no
        variable stays known.
        """
        self._stack.clear()
        while self._scoped:
            self.close_scope()
        self._scoped.append([])
        del self._levels[1:]
        self._names.clear()

    # ---- the driver and what generated code calls

    def _driver(self) -> Callable[[Any], int]:
        """Return the function that numbers a node; its variables are local to it, for speed."""
        known, stack, encoders = self._numbers, self._stack, self._encoders
        newest = self._table.newest
        levels, scoped = self._levels, self._scoped
        get, is_open = known.get, self._is_open

        def number(root: Any) -> int:
            found = get(id(root))
            if found is not None:
                return found
            stack.append(root)
            while stack:
                node = stack[-1]
                key = id(node)
                if key in known:
                    stack.pop()
                    continue
                found = encoders[node.__class__](node)
                if found is None:  # children come first; they are on the stack now
                    continue
                stack.pop()
                known[key] = found
                if not is_open:
                    var = newest[found]
                    if var:
                        scoped[levels[-var]].append(key)
            return known[id(root)]

        return number

    def _push(self, children: Iterable[Any]) -> bool:
        """Put the unnumbered ones among `children` on the stack; return whether there were any.

        Constants and variables are numbered at once; a constant can only wait for its type, and is then asked
        again with its parent.
        """
        known, encoders = self._numbers, self._encoders
        pending = False
        for child in children:
            key = id(child)
            if key in known:
                continue
            if type(child) in _LEAVES:
                found = encoders[type(child)](child)
                if found is None:
                    pending = True
                else:
                    known[key] = found
            else:
                self._stack.append(child)
                pending = True
        return pending

    def _variable(self, var: ir.Var) -> int:
        """The number of a variable that has none: itself in an open numbering, an error in a closed one."""
        if not self._is_open:
            raise FreeCapture(var)
        return self.bind(var)

    def _operator(self, op: ir.Op) -> Any:
        """What stands for an operator: its name, or for a function of the program the position of
        its first use.
        """
        return self._reference(op.name) if op.name in self._functions else op.name

    def _reference(self, name: str) -> tuple[str, int]:
        return ("function", self._names.setdefault(name, len(self._names)))

    def _kwargs(self, call: ir.Call | ir.Submit) -> int | None:
        kwargs = call.kwargs_
        peer = kwargs.get(PEER_KEY) if call.op.name == PEER_OP else None
        if not isinstance(peer, str) or isinstance(kwargs, RepeatedKeys):
            return self._attrs(kwargs)
        key = ("peer", self._reference(peer))
        rest = self._attrs({name: value for name, value in kwargs.items() if name != PEER_KEY})
        return None if rest is None else self._table.intern((key, rest), (rest,))

    def _attrs(self, attrs: Mapping[str, Any]) -> int | None:
        """The number of a mapping, None if something that it refers to has none yet.

        Order of keys is no content. Where a key was given twice, which value is meant is unknown, and the
        mapping equals no other.
        """
        references = [each for value in attrs.values() for each in _references(value)]
        if self._push(references):
            return None
        known, atom = self._numbers, self._table.atom
        items: list[Any] = [object()] if isinstance(attrs, RepeatedKeys) else []
        for name in sorted(attrs):
            value = attrs[name]
            if is_reference(value):
                items += (name, "node", known[id(value)])
            elif type(value) is tuple and value and is_reference(value[0]):
                items += (name, "nodes", tuple([known[id(each)] for each in value]))
            else:
                items += (name, "plain", atom(value))
        return self._table.intern(tuple(items), [known[id(each)] for each in references])


def _references(value: Any) -> Iterable[Any]:
    if is_reference(value):
        return (value,)
    if type(value) is tuple and value and is_reference(value[0]):
        return value
    return ()


@functools.cache
def _encoder_code() -> CodeType:
    parameters = "known, table, intern, atoms, atom, push, operator, attrs, kwargs, variable"
    classes = [cls for cls in described_classes() if not issubclass(cls, _OPAQUE_CLASSES)]
    return compile_functions(
        "make_encoders",
        parameters,
        {cls: _encoder_lines(position, cls) for position, cls in enumerate(classes)},
    )


def _encoder_lines(position: int, cls: type[Structure]) -> list[str]:
    """Code that returns the number of a node, or None after putting unnumbered children on the stack."""
    if issubclass(cls, ir.Var) and not issubclass(cls, (ir.MemRef, ir.WindowBuffer)):
        return ["return variable(n)"]
    gather: list[str] = []  # reads the numbers of children into variables; absent ones read as None
    missing: list[str] = []
    mappings: list[str] = []
    unnumbered: list[str] = []
    key = [str(position)]
    children: list[str] = []
    lines: list[str] = []
    for index, field in enumerate(semantic_fields(cls)):
        value, name = f"n.{field.stored}", f"f{index}"
        if field.kind in (NODE, TYPE):
            gather.append(f"{name} = known.get(id({value}))")
            missing.append(f"{name} is None")
            unnumbered.append(value)
            key.append(name)
            children.append(name)
        elif field.kind in (OPTIONAL_NODE, VIEW):
            gather.append(f"{name} = 'absent' if {value} is None else known.get(id({value}))")
            missing.append(f"{name} is None")
            unnumbered.append(f"*(() if {value} is None else ({value},))")
            key.append(name)
            children.append(f"*(() if {value} is None else ({name},))")
        elif field.kind in (NODES, TYPES, ITER_ARGS):
            gather.append(f"{name} = [known.get(id(each)) for each in {value}]")
            missing.append(f"None in {name}")
            unnumbered.append(f"*{value}")
            key.append(f"tuple({name})")
            children.append(f"*{name}")
        elif field.kind == ATTRS:
            made = "kwargs(n)" if field.name == "kwargs" else f"attrs({value})"
            gather.append(f"{name} = -1 if not {value} else {made}")
            missing.append(f"{name} is None")
            mappings.append(name)
            key.append(name)
            children.append(f"*(() if {name} == -1 else ({name},))")
        elif field.kind == OPERATOR:
            key.append(f"operator({value})")
        else:
            lines.append(f"v = {value}")
            lines.append(f"{name} = atoms.get((v.__class__, v))")
            lines.append(f"if {name} is None: {name} = atom(v)")
            key.append(name)
    lines += gather
    if missing:
        lines.append(f"if {' or '.join(missing)}:")
        lines.append(f"    if push(({', '.join([*unnumbered, ''])})): return None")
        lines += [f"    {line}" for line in gather]
        waiting = [f"{name} is None" for name in mappings]  # an attribute pushes what it waits for itself
        if waiting:
            lines.append(f"    if {' or '.join(waiting)}: return None")
    lines.append(f"k = ({', '.join(key)},)")
    lines.append("found = table.get(k)")
    lines.append(f"return intern(k, ({', '.join([*children, ''])})) if found is None else found")
    return lines
