"""Build directories run again: after edits, with test data, by their own script, and without metadata."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pypto import ir
from pypto.runtime import execute_compiled
from pypto.runtime.assemble import compile_and_assemble
from pypto.runtime.compiled_program import CompiledProgram
from pypto.runtime.debug import invalidate_binary_cache, rebuild_kernel_cpp_from_pto, replay, write_run_script
from pypto.runtime.device_runner import compile_and_assemble, execute_on_device
from pypto.runtime.runner import _DfxOpts
from tests.runtime.programs import AddScaled

ONES = np.ones((32, 64), np.float32)
GOLDEN = """
import numpy as np
__outputs__ = ["out"]
RTOL = ATOL = 1e-5
def generate_inputs(params):
    ones = np.ones((32, 64), np.float32)
    return [("a", ones), ("b", ones), ("out", np.zeros_like(ones))]
def compute_golden(tensors, params):
    tensors["out"][:] = (tensors["a"] + tensors["b"]) * 3
"""


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> CompiledProgram:
    return ir.compile(AddScaled, tmp_path_factory.mktemp("original"), dump_passes=False)


@pytest.fixture
def build(original: CompiledProgram, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original.output_dir, tmp_path / "copy"))


def edit(build: Path) -> None:
    """Make the second kernel multiply by 5."""
    source = build / "kernels" / "aiv" / "triple.cpp"
    text = source.read_text()
    assert text.count("3.0f") == 1
    source.write_text(text.replace("3.0f", "5.0f"))


def test_replay_gives_the_result_of_edited_source(build: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = np.zeros_like(ONES)
    assert replay(build, ONES, ONES, out) is None
    assert out[0, 0] == 6
    printed = capsys.readouterr().out
    assert "[cpp->.so] no cached binaries to invalidate" in printed
    assert "[execute] running on device..." in printed
    edit(build)
    (build / "cache" / "old.bin").write_bytes(b"x")
    replay(build, ONES, ONES, out)
    assert out[0, 0] == 10
    assert "invalidated 1 cached binary file(s); cpp will rebuild" in capsys.readouterr().out
    assert invalidate_binary_cache(build) == 0 and rebuild_kernel_cpp_from_pto(build) == []


def test_replay_validates_with_the_golden_of_the_directory(build: Path) -> None:
    out = np.zeros_like(ONES)
    with pytest.raises(FileNotFoundError, match=r"golden\.py"):
        replay(build, ONES, ONES, out, validate=True)
    (build / "golden.py").write_text(GOLDEN)
    replay(build, ONES * 2, ONES, out, validate=True)
    assert out[0, 0] == 9
    with pytest.raises(ValueError, match="3 inputs, but 2 tensors"):
        replay(build, ONES, ONES, validate=True)
    with pytest.raises(TypeError, match="'b' must be a tensor"):
        replay(build, ONES, 3, out, validate=True)
    edit(build)
    with pytest.raises(AssertionError, match="'out'"):
        replay(build, ONES, ONES, out, validate=True)


def test_replay_refuses_what_is_no_build_directory(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="is not a build_output directory"):
        replay(tmp_path)


def test_the_script_of_a_build_runs_it_wherever_it_is(build: Path) -> None:
    script = build / "debug" / "run.py"
    words = [sys.executable, str(script), "--scope-stats"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert (build / "dfx_outputs" / "scope_stats" / "scope_stats.jsonl").is_file()
    (build / "golden.py").write_text(GOLDEN)
    edit(build)
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0 and "AssertionError" in done.stderr
    done = subprocess.run([*words, "--no-validate"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_the_script_is_left_out_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("0", "false", "no"):
        monkeypatch.setenv("PYPTO_EMIT_DEBUG_RUNNER", value)
        ir.compile(AddScaled, tmp_path, dump_passes=False)
        assert not (tmp_path / "debug").exists()
    monkeypatch.setenv("PYPTO_EMIT_DEBUG_RUNNER", "1")
    ir.compile(AddScaled, tmp_path, dump_passes=False)
    assert (tmp_path / "debug" / "run.py").is_file()


def test_the_script_has_a_value_for_each_kind_of_parameter(tmp_path: Path) -> None:
    kinds = ir.ParamDirection
    from pypto.core.dtype import DataType
    from pypto.runtime.metadata import ParamInfo

    infos = [
        ParamInfo("x", kinds.In, [4, -1], DataType.BF16),
        ParamInfo("i", kinds.InOut, [2], DataType.INT32),
        ParamInfo("m", kinds.In, [2], DataType.BOOL),
        ParamInfo("o", kinds.Out, [2], DataType.FP32),
        ParamInfo("n", kinds.In, None, DataType.INT64),
    ]
    path = write_run_script(tmp_path, infos, platform="a5sim")
    scope: dict[str, object] = {"__name__": "script", "__file__": str(path)}
    exec(path.read_text(), scope)
    values = scope["_inline_inputs"]()  # type: ignore[operator]
    assert [getattr(v, "shape", None) for v in values] == [(4, 1), (2,), (2,), (2,), None]
    assert [str(v.dtype) for v in values[:-1]] == ["bfloat16", "int32", "bool", "float32"]
    assert "'a5sim'" in path.read_text()


def test_a_directory_without_metadata_runs_on_arguments_as_they_are(build: Path) -> None:
    (build / "compiled_meta.json").unlink()
    out = np.zeros_like(ONES)
    assert execute_compiled(build, [ONES, ONES, out]) is None
    assert out[0, 0] == 6
    with pytest.raises(TypeError, match="argument 1"):
        execute_compiled(build, [ONES, 3, out])
    with pytest.raises(RuntimeError, match="expects 3 arguments, got 4"):
        execute_compiled(build, [ONES, ONES, out, ctypes.c_int32(1)])


def test_prepared_arguments_run_on_loaded_code(original: CompiledProgram, tmp_path: Path) -> None:
    chip, runtime_name, _ = compile_and_assemble(original.output_dir, "a2a3sim")
    out = np.zeros_like(ONES)
    prepared = original.build_orch_args(ONES, ONES, out)
    execute_on_device(chip, prepared, "a2a3sim", runtime_name, 0)
    assert out[0, 0] == 6
    with pytest.raises(ValueError, match="level=2"):
        execute_on_device(chip, prepared, "a2a3sim", runtime_name, 0, level=3)
    dfx = _DfxOpts(enable_dep_gen=True)
    with pytest.raises(ValueError, match="output prefix"):
        execute_on_device(chip, prepared, "a2a3sim", runtime_name, 0, dfx=dfx)
    execute_on_device(chip, prepared, "a2a3sim", runtime_name, 0, dfx=dfx, output_prefix=tmp_path)
    assert (tmp_path / "dfx_outputs" / "deps.json").is_file()
    with pytest.raises(ValueError, match="Invalid platform"):
        execute_on_device(chip, prepared, "b1", runtime_name, 0)


def test_kernels_are_generated_by_as_many_threads_as_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = []
    for workers in ("1", "4"):
        monkeypatch.setenv("PYPTO_CODEGEN_MAX_WORKERS", workers)
        compiled = ir.compile(AddScaled, tmp_path / workers, dump_passes=True)
        files = sorted(Path(os.fspath(compiled)).rglob("*.cpp"))
        texts.append([path.read_text() for path in files])
    assert texts[0] == texts[1] and len(texts[0]) == 3
    monkeypatch.setenv("PYPTO_CODEGEN_MAX_WORKERS", "none")
    with pytest.raises(ValueError, match="PYPTO_CODEGEN_MAX_WORKERS must be a positive number"):
        ir.compile(AddScaled, tmp_path / "refused", dump_passes=True)


def test_dumped_stages_are_validated_without_code(tmp_path: Path) -> None:
    compiled = ir.compile(AddScaled, tmp_path)
    tensors = {"a": ONES, "b": 2 * ONES, "out": np.zeros_like(ONES)}
    compiled.validate_ir(tensors, {"out": 9 * ONES})
    assert not tensors["out"].any()
    stages = sorted((tmp_path / "passes_dump").glob("*.py"))
    text = stages[5].read_text()
    assert "3.0" in text
    stages[5].write_text(text.replace("3.0", "4.0"))
    with pytest.raises(AssertionError, match=stages[5].name):
        compiled.validate_ir(tensors, {"out": 9 * ONES})
    with pytest.raises(KeyError, match="'b'; given: a"):
        compiled.validate_ir({"a": ONES}, {})
    with pytest.raises(ValueError, match="no parameter z"):
        compiled.validate_ir(tensors, {"z": ONES})
    with pytest.raises(ValueError, match="negative"):
        compiled.validate_ir(tensors, {}, rtol=-1)
    with pytest.raises(TypeError, match="'a' must be a tensor"):
        compiled.validate_ir({**tensors, "a": "x"}, {})
    shutil.rmtree(tmp_path / "passes_dump")
    with pytest.raises(FileNotFoundError, match="dump_passes"):
        compiled.validate_ir(tensors, {})
