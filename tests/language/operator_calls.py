"""Random calls of registered operators, from their declarations alone."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from pypto import ir
from pypto.ir.op_registry import OpDef, Operand, get_op_def, registered_names

S = ir.Span.unknown()
Mem, D = ir.MemorySpace, ir.DataType
COMMON = (D.FP32, D.FP16, D.BF16, D.INT32)
DTYPES = (*COMMON, D.INT16, D.INT8, D.UINT8, D.UINT32, D.FP8E4M3FN, D.INT64)
SHAPES = ([16, 16], [16, 32], [16, 1], [1, 16], [16], [4, 16, 16], [1, 32], [32, 16], [1, 1], [256])
NUMBERS: dict[str, range] = {
    "atomic": range(2), "op": range(4), "cmp": range(2), "mode": range(7), "split": range(1, 3),
    "cmp_type": range(6), "cmp_mode": range(6), "mask_pattern": range(1, 8), "pipe": range(8),
    "set_pipe": range(8), "wait_pipe": range(8), "event_id": range(8), "lane_stride": range(1, 3),
}  # fmt: skip
WORDS = ("soft", "hard", "mix", "aiv_only", "aic_only", "buf", "ring", "final", "intermediate")
HANDLES = (
    ir.CommCtxType, ir.PrefetchAsyncContextType, ir.AsyncSessionType, ir.AsyncEventType, ir.PtrType,
)  # fmt: skip


def callable_operators() -> list[str]:
    """The operators that programs may call; those for tests of the registry have no name in the language."""
    names = (name for name in registered_names() if not name.startswith(("test.", "dist.")))
    return [name for name in names if not _declaration(name).internal]


def _declaration(name: str) -> OpDef:
    found = get_op_def(name)
    assert found is not None
    return found


def calls_of(name: str, rng: random.Random, attempts: int) -> Iterator[ir.Call]:
    """Calls whose operands and keywords the operator accepts, out of so many draws."""
    declaration = _declaration(name)
    for _ in range(attempts):
        operands, keywords = _Draw(declaration, rng).arguments()
        try:
            made = ir.create_op_call(name, operands, keywords, S)
        except (ValueError, TypeError):
            continue
        yield made


class _Draw:
    """One draw: operands mostly agree on a shape and an element type."""

    def __init__(self, declaration: OpDef, rng: random.Random) -> None:
        self.op, self.rng = declaration, rng
        self.shape = rng.choice(SHAPES[:2] if rng.random() < 0.6 else SHAPES)
        self.dtype = rng.choice(COMMON if rng.random() < 0.7 else DTYPES)

    def arguments(self) -> tuple[list[ir.Expr], dict[str, Any]]:
        most = min(self.op.max_args, self.op.min_args + 3)
        count = self.rng.randint(self.op.min_args, most)
        params = self.op.params
        operands = [self.operand(params[min(i, len(params) - 1)], i) for i in range(count)]
        present = [key for key in self.op.kwargs if self.rng.random() < 0.8]
        return operands, {key: self.keyword(key, self.op.kwargs[key]) for key in present}

    def operand(self, param: Operand, position: int) -> ir.Expr:
        kind = self.rng.choice(param.kind.split("|"))
        if kind == "any":
            kind = self.rng.choice(("tensor", "tile", "scalar", "tuple", "window", "handle"))
        return self.KINDS[kind](self, position)

    def _shape(self) -> list[int]:
        return self.shape if self.rng.random() < 0.75 else self.rng.choice(SHAPES)

    def _dtype(self) -> ir.DataType:
        return self.dtype if self.rng.random() < 0.8 else self.rng.choice(DTYPES)

    def _var(self, type: ir.Type) -> ir.Var:
        return ir.Var("v", type, S)

    def tensor(self, _position: int) -> ir.Expr:
        return self._var(ir.TensorType(self._shape(), self._dtype()))

    def window(self, _position: int) -> ir.Expr:
        return self._var(ir.DistributedTensorType(self._shape(), self._dtype()))

    def tile(self, position: int) -> ir.Expr:
        spec = self.op.memory_spec
        accepted = spec.inputs[position] if spec is not None and position < len(spec.inputs) else ()
        space = self.rng.choice(accepted or (Mem.Vec, Mem.Vec, Mem.Mat, Mem.Acc))
        return self._var(ir.TileType(self._shape(), self._dtype(), None, None, space))

    def scalar(self, _position: int) -> ir.Expr:
        dtype = self.rng.choice((self.dtype, D.INDEX, D.INT32, D.INT64, D.BOOL, D.TASK_ID))
        if dtype in (D.BOOL, D.TASK_ID) or (dtype is not D.INDEX and self.rng.random() < 0.5):
            return self._var(ir.ScalarType(dtype))
        if dtype.is_float():
            return ir.ConstFloat(1.5, dtype, S)
        return ir.ConstInt(self.rng.choice((0, 1, 2, 16, 64)), dtype, S)

    def tuple(self, _position: int) -> ir.Expr:
        extents = self._shape() if self.rng.random() < 0.6 else [0] * len(self.shape)
        return ir.MakeTuple([ir.ConstInt(extent, D.INDEX, S) for extent in extents], S)

    def array(self, _position: int) -> ir.Expr:
        return self._var(ir.ArrayType(self.rng.choice((D.INT32, D.TASK_ID)), 4))

    def handle(self, _position: int) -> ir.Expr:
        return self._var(self.rng.choice(HANDLES).get())

    KINDS: dict[str, Callable[[Any, int], ir.Expr]] = {
        "tensor": tensor, "plain": tensor, "window": window, "tile": tile, "scalar": scalar, "tuple": tuple,
        "array": array, "handle": handle, "ptr": lambda self, _position: self._var(ir.PtrType.get()),
    }  # fmt: skip

    def keyword(self, key: str, type: type) -> Any:
        rng = self.rng
        if type is int:
            return rng.choice(NUMBERS.get(key, (0, 1, -1, 2, 16)))
        if type is D:
            return self._dtype()
        values: dict[Any, Any] = {
            bool: (False, True), str: WORDS, float: (0.0, 1.5), Mem: tuple(Mem),
            ir.TensorLayout: tuple(ir.TensorLayout), ir.TileLayout: tuple(ir.TileLayout),
            ir.PadValue: tuple(ir.PadValue),
        }  # fmt: skip
        return rng.choice(values[type])
