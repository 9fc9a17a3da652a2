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
            raise ValueError(f"a kernel cannot call function '{value.op.name}'")
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


def _assign_tiles(emitter: Emitter, owner: ir.Stmt, pairs: list[tuple[Carry, ir.Expr]]) -> None:
    """Tiles: copies in an order in which none destroys what another still reads, then what is in place
    already.
    """
    plan = emitter.plan
    copies = [pair for pair in pairs if not plan.shares(plan.values[pair[0].var], emitter.tile(pair[1]))]
    in_place = [pair for pair in pairs if pair not in copies]
    texts = {id(value): emitter.name(value) for _, value in pairs}
    while copies:
        ready = next((pair for pair in copies if not _is_read(emitter, pair, copies)), None)
        if ready is None:
            ready = copies[0]
            _save(emitter, owner, ready[0], copies, texts)
        emitter.line(f"pypto::assign({ready[0].name}, {texts[id(ready[1])]});")
        copies.remove(ready)
    for carry, value in in_place:
        text = texts[id(value)]
        is_full = valid_extents(carry.var.type) is None and valid_extents(value.type) is None
        if text != carry.name and not is_full:
            emitter.line(f"pypto::assign({carry.name}, {text});")


def _is_read(emitter: Emitter, pair: tuple[Carry, ir.Expr], copies: list[tuple[Carry, ir.Expr]]) -> bool:
    target = emitter.plan.values[pair[0].var]
    return any(other is not pair and emitter.plan.shares(target, emitter.tile(other[1])) for other in copies)


def _save(
    emitter: Emitter, owner: ir.Stmt, carry: Carry, copies: list[tuple[Carry, ir.Expr]], texts: dict[int, str]
) -> None:
    """Break a cycle: keep the contents of `carry` aside for those who still read them."""
    value = emitter.plan.values[carry.var]
    layout = value.layout
    saved = emitter.new_name(f"{carry.name}_before")
    tile = f"kernel.tile<{layout.element.stored}, {layout.rows}, {layout.cols}>"
    emitter.line(f"auto {saved} = {tile}({emitter.plan.swaps[id(owner)]});")
    emitter.line(f"pypto::assign({saved}, {carry.name});")
    for other, source in list(copies):
        if other is not carry and emitter.plan.shares(value, emitter.tile(source)):
            texts[id(source)] = saved


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
