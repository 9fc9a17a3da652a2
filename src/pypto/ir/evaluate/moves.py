"""Evaluates operators that move cells: one function per kind of move.

Each takes the call's pieces and returns the result's cells and valid extents. Cells that nothing defines
are 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pypto.core.dtype import DataType
from pypto.ir.enums import PadValue
from pypto.ir.evaluate.numbers import Array, convert, storage

Valid = tuple[int, ...]
Moved = tuple[Array, Valid]


@dataclass(frozen=True, slots=True)
class MoveCall:
    """Argument cells, valid extents and numbers of a move; its keywords; the result's shape and type."""

    args: tuple[Any, ...]
    valids: tuple[Valid, ...]
    dtypes: tuple[DataType | None, ...]
    kwargs: Mapping[str, Any]
    shape: Valid
    dtype: DataType

    def zeros(self) -> Array:
        return np.zeros(self.shape, storage(self.dtype))


def _box(offsets: Valid, extents: Valid) -> tuple[slice, ...]:
    return tuple(slice(o, o + e) for o, e in zip(offsets, extents, strict=True))


def _origin(extents: Valid) -> tuple[slice, ...]:
    return tuple(slice(0, e) for e in extents)


def _window(
    call: MoveCall, source: Array, valid: Valid, offsets: Valid, shape: Valid, request: Valid | None
) -> Moved:
    """Cells of a window and how many of them are real."""
    pad = source.ndim - len(shape)
    if pad > 0:
        source = source.reshape(source.shape[pad:]) if all(e == 1 for e in source.shape[:pad]) else source
        valid = valid[pad:]
    available = tuple(max(0, min(v - o, w)) for v, o, w in zip(valid, offsets, shape, strict=True))
    kept = available if request is None else tuple(min(r, a) for r, a in zip(request, available, strict=True))
    out = np.zeros(shape, source.dtype)
    out[_origin(kept)] = source[_box(offsets, kept)]
    return out, kept


def _load(call: MoveCall) -> Moved:
    source, offsets, shape, request = call.args
    return _window(call, source, call.valids[0], offsets, shape, request)


def _slice(call: MoveCall) -> Moved:
    source, shape, offsets = call.args[:3]
    request = call.args[3] if len(call.args) > 3 and call.args[3] else None
    out, valid = _window(call, source, call.valids[0], offsets, shape, request)
    if len(call.args) > 4 and call.args[4]:
        kept = [i for i in range(len(shape)) if i not in call.args[4]]
        out = out.reshape(call.shape)
        valid = (1,) * (len(call.shape) - len(kept)) + tuple(valid[i] for i in kept)
    return out, valid


def _extract(call: MoveCall) -> Moved:
    source, row, column, shape = call.args
    return _window(call, source, call.valids[0], (int(row), int(column)), shape, None)


def _written(call: MoveCall, target: Array, source: Array, valid: Valid, offsets: Valid) -> Array:
    """``target`` with the valid cells of ``source`` at ``offsets``, converted to its element type."""
    lift = target.ndim - source.ndim
    source = source.reshape((1,) * lift + source.shape)
    valid = (1,) * lift + valid
    from_, to = call.dtypes[0], call.dtype
    cells = source[_origin(valid)]
    if from_ is not None and from_ is not to:
        cells = convert(cells, from_, to, 5 if to.is_int() else 1)
    out: Array = target.copy()
    window = _box(offsets, valid)
    if call.kwargs.get("atomic"):
        wide = np.float32 if to.is_float() else out.dtype
        cells = (out[window].astype(wide) + cells.astype(wide)).astype(out.dtype)
    out[window] = cells
    return out


def _grown(call: MoveCall, target_valid: Valid, shape: Valid, offsets: Valid, written: Valid) -> Valid:
    if 0 in written:
        return target_valid
    lift = len(shape) - len(written)
    written = (1,) * lift + written
    return tuple(
        max(t, min(o + w, s)) for t, o, w, s in zip(target_valid, offsets, written, shape, strict=True)
    )


def _store(call: MoveCall) -> Moved:
    source, offsets, target = call.args[:3]
    out = _written(call, target, source, call.valids[0], offsets)
    return out, _grown(call, call.valids[2], out.shape, offsets, call.valids[0])


def _assemble(call: MoveCall) -> Moved:
    target, source, offsets = call.args
    swapped = MoveCall(call.args, call.valids, (call.dtypes[1],), call.kwargs, call.shape, call.dtype)
    out = _written(swapped, target, source, call.valids[1], offsets)
    return out, _grown(call, call.valids[0], out.shape, offsets, call.valids[1])


def _same(call: MoveCall) -> Moved:
    """The same cells; bytes that become scales keep their bits."""
    return call.args[0].copy().view(storage(call.dtype)), call.valids[0]


def _reshape(call: MoveCall) -> Moved:
    source, valid = call.args[0], call.valids[0]
    out = source.reshape(call.shape)
    if valid == source.shape:
        return out, call.shape
    if 0 in valid:
        return out, (0,) * len(call.shape)
    truth = np.zeros(source.shape, bool)
    truth[_origin(valid)] = True
    return out, _box_of(truth.reshape(call.shape))


def _box_of(truth: Array) -> Valid:
    """Extents of the box at the origin that holds exactly the true cells."""
    extents = tuple(int(np.max(index)) + 1 for index in np.nonzero(truth))
    if not truth[_origin(extents)].all():
        raise ValueError("the valid cells form no box in the new shape")
    return extents


def _transpose(call: MoveCall) -> Moved:
    i, j = int(call.args[1]), int(call.args[2])
    valid = list(call.valids[0])
    valid[i], valid[j] = valid[j], valid[i]
    return np.ascontiguousarray(np.swapaxes(call.args[0], i, j)), tuple(valid)


def _transpose_view(call: MoveCall) -> Moved:
    valid = call.valids[0]
    return np.ascontiguousarray(np.swapaxes(call.args[0], -1, -2)), (*valid[:-2], valid[-1], valid[-2])


def _reinterpret(call: MoveCall) -> Moved:
    source, valid = call.args[0], call.valids[0]
    out = np.ascontiguousarray(source).view(storage(call.dtype)).reshape(call.shape)
    if valid == source.shape:
        return out, call.shape
    scaled = valid[-1] * source.dtype.itemsize // out.dtype.itemsize
    return out, (*valid[:-1], scaled)


def _set_validshape(call: MoveCall) -> Moved:
    return call.args[0], (int(call.args[1]), int(call.args[2]))


def pad_cell(dtype: DataType, pad: PadValue) -> Any:
    """The number that fills padding: 0, or an extreme of the element type (infinite for floats)."""
    if pad is PadValue.zero:
        return storage(dtype).type(0)
    if dtype.is_float():
        return storage(dtype).type(np.inf if pad is PadValue.max else -np.inf)
    limits = np.iinfo(storage(dtype))
    return storage(dtype).type(limits.max if pad is PadValue.max else limits.min)


def _fillpad(call: MoveCall) -> Moved:
    out = np.full(
        call.shape, pad_cell(call.dtype, call.kwargs.get("pad_value", PadValue.zero)), storage(call.dtype)
    )
    valid = _origin(call.valids[0])
    out[valid] = call.args[0][valid]
    return out, call.shape


def _full(call: MoveCall) -> Moved:
    return np.full(call.shape, call.args[1]).astype(storage(call.dtype)), call.shape


def _create(call: MoveCall) -> Moved:
    fill = call.kwargs.get("init_value") or 0
    return np.full(call.shape, fill).astype(storage(call.dtype)), call.shape


def _ci(call: MoveCall) -> Moved:
    steps = np.arange(call.shape[-1], dtype=np.int64)
    values = int(call.args[0]) + (-steps if call.kwargs.get("descending") else steps)
    return values.astype(storage(call.dtype)).reshape(call.shape), call.shape


def _tri(call: MoveCall) -> Moved:
    rows, columns = np.indices(call.shape)
    bound = rows + int(call.args[0])
    truth = columns >= bound if call.kwargs.get("upper") else columns <= bound
    return truth.astype(storage(call.dtype)), call.args[2] if len(call.args) > 2 else call.shape


def _concat(call: MoveCall) -> Moved:
    return np.concatenate(call.args[:2], axis=1), call.shape


def _write(call: MoveCall) -> Moved:
    out = call.args[0].copy()
    out[call.args[1]] = call.args[2]
    return out, call.valids[0]


_PATTERNS = {1: (2, 0), 2: (2, 1), 3: (4, 0), 4: (4, 1), 5: (4, 2), 6: (4, 3), 7: (1, 0)}


def _gather_mask(call: MoveCall) -> Moved:
    stride, phase = _PATTERNS[call.kwargs["mask_pattern"]]
    return np.ascontiguousarray(call.args[0][:, phase::stride]).view(storage(call.dtype)), call.shape


def _scatter_mask(call: MoveCall) -> Moved:
    tensor_level = call.args[0].shape[1] <= call.args[1].shape[1] and call.args[1].shape == call.shape
    source, target = (call.args[0], call.args[1]) if tensor_level else (call.args[1], call.args[0])
    stride, phase = _PATTERNS[call.kwargs["mask_pattern"]]
    out = target.copy()
    out[:, phase::stride] = source
    return out, call.shape


def _gather(call: MoveCall) -> Moved:
    source, index = call.args
    axis = call.kwargs.get("dim", -1) % source.ndim
    trimmed = source[tuple(slice(None) if i == axis else slice(0, e) for i, e in enumerate(index.shape))]
    return np.take_along_axis(trimmed, index.astype(np.int64), axis), call.shape


def _gather_flat(call: MoveCall) -> Moved:
    source, index = call.args[0].reshape(-1), call.args[1].astype(np.int64)
    inside = (index >= 0) & (index < source.size)
    return np.where(inside, source[np.where(inside, index, 0)], 0).astype(source.dtype), call.shape


def _scatter(call: MoveCall) -> Moved:
    target, index, source = call.args
    out = target.copy()
    np.put_along_axis(out, index.astype(np.int64), source, -1)
    return out, call.shape


def _scatter_flat(call: MoveCall) -> Moved:
    out = call.args[0].copy()
    out.reshape(-1)[call.args[2].reshape(-1).astype(np.int64)] = call.args[1].reshape(-1)
    return out, call.valids[0]


def _scatter_update(call: MoveCall) -> Moved:
    target, index, source = call.args
    out = target.copy()
    rows = out.reshape(-1, out.shape[-1])
    updates = source.reshape(-1, source.shape[-1])
    for k, row in enumerate(index.reshape(-1)):
        rows[int(row)] = updates[k]
    return out, call.valids[0]


def _gather_row(call: MoveCall) -> Moved:
    target, source, into, out_of, shape = call.args[:5]
    extents = call.args[5] if len(call.args) > 5 else shape
    cells = source[_box(out_of, extents)]
    if call.kwargs.get("transpose"):
        cells = cells.T
    out = target.copy()
    out[_box(into, cells.shape)] = cells
    return out, call.valids[0]


def _paged_gather(call: MoveCall) -> Moved:
    pool, indices, table = call.args
    block, first = call.kwargs["block_size"], call.kwargs.get("col_off", 0)
    logical = indices.reshape(-1)[: call.kwargs["max_indices"]].astype(np.int64)
    rows = table.reshape(-1)[logical // block].astype(np.int64) * block + logical % block
    cells = pool[rows, first : first + call.kwargs["size"]]
    return np.ascontiguousarray(cells.T if call.kwargs.get("is_trans") else cells), call.shape


def _pairs(data: Array) -> tuple[Array, Array]:
    """Values and index words of interleaved sort records."""
    return data[..., 0::2], data[..., 1::2]


def _interleaved(values: Array, words: Array) -> Array:
    out = np.empty((*values.shape[:-1], values.shape[-1] * 2), values.dtype)
    out[..., 0::2], out[..., 1::2] = values, words
    return out


def _sort32(call: MoveCall) -> Moved:
    values, index = call.args
    words = index.astype(np.uint32).view(np.float32)
    out = np.empty(call.shape, storage(call.dtype))
    for start in range(0, values.shape[-1], 32):
        block, ids = values[..., start : start + 32], index[..., start : start + 32]
        order = np.lexsort((ids, -block.astype(np.float64)), axis=-1)
        taken = np.take_along_axis(words[..., start : start + 32], order, -1)
        sorted_ = np.take_along_axis(block, order, -1)
        out[..., 2 * start : 2 * start + 64] = _interleaved(sorted_, taken.astype(values.dtype, copy=False))
    return out, call.shape


def _merged(records: Array) -> Array:
    """Records of one row, descending by value, earlier first among equals."""
    values, words = _pairs(records)
    order = np.argsort(-values.astype(np.float64), axis=-1, kind="stable")
    return _interleaved(np.take_along_axis(values, order, -1), np.take_along_axis(words, order, -1))


def _mrgsort_blocks(call: MoveCall) -> Moved:
    out = call.args[0].copy()
    group = 4 * int(call.args[1])
    for start in range(0, out.shape[-1] - group + 1, group):
        out[..., start : start + group] = _merged(out[..., start : start + group])
    return out, call.shape


def _mrgsort_lists(call: MoveCall) -> Moved:
    width = call.shape[-1]
    sources: list[Array] = []
    for source in call.args:
        if sum(each.shape[-1] for each in sources) < width:
            sources.append(source)
    return _merged(np.concatenate(sources, axis=-1))[..., :width], call.shape


MOVES: dict[str, Callable[[MoveCall], Moved]] = {
    "load": _load, "store": _store, "slice": _slice, "extract": _extract, "assemble": _assemble,
    "move": _same, "reshape": _reshape, "view": _reshape, "transpose": _transpose,
    "transpose_view": _transpose_view, "reinterpret_view": _reinterpret,
    "set_validshape": _set_validshape, "fillpad": _fillpad, "fillpad_expand": _fillpad, "full": _full,
    "create": _create, "ci": _ci, "tri": _tri, "concat": _concat, "write": _write,
    "gather_mask": _gather_mask, "scatter_mask": _scatter_mask, "gather": _gather,
    "gather_flat": _gather_flat, "scatter": _scatter, "scatter_flat": _scatter_flat,
    "scatter_update": _scatter_update, "gather_row": _gather_row,
    "paged_gather": _paged_gather, "sort32": _sort32,
    "mrgsort_blocks": _mrgsort_blocks, "mrgsort_lists": _mrgsort_lists,
}  # fmt: skip
