"""`ir.compile` and what it returns: directories, calls, reloading, several orchestrations."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pypto.language as pl
from pypto import backend, ir
from pypto.backend import BackendType
from pypto.passes.context import MemoryPlanner, PassContext, VerificationLevel
from pypto.runtime import CompiledProgram, RunConfig, build, execute_compiled, run
from pypto.runtime.metadata import read_sidecar
from tests.runtime.permissions import read_only
from tests.runtime.programs import AddScaled, TwoEntries

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def backend_of_its_own() -> Iterator[None]:
    backend.reset_for_testing()
    yield
    backend.reset_for_testing()


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> CompiledProgram:
    backend.reset_for_testing()
    return ir.compile(AddScaled, tmp_path_factory.mktemp("add_scaled"), dump_passes=False)


def arrays() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((32, 64)).astype(np.float32) for _ in range(2))
    return a, b, (a + b) * np.float32(3)


# ---------------------------------------------------------------- calls


def test_call_in_place_and_with_a_returned_output(compiled: CompiledProgram) -> None:
    a, b, expected = arrays()
    out = np.zeros_like(a)
    assert compiled(a, b, out) is None
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(compiled(a, b), expected)
    np.testing.assert_array_equal(compiled(a, b, config=RunConfig()), expected)


def test_call_signature_is_the_users(compiled: CompiledProgram) -> None:
    assert compiled.param_names == ["a", "b", "out"]
    assert compiled.output_indices == [2] and compiled.has_return
    assert compiled.orchestration_names == []
    infos, outputs, returns = compiled._get_metadata()
    assert [i.shape for i in infos] == [[32, 64]] * 3 and outputs == [2] and len(returns) == 1
    with pytest.raises(TypeError, match=r"expects 3 \(in-place\) or 2 \(return\) arguments, got 1"):
        compiled(np.zeros((32, 64), np.float32))
    with pytest.raises(TypeError, match=r"unexpected keyword argument '.*by position.*Parameters: \["):
        compiled(*arrays(), out=None)


def test_loading_happens_once_and_compiles_each_code_once(compiled: CompiledProgram) -> None:
    chip = compiled.load()
    before = build.compiler_runs()
    assert compiled.load() is chip is compiled.chip_callable and chip.program is chip.program
    assert compiled.runtime_name == "tensormap_and_ringbuffer" == compiled.runtime_config["runtime"]
    again = ir.compile(AddScaled, Path(compiled.output_dir).parent / "again", dump_passes=False)
    again.load()
    assert build.compiler_runs() == before, "an unchanged program is in the store"


def test_program_stands_for_its_directory(compiled: CompiledProgram) -> None:
    folder = str(compiled.output_dir)
    assert os.fspath(compiled) == str(compiled) == folder
    assert compiled == folder and compiled == compiled.output_dir and hash(compiled) == hash(folder)
    assert repr(compiled) == f"CompiledProgram({folder})"
    assert compiled.platform == "a2a3sim" and compiled.program is AddScaled


def test_prepared_arguments_tell_the_style(compiled: CompiledProgram) -> None:
    a, b, out = arrays()
    bound, coerced, returns = compiled.build_orch_args(a, b, out)
    assert bound.addresses[0] == a.ctypes.data and coerced[2] is out and not returns
    assert compiled.build_orch_args(a, b)[2]


def test_diagnostics_are_written_on_request(compiled: CompiledProgram) -> None:
    a, b, expected = arrays()
    result = compiled(a, b, config=RunConfig(enable_dep_gen=True, enable_chip_swimlane=1))
    np.testing.assert_array_equal(result, expected)
    folder = compiled.output_dir / "dfx_outputs"
    graph = json.loads((folder / "deps.json").read_text())
    assert [t["name"] for t in graph["tasks"]] == ["add", "triple"] and graph["edges"] == [[0, 1]]
    events = json.loads((folder / "chip_swimlane_records.json").read_text())["traceEvents"]
    assert sorted(e["name"] for e in events) == ["add", "triple"]


# ---------------------------------------------------------------- reloading


def test_arrays_that_disagree_about_a_symbol_are_refused_also_after_reloading(tmp_path: Path) -> None:
    text = """
M = pl.dynamic("M")

@pl.program
class Sum:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[M, 16], pl.FP32], out: pl.Out[pl.Tensor[[M, 16], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            out[0:16, :] = pl.add(a[0:16, :], 1.0)
"""
    ir.compile(pl.parse_program(text), tmp_path, dump_passes=False)
    reloaded = CompiledProgram.from_dir(tmp_path)
    with pytest.raises(ValueError, match="'out' has extent 16 in dimension 0, but M is 32 in parameter 'a'"):
        reloaded(np.zeros((32, 16), np.float32), np.zeros((16, 16), np.float32))


def test_reloaded_directory_runs_without_the_program(compiled: CompiledProgram, tmp_path: Path) -> None:
    compiled.load()
    folder = tmp_path / "moved"
    shutil.copytree(compiled.output_dir, folder)
    before = build.compiler_runs()
    reloaded = CompiledProgram.from_dir(folder)
    a, b, expected = arrays()
    np.testing.assert_array_equal(reloaded(a, b), expected)
    assert reloaded.program is None and reloaded.param_names == ["a", "b", "out"]
    assert build.compiler_runs() == before
    assert CompiledProgram.from_dir(folder, platform="a5sim").backend_type is BackendType.Ascend950


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(schema=2), "Incompatible"),
        (lambda c: c.update(schema=True), "wrong value for 'schema'"),
        (lambda c: c.pop("params"), "lacks the field 'params'"),
        (lambda c: c.update(num_return_types="1"), "wrong value for 'num_return_types'"),
        (lambda c: c["params"][0].update(direction="__class__"), "unknown ParamDirection '__class__'"),
        (lambda c: c["params"][0].update(dtype="fp33"), "unknown dtype 'fp33'"),
        (lambda c: c["params"][0].update(shape=[1, True]), "wrong shape for 'a'"),
        (lambda c: c["params"].append(3), "a parameter that is not an object"),
        (lambda c: c.update(backend_type="Ascend1"), "unknown BackendType 'Ascend1'"),
        (lambda c: c.update(shared_extents=[3]), "a shared extent that is not an object"),
        (lambda c: c.update(shared_extents=[{"symbol": "M", "places": [[0]]}]), "wrong places for 'M'"),
        (lambda c: c.update(shared_extents=[{"symbol": "M", "places": [[9, 0]]}]), "wrong places for 'M'"),
        (lambda c: c.update(shared_extents=[{"symbol": "M", "places": [[0, 9]]}]), "wrong places for 'M'"),
    ],
)
def test_malformed_metadata_is_named(
    compiled: CompiledProgram, tmp_path: Path, change: Any, message: str
) -> None:
    content = json.loads((compiled.output_dir / "compiled_meta.json").read_text())
    change(content)
    (tmp_path / "compiled_meta.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=message) as caught:
        CompiledProgram.from_dir(tmp_path)
    assert "compiled_meta.json" in str(caught.value)


def test_unreadable_metadata_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="not a compiled program"):
        CompiledProgram.from_dir(tmp_path)
    for content in (b"", b"{", b"\xff\xfe", b"[]"):
        (tmp_path / "compiled_meta.json").write_bytes(content)
        with pytest.raises(ValueError, match=r"compiled_meta.json .*recompile the program"):
            CompiledProgram.from_dir(tmp_path)


def test_metadata_tells_the_signature(compiled: CompiledProgram) -> None:
    sidecar = read_sidecar(compiled.output_dir)
    assert sidecar.platform == "a2a3sim" and sidecar.backend is BackendType.Ascend910B
    assert [p.direction.name for p in sidecar.signature.params] == ["In", "In", "Out"]


def test_execute_compiled_runs_a_directory(compiled: CompiledProgram, tmp_path: Path) -> None:
    a, b, expected = arrays()
    out = np.zeros_like(a)
    execute_compiled(compiled.output_dir, [a, b, out], platform="a2a3sim", device_id=0)
    np.testing.assert_array_equal(out, expected)
    with pytest.raises(TypeError, match="unexpected keyword"):
        execute_compiled(compiled.output_dir, [a, b, out], platform="a2a3sim", speed=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="runs on 3 arguments, got 2"):
        execute_compiled(compiled.output_dir, [a, b])
    with pytest.raises(FileNotFoundError, match="not a build directory"):
        execute_compiled(tmp_path, [a, b, out], platform="a2a3sim")
    with pytest.raises(ValueError, match="level=2"):
        execute_compiled(compiled.output_dir, [a, b, out], level=3)


def test_run_compiles_and_runs(tmp_path: Path) -> None:
    a, b, expected = arrays()
    out = np.zeros_like(a)
    result = run(AddScaled, a, b, out, config=RunConfig(save_kernels_dir=str(tmp_path / "b")))
    np.testing.assert_array_equal(out, expected)
    assert result.output_dir == tmp_path / "b"
    untouched = np.zeros_like(a)
    run(AddScaled, a, b, untouched, config=RunConfig(codegen_only=True, save_kernels_dir=str(tmp_path / "c")))
    assert not untouched.any()


# ---------------------------------------------------------------- several orchestrations


def test_several_orchestrations_are_called_by_name(tmp_path: Path) -> None:
    both = ir.compile(TwoEntries, tmp_path / "both", dump_passes=False)
    x = np.ones((16, 16), np.float32)
    assert sorted(both.orchestration_names) == ["once", "twice"]
    assert (both["once"](x) == 2).all() and (both.twice(x) == 4).all()
    with pytest.raises(TypeError, match="several orchestrations; choose one by name: once, twice"):
        both(x)
    with pytest.raises(KeyError, match="No orchestration 'thrice' under"):
        both["thrice"]
    with pytest.raises(AttributeError, match="thrice"):
        _ = both.thrice
    reloaded = CompiledProgram.from_dir(tmp_path / "both")
    assert (reloaded["twice"](x) == 4).all()
    assert both["once"].chip_callable.child(0).binary == both["twice"].chip_callable.child(0).binary


def test_reused_directory_points_at_the_newest_build_only(tmp_path: Path) -> None:
    ir.compile(TwoEntries, tmp_path, dump_passes=False)
    assert not (tmp_path / "kernel_config.py").exists()
    (tmp_path / "distributed_meta.json").touch()
    (tmp_path / "keep.txt").touch()
    ir.compile(AddScaled, tmp_path, dump_passes=False)
    assert (tmp_path / "kernel_config.py").exists() and (tmp_path / "keep.txt").exists()
    assert not (tmp_path / "distributed_meta.json").exists()
    a, b, expected = arrays()
    np.testing.assert_array_equal(CompiledProgram.from_dir(tmp_path)(a, b), expected)
    ir.compile(TwoEntries, tmp_path, dump_passes=False)
    assert not (tmp_path / "kernel_config.py").exists() and not (tmp_path / "compiled_meta.json").exists()


# ---------------------------------------------------------------- arguments of compile


def test_output_directory_is_given_or_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path / "env"))
    first, second = (ir.compile(AddScaled, dump_passes=False).output_dir for _ in range(2))
    assert first != second and first.parent == second.parent == tmp_path / "env"
    assert first.name.startswith("AddScaled_")
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", "")
    monkeypatch.chdir(tmp_path)
    assert ir.compile(AddScaled, dump_passes=False).output_dir.parent == Path("build_output")


def test_output_directory_that_may_not_be_written_is_named_with_the_remedy(
    public_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYPTO_PROG_BUILD_DIR", raising=False)
    monkeypatch.chdir(public_path)
    (public_path / "there").mkdir()
    with read_only(public_path):
        for chosen, named in ((None, "build_output"), ("new/deep", "new/deep"), ("there", "there")):
            with pytest.raises(
                PermissionError, match=f"{public_path / named}: .*output_dir= .*PYPTO_PROG_BUILD_DIR"
            ):
                ir.compile(AddScaled, chosen, dump_passes=False)


def test_platform_decides_the_backend(tmp_path: Path) -> None:
    for platform in ("a2a3", "a2a3sim"):
        compiled = ir.compile(AddScaled, tmp_path / platform, dump_passes=False, platform=platform)
        assert compiled.platform == platform and compiled.backend_type is BackendType.Ascend910B
    with pytest.raises(ValueError, match="already set to Ascend910B, cannot change to Ascend950"):
        ir.compile(AddScaled, tmp_path / "a5", platform="a5")
    with pytest.raises(ValueError, match="Invalid platform 'b7'"):
        ir.compile(AddScaled, tmp_path / "b7", platform="b7")
    assert not (tmp_path / "a5").exists() and not (tmp_path / "b7").exists()
    backend.reset_for_testing()
    a, b, expected = arrays()
    a5 = ir.compile(AddScaled, tmp_path / "a5", dump_passes=False, platform="a5sim")
    np.testing.assert_array_equal(a5(a, b), expected)


def test_setting_that_an_active_context_decides_is_refused(tmp_path: Path) -> None:
    with PassContext([]):
        with pytest.raises(
            RuntimeError, match=r"compile\(\) was called with memory_planner while a PassContext"
        ):
            ir.compile(AddScaled, tmp_path / "x", memory_planner=MemoryPlanner.PYPTO)
        assert not (tmp_path / "x").exists()
        ir.compile(AddScaled, tmp_path / "y", dump_passes=False)
    assert PassContext.current() is None


@pytest.mark.parametrize("is_active", [False, True])
def test_text_is_checked_after_each_pass_at_the_level_of_the_compile_or_of_its_context(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_active: bool
) -> None:
    def refuse(text: str, filename: str) -> ir.Program:
        raise SyntaxError("no")

    monkeypatch.setattr("pypto.language.parser.text_parser.parse", refuse)
    level = VerificationLevel.ROUNDTRIP
    context = PassContext([], level) if is_active else nullcontext()
    settings = {} if is_active else {"verification_level": level}
    with context, pytest.raises(RuntimeError, match=r"\[RoundtripInstrument\] Parse failed after pass"):
        ir.compile(AddScaled, tmp_path, dump_passes=False, **settings)


def test_first_parameters_are_positional(tmp_path: Path) -> None:
    from pypto.passes.manager import OptimizationStrategy

    compiled = ir.compile(
        AddScaled, str(tmp_path), OptimizationStrategy.Default, True, BackendType.Ascend910B, True, None
    )
    dumps = sorted(p.name for p in (tmp_path / "passes_dump").glob("*.py"))
    assert dumps[0] == "00_frontend.py" and len(dumps) > 5
    assert compiled.load().child_count == 2


def test_profile_is_written_on_request(tmp_path: Path) -> None:
    from pypto.compile_profiling import CompileProfiler

    ir.compile(AddScaled, tmp_path / "a", dump_passes=False, profiling=True)
    profile = json.loads((tmp_path / "a" / "report" / "pipeline_profile.json").read_text())
    assert [stage["name"] for stage in profile["stages"]] == ["passes", "codegen"]
    with CompileProfiler() as profiler:
        ir.compile(AddScaled, tmp_path / "b", dump_passes=False, profiling=True)
    assert [stage["name"] for stage in profiler.to_dict()["stages"]] == ["passes", "codegen"]
    profile_file = tmp_path / "b" / "report" / "pipeline_profile.json"
    assert not profile_file.exists(), "an active profiler owns the output"


def test_public_places_of_names() -> None:
    from pypto import runtime
    from pypto.backend import PartialCodegenError
    from pypto.backend.pto_backend import PartialCodegenError as same
    from pypto.ir.compiled_program import CompiledProgram as public
    from pypto.ir.compiled_program import ParamInfo, extract_param_infos

    assert PartialCodegenError is same and issubclass(same, RuntimeError)
    assert public is CompiledProgram is ir.CompiledProgram
    infos, outputs, _ = extract_param_infos(AddScaled)
    assert isinstance(infos[0], ParamInfo) and outputs == [2]
    assert (runtime.pto_isa_include_dir() / "pypto_abi.h").exists()
    assert Path(runtime.ensure_pto_isa_root()).is_dir()


def test_something_else_than_a_program_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"compile needs a Program, got int.* under @pl\.program"):
        ir.compile(3, tmp_path)  # type: ignore[arg-type]


# ---------------------------------------------------------------- processes

_COMPILE_AND_RUN = """
import sys, numpy as np
from pypto import ir
from pypto.runtime import build
from tests.runtime.programs import AddScaled
a = np.full((32, 64), 2, np.float32)
compiled = ir.compile(AddScaled, sys.argv[1], dump_passes=False)
assert (compiled(a, a) == 12).all()
print(build.compiler_runs())
"""


def start(folder: Path, store: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYPTO_CACHE_DIR": str(store)}
    command = [sys.executable, "-c", _COMPILE_AND_RUN, str(folder)]
    return subprocess.Popen(
        command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_processes_that_compile_one_program_share_the_work(warm_store: Path, tmp_path: Path) -> None:
    count = int(os.environ.get("PYPTO_CONCURRENT_PROCESSES", "4"))
    processes = [start(tmp_path / str(i), warm_store) for i in range(count)]
    runs = []
    for process in processes:
        output, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
        runs.append(int(output))
    assert sum(runs) == 3, "two kernels and the orchestration, each once in all"


def test_killed_compile_leaves_nothing_wrong(warm_store: Path, tmp_path: Path) -> None:
    moments = [float(m) for m in os.environ.get("PYPTO_KILL_MOMENTS", "0.6 0.9").split()]
    for moment in moments:
        process = start(tmp_path / "out", warm_store)
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    begun = time.time()
    process = start(tmp_path / "out", warm_store)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    old = [p for p in (warm_store / "tmp").rglob("*") if p.is_file() and p.stat().st_mtime < begun]
    assert old == []
    assert not list((tmp_path / "out").rglob("*tmp*"))


def test_program_in_a_relative_directory_runs_after_chdir(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    program = ir.compile(AddScaled, "relative", dump_passes=False)
    monkeypatch.chdir(tmp_path / "elsewhere")
    a, b, expected = arrays()
    np.testing.assert_array_equal(program(a, b), expected)
    assert str(program) == "relative" and program == "relative" and program.output_dir == Path("relative")
