"""Evaluates formulas, reductions and matrix products."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pypto.core.dtype import DataType
from pypto.ir.evaluate.numbers import Array, compute_type, convert, storage
from pypto.ir.meaning import OPERAND_NAMES, Reduce, parse_formula

# --- formulas -------------------------------------------------------------------------------------


def _divide(x: Array, y: Array) -> Array:
    if np.issubdtype(x.dtype, np.floating):
        return x / y
    divisor = np.where(y == 0, 1, y)
    quotient = np.abs(x.astype(np.int64)) // np.abs(divisor.astype(np.int64))
    signed = np.where((x < 0) != (y < 0), -quotient, quotient)
    return np.where(y == 0, 0, signed).astype(x.dtype)


def _compare(x: Array, y: Array, code: int) -> Array:
    relations = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)
    return relations[code](x, y)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x),
    "recip": lambda x: 1 / x, "sin": np.sin, "cos": np.cos, "abs": np.abs, "min": np.minimum,
    "max": np.maximum, "div": _divide, "fmod": np.fmod, "floormod": np.mod, "where": np.where,
    "compare": _compare, "shl": np.left_shift, "shr": np.right_shift,
}  # fmt: skip
_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_, ast.BitXor: operator.xor, ast.USub: operator.neg,
    ast.Invert: operator.invert, ast.Gt: operator.gt, ast.Lt: operator.lt, ast.GtE: operator.ge,
    ast.LtE: operator.le,
}  # fmt: skip


def formula(
    text: str,
    operands: Sequence[Any],
    kwargs: Mapping[str, Any],
    dtype: DataType,
    masks: Sequence[int] = (),
) -> Array:
    """The value of a formula in elements of ``dtype``, rounded once.

    Operands are arrays or numbers; those listed in ``masks`` are truth values and stay so. An integer
    operator that needs a float function computes in FP32 and converts back.
    """
    tree = parse_formula(text)
    compute = compute_type(dtype)
    if dtype.is_int() and _needs_float(tree):
        compute = np.dtype(np.float32)
    names: dict[str, Any] = dict(kwargs)
    for position, operand in enumerate(operands):
        if operand is not None and position < len(OPERAND_NAMES):
            array = np.asarray(operand)
            names[OPERAND_NAMES[position]] = array if position in masks else array.astype(compute)
    with np.errstate(all="ignore"):
        value = np.asarray(_evaluate(tree, names))
        if compute.kind == "f" and dtype.is_int():
            return convert(value, DataType.FP32, dtype, 5)
        return value.astype(compute).astype(storage(dtype))


def _needs_float(tree: ast.expr) -> bool:
    floats = {"exp", "log", "sqrt", "rsqrt", "recip", "sin", "cos"}
    return any(isinstance(node, ast.Name) and node.id in floats for node in ast.walk(tree))


def _evaluate(node: ast.expr, names: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Name):
        return names[node.id]
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_evaluate(node.left, names), _evaluate(node.right, names))
    if isinstance(node, ast.UnaryOp):
        return _OPERATORS[type(node.op)](_evaluate(node.operand, names))
    if isinstance(node, ast.Compare):
        return _OPERATORS[type(node.ops[0])](
            _evaluate(node.left, names), _evaluate(node.comparators[0], names)
        )
    assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    return _FUNCTIONS[node.func.id](*(_evaluate(arg, names) for arg in node.args))


# --- packed predicates ----------------------------------------------------------------------------


def pack(truth: Array, carrier: int) -> Array:
    """Truth values as bits, least significant first, in rows of ``carrier`` bytes."""
    bits = np.packbits(truth.astype(bool), axis=-1, bitorder="little")
    packed = np.zeros((*truth.shape[:-1], carrier), np.uint8)
    packed[..., : bits.shape[-1]] = bits
    return packed


def unpack(mask: Array, columns: int) -> Array:
    """The first ``columns`` truth values of each row of a packed predicate, in any carrier type."""
    return np.unpackbits(mask.view(np.uint8), axis=-1, bitorder="little")[..., :columns].astype(bool)


# --- reductions, products -------------------------------------------------------------------------

_REDUCERS: dict[str, Callable[..., Any]] = {
    "sum": np.sum, "max": np.max, "min": np.min, "prod": np.prod, "argmax": np.argmax,
    "argmin": np.argmin,
}  # fmt: skip


def reduce(meaning: Reduce, data: Array, axis: int, source: DataType, result: DataType) -> Array:
    """Combine the (valid) cells along ``axis``, which stays with extent 1."""
    wide = data.astype(compute_type(source))
    combined = np.expand_dims(_REDUCERS[meaning.combine](wide, axis=axis), axis)
    if meaning.combine in ("sum", "prod") and source.is_int():
        return combined.astype(storage(result))
    return np.asarray(combined.astype(compute_type(result))).astype(storage(result))


def contract(lhs: Array, rhs: Array, dtype: DataType) -> Array:
    """``lhs @ rhs`` summed in FP32 or INT32."""
    wide = np.dtype(np.float32 if dtype.is_float() else np.int32)
    product: Array = np.matmul(lhs.astype(wide), rhs.astype(wide))
    return product
