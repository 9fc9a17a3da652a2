"""Where the time of a compile goes, by stage."""

from __future__ import annotations

from pathlib import Path

import pypto.language as pl
from pypto import ir
from pypto.compile_profiling import CompileProfiler

SOURCE = """
import pypto.language as pl

@pl.program
class P:
    @pl.function
    def main(self, x: pl.Tensor[[64], pl.FP32], o: pl.Out[pl.Tensor[[64], pl.FP32]]) -> pl.Tensor[[64], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="copy"):
            t = pl.load(x, [0], [64])
            o = pl.store(t, [0], o)
        return o
"""  # noqa: E501


def test_a_compile_records_its_stages_and_each_generated_function(tmp_path: Path):
    with CompileProfiler() as profiler:
        ir.compile(pl.parse_program(SOURCE), tmp_path, dump_passes=False)
    recorded = {stage["name"]: stage["children"] for stage in profiler.to_dict()["stages"]}
    assert list(recorded) == ["parse", "passes", "codegen"]
    assert "DeduplicateOutlinedKernels" in [child["name"] for child in recorded["passes"]]
    assert [child["name"] for child in recorded["codegen"]] == [
        "orchestration_codegen",
        "kernel_codegen:copy",
    ]
