"""ConvertToSSA: every variable assigned once.

1. A parameter `p` becomes `p__ssa_v0`, each assignment of `x` a new `x__ssa_v<n>`; uses read the version
   that is current. All roles of one source variable share one counter.
2. A loop carries every variable that its body assigns and that exists before it (`x__iter_v<n>`, result
   `x__rv_v<n+1>`), ordered by name. It also carries out variables that are first assigned in its body and
   read after it; their value for zero trips is taken from an output parameter or another variable of the
   same type. Without any, it stays undefined, which the SSA verifier reports.
3. An `if` merges what its branches changed into `x__phi_v<n>`, ordered by name.
4. Scopes bind nothing: what is assigned inside is visible after them.

Input that is already in SSA form keeps its structure; only names are derived anew. Work is proportional to
the size of the function: liveness is summarised once per statement (`ssa.liveness`), versions are undone
through a journal (`ssa.versions`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pypto import ir
from pypto.core.errors import UsageError, located
from pypto.passes.base import IRProperty, Pass, PassProperties, create_function_pass, property_set
from pypto.passes.ssa.liveness import Needs, Summaries, is_transparent
from pypto.passes.ssa.versions import Versions
from pypto.passes.statement_lists import flat_stmts


def convert_to_ssa() -> Pass:
    """Make the ConvertToSSA pass."""
    return create_function_pass(
        _convert_function,
        "ConvertToSSA",
        PassProperties(
            produced=property_set(IRProperty.SSAForm),
            invalidated=property_set(IRProperty.NormalizedStmtStructure),
        ),
    )


def _convert_function(function: ir.Function) -> ir.Function:
    if _is_host_worker(function):
        return function
    return _Conversion(function).run()


def _is_host_worker(function: ir.Function) -> bool:
    """Say whether the body belongs to the host: a SubWorker at level HOST or above."""
    return (
        function.role is ir.Role.SubWorker
        and function.level is not None
        and function.level.value >= ir.Level.HOST.value
    )


@dataclass(frozen=True, slots=True)
class _Promoted:
    """A source variable that a loop carries, with the iter_arg and return var made for it."""

    var: ir.Var
    iter_arg: ir.IterArg
    return_var: ir.Var


def _by_name(variables: Iterable[ir.Var]) -> list[ir.Var]:
    return sorted(variables, key=lambda var: (var.name_hint, var.unique_id))


class _Conversion:
    """The conversion of one function."""

    def __init__(self, function: ir.Function) -> None:
        self._function = function
        self._versions = Versions()
        self._summaries = Summaries()
        self._needs = Needs(self._summaries)
        self._handlers: dict[type[ir.Stmt], Callable[[Any], ir.Stmt]] = {
            ir.AssignStmt: self._assign,
            ir.SeqStmts: self._sequence,
            ir.EvalStmt: self._eval,
            ir.ReturnStmt: self._values,
            ir.YieldStmt: self._values,
            ir.ForStmt: self._for,
            ir.WhileStmt: self._while,
            ir.IfStmt: self._if,
        }

    def run(self) -> ir.Function:
        """Convert parameters, body and attributes."""
        function = self._function
        params = [self._define(param, "ssa", self._versions.type(param.type)) for param in function.params_]
        body = self._stmt(function.body)
        return function.replace(params=params, body=body, attrs=self._versions.attrs(function.attrs_))

    def _define(self, var: ir.Var, role: str, type_: ir.Type) -> ir.Var:
        version = ir.Var(self._versions.fresh_name(var, role), type_, var.span)
        self._versions.define(var, version)
        return version

    def _stmt(self, stmt: ir.Stmt) -> ir.Stmt:
        handler = self._handlers.get(type(stmt))
        if handler is not None:
            return handler(stmt)
        return self._scope(stmt) if isinstance(stmt, ir.ScopeStmt) else stmt

    # --- straight-line statements ---

    def _assign(self, stmt: ir.AssignStmt) -> ir.Stmt:
        value = self._versions.expr(stmt.value)
        version = self._define(stmt.var, "ssa", self._assigned_type(stmt.var, value))
        return stmt._rebuilt((version, value, stmt.span))

    def _assigned_type(self, var: ir.Var, value: ir.Expr) -> ir.Type:
        """Return the type of the value where it is known; the declared one otherwise."""
        type_ = value.type
        follows_value = isinstance(value, ir.Var) or isinstance(
            type_, ir.TensorType | ir.TileType | ir.TupleType
        )
        if not follows_value or not _is_known(type_):
            return self._versions.type(var.type)
        declared = var.type
        if (
            isinstance(type_, ir.TensorType | ir.TileType)
            and isinstance(declared, ir.TensorType | ir.TileType)
            and type_.memref is None
            and declared.memref is not None
        ):
            return type_.replace(memref=declared.memref)
        return type_

    def _eval(self, stmt: ir.EvalStmt) -> ir.Stmt:
        return stmt.replace(expr=self._versions.expr(stmt.expr))

    def _values(self, stmt: ir.ReturnStmt | ir.YieldStmt) -> ir.Stmt:
        return stmt.replace(value=[self._versions.expr(value) for value in stmt.value_])

    def _sequence(self, sequence: ir.SeqStmts) -> ir.Stmt:
        stmts: list[ir.Stmt] = []
        place = self._needs.enter_sequence(sequence)
        last = len(sequence.stmts_) - 1
        for position, stmt in enumerate(sequence.stmts_):
            if position != last and isinstance(stmt, ir.YieldStmt):
                raise UsageError(
                    located(
                        f"YieldStmt at position {position} of {last + 1} statements: a yield must come last",
                        stmt.span,
                    )
                )
            place.position = position
            stmts.append(self._stmt(stmt))
        self._needs.leave()
        return ir.flatten_stmts(stmts, sequence.span)

    def _scope(self, scope: ir.ScopeStmt) -> ir.Stmt:
        changes: dict[str, Any] = {"attrs": self._versions.attrs(scope.attrs_)}
        if isinstance(scope, ir.SpmdScopeStmt):
            changes["core_num"] = self._versions.expr(scope.core_num)
        transparent = is_transparent(scope)
        if not transparent:
            self._needs.enter_boundary()
        changes["body"] = self._stmt(scope.body)
        if not transparent:
            self._needs.leave()
        return scope.replace(**changes)

    # --- loops ---

    def _for(self, loop: ir.ForStmt) -> ir.Stmt:
        start, stop, step = (self._versions.expr(bound) for bound in (loop.start, loop.stop, loop.step))
        attrs = self._versions.attrs(loop.attrs_)
        existing = self._existing_iter_args(loop.iter_args_)
        promoted = self._promoted(loop, excluded={loop.loop_var, *loop.iter_args_})

        self._versions.enter_region()
        loop_var = self._define(loop.loop_var, "idx", self._versions.type(loop.loop_var.type))
        self._enter_iteration(loop.iter_args_, existing, promoted)
        body, final = self._loop_body(loop.body)

        return_vars = self._loop_results(loop.return_vars_, promoted)
        return loop.replace(
            loop_var=loop_var,
            start=start,
            stop=stop,
            step=step,
            iter_args=[*existing, *(each.iter_arg for each in promoted)],
            body=_with_final_yield(body, [final.get(p.var, p.iter_arg) for p in promoted], body.span),
            return_vars=return_vars,
            attrs=attrs,
        )

    def _while(self, loop: ir.WhileStmt) -> ir.Stmt:
        existing = self._existing_iter_args(loop.iter_args_)
        promoted = self._promoted(loop, excluded=set(loop.iter_args_))

        self._versions.enter_region()
        self._enter_iteration(loop.iter_args_, existing, promoted)
        condition = self._versions.expr(loop.condition)
        body, final = self._loop_body(loop.body)

        return_vars = self._loop_results(loop.return_vars_, promoted)
        return loop.replace(
            condition=condition,
            iter_args=[*existing, *(each.iter_arg for each in promoted)],
            body=_with_final_yield(body, [final.get(p.var, p.iter_arg) for p in promoted], body.span),
            return_vars=return_vars,
        )

    def _existing_iter_args(self, iter_args: Sequence[ir.IterArg]) -> list[ir.IterArg]:
        """Rebuild the iter_args of a loop that already carries values; their names stay."""
        return [
            ir.IterArg(
                arg.name_hint, self._versions.type(arg.type), self._versions.expr(arg.initValue), arg.span
            )
            for arg in iter_args
        ]

    def _promoted(self, loop: ir.ForStmt | ir.WhileStmt, excluded: set[ir.Var]) -> list[_Promoted]:
        """Decide what the loop carries besides its existing iter_args: carried, then escaping variables."""
        assigned = [var for var in self._summaries.of(loop.body).assigned if var not in excluded]
        carried = [var for var in assigned if var in self._versions]
        escaping = [var for var in assigned if var not in self._versions and self._needs.is_needed(var)]
        result: list[_Promoted] = []
        for var in _by_name(carried):
            before = self._versions.get(var)
            assert before is not None
            result.append(self._promote(var, before.type, before, loop.span))
        for var in _by_name(escaping):
            type_ = self._versions.type(var.type)
            result.append(self._promote(var, type_, self._zero_trip_value(var, type_), loop.span))
        return result

    def _promote(self, var: ir.Var, type_: ir.Type, initial: ir.Expr, span: ir.Span) -> _Promoted:
        iter_arg = ir.IterArg(self._versions.fresh_name(var, "iter"), type_, initial, span)
        return_var = ir.Var(self._versions.fresh_name(var, "rv"), type_, span)
        return _Promoted(var, iter_arg, return_var)

    def _zero_trip_value(self, var: ir.Var, type_: ir.Type) -> ir.Expr:
        """Return what a variable first assigned in a loop holds if the loop makes no trip."""
        for param, direction in zip(self._function.params_, self._function.param_directions_, strict=True):
            version = self._versions.get(param)
            if direction is not ir.ParamDirection.In and version is not None and version.type == type_:
                return version
        earliest = self._versions.earliest_of_type(type_)
        return earliest if earliest is not None else ir.Var(var.name_hint, type_, var.span)

    def _enter_iteration(
        self, sources: Sequence[ir.IterArg], existing: list[ir.IterArg], promoted: list[_Promoted]
    ) -> None:
        for source, iter_arg in zip(sources, existing, strict=True):
            self._versions.define(source, iter_arg)
        for each in promoted:
            self._versions.define(each.var, each.iter_arg)

    def _loop_body(self, body: ir.Stmt) -> tuple[ir.Stmt, dict[ir.Var, ir.Var]]:
        """Convert the body and leave the loop's region; return the body and the final versions."""
        self._needs.enter_boundary()
        converted = self._stmt(body)
        self._needs.leave()
        return converted, self._versions.leave_region()

    def _loop_results(self, existing: Sequence[ir.Var], promoted: list[_Promoted]) -> list[ir.Var]:
        results: list[ir.Var] = []
        for var in existing:
            result = ir.Var(var.name_hint, self._versions.type(var.type), var.span)
            self._versions.define(var, result)
            results.append(result)
        for each in promoted:
            self._versions.define(each.var, each.return_var)
            results.append(each.return_var)
        return results

    # --- branches ---

    def _if(self, stmt: ir.IfStmt) -> ir.Stmt:
        condition = self._versions.expr(stmt.condition)
        then_body, then_final = self._branch(stmt.then_body)
        else_body, else_final = (None, {}) if stmt.else_body is None else self._branch(stmt.else_body)
        merged = _by_name(
            var
            for var in {**then_final, **else_final}
            if var in self._versions or (var in then_final and var in else_final)
        )
        return_vars = [self._define(var, "rv", self._versions.type(var.type)) for var in stmt.return_vars_]
        if merged:
            then_values = [self._branch_value(var, then_final) for var in merged]
            else_values = [self._branch_value(var, else_final) for var in merged]
            for var, value in zip(merged, then_values, strict=True):
                return_vars.append(self._define(var, "phi", value.type))
            then_body = _with_final_yield(then_body, then_values, stmt.span)
            if else_body is None:
                else_body = ir.SeqStmts([], stmt.span)
            else_body = _with_final_yield(else_body, else_values, stmt.span)
        elif not return_vars:
            then_body = _without_bare_yield(then_body)
            else_body = None if else_body is None else _without_bare_yield(else_body)
        return stmt.replace(
            condition=condition, then_body=then_body, else_body=else_body, return_vars=return_vars
        )

    def _branch(self, body: ir.Stmt) -> tuple[ir.Stmt, dict[ir.Var, ir.Var]]:
        self._versions.enter_region()
        converted = self._stmt(body)
        return converted, self._versions.leave_region()

    def _branch_value(self, var: ir.Var, final: dict[ir.Var, ir.Var]) -> ir.Var:
        value = final.get(var, self._versions.get(var))
        assert value is not None
        return value


def _is_known(type_: ir.Type) -> bool:
    if isinstance(type_, ir.TupleType):
        return all(_is_known(element) for element in type_.types_)
    return not isinstance(type_, ir.UnknownType)


def _without_bare_yield(body: ir.Stmt) -> ir.Stmt:
    """Drop a trailing yield of nothing: control-flow lowering leaves one where values might have merged."""
    stmts = flat_stmts(body)
    if not stmts or not isinstance(stmts[-1], ir.YieldStmt) or stmts[-1].value_:
        return body
    return ir.flatten_stmts(stmts[:-1], body.span)


def _with_final_yield(body: ir.Stmt, values: Sequence[ir.Expr], span: ir.Span) -> ir.Stmt:
    """Add `values` to the yield that ends `body`, making one if there is none.

    Runtime and SplitAiv scopes are looked through: the yield stays, or is put, inside them.
    """
    if not values:
        return body
    stmts = flat_stmts(body)
    last = stmts[-1] if stmts else None
    if isinstance(last, ir.YieldStmt):
        stmts[-1] = last.replace(value=[*last.value_, *values])
    elif isinstance(last, ir.ScopeStmt) and is_transparent(last):
        stmts[-1] = last.replace(body=_with_final_yield(last.body, values, span))
    else:
        stmts.append(ir.YieldStmt(values, span))
    return ir.flatten_stmts(stmts, body.span)
