"""Makes the text of a failing program smaller while it keeps failing.

Works on the syntax tree: drops methods and statements, puts a body in place of its block, an operand in place
of an expression. A change stays if the caller still sees the failure.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

Keeps = Callable[[str], bool]


def shrink(text: str, keeps_failing: Keeps, *, most_attempts: int = 2000) -> str:
    """The smallest text found for which `keeps_failing` is true; it must be true for `text`."""
    attempts = 0
    changed = True
    while changed:
        changed = False
        position = 0
        while attempts < most_attempts:
            candidate = _candidate(text, position)
            if candidate is None:
                break
            attempts += 1
            if candidate != text and len(candidate) <= len(text) and keeps_failing(candidate):
                text, changed = candidate, True
            else:
                position += 1
    return text


def _candidate(text: str, position: int) -> str | None:
    """The text after change number `position`; None past the last."""
    tree = ast.parse(text)
    for number, apply in enumerate(_changes(tree)):
        if number == position:
            apply()
            return ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    return None


def _changes(tree: ast.Module) -> Iterator[Callable[[], None]]:
    for node in ast.walk(tree):
        for name in ("body", "orelse"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                yield from _changes_of_block(block)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.arguments)):
            continue
        for field, value in ast.iter_fields(node):
            for operand in _operands(value):
                yield lambda node=node, field=field, operand=operand: setattr(node, field, operand)
            if isinstance(value, list) and field in ("args", "keywords"):
                yield from _changes_of_arguments(value)


def _changes_of_block(block: list[ast.stmt]) -> Iterator[Callable[[], None]]:
    for index in reversed(range(len(block))):
        if isinstance(block[index], (ast.ClassDef, ast.Import, ast.Return)):
            continue
        if len(block) > 1:
            yield lambda index=index: block.__delitem__(index)
        inner = getattr(block[index], "body", None)
        if isinstance(inner, list) and not isinstance(block[index], ast.FunctionDef):
            yield lambda index=index, inner=inner: block.__setitem__(slice(index, index + 1), inner)
        orelse = getattr(block[index], "orelse", None)
        if orelse:
            yield lambda index=index, orelse=orelse: block.__setitem__(slice(index, index + 1), orelse)
            yield lambda index=index: setattr(block[index], "orelse", [])


def _changes_of_arguments(values: list[ast.AST]) -> Iterator[Callable[[], None]]:
    for index, value in enumerate(values):
        if isinstance(value, ast.keyword):
            yield lambda index=index: values.__delitem__(index)
        for operand in _operands(value):
            yield lambda index=index, operand=operand: values.__setitem__(index, operand)


def _operands(value: object) -> list[ast.expr]:
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return []
    return [each for each in value.args if isinstance(each, (ast.Name, ast.Call, ast.Subscript))]
