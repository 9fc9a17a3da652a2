"""Statements of a kernel as C++: assignments, loops and branches with the values they carry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pypto import ir
from pypto.codegen.kernel.elements import element_of
from pypto.codegen.kernel.emitter import Emitter
from pypto.codegen.kernel.errors import KernelError
from pypto.codegen.kernel.events import trailing_yield
from pypto.codegen.kernel.layout import valid_extents
from pypto.codegen.kernel.operators import emit_operator
from pypto.codegen.kernel.storage import TileValue
from pypto.ir.walk import vars_in


def emit_body(emitter: Emitter, body: ir.Stmt) -> None:
    """All statements of a kernel or of a nested body; a trailing `yield` is left to whoever owns the body.

    Raises:
        KernelError: something has no form on the CPU.
    """
    stmts = list(reversed(_flat(body)))
    while stmts:
        stmt = stmts.pop()
        if isinstance(stmt, ir.ScopeStmt):
            stmts.extend(reversed(_flat(stmt.body)))
        else:
            _emit(emitter, stmt)


def _flat(body: ir.Stmt) -> Sequence[ir.Stmt]:
    return (
        [inner for stmt in body.stmts_ for inner in _flat(stmt)] if isinstance(body, ir.SeqStmts) else [body]
    )


def _emit(emitter: Emitter, stmt: ir.Stmt) -> None:
    with emitter.located(stmt.span):
        if isinstance(stmt, (ir.YieldStmt, ir.ReturnStmt)):
            return
        emitter.source(stmt)
        if isinstance(stmt, ir.AssignStmt):
            _emit_assignment(emitter, stmt)
        elif isinstance(stmt, ir.EvalStmt):
            if not isinstance(stmt.expr, ir.Call):
                raise ValueError(f"a {type(stmt.expr).__name__} cannot be a statement")
            emit_operator(emitter, stmt.expr, None, stmt.span)
        elif isinstance(stmt, ir.IfStmt):
            _emit_if(emitter, stmt)
        elif isinstance(stmt, ir.ForStmt):
            _emit_for(emitter, stmt)
        elif isinstance(stmt, ir.WhileStmt):
            _emit_while(emitter, stmt)
        elif isinstance(stmt, ir.BreakStmt | ir.ContinueStmt):
            word = "break" if isinstance(stmt, ir.BreakStmt) else "continue"
            raise KernelError(
                f"a {word} cannot leave the scope that it is in; the loop around the scope runs elsewhere. "
                f"Put the scope under a condition and the {word} after it",
                kernel=emitter.func.name,
                span=stmt.span,
            )
        else:
            raise KernelError(
                f"{type(stmt).__name__} is not supported in a kernel",
                kernel=emitter.func.name,
                span=stmt.span,
            )


def _emit_assignment(emitter: Emitter, stmt: ir.AssignStmt) -> None:
    var, value = stmt.var, stmt.value
    if isinstance(value, (ir.Call, ir.Submit)):
        if isinstance(value, ir.Submit) or isinstance(value.op, ir.GlobalVar):
            raise ValueError(
                f"a kernel cannot call function '{value.op.name}'; call kernels from an orchestration, "
                "outside of pl.at and pl.spmd, and do not nest these"
            )
        emit_operator(emitter, value, var, stmt.span)
    elif isinstance(value, ir.TupleGetItemExpr):
        if not isinstance(value.tuple, ir.Var):
            raise ValueError("an element can only be taken from a tuple that has a name")
        emitter.bind(var, emitter.part_names[(value.tuple, value.index)])
    elif isinstance(var.type, ir.ScalarType):
        emitter.define_scalar(var, emitter.scalar(value))
    elif isinstance(value, ir.Var):
        emitter.bind(var, emitter.name(value))
    else:
        raise ValueError(f"a value of type {type(var.type).__name__} is not supported in a kernel")


# ---- carried values --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Carry:
    """A variable that a loop or an `if` assigns."""

    var: ir.Var
    name: str


def _open_carry(emitter: Emitter, var: ir.Var, initial: ir.Expr | None) -> Carry | None:
    """Declare the C++ variable of a carried value; None where it needs none, being a tensor that has a
    name.
    """
    type_ = var.type
    if isinstance(type_, ir.ScalarType):
        start = "{}" if initial is None else f" = {emitter.scalar(initial)}"
        name = emitter.bind(var)
        emitter.line(f"{element_of(type_.dtype).compute} {name}{start};")
        return Carry(var, name)
    if isinstance(type_, ir.TileType):
        return _open_tile_carry(emitter, var, initial)
    if isinstance(type_, (ir.TensorType, ir.ArrayType)) and var in emitter.roots:
        return None
    if isinstance(type_, ir.TensorType):
        text = "{}" if initial is None else f" = {emitter.name(initial)}"
        ctype = f"pypto::Tensor<{element_of(type_.dtype).stored}, {len(type_.shape_)}>"
        name = emitter.bind(var)
        emitter.line(f"{ctype} {name}{text};")
        return Carry(var, name)
    raise ValueError(
        f"a value of type {type(type_).__name__} cannot be carried by a loop or an if in a kernel"
    )


def _open_tile_carry(emitter: Emitter, var: ir.Var, initial: ir.Expr | None) -> Carry:
    value = emitter.plan.values[var]
    if initial is None:
        return Carry(var, emitter.declare_tile(var, None))
    source = emitter.tile(initial)
    if emitter.plan.shares(value, source) and value.layout == source.layout:
        text = emitter.name(initial)
        name = emitter.bind(var)
        emitter.line(f"auto {name} = {text};")
        return Carry(var, name)
    text = emitter.name(initial)
    name = emitter.declare_tile(var, None)
    emitter.line(f"pypto::assign({name}, {text});")
    return Carry(var, name)


def _assign_carries(
    emitter: Emitter, owner: ir.Stmt, carries: Sequence[Carry | None], values: Sequence[ir.Expr]
) -> None:
    """All carries take their values at once."""
    if len(values) != len(carries):
        raise ValueError(f"{len(carries)} values are carried but {len(values)} are yielded")
    pairs = [(carry, value) for carry, value in zip(carries, values, strict=True) if carry is not None]
    _assign_variables(emitter, [pair for pair in pairs if not isinstance(pair[0].var.type, ir.TileType)])
    _assign_tiles(emitter, owner, [pair for pair in pairs if isinstance(pair[0].var.type, ir.TileType)])


def _assign_variables(emitter: Emitter, pairs: list[tuple[Carry, ir.Expr]]) -> None:
    """Scalars and tensors: through temporaries where a value reads another carried variable."""
    texts = []
    for carry, value in pairs:
        is_scalar = isinstance(carry.var.type, ir.ScalarType)
        texts.append(emitter.scalar(value) if is_scalar else emitter.name(value))
    targets = {carry.name for carry, _ in pairs}
    moves = [
        (carry.name, value, text)
        for (carry, value), text in zip(pairs, texts, strict=True)
        if text != carry.name
    ]
    reads_other = any(
        emitter.names.get(var) in targets - {name} for name, value, _ in moves for var in vars_in(value)
    )
    if reads_other and len(moves) > 1:
        renamed = [emitter.new_name("next") for _ in moves]
        for temporary, (_, _, text) in zip(renamed, moves, strict=True):
            emitter.line(f"const auto {temporary} = {text};")
        moves = [(name, value, temporary) for temporary, (name, value, _) in zip(renamed, moves, strict=True)]
    for name, _, text in moves:
        emitter.line(f"{name} = {text};")


@dataclass(slots=True, eq=False)
class TileMove:
    """A carried tile and what it becomes: `text`, in the buffer of `source` (None: in one of its own)."""

    carry: Carry
    target: TileValue
    source: TileValue | None
    text: str
    is_full: bool


def _assign_tiles(emitter: Emitter, owner: ir.Stmt, pairs: list[tuple[Carry, ir.Expr]]) -> None:
    """Tiles: copies in an order in which none destroys what another still reads; then what is in place."""
    moves = [_tile_move(emitter, owner, carry, value) for carry, value in pairs]
    copies = [move for move in moves if not _lies_in(emitter, move, move)]
    in_place = [move for move in moves if _lies_in(emitter, move, move)]
    while copies:
        ready = next((move for move in copies if not _destroys(emitter, move, copies)), None)
        if ready is None:
            ready = copies[0]
            _keep_aside(emitter, owner, ready, copies)
        emitter.line(f"pypto::assign({ready.carry.name}, {ready.text});")
        copies.remove(ready)
    for move in in_place:
        if move.text != move.carry.name and not move.is_full:
            emitter.line(f"pypto::assign({move.carry.name}, {move.text});")


def _tile_move(emitter: Emitter, owner: ir.Stmt, carry: Carry, value: ir.Expr) -> TileMove:
    target, source = emitter.plan.values[carry.var], emitter.tile(value)
    text = emitter.name(value)
    is_full = valid_extents(carry.var.type) is None and valid_extents(value.type) is None
    buffer = emitter.plan.views.get((id(owner), carry.var))
    if buffer is None:
        return TileMove(carry, target, source, text, is_full)
    saved = _declare_buffer(emitter, f"{carry.name}_next", target, buffer)
    emitter.line(f"pypto::assign({saved}, {text});")
    return TileMove(carry, target, None, saved, is_full)


def _lies_in(emitter: Emitter, move: TileMove, other: TileMove) -> bool:
    """Whether what `move` reads lies in the buffer that `other` assigns."""
    return move.source is not None and emitter.plan.shares(move.source, other.target)


def _destroys(emitter: Emitter, move: TileMove, copies: list[TileMove]) -> bool:
    return any(other is not move and _lies_in(emitter, other, move) for other in copies)


def _keep_aside(emitter: Emitter, owner: ir.Stmt, move: TileMove, copies: list[TileMove]) -> None:
    """Break a cycle: keep the contents of a carry for those who still read them."""
    saved = _declare_buffer(emitter, f"{move.carry.name}_before", move.target, emitter.plan.swaps[id(owner)])
    emitter.line(f"pypto::assign({saved}, {move.carry.name});")
    for other in copies:
        if other is not move and _lies_in(emitter, other, move):
            other.text, other.source = saved, None


def _declare_buffer(emitter: Emitter, name: str, like: TileValue, offset: int) -> str:
    name, layout = emitter.new_name(name), like.layout
    extents = f"{layout.element.stored}, {layout.rows}, {layout.cols}"
    emitter.line(f"auto {name} = kernel.tile<{extents}>({offset});")
    return name


# ---- control flow ----------------------------------------------------------------------------------------


def _emit_for(emitter: Emitter, loop: ir.ForStmt) -> None:
    carries = [_open_carry(emitter, carried, carried.initValue) for carried in loop.iter_args_]
    start, stop, step = (
        emitter.scalar(loop.start),
        emitter.scalar.render(loop.stop).operand,
        emitter.scalar(loop.step),
    )
    assert isinstance(loop.loop_var.type, ir.ScalarType)
    ctype = element_of(loop.loop_var.type.dtype).compute
    name = emitter.bind(loop.loop_var)
    if isinstance(loop.step, ir.ConstInt):
        condition = f"{name} {'<' if loop.step.value > 0 else '>'} {stop}"
    else:
        condition = f"{step} > 0 ? {name} < {stop} : {name} > {stop}"
    advance = f"++{name}" if step == "1" else f"{name} += {step}"
    with emitter.block(f"for ({ctype} {name} = {start}; {condition}; {advance})"):
        emit_body(emitter, loop.body)
        _assign_carries(emitter, loop, carries, trailing_yield(loop.body))
    _close(emitter, loop.iter_args_, loop.return_vars_)


def _emit_while(emitter: Emitter, loop: ir.WhileStmt) -> None:
    carries = [_open_carry(emitter, carried, carried.initValue) for carried in loop.iter_args_]
    with emitter.block("while (true)"):
        emitter.line(f"if (!({emitter.scalar(loop.condition)})) break;")
        emit_body(emitter, loop.body)
        _assign_carries(emitter, loop, carries, trailing_yield(loop.body))
    _close(emitter, loop.iter_args_, loop.return_vars_)


def _close(emitter: Emitter, carried: Sequence[ir.IterArg], results: Sequence[ir.Var]) -> None:
    for inner, outer in zip(carried, results, strict=True):
        emitter.bind(outer, emitter.name(inner))


def _emit_if(emitter: Emitter, stmt: ir.IfStmt) -> None:
    condition = emitter.scalar(stmt.condition)
    carries = [_open_carry(emitter, result, None) for result in stmt.return_vars_]
    with emitter.block(f"if ({condition})"):
        emit_body(emitter, stmt.then_body)
        _assign_carries(emitter, stmt, carries, trailing_yield(stmt.then_body) if carries else ())
        if stmt.else_body is not None:
            emitter.reopen("} else {")
            emit_body(emitter, stmt.else_body)
            _assign_carries(emitter, stmt, carries, trailing_yield(stmt.else_body) if carries else ())
