"""Names that loops and branches in a body assign, plainly or as the results of a loop or branch inside them.

A loop that carries a name in SSA style may assign it in an inner loop. From the second turn of the inner loop
on, reading the name there means what the turn before assigned, also where the text reads before it assigns.
The same holds for the parameters of a helper that is expanded in place.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from pypto.ir.op_registry import get_op_def
from pypto.language.parser.inline_calls import Lookup, inline_calls
from pypto.language.parser.slots import last_name
from pypto.language.parser.yield_targets import direct_yield_names, is_yield

__all__ = [
    "assigned_in_inner_loops",
    "assigned_names",
    "filled_by_helpers",
    "filled_names",
    "rebound_in_inner_blocks",
]


def assigned_in_inner_loops(body: Sequence[ast.stmt]) -> set[str]:
    """The names that loops in `body` assign, but for those that the loops bind themselves."""
    return _assigned_in(body, (ast.For, ast.While), assigned_names)


def rebound_in_inner_blocks(body: Sequence[ast.stmt]) -> set[str]:
    """The names that loops and branches in `body` give another value, but for those that the loops bind.

    Writing into the tensor that a name stands for gives the name no other value.
    """
    return _assigned_in(body, (ast.For, ast.While, ast.If), _rebound)


def _assigned_in(
    body: Sequence[ast.stmt],
    kinds: tuple[type[ast.For | ast.While | ast.If], ...],
    assigned: Callable[[Sequence[ast.stmt]], Iterator[str]],
) -> set[str]:
    found: set[str] = set()
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, kinds):
                bound = set(_names(node.target)) if isinstance(node, ast.For) else set()
                inner = (*node.body, *node.orelse)
                found.update({*assigned(inner), *_yielded_inside(inner)} - bound)
    return found


def assigned_names(body: Sequence[ast.stmt]) -> Iterator[str]:
    """The names that the statements of `body` assign plainly."""
    for target, _ in _assignments(body):
        yield from _names(target)


def filled_names(
    body: Sequence[ast.stmt], lookup: Lookup, known: dict[int, set[str]] | None = None
) -> set[str]:
    """The names of tensors into which `body` writes, itself or through the inline helpers that it calls.

    `known` are the parameters that helpers fill, by the helper's id.
    """
    found: set[str] = set()
    for target, value in _assignments(body):
        if isinstance(target, ast.Subscript) or _fills(value, target):
            found.update(_names(target))
    return found | filled_by_helpers(body, lookup, known)


def filled_by_helpers(
    body: Sequence[ast.stmt], lookup: Lookup, known: dict[int, set[str]] | None = None
) -> set[str]:
    """The names of tensors into which inline helpers write that `body` calls."""
    known = {} if known is None else known
    found: set[str] = set()
    for call, helper in inline_calls(body, lookup):
        if id(helper) not in known:
            known[id(helper)] = set()  # while a helper that calls itself is looked at
            known[id(helper)] = filled_names(helper.func_def.body, helper.closure_vars.get, known)
        for parameter, argument in zip(helper.param_names, call.args, strict=False):
            if parameter in known[id(helper)] and isinstance(argument, ast.Name):
                found.add(argument.id)
    return found


def _rebound(body: Sequence[ast.stmt]) -> Iterator[str]:
    for target, value in _assignments(body):
        if not isinstance(target, ast.Subscript) and not _fills(value, target):
            yield from _names(target)


def _assignments(body: Sequence[ast.stmt]) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Assign) and not is_yield(node.value):
                yield from ((target, node.value) for target in node.targets)
            elif isinstance(node, (ast.AnnAssign, ast.AugAssign)) and not is_yield(node.value):
                yield node.target, node.value


def _fills(value: ast.expr | None, target: ast.expr) -> bool:
    """Whether `target = value` is like `out = pl.store(tile, offsets, out)`."""
    if not (isinstance(value, ast.Call) and isinstance(target, ast.Name)):
        return False
    operands = [*value.args, *(keyword.value for keyword in value.keywords)]
    if not any(isinstance(each, ast.Name) and each.id == target.id for each in operands):
        return False
    found = (get_op_def(f"{space}.{last_name(value.func)}") for space in ("tensor", "tile", "array"))
    return any(definition is not None and definition.effects for definition in found)


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
