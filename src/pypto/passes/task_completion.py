"""One task id for all tasks that an orchestration submits.

`with_completion` turns every dispatch of a function into a Submit that also waits for given ids, and returns
in addition the id of a task that is complete when all of them are:

    b = self.k(a)                       r = pl.submit(self.k, a, deps=[d]); b = r[0]; t = r[1]
    for i in pl.range(n):               for i, (e,) in pl.range(n, init_values=(none,)):
        self.w(b, i)                        r = pl.submit(self.w, b, i, deps=[d]); u = r[0]
                                            f = pl.system.task_dummy(deps=[e, u])
                                            g = pl.yield_(f)
    return b                            return b, pl.system.task_dummy(deps=[t, g])

Ids are carried out of loops, branches and scopes; where nothing was submitted, they are invalid and not
waited for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pypto import ir
from pypto.ir.op_registry import create_op_call
from pypto.ir.rewrite import Substitution
from pypto.ir.walk import exprs_of, walk_stmts
from pypto.passes.statement_lists import flat_stmts

__all__ = ["with_completion"]

_TASK_ID = ir.ScalarType(ir.DataType.TASK_ID)


def with_completion(
    function: ir.Function, dependencies: Sequence[ir.Type], functions: Mapping[str, ir.Function]
) -> ir.Function:
    """Return `function` with a parameter per dependency, for which all its tasks wait, and one result more.

    `functions` are those of the program.
    """
    span = function.span
    waited = tuple(ir.Var(f"dep_{at}", type_, span) for at, type_ in enumerate(dependencies))
    tracking = _Tracking(waited, functions)
    stmts = flat_stmts(function.body)
    values: tuple[ir.Expr, ...] = ()
    if stmts and isinstance(last := stmts[-1], ir.ReturnStmt):
        stmts, values = stmts[:-1], last.value_
    tracked, done = tracking.block(stmts, span)
    body = tracking.renamed.stmt(ir.flatten_stmts([*tracked, ir.ReturnStmt([*values, done], span)], span))
    params = [*zip(function.params_, function.param_directions_, strict=True)]
    return ir.Function(
        function.name,
        [*params, *((var, ir.ParamDirection.In) for var in waited)],
        [*function.return_types_, _TASK_ID],
        body,
        span,
        type=function.func_type,
        level=function.level,
        role=function.role,
        attrs=function.attrs_,
    )


class _Tracking:
    """The walk over one function. `renamed` are results of calls that have got an id in addition."""

    def __init__(self, waited: tuple[ir.Var, ...], functions: Mapping[str, ir.Function]) -> None:
        self.renamed = Substitution()
        self._waited = waited
        self._functions = functions

    def block(
        self, stmts: Sequence[ir.Stmt], span: ir.Span, earlier: Sequence[ir.Var] = ()
    ) -> tuple[list[ir.Stmt], ir.Var]:
        """Return the statements, and a variable for the id of what they and the `earlier` ids stand for."""
        new: list[ir.Stmt] = []
        ids = list(earlier)
        for stmt in stmts:
            made, task = self._stmt(stmt)
            new += made
            if task is not None:
                ids.append(task)
        if len(ids) == 1:
            return new, ids[0]
        done = _id("done", span)
        if ids:
            barrier = create_op_call("system.task_dummy", [], span)
            barrier = barrier.replace(attrs={"dummy_task": True, "manual_dep_edges": ids})
        else:
            barrier = create_op_call("system.task_invalid", [], span)
        return [*new, ir.AssignStmt(done, barrier, span)], done

    def _stmt(self, stmt: ir.Stmt) -> tuple[list[ir.Stmt], ir.Var | None]:
        match stmt:
            case ir.AssignStmt(value=ir.Call() | ir.Submit() as dispatch) if self._is_dispatch(dispatch):
                return self._assigned(stmt, dispatch)
            case ir.EvalStmt(expr=ir.Call() | ir.Submit() as dispatch) if self._is_dispatch(dispatch):
                return self._submitted(dispatch, (), stmt.span)[1:]
            case ir.ForStmt() | ir.WhileStmt():
                return self._loop(stmt)
            case ir.IfStmt():
                return self._branches(stmt)
            case ir.ScopeStmt():
                return self._scope(stmt)
        return [stmt], None

    def _is_dispatch(self, expr: ir.Call | ir.Submit) -> bool:
        return expr.op.name in self._functions

    def _assigned(self, stmt: ir.AssignStmt, dispatch: ir.Call | ir.Submit) -> tuple[list[ir.Stmt], ir.Var]:
        if isinstance(dispatch, ir.Submit):
            assert isinstance(stmt.var.type, ir.TupleType)
            task = _id("task", stmt.span)
            submitted = stmt.replace(value=dispatch.replace(deps=[*dispatch.deps_, *self._waited]))
            last = ir.TupleGetItemExpr(stmt.var, len(stmt.var.type.types_) - 1, stmt.span)
            return [submitted, ir.AssignStmt(task, last, stmt.span)], task
        several = isinstance(stmt.var.type, ir.TupleType)
        results = stmt.var.type.types_ if isinstance(stmt.var.type, ir.TupleType) else (stmt.var.type,)
        result, stmts, task = self._submitted(dispatch, results, stmt.span)
        if several:
            self.renamed.set(stmt.var, result)
        else:
            stmts.insert(1, ir.AssignStmt(stmt.var, ir.TupleGetItemExpr(result, 0, stmt.span), stmt.span))
        return stmts, task

    def _submitted(
        self, dispatch: ir.Call | ir.Submit, results: Sequence[ir.Type], span: ir.Span
    ) -> tuple[ir.Var, list[ir.Stmt], ir.Var]:
        """Return the variable of all results, the submission, and the variable of its id."""
        type_ = ir.TupleType([*results, _TASK_ID])
        result, task = ir.Var("ret__tmp_v0", type_, span), _id("task", span)
        submit = self._as_submit(dispatch, type_)
        last = ir.TupleGetItemExpr(result, len(results), span)
        return result, [ir.AssignStmt(result, submit, span), ir.AssignStmt(task, last, span)], task

    def _as_submit(self, dispatch: ir.Call | ir.Submit, type_: ir.Type) -> ir.Submit:
        if isinstance(dispatch, ir.Submit):
            return dispatch.replace(deps=[*dispatch.deps_, *self._waited])
        attrs = dict(dispatch.attrs_)
        return ir.Submit(
            dispatch.op,
            dispatch.args_,
            self._waited,
            dispatch.kwargs_,
            core_num=attrs.pop("core_num", None),
            sync_start=attrs.pop("sync_start", False),
            attrs=attrs,
            type=type_,
            span=dispatch.span,
        )

    def _loop(self, stmt: ir.ForStmt | ir.WhileStmt) -> tuple[list[ir.Stmt], ir.Var | None]:
        if not self._submits(stmt):
            return [stmt], None
        span = stmt.span
        none = _id("none", span)
        carried = ir.IterArg("tasks__iter_v0", _TASK_ID, none, span)
        after = ir.Var("tasks__rv_v0", _TASK_ID, span)
        body = self._yielding(stmt.body, (carried,))
        loop = stmt.replace(
            iter_args=[*stmt.iter_args_, carried], return_vars=[*stmt.return_vars_, after], body=body
        )
        return [ir.AssignStmt(none, create_op_call("system.task_invalid", [], span), span), loop], after

    def _branches(self, stmt: ir.IfStmt) -> tuple[list[ir.Stmt], ir.Var | None]:
        if not self._submits(stmt):
            return [stmt], None
        after = ir.Var("tasks__phi_v0", _TASK_ID, stmt.span)
        else_body = stmt.else_body if stmt.else_body is not None else ir.SeqStmts([], stmt.span)
        branch = stmt.replace(
            then_body=self._yielding(stmt.then_body),
            else_body=self._yielding(else_body),
            return_vars=[*stmt.return_vars_, after],
        )
        return [branch], after

    def _scope(self, stmt: ir.ScopeStmt) -> tuple[list[ir.Stmt], ir.Var | None]:
        """Take the id out of a scope in an array: ids themselves end with the scope that bound them."""
        if not self._submits(stmt):
            return [stmt], None
        span = stmt.span
        stmts, done = self.block(flat_stmts(stmt.body), span)
        slots, filled = (ir.Var("slots", ir.ArrayType(ir.DataType.TASK_ID, 1), span) for _ in range(2))
        one, first = (ir.ConstInt(value, ir.DataType.INDEX, span) for value in (1, 0))
        make = create_op_call("array.create", [one], {"dtype": ir.DataType.TASK_ID}, span)
        keep = create_op_call("array.update_element", [slots, first, done], span)
        take = create_op_call("array.get_element", [filled, first], span)
        after = _id("tasks", span)
        inside = ir.flatten_stmts([*stmts, ir.AssignStmt(filled, keep, span)], stmt.body.span)
        before = ir.AssignStmt(slots, make, span)
        return [before, stmt.replace(body=inside), ir.AssignStmt(after, take, span)], after

    def _yielding(self, body: ir.Stmt, earlier: Sequence[ir.Var] = ()) -> ir.Stmt:
        """Return a loop or branch body that also yields the id of its tasks."""
        stmts = flat_stmts(body)
        values: tuple[ir.Expr, ...] = ()
        if stmts and isinstance(last := stmts[-1], ir.YieldStmt):
            stmts, values = stmts[:-1], last.value_
        tracked, done = self.block(stmts, body.span, earlier)
        return ir.flatten_stmts([*tracked, ir.YieldStmt([*values, done], body.span)], body.span)

    def _submits(self, stmt: ir.Stmt) -> bool:
        return any(
            isinstance(expr, (ir.Call, ir.Submit)) and self._is_dispatch(expr)
            for inner in walk_stmts(stmt)
            for expr in exprs_of(inner)
        )


def _id(name: str, span: ir.Span) -> ir.Var:
    return ir.Var(name, _TASK_ID, span)
