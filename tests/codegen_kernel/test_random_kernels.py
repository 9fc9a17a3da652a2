"""Random kernels with loops, branches, views and updates in place compute what values compute.

Whatever buffers the planner shares, a program must not notice: the expectation comes from evaluating the IR
with immutable numpy arrays. Small integers in FP32 keep every result exact. An update in place is one of
every name of its target, so nothing that may be the target under another name is used after it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pypto import ir
from pypto.core.dtype import DataType
from pypto.ir.op import tile

from .support import Kernel, compile_kernels, index_expr

FP32, INDEX = DataType.FP32, DataType.INDEX
SIZE = 4
KERNELS = 24


# ---- the meaning of a kernel on values ----------------------------------------------------------------


class Evaluator:
    """Evaluates the statements that :class:`Writer` writes."""

    def __init__(self, inputs: dict[ir.Var, Any]) -> None:
        self.values: dict[ir.Expr, Any] = dict(inputs)
        self.stored: list[np.ndarray] = []

    def run(self, stmt: ir.Stmt) -> list[Any]:
        """Execute; the values of a trailing yield."""
        if isinstance(stmt, ir.SeqStmts):
            for inner in stmt.stmts_:
                result = self.run(inner)
            return result
        if isinstance(stmt, ir.AssignStmt):
            self.values[stmt.var] = self.evaluate(stmt.value)
        elif isinstance(stmt, ir.IfStmt):
            taken = stmt.then_body if self.evaluate(stmt.condition) else stmt.else_body
            self.values.update(zip(stmt.return_vars_, self.run(taken), strict=True))
        elif isinstance(stmt, ir.ForStmt):
            carried = [self.evaluate(arg.initValue) for arg in stmt.iter_args_]
            for i in range(stmt.stop.value):
                self.values[stmt.loop_var] = i
                self.values.update(zip(stmt.iter_args_, carried, strict=True))
                carried = self.run(stmt.body)
            self.values.update(zip(stmt.return_vars_, carried, strict=True))
        elif isinstance(stmt, ir.YieldStmt):
            return [self.evaluate(value) for value in stmt.value_]
        return []

    def evaluate(self, expr: ir.Expr) -> Any:
        if isinstance(expr, ir.ConstInt):
            return expr.value
        if isinstance(expr, ir.Eq):
            return self.evaluate(expr.left) == self.evaluate(expr.right)
        if isinstance(expr, ir.FloorMod):
            return self.evaluate(expr.left) % self.evaluate(expr.right)
        if not isinstance(expr, ir.Call):
            return self.values[expr]
        if expr.op.name == "tile.store":
            self.stored.append(self.values[expr.args_[0]])
            return None
        args = [self.values.get(arg) if isinstance(arg, ir.Var) else arg for arg in expr.args_]
        return MEANINGS[expr.op.name](*args)


def _window(array: np.ndarray, shape: ir.MakeTuple, offset: ir.MakeTuple) -> np.ndarray:
    (rows, cols), (row, col) = ([e.value for e in part.elements_] for part in (shape, offset))
    return array[row : row + rows, col : col + cols]


def _assembled(target: np.ndarray, source: np.ndarray, offset: ir.MakeTuple) -> np.ndarray:
    row, col = (e.value for e in offset.elements_)
    result = target.copy()
    result[row : row + source.shape[0], col : col + source.shape[1]] = source
    return result


MEANINGS = {
    "tile.load": lambda tensor, *_: tensor,
    "tile.add": lambda a, b: a + b,
    "tile.adds": lambda a, s: a + np.float32(s.value),
    "tile.maximums": lambda a, s: np.maximum(a, np.float32(s.value)),
    "tile.minimums": lambda a, s: np.minimum(a, np.float32(s.value)),
    "tile.matmul": lambda a, b: a @ b,
    "tile.matmul_acc": lambda acc, a, b: acc + a @ b,
    "tile.slice": _window,
    "tile.reshape": lambda a, shape: a.reshape([e.value for e in shape.elements_]),
    "tile.transpose": lambda a, *_: a.T,
    "tile.transpose_view": lambda a: a.T,
    "tile.move": lambda a: a,
    "tile.assemble": _assembled,
}


# ---- writing random kernels ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Value:
    """A tile, the tiles that it may be another name of, and how many bodies are around its definition."""

    var: ir.Expr
    groups: frozenset[int]
    depth: int


class Writer:
    """Writes random statements over tiles of SIZE x SIZE."""

    def __init__(self, kernel: Kernel, seed: int) -> None:
        self.k = kernel
        self.rng = np.random.default_rng(seed)
        self.pool: list[Value] = []
        self.depth = 0
        self.groups = 0
        self.scalar = kernel.scalar(seed % 2, INDEX, "s")

    def add(self, var: ir.Expr, groups: frozenset[int] = frozenset()) -> None:
        if not groups:
            self.groups += 1
            groups = frozenset([self.groups])
        self.pool.append(Value(var, groups, self.depth))

    def any(self) -> Value:
        return self.pool[self.rng.integers(len(self.pool))]

    def pick(self) -> ir.Expr:
        return self.any().var

    def bounded(self, expr: ir.Expr) -> None:
        """A new tile that stays small."""
        low = self.k.let(tile.maximums(self.k.let(expr), -9))
        self.add(self.k.let(tile.minimums(low, 9)))

    def statements(self, count: int) -> None:
        for _ in range(count):
            kinds = [self.arithmetic, self.arithmetic, self.product, self.view, self.copy, self.update]
            if self.depth < 2:
                kinds += [self.loop, self.branch]
            kinds[self.rng.integers(len(kinds))]()

    def arithmetic(self) -> None:
        self.bounded(tile.add(self.pick(), self.pick()))
        self.add(self.k.let(tile.adds(self.pick(), int(self.rng.integers(-2, 3)))))

    def product(self) -> None:
        if self.rng.integers(2):
            self.bounded(tile.matmul(self.pick(), self.pick()))
        else:
            self.bounded(tile.matmul_acc(self.pick(), self.pick(), self.pick()))

    def view(self) -> None:
        source = self.any()
        kind = self.rng.integers(3)
        if kind == 0:
            self.add(self.k.let(tile.transpose_view(source.var)), source.groups)
        elif kind == 1:
            flat = self.k.let(tile.reshape(source.var, [1, SIZE * SIZE]))
            self.add(self.k.let(tile.reshape(flat, [SIZE, SIZE])), source.groups)
        else:
            part = self.k.let(tile.slice(source.var, [2, 2], [1, 2]))
            other = self.k.let(tile.slice(self.pick(), [2, 2], [0, 1]))
            whole = self.k.let(tile.adds(self.pick(), 0))
            placed = self.k.let(tile.assemble(whole, self.k.let(tile.add(part, other)), [2, 1]))
            self.add(placed)

    def copy(self) -> None:
        if self.rng.integers(2):
            self.add(self.k.let(tile.transpose(self.pick(), 0, 1)))
        else:
            self.add(self.k.let(tile.move(self.pick(), ir.MemorySpace.Vec)))

    def update(self) -> None:
        """Assemble into a tile of this body; nothing that may share its buffer is used again."""
        outer = frozenset().union(*(value.groups for value in self.pool if value.depth < self.depth))
        own = [value for value in self.pool if not value.groups & outer]
        if not own:
            return
        target = own[self.rng.integers(len(own))]
        source = self.k.let(tile.adds(self.k.let(tile.slice(self.pick(), [2, SIZE], [1, 0])), 1))
        self.pool = [value for value in self.pool if not value.groups & target.groups]
        self.add(self.k.let(tile.assemble(target.var, source, [0, 0])))

    def body(self, carried: Sequence[ir.Expr], yields: int) -> list[Value]:
        outer = list(self.pool)
        self.depth += 1
        for var in carried:
            self.add(var)
        self.statements(int(self.rng.integers(1, 4)))
        values = [self.any() for _ in range(yields)]
        self.depth -= 1
        self.pool = outer
        return values

    def loop(self) -> None:
        count = int(self.rng.integers(1, 4))
        carried = [(f"c{i}", self.pick()) for i in range(count)]
        trips = int(self.rng.integers(0, 4))
        write = lambda i, *args: [value.var for value in self.body(args, count)]  # noqa: E731
        for result in self.k.loop(trips, carried, write):
            self.add(result)

    def branch(self) -> None:
        count = int(self.rng.integers(1, 3))
        condition = ir.eq(ir.mod(self.scalar, index_expr(2)), index_expr(0))
        yielded: list[list[Value]] = []

        def write() -> list[ir.Expr]:
            yielded.append(self.body((), count))
            return [value.var for value in yielded[-1]]

        results = self.k.when(condition, write, write)
        for result, one, other in zip(results, *yielded, strict=True):
            self.add(result, one.groups | other.groups)


def random_kernel(seed: int) -> Kernel:
    kernel = Kernel(f"random_{seed}")
    writer = Writer(kernel, seed)
    inputs: dict[ir.Var, Any] = {writer.scalar: seed % 2}
    for i in range(3):
        array = writer.rng.integers(-3, 4, (SIZE, SIZE)).astype(np.float32)
        tensor = kernel.tensor(array, f"x{i}")
        inputs[tensor] = array
        writer.add(kernel.load(tensor))
    writer.statements(8)
    outputs = []
    for value in writer.pool:
        out = kernel.output([SIZE, SIZE], FP32, None)
        kernel.store(value.var, out)
        outputs.append(out)
    evaluator = Evaluator(inputs)
    evaluator.run(kernel.function().body)
    kernel.expectations = [
        (array, expected, 0.0)
        for (array, _, _), expected in zip(kernel.expectations, evaluator.stored, strict=True)
    ]
    return kernel


@pytest.fixture(scope="module")
def kernels() -> list[Kernel]:
    return [kernel for seed in range(KERNELS) if len((kernel := random_kernel(seed)).arrays) <= 32]


@pytest.fixture(scope="module")
def library(kernels: list[Kernel], tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return compile_kernels(kernels, Path(tmp_path_factory.mktemp("random")), optimise=False)


def test_random_kernels_compute_what_values_compute(kernels: list[Kernel], library: ctypes.CDLL) -> None:
    assert len(kernels) > KERNELS // 2
    wrong = []
    for kernel in kernels:
        try:
            kernel.check(library)
        except AssertionError:
            wrong.append(kernel.name)
    assert not wrong
