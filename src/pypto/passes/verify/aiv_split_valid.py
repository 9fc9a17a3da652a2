"""AivSplitValid: what may stand inside a split_aiv region, and how values cross its boundary.

In such a region the two vector cores of a cluster each work on one half; matrix work stays outside. Values
go in through `aiv_shard` and out through `aic_gather`. Loads and stores do not count, neither as producers
nor as consumers.

Letters in the code are the rules:

a. no matrix operator inside a region;
b. no reduction over the axis that is split;
c. `aiv_shard` and `aic_gather` only inside;
d. with memory spaces that fit (Acc to Vec, Vec to Mat);
e. no vector operator outside, in a function that has a region;
f. what a matrix operator outside reads from a region comes from `aic_gather`;
g. what a vector operator inside reads from a matrix operator outside comes through `aiv_shard`;
h. a region is not written by hand in a function declared InCore.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pypto import ir
from pypto.ir.meaning import Reduce
from pypto.ir.op_registry import get_op_def
from pypto.ir.walk import substatements, vars_in, walk_stmts
from pypto.passes.diagnostics import Diagnostic, error
from pypto.passes.expand_mixed_kernel import core_sides

_RULE = "AivSplitValid"
_SHARD = frozenset({"tile.aiv_shard", "tensor.aiv_shard"})
_GATHER = frozenset({"tile.aic_gather", "tensor.aic_gather"})
_BOUNDARY = _SHARD | _GATHER
_TRANSFERS = frozenset({"tile.load", "tile.store"})
_SPACES = {
    "tile.aiv_shard": (ir.MemorySpace.Acc, ir.MemorySpace.Vec),
    "tile.aic_gather": (ir.MemorySpace.Vec, ir.MemorySpace.Mat),
}
_SPLIT_AXIS = {ir.SplitMode.UP_DOWN: ("col", 0), ir.SplitMode.LEFT_RIGHT: ("row", 1)}


@dataclass(frozen=True, slots=True)
class _Placed:
    """A call, the variable it defines, and the region it stands in (None outside)."""

    call: ir.Call
    target: ir.Var | None
    region: ir.SplitAivScopeStmt | None


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return the violations of the rules for split_aiv regions."""
    found: list[Diagnostic] = []
    for function in program.functions_.values():
        placed = list(_calls(function.body))
        has_region = any(isinstance(stmt, ir.SplitAivScopeStmt) for stmt in walk_stmts(function.body))
        if has_region or any(each.call.op.name in _BOUNDARY for each in placed):
            found += _Function(function, placed, has_region).check()
    return found


def _calls(body: ir.Stmt) -> Iterator[_Placed]:
    pending: list[tuple[ir.Stmt, ir.SplitAivScopeStmt | None]] = [(body, None)]
    while pending:
        stmt, region = pending.pop()
        if isinstance(stmt, ir.SplitAivScopeStmt):
            region = stmt
        if isinstance(stmt, ir.AssignStmt) and isinstance(stmt.value, ir.Call):
            yield _Placed(stmt.value, stmt.var, region)
        elif isinstance(stmt, ir.EvalStmt) and isinstance(stmt.expr, ir.Call):
            yield _Placed(stmt.expr, None, region)
        pending += [(each, region) for each in reversed(substatements(stmt))]


def _lane(call: ir.Call) -> str:
    """Return "cube", "vector", "mixed" (a move between the two) or "shared"."""
    sides = set(core_sides(call))
    if len(sides) > 1:
        return "mixed"
    return next(iter(sides), "shared")


class _Function:
    """The checks of one function."""

    def __init__(self, function: ir.Function, placed: list[_Placed], has_region: bool) -> None:
        self._function = function
        self._placed = placed
        self._has_region = has_region
        self._producers = {each.target: each for each in placed if each.target is not None}

    def check(self) -> Iterator[Diagnostic]:
        """Yield the violations in program order."""
        function = self._function
        if (
            self._has_region
            and function.func_type is ir.FunctionType.InCore
            and function.attrs_.get("split_aiv") is not True
        ):
            yield error(
                _RULE,
                0,
                f"Function '{function.name}' is declared InCore and holds a pl.split_aiv region; declare it "
                "Opaque or use pl.at(CORE_GROUP)",
                function.span,
            )
        for each in self._placed:
            if each.region is None:
                yield from self._outside(each)
            else:
                yield from self._inside(each, each.region)

    def _error(self, each: _Placed, text: str) -> Diagnostic:
        return error(
            _RULE, 0, f"'{each.call.op.name}' {text} (function '{self._function.name}')", each.call.span
        )

    def _outside(self, each: _Placed) -> Iterator[Diagnostic]:
        name, lane = each.call.op.name, _lane(each.call)
        if name in _BOUNDARY:
            yield self._error(each, "must appear inside a pl.split_aiv region")
        elif self._has_region and lane == "vector" and name not in _TRANSFERS and not _states_lane(each.call):
            yield self._error(each, "is a vector op outside every pl.split_aiv region")
        if lane == "cube":
            for var, producer in self._read_producers(each):
                if producer.region is not None and producer.call.op.name not in _GATHER:
                    yield self._error(
                        each, f"reads '{var.name_hint}' out of a pl.split_aiv region without pl.aic_gather"
                    )

    def _inside(self, each: _Placed, region: ir.SplitAivScopeStmt) -> Iterator[Diagnostic]:
        name, lane = each.call.op.name, _lane(each.call)
        if name in _BOUNDARY:
            yield from self._spaces(each)
            return
        if lane == "cube":
            yield self._error(each, "is a cube op inside a pl.split_aiv region")
        yield from self._reduction(each, region)
        if lane == "vector" and name not in _TRANSFERS:
            for var, producer in self._read_producers(each):
                if producer.region is None and _lane(producer.call) == "cube":
                    yield self._error(
                        each,
                        f"reads '{var.name_hint}' of '{producer.call.op.name}' inside a pl.split_aiv region "
                        "without pl.aiv_shard",
                    )

    def _read_producers(self, each: _Placed) -> Iterator[tuple[ir.Var, _Placed]]:
        """Yield each variable that a call reads with the call that produced it, transfers left out."""
        for var in dict.fromkeys(vars_in(each.call)):
            producer = self._producers.get(var)
            if producer is not None and producer.call.op.name not in _TRANSFERS:
                yield var, producer

    def _reduction(self, each: _Placed, region: ir.SplitAivScopeStmt) -> Iterator[Diagnostic]:
        split = _SPLIT_AXIS.get(region.split)
        definition = get_op_def(each.call.op.name)
        if split is None or definition is None or definition.category != "TileOp":
            return
        axis, dim = split
        if isinstance(definition.meaning, Reduce) and definition.meaning.axis == axis:
            yield self._error(
                each, f"reduces over the split axis dim {dim}: each lane has a partial reduction"
            )

    def _spaces(self, each: _Placed) -> Iterator[Diagnostic]:
        required = _SPACES.get(each.call.op.name)
        if required is None or not each.call.args_:
            return
        ends = (("operand", each.call.args_[0].type), ("result", each.call.type))
        for (what, type_), wanted in zip(ends, required, strict=True):
            space = type_.memory_space if isinstance(type_, ir.TileType) else None
            if space is not None and space is not wanted:
                yield self._error(each, f"has its {what} in {space.name}, but {wanted.name} is required")


def _states_lane(call: ir.Call) -> bool:
    """Say whether a call declares the vector lane it runs on."""
    return call.attrs_.get("core_placement") == "aiv" or "lane_stride" in call.kwargs_
