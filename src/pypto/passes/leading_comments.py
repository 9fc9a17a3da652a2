"""Leading comments of a statement that other statements replace: they move to the first of those."""

from __future__ import annotations

from collections.abc import Sequence

from pypto import ir


def with_comments_first(stmts: list[ir.Stmt], comments: Sequence[str]) -> list[ir.Stmt]:
    """Return `stmts` with `comments` before those of the first statement; nothing is changed in place."""
    if not comments or not stmts:
        return stmts
    first, *rest = stmts
    if isinstance(first, ir.SeqStmts):
        inner = with_comments_first(list(first.stmts_), comments)
        return [first.replace(stmts=inner), *rest]
    fresh = first._rebuilt(list(first._values()))
    ir.attach_leading_comments(fresh, [*comments, *first.leading_comments])
    return [fresh, *rest]
