"""Run build directories on their test data, as a command:

    python -m pypto.runtime.execute_artifact --work-dir DIR --platform P --device-id N [--no-validate] ...
    python -m pypto.runtime.execute_artifact --batch-manifest FILE --device-id N

The last line that one directory prints says how it went: `PYPTO_EXEC_RESULT=` with `PASS`, `FAIL` (the run,
or the comparison) or `INFRA` (what is needed for a run is not there, or does not compile). A batch is a JSON
list of objects with `work_dir` and `platform`. The exit status is 0 when everything passed. Outputs are
written to `data/actual`.
"""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pypto.runtime.compiled_program import CompiledProgram, OrchestrationProgram
from pypto.runtime.golden import Golden, load_golden, validate_golden
from pypto.runtime.run_config import RunConfig
from pypto.runtime.runner import _DfxOpts

_ACTUAL = Path("data") / "actual"


class ArtifactSetupError(RuntimeError):
    """What is needed for a run is missing or cannot be built."""


def execute_artifact_dir(
    work_dir: Path | str, platform: str, device_id: int, *, dfx: _DfxOpts | None = None, validate: bool = True
) -> None:
    """Run a build directory on the inputs of its `golden.py` and compare what comes out.

    Raises `ArtifactSetupError` when it cannot be loaded, `AssertionError` for wrong results, and what the
    run raises.
    """
    root = Path(work_dir)
    config = _config(platform, device_id, dfx or _DfxOpts())
    program, golden, inputs = _set_up(root, platform)
    expected = golden.expected(inputs) if validate else {}
    program(*(value for _, value in inputs), config=config)
    results = {name: value for name, value in inputs if name in golden.outputs}
    _save(root / _ACTUAL, results)
    if validate:
        validate_golden(results, expected, golden.rtol, golden.atol)


def execute_batch_manifest(
    manifest: Path | str, device_id: int, *, dfx: _DfxOpts | None = None, validate: bool = True
) -> bool:
    """Run every entry and print its line; whether all passed. Raises `ArtifactSetupError` for a bad file."""
    entries = _read_batch(Path(manifest))
    passed = True
    for work_dir, platform in entries:

        def run(work_dir: str = work_dir, platform: str = platform) -> None:
            execute_artifact_dir(work_dir, platform, device_id, dfx=dfx, validate=validate)

        passed = _report(run, device_id, f" work_dir={work_dir}") and passed
    return passed


def _config(platform: str, device_id: int, dfx: _DfxOpts) -> RunConfig:
    try:
        return dfx.apply(RunConfig(platform=platform, device_id=device_id))
    except ValueError as error:
        raise ArtifactSetupError(str(error)) from error


def _set_up(root: Path, platform: str) -> tuple[OrchestrationProgram, Golden, Sequence[tuple[str, Any]]]:
    try:
        golden = load_golden(root)
        program = CompiledProgram.from_dir(root, platform=platform).single()
        program.load()
        inputs = list(golden.generate_inputs({}))
    except Exception as error:
        raise ArtifactSetupError(f"{root} cannot be run: {type(error).__name__}: {error}") from error
    unknown = [name for name in golden.outputs if name not in dict(inputs)]
    if unknown:
        raise ArtifactSetupError(f"{root}: generate_inputs makes no output {', '.join(unknown)}")
    return program, golden, inputs


def _save(folder: Path, results: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in results.items():
        if hasattr(value, "data_ptr"):
            sys.modules["torch"].save(value, folder / f"{name}.pt")
        else:
            np.save(folder / f"{name}.npy", value)


def _read_batch(path: Path) -> list[tuple[str, str]]:
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        pairs = [(entry["work_dir"], entry["platform"]) for entry in entries]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ArtifactSetupError(
            f"{path} is no list of objects with work_dir and platform: {type(error).__name__}: {error}"
        ) from error
    if not all(isinstance(text, str) for pair in pairs for text in pair):
        raise ArtifactSetupError(f"{path}: work_dir and platform must be strings")
    return pairs


def _report(run: Callable[[], object], device_id: int, place: str = "") -> bool:
    """Run, print the line that says how it went, and tell whether it passed."""
    try:
        run()
    except ArtifactSetupError:
        traceback.print_exc()
        print(f"PYPTO_EXEC_RESULT=INFRA{place}", flush=True)
    except Exception:
        traceback.print_exc()
        print(f"PYPTO_EXEC_RESULT=FAIL{place}", flush=True)
    else:
        print(f"PYPTO_EXEC_RESULT=PASS{place} device={device_id}", flush=True)
        return True
    return False


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m pypto.runtime.execute_artifact")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--work-dir", type=Path, help="a build directory with golden.py")
    what.add_argument("--batch-manifest", type=Path, help="a JSON list of work_dir and platform")
    parser.add_argument("--platform", help="needed with --work-dir")
    parser.add_argument("--device-id", type=int, default=0)
    parser.add_argument("--no-validate", action="store_true", help="only run")
    parser.add_argument("--dump-args", type=int, default=0, metavar="LEVEL")
    parser.add_argument("--enable-chip-swimlane", type=int, nargs="?", const=4, default=0, metavar="LEVEL")
    parser.add_argument("--enable-pmu", type=int, default=0, metavar="N")
    parser.add_argument("--enable-dep-gen", action="store_true")
    parser.add_argument("--enable-scope-stats", action="store_true")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; its exit status."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.work_dir is not None and given.platform is None:
        parser.error("--work-dir needs --platform")
    dfx = _DfxOpts(
        given.enable_chip_swimlane,
        given.dump_args,
        given.enable_pmu,
        given.enable_dep_gen,
        given.enable_scope_stats,
    )
    settings: dict[str, Any] = {"dfx": dfx, "validate": not given.no_validate}
    if given.batch_manifest is None:
        passed = _report(
            lambda: execute_artifact_dir(given.work_dir, given.platform, given.device_id, **settings),
            given.device_id,
        )
        return 0 if passed else 1
    try:
        return 0 if execute_batch_manifest(given.batch_manifest, given.device_id, **settings) else 1
    except ArtifactSetupError:
        traceback.print_exc()
        print("PYPTO_EXEC_RESULT=INFRA", flush=True)
        return 1


if __name__ == "__main__":
    sys.exit(main())
