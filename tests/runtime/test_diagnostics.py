"""What runs leave in `dfx_outputs/`: scopes, contents of arguments."""
# ruff: noqa: RET504  (a program names what it returns)

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pypto.language as pl
from pypto import ir
from pypto.runtime import RunConfig
from tests.runtime.programs import AddScaled

ONES = np.ones((32, 64), np.float32)


@pl.program
class Marked:
    """Two tasks; the arguments of the second are marked for dumps, and its kernel sees a column."""

    @pl.function(type=pl.FunctionType.InCore)
    def grow(self, x: pl.InOut[pl.Tensor[[4, 8], pl.INT32]]) -> pl.Tensor[[4, 8], pl.INT32]:
        x = pl.store(pl.add(pl.load(x, [0, 0], [4, 8]), 1), [0, 0], x)
        return x

    @pl.function(type=pl.FunctionType.InCore)
    def first(
        self, x: pl.Tensor[[4, 2], pl.INT32], out: pl.Out[pl.Tensor[[4, 2], pl.INT32]]
    ) -> pl.Tensor[[4, 2], pl.INT32]:
        for i in pl.range(4):
            pl.write(out, [i, 0], pl.read(x, [i, 1]))
            pl.write(out, [i, 1], pl.read(x, [i, 0]))
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.InOut[pl.Tensor[[4, 8], pl.INT32]], out: pl.Out[pl.Tensor[[4, 2], pl.INT32]]
    ) -> pl.Tensor[[4, 2], pl.INT32]:
        x = self.grow(x)
        column = pl.slice(x, [4, 2], [0, 2])
        pl.dump_tag(column)
        out = self.first(column, out)
        return out


def dumps(root: Path) -> list[dict[str, Any]]:
    folder = root / "dfx_outputs" / "args_dump"
    raw = (folder / "args.bin").read_bytes()
    found: list[dict[str, Any]] = json.loads((folder / "index.json").read_text())["tensors"]
    kinds = {"fp32": np.float32, "int32": np.int32}
    for entry in found:
        part = raw[entry["offset"] : entry["offset"] + entry["bytes"]]
        entry["value"] = np.frombuffer(part, kinds[entry["dtype"]]).reshape(entry["shape"])
    return found


def test_all_arguments_are_dumped_before_and_after_their_tasks(tmp_path: Path) -> None:
    compiled = ir.compile(AddScaled, tmp_path, dump_passes=False)
    compiled(ONES, ONES, config=RunConfig(enable_dump_args=2))
    rows = [(d["name"], d["arg"], d["role"], d["when"], d["value"][0, 0]) for d in dumps(tmp_path)]
    assert rows == [
        ("add", 0, "in", "before", 1),
        ("add", 1, "in", "before", 1),
        ("add", 2, "out", "after", 2),
        ("triple", 0, "in", "before", 2),
        ("triple", 1, "out", "after", 6),
    ]


def test_level_one_dumps_marked_arguments_as_the_kernel_sees_them(tmp_path: Path) -> None:
    compiled = ir.compile(Marked, tmp_path, dump_passes=False)
    x, out = np.arange(32, dtype=np.int32).reshape(4, 8), np.zeros((4, 2), np.int32)
    compiled(x, out, config=RunConfig(enable_dump_args=1))
    assert (out == x[:, [3, 2]]).all()
    (row,) = dumps(tmp_path)
    assert (row["name"], row["arg"], row["when"]) == ("first", 0, "before")
    assert (row["value"] == x[:, 2:4]).all()
    compiled(x, out, config=RunConfig(enable_dump_args=2))
    grown = [d for d in dumps(tmp_path) if d["name"] == "grow"]
    assert [d["when"] for d in grown] == ["before", "after"]
    assert (grown[1]["value"] == grown[0]["value"] + 1).all() and grown[0]["role"] == "inout"


def test_scope_statistics_count_tasks_and_peak_bytes(tmp_path: Path) -> None:
    compiled = ir.compile(AddScaled, tmp_path, dump_passes=False)
    compiled(ONES, ONES, config=RunConfig(enable_scope_stats=True))
    path = tmp_path / "dfx_outputs" / "scope_stats" / "scope_stats.jsonl"
    whole, *scopes = [json.loads(line) for line in path.read_text().splitlines()]
    assert whole["scope"] == 0 and whole["parent"] is None and whole["mode"] == "auto"
    assert sum(scope["tasks"] for scope in scopes) == 2
    assert whole["peak_bytes"] == ONES.nbytes == sum(scope["bytes"] for scope in scopes)


@pytest.mark.parametrize("name", ["enable_pmu", "enable_dep_gen"])
def test_nothing_else_is_written(tmp_path: Path, name: str) -> None:
    compiled = ir.compile(AddScaled, tmp_path, dump_passes=False)
    compiled(ONES, ONES, config=RunConfig(**{name: 1}))  # type: ignore[arg-type]
    written = [path.name for path in (tmp_path / "dfx_outputs").iterdir()]
    assert written == ([] if name == "enable_pmu" else ["deps.json"])
