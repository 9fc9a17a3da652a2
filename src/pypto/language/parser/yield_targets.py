"""Which names the yields of a block give to the enclosing loop or branch, told from the source."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from pypto.language.parser.slots import dotted_name, last_name

__all__ = ["direct_yield_names", "is_yield"]

_TRANSPARENT = frozenset({"pl.scope", "pl.manual_scope"})


def is_yield(node: ast.expr | None) -> bool:
    """Whether an expression is a yield call."""
    return (
        isinstance(node, ast.Call) and last_name(node.func) == "yield_" and dotted_name(node.func) is not None
    )


def direct_yield_names(body: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.expr | None]]:
    """Names (and annotations) of assignment-form yields among the direct statements of a branch."""
    for node in body:
        if isinstance(node, ast.Assign) and is_yield(node.value) and len(node.targets) == 1:
            target = node.targets[0]
            targets = target.elts if isinstance(target, ast.Tuple) else [target]
            yield from ((name.id, None) for name in targets if isinstance(name, ast.Name))
        elif isinstance(node, ast.AnnAssign) and is_yield(node.value) and isinstance(node.target, ast.Name):
            yield node.target.id, node.annotation
        elif isinstance(node, ast.With) and _is_transparent(node):
            yield from direct_yield_names(node.body)


def _is_transparent(node: ast.With) -> bool:
    context = node.items[0].context_expr
    return isinstance(context, ast.Call) and dotted_name(context.func) in _TRANSPARENT
