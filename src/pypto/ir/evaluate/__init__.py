"""What an operator's declared meaning gives on numpy arrays: the numeric oracle of the tests.

:func:`evaluate_call` computes one call from the values of its arguments. It follows the declared meaning and
the result type, and knows nothing of kernels, layouts or buffers. Reading padding gives 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pypto.core.dtype import DataType
from pypto.ir.evaluate import arithmetic
from pypto.ir.evaluate.moves import MOVES, MoveCall
from pypto.ir.evaluate.numbers import Array, convert, storage
from pypto.ir.expr import Call, ConstBool, ConstFloat, ConstInt, Expr, MakeTuple
from pypto.ir.meaning import (
    SCALE_BLOCK,
    Cast,
    Contraction,
    Elementwise,
    Meaning,
    Move,
    Opaque,
    Partial,
    Query,
    Reduce,
    Remote,
    Together,
)
from pypto.ir.op.dtypes import promote
from pypto.ir.op_registry import get_op_def
from pypto.ir.types import ScalarType, ShapedType, TensorType

__all__ = ["Value", "constant_value", "convert", "evaluate_call", "storage"]

Operand = Any  # Value for a tensor or tile, a number for a scalar, a tuple of ints for a tuple


@dataclass(frozen=True, slots=True)
class Value:
    """Cells of a tensor or tile and the extents of its valid region."""

    data: Array
    valid: tuple[int, ...]

    @staticmethod
    def of(data: Any, dtype: DataType | None = None, valid: Sequence[int] | None = None) -> Value:
        """A value from anything numpy accepts; fully valid by default."""
        array = np.asarray(data) if dtype is None else np.asarray(data).astype(storage(dtype))
        return Value(array, tuple(array.shape if valid is None else valid))

    @property
    def region(self) -> Array:
        """The valid cells."""
        return self.data[tuple(slice(0, extent) for extent in self.valid)]


def constant_value(arg: Expr) -> Operand:
    """The operand of a constant argument; LookupError where the argument is no constant."""
    if isinstance(arg, (ConstInt, ConstFloat, ConstBool)):
        return arg.value
    if isinstance(arg, MakeTuple):
        return tuple(constant_value(element) for element in arg.elements_)
    raise LookupError("the argument is not constant")


def evaluate_call(call: Call, operands: Sequence[Operand | None] = ()) -> Any:
    """The result of a call: a :class:`Value`, or a number for a scalar result.

    Args:
        operands: values of the arguments in order; None (or a missing tail) for arguments that are constants.

    Raises:
        NotImplementedError: the operator has no meaning that numpy can follow.
    """
    definition = get_op_def(call.op.name)
    if definition is None:
        raise NotImplementedError(f"{call.op.name} is no operator")
    given = [*operands, *[None] * (len(call.args_) - len(operands))]
    args = [
        constant_value(arg) if operand is None and not isinstance(arg.type, ShapedType) else operand
        for arg, operand in zip(call.args_, given, strict=True)
    ]
    return _evaluate(call, definition.meaning, args)


def _evaluate(call: Call, meaning: Meaning, args: list[Operand]) -> Any:
    if isinstance(meaning, Elementwise):
        return _elementwise(call, meaning, args)
    if isinstance(meaning, Partial):
        return _partial(call, meaning, args)
    if isinstance(meaning, Cast):
        source = call.args_[0].type
        assert isinstance(source, ShapedType)
        data = convert(args[0].data, source.dtype, call.kwargs_["target_type"], call.kwargs_["mode"])
        return Value(data, args[0].valid)
    if isinstance(meaning, Reduce):
        return _reduce(call, meaning, args)
    if isinstance(meaning, Contraction):
        return _contract(call, meaning, args)
    if isinstance(meaning, Move):
        return _move(call, meaning, args)
    if isinstance(meaning, Opaque):
        reason = meaning.reason
    elif isinstance(meaning, Together):
        reason = "it takes several lanes"
    elif isinstance(meaning, Remote):
        reason = "it takes several ranks"
    else:
        reason = f"it asks about {meaning.kind}"
    if isinstance(meaning, Query) and meaning.kind == "dim":
        return args[0].data.shape[args[1]]
    raise NotImplementedError(f"{call.op.name} cannot be evaluated on numpy arrays: {reason}")


def _result(call: Call) -> tuple[tuple[int, ...], DataType]:
    kind = call.type
    assert isinstance(kind, ShapedType)
    shape = tuple(extent.value if isinstance(extent, ConstInt) else -1 for extent in kind.shape_)
    return shape, kind.dtype


def _first_valid(args: list[Operand], shape: tuple[int, ...]) -> tuple[int, ...]:
    """The first operand's valid extents; along axes that it stretches, the second's."""
    values = [arg for arg in args if isinstance(arg, Value)]
    valid = []
    for back in range(len(shape), 0, -1):
        for value in values:
            if back <= value.data.ndim and (value.data.shape[-back] != 1 or shape[-back] == 1):
                valid.append(value.valid[-back])
                break
        else:
            valid.append(shape[-back])
    return tuple(valid)


def _elementwise(call: Call, meaning: Elementwise, args: list[Operand]) -> Value:
    shape, dtype = _result(call)
    if meaning.packs:
        return _packed(call, meaning, args, shape)
    plain = [arg.data if isinstance(arg, Value) else arg for arg in args]
    for position in meaning.mask_operands:
        plain[position] = arithmetic.unpack(args[position].data, shape[-1])
    if call.op.name.endswith("_expand_add") and plain[1].shape[-1] not in (1, shape[-1]):
        repeats = -(-shape[-1] // plain[1].shape[-1])
        plain[1] = np.tile(plain[1][: shape[0]], repeats)[:, : shape[-1]]
    cells = arithmetic.formula(meaning.formula, plain, call.kwargs_, dtype, meaning.mask_operands)
    considered = args[1:] if meaning.mask_operands else args
    return Value(np.broadcast_to(cells, shape).copy(), _first_valid(considered, shape))


def _packed(call: Call, meaning: Elementwise, args: list[Operand], shape: tuple[int, ...]) -> Value:
    source = call.args_[0].type
    assert isinstance(source, ShapedType)
    plain = [arg.data if isinstance(arg, Value) else arg for arg in args]
    truth = arithmetic.formula(meaning.formula, plain, call.kwargs_, source.dtype).astype(bool)
    valid = args[0].valid
    inside = np.zeros(truth.shape, bool)
    inside[tuple(slice(0, extent) for extent in valid)] = True
    packed = arithmetic.pack(truth & inside, shape[-1])
    return Value(packed, (*valid[:-1], -(-valid[-1] // 8)))


def _partial(call: Call, meaning: Partial, args: list[Operand]) -> Value:
    shape, dtype = _result(call)
    inside = []
    for arg in args:
        truth = np.zeros(arg.data.shape, bool)
        truth[tuple(slice(0, extent) for extent in arg.valid)] = True
        inside.append(np.broadcast_to(truth, shape))
    a, b = (np.broadcast_to(arg.data, shape) for arg in args)
    both = arithmetic.formula(meaning.formula, [a, b], call.kwargs_, dtype)
    one = np.where(inside[0], a, np.where(inside[1], b, 0)).astype(both.dtype)
    valid = args[0].valid if args[0].data.shape == shape else shape
    return Value(np.where(inside[0] & inside[1], both, one).astype(both.dtype), valid)


def _reduce(call: Call, meaning: Reduce, args: list[Operand]) -> Any:
    source = call.args_[0].type
    assert isinstance(source, ShapedType)
    tensor_level = isinstance(source, TensorType)
    default = -1 if meaning.axis == "row" else -2 if tensor_level else 0
    axis = call.kwargs_.get("axis", default)
    kind = call.type
    assert isinstance(kind, (ShapedType, ScalarType))
    cells = arithmetic.reduce(meaning, args[0].region, axis, source.dtype, kind.dtype)
    if isinstance(kind, ScalarType):
        return cells.reshape(-1)[0]
    if not call.kwargs_.get("keep_dim", True):
        cells = np.squeeze(cells, axis)
    shape, _ = _result(call)
    out = np.zeros(shape, storage(kind.dtype))
    out[tuple(slice(0, extent) for extent in cells.shape)] = cells
    return Value(out, cells.shape)


def _swapped(value: Value, flag: Any) -> Value:
    if not flag:
        return value
    valid = (*value.valid[:-2], value.valid[-1], value.valid[-2])
    return Value(np.swapaxes(value.data, -1, -2), valid)


def _contract(call: Call, meaning: Contraction, args: list[Operand]) -> Value:
    shape, dtype = _result(call)
    first, second = meaning.operands
    lhs = _swapped(args[first], call.kwargs_.get("a_trans"))
    rhs = _swapped(args[second], call.kwargs_.get("b_trans"))
    depth = lhs.valid[-1]
    of_left, of_right = call.args_[first].type, call.args_[second].type
    assert isinstance(of_left, ShapedType) and isinstance(of_right, ShapedType)
    left, right, element = lhs.data, rhs.data, promote(of_left.dtype, of_right.dtype)
    if meaning.scaled:
        left, right = _scaled(left, args[first + 1], 1), _scaled(right, args[second + 1], 0)
        element = DataType.FP32
    right = right[..., :depth, :] if right.ndim > 1 else right[:depth]
    product = arithmetic.contract(left[..., :depth], right, element)
    if product.shape != shape and len(shape) == 2 and shape[0] == 16:  # one row in a padded accumulator
        product = np.concatenate([product, np.zeros((16 - product.shape[0], shape[1]), product.dtype)])
    if meaning.bias:
        product = product + args[meaning.bias_position].data[:1]
    if meaning.accumulate:
        overwrite = not meaning.scaled and len(args) > 3 and bool(args[3])
        product = product if overwrite else args[0].data + product
        return Value(np.asarray(product).astype(storage(dtype)), args[0].valid)
    cells = np.asarray(product).astype(storage(dtype))
    if lhs.data.ndim < 2 or rhs.data.ndim < 2 or len(shape) > 2:
        return Value(cells, cells.shape)
    return Value(cells, (lhs.valid[0], rhs.valid[1]))


def _scaled(cells: Any, scales: Value, axis: int) -> Any:
    """Cells times the scale of their block along the summed axis, in FP32."""
    factors = np.repeat(scales.data.astype(np.float32), SCALE_BLOCK, axis)
    return cells.astype(np.float32) * np.take(factors, range(cells.shape[axis]), axis)


def _move(call: Call, meaning: Move, args: list[Operand]) -> Any:
    if meaning.kind == "read":
        return args[0].data[args[1]]
    if meaning.kind == "gather_compare":
        return _gather_compare(call, args)
    evaluate = MOVES.get(meaning.kind)
    if evaluate is None:
        raise NotImplementedError(f"{call.op.name} cannot be evaluated on numpy arrays")
    shape, dtype = _result(call)
    cells, valid = evaluate(
        MoveCall(
            args=tuple(arg.data if isinstance(arg, Value) else arg for arg in args),
            valids=tuple(arg.valid if isinstance(arg, Value) else () for arg in args),
            dtypes=tuple(arg.type.dtype if isinstance(arg.type, ShapedType) else None for arg in call.args_),
            kwargs=call.kwargs_,
            shape=shape,
            dtype=dtype,
        )
    )
    return Value(cells, tuple(valid))


def _gather_compare(call: Call, args: list[Operand]) -> tuple[Value, Value]:
    source = args[0].region
    relation = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)
    truth = relation[call.kwargs_.get("cmp_mode", 0)](source, np.asarray(args[1]).astype(source.dtype))
    columns = call.kwargs_["out_cols"]
    found = np.zeros((source.shape[0], columns), np.int32)
    for row, matches in enumerate(truth):
        positions = np.nonzero(matches)[0][:columns] + call.kwargs_.get("offset", 0)
        found[row, : len(positions)] = positions
    counts = truth.sum(axis=1, dtype=np.int32).reshape(1, -1)
    return Value.of(found), Value.of(counts, call.kwargs_.get("count_dtype"))
