"""Regions of `pl.split_aiv` as loops over the two vector lanes.

On a device both vector cores of a cluster run such a region, each on its half. Here one core does the work of
all, so a region becomes a loop that runs its body once per lane:

    for lane in (1, 0): body

with three replacements: the lane number is the loop variable, `aiv_shard` copies the half of the lane out of
the tile, and `aic_gather` assembles it into a tile that the loop carries. What else leaves the region is
carried as well. Lane 0 comes last, so that what both lanes have, without a split, is that of lane 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pypto import ir
from pypto.core.errors import located
from pypto.ir.meaning import Query, Together
from pypto.ir.op import tile
from pypto.ir.op_registry import get_op_def
from pypto.ir.rewrite import Substitution
from pypto.ir.views import same_extents
from pypto.ir.walk import exprs_of, map_substatements, substatements, vars_in, walk_stmts
from pypto.passes.storage import written_back_argument

__all__ = ["unfold_lane_regions"]

_LANES = 2


def unfold_lane_regions(function: ir.Function) -> ir.Function:
    """The function with a loop in place of each region; the same object if it has none."""
    if not any(isinstance(stmt, ir.SplitAivScopeStmt) for stmt in walk_stmts(function.body)):
        return function
    escaping = _escaping(function.body)

    def unfold(stmt: ir.Stmt) -> ir.Stmt:
        if isinstance(stmt, ir.SplitAivScopeStmt):
            return _Region(stmt, escaping.get(stmt, [])).unfolded()
        return map_substatements(stmt, unfold)

    return function.replace(body=unfold(function.body))


def _escaping(body: ir.Stmt) -> dict[ir.SplitAivScopeStmt, list[ir.Var]]:
    """For each region the variables that it defines and that are used outside, in the order of definition."""
    home: dict[ir.Var, ir.SplitAivScopeStmt] = {}
    used: set[ir.Var] = set()
    for stmt, region in _placed(body, None):
        if region is not None:
            home.update((var, region) for var in _defined(stmt))
        for expr in exprs_of(stmt):
            used.update(var for var in vars_in(expr, types=True) if home.get(var, region) is not region)
    found: dict[ir.SplitAivScopeStmt, list[ir.Var]] = {}
    for var, region in home.items():
        if var in used:
            found.setdefault(region, []).append(var)
    return found


def _placed(
    stmt: ir.Stmt, region: ir.SplitAivScopeStmt | None
) -> Iterator[tuple[ir.Stmt, ir.SplitAivScopeStmt | None]]:
    """Every statement with the region that it stands in."""
    yield stmt, region
    inner = stmt if isinstance(stmt, ir.SplitAivScopeStmt) else region
    for each in substatements(stmt):
        yield from _placed(each, inner)


def _defined(stmt: ir.Stmt) -> tuple[ir.Var, ...]:
    if isinstance(stmt, ir.AssignStmt):
        return (stmt.var,)
    if isinstance(stmt, (ir.ForStmt, ir.WhileStmt, ir.IfStmt)):
        return tuple(stmt.return_vars_)
    return ()


@dataclass(frozen=True, slots=True)
class _Carry:
    """A variable that leaves a region: what the loop starts from, carries, and yields."""

    start: ir.Expr
    carried: ir.IterArg
    yielded: ir.Expr


class _Region:
    def __init__(self, region: ir.SplitAivScopeStmt, escaping: list[ir.Var]) -> None:
        self.region = region
        self.escaping = escaping
        self.lane = ir.Var("lane", ir.ScalarType(ir.DataType.INDEX), region.span)
        self.sources = dict(_sources(region.body))
        self.before: list[ir.Stmt] = []
        self.gathers: dict[ir.Var, ir.IterArg] = {}

    def unfolded(self) -> ir.Stmt:
        """The tiles that the loop starts from, and the loop."""
        span = self.region.span
        inside = {var: ir.Var(var.name_hint, var.type, var.span) for var in self.escaping}
        carries = [self._carry(var, inside) for var in self.escaping]
        replaced: dict[ir.Var, ir.Expr] = dict(inside)
        for carry in carries:
            if isinstance(carry.start, ir.Var) and isinstance(carry.start.type, ir.TensorType):
                replaced[carry.start] = carry.carried
        stmts = self._rewritten(self.region.body)
        stmts.append(ir.YieldStmt([self._plain(carry.yielded, inside) for carry in carries], span))
        body = Substitution(replaced).stmt(ir.flatten_stmts(stmts, span))
        loop = ir.ForStmt(
            self.lane, _index(_LANES - 1, span), _index(-1, span), _index(-1, span),
            [carry.carried for carry in carries], body, self.escaping, span,
        )  # fmt: skip
        return ir.flatten_stmts([*self.before, loop], span)

    @staticmethod
    def _plain(value: ir.Expr, inside: Mapping[ir.Var, ir.Var]) -> ir.Expr:
        return inside.get(value, value) if isinstance(value, ir.Var) else value

    # ---- what leaves the region ---------------------------------------------------------------------------

    def _carry(self, var: ir.Var, inside: Mapping[ir.Var, ir.Var]) -> _Carry:
        start = self._start(var)
        carried = ir.IterArg(var.name_hint, var.type, start, var.span)
        if _kind(self.sources.get(var)) == "gather":
            self.gathers[var] = carried
        return _Carry(start, carried, var)

    def _start(self, var: ir.Var) -> ir.Expr:
        type_ = var.type
        if isinstance(type_, ir.TileType):
            return self._blank(var.name_hint, type_)
        if isinstance(type_, ir.TensorType):
            return self._memory(var)
        if isinstance(type_, ir.ScalarType):
            if type_.dtype.is_float():
                return ir.ConstFloat(0.0, type_.dtype, self.region.span)
            if type_.dtype == ir.DataType.BOOL:
                return ir.ConstBool(False, self.region.span)
            return ir.ConstInt(0, type_.dtype, self.region.span)
        raise self._error(f"'{var.name_hint}' of type {type(type_).__name__} cannot leave a split region")

    def _blank(self, name: str, type_: ir.TileType) -> ir.Var:
        """A tile in front of the loop."""
        span = self.region.span
        made = tile.create(type_.shape_, type_.dtype, type_.memory_space, span=span)
        var = ir.Var(f"{name}_start", type_, span)
        self.before.append(ir.AssignStmt(var, made.replace(type=type_), span))
        return var

    def _memory(self, var: ir.Var) -> ir.Expr:
        """The variable outside the region whose memory `var` is."""
        seen: ir.Expr = var
        while isinstance(seen, ir.Var) and seen in self.sources:
            source = self.sources[seen]
            index = written_back_argument(source) if isinstance(source, ir.Call) else None
            if index is not None:
                assert isinstance(source, ir.Call)
                seen = source.args_[index]
            elif isinstance(source, ir.Var):
                seen = source
            else:
                raise self._error(f"'{var.name_hint}' cannot leave a split region: it is made inside")
        return seen

    # ---- the body -----------------------------------------------------------------------------------------

    def _rewritten(self, body: ir.Stmt) -> list[ir.Stmt]:
        return [new for stmt in ir.flatten_to_stmts(body) for new in self._stmt(stmt)]

    def _stmt(self, stmt: ir.Stmt) -> list[ir.Stmt]:
        if not isinstance(stmt, ir.AssignStmt) or not isinstance(stmt.value, ir.Call):
            return [map_substatements(stmt, lambda each: self._nested(each))]
        kind = _kind(stmt.value)
        if kind == "lane":
            return [stmt.replace(value=self.lane)]
        if kind == "shard":
            return self._shard(stmt, stmt.value)
        if kind == "gather":
            return [stmt.replace(value=self._gather(stmt.var, stmt.value))]
        return [stmt]

    def _nested(self, stmt: ir.Stmt) -> ir.Stmt:
        return ir.flatten_stmts(self._rewritten(stmt), stmt.span)

    def _shard(self, stmt: ir.AssignStmt, call: ir.Call) -> list[ir.Stmt]:
        """The lane's half of a tile; a tile of odd extent is first extended to an even one."""
        source, result = call.args_[0], call.type
        assert isinstance(result, ir.TileType) and isinstance(source.type, ir.TileType)
        axis = _axis(call)
        if axis is None:
            moved = tile.move(source, ir.MemorySpace.Vec, span=call.span)
            return [stmt.replace(value=moved.replace(type=result))]
        half, extent = _constant(result.shape_[axis]), _constant(source.type.shape_[axis])
        if half is None or extent is None:
            raise self._error("a tile of dynamic extent cannot be split")
        stride = call.kwargs_.get("lane_stride") or half
        front: list[ir.Stmt] = []
        if stride + half > extent:
            source = self._extended(source, axis, stride + half, front)
        offset = self._offset(axis, stride, call.span)
        window = tile.extract(source, *offset, result.shape_, call.span, target_memory=ir.MemorySpace.Vec)
        return [*front, stmt.replace(value=window.replace(type=result))]

    def _extended(self, source: ir.Expr, axis: int, extent: int, front: list[ir.Stmt]) -> ir.Var:
        """A copy of `source` with more elements along one axis."""
        assert isinstance(source.type, ir.TileType)
        span = self.region.span
        shape = list(source.type.shape_)
        shape[axis] = _index(extent, span)
        blank = tile.create(shape, source.type.dtype, ir.MemorySpace.Vec, span=span)
        target = ir.Var("whole", blank.type, span)
        filled = ir.Var("whole", blank.type, span)
        front += [
            ir.AssignStmt(target, blank, span),
            ir.AssignStmt(filled, tile.assemble(target, source, [0, 0], span).replace(type=blank.type), span),
        ]
        return filled

    def _gather(self, var: ir.Var, call: ir.Call) -> ir.Expr:
        part, result = call.args_[0], call.type
        assert isinstance(result, ir.TileType) and isinstance(part.type, ir.TileType)
        axis = _axis(call)
        if axis is None:
            return tile.move(part, ir.MemorySpace.Mat, span=call.span).replace(type=result)
        half = _constant(part.type.shape_[axis])
        if half is None:
            raise self._error("a tile of dynamic extent cannot be gathered")
        valid = part.type.get_effective_tile_view().valid_shape_[axis]
        if not same_extents([valid], [part.type.shape_[axis]]):
            raise self._error(f"halves of which only {valid} of {half} elements are valid cannot be gathered")
        target = self.gathers.get(var) or self._blank(var.name_hint, result)
        offset = self._offset(axis, half, call.span)
        return tile.assemble(target, part, list(offset), call.span).replace(type=result)

    def _offset(self, axis: int, stride: int, span: ir.Span) -> tuple[ir.Expr, ir.Expr]:
        start = ir.mul(self.lane, _index(stride, span), span)
        zero = _index(0, span)
        return (start, zero) if axis == 0 else (zero, start)

    def _error(self, message: str) -> ValueError:
        return ValueError(located(message, self.region.span))


def _sources(body: ir.Stmt) -> Iterator[tuple[ir.Var, ir.Expr]]:
    """What each variable of a region is; the result of a loop is what the loop starts from."""
    for stmt in walk_stmts(body):
        if isinstance(stmt, ir.AssignStmt):
            yield stmt.var, stmt.value
        elif isinstance(stmt, (ir.ForStmt, ir.WhileStmt)):
            for result, carried in zip(stmt.return_vars_, stmt.iter_args_, strict=True):
                yield result, carried.initValue
        elif isinstance(stmt, ir.IfStmt):
            branch = ir.get_last_yield_stmt(stmt.then_body)
            if branch is not None:
                yield from zip(stmt.return_vars_, branch.value_, strict=True)


def _kind(value: ir.Expr | None) -> str | None:
    """What a call has to do with lanes."""
    definition = get_op_def(value.op.name) if isinstance(value, ir.Call) else None
    if definition is None:
        return None
    if isinstance(definition.meaning, Together):
        return definition.meaning.kind
    return "lane" if definition.meaning == Query("get_subblock_idx") else None


def _axis(call: ir.Call) -> int | None:
    split = int(call.kwargs_.get("split", 0))
    return split - 1 if split else None


def _constant(expr: ir.Expr) -> int | None:
    return expr.value if isinstance(expr, ir.ConstInt) else None


def _index(value: int, span: ir.Span) -> ir.ConstInt:
    return ir.ConstInt(value, ir.DataType.INDEX, span)
