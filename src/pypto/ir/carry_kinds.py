"""What a loop does with a tensor that it carries.

The tensor may be updated in place, so that the result of the loop is what it started from; it may be
computed anew in each trip; or the loop may go on with another tensor. Followed are copies, in-place
operators, branches and inner loops. The results of functions are not looked into.
"""

from __future__ import annotations

import enum

from pypto.ir.expr import Call, Expr, MakeTuple, TupleGetItemExpr, Var
from pypto.ir.op_registry import get_op_def
from pypto.ir.scope import ScopeStmt
from pypto.ir.stmt import AssignStmt, ForStmt, IfStmt, SeqStmts, Stmt, WhileStmt, YieldStmt

__all__ = ["RESULT_IS_ARGUMENT", "CarryKind", "carry_kinds"]

# Operators whose result is one of their arguments, written in place, with the position of that argument.
RESULT_IS_ARGUMENT = {
    "tile.store": 2,
    "tile.mscatter": 2,
    "tensor.assemble": 0,
    "tensor.set_validshape": 0,
    "tile.fillpad_inplace": 0,
    "tile.scatter_update": 0,
    "tile.scatter": 0,
    "tile.scatter_mask": 0,
    "tile.gather_row": 0,
    "tile.matmul_acc": 0,
    "tile.gemv_acc": 0,
    "tile.batch_matmul_acc": 0,
    "tile.matmul_mx_acc": 0,
    "tile.tget_scale_addr": 0,
}


class CarryKind(enum.Enum):
    """How a carried value ends."""

    IN_PLACE = enum.auto()
    COMPUTED = enum.auto()
    OTHER = enum.auto()
    """Another tensor that has a name."""
    UNKNOWN = enum.auto()
    """The result of a function."""


class _Source(enum.Enum):
    COMPUTED = enum.auto()
    CALLED = enum.auto()


_Sources = frozenset["Var | _Source"]
_COMPUTED: _Sources = frozenset({_Source.COMPUTED})
_CALLED: _Sources = frozenset({_Source.CALLED})


def carry_kinds(body: Stmt) -> dict[Var, CarryKind]:
    """The kind of each carried value in `body`, by the carried variable and by the result of the loop."""
    walk = _Walk()
    walk.block(body)
    return walk.kinds


class _Walk:
    """Goes through the statements in order; `sources` says which tensors a variable may be."""

    def __init__(self) -> None:
        self.sources: dict[Var, _Sources] = {}
        self.packed: dict[Var, MakeTuple] = {}
        self.kinds: dict[Var, CarryKind] = {}

    def block(self, body: Stmt | None) -> tuple[Expr, ...]:
        """Follow a body; returns what it yields."""
        if body is None:
            return ()
        yielded: tuple[Expr, ...] = ()
        for stmt in body.stmts_ if isinstance(body, SeqStmts) else (body,):
            yielded = self._stmt(stmt)
        return yielded

    def _stmt(self, stmt: Stmt) -> tuple[Expr, ...]:
        if isinstance(stmt, AssignStmt) and isinstance(stmt.value, MakeTuple):
            self.packed.setdefault(stmt.var, stmt.value)
        elif isinstance(stmt, AssignStmt):
            self.sources.setdefault(stmt.var, self._of(stmt.value))
        elif isinstance(stmt, (ForStmt, WhileStmt)):
            self._loop(stmt)
        elif isinstance(stmt, IfStmt):
            first, second = self.block(stmt.then_body), self.block(stmt.else_body)
            for result, *values in zip(stmt.return_vars_, first, second, strict=False):
                self.sources[result] = self._of(values[0]) | self._of(values[1])
        elif isinstance(stmt, (ScopeStmt, SeqStmts)):
            return self.block(stmt if isinstance(stmt, SeqStmts) else stmt.body)
        elif isinstance(stmt, YieldStmt):
            return stmt.value_
        return ()

    def _loop(self, loop: ForStmt | WhileStmt) -> None:
        yielded = self.block(loop.body)
        for position, carried in enumerate(loop.iter_args_):
            initial = self._of(carried.initValue)
            final = self._of(yielded[position]) if position < len(yielded) else frozenset({carried})
            kind = _kind(final - {carried} - initial)
            self.kinds[carried] = kind
            for result in loop.return_vars_[position : position + 1]:
                self.kinds[result] = kind
                self.sources[result] = initial | (final - {carried})

    def _of(self, expr: Expr) -> _Sources:
        if isinstance(expr, Var):
            return self.sources.get(expr) or frozenset({expr})
        if isinstance(expr, TupleGetItemExpr) and isinstance(expr.tuple, Var) and expr.tuple in self.packed:
            return self._of(self.packed[expr.tuple].elements_[expr.index])
        if not isinstance(expr, Call):
            return _CALLED
        position = RESULT_IS_ARGUMENT.get(expr.op.name)
        if position is not None and position < len(expr.args_):
            return self._of(expr.args_[position])
        return _CALLED if get_op_def(expr.op.name) is None else _COMPUTED


def _kind(changed: _Sources) -> CarryKind:
    if not changed:
        return CarryKind.IN_PLACE
    if changed == _COMPUTED:
        return CarryKind.COMPUTED
    return CarryKind.UNKNOWN if all(isinstance(each, _Source) for each in changed) else CarryKind.OTHER
