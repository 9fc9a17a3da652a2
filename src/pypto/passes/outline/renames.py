"""The newest names of the tensors into which outlined scopes have stored.

After a scope that stores into `T`, the caller must go on with the variable that the dispatch bound, not
with `T`. The map is flat: original variable to newest variable. Scope bodies that are outlined keep the
originals; their dispatches pass the newest.
"""

from __future__ import annotations

from typing import Any

from pypto import ir
from pypto.ir.node import map_attr_references
from pypto.ir.rewrite import Substitution
from pypto.ir.walk import exprs_of, vars_in, walk_stmts

__all__ = ["Renames"]


class Renames:
    """A map from variables to variables, applied to what stays in the caller."""

    __slots__ = ("_newest", "_trail")

    def __init__(self) -> None:
        self._newest: dict[ir.Var, ir.Var] = {}
        self._trail: list[tuple[ir.Var, ir.Var | None]] = []  # each change with the entry it replaced

    def set(self, var: ir.Var, newest: ir.Var) -> None:
        self._trail.append((var, self._newest.get(var)))
        self._newest[var] = newest

    def mark(self) -> int:
        """Return the present state, for `undo_to` when a branch or loop body ends."""
        return len(self._trail)

    def undo_to(self, mark: int) -> None:
        """Take back all changes since `mark`.

        What was bound inside a branch or loop body does not exist after it, and may never have been bound
        at all. The tensor is still there under its earlier name, with its new content.
        """
        while len(self._trail) > mark:
            var, previous = self._trail.pop()
            if previous is None:
                del self._newest[var]
            else:
                self._newest[var] = previous

    def expr(self, expr: ir.Expr) -> ir.Expr:
        if not self._newest:
            return expr
        if isinstance(expr, ir.Var):
            return self._newest.get(expr, expr)
        hits = {var: self._newest[var] for var in vars_in(expr) if var in self._newest}
        return Substitution(hits).expr(expr) if hits else expr

    def stmt(self, stmt: ir.Stmt) -> ir.Stmt:
        """Rename in a whole statement, its inner statements included."""
        if not self._newest:
            return stmt
        mentioned = (var for inner in walk_stmts(stmt) for expr in exprs_of(inner) for var in vars_in(expr))
        hits = {var: self._newest[var] for var in mentioned if var in self._newest}
        return Substitution(hits).stmt(stmt) if hits else stmt

    def attrs(self, attrs: dict[str, Any]) -> dict[str, Any]:
        return map_attr_references(attrs, self.expr) if self._newest else attrs
