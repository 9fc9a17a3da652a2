"""Two kinds of values that make a function open, and the narrow forms in which they do not.

*Unknown values.* A statement such as `pld.system.notify(...)` has no result, and its call carries
UnknownType. That is harmless exactly where nobody can look at the value: a call of a listed operator
that is the direct expression of an evaluation statement. A bridge's call of a member without results is
no value either. Any other edge to a value of unknown type makes the function ineligible, also an edge to a
node that is harmless elsewhere.

*Prefetch handles.* A context, event or session belongs to one invocation. It is harmless as long as it
stays inside: bound to a variable by the operator that makes it, and used by the prefetch operators
alone. Merging two definitions then shares no handle, because each execution still makes its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from pypto import ir
from pypto.ir.walk import exprs_of, walk_stmts

__all__ = ["find_escaping_handle", "find_unknown_value"]

# seed: legacy statement-only calls
_STATEMENT_ONLY_OPS = frozenset(
    {
        "pld.tensor.put",
        "pld.tile.remote_store",
        "pld.tensor.remote_store",
        "pld.system.notify",
        "pld.system.wait",
        "pld.system.defer_wait",
        "system.set_ffts",
        "system.sync_set",
        "system.sync_wait",
    }
)

_Context, _Event, _Session = ir.PrefetchAsyncContextType, ir.AsyncEventType, ir.AsyncSessionType
HANDLE_TYPES: tuple[type[ir.Type], ...] = (_Context, _Event, _Session)

_MAKERS: dict[str, type[ir.Type]] = {
    "prefetch.make_context": _Context,
    "prefetch.async_prefetch": _Event,
    "prefetch.session": _Session,
}
# The handles that the prefetch operators take, by argument position.
_HANDLE_ARGUMENTS: dict[str, dict[int, type[ir.Type]]] = {
    "prefetch.async_prefetch": {1: _Context},
    "prefetch.session": {0: _Context},
    "prefetch.wait": {0: _Event, 1: _Session},
}


def find_unknown_value(function: ir.Function, void: Collection[str] = ()) -> str | None:
    """Return a description of a value of unknown type that is not a bare statement, None if there is none.

    `void` are functions without results: as a bare statement, a call of one has no value to know the type of.
    """
    for what, declared in _declared_types(function):
        if _contains(declared, (ir.UnknownType,)):
            return f"the type of {what} is unknown"
    checked: set[int] = set()
    for stmt in walk_stmts(function.body):
        for expr in exprs_of(stmt):
            bare = isinstance(stmt, ir.EvalStmt) and _is_statement_only(expr, void)
            found = _unknown_within(expr._children() if bare else (expr,), checked)
            if found is not None:
                return found
    return _unknown_within(_attr_values(function), checked)


def _is_statement_only(expr: ir.Expr, void: Collection[str]) -> bool:
    return (
        isinstance(expr, ir.Call)
        and (expr.op.name in _STATEMENT_ONLY_OPS or expr.op.name in void)
        and isinstance(expr.type, ir.UnknownType)
    )


def _unknown_within(roots: object, checked: set[int]) -> str | None:
    """Look below `roots`, into types as well; nodes found clean are remembered in `checked`."""
    pending: list[ir.Expr] = list(roots)  # type: ignore[call-overload]
    while pending:
        node = pending.pop()
        if id(node) in checked:
            continue
        if _contains(node.type, (ir.UnknownType,)):
            return f"{_described(node)} has an unknown type and is not a bare statement"
        checked.add(id(node))
        pending += node._children()
        pending += _type_parts(node.type)
    return None


def find_escaping_handle(function: ir.Function) -> str | None:
    """Return a description of a prefetch handle that is not made and used up inside, or None."""
    for what, declared in _declared_types(function):
        if _contains(declared, HANDLE_TYPES):
            return f"the type of {what} holds a prefetch handle"
    origins: dict[ir.Var, ir.Var] = {}  # event or session -> its context
    for stmt in walk_stmts(function.body):
        if isinstance(stmt, ir.AssignStmt) and _contains(stmt.var.type, HANDLE_TYPES):
            problem = _note_origin(stmt, origins)
            if problem is not None:
                return problem
    checked: set[int] = set()
    for stmt in walk_stmts(function.body):
        for expr in exprs_of(stmt):
            problem = _misused_handle(expr, stmt, origins, checked)
            if problem is not None:
                return problem
    if any(_is_handle(value) for value in _attr_values(function)):
        return "an attribute of the function names a prefetch handle"
    return None


def _note_origin(stmt: ir.AssignStmt, origins: dict[ir.Var, ir.Var]) -> str | None:
    """Note the context behind `stmt.var`, or say why the handle is not made here."""
    made = stmt.value
    name = stmt.var.name_hint
    if not isinstance(made, ir.Call) or _MAKERS.get(made.op.name) is not type(stmt.var.type):
        return f"the prefetch handle '{name}' is not made by a prefetch operator"
    if isinstance(stmt.var.type, _Context):
        origins[stmt.var] = stmt.var
        return None
    context = made.args_[1 if isinstance(stmt.var.type, _Event) else 0]
    if not isinstance(context, ir.Var):
        return f"the context of the prefetch handle '{name}' is not a variable"
    origins[stmt.var] = context
    return None


def _misused_handle(
    root: ir.Expr, stmt: ir.Stmt, origins: dict[ir.Var, ir.Var], checked: set[int]
) -> str | None:
    """Look for a handle below `root`, which belongs to `stmt`, that is not an operand of a prefetch operator.

    A handle may be the target of its assignment, and the bare result of a statement; everything else that
    has a handle as a child must be a prefetch operator at the right position. Extents inside types are such
    children too.
    """
    if _is_handle(root) and not _is_bound_or_dropped(root, stmt, origins):
        return f"{_described(root)} leaves through a {type(stmt).__name__}"
    pending = [root]
    while pending:
        node = pending.pop()
        if id(node) in checked:
            continue
        checked.add(id(node))
        taken = _HANDLE_ARGUMENTS.get(node.op.name, {}) if isinstance(node, ir.Call) else {}
        arguments = node.args_ if isinstance(node, ir.Call) else ()
        allowed = {id(arguments[position]) for position in taken if position < len(arguments)}
        for child in node._children():
            if _is_handle(child) and not (
                isinstance(child, ir.Var) and id(child) in allowed and child in origins
            ):
                return f"{_described(child)} is an operand of {_described(node)}"
        inside_type = [*_type_parts(node.type)]
        for part in inside_type:
            if _is_handle(part):
                return f"{_described(part)} occurs in the type of {_described(node)}"
        if isinstance(node, ir.Call) and node.op.name == "prefetch.wait":
            event, session = node.args_[0], node.args_[1]
            if origins.get(event) is not origins.get(session):  # type: ignore[call-overload]
                return f"{_described(event)} is awaited with a session of another context"
        pending += node._children()
        pending += inside_type
    return None


def _is_bound_or_dropped(root: ir.Expr, stmt: ir.Stmt, origins: dict[ir.Var, ir.Var]) -> bool:
    """Whether a handle at the top of a statement is bound to a checked variable, or made and dropped."""
    if isinstance(stmt, ir.AssignStmt):
        return stmt.var in origins
    return isinstance(stmt, ir.EvalStmt) and isinstance(root, ir.Call) and root.op.name in _MAKERS


def _is_handle(expr: ir.Expr) -> bool:
    return _contains(expr.type, HANDLE_TYPES)


def _contains(root: ir.Type, wanted: tuple[type[ir.Type], ...]) -> bool:
    pending = [root]
    while pending:
        inner = pending.pop()
        if isinstance(inner, wanted):
            return True
        if isinstance(inner, ir.TupleType):
            pending += inner.types_
    return False


def _type_parts(root: ir.Type) -> Iterator[ir.Expr]:
    """The expressions inside a type, those of tuple elements included."""
    pending = [root]
    while pending:
        inner = pending.pop()
        yield from inner._children()
        if isinstance(inner, ir.TupleType):
            pending += inner.types_


def _declared_types(function: ir.Function) -> Iterator[tuple[str, ir.Type]]:
    for param in function.params_:
        yield f"parameter '{param.name_hint}'", param.type
    for position, result in enumerate(function.return_types_):
        yield f"result {position}", result


def _attr_values(function: ir.Function) -> Iterator[ir.Expr]:
    for value in function.attrs_.values():
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, ir.Expr):
                yield each


def _described(expr: ir.Expr) -> str:
    if isinstance(expr, ir.Var):
        return f"'{expr.name_hint}'"
    if isinstance(expr, (ir.Call, ir.Submit)):
        return f"the call of {expr.op.name}"
    return f"a {type(expr).__name__}"
