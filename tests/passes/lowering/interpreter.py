"""Runs a program on numpy arrays, at any stage of lowering, to see whether a pass kept its meaning.

Two kinds of tensors are told apart while running: `Memory`, an array that everybody who names it sees change,
and `Value`, a result with a valid region. Before outlining, a scope on a core runs in place; what it computes
becomes memory when it leaves. Slow and simple on purpose: it knows nothing of the passes that it checks.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pypto import ir
from pypto.core.dtype import DataType

NUMPY = {
    DataType.FP32: np.float32, DataType.FP16: np.float16, DataType.INT32: np.int32, DataType.INT8: np.int8,
    DataType.INT16: np.int16, DataType.INT64: np.int64, DataType.INDEX: np.int64, DataType.UINT8: np.uint8,
    DataType.BOOL: np.bool_, DataType.UINT32: np.uint32,
}  # fmt: skip


@dataclass
class Memory:
    array: np.ndarray


@dataclass
class Value:
    array: np.ndarray
    valid: tuple[int, ...]


class _Return(Exception):
    def __init__(self, values: list[Any]) -> None:
        self.values = values


class _Yield(Exception):
    def __init__(self, values: list[Any]) -> None:
        self.values = values


def run(program: ir.Program, name: str, *arrays: Any) -> list[Any]:
    """Run a function with arrays (changed in place) and scalars; returns what it returns."""
    args = [Memory(each) if isinstance(each, np.ndarray) else each for each in arrays]
    results = Interpreter(program).call(program[name], args)
    return [each.array if isinstance(each, (Memory, Value)) else each for each in results]


class Interpreter:
    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self.block = (0, 1)

    def call(self, function: ir.Function, args: list[Any]) -> list[Any]:
        env: dict[ir.Var, Any] = {}
        for param, arg in zip(function.params_, args, strict=True):
            env[param] = arg
            if isinstance(param.type, ir.TensorType):
                for dim, extent in zip(
                    param.type.shape_, _array(arg).shape[-len(param.type.shape_) :], strict=True
                ):
                    if isinstance(dim, ir.Var):
                        env.setdefault(dim, extent)
        frame = _Frame(self, env, in_kernel=ir.is_incore_type(function.func_type))
        try:
            frame.stmt(function.body)
        except _Return as result:
            return result.values
        return []


class _Frame:
    """One activation of a function."""

    def __init__(self, owner: Interpreter, env: dict[ir.Var, Any], in_kernel: bool) -> None:
        self.owner, self.env, self.in_kernel = owner, env, in_kernel

    def stmt(self, stmt: ir.Stmt) -> None:
        getattr(self, f"_{type(stmt).__name__}")(stmt)

    def _SeqStmts(self, stmt: ir.SeqStmts) -> None:
        for inner in stmt.stmts_:
            self.stmt(inner)

    def _AssignStmt(self, stmt: ir.AssignStmt) -> None:
        self.env[stmt.var] = self.expr(stmt.value)

    def _EvalStmt(self, stmt: ir.EvalStmt) -> None:
        self.expr(stmt.expr)

    def _ReturnStmt(self, stmt: ir.ReturnStmt) -> None:
        raise _Return([self.expr(value) for value in stmt.value_])

    def _YieldStmt(self, stmt: ir.YieldStmt) -> None:
        raise _Yield([self.expr(value) for value in stmt.value_])

    def _RuntimeScopeStmt(self, stmt: ir.RuntimeScopeStmt) -> None:
        self.stmt(stmt.body)

    _ClusterScopeStmt = _RuntimeScopeStmt

    def _InCoreScopeStmt(self, stmt: ir.InCoreScopeStmt) -> None:
        outer, self.in_kernel = self.in_kernel, True
        self.stmt(stmt.body)
        self.in_kernel = outer
        for var, value in list(self.env.items()):
            if isinstance(value, Value):
                memory = np.full_like(value.array, -77)
                memory[_window((0,) * len(value.valid), value.valid)] = _valid(value)
                self.env[var] = Memory(memory)

    def _SpmdScopeStmt(self, stmt: ir.SpmdScopeStmt) -> None:
        count = self.expr(stmt.core_num)
        for block in range(count):
            self.owner.block = (block, count)
            self.stmt(stmt.body)
        self.owner.block = (0, 1)

    def _IfStmt(self, stmt: ir.IfStmt) -> None:
        branch = stmt.then_body if self.expr(stmt.condition) else stmt.else_body
        if branch is not None:
            for var, value in zip(stmt.return_vars_, self._yielded(branch), strict=True):
                self.env[var] = value

    def _ForStmt(self, stmt: ir.ForStmt) -> None:
        carried = [self.expr(each.initValue) for each in stmt.iter_args_]
        for index in range(self.expr(stmt.start), self.expr(stmt.stop), self.expr(stmt.step)):
            self.env[stmt.loop_var] = index
            self.env.update(zip(stmt.iter_args_, carried, strict=True))
            carried = self._yielded(stmt.body) or carried
        self.env.update(zip(stmt.return_vars_, carried, strict=True))

    def _WhileStmt(self, stmt: ir.WhileStmt) -> None:
        carried = [self.expr(each.initValue) for each in stmt.iter_args_]
        while True:
            self.env.update(zip(stmt.iter_args_, carried, strict=True))
            if not self.expr(stmt.condition):
                break
            carried = self._yielded(stmt.body) or carried
        self.env.update(zip(stmt.return_vars_, carried, strict=True))

    def _yielded(self, body: ir.Stmt) -> list[Any]:
        try:
            self.stmt(body)
        except _Yield as result:
            return result.values
        return []

    # --- expressions

    def expr(self, expr: ir.Expr) -> Any:
        if isinstance(expr, ir.Var):
            return self.env[expr]
        if isinstance(expr, (ir.ConstInt, ir.ConstFloat, ir.ConstBool)):
            return expr.value
        if isinstance(expr, ir.MakeTuple):
            return [self.expr(each) for each in expr.elements_]
        if isinstance(expr, ir.TupleGetItemExpr):
            return self.expr(expr.tuple)[expr.index]
        if isinstance(expr, ir.Cast):
            value = self.expr(expr.operand)
            return float(value) if expr.dtype.is_float() else int(value)
        if isinstance(expr, ir.Neg):
            return -self.expr(expr.operand)
        if isinstance(expr, ir.Not):
            return not self.expr(expr.operand)
        if isinstance(expr, ir.BinaryExpr):
            return _BINARY[type(expr)](self.expr(expr.left), self.expr(expr.right))
        assert isinstance(expr, (ir.Call, ir.Submit)), type(expr)
        callee = self.owner.program[expr.op.name]
        return self._operator(expr) if callee is None else self._dispatch(expr, callee)

    def _dispatch(self, call: ir.Call | ir.Submit, callee: ir.Function) -> Any:
        args = [self.expr(arg) for arg in call.args_]
        count = call.core_num if isinstance(call, ir.Submit) else call.attrs_.get("core_num")
        blocks = 1 if count is None else self.expr(count)
        results: list[Any] = []
        for block in range(blocks):
            if count is not None:
                self.owner.block = (block, blocks)
            results = [
                Memory(each.array.copy()) if isinstance(each, Value) else each
                for each in self.owner.call(callee, args)
            ]
        if count is not None:
            self.owner.block = (0, 1)
        if isinstance(call, ir.Submit):
            return [*results, "task"]
        return results[0] if len(results) == 1 else results

    def _operator(self, call: ir.Call | ir.Submit) -> Any:
        space, _, leaf = call.op.name.partition(".")
        special: Callable[..., Any] | None = getattr(self, f"_op_{space}_{leaf}", None) or getattr(
            self, f"_op_{leaf}", None
        )
        if special is not None:
            return special(call)
        operands = [self.expr(arg) for arg in call.args_]
        if leaf in _ELEMENTWISE:
            return self._elementwise(call, leaf, operands)
        raise NotImplementedError(call.op.name)

    def _elementwise(self, call: ir.Call, leaf: str, operands: list[Any]) -> Value:
        arrays = [_array(each) if isinstance(each, (Memory, Value)) else each for each in operands]
        dtype = NUMPY[call.type.dtype]
        wide = [np.asarray(each).astype(np.float64 if dtype != np.int32 else np.int64) for each in arrays]
        with np.errstate(all="ignore"):
            result = _ELEMENTWISE[leaf](*wide)
        result = np.broadcast_to(result, self.extents(call.type.shape_)).astype(dtype)
        full = [each for each, array in zip(operands, arrays, strict=True) if np.shape(array) == result.shape]
        return Value(result, _region(full[0]) if full else result.shape)

    def extents(self, shape: Any) -> tuple[int, ...]:
        return tuple(int(self.expr(dim)) for dim in shape)

    def _op_create(self, call: ir.Call) -> Any:
        shape = tuple(self.expr(call.args_[0]))
        array = np.full(shape, call.kwargs_.get("init_value") or 0, NUMPY[call.type.dtype])
        return Value(array, shape) if self.in_kernel else Memory(array)

    def _op_full(self, call: ir.Call) -> Value:
        shape, value = (self.expr(arg) for arg in call.args_)
        return Value(np.full(shape, value, NUMPY[call.type.dtype]), tuple(shape))

    def _op_tensor_slice(self, call: ir.Call) -> Any:
        source, shape, offset = (self.expr(arg) for arg in call.args_[:3])
        dropped = self.expr(call.args_[4]) if len(call.args_) > 4 else []
        if not self.in_kernel:
            assert isinstance(source, Memory)
            view = source.array[tuple(slice(o, o + s) for o, s in zip(offset, shape, strict=True))]
            return Memory(
                view.reshape([n for axis, n in enumerate(view.shape) if axis not in dropped], copy=False)
            )
        region = _type_region(self, call.type)
        array = _padded_window(_array(source), offset, shape)
        return Value(array.reshape(self.extents(call.type.shape_)), region)

    def _op_tile_slice(self, call: ir.Call) -> Value:
        source, shape, offset = (self.expr(arg) for arg in call.args_[:3])
        array = _padded_window(source.array, offset, shape)
        return Value(array.reshape(self.extents(call.type.shape_)), _type_region(self, call.type))

    def _op_tile_load(self, call: ir.Call) -> Value:
        source, offset, shape, _ = (self.expr(arg) for arg in call.args_)
        array = source.array
        while array.ndim > len(shape):
            array = array[0]
        return Value(_padded_window(array, offset, shape), _type_region(self, call.type))

    def _op_tile_store(self, call: ir.Call) -> Any:
        value, offset, target = (self.expr(arg) for arg in call.args_[:3])
        assert isinstance(value, Value)
        if isinstance(target, Value):
            target = Value(target.array.copy(), target.valid)
        array = target.array
        while array.ndim > len(offset):
            array = array[0]
        valid = _valid(Value(value.array, _type_region(self, call.args_[0].type)))
        valid = valid.reshape((1,) * (array.ndim - valid.ndim) + valid.shape)
        array[_window(offset, valid.shape)] = valid.astype(array.dtype)
        return target

    def _op_assemble(self, call: ir.Call) -> Any:
        target, source, offset = (self.expr(arg) for arg in call.args_)
        valid = _valid(source) if isinstance(source, Value) else source.array
        valid = valid.reshape((1,) * (len(offset) - valid.ndim) + valid.shape)
        if isinstance(target, Memory):
            target.array[_window(offset, valid.shape)] = valid.copy()
            return target
        array = target.array.copy()
        array[_window(offset, valid.shape)] = valid
        return Value(array, array.shape)

    def _op_read(self, call: ir.Call) -> Any:
        return _array(self.expr(call.args_[0]))[tuple(self.expr(call.args_[1]))].item()

    def _op_write(self, call: ir.Call) -> Any:
        target = self.expr(call.args_[0])
        target.array[tuple(self.expr(call.args_[1]))] = self.expr(call.args_[2])
        return target

    def _op_dim(self, call: ir.Call) -> int:
        return _array(self.expr(call.args_[0])).shape[self.expr(call.args_[1])]

    def _op_task_invalid(self, call: ir.Call) -> str:
        return "no task"

    def _op_get_block_idx(self, call: ir.Call) -> int:
        return self.owner.block[0]

    def _op_get_block_num(self, call: ir.Call) -> int:
        return self.owner.block[1]

    def _op_reshape(self, call: ir.Call) -> Any:
        source = self.expr(call.args_[0])
        shape = self.extents(call.type.shape_)
        if not self.in_kernel:
            return Memory(source.array.reshape(shape))
        return Value(_array(source).reshape(shape).copy(), _type_region(self, call.type))

    def _op_transpose(self, call: ir.Call) -> Any:
        source, a, b = (self.expr(arg) for arg in call.args_[:3])
        if not self.in_kernel:
            return Memory(np.swapaxes(source.array, a, b))
        array = np.swapaxes(_array(source), a, b).copy()
        region = list(_region(source))
        region[a], region[b] = region[b], region[a]
        return Value(array, tuple(region))

    def _op_transpose_view(self, call: ir.Call) -> Value:
        source = self.expr(call.args_[0])
        return Value(np.swapaxes(source.array, -1, -2).copy(), (*source.valid[:-2], *source.valid[:-3:-1]))

    def _op_move(self, call: ir.Call) -> Value:
        source = self.expr(call.args_[0])
        return Value(source.array.copy(), source.valid)

    def _op_set_validshape(self, call: ir.Call) -> Value:
        source, rows, columns = (self.expr(arg) for arg in call.args_)
        return Value(_array(source).copy(), (rows, columns))

    def _op_fillpad(self, call: ir.Call) -> Value:
        source = self.expr(call.args_[0])
        fill = {ir.PadValue.zero: 0, ir.PadValue.max: np.inf, ir.PadValue.min: -np.inf}[
            call.kwargs_["pad_value"]
        ]
        array = np.full_like(_array(source), fill)
        array[_window((0,) * array.ndim, _region(source))] = _valid_of(source)
        return Value(array, array.shape)

    def _op_concat(self, call: ir.Call) -> Value:
        array = np.concatenate([_array(self.expr(arg)) for arg in call.args_], axis=1)
        return Value(array, array.shape)

    def _op_cast(self, call: ir.Call) -> Value:
        source = self.expr(call.args_[0])
        array, dtype = _array(source), NUMPY[call.type.dtype]
        if array.dtype.kind == "f" and np.dtype(dtype).kind != "f":
            array = {1: np.rint, 2: np.round, 3: np.floor, 4: np.ceil, 5: np.trunc}[call.kwargs_["mode"]](
                array
            )
        return Value(array.astype(dtype), _region(source))

    def _op_cmp(self, call: ir.Call) -> Value:
        operands = [self.expr(arg) for arg in call.args_]
        arrays = [_array(each) if isinstance(each, (Memory, Value)) else each for each in operands]
        code = call.kwargs_["cmp_type"]
        compared = [np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal][code](
            *arrays
        )
        if call.op.name.startswith("tensor."):
            compared = compared.astype(NUMPY[call.type.dtype])
        return Value(compared, compared.shape)

    _op_cmps = _op_cmp

    def _op_sel(self, call: ir.Call) -> Value:
        mask, lhs, rhs, _ = (self.expr(arg) for arg in call.args_)
        return Value(np.where(mask.array, lhs.array, rhs.array), lhs.valid)

    def _op_matmul(self, call: ir.Call) -> Value:
        lhs, rhs = (self.expr(arg) for arg in call.args_)
        left, right = _array(lhs), _array(rhs)
        if call.kwargs_.get("a_trans"):
            left = np.swapaxes(left, -1, -2)
        if call.kwargs_.get("b_trans"):
            right = np.swapaxes(right, -1, -2)
        product = left.astype(np.float64) @ right.astype(np.float64)
        rows = (
            (_region(lhs)[-1] if call.kwargs_.get("a_trans") else _region(lhs)[-2]) if left.ndim > 1 else None
        )
        columns = (
            (_region(rhs)[-2] if call.kwargs_.get("b_trans") else _region(rhs)[-1])
            if right.ndim > 1
            else None
        )
        region = (rows, columns) if rows is not None and columns is not None else product.shape
        return Value(product.astype(NUMPY[call.type.dtype]), region if product.ndim == 2 else product.shape)

    _op_batch_matmul = _op_matmul

    def _op_matmul_acc(self, call: ir.Call) -> Value:
        acc = self.expr(call.args_[0])
        product = self._op_matmul(ir.Call(call.op, call.args_[1:3], dict(call.kwargs_), call.type, call.span))
        replaced = len(call.args_) > 3 and self.expr(call.args_[3])
        array = product.array if replaced else _array(acc) + product.array
        return Value(array.astype(NUMPY[call.type.dtype]), _region(acc))

    def _reduce(self, call: ir.Call, axis: int, combine: Callable[..., Any]) -> Value:
        source = self.expr(call.args_[0])
        array, region = _array(source), _region(source)
        wide = array.astype(np.float64)
        kept = [slice(None) for _ in array.shape]
        kept[axis] = slice(0, region[axis])
        reduced = combine(wide[tuple(kept)], axis=axis, keepdims=True).astype(array.dtype)
        valid = list(region)
        valid[axis] = 1
        return Value(reduced, tuple(valid))


for _leaf, _combine in {"sum": np.sum, "max": np.max, "min": np.min, "prod": np.prod}.items():
    for _prefix, _axis in (("row", -1), ("col", -2)):
        setattr(
            _Frame,
            f"_op_{_prefix}_{_leaf}",
            lambda self, call, axis=_axis, combine=_combine: self._reduce(call, axis, combine),
        )

_ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "neg": np.negative,
    "abs": np.abs,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "recip": lambda x: 1 / x,
    "rsqrt": lambda x, *_: 1 / np.sqrt(x),
    "relu": lambda x: np.maximum(x, 0),
    "maximum": np.maximum,
    "minimum": np.minimum,
    "maximums": np.maximum,
    "minimums": np.minimum,
    "row_expand": lambda _, v: v,
    "col_expand": lambda _, v: v,
    "expands": lambda _, v: v,
    "fmod": np.fmod,
    "fmods": np.fmod,
}
for _leaf, _function in {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.true_divide,
    "max": np.maximum,
    "min": np.minimum,
    "expdif": lambda a, b: np.exp(a - b),
}.items():
    for _name in (_leaf, f"{_leaf}s", f"row_expand_{_leaf}", f"col_expand_{_leaf}"):
        _ELEMENTWISE.setdefault(_name, _function)

_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ir.Add: operator.add,
    ir.Sub: operator.sub,
    ir.Mul: operator.mul,
    ir.FloorDiv: operator.floordiv,
    ir.FloorMod: operator.mod,
    ir.FloatDiv: operator.truediv,
    ir.Min: min,
    ir.Max: max,
    ir.Eq: operator.eq,
    ir.Ne: operator.ne,
    ir.Lt: operator.lt,
    ir.Le: operator.le,
    ir.Gt: operator.gt,
    ir.Ge: operator.ge,
    ir.And: lambda a, b: a and b,
    ir.Or: lambda a, b: a or b,
}


def _array(value: Any) -> np.ndarray:
    return value.array


def _region(value: Any) -> tuple[int, ...]:
    return value.valid if isinstance(value, Value) else value.array.shape


def _valid(value: Value) -> np.ndarray:
    return value.array[_window((0,) * len(value.valid), value.valid)]


def _valid_of(value: Any) -> np.ndarray:
    return _valid(value) if isinstance(value, Value) else value.array


def _window(offset: Any, shape: Any) -> tuple[slice, ...]:
    return tuple(slice(start, start + extent) for start, extent in zip(offset, shape, strict=True))


def _padded_window(array: np.ndarray, offset: Any, shape: Any) -> np.ndarray:
    """A copy of a window; cells outside the array are zero."""
    window = np.zeros(shape, array.dtype)
    inside = array[_window(offset, shape)]
    window[_window((0,) * inside.ndim, inside.shape)] = inside
    return window


def _type_region(frame: _Frame, type: ir.Type) -> tuple[int, ...]:
    if isinstance(type, ir.TileType):
        return frame.extents(type.get_effective_tile_view().valid_shape_)
    assert isinstance(type, ir.TensorType)
    view = type.tensor_view
    return frame.extents(view.valid_shape_ if view is not None and view.valid_shape_ else type.shape_)
