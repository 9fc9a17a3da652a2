"""Operators by which the lanes of one kernel, or the blocks of one launch, work together.

Tiles travel through the queues of the runtime. A popped tile is copied out of its slot at once, so freeing
the slot later does nothing, and the buffers that a device reserves for the slots have no counterpart.
"""

from __future__ import annotations

from collections.abc import Callable

from pypto import ir
from pypto.codegen.kernel.layout import valid_extents
from pypto.codegen.kernel.operators.context import OpContext
from pypto.ir.meaning import Together

_HEADER = "pypto_lanes.h"
_SPLITS = ("NONE", "ROWS", "COLS", "ROWS", "COLS")  # by split code; 3 and 4 are for odd extents
_DEFAULT_SLOTS = 8
_BOTH_SIDES = 2  # event scope: the cube lane and the vector lanes of a block
_KINDS = {"aiv": 0, "aic": 1, None: -1}
_KIND_MASKS = {"aiv_only": 1, "aic_only": 2, "mix": 3}


def emit_together(context: OpContext, meaning: Together) -> None:
    """Render what lanes do together, by the kind of it."""
    context.emitter.headers.add(_HEADER)
    _RENDERERS[meaning.kind](context)


def _split(context: OpContext) -> str:
    code = int(context.keyword("split", 0))
    if not 0 <= code < len(_SPLITS):
        raise ValueError(f"split must be 0 to {len(_SPLITS) - 1}, got {code}")
    return f"pypto::Split::{_SPLITS[code]}"


def _pipe(context: OpContext) -> int:
    return int(context.keyword("id") or 0)


def _stride(context: OpContext) -> int:
    return int(context.keyword("lane_stride") or 0)


# ---- tiles -----------------------------------------------------------------------------------------------


def _push_to_vector(context: OpContext) -> None:
    arguments = f"kernel, {context.name(0)}, {_pipe(context)}, {_stride(context)}, {context.detail}"
    context.emitter.line(f"pypto::push_to_vector<{_split(context)}>({arguments});")


def _push_to_cube(context: OpContext) -> None:
    arguments = f"kernel, {context.name(0)}, {_pipe(context)}, {context.detail}"
    context.emitter.line(f"pypto::push_to_cube<{_split(context)}>({arguments});")


def _pop_from_cube(context: OpContext) -> None:
    _pop(context, "pypto::pop_from_cube")


def _pop_from_vector(context: OpContext) -> None:
    _pop(context, f"pypto::pop_from_vector<{_split(context)}>")


def _pop(context: OpContext, function: str) -> None:
    """The popped tile is valid as far as its sender says, or as its type says."""
    result = context.result
    if result is None or not isinstance(result.type, ir.TileType):
        raise ValueError("the popped tile needs a variable with a tile type, or shape and dtype")
    name = context.emitter.declare_tile(result, None)
    context.emitter.line(f"{function}(kernel, {name}, {_pipe(context)}, {context.detail});")
    if valid_extents(result.type) is not None and context.emitter.knows(result.type):
        valid = context.emitter.typed_valid(result.type)
        assert valid is not None
        context.emitter.line(f"{name} = pypto::with_valid({name}, {valid[0]}, {valid[1]});")


def _shard(context: OpContext) -> None:
    out = context.declare_typed()
    if out is None:
        return
    place = f"kernel.sub_block_id(), {_stride(context)}"
    context.emitter.line(f"pypto::shard<{_split(context)}>({out}, {context.name(0)}, {place});")


def _gather(context: OpContext) -> None:
    raise ValueError(
        "it joins the halves of both vector lanes, which only a 'for ... in pl.split_aiv(...)' region has in "
        "one function; in an AIV function push the halves with pl.tpush_to_aic(tile, split=...)"
    )


# ---- queues ----------------------------------------------------------------------------------------------


def _open(context: OpContext) -> None:
    slots = context.keyword("slot_num") or context.keyword("local_slot_num") or _DEFAULT_SLOTS
    sizes = f"{int(context.keyword('slot_size'))}, {int(slots)}"
    directions = int(context.keyword("dir_mask"))
    arguments = f"kernel, {_pipe(context)}, {directions}, {sizes}, {context.detail}"
    context.emitter.line(f"pypto::open_pipe({arguments});")


def _nothing(context: OpContext) -> None:
    """The slot of a popped tile is free already."""


def _address(context: OpContext) -> None:
    """Buffers of slots are the runtime's own: any address will do."""
    if context.result is not None:
        context.emitter.define_scalar(context.result, str(max(int(context.keyword("base", 0)), 0)))


# ---- order -----------------------------------------------------------------------------------------------


def _event(context: OpContext) -> str:
    return context.scalar(0) if context.args else str(int(context.keyword("event_id")))


def _signal(context: OpContext) -> None:
    scope = context.keyword("ffts_mode")
    kind = _KINDS[context.keyword("core_type")]
    arguments = f"{_event(context)}, {_BOTH_SIDES if scope is None else int(scope)}, {kind}"
    context.emitter.line(f"pypto::set_event(kernel, {arguments}, {context.detail});")


def _await(context: OpContext) -> None:
    kind = _KINDS[context.keyword("core_type")]
    context.emitter.line(f"pypto::wait_event(kernel, {_event(context)}, {kind}, {context.detail});")


def _barrier(context: OpContext) -> None:
    kinds = _KIND_MASKS[context.keyword("core_type", "mix")]
    participants = context.scalar(1) if len(context.args) > 1 else "0"
    context.emitter.line(f"pypto::barrier(kernel, {kinds}, {participants}, {context.detail});")


_RENDERERS: dict[str, Callable[[OpContext], None]] = {
    "push_to_vector": _push_to_vector,
    "push_to_cube": _push_to_cube,
    "pop_from_cube": _pop_from_cube,
    "pop_from_vector": _pop_from_vector,
    "shard": _shard,
    "gather": _gather,
    "free": _nothing,
    "open": _open,
    "reserve": _address,
    "import": _address,
    "signal": _signal,
    "await": _await,
    "barrier": _barrier,
}
