"""How a scope uses each captured variable: the parameter directions of the function that it becomes.

Out says that the old content is not read, InOut that it is, In everything else, also a tensor that is
written in a way that only later passes understand (through a loop's carried value, `tensor.write`, an inner
submit). Out does not say that all of the tensor is overwritten: each block of an SPMD launch writes its
slice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pypto import ir
from pypto.ir.node import attr_references
from pypto.ir.walk import exprs_of
from pypto.passes.outline.captures import Captures

__all__ = ["find_directions"]

_In, _Out, _InOut = ir.ParamDirection.In, ir.ParamDirection.Out, ir.ParamDirection.InOut

_DESTINATION = {"tile.store": 2, "tensor.assemble": 0}
_NAMING_ATTRS = frozenset(
    {"dump_vars", "arg_direction_overrides_vars"}
)  # they name a tensor without reading it


def find_directions(
    stmts: Iterable[ir.Stmt],
    captures: Captures,
    store_targets: Iterable[ir.Var],
    callees: Mapping[str, ir.Function],
) -> tuple[ir.ParamDirection, ...]:
    """Return one direction per captured variable.

    `stmts` are all statements of the scope in program order, nested scopes not outlined yet.
    `store_targets` are the captured tensors that leave as store targets. `callees` are the functions
    whose declared directions count; a call to another function says nothing.
    """
    usage = _Usage(captures)
    for stmt in stmts:
        usage.note(stmt)
    written = {*store_targets, *usage.assembled}
    directions = {var: _InOut if var in usage.read else _Out for var in written}
    for call in usage.calls:
        callee = callees.get(call.op.name)
        if callee is not None:
            for arg, declared in zip(call.args_, callee.param_directions_, strict=False):
                if type(arg) is ir.Var and arg in captures:
                    directions[arg] = _merged(directions.get(arg, _In), declared)
    return tuple(directions.get(var, _In) for var in captures.vars)


def _merged(known: ir.ParamDirection, declared: ir.ParamDirection) -> ir.ParamDirection:
    """The stronger of two directions in the order In, Out, InOut."""
    return known if known.value >= declared.value else declared


class _Usage:
    """Which captured variables a body reads and assembles into, and what it calls.

    The result of a non-atomic write is an alias of its destination: reading it reads the captured tensor.
    """

    __slots__ = ("_aliases", "_captures", "assembled", "calls", "read")

    def __init__(self, captures: Captures) -> None:
        self.read: set[ir.Var] = set()
        self.assembled: dict[ir.Var, None] = {}
        self.calls: list[ir.Call | ir.Submit] = []
        self._captures = captures
        self._aliases: dict[ir.Var, ir.Var] = {}

    def note(self, stmt: ir.Stmt) -> None:
        if isinstance(stmt, ir.AssignStmt):
            self._note_reads(stmt.value)
            destination = _overwritten(stmt.value)
            origin = None if destination is None else self._origin(destination)
            if origin is not None:
                self._aliases[stmt.var] = origin
        elif isinstance(stmt, (ir.ForStmt, ir.WhileStmt)):
            for arg in stmt.iter_args_:
                self._note_reads(arg.initValue)
            bounds = (stmt.start, stmt.stop, stmt.step) if isinstance(stmt, ir.ForStmt) else (stmt.condition,)
            for expr in bounds:
                self._note_reads(expr)
        elif isinstance(stmt, ir.IfStmt):
            self._note_reads(stmt.condition)
        elif isinstance(stmt, ir.ScopeStmt):
            for expr in _read_by_scope(stmt):
                self._note_reads(expr)
        else:
            for expr in exprs_of(stmt):
                self._note_reads(expr)

    def _note_reads(self, expr: ir.Expr) -> None:
        pending = [expr]
        entered: set[int] = set()
        while pending:
            node = pending.pop()
            if isinstance(node, ir.Var):
                origin = self._origin(node)
                if origin is not None:
                    self.read.add(origin)
                continue
            if id(node) in entered:
                continue
            entered.add(id(node))
            if isinstance(node, (ir.Call, ir.Submit)):
                self._note_call(node)
                pending += reversed([*_read_operands(node)])
            else:
                pending += reversed(node._children())

    def _note_call(self, call: ir.Call | ir.Submit) -> None:
        self.calls.append(call)
        if (
            call.op.name == "tensor.assemble"
            and type(call.args_[0]) is ir.Var
            and call.args_[0] in self._captures
        ):
            self.assembled[call.args_[0]] = None

    def _origin(self, expr: ir.Expr) -> ir.Var | None:
        """The captured variable that `expr` is or is an alias of."""
        if not isinstance(expr, ir.Var):
            return None
        return expr if expr in self._captures else self._aliases.get(expr)


def _overwritten(expr: ir.Expr) -> ir.Expr | None:
    """The destination of a non-atomic store or assemble: written without being read."""
    if not isinstance(expr, ir.Call):
        return None
    position = _DESTINATION.get(expr.op.name)
    if position is None or position >= len(expr.args_) or expr.kwargs_.get("atomic", 0) != 0:
        return None
    return expr.args_[position]


def _read_operands(call: ir.Call | ir.Submit) -> Iterator[ir.Expr]:
    skipped = _overwritten(call)
    position = _DESTINATION[call.op.name] if skipped is not None else None
    yield from (arg for index, arg in enumerate(call.args_) if index != position)
    if isinstance(call, ir.Submit):
        yield from call.deps_
        yield from (expr for expr in (call.core_num, call.predicate) if expr is not None)
    yield from _read_attrs(call.attrs_)


def _read_by_scope(scope: ir.ScopeStmt) -> Iterator[ir.Expr]:
    if isinstance(scope, ir.SpmdScopeStmt):
        yield scope.core_num
    yield from _read_attrs(scope.attrs_)


def _read_attrs(attrs: Mapping[str, object]) -> Iterator[ir.Expr]:
    return attr_references({key: value for key, value in attrs.items() if key not in _NAMING_ATTRS})
