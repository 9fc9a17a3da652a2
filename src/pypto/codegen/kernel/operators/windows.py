"""Operators that reach the windows of other ranks.

Each rank has a window of the same shape. In front of it lies the communication context: who this rank is, and
where the windows of all ranks are. A kernel finds both through the parameter that the window came in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pypto import ir
from pypto.codegen.kernel.layout import constant_extents, valid_extents
from pypto.codegen.kernel.operators.collectives import COLLECTIVES
from pypto.codegen.kernel.operators.context import OpContext
from pypto.ir.meaning import Remote

_HEADER = "pypto_windows.h"
_WAITS = {ir.WaitCmp.Eq: "EQ", ir.WaitCmp.Ge: "GE"}


def emit_remote(context: OpContext, meaning: Remote) -> None:
    """Render an operator on windows, by the kind of it."""
    if meaning.kind in COLLECTIVES:
        COLLECTIVES[meaning.kind](context, _comm)
        return
    context.emitter.headers.add(_HEADER)
    _RENDERERS[meaning.kind](context)


def _comm(context: OpContext, index: int) -> str:
    """The communication context of a window operand."""
    expr = context.args[index]
    root = context.emitter.roots.get(expr, expr) if isinstance(expr, ir.Var) else None
    tensors = [p for p in context.emitter.func.params_ if isinstance(p.type, ir.TensorType)]
    slot = next((slot for slot, param in enumerate(tensors) if param is root), None)
    if slot is None or not isinstance(tensors[slot].type, ir.DistributedTensorType):
        raise ValueError(f"argument {index} must be a window that the kernel takes as a parameter")
    return f"pypto::comm(kernel, {slot})"


def _at(context: OpContext, exprs: Sequence[ir.Expr]) -> str:
    return f"pypto::at({context.list_of(exprs)})"


def _box(extents: Sequence[int]) -> str:
    return f"pypto::box({', '.join(map(str, extents))})"


def _peer(context: OpContext, window: int, peer: int) -> str:
    """The window of a peer, seen as the operand is."""
    where = f"{_comm(context, window)}, {context.name(window)}, {context.scalar(peer)}"
    return f"pypto::at_peer(kernel, {where}, {context.detail})"


# ---- who is who ------------------------------------------------------------------------------------------


def _context(context: OpContext) -> None:
    if context.result is not None:
        name = context.emitter.bind(context.result)
        context.emitter.line(f"const pypto::Comm* const {name} = {_comm(context, 0)};")


def _member(field: str) -> Callable[[OpContext], None]:
    def emit(context: OpContext) -> None:
        if context.result is not None:
            context.emitter.define_scalar(context.result, f"{context.name(0)}->{field}")

    return emit


# ---- signals ---------------------------------------------------------------------------------------------


def _notify(context: OpContext) -> None:
    is_set = int(context.keyword("op")) == ir.NotifyOp.Set
    target, place = _peer(context, 0, 1), _at(context, context.elements(2))
    how = "true" if is_set else "false"
    context.emitter.line(
        f"pypto::notify<{how}>(kernel, {target}, {place}, {context.scalar(3)}, {context.detail});"
    )


def _wait(context: OpContext) -> None:
    how = f"pypto::Until::{_WAITS[ir.WaitCmp(int(context.keyword('cmp')))]}"
    place = _at(context, context.elements(1))
    where = f"{_comm(context, 0)}, {context.name(0)}, {place}"
    arguments = f"kernel, {where}, {context.scalar(2)}, {context.detail}"
    context.emitter.line(f"pypto::wait<{how}>({arguments});")


def _barrier(context: OpContext) -> None:
    where = f"{_comm(context, 0)}, {context.name(0)}, {context.detail}"
    context.emitter.line(f"pypto::barrier_of_ranks(kernel, {where});")
    if context.result is not None:
        context.emitter.bind(context.result, context.name(0))


# ---- transfers -------------------------------------------------------------------------------------------


def _load(context: OpContext) -> None:
    """tile := peer's window[offset : offset + valid]"""
    result = context.call.type
    assert isinstance(result, ir.TileType)
    extents = constant_extents(context.elements(3))
    if extents is None:
        raise ValueError("the extents of a remote load must be compile-time constants")
    asked = context.elements(4) if len(context.args) > 4 else context.elements(3)
    valid = valid_extents(result) if context.emitter.knows(result) else asked
    out = context.declare_typed() if context.emitter.knows(result) else context.declare(None)
    if out is None:
        return
    place = f"{out}, {_peer(context, 0, 1)}, {_at(context, context.elements(2))}"
    wanted = _box(extents) if valid is None else f"pypto::box({context.list_of(valid)})"
    context.emitter.line(f"pypto::load(kernel, {place}, {_box(extents)}, {wanted}, {context.detail});")


def _store(context: OpContext) -> None:
    """peer's window[offset : offset + valid] := tile[:valid], or += in one step per element."""
    source = context.args[0].type
    if not isinstance(source, ir.TileType):
        raise ValueError("only a tile can be stored")
    offsets = context.elements(3)
    function = "pypto::store"
    if context.keyword("atomic", 0):
        context.emitter.headers.add("pypto_atomic.h")
        function = "pypto::store_add"
    extents = constant_extents(source.shape_)
    assert extents is not None
    ones = [1] * (len(offsets) - 2)
    tile = context.name(0)
    rows_and_columns = [1] * (2 - len(extents)) + list(extents[-2:])
    physical = _box([*ones, *rows_and_columns])
    valid = f"pypto::box({', '.join([*map(str, ones), f'{tile}.valid_rows', f'{tile}.valid_cols'])})"
    place = f"kernel, {tile}, {_peer(context, 1, 2)}, {_at(context, offsets)}"
    context.emitter.line(f"{function}({place}, {physical}, {valid}, {context.detail});")


def _transfer(context: OpContext, *, put: bool) -> None:
    """A region between a tensor here and the window of a peer; what is staged on a device goes at once."""
    remote, local = (0, 2) if put else (2, 0)
    rest = [arg for arg in context.args[3:] if isinstance(arg, ir.MakeTuple)]
    type_ = context.args[0].type
    assert isinstance(type_, ir.TensorType)
    if rest:
        dst, src = (_at(context, part.elements_) for part in rest[:2])
        shape = f"pypto::box({context.list_of(rest[2].elements_)})"
    else:
        dst = src = f"pypto::at({', '.join(['0'] * len(type_.shape_))})"
        shape = f"pypto::extents({context.name(0)})"
    peer = _peer(context, remote, 1)
    to, source = (peer, context.name(local)) if put else (context.name(local), peer)
    atomic = "true" if context.keyword("atomic", 0) else "false"
    arguments = f"kernel, {to}, {dst}, {source}, {src}, {shape}, {context.detail}"
    context.emitter.headers.add("pypto_atomic.h")
    context.emitter.line(f"pypto::transfer<{atomic}>({arguments});")


_RENDERERS: dict[str, Callable[[OpContext], None]] = {
    "context": _context,
    "rank": _member("rank"),
    "nranks": _member("nranks"),
    "notify": _notify,
    "wait": _wait,
    "barrier": _barrier,
    "load": _load,
    "store": _store,
    "put": lambda context: _transfer(context, put=True),
    "get": lambda context: _transfer(context, put=False),
}
