"""Kernels written against the IR builders, compiled together, run on numpy arrays.

A case is a function that writes one kernel and says what it must compute. All cases of a module become one
translation unit, so that the compiler starts once.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import pypto.backend
from pypto import ir
from pypto.codegen.kernel import KernelSource, generate_kernel
from pypto.core.dtype import DataType
from pypto.ir.op import tile

INCLUDE = Path(next(iter(pypto.backend.__path__))) / "cpu" / "include"
FLAGS = [
    "-std=c++17", "-O3", "-march=native", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-exceptions",
    "-fno-rtti", "-fno-math-errno", "-fno-trapping-math", "-fno-strict-aliasing",
]  # fmt: skip
UNKNOWN = ir.Span.unknown()

NUMPY = {
    DataType.FP32: np.dtype(np.float32),
    DataType.FP16: np.dtype(np.float16),
    DataType.BF16: np.dtype(ml_dtypes.bfloat16),
    DataType.FP8E4M3FN: np.dtype(ml_dtypes.float8_e4m3fn),
    DataType.FP8E5M2: np.dtype(ml_dtypes.float8_e5m2),
    DataType.INT8: np.dtype(np.int8),
    DataType.INT16: np.dtype(np.int16),
    DataType.INT32: np.dtype(np.int32),
    DataType.INT64: np.dtype(np.int64),
    DataType.UINT8: np.dtype(np.uint8),
    DataType.UINT16: np.dtype(np.uint16),
    DataType.UINT32: np.dtype(np.uint32),
    DataType.INDEX: np.dtype(np.int64),
    DataType.BOOL: np.dtype(bool),
}
DTYPE_OF = {dtype: key for key, dtype in NUMPY.items() if key is not DataType.INDEX}


class Descriptor(ctypes.Structure):
    _fields_ = (
        ("addr", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
        ("start_offset", ctypes.c_uint64),
        ("shapes", ctypes.c_uint32 * 5),
        ("strides", ctypes.c_uint32 * 5),
        ("ndims", ctypes.c_uint32),
        ("dtype", ctypes.c_uint32),
    )


class Dispatch(ctypes.Structure):
    _fields_ = (("block_idx", ctypes.c_int32), ("block_num", ctypes.c_int32))


class Core(ctypes.Structure):
    _fields_ = (
        ("sub_block_id", ctypes.c_int32),
        ("checked", ctypes.c_int32),
        ("workspace", ctypes.c_void_p),
        ("fail", ctypes.c_void_p),
        ("lane", ctypes.c_void_p),
    )


FAIL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)


def describe(array: np.ndarray) -> Descriptor:
    """Descriptor of an array, which may be strided."""
    descriptor = Descriptor(array.__array_interface__["data"][0], array.nbytes, 0, ndims=array.ndim)
    for axis, (extent, stride) in enumerate(zip(array.shape, array.strides, strict=True)):
        descriptor.shapes[axis] = extent
        descriptor.strides[axis] = stride // array.itemsize
    return descriptor


@dataclass
class Kernel:
    """A kernel under construction together with its arguments and what they must be afterwards."""

    name: str
    params: list[Any] = field(default_factory=list)
    statements: list[list[ir.Stmt]] = field(default_factory=lambda: [[]])
    arrays: list[np.ndarray] = field(default_factory=list)
    scalars: list[bytes] = field(default_factory=list)
    expectations: list[tuple[np.ndarray, Any, float]] = field(default_factory=list)
    block: tuple[int, int] = (0, 1)
    checked: bool = False
    line: Iterator[int] = field(default_factory=lambda: itertools.count(10))

    # ---- building -----------------------------------------------------------------------------------------

    def span(self) -> ir.Span:
        return ir.Span("case.py", next(self.line), 1)

    def var(self, name: str, type: ir.Type) -> ir.Var:
        return ir.Var(name, type, UNKNOWN)

    def tensor(
        self, array: Any, name: str = "x", direction: Any = ir.ParamDirection.In, shape: Any = None
    ) -> ir.Var:
        """A tensor parameter with the given contents; `shape` declares other extents than the array's."""
        array = np.asarray(array)
        var = self.var(
            name, ir.TensorType(list(array.shape if shape is None else shape), DTYPE_OF[array.dtype])
        )
        self.params.append((var, direction))
        self.arrays.append(array)
        return var

    def output(self, shape: Sequence[int], dtype: DataType, expected: Any, tolerance: float = 0.0) -> ir.Var:
        """An output filled with 7, so that untouched elements show; `expected` is what it must be
        afterwards.
        """
        array = np.full(shape, 7, NUMPY[dtype])
        var = self.tensor(array, "out", ir.ParamDirection.Out)
        self.expectations.append((array, expected, tolerance))
        return var

    def scalar(self, value: Any, dtype: DataType, name: str = "s") -> ir.Var:
        var = self.var(name, ir.ScalarType(dtype))
        self.params.append((var, ir.ParamDirection.In))
        self.scalars.append(np.asarray(value, NUMPY[dtype]).tobytes().ljust(8, b"\0"))
        return var

    def let(self, expr: ir.Expr, name: str = "t") -> ir.Var:
        """`name = expr`."""
        var = self.var(name, expr.type)
        self.statements[-1].append(ir.AssignStmt(var, expr, self.span()))
        return var

    def do(self, expr: ir.Expr) -> None:
        self.statements[-1].append(ir.EvalStmt(expr, self.span()))

    def load(self, tensor: ir.Var, shape: Any = None, offset: Any = None, valid: Any = None) -> ir.Var:
        """The whole tensor as a tile, or a window of it."""
        extents = tensor.type.shape_ if shape is None else shape
        start = [0] * len(extents) if offset is None else offset
        return self.let(tile.load(tensor, start, extents, valid), f"{tensor.name_hint}__tile")

    def input(self, array: Any, **window: Any) -> ir.Var:
        """A tensor parameter that is loaded at once."""
        return self.load(self.tensor(array), **window)

    def store(self, value: ir.Var, out: ir.Var, offset: Any = None) -> ir.Var:
        start = [0] * len(out.type.shape_) if offset is None else offset
        return self.let(tile.store(value, start, out), "out")

    def result(self, value: ir.Var, expected: Any, tolerance: float = 0.0) -> None:
        """Store a tile into an output of its shape, which must become `expected`."""
        shape = [extent.value for extent in value.type.shape_]
        self.store(value, self.output(shape, value.type.dtype, expected, tolerance))

    @contextmanager
    def body(self) -> Iterator[list[ir.Stmt]]:
        """Statements of a nested body."""
        self.statements.append([])
        try:
            yield self.statements[-1]
        finally:
            self.statements.pop()

    def loop(
        self,
        stop: Any,
        carried: Sequence[tuple[str, ir.Expr]],
        write: Callable[..., Sequence[ir.Expr]],
        **bounds: Any,
    ) -> list[ir.Var]:
        """`for i in range(start, stop, step)`; `write(i, *carried)` writes the body and returns what it
        yields.
        """
        index = self.var("i", ir.ScalarType(DataType.INDEX))
        args = [ir.IterArg(name, initial.type, initial, UNKNOWN) for name, initial in carried]
        with self.body() as statements:
            statements.append(ir.YieldStmt(list(write(index, *args)), UNKNOWN))
        results = [self.var(arg.name_hint, arg.type) for arg in args]
        start, step = bounds.get("start", 0), bounds.get("step", 1)
        self.statements[-1].append(
            ir.ForStmt(
                index, index_expr(start), index_expr(stop), index_expr(step), args,
                ir.flatten_stmts(statements, UNKNOWN), results, self.span(),
            )
        )  # fmt: skip
        return results

    def when(
        self,
        condition: ir.Expr,
        then: Callable[[], Sequence[ir.Expr]],
        other: Callable[[], Sequence[ir.Expr]],
    ) -> list[ir.Var]:
        """`if condition: ... else: ...` with the values that the branches return."""
        with self.body() as then_statements:
            then_values = list(then())
            then_statements.append(ir.YieldStmt(then_values, UNKNOWN))
        with self.body() as else_statements:
            else_statements.append(ir.YieldStmt(list(other()), UNKNOWN))
        results = [self.var("r", value.type) for value in then_values]
        bodies = [ir.flatten_stmts(statements, UNKNOWN) for statements in (then_statements, else_statements)]
        self.statements[-1].append(ir.IfStmt(condition, bodies[0], bodies[1], results, self.span()))
        return results

    # ---- compiling and running ----------------------------------------------------------------------------

    def function(self, type: ir.FunctionType = ir.FunctionType.AIV) -> ir.Function:
        body = ir.flatten_stmts([*self.statements[0], ir.ReturnStmt([], UNKNOWN)], UNKNOWN)
        return ir.Function(self.name, self.params, [], body, ir.Span("case.py", 9, 1), type)

    def generate(self, type: ir.FunctionType = ir.FunctionType.AIV) -> KernelSource:
        function = self.function(type)
        return generate_kernel(ir.Program([function], "P", UNKNOWN), function)

    def run(self, library: ctypes.CDLL) -> list[str]:
        """Run the compiled kernel; returns the failures that checked mode reported."""
        entry = getattr(library, f"kernel_entry_{self.name}")
        size = ctypes.c_uint64.in_dll(library, f"kernel_workspace_bytes_{self.name}").value
        workspace = np.full(size + 64, 0xA5, np.uint8)  # undefined memory must not be read
        address = workspace.ctypes.data
        failures: list[str] = []
        fail = FAIL(lambda core, detail: failures.append(detail.decode()))
        core = Core(
            0, int(self.checked), address + -address % 64, ctypes.cast(fail, ctypes.c_void_p).value, None
        )
        dispatch = Dispatch(*self.block)
        descriptors = [describe(array) for array in self.arrays]
        args = (ctypes.c_int64 * 50)()
        for slot, descriptor in enumerate(descriptors):
            args[slot] = ctypes.addressof(descriptor)
        for slot, value in enumerate(self.scalars):
            args[len(descriptors) + slot] = int.from_bytes(value, "little", signed=True)
        args[48], args[49] = ctypes.addressof(dispatch), ctypes.addressof(core)
        entry(args)
        return failures

    def check(self, library: ctypes.CDLL) -> None:
        """Run and compare every output."""
        assert self.run(library) == []
        for array, expected, tolerance in self.expectations:
            compare(array, expected, tolerance)


def index_expr(value: Any) -> ir.Expr:
    return value if isinstance(value, ir.Expr) else ir.ConstInt(value, DataType.INDEX, UNKNOWN)


def compare(array: np.ndarray, expected: Any, tolerance: float) -> None:
    wanted = np.broadcast_to(np.asarray(expected), array.shape)
    if tolerance == 0.0:
        wanted = wanted.astype(array.dtype)
        if array.dtype.itemsize < 4 and array.dtype.kind in "fV":  # numpy knows no NaN among these
            array, wanted = array.astype(np.float32), wanted.astype(np.float32)
        np.testing.assert_array_equal(array, wanted)
    else:
        np.testing.assert_allclose(
            array.astype(np.float64), wanted.astype(np.float64), rtol=tolerance, atol=tolerance
        )


def compiler() -> list[str]:
    return shlex.split(os.environ.get("PYPTO_CXX", "")) or ["g++"]


def compile_text(text: str, folder: Path, optimise: bool = True) -> ctypes.CDLL:
    """Compile C++ text into a library and load it."""
    source, output = folder / "kernels.cpp", folder / "kernels.so"
    source.write_text(text)
    level = [] if optimise else ["-O0"]
    command = [*compiler(), *FLAGS, *level, "-I", str(INCLUDE), str(source), "-o", str(output), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:8000]
    return ctypes.CDLL(str(output))


def compile_kernels(kernels: Sequence[Kernel], folder: Path, optimise: bool = True) -> ctypes.CDLL:
    """All kernels in one library; the entry of each carries its name."""
    texts = []
    for kernel in kernels:
        text = kernel.generate().text
        texts.append(re.sub(r"\b(kernel_entry|kernel_workspace_bytes)\b", rf"\1_{kernel.name}", text))
    return compile_text("\n".join(texts), folder, optimise)


class Cases:
    """The cases of a test module, by name."""

    def __init__(self) -> None:
        self.kernels: dict[str, Kernel] = {}

    def __call__(self, write: Callable[[Kernel], None]) -> Callable[[Kernel], None]:
        kernel = Kernel(write.__name__)
        write(kernel)
        self.kernels[write.__name__] = kernel
        return write

    def each(self, values: Sequence[Any], write: Callable[..., None]) -> None:
        """One case per value, named after it."""
        for value in values:
            parts = value if isinstance(value, tuple) else (value,)
            name = "_".join([write.__name__, *(re.sub(r"\W+", "_", str(part)) for part in parts)])
            kernel = Kernel(name)
            write(kernel, *parts)
            self.kernels[name] = kernel


def random(*shape: int, seed: int = 0, dtype: Any = np.float32) -> np.ndarray:
    """Standard normal numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)
