"""What crosses the boundary of a scope: values in, values out, tensors written.

This is the step "compute captures": everything that `callee` and `dispatch` need to know about a scope body,
read off it as it stands, before scopes inside it are outlined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pypto import ir
from pypto.core.errors import internal_error
from pypto.ir.walk import walk_stmts
from pypto.passes.outline.captures import Captures, find_captures
from pypto.passes.outline.directions import find_directions
from pypto.passes.outline.later_uses import Later
from pypto.passes.outline.outputs import Outputs, find_outputs, find_stores, stored_tensor

__all__ = ["Boundary", "find_boundary"]


@dataclass(frozen=True, slots=True)
class Boundary:
    """What a scope captures, how it uses each captured variable, and what leaves it."""

    captures: Captures
    directions: tuple[ir.ParamDirection, ...]
    outputs: Outputs


def find_boundary(
    scope: ir.ScopeStmt,
    name: str,
    later: Later,
    callees: Mapping[str, ir.Function],
    *,
    exports_store_targets: bool,
    nested: bool,
) -> Boundary:
    """Return the boundary of `scope`, which will be the function `name`.

    `later` is what runs after the scope. Raises InternalError if the body is not in SSA form.
    """
    captures = find_captures(scope.body)
    stmts = tuple(walk_stmts(scope.body))
    _check_rebinding(scope, name, stmts, captures, stores_may_rebind=exports_store_targets)
    stores = find_stores(stmts, captures) if exports_store_targets else ()
    outputs = find_outputs(scope.body, stmts, stores, later, nested=nested)
    directions = find_directions(stmts, captures, outputs.targets, callees)
    return Boundary(captures, directions, outputs)


def _check_rebinding(
    scope: ir.ScopeStmt, name: str, stmts: Sequence[ir.Stmt], captures: Captures, *, stores_may_rebind: bool
) -> None:
    """A captured variable has one value throughout the scope; only a store may repeat its name."""
    for stmt in stmts:
        if not isinstance(stmt, ir.AssignStmt) or stmt.var not in captures:
            continue
        if not (stores_may_rebind and stored_tensor(stmt) is stmt.var):
            raise internal_error(
                f"The scope '{name}' assigns '{stmt.var.name_hint}', which it also reads from outside. "
                "Outlining needs SSA form; run ConvertToSSA first",
                scope.span,
            )
