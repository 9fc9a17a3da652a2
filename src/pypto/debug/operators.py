"""What operators do to the values of a run.

Operators that see memory or the launch have a function here; all others compute what their declared meaning
says. Reading padding gives 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pypto import ir
from pypto.core.dtype import DataType
from pypto.core.span import Span
from pypto.debug.execution import POISON, Activation, Memory, as_memory, here, task_numbers
from pypto.debug.lanes import Lanes, joined, part_of_lane
from pypto.ir.evaluate import Value, evaluate_call, storage
from pypto.ir.evaluate.moves import MOVES
from pypto.ir.evaluate.numbers import element_type
from pypto.ir.meaning import Meaning, Move, Opaque, Query, Remote, Together
from pypto.ir.op_registry import get_op_def


@dataclass(frozen=True, slots=True)
class Result:
    """The type of a result with its extents as numbers; scalars have neither shape nor valid region."""

    dtype: DataType
    shape: tuple[int, ...] | None = None
    valid: tuple[int, ...] | None = None


def scalar(dtype: DataType) -> Result:
    """The type of a scalar result."""
    return Result(dtype)


def shaped(shape: Sequence[Any], dtype: DataType, valid: Sequence[Any] | None = None) -> Result:
    """The type of a tensor or tile; all of it is valid unless said otherwise."""
    extents = tuple(int(each) for each in shape)
    return Result(dtype, extents, extents if valid is None else tuple(int(each) for each in valid))


@dataclass(frozen=True, slots=True)
class _Request:
    """One call of an operator."""

    name: str
    operands: tuple[Any, ...]
    result: Result | None
    keywords: Mapping[str, Any]
    deps: Sequence[Any]
    active: Activation

    def computed(self, operands: Sequence[Any] | None = None) -> Any:
        """What the declared meaning gives."""
        values = [_as_value(each) for each in (self.operands if operands is None else operands)]
        return evaluate_call(self._call(values), values)

    def _call(self, values: Sequence[Any]) -> ir.Call:
        on_chip = not self.name.startswith("tensor.")
        span = Span.unknown()
        args: list[ir.Expr] = [
            ir.Var("operand", _shaped_type(each.data.shape, element_type(each.data.dtype), on_chip), span)
            if isinstance(each, Value)
            else ir.ConstInt(0, DataType.INDEX, span)
            for each in values
        ]
        result: ir.Type = ir.UnknownType()
        if self.result is not None:
            shape = self.result.shape
            result = (
                ir.ScalarType(self.result.dtype)
                if shape is None
                else _shaped_type(shape, self.result.dtype, on_chip)
            )
        return ir.Call(ir.Op(self.name), args, dict(self.keywords), result, span)


def _shaped_type(shape: Sequence[int], dtype: DataType, on_chip: bool) -> ir.Type:
    return (ir.TileType if on_chip else ir.TensorType)(list(shape), dtype)


def op(
    name: str, operands: tuple[Any, ...], result: Result | None = None, /, *, deps: Any = (), **keywords: Any
) -> Any:
    """The result of an operator."""
    active = here()
    request = _Request(name, operands, result, keywords, deps, active)
    special = _SPECIAL.get(name) or _SPECIAL.get(name.rpartition(".")[2])
    if special is not None:
        return special(request)
    if does_nothing(name):
        return None
    outside = not active.in_kernel and result is not None and result.shape is not None
    if outside and active.machine.only_kernels_compute:
        raise AssertionError(f"{name} computes a tensor outside of kernels")
    value = request.computed()
    return as_memory(value) if outside and isinstance(value, Value) else value


def _meaning(name: str) -> Meaning | None:
    definition = get_op_def(name)
    return None if definition is None else definition.meaning


def does_nothing(name: str) -> bool:
    """Whether an operator has no effect on values: it orders what runs in order, or declares buffers."""
    meaning = _meaning(name)
    if isinstance(meaning, Query):
        return meaning.kind == "in_order" or name.startswith("prefetch.")
    if isinstance(meaning, Together):
        return meaning.kind in ("free", "open", "reserve", "import")
    return name.endswith(".alloc")


def is_supported(name: str) -> bool:
    """Whether a run can compute an operator."""
    if name in _SPECIAL or name.rpartition(".")[2] in _SPECIAL or does_nothing(name):
        return True
    meaning = _meaning(name)
    if isinstance(meaning, Move):
        return meaning.kind in MOVES or meaning.kind == "gather_compare"
    return meaning is not None and not isinstance(meaning, Opaque | Query | Remote | Together)


# --- operators on memory and queries


def _create(request: _Request) -> Any:
    assert request.result is not None
    shape = tuple(request.operands[0])
    fill = request.keywords.get("init_value")
    array = np.full(shape, POISON if fill is None else fill).astype(storage(request.result.dtype))
    return Value(array, shape) if request.active.in_kernel else Memory(array)


def _slice(request: _Request) -> Any:
    source, shape, offset, *more = request.operands
    if isinstance(source, Value) or request.active.in_kernel:
        return request.computed()
    dropped = more[1] if len(more) > 1 else []
    view = source.array[_window(offset, shape)]
    kept = tuple(0 if axis in dropped else slice(None) for axis in range(view.ndim))
    assert request.result is not None
    valid = request.result.valid
    return Memory(view[kept], None if valid == view[kept].shape else valid)


def _reshape(request: _Request) -> Any:
    source = request.operands[0]
    if isinstance(source, Value) or request.active.in_kernel:
        return request.computed([_snapshot(source), *request.operands[1:]])
    assert request.result is not None and request.result.shape is not None
    view = source.array.reshape(request.result.shape)
    if not np.shares_memory(view, source.array):
        raise AssertionError("a reshape outside of kernels copies")
    return Memory(view)


def _transpose(request: _Request) -> Any:
    source, *axes = request.operands
    if isinstance(source, Value) or request.active.in_kernel:
        return request.computed([_snapshot(source), *axes])
    return Memory(np.swapaxes(source.array, *axes[:2]))


def _load(request: _Request) -> Value:
    source, offset, shape, *_ = request.operands
    array = source.array if isinstance(source, Memory) else source.data
    cells = np.zeros(shape, array.dtype)
    inside = _unlifted(array, len(shape))[_window(offset, shape)]
    cells[_window((0,) * inside.ndim, inside.shape)] = inside
    assert request.result is not None and request.result.valid is not None
    return Value(cells, request.result.valid)


def _store(request: _Request) -> Any:
    value, offset, target = request.operands[:3]
    if isinstance(target, Value):
        return _written_value(request, target, [value, offset, target])
    _write_cells(target, _as_value(value), offset, request)
    return target


def _assemble(request: _Request) -> Any:
    target, source, offset = request.operands
    if not request.active.in_kernel:
        request.active.machine.finish()
    if isinstance(target, Value):
        return _written_value(request, target, request.operands)
    _write_cells(target, _as_value(source), offset, request)
    return target


def _written_value(request: _Request, target: Value, operands: Sequence[Any]) -> Value:
    """The target with the new cells. In a split region both lanes write into one tile."""
    written: Value = request.computed(operands)
    if request.active.region is None:
        return written
    target.data[...] = written.data
    return Value(target.data, written.valid)


def _write_cells(target: Memory, source: Value, offset: Any, request: _Request) -> None:
    array = _unlifted(target.array, len(offset))
    cells = source.region.copy()
    cells = cells.reshape((1,) * (array.ndim - cells.ndim) + cells.shape).astype(array.dtype)
    window = _window(offset, cells.shape)
    array[window] = array[window] + cells if request.keywords.get("atomic") else cells


def _read(request: _Request) -> Any:
    if not request.active.in_kernel:
        request.active.machine.finish()
    source, index = request.operands
    return _as_value(source).data[tuple(index)].item()


def _write(request: _Request) -> Any:
    if not request.active.in_kernel:
        request.active.machine.finish()
    target, index, value = request.operands
    if isinstance(target, Value):
        return request.computed([target, tuple(index), value])
    target.array[tuple(index)] = value
    return target


def _dim(request: _Request) -> int:
    source, axis = request.operands
    return int(_as_value(source).data.shape[axis])


def _set_valid(request: _Request) -> Value:
    source, rows, columns = request.operands
    return Value(_as_value(source).data, (int(rows), int(columns)))


def _create_array(request: _Request) -> list[Any]:
    filler: Any = "task" if request.keywords["dtype"] is DataType.TASK_ID else 0
    return [filler] * int(request.operands[0])


def _update_element(request: _Request) -> list[Any]:
    array, index, value = request.operands
    return [value if position == index else each for position, each in enumerate(array)]


def _push_to_vector(request: _Request) -> None:
    tile = _as_value(request.operands[0])
    stride, pipe = request.keywords.get("lane_stride") or 0, request.keywords.get("id") or 0
    _lanes(request).push_to_vector(tile, request.keywords["split"], stride, pipe)


def _push_to_cube(request: _Request) -> None:
    tile, pipe = _as_value(request.operands[0]), request.keywords.get("id") or 0
    _lanes(request).push_to_cube(tile, request.active.lane, pipe)


def _pop_from_cube(request: _Request) -> Value:
    pipe = request.keywords.get("id") or 0
    return _popped(request, _lanes(request).pop_from_cube(request.active.lane, pipe))


def _pop_from_vector(request: _Request) -> Value:
    pipe = request.keywords.get("id") or 0
    return _popped(request, _lanes(request).pop_from_vector(request.keywords.get("split") or 0, pipe))


def _popped(request: _Request, tile: Value) -> Value:
    """A popped tile is valid as far as its type says, or as its sender says."""
    result = request.result
    partial = result is not None and result.valid is not None and result.valid != result.shape
    return Value(tile.data, result.valid) if partial else tile  # type: ignore[union-attr, arg-type]


def _shard(request: _Request) -> Value:
    tile, stride = _as_value(request.operands[0]), request.keywords.get("lane_stride") or 0
    return part_of_lane(tile, _split(request), request.active.lane, stride)


def _gather(request: _Request) -> Value:
    tile, region = _as_value(request.operands[0]), request.active.region
    if region is None:
        raise RuntimeError(f"{request.name} joins the halves of both lanes, which only a split region has")
    if request.active.lane == 1:
        region.gathered.append(tile)
        return joined(tile, tile, _split(request))
    return joined(tile, region.gathered.popleft(), _split(request))


def _split(request: _Request) -> int:
    region = request.active.region
    split: int = request.keywords.get("split", 0 if region is None else region.split)
    return split


def _lanes(request: _Request) -> Lanes:
    if request.active.lanes is None:
        raise RuntimeError(f"{request.name} needs another lane, which only a group has")
    return request.active.lanes


_SPECIAL: dict[str, Callable[[_Request], Any]] = {
    "tensor.create": _create,
    "tile.create": _create,
    "tensor.slice": _slice,
    "tensor.reshape": _reshape,
    "tensor.transpose": _transpose,
    "tile.load": _load,
    "tile.store": _store,
    "tensor.assemble": _assemble,
    "tile.assemble": _assemble,
    "read": _read,
    "write": _write,
    "dim": _dim,
    "set_validshape": _set_valid,
    "get_block_idx": lambda request: request.active.block[0],
    "get_block_num": lambda request: request.active.block[1],
    "task_invalid": lambda request: "task",
    "task_is_valid": lambda request: request.operands[0] != "task",
    "task_dummy": lambda request: sorted(task_numbers(request.deps)),
    "tile.tpush_to_aiv": _push_to_vector,
    "tile.tpush_to_aic": _push_to_cube,
    "tile.tpop_from_aic": _pop_from_cube,
    "tile.tpop_from_aiv": _pop_from_vector,
    "aiv_shard": _shard,
    "aic_gather": _gather,
    "get_subblock_idx": lambda request: request.active.lane,
    "array.create": _create_array,
    "array.get_element": lambda request: request.operands[0][request.operands[1]],
    "array.update_element": _update_element,
}


def _as_value(operand: Any) -> Any:
    if isinstance(operand, Memory):
        return Value(operand.array, operand.valid or operand.array.shape)
    return tuple(operand) if isinstance(operand, list) else operand


def _snapshot(operand: Any) -> Value:
    value = _as_value(operand)
    return Value(value.data.copy(), value.valid)


def _unlifted(array: np.ndarray[Any, Any], rank: int) -> np.ndarray[Any, Any]:
    while array.ndim > rank:
        array = array[0]
    return array


def _window(offset: Any, shape: Any) -> tuple[slice, ...]:
    return tuple(slice(start, start + extent) for start, extent in zip(offset, shape, strict=True))
