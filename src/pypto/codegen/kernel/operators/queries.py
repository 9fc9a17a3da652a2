"""Operators that ask about types or the running launch."""

from __future__ import annotations

from pypto import ir
from pypto.codegen.kernel.operators.context import OpContext
from pypto.ir.meaning import Query

_LAUNCH = {
    "get_block_idx": "kernel.block_idx()",
    "get_block_num": "kernel.block_num()",
    "get_subblock_idx": "kernel.sub_block_id()",
    "prefetch_wait": "true",
}


#: what a core of the CPU need not do: it executes in order, and its caches look after themselves
_NOTHING = frozenset({"in_order", "prefetch_make_context", "prefetch_async_prefetch", "prefetch_session"})


def emit_query(context: OpContext, meaning: Query) -> None:
    """`const int64_t i = kernel.block_idx();`"""
    if meaning.kind in _NOTHING:
        return
    if meaning.kind == "dim":
        text = _dim(context)
    elif meaning.kind in _LAUNCH:
        text = _LAUNCH[meaning.kind]
    else:
        raise ValueError("it is not supported inside a kernel on the CPU")
    if context.result is not None:
        context.emitter.define_scalar(context.result, text)


def _dim(context: OpContext) -> str:
    type_, axis = context.args[0].type, context.args[1]
    if not isinstance(axis, ir.ConstInt) or not isinstance(type_, ir.ShapedType):
        raise ValueError("the axis of dim must be a constant")
    position = axis.value % len(type_.shape_)
    extent = type_.shape_[position]
    if isinstance(extent, ir.ConstInt):
        return str(extent.value)
    return f"{context.name(0)}.shape[{position}]"
