"""Groups and spmd functions with loops, branches, slices and buffers of their own compute what they say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pypto import codegen, ir, passes
from pypto.ir.pass_manager import OptimizationStrategy, PassManager
from pypto.language import parse_program

MATRIX = "pl.Tensor[[64, 64], pl.FP32]"
CORE = "with pl.at(level=pl.Level.CORE_GROUP):"
MAIN = f"def main(self, x: {MATRIX}, n: pl.Scalar[pl.INDEX], out: pl.InOut[{MATRIX}]) -> {MATRIX}:"
KERNEL = f"""
@pl.function(type=pl.FunctionType.InCore)
def rows(self, x: {MATRIX}, column: pl.Scalar[pl.INDEX], out: pl.InOut[{MATRIX}]) -> {MATRIX}:
    block = pl.tile.get_block_idx()
    t = pl.load(x, [block * 8, column * 16], [8, 16])
    out = pl.store(pl.add(t, t), [block * 8, column * 16], out)
    return out
"""


def program(main: str, functions: str = "", main_head: str = f"@pl.function\n{MAIN}") -> ir.Program:
    body = "\n".join(f"    {line}" for line in main.strip("\n").split("\n"))
    text = f"{functions}\n{main_head}\n{body}\n    return out\n"
    return parse_program(
        "import pypto.language as pl\n@pl.program\nclass P:\n"
        + "".join(f"    {line}\n" if line else "\n" for line in text.split("\n"))
    )


def run(source: ir.Program, folder: Path, count: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The input, and the output that was all ones before."""
    x = np.random.default_rng(3).random((64, 64), np.float32)
    out = np.ones((64, 64), np.float32)
    ir.compile(source, output_dir=str(folder))(x, count, out)
    return x, out


def lowered(source: ir.Program) -> ir.Program:
    return PassManager.get_strategy(OptimizationStrategy.Default).run_passes(source)


def test_a_loop_around_a_kernel_inside_a_cluster_runs_every_iteration(tmp_path: Path) -> None:
    source = program(f"""
with pl.cluster():
    for i in pl.range(n):
        {CORE}
            t = pl.load(x, [i * 16, 0], [16, 64])
            out = pl.store(pl.add(t, t), [i * 16, 0], out)
""")
    x, out = run(source, tmp_path, 3)
    np.testing.assert_allclose(out[:48], 2 * x[:48])
    assert (out[48:] == 1).all()


def test_slices_buffers_and_branches_inside_a_cluster_work(tmp_path: Path) -> None:
    source = program(f"""
with pl.cluster():
    tmp = pl.create_tensor([64, 64], dtype=pl.FP32)
    for i in pl.range(4):
        rows = pl.slice(x, [16, 64], [i * 16, 0])
        {CORE}
            tmp = pl.assemble(tmp, pl.add(pl.matmul(rows, x), 1.0), [i * 16, 0])
    for i in pl.range(4):
        if i < n:
            {CORE}
                out = pl.assemble(out, pl.mul(pl.slice(tmp, [16, 64], [i * 16, 0]), 2.0), [i * 16, 0])
        else:
            {CORE}
                out = pl.assemble(out, pl.mul(pl.slice(tmp, [16, 64], [i * 16, 0]), 3.0), [i * 16, 0])
""")
    x, out = run(source, tmp_path, 1)
    expected = (x @ x + 1) * 3
    expected[:16] *= 2 / 3
    np.testing.assert_allclose(out, expected, rtol=1e-4)


def test_a_tensor_that_a_loop_in_a_cluster_computes_anew_is_its_own_in_each_iteration(
    tmp_path: Path,
) -> None:
    source = program(f"""
with pl.cluster():
    a = x
    for i in pl.range(n):
        {CORE}
            b = pl.add(a, x)
        {CORE}
            a = pl.mul(b, a)
    {CORE}
        out = pl.assemble(out, a, [0, 0])
""")
    x, out = run(source, tmp_path, 3)
    expected = x
    for _ in range(3):
        expected = (expected + x) * expected
    np.testing.assert_allclose(out, expected, rtol=1e-4)


@pytest.mark.parametrize("blocks", [1, 3, 8])
@pytest.mark.parametrize("count", ["{blocks}", "n"])
def test_a_loop_between_cluster_and_spmd_launches_all_blocks_each_time(
    tmp_path: Path, blocks: int, count: str
) -> None:
    source = program(f"""
with pl.cluster():
    for j in pl.range(4):
        for b in pl.spmd({count.format(blocks=blocks)}):
            t = pl.load(x, [b * 8, j * 16], [8, 16])
            out = pl.store(pl.add(t, t), [b * 8, j * 16], out)
""")
    x, out = run(source, tmp_path, blocks)
    np.testing.assert_allclose(out[: 8 * blocks], 2 * x[: 8 * blocks])
    assert (out[8 * blocks :] == 1).all()


@pytest.mark.parametrize("blocks", [1, 3, 8])
def test_a_launch_of_a_group_with_a_loop_launches_each_of_its_kernels(tmp_path: Path, blocks: int) -> None:
    group = f"""
@pl.function(type=pl.FunctionType.Group)
def columns(self, x: {MATRIX}, out: pl.InOut[{MATRIX}]) -> {MATRIX}:
    for j in pl.range(4):
        out = self.rows(x, j, out)
    return out
@pl.function(type=pl.FunctionType.Spmd)
def launch(self, x: {MATRIX}, out: pl.InOut[{MATRIX}]) -> {MATRIX}:
    out = self.columns(x, out)
    return out
"""
    head = f"@pl.function(type=pl.FunctionType.Orchestration)\n{MAIN}"
    main = f"""
with pl.spmd({blocks}, sync_start=True):
    out = self.launch(x, out)
"""
    source = program(main, KERNEL + group, head)
    x, out = run(source, tmp_path)
    np.testing.assert_allclose(out[: 8 * blocks], 2 * x[: 8 * blocks])
    assert (out[8 * blocks :] == 1).all()
    entry = lowered(source)
    text = codegen.generate_orchestration(entry, entry.get_function("main")).code
    assert f"launch_spec.set_block_num({blocks});" in text
    assert "set_require_sync_start(true);" in text


def test_a_submitted_group_with_a_loop_is_done_when_all_its_tasks_are(tmp_path: Path) -> None:
    group = f"""
@pl.function(type=pl.FunctionType.Group)
def columns(self, x: {MATRIX}, out: pl.InOut[{MATRIX}]) -> {MATRIX}:
    for j in pl.range(4):
        out = self.rows(x, j, out)
    return out
"""
    head = f"@pl.function(type=pl.FunctionType.Orchestration)\n{MAIN}"
    main = """
tmp = pl.create_tensor([64, 64], dtype=pl.FP32)
with pl.manual_scope():
    tmp, first = pl.spmd_submit(self.columns, x, tmp, core_num=8)
    out, second = pl.spmd_submit(self.columns, tmp, out, deps=[first], core_num=n)
"""
    x, out = run(program(main, KERNEL + group, head), tmp_path, 5)
    np.testing.assert_allclose(out[:40], 4 * x[:40])
    assert (out[40:] == 1).all()


def test_equal_clusters_with_loops_are_merged_and_share_their_registrations(tmp_path: Path) -> None:
    step = f"""
with pl.cluster():
    for i in pl.range(4):
        part = pl.slice({{source}}, [16, 64], [i * 16, 0])
        {CORE}
            t = pl.load(part, [0, 0], [16, 64])
            {{target}} = pl.store(pl.add(t, t), [i * 16, 0], {{target}})
"""
    main = "tmp = pl.create_tensor([64, 64], dtype=pl.FP32)" + step.format(source="x", target="tmp")
    source = program(main + step.format(source="tmp", target="out"))
    merged = source
    for lowering in PassManager.get_strategy(OptimizationStrategy.Default).passes:
        merged = lowering(merged)
        if lowering.get_name() == passes.deduplicate_outlined_kernels().get_name():
            break
    groups = [f for f in merged.functions.values() if f.func_type is ir.FunctionType.Group]
    assert len(groups) == 1
    entry = lowered(source)
    registrations = codegen.generate_orchestration(entry, entry.get_function("main")).kernel_registrations
    assert [(row.func_id, row.signature) for row in registrations] == [(0, ("IN", "INOUT"))]
    x, out = run(source, tmp_path)
    np.testing.assert_allclose(out, 4 * x)


def test_a_loop_around_hand_written_lanes_in_a_group_is_refused_with_its_place(tmp_path: Path) -> None:
    lanes = KERNEL.replace("InCore", "AIV") + KERNEL.replace("InCore", "AIC").replace("rows", "cube_rows")
    group = f"""
@pl.function(type=pl.FunctionType.Group)
def columns(self, x: {MATRIX}, out: pl.InOut[{MATRIX}]) -> {MATRIX}:
    for j in pl.range(4):
        out = self.cube_rows(x, j, out)
        out = self.rows(x, j, out)
    return out
"""
    head = f"@pl.function(type=pl.FunctionType.Orchestration)\n{MAIN}"
    source = program("out = self.columns(x, out)", lanes + group, head)
    with pytest.raises(RuntimeError, match=r"write loops and branches around the pl\.cluster\(\)"):
        ir.compile(source, output_dir=str(tmp_path))


def test_a_predicate_for_a_group_with_a_loop_is_refused(tmp_path: Path) -> None:
    group = f"""
@pl.function(type=pl.FunctionType.Group)
def columns(self, x: {MATRIX}, out: pl.InOut[{MATRIX}]) -> {MATRIX}:
    for j in pl.range(4):
        out = self.rows(x, j, out)
    return out
"""
    head = f"@pl.function(type=pl.FunctionType.Orchestration)\n{MAIN}".replace(
        "out: pl.InOut", "flags: pl.Tensor[[4], pl.INT32], out: pl.InOut"
    )
    main = "out, first = pl.submit(self.columns, x, out, predicate=(flags[0] > 0))"
    with pytest.raises(ValueError, match="'columns' submits tasks of its own"):
        ir.compile(program(main, KERNEL + group, head), output_dir=str(tmp_path))


def test_a_wrapper_gives_no_block_count_to_launches_that_declare_their_own(tmp_path: Path) -> None:
    wrapper = f"""
@pl.function(type=pl.FunctionType.Spmd)
def inner(self, x: {MATRIX}, j: pl.Scalar[pl.INDEX], out: pl.InOut[{MATRIX}]) -> {MATRIX}:
    pl.func_attr({{"core_num": 3}})
    out = self.rows(x, j, out)
    return out

@pl.function(type=pl.FunctionType.Spmd)
def outer(self, x: {MATRIX}, out: pl.InOut[{MATRIX}]) -> {MATRIX}:
    pl.func_attr({{"core_num": 2}})
    for j in pl.range(4):
        out = self.inner(x, j, out)
    return out
"""
    x, out = run(program("out = self.outer(x, out)", KERNEL + wrapper), tmp_path)
    np.testing.assert_allclose(out[:24], 2 * x[:24])
    assert (out[24:] == 1).all()
