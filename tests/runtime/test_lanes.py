"""Lanes of one kernel that exchange tiles, signal and meet: numbers, and messages instead of hanging."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import pypto.language as pl
from pypto import backend, ir
from tests.runtime import lane_programs

ROUNDS = 50

Compile = Callable[[ir.Program], ir.CompiledProgram]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Compile]:
    """Compiles each program once."""
    known: dict[str, ir.CompiledProgram] = {}
    backend.reset_for_testing()

    def compile_once(program: ir.Program) -> ir.CompiledProgram:
        if program.name not in known:
            folder = tmp_path_factory.mktemp(program.name)
            known[program.name] = ir.compile(program, folder, dump_passes=False)
        return known[program.name]

    yield compile_once
    backend.reset_for_testing()


@pytest.fixture(params=[1, 2, 8])
def workers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYPTO_WORKERS", str(request.param))
    # A test that hangs would hang all of them.
    monkeypatch.setenv("PYPTO_STALL_SECONDS", "20")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


# ---------------------------------------------------------------- numbers


@pytest.mark.usefixtures("workers")
def test_cube_lane_sends_through_two_slots_to_the_vector_lane(
    compiled: Compile, rng: np.random.Generator
) -> None:
    program = compiled(lane_programs.Forward)
    for _ in range(ROUNDS):
        a, b, out = normal(rng, 128, 32), normal(rng, 32, 32), np.zeros((128, 32), np.float32)
        program(a, b, out)
        np.testing.assert_allclose(out, np.maximum(a @ b, 0), rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("name", ["main", "loosely"])
def test_three_lanes_exchange_halves_in_both_directions_in_every_block(
    compiled: Compile, rng: np.random.Generator, name: str
) -> None:
    program = getattr(compiled(lane_programs.RoundTrip), name)
    for _ in range(ROUNDS):
        x, w, out = normal(rng, 128, 32), normal(rng, 32, 64), np.zeros((128, 64), np.float32)
        program(x, w, out)
        np.testing.assert_allclose(out, 2 * ((x + 1) @ w), rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("workers")
def test_a_tile_goes_to_both_vector_lanes_as_columns_or_as_copies(
    compiled: Compile, rng: np.random.Generator
) -> None:
    program = compiled(lane_programs.Halves)
    for _ in range(ROUNDS):
        x = normal(rng, 16, 32).astype(np.float16)
        out, both, lanes = (np.zeros(shape, np.float16) for shape in ((16, 32), (16, 32), (2, 16, 32)))
        program(x, out, both, lanes)
        np.testing.assert_array_equal(out, x + np.float16(1))
        np.testing.assert_array_equal(both, x * np.float16(2))
        np.testing.assert_array_equal(lanes, np.stack([x, x]))


@pytest.mark.usefixtures("workers")
def test_events_order_what_both_sides_do_to_a_tensor(compiled: Compile) -> None:
    program = compiled(lane_programs.Signals)
    for _ in range(ROUNDS):
        x = np.ones((8, 16), np.float32)
        program(x)
        np.testing.assert_array_equal(x, 46)


@pytest.mark.usefixtures("workers")
def test_blocks_that_start_together_meet(compiled: Compile, rng: np.random.Generator) -> None:
    program = compiled(lane_programs.Meeting)
    for _ in range(ROUNDS):
        rows, sums = normal(rng, 6, 16), np.zeros((6, 16), np.float32)
        wanted = np.broadcast_to((rows + 2).sum(axis=0), (6, 16))
        program(rows, np.zeros(64, np.int32), sums)
        np.testing.assert_allclose(sums, wanted, rtol=1e-5, atol=1e-5)


def test_valid_rows_are_shared_among_the_lanes_and_joined(
    compiled: Compile, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYPTO_CHECKED", "1")
    x, out = normal(rng, 13, 32), np.zeros((13, 32), np.float32)
    compiled(lane_programs.Odds).valid_part(x, out)
    np.testing.assert_array_equal(out, x)


def test_vector_function_for_both_lanes_runs_on_both(compiled: Compile) -> None:
    out = np.zeros((2, 32), np.int32)
    compiled(lane_programs.Odds).vector_pair(out)
    np.testing.assert_array_equal(out, [[5] * 32, [6] * 32])


def test_lane_without_a_partner_cannot_pop(compiled: Compile) -> None:
    with pytest.raises(RuntimeError, match="in kernel listen: the task has no other lane"):
        compiled(lane_programs.Odds).alone(np.zeros((2, 32), np.int32))


@pytest.mark.parametrize(("name", "rows"), [("rows", 32), ("columns", 32), ("odd", 15)])
def test_region_that_is_split_over_the_lanes_does_the_work_of_both(
    compiled: Compile, rng: np.random.Generator, name: str, rows: int
) -> None:
    extent = rows + rows % 2
    a, b = normal(rng, rows, 32), normal(rng, 32, 32)
    side, out = np.zeros((extent, 32), np.float32), np.zeros((extent, 32), np.float32)
    getattr(compiled(lane_programs.Regions), name)(a, b, side, out)
    changed = np.zeros((extent, 32), np.float32)
    changed[:rows] = 2 * (a @ b)
    if name == "columns":
        changed[:, 16:] += 1
    else:
        changed[extent // 2 :] += 1
    np.testing.assert_allclose(side[:rows], changed[:rows], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(out[:rows], (changed @ b)[:rows], rtol=1e-4, atol=1e-3)


def test_group_becomes_one_task_with_a_kernel_per_lane(compiled: Compile) -> None:
    texts = {
        name: "\n".join(path.read_text() for path in Path(compiled(program).output_dir).rglob("*.cpp"))
        for name, program in (("pair", lane_programs.Forward), ("halves", lane_programs.Halves))
    }
    assert "MixedKernels mixed_0 = {0, 1, INVALID_KERNEL_ID};" in texts["pair"]
    assert "MixedKernels mixed_0 = {0, 1, 1};" in texts["halves"]


# ---------------------------------------------------------------- programs that are wrong


def run_uneven(compiled: Compile, first: int, pushes: int, pops: int, row: int = 0) -> np.ndarray:
    x, out = np.ones((16, 16), np.float32), np.zeros((16, 16), np.float32)
    compiled(lane_programs.Uneven)(x, out, first, pushes, pops, row)
    return out


@pytest.mark.usefixtures("workers")
def test_pop_that_nobody_will_serve_is_an_error(compiled: Compile) -> None:
    message = (
        r"kernel 'pop' \(id 1\), block 0 of 1, lane AIV0: tile.tpop_from_aic at lane_programs.py:\d+ in "
        "kernel pop: waits for ever: AIC has returned"
    )
    with pytest.raises(RuntimeError, match=message):
        run_uneven(compiled, 0, 3, 5)
    assert (run_uneven(compiled, 0, 7, 7)[:15] == 1).all(), "the next run works"


@pytest.mark.usefixtures("workers")
def test_push_into_a_full_queue_that_nobody_will_empty_is_an_error(compiled: Compile) -> None:
    message = "lane AIC: tile.tpush_to_aiv at .* waits for ever: AIV0 has returned"
    with pytest.raises(RuntimeError, match=message):
        run_uneven(compiled, 0, 6, 1)


@pytest.mark.usefixtures("workers")
def test_lanes_that_wait_for_one_another_are_named(compiled: Compile) -> None:
    with pytest.raises(RuntimeError, match="deadlock, every lane waits") as caught:
        run_uneven(compiled, 1, 2, 2)
    assert "AIC in tile.tpop_from_aiv at lane_programs.py" in str(caught.value)
    assert "AIV0 in tile.tpop_from_aic at lane_programs.py" in str(caught.value)


@pytest.mark.usefixtures("workers")
def test_lane_that_fails_ends_the_wait_of_its_peer_and_is_the_one_reported(
    compiled: Compile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYPTO_CHECKED", "1")
    message = (
        r"kernel 'push' \(id 0\), block 0 of 1, lane AIC: tile.load at lane_programs.py:\d+ in kernel push"
    )
    for _ in range(10):
        with pytest.raises(RuntimeError, match=message):
            run_uneven(compiled, 0, 2, 3, row=16)
    assert (run_uneven(compiled, 0, 2, 2, row=15)[:15] == 1).all()


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("row", [8, -1])
def test_index_out_of_range_is_reported_with_kernel_block_and_line_in_checked_mode(
    compiled: Compile, monkeypatch: pytest.MonkeyPatch, row: int
) -> None:
    monkeypatch.setenv("PYPTO_CHECKED", "1")
    program = compiled(lane_programs.Lookup)
    table = np.arange(8 * 16, dtype=np.float32).reshape(8, 16)
    line = next(
        number
        for number, text in enumerate(Path(lane_programs.__file__).read_text().splitlines(), 1)
        if "pl.load(table, [row, 0]" in text
    )
    message = (
        rf"^kernel 'copy_row' \(id 0\), block 2 of 4: tile.load at lane_programs.py:{line} in kernel "
        f"copy_row: out of range: {row} in dimension 0 of extent 8$"
    )
    with pytest.raises(RuntimeError, match=message):
        program(table, np.array([0, 7, row, 1], np.int32), np.zeros((4, 16), np.float32))
    out = np.zeros((4, 16), np.float32)
    program(table, np.array([0, 7, 3, 1], np.int32), out)
    np.testing.assert_array_equal(out, table[[0, 7, 3, 1]])


def test_lanes_that_exchange_tiles_need_the_same_arguments(tmp_path) -> None:
    @pl.program
    class Uneven:
        @pl.function(type=pl.FunctionType.AIC)
        def cube(self, x: pl.Tensor[[16, 16], pl.FP32]):
            a = pl.load(x, [0, 0], [16, 16], target_memory=pl.Mem.Mat)
            left, right = pl.move(a, pl.Mem.Left), pl.move(a, pl.Mem.Right)
            pl.tpush_to_aiv(pl.matmul(left, right), split=0)

        @pl.function(type=pl.FunctionType.AIV)
        def vector(self, out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]) -> pl.Tensor[[16, 16], pl.FP32]:
            t = pl.tpop_from_aic(shape=[16, 16], dtype=pl.FP32)
            return pl.store(t, [0, 0], out)

        @pl.function(type=pl.FunctionType.Group)
        def both(
            self, x: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]
        ) -> pl.Tensor[[16, 16], pl.FP32]:
            self.cube(x)
            return self.vector(out)

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self, x: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]
        ) -> pl.Tensor[[16, 16], pl.FP32]:
            return self.both(x, out)

    with pytest.raises(Exception, match=r"group 'both' \(cube, vector\) exchange tiles.*same arguments"):
        ir.compile(Uneven, str(tmp_path), platform="a2a3sim", dump_passes=False)
