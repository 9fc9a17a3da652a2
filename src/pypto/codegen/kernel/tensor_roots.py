"""Which variables are one tensor or array: what an operator writes to is what it returns."""

from __future__ import annotations

from pypto import ir
from pypto.codegen.kernel.aliases import updated_argument
from pypto.codegen.kernel.events import Event, EventKind, list_events, trailing_yield
from pypto.ir.op_registry import get_op_def

#: types of values that live in one place, whatever they are called
_SHARED = (ir.TensorType, ir.ArrayType)


def tensor_roots(body: ir.Stmt) -> dict[ir.Var, ir.Var]:
    """The variable that names the tensor of each tensor variable that is not a tensor of its own.

    A carried tensor is its initial value as long as every iteration yields that one; otherwise, like the
    result of an `if` whose branches give different tensors, it is a variable of its own.
    """
    events, _ = list_events(body)
    own: set[ir.Var] = set()
    while True:
        roots, changing = _trace(events, own)
        if not changing:
            return roots
        own |= changing


def _trace(events: list[Event], own: set[ir.Var]) -> tuple[dict[ir.Var, ir.Var], set[ir.Var]]:
    roots: dict[ir.Var, ir.Var] = {}
    changing: set[ir.Var] = set()

    def root_of(expr: ir.Expr) -> ir.Var | None:
        return roots.get(expr, expr) if isinstance(expr, ir.Var) else None

    def bind(var: ir.Var, expr: ir.Expr) -> None:
        root = root_of(expr)
        if root is not None and isinstance(var.type, _SHARED) and var not in own:
            roots[var] = root

    for event in events:
        stmt = event.stmt
        if isinstance(stmt, ir.AssignStmt):
            source = _written_tensor(stmt.value)
            if source is not None:
                bind(stmt.var, source)
        elif event.kind is EventKind.LOOP_BEGIN:
            assert isinstance(stmt, (ir.ForStmt, ir.WhileStmt))
            for carried, result in zip(stmt.iter_args_, stmt.return_vars_, strict=False):
                bind(carried, carried.initValue)
                bind(result, carried)
        elif event.kind is EventKind.LOOP_END:
            assert isinstance(stmt, (ir.ForStmt, ir.WhileStmt))
            for carried, expr in zip(stmt.iter_args_, trailing_yield(stmt.body), strict=False):
                if isinstance(carried.type, _SHARED) and root_of(carried) is not root_of(expr):
                    changing.add(carried)
        elif event.kind is EventKind.IF_END:
            assert isinstance(stmt, ir.IfStmt)
            others = trailing_yield(stmt.else_body) if stmt.else_body is not None else ()
            for result, then_expr, else_expr in zip(
                stmt.return_vars_, trailing_yield(stmt.then_body), others, strict=False
            ):
                if root_of(then_expr) is root_of(else_expr):
                    bind(result, then_expr)
    return roots, changing - own


def _written_tensor(value: ir.Expr) -> ir.Expr | None:
    if isinstance(value, ir.Var):
        return value
    if isinstance(value, ir.Call) and isinstance(value.type, _SHARED):
        definition = get_op_def(value.op.name)
        index = None if definition is None else updated_argument(definition)
        if index is not None:
            return value.args_[index]
    return None
