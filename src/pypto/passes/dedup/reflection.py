"""Which classes there are to look into, and what their fields hold.

Everything the deduplicator knows about a node, type or view comes from the field list of its class.
This module reads the lists once and gives them in the form that the generators of straight-line code
(`scanning`, `numbering`) need. A new class is covered by declaring its fields; a class that is not
covered makes the reference index incomplete, and the pass then does nothing.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Iterator
from types import CodeType, NoneType
from typing import Any

from pypto import ir
from pypto.ir.expr import Op
from pypto.ir.node import Field, IRNode, Structure

__all__ = [
    "PLAIN_TYPES",
    "compile_functions",
    "described_classes",
    "instantiate",
    "is_reference",
    "semantic_fields",
]


@functools.cache
def described_classes() -> tuple[type[Structure], ...]:
    """Return every concrete class of the IR: expressions, statements, functions, types, views."""
    found: dict[type[Structure], None] = {}
    pending: list[type[Structure]] = [Structure]
    while pending:
        cls = pending.pop()
        if cls in found or not cls.__module__.startswith("pypto.ir."):
            continue
        found[cls] = None
        pending += cls.__subclasses__()
    return tuple(sorted((cls for cls in found if not cls.ABSTRACT), key=lambda cls: cls.__name__))


def _plain_types() -> Iterator[type]:
    yield from (NoneType, bool, int, float, str, bytes, ir.DataType, ir.Span, Op, ir.GlobalVar)
    for value in vars(ir).values():
        if isinstance(value, type) and issubclass(value, enum.Enum):
            yield value


PLAIN_TYPES: frozenset[type] = frozenset(_plain_types())
"""Types of values that are complete in themselves: they hold no reference to a node."""


def is_reference(value: object) -> bool:
    """Whether an attribute value is a node or a type."""
    return isinstance(value, (IRNode, ir.Type))


def compile_functions(name: str, parameters: str, functions: dict[type[Structure], list[str]]) -> CodeType:
    """Compile a factory `name(parameters)` of a table from class to a function of one node, `n`.

    `functions` gives the body of each as lines. The parameters are free variables of all bodies: a caller
    runs the factory once per use, the text is compiled once per process.
    """
    lines = [f"def {name}({parameters}):"]
    for cls, body in functions.items():
        lines.append(f"    def on_{cls.__name__}(n):")
        lines += [f"        {line}" for line in body]
    table = ", ".join(f"classes['{cls.__name__}']: on_{cls.__name__}" for cls in functions)
    lines.append(f"    return {{{table}}}")
    return compile("\n".join(lines), f"<generated {name}>", "exec")


def instantiate(code: CodeType, name: str, *arguments: Any) -> dict[type[Structure], Any]:
    """Run a factory made by `compile_functions`."""
    namespace: dict[str, Any] = {"classes": {cls.__name__: cls for cls in described_classes()}}
    exec(code, namespace)
    table: dict[type[Structure], Any] = namespace[name](*arguments)
    return table


def semantic_fields(cls: type[Structure]) -> tuple[Field, ...]:
    """The fields of `cls` that comparison looks at."""
    return tuple(field for field in cls.FIELDS if field.role != "ignored")
