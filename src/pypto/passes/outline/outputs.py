"""What leaves a scope: the results of the function that it becomes.

Two kinds. A *regular* output is a value that the scope defines and that is needed later. A *store target*
is a tensor from outside into which the scope stores: it leaves in its new state whether or not anybody
reads it, because the next scope that touches the tensor must come after this one.

The result of a store to a store target is not a third kind: it is another name for the target's new state,
an *alias*.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pypto import ir
from pypto.ir.rewrite import definitions_of
from pypto.ir.walk import substatements, walk_stmts
from pypto.passes.outline.captures import Captures
from pypto.passes.outline.later_uses import Later

__all__ = ["Outputs", "Store", "find_outputs", "find_stores", "stored_tensor"]

_STORE, _STORE_DESTINATION = "tile.store", 2


@dataclass(frozen=True, slots=True)
class Store:
    """A statement that stores into the captured tensor `target`; `result` is what it binds, if anything."""

    stmt: ir.Stmt
    target: ir.Var
    result: ir.Var | None


@dataclass(frozen=True, slots=True)
class Outputs:
    """What leaves a scope, in the order of the function's results.

    `regular` are values in definition order; `targets` follow, the tensor first stored to last. `aliases`
    maps the result of a store to the target whose new state it names.
    """

    regular: tuple[ir.Var, ...]
    targets: tuple[ir.Var, ...]
    aliases: Mapping[ir.Var, ir.Var]

    @property
    def vars(self) -> tuple[ir.Var, ...]:
        return (*self.regular, *self.targets)


def find_stores(stmts: Sequence[ir.Stmt], captures: Captures) -> tuple[Store, ...]:
    """Return the stores into captured tensors among `stmts`, all statements of a scope in program order.

    A carried value of an enclosing loop is no store target: its new state leaves as the result of the store.
    """
    found = []
    for stmt in stmts:
        target = stored_tensor(stmt)
        if target is not None and target in captures:
            found.append(Store(stmt, target, stmt.var if isinstance(stmt, ir.AssignStmt) else None))
    return tuple(found)


def stored_tensor(stmt: ir.Stmt) -> ir.Var | None:
    """Return the plain variable into which `stmt` stores a tile, None if it is no such statement."""
    if isinstance(stmt, ir.AssignStmt):
        call = stmt.value
    elif isinstance(stmt, ir.EvalStmt):
        call = stmt.expr
    else:
        return None
    if not isinstance(call, ir.Call) or call.op.name != _STORE or len(call.args_) <= _STORE_DESTINATION:
        return None
    target = call.args_[_STORE_DESTINATION]
    return target if type(target) is ir.Var else None


def find_outputs(
    body: ir.Stmt, stmts: Sequence[ir.Stmt], stores: Sequence[Store], later: Later, *, nested: bool
) -> Outputs:
    """Decide what leaves the scope `body`, whose statements in program order are `stmts`.

    `stores` are those into captured tensors, none where store targets do not leave.

    Where nothing is known to be needed later (the scope is last in a function that returns nothing), the
    tensors bound at the top level of the body leave, unless the scope is `nested` in a scope of another kind.
    """
    aliases = {store.result: store.target for store in stores if store.result is not None}
    if later.is_empty():
        candidates = () if nested or registers_waits(body) else tuple(_top_level_tensors(body))
    else:
        candidates = tuple(var for stmt in stmts for var in _definitions(stmt) if later.needs(var))
    regular = tuple(dict.fromkeys(var for var in candidates if var not in aliases))
    targets = tuple(reversed(dict.fromkeys(store.target for store in stores)))
    return Outputs(regular, targets, aliases)


def registers_waits(body: ir.Stmt) -> bool:
    """Whether the body registers deferred waits; such a scope produces nothing but its completion."""
    return any(isinstance(stmt, ir.EvalStmt) and _is_deferred_wait(stmt.expr) for stmt in walk_stmts(body))


def _is_deferred_wait(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Call) and expr.op.name == "pld.system.defer_wait"


def _definitions(stmt: ir.Stmt) -> list[ir.Var]:
    """What `stmt` defines, in the order in which it leaves: a loop's variable, results, carried values."""
    match stmt:
        case ir.ForStmt():
            return [stmt.loop_var, *stmt.return_vars_]
        case ir.WhileStmt():
            return list(stmt.return_vars_)
    return definitions_of(stmt)


def _top_level_tensors(body: ir.Stmt) -> Iterator[ir.Var]:
    """The tensors that are in scope at the end of the body: none of loop bodies or branches."""
    pending = [body]
    while pending:
        stmt = pending.pop()
        if isinstance(stmt, (ir.SeqStmts, ir.ScopeStmt)):
            pending += reversed(substatements(stmt))
            continue
        yield from (var for var in _definitions(stmt) if isinstance(var.type, ir.TensorType))
