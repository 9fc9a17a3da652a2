"""What a function computes from its parameters alone, said in the terms of whoever dispatches it.

A task hands back tensors only. A scalar that a kernel computes from its arguments is therefore computed once
more where it is used: by a wrapper that passes it on, or by the orchestration that reads it as a result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from pypto.codegen.orchestration.cpp_types import cpp_type
from pypto.codegen.orchestration.emission import Emission
from pypto.codegen.orchestration.scalars import scalar_dtype, scalar_text
from pypto.ir.arith.traversal import evaluate
from pypto.ir.expr import BinaryExpr, Call, Cast, Expr, Submit, TupleGetItemExpr, UnaryExpr, Var
from pypto.ir.program import Function, Program
from pypto.ir.return_lineage import argument_of_param
from pypto.ir.rewrite import map_expr
from pypto.ir.stmt import AssignStmt, ReturnStmt
from pypto.ir.tree import flatten_to_stmts
from pypto.ir.types import ScalarType, TensorType
from pypto.ir.walk import type_exprs, vars_in, walk, walk_stmts

__all__ = ["Scalars", "with_arguments", "with_parts_declared"]


class Scalars:
    """The scalars of the functions of one program; each function is looked at once."""

    def __init__(self, program: Program) -> None:
        self._functions = program.functions_
        self._computed: dict[str, dict[Var, Expr]] = {}

    def over_params(self, function: Function, value: Expr) -> Expr | None:
        """A scalar of `function` over its parameters and their extents; None if it takes more than
        arithmetic.
        """
        return _over_params(function, value, self._computed_by(function))

    def result(self, call: Call | Submit, position: int) -> Expr | None:
        """The scalar result at `position` of a dispatch, over the variables of the caller."""
        callee = self._functions[call.op.name]
        last = flatten_to_stmts(callee.body)[-1]
        returned = last.value_ if isinstance(last, ReturnStmt) else ()
        if position >= len(returned):
            return None
        value = self.over_params(callee, returned[position])
        return None if value is None else with_arguments(value, _given(call, callee))

    def _computed_by(self, function: Function) -> dict[Var, Expr]:
        """What a function assigns to scalars, over its parameters."""
        known = self._computed.get(function.name)
        if known is not None:
            return known
        computed = self._computed[function.name] = {}  # what is asked for below itself finds nothing
        dispatches: dict[Expr, Call | Submit] = {}
        for stmt in walk_stmts(function.body):
            if not isinstance(stmt, AssignStmt):
                continue
            value: Expr | None = stmt.value
            if isinstance(value, Call | Submit) and value.op.name in self._functions:
                dispatches[stmt.var] = value
                value = self.result(value, 0)
            elif isinstance(value, TupleGetItemExpr) and value.tuple in dispatches:
                value = self.result(dispatches[value.tuple], value.index)
            if value is not None and isinstance(stmt.var.type, ScalarType):
                scalar = _over_params(function, value, computed)
                if scalar is not None:
                    computed[stmt.var] = scalar
        return computed


def _over_params(function: Function, value: Expr, computed: Mapping[Var, Expr]) -> Expr | None:
    if not isinstance(value.type, ScalarType) or any(
        isinstance(n, Call | Submit) for n in walk(value, once=True)
    ):
        return None
    scalar = map_expr(value, lambda expr: computed.get(expr, expr) if isinstance(expr, Var) else expr)
    known = {id(param) for param in function.params_}
    known |= {id(var) for param in function.params_ for dim in type_exprs(param.type) for var in vars_in(dim)}
    return scalar if all(id(var) in known for var in vars_in(scalar)) else None


def with_arguments(scalar: Expr, given: Mapping[Var, Expr]) -> Expr:
    """A scalar over a function's parameters, computed from the arguments that these get in a dispatch."""

    def argument(expr: Expr) -> Expr:
        found = given.get(expr) if isinstance(expr, Var) else None
        return expr if found is None else _as_dtype(found, expr)

    return map_expr(scalar, argument)


def with_parts_declared(emission: Emission, scalar: Expr) -> Expr:
    """`scalar` with a variable, declared here, for each part that it has in several places.

    A function computes a scalar step by step. Put into one another, the steps repeat what they read twice, so
    each of them could double the text.
    """
    uses = Counter(id(child) for node in walk(scalar, once=True) for child in node._children())
    declared: dict[Expr, Expr] = {}

    def leave(part: Expr) -> Expr:
        if not isinstance(part, BinaryExpr | UnaryExpr):
            return part
        renewed = part._map_children(declared.__getitem__, lambda type: type)
        if uses[id(part)] < 2:
            return renewed
        var = Var("part", part.type, part.span)
        emission.declare(var, cpp_type(scalar_dtype(part)), scalar_text(emission, renewed))
        return var

    return evaluate(scalar, declared, leave)


def _as_dtype(value: Expr, param: Expr) -> Expr:
    """`value` in the element type of the parameter that it is passed for."""
    wanted, given = param.type, value.type
    if not isinstance(wanted, ScalarType) or not isinstance(given, ScalarType):
        return value
    return value if wanted.dtype is given.dtype else Cast(value, wanted.dtype, value.span)


def _given(call: Call | Submit, callee: Function) -> dict[Var, Expr]:
    """What a dispatch says for the callee's parameters, and for the symbols that are extents of these."""
    given: dict[Var, Expr] = {}
    for index, param in enumerate(callee.params_):
        arg = argument_of_param(call, callee, index)
        if arg is None:
            continue
        given[param] = arg
        if isinstance(param.type, TensorType) and isinstance(arg.type, TensorType):
            for extent, actual in zip(param.type.shape_, arg.type.shape_, strict=False):
                if isinstance(extent, Var):
                    given.setdefault(extent, actual)
    return given
