"""Canonical text of statements and scopes, one line per entry of `state.lines`.

Recursion follows the nesting of bodies only, which Python's own syntax bounds. `targets` are the variables
that the yield ending a loop or branch body assigns; they travel down to the last statement of the body.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pypto.core.dtype import DataType
from pypto.core.errors import InternalError
from pypto.ir.enums import ForKind, SplitMode
from pypto.ir.expr import Call, ConstInt, Expr, Var
from pypto.ir.printer.attributes import attrs_dict_text, var_list_text
from pypto.ir.printer.expressions import expr_text
from pypto.ir.printer.literals import double_quoted
from pypto.ir.printer.state import INDENT, State
from pypto.ir.printer.types import type_text
from pypto.ir.scope import (
    ClusterScopeStmt,
    CommDomainScopeStmt,
    HierarchyScopeStmt,
    InCoreScopeStmt,
    RuntimeScopeStmt,
    ScopeStmt,
    SplitAivScopeStmt,
    SpmdScopeStmt,
)
from pypto.ir.stmt import (
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    InlineStmt,
    ReturnStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
    comments_of,
)

__all__ = ["print_body", "print_stmt"]

Targets = Sequence[Var] | None
LOOP_NAMES = {
    ForKind.Sequential: "range",
    ForKind.Parallel: "parallel",
    ForKind.Unroll: "unroll",
    ForKind.Pipeline: "pipeline",
}


def print_body(state: State, body: Stmt, indent: str, targets: Targets = None) -> None:
    """The statements of a body, `pass` when there are none."""
    print_statements(state, body_list(body), indent, targets)


def print_statements(state: State, stmts: Sequence[Stmt], indent: str, targets: Targets = None) -> None:
    before = len(state.lines)
    last = len(stmts) - 1
    for position, stmt in enumerate(stmts):
        if position < last and _is_recreated(stmt, stmts[position + 1]):
            continue
        for comment in comments_of(stmt):
            state.lines += [f"{indent}# {line}" for line in comment.split("\n")]
        print_stmt(state, stmt, indent, targets if position == last else None)
    if len(state.lines) == before:
        state.lines.append(indent + "pass")


def body_list(body: Stmt) -> list[Stmt]:
    """The statements of a body with nested sequences spliced in."""
    if not isinstance(body, SeqStmts):
        return [body]
    if not any(isinstance(stmt, SeqStmts) for stmt in body.stmts_):
        return list(body.stmts_)
    flat: list[Stmt] = []
    stack: list[Stmt] = [body]
    while stack:
        stmt = stack.pop()
        if isinstance(stmt, SeqStmts):
            stack.extend(reversed(stmt.stmts_))
        else:
            flat.append(stmt)
    return flat


def print_stmt(state: State, stmt: Stmt, indent: str, targets: Targets = None) -> None:
    """One statement, without its own comments."""
    printer = _PRINTERS.get(type(stmt))
    if printer is None:
        raise InternalError(f"statement {type(stmt).__name__} has no text")
    if isinstance(stmt, ScopeStmt):
        _check_spelling(stmt)
    printer(state, stmt, indent, targets)


_AT_ATTRS = frozenset(
    {
        "allow_early_resolve", "arg_direction_overrides_vars", "dump_vars", "manual_dep_edges", "task_id_var",
        "windowize",
    }
)  # fmt: skip
_SPELLED_ATTRS: dict[type[ScopeStmt], frozenset[str]] = {
    InCoreScopeStmt: _AT_ATTRS | {"slot_num"},
    HierarchyScopeStmt: _AT_ATTRS,
    ClusterScopeStmt: frozenset({"dump_vars"}),
    SpmdScopeStmt: frozenset(
        {"allow_early_resolve", "dump_vars", "manual_dep_edges", "predicate", "task_id_var"}
    ),
}
"""The attributes of each scope that its header can say. A communication domain prints as a comment anyway."""


def _check_spelling(scope: ScopeStmt) -> None:
    """Raise `InternalError` for what the header of a scope cannot say: it would be lost silently."""
    if isinstance(scope, CommDomainScopeStmt):
        return
    kind = type(scope).__name__
    unspelled = scope.attrs_.keys() - _SPELLED_ATTRS.get(type(scope), frozenset())
    if unspelled:
        raise InternalError(f"attribute '{min(unspelled)}' of a {kind} has no spelling")
    if scope.name_hint and isinstance(scope, (RuntimeScopeStmt, SplitAivScopeStmt)):
        raise InternalError(f"the name hint '{scope.name_hint}' of a {kind} has no spelling")


def _is_recreated(stmt: Stmt, following: Stmt) -> bool:
    """Whether reading `following` back makes the binding `stmt` of its task id again."""
    return (
        isinstance(stmt, AssignStmt)
        and isinstance(following, ScopeStmt)
        and following.attrs_.get("task_id_var") is stmt.var
        and _is_op(stmt.value, "system.task_invalid")
        and not comments_of(stmt)
    )


def _is_op(expr: Expr, name: str) -> bool:
    return isinstance(expr, Call) and expr.op.name == name


def _assign(state: State, stmt: AssignStmt, indent: str, _targets: Targets) -> None:
    var = stmt.var
    name = state.names.get(id(var)) or var.name_hint
    value = expr_text(state, stmt.value)
    if state.concise:
        state.lines.append(f"{indent}{name} = {value}")
    else:
        state.lines.append(f"{indent}{name}: {type_text(state, var.type)} = {value}")


def _eval(state: State, stmt: EvalStmt, indent: str, _targets: Targets) -> None:
    state.lines.append(indent + expr_text(state, stmt.expr))


def _return(state: State, stmt: ReturnStmt | YieldStmt, indent: str, _targets: Targets) -> None:
    state.lines.append(f"{indent}return {_values(state, stmt.value_)}".rstrip())


def _values(state: State, values: Sequence[Expr]) -> str:
    return ", ".join([expr_text(state, value) for value in values])


def _yield(state: State, stmt: YieldStmt, indent: str, targets: Targets) -> None:
    text = f"{state.prefix}.yield_({_values(state, stmt.value_)})"
    if targets:
        names = ", ".join([state.name(var) for var in targets])
        annotated = len(targets) == 1 and not state.concise
        text = f"{names}{': ' + type_text(state, targets[0].type) if annotated else ''} = {text}"
    state.lines.append(indent + text)


def _break(state: State, _stmt: BreakStmt, indent: str, _targets: Targets) -> None:
    state.lines.append(indent + "break")


def _continue(state: State, _stmt: ContinueStmt, indent: str, _targets: Targets) -> None:
    state.lines.append(indent + "continue")


def _inline(state: State, stmt: InlineStmt, indent: str, _targets: Targets) -> None:
    state.lines += [indent + line if line else line for line in stmt.body.split("\n")]


def _seq(state: State, stmt: SeqStmts, indent: str, targets: Targets) -> None:
    print_body(state, stmt, indent, targets)


def _if(state: State, stmt: IfStmt, indent: str, _targets: Targets) -> None:
    state.lines.append(f"{indent}if {expr_text(state, stmt.condition)}:")
    print_body(state, stmt.then_body, indent + INDENT, stmt.return_vars_)
    if stmt.else_body is not None:
        state.lines.append(f"{indent}else:")
        print_body(state, stmt.else_body, indent + INDENT, stmt.return_vars_)


def _for(state: State, stmt: ForStmt, indent: str, _targets: Targets) -> None:
    if stmt.kind is ForKind.Unroll and stmt.iter_args_:
        raise InternalError(
            f"an unrolled loop does not support iter_args (loop over '{stmt.loop_var.name_hint}')"
        )
    parts = [_bounds(state, stmt)]
    attrs = dict(stmt.attrs_)
    if stmt.kind is ForKind.Pipeline:
        if "pipeline_stages" not in attrs:
            raise InternalError(
                f"the pipelined loop over '{stmt.loop_var.name_hint}' has no 'pipeline_stages'"
            )
        parts.append(f"stage={attrs.pop('pipeline_stages')}")
    if stmt.iter_args_:
        parts.append(f"init_values={_init_values(state, stmt)}")
    if attrs:
        for key, value in attrs.items():
            if not isinstance(value, (int, float, str)):
                raise InternalError(
                    f"attribute '{key}' of a loop holds a value of type {type(value).__name__}, "
                    "which has no spelling there"
                )
        parts.append(f"attrs={attrs_dict_text(state, attrs.items())}")
    target = state.name(stmt.loop_var)
    if stmt.iter_args_:
        target += f", {_carried(state, stmt)}"
    state.lines.append(f"{indent}for {target} in {state.prefix}.{LOOP_NAMES[stmt.kind]}({', '.join(parts)}):")
    print_body(state, stmt.body, indent + INDENT, stmt.return_vars_)


def _bounds(state: State, stmt: ForStmt) -> str:
    stop = expr_text(state, stmt.stop)
    if not _is_index(stmt.step, 1):
        return f"{expr_text(state, stmt.start)}, {stop}, {expr_text(state, stmt.step)}"
    return stop if _is_index(stmt.start, 0) else f"{expr_text(state, stmt.start)}, {stop}"


def _is_index(expr: Expr, value: int) -> bool:
    return isinstance(expr, ConstInt) and expr.value == value and expr.dtype is DataType.INDEX


def _carried(state: State, loop: ForStmt | WhileStmt) -> str:
    names = [state.name(arg) for arg in loop.iter_args_]
    return f"({names[0]},)" if len(names) == 1 else f"({', '.join(names)})"


def _init_values(state: State, loop: ForStmt | WhileStmt) -> str:
    values = [expr_text(state, arg.initValue) for arg in loop.iter_args_]
    return f"({values[0]},)" if len(values) == 1 else f"({', '.join(values)})"


def _while(state: State, stmt: WhileStmt, indent: str, _targets: Targets) -> None:
    condition = expr_text(state, stmt.condition)
    if not stmt.iter_args_:
        state.lines.append(f"{indent}while {condition}:")
    else:
        init_values = _init_values(state, stmt)
        state.lines.append(
            f"{indent}for {_carried(state, stmt)} in {state.prefix}.while_(init_values={init_values}):"
        )
        state.lines.append(f"{indent}{INDENT}{state.prefix}.cond({condition})")
    print_body(state, stmt.body, indent + INDENT, stmt.return_vars_)


def _with(state: State, text: str, scope: ScopeStmt, indent: str) -> None:
    task = scope.attrs_.get("task_id_var")
    if task is not None and not isinstance(task, Var):
        raise InternalError(f"attribute 'task_id_var' of a scope must be a variable, not {task!r}")
    bound = f" as {state.name(task)}" if task is not None else ""
    state.lines.append(f"{indent}with {state.prefix}.{text}{bound}:")


def _name_hint(scope: ScopeStmt) -> list[str]:
    return [f"name_hint={double_quoted(scope.name_hint)}"] if scope.name_hint else []


_DEPS, _DUMPS = ("deps", "manual_dep_edges"), ("dumps", "dump_vars")


def _var_lists(state: State, attrs: dict[str, Any], *pairs: tuple[str, str]) -> list[str]:
    found = [(word, attrs.get(key, ())) for word, key in pairs]
    return [f"{word}={var_list_text(state, values)}" for word, values in found if values]


def _flags(attrs: dict[str, Any], *keys: str) -> list[str]:
    return [f"{key}=True" for key in keys if attrs.get(key)]


def _optimizations(state: State, scope: InCoreScopeStmt) -> list[str]:
    p = state.prefix
    entries = []
    if scope.split is not SplitMode.NONE:
        entries.append(f"{p}.split({p}.SplitMode.{scope.split.name})")
    if "slot_num" in scope.attrs_:
        entries.append(f"{p}.cross_core_slot(slot_num={scope.attrs_['slot_num']})")
    return [f"optimizations=[{', '.join(entries)}]"] if entries else []


def _at(state: State, scope: InCoreScopeStmt | HierarchyScopeStmt, indent: str, targets: Targets) -> None:
    p = state.prefix
    if isinstance(scope, InCoreScopeStmt):
        parts = [f"level={p}.Level.CORE_GROUP", *_optimizations(state, scope)]
    else:
        parts = [f"level={p}.Level.{scope.level.name}"]
        if scope.role is not None:
            parts.append(f"role={p}.Role.{scope.role.name}")
    attrs = scope.attrs_
    parts += _name_hint(scope)
    parts += _var_lists(state, attrs, _DEPS, ("no_dep_args", "arg_direction_overrides_vars"), _DUMPS)
    parts += _flags(attrs, "allow_early_resolve", "windowize")
    _with(state, f"at({', '.join(parts)})", scope, indent)
    print_body(state, scope.body, indent + INDENT, targets)


def _cluster(state: State, scope: ClusterScopeStmt, indent: str, targets: Targets) -> None:
    parts = [*_name_hint(scope), *_var_lists(state, scope.attrs_, _DUMPS)]
    _with(state, f"cluster({', '.join(parts)})", scope, indent)
    print_body(state, scope.body, indent + INDENT, targets)


def _runtime(state: State, scope: RuntimeScopeStmt, indent: str, targets: Targets) -> None:
    mode = f"mode={state.prefix}.ScopeMode.MANUAL" if scope.manual else ""
    state.lines.append(f"{indent}with {state.prefix}.scope({mode}):")
    print_body(state, scope.body, indent + INDENT, targets)


def _split_aiv(state: State, scope: SplitAivScopeStmt, indent: str, targets: Targets) -> None:
    p = state.prefix
    lane, stmts = _leading_binding(state, body_list(scope.body), "tile.get_subblock_idx")
    state.lines.append(
        f"{indent}for {lane or 'aiv_id'} in {p}.split_aiv("
        f"{scope.count}, mode={p}.SplitMode.{scope.split.name}):"
    )
    state.split_aiv_depth += 1
    print_statements(state, stmts, indent + INDENT, targets)
    state.split_aiv_depth -= 1


def _leading_binding(state: State, stmts: list[Stmt], op: str) -> tuple[str | None, list[Stmt]]:
    """The name bound by a leading `v = <op>()`, None without one, and the statements after it."""
    if stmts and isinstance(stmts[0], AssignStmt) and _is_op(stmts[0].value, op):
        return state.name(stmts[0].var), stmts[1:]
    return None, stmts


def _comm_domain(state: State, scope: CommDomainScopeStmt, indent: str, targets: Targets) -> None:
    devices = "all" if not scope.devices_ else f"[{', '.join(map(str, scope.devices_))}]"
    slots = ", ".join([state.name(slot) for slot in scope.slots_])
    state.lines.append(f"{indent}# pld.comm_domain: devices={devices}, slots=[{slots}]")
    print_body(state, scope.body, indent, targets)


def _spmd(state: State, scope: SpmdScopeStmt, indent: str, targets: Targets) -> None:
    stmts = body_list(scope.body)
    carrier = stmts[0] if len(stmts) == 1 and isinstance(stmts[0], InCoreScopeStmt) else None
    if carrier is not None and not _is_implied_by(scope, carrier):
        carrier = None
    deps = _var_lists(state, scope.attrs_, _DEPS)
    own = [*deps, *_var_lists(state, scope.attrs_, _DUMPS)]
    if "task_id_var" in scope.attrs_:
        flattened = carrier if carrier is not None and _is_recreated_carrier(carrier) else None
        middle = own if flattened is None else [*_kernel_arguments(state, flattened), *deps]
        _with(state, f"spmd({_spmd_arguments(state, scope, middle)})", scope, indent)
        body = flattened.body if flattened is not None else scope.body
        print_body(state, body, indent + INDENT, targets)
        return
    if carrier is not None:
        block, rest = _leading_binding(state, body_list(carrier.body), "tile.get_block_idx")
        if block is not None:
            arguments = _spmd_arguments(state, scope, [*_kernel_arguments(state, carrier), *deps])
            state.lines.append(f"{indent}for {block} in {state.prefix}.spmd({arguments}):")
            print_statements(state, rest, indent + INDENT, targets)
            return
    _with(state, f"spmd({_spmd_arguments(state, scope, own)})", scope, indent)
    print_body(state, scope.body, indent + INDENT, targets)


def _kernel_arguments(state: State, carrier: InCoreScopeStmt) -> list[str]:
    """The arguments of the launch that a reader hands on to the InCore scope that it makes by itself."""
    return [*_optimizations(state, carrier), *_var_lists(state, carrier.attrs_, _DUMPS)]


def _is_implied_by(scope: SpmdScopeStmt, carrier: InCoreScopeStmt) -> bool:
    """Whether a reader that makes the InCore scope by itself would give it and the launch these names, and
    could give it these attributes."""
    if "dump_vars" in scope.attrs_ or not carrier.attrs_.keys() <= {"dump_vars", "slot_num"}:
        return False
    if not scope.name_hint:
        return not carrier.name_hint
    return scope.name_hint == f"{carrier.name_hint}_spmd"


def _spmd_arguments(state: State, scope: SpmdScopeStmt, middle: list[str]) -> str:
    parts = [expr_text(state, scope.core_num)]
    if scope.sync_start:
        parts.append("sync_start=True")
    parts += [*_name_hint(scope), *middle, *_flags(scope.attrs_, "allow_early_resolve")]
    predicate = scope.attrs_.get("predicate")
    if predicate is not None:
        parts.append(f"predicate=({expr_text(state, predicate)})")
    return ", ".join(parts)


def _is_recreated_carrier(scope: InCoreScopeStmt) -> bool:
    """Whether a reader makes this InCore scope by itself around the statements of an spmd block."""
    return (
        scope.split is not SplitMode.NONE or "slot_num" in scope.attrs_ or _mentions_block_index(scope.body)
    )


def _mentions_block_index(root: Stmt) -> bool:
    stack: list[Any] = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, Call) and node.op.name == "tile.get_block_idx":
            return True
        stack.extend(node._children())
    return False


_PRINTERS: dict[type[Stmt], Callable[..., None]] = {
    AssignStmt: _assign,
    EvalStmt: _eval,
    ReturnStmt: _return,
    YieldStmt: _yield,
    BreakStmt: _break,
    ContinueStmt: _continue,
    InlineStmt: _inline,
    SeqStmts: _seq,
    IfStmt: _if,
    ForStmt: _for,
    WhileStmt: _while,
    InCoreScopeStmt: _at,
    HierarchyScopeStmt: _at,
    ClusterScopeStmt: _cluster,
    RuntimeScopeStmt: _runtime,
    SplitAivScopeStmt: _split_aiv,
    CommDomainScopeStmt: _comm_domain,
    SpmdScopeStmt: _spmd,
}
