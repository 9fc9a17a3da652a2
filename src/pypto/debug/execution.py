"""What the Python source of `torch_codegen` runs on: values, scopes, dispatches and tasks.

Two kinds of tensors are told apart: `Memory`, an array that everybody who names it sees change, and `Value`,
a result with a valid region. A scope on a core computes values; what leaves it becomes memory. What an
operator computes comes from its declared meaning (`pypto.debug.operators`), never from code generation.

Tasks run in the order of the text, or in a random order that the derived argument directions and the declared
dependencies allow: missing order then shows as a wrong number.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import random
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pypto import ir
from pypto.core.dtype import DataType
from pypto.debug.arrays import as_given, as_numpy
from pypto.debug.lanes import Lanes
from pypto.ir.evaluate import Value, storage

POISON = 77
"""What undefined memory holds: a small number, so that reading it shows without spoiling everything."""

KERNEL_TYPES = (ir.FunctionType.InCore, ir.FunctionType.AIC, ir.FunctionType.AIV)
_READS = (ir.ArgDirection.Input, ir.ArgDirection.InOut)
_WRITES = (ir.ArgDirection.InOut, ir.ArgDirection.OutputExisting, ir.ArgDirection.Output)


class OutOfSteps(Exception):
    """The loops take more turns than allowed."""


class Undetermined(Exception):
    """The IR of this stage does not say what a kernel returns: it names a parameter that nothing wrote."""


@dataclass(eq=False)
class Memory:
    """An array in global memory; `valid` are the extents of its real data, None if all of it is."""

    array: np.ndarray[Any, Any]
    valid: tuple[int, ...] | None = None


@dataclass(eq=False)
class Task:
    """A dispatch that waits for its turn."""

    callee: Function
    args: list[Any]
    blocks: int | None
    needs: set[int] = field(default_factory=set)


@dataclass(eq=False)
class Pending:
    """What a lane that still runs will return."""

    result: Any = None


@dataclass(eq=False)
class Region:
    """A region that both vector lanes run, one after the other."""

    split: int
    gathered: deque[Value] = field(default_factory=deque)
    """What the first lane gave to be joined with what the second one gives, in the order of the text."""


class Machine:
    """One run of a program: the block that runs, and the tasks that wait.

    Args:
        order: seeds the random order of tasks; None keeps the order of the text.
        most_steps: how many turns all loops may take together; None for no limit.
        only_kernels_compute: whether a tensor computed outside of kernels is an error, as it is in a lowered
            program.
    """

    def __init__(
        self, order: int | None = None, most_steps: int | None = None, *, only_kernels_compute: bool = False
    ) -> None:
        self.rng = None if order is None else random.Random(order)
        self.steps_left = most_steps
        self.only_kernels_compute = only_kernels_compute
        self.is_in_task = False
        self.tasks: list[Task] = []
        self.done: set[int] = set()
        self.readers: list[tuple[np.ndarray[Any, Any], int]] = []
        self.writers: list[tuple[np.ndarray[Any, Any], int]] = []

    def run(self, function: Function, arguments: Sequence[Any]) -> list[Any]:
        """Run a function on arrays, which are changed in place, and numbers; returns what it returns."""
        outer = getattr(_local, "activation", None)
        try:
            results = _call(self, function, [_as_operand(each) for each in arguments], (0, 1))
            self.finish()
        finally:
            _local.activation = outer
        return [each.array if isinstance(each, Memory) else each for each in results]

    def enqueue(
        self,
        callee: Function,
        args: list[Any],
        directions: Sequence[ir.ArgDirection],
        deps: set[int],
        blocks: int | None,
        manual: set[int] | None,
    ) -> int:
        """Let a task wait for the tasks that it depends on; returns its number."""
        task, number = Task(callee, args, blocks, set(deps)), len(self.tasks)
        self.tasks.append(task)
        memory = [
            (arg.array, direction)
            for arg, direction in zip(args, directions, strict=True)
            if isinstance(arg, Memory)
        ]
        for array, direction in memory:
            if direction in _READS:
                task.needs |= _overlapping(self.writers, array)
            if direction in _WRITES:
                task.needs |= _overlapping(self.readers, array)
        if manual is not None:
            task.needs = (task.needs - manual) | deps
            manual.add(number)
        self.readers += [(array, number) for array, direction in memory if direction in _READS]
        self.writers += [(array, number) for array, direction in memory if direction in _WRITES]
        return number

    def finish(self) -> None:
        """Run the waiting tasks, unless one of them asks for it."""
        while not self.is_in_task and len(self.done) < len(self.tasks):
            ready = [n for n, each in enumerate(self.tasks) if n not in self.done and each.needs <= self.done]
            assert self.rng is not None
            number = self.rng.choice(ready)
            task = self.tasks[number]
            self.is_in_task = True
            _launch(self, task.callee, task.args, task.blocks, (0, 1))
            self.is_in_task = False
            self.done.add(number)


def _overlapping(entries: list[tuple[np.ndarray[Any, Any], int]], array: np.ndarray[Any, Any]) -> set[int]:
    return {number for other, number in entries if np.shares_memory(other, array)}


@dataclass(eq=False)
class Activation:
    """One activation of a function."""

    machine: Machine
    block: tuple[int, int]
    in_kernel: bool
    lanes: Lanes | None = None
    lane: int = 0  # the number of the vector lane
    region: Region | None = None
    is_off: bool = False  # in a launch whose condition does not hold
    manual: set[int] | None = None
    left_behind: list[np.ndarray[Any, Any]] = field(default_factory=list)
    """Memory from which a loop went on to a value."""


_local = threading.local()


def here() -> Activation:
    """The activation that runs in this thread."""
    activation: Activation = _local.activation
    return activation


class Function:
    """A function of the source, callable with torch tensors, numpy arrays and numbers.

    Arrays are changed in place. The results are returned as well: none, one, or a tuple; an array that was
    passed in is returned itself.
    """

    def __init__(
        self,
        body: Callable[..., Any],
        kind: ir.FunctionType,
        directions: Sequence[ir.ParamDirection],
        returned: Sequence[int] | None,
        is_dual: bool,
    ) -> None:
        functools.update_wrapper(self, body)
        self.body, self.kind, self.directions = body, kind, tuple(directions)
        self.returned, self.is_dual = returned, is_dual

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        bound = inspect.signature(self.body).bind(*args, **keywords)
        given = list(bound.args)
        operands = [as_numpy(each) for each in given]
        results = Machine().run(self, operands)
        back = [as_given(each, operands, given) for each in results]
        return None if not back else back[0] if len(back) == 1 else tuple(back)


def function(
    kind: str, *directions: str, returned: Sequence[int] | None = None, dual: bool = False
) -> Callable[[Callable[..., Any]], Function]:
    """Decorator: a function of the IR with the directions of its parameters.

    Args:
        returned: positions of the parameters that it returns; None if it returns anything else.
        dual: whether it runs on both vector lanes.
    """
    known = [ir.ParamDirection[each] for each in directions]
    return lambda body: Function(body, ir.FunctionType[kind], known, returned, dual)


def _as_operand(value: Any) -> Any:
    return Memory(value) if isinstance(value, np.ndarray) else value


def _call(
    machine: Machine,
    callee: Function,
    args: Sequence[Any],
    block: tuple[int, int],
    *,
    is_off: bool = False,
    lanes: Lanes | None = None,
    lane: int = 0,
) -> list[Any]:
    outer = getattr(_local, "activation", None)
    active = Activation(machine, block, callee.kind in KERNEL_TYPES, lanes, lane, is_off=is_off)
    _local.activation = active
    try:
        returned = callee.body(*args)
        if active.lanes is not lanes and active.lanes is not None:
            active.lanes.join()
        values = [] if returned is None else list(returned) if isinstance(returned, tuple) else [returned]
        values = [each.result if isinstance(each, Pending) else each for each in values]
        _check_returns(callee, values)
        return values
    finally:
        _local.activation = outer


def _check_returns(callee: Function, values: list[Any]) -> None:
    """The outliner lets a kernel return the parameter that a loop computes anew; lowering mends it."""
    left = here().left_behind
    if callee.kind is ir.FunctionType.InCore and left:
        for value in values:
            if isinstance(value, Memory) and any(np.shares_memory(each, value.array) for each in left):
                raise Undetermined(callee.body.__name__)


def _launch(
    machine: Machine, callee: Function, args: list[Any], blocks: int | None, block: tuple[int, int]
) -> list[Any]:
    """Run all blocks of a dispatch; the results of the last one."""
    if blocks is None:
        return _run_lanes(machine, callee, args, block)
    results: list[Any] = []
    numbers = list(range(blocks))
    if machine.rng is not None:
        machine.rng.shuffle(numbers)
    for number in numbers:
        results = _run_lanes(machine, callee, args, (number, blocks))
    return results


def _run_lanes(machine: Machine, callee: Function, args: list[Any], block: tuple[int, int]) -> list[Any]:
    if callee.is_dual:
        _call(machine, callee, args, block, lane=1)
    return _call(machine, callee, args, block)


# --- what the source calls


def dispatch(
    callee: Function,
    *args: Any,
    directions: Sequence[str] = (),
    blocks: int | None = None,
    deps: Sequence[Any] = (),
    predicate: Any = True,
    submit: bool = False,
) -> Any:
    """Call a function of the program; a submit gives the results and the id of the task."""
    active = here()
    machine = active.machine
    for position, arg in enumerate(args):
        if isinstance(arg, Value):
            raise AssertionError(f"argument {position} of {callee.body.__name__} is an on-chip value")
    operands: list[Any] = list(args)
    task: Any = "task"
    is_kernel = callee.kind in KERNEL_TYPES
    if active.is_off or not predicate:
        results = (
            _updated_arguments(callee, operands)
            if is_kernel
            else _call(machine, callee, operands, active.block, is_off=True)
        )
    elif machine.rng is not None and not machine.is_in_task and _is_task(callee):
        known = [ir.ArgDirection[each] for each in directions]
        task = machine.enqueue(callee, operands, known, set(task_numbers(deps)), blocks, active.manual)
        results = (
            _results_now(callee, operands, blocks)
            if callee.returned is None
            else [operands[position] for position in callee.returned]
        )
    else:
        results = _launch(machine, callee, operands, blocks, active.block)
    results = [as_memory(each) if isinstance(each, Value) else each for each in results]
    if submit:
        return [*results, task]
    return results[0] if len(results) == 1 else results


def _results_now(callee: Function, operands: list[Any], blocks: int | None) -> list[Any]:
    """The results of a task that runs later: parameters, and numbers that it computes from its arguments.

    Which is which, a run on copies shows.
    """
    copies = [Memory(each.array.copy()) if isinstance(each, Memory) else each for each in operands]
    originals = {id(copy): operand for copy, operand in zip(copies, operands, strict=True)}
    results: list[Any] = []
    for value in _call(Machine(), callee, copies, (0, blocks or 1)):
        if isinstance(value, (Memory, Value)) and id(value) not in originals:
            raise AssertionError(f"{callee.body.__name__} returns something else than its parameters")
        results.append(originals.get(id(value), value))
    return results


def open_lanes(*, dual: bool) -> None:
    """The kernels of a group run at the same time from here on; the vector kernel twice if `dual`."""
    here().lanes = Lanes(dual)


def lane(callee: Function, *args: Any, results: int) -> Any:
    """Start a kernel of a group as a lane, or two; the group ends when all of its lanes have ended.

    Args:
        results: how many values the kernel returns. They exist when the group ends, for it to return.
    """
    active = here()
    lanes = active.lanes
    assert lanes is not None
    if active.is_off:
        values: list[Any] = _updated_arguments(callee, list(args))
    else:
        values = [Pending() for _ in range(results)]
        for number in lanes.vector_lanes if callee.kind is ir.FunctionType.AIV else (0,):

            def run(number: int = number) -> None:
                made = _call(active.machine, callee, args, active.block, lanes=lanes, lane=number)
                if number == 0:
                    for value, result in zip(values, made, strict=True):
                        value.result = result

            lanes.start(run)
    return values[0] if len(values) == 1 else values


def _is_task(callee: Function) -> bool:
    return callee.kind not in (ir.FunctionType.Orchestration, ir.FunctionType.Opaque)


def _updated_arguments(callee: Function, args: list[Any]) -> list[Any]:
    """What a task that does not run gives: its outputs as they are."""
    directions = zip(args, callee.directions, strict=True)
    return [arg for arg, direction in directions if direction is not ir.ParamDirection.In]


def task_numbers(task_id: Any) -> Iterator[int]:
    """The tasks that an id stands for: one, all that a barrier or an array names, or none."""
    if isinstance(task_id, int):
        yield task_id
    elif isinstance(task_id, list | tuple):
        for each in task_id:
            yield from task_numbers(each)


def as_memory(value: Value) -> Memory:
    """A value as an array in global memory, undefined outside the valid region."""
    array = np.full_like(value.data, POISON)
    array[tuple(slice(0, extent) for extent in value.valid)] = value.region
    return Memory(array)


def buffer(shape: Sequence[int], dtype: DataType) -> Memory:
    """An undefined array in global memory."""
    return Memory(np.full([int(each) for each in shape], POISON).astype(storage(dtype)))


def extent(tensor: Any, axis: int) -> int:
    """An extent of an argument, counted from its last axis: an argument may have more leading unit axes."""
    array = tensor.array if isinstance(tensor, Memory) else tensor.data
    return int(array.shape[axis])


def valid_extent(tensor: Any, axis: int) -> int:
    """How far an argument is valid along an axis, counted from its last one."""
    return extent(tensor, axis) if tensor.valid is None else int(tensor.valid[axis])


def check_shape(tensor: Any, name: str, *shape: int) -> None:
    """Raise `AssertionError` unless an argument has this shape."""
    array = tensor.array if isinstance(tensor, Memory) else tensor.data
    found = array.shape[array.ndim - len(shape) :]
    assert found == shape, f"{name} has shape {list(array.shape)}, expected {list(shape)}"


def turn() -> None:
    """Count a turn of a loop."""
    machine = here().machine
    if machine.steps_left is not None:
        machine.steps_left -= 1
        if machine.steps_left < 0:
            raise OutOfSteps


def turns(start: Any, stop: Any, step: Any) -> Iterator[int]:
    """The numbers of a counting loop."""
    for number in range(int(start), int(stop), int(step)):
        turn()
        yield number


def blocks(count: Any, predicate: Any = True) -> Iterator[None]:
    """Run the body of an spmd scope once for every block."""
    active = here()
    outer, active.is_off = active.block, not predicate
    for number in range(int(count)):
        active.block = (number, int(count))
        yield
    active.block, active.is_off = outer, False


def split_region(split: int) -> Iterator[None]:
    """Run a region once per vector lane. Lane 0 comes last: what both compute is that of lane 0."""
    active = here()
    active.region = Region(split)
    for number in (1, 0):
        active.lane = number
        yield
    active.region = None


@contextlib.contextmanager
def core() -> Iterator[None]:
    """A scope that runs on a core: tensors computed in it are values."""
    active = here()
    outer, active.in_kernel = active.in_kernel, True
    try:
        yield
    finally:
        active.in_kernel = outer


def publish(*values: Any) -> tuple[Any, ...]:
    """What leaves a scope on a core: memory from now on; names of one value keep naming one array."""
    if here().in_kernel:
        return values
    seen: dict[int, Memory] = {}
    return tuple(
        seen.setdefault(id(each), as_memory(each)) if isinstance(each, Value) else each for each in values
    )


@contextlib.contextmanager
def manual_scope() -> Iterator[None]:
    """Tasks of the outermost manual scope are ordered among themselves by declared dependencies only."""
    active = here()
    outer = active.manual
    if outer is None:
        active.manual = set()
    try:
        yield
    finally:
        active.manual = outer


def note_carried(start: Any, end: Any) -> None:
    """A loop carried `start` on to `end`."""
    if isinstance(start, Memory) and isinstance(end, Value):
        here().left_behind.append(start.array)
