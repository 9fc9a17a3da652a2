"""Names that loops and branches in a body assign, plainly or as the results of a loop or branch inside them.

A loop that carries a name in SSA style may assign it in an inner loop. From the second turn of the inner loop
on, reading the name there means what the turn before assigned, also where the text reads before it assigns.
The same holds for the parameters of a helper that is expanded in place.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from pypto.language.parser.yield_targets import direct_yield_names, is_yield

__all__ = ["assigned_in_inner_blocks", "assigned_in_inner_loops", "assigned_names"]


def assigned_in_inner_loops(body: Sequence[ast.stmt]) -> set[str]:
    """The names that loops in `body` assign, but for those that the loops bind themselves."""
    return _assigned_in(body, (ast.For, ast.While))


def assigned_in_inner_blocks(body: Sequence[ast.stmt]) -> set[str]:
    """The names that loops and branches in `body` assign, but for those that the loops bind themselves."""
    return _assigned_in(body, (ast.For, ast.While, ast.If))


def _assigned_in(body: Sequence[ast.stmt], kinds: tuple[type[ast.For | ast.While | ast.If], ...]) -> set[str]:
    found: set[str] = set()
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, kinds):
                bound = set(_names(node.target)) if isinstance(node, ast.For) else set()
                inner = (*node.body, *node.orelse)
                found.update({*assigned_names(inner), *_yielded_inside(inner)} - bound)
    return found


def assigned_names(body: Sequence[ast.stmt]) -> Iterator[str]:
    """The names that the statements of `body` assign plainly."""
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Assign) and not is_yield(node.value):
                for target in node.targets:
                    yield from _names(target)
            elif isinstance(node, (ast.AnnAssign, ast.AugAssign)) and not is_yield(node.value):
                yield from _names(node.target)


def _yielded_inside(body: Sequence[ast.stmt]) -> Iterator[str]:
    """The results of the loops and branches in `body`."""
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, (ast.For, ast.If)):
                yield from (name for name, _ in direct_yield_names((*node.body, *node.orelse)))


def _names(target: ast.expr) -> Iterator[str]:
    """The names that an assignment to `target` changes; to a part of a tensor, the tensor's."""
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            yield from _names(element)
    elif isinstance(target, (ast.Subscript, ast.Starred)):
        yield from _names(target.value)
