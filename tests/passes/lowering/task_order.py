"""Runs a lowered program as the task runtime may: dispatches in any order that the inferred dependencies
allow.

The rules are those of automatic scopes. A dispatch depends on earlier ones that wrote what it reads or
updates (`Input`, `InOut`), and, where it writes (`InOut`, `OutputExisting`), on earlier ones that read there.
Two writers of which the second is `OutputExisting` are not ordered. Missing order shows as a wrong result for
some seed.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pypto import ir
from pypto.ir.walk import walk

from .interpreter import Interpreter, Memory, _Frame

READS = (ir.ArgDirection.Input, ir.ArgDirection.InOut)
WRITES = (ir.ArgDirection.InOut, ir.ArgDirection.OutputExisting, ir.ArgDirection.Output)


@dataclass
class _Task:
    callee: ir.Function
    args: list[Any]
    blocks: int | None
    needs: set[int] = field(default_factory=set)


class _Recorder(_Frame):
    """The frame of the orchestration: dispatches are only noted down."""

    def __init__(self, owner: Interpreter, env: dict[ir.Var, Any], tasks: list[_Task]) -> None:
        super().__init__(owner, env, in_kernel=False)
        self.tasks = tasks
        self.readers: list[tuple[np.ndarray, int]] = []
        self.writers: list[tuple[np.ndarray, int]] = []

    def _dispatch(self, call: ir.Call | ir.Submit, callee: ir.Function) -> Any:
        args = [self.expr(arg) for arg in call.args_]
        count = call.core_num if isinstance(call, ir.Submit) else call.attrs_.get("core_num")
        task = _Task(callee, args, None if count is None else self.expr(count))
        number = len(self.tasks)
        self.tasks.append(task)
        memory = [
            (arg.array, direction)
            for arg, direction in zip(args, call.arg_directions, strict=True)
            if isinstance(arg, Memory)
        ]
        for array, direction in memory:
            if direction in READS:
                task.needs |= _overlapping(self.writers, array)
            if direction in WRITES:
                task.needs |= _overlapping(self.readers, array)
        self.readers += [(array, number) for array, direction in memory if direction in READS]
        self.writers += [(array, number) for array, direction in memory if direction in WRITES]
        positions = {param: position for position, param in enumerate(callee.params_)}
        result = next(node for node in walk(callee.body) if isinstance(node, ir.ReturnStmt))
        values = [args[positions[value]] for value in result.value_]  # type: ignore[index]
        if isinstance(call, ir.Submit):
            return [*values, "task"]
        return values[0] if len(values) == 1 else values


def _overlapping(entries: list[tuple[np.ndarray, int]], array: np.ndarray) -> set[int]:
    return {number for other, number in entries if np.shares_memory(other, array)}


def run_in_any_order(program: ir.Program, name: str, seed: int, *arrays: Any) -> None:
    """Run an orchestration on arrays, changed in place."""
    owner = Interpreter(program)
    function = program[name]
    assert function is not None
    env = {
        param: Memory(each) if isinstance(each, np.ndarray) else each
        for param, each in zip(function.params_, arrays, strict=True)
    }
    tasks: list[_Task] = []
    frame = _Recorder(owner, env, tasks)
    try:
        frame.stmt(function.body)
    except Exception as ended:  # the return statement ends the walk
        if type(ended).__name__ != "_Return":
            raise
    rng, done = random.Random(seed), set[int]()
    while len(done) < len(tasks):
        ready = [n for n, task in enumerate(tasks) if n not in done and task.needs <= done]
        number = rng.choice(ready)
        _run_task(owner, tasks[number], rng)
        done.add(number)


def _run_task(owner: Interpreter, task: _Task, rng: random.Random) -> None:
    if task.blocks is None:
        owner.call(task.callee, task.args)
        return
    for block in rng.sample(range(task.blocks), task.blocks):
        owner.block = (block, task.blocks)
        owner.call(task.callee, task.args)
    owner.block = (0, 1)
