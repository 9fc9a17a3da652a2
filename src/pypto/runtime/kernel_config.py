"""Reading `kernel_config.py`: which sources a build directory holds and what they are compiled to.

The file is Python. It is run with its own names only; an import of `simpler.task_interface`, as vendor tools
write it, is answered with our enum, so directories that they made load as well.
"""

from __future__ import annotations

import builtins
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pypto.passes.context import RuntimeKind, runtime_kind_to_name
from pypto.runtime import task_interface
from pypto.runtime.task_interface import ArgDirection

FILE_NAME = "kernel_config.py"
DEFAULT_RUNTIME = "tensormap_and_ringbuffer"
RUNTIMES = tuple(runtime_kind_to_name(kind) for kind in RuntimeKind)  # one scheduler serves all on a CPU
LARGEST_ID = 2**31 - 1
_CORE_TYPES = ("aiv", "aic")


@dataclass(frozen=True, slots=True)
class TemplateOrigin:
    """The built-in template that a source was written from, and what was filled in (canonical JSON)."""

    variant: str
    inputs: str


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
    template: TemplateOrigin | None


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
    def import_ours(
        name: str, globals: Any = None, locals: Any = None, fromlist: Sequence[str] = (), level: int = 0
    ) -> Any:
        if name == "simpler.task_interface" and fromlist:
            return task_interface
        if name in ("simpler", "simpler.task_interface") and level == 0:
            return SimpleNamespace(task_interface=task_interface)
        return builtins.__import__(name, globals, locals, fromlist, level)

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
    except (Exception, SystemExit) as error:
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
    if func_id > LARGEST_ID:
        raise ValueError(f"{path}: func_id {func_id} is larger than {LARGEST_ID}")
    source = Path(_get(path, row, "source", str))
    return KernelRow(
        func_id=func_id,
        name=_get(path, row, "name", str, source.stem),
        source=source,
        core_type=core_type,
        signature=_signature(path, row, task_interface.MAX_KERNEL_TENSORS),
        code_name=_get(path, row, "code_name", str, None),
        external=_get(path, row, "external", bool, False),
        include_dirs=_include_dirs(path, row),
        template=_template(path, row),
    )


def _include_dirs(path: Path, row: dict[str, Any]) -> tuple[Path, ...]:
    folders = _get(path, row, "extra_include_dirs", list, [])
    if not all(isinstance(folder, str) for folder in folders):
        raise ValueError(f"{path}: 'extra_include_dirs' must be a list of strings, got {folders!r}")
    return tuple(map(Path, folders))


def _template(path: Path, row: dict[str, Any]) -> TemplateOrigin | None:
    variant = _get(path, row, "template", str, None)
    if variant is None:
        return None
    inputs = _get(path, row, "template_inputs", dict, {})
    try:
        return TemplateOrigin(variant, json.dumps(inputs, sort_keys=True))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: 'template_inputs' of '{variant}' are no plain values: {error}") from error


def _orchestration_row(path: Path, row: dict[str, Any]) -> OrchestrationRow:
    return OrchestrationRow(
        source=Path(_get(path, row, "source", str)),
        function_name=_get(path, row, "function_name", str, "aicpu_orchestration_entry"),
        config_name=_get(path, row, "config_name", str, "aicpu_orchestration_config"),
        signature=_signature(path, row, task_interface.MAX_ORCHESTRATION_TENSORS),
    )


def _signature(path: Path, row: dict[str, Any], limit: int) -> tuple[ArgDirection, ...]:
    entries = row.get("signature", ())
    if not isinstance(entries, Sequence) or not all(isinstance(e, ArgDirection) for e in entries):
        raise ValueError(f"{path}: a signature is a list of ArgDirection members")
    tensors = sum(entry is not ArgDirection.SCALAR for entry in entries)
    if tensors > limit:
        raise ValueError(f"{path}: a signature of {tensors} tensors exceeds supported {limit}")
    return tuple(entries)


def _get(path: Path, row: dict[str, Any], name: str, kind: type, default: Any = ...) -> Any:
    """The value of a field, of exactly that type; `default` stands for a field that is not there."""
    value = row.get(name, default)
    if type(value) is not kind and not (name not in row and default is not ...):
        raise ValueError(f"{path}: '{name}' must be a {kind.__name__}, got {row.get(name)!r}")
    return value


def _check_ids(path: Path, kernels: Sequence[KernelRow]) -> None:
    seen: set[int] = set()
    for row in kernels:
        if row.func_id in seen:
            raise ValueError(f"{path}: func_id {row.func_id} is given twice")
        seen.add(row.func_id)
