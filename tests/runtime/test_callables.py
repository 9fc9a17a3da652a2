"""Build directories: reading the configuration, compiling each code once, joining callables."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pypto import ir
from pypto.runtime import build
from pypto.runtime._binary_cache import (
    BinaryCacheContext,
    binary_context_path,
    invalidate_binary_context,
    prepare_binary_context,
    record_binary_context,
)
from pypto.runtime.assemble import compile_and_assemble
from pypto.runtime.callables import Binary, ChipCallable, CoreCallable
from pypto.runtime.kernel_config import load_kernel_config
from pypto.runtime.native_runtime import RunOptions, pack_options
from pypto.runtime.task_interface import ArgDirection
from tests.runtime.programs import AddScaled, TwoSignatures
from tests.runtime.script import BLOCKS, INOUT, NO_DEP, UNSET, Runner, Script

NATIVE = Path(__file__).parent / "native"
HEAD = """
from pathlib import Path
from {module} import ArgDirection as _D
_ROOT_DIR = Path(__file__).parent
RUNTIME_CONFIG = {{"runtime": "tensormap_and_ringbuffer", "aicpu_thread_num": 0}}
ORCHESTRATION = {{
    "source": str(_ROOT_DIR / "orchestration" / "orch.cpp"),
    "function_name": "aicpu_orchestration_entry",
    "signature": [_D.IN, _D.INOUT],
}}
"""


def row(func_id: int, **fields: object) -> str:
    core = fields.pop("core_type", "aiv")
    text = "".join(f', "{name}": {value}' for name, value in fields.items())
    source = 'str(_ROOT_DIR / "kernels" / "aiv" / "k.cpp")'
    return f'{{"func_id": {func_id}, "name": "k", "source": {source}, "core_type": "{core}"{text}}}'


def write_build(root: Path, *rows: str, module: str = "pypto.runtime.task_interface") -> Path:
    (root / "orchestration").mkdir(parents=True)
    (root / "kernels" / "aiv").mkdir(parents=True)
    shutil.copy(NATIVE / "orchestration.cpp", root / "orchestration" / "orch.cpp")
    shutil.copy(NATIVE / "kernel.cpp", root / "kernels" / "aiv" / "k.cpp")
    text = HEAD.format(module=module) + f"KERNELS = [{', '.join(rows)}]\n"
    (root / "kernel_config.py").write_text(text)
    return root


GENERATED = (
    row(0, code_name="'k'", signature="[_D.IN, _D.OUT]"),
    row(1, code_name="'k'", signature="[_D.IN, _D.INOUT]"),
)


def test_rows_of_one_code_share_a_binary_and_keep_their_signatures(tmp_path: Path) -> None:
    root = write_build(tmp_path / "a", *GENERATED)
    before = build.compiler_runs()
    chip, runtime, config = compile_and_assemble(root, "a2a3sim")
    assert (
        build.compiler_runs() - before <= 3
    )  # kernel, orchestration, and the runtime if this test runs alone
    assert runtime == config["runtime"] == "tensormap_and_ringbuffer"
    first, second = chip.child(0), chip.child(1)
    assert first.binary == second.binary and first.binary_size > 0
    assert first.signature == (ArgDirection.IN, ArgDirection.OUT)
    assert (second.sig_count, second.sig(1)) == (2, ArgDirection.INOUT)
    assert [chip.child_func_id(i) for i in range(chip.child_count)] == [0, 1]
    assert chip.buffer_size == chip.binary_size + first.binary_size
    copy = tmp_path / "moved"
    shutil.copytree(root, copy)
    before = build.compiler_runs()
    compile_and_assemble(copy, "a2a3sim")
    assert build.compiler_runs() == before, "a moved directory compiles nothing"


def test_assembled_program_runs_with_gaps_in_its_ids(tmp_path: Path) -> None:
    rows = (row(3, code_name="'k'"), row(70, code_name="'k'", core_type="aic"))
    chip, _, _ = compile_and_assemble(write_build(tmp_path / "a", *rows), "a2a3sim")
    seen = np.zeros(2, np.uint32)
    s = Script()
    s.submit(BLOCKS, (INOUT, 0), (NO_DEP, 1), lanes=(UNSET, 3, UNSET))
    s.submit(BLOCKS, (INOUT, 0), (NO_DEP, 1), lanes=(70, UNSET, UNSET), blocks=2)
    Runner(chip.program).run(s, seen, np.zeros(1, np.uint32))
    assert list(seen) == [2, 1]
    s.submit(BLOCKS, (INOUT, 0), (NO_DEP, 1), lanes=(UNSET, 4, UNSET))
    with pytest.raises(RuntimeError, match="unknown function id 4"):
        Runner(chip.program).run(s, seen, np.zeros(1, np.uint32))


def test_external_legacy_and_template_rows_have_their_own_identity(tmp_path: Path) -> None:
    rows = (
        *GENERATED,
        row(2, external=True),
        row(3, external=True),
        row(4),
        row(5),
        row(6, template="'sum'", template_inputs="{'ranks': 2, 'dtype': 'fp32'}"),
        row(7, template="'sum'", template_inputs="{'dtype': 'fp32', 'ranks': 2}"),
        row(8, template="'sum'", template_inputs="{'ranks': 4, 'dtype': 'fp32'}"),
    )
    chip, _, _ = compile_and_assemble(write_build(tmp_path / "a", *rows), "a2a3sim")
    paths = [chip.child(i).binary.path for i in range(9)]
    assert paths[0] == paths[1] and paths[2] == paths[3] and paths[6] == paths[7]
    assert len(set(paths)) == 6, "generated, external, each legacy row, and each variant of a template"
    assert chip.child(4).signature == ()


def test_program_compiles_each_source_once_and_each_row_keeps_its_signature(
    tmp_path: Path, warm_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYPTO_CACHE_DIR", str(warm_store))
    for program, codes, registrations in ((AddScaled, 2, 2), (TwoSignatures, 1, 2)):
        root = tmp_path / program.name
        compiled = ir.compile(program, root, dump_passes=False)
        rows = load_kernel_config(root).kernels
        assert (len(rows), len({row.source for row in rows})) == (registrations, codes)
        before = build.compiler_runs()
        chip = compiled.load()
        assert build.compiler_runs() - before == codes + 1, "and the orchestration"
        assert [chip.child(i).signature for i in range(chip.child_count)] == [row.signature for row in rows]
        assert len({chip.child(i).binary.path for i in range(chip.child_count)}) == codes


def test_id_given_twice_is_found_before_anything_is_compiled(tmp_path: Path) -> None:
    root = write_build(tmp_path / "a", row(4, code_name="'k'"), row(4))
    for name in ("orchestration/orch.cpp", "kernels/aiv/k.cpp"):
        (root / name).write_text("nonsense, which no compiler may see\n")
    before = build.compiler_runs()
    with pytest.raises(ValueError, match=r"kernel_config\.py: func_id 4 is given twice"):
        compile_and_assemble(root, "a2a3sim")
    assert build.compiler_runs() == before


def test_unknown_runtime_is_refused(tmp_path: Path) -> None:
    root = write_build(tmp_path / "a", *GENERATED)
    path = root / "kernel_config.py"
    path.write_text(path.read_text().replace("tensormap_and_ringbuffer", "abacus"))
    with pytest.raises(ValueError, match="Unknown runtime 'abacus'"):
        compile_and_assemble(root, "a2a3sim")


def test_failures_of_several_codes_come_together_and_once_each(tmp_path: Path) -> None:
    lost = 'str(_ROOT_DIR / "kernels" / "aiv" / "lost.cpp")'
    other = f'{{"func_id": 7, "name": "lost", "source": {lost}, "core_type": "aiv", "code_name": "lost"}}'
    root = write_build(tmp_path / "a", *GENERATED, other)
    for name in ("k", "lost"):
        (root / "kernels" / "aiv" / f"{name}.cpp").write_text(f"int x = no_{name};\n")
    with pytest.raises(build.CompileError) as caught:
        compile_and_assemble(root, "a2a3sim")
    text = str(caught.value)
    assert text.count("the C++ compiler failed on") == 2
    assert "kernel 'k' (ids 0, 1)" in text and "kernel 'lost' (id 7)" in text
    assert "no_k" in text and "no_lost" in text


@pytest.mark.parametrize(
    "spelling",
    [
        "from simpler.task_interface import ArgDirection as _D",
        "from simpler import task_interface\n_D = task_interface.ArgDirection",
        "import simpler.task_interface\n_D = simpler.task_interface.ArgDirection",
    ],
)
def test_reference_spelling_of_the_import_loads(tmp_path: Path, spelling: str) -> None:
    root = write_build(tmp_path / "a", *GENERATED)
    config = root / "kernel_config.py"
    ours = "from pypto.runtime.task_interface import ArgDirection as _D"
    config.write_text(config.read_text().replace(ours, spelling))
    assert load_kernel_config(root).orchestration.signature == (ArgDirection.IN, ArgDirection.INOUT)
    assert "simpler" not in sys.modules


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ((row(1), row(1)), "func_id 1 is given twice"),
        ((row(-1),), "func_id -1 is negative"),
        ((row(0, core_type="gpu"),), "unknown core_type 'gpu'"),
        (("7",), "a row of KERNELS is a int"),
        ((row(0, signature="['IN']"),), "a signature is a list of ArgDirection"),
        (('{"name": "k"}',), "'core_type' must be a str"),
        (("1 / 0",), "cannot be loaded: ZeroDivisionError"),
        (("]",), "cannot be loaded: SyntaxError"),
        (("exit(3)",), "cannot be loaded: SystemExit: 3"),
        ((row(True),), "'func_id' must be a int, got True"),
        ((row(1 << 31),), "func_id 2147483648 is larger than"),
        ((row(0, code_name="5"),), "'code_name' must be a str, got 5"),
        ((row(0, external="'yes'"),), "'external' must be a bool, got 'yes'"),
        ((row(0, external=True, extra_include_dirs="'/usr'"),), "'extra_include_dirs' must be a list"),
        ((row(0, external=True, extra_include_dirs="[1]"),), "must be a list of strings"),
        ((row(0, signature="[_D.IN] * 33"),), "33 tensors exceeds supported 32"),
        ((row(0, template="'t'", template_inputs="{'a': {1}}"),), "'template_inputs' of 't' are no plain"),
    ],
)
def test_malformed_configuration_is_named(tmp_path: Path, rows: tuple[str, ...], message: str) -> None:
    root = write_build(tmp_path / "a", *rows)
    before = build.compiler_runs()
    with pytest.raises(ValueError, match=message) as caught:
        compile_and_assemble(root, "a2a3sim")
    assert "kernel_config.py" in str(caught.value)
    assert build.compiler_runs() == before


def test_directory_without_configuration_is_explained(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="does not exist; compile the program into it first"):
        compile_and_assemble(tmp_path / "none", "a2a3sim")
    with pytest.raises(FileNotFoundError, match="not a build directory"):
        compile_and_assemble(tmp_path, "a2a3sim")
    root = write_build(tmp_path / "a", *GENERATED)
    (root / "kernel_config.py").unlink()
    with pytest.raises(FileNotFoundError, match="holds 2 C\\+\\+ sources"):
        compile_and_assemble(root, "a2a3sim")


def test_too_many_entries_are_refused() -> None:
    binary = Binary(Path("k.so"), 1)
    with pytest.raises(ValueError, match="exceeds supported 32"):
        CoreCallable.build([ArgDirection.IN] * 33, binary)
    with pytest.raises(ValueError, match="exceeds supported 256"):
        ChipCallable.build([ArgDirection.IN] * 257, "f", binary)
    with pytest.raises(ValueError, match="exceeds supported 128"):
        ChipCallable.build([ArgDirection.SCALAR] * 129, "f", binary)
    kernel = CoreCallable.build([], binary)
    with pytest.raises(ValueError, match="exceeds supported 1024"):
        ChipCallable.build([], "f", binary, [(i, kernel) for i in range(1025)])
    with pytest.raises(ValueError, match="function id 5 is given twice"):
        ChipCallable.build([], "f", binary, [(5, kernel), (5, kernel)])


def test_library_without_the_entry_is_named(tmp_path: Path) -> None:
    root = write_build(tmp_path / "a", *GENERATED)
    (root / "orchestration" / "orch.cpp").write_text("int nothing;\n")
    chip, _, _ = compile_and_assemble(root, "a2a3sim")
    with pytest.raises(ValueError, match="exports no 'aicpu_orchestration_entry'"):
        _ = chip.program


def test_stamp_keeps_or_removes_the_binaries_of_a_directory(tmp_path: Path) -> None:
    context = BinaryCacheContext("a2a3sim", "tensormap_and_ringbuffer", "r1", "c1")
    record_binary_context(tmp_path, context)
    stamp = binary_context_path(tmp_path)
    assert stamp == tmp_path / "cache" / "binary_context.json" and stamp.exists()
    (tmp_path / "kernels" / "aiv").mkdir(parents=True)
    files = [
        tmp_path / "cache" / "x.bin",
        tmp_path / "kernels" / "aiv" / "k.so",
        tmp_path / "kernels" / "k.o",
    ]

    def put() -> None:
        for file in files:
            file.touch()
        (tmp_path / "kernels" / "k.cpp").touch()

    put()
    assert prepare_binary_context(tmp_path, context) == 0
    assert all(f.exists() for f in files) and not stamp.exists(), "no stamp while building"
    for other in (
        BinaryCacheContext("a5sim", "tensormap_and_ringbuffer", "r1", "c1"),
        BinaryCacheContext("a2a3sim", "host_build_graph", "r1", "c1"),
        BinaryCacheContext("a2a3sim", "tensormap_and_ringbuffer", "r2", "c1"),
        None,
    ):
        put()
        record_binary_context(tmp_path, context)
        assert prepare_binary_context(tmp_path, other) == 3
        assert not any(f.exists() for f in files) and (tmp_path / "kernels" / "k.cpp").exists()
    record_binary_context(tmp_path, None)
    assert not stamp.exists()
    put()
    assert invalidate_binary_context(tmp_path) == 3


def test_failed_build_leaves_no_stamp(tmp_path: Path) -> None:
    root = write_build(tmp_path / "a", *GENERATED)
    compile_and_assemble(root, "a2a3sim")
    assert binary_context_path(root).exists()
    (root / "kernels" / "aiv" / "k.cpp").write_text("nonsense\n")
    with pytest.raises(build.CompileError, match=r"kernel 'k' \(ids 0, 1\)"):
        compile_and_assemble(root, "a2a3sim")
    assert not binary_context_path(root).exists()


def test_two_processes_on_one_directory_compile_each_code_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write_build(tmp_path / "a", *GENERATED)
    # A kernel of its own, so that no earlier test has compiled it.
    source = root / "kernels" / "aiv" / "k.cpp"
    source.write_text(source.read_text() + f'static const char* unique_name = "{tmp_path}";\n')
    code = (
        "import sys\nfrom pypto.runtime import build\n"
        "from pypto.runtime.assemble import compile_and_assemble\n"
        "compile_and_assemble(sys.argv[1], 'a2a3sim')[0].program\nprint(build.compiler_runs())"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(root)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    runs = [int(process.communicate()[0]) for process in processes]
    assert sorted(runs) == [0, 1], "the orchestration and the runtime were in the store, the kernel was not"


def test_run_options_are_packed_once() -> None:
    assert pack_options(RunOptions(2)) is pack_options(RunOptions(2))
