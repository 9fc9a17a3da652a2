"""What a run leaves in `dfx_outputs/` when asked: task graph, time line, scopes, contents of arguments."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pypto.runtime.native_runtime import RunTrace
from pypto.runtime.run_config import RunConfig, run_options
from pypto.runtime.task_interface import ELEMENT_NAMES, TensorArgType

if TYPE_CHECKING:
    from pypto.runtime.arguments import BoundArguments
    from pypto.runtime.callables import ChipCallable

DIRECTORY = "dfx_outputs"
_DUMP_FOLDER = "args_dump"
_DUMP_FILE = "args.bin"
_ROLES = {
    TensorArgType.INPUT: "in",
    TensorArgType.OUTPUT: "out",
    TensorArgType.OUTPUT_EXISTING: "out",
    TensorArgType.INOUT: "inout",
    TensorArgType.NO_DEP: "inout",
}


def run_with_diagnostics(
    chip: ChipCallable, bound: BoundArguments, config: RunConfig, output_dir: Path
) -> None:
    """Run, and write under `output_dir` what `config` asks for. What an earlier run left is replaced."""
    folder = output_dir / DIRECTORY
    folder.mkdir(parents=True, exist_ok=True)
    dumps = folder / _DUMP_FOLDER
    if config.enable_dump_args:
        shutil.rmtree(dumps, ignore_errors=True)
        dumps.mkdir()
    trace = chip.program.run_traced(
        bound.layouts,
        bound.addresses,
        bound.scalars,
        run_options(),
        dump_level=int(config.enable_dump_args),
        dump_file=dumps / _DUMP_FILE,
    )
    names = {func_id: child.name for func_id, child in chip.children}
    cores = {func_id: child.core_type for func_id, child in chip.children}
    if config.enable_dep_gen:
        write_task_graph(folder, trace, names, cores)
    if config.enable_chip_swimlane:
        write_swimlane(folder, trace, names)
    if config.enable_scope_stats:
        write_scope_stats(folder, trace)
    if config.enable_dump_args:
        write_dump_index(dumps, trace, names)


def write_task_graph(
    folder: Path, trace: RunTrace, names: Mapping[int, str], cores: Mapping[int, str]
) -> Path:
    """`deps.json`: tasks in order of submission, and edges between them by place in that order."""
    number = _numbers(trace)
    tasks = [
        {
            "id": number[task.task],
            "name": _task_name(task.func_ids, names),
            "func_id": task.func_ids[0] if task.func_ids else -1,
            "core": cores.get(task.func_ids[0], "") if task.func_ids else "",
            "blocks": task.blocks,
        }
        for task in trace.tasks
    ]
    edges = sorted([number[a], number[b]] for a, b in trace.edges if a in number)
    return _write(folder / "deps.json", {"tasks": tasks, "edges": edges})


def write_swimlane(folder: Path, trace: RunTrace, names: Mapping[int, str]) -> Path:
    """`chip_swimlane_records.json`: one bar per block and thread, in the format of Chrome's trace viewer."""
    tasks = {task.task: task for task in trace.tasks}
    start = min((block.start_ns for block in trace.blocks), default=0)
    threads = {thread: i for i, thread in enumerate(sorted({block.thread for block in trace.blocks}))}
    events = [
        {
            "name": names.get(tasks[b.task].func_ids[b.lane], "?"),
            "ph": "X",
            "pid": 0,
            "tid": threads[b.thread],
            "ts": (b.start_ns - start) / 1000,
            "dur": (b.end_ns - b.start_ns) / 1000,
            "args": {"task": b.task, "block": b.block, "lane": b.lane},
        }
        for b in trace.blocks
    ]
    content = {"traceEvents": events, "displayTimeUnit": "ns"}
    return _write(folder / "chip_swimlane_records.json", content)


def write_scope_stats(folder: Path, trace: RunTrace) -> Path:
    """`scope_stats/scope_stats.jsonl`: a line per scope in order of entry; the first is the whole program."""
    path = folder / "scope_stats" / "scope_stats.jsonl"
    path.parent.mkdir(exist_ok=True)
    lines = [
        json.dumps(
            {
                "scope": i,
                "parent": scope.parent if scope.parent >= 0 else None,
                "mode": "manual" if scope.manual else "auto",
                "depth": scope.depth,
                "tasks": scope.tasks,
                "buffers": scope.buffers,
                "bytes": scope.bytes,
                "peak_bytes": scope.peak_bytes,
            }
        )
        for i, scope in enumerate(trace.scopes)
    ]
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def write_dump_index(folder: Path, trace: RunTrace, names: Mapping[int, str]) -> Path:
    """`args_dump/index.json`: where in `args.bin` each dumped tensor is, row-major, and what it is."""
    number = _numbers(trace)
    kernels = {task.task: _task_name(task.func_ids, names) for task in trace.tasks}
    entries = [
        {
            "task": number[dump.task],
            "name": kernels[dump.task],
            "arg": dump.argument,
            "role": _ROLES[TensorArgType(dump.tag)],
            "when": "after" if dump.after else "before",
            "dtype": ELEMENT_NAMES[dump.element],
            "shape": list(dump.shape),
            "file": _DUMP_FILE,
            "offset": dump.offset,
            "bytes": dump.bytes,
        }
        for dump in trace.dumps
    ]
    return _write(folder / "index.json", {"tensors": entries})


def _numbers(trace: RunTrace) -> dict[int, int]:
    """Places of tasks in order of submission."""
    return {task.task: i for i, task in enumerate(trace.tasks)}


def _task_name(func_ids: tuple[int, ...], names: Mapping[int, str]) -> str:
    return "+".join(names.get(i, str(i)) for i in func_ids) or "dummy"


def _write(path: Path, content: object) -> Path:
    path.write_text(json.dumps(content, indent=1) + "\n")
    return path
