"""MixedKernelExpanded: every kernel does the work of one core, and its exchange with the other is paired.

1. No InCore function does both matrix and vector work; those are AIC, AIV or a Group.
2. An AIC function uses its own ends of the pipes, an AIV function its own: who pushes to a vector core is a
   matrix core. A kernel that was mixed
   runs as one lane and has none.
3. A pipe is set up once per function, and carries only the directions that its mask names.
4. A peer buffer that is imported is reserved, under that name, by the peer function.
5. `tfree` frees what a `tpop` of the same direction gave, once, and nothing reads a tile after that.

A popped tile that is never freed is no error: a pop copies, and gives the slot back itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pypto import ir
from pypto.ir.walk import exprs_of, substatements, vars_in, walk_stmts
from pypto.passes.diagnostics import Diagnostic, error
from pypto.passes.expand_mixed_kernel import core_sides

_RULE = "MixedKernelExpanded"
_AIC, _AIV = ir.FunctionType.AIC, ir.FunctionType.AIV
_TO_VECTOR, _TO_CUBE = 1, 2  # bits of a direction mask
_NAMES = {_TO_VECTOR: "cube to vector (1)", _TO_CUBE: "vector to cube (2)"}

_ENDS = {
    "tile.tpush_to_aiv": (_AIC, _TO_VECTOR),
    "tile.tpop_from_aiv": (_AIC, _TO_CUBE),
    "system.tfree_to_aiv": (_AIC, _TO_CUBE),
    "system.aic_initialize_pipe": (_AIC, 0),
    "tile.tpush_to_aic": (_AIV, _TO_CUBE),
    "tile.tpop_from_aic": (_AIV, _TO_VECTOR),
    "system.tfree_to_aic": (_AIV, _TO_VECTOR),
    "system.aiv_initialize_pipe": (_AIV, 0),
}
"""Which core an operator belongs to, and which direction it serves."""
_POPS = ("tile.tpop_from_aiv", "tile.tpop_from_aic")
_FREES = {"system.tfree_to_aiv": "tile.tpop_from_aiv", "system.tfree_to_aic": "tile.tpop_from_aic"}


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return the kernels that need both kinds of core, and the ends of pipes that do not fit together."""
    found: list[Diagnostic] = []
    for function in program.functions_.values():
        if function.func_type is ir.FunctionType.InCore:
            found += _mixture(function)
        elif function.func_type in (_AIC, _AIV):
            found += _wrong_ends(function)
            found += _wrong_pipes(function)
            found += _wrong_peers(function, program)
            found += _Frees(function).check()
    return found


def _error(message: str, node: ir.Expr | ir.Stmt | ir.Function) -> Diagnostic:
    return error(_RULE, 0, message, node.span)


def _calls(function: ir.Function) -> Iterator[ir.Call]:
    for stmt in walk_stmts(function.body):
        for expr in exprs_of(stmt):
            if isinstance(expr, ir.Call):
                yield expr


def _mixture(function: ir.Function) -> list[Diagnostic]:
    sides = {side for call in _calls(function) for side in core_sides(call)}
    if len(sides) < 2:
        return []
    return [_error(f"InCore function '{function.name}' mixes cube and vector operators", function)]


def _wrong_ends(function: ir.Function) -> list[Diagnostic]:
    return [
        _error(
            f"{function.func_type.name} function '{function.name}' uses '{call.op.name}' of the other core",
            call,
        )
        for call in _calls(function)
        if call.op.name in _ENDS and _ENDS[call.op.name][0] is not function.func_type
    ]


def _wrong_pipes(function: ir.Function) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    masks: dict[int, int] = {}
    for call in _calls(function):
        if not call.op.name.endswith("_initialize_pipe"):
            continue
        pipe, mask = _pipe_of(call), call.kwargs_.get("dir_mask")
        if mask not in (_TO_VECTOR, _TO_CUBE, _TO_VECTOR | _TO_CUBE):
            found.append(
                _error(f"'{function.name}' sets up pipe {pipe} with dir_mask {mask}, not 1, 2 or 3", call)
            )
            continue
        if pipe in masks:
            found.append(_error(f"'{function.name}' sets up pipe {pipe} twice", call))
        masks[pipe] = masks.get(pipe, 0) | mask
    for call in _calls(function):
        _, direction = _ENDS.get(call.op.name, (None, 0))
        mask = masks.get(_pipe_of(call))
        if direction and mask is not None and not mask & direction:
            what = f"'{function.name}' uses '{call.op.name}' on pipe {_pipe_of(call)}"
            found.append(_error(f"{what}, whose dir_mask {mask} lacks {_NAMES[direction]}", call))
    return found


def _pipe_of(call: ir.Call) -> int:
    return int(call.kwargs_.get("id") or 0)


def _wrong_peers(function: ir.Function, program: ir.Program) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    for call in _calls(function):
        if call.op.name != "system.import_peer_buffer":
            continue
        name, peer_name = call.kwargs_.get("name"), str(call.kwargs_.get("peer_func"))
        peer = program.functions_.get(peer_name)
        if peer is None:
            found.append(
                _error(f"'{function.name}' imports '{name}' from '{peer_name}', which is not there", call)
            )
        elif name not in _reserved(peer):
            found.append(
                _error(f"'{function.name}' imports '{name}', which '{peer_name}' does not reserve", call)
            )
    return found


def _reserved(function: ir.Function) -> set[object]:
    return {call.kwargs_.get("name") for call in _calls(function) if call.op.name == "system.reserve_buffer"}


class _Frees:
    """Follows popped tiles through one function."""

    def __init__(self, function: ir.Function) -> None:
        self._function = function
        self._found: list[Diagnostic] = []
        assigned = [stmt for stmt in walk_stmts(function.body) if isinstance(stmt, ir.AssignStmt)]
        times = Counter(stmt.var for stmt in assigned)
        self._values = {stmt.var: stmt.value for stmt in assigned if times[stmt.var] == 1}

    def check(self) -> list[Diagnostic]:
        if any(call.op.name in _FREES for call in _calls(self._function)):
            self._body(self._function.body, {})
        return self._found

    def _body(self, stmt: ir.Stmt, freed: dict[ir.Expr, ir.Call]) -> None:
        """Visit a body; `freed` are the tiles that were freed before it on every way to it."""
        for inner in stmt.stmts_ if isinstance(stmt, ir.SeqStmts) else (stmt,):
            call = inner.expr if isinstance(inner, ir.EvalStmt) else None
            if isinstance(call, ir.Call) and call.op.name in _FREES:
                self._free(call, freed)
                continue
            for expr in exprs_of(inner):
                for used in vars_in(expr):
                    if self._root(used) in freed:
                        message = f"'{used.name_hint}' is read after it was freed in '{self._function.name}'"
                        self._found.append(_error(message, inner))
            if isinstance(inner, ir.AssignStmt):
                freed.pop(inner.var, None)
            for below in substatements(inner):
                self._body(below, dict(freed))

    def _free(self, call: ir.Call, freed: dict[ir.Expr, ir.Call]) -> None:
        tile = call.args_[0]
        root = self._root(tile)
        name = tile.name_hint if isinstance(tile, ir.Var) else "a value"
        if isinstance(root, ir.Call) and root.op.name != _FREES[call.op.name]:
            given = (
                "a tile of the other direction" if root.op.name in _POPS else f"a result of '{root.op.name}'"
            )
            self._found.append(_error(f"'{call.op.name}' frees '{name}', which is {given}", call))
        elif root in freed:
            self._found.append(_error(f"'{call.op.name}' frees '{name}' a second time", call))
        freed[root] = call

    def _root(self, value: ir.Expr) -> ir.Expr:
        """The pop that a tile comes from, through other names and views; what else it is otherwise."""
        while isinstance(value, ir.Var) and value in self._values:
            value = self._values[value]
            if isinstance(value, ir.Call) and value.op.name in _VIEWS:
                value = value.args_[0]
        return value


_VIEWS = frozenset({"tile.reshape", "tile.slice", "tile.set_validshape", "tile.reinterpret_view"})
