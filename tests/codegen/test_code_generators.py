"""The classes that generate the kernels and the host code of a whole program."""

# ruff: noqa: RET504 (the program is written as users write it)

from __future__ import annotations

import pytest

import pypto.language as pl
import pypto.pypto_core.codegen as core_codegen
from pypto import codegen, ir
from pypto.ir.pass_manager import OptimizationStrategy, PassManager


@pl.program
class Two:
    @pl.function
    def main(self, x: pl.Tensor[[16, 16], pl.FP32], o: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y = pl.exp(x)
        with pl.at(level=pl.Level.CORE_GROUP):
            o = pl.assemble(o, pl.add(y, 1.0), [0, 0])
        return o


def lowered() -> ir.Program:
    return PassManager.get_strategy(OptimizationStrategy.Default).run_passes(Two)


def test_the_kernels_of_a_program_come_as_one_text_with_or_without_places() -> None:
    program = lowered()
    text = codegen.PTOCodegen().generate(program)
    kernels = [f for f in program.functions.values() if f.func_type is ir.FunctionType.AIV]
    assert len(kernels) == 2
    assert text == "\n".join(codegen.generate_kernel(program, kernel).text for kernel in kernels)
    assert "// test_code_generators.py:" in text
    assert "// test_code_generators.py:" not in codegen.PTOCodegen().generate(program, True, False)
    assert core_codegen.PTOCodegen is codegen.PTOCodegen


def test_a_program_without_kernels_has_no_kernel_code() -> None:
    empty = ir.Program([], "empty", ir.Span.unknown())
    with pytest.raises(ValueError, match="'empty' has no kernel"):
        codegen.PTOCodegen().generate(empty)


def test_the_host_code_generator_is_exported_and_refuses_programs_of_one_rank() -> None:
    generator = codegen.DistributedCodegen()
    with pytest.raises(ValueError, match="has no host function"):
        generator.generate(lowered())
    assert generator.get_builtin_next_level_specs() == []
