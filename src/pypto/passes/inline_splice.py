"""One copy of an Inline function's body, ready to stand where the call was.

Parameters become the actual arguments, everything that the body defines becomes a fresh variable named
`<name>_inline<N>`. `prepare_callee` does once per function what does not depend on the call.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pypto import ir
from pypto.core.errors import UsageError, located
from pypto.ir.rewrite import Substitution, map_expr
from pypto.ir.walk import vars_in, walk, walk_stmts
from pypto.passes.auto_name import base_of
from pypto.passes.memory_effects import calls_in, may_write, writes_memory
from pypto.passes.statement_lists import flat_stmts

_counter = itertools.count()

MakeVar = Callable[[ir.Var, ir.Type], ir.Var]
"""Makes the copy of a local variable, of a type of its own."""

_DUMPING_SCOPES = (
    ir.InCoreScopeStmt,
    ir.HierarchyScopeStmt,
    ir.ClusterScopeStmt,
    ir.SpmdScopeStmt,
    ir.SplitAivScopeStmt,
)


@dataclass(frozen=True, slots=True)
class InlineCallee:
    """An Inline function whose own body holds no inline calls any more.

    `stmts` ends before the return; `values` are the returned values (None without a return); `locals` are the
    variables that a copy must rename, in definition order; `rebound` the parameters that the body assigns;
    `writes` says whether it may write memory.
    """

    name: str
    params: tuple[ir.Var, ...]
    stmts: tuple[ir.Stmt, ...]
    values: tuple[ir.Expr, ...] | None
    returns_tuple: bool
    locals: tuple[ir.Var, ...]
    rebound: frozenset[ir.Var]
    writes: bool
    span: ir.Span


@dataclass(frozen=True, slots=True)
class Splice:
    """The statements that replace a call, and the values it returned (None if it returned nothing)."""

    stmts: list[ir.Stmt]
    values: tuple[ir.Expr, ...] | None


def prepare_callee(function: ir.Function) -> InlineCallee:
    """Take an expanded Inline function apart; raises InternalError for a return that is not trailing."""
    stmts: list[ir.Stmt] = []
    result: ir.ReturnStmt | None = None
    for stmt in flat_stmts(function.body):
        if isinstance(stmt, ir.ReturnStmt):
            result = stmt
            break
        stmts.append(stmt)
    for stmt in stmts:
        if any(isinstance(inner, ir.ReturnStmt) for inner in walk_stmts(stmt)):
            raise UsageError(
                located(
                    f"Inline function '{function.name}' contains a non-trailing ReturnStmt; assign the "
                    "result in the branches and return it at the end",
                    stmt.span,
                )
            )
    values = result.value_ if result is not None else None
    returns_tuple = values is not None and _is_tuple_return(values)
    if values is not None and returns_tuple and len(values) == 1:
        stmts, values = _untuple(function, stmts, values[0])
    defined = list(dict.fromkeys(var for stmt in stmts for var in _defined_vars(stmt)))
    params = frozenset(function.params_)
    return InlineCallee(
        name=function.name,
        params=function.params_,
        stmts=tuple(stmts),
        values=values,
        returns_tuple=returns_tuple,
        locals=tuple(var for var in defined if var not in params),
        rebound=frozenset(var for var in defined if var in params),
        writes=any(map(writes_memory, stmts)),
        span=function.span,
    )


def _is_tuple_return(values: tuple[ir.Expr, ...]) -> bool:
    return len(values) > 1 or (len(values) == 1 and isinstance(values[0].type, ir.TupleType))


def _untuple(
    function: ir.Function, stmts: list[ir.Stmt], value: ir.Expr
) -> tuple[list[ir.Stmt], tuple[ir.Expr, ...]]:
    """Replace one returned tuple by its elements and drop the assignment that built it, if unread."""
    if isinstance(value, ir.MakeTuple):
        return stmts, value.elements_
    sources = [s for s in stmts if isinstance(s, ir.AssignStmt) and s.var is value]
    if len(sources) != 1 or not isinstance(sources[0].value, ir.MakeTuple):
        raise UsageError(
            located(
                f"Inline function '{function.name}': tuple returned through an unsupported expression; "
                "return its elements",
                value.span,
            )
        )
    source = sources[0]
    assert isinstance(source.value, ir.MakeTuple)
    elements = source.value.elements_
    others = [s for s in stmts if s is not source]
    is_read = any(node is value for stmt in others for node in walk(stmt))
    return (stmts if is_read else others), elements


def _defined_vars(stmt: ir.Stmt) -> Iterable[ir.Var]:
    """Yield what `stmt` defines, iter_args excepted: a copy of a loop always makes its own."""
    for inner in walk_stmts(stmt):
        if isinstance(inner, ir.AssignStmt):
            yield inner.var
        elif isinstance(inner, ir.ForStmt):
            yield inner.loop_var
            yield from inner.return_vars_
        elif isinstance(inner, ir.WhileStmt | ir.IfStmt):
            yield from inner.return_vars_


def fresh_inline_var(var: ir.Var, type_: ir.Type) -> ir.Var:
    """Make the copy of a local variable: `<name>_inline<N>`, N increasing over the whole process."""
    return ir.Var(f"{base_of(var.name_hint)}_inline{next(_counter)}", type_, var.span)


def splice(callee: InlineCallee, call: ir.Expr, fresh: MakeVar = fresh_inline_var) -> Splice:
    """Copy the callee's body for one call, with `fresh` variables."""
    assert isinstance(call, ir.Call)
    arguments = call.args_
    if len(arguments) != len(callee.params):
        raise UsageError(
            located(
                f"Inline function '{callee.name}' takes {len(callee.params)} arguments, "
                f"but the call passes {len(arguments)}",
                call.span,
            )
        )
    mapping: dict[ir.Var, ir.Expr] = dict(zip(callee.params, arguments, strict=True))
    before = _save_arguments(callee, mapping, fresh)
    types = Substitution(mapping)
    for var in callee.locals:
        mapping[var] = fresh(var, types.type(var.type))
    stmts, values = _copy_body(callee, mapping)
    tags = call.attrs_.get("dump_vars", ())
    if tags:
        stmts = [_tag_dumps(stmt, tags) for stmt in stmts]
    return Splice([*before, *stmts], values)


def _save_arguments(callee: InlineCallee, mapping: dict[ir.Var, ir.Expr], fresh: MakeVar) -> list[ir.Stmt]:
    """Evaluate an argument up front if it would be another value, or have another effect, inside the body.

    The body may assign a variable that the argument mentions under another name, or write memory that a call
    in it reads; and a call that writes is made once, however often the body uses its result.
    """
    overwritten: set[ir.Var] = set()
    for param in callee.rebound:
        argument = mapping[param]
        if not isinstance(argument, ir.Var):
            raise ValueError(
                f"Inline function '{callee.name}' assigns its parameter '{param.name_hint}', "
                f"but the call passes an expression for it; pass a variable [{argument.span}]"
            )
        overwritten.add(argument)
    saves: list[ir.Stmt] = []
    for param, argument in mapping.items():
        if param in callee.rebound:
            continue
        moves = any(callee.writes or may_write(call) for call in calls_in(argument))
        if moves or overwritten.intersection(vars_in(argument)):
            saved = fresh(param, argument.type)
            saves.append(ir.AssignStmt(saved, argument, argument.span))
            mapping[param] = saved
    return saves


def _copy_body(
    callee: InlineCallee, mapping: dict[ir.Var, ir.Expr]
) -> tuple[list[ir.Stmt], tuple[ir.Expr, ...] | None]:
    body: list[ir.Stmt] = list(callee.stmts)
    if callee.values is not None:
        body.append(ir.ReturnStmt(callee.values, callee.span))
    copied, _ = ir.deep_clone(ir.SeqStmts(body, callee.span), list(mapping.items()))
    stmts = flat_stmts(copied)
    if callee.values is None:
        return stmts, None
    result = stmts[-1]
    assert isinstance(result, ir.ReturnStmt)
    return stmts[:-1], result.value_


def _tag_dumps(stmt: ir.Stmt, tags: tuple[ir.Var, ...]) -> ir.Stmt:
    """Move dump tags onto the scopes that use a tagged variable and the calls that take it as an argument."""

    def visit(child: ir.IRNode) -> ir.IRNode:
        if isinstance(child, ir.Stmt):
            return _tag_dumps(child, tags)
        return map_expr(child, lambda expr: _tag_call(expr, tags)) if isinstance(child, ir.Expr) else child

    result: ir.Stmt = stmt._map_children(visit, lambda type_: type_)
    if not isinstance(result, _DUMPING_SCOPES):
        return result
    used = {node for node in walk(result.body) if isinstance(node, ir.Var)}
    return result.replace(attrs=_with_dumps(result.attrs_, [tag for tag in tags if tag in used]))


def _tag_call(expr: ir.Expr, tags: tuple[ir.Var, ...]) -> ir.Expr:
    if not isinstance(expr, ir.Call | ir.Submit) or not isinstance(expr.op, ir.GlobalVar):
        return expr
    passed = [tag for tag in tags if any(tag is argument for argument in expr.args_)]
    return expr.replace(attrs=_with_dumps(expr.attrs_, passed)) if passed else expr


def _with_dumps(attrs: dict[str, Any], tags: list[ir.Var]) -> dict[str, Any]:
    existing = attrs.get("dump_vars", ())
    added = [tag for tag in tags if all(tag is not other for other in existing)]
    return {**attrs, "dump_vars": [*existing, *added]} if added else attrs
