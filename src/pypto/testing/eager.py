"""Runs the text of a program as plain Python on numpy arrays: what every stage of compilation must compute.

The text of a DSL program is Python. Here the name `pl` means numpy instead of the parser: scopes are entered,
loops loop, kernels are called in the order of the text, blocks one after the other. Nothing of the parser,
the IR or the passes takes part, so an agreement with them is evidence.

Covers what `pypto.testing.programs` writes. The text is executed: give it only text that you made.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any

import ml_dtypes
import numpy as np

from pypto import ir
from pypto.core.dtype import DataType
from pypto.debug.execution import KERNEL_TYPES, POISON, OutOfSteps

STORAGE: dict[DataType, Any] = {
    DataType.FP32: np.float32,
    DataType.FP16: np.float16,
    DataType.BF16: ml_dtypes.bfloat16,
    DataType.INT32: np.int32,
    DataType.INT16: np.int16,
    DataType.INT8: np.int8,
    DataType.INT64: np.int64,
}
_TYPE_OF = {np.dtype(storage): dtype for dtype, storage in STORAGE.items()}


@dataclass
class Array:
    """A tensor or tile. `valid` are the extents of its real data, None if all of it is."""

    data: np.ndarray
    valid: tuple[int, ...] | None = None
    language: Any = None

    @property
    def dtype(self) -> DataType:
        return _TYPE_OF[self.data.dtype]

    @property
    def region(self) -> np.ndarray:
        return self.data if self.valid is None else self.data[tuple(slice(0, each) for each in self.valid)]

    def __getitem__(self, index: Any) -> Any:
        return self.language.subscript(self, index)

    def __setitem__(self, index: Any, source: Array) -> None:
        self.data[index if isinstance(index, tuple) else (index,)] = source.region


@dataclass(frozen=True)
class Number:
    """A scalar of a stated element type."""

    value: Any
    dtype: DataType

    def __gt__(self, other: Any) -> bool:
        return bool(self.value > other)

    def __le__(self, other: Any) -> bool:
        return bool(self.value <= other)


def run_text(text: str, name: str, arguments: Sequence[Any], *, entry: str = "main") -> list[np.ndarray]:
    """Run the method `entry` of the program class `name`.

    Args:
        text: the module text, as the front end takes it.
        arguments: numpy arrays, which are changed in place, and Python numbers.

    Returns:
        What the method returns, as arrays.
    """
    language = Language()
    module: dict[str, Any] = {"__name__": "program"}
    tree_imports = {"pypto.language": language}
    module["__builtins__"] = {**vars(__import__("builtins")), "__import__": _importer(tree_imports)}
    exec(_compiled(text), module)
    bound = getattr(module[name](), entry)
    given = [language.made(each) if isinstance(each, np.ndarray) else each for each in arguments]
    returned = bound(*given)
    if returned is None:
        return []
    return [each.data for each in (returned if isinstance(returned, tuple) else (returned,))]


@functools.lru_cache(maxsize=8)
def _compiled(text: str) -> CodeType:
    tree = _Launches().visit(ast.parse(text))
    return compile(tree, "<program>", "exec", flags=__future__.annotations.compiler_flag, dont_inherit=True)


def _importer(modules: dict[str, Any]) -> Callable[..., Any]:
    def load(name: str, *_: Any, **__: Any) -> Any:
        if name not in modules:
            raise ImportError(f"a program imports only {', '.join(modules)}, not {name}")
        return _Package(modules[name])

    return load


class _Package:
    """`import pypto.language as pl` asks the package for its attribute."""

    def __init__(self, language: Language) -> None:
        self.language = language


class _Launches(ast.NodeTransformer):
    """Writes `with pl.spmd(n) [as tid]: body` as a loop over the blocks."""

    def visit(self, node: ast.AST) -> Any:
        """Look at statements alone: expressions hold no statements."""
        return node if isinstance(node, ast.expr) else super().visit(node)

    def visit_With(self, node: ast.With) -> Any:
        self.generic_visit(node)
        (item,) = node.items
        call = item.context_expr
        if not (
            isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "spmd"
        ):
            return node
        asks = any(
            isinstance(each, ast.Attribute) and each.attr == "get_block_idx" for each in ast.walk(node)
        )
        inner = any(isinstance(each, ast.With) for each in node.body)
        count = call.args[0] if call.args else call.keywords[0].value
        of_language = ast.Attribute(ast.Name("pl", ast.Load()), "blocks", ast.Load())
        blocks = ast.Call(of_language, [count, ast.Constant(asks and not inner)], [])
        loop = ast.For(ast.Name("_block", ast.Store()), blocks, [], [])
        made: list[ast.stmt] = [ast.copy_location(loop, node)]
        if item.optional_vars is not None:
            named = ast.Assign([item.optional_vars], ast.Constant("task"))
            made.insert(0, ast.copy_location(named, node))
        for each in made:
            ast.fix_missing_locations(each)
        loop.body = node.body
        given = {each.arg: each.value for each in call.keywords}
        if "predicate" in given:
            made[-1] = ast.copy_location(ast.If(given["predicate"], [loop], []), node)
        return made


class _Method:
    """A decorated method; calling it through `self` runs it as a kernel if it is one."""

    def __init__(self, language: Language, function: Callable[..., Any], kind: ir.FunctionType) -> None:
        self.language, self.function, self.kind = language, function, kind

    def __get__(self, owner: Any, _: type | None = None) -> Callable[..., Any]:
        def call(*arguments: Any, **_: Any) -> Any:
            if self.kind not in KERNEL_TYPES:
                return self.function(owner, *arguments)
            with self.language.kernel():
                return self.function(owner, *arguments)

        return call


class Language:
    """What the text calls `pl`."""

    FunctionType, Level, Role, SplitMode = ir.FunctionType, ir.Level, ir.Role, ir.SplitMode
    FP32, FP16, BF16 = DataType.FP32, DataType.FP16, DataType.BF16
    INT32, INT16, INT8, INT64 = DataType.INT32, DataType.INT16, DataType.INT8, DataType.INT64
    INDEX, BOOL, TASK_ID = DataType.INDEX, DataType.BOOL, DataType.TASK_ID
    min, max = staticmethod(min), staticmethod(max)

    def __init__(self) -> None:
        self.in_kernel = False
        self.block = (0, 1)
        self.carried: list[Any] = []
        self.steps = 0
        self.tensor = self.tile = self.array = self

    def made(self, data: np.ndarray, valid: tuple[int, ...] | None = None) -> Array:
        return Array(data, valid if valid is not None and valid != data.shape else None, self)

    # --- programs and scopes

    def program(self, cls: type) -> type:
        return cls

    def function(self, plain: Any = None, *, type: ir.FunctionType = ir.FunctionType.Opaque, **_: Any) -> Any:
        if plain is not None:
            return _Method(self, plain, type)
        return lambda function: _Method(self, function, type)

    def dynamic(self, name: str) -> str:
        return name

    @contextlib.contextmanager
    def kernel(self) -> Iterator[str]:
        outer, self.in_kernel = self.in_kernel, True
        try:
            yield "task"
        finally:
            self.in_kernel = outer

    def at(self, level: ir.Level, *_: Any, **__: Any) -> Any:
        return self.kernel() if level is ir.Level.CORE_GROUP else contextlib.nullcontext("task")

    def cluster(self, **_: Any) -> Any:
        return contextlib.nullcontext()

    scope = manual_scope = cluster

    def submit(
        self, kernel: Callable[..., Any], *arguments: Any, predicate: bool = True, **_: Any
    ) -> tuple[Any, str]:
        return kernel(*arguments) if predicate else arguments[-1], "task"

    def spmd_submit(self, kernel: Callable[..., Any], *arguments: Any, core_num: int, **options: Any) -> Any:
        for _block in self.blocks(core_num):
            result = self.submit(kernel, *arguments, **options)
        return result

    def create(self, extent: int, dtype: DataType) -> list[Any]:
        return ["task" if dtype is DataType.TASK_ID else 0] * extent

    def no_dep(self, tensor: Array) -> Array:
        return tensor

    # --- loops

    def range(self, *bounds: int, init_values: Sequence[Any] = (), **_: Any) -> Iterator[Any]:
        if not init_values:
            yield from range(*bounds)
            return
        self.carried.append(tuple(init_values))
        for index in range(*bounds):
            yield index, self.carried[-1]
        self.carried.pop()

    parallel = unroll = pipeline = range

    def yield_(self, *values: Any) -> Any:
        if self.carried:
            self.carried[-1] = values
        return values if len(values) > 1 else values[0]

    def step(self) -> bool:
        self.steps += 1
        if self.steps > 10_000:
            raise OutOfSteps
        return True

    def blocks(self, count: int, in_kernel: bool = False) -> Iterator[int]:
        outer = self.block, self.in_kernel
        for index in range(count):
            self.block = (index, count)
            self.in_kernel = in_kernel or outer[1]
            yield index
        self.block, self.in_kernel = outer

    def spmd(self, count: int, **_: Any) -> Iterator[int]:
        return self.blocks(count, in_kernel=True)

    def get_block_idx(self) -> int:
        return self.block[0]

    def get_block_num(self) -> int:
        return self.block[1]

    # --- scalars

    def const(self, value: Any, dtype: DataType) -> Any:
        return Number(value, dtype) if dtype is not DataType.INDEX else value

    # --- making and reading

    def create_tensor(self, shape: Sequence[int], dtype: DataType, **_: Any) -> Array:
        return self.made(np.full(shape, POISON).astype(STORAGE[dtype]))

    def full(self, shape: Sequence[int], dtype: DataType, value: Any) -> Array:
        return self.made(np.full(shape, value).astype(STORAGE[dtype]))

    def dim(self, tensor: Array, axis: int) -> int:
        return tensor.data.shape[axis]

    def read(self, tensor: Array, index: Sequence[int] | int) -> Number:
        cell = tensor.data[tuple(index) if isinstance(index, (list, tuple)) else index]
        return Number(cell, tensor.dtype)

    def write(self, tensor: Array, index: Sequence[int], value: Any) -> Array:
        tensor.data[tuple(index)] = value.value if isinstance(value, Number) else value
        return tensor

    # --- views: copies in a kernel, the same storage outside

    def _view(self, data: np.ndarray, valid: tuple[int, ...] | None = None) -> Array:
        return self.made(data.copy() if self.in_kernel else data, valid)

    def slice(
        self,
        tensor: Array,
        shape: Sequence[int],
        offset: Sequence[int],
        valid_shape: Sequence[int] | None = None,
        drop_dims: Sequence[int] = (),
    ) -> Array:
        window = tensor.data[tuple(slice(o, o + s) for o, s in zip(offset, shape, strict=True))]
        kept = tuple(0 if axis in drop_dims else slice(None) for axis in range(window.ndim))
        return self._view(window[kept], tuple(valid_shape) if valid_shape else None)

    def load(self, tensor: Array, offset: Sequence[int], shape: Sequence[int]) -> Array:
        return self.slice(tensor, shape, offset)

    def subscript(self, tensor: Array, index: Any) -> Any:
        index = index if isinstance(index, tuple) else (index,)
        if len(index) == tensor.data.ndim and not any(isinstance(each, slice) for each in index):
            return self.read(tensor, index)
        return self._view(tensor.data[index])

    def reshape(self, tensor: Array, shape: Sequence[int]) -> Array:
        return self._view(tensor.data.reshape(shape))

    def transpose(self, tensor: Array, axis1: int, axis2: int) -> Array:
        valid = None
        if tensor.valid is not None:
            extents = list(tensor.valid)
            extents[axis1], extents[axis2] = extents[axis2], extents[axis1]
            valid = tuple(extents)
        return self._view(np.swapaxes(tensor.data, axis1, axis2), valid)

    def concat(self, lhs: Array, rhs: Array) -> Array:
        return self.made(np.concatenate([lhs.data, rhs.data], axis=1))

    # --- writing

    def assemble(self, target: Array, source: Array, offset: Sequence[int], **_: Any) -> Array:
        cells = source.region.copy()
        cells = cells.reshape((1,) * (len(offset) - cells.ndim) + cells.shape)
        target.data[tuple(slice(o, o + s) for o, s in zip(offset, cells.shape, strict=True))] = cells
        return target

    def store(self, source: Array, offset: Sequence[int], target: Array) -> Array:
        return self.assemble(target, source, offset)

    # --- arithmetic

    def _result(self, lhs: Array, other: Array | Number | float | None, cells: np.ndarray) -> Array:
        valid = lhs.valid if lhs.data.shape == cells.shape else None
        if valid is None and isinstance(other, Array) and lhs.data.shape != cells.shape:
            valid = other.valid if other.data.shape == cells.shape else None
        return self.made(cells.astype(STORAGE[_promoted(lhs, other)]), valid)

    def _combine(self, lhs: Array, other: Any, function: Callable[[Any, Any], Any]) -> Array:
        compute = _compute_type(_promoted(lhs, other))
        if isinstance(other, Array):
            right = other.data.astype(compute)
        else:
            right = compute(other.value if isinstance(other, Number) else other)
        with np.errstate(all="ignore"):
            return self._result(lhs, other, np.asarray(function(lhs.data.astype(compute), right)))

    def add(self, lhs: Array, rhs: Any) -> Array:
        return self._combine(lhs, rhs, np.add)

    def sub(self, lhs: Array, rhs: Any) -> Array:
        return self._combine(lhs, rhs, np.subtract)

    def mul(self, lhs: Array, rhs: Any) -> Array:
        return self._combine(lhs, rhs, np.multiply)

    def maximum(self, lhs: Array, rhs: Any) -> Array:
        return self._combine(lhs, rhs, np.maximum)

    def minimum(self, lhs: Array, rhs: Any) -> Array:
        return self._combine(lhs, rhs, np.minimum)

    def cmp(self, lhs: Array, rhs: Any, cmp_type: int = 0) -> Array:
        relation = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)[cmp_type]
        result = self._combine(lhs, rhs, relation)
        result.valid = None
        return result

    row_expand_add = col_expand_add = add
    row_expand_sub = col_expand_sub = sub
    row_expand_mul = col_expand_mul = mul
    row_expand_max = col_expand_max = maximum
    row_expand_min = col_expand_min = minimum

    def neg(self, tensor: Array) -> Array:
        return self.made(-tensor.data, tensor.valid)

    def abs(self, tensor: Array) -> Array:
        return self.made(np.abs(tensor.data), tensor.valid)

    def cast(self, value: Any, target: DataType, mode: str = "round") -> Any:
        if not isinstance(value, Array):
            plain = value.value if isinstance(value, Number) else value
            return int(plain) if target is DataType.INDEX else Number(plain, target)
        cells = value.data
        if target.is_int() and value.dtype.is_float():
            wide = cells.astype(np.float64)
            rounding = {
                "rint": np.rint,
                "floor": np.floor,
                "ceil": np.ceil,
                "trunc": np.trunc,
                "round": lambda x: np.trunc(x + np.copysign(0.5, x)),
            }[mode]
            limits = np.iinfo(STORAGE[target])
            cells = np.clip(rounding(wide), limits.min, limits.max)
        return self.made(cells.astype(STORAGE[target]), value.valid)

    def _reduce(self, tensor: Array, axis: int, function: Callable[..., Any]) -> Array:
        extent = tensor.data.shape[axis] if tensor.valid is None else tensor.valid[axis]
        kept = [slice(None)] * tensor.data.ndim
        kept[axis] = slice(0, extent)
        cells = tensor.data[tuple(kept)].astype(_compute_type(tensor.dtype))
        reduced = function(cells, axis=axis, keepdims=True).astype(tensor.data.dtype)
        valid = None
        if tensor.valid is not None:
            extents = list(tensor.valid)
            extents[axis] = 1
            valid = tuple(extents)
        return self.made(reduced, valid)

    def row_sum(self, tensor: Array) -> Array:
        return self._reduce(tensor, -1, np.sum)

    def row_max(self, tensor: Array) -> Array:
        return self._reduce(tensor, -1, np.max)

    def row_min(self, tensor: Array) -> Array:
        return self._reduce(tensor, -1, np.min)

    def col_sum(self, tensor: Array) -> Array:
        return self._reduce(tensor, -2, np.sum)

    def col_max(self, tensor: Array) -> Array:
        return self._reduce(tensor, -2, np.max)

    def col_min(self, tensor: Array) -> Array:
        return self._reduce(tensor, -2, np.min)

    def matmul(self, lhs: Array, rhs: Array, a_trans: bool = False, b_trans: bool = False) -> Array:
        left = np.swapaxes(lhs.data, -1, -2) if a_trans else lhs.data
        right = np.swapaxes(rhs.data, -1, -2) if b_trans else rhs.data
        return self.made((left.astype(np.float64) @ right.astype(np.float64)).astype(lhs.data.dtype))

    def matmul_acc(self, acc: Array, lhs: Array, rhs: Array, **flags: bool) -> Array:
        return self.made(acc.data + self.matmul(lhs, rhs, **flags).data)


def _compute_type(dtype: DataType) -> Any:
    return np.float32 if dtype.is_float() else STORAGE[dtype]


def _promoted(lhs: Array, other: Any) -> DataType:
    """The element type of an operation: the float one, then the wider one; literals adapt to integers only
    as integers."""
    if isinstance(other, (Array, Number)):
        second = other.dtype
    else:
        second = DataType.FP32 if isinstance(other, float) else lhs.dtype
    first = lhs.dtype
    if first is second:
        return first
    if first.is_float() != second.is_float():
        return first if first.is_float() else second
    return first if first.get_bit() >= second.get_bit() else second
