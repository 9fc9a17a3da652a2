"""Outlining the scopes of one kind in one function.

`outline_scopes` walks the function top-down. A scope of the kind goes through the steps of `_outline`: find
its boundary, build its function, replace it. Everything else stays, with the tensors into which scopes have
stored renamed to their newest variable. Scopes inside a scope are outlined first, as scopes of the function
that the outer one becomes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pypto import ir
from pypto.core.errors import internal_error
from pypto.ir.return_lineage import ReturnLineage
from pypto.passes.leading_comments import with_comments_first
from pypto.passes.outline.boundary import Boundary, find_boundary
from pypto.passes.outline.callee import Head, build_function
from pypto.passes.outline.deferred_wait import check_deferred_waiter
from pypto.passes.outline.dispatch import DispatchPlan, build_dispatch
from pypto.passes.outline.later_uses import Later, UseIndex, index_uses
from pypto.passes.outline.launch_spec import lift_launch_spec
from pypto.passes.outline.names import ScopeNames, VariableNames
from pypto.passes.outline.renames import Renames

__all__ = ["OutlinedFunction", "ScopeRule", "outline_scopes"]

# Inside these, a scope at the end of a function without results is not the last thing that happens.
_NESTING_SCOPES = (
    ir.InCoreScopeStmt,
    ir.ClusterScopeStmt,
    ir.HierarchyScopeStmt,
    ir.SpmdScopeStmt,
    ir.SplitAivScopeStmt,
)


@dataclass(frozen=True, slots=True)
class ScopeRule:
    """How scopes of one kind become functions.

    `suffix` is what an unnamed scope adds to its function's name, before the counter. `head` builds the
    kind-specific part of the function from the scope, its name, and whether it registers deferred waits.
    Where `exports_store_targets` is false, a tensor that a scope stores into does not leave it.
    """

    scope_class: type[ir.ScopeStmt]
    suffix: Callable[[ir.ScopeStmt], str]
    head: Callable[[ir.ScopeStmt, str, bool], Head]
    exports_store_targets: bool = True


@dataclass(frozen=True, slots=True)
class OutlinedFunction:
    """A function without scopes of the kind, and the functions that these became, inner ones first."""

    parent: ir.Function
    outlined: tuple[ir.Function, ...]


def outline_scopes(
    function: ir.Function, rule: ScopeRule, reserved: set[str], callees: Mapping[str, ir.Function]
) -> OutlinedFunction:
    """Outline every scope of the rule's kind in `function`.

    `reserved` are the names of all functions of the program; new names are added to it. `callees` are the
    functions whose parameter directions and returned parameters count at calls inside a scope.
    """
    index = index_uses(function.body, rule.scope_class)
    if not index.holds_target(function.body):
        return OutlinedFunction(function, ())
    known = {var.name_hint for var in (*function.params_, *index.mentions)}
    outliner = _Outliner(rule, index, ScopeNames(reserved, set(known)), callees, ReturnLineage(callees))
    frame = _Frame(function.name, VariableNames(known))
    body = outliner.visit_block(function.body, _Place(frame, Later(index, (), frozenset()), nested=False))
    return OutlinedFunction(function.replace(body=body), tuple(outliner.outlined))


@dataclass(slots=True)
class _Frame:
    """The function in which scopes are being replaced: the given one, or one that a scope is becoming."""

    function: str
    variables: VariableNames
    renames: Renames = field(default_factory=Renames)
    scopes_seen: int = 0
    names_given: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the walk is: in which function, before what, and whether inside a scope of another kind."""

    frame: _Frame
    later: Later
    nested: bool

    def before(self, start: int, stop: int) -> _Place:
        return _Place(self.frame, self.later.then(start, stop), self.nested)


class _Outliner:
    __slots__ = ("_callees", "_index", "_lineage", "_names", "_rule", "outlined")

    def __init__(
        self,
        rule: ScopeRule,
        index: UseIndex,
        names: ScopeNames,
        callees: Mapping[str, ir.Function],
        lineage: ReturnLineage,
    ) -> None:
        self.outlined: list[ir.Function] = []
        self._rule = rule
        self._index = index
        self._names = names
        self._callees = callees
        self._lineage = lineage

    # ---- the walk

    def visit_block(self, block: ir.Stmt, place: _Place) -> ir.Stmt:
        """Return the body `block` with its scopes replaced."""
        if not self._index.holds_target(block):
            return place.frame.renames.stmt(block)
        stmts = block.stmts_ if isinstance(block, ir.SeqStmts) else (block,)
        end = self._index.ends[id(block)]
        placeholders = self._placeholders(stmts)
        result: list[ir.Stmt] = []
        comments: list[str] = []
        for stmt in stmts:
            if id(stmt) in placeholders:
                comments += stmt.leading_comments
                continue
            here = place.before(self._index.ends[id(stmt)], end)
            if isinstance(stmt, self._rule.scope_class):
                result += with_comments_first(self._outline(stmt, here), [*comments, *stmt.leading_comments])
                comments = []
            else:
                result.append(self._visit_kept(stmt, here))
        return ir.flatten_stmts(result, block.span)

    def _placeholders(self, stmts: tuple[ir.Stmt, ...]) -> set[int]:
        """The ids of statements that stand in for a task id until a scope's dispatch defines it."""
        task_ids = {
            stmt.attrs_["task_id_var"]
            for stmt in stmts
            if isinstance(stmt, self._rule.scope_class) and "task_id_var" in stmt.attrs_
        }
        if not task_ids:
            return set()
        return {
            id(stmt)
            for stmt in stmts
            if isinstance(stmt, ir.AssignStmt) and stmt.var in task_ids and _is_invalid_task(stmt.value)
        }

    def _visit_kept(self, stmt: ir.Stmt, place: _Place) -> ir.Stmt:
        """Return `stmt`, which stays, with the scopes inside it replaced."""
        renames = place.frame.renames
        if not self._index.holds_target(stmt):
            return renames.stmt(stmt)
        match stmt:
            case ir.SeqStmts():
                return self.visit_block(stmt, place)
            case ir.ScopeStmt():
                return self._visit_scope(stmt, place)
            case ir.IfStmt():
                condition = renames.expr(stmt.condition)
                then_body = self._visit_conditional(stmt.then_body, place)
                else_body = None if stmt.else_body is None else self._visit_conditional(stmt.else_body, place)
                return stmt.replace(condition=condition, then_body=then_body, else_body=else_body)
            case ir.ForStmt():
                return self._visit_for(stmt, place)
            case ir.WhileStmt():
                return self._visit_while(stmt, place)
        raise internal_error(f"A scope inside a {type(stmt).__name__} cannot be outlined", stmt.span)

    def _visit_scope(self, scope: ir.ScopeStmt, place: _Place) -> ir.Stmt:
        """A scope of another kind runs its body exactly once, so what it renames stays renamed after it."""
        renames = place.frame.renames
        changes: dict[str, object] = {"attrs": renames.attrs(scope.attrs_)}
        if isinstance(scope, ir.SpmdScopeStmt):
            changes["core_num"] = renames.expr(scope.core_num)
        nested = place.nested or isinstance(scope, _NESTING_SCOPES)
        changes["body"] = self.visit_block(scope.body, _Place(place.frame, place.later, nested))
        return scope.replace(**changes)

    def _visit_conditional(self, body: ir.Stmt, place: _Place) -> ir.Stmt:
        """A body that may not run: the names that it binds end with it."""
        mark = place.frame.renames.mark()
        visited = self.visit_block(body, place)
        place.frame.renames.undo_to(mark)
        return visited

    def _visit_for(self, loop: ir.ForStmt, place: _Place) -> ir.Stmt:
        renames = place.frame.renames
        start, stop, step = (renames.expr(bound) for bound in (loop.start, loop.stop, loop.step))
        attrs = renames.attrs(loop.attrs_)
        mark = renames.mark()
        iter_args = _rename_carried(loop.iter_args_, renames)
        body = self.visit_block(loop.body, place)
        renames.undo_to(mark)
        return loop.replace(start=start, stop=stop, step=step, iter_args=iter_args, body=body, attrs=attrs)

    def _visit_while(self, loop: ir.WhileStmt, place: _Place) -> ir.Stmt:
        renames = place.frame.renames
        mark = renames.mark()
        iter_args = _rename_carried(loop.iter_args_, renames)
        condition = renames.expr(loop.condition)
        body = self.visit_block(loop.body, place)
        renames.undo_to(mark)
        return loop.replace(iter_args=iter_args, condition=condition, body=body)

    # ---- one scope

    def _outline(self, scope: ir.ScopeStmt, place: _Place) -> list[ir.Stmt]:
        """Turn `scope` into a function and return the statements that replace it."""
        name = self._name(scope, place.frame)
        head = self._rule.head(scope, name, check_deferred_waiter(scope, nested=place.nested))
        boundary = find_boundary(
            scope,
            name,
            place.later,
            self._callees,
            exports_store_targets=self._rule.exports_store_targets,
            nested=place.nested,
        )
        function = self._build(head, scope, boundary, place)
        return self._replace(scope, function, boundary, place.frame)

    def _build(self, head: Head, scope: ir.ScopeStmt, boundary: Boundary, place: _Place) -> ir.Function:
        """Build the function of `scope`; the scopes inside are outlined first, as scopes of that function."""
        inner = _Frame(head.name, place.frame.variables.inside())
        later = Later(self._index, (), frozenset(boundary.outputs.vars))
        body = self.visit_block(scope.body, _Place(inner, later, place.nested))
        self._names.leave(inner.names_given)
        return build_function(head, body, boundary, inner.variables, self._lineage, scope.span)

    def _replace(
        self, scope: ir.ScopeStmt, function: ir.Function, boundary: Boundary, frame: _Frame
    ) -> list[ir.Stmt]:
        """Replace `scope` by a dispatch of `function`; stored tensors go by new names from here on."""
        args = tuple(frame.renames.expr(var) for var in boundary.captures.vars)
        function, launch = lift_launch_spec(scope, function, args)
        self.outlined.append(function)
        outputs = boundary.outputs
        states = {target: _new_state(target, frame, scope.span) for target in outputs.targets}
        plan = DispatchPlan(function.name, args, (*outputs.regular, *states.values()), launch)
        replacement = build_dispatch(scope, plan, boundary.captures, frame.renames, frame.variables)
        for target, state in states.items():
            frame.renames.set(target, state)
        for alias, target in outputs.aliases.items():
            frame.renames.set(alias, states[target])
        return replacement

    def _name(self, scope: ir.ScopeStmt, frame: _Frame) -> str:
        candidate = scope.name_hint or f"{frame.function}{self._rule.suffix(scope)}{frame.scopes_seen}"
        frame.scopes_seen += 1
        name = self._names.take(candidate, frame.function)
        frame.names_given.append(name)
        return name


def _new_state(target: ir.Var, frame: _Frame, span: ir.Span) -> ir.Var:
    """The variable that holds `target` after a scope has stored into it."""
    return ir.Var(frame.variables.next_version(target.name_hint), target.type, span)


def _rename_carried(iter_args: tuple[ir.IterArg, ...], renames: Renames) -> list[ir.IterArg]:
    """Carried values with renamed initial values; a changed one is renamed itself, inside its loop."""
    renamed = []
    for arg in iter_args:
        initial = renames.expr(arg.initValue)
        if initial is not arg.initValue:
            fresh = ir.IterArg(arg.name_hint, arg.type, initial, arg.span)
            renames.set(arg, fresh)
            arg = fresh
        renamed.append(arg)
    return renamed


def _is_invalid_task(value: ir.Expr) -> bool:
    return isinstance(value, ir.Call) and value.op.name == "system.task_invalid"
