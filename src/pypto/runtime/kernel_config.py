"""Reading `kernel_config.py`: which sources a build directory holds and what they are compiled to.

The file is Python. It is run with its own names only; the reference's import of `simpler.task_interface` is
answered with our enum, so directories that it made load as well.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto.passes.context import RuntimeKind, runtime_kind_to_name
from pypto.runtime import task_interface
from pypto.runtime.task_interface import ArgDirection

FILE_NAME = "kernel_config.py"
DEFAULT_RUNTIME = "tensormap_and_ringbuffer"
RUNTIMES = tuple(runtime_kind_to_name(kind) for kind in RuntimeKind)  # one scheduler serves all on a CPU
_CORE_TYPES = ("aiv", "aic")


@dataclass(frozen=True, slots=True)
class KernelRow:
    """One registration. Rows with equal `code_name` share their code; a row without one stands alone."""

    func_id: int
    name: str
    source: Path
    core_type: str
    signature: tuple[ArgDirection, ...]
    code_name: str | None
    external: bool
    include_dirs: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class OrchestrationRow:
    """The orchestration of a build directory."""

    source: Path
    function_name: str
    config_name: str
    signature: tuple[ArgDirection, ...]


@dataclass(frozen=True, slots=True)
class KernelConfig:
    """The content of a `kernel_config.py`."""

    kernels: tuple[KernelRow, ...]
    orchestration: OrchestrationRow
    runtime_config: Mapping[str, Any]

    @property
    def runtime_name(self) -> str:
        return str(self.runtime_config.get("runtime", DEFAULT_RUNTIME))


def load_kernel_config(work_dir: Path) -> KernelConfig:
    """Raises `FileNotFoundError` without the file, `ValueError` naming it for wrong content."""
    path = work_dir / FILE_NAME
    names = _run(path)
    rows = names.get("KERNELS")
    orchestration = names.get("ORCHESTRATION")
    runtime = names.get("RUNTIME_CONFIG", {})
    if not isinstance(rows, list) or not isinstance(orchestration, dict) or not isinstance(runtime, dict):
        raise ValueError(f"{path} must define KERNELS (a list) and ORCHESTRATION (a dict)")
    if runtime.get("runtime", DEFAULT_RUNTIME) not in RUNTIMES:
        raise ValueError(f"{path}: Unknown runtime '{runtime['runtime']}'; known are {', '.join(RUNTIMES)}")
    kernels = tuple(_kernel_row(path, row) for row in rows)
    _check_ids(path, kernels)
    return KernelConfig(kernels, _orchestration_row(path, orchestration), runtime)


def _run(path: Path) -> dict[str, Any]:
    def import_ours(name: str, *rest: Any) -> Any:
        if name == "simpler.task_interface":
            return task_interface
        return builtins.__import__(name, *rest)

    names: dict[str, Any] = {
        "__name__": "_pypto_kernel_config",
        "__file__": str(path.resolve()),
        "__builtins__": {**vars(builtins), "__import__": import_ours},
    }
    try:
        code = compile(path.read_text(encoding="utf-8"), str(path), "exec")
        exec(code, names)
    except OSError:
        raise
    except Exception as error:
        raise ValueError(f"{path} cannot be loaded: {type(error).__name__}: {error}") from error
    return names


def _kernel_row(path: Path, row: Any) -> KernelRow:
    if not isinstance(row, dict):
        raise ValueError(f"{path}: a row of KERNELS is a {type(row).__name__}, expected a dict")
    core_type = _get(path, row, "core_type", str)
    if core_type not in _CORE_TYPES:
        raise ValueError(f"{path}: unknown core_type '{core_type}'")
    func_id = _get(path, row, "func_id", int)
    if func_id < 0:
        raise ValueError(f"{path}: func_id {func_id} is negative")
    source = Path(_get(path, row, "source", str))
    code_name = row.get("code_name")
    return KernelRow(
        func_id=func_id,
        name=row.get("name", source.stem),
        source=source,
        core_type=core_type,
        signature=_signature(path, row),
        code_name=code_name if isinstance(code_name, str) else None,
        external=row.get("external") is True,
        include_dirs=tuple(Path(d) for d in row.get("extra_include_dirs", ())),
    )


def _orchestration_row(path: Path, row: dict[str, Any]) -> OrchestrationRow:
    return OrchestrationRow(
        source=Path(_get(path, row, "source", str)),
        function_name=row.get("function_name", "aicpu_orchestration_entry"),
        config_name=row.get("config_name", "aicpu_orchestration_config"),
        signature=_signature(path, row),
    )


def _signature(path: Path, row: dict[str, Any]) -> tuple[ArgDirection, ...]:
    entries = row.get("signature", ())
    if not isinstance(entries, Sequence) or not all(isinstance(e, ArgDirection) for e in entries):
        raise ValueError(f"{path}: a signature is a list of ArgDirection members")
    return tuple(entries)


def _get(path: Path, row: dict[str, Any], name: str, kind: type) -> Any:
    if type(row.get(name)) is not kind:
        raise ValueError(f"{path}: '{name}' must be a {kind.__name__}, got {row.get(name)!r}")
    return row[name]


def _check_ids(path: Path, kernels: Sequence[KernelRow]) -> None:
    seen: set[int] = set()
    for row in kernels:
        if row.func_id in seen:
            raise ValueError(f"{path}: func_id {row.func_id} is given twice")
        seen.add(row.func_id)
