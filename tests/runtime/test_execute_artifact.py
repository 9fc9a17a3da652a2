"""Running build directories on their test data, as a harness does."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pypto import ir
from pypto.runtime.execute_artifact import ArtifactSetupError, execute_artifact_dir, main
from pypto.runtime.golden import validate_golden
from tests.runtime.programs import AddScaled

GOLDEN = """
from pathlib import Path
import numpy as np

__outputs__ = ["out"]
RTOL, ATOL = 1e-5, 1e-5

def generate_inputs(params):
    a = np.load(Path(__file__).parent / "data" / "in" / "a.npy")
    return [("a", a), ("b", np.full_like(a, 2)), ("out", np.zeros_like(a))]

def compute_golden(tensors, params):
    tensors["out"][:] = (tensors["a"] + tensors["b"]) * FACTOR
"""


def write_build(root: Path, factor: int = 3) -> Path:
    ir.compile(AddScaled, root, dump_passes=False)
    (root / "golden.py").write_text(GOLDEN.replace("FACTOR", str(factor)))
    (root / "data" / "in").mkdir(parents=True, exist_ok=True)
    np.save(root / "data" / "in" / "a.npy", np.ones((32, 64), np.float32))
    return root


def last_line(text: str) -> str:
    return text.rstrip("\n").rpartition("\n")[2]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(arguments)
    captured = capsys.readouterr()
    return status, last_line(captured.out), captured.err


def test_command_runs_and_compares(tmp_path: Path) -> None:
    root = write_build(tmp_path)
    command = [sys.executable, "-m", "pypto.runtime.execute_artifact", "--work-dir", root]
    command += ["--platform", "a2a3sim", "--device-id", "3", "--enable-chip-swimlane", "--enable-dep-gen"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, last_line(done.stdout)) == (0, "PYPTO_EXEC_RESULT=PASS device=3"), done.stderr
    assert (np.load(root / "data" / "actual" / "out.npy") == 9).all()
    written = {path.name for path in (root / "dfx_outputs").iterdir()}
    assert written == {"deps.json", "chip_swimlane_records.json"}


def test_wrong_results_fail_and_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = write_build(tmp_path, factor=4)
    arguments = ["--work-dir", str(root), "--platform", "a2a3sim"]
    status, line, errors = run(capsys, *arguments)
    assert (status, line) == (1, "PYPTO_EXEC_RESULT=FAIL")
    assert "2048 of 2048 elements differ" in errors and "[0, 0]: actual 9.0, golden 12.0" in errors
    assert (root / "data" / "actual" / "out.npy").exists()
    status, line, _ = run(capsys, *arguments, "--no-validate")
    assert (status, line) == (0, "PYPTO_EXEC_RESULT=PASS device=0")


@pytest.mark.parametrize(
    "damage", ["golden.py", "kernel_config.py", "compiled_meta.json", "source", "platform"]
)
def test_what_cannot_be_loaded_is_no_failure_of_the_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    root = write_build(tmp_path)
    if damage == "source":
        (root / "kernels" / "aiv" / "add.cpp").write_text("nonsense\n")
    elif damage != "platform":
        (root / damage).unlink()
    platform = "a9" if damage == "platform" else "a2a3sim"
    status, line, errors = run(capsys, "--work-dir", str(root), "--platform", platform)
    assert (status, line) == (1, "PYPTO_EXEC_RESULT=INFRA")
    assert "ArtifactSetupError" in errors
    with pytest.raises(ArtifactSetupError):
        execute_artifact_dir(root, platform, 0)


def test_batch_tries_every_entry(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, wrong = write_build(tmp_path / "good"), write_build(tmp_path / "wrong", factor=4)
    absent = tmp_path / "absent"
    batch = tmp_path / "batch.json"
    entries = [{"work_dir": str(root), "platform": "a2a3sim"} for root in (absent, wrong, good)]
    batch.write_text(json.dumps(entries))
    assert main(["--batch-manifest", str(batch), "--device-id", "1"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"PYPTO_EXEC_RESULT=INFRA work_dir={absent}",
        f"PYPTO_EXEC_RESULT=FAIL work_dir={wrong}",
        f"PYPTO_EXEC_RESULT=PASS work_dir={good} device=1",
    ]
    batch.write_text(json.dumps(entries[2:]))
    assert main(["--batch-manifest", str(batch)]) == 0


@pytest.mark.parametrize(
    "content", ["", "{}[", '{"work_dir": "x"}', "[1]", '[{"work_dir": 1, "platform": "p"}]']
)
def test_malformed_batch_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    (tmp_path / "batch.json").write_text(content)
    status, line, errors = run(capsys, "--batch-manifest", str(tmp_path / "batch.json"))
    assert (status, line) == (1, "PYPTO_EXEC_RESULT=INFRA")
    assert "batch.json" in errors


def test_comparison_ignores_what_the_golden_leaves_open() -> None:
    golden = {"out": np.array([1.0, np.nan, 3.0, np.inf])}
    validate_golden({"out": np.array([1.0, 7.0, 3.000001, np.inf], np.float32)}, golden)
    with pytest.raises(AssertionError, match=r"1 of 4 elements differ.*\n  \[2\]: actual nan, golden 3\.0"):
        validate_golden({"out": np.array([1.0, 7.0, np.nan, np.inf])}, golden)
    with pytest.raises(AssertionError, match=r"has shape \(3,\), golden \(4,\)"):
        validate_golden({"out": np.zeros(3)}, golden)
    validate_golden({"n": np.array([1 << 62])}, {"n": np.array([1 << 62])}, 0, 0)
