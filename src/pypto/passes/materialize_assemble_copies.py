"""MaterializeAssembleCopies: what could not become a window is copied.

An orchestration cannot copy, and `FuseCreateAssembleToSlice` leaves an `assemble` alone where the window
would be noticed: the source is a parameter, is assembled twice, is read after the target has changed. Each
such `assemble` becomes the dispatch of a kernel that copies the source into a slice of the target:

    full1 = tensor.assemble(full, part, [i, 0])
        =>
    part__window = tensor.slice(full, [16, 64], [i, 0])
    part__copied = self.assemble_copy_0(part, part__window)

Where source and target may share memory, the kernel goes through a buffer, so that the window gets what the
source was before.

One kernel serves all copies between tensors of the same types. It copies row by row, in pieces of constant
size, so that it needs little local memory whatever the extents are, known or not.
"""

from __future__ import annotations

from collections.abc import Sequence

from pypto import ir
from pypto.core.dtype import DataType
from pypto.ir.op_registry import create_op_call
from pypto.ir.rewrite import Substitution
from pypto.ir.views import same_extents
from pypto.ir.walk import map_substatements, walk_stmts
from pypto.passes.auto_name import parse_name
from pypto.passes.base import IRProperty, Pass, PassProperties, create_program_pass, property_set
from pypto.passes.leading_comments import with_comments_first
from pypto.passes.storage import ALL_VIEWS, ProgramStorage

__all__ = ["materialize_assemble_copies"]

_PROPERTIES = PassProperties(
    required=property_set(
        IRProperty.SplitIncoreOrch, IRProperty.IncoreTileOps, IRProperty.ReturnParamsExplicit
    )
)

_PIECE = 1024
"""Elements that are copied at once."""


def materialize_assemble_copies() -> Pass:
    """Return the pass that turns the remaining `assemble`s of orchestrations into copy tasks."""
    return create_program_pass(_materialize, "MaterializeAssembleCopies", _PROPERTIES)


def _materialize(program: ir.Program) -> ir.Program:
    kernels = _CopyKernels(program)
    storage = ProgramStorage(program, views=ALL_VIEWS)
    functions = [
        _in_function(function, kernels, storage)
        if function.func_type is ir.FunctionType.Orchestration
        else function
        for function in program.functions_.values()
    ]
    return program.replace(functions=[*functions, *kernels.made])


def _in_function(function: ir.Function, kernels: _CopyKernels, storage: ProgramStorage) -> ir.Function:
    if not any(_is_copy(stmt) for stmt in walk_stmts(function.body)):
        return function
    renamed = Substitution()
    memory = storage.of(function)

    def rewrite(stmt: ir.Stmt) -> ir.Stmt:
        if not _is_copy(stmt):
            return map_substatements(stmt, rewrite)
        assert isinstance(stmt, ir.AssignStmt) and isinstance(stmt.value, ir.Call)
        target, source = stmt.value.args_[:2]
        renamed.set(stmt.var, renamed.expr(target))
        is_shared = not memory.roots_of(source).isdisjoint(memory.roots_of(target))
        copied = _copy(stmt.value, kernels, buffered=is_shared)
        return ir.flatten_stmts(with_comments_first(copied, stmt.leading_comments), stmt.span)

    return function.replace(body=renamed.stmt(rewrite(function.body)))


def _is_copy(stmt: ir.Stmt) -> bool:
    return (
        isinstance(stmt, ir.AssignStmt)
        and isinstance(stmt.value, ir.Call)
        and stmt.value.op.name == "tensor.assemble"
        and not stmt.value.kwargs_.get("atomic", 0)
    )


def _copy(assemble: ir.Call, kernels: _CopyKernels, *, buffered: bool) -> list[ir.Stmt]:
    """The statements that copy the valid region of the source into its window of the target; by way of a
    buffer if `buffered`."""
    target, source, offset = assemble.args_
    assert isinstance(offset, ir.MakeTuple)
    span = assemble.span
    front: list[ir.Stmt] = []
    name = parse_name(source.name_hint).base if isinstance(source, ir.Var) else "assembled"

    def let(role: str, value: ir.Call) -> ir.Var:
        var = ir.Var(f"{name}__{role}", value.type, span)
        front.append(ir.AssignStmt(var, value, span))
        return var

    extents = _valid_extents(source)
    if not same_extents(extents, _tensor(source).shape_):
        zeros = ir.MakeTuple([_index(0, span)] * len(extents), span)
        source = let(
            "valid", create_op_call("tensor.slice", [source, ir.MakeTuple(extents, span), zeros], span)
        )
    window = let("window", create_op_call("tensor.slice", _window(target, extents, offset, span), span))
    operands: list[ir.Expr] = [source, window]
    if buffered:
        shape, dtype = ir.MakeTuple(extents, span), _tensor(source).dtype
        operands.insert(1, let("buffer", create_op_call("tensor.create", [shape], {"dtype": dtype}, span)))
    kernel = kernels.between(_tensor(source), _tensor(window), buffered=buffered)
    let("copied", ir.Call(ir.GlobalVar(kernel), operands, window.type, span))
    return front


def _window(
    target: ir.Expr, extents: Sequence[ir.Expr], offset: ir.MakeTuple, span: ir.Span
) -> list[ir.Expr]:
    """Operands of the slice of the target that has the shape of the source: leading unit axes are dropped."""
    surplus = len(offset.elements_) - len(extents)
    shape = ir.MakeTuple([*([_index(1, span)] * surplus), *extents], span)
    if not surplus:
        return [target, shape, offset]
    dropped = ir.MakeTuple([_index(axis, span) for axis in range(surplus)], span)
    return [target, shape, offset, ir.MakeTuple([], span), dropped]


def _valid_extents(source: ir.Expr) -> tuple[ir.Expr, ...]:
    type = _tensor(source)
    view = type.tensor_view
    return view.valid_shape_ if view is not None and view.valid_shape_ else type.shape_


def _tensor(expr: ir.Expr) -> ir.TensorType:
    assert isinstance(expr.type, ir.TensorType)
    return expr.type


def _index(value: int, span: ir.Span) -> ir.ConstInt:
    return ir.ConstInt(value, DataType.INDEX, span)


# --- the kernels --------------------------------------------------------------------------------------------


class _CopyKernels:
    """The copy kernels of a program, one per pair of types; extents that are no constants count as equal."""

    def __init__(self, program: ir.Program) -> None:
        self.made: list[ir.Function] = []
        self._span = program.span
        self._taken = set(program.functions_)
        self._by_types: dict[tuple[object, ...], str] = {}

    def between(self, source: ir.TensorType, target: ir.TensorType, *, buffered: bool) -> str:
        """The name of the kernel that copies one into the other."""
        shape = tuple(dim.value if isinstance(dim, ir.ConstInt) else None for dim in source.shape_)
        key = (shape, source.dtype, target.dtype, buffered)
        name = self._by_types.get(key)
        if name is None:
            name = self._by_types[key] = self._free_name()
            self.made.append(_kernel(name, shape, source.dtype, target.dtype, self._span, buffered=buffered))
        return name

    def _free_name(self) -> str:
        number = len(self.made)
        while f"assemble_copy_{number}" in self._taken:
            number += 1
        self._taken.add(f"assemble_copy_{number}")
        return f"assemble_copy_{number}"


def _kernel(
    name: str,
    shape: tuple[int | None, ...],
    source_dtype: DataType,
    target_dtype: DataType,
    span: ir.Span,
    *,
    buffered: bool,
) -> ir.Function:
    """A kernel that copies a tensor row by row, each row in pieces; all to a buffer first if `buffered`."""
    index_type = ir.ScalarType(DataType.INDEX)
    extents: list[ir.Expr] = [
        ir.Var(f"n{axis}", index_type, span) if extent is None else _index(extent, span)
        for axis, extent in enumerate(shape)
    ]
    source = ir.Var("source", ir.TensorType(extents, source_dtype), span)
    target = ir.Var("target", ir.TensorType(extents, target_dtype), span)
    bounds: list[ir.Expr] = []
    front: list[ir.Stmt] = []
    for axis, extent in enumerate(shape):
        if extent is None:
            bound = ir.Var(f"extent{axis}", index_type, span)
            dim = create_op_call("tensor.dim", [source, _index(axis, span)], span)
            front.append(ir.AssignStmt(bound, dim, span))
            bounds.append(bound)
        else:
            bounds.append(_index(extent, span))
    params = [(source, ir.ParamDirection.In)]
    if buffered:
        buffer = ir.Var("buffer", source.type, span)
        params.append((buffer, ir.ParamDirection.InOut))
        front.append(_rows(source, buffer, bounds, [], span))
        source = buffer
    params.append((target, ir.ParamDirection.Out))
    body = ir.flatten_stmts(
        [*front, _rows(source, target, bounds, [], span), ir.ReturnStmt([target], span)], span
    )
    return ir.Function(name, params, [target.type], body, span, ir.FunctionType.AIV)


def _rows(
    source: ir.Var, target: ir.Expr, bounds: Sequence[ir.Expr], indices: list[ir.Expr], span: ir.Span
) -> ir.Stmt:
    """Loops over the axes that are left, the last of which goes in pieces."""
    axis = len(indices)
    last = axis == len(bounds) - 1
    step = min(_PIECE, bounds[-1].value) if isinstance(bounds[-1], ir.ConstInt) else _PIECE
    index = ir.Var(f"i{axis}", ir.ScalarType(DataType.INDEX), span)
    carried = ir.IterArg(f"target_{axis}", target.type, target, span)
    inner = (
        _piece(source, carried, bounds[-1], [*indices, index], step, span)
        if last
        else _rows(source, carried, bounds, [*indices, index], span)
    )
    written = inner.return_vars_[0] if isinstance(inner, ir.ForStmt) else ir.collect_def_vars(inner)[-1]
    return ir.ForStmt(
        index,
        _index(0, span),
        bounds[axis],
        _index(step if last else 1, span),
        [carried],
        ir.flatten_stmts([inner, ir.YieldStmt([written], span)], span),
        [ir.Var(f"written_{axis}", target.type, span)],
        span,
    )


def _piece(
    source: ir.Var, target: ir.Expr, bound: ir.Expr, indices: list[ir.Expr], step: int, span: ir.Span
) -> ir.Stmt:
    """Copy up to `step` elements of one row."""
    offset = ir.MakeTuple(indices, span)
    ones = [_index(1, span)] * (len(indices) - 1)
    shape = ir.MakeTuple([*ones, _index(step, span)], span)
    even = isinstance(bound, ir.ConstInt) and bound.value % step == 0
    rest = _index(step, span) if even else ir.min_(bound - indices[-1], _index(step, span), span)
    valid = ir.MakeTuple([*ones, rest], span)
    load = create_op_call(
        "tile.load", [source, offset, shape, valid], {"target_memory": ir.MemorySpace.Vec}, span
    )
    piece = ir.Var("piece", load.type, span)
    store = create_op_call("tile.store", [piece, offset, target], span)
    stored = ir.Var("stored", store.type, span)
    return ir.SeqStmts([ir.AssignStmt(piece, load, span), ir.AssignStmt(stored, store, span)], span)
