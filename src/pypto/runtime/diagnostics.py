"""What a run leaves in `dfx_outputs/` when asked: its task graph, and a time line of tasks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from pypto.runtime.native_runtime import RunTrace

DIRECTORY = "dfx_outputs"


def write_task_graph(
    output_dir: Path, trace: RunTrace, names: Mapping[int, str], cores: Mapping[int, str]
) -> Path:
    """`deps.json`: tasks in order of submission, and edges between them by place in that order."""
    number = {task.task: i for i, task in enumerate(trace.tasks)}
    tasks = [
        {
            "id": number[task.task],
            "name": "+".join(names.get(i, str(i)) for i in task.func_ids) or "dummy",
            "func_id": task.func_ids[0] if task.func_ids else -1,
            "core": cores.get(task.func_ids[0], "") if task.func_ids else "",
            "blocks": task.blocks,
        }
        for task in trace.tasks
    ]
    edges = sorted([number[a], number[b]] for a, b in trace.edges if a in number)
    return _write(output_dir, "deps.json", {"tasks": tasks, "edges": edges})


def write_swimlane(output_dir: Path, trace: RunTrace, names: Mapping[int, str]) -> Path:
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
    return _write(output_dir, "chip_swimlane_records.json", {"traceEvents": events, "displayTimeUnit": "ns"})


def _write(output_dir: Path, name: str, content: object) -> Path:
    folder = output_dir / DIRECTORY
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(json.dumps(content, indent=1) + "\n")
    return path
