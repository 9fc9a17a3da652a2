"""Dispatches of kernels that gained outputs.

A wrapper (Group, Spmd) takes the outputs as parameters of its own and passes them on; it allocates nothing.
Any other caller allocates a tensor per added output in front of the dispatch. The dispatch keeps its type,
which speaks of the caller's variables, its attributes and its launch fields.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass

from pypto import ir
from pypto.core.errors import UsageError, internal_error, located
from pypto.ir.op_registry import create_op_call
from pypto.ir.return_types import deduce_call_return_type
from pypto.ir.walk import exprs_of, map_substatements, vars_in, walk_stmts
from pypto.passes.auto_name import base_of
from pypto.passes.convert_tensor_to_tile_ops.kernel import LocalNames
from pypto.passes.leading_comments import with_comments_first
from pypto.passes.storage import definitions, is_builtin, resolve

__all__ = ["WRAPPERS", "Dispatch", "Output", "map_dispatches", "pass_outputs", "wrappers_callees_first"]

WRAPPERS = (ir.FunctionType.Group, ir.FunctionType.Spmd)
Dispatch = ir.Call | ir.Submit


@dataclass(frozen=True, slots=True)
class Output:
    """A parameter that a function gained: for which of its results (None: for none of them), and of which
    type.
    """

    position: int | None
    type: ir.TensorType


Outputs = Mapping[str, Sequence[Output]]


def pass_outputs(program: ir.Program, kernels: Outputs) -> ir.Program:
    """Pass an argument for each output of `kernels` at every dispatch. Parameter lists of `program` are the
    old ones.
    """
    outputs: dict[str, Sequence[Output]] = {name: added for name, added in kernels.items() if added}
    if not outputs:
        return program
    functions = dict(program.functions_)
    for name in wrappers_callees_first(program):
        functions[name], added = _through_wrapper(functions[name], program, outputs)
        if added:
            outputs[name] = added
    for name, function in program.functions_.items():
        if function.func_type not in WRAPPERS:
            functions[name] = _allocating(function, program, outputs)
    return program.replace(functions=functions)


def wrappers_callees_first(program: ir.Program) -> list[str]:
    """The wrappers of a program, each after the wrappers that it dispatches (cycles are cut somewhere)."""
    wrappers = {name: f for name, f in program.functions_.items() if f.func_type in WRAPPERS}
    order: dict[str, None] = {}
    entered: set[str] = set()
    for root in wrappers:
        pending = [(root, False)]
        while pending:
            name, done = pending.pop()
            if done:
                order[name] = None
            elif name not in entered:
                entered.add(name)
                pending.append((name, True))
                pending += [(callee, False) for callee in _callees(wrappers[name]) if callee in wrappers]
    return list(order)


def _callees(function: ir.Function) -> list[str]:
    return [
        expr.op.name
        for stmt in walk_stmts(function.body)
        for expr in exprs_of(stmt)
        if isinstance(expr, (ir.Call, ir.Submit)) and not is_builtin(expr.op)
    ]


def _through_wrapper(
    function: ir.Function, program: ir.Program, outputs: Outputs
) -> tuple[ir.Function, Sequence[Output]]:
    """The wrapper with a parameter for each output of the dispatches inside it."""
    names = LocalNames(function)
    results = _returned_results(function)
    params: list[tuple[ir.Var, ir.ParamDirection]] = []
    added: list[Output] = []

    def extend(call: Dispatch) -> tuple[list[ir.Stmt], Dispatch]:
        extra: list[ir.Var] = []
        for output in _missing_outputs(call, program, outputs):
            type = _in_terms_of_caller(call, output, program)
            extra.append(ir.Var(names.fresh(f"ret{len(params)}__out"), type, function.span))
            params.append((extra[-1], ir.ParamDirection.Out))
            own = None if output.position is None else results.get((id(call), output.position))
            added.append(Output(own, type))
        return [], call.replace(args=[*call.args_, *extra])

    body = map_dispatches(function.body, extend, outputs)
    if not added:
        return function, ()
    declared = [*zip(function.params_, function.param_directions_, strict=True), *params]
    return function.replace(params=declared, body=body), added


def _returned_results(function: ir.Function) -> dict[tuple[int, int], int]:
    """Which result of a wrapper is which result of a dispatch inside it: (dispatch, result) -> own result."""
    defined = definitions(function.body)
    found: dict[tuple[int, int], int] = {}
    for stmt in walk_stmts(function.body):
        if not isinstance(stmt, ir.ReturnStmt):
            continue
        for own, value in enumerate(stmt.value_):
            source = resolve(value, defined)
            if isinstance(source, ir.TupleGetItemExpr):
                found[id(resolve(source.tuple, defined)), source.index] = own
            elif isinstance(source.type, ir.TupleType) and len(stmt.value_) == 1:
                found.update({(id(source), each): each for each in range(len(source.type.types_))})
            else:
                found[id(source), 0] = own
    return found


def _allocating(function: ir.Function, program: ir.Program, outputs: Outputs) -> ir.Function:
    """The function with a tensor allocated for each output of its dispatches."""
    unpacked = _unpacked_results(function.body)

    def extend(call: Dispatch) -> tuple[list[ir.Stmt], Dispatch]:
        missing = _missing_outputs(call, program, outputs)
        if missing and ir.is_incore_type(function.func_type):
            raise ValueError(
                f"Kernel '{function.name}' calls kernel '{call.op.name}', which returns computed tensors; "
                f"give '{call.op.name}' an Out parameter for them [{call.span}]"
            )
        creates: list[ir.Stmt] = []
        extra: list[ir.Var] = []
        for number, output in enumerate(missing):
            type = _in_terms_of_caller(call, output, program)
            _check_extents_are_known(call, type, unpacked.get(id(call), ()))
            create = _create(type, call.span)
            extra.append(ir.Var(f"ret{number}__out", create.type, call.span))
            creates.append(ir.AssignStmt(extra[-1], create, call.span))
        return creates, call.replace(args=[*call.args_, *extra])

    body = map_dispatches(function.body, extend, outputs)
    return function if body is function.body else function.replace(body=body)


def _unpacked_results(body: ir.Stmt) -> dict[int, set[ir.Var]]:
    """What comes out of each dispatch with several results, by the dispatch's id."""
    dispatches: dict[ir.Expr, int] = {}
    found: dict[int, set[ir.Var]] = {}
    for stmt in walk_stmts(body):
        if not isinstance(stmt, ir.AssignStmt):
            continue
        value = stmt.value
        if isinstance(value, (ir.Call, ir.Submit)) and isinstance(value.type, ir.TupleType):
            dispatches[stmt.var] = id(value)
        elif isinstance(value, ir.TupleGetItemExpr) and value.tuple in dispatches:
            found.setdefault(dispatches[value.tuple], set()).add(stmt.var)
    return found


def _check_extents_are_known(call: Dispatch, type: ir.TensorType, computed: Collection[ir.Var]) -> None:
    """Whoever allocates a tensor must know its extents, so the kernel that fills it cannot compute them."""
    for extent in type.shape_:
        for var in vars_in(extent):
            if var in computed:
                raise UsageError(
                    located(
                        f"A tensor that leaves '{call.op.name}' has the extent '{base_of(var.name_hint)}', "
                        "which is computed in it; compute the extent before the scope, so that the tensor "
                        "can be allocated before it is filled",
                        call.span,
                    )
                )


def _create(type: ir.TensorType, span: ir.Span) -> ir.Call:
    layout = ir.TensorLayout.ND if type.tensor_view is None else type.tensor_view.layout
    kwargs = {"dtype": type.dtype, "layout": layout}
    return create_op_call("tensor.create", [ir.MakeTuple(type.shape, span)], kwargs, span)


def _missing_outputs(call: Dispatch, program: ir.Program, outputs: Outputs) -> Sequence[Output]:
    """The outputs to pass. A Submit that omits parameters leaves the added ones to the runtime as well."""
    callee = program.get_function(call.op.name)
    assert callee is not None
    return outputs[call.op.name] if len(call.args_) >= len(callee.params_) else ()


def _in_terms_of_caller(call: Dispatch, output: Output, program: ir.Program) -> ir.TensorType:
    """The type of an output in the variables of the calling function, without a valid region."""
    callee = program.get_function(call.op.name)
    assert callee is not None
    type: ir.Type
    if output.position is not None:
        type = call.type
        if isinstance(type, ir.TupleType) and (isinstance(call, ir.Submit) or len(callee.return_types_) > 1):
            type = type.types_[output.position]
    else:
        scalars = {
            param: arg
            for param, arg in zip(callee.params_, call.args_, strict=False)
            if isinstance(param.type, ir.ScalarType)
        }
        (type,) = deduce_call_return_type(callee.params_, call.args_, [output.type])
        type = ir.Substitution(scalars).type(type)
    if not isinstance(type, ir.TensorType):
        raise internal_error(f"An output of the dispatch of '{call.op.name}' is not a tensor", call.span)
    if type.tensor_view is None or not type.tensor_view.valid_shape_:
        return type
    return type.replace(tensor_view=type.tensor_view.copy(()))


def map_dispatches(
    body: ir.Stmt, extend: Callable[[Dispatch], tuple[list[ir.Stmt], Dispatch]], outputs: Container[str]
) -> ir.Stmt:
    """Replace each dispatch of a function in `outputs`, with statements in front."""

    def rewrite(stmt: ir.Stmt) -> ir.Stmt:
        value = (
            stmt.value
            if isinstance(stmt, ir.AssignStmt)
            else stmt.expr
            if isinstance(stmt, ir.EvalStmt)
            else None
        )
        if not isinstance(value, (ir.Call, ir.Submit)) or value.op.name not in outputs:
            _check_no_dispatch_inside(stmt, outputs)
            return map_substatements(stmt, rewrite)
        front, dispatch = extend(value)
        if dispatch is value:
            return stmt
        changed = (
            stmt.replace(value=dispatch) if isinstance(stmt, ir.AssignStmt) else stmt.replace(expr=dispatch)
        )
        if not front:
            return changed
        bare = changed._rebuilt(list(changed._values()))
        ir.attach_leading_comments(bare, [])
        return ir.flatten_stmts(with_comments_first([*front, bare], stmt.leading_comments), stmt.span)

    return rewrite(body)


def _check_no_dispatch_inside(stmt: ir.Stmt, outputs: Container[str]) -> None:
    if isinstance(stmt, (ir.ReturnStmt, ir.YieldStmt)):
        for value in stmt.value_:
            if isinstance(value, (ir.Call, ir.Submit)) and value.op.name in outputs:
                raise internal_error(
                    f"The dispatch of '{value.op.name}' is not a statement; run FlattenCallExpr before",
                    value.span,
                )
