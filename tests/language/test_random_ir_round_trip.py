"""Random IR prints as text that reads back equal and prints alike, and survives as bytes."""

from __future__ import annotations

import random
import warnings

import pytest

import pypto.language as pl
from pypto import ir
from pypto.ir.walk import walk_stmts

from .random_ir import D, RandomFunction, S

SEEDS = range(120)
CHUNK = 20
ELEMENTS = (
    D.BOOL, D.INT4, D.INT8, D.INT16, D.INT32, D.INT64, D.INDEX, D.UINT4, D.UINT8, D.UINT16, D.UINT32,
    D.UINT64, D.FP8E4M3FN, D.FP8E5M2, D.FP8E8M0, D.FP16, D.FP32, D.BF16, D.HF4, D.HF8,
)  # fmt: skip
UNWRITTEN = {"CommDomainScopeStmt", "InlineStmt", "ReturnStmt"}
EXTENT_OPERATIONS = (ir.Add, ir.Sub, ir.Mul, ir.FloorDiv, ir.FloorMod, ir.Min, ir.Max)


@pytest.mark.parametrize("first", SEEDS[::CHUNK])
def test_random_statements_and_scopes_print_and_read_back(first: int) -> None:
    for seed in range(first, first + CHUNK):
        program = RandomFunction(seed).program()
        text = program.as_python(format=False)
        again = pl.parse(text)
        ir.assert_structural_equal(program, again)
        assert ir.structural_hash(program) == ir.structural_hash(again)
        assert again.as_python(format=False) == text


def test_random_statements_survive_as_bytes_and_identity_mutation() -> None:
    for seed in SEEDS[::4]:
        program = RandomFunction(seed).program()
        restored = ir.deserialize(ir.serialize(program))
        ir.assert_structural_equal(program, restored)
        assert ir.structural_hash(program) == ir.structural_hash(restored)
        assert restored.as_python(format=False) == program.as_python(format=False)
        assert ir.serialize(restored) == ir.serialize(program)
        assert ir.IRMutator().visit_program(program) is program


def test_random_functions_hold_every_kind_of_statement() -> None:
    seen = set()
    for seed in SEEDS:
        seen |= {type(stmt).__name__ for stmt in walk_stmts(RandomFunction(seed).program()["main"].body)}
    concrete = {cls.__name__ for cls in (*ir.Stmt.__subclasses__(), *ir.ScopeStmt.__subclasses__())}
    assert seen == concrete - UNWRITTEN - {"ScopeStmt"}


class RandomType:
    """Draws types over some symbols."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.symbols = [ir.Var(name, ir.ScalarType(D.INDEX), S) for name in "NMK"]

    def extent(self, depth: int = 2) -> ir.Expr:
        draw = self.rng.random()
        if depth == 0 or draw < 0.4:
            return ir.ConstInt(self.rng.choice((1, 2, 16, 64)), D.INDEX, S)
        if draw < 0.65:
            return self.rng.choice(self.symbols)
        operation = self.rng.choice(EXTENT_OPERATIONS)
        return operation(self.extent(depth - 1), self.extent(depth - 1), D.INDEX, S)

    def extents(self, count: int, chance: float = 1.0) -> list[ir.Expr]:
        return [self.extent() for _ in range(count)] if self.rng.random() < chance else []

    def any(self) -> ir.Type:
        makers = (self.scalar, self.array, self.tuple, self.tensor, self.tensor, self.tile, self.tile)
        return self.rng.choice(makers)()

    def scalar(self) -> ir.Type:
        return ir.ScalarType(self.rng.choice(ELEMENTS))

    def array(self) -> ir.Type:
        return ir.ArrayType(self.rng.choice((D.INT32, D.BOOL, D.TASK_ID, D.INDEX)), self.rng.randint(1, 9))

    def tuple(self) -> ir.Type:
        makers = (self.scalar, self.array, self.tensor, self.tile)
        return ir.TupleType([self.rng.choice(makers)() for _ in range(self.rng.randint(0, 3))])

    def tensor(self) -> ir.Type:
        rng, rank = self.rng, self.rng.randint(0, 3)
        view = None
        if rng.random() < 0.6:
            stride, valid = self.extents(rank, 0.5), self.extents(rank, 0.5)
            view = ir.TensorView(
                stride, rng.choice(list(ir.TensorLayout)), valid, rng.choice(list(ir.PadValue))
            )
        cls = rng.choice((ir.TensorType, ir.TensorType, ir.DistributedTensorType))
        return cls(self.extents(rank), rng.choice(ELEMENTS), None, view)

    def tile(self) -> ir.Type:
        rng, rank = self.rng, self.rng.randint(0, 3)
        view = None
        if rng.random() < 0.6:
            box = (
                rng.choice(list(ir.TileLayout)),
                rng.choice(list(ir.TileLayout)),
                rng.choice((512, 1024, 32)),
            )
            tail = rng.choice(list(ir.PadValue)), rng.choice(list(ir.CompactMode))
            offset = self.extent() if rng.random() < 0.2 else None
            view = ir.TileView(self.extents(rank, 0.5), self.extents(rank, 0.3), offset, *box, *tail)
        space = rng.choice((None, *ir.MemorySpace))
        memref = ir.MemRef("declared", slots=2)[1] if space is not None and rng.random() < 0.3 else None
        return ir.TileType(self.extents(rank), rng.choice(ELEMENTS), memref, view, space)


@pytest.mark.parametrize("explicit", [False, True])
def test_random_types_read_back_from_signatures_and_assignments(explicit: bool) -> None:
    for seed in range(250):
        draw = RandomType(seed)
        params = [ir.Var(f"p{i}", draw.any(), S) for i in range(2)]
        copy = ir.AssignStmt(ir.Var("v", params[0].type, S), params[0], S)
        body = ir.SeqStmts([copy, ir.ReturnStmt([params[1]], S)], S)
        function = ir.Function("f", params, [params[1].type], body, S)
        text = ir.python_print(function, format=False, explicit_layout=explicit)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            again = pl.parse(text)
        ir.assert_structural_equal(function, again)
        assert ir.python_print(again, format=False, explicit_layout=explicit) == text
