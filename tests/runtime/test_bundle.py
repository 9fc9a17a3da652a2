"""Prebuilt bundles: the same numbers without a compiler, and nothing loaded that breaks a rule."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pypto import ir
from pypto.backend import toolchain
from pypto.backend.toolchain import CompilerIdentity
from pypto.runtime import build, load_bundle, native_runtime, write_bundle
from pypto.runtime.bundle import is_bundle
from pypto.runtime.bundle_manifest import read_manifest
from tests.runtime.programs import AddScaled, TwoEntries, TwoSignatures

SHAPE = (32, 64)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    compiled = ir.compile(TwoSignatures, folder / "build", dump_passes=False)
    return write_bundle(compiled, folder / "bundle").parent


@pytest.fixture
def copy(bundle: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(bundle, tmp_path / "copy"))


@pytest.fixture
def reads() -> Iterator[list[str]]:
    """Names of the files of bundles that are opened for reading while the test runs."""
    names: list[str] = []
    active = True

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if active and event == "open" and "/bin/" in str(arguments[0]) and str(arguments[0]).endswith(".so"):
            names.append(Path(arguments[0]).name)

    sys.addaudithook(hook)
    yield names
    active = False


def manifest_of(root: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((root / "prebuilt.json").read_text())
    return content


def edit(root: Path, change: Callable[[dict[str, Any]], object]) -> None:
    content = manifest_of(root)
    change(content)
    (root / "prebuilt.json").write_text(json.dumps(content))


def run_twice_doubled(program: Any) -> None:
    x, out = np.ones((16, 16), np.float32), np.full((16, 16), 5, np.float32)
    program(x, out)
    assert (out == 7).all()


def test_bundle_describes_each_code_once_and_each_registration(bundle: Path) -> None:
    content = manifest_of(bundle)
    assert content["schema"] == 1 and content["platform"] == "cpu"
    assert list(content["binaries"]) == ["double.aiv"]
    rows = content["kernels"]
    assert [(r["func_id"], r["binary"], r["signature"]) for r in rows] == [
        (0, "double.aiv", ["IN", "INOUT"]),
        (1, "double.aiv", ["INOUT", "INOUT"]),
    ]
    described = [content["binaries"]["double.aiv"], content["orchestration"], content["task_runtime"]]
    for entry in described:
        binary = (bundle / entry["file"]).read_bytes()
        assert (len(binary), hashlib.sha256(binary).hexdigest()) == (entry["size"], entry["sha256"])
    files = {str(p.relative_to(bundle)) for p in bundle.rglob("*") if p.is_file()}
    assert files == {"prebuilt.json", *(entry["file"] for entry in described)}


def test_two_rows_of_one_file_read_it_once(copy: Path, reads: list[str]) -> None:
    before = build.compiler_runs()
    program = load_bundle(copy)
    assert sorted(reads) == ["double.aiv.so", "orchestration.so", "task_runtime.so"]
    chip = program.load()
    assert chip.child(0).binary == chip.child(1).binary and chip.child(0) != chip.child(1)
    run_twice_doubled(program)
    assert build.compiler_runs() == before


FRESH = """
import os, sys
import numpy as np
from pypto.runtime import load_bundle

program = load_bundle(sys.argv[1])
x, y = np.load(sys.argv[2])
np.save(sys.argv[3], program(x, y))
"""


def test_bundle_gives_the_same_numbers_in_a_fresh_process_without_any_compiler(tmp_path: Path) -> None:
    compiled = ir.compile(AddScaled, tmp_path / "build", dump_passes=False)
    write_bundle(compiled, tmp_path / "bundle")
    arrays = np.random.default_rng(1).standard_normal((2, *SHAPE)).astype(np.float32)
    np.save(tmp_path / "in.npy", arrays)
    wanted = compiled(*arrays)
    shutil.rmtree(tmp_path / "build")
    environment = {
        **os.environ,
        "PATH": "/nowhere",
        "PYPTO_CXX": "/nowhere/c++",
        "PYPTO_CACHE_DIR": str(tmp_path / "store"),
        "TMPDIR": str(tmp_path),
    }
    command = [sys.executable, "-c", FRESH, tmp_path / "bundle", tmp_path / "in.npy", tmp_path / "out.npy"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert np.load(tmp_path / "out.npy").tobytes() == wanted.tobytes()
    assert not (tmp_path / "store").exists() and not list(tmp_path.glob("pypto-bundle-*"))


def test_equal_programs_give_equal_bundles(bundle: Path, tmp_path: Path, warm_store: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYPTO_CACHE_DIR", str(warm_store))  # compiled again
        compiled = ir.compile(TwoSignatures, tmp_path / "elsewhere", dump_passes=False)
        write_bundle(compiled, tmp_path / "other")
    for path in bundle.rglob("*"):
        if path.is_file():
            assert path.read_bytes() == (tmp_path / "other" / path.relative_to(bundle)).read_bytes(), path


WIDE = re.compile(r"%[yz]mm\d")  # registers that only some x86 CPUs have


def uses_wide_registers(library: Path) -> bool:
    listing = subprocess.run(["objdump", "-d", library], capture_output=True, text=True, check=True)
    return WIDE.search(listing.stdout) is not None


def test_portable_bundle_asks_for_no_cpu_features_and_gives_the_same_numbers(tmp_path: Path) -> None:
    compiled = ir.compile(AddScaled, tmp_path / "build", dump_passes=False)
    write_bundle(compiled, tmp_path / "tuned")
    write_bundle(compiled, tmp_path / "portable", portable=True)
    assert manifest_of(tmp_path / "portable")["cpu_features"] == []
    assert manifest_of(tmp_path / "tuned")["cpu_features"] == sorted(toolchain.cpu_features())
    arrays = np.random.default_rng(1).standard_normal((2, *SHAPE)).astype(np.float32)
    np.testing.assert_allclose(load_bundle(tmp_path / "portable")(*arrays), compiled(*arrays), rtol=1e-6)
    if shutil.which("objdump") and "avx" in toolchain.cpu_features():
        assert uses_wide_registers(tmp_path / "tuned" / "bin" / "add.aiv.so")
        assert not uses_wide_registers(tmp_path / "portable" / "bin" / "add.aiv.so")


def test_portable_code_of_zig_is_for_the_baseline_cpu() -> None:
    zig = CompilerIdentity(("python", "-m", "ziglang", "c++"), "clang 18", "x86_64-linux", ("-march=native",))
    assert toolchain.untuned(zig).tuning == ("-mcpu=baseline",)
    gcc = CompilerIdentity(("/usr/bin/c++",), "g++ 12", "x86_64-linux-gnu", ("-march=native",))
    assert toolchain.untuned(gcc).tuning == ()


def test_bundle_follows_the_call_rules_of_compiled_programs(tmp_path: Path) -> None:
    compiled = ir.compile(AddScaled, tmp_path / "build", dump_passes=False)
    write_bundle(compiled["main"] if compiled.orchestration_names else compiled.single(), tmp_path / "bundle")
    program = load_bundle(tmp_path / "bundle")
    x, y, out = np.ones(SHAPE, np.float32), np.full(SHAPE, 2, np.float32), np.zeros(SHAPE, np.float32)
    assert program(x, y, out) is None and (out == 9).all()
    assert (program(x, y) == 9).all()
    assert (program.param_names, program.output_indices, program.has_return) == (["a", "b", "out"], [2], True)
    with pytest.raises(TypeError, match=r"Bundle expects 3 \(in-place\) or 2 \(return\) arguments, got 1"):
        program(x)
    with pytest.raises(TypeError, match=r"'a' expects shape \[32, 64\]"):
        program(x[:4], y)
    with pytest.raises(TypeError, match="is a bundle already"):
        write_bundle(program, tmp_path / "again")


def test_bundle_replaced_while_in_use_changes_nothing_there(copy: Path, tmp_path: Path) -> None:
    old = load_bundle(copy)
    for path in (copy / "bin").iterdir():
        path.write_bytes(b"\0" * path.stat().st_size)  # in place, as a careless copy would
    run_twice_doubled(old)
    write_bundle(ir.compile(AddScaled, tmp_path / "build", dump_passes=False), copy)
    run_twice_doubled(old)
    assert sorted(p.name for p in (copy / "bin").iterdir()) == [
        "add.aiv.so", "orchestration.so", "task_runtime.so", "triple.aiv.so",
    ]  # fmt: skip
    assert (load_bundle(copy)(np.ones(SHAPE, np.float32), np.ones(SHAPE, np.float32)) == 6).all()


def test_bundle_is_never_written_over_something_else(tmp_path: Path) -> None:
    compiled = ir.compile(TwoSignatures, tmp_path / "build", dump_passes=False)
    with pytest.raises(FileExistsError, match="is not empty and holds no bundle"):
        write_bundle(compiled, tmp_path / "build")
    assert not is_bundle(tmp_path / "build") and (tmp_path / "build" / "kernel_config.py").exists()


def test_program_of_several_orchestrations_is_bundled_by_name(tmp_path: Path) -> None:
    compiled = ir.compile(TwoEntries, tmp_path / "build", dump_passes=False)
    with pytest.raises(TypeError, match="several orchestrations; choose one by name: once, twice"):
        write_bundle(compiled, tmp_path / "bundle")
    assert not (tmp_path / "bundle").exists()
    write_bundle(compiled["twice"], tmp_path / "bundle")
    assert (load_bundle(tmp_path / "bundle")(np.ones((16, 16), np.float32)) == 4).all()


def test_folder_without_a_manifest_is_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no prebuilt.json in .*: not a bundle"):
        load_bundle(tmp_path)


def set_field(*place: str | int, to: Any) -> Callable[[dict[str, Any]], None]:
    def change(content: dict[str, Any]) -> None:
        entry: Any = content
        for step in place[:-1]:
            entry = entry[step]
        entry[place[-1]] = to

    return change


def drop_field(*place: str | int) -> Callable[[dict[str, Any]], None]:
    def change(content: dict[str, Any]) -> None:
        entry: Any = content
        for step in place[:-1]:
            entry = entry[step]
        del entry[place[-1]]

    return change


def name_twice(content: dict[str, Any]) -> None:
    content["binaries"]["other.aiv"] = dict(content["binaries"]["double.aiv"], file="bin/./double.aiv.so")


KERNEL = ("binaries", "double.aiv")


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        (set_field("schema", to=2), "schema", "is 2, expected 1"),
        (set_field("schema", to=True), "schema", "must be of type int, got bool"),
        (drop_field("schema"), "schema", "is missing"),
        (drop_field("kernels"), "kernels", "is missing"),
        (set_field("kernels", to={}), "kernels", "must be of type list, got dict"),
        (set_field("kernels", 0, to=7), "kernels[0]", "must be an object"),
        (set_field("kernels", 1, "func_id", to=0), "kernels[1].func_id", "0 is given twice"),
        (set_field("kernels", 1, "func_id", to=-1), "kernels[1].func_id", "is -1"),
        (set_field("kernels", 1, "func_id", to=True), "kernels[1].func_id", "got bool"),
        (set_field("kernels", 1, "func_id", to=1.0), "kernels[1].func_id", "got float"),
        (set_field("kernels", 1, "func_id", to=1 << 31), "kernels[1].func_id", "is 2147483648"),
        (
            set_field("kernels", 0, "binary", to="other"),
            "kernels[0].binary",
            "names 'other', which 'binaries'",
        ),
        (set_field("kernels", 0, "core_type", to="aic"), "kernels[0].core_type", "is aic, but that of"),
        (set_field(*KERNEL, "core_type", to="gpu"), "binaries.double.aiv.core_type", "is 'gpu'"),
        (set_field("kernels", 0, "signature", to=["in"]), "kernels[0].signature", "holds 'in'"),
        (set_field("kernels", 0, "signature", to=[1]), "kernels[0].signature", "list of strings"),
        (
            set_field("kernels", 0, "signature", to=["IN"] * 33),
            "kernels[0].signature",
            "exceeds supported 32",
        ),
        (
            set_field("orchestration", "signature", to=["IN"] * 257),
            "orchestration.signature",
            "supported 256",
        ),
        (set_field("orchestration", "signature", to=["IN"]), "orchestration.signature", "1 entries for 2"),
        (set_field(*KERNEL, "file", to="/etc/passwd"), "binaries.double.aiv.file", "no relative path"),
        (set_field(*KERNEL, "file", to="bin/../../x"), "binaries.double.aiv.file", "no relative path"),
        (set_field(*KERNEL, "file", to=""), "binaries.double.aiv.file", "no relative path"),
        (set_field(*KERNEL, "file", to="bin/none.so"), "binaries.double.aiv.file", "cannot be found"),
        (set_field(*KERNEL, "file", to="bin"), "binaries.double.aiv.file", "is no regular file"),
        (set_field(*KERNEL, "size", to=1), "binaries.double.aiv.size", "is 1, which 'bin/double.aiv"),
        (set_field(*KERNEL, "size", to="1"), "binaries.double.aiv.size", "got str"),
        (set_field(*KERNEL, "sha256", to="0" * 64), "binaries.double.aiv.sha256", "does not match"),
        (set_field(*KERNEL, "sha256", to="0"), "binaries.double.aiv.sha256", "is no digest"),
        (set_field(*KERNEL, "entry", to="nothing"), "binaries.double.aiv.entry", "which is not exported"),
        (set_field(*KERNEL, "entry", to=""), "binaries.double.aiv.entry", "is no symbol"),
        (set_field("orchestration", "function_name", to="f"), "orchestration.function_name", "not exported"),
        (set_field("orchestration", "file", to="bin/none"), "orchestration.file", "cannot be found"),
        (set_field("task_runtime", "file", to="bin/none"), "task_runtime.file", "cannot be found"),
        (name_twice, "binaries.other.aiv.file", "is the file of 'binaries.double.aiv' as well"),
        (set_field(*KERNEL, "file", to="bin/\ud800"), "binaries.double.aiv.file", "is no text"),
        (set_field("kernels", 0, "name", to="\udfff"), "kernels[0].name", "is no text"),
        (set_field("platform", to="a5"), "platform", "is 'a5', but this process has 'cpu'"),
        (set_field("runtime", to="other"), "runtime", "but this process has 'tensormap_and_ringbuffer' or"),
        (
            set_field("target", to="riscv64-linux-gnu"),
            "target",
            "is 'riscv64-linux-gnu', but this process has",
        ),
        (set_field("abi", to="0"), "abi", "is '0', but this process has '"),
        (set_field("cpu_features", to=["warp9"]), "cpu_features", "names what this CPU lacks: warp9"),
        (set_field("meta", to=[]), "meta", "must be of type dict, got list"),
        (drop_field("meta", "params"), "meta", "lacks the field 'params'"),
        (set_field("meta", "schema", to=9), "meta", "Incompatible schema 9"),
    ],
)
def test_each_broken_rule_is_named_and_nothing_is_loaded(
    copy: Path, change: Callable[[dict[str, Any]], object], field: str, message: str
) -> None:
    edit(copy, change)
    programs = native_runtime.orchestrations_loaded()
    with pytest.raises(ValueError) as caught:
        load_bundle(copy)
    text = str(caught.value)
    assert text.startswith(f"{copy / 'prebuilt.json'}") and f"'{field}'" in text and message in text
    assert native_runtime.orchestrations_loaded() == programs


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"schema": 1', b"\xff", b"[" * 100_000])
def test_manifest_that_is_no_json_object_is_named(copy: Path, content: bytes) -> None:
    (copy / "prebuilt.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"prebuilt\.json"):
        load_bundle(copy)


def test_manifest_cut_off_anywhere_is_refused(copy: Path) -> None:
    whole = (copy / "prebuilt.json").read_bytes()
    for length in range(0, len(whole) - 2, 97):
        (copy / "prebuilt.json").write_bytes(whole[:length])
        with pytest.raises(ValueError, match="cannot be read as a manifest"):
            load_bundle(copy)


def test_damaged_manifests_never_raise_anything_but_value_errors(copy: Path) -> None:
    whole = (copy / "prebuilt.json").read_bytes()
    chance = random.Random(5)
    pieces = [b"null", b"-1", b"1e999", b'"', b"{}", b"[", b"9" * 5000, b"NaN", b'"\\ud800"', b"true", b"\0"]
    refused = 0
    for _ in range(400):
        text = bytearray(whole)
        for _ in range(chance.randint(1, 3)):
            place = chance.randrange(len(text))
            text[place : place + chance.randint(0, 12)] = chance.choice(pieces)
        (copy / "prebuilt.json").write_bytes(text)
        try:
            read_manifest(copy)
        except ValueError as error:
            refused += 1
            assert "prebuilt.json" in str(error)
    assert refused > 250


def test_field_given_twice_is_refused(copy: Path) -> None:
    text = (copy / "prebuilt.json").read_text()
    (copy / "prebuilt.json").write_text(text.replace('"schema": 1', '"schema": 2, "schema": 1', 1))
    with pytest.raises(ValueError, match="the field 'schema' is given twice"):
        load_bundle(copy)


@pytest.mark.parametrize("name", ["double.aiv.so", "orchestration.so", "task_runtime.so"])
def test_flipped_bit_is_found_wherever_it_is(copy: Path, name: str) -> None:
    path = copy / "bin" / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"sha256' does not match the content"):
        load_bundle(copy)


def test_links_that_leave_the_bundle_are_refused_and_those_inside_are_not(copy: Path, tmp_path: Path) -> None:
    binary = copy / "bin" / "double.aiv.so"
    binary.rename(copy / "kept.so")
    binary.symlink_to("../kept.so")
    run_twice_doubled(load_bundle(copy))
    binary.unlink()
    (copy / "kept.so").rename(tmp_path / "outside.so")
    binary.symlink_to(tmp_path / "outside.so")
    with pytest.raises(ValueError, match=r"double\.aiv\.file' leaves the bundle through a link"):
        load_bundle(copy)
    binary.unlink()
    binary.symlink_to("double.aiv.so")  # to itself
    with pytest.raises(ValueError, match=r"double\.aiv\.file' cannot be found"):
        load_bundle(copy)


def test_pipe_in_place_of_a_file_does_not_block(copy: Path) -> None:
    (copy / "bin" / "double.aiv.so").unlink()
    os.mkfifo(copy / "bin" / "double.aiv.so")
    with pytest.raises(ValueError, match="is no regular file"):
        load_bundle(copy)


def test_binaries_that_no_row_names_are_not_read(copy: Path, reads: list[str]) -> None:
    extra = {"file": "bin/unused.so", "size": 3, "sha256": "0" * 64, "core_type": "aic", "entry": "e"}
    edit(copy, lambda content: content["binaries"].update({"unused.aic": extra}))
    run_twice_doubled(load_bundle(copy))
    assert "unused.so" not in reads


def test_bundle_without_a_task_runtime_takes_that_of_the_process(copy: Path) -> None:
    edit(copy, lambda content: content.pop("task_runtime"))
    run_twice_doubled(load_bundle(copy))


def test_threads_may_load_bundles_at_once(copy: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        programs = list(pool.map(load_bundle, [copy] * 16))
    for program in programs:
        run_twice_doubled(program)


def test_bundle_holds_no_python_and_runs_none(copy: Path) -> None:
    for name in ("kernel_config.py", "__init__.py", "prebuilt.py"):
        (copy / name).write_text("raise SystemExit('executed')\n")
    run_twice_doubled(load_bundle(copy))
