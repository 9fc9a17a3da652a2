"""The walk over one kernel body, and what it knows on the way.

Every tensor variable of a kernel is memory or a value (see `pypto.passes.storage`). A value becomes a tile:
its variable is replaced by a new one of tile type. Memory stays a tensor, and a computation that reads it
works on a tile loaded from it:

- at function entry, if the operand is a parameter that nothing can have written before the use;
- otherwise in front of the use, so that it sees every earlier write, by this kernel or, after a barrier, by
  another.

A load is reused until its memory is written. Carried and merged values follow the same rule: a loop whose
carried tensor is updated in place carries memory, a loop that computes a new tensor carries a tile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pypto import ir
from pypto.core.dtype import DataType
from pypto.core.errors import UsageError
from pypto.ir.op_conversion import convert_call
from pypto.ir.op_registry import create_call, get_op_def
from pypto.ir.views import same_extents
from pypto.ir.walk import walk_stmts
from pypto.passes.auto_name import parse_name
from pypto.passes.leading_comments import with_comments_first
from pypto.passes.memory_effects import is_barrier, memory_operands, written_roots
from pypto.passes.storage import Storage, is_tensor

__all__ = ["Converter", "KernelLowering", "LocalNames", "NoTileConversion"]

Vec, Mat = ir.MemorySpace.Vec, ir.MemorySpace.Mat

Converter = Callable[["KernelLowering", ir.Call, "ir.Var | None"], ir.Expr]
"""Emits what has to come first and returns what the converted call evaluates to."""


class NoTileConversion(UsageError):
    """A tensor operator inside a kernel that has no tile form. The message names it and its source line."""


class LocalNames:
    """Name hints of one function: `fresh` gives one that no other variable has."""

    def __init__(self, function: ir.Function) -> None:
        self._used = {param.name_hint for param in function.params_}
        for stmt in walk_stmts(function.body):
            if isinstance(stmt, ir.AssignStmt):
                self._used.add(stmt.var.name_hint)
            elif isinstance(stmt, (ir.ForStmt, ir.WhileStmt)):
                self._used.update(var.name_hint for var in (*stmt.iter_args_, *stmt.return_vars_))
            elif isinstance(stmt, ir.IfStmt):
                self._used.update(var.name_hint for var in stmt.return_vars_)

    def fresh(self, wanted: str) -> str:
        """`wanted`, or the first of `wanted_v0`, `wanted_v1`, ... that is free."""
        name, version = wanted, 0
        while name in self._used:
            name, version = f"{wanted}_v{version}", version + 1
        self._used.add(name)
        return name

    def for_role(self, var: ir.Var, role: str) -> str:
        """A name like that of `var` in another role: `x__tile` for `x__ssa_v0`."""
        return self.fresh(f"{parse_name(var.name_hint).base}__{role}")


class KernelLowering:
    """Converts the statements of one kernel. Converters use the methods of the second half."""

    def __init__(
        self,
        function: ir.Function,
        program: ir.Program,
        storage: Storage,
        matrix_operands: frozenset[ir.Var],
        converters: Mapping[str, Converter],
        pass_through: frozenset[str],
        shared: frozenset[tuple[int, int]] = frozenset(),
    ) -> None:
        self.names = LocalNames(function)
        self.span = function.span
        self._program = program
        self._storage = storage
        self._matrix_operands = matrix_operands
        self._converters = converters
        self._pass_through = pass_through
        self._params = {param: index for index, param in enumerate(function.params_)}
        self._same_memory: dict[ir.Var, set[ir.Var]] = {}  # parameters that may be one tensor
        for a, b in shared:
            first, second = function.params_[a], function.params_[b]
            self._same_memory.setdefault(first, set()).add(second)
            self._same_memory.setdefault(second, set()).add(first)
        self._renamed: dict[ir.Var, ir.Expr] = {}
        self._block: list[ir.Stmt] = []
        self._entry_loads: dict[ir.Var, ir.AssignStmt] = {}
        self._tiles: dict[
            tuple[ir.Var, ir.MemorySpace], ir.Var
        ] = {}  # whole tensors loaded and not written since
        self._written: set[ir.Var] = set()  # roots that may have been written before the current point
        self._after_barrier = False
        self._yields_tile: tuple[bool, ...] = ()  # of the innermost loop or branch, per position
        self._bridges = 0

    # --- the walk -------------------------------------------------------------------------------------------

    def lower_body(self, body: ir.Stmt) -> list[ir.Stmt]:
        """The converted statements of the function, entry loads first. Returns keep their values."""
        converted = self._block_of(body)
        loads = [
            self._entry_loads[param] for param in sorted(self._entry_loads, key=self._params.__getitem__)
        ]
        return [*loads, *converted]

    def _block_of(self, body: ir.Stmt) -> list[ir.Stmt]:
        """Convert a body into a statement list of its own; tiles loaded inside are not known outside."""
        outer_block, self._block = self._block, []
        outer_tiles = dict(self._tiles)
        self._stmt(body)
        block, self._block = self._block, outer_block
        self._tiles = {key: tile for key, tile in outer_tiles.items() if self._tiles.get(key) is tile}
        return block

    def _stmt(self, stmt: ir.Stmt) -> None:
        if isinstance(stmt, ir.SeqStmts):
            for inner in stmt.stmts_:
                self._stmt(inner)
            return
        self.span = stmt.span
        start = len(self._block)
        if isinstance(stmt, ir.AssignStmt):
            self._assign(stmt)
        elif isinstance(stmt, ir.EvalStmt):
            self._eval(stmt)
        elif isinstance(stmt, ir.ForStmt):
            self._for(stmt)
        elif isinstance(stmt, ir.WhileStmt):
            self._while(stmt)
        elif isinstance(stmt, ir.IfStmt):
            self._if(stmt)
        elif isinstance(stmt, ir.YieldStmt):
            self._yield(stmt)
        elif isinstance(stmt, ir.ReturnStmt):
            self.emit(stmt.replace(value=[self._handed_out(value) for value in stmt.value_]))
        elif isinstance(stmt, ir.ScopeStmt):
            self.emit(stmt.replace(body=ir.flatten_stmts(self._block_of(stmt.body), stmt.body.span)))
        else:
            self.emit(stmt)
        if stmt.leading_comments:
            self._block[start:] = with_comments_first(self._block[start:], stmt.leading_comments)

    def _handed_out(self, value: ir.Expr) -> ir.Expr:
        """What to return for a result: its tile, or the memory it is.

        The caller could not tell which memory a result is that control flow has chosen: it gets a copy.
        """
        if len(self._storage.roots_of(value)) > 1:
            return self.tile(value)
        return self.current(value)

    def _assign(self, stmt: ir.AssignStmt) -> None:
        value = stmt.value
        if isinstance(value, ir.Var):
            self.bind(stmt.var, self.current(value))
        elif isinstance(value, (ir.Call, ir.Submit)):
            self.bind(stmt.var, self._call(value, stmt.var))
        elif isinstance(value, ir.MakeTuple):
            self.bind(stmt.var, value.replace(elements=[self.current(each) for each in value.elements_]))
        elif isinstance(value, ir.TupleGetItemExpr):
            self.bind(stmt.var, value.replace(tuple=self.current(value.tuple)))
        else:
            self.emit(stmt)

    def _eval(self, stmt: ir.EvalStmt) -> None:
        if not isinstance(stmt.expr, (ir.Call, ir.Submit)):
            self.emit(stmt)
            return
        value = self._call(stmt.expr, None)
        if isinstance(value, (ir.Call, ir.Submit)):
            self.emit(stmt.replace(expr=value))

    def _call(self, call: ir.Call | ir.Submit, var: ir.Var | None) -> ir.Expr:
        name = call.op.name
        self.span = call.span if call.span.is_valid() else self.span
        convert = self._converters.get(name) if isinstance(call, ir.Call) else None
        if convert is not None:
            assert isinstance(call, ir.Call)
            converted = convert(self, call, var)
        else:
            if name.startswith("tensor.") and name not in self._pass_through:
                converted = self._registered_conversion(call)
            else:
                converted = self._kept_call(call)
        self._note_effects(call)
        return converted

    def _registered_conversion(self, call: ir.Call | ir.Submit) -> ir.Expr:
        """What a library registered for a tensor operator of its own."""
        name = call.op.name
        args = [self.tile(arg) if is_tensor(arg) else arg for arg in call.args_]
        converted = convert_call(name, args, list(call.kwargs_.items()), self.span)
        if converted is None:
            raise NoTileConversion(
                f"{name} has no registered tile conversion: it cannot be used in a kernel [{self.span}]"
            )
        front, value = converted
        for stmt in front:
            self.emit(stmt)
        return value

    def _kept_call(self, call: ir.Call | ir.Submit) -> ir.Call | ir.Submit:
        args = [self.current(arg) for arg in call.args_]
        for old, new in zip(call.args_, args, strict=True):
            if is_tensor(old) and not is_tensor(new):
                raise ValueError(
                    f"{call.op.name} requires a GM Tensor input, but '{_name_of(old)}' is computed inside "
                    f"the kernel and lives in a tile [{self.span}]"
                )
        return call.replace(args=args)

    def _note_effects(self, call: ir.Call | ir.Submit) -> None:
        """Forget the tiles whose memory the call may have changed."""
        if is_barrier(call):
            self._after_barrier = True
            self._tiles.clear()
        for arg, effect in memory_operands(call, self._program):
            if effect is not ir.ArgEffect.Read:
                self._invalidate(self._storage.roots_of(arg))

    def _invalidate(self, roots: frozenset[ir.Var]) -> None:
        if roots:
            roots = roots.union(*(self._same_memory.get(root, ()) for root in roots))
            self._written |= roots
            self._tiles = {
                key: tile for key, tile in self._tiles.items() if not roots & self._storage.roots_of(key[0])
            }

    def _for(self, loop: ir.ForStmt) -> None:
        iter_args, body, return_vars = self._loop(loop)
        self.emit(loop.replace(iter_args=iter_args, body=body, return_vars=return_vars))

    def _while(self, loop: ir.WhileStmt) -> None:
        iter_args, body, return_vars = self._loop(loop)
        self.emit(loop.replace(iter_args=iter_args, body=body, return_vars=return_vars))

    def _loop(self, loop: ir.ForStmt | ir.WhileStmt) -> tuple[list[ir.IterArg], ir.Stmt, list[ir.Var]]:
        iter_args = [self._carried(carried) for carried in loop.iter_args_]
        self._invalidate(written_roots(loop.body, self._storage, self._program))
        if any(is_barrier(call) for call in _calls_in(loop.body)):
            self._after_barrier = True
            self._tiles.clear()
        becomes_tile = tuple(carried in self._storage.values for carried in loop.iter_args_)
        outer_yields, self._yields_tile = self._yields_tile, becomes_tile
        block = self._block_of(loop.body)
        self._yields_tile = outer_yields
        return_vars = [
            self._retyped(result, carried.type) if changed else result
            for result, carried, changed in zip(loop.return_vars_, iter_args, becomes_tile, strict=True)
        ]
        return iter_args, ir.flatten_stmts(block, loop.body.span), return_vars

    def _carried(self, carried: ir.IterArg) -> ir.IterArg:
        if carried in self._storage.values:
            init: ir.Expr = self.tile(carried.initValue)
            new = ir.IterArg(self.names.for_role(carried, "tile"), init.type, init, carried.span)
            self._renamed[carried] = new
            return new
        init = self.current(carried.initValue)
        if init is carried.initValue:
            return carried
        new = ir.IterArg(carried.name_hint, init.type if _is_tile(init) else carried.type, init, carried.span)
        self._renamed[carried] = new
        return new

    def _if(self, stmt: ir.IfStmt) -> None:
        outer_yields = self._yields_tile
        self._yields_tile = tuple(var in self._storage.values for var in stmt.return_vars_)
        written, barrier, tiles = set(self._written), self._after_barrier, dict(self._tiles)
        then_block = self._block_of(stmt.then_body)
        then_written, then_barrier, then_tiles = self._written, self._after_barrier, self._tiles
        self._written, self._after_barrier, self._tiles = written, barrier, tiles
        else_block = None if stmt.else_body is None else self._block_of(stmt.else_body)
        self._written = self._written | then_written
        self._after_barrier = self._after_barrier or then_barrier
        self._tiles = {key: tile for key, tile in self._tiles.items() if then_tiles.get(key) is tile}
        self._yields_tile = outer_yields
        self.emit(
            stmt.replace(
                then_body=ir.flatten_stmts(then_block, stmt.then_body.span),
                else_body=None
                if else_block is None or stmt.else_body is None
                else ir.flatten_stmts(else_block, stmt.else_body.span),
                return_vars=self._merged(stmt, then_block, else_block),
            )
        )

    def _merged(
        self, stmt: ir.IfStmt, then_block: list[ir.Stmt], else_block: list[ir.Stmt] | None
    ) -> list[ir.Var]:
        """The results of a branch: those that are values take the type of what the branches yield."""
        blocks = [block for block in (then_block, else_block) if block]
        yields = [block[-1].value_ for block in blocks if isinstance(block[-1], ir.YieldStmt)]
        merged = []
        for position, result in enumerate(stmt.return_vars_):
            types = [values[position].type for values in yields]
            if result in self._storage.values and types:
                merged.append(self._retyped(result, _common_tile_type(types)))
            else:
                merged.append(result)
        return merged

    def _yield(self, stmt: ir.YieldStmt) -> None:
        values = [
            self.tile(value) if position < len(self._yields_tile) and self._yields_tile[position] else
            self.current(value)
            for position, value in enumerate(stmt.value_)
        ]  # fmt: skip
        self.emit(stmt.replace(value=values))

    def _retyped(self, var: ir.Var, type: ir.Type) -> ir.Var:
        new = ir.Var(self.names.for_role(var, "tile"), type, var.span)
        self._renamed[var] = new
        return new

    # --- for converters -------------------------------------------------------------------------------------

    def emit(self, stmt: ir.Stmt) -> None:
        self._block.append(stmt)

    def current(self, expr: ir.Expr) -> ir.Expr:
        """What an operand has become: the tile of a value, the operand itself otherwise."""
        return self._renamed.get(expr, expr) if isinstance(expr, ir.Var) else expr

    def nested(self, write: Callable[[], None]) -> list[ir.Stmt]:
        """What `write` emits, as the statements of a body of its own."""
        outer, self._block = self._block, []
        write()
        block, self._block = self._block, outer
        return block

    def is_memory(self, expr: ir.Expr) -> bool:
        """Whether the operand stands for global memory rather than for a tile."""
        return is_tensor(self.current(expr))

    def feeds_matrix_unit(self, var: ir.Var | None) -> bool:
        """Whether a load into `var` should go to the memory from which matrix products read."""
        return var is not None and var in self._matrix_operands

    def bind(self, var: ir.Var, value: ir.Expr) -> None:
        """Assign `value` to `var`, or to its replacement when the type has changed."""
        if isinstance(value, ir.Var) and _is_tile(value) and is_tensor(var):
            self._renamed[var] = value
            return
        if value.type is var.type or value.type == var.type:
            target = var
        else:
            role = "tile" if _is_tile(value) else parse_name(var.name_hint).role or "tile"
            target = ir.Var(self.names.for_role(var, role), value.type, var.span)
            self._renamed[var] = target
        self.emit(ir.AssignStmt(target, value, self.span))

    def op(self, name: str, args: Sequence[ir.Expr], **kwargs: Any) -> ir.Call:
        """A call of an operator with its result type."""
        definition = get_op_def(name)
        if definition is None:
            raise NoTileConversion(f"{name} is not a registered operator [{self.span}]")
        return create_call(definition, args, kwargs, self.span)

    def let(self, name: str, value: ir.Expr) -> ir.Var:
        """Assign `value` to a new variable."""
        var = ir.Var(self.names.fresh(name), value.type, self.span)
        self.emit(ir.AssignStmt(var, value, self.span))
        return var

    def tile(self, operand: ir.Expr, space: ir.MemorySpace = Vec, *, name: str | None = None) -> ir.Expr:
        """The tile with the operand's present elements, loaded whole if the operand is memory."""
        value = self.current(operand)
        if not is_tensor(value):
            return value
        if not isinstance(operand, ir.Var):
            self._bridges += 1
            return self.let(f"bridged_{self._bridges - 1}", self._whole_load(value, space))
        if space is Vec and name is None and self._is_unwritten_param(operand):
            return self._entry_load(operand)
        loaded = self._tiles.get((operand, space))
        if loaded is not None:
            return loaded
        default = f"{operand.name_hint}_{space.name.lower()}"
        loaded = self.let(name or default, self._whole_load(value, space))
        self._tiles[operand, space] = loaded
        return loaded

    def _is_unwritten_param(self, operand: ir.Var) -> bool:
        return operand in self._params and operand not in self._written and not self._after_barrier

    def _entry_load(self, param: ir.Var) -> ir.Var:
        if param in self._entry_loads:
            return self._entry_loads[param].var
        span, self.span = self.span, param.span
        load = self._whole_load(param, Vec)
        self.span = span
        tile = ir.Var(self.names.for_role(param, "tile"), load.type, param.span)
        self._entry_loads[param] = ir.AssignStmt(tile, load, param.span)
        return tile

    def _whole_load(self, memory: ir.Expr, space: ir.MemorySpace) -> ir.Call:
        assert isinstance(memory.type, ir.TensorType)
        shape = ir.MakeTuple(memory.type.shape_, self.span)
        load = self.op(
            "tile.load", [memory, self.zeros(len(shape.elements_)), shape, shape], target_memory=space
        )
        if space is Mat:
            return load.replace(attrs={**load.attrs_, "__compiler_tensor_to_tile_mat_bridge": True})
        return load

    def zeros(self, rank: int) -> ir.MakeTuple:
        """Offsets of the origin."""
        return ir.MakeTuple([self.index(0)] * rank, self.span)

    def index(self, value: int) -> ir.ConstInt:
        return ir.ConstInt(value, DataType.INDEX, self.span)


def _is_tile(expr: ir.Expr) -> bool:
    return isinstance(expr.type, ir.TileType)


def _name_of(expr: ir.Expr) -> str:
    return expr.name_hint if isinstance(expr, ir.Var) else type(expr).__name__


def _calls_in(body: ir.Stmt) -> list[ir.Expr]:
    return [
        stmt.value if isinstance(stmt, ir.AssignStmt) else stmt.expr
        for stmt in walk_stmts(body)
        if isinstance(stmt, (ir.AssignStmt, ir.EvalStmt))
    ]


def _common_tile_type(types: Sequence[ir.Type]) -> ir.Type:
    """The type of a merged tile: that of the first, and fully valid where the valid regions differ."""
    first = types[0]
    assert isinstance(first, ir.TileType)
    region = first.get_effective_tile_view().valid_shape_
    for other in types[1:]:
        assert isinstance(other, ir.TileType)
        if not same_extents(region, other.get_effective_tile_view().valid_shape_):
            return ir.TileType(first.shape_, first.dtype, None, None, first.memory_space)
    return first
