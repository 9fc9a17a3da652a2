"""How a kernel hands out the tiles it returns: through `Out` parameters that the caller allocates.

Each returned tile gets a parameter `ret{k}__out` and a store to it in front of the return. A tile that a loop
only fills piece by piece is not built at all: the loop stores the pieces to the parameter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pypto import ir
from pypto.core.dtype import DataType
from pypto.core.errors import internal_error
from pypto.ir.op_registry import create_op_call
from pypto.ir.rewrite import definitions_of
from pypto.ir.walk import exprs_of, map_substatements, vars_in, walk_stmts
from pypto.passes.convert_tensor_to_tile_ops.kernel import LocalNames

__all__ = ["AddedOutput", "add_outputs"]


@dataclass(frozen=True, slots=True)
class AddedOutput:
    """A parameter added for the result at `position`."""

    position: int
    param: ir.Var
    type: ir.TensorType


def add_outputs(
    function: ir.Function, body: Sequence[ir.Stmt], names: LocalNames
) -> tuple[list[ir.Stmt], list[AddedOutput]]:
    """The body with a store in front of each return for each returned tile, and the parameters for them."""
    returns = [stmt for top in body for stmt in walk_stmts(top) if isinstance(stmt, ir.ReturnStmt)]
    if not returns:
        if function.return_types_:
            raise internal_error(
                f"Kernel '{function.name}' declares results but returns nothing", function.span
            )
        return [*body, ir.ReturnStmt([], function.span)], []
    outputs = _outputs(function, returns, names)
    if not outputs:
        return list(body), []
    added = {output.param for output in outputs}
    return _store_pieces(_with_stores(body, outputs, names), added), outputs


def _outputs(function: ir.Function, returns: Sequence[ir.ReturnStmt], names: LocalNames) -> list[AddedOutput]:
    outputs: list[AddedOutput] = []
    for position, declared in enumerate(function.return_types_):
        if isinstance(declared, ir.TensorType) and any(
            position < len(each.value_) and isinstance(each.value_[position].type, ir.TileType)
            for each in returns
        ):
            name = names.fresh(f"ret{len(outputs)}__out")
            type = _param_type(declared, function)
            outputs.append(AddedOutput(position, ir.Var(name, type, function.span), type))
    return outputs


def _param_type(declared: ir.TensorType, function: ir.Function) -> ir.TensorType:
    """The declared result type; without a valid region that only the body could name."""
    view = declared.tensor_view
    if view is None or not view.valid_shape_:
        return declared
    visible = set(function.params_)
    for param in function.params_:
        visible.update(var for expr in param.type._children() for var in vars_in(expr))
    if all(var in visible for extent in view.valid_shape_ for var in vars_in(extent)):
        return declared
    return declared.replace(tensor_view=view.copy(()))


def _with_stores(body: Sequence[ir.Stmt], outputs: Sequence[AddedOutput], names: LocalNames) -> list[ir.Stmt]:
    def rewrite(stmt: ir.Stmt) -> ir.Stmt:
        if not isinstance(stmt, ir.ReturnStmt):
            return map_substatements(stmt, rewrite)
        values, stores = list(stmt.value_), []
        for number, output in enumerate(outputs):
            tile = values[output.position]
            offsets = ir.MakeTuple([_zero(stmt.span)] * len(_shape(output.param)), stmt.span)
            store = create_op_call("tile.store", [tile, offsets, output.param], stmt.span)
            result = ir.Var(names.fresh(f"ret{number}__store"), store.type, stmt.span)
            stores.append(ir.AssignStmt(result, store, stmt.span))
            values[output.position] = result
        return ir.flatten_stmts([*stores, stmt.replace(value=values)], stmt.span)

    rewritten = [rewrite(stmt) for stmt in body]
    return ir.flatten_to_stmts(ir.flatten_stmts(rewritten, body[0].span))


def _zero(span: ir.Span) -> ir.ConstInt:
    return ir.ConstInt(0, DataType.INDEX, span)


def _shape(var: ir.Var) -> tuple[ir.Expr, ...]:
    assert isinstance(var.type, ir.TensorType)
    return var.type.shape_


# --- loops that fill a result -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Filling:
    """A loop that fills the tile which `store` then writes out: every access to the tile is part of this."""

    create: ir.AssignStmt
    loop: ir.ForStmt
    update: ir.AssignStmt
    store: ir.AssignStmt

    @property
    def output(self) -> ir.Expr:
        assert isinstance(self.store.value, ir.Call)
        return self.store.value.args_[2]


def _store_pieces(body: list[ir.Stmt], added: set[ir.Var]) -> list[ir.Stmt]:
    """Rewrite each loop at the top of the body that fills an added output to store its pieces directly."""
    uses = _use_counts(body)
    creates = {
        stmt.var: stmt for stmt in body if isinstance(stmt, ir.AssignStmt) and _is_call(stmt, "tile.create")
    }
    loops = {
        stmt.return_vars_[0]: stmt
        for stmt in body
        if isinstance(stmt, ir.ForStmt) and len(stmt.iter_args_) == 1
    }
    for stmt in list(body):
        filling = _filling(stmt, creates, loops, uses)
        if filling is not None and filling.output in added:
            body = _stored_directly(body, filling)
    return body


def _filling(
    store: ir.Stmt,
    creates: Mapping[ir.Var, ir.AssignStmt],
    loops: Mapping[ir.Var, ir.ForStmt],
    uses: Mapping[ir.Var, int],
) -> _Filling | None:
    """The parts of the pattern that ends in `store`: create, loop of one assemble, store of its result."""
    if not _is_call(store, "tile.store"):
        return None
    assert isinstance(store, ir.AssignStmt) and isinstance(store.value, ir.Call)
    result = store.value.args_[0]
    loop = loops.get(result) if isinstance(result, ir.Var) and uses[result] == 1 else None
    if loop is None:
        return None
    carried = loop.iter_args_[0]
    create = creates.get(carried.initValue) if isinstance(carried.initValue, ir.Var) else None
    if create is None or uses[create.var] != 1 or uses.get(carried, 0) != 1:
        return None
    *_, last = ir.flatten_to_stmts(loop.body)
    if (
        not isinstance(last, ir.YieldStmt)
        or not isinstance(last.value_[0], ir.Var)
        or uses[last.value_[0]] != 1
    ):
        return None
    for update in ir.flatten_to_stmts(loop.body):
        if _is_call(update, "tile.assemble"):
            assert isinstance(update, ir.AssignStmt) and isinstance(update.value, ir.Call)
            if update.var is last.value_[0] and update.value.args_[0] is carried:
                return _Filling(create, loop, update, store)
    return None


def _stored_directly(body: list[ir.Stmt], filling: _Filling) -> list[ir.Stmt]:
    assert isinstance(filling.update.value, ir.Call)
    output = filling.output
    old = filling.loop.iter_args_[0]
    carried = ir.IterArg(old.name_hint, output.type, output, old.span)
    _, piece, offset = filling.update.value.args_
    piece_store = create_op_call("tile.store", [piece, offset, carried], filling.update.value.span)
    stored = ir.Var(filling.update.var.name_hint, piece_store.type, filling.update.var.span)
    result = filling.store.var

    def rewrite(stmt: ir.Stmt) -> ir.Stmt:
        if stmt is filling.update:
            return ir.AssignStmt(stored, piece_store, stmt.span)
        if isinstance(stmt, ir.YieldStmt):
            return stmt.replace(value=[stored])
        return stmt

    inner = [rewrite(stmt) for stmt in ir.flatten_to_stmts(filling.loop.body)]
    loop = filling.loop.replace(
        iter_args=[carried], return_vars=[result], body=ir.flatten_stmts(inner, filling.loop.body.span)
    )
    replaced: list[ir.Stmt] = []
    for stmt in body:
        if stmt is filling.loop:
            replaced.append(loop)
        elif stmt is not filling.create and stmt is not filling.store:
            replaced.append(stmt)
    return replaced


def _is_call(stmt: ir.Stmt, name: str) -> bool:
    return isinstance(stmt, ir.AssignStmt) and isinstance(stmt.value, ir.Call) and stmt.value.op.name == name


def _use_counts(body: Sequence[ir.Stmt]) -> dict[ir.Var, int]:
    """How often each variable is read, as an operand or as an initial value."""
    counts: dict[ir.Var, int] = {}
    for top in body:
        for stmt in walk_stmts(top):
            defined = {id(var) for var in definitions_of(stmt)}
            for expr in exprs_of(stmt):
                if id(expr) not in defined:
                    for var in vars_in(expr):
                        counts[var] = counts.get(var, 0) + 1
    return counts
