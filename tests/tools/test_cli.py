"""The `pypto` command, run as a user runs it."""
# ruff: noqa: E501  (programs as users write them)

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import pypto.language as pl
from pypto.runtime.store import Store
from pypto.tools.cli import app

PROGRAM = """
import numpy as np
import pypto.language as pl

M = pl.dynamic("M")

@pl.program
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def first(self, x: pl.Tensor[[M, 32], pl.FP32], out: pl.Out[pl.Tensor[[M, 32], pl.FP32]]) -> pl.Tensor[[M, 32], pl.FP32]:
        t = pl.load(x, [0, 0], [16, 32])
        out = pl.store(pl.add(t, 1.0), [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.InCore)
    def second(self, x: pl.Tensor[[M, 32], pl.FP32], out: pl.Out[pl.Tensor[[M, 32], pl.FP32]]) -> pl.Tensor[[M, 32], pl.FP32]:
        t = pl.load(x, [0, 0], [16, 32])
        out = pl.store(pl.add(t, 1.0), [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[M, 32], pl.FP32], a: pl.Out[pl.Tensor[[M, 32], pl.FP32]], b: pl.Out[pl.Tensor[[M, 32], pl.FP32]]) -> pl.Tensor[[M, 32], pl.FP32]:
        a = self.first(x, a)
        b = self.second(a, b)
        return b

def expected(x):
    return {"a": x + 1, "b": x + %s}
"""


def pypto(*args, cwd, **environment):
    command = [sys.executable, "-m", "pypto.tools.cli", *map(str, args)]
    variables = {**os.environ, **environment}
    return subprocess.run(command, cwd=cwd, env=variables, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("programs")
    (path / "good.py").write_text(PROGRAM % 2)
    (path / "wrong.py").write_text(PROGRAM % 3)
    (path / "unnamed.py").write_text(
        PROGRAM.partition("def expected")[0] + "def expected(x):\n    return x\n"
    )
    (path / "broken.py").write_text((PROGRAM % 2).replace("pl.add(t, 1.0)", "pl.ad(t, 1.0)"))
    (path / "crash.py").write_text("import pypto.language as pl\nvalue = nowhere\n")
    (path / "empty.py").write_text("x = 1\n")
    (path / "unclosed.py").write_text("x = 1\ny = (\n")
    (path / "no_dtype.py").write_text("import pypto.language as pl\nvalue = pl.FLOAT32\n")
    return path


def test_run_prints_shapes_time_and_statistics_and_checks(folder):
    result = pypto("run", "good.py", "--dim", "M=16", "--check", cwd=folder)
    assert result.returncode == 0, result.stderr
    assert "[16, 32]" in result.stdout and "float32" in result.stdout
    assert "check passed: a, b" in result.stdout


def test_run_takes_and_saves_arrays(folder):
    np.savez(folder / "in.npz", x=np.full((16, 32), 5, np.float32))
    result = pypto(
        "run", "good.py:Program", "--dim", "M=16", "--inputs", "in.npz", "--save", "out.npz", cwd=folder
    )
    assert result.returncode == 0, result.stderr
    assert (np.load(folder / "out.npz")["b"] == 7).all()


def test_an_array_that_is_no_parameter_is_refused_with_the_parameters(folder):
    np.savez(folder / "other.npz", x=np.zeros((16, 32), np.float32), X=np.zeros(1), q=np.zeros(1))
    result = pypto("run", "good.py", "--dim", "M=16", "--inputs", "other.npz", cwd=folder)
    assert result.returncode == 1
    assert "no parameters of the program: X, q; the parameters are x, a, b" in result.stderr


def test_failed_check_exits_with_one_and_names_the_array(folder):
    result = pypto("run", "wrong.py", "--dim", "M=16", "--check", cwd=folder)
    assert result.returncode == 1
    assert "check failed" in result.stderr and "b" in result.stderr


def test_expected_has_to_name_its_outputs(folder):
    result = pypto("run", "unnamed.py", "--dim", "M=16", "--check", cwd=folder)
    assert result.returncode == 1
    assert "return the outputs by name" in result.stderr


@pytest.mark.parametrize(
    ("args", "status", "message"),
    [
        (["run", "good.py", "--dim", "Q=3"], 1, "no dynamic dimension 'Q'; it has M"),
        (["run", "good.py"], 1, "M (x.0, a.0, b.0). Add --dim M=N\n"),
        (["show", "good.py", "--after", "Simplify:3"], 1, "Simplify runs 2 times"),
        (["run", "good.py", "--dim", "M"], 2, "NAME=N"),
        (["run", "missing.py"], 1, "There is no file missing.py"),
        (["run", "empty.py"], 1, "defines no program"),
        (["run", "empty.py"], 1, "a class decorated with @pl.program"),
        (["run", "unclosed.py"], 1, "unclosed.py:2: SyntaxError"),
        (["run", "no_dtype.py"], 1, "no_dtype.py:2: AttributeError"),
        (["run", "no_dtype.py"], 1, "Did you mean 'pl.FP32'?"),
        (["run", "good.py", "--dim", "M=16", "--inputs", "good.py"], 1, "good.py is no archive of arrays"),
        (["run", "good.py:Other"], 1, "defines no program 'Other'"),
        (["run", "crash.py"], 1, "crash.py:2: NameError"),
        (["run", "good.py", "--inputs", "no.npz"], 1, "There is no file no.npz"),
        (["show", "good.py", "--after", "Nothing"], 1, "There is no pass 'Nothing'"),
        (["frobnicate"], 2, "No such command"),
    ],
)
def test_mistakes_are_messages_not_tracebacks(folder, args, status, message):
    result = pypto(*args, cwd=folder)
    assert result.returncode == status
    assert message in result.stderr.replace("│", "")
    assert "Traceback" not in result.stderr


def test_error_in_the_program_shows_its_line_with_a_caret(folder):
    result = pypto("run", "broken.py", "--dim", "M=16", cwd=folder)
    assert result.returncode == 1
    assert "Unknown operation 'pl.ad'" in result.stderr
    assert "^^^^^" in result.stderr and "pl.ad(t, 1.0)" in result.stderr


def test_show_prints_the_program_after_a_pass_in_either_spelling(folder):
    camel = pypto("show", "good.py", "--after", "DeduplicateOutlinedKernels", cwd=folder)
    snake = pypto("show", "good.py", "--after", "deduplicate_outlined_kernels", cwd=folder)
    assert camel.stdout == snake.stdout
    assert camel.stdout.count("def ") == 2 and "# pypto.program: Program" in camel.stdout


def test_show_numbers_the_runs_of_a_pass_and_says_which_one_it_shows(folder):
    bare, first, second = (
        pypto("show", "good.py", "--after", name, cwd=folder)
        for name in ("Simplify", "Simplify:1", "simplify:2")
    )
    assert "Simplify runs 2 times; this is after the first, as Simplify:1" in bare.stderr
    assert bare.stdout == first.stdout != second.stdout and first.stderr == second.stderr == ""


def test_what_show_prints_of_a_program_for_several_ranks_is_a_program_file(folder):
    (folder / "ranks.py").write_text(JIT)
    shown = pypto("show", "ranks.py:host", cwd=folder).stdout
    assert "import pypto.language.distributed as pld\n" in shown
    printed = pl.parse(shown).as_python()
    assert "distributed" not in printed and pl.parse(printed).as_python() == printed
    (folder / "shown.py").write_text(shown)
    assert pypto("show", "shown.py", cwd=folder).stdout == shown


def test_show_lists_the_passes(folder):
    names = pypto("show", "good.py", "--passes", cwd=folder).stdout.split()
    assert names.index("OutlineClusterScopes") + 1 == names.index("DeduplicateOutlinedKernels")


def test_explain_says_what_was_merged_into_what(folder):
    result = pypto("explain", "good.py", cwd=folder)
    assert result.returncode == 0, result.stderr
    assert "2 kernels: 1 merged, 1 definition left to compile" in result.stdout
    (row,) = [line for line in result.stdout.splitlines() if "second" in line]
    assert [cell.strip() for cell in row.strip("│").split("│")] == ["first", "2", "second"]
    assert "left alone: main" in result.stdout


def test_explain_tells_what_to_change_to_get_a_merge(folder):
    (folder / "near.py").write_text((PROGRAM % 2).replace("pl.add(t, 1.0)", "pl.add(t, 2.0)", 1))
    result = pypto("explain", "near.py", cwd=folder)
    assert "2 kernels: 0 merged" in result.stdout and "Shared definitions" not in result.stdout
    assert "(line 12 against line 18): 2.0 against 1.0; pass the number as a scalar" in result.stdout


def test_explain_shows_types_with_their_brackets(folder):
    text = PROGRAM % 2
    for name, dtype in (("first", "INDEX"), ("second", "INT64")):
        text = text.replace(f"def {name}(self, ", f"def {name}(self, n: pl.Scalar[pl.{dtype}], ")
        text = text.replace(f"self.{name}(", f"self.{name}(k, ")
    text = text.replace("def main(self, ", "def main(self, k: pl.Scalar[pl.INDEX], ")
    (folder / "scalars.py").write_text(text.replace("pl.INT64]", "pl.INT32]"))
    result = pypto("explain", "scalars.py", cwd=folder)
    assert "'n' is pl.Scalar[pl.INDEX] against pl.Scalar[pl.INT32]" in result.stdout, result


def test_a_file_may_be_named_like_a_module_of_python(folder):
    (folder / "inner").mkdir()
    (folder / "inner" / "types.py").write_text(PROGRAM % 2)
    assert pypto("explain", "inner/types.py", cwd=folder).returncode == 0


def test_explain_all_has_a_row_for_every_function(folder):
    result = pypto("explain", "good.py", "--all", cwd=folder)
    assert "merged into first" in result.stdout and "not_a_candidate_kind" in result.stdout


def test_a_function_that_builds_the_program_is_asked_for_it(folder):
    builder = "\n\ndef build(extra: int = 1) -> ir.Program:\n    return Hidden[0]\n"
    hidden = (PROGRAM % 2).replace(
        "def expected", "from pypto import ir\nHidden = [Program]\ndel Program\n\ndef expected"
    )
    (folder / "built.py").write_text(hidden + builder)
    for spec in ("built.py", "built.py:build"):
        assert "1 merged" in pypto("explain", spec, cwd=folder).stdout
    missing = pypto("explain", "built.py:other", cwd=folder)
    assert missing.returncode == 1 and "it has build" in missing.stderr


JIT = """
import pypto.language as pl
import pypto.language.distributed as pld

@pl.jit
def chip(x: pl.Tensor[[8, 8], pl.FP32], out: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.add(x, 1.0)
    return out

@pl.jit
def bare(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    return out

@pl.jit.host
def host(x: pl.Tensor[[1, 8, 8], pl.FP32], out: pl.Out[pl.Tensor[[1, 8, 8], pl.FP32]]):
    for r in pl.range(pld.world_size()):
        chip(x[r], out[r], device=r)

def expected(x):
    return {"out": x + 1}
"""


def test_jit_functions_run_with_the_shapes_of_their_annotations(folder):
    (folder / "jitted.py").write_text(JIT)
    for name in ("chip", "host"):
        assert "check passed" in pypto("run", f"jitted.py:{name}", "--check", cwd=folder).stdout
    bare = pypto("run", "jitted.py:bare", cwd=folder)
    assert bare.returncode == 1 and "bare 'pl.Tensor' annotation" in bare.stderr
    assert "Traceback" not in bare.stderr
    bundled = pypto("bundle", "jitted.py:host", "-o", "ranks", cwd=folder)
    assert bundled.returncode == 1 and "for several ranks cannot be bundled" in bundled.stderr


def test_compile_writes_an_artefact(folder):
    result = pypto("compile", "good.py", "-o", "built", cwd=folder)
    assert result.returncode == 0, result.stderr
    assert (folder / "built" / "kernel_config.py").exists()


def test_built_directories_and_bundles_run_without_the_program(folder):
    assert pypto("compile", "good.py", "-o", "build", cwd=folder).returncode == 0
    bundled = pypto("bundle", "good.py:Program", "-o", "bundle", cwd=folder)
    assert bundled.returncode == 0, bundled.stderr
    assert "run it with: pypto run bundle" in bundled.stdout
    np.savez(folder / "five.npz", x=np.full((16, 32), 5, np.float32))
    places, symbol = ["--dim", "a.0=16", "--dim", "b.0=16"], ["--dim", "M=16"]
    for directory, outputs in (("build", places), ("bundle", places), ("bundle", symbol)):
        result = pypto("run", directory, "--inputs", "five.npz", "--save", "got.npz", *outputs, cwd=folder)
        assert result.returncode == 0, result.stderr
        assert (np.load(folder / "got.npz")["b"] == 7).all()


def test_a_portable_bundle_runs_where_there_is_no_compiler(folder):
    bundled = pypto("bundle", "good.py:Program", "-o", "portable", "--portable", cwd=folder)
    assert bundled.returncode == 0, bundled.stderr
    np.savez(folder / "five.npz", x=np.full((16, 32), 5, np.float32))
    shapes = ["--dim", "a.0=16", "--dim", "b.0=16"]
    nothing = {"PATH": "/nowhere", "PYPTO_CXX": "/nowhere/c++", "PYPTO_CACHE_DIR": str(folder / "no-store")}
    result = pypto(
        "run", "portable", "--inputs", "five.npz", "--save", "got.npz", *shapes, cwd=folder, **nothing
    )
    assert result.returncode == 0, result.stderr
    assert (np.load(folder / "got.npz")["b"] == 7).all() and not (folder / "no-store").exists()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["run", "bundled", "--check"], "--check needs a program in a Python file"),
        (["run", "bundled", "-o", "x"], "bundled is built already"),
        (["run", "bundled"], "M (x.0, a.0, b.0). Add --dim M=N\n"),
        (["run", "."], "no compiled_meta.json in"),
        (["bundle", "good.py", "-o", "."], "is not empty and holds no bundle"),
        (["bundle", "good.py", "-o", "other", "--entry", "none"], "There is no orchestration 'none'"),
        (["run", "torn"], "prebuilt.json cannot be read as a manifest"),
    ],
)
def test_mistakes_with_directories_are_messages(folder, args, message):
    if not (folder / "bundled").exists():
        pypto("bundle", "good.py", "-o", "bundled", cwd=folder)
        (folder / "torn").mkdir()
        (folder / "torn" / "prebuilt.json").write_text('{"schema": 1')
    result = pypto(*args, cwd=folder)
    assert (result.returncode, "Traceback" in result.stderr) == (1, False)
    assert message in result.stderr


def test_cache_shows_prunes_and_verifies_the_store(tmp_path, monkeypatch):
    monkeypatch.setenv("PYPTO_CACHE_DIR", str(tmp_path))

    def cache(*args):
        return CliRunner().invoke(app, ["cache", *args])

    store = Store(tmp_path)
    for name, size in (("add", 3000), ("mul", 2000)):
        store.get(
            f"key{name}", f"kernel '{name}' (id 0)", lambda path, size=size: path.write_bytes(b"x" * size)
        )
    assert "kept 2 entries, 4.9 KiB that running processes use" in cache("clear").stdout
    store.close()
    shown = cache()
    assert "'add' (id 0)" in shown.stdout and "2.9 KiB" in shown.stdout
    assert f"2 entries, 4.9 KiB in {tmp_path}" in shown.stdout
    assert "2 entries, 4.9 KiB sound, 0 damaged" in cache("verify").stdout
    assert "removed 0 entries" in cache("prune", "--older-than", "1", "--max-size", "1M").stdout
    assert "removed 1 entry, 2.9 KiB" in cache("prune", "--max-size", "2K").stdout
    (tmp_path / "objects" / "ke" / "keymul.so").write_bytes(b"?")
    damaged = cache("verify")
    assert (damaged.exit_code, "damaged, removed: kernel 'mul'" in damaged.stdout) == (1, True)
    assert "removed 0 entries, 0 B" in cache("clear").stdout
    assert cache("prune").exit_code == 2 and cache("prune", "--max-size", "big").exit_code == 2


def test_help_names_every_command(folder):
    text = pypto("--help", cwd=folder).stdout
    for command in ("run", "compile", "bundle", "cache", "show", "explain"):
        assert command in text
