"""Random orchestrations of kernels and assembles compute the same whatever is fused into windows."""

from __future__ import annotations

import random

import numpy as np
import pytest

from pypto import ir
from pypto.language import parse_program
from pypto.testing.interpreter import run

from .stages import TO_DISPATCHES, TO_SSA, calls, lowered, random_args, through

HEAD = """import pypto.language as pl
@pl.program
class P:
    @pl.function
    def main(self, x: pl.Tensor[[64, 8], pl.FP32], o: pl.InOut[pl.Tensor[[64, 8], pl.FP32]],
             p: pl.InOut[pl.Tensor[[64, 8], pl.FP32]]) -> pl.Tensor[[64, 8], pl.FP32]:
"""
CORE = "with pl.at(level=pl.Level.CORE_GROUP):"
ARGS = random_args((64, 8), (64, 8), (64, 8))
FUSED_SEEDS = 60


class Writer:
    """Writes statements over the tensors x, o, p and parts of 16 rows."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.lines: list[str] = []
        self.parts: list[str] = []
        self.made = 0

    def text(self) -> str:
        for _ in range(self.rng.randint(3, 8)):
            self.statement("        ", may_loop=True)
        return HEAD + "\n".join(self.lines) + "\n        return o\n"

    def row(self, index: str) -> str:
        start = self.rng.choice([0, 8, 16, 32, 48])
        return f"{index} * 16 + {start % 32}" if index and self.rng.random() < 0.6 else str(start)

    def core(self, indent: str, text: str) -> None:
        self.lines += [f"{indent}{CORE}", f"{indent}    {text}"]

    def statement(self, indent: str, may_loop: bool, index: str = "") -> None:
        kind = self.rng.choice(["new", "new", "put", "put", "put", "read", "change", "write", "use", "loop"])
        target = self.rng.choice("oop")
        if kind == "loop" and may_loop:
            self.loop(indent)
        elif kind == "new" or not self.parts:
            name = f"part_{self.made}"
            self.made += 1
            source = self.rng.choice("xxop")
            self.core(indent, f"{name} = pl.sin(pl.slice({source}, [16, 8], [{self.row(index)}, 0]))")
            self.parts.append(name)
        elif kind == "read":
            other = "p" if target == "o" else "o"
            self.core(indent, f"{other} = pl.assemble({other}, pl.neg({target}), [0, 0])")
        elif kind == "write":
            self.core(
                indent, f"{target} = pl.store(pl.load(x, [8, 0], [8, 8]), [{self.row(index)}, 0], {target})"
            )
        else:
            part = self.rng.choice(self.parts)
            if kind == "change":
                self.core(indent, f"{part} = pl.assemble({part}, pl.slice(x, [8, 8], [24, 0]), [8, 0])")
            elif kind == "use":
                self.core(indent, f"{target} = pl.assemble({target}, pl.cos({part}), [{self.row(index)}, 0])")
            else:
                self.lines.append(f"{indent}{target} = pl.assemble({target}, {part}, [{self.row(index)}, 0])")

    def loop(self, indent: str) -> None:
        self.lines.append(f"{indent}for i_{len(self.lines)} in pl.range(2):")
        index = f"i_{len(self.lines) - 1}"
        outside = list(self.parts)
        for _ in range(self.rng.randint(2, 5)):
            self.statement(f"{indent}    ", may_loop=False, index=index)
        self.parts = outside


def results(program: ir.Program) -> list[np.ndarray]:
    args = ARGS()
    run(program, "main", *args)
    return args


@pytest.mark.parametrize("seed", range(FUSED_SEEDS))
def test_random_assembles_compute_the_same_before_and_after_fusing(seed: int) -> None:
    program = parse_program(Writer(seed).text())
    stage = lowered(program, "materialize_assemble_copies")
    wanted = results(through(program, *TO_SSA, *TO_DISPATCHES))
    for got, expected in zip(results(stage), wanted, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def test_random_assembles_are_partly_fused() -> None:
    fused = kept = 0
    for seed in range(20):
        stage = lowered(parse_program(Writer(seed).text()), "fuse_create_assemble_to_slice")
        names = calls(stage["main"])
        fused += names.count("tensor.slice")
        kept += names.count("tensor.assemble")
    assert fused > 5
    assert kept > 5
