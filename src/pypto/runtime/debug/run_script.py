"""What the script `debug/run.py` of a build directory calls."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pypto.core.dtype import dtype_from_text
from pypto.runtime.array_types import numpy_dtype, runtime_shape
from pypto.runtime.debug.replay import replay
from pypto.runtime.golden import FILE_NAME, load_golden
from pypto.runtime.log_config import configure_log
from pypto.runtime.run_config import RunConfig

__all__ = ["array", "main"]


def array(values: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    """`values` as an argument of that element type; packed types take as many bytes as they need."""
    kind = dtype_from_text(dtype)
    if kind is None:
        raise ValueError(f"unknown dtype '{dtype}'")
    shape = runtime_shape(values.shape, kind)
    return np.ascontiguousarray(values[..., : shape[-1]]).astype(numpy_dtype(kind))


def main(
    work_dir: Path,
    inputs: Callable[[], Sequence[Any]],
    compare: Callable[[Sequence[Any]], object],
    platform: str = "a2a3sim",
) -> int:
    """Run the build in `work_dir`; the exit status. With a `golden.py` its inputs are used and checked."""
    given = _parser(platform).parse_args()
    if given.log_level is not None:
        configure_log(given.log_level, sync_pypto=given.log_sync_pypto)
    has_golden = (work_dir / FILE_NAME).is_file()
    validate = has_golden if given.validate is None else given.validate
    arguments = [value for _, value in load_golden(work_dir).generate_inputs({})] if validate else inputs()
    missing = [i for i, value in enumerate(arguments) if value is None]
    if missing:
        print(f"fill in the scalars of _inline_inputs: argument(s) {', '.join(map(str, missing))}")
        return 2
    config = RunConfig(
        platform=given.platform,
        device_id=given.device_id,
        enable_chip_swimlane=given.swimlane_level or (4 if given.swimlane else 0),
        enable_dump_args=given.dump_args,
        enable_pmu=given.pmu,
        enable_dep_gen=given.dep_gen,
        enable_scope_stats=given.scope_stats,
    )
    replay(
        work_dir,
        *arguments,
        config=config,
        recompile=not given.no_recompile,
        rebuild_from_pto=not given.no_rebuild_from_pto,
        validate=validate,
    )
    compare(arguments)
    print("done", flush=True)
    return 0


def _parser(platform: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Run this build directory.")
    parser.add_argument("--platform", default=platform)
    parser.add_argument("--device-id", type=int, default=0)
    parser.add_argument("--pmu", type=int, default=0, metavar="N")
    parser.add_argument("--swimlane", action="store_true", help="write a time line of tasks")
    parser.add_argument("--swimlane-level", type=int, default=0, metavar="N")
    parser.add_argument("--dump-args", type=int, nargs="?", const=1, default=0, metavar="N")
    parser.add_argument("--dep-gen", action="store_true", help="write the task graph")
    parser.add_argument("--scope-stats", action="store_true")
    parser.add_argument("--no-recompile", action="store_true")
    parser.add_argument("--no-rebuild-from-pto", action="store_true")
    parser.add_argument("--log-level", metavar="L")
    parser.add_argument("--log-sync-pypto", action="store_true")
    parser.add_argument("--validate", action=argparse.BooleanOptionalAction, default=None)
    return parser
