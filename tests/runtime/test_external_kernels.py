"""Kernels written in C++ beside generated ones: what their binary depends on, and how errors are told."""
# ruff: noqa: RET504  (a program names what it returns)

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import numpy as np
import pytest

import pypto.language as pl
from pypto import ir
from pypto.runtime import build, load_bundle, write_bundle
from pypto.runtime.build import CompileError
from pypto.runtime.compiled_program import CompiledProgram
from pypto.runtime.kernel_config import load_kernel_config

EXAMPLE = Path(__file__).parents[2] / "examples" / "external_kernel.py"

ADD = """
#include "pypto_args.h"
#include "amount.h"
extern "C" void kernel_entry(int64_t* args) {
    pypto::TensorArg<const float, 2> x(args, 0);
    pypto::TensorArg<float, 2> out(args, 1);
    for (int64_t i = 0; i < x.extent(0); i++)
        for (int64_t j = 0; j < x.extent(1); j++) out(i, j) = x(i, j) + AMOUNT;
}
"""


def amount(value: int) -> str:
    return f"// {uuid.uuid4()}\n#define AMOUNT {value}\n#define UNIQUE_{uuid.uuid4().hex}\n"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A kernel that adds 5, with the header that says so in a folder of its own."""
    for folder, value in (("kernels", None), ("five", 5), ("seven", 7)):
        (tmp_path / folder).mkdir()
        if value is not None:
            (tmp_path / folder / "amount.h").write_text(amount(value))
    path = tmp_path / "kernels" / "add.cpp"
    path.write_text(ADD)
    return path


def program(source: Path, include_dirs: tuple[str, ...] = ("../five", "../seven")) -> ir.Program:
    """out = hand(hand(x + 1)), where `hand` has two registrations."""

    @pl.program
    class Mixed:
        @pl.function(type=pl.FunctionType.AIV, external_source=source)
        def hand(
            self, x: pl.Tensor[[16, 16], pl.FP32], res: pl.Out[pl.Tensor[[16, 16], pl.FP32]]
        ) -> pl.Tensor[[16, 16], pl.FP32]: ...

        @pl.function(type=pl.FunctionType.InCore)
        def plus_one(
            self, x: pl.Tensor[[16, 16], pl.FP32], res: pl.Out[pl.Tensor[[16, 16], pl.FP32]]
        ) -> pl.Tensor[[16, 16], pl.FP32]:
            t = pl.load(x, [0, 0], [16, 16])
            res = pl.store(pl.add(t, 1.0), [0, 0], res)
            return res

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self, x: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]
        ) -> pl.Tensor[[16, 16], pl.FP32]:
            a = pl.create_tensor([16, 16], dtype=pl.FP32)
            a = self.plus_one(x, a)
            b = pl.create_tensor([16, 16], dtype=pl.FP32)
            b = self.hand(a, b)
            out = self.hand(pl.no_dep(b), out)
            return out

    return with_include_dirs(Mixed, json.dumps(include_dirs))


def with_include_dirs(given: ir.Program, text: str) -> ir.Program:
    hand = given.functions_["hand"]
    changed = hand.replace(attrs={**hand.attrs_, "external_include_dirs": text})
    others = [function for function in given.functions_.values() if function is not hand]
    return ir.Program([changed, *others], given.name, given.span)


def compile_into(folder: Path, *arguments: object) -> CompiledProgram:
    return ir.compile(program(*arguments), folder, dump_passes=False)  # type: ignore[arg-type]


def result_of(compiled: CompiledProgram) -> float:
    return float(compiled(np.zeros((16, 16), np.float32))[3, 4])


def starts_of_load(compiled: CompiledProgram) -> int:
    before = build.compiler_runs()
    CompiledProgram.from_dir(compiled.output_dir).load()
    return build.compiler_runs() - before


def test_example_runs() -> None:
    done = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "largest error against numpy" in done.stdout


def test_hand_written_kernel_runs_between_generated_ones(source: Path, tmp_path: Path) -> None:
    compiled = compile_into(tmp_path / "build", source)
    # The second task does not wait for the first one to write its input; one worker keeps the order.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYPTO_WORKERS", "1")
        assert result_of(compiled) == 11
    rows = [row for row in load_kernel_config(tmp_path / "build").kernels if row.external]
    assert [row.name for row in rows] == ["hand", "hand"]
    assert all(row.source == source and row.code_name is None for row in rows)
    assert rows[0].include_dirs == (tmp_path / "five", tmp_path / "seven")
    chip = compiled.load()
    hands = [chip.child(i) for i in range(chip.child_count) if chip.child(i).name == "hand"]
    assert hands[0].binary == hands[1].binary and hands[0].signature != hands[1].signature


def test_headers_that_the_source_reaches_are_part_of_its_key(source: Path, tmp_path: Path) -> None:
    compiled = compile_into(tmp_path / "build", source)
    compiled.load()
    assert starts_of_load(compiled) == 0
    (tmp_path / "seven" / "amount.h").write_text(amount(8))
    assert starts_of_load(compiled) == 0, "the first folder has the header that counts"
    (tmp_path / "five" / "amount.h").write_text(amount(6))
    assert starts_of_load(compiled) == 1, "the hand-written code only, once for its two rows"
    assert result_of(CompiledProgram.from_dir(compiled.output_dir)) in (7, 13)
    source.write_text(ADD + f"// {uuid.uuid4()}\nextern const int k{uuid.uuid4().hex} = 1;\n")
    assert starts_of_load(compiled) == 1


def test_path_and_order_of_include_dirs_are_its_identity(source: Path, tmp_path: Path) -> None:
    first = compile_into(tmp_path / "a", source)
    first.load()
    copied = source.with_name("copied.cpp")
    shutil.copy(source, copied)
    assert starts_of_load(compile_into(tmp_path / "b", copied)) == 1, "equal text, another file"
    other = compile_into(tmp_path / "c", source, ("../seven", "../five"))
    assert starts_of_load(other) == 1, "another order"
    same = compile_into(tmp_path / "d", source)
    assert starts_of_load(same) == 0


def test_failure_is_reported_once_with_code_ids_and_path(source: Path, tmp_path: Path) -> None:
    (tmp_path / "five" / "amount.h").write_text("#define AMOUNT no_such_number\n")
    compiled = compile_into(tmp_path / "build", source)
    with pytest.raises(CompileError) as caught:
        compiled.load()
    text = str(caught.value)
    assert text.count("the C++ compiler failed on") == 1
    assert "failed on kernel 'hand' (ids 1, 2)" in text
    assert f"source: {source}" in text and "no_such_number" in text


def load_with(source: Path, tmp_path: Path, text: str) -> CompiledProgram:
    source.write_text(f"// {uuid.uuid4()}\n" + text)
    return compile_into(tmp_path / "build", source)


def test_source_without_the_entry_is_told_what_to_define(source: Path, tmp_path: Path) -> None:
    compiled = load_with(source, tmp_path, "void other() {}\n")
    with pytest.raises(
        ValueError, match=r"kernel 'hand' exports no 'kernel_entry'; .* void kernel_entry\(int64_t\* args\)"
    ):
        result_of(compiled)


def test_undefined_function_names_kernel_and_symbol(source: Path, tmp_path: Path) -> None:
    text = '#include <stdint.h>\nvoid lost();\nextern "C" void kernel_entry(int64_t*) { lost(); }\n'
    with pytest.raises(RuntimeError, match=r"cannot load kernel 'hand': .*lost"):
        result_of(load_with(source, tmp_path, text))


def test_exception_and_failed_check_end_the_run_with_an_error(source: Path, tmp_path: Path) -> None:
    text = '#include <stdexcept>\n#include <stdint.h>\nextern "C" void kernel_entry(int64_t*) { throw '
    compiled = load_with(source, tmp_path, text + 'std::runtime_error("no such filter"); }\n')
    with pytest.raises(RuntimeError, match=r"hand.*no such filter"):
        result_of(compiled)


def test_crash_in_a_hand_written_kernel_names_it(source: Path, tmp_path: Path) -> None:
    text = '#include <stdint.h>\nextern "C" void kernel_entry(int64_t*) { *(volatile int*)nullptr = 1; }\n'
    compiled = load_with(source, tmp_path, text)
    with pytest.raises(RuntimeError, match=r"hand"):
        result_of(compiled)


def test_a_kernel_that_uses_up_its_stack_is_an_error_of_the_run(source: Path, tmp_path: Path) -> None:
    deep = "int deep(volatile int* p) { volatile int a[999]; a[0] = *p; return deep(a) + a[1]; }"
    text = f'#include <stdint.h>\n{deep}\nextern "C" void kernel_entry(int64_t*) {{ int n = 1; deep(&n); }}\n'
    compiled = load_with(source, tmp_path, text)
    for _ in range(3):
        with pytest.raises(RuntimeError, match=r"hand.*no stack left"):
            result_of(compiled)


def test_typed_arguments_check_their_bounds_in_checked_mode(source: Path, tmp_path: Path) -> None:
    compiled = load_with(source, tmp_path, ADD.replace("x(i, j) + AMOUNT", "x(i, j + 1)"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYPTO_CHECKED", "1")
        with pytest.raises(RuntimeError, match=r"hand.*index out of range"):
            result_of(compiled)


def test_functions_of_a_kernel_are_its_own(source: Path, tmp_path: Path) -> None:
    """Whatever the program that loads it exports under the same name."""
    own = 'extern "C" __attribute__((noinline)) int Py_IsInitialized() { asm(""); return 40; }\n'
    compiled = load_with(source, tmp_path, own + ADD.replace("AMOUNT;", "Py_IsInitialized();"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYPTO_WORKERS", "1")
        assert result_of(compiled) == 81


def test_bundle_carries_hand_written_kernels(source: Path, tmp_path: Path) -> None:
    write_bundle(compile_into(tmp_path / "build", source), tmp_path / "bundle")
    shutil.rmtree(tmp_path / "build")
    source.unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYPTO_WORKERS", "1")
        assert load_bundle(tmp_path / "bundle")(np.zeros((16, 16), np.float32))[0, 0] == 11


def test_hand_written_cube_and_vector_kernels_are_one_task(tmp_path: Path) -> None:
    """Its result is the first of the parameters that its cube kernel writes."""
    for name, slot, factor in (("cube", 1, 2), ("vector", 2, 3)):
        (tmp_path / f"{name}.cpp").write_text(
            '#include "pypto_args.h"\n'
            'extern "C" void kernel_entry(int64_t* args) {\n'
            "    pypto::TensorArg<const float, 2> x(args, 0);\n"
            f"    pypto::TensorArg<float, 2> out(args, {slot});\n"
            f"    for (int i = 0; i < 256; i++) out(i / 16, i % 16) = {factor} * x(i / 16, i % 16);\n}}\n"
        )

    @pl.program
    class Pair:
        @pl.function(type=pl.FunctionType.AIC, external_source=tmp_path / "cube.cpp")
        def cube(
            self,
            x: pl.Tensor[[16, 16], pl.FP32],
            a: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
            b: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
        ) -> pl.Tensor[[16, 16], pl.FP32]: ...

        @pl.function(type=pl.FunctionType.AIV, external_source=tmp_path / "vector.cpp")
        def vector(
            self,
            x: pl.Tensor[[16, 16], pl.FP32],
            a: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
            b: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
        ): ...

        @pl.function(type=pl.FunctionType.Group)
        def both(
            self,
            x: pl.Tensor[[16, 16], pl.FP32],
            a: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
            b: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
        ) -> pl.Tensor[[16, 16], pl.FP32]:
            a = self.cube(x, a, b)
            self.vector(x, a, b)
            return a

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self,
            x: pl.Tensor[[16, 16], pl.FP32],
            a: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
            b: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
        ) -> pl.Tensor[[16, 16], pl.FP32]:
            a = self.both(x, a, b)
            return a

    compiled = ir.compile(Pair, tmp_path / "build", dump_passes=False)
    a, b = np.zeros((2, 16, 16), np.float32)
    compiled(np.ones((16, 16), np.float32), a, b)
    assert (a == 2).all() and (b == 3).all()
    assert (tmp_path / "build" / "orchestration" / "main.cpp").read_text().count("rt_submit_task(") == 1


@pytest.mark.parametrize("value", ["five", '"five"', "[1]", "{}"])
def test_include_dirs_that_are_no_list_of_paths_are_refused(source: Path, tmp_path: Path, value: str) -> None:
    changed = with_include_dirs(program(source), value)
    with pytest.raises(ValueError, match="'external_include_dirs' of 'hand' must be a JSON list of paths"):
        ir.compile(changed, tmp_path / "build", dump_passes=False)
