"""The page that shows what each pass did."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import pypto.language as pl
from pypto.ir import PassManager
from pypto.tools import ir_trace

SOURCE = """
import pypto.language as pl

@pl.program
class P:
    @pl.function
    def main(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP):
            y = pl.add(x, 1.0)
        return y
"""


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """The dump of a small program."""
    folder = tmp_path / "passes_dump"
    PassManager.get_strategy().run_passes(pl.parse_program(SOURCE), dump_ir=True, output_dir=folder)
    return folder


def test_a_dump_becomes_one_page_that_needs_nothing_else(dump: Path, tmp_path: Path):
    page = tmp_path / "page.html"
    assert ir_trace.main([str(dump), "-o", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "09 OutlineIncoreScopes" in text
    assert "P.main_incore_0 <small>added</small>" in text
    assert "src=" not in text and "href=" not in text
    assert [each.name for each in tmp_path.iterdir() if each.name.endswith(".tmp")] == []


def test_changes_are_told_by_function(dump: Path):
    snapshots = ir_trace.load_snapshots(dump)
    before, after = (
        next(s for s in snapshots if s.name == name)
        for name in ("OutlineHierarchyScopes", "OutlineIncoreScopes")
    )
    added, changed = sorted(ir_trace.changes_between(before, after, 3), key=lambda change: change.kind)
    assert (added.function, added.kind) == ("P.main_incore_0", "added")
    assert (changed.function, changed.kind) == ("P.main", "changed")
    assert {mark for mark, _ in changed.lines} >= {"+", "-"}
    assert ir_trace.changes_between(after, after, 3) == []


def test_context_limits_the_lines_around_a_change():
    def snapshot(middle: str) -> ir_trace.Snapshot:
        lines = [f"line{number}" for number in range(20)]
        lines[10] = middle
        return ir_trace.Snapshot(0, "x", {"P.f": tuple(lines)}, "")

    for context, shown in ((0, 0), (2, 4)):
        (change,) = ir_trace.changes_between(snapshot("old"), snapshot("new"), context)
        assert sum(mark == " " for mark, _ in change.lines) == shown


def test_warnings_of_a_pass_are_shown_and_text_is_escaped(dump: Path):
    (dump / "04_after_ConvertToSSA.log").write_text("a < b: warning", encoding="utf-8")
    assert "a &lt; b: warning" in ir_trace.render(ir_trace.load_snapshots(dump))


@pytest.mark.parametrize(
    ("damage", "fact"),
    [
        (lambda folder: (folder / "00_frontend.py").unlink(), "no 00_frontend.py"),
        (lambda folder: (folder / "03_after_CtrlFlowTransform.py").unlink(), "no snapshot number 03"),
        (lambda folder: (folder / "03_after_Again.py").write_text("x = 1"), "same number"),
        (lambda folder: (folder / "02_after_UnrollLoops.py").write_bytes(b"\xff"), "not UTF-8"),
        (lambda folder: (folder / "02_after_UnrollLoops.py").write_text("def"), "02_after_UnrollLoops.py:1"),
    ],
)
def test_a_broken_dump_is_an_error_that_says_what_is_wrong(
    dump: Path, damage: object, fact: str, capsys: pytest.CaptureFixture[str]
):
    damage(dump)  # type: ignore[operator]
    assert ir_trace.main([str(dump), "-o", str(dump / "page.html")]) == 1
    message = capsys.readouterr().err
    assert message.startswith("pypto-ir-trace: error:") and fact in message
    assert not (dump / "page.html").exists()


def test_a_page_that_cannot_be_written_is_an_error(dump: Path, capsys: pytest.CaptureFixture[str]):
    assert ir_trace.main([str(dump), "-o", str(dump / "nowhere" / "page.html")]) == 1
    assert "cannot be written" in capsys.readouterr().err


def test_a_wrong_command_line_exits_with_two():
    command = [sys.executable, "-m", "pypto.tools.ir_trace", ".", "--context", "-1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "must be non-negative" in done.stderr
