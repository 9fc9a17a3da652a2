"""The calls in a piece of source, and the inline helpers that they expand."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pypto.language.inline_function import InlineFunction

__all__ = ["Lookup", "calls_in", "inline_calls"]

Lookup = Callable[[str], Any]
"""Gives what a name stands for that the source does not bind."""


def calls_in(body: Sequence[ast.stmt]) -> Iterator[ast.Call]:
    """The calls in the statements of `body`, at any depth."""
    return (inner for stmt in body for inner in ast.walk(stmt) if isinstance(inner, ast.Call))


def inline_calls(body: Sequence[ast.stmt], lookup: Lookup) -> Iterator[tuple[ast.Call, InlineFunction]]:
    """The calls of inline helpers in `body`, each with its helper."""
    for call in calls_in(body):
        helper = lookup(call.func.id) if isinstance(call.func, ast.Name) else None
        if isinstance(helper, InlineFunction):
            yield call, helper
