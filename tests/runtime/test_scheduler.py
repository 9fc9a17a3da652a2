"""What the task runtime promises, checked with the graph it builds and with the values kernels leave."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from tests.runtime.script import (
    ARENA,
    BLOCKS,
    CRASH,
    EQ,
    EXCHANGE,
    FAIL,
    GE,
    GT,
    INOUT,
    INPUT,
    LE,
    LISTEN,
    LT,
    MEET,
    MIX,
    NE,
    NO_DEP,
    NOTHING,
    OUTPUT,
    OUTPUT_EXISTING,
    SCALARS,
    SLOW_ADD,
    UNSET,
    Runner,
    Script,
)

ROOT = Path(__file__).parents[2]


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.uint32)


# ---------------------------------------------------------------- inferred edges


def test_reader_after_writer_is_ordered(runner: Runner) -> None:
    s = Script()
    s.submit(NOTHING, (OUTPUT_EXISTING, 0))
    s.submit(NOTHING, (INPUT, 0))
    assert runner.edges(s, zeros(8)) == {(0, 1)}


def test_updates_follow_one_another_and_replace_what_they_cover(runner: Runner) -> None:
    s = Script()
    for tag in (INOUT, INOUT, INPUT):
        s.submit(NOTHING, (tag, 0))
    assert runner.edges(s, zeros(8)) == {(0, 1), (1, 2)}


def test_two_readers_may_run_together(runner: Runner) -> None:
    s = Script()
    s.submit(MEET, (INPUT, 0), (NO_DEP, 1), scalars=[2])
    s.submit(MEET, (INPUT, 0), (NO_DEP, 1), scalars=[2])
    runner.run(s, zeros(8), zeros(1))


def test_writer_waits_for_earlier_readers(runner: Runner) -> None:
    s = Script()
    s.submit(NOTHING, (INPUT, 0))
    s.submit(NOTHING, (INPUT, 0))
    s.submit(NOTHING, (INOUT, 0))
    s.submit(NOTHING, (OUTPUT_EXISTING, 0))
    assert runner.edges(s, zeros(8)) == {(0, 2), (1, 2), (2, 3)}


def test_parallel_writers_are_not_ordered_but_a_reader_waits_for_all(runner: Runner) -> None:
    s = Script()
    for _ in range(3):
        s.submit(NOTHING, (OUTPUT_EXISTING, 0))
    s.submit(NOTHING, (INPUT, 0))
    assert runner.edges(s, zeros(8)) == {(0, 3), (1, 3), (2, 3)}


def test_update_after_ten_partial_writers_leaves_one_producer(runner: Runner) -> None:
    s = Script()
    for i in range(10):
        s.submit(NOTHING, (INOUT, s.view(0, [1, 4], [i, 0])))
    s.submit(NOTHING, (INOUT, 0))
    s.submit(NOTHING, (INPUT, 0))
    assert runner.edges(s, zeros(10, 4)) == {*((i, 10) for i in range(10)), (10, 11)}


@pytest.mark.parametrize(
    ("first", "second", "meet"),
    [
        (([4, 8], [0, 0]), ([4, 8], [4, 0]), False),  # row blocks
        (([8, 4], [0, 0]), ([8, 4], [0, 4]), False),  # column blocks: their ranges interleave
        (([8, 4], [0, 0]), ([8, 4], [0, 3]), True),
        (([4, 4], [0, 0]), ([4, 4], [4, 4]), False),  # diagonal
        (([4, 4], [0, 0]), ([4, 4], [3, 3]), True),
        (([1, 8], [2, 0]), ([8, 1], [0, 7]), True),  # a row and a column
    ],
)
@pytest.mark.parametrize("transposed", [False, True])
def test_boxes_of_a_matrix_meet_exactly_when_they_share_an_element(
    runner: Runner,
    first: tuple[list[int], list[int]],
    second: tuple[list[int], list[int]],
    meet: bool,
    transposed: bool,
) -> None:
    s = Script()
    s.submit(NOTHING, (INOUT, s.view(0, *first)))
    other = s.view(0, *second)
    s.submit(NOTHING, (INOUT, s.transpose(other, 0, 1) if transposed else other))
    assert runner.edges(s, zeros(8, 8)) == ({(0, 1)} if meet else set())


def test_row_view_and_its_reshape_are_one_region(runner: Runner) -> None:
    s = Script()
    row = s.view(0, [1, 8], [3, 0])
    s.submit(NOTHING, (INOUT, s.reshape(row, [8])))
    s.submit(NOTHING, (INOUT, row))
    s.submit(NOTHING, (INPUT, s.view(0, [1, 8], [4, 0])))
    assert runner.edges(s, zeros(8, 8)) == {(0, 1)}


def test_empty_view_has_no_edges(runner: Runner) -> None:
    s = Script()
    s.submit(NOTHING, (INOUT, 0))
    s.submit(NOTHING, (INOUT, s.view(0, [0, 8], [2, 0])))
    assert runner.edges(s, zeros(8, 8)) == set()


def test_arguments_that_share_memory_are_ordered(runner: Runner) -> None:
    whole = zeros(64)
    s = Script()
    s.submit(NOTHING, (INOUT, 0))
    s.submit(NOTHING, (INPUT, 1))
    s.submit(NOTHING, (INPUT, 2))
    assert runner.edges(s, whole[:32], whole[16:48], whole[32:]) == {(0, 1)}


def test_bytes_decide_for_views_of_other_element_types(runner: Runner) -> None:
    words = zeros(16)
    s = Script()
    s.submit(NOTHING, (INOUT, s.view(0, [4], [4])))
    s.submit(NOTHING, (INPUT, s.view(1, [8], [8])))
    s.submit(NOTHING, (INPUT, s.view(1, [8], [16])))
    assert runner.edges(s, words, words.view(np.int8)) == {(0, 2)}


def test_no_dep_sees_the_creator_only(runner: Runner) -> None:
    s = Script()
    made = s.output_register()
    s.submit(NOTHING, (OUTPUT, made, 8))
    s.submit(NOTHING, (INOUT, made))
    s.submit(NOTHING, (NO_DEP, made))
    s.submit(NOTHING, (INOUT, made))
    assert runner.edges(s) == {(0, 1), (0, 2), (0, 3), (1, 3)}


def test_manual_dep_buffer_is_not_tracked_through_views_either(runner: Runner) -> None:
    s = Script()
    made = s.alloc([4, 4], manual_dep=True)
    s.submit(NOTHING, (INOUT, made))
    s.submit(NOTHING, (INOUT, s.view(made, [2, 4], [0, 0])))
    assert runner.edges(s) == set()


def test_manual_dep_buffer_orders_everything_behind_its_creator_only(runner: Runner) -> None:
    s = Script()
    made = s.output_register()
    s.submit(NOTHING, (OUTPUT, made, -8))
    for tag in (INOUT, INPUT, OUTPUT_EXISTING, INOUT):
        s.submit(NOTHING, (tag, made))
    s.submit(NOTHING, (INPUT, s.view(made, [4], [2])))
    assert runner.edges(s) == {(0, i) for i in range(1, 6)}


def test_one_task_naming_a_tensor_twice_does_not_wait_for_itself(runner: Runner) -> None:
    x = zeros(4)
    s = Script()
    s.submit(MIX, (INPUT, 0), (OUTPUT_EXISTING, 0), scalars=[1, 0b01, 0b10])
    s.submit(MIX, (INOUT, 0), (INPUT, 0), scalars=[1, 0b01, 0b01])
    runner.run(s, x)
    assert x.any()


# ---------------------------------------------------------------- scopes, explicit deps, dummy tasks


def test_manual_scope_has_declared_edges_only(runner: Runner) -> None:
    s = Script()
    s.submit(NOTHING, (INOUT, 0))
    s.begin(manual=True)
    first = s.submit(NOTHING, (INOUT, 0))
    s.submit(NOTHING, (INOUT, 0))
    s.submit(NOTHING, (INOUT, 0), deps=[first])
    s.end()
    s.submit(NOTHING, (INPUT, 0))
    inside = {(1, 3)}
    before = {(0, 1), (0, 2), (0, 3)}
    after = {(0, 4), (1, 4), (2, 4), (3, 4)}
    assert runner.edges(s, zeros(4)) == inside | before | after


def test_manual_scope_in_a_manual_scope_is_one_scope(runner: Runner) -> None:
    s = Script()
    s.begin(manual=True)
    s.submit(NOTHING, (INOUT, 0))
    s.begin(manual=True)
    s.submit(NOTHING, (INOUT, 0))
    s.end()
    s.end()
    s.begin(manual=True)
    s.submit(NOTHING, (INOUT, 0))
    s.end()
    assert runner.edges(s, zeros(4)) == {(0, 2), (1, 2)}


def test_auto_scope_in_a_manual_scope_is_fatal(runner: Runner) -> None:
    s = Script()
    s.begin(manual=True)
    s.begin(manual=False)
    s.end()
    s.end()
    with pytest.raises(RuntimeError, match="AUTO scope inside a MANUAL scope"):
        runner.run(s)


def test_explicit_deps_add_to_inferred_ones(runner: Runner) -> None:
    s = Script()
    a = s.submit(NOTHING, (INOUT, 0))
    s.submit(NOTHING, (INOUT, 1))
    s.submit(NOTHING, (INOUT, 1), deps=[a, a])
    assert runner.edges(s, zeros(4), zeros(4)) == {(0, 2), (1, 2)}


def test_dep_on_a_finished_task_is_accepted(runner: Runner) -> None:
    x, y = zeros(4), zeros(4)
    s = Script()
    a = s.submit(SLOW_ADD, (INPUT, 0), (OUTPUT_EXISTING, 1))
    s.get(1, 0, 0)
    s.submit(NOTHING, (INOUT, 1), deps=[a])
    runner.run(s, x, y)
    assert x[0] == 1


def test_dep_on_an_invalid_id_is_fatal(runner: Runner) -> None:
    s = Script()
    s.submit(NOTHING, (INOUT, 0), deps=[s.invalid_id()])
    with pytest.raises(RuntimeError, match="vector_test: dependency 0 is not a valid task id"):
        runner.run(s, zeros(4))


def test_dummy_task_gathers_its_producers(runner: Runner) -> None:
    s = Script()
    four = [s.submit(NOTHING, (INOUT, i)) for i in range(4)]
    gate = s.dummy(four)
    s.submit(NOTHING, deps=[gate])
    s.dummy()
    expected = {*((i, 4) for i in range(4)), (4, 5)}
    assert runner.edges(s, *(zeros(2) for _ in range(4))) == expected


# ---------------------------------------------------------------- blocks, lanes, gangs


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("sync_start", [False, True])
def test_every_block_runs_once_and_knows_the_count(runner: Runner, workers: int, sync_start: bool) -> None:
    seen, count = zeros(37), zeros(1)
    s = Script()
    s.submit(BLOCKS, (INOUT, 0), (INOUT, 1), blocks=37, sync_start=sync_start)
    s.submit(NOTHING, (INOUT, 0))
    runner.run(s, seen, count, workers=workers)
    assert (seen == 1).all() and count[0] == 37


@pytest.mark.parametrize("workers", [1, 2])
def test_sync_start_has_all_blocks_inside_at_once(runner: Runner, workers: int) -> None:
    s = Script()
    s.submit(MEET, (INOUT, 0), scalars=[8], blocks=8, sync_start=True)
    runner.run(s, zeros(1), workers=workers)


def test_sync_start_of_more_blocks_than_units_is_fatal(runner: Runner) -> None:
    s = Script()
    s.submit(MEET, (INOUT, 0), scalars=[49], blocks=49, sync_start=True)
    with pytest.raises(
        RuntimeError, match="deadlock: 49 blocks must start together, but there are 48 vector units"
    ):
        runner.run(s, zeros(1))
    s = Script()
    s.submit(MEET, (INOUT, 0), scalars=[25], lanes=(1, UNSET, UNSET), blocks=25, sync_start=True)
    with pytest.raises(RuntimeError, match="there are 24 clusters"):
        runner.run(s, zeros(1))


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("blocks", [1, 3])
def test_lanes_of_a_mixed_task_talk_in_both_directions(runner: Runner, workers: int, blocks: int) -> None:
    s = Script()
    for block in range(blocks):
        s.submit(EXCHANGE, (INOUT, block), scalars=[1], lanes=(1, 0, UNSET))
    arrays = [zeros(8) for _ in range(blocks)]
    runner.run(s, *arrays, workers=workers)
    assert all(a[0] == 3 and a[1] == 3 and a[3] == 2 for a in arrays)


def test_second_vector_lane_is_sub_block_one(runner: Runner) -> None:
    both, alone = zeros(8), zeros(8)
    s = Script()
    s.submit(EXCHANGE, (INOUT, 0), scalars=[0], lanes=(UNSET, 0, 0), blocks=2)
    s.submit(EXCHANGE, (INOUT, 1), scalars=[0], lanes=(UNSET, UNSET, 0))
    runner.run(s, both, alone)
    assert list(both[3:5]) == [2, 2] and list(alone[3:5]) == [1, 0]


@pytest.mark.parametrize("blocks", [0, -1, 1 << 31])
def test_block_count_out_of_range_is_fatal(runner: Runner, blocks: int) -> None:
    s = Script()
    s.submit(NOTHING, (INOUT, 0), blocks=blocks)
    with pytest.raises(RuntimeError, match=f"block count {blocks}"):
        runner.run(s, zeros(1))


def test_arena_is_aligned_and_as_large_as_the_kernel_says(runner: Runner) -> None:
    out = zeros(1)
    s = Script()
    s.submit(ARENA, (INOUT, 0))
    runner.run(s, out)
    assert out[0] == 1023


# ---------------------------------------------------------------- predicates, data access


@pytest.mark.parametrize(
    ("op", "true_for"), [(EQ, {0}), (NE, {-1, 1}), (GT, {1}), (LT, {-1}), (GE, {0, 1}), (LE, {-1, 0})]
)
@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
def test_predicate_compares_a_signed_element(
    runner: Runner, op: int, true_for: set[int], dtype: type[np.generic]
) -> None:
    for value in (-1, 0, 1):
        seen = zeros(1)
        s = Script()
        s.predicate(0, op, 0)
        s.submit(BLOCKS, (INOUT, 1), (NO_DEP, 2))
        runner.run(s, np.array([value], dtype), seen, zeros(1))
        assert (seen[0] == 1) == (value in true_for)


def test_false_predicate_releases_the_consumers(runner: Runner) -> None:
    flag, x, y = np.zeros(1, np.int32), zeros(4), zeros(4)
    s = Script()
    s.predicate(0, NE, 0)
    s.submit(SLOW_ADD, (INPUT, 1), (INOUT, 1))
    s.submit(SLOW_ADD, (INPUT, 1), (OUTPUT_EXISTING, 2))
    runner.run(s, flag, x, y)
    assert (x == 0).all() and (y == 1).all()


def test_predicate_waits_for_the_producer_of_its_operand(runner: Runner) -> None:
    source, flag, seen = zeros(1), np.zeros(1, np.int32), zeros(1)
    s = Script()
    s.submit(SLOW_ADD, (INPUT, 0), (OUTPUT_EXISTING, 1))
    s.predicate(1, EQ, 1)
    s.submit(BLOCKS, (INOUT, 2), (NO_DEP, 0))
    s.submit(NOTHING, (INOUT, 1))
    assert runner.edges(s, source, flag, seen) == {(0, 1), (0, 2), (1, 2)}
    assert seen[0] == 1


def test_reading_an_element_waits_for_its_writer(runner: Runner) -> None:
    x, y, out = zeros(4), zeros(4), zeros(2)
    s = Script()
    s.submit(SLOW_ADD, (INPUT, 0), (OUTPUT_EXISTING, 1))
    s.submit(SLOW_ADD, (INPUT, 1), (INOUT, 1))
    s.get(1, 2, 1)
    s.submit(NOTHING, (INOUT, 1))
    runner.run(s, x, y, out)
    assert list(out) == [0, 2]


def test_writing_an_element_waits_for_its_readers(runner: Runner) -> None:
    x, y = zeros(1), zeros(1)
    s = Script()
    s.begin(manual=True)
    s.submit(SLOW_ADD, (INPUT, 0), (OUTPUT_EXISTING, 1))
    s.end()
    s.set(0, 100)
    runner.run(s, x, y)
    assert x[0] == 100 and y[0] == 1


def test_fresh_buffer_starts_with_its_initial_value(runner: Runner) -> None:
    out = zeros(1)
    s = Script()
    s.get(s.alloc([4, 4], value=7), 0, 0)
    runner.run(s, out)
    assert out[0] == 7


def test_checked_run_poisons_fresh_buffers(runner: Runner) -> None:
    out = zeros(1)
    s = Script()
    s.get(s.alloc([4]), 0, 0)
    runner.run(s, out, checked=True)
    assert out[0] == 0xFFFFFFFF


def test_buffer_lives_while_a_handle_or_a_task_names_it(runner: Runner) -> None:
    out = zeros(4)
    s = Script()
    for _ in range(200):
        made = s.alloc([4], value=5)  # allocated in an inner scope
        s.submit(SLOW_ADD if _ == 0 else NOTHING, (INPUT, made), (INOUT, 0))
        s.drop(made)
    runner.run(s, out)
    assert (out == 6).all()


def test_scalars_arrive_bit_for_bit(runner: Runner) -> None:
    out = np.zeros(4, np.uint64)
    nan = 0x7FC00123
    s = Script()
    s.submit(SCALARS, (INOUT, 0), scalars=[0xFFFFFFFF, 1, nan, -(1 << 63)])
    runner.run(s, out)
    assert list(out) == [0xFFFFFFFF, 1, nan, 1 << 63]


# ---------------------------------------------------------------- fatal ends


def test_argument_errors_are_fatal_and_the_next_run_works(runner: Runner) -> None:
    def many_tensors(s: Script) -> None:
        s.submit(NOTHING, *((INPUT, 0) for _ in range(33)))

    def many_scalars(s: Script) -> None:
        s.submit(NOTHING, (INPUT, 0), scalars=range(16))

    def tensor_after_scalar(s: Script) -> None:
        s.submit(NOTHING, (INPUT, 0), scalar_first=True)

    def unknown_function(s: Script) -> None:
        s.submit(NOTHING, lanes=(UNSET, 5, UNSET))

    def no_lane(s: Script) -> None:
        s.submit(NOTHING, lanes=(UNSET, UNSET, UNSET))

    def no_memory(s: Script) -> None:
        s.drop(9)
        s.view(0, [4], [2])

    cases = {
        "more than 32 tensor arguments": many_tensors,
        "more than 16 scalar arguments": many_scalars,
        "a tensor argument follows a scalar argument": tensor_after_scalar,
        "unknown function id 5": unknown_function,
        "without a kernel": no_lane,
        "view leaves its tensor: dim 0, offset 2": no_memory,
        "set_dependencies was called twice": lambda s: s.misuse(0, 0),
        "set_dependencies: null array with a count": lambda s: s.misuse(1, 0),
        "dump of something that is not among the arguments": lambda s: s.misuse(2, 0),
        "timing slot above 15": lambda s: s.misuse(3, 0),
    }
    for message, build in cases.items():
        s = Script()
        build(s)
        with pytest.raises(RuntimeError, match=message):
            runner.run(s, zeros(4))
        x, y = zeros(4), zeros(4)
        s = Script()
        s.submit(SLOW_ADD, (INPUT, 0), (OUTPUT_EXISTING, 1))
        runner.run(s, x, y)
        assert (y == 1).all()


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (0, "transpose axes 0, 2 of a tensor of rank 2"),
        (1, "permute: axis 1 at place 1 is no permutation"),
        (2, r"slice \[0:5:1\] of dim 0 leaves its tensor"),
        (3, r"slice \[0:1:0\]"),
        (4, "as many elements: 32 to 33"),
        (5, "reshape needs a contiguous tensor"),
        (6, "a buffer of 0 dims"),
        (7, "a buffer of 6 dims"),
    ],
)
def test_view_or_buffer_that_cannot_be_is_fatal(runner: Runner, how: int, message: str) -> None:
    s = Script()
    s.misuse_view(how, 0)
    with pytest.raises(RuntimeError, match=message):
        runner.run(s, zeros(4, 8))


def test_failing_kernel_ends_the_run_with_its_name_and_block(runner: Runner) -> None:
    x, y = zeros(4), zeros(4)
    s = Script()
    s.submit(FAIL, (INOUT, 0), lanes=(1, UNSET, UNSET))
    s.submit(SLOW_ADD, (INPUT, 0), (INOUT, 1))
    expected = r"kernel 'cube_test' \(id 1\), block 0 of 1: made to fail \(demo.py:12\)"
    with pytest.raises(RuntimeError, match=expected):
        runner.run(s, x, y)
    assert (y == 0).all(), "no task starts after a fatal error"


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (0, "crash: access to memory that is not there"),
        (1, "crash: integer division by zero"),
        (2, "exception of an unknown type"),
        (3, "aborted, as by a failed assertion"),
    ],
)
@pytest.mark.parametrize("lanes", [(UNSET, 0, UNSET), (1, 0, UNSET)])
def test_crash_in_a_kernel_is_an_error_of_the_run(
    runner: Runner, what: int, message: str, lanes: tuple[int, int, int]
) -> None:
    for _ in range(3):  # the signal is not left blocked
        s = Script()
        s.submit(CRASH, (INOUT, 0), scalars=[what, 0], lanes=lanes, blocks=2)
        with pytest.raises(
            RuntimeError,
            match=rf"kernel '(vector|cube)_test' \(id .\), block . of 2(, lane AI[CV]0?)?: {message}",
        ):
            runner.run(s, zeros(4))


def test_crash_outside_kernels_stays_what_it_was(runner: Runner) -> None:
    runner.run(Script())
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.runtime.crash_outside_kernel"]
    child = subprocess.run(command, capture_output=True, cwd=ROOT, check=False)
    assert child.stdout == b"ran\n" and child.returncode == -signal.SIGSEGV
    assert b"Segmentation fault" in child.stderr


def test_first_error_is_reported(runner: Runner) -> None:
    s = Script()
    s.give_up(3)
    s.give_up(4)
    s.submit(NOTHING, lanes=(UNSET, 5, UNSET))
    with pytest.raises(RuntimeError, match=r"^the script gives up after 3 \(code 7\)$"):
        runner.run(s)


def test_wrong_number_of_arguments_is_an_error_before_the_start(runner: Runner) -> None:
    from pypto.runtime.native_runtime import RunOptions, pack_options

    with pytest.raises(RuntimeError, match="expects 1 arguments, got 0"):
        runner.program.run(b"", [], [], pack_options(RunOptions(1)))


def test_run_without_progress_ends_with_the_tasks_that_wait(runner: Runner) -> None:
    s = Script()
    s.submit(MEET, (INOUT, 0), scalars=[1000])
    with pytest.raises(
        RuntimeError,
        match="no progress for 1 s with 1 tasks unfinished; running: 'vector_test' block 0 lane AIV0",
    ):
        runner.run(s, zeros(1), stall_seconds=1)


def test_watchdog_names_lanes_and_queues(runner: Runner) -> None:
    s = Script()
    s.submit(LISTEN, (INOUT, 0), lanes=(1, 0, UNSET))
    with pytest.raises(RuntimeError, match="no progress for 1 s") as caught:
        runner.run(s, zeros(1), stall_seconds=1)
    assert "'cube_test' block 0 lane AIC" in str(caught.value)
    assert "'vector_test' block 0 lane AIV0 waiting in the test's queue" in str(caught.value)
    runner.run(Script(), zeros(1))


# ---------------------------------------------------------------- many tasks, threads


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_long_chain_keeps_to_its_window(runner: Runner, workers: int) -> None:
    x, y = zeros(4), zeros(4)
    s = Script()
    s.submit(SLOW_ADD, (INPUT, 0), (OUTPUT_EXISTING, 1))
    s.chain(100_000, 1)
    s.submit(SLOW_ADD, (INPUT, 1), (INOUT, 1))
    runner.run(s, x, y, workers=workers, task_window=64)
    assert (y == 2).all()


def test_independent_tasks_share_the_workers(runner: Runner) -> None:
    arrays = [zeros(1) for _ in range(41)]
    s = Script()
    for i in range(40):
        s.submit(SLOW_ADD, (INPUT, 40), (INOUT, i))
    trace = runner.trace(s, *arrays, workers=4)
    assert len({block.thread for block in trace.blocks}) >= 2
    assert all(a[0] == 1 for a in arrays[:40])


def test_python_threads_run_programs_at_once(runner: Runner) -> None:
    """Each run meets the other's task inside a kernel, so neither can have waited for the other to end."""
    meeting = zeros(1)
    errors: list[Exception] = []

    def call() -> None:
        s = Script()
        s.submit(MEET, (NO_DEP, 0), scalars=[4])
        try:
            runner.run(s, meeting, workers=1)
        except RuntimeError as error:
            errors.append(error)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_other_python_threads_go_on_during_a_run(runner: Runner) -> None:
    s = Script()
    for _ in range(50):
        s.submit(SLOW_ADD, (INPUT, 0), (INOUT, 1))
    ticks = 0
    thread = threading.Thread(target=lambda: runner.run(s, zeros(1), zeros(1), workers=1))
    thread.start()
    while thread.is_alive():
        ticks += 1
        time.sleep(0.001)
    assert ticks > 20
