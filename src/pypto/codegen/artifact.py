"""Writing a build directory: orchestration, kernels, and the configuration that ties them together.

The configuration is what makes a directory loadable, so it is removed first and written last: a directory
that a crash leaves behind is never taken for a finished build. Every file appears whole or not at all. One
kernel that cannot be generated does not stop the others; what failed is reported together at the end.
"""

from __future__ import annotations

import contextvars
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from pypto.codegen.host_orchestration import generate_host_orchestration, is_host_sub_worker, sub_worker_text
from pypto.codegen.kernel import KernelSource, generate_kernel
from pypto.codegen.kernel_config import DEFAULT_RUNTIME, core_folder, external_source, kernel_config_text
from pypto.codegen.orchestration import OrchestrationResult, generate_orchestration
from pypto.compile_profiling import get_active_profiler, record_stage
from pypto.core.errors import located
from pypto.ir.entry_points import host_entry
from pypto.ir.enums import FunctionType
from pypto.ir.expr import Call, GlobalVar, Submit
from pypto.ir.program import Function, Program
from pypto.ir.walk import walk

HOST_CODE = "orchestration/host_orch.py"

__all__ = ["HOST_CODE", "PartialCodegenError", "remove_markers", "write_artifact", "write_whole"]

MARKERS = (
    "compiled_meta.json",
    "distributed_meta.json",
    "kernel_config.py",
    HOST_CODE,
)
"""Files that say what kind of build a directory holds."""


class PartialCodegenError(RuntimeError):
    """Some functions could not be translated. `files` are those that were written."""

    def __init__(self, message: str, files: Sequence[Path]) -> None:
        super().__init__(message)
        self.files = list(files)


@dataclass(slots=True)
class _Outcome:
    """What has been written and what has failed so far; threads that generate kernels."""

    workers: int
    files: list[Path] = field(default_factory=list)
    failures: list[tuple[str, Exception]] = field(default_factory=list)


def write_artifact(
    program: Program, output_dir: str | os.PathLike[str], *, runtime: str = DEFAULT_RUNTIME
) -> list[Path]:
    """Write the sources and the configuration of a lowered program; the files, configuration last.

    With several Orchestration functions each gets a directory `next_levels/<name>` of its own, and
    `output_dir` no configuration. Raises `ValueError` when there is no Orchestration, `PartialCodegenError`
    when some functions could not be translated, plain `RuntimeError` when none could.
    """
    root = Path(output_dir)
    orchestrations = [f for f in program.functions_.values() if f.func_type is FunctionType.Orchestration]
    host = host_entry(program)
    if host is not None:
        host_code = generate_host_orchestration(program, host)
    if not orchestrations:
        raise ValueError(_without_orchestration(program))
    _check_groups(program)
    outcome = _Outcome(_max_workers())
    root.mkdir(parents=True, exist_ok=True)
    remove_markers(root)
    if len(orchestrations) == 1 and host is None:
        _write_build(program, orchestrations[0], root, runtime, outcome)
    else:
        for orchestration in orchestrations:
            folder = root / "next_levels" / orchestration.name
            folder.mkdir(parents=True, exist_ok=True)
            remove_markers(folder)
            _write_build(program, orchestration, folder, runtime, outcome)
    if host is not None:
        outcome.files.extend(_write_host(program, host_code, root))
    if outcome.failures:
        raise _failure(root, outcome)
    return outcome.files


def _without_orchestration(program: Program) -> str:
    """Why there is nothing to compile; the functions that call kernels only miss their type."""
    message = f"the program '{program.name}' has no Orchestration function to compile"
    callers = [f for f in program.functions_.values() if f.func_type is FunctionType.Opaque and _calls(f)]
    if not callers:
        return (
            f"{message}; write what it computes inside `with pl.at(level=pl.Level.CORE_GROUP):`, "
            "or call its kernels from a function with type=pl.FunctionType.Orchestration"
        )
    first = callers[0]
    return located(
        f"{message}: '{first.name}' calls kernels, but is not declared as one; "
        "write @pl.function(type=pl.FunctionType.Orchestration)",
        first.span,
    )


def _calls(function: Function) -> bool:
    """Whether a function calls or submits another one."""
    return any(
        isinstance(node, (Call, Submit)) and isinstance(node.op, GlobalVar) for node in walk(function.body)
    )


def _write_host(program: Program, code: str, root: Path) -> list[Path]:
    """The code of the host: its function, and the bodies of its SubWorkers."""
    files = [write_whole(root / HOST_CODE, code)]
    for function in program.functions_.values():
        if is_host_sub_worker(function):
            path = root / "sub_workers" / f"{function.name}.py"
            files.append(write_whole(path, sub_worker_text(function)))
    return files


def _write_build(
    program: Program, orchestration: Function, folder: Path, runtime: str, outcome: _Outcome
) -> None:
    failed_before = len(outcome.failures)
    result: OrchestrationResult | None = None
    try:
        with record_stage("orchestration_codegen"):
            result = generate_orchestration(program, orchestration)
    except Exception as error:  # reported with the kernels' failures
        outcome.failures.append((orchestration.name, error))
    if result is not None:
        path = folder / "orchestration" / f"{orchestration.name}.cpp"
        outcome.files.append(write_whole(path, _with_header(orchestration, result.code)))
    for kernel, source in _generate_all(program, _kernels(program, result), outcome.workers):
        if isinstance(source, Exception):
            outcome.failures.append((kernel.name, source))
            continue
        path = folder / "kernels" / core_folder(source.core_type) / f"{source.code_name}.cpp"
        outcome.files.append(write_whole(path, source.text))
    if result is None or len(outcome.failures) > failed_before:
        return
    text = kernel_config_text(
        orchestration.name,
        result.orchestration_signature,
        result.kernel_registrations,
        program.functions_,
        runtime,
    )
    outcome.files.append(write_whole(folder / "kernel_config.py", text))


def _generate_all(
    program: Program, kernels: Sequence[Function], workers: int
) -> Iterator[tuple[Function, KernelSource | Exception]]:
    """Kernels in their order with their sources, or why they have none."""

    def generate(kernel: Function) -> KernelSource | Exception:
        try:
            with record_stage(f"kernel_codegen:{kernel.name}"):
                return generate_kernel(program, kernel)
        except Exception as error:
            return error

    workers = min(workers, len(kernels))
    if workers <= 1 or get_active_profiler() is not None:  # a profiler times one thing after another
        yield from ((kernel, generate(kernel)) for kernel in kernels)
        return
    with ThreadPoolExecutor(workers, "pypto-codegen") as pool:
        jobs = [pool.submit(contextvars.copy_context().run, generate, kernel) for kernel in kernels]
        yield from ((kernel, job.result()) for kernel, job in zip(kernels, jobs, strict=True))


def _max_workers() -> int:
    """Threads that generate kernels; one unless asked for, since the interpreter runs one at a time."""
    text = os.environ.get("PYPTO_CODEGEN_MAX_WORKERS", "")
    if text and not (text.isdecimal() and int(text) > 0):
        raise ValueError(f"PYPTO_CODEGEN_MAX_WORKERS must be a positive number, got '{text}'")
    return int(text or 1)


def _kernels(program: Program, result: OrchestrationResult | None) -> list[Function]:
    """The kernels to generate: those that the orchestration submits, or all when that is not known."""
    if result is not None:
        names = dict.fromkeys(row.code_name for row in result.kernel_registrations)
        candidates = [program.functions_[name] for name in names]
    else:
        kinds = (FunctionType.AIC, FunctionType.AIV)
        candidates = [f for f in program.functions_.values() if f.func_type in kinds]
    return [kernel for kernel in candidates if external_source(kernel) is None]


def _with_header(orchestration: Function, code: str) -> str:
    return f"// Orchestration Function: {orchestration.name}\n// Generated by PyPTO IR Compiler\n\n{code}"


def _check_groups(program: Program) -> None:
    """The members of a group are all hand-written or all generated."""
    for group in program.functions_.values():
        if group.func_type is not FunctionType.Group:
            continue
        members = [
            program.functions_[node.op.name]
            for node in walk(group.body, once=True)
            if isinstance(node, Call | Submit)
            and isinstance(node.op, GlobalVar)
            and node.op.name in program.functions_
        ]
        generated = [m.name for m in members if external_source(m) is None]
        if generated and len(generated) < len(members):
            raise RuntimeError(
                f"the group '{group.name}' mixes hand-written and generated kernels; generated: "
                f"{', '.join(generated)}"
            )


def _failure(root: Path, outcome: _Outcome) -> RuntimeError:
    """The error that lists what could not be translated, also written to `report/codegen_errors.txt`."""
    rows = list(dict.fromkeys((name, f"{type(e).__name__}: {e}") for name, e in outcome.failures))
    width = max(len("function"), *(len(name) for name, _ in rows))
    table = [f"{'function':<{width}}  cause", f"{'-' * width}  {'-' * 5}"]
    for name, cause in rows:
        first, *rest = cause.splitlines()
        table += [f"{name:<{width}}  {first}", *(f"{'':<{width}}  {line}" for line in rest)]
    message = f"code generation failed for {len(rows)} function(s)\n" + "\n".join(table)
    write_whole(root / "report" / "codegen_errors.txt", message + "\n")
    error = PartialCodegenError(message, outcome.files) if outcome.files else RuntimeError(message)
    error.__cause__ = outcome.failures[0][1]
    return error


def remove_markers(folder: Path) -> None:
    """Nothing in a directory may point at an older build."""
    for marker in MARKERS:
        (folder / marker).unlink(missing_ok=True)
    (folder / "report" / "codegen_errors.txt").unlink(missing_ok=True)


def write_whole(path: Path, text: str) -> Path:
    """Write a file so that it exists whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Always the same name: what a killed process leaves is written over by the next one.
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return path
